/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The duplicate request cache: every verdict, what counts as the same call,
 * waiters, bounds, eviction, and all of it from many threads at once.
 */
#include "rpc/rpc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define REPLY_BYTES_MAX 64u

static struct drc_key
key_of(uint32_t xid)
{
	struct drc_key k = { .xid = xid,
			     .prog = 100003,
			     .vers = 3,
			     .proc = 8,
			     .checksum = 0x0123456789abcdefu };
	struct sockaddr_in *v4 = (void *)&k.addr;

	v4->sin_family = AF_INET;
	v4->sin_port = htons(700);
	inet_pton(AF_INET, "192.0.2.1", &v4->sin_addr);
	return k;
}

/* drc_begin() and all that it may give. */
struct begun {
	enum drc_verdict v;
	struct drc_entry *e;
	uint8_t reply[REPLY_BYTES_MAX];
	uint32_t reply_bytes;
	void *replaced;
};

static struct begun
begin_key(struct drc *d, const struct drc_key *k, void *waiter)
{
	struct begun b = { .reply_bytes = ~0u, .replaced = &b };

	b.v = drc_begin(d, k, waiter, &b.e, b.reply, &b.reply_bytes,
			&b.replaced);
	return b;
}

static struct begun
begin(struct drc *d, uint32_t xid, void *waiter)
{
	struct drc_key k = key_of(xid);

	return begin_key(d, &k, waiter);
}

/* Begin and finish a call with a reply of n bytes made of its xid. */
static void
run(struct drc *d, uint32_t xid, uint32_t n)
{
	uint8_t reply[2 * REPLY_BYTES_MAX];
	struct begun b = begin(d, xid, d);

	assert_int_equal(b.v, DRC_NEW);
	memset(reply, (int)xid, sizeof(reply));
	assert_null(drc_done(d, b.e, reply, n));
}

static void
assert_replay(struct drc *d, uint32_t xid, uint32_t n)
{
	uint8_t reply[REPLY_BYTES_MAX];
	struct begun b = begin(d, xid, d);

	memset(reply, (int)xid, sizeof(reply));
	assert_int_equal(b.v, DRC_REPLAY);
	assert_int_equal(b.reply_bytes, n);
	assert_memory_equal(b.reply, reply, n);
}

/* End a call with a reply that is too large to keep. The waiter, or NULL. */
static void *
end_unkept(struct drc *d, struct drc_entry *e)
{
	static const uint8_t large[REPLY_BYTES_MAX + 1];

	return drc_done(d, e, large, sizeof(large));
}

/* It would run again; undone. */
static void
assert_unknown(struct drc *d, uint32_t xid)
{
	struct begun b = begin(d, xid, d);

	assert_int_equal(b.v, DRC_NEW);
	assert_null(end_unkept(d, b.e));
}

static struct drc *
make(uint32_t entries_max, size_t bytes_max)
{
	struct drc *d;

	assert_int_equal(drc_new(&d, entries_max, bytes_max, REPLY_BYTES_MAX),
			 0);
	return d;
}

static struct drc_counters
stats(struct drc *d)
{
	struct drc_counters c;

	drc_stats(d, &c);
	return c;
}

static void
new_then_replay(void **state)
{
	struct drc *d = make(8, 1024);

	run(d, 1, 40);
	run(d, 2, REPLY_BYTES_MAX);
	run(d, 3, 0);
	assert_replay(d, 1, 40);
	assert_replay(d, 1, 40);
	assert_replay(d, 2, REPLY_BYTES_MAX);
	assert_replay(d, 3, 0);
	assert_int_equal(stats(d).misses, 3);
	assert_int_equal(stats(d).hits, 4);
	assert_int_equal(stats(d).entries, 3);
	assert_int_equal(stats(d).bytes, 40 + REPLY_BYTES_MAX);
	assert_int_equal(stats(d).evicted, 0);
	drc_free(d);
	drc_free(NULL);
}

