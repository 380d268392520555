/* SPDX-License-Identifier: Apache-2.0 */
/* The result of nvnfsd-load as one JSON object (json-c). */
#include "tests/bench/load.h"

#include <json-c/json.h>
#include <stdlib.h>

static int
compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void
add_uint(struct json_object *o, const char *key, uint64_t v)
{
	json_object_object_add(o, key, json_object_new_uint64(v));
}

static void
add_double(struct json_object *o, const char *key, double v)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%.6g", v);
	json_object_object_add(o, key, json_object_new_double_s(v, text));
}

/* In microseconds; the smallest that at least this share does not exceed. */
static void
add_quantile(struct json_object *o, const char *key, const struct load *l,
	     double share)
{
	uint64_t i = (uint64_t)((double)l->latencies * share);

	if (i >= l->latencies)
		i = l->latencies - 1;
	add_double(o, key, l->latencies ? (double)l->latency_ns[i] / 1000 : 0);
}

static struct json_object *
latency(struct load *l)
{
	struct json_object *o = json_object_new_object();
	double sum = 0;

	qsort(l->latency_ns, l->latencies, sizeof(*l->latency_ns), compare);
	for (uint64_t i = 0; i < l->latencies; i++)
		sum += (double)l->latency_ns[i];
	add_double(o, "mean",
		   l->latencies ? sum / 1000 / (double)l->latencies : 0);
	add_quantile(o, "min", l, 0);
	add_quantile(o, "p50", l, 0.5);
	add_quantile(o, "p99", l, 0.99);
	add_quantile(o, "p99_9", l, 0.999);
	add_quantile(o, "max", l, 1);
	return o;
}

static void
add_rates(struct json_object *o, const struct load *l)
{
	double seconds = (double)(l->last_reply_ns - l->start_ns) / 1e9;
	double stable = (double)(l->stable_ns - l->start_ns) / 1e9;
	double mib = (double)l->bytes / (1 << 20);

	add_double(o, "seconds", seconds);
	add_double(o, "seconds_to_stable", stable);
	add_double(o, "mib_s", seconds > 0 ? mib / seconds : 0);
	add_double(o, "mib_s_to_stable", stable > 0 ? mib / stable : 0);
}

int
report(struct load *l, bool good, FILE *out)
{
	struct json_object *o = json_object_new_object();
	static const char *const stable[] = { "unstable", "data", "file" };
	int rc;

	json_object_object_add(o, "op",
			       json_object_new_string(l->opt.op == LOAD_WRITE
							      ? "write"
							      : "read"));
	json_object_object_add(o, "good", json_object_new_boolean(good));
	add_uint(o, "record_bytes", l->opt.record_bytes);
	add_uint(o, "writers", l->opt.writers);
	add_uint(o, "in_flight", l->opt.in_flight);
	add_uint(o, "connections", l->opt.connections);
	if (l->opt.op == LOAD_WRITE)
		json_object_object_add(
			o, "stable",
			json_object_new_string(stable[l->opt.stable]));
	add_uint(o, "bytes", l->bytes);
	add_uint(o, "operations", l->operations);
	add_rates(o, l);
	json_object_object_add(o, "latency_us", latency(l));
	add_uint(o, "errors", l->errors);
	add_uint(o, "mismatches", l->mismatches);
	if (l->mismatches)
		add_uint(o, "first_mismatch", l->first_mismatch);
	add_uint(o, "commits", l->commits);
	add_uint(o, "verifier_changes", l->verifier_changes);
	add_uint(o, "resent", l->resent);
	add_uint(o, "short_replies", l->short_replies);
	add_uint(o, "reconnects", l->reconnects);
	if (l->error[0])
		json_object_object_add(o, "error",
				       json_object_new_string(l->error));
	rc = fprintf(
		out, "%s\n",
		json_object_to_json_string_ext(
			o, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED));
	json_object_put(o);
	return rc < 0 || fflush(out) != 0 ? -1 : 0;
}
