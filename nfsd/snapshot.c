/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot of what is counted. The object is struct snapshot, its caller's
 * and that thread's. The shards go on counting while it is taken: it is exact
 * for each counter and only nearly so among them.
 */
#include "nfsd/snapshot.h"

#include "nfsd/server.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#define EXPORT_WITHDRAWN UINT64_MAX

struct snapshot_cell {
	struct latency_sum sum; /* first; by its key */
	UT_hash_handle hh;
};

static_assert(sizeof(struct latency_key) == 16, "no padding: it is hashed");

/* Cells of all shards, before they are added up. */
struct collection {
	struct latency_reader reader;
	struct latency_sum *sum;
	unsigned count, room;
	unsigned shard; /* where those of the one that is read begin */
	bool failed;
};

static void
collect(struct latency_reader *r, const struct latency_sum *s)
{
	struct collection *c = container_of(r, struct collection, reader);
	struct latency_sum *grown;

	if (c->count == c->room) {
		unsigned room = c->room == 0 ? 64 : 2 * c->room;

		grown = reallocarray(c->sum, room, sizeof(*grown));
		if (grown == NULL) {
			c->failed = true;
			return;
		}
		c->sum = grown;
		c->room = room;
	}
	c->sum[c->count++] = *s;
}

static void
collect_again(struct latency_reader *r)
{
	struct collection *c = container_of(r, struct collection, reader);

	c->count = c->shard;
}

/* NOLINTBEGIN: uthash's macros */
static struct snapshot_cell *
cell_find(struct snapshot *s, const struct latency_key *k)
{
	struct snapshot_cell *c;

	HASH_FIND(hh, s->cells, k, sizeof(*k), c);
	return c;
}

static bool
cell_add(struct snapshot *s, const struct latency_sum *sum)
{
	struct snapshot_cell *c = malloc(sizeof(*c));

	if (c == NULL)
		return false;
	c->sum = *sum;
	HASH_ADD(hh, s->cells, sum.key, sizeof(c->sum.key), c);
	return true;
}

static void
cell_remove(struct snapshot *s, struct snapshot_cell *c)
{
	HASH_DEL(s->cells, c);
	free(c);
}

static int
compare_cells(const struct snapshot_cell *a, const struct snapshot_cell *b)
{
	const struct latency_key *x = &a->sum.key, *y = &b->sum.key;

	if (x->client != y->client)
		return x->client < y->client ? -1 : 1;
	if (x->export_id != y->export_id)
		return x->export_id < y->export_id ? -1 : 1;
	return (int)x->proc - (int)y->proc;
}

static void
cells_sort(struct snapshot *s)
{
	HASH_SORT(s->cells, compare_cells);
}
/* NOLINTEND */

static bool
merge(struct snapshot *s, const struct latency_sum *sum)
{
	struct snapshot_cell *c = cell_find(s, &sum->key);

	if (c == NULL)
		return cell_add(s, sum);
	latency_add(&c->sum, sum);
	return true;
}

static bool
is_client(const struct snapshot *s, uint32_t number)
{
	unsigned i;

	for (i = 0; i < s->clients; i++)
		if (s->client[i].number == number)
			return true;
	return false;
}

/* Who and what has no name any more counts with its like. */
static struct latency_key
named(const struct snapshot *s, struct latency_key k)
{
	if (!is_client(s, k.client))
		k.client = CLIENTS_OTHERS;
	if (k.export_id != 0 && export_find(s->exports, k.export_id) == NULL)
		k.export_id = EXPORT_WITHDRAWN;
	return k;
}

static bool
add_up(struct snapshot *s, struct collection *c)
{
	unsigned i;

	for (i = 0; i < c->count; i++) {
		c->sum[i].key = named(s, c->sum[i].key);
		if (!merge(s, &c->sum[i]))
			return false;
	}
	cells_sort(s);
	return true;
}