static void
attach_and_replace(void **state)
{
	struct drc *d = make(8, 1024);
	uint8_t reply[4] = "abc";
	int first, second, third;
	struct begun b = begin(d, 1, &first), again;

	assert_int_equal(b.v, DRC_NEW);
	again = begin(d, 1, &second);
	assert_int_equal(again.v, DRC_ATTACHED);
	assert_null(again.replaced);
	again = begin(d, 1, &third);
	assert_int_equal(again.v, DRC_ATTACHED);
	assert_ptr_equal(again.replaced, &second);
	assert_int_equal(stats(d).attached, 2);
	assert_int_equal(stats(d).entries, 1);
	assert_ptr_equal(drc_done(d, b.e, reply, 4), &third);
	again = begin(d, 1, &first);
	assert_int_equal(again.v, DRC_REPLAY);
	assert_memory_equal(again.reply, reply, 4);
	/* The waiter was given once; it is nobody's now. */
	assert_false(drc_detach(d, &third));
	drc_free(d);
}

static void
unkept_is_forgotten(void **state)
{
	struct drc *d = make(8, 1024);
	struct begun b = begin(d, 1, d), again;
	int waiter;

	assert_null(end_unkept(d, b.e));
	assert_int_equal(stats(d).entries, 0);
	b = begin(d, 1, d);
	assert_int_equal(b.v, DRC_NEW);
	again = begin(d, 1, &waiter);
	assert_int_equal(again.v, DRC_ATTACHED);
	assert_ptr_equal(end_unkept(d, b.e), &waiter);
	assert_false(drc_detach(d, &waiter));
	assert_unknown(d, 1);
	drc_free(d);
}

static void
detach(void **state)
{
	struct drc *d = make(8, 1024);
	struct begun one = begin(d, 1, d), two = begin(d, 2, d), again;
	int first, second, stranger;

	again = begin(d, 1, &first);
	assert_int_equal(again.v, DRC_ATTACHED);
	again = begin(d, 2, &second);
	assert_int_equal(again.v, DRC_ATTACHED);
	assert_false(drc_detach(d, &stranger));
	assert_true(drc_detach(d, &first));
	assert_false(drc_detach(d, &first));
	/* Whoever comes next replaces nobody. */
	again = begin(d, 1, &stranger);
	assert_int_equal(again.v, DRC_ATTACHED);
	assert_null(again.replaced);
	assert_true(drc_detach(d, &stranger));
	assert_null(drc_done(d, one.e, one.reply, 1));
	assert_ptr_equal(drc_done(d, two.e, two.reply, 1), &second);
	drc_free(d);
}

/* Each part of the key tells calls apart; the port does not. */
static void
keys(void **state)
{
	struct drc *d = make(32, 1024);
	struct drc_key k[9];
	struct begun b;
	unsigned i;

	for (i = 0; i < 9; i++)
		k[i] = key_of(1);
	k[1].xid++;
	k[2].prog++;
	k[3].vers++;
	k[4].proc++;
	k[5].checksum++;
	inet_pton(AF_INET, "192.0.2.2",
		  &((struct sockaddr_in *)&k[6].addr)->sin_addr);
	k[7].addr.ss_family = AF_INET6;
	memset((uint8_t *)&k[7].addr + 2, 0, sizeof(k[7].addr) - 2);
	k[8] = k[7];
	((struct sockaddr_in6 *)&k[8].addr)->sin6_addr.s6_addr[15] = 1;
	for (i = 0; i < 9; i++) {
		b = begin_key(d, &k[i], d);
		assert_int_equal(b.v, DRC_NEW);
		assert_null(drc_done(d, b.e, (uint8_t *)&i, sizeof(i)));
	}
	for (i = 0; i < 9; i++) {
		/* sin_port and sin6_port lie at the same place. */
		((struct sockaddr_in *)&k[i].addr)->sin_port ^= htons(12345);
		b = begin_key(d, &k[i], d);
		assert_int_equal(b.v, DRC_REPLAY);
		assert_memory_equal(b.reply, &i, sizeof(i));
	}
	drc_free(d);
}

/* Two links may have the same link-local address: the scope is told apart, the
 * flow label and the port are not. */
