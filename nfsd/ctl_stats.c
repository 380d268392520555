/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that show what was counted: stats, clients, slow, and reset-stats,
 * which notes where the others are to count from. The metrics and stats.json
 * know nothing of that: they count from the server's start. On the control
 * thread.
 */
#include "nfsd/ctl.h"

#include "nfsd/server.h"
#include "nfsd/slow.h"
#include "nfsd/snapshot.h"

#include <errno.h>
#include <stdlib.h>

/* Since the last reset-stats. NULL with *e. */
static struct snapshot *
snapshot_since(struct server *s, struct ctl_error *e)
{
	struct snapshot *now = snapshot_take(s);

	if (now == NULL)
		(void)ctl_fail(e, -ENOMEM, "no memory");
	else if (s->counted_from != NULL)
		snapshot_subtract(now, s->counted_from);
	return now;
}

static void
put_key(struct json_object *o, const struct snapshot *s,
	const struct latency_key *k)
{
	ctl_put_text(o, "client", snapshot_client(s, k->client));
	ctl_put_text(o, "export", snapshot_export(s, k->export_id));
	ctl_put_text(o, "procedure", snapshot_procedure(k->proc));
}

static void
put_sum(struct json_object *o, const struct latency_sum *s)
{
	ctl_put(o, "calls", s->calls);
	ctl_put(o, "failed", s->failed);
	ctl_put(o, "bytes_in", s->bytes_in);
	ctl_put(o, "bytes_out", s->bytes_out);
	ctl_put(o, "ns", s->ns);
	ctl_put(o, "p50_ns", latency_quantile(s, 500));
	ctl_put(o, "p99_ns", latency_quantile(s, 990));
	ctl_put(o, "p999_ns", latency_quantile(s, 999));
}

/* [bucket, calls] of those that have any. */
static struct json_object *
buckets_json(const struct latency_sum *s)
{
	struct json_object *list = json_object_new_array(), *pair;
	unsigned i;

	for (i = 0; i < LATENCY_BUCKETS; i++) {
		if (s->bucket[i] == 0)
			continue;
		pair = json_object_new_array();
		json_object_array_add(pair, json_object_new_int((int)i));
		json_object_array_add(pair,
				      json_object_new_uint64(s->bucket[i]));
		json_object_array_add(list, pair);
	}
	return list;
}

static struct json_object *
latency_json(struct snapshot *s, bool buckets)
{
	struct json_object *list = json_object_new_array(), *o;
	const struct latency_sum *c;

	for (c = snapshot_first(s); c != NULL; c = snapshot_next(c)) {
		o = json_object_new_object();
		put_key(o, s, &c->key);
		put_sum(o, c);
		if (buckets)
			json_object_object_add(o, "buckets", buckets_json(c));
		json_object_array_add(list, o);
	}
	return list;
}

int
ctl_stats(struct server *s, struct json_object *args, struct json_object **ret,
	  struct ctl_error *e)
{
	struct snapshot *now = snapshot_since(s, e);
	struct json_object *o;

	if (now == NULL)
		return e->error;
	o = json_object_get(now->counters);
	ctl_put(o, "at_ns", monotonic_ns());
	json_object_object_add(
		o, "latency", latency_json(now, ctl_arg_bool(args, "buckets")));
	snapshot_free(now);
	*ret = o;
	return 0;
}

int
ctl_reset_stats(struct server *s, struct json_object *args,
		struct json_object **ret, struct ctl_error *e)
{
	struct snapshot *now = snapshot_take(s);

	if (now == NULL)
		return ctl_fail(e, -ENOMEM, "no memory");
	/* Only its numbers are wanted: the table would keep what is withdrawn
	 * from being let go of. */
	export_table_put(now->exports);
	now->exports = NULL;
	ctl_forget(s);
	s->counted_from = now;
	return 0;
}

void
ctl_forget(struct server *s)
{
	snapshot_free(s->counted_from);
	s->counted_from = NULL;
}

