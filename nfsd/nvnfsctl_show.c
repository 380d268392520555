/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of nvnfsctl as text for people. No state. What the server may add to
 * a result shows by itself: what has no table of its own is printed value by
 * value. null is n/a.
 */
#include "nfsd/nvnfsctl.h"

#include <inttypes.h>
#include <string.h>

struct json_object *
get_part(struct json_object *o, const char *name)
{
	struct json_object *v;

	if (o == NULL || !json_object_is_type(o, json_type_object) ||
	    !json_object_object_get_ex(o, name, &v))
		return NULL;
	return v;
}

bool
get_flag(struct json_object *o, const char *name)
{
	return json_object_get_boolean(get_part(o, name));
}

uint64_t
get_number(struct json_object *o, const char *name)
{
	struct json_object *v = get_part(o, name);

	return v != NULL ? json_object_get_uint64(v) : 0;
}

const char *
get_text(struct json_object *o, const char *name)
{
	struct json_object *v = get_part(o, name);

	return v != NULL ? json_object_get_string(v) : "-";
}

const char *
show_size(char out[SHOW_BYTES], double bytes)
{
	static const char *const units[] = { "B",   "KiB", "MiB",
					     "GiB", "TiB", "PiB" };
	unsigned i = 0;

	while (bytes >= 1024 && i + 1 < sizeof(units) / sizeof(*units)) {
		bytes /= 1024;
		i++;
	}
	(void)snprintf(out, SHOW_BYTES, "%.*f %s", i > 0, bytes, units[i]);
	return out;
}

const char *
show_time(char out[SHOW_BYTES], double ns)
{
	if (ns < 1e3)
		(void)snprintf(out, SHOW_BYTES, "%.0f ns", ns);
	else if (ns < 1e6)
		(void)snprintf(out, SHOW_BYTES, "%.1f us", ns / 1e3);
	else if (ns < 1e9)
		(void)snprintf(out, SHOW_BYTES, "%.1f ms", ns / 1e6);
	else if (ns < 120e9)
		(void)snprintf(out, SHOW_BYTES, "%.1f s", ns / 1e9);
	else if (ns < 7200e9)
		(void)snprintf(out, SHOW_BYTES, "%.0f min", ns / 60e9);
	else if (ns < 48 * 3600e9)
		(void)snprintf(out, SHOW_BYTES, "%.1f h", ns / 3600e9);
	else
		(void)snprintf(out, SHOW_BYTES, "%.1f d", ns / (24 * 3600e9));
	return out;
}

/* Any ---------------------------------------------------------------------- */

static bool
ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), e = strlen(end);

	return n >= e && strcmp(name + n - e, end) == 0;
}

/* A value of its own on a line; name tells its unit. */
static void
show_value(const char *name, struct json_object *v)
{
	char text[SHOW_BYTES];

	if (v == NULL)
		(void)printf("n/a");
	else if (json_object_is_type(v, json_type_boolean))
		(void)printf("%s", json_object_get_boolean(v) ? "yes" : "no");
	else if (json_object_is_type(v, json_type_int) &&
		 ends_with(name, "_ns"))
		(void)printf("%s", show_time(text, json_object_get_double(v)));
	else
		(void)printf("%s", json_object_get_string(v));
}

static bool
is_inner(struct json_object *v)
{
	return json_object_is_type(v, json_type_object) ||
	       json_object_is_type(v, json_type_array);
}

static bool
is_empty(struct json_object *v)
{
	return json_object_is_type(v, json_type_object)
		       ? json_object_object_length(v) == 0
		       : json_object_array_length(v) == 0;
}

static void
show_list(struct json_object *list, int depth)
{
	size_t n = json_object_array_length(list), i;
	struct json_object *v;

	for (i = 0; i < n; i++) {
		v = json_object_array_get_idx(list, i);
		if (is_inner(v)) {
			if (i > 0)
				(void)putchar('\n');
			show_any(v, depth);
			continue;
		}
		(void)printf("%*s", 2 * depth, "");
		show_value("", v);
		(void)putchar('\n');
	}
}