static void
key_ipv6(void **state)
{
	struct drc *d = make(32, 1024);
	struct drc_key k = key_of(1);
	struct sockaddr_in6 *v6 = (void *)&k.addr;
	struct begun b;

	memset(&k.addr, 0, sizeof(k.addr));
	v6->sin6_family = AF_INET6;
	inet_pton(AF_INET6, "fe80::1", &v6->sin6_addr);
	v6->sin6_scope_id = 1;
	b = begin_key(d, &k, d);
	assert_int_equal(b.v, DRC_NEW);
	assert_null(drc_done(d, b.e, b.reply, 1));
	v6->sin6_flowinfo = 5;
	v6->sin6_port = 5;
	b = begin_key(d, &k, d);
	assert_int_equal(b.v, DRC_REPLAY);
	v6->sin6_scope_id = 2;
	b = begin_key(d, &k, d);
	assert_int_equal(b.v, DRC_NEW);
	assert_null(end_unkept(d, b.e));
	drc_free(d);
}

static void
checksum(void **state)
{
	struct drc *d = make(1, 1), *other = make(1, 1);
	uint8_t record[300] = { 0 };
	uint64_t sum = drc_checksum(d, record, 300);
	unsigned i;

	assert_true(drc_checksum(d, record, 256) == sum);
	assert_true(drc_checksum(d, record, 255) != sum);
	assert_true(drc_checksum(other, record, 300) != sum);
	for (i = 0; i < 300; i++) {
		record[i] ^= 1;
		assert_int_equal(drc_checksum(d, record, 300) == sum, i >= 256);
		record[i] ^= 1;
	}
	drc_free(d);
	drc_free(other);
}

/* The least recently used goes first, and a replay is a use. */
static void
evict_by_entries(void **state)
{
	struct drc *d = make(4, 1024);
	uint32_t xid;

	for (xid = 1; xid <= 4; xid++)
		run(d, xid, 8);
	assert_replay(d, 1, 8);
	run(d, 5, 8); /* in 2's place */
	assert_int_equal(stats(d).evicted, 1);
	assert_int_equal(stats(d).entries, 4);
	assert_replay(d, 1, 8);
	assert_replay(d, 3, 8);
	assert_replay(d, 4, 8);
	assert_replay(d, 5, 8);
	assert_unknown(d, 2); /* in 1's place */
	assert_int_equal(stats(d).evicted, 2);
	drc_free(d);
}

static void
evict_by_bytes(void **state)
{
	struct drc *d = make(100, 100);
	uint32_t xid;

	for (xid = 1; xid <= 5; xid++)
		run(d, xid, 20);
	assert_int_equal(stats(d).bytes, 100);
	run(d, 6, 21); /* 1 and 2 make room */
	assert_int_equal(stats(d).bytes, 81);
	assert_int_equal(stats(d).evicted, 2);
	assert_int_equal(stats(d).entries, 4);
	assert_replay(d, 3, 20);
	assert_unknown(d, 1);
	assert_unknown(d, 2);
	drc_free(d);
}

static void
too_large_to_keep(void **state)
{
	struct drc *d = make(8, 1024);

	run(d, 1, REPLY_BYTES_MAX + 1);
	assert_int_equal(stats(d).entries, 0);
	assert_unknown(d, 1);
	drc_free(d);
	/* Larger than all replies together may be: nothing is thrown away. */
	d = make(8, 10);
	run(d, 1, 10);
	run(d, 2, 11);
	assert_unknown(d, 2);
	assert_replay(d, 1, 10);
	drc_free(d);
}

/* What is in service stays, and when all is, a call runs uncached. */
static void
full(void **state)
{
	struct drc *d = make(3, 1024);
	struct begun b[3], more;
	uint32_t xid;

	run(d, 99, 4);
	for (xid = 0; xid < 3; xid++) {
		b[xid] = begin(d, xid, d);
		assert_int_equal(b[xid].v, DRC_NEW);
	}
	assert_int_equal(stats(d).evicted, 1); /* the finished one */
	more = begin(d, 3, d);
	assert_int_equal(more.v, DRC_FULL);
	assert_int_equal(stats(d).full, 1);
	more = begin(d, 2, &more);
	assert_int_equal(more.v, DRC_ATTACHED); /* needs no entry */
	assert_true(drc_detach(d, &more));
	assert_null(end_unkept(d, b[1].e));
	run(d, 3, 4);
	run(d, 4, 4); /* in 3's place: nothing else is finished */
	assert_unknown(d, 3);
	assert_null(drc_done(d, b[0].e, b[0].reply, 1));
	assert_null(drc_done(d, b[2].e, b[2].reply, 1));
	assert_int_equal(begin(d, 0, d).v, DRC_REPLAY);
	assert_int_equal(begin(d, 2, d).v, DRC_REPLAY);
	drc_free(d);
}