/* Clients ------------------------------------------------------------------ */

static struct json_object *
client_json(struct snapshot *s, const struct client *c, uint64_t now_ns)
{
	struct json_object *o = json_object_new_object();
	const struct latency_sum *l;
	struct latency_sum sum = { 0 };

	for (l = snapshot_first(s); l != NULL; l = snapshot_next(l))
		if (l->key.client == c->number)
			latency_add(&sum, l);
	ctl_put_text(o, "client", c->address);
	ctl_put(o, "connections", c->connections);
	ctl_put(o, "connections_total", c->connections_total);
	ctl_put(o, "since_ns", now_ns - c->since_ns);
	put_sum(o, &sum);
	return o;
}

int
ctl_clients(struct server *s, struct json_object *args,
	    struct json_object **ret, struct ctl_error *e)
{
	struct snapshot *now = snapshot_since(s, e);
	uint64_t now_ns = monotonic_ns();
	struct json_object *list;
	unsigned i;

	if (now == NULL)
		return e->error;
	list = json_object_new_array();
	for (i = 0; i < now->clients; i++)
		json_object_array_add(
			list, client_json(now, &now->client[i], now_ns));
	snapshot_free(now);
	*ret = list;
	return 0;
}

/* Slow --------------------------------------------------------------------- */

static const char *
stable_name(int stable)
{
	static const char *const names[] = { "UNSTABLE", "DATA_SYNC",
					     "FILE_SYNC" };

	return stable >= 0 && stable <= IO_FILE_SYNC ? names[stable] : "-";
}

static struct json_object *
slow_json(const struct snapshot *s, const struct slow_call *c, uint64_t now_ns)
{
	struct json_object *o = json_object_new_object();
	struct json_object *stages = json_object_new_object();
	unsigned i;

	put_key(o, s, &c->key);
	ctl_put(o, "xid", c->xid);
	ctl_put(o, "status", (uint64_t)c->status);
	ctl_put(o, "ago_ns", now_ns > c->begin_ns ? now_ns - c->begin_ns : 0);
	ctl_put(o, "ns", c->ns);
	for (i = 0; i < SLOW_STAGES; i++)
		ctl_put(stages, slow_stage_name((enum slow_stage)i),
			c->stage_ns[i]);
	json_object_object_add(o, "stages_ns", stages);
	if (c->bytes > 0) {
		ctl_put(o, "offset", c->offset);
		ctl_put(o, "bytes", c->bytes);
	}
	if (c->stable >= 0)
		ctl_put_text(o, "stable", stable_name(c->stable));
	if (c->split >= 0)
		ctl_put_text(o, "split",
			     split_reason_name((enum split_reason)c->split));
	return o;
}

static int
compare_slow(const void *a, const void *b)
{
	uint64_t x = ((const struct slow_call *)a)->ns;
	uint64_t y = ((const struct slow_call *)b)->ns;

	return x > y ? -1 : x < y;
}

int
ctl_slow(struct server *s, struct json_object *args, struct json_object **ret,
	 struct ctl_error *e)
{
	unsigned room = s->shards * 2 * SLOW_CALLS, n = 0, i;
	struct slow_call *list = calloc(room, sizeof(*list));
	struct snapshot *names = snapshot_take(s);
	uint64_t now_ns = monotonic_ns();

	if (list == NULL || names == NULL) {
		free(list);
		snapshot_free(names);
		return ctl_fail(e, -ENOMEM, "no memory");
	}
	for (i = 0; i < s->shards; i++)
		n += slow_list(s->shard[i]->slow, now_ns, list + n, room - n);
	qsort(list, n, sizeof(*list), compare_slow);
	if (n > SLOW_CALLS)
		n = SLOW_CALLS;
	*ret = json_object_new_array();
	for (i = 0; i < n; i++)
		json_object_array_add(*ret, slow_json(names, &list[i], now_ns));
	free(list);
	snapshot_free(names);
	return 0;
}
