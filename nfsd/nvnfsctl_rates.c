/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened between two results of stats: rates, and percentiles of just
 * these calls, from the difference of their histograms. The object is struct
 * rates, its caller's.
 */
#include "nfsd/latency.h"
#include "nfsd/nvnfsctl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1024.0 * 1024)

/* Rows while they are added up. */
struct sum_row {
	struct rate_row row; /* its names */
	struct latency_sum sum;
};

static struct json_object *
get_list(struct json_object *o, const char *name)
{
	struct json_object *v = get_part(o, name);

	return json_object_is_type(v, json_type_array) ? v : NULL;
}

static void
read_sum(struct json_object *o, struct latency_sum *s)
{
	struct json_object *list = get_list(o, "buckets"), *pair;
	size_t n = list != NULL ? json_object_array_length(list) : 0, i;
	uint64_t bucket;

	memset(s, 0, sizeof(*s));
	s->failed = get_number(o, "failed");
	s->bytes_in = get_number(o, "bytes_in");
	s->bytes_out = get_number(o, "bytes_out");
	s->ns = get_number(o, "ns");
	for (i = 0; i < n; i++) {
		pair = json_object_array_get_idx(list, i);
		if (!json_object_is_type(pair, json_type_array))
			continue;
		bucket = json_object_get_uint64(
			json_object_array_get_idx(pair, 0));
		if (bucket >= LATENCY_BUCKETS)
			continue;
		s->bucket[bucket] = json_object_get_uint64(
			json_object_array_get_idx(pair, 1));
		s->calls += s->bucket[bucket];
	}
}

static bool
same_key(struct json_object *a, struct json_object *b)
{
	return strcmp(get_text(a, "client"), get_text(b, "client")) == 0 &&
	       strcmp(get_text(a, "export"), get_text(b, "export")) == 0 &&
	       strcmp(get_text(a, "procedure"), get_text(b, "procedure")) == 0;
}

/* What o, an entry of now, has grown by. */
static void
read_growth(struct json_object *before, struct json_object *o,
	    struct latency_sum *ret)
{
	struct json_object *list = get_list(before, "latency"), *was;
	size_t n = list != NULL ? json_object_array_length(list) : 0, i;
	struct latency_sum b;

	read_sum(o, ret);
	for (i = 0; i < n; i++) {
		was = json_object_array_get_idx(list, i);
		if (!same_key(was, o))
			continue;
		read_sum(was, &b);
		latency_subtract(ret, &b);
		return;
	}
}

static void
copy(char *to, size_t room, const char *from, bool shown)
{
	(void)snprintf(to, room, "%s", shown ? from : "*");
}

static void
name_row(struct rate_row *r, struct json_object *o, enum rate_group by)
{
	copy(r->client, sizeof(r->client), get_text(o, "client"),
	     by == GROUP_ALL || by == GROUP_CLIENT);
	copy(r->export, sizeof(r->export), get_text(o, "export"),
	     by == GROUP_ALL || by == GROUP_EXPORT);
	copy(r->procedure, sizeof(r->procedure), get_text(o, "procedure"),
	     by == GROUP_ALL || by == GROUP_PROCEDURE);
}

static struct sum_row *
find_row(struct sum_row *row, size_t rows, const struct rate_row *name)
{
	size_t i;

	for (i = 0; i < rows; i++)
		if (strcmp(row[i].row.client, name->client) == 0 &&
		    strcmp(row[i].row.export, name->export) == 0 &&
		    strcmp(row[i].row.procedure, name->procedure) == 0)
			return &row[i];
	return NULL;
}

/* Into rows, which has room for one more; how many there are then. */
static size_t
add_row(struct sum_row *row, size_t rows, struct json_object *o,
	const struct latency_sum *s, enum rate_group by)
{
	struct rate_row name = { 0 };
	struct sum_row *r;

	name_row(&name, o, by);
	r = find_row(row, rows, &name);
	if (r == NULL) {
		r = &row[rows++];
		memset(r, 0, sizeof(*r));
		r->row = name;
	}
	latency_add(&r->sum, s);
	return rows;
}

static int
compare_rows(const void *a, const void *b)
{
	double x = ((const struct rate_row *)a)->calls;
	double y = ((const struct rate_row *)b)->calls;

	return x > y ? -1 : x < y;
}

static void
finish_rows(struct rates *r, const struct sum_row *row)
{
	size_t i;

	for (i = 0; i < r->rows; i++) {
		const struct latency_sum *s = &row[i].sum;
		struct rate_row *to = &r->row[i];

		*to = row[i].row;
		to->calls = (double)s->calls / r->seconds;
		to->mib =
			(double)(s->bytes_in + s->bytes_out) / MIB / r->seconds;
		to->p50_ns = latency_quantile(s, 500);
		to->p99_ns = latency_quantile(s, 990);
		to->p999_ns = latency_quantile(s, 999);
		r->calls += to->calls;
		r->mib_in += (double)s->bytes_in / MIB / r->seconds;
		r->mib_out += (double)s->bytes_out / MIB / r->seconds;
	}
	qsort(r->row, r->rows, sizeof(*r->row), compare_rows);
}

int
rates_make(struct rates *r, struct json_object *before, struct json_object *now,
	   enum rate_group by)
{
	struct json_object *list = get_list(now, "latency"), *o;
	size_t n = list != NULL ? json_object_array_length(list) : 0, i;
	struct sum_row *row = calloc(n + 1, sizeof(*row));
	struct latency_sum s;

	memset(r, 0, sizeof(*r));
	r->row = calloc(n + 1, sizeof(*r->row));
	if (row == NULL || r->row == NULL) {
		free(row);
		rates_free(r);
		return -ENOMEM;
	}
	r->seconds = (double)(get_number(now, "at_ns") -
			      get_number(before, "at_ns")) /
		     1e9;
	if (r->seconds <= 0)
		r->seconds = 1;
	r->connections = get_number(now, "connections");
	r->calls_in_service = get_number(now, "calls_in_service");
	r->file_ops = get_number(now, "file_ops");
	r->bytes_in_flight = get_number(now, "bytes_in_flight");
	for (i = 0; i < n; i++) {
		o = json_object_array_get_idx(list, i);
		read_growth(before, o, &s);
		if (s.calls > 0)
			r->rows = add_row(row, r->rows, o, &s, by);
	}
	finish_rows(r, row);
	free(row);
	return 0;
}

void
rates_free(struct rates *r)
{
	free(r->row);
	r->row = NULL;
	r->rows = 0;
}
