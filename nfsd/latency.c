/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Latency by client, export and procedure. The object is struct latency: a
 * shard's, made and ended with it, written by its reactor only, read by any
 * thread without a lock: what one call changes are counters with one writer,
 * so a note costs a look-up and five plain stores. What moves cells (seldom:
 * only when there are more than LATENCY_CELLS) makes seq odd meanwhile, and a
 * reader then begins again.
 *
 * It knows no names, neither of clients nor of exports.
 */
#include "nfsd/latency.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define INDEX_BITS 11u
#define INDEX_SIZE (1u << INDEX_BITS)
#define INDEX_NONE 0u /* else a cell's number plus one */
#define OTHERS     0u

static_assert(INDEX_SIZE >= 2 * LATENCY_CELLS, "the index stays half empty");

struct cell {
	_Atomic uint64_t export_id;
	_Atomic uint32_t client;
	_Atomic uint32_t proc;
	uint64_t seen_ns; /* the writer's */
	_Atomic uint64_t failed, bytes_in, bytes_out, ns;
	_Atomic uint64_t bucket[LATENCY_BUCKETS];
};

struct latency {
	struct cell *cell; /* LATENCY_CELLS of them, the first for OTHERS */
	_Atomic unsigned cells;
	_Atomic unsigned seq; /* odd: cells are moving */
	uint16_t index[INDEX_SIZE];
};