void
show_any(struct json_object *o, int depth)
{
	if (json_object_is_type(o, json_type_array)) {
		show_list(o, depth);
		return;
	}
	json_object_object_foreach(o, name, v)
	{
		(void)printf("%*s%s:", 2 * depth, "", name);
		if (is_inner(v) && is_empty(v)) {
			(void)puts(" none");
		} else if (is_inner(v)) {
			(void)putchar('\n');
			show_any(v, depth + 1);
		} else {
			(void)putchar(' ');
			show_value(name, v);
			(void)putchar('\n');
		}
	}
}

/* Tables ------------------------------------------------------------------- */

static struct json_object *
at(struct json_object *list, size_t i)
{
	return json_object_array_get_idx(list, i);
}

void
show_exports(struct json_object *list)
{
	size_t n = json_object_array_length(list), i, j;
	struct json_object *e, *clients;

	for (i = 0; i < n; i++) {
		e = at(list, i);
		(void)printf("%s on %s\n  clients:", get_text(e, "path"),
			     get_text(e, "device"));
		clients = get_part(e, "clients");
		for (j = 0; j < json_object_array_length(clients); j++)
			(void)printf(" %s(%s)",
				     get_text(at(clients, j), "client"),
				     get_text(at(clients, j), "access"));
		(void)printf("\n  modes:");
		json_object_object_foreach(get_part(e, "modes"), key, value)
		{
			(void)printf(" %s=%s", key,
				     json_object_get_string(value));
		}
		(void)printf("\n  id %s, verifier %s\n", get_text(e, "id"),
			     get_text(e, "verifier"));
		if (get_part(e, "set") != NULL)
			(void)printf("  set at run time: %s\n",
				     get_text(e, "set"));
	}
	if (n == 0)
		(void)puts("nothing is exported");
}

void
show_clients(struct json_object *list)
{
	char in[SHOW_BYTES], out[SHOW_BYTES], p50[SHOW_BYTES], p99[SHOW_BYTES],
		since[SHOW_BYTES];
	size_t n = json_object_array_length(list), i;
	struct json_object *c;

	(void)printf("%-28s %5s %10s %8s %11s %11s %9s %9s %9s\n", "CLIENT",
		     "CONNS", "CALLS", "FAILED", "WRITTEN", "READ", "P50",
		     "P99", "SINCE");
	for (i = 0; i < n; i++) {
		c = at(list, i);
		(void)printf(
			"%-28s %5" PRIu64 " %10" PRIu64 " %8" PRIu64
			" %11s %11s %9s %9s %9s\n",
			get_text(c, "client"), get_number(c, "connections"),
			get_number(c, "calls"), get_number(c, "failed"),
			show_size(in, (double)get_number(c, "bytes_in")),
			show_size(out, (double)get_number(c, "bytes_out")),
			show_time(p50, (double)get_number(c, "p50_ns")),
			show_time(p99, (double)get_number(c, "p99_ns")),
			show_time(since, (double)get_number(c, "since_ns")));
	}
}

static void
show_slow_one(struct json_object *c)
{
	char text[SHOW_BYTES];

	(void)printf("%s %s of %s in %s, %s ago",
		     show_time(text, (double)get_number(c, "ns")),
		     get_text(c, "procedure"), get_text(c, "client"),
		     get_text(c, "export"),
		     show_time((char[SHOW_BYTES]){ 0 },
			       (double)get_number(c, "ago_ns")));
	if (get_part(c, "bytes") != NULL)
		(void)printf(", %" PRIu64 " bytes at %" PRIu64,
			     get_number(c, "bytes"), get_number(c, "offset"));
	if (get_part(c, "stable") != NULL)
		(void)printf(", %s", get_text(c, "stable"));
	if (get_part(c, "split") != NULL)
		(void)printf(", %s", get_text(c, "split"));
	if (get_number(c, "status") != 0)
		(void)printf(", failed with %" PRIu64, get_number(c, "status"));
	(void)printf("\n   ");
	json_object_object_foreach(get_part(c, "stages_ns"), stage, ns)
	{
		(void)printf(" %s %s", stage,
			     show_time(text, json_object_get_double(ns)));
	}
	(void)putchar('\n');
}