struct snapshot *
snapshot_take(struct server *srv)
{
	struct collection c = { .reader = { collect, collect_again } };
	struct snapshot *s = calloc(1, sizeof(*s));
	bool good;
	unsigned i;

	if (s == NULL)
		return NULL;
	for (i = 0; i < srv->shards; i++) {
		c.shard = c.count;
		latency_read(srv->shard[i]->latency, &c.reader);
	}
	/* After the cells, whose names it then has. */
	s->exports = server_exports_get(srv);
	s->clients = clients_list(srv->clients, s->client, CLIENTS_MAX);
	s->counters = stats_json(srv);
	good = !c.failed && add_up(s, &c);
	free(c.sum);
	if (good)
		return s;
	snapshot_free(s);
	return NULL;
}

void
snapshot_free(struct snapshot *s)
{
	if (s == NULL)
		return;
	while (s->cells != NULL)
		cell_remove(s, s->cells);
	export_table_put(s->exports);
	json_object_put(s->counters);
	free(s);
}

void
snapshot_subtract(struct snapshot *s, const struct snapshot *before)
{
	struct snapshot_cell *b, *c;

	for (b = before->cells; b != NULL; b = b->hh.next) {
		struct latency_key k = named(s, b->sum.key);

		c = cell_find(s, &k);
		if (c == NULL)
			continue;
		latency_subtract(&c->sum, &b->sum);
		if (c->sum.calls == 0)
			cell_remove(s, c);
	}
	stats_subtract(s->counters, before->counters);
}

const struct latency_sum *
snapshot_first(struct snapshot *s)
{
	return s->cells != NULL ? &s->cells->sum : NULL;
}

const struct latency_sum *
snapshot_next(const struct latency_sum *sum)
{
	const struct snapshot_cell *c =
		container_of(sum, const struct snapshot_cell, sum);

	c = c->hh.next;
	return c != NULL ? &c->sum : NULL;
}

/* Names -------------------------------------------------------------------- */

const char *
snapshot_client(const struct snapshot *s, uint32_t number)
{
	unsigned i;

	for (i = 0; i < s->clients; i++)
		if (s->client[i].number == number)
			return s->client[i].address;
	return "others";
}

const char *
snapshot_export(const struct snapshot *s, uint64_t id)
{
	const struct export *e;

	if (id == 0)
		return "-";
	e = id != EXPORT_WITHDRAWN ? export_find(s->exports, id) : NULL;
	return e != NULL ? e->path : "withdrawn";
}

const char *
snapshot_procedure(uint32_t proc)
{
	static const char *const other[] = {
		"MOUNT_NULL",      "MOUNT_MNT",      "MOUNT_DUMP",
		"MOUNT_UMNT",      "MOUNT_UMNTALL",  "MOUNT_EXPORT",
		"MOUNT_EXPORTALL", "MOUNT_PATHCONF", "ACL_NULL",
		"GETACL",          "SETACL",         "RQUOTA_NULL",
		"GETQUOTA",        "GETACTIVEQUOTA", "NLM_NULL",
		"NLM_TEST",        "NLM_LOCK",       "NLM_CANCEL",
		"NLM_UNLOCK",      "NLM_GRANTED",    "NLM_TEST_MSG",
		"NLM_LOCK_MSG",    "NLM_CANCEL_MSG", "NLM_UNLOCK_MSG",
		"NLM_GRANTED_MSG", "NLM_TEST_RES",   "NLM_LOCK_RES",
		"NLM_CANCEL_RES",  "NLM_UNLOCK_RES", "NLM_GRANTED_RES",
		"NLM_SM_NOTIFY",   "NLM_SHARE",      "NLM_UNSHARE",
		"NLM_NM_LOCK",     "NLM_FREE_ALL",
	};

	static_assert(sizeof(other) / sizeof(*other) ==
			      LATENCY_PROCS - LATENCY_MOUNT,
		      "all of MOUNT, NFSACL, RQUOTA and NLM");
	assert(proc < LATENCY_PROCS);
	return proc < LATENCY_MOUNT ? nfsd_row(PROGRAM_NFS3, proc)->name
				    : other[proc - LATENCY_MOUNT];
}
