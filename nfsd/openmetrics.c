/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenMetrics text from the table of counters and a snapshot of latencies. No
 * state. A family's name is nvnfsd_ and the counter's, times are in seconds.
 * Latency is told by export and procedure, with a bucket an octave; by client
 * only calls and bytes are told, so that what a scrape costs stays small.
 *
 * https://github.com/prometheus/OpenMetrics, specification 1.0.0.
 */
#include "nfsd/openmetrics.h"

#include "nfsd/counters.h"
#include "nfsd/server.h"
#include "nfsd/snapshot.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX       "nvnfsd_"
#define NAME_BYTES   96
#define OCTAVE_FIRST 14u /* 16.4 us */
#define OCTAVE_LAST  36u /* 68.7 s */

/* Names -------------------------------------------------------------------- */

static bool
is_time(const struct counter *c)
{
	size_t n = strlen(c->name);

	return n > 3 && strcmp(c->name + n - 3, "_ns") == 0;
}

static void
family_name(const struct counter *c, char out[NAME_BYTES])
{
	const char *name = c->metric != NULL ? c->metric : c->name;

	if (is_time(c))
		(void)snprintf(out, NAME_BYTES, PREFIX "%.*s_seconds",
			       (int)(strlen(name) - 3), name);
	else
		(void)snprintf(out, NAME_BYTES, PREFIX "%s", name);
}

static void
put_family(FILE *out, const char *name, const char *type, const char *help)
{
	static const char *const units[] = { "seconds", "bytes" };
	size_t n = strlen(name), u;
	unsigned i;

	(void)fprintf(out, "# TYPE %s %s\n", name, type);
	for (i = 0; i < sizeof(units) / sizeof(*units); i++) {
		u = strlen(units[i]);
		if (n > u && name[n - u - 1] == '_' &&
		    strcmp(name + n - u, units[i]) == 0)
			(void)fprintf(out, "# UNIT %s %s\n", name, units[i]);
	}
	(void)fprintf(out, "# HELP %s %s.\n", name, help);
}

static void
put_label(FILE *out, char before, const char *label, const char *value)
{
	(void)fprintf(out, "%c%s=\"", before, label);
	for (; *value != '\0'; value++) {
		if (*value == '\n')
			(void)fputs("\\n", out);
		else if (*value == '"' || *value == '\\')
			(void)fprintf(out, "\\%c", *value);
		else
			(void)fputc(*value, out);
	}
	(void)fputc('"', out);
}

/* Counters ----------------------------------------------------------------- */

/* One sample's name and value, its labels told by who calls it. */
struct family {
	struct counter_sink sink;
	FILE *out;
	const struct counter *c;
	char name[NAME_BYTES];
};

static void
put_name(const struct family *f)
{
	(void)fprintf(f->out, "%s%s", f->name,
		      f->c->type == COUNTER ? "_total" : "");
}

static void
put_value(const struct family *f, uint64_t value)
{
	if (is_time(f->c))
		(void)fprintf(f->out, " %.9f\n", (double)value / 1e9);
	else
		(void)fprintf(f->out, " %" PRIu64 "\n", value);
}

static void
put_volume(const struct family *f, const struct export *e)
{
	const struct counter *c = f->c;
	struct volume *v = e->rw != NULL ? e->rw : e->ro;
	unsigned i, n = c->values > 0 ? c->values : 1;

	for (i = 0; i < n; i++) {
		put_name(f);
		put_label(f->out, '{', "export", e->path);
		if (c->values > 0)
			put_label(f->out, ',', c->label, c->value_name(i));
		(void)fputc('}', f->out);
		put_value(f, counter_of_volume(c, volume_counters(v), i));
	}
}

static void
put_labelled(struct counter_sink *k, const char *label, uint64_t value)
{
	struct family *f = container_of(k, struct family, sink);

	put_name(f);
	put_label(f->out, '{', f->c->label, label);
	(void)fputc('}', f->out);
	put_value(f, value);
}

/* What is not known is left out. */
static void
put_values(struct family *f, struct server *s)
{
	const struct counter *c = f->c;
	unsigned i, n = c->values > 0 ? c->values : 1;
	uint64_t value;

	for (i = 0; i < n; i++) {
		if (counter_read(c, s, i, &value) < 0)
			continue;
		put_name(f);
		if (c->values > 0) {
			put_label(f->out, '{', c->label, c->value_name(i));
			(void)fputc('}', f->out);
		}
		put_value(f, value);
	}
}

static void
put_counter(FILE *out, const struct counter *c, struct server *s,
	    const struct export_table *t)
{
	struct family f = { .sink.put = put_labelled, .out = out, .c = c };
	unsigned i;

	family_name(c, f.name);
	put_family(out, f.name, c->type == COUNTER ? "counter" : "gauge",
		   c->help);
	if (c->scope == IN_VOLUME) {
		for (i = 0; i < export_table_count(t); i++)
			put_volume(&f, export_table_at(t, i));
	} else if (c->scope == BY_LABEL) {
		(void)c->list(s, &f.sink);
	} else {
		put_values(&f, s);
	}
}

/* Latency ------------------------------------------------------------------ */