void
show_slow(struct json_object *list)
{
	size_t n = json_object_array_length(list), i;

	for (i = 0; i < n; i++)
		show_slow_one(at(list, i));
	if (n == 0)
		(void)puts("no calls in the last minutes");
}

/* Locks -------------------------------------------------------------------- */

#define RANGE_BYTES 48

/* "0-99", "100-" to the end; of a SHARE what it denies. */
static const char *
lock_range(char out[RANGE_BYTES], struct json_object *c)
{
	uint64_t offset = get_number(c, "offset"),
		 length = get_number(c, "length");

	if (get_part(c, "kind") == NULL)
		(void)snprintf(out, RANGE_BYTES, "denies %s",
			       get_text(c, "denies"));
	else if (length == 0)
		(void)snprintf(out, RANGE_BYTES, "%" PRIu64 "-", offset);
	else
		(void)snprintf(out, RANGE_BYTES, "%" PRIu64 "-%" PRIu64, offset,
			       offset + length - 1);
	return out;
}

void
show_locks(struct json_object *o)
{
	struct json_object *list = get_part(o, "locks"), *c;
	size_t n = json_object_array_length(list), i;
	char range[RANGE_BYTES], age[SHOW_BYTES];

	if (get_flag(o, "grace"))
		(void)puts("grace period: only what was locked before the "
			   "restart may be locked");
	if (n == 0)
		(void)puts("nothing is locked");
	else
		(void)printf("%-20s %-16s %-9s %-10s %-21s %9s  %s\n", "CLIENT",
			     "NAME", "STATE", "KIND", "BYTES", "SINCE", "FILE");
	for (i = 0; i < n; i++) {
		c = at(list, i);
		(void)printf("%-20s %-16s %-9s %-10s %-21s %9s  %s%s\n",
			     get_text(c, "client"), get_text(c, "name"),
			     get_text(c, "state"),
			     get_text(c, get_part(c, "kind") != NULL
						 ? "kind"
						 : "access"),
			     lock_range(range, c),
			     show_time(age, (double)get_number(c, "age_ns")),
			     get_text(c, "export"), get_text(c, "path"));
	}
	if (get_number(o, "left_out") > 0)
		(void)printf("and %" PRIu64 " more\n",
			     get_number(o, "left_out"));
}

/* Stats -------------------------------------------------------------------- */

static void
show_latency(struct json_object *list)
{
	char mib[SHOW_BYTES], p50[SHOW_BYTES], p99[SHOW_BYTES],
		p999[SHOW_BYTES];
	size_t n = json_object_array_length(list), i;
	struct json_object *c;

	(void)printf("\n%-24s %-24s %-12s %10s %8s %11s %9s %9s %9s\n",
		     "CLIENT", "EXPORT", "PROCEDURE", "CALLS", "FAILED",
		     "BYTES", "P50", "P99", "P99.9");
	for (i = 0; i < n; i++) {
		c = at(list, i);
		(void)printf("%-24s %-24s %-12s %10" PRIu64 " %8" PRIu64
			     " %11s %9s %9s %9s\n",
			     get_text(c, "client"), get_text(c, "export"),
			     get_text(c, "procedure"), get_number(c, "calls"),
			     get_number(c, "failed"),
			     show_size(mib, (double)get_number(c, "bytes_in") +
						    (double)get_number(
							    c, "bytes_out")),
			     show_time(p50, (double)get_number(c, "p50_ns")),
			     show_time(p99, (double)get_number(c, "p99_ns")),
			     show_time(p999, (double)get_number(c, "p999_ns")));
	}
}

void
show_stats(struct json_object *o)
{
	uint64_t syncs = get_number(o, "syncs");
	struct json_object *latency = get_part(o, "latency");

	json_object_object_foreach(o, name, v)
	{
		if (v == latency || strcmp(name, "at_ns") == 0)
			continue;
		(void)printf("%-22s", name);
		if (v != NULL && is_inner(v)) {
			(void)putchar('\n');
			show_any(v, 1);
			continue;
		}
		(void)putchar(' ');
		show_value(name, v);
		(void)putchar('\n');
	}
	if (syncs > 0)
		(void)printf("%-22s %.2f\n", "requests per sync",
			     (double)get_number(o, "sync_requests") /
				     (double)syncs);
	show_latency(latency);
}