static uint64_t
load(const _Atomic uint64_t *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

/* One writer: no locked instruction. */
static void
bump(_Atomic uint64_t *c, uint64_t n)
{
	atomic_store_explicit(c, load(c) + n, memory_order_relaxed);
}

/* Buckets ------------------------------------------------------------------ */

unsigned
latency_bucket(uint64_t ns)
{
	uint64_t v = ns >> LATENCY_UNIT_SHIFT;
	unsigned e;

	if (v < 1u << LATENCY_SUB_BITS)
		return (unsigned)v;
	e = 63 - (unsigned)__builtin_clzll(v);
	if (e >= LATENCY_OCTAVES)
		return LATENCY_BUCKETS - 1;
	return ((e - LATENCY_SUB_BITS + 1) << LATENCY_SUB_BITS) |
	       ((unsigned)(v >> (e - LATENCY_SUB_BITS)) &
		((1u << LATENCY_SUB_BITS) - 1));
}

uint64_t
latency_bucket_ns(unsigned bucket)
{
	const unsigned subs = 1u << LATENCY_SUB_BITS;
	uint64_t v = bucket;

	assert(bucket <= LATENCY_BUCKETS);
	if (bucket >= subs)
		v = (uint64_t)(subs + bucket % subs) << (bucket / subs - 1);
	return v << LATENCY_UNIT_SHIFT;
}

/* Cells -------------------------------------------------------------------- */

static bool
is_for(const struct cell *c, const struct latency_key *k)
{
	return load(&c->export_id) == k->export_id &&
	       atomic_load_explicit(&c->client, memory_order_relaxed) ==
		       k->client &&
	       atomic_load_explicit(&c->proc, memory_order_relaxed) == k->proc;
}

static struct latency_key
key_of(const struct cell *c)
{
	return (struct latency_key){
		load(&c->export_id),
		atomic_load_explicit(&c->client, memory_order_relaxed),
		atomic_load_explicit(&c->proc, memory_order_relaxed),
	};
}

static void
set_key(struct cell *c, const struct latency_key *k)
{
	atomic_store_explicit(&c->export_id, k->export_id,
			      memory_order_relaxed);
	atomic_store_explicit(&c->client, k->client, memory_order_relaxed);
	atomic_store_explicit(&c->proc, k->proc, memory_order_relaxed);
}

/* Where k is in the index, or the place where it is to go. */
static uint16_t *
find(struct latency *l, const struct latency_key *k)
{
	uint64_t h = (k->export_id ^ ((uint64_t)k->client << 8) ^ k->proc) *
		     0x9e3779b97f4a7c15ull;
	unsigned at = (unsigned)(h >> (64 - INDEX_BITS));

	while (l->index[at] != INDEX_NONE &&
	       !is_for(&l->cell[l->index[at] - 1], k))
		at = (at + 1) % INDEX_SIZE;
	return &l->index[at];
}

static struct cell *
append(struct latency *l, const struct latency_key *k)
{
	unsigned n = atomic_load_explicit(&l->cells, memory_order_relaxed);
	struct cell *c = &l->cell[n];

	assert(n < LATENCY_CELLS);
	set_key(c, k);
	*find(l, k) = (uint16_t)(n + 1);
	/* After the key, which a reader then sees. */
	atomic_store_explicit(&l->cells, n + 1, memory_order_release);
	return c;
}

/* Making room -------------------------------------------------------------- */

static void
move(struct cell *to, struct cell *from)
{
	unsigned i;

	bump(&to->failed, load(&from->failed));
	bump(&to->bytes_in, load(&from->bytes_in));
	bump(&to->bytes_out, load(&from->bytes_out));
	bump(&to->ns, load(&from->ns));
	for (i = 0; i < LATENCY_BUCKETS; i++)
		bump(&to->bucket[i], load(&from->bucket[i]));
	if (from->seen_ns > to->seen_ns)
		to->seen_ns = from->seen_ns;
}

static void
clear(struct cell *c)
{
	unsigned i;

	for (i = 0; i < LATENCY_BUCKETS; i++)
		atomic_store_explicit(&c->bucket[i], 0, memory_order_relaxed);
	atomic_store_explicit(&c->failed, 0, memory_order_relaxed);
	atomic_store_explicit(&c->bytes_in, 0, memory_order_relaxed);
	atomic_store_explicit(&c->bytes_out, 0, memory_order_relaxed);
	atomic_store_explicit(&c->ns, 0, memory_order_relaxed);
	c->seen_ns = 0;
}

/* The cells in use and their index, from those that are left. */
static void
pack(struct latency *l, const bool *gone)
{
	unsigned n = atomic_load(&l->cells), to = 0, i;
	struct latency_key k;

	memset(l->index, 0, sizeof(l->index));
	for (i = 0; i < n; i++) {
		if (gone[i])
			continue;
		k = key_of(&l->cell[i]);
		if (to != i) {
			clear(&l->cell[to]);
			set_key(&l->cell[to], &k);
			move(&l->cell[to], &l->cell[i]);
		}
		to++;
		*find(l, &k) = (uint16_t)to;
	}
	for (i = to; i < n; i++)
		clear(&l->cell[i]);
	atomic_store(&l->cells, to);
}

/* The older half of the cells, by when they were last seen, goes to the
 * others' cell of its procedure. Those cells, which come first, stay. */
static void
make_room(struct latency *l, uint64_t now_ns)
{
	bool gone[LATENCY_CELLS] = { false };
	uint64_t oldest = now_ns, limit;
	unsigned i, freed = 0;

	for (i = LATENCY_PROCS; i < LATENCY_CELLS; i++)
		if (l->cell[i].seen_ns < oldest)
			oldest = l->cell[i].seen_ns;
	limit = oldest + (now_ns - oldest) / 2;
	atomic_fetch_add(&l->seq, 1);
	for (i = LATENCY_PROCS; i < LATENCY_CELLS; i++) {
		/* When all are of one age, every second. */
		if (l->cell[i].seen_ns > limit || (oldest == limit && i % 2))
			continue;
		move(&l->cell[key_of(&l->cell[i]).proc], &l->cell[i]);
		gone[i] = true;
		freed++;
	}
	assert(freed > 0);
	pack(l, gone);
	atomic_fetch_add(&l->seq, 1);
}

/* Noting ------------------------------------------------------------------- */

void
latency_note(struct latency *l, const struct latency_call *call,
	     uint64_t now_ns)
{
	uint16_t *at = find(l, &call->key);
	struct cell *c;

	assert(call->key.proc < LATENCY_PROCS);
	if (*at != INDEX_NONE) {
		c = &l->cell[*at - 1];
	} else {
		if (atomic_load(&l->cells) == LATENCY_CELLS)
			make_room(l, now_ns);
		c = append(l, &call->key);
	}
	c->seen_ns = now_ns;
	bump(&c->bucket[latency_bucket(call->ns)], 1);
	bump(&c->ns, call->ns);
	if (call->failed)
		bump(&c->failed, 1);
	if (call->bytes_in > 0)
		bump(&c->bytes_in, call->bytes_in);
	if (call->bytes_out > 0)
		bump(&c->bytes_out, call->bytes_out);
}

/* Reading ------------------------------------------------------------------ */

static void
read_cell(struct cell *c, struct latency_sum *s)
{
	unsigned i;

	s->key = key_of(c);
	s->failed = load(&c->failed);
	s->bytes_in = load(&c->bytes_in);
	s->bytes_out = load(&c->bytes_out);
	s->ns = load(&c->ns);
	s->calls = 0;
	for (i = 0; i < LATENCY_BUCKETS; i++) {
		s->bucket[i] = load(&c->bucket[i]);
		s->calls += s->bucket[i];
	}
}

void
latency_read(struct latency *l, struct latency_reader *r)
{
	struct latency_sum s;
	unsigned before, n, i;

	for (;;) {
		before = atomic_load(&l->seq);
		n = atomic_load_explicit(&l->cells, memory_order_acquire);
		for (i = 0; i < n; i++) {
			read_cell(&l->cell[i], &s);
			if (s.calls > 0)
				r->each(r, &s);
		}
		atomic_thread_fence(memory_order_acquire);
		if (before % 2 == 0 && atomic_load(&l->seq) == before)
			return;
		r->again(r);
	}
}

/* Sums --------------------------------------------------------------------- */

void
latency_add(struct latency_sum *to, const struct latency_sum *s)
{
	unsigned i;

	to->calls += s->calls;
	to->failed += s->failed;
	to->bytes_in += s->bytes_in;
	to->bytes_out += s->bytes_out;
	to->ns += s->ns;
	for (i = 0; i < LATENCY_BUCKETS; i++)
		to->bucket[i] += s->bucket[i];
}

static void
less(uint64_t *n, uint64_t by)
{
	*n -= by < *n ? by : *n;
}

void
latency_subtract(struct latency_sum *to, const struct latency_sum *before)
{
	unsigned i;

	less(&to->failed, before->failed);
	less(&to->bytes_in, before->bytes_in);
	less(&to->bytes_out, before->bytes_out);
	less(&to->ns, before->ns);
	to->calls = 0;
	for (i = 0; i < LATENCY_BUCKETS; i++) {
		less(&to->bucket[i], before->bucket[i]);
		to->calls += to->bucket[i];
	}
}

uint64_t
latency_quantile(const struct latency_sum *s, unsigned q)
{
	uint64_t want, seen = 0, from, to;
	unsigned i;

	if (s->calls == 0)
		return 0;
	/* The want-th call in order of time, counted from 1. */
	want = (s->calls * q + 999) / 1000;
	if (want == 0)
		want = 1;
	for (i = 0; i < LATENCY_BUCKETS - 1; i++) {
		if (seen + s->bucket[i] >= want)
			break;
		seen += s->bucket[i];
	}
	if (s->bucket[i] == 0)
		return latency_bucket_ns(i);
	from = latency_bucket_ns(i);
	to = latency_bucket_ns(i + 1);
	return from + (to - from) * (want - seen) / s->bucket[i];
}

/* Life --------------------------------------------------------------------- */

struct latency *
latency_new(void)
{
	struct latency *l = calloc(1, sizeof(*l));
	struct latency_key k = { 0 };

	if (l == NULL)
		return NULL;
	/* Touched only as far as it is used. */
	l->cell = mmap(NULL, LATENCY_CELLS * sizeof(*l->cell),
		       PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	if (l->cell == MAP_FAILED) {
		free(l);
		return NULL;
	}
	for (k.proc = 0; k.proc < LATENCY_PROCS; k.proc++)
		(void)append(l, &k);
	return l;
}

void
latency_free(struct latency *l)
{
	if (l == NULL)
		return;
	munmap(l->cell, LATENCY_CELLS * sizeof(*l->cell));
	free(l);
}