static void
put_histogram(FILE *out, const struct snapshot *s, const struct latency_sum *l)
{
	const char *export = snapshot_export(s, l->key.export_id);
	const char *procedure = snapshot_procedure(l->key.proc);
	unsigned octave, bucket = 0;
	uint64_t below = 0;
	char le[32];

	for (octave = OCTAVE_FIRST; octave <= OCTAVE_LAST + 1; octave++) {
		unsigned end = octave <= OCTAVE_LAST
				       ? latency_bucket(1ull << octave)
				       : LATENCY_BUCKETS;

		for (; bucket < end; bucket++)
			below += l->bucket[bucket];
		if (octave <= OCTAVE_LAST)
			(void)snprintf(le, sizeof(le), "%.9g",
				       ldexp(1e-9, (int)octave));
		else
			(void)snprintf(le, sizeof(le), "+Inf");
		(void)fputs(PREFIX "call_seconds_bucket", out);
		put_label(out, '{', "export", export);
		put_label(out, ',', "procedure", procedure);
		put_label(out, ',', "le", le);
		(void)fprintf(out, "} %" PRIu64 "\n", below);
	}
	(void)fputs(PREFIX "call_seconds_count", out);
	put_label(out, '{', "export", export);
	put_label(out, ',', "procedure", procedure);
	(void)fprintf(out, "} %" PRIu64 "\n", l->calls);
	(void)fputs(PREFIX "call_seconds_sum", out);
	put_label(out, '{', "export", export);
	put_label(out, ',', "procedure", procedure);
	(void)fprintf(out, "} %.9f\n", (double)l->ns / 1e9);
}

/* The cells of all clients added up. */
static void
put_latency(FILE *out, struct snapshot *s)
{
	const struct latency_sum *c;
	struct latency_sum *all = NULL, *grown;
	size_t n = 0, i;

	put_family(out, PREFIX "call_seconds", "histogram",
		   "Time from a call's first byte to its reply's last");
	for (c = snapshot_first(s); c != NULL; c = snapshot_next(c)) {
		for (i = 0; i < n && (all[i].key.proc != c->key.proc ||
				      all[i].key.export_id != c->key.export_id);
		     i++)
			;
		if (i < n) {
			latency_add(&all[i], c);
			continue;
		}
		grown = reallocarray(all, n + 1, sizeof(*all));
		if (grown == NULL)
			break;
		all = grown;
		all[n++] = *c;
	}
	for (i = 0; i < n; i++)
		put_histogram(out, s, &all[i]);
	free(all);
}

/* What a cell counts, by client. */
struct client_family {
	const char *name, *help;
	size_t offset;
};

static const struct client_family client_families[] = {
	{ PREFIX "client_calls", "Calls replied to, by client",
	  offsetof(struct latency_sum, calls) },
	{ PREFIX "client_failed_calls", "Those of them that failed",
	  offsetof(struct latency_sum, failed) },
	{ PREFIX "client_written_bytes", "Bytes that clients wrote",
	  offsetof(struct latency_sum, bytes_in) },
	{ PREFIX "client_read_bytes", "Bytes that clients read",
	  offsetof(struct latency_sum, bytes_out) },
};

static uint64_t
field(const struct latency_sum *c, const struct client_family *f)
{
	return *(const uint64_t *)((const char *)c + f->offset);
}

/* The procedures are added up: there are enough of them above. */
static void
put_client(FILE *out, struct snapshot *s, const struct client_family *f)
{
	const struct latency_sum *c = snapshot_first(s), *d;
	const char *client, *export;
	uint64_t sum;

	put_family(out, f->name, "counter", f->help);
	/* Cells come in the order of client and export. */
	while (c != NULL) {
		sum = 0;
		client = snapshot_client(s, c->key.client);
		export = snapshot_export(s, c->key.export_id);
		for (d = c; d != NULL && d->key.client == c->key.client &&
			    d->key.export_id == c->key.export_id;
		     d = snapshot_next(d))
			sum += field(d, f);
		(void)fprintf(out, "%s_total", f->name);
		put_label(out, '{', "client", client);
		put_label(out, ',', "export", export);
		(void)fprintf(out, "} %" PRIu64 "\n", sum);
		c = d;
	}
}

/* All ---------------------------------------------------------------------- */

static void
put_info(FILE *out, const struct server *s)
{
	put_family(out, PREFIX "build", "info", "What serves");
	(void)fputs(PREFIX "build_info", out);
	put_label(out, '{', "version", NVNFSD_VERSION);
	put_label(out, ',', "engine",
		  engine_facts(s->engine)->backend == IO_BACKEND_URING
			  ? "uring"
			  : "threads");
	(void)fputs("} 1\n", out);
}

char *
openmetrics_text(struct server *s, size_t *ret_bytes)
{
	struct snapshot *now = snapshot_take(s);
	const struct counter *c;
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_bytes);
	unsigned i;

	if (now == NULL || out == NULL)
		goto fail;
	put_info(out, s);
	for (i = 0; (c = counter_row(i)) != NULL; i++)
		put_counter(out, c, s, now->exports);
	put_latency(out, now);
	for (i = 0; i < sizeof(client_families) / sizeof(*client_families); i++)
		put_client(out, now, &client_families[i]);
	(void)fputs("# EOF\n", out);
	snapshot_free(now);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
fail:
	snapshot_free(now);
	if (out != NULL)
		(void)fclose(out);
	free(text);
	return NULL;
}
