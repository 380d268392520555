/* SPDX-License-Identifier: Apache-2.0 */
/* The result of nvnfsd-load as one JSON object (json-c). */
#include "tests/bench/load.h"

#include <json-c/json.h>

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

/* In microseconds. */
static struct json_object *
latency(const struct load *l)
{
	static const struct {
		const char *key;
		double share;
	} shares[] = { { "p1", 0.01 },     { "p5", 0.05 },      { "p10", 0.1 },
		       { "p25", 0.25 },    { "p50", 0.5 },      { "p75", 0.75 },
		       { "p90", 0.9 },     { "p95", 0.95 },     { "p99", 0.99 },
		       { "p99_9", 0.999 }, { "p99_99", 0.9999 } };
	struct json_object *o = json_object_new_object();
	const struct histogram *t = &l->latency;
	double n = t->count ? (double)t->count : 1;

	add_double(o, "mean", (double)t->sum_ns / n / 1000);
	add_double(o, "min", (double)t->min_ns / 1000);
	for (unsigned i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
		add_double(o, shares[i].key,
			   (double)histogram_quantile(t, shares[i].share) /
				   1000);
	add_double(o, "max", (double)t->max_ns / 1000);
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
	add_double(o, "calls_s",
		   seconds > 0 ? (double)l->operations / seconds : 0);
}

static struct json_object *
by_tick(const struct load *l)
{
	struct json_object *o = json_object_new_array();

	for (unsigned i = 0; i < l->ticks; i++) {
		char text[32];
		double mib = (double)l->tick_bytes[i] / (1 << 20);

		(void)snprintf(text, sizeof(text), "%.5g", mib);
		json_object_array_add(o, json_object_new_double_s(mib, text));
	}
	return o;
}

/* Who was starved? */
static struct json_object *
by_writer(const struct load *l)
{
	struct json_object *o = json_object_new_object();
	uint64_t least = UINT64_MAX, most = 0;

	for (unsigned i = 0; i < l->opt.writers; i++) {
		if (l->writer_done[i] < least)
			least = l->writer_done[i];
		if (l->writer_done[i] > most)
			most = l->writer_done[i];
	}
	add_uint(o, "least", least);
	add_uint(o, "most", most);
	add_double(o, "mean", (double)l->operations / l->opt.writers);
	return o;
}

int
report(struct load *l, bool good, FILE *out)
{
	struct json_object *o = json_object_new_object();
	static const char *const stable[] = { "unstable", "data", "file" };
	static const char *const op[] = { "write", "read", "null", "commit",
					  "remove" };
	int rc;

	json_object_object_add(o, "op", json_object_new_string(op[l->opt.op]));
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
	add_double(o, "tick_seconds", TICK_NS / 1e9);
	json_object_object_add(o, "mib_by_tick", by_tick(l));
	add_uint(o, "errors", l->errors);
	add_uint(o, "mismatches", l->mismatches);
	if (l->mismatches)
		add_uint(o, "first_mismatch", l->first_mismatch);
	json_object_object_add(o, "writer_operations", by_writer(l));
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