/*
 * Threads: each runs and retries calls out of a small common set. The reply of
 * a call is made of its xid, so any mix-up shows. runs[] counts who is in
 * service: never two of one key at a time.
 */
#define THREADS      4
#define THREAD_CALLS 30000u
#define THREAD_XIDS  24u

struct shared {
	struct drc *drc;
	_Atomic unsigned runs[THREAD_XIDS];
	_Atomic uint64_t given, attached, replaced, detached, wrong;
};

struct waiter {
	uint32_t xid;
	_Atomic bool busy;
};

static void
give(struct shared *s, struct waiter *w, uint32_t xid)
{
	if (w == NULL)
		return;
	if (w->xid != xid)
		s->wrong++;
	s->given++;
	w->busy = false;
}

static void
finish(struct shared *s, struct drc_entry *e, uint32_t xid, unsigned how)
{
	uint8_t reply[REPLY_BYTES_MAX];

	memset(reply, (int)xid, sizeof(reply));
	if (--s->runs[xid] != 0)
		s->wrong++;
	if (how % 8 == 0)
		give(s, end_unkept(s->drc, e), xid);
	else
		give(s, drc_done(s->drc, e, reply, 1 + xid), xid);
}

static void
check_reply(struct shared *s, const struct begun *b, uint32_t xid)
{
	uint32_t i;

	if (b->reply_bytes != 1 + xid) {
		s->wrong++;
		return;
	}
	for (i = 0; i < b->reply_bytes; i++) {
		if (b->reply[i] != xid)
			s->wrong++;
	}
}

static void
one_call(struct shared *s, struct waiter *w, uint32_t xid, unsigned dice)
{
	struct begun b;

	w->xid = xid;
	w->busy = true;
	b = begin(s->drc, xid, w);
	if (b.v == DRC_ATTACHED) {
		s->attached++;
		if (b.replaced != NULL) {
			s->replaced++;
			((struct waiter *)b.replaced)->busy = false;
		}
		/* Either it is ours again or somebody has it. */
		if (dice % 3 == 0 && drc_detach(s->drc, w)) {
			s->detached++;
			w->busy = false;
		}
		while (w->busy)
			sched_yield();
		return;
	}
	if (b.v == DRC_NEW) {
		if (s->runs[xid]++ != 0)
			s->wrong++;
		if (dice % 5 == 0)
			sched_yield();
		finish(s, b.e, xid, dice);
	} else if (b.v == DRC_REPLAY) {
		check_reply(s, &b, xid);
	}
}

static void *
caller(void *arg)
{
	struct shared *s = arg;
	struct waiter w = { .xid = 0 };
	unsigned seed = (unsigned)(uintptr_t)&w;
	unsigned i;

	for (i = 0; i < THREAD_CALLS; i++) {
		unsigned dice = (unsigned)rand_r(&seed);

		one_call(s, &w, dice / 64 % THREAD_XIDS, dice);
	}
	return NULL;
}

static void
threads(void **state)
{
	struct shared s = { .drc = make(16, 200) };
	pthread_t thread[THREADS];
	struct drc_counters c;
	unsigned i;

	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, caller, &s),
				 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	c = stats(s.drc);
	assert_int_equal(s.wrong, 0);
	assert_int_equal(c.hits + c.attached + c.misses + c.full,
			 THREADS * THREAD_CALLS);
	assert_int_equal(c.attached, s.attached);
	assert_int_equal(s.attached, s.given + s.replaced + s.detached);
	assert_true(c.entries <= 16);
	assert_true(c.bytes <= 200);
	assert_true(c.hits > 0 && c.evicted > 0);
	drc_free(s.drc);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_then_replay),
		cmocka_unit_test(attach_and_replace),
		cmocka_unit_test(unkept_is_forgotten),
		cmocka_unit_test(detach),
		cmocka_unit_test(keys),
		cmocka_unit_test(key_ipv6),
		cmocka_unit_test(checksum),
		cmocka_unit_test(evict_by_entries),
		cmocka_unit_test(evict_by_bytes),
		cmocka_unit_test(too_large_to_keep),
		cmocka_unit_test(full),
		cmocka_unit_test(threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
