/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Latency: every value lies in its bucket, buckets join without a gap,
 * quantiles are within a bucket of what sorting gives, sums and differences
 * keep all calls, and what no longer finds room is counted among the others.
 */
#include "nfsd/latency.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS 1000000ull

static uint64_t seed = 11;

static uint64_t
next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed >> 8;
}

static void
test_buckets(void **state)
{
	uint64_t first, last;
	unsigned i;

	assert_int_equal(latency_bucket(0), 0);
	assert_int_equal(latency_bucket_ns(0), 0);
	for (i = 0; i < LATENCY_BUCKETS; i++) {
		first = latency_bucket_ns(i);
		last = latency_bucket_ns(i + 1) - 1;
		assert_true(last > first);
		assert_int_equal(latency_bucket(first), i);
		assert_int_equal(latency_bucket(last), i);
		/* To one part in eight, above the smallest. */
		if (i >= 8)
			assert_true((last - first) * 8 <= first);
	}
	assert_int_equal(latency_bucket(UINT64_MAX), LATENCY_BUCKETS - 1);
	assert_true(latency_bucket_ns(LATENCY_BUCKETS - 1) > 60000 * MS);
}

static int
compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void
test_quantiles(void **state)
{
	static const unsigned q[] = { 1, 500, 900, 990, 999, 1000 };
	static uint64_t value[5000];
	struct latency_sum s = { 0 };
	unsigned i, n = sizeof(value) / sizeof(*value), exact, got;

	assert_int_equal(latency_quantile(&s, 500), 0);
	for (i = 0; i < n; i++) {
		value[i] = next_random() % (1ull << (10 + next_random() % 24));
		s.bucket[latency_bucket(value[i])]++;
		s.calls++;
	}
	qsort(value, n, sizeof(*value), compare);
	for (i = 0; i < sizeof(q) / sizeof(*q); i++) {
		exact = latency_bucket(value[(n * q[i] + 999) / 1000 - 1]);
		got = latency_bucket(latency_quantile(&s, q[i]));
		/* Its bucket's end is the next one's first value. */
		assert_true(got == exact || got == exact + 1);
	}
}

/* What a reader was told. */
struct told {
	struct latency_reader reader;
	struct latency_sum all; /* of every cell */
	struct latency_sum of;  /* of the one with that key */
	struct latency_key key;
	unsigned cells;
};

static void
tell(struct latency_reader *r, const struct latency_sum *s)
{
	struct told *t = (struct told *)r;

	t->cells++;
	latency_add(&t->all, s);
	if (memcmp(&s->key, &t->key, sizeof(s->key)) == 0)
		latency_add(&t->of, s);
}

static void
tell_again(struct latency_reader *r)
{
	struct told *t = (struct told *)r;

	t->cells = 0;
	memset(&t->all, 0, sizeof(t->all));
	memset(&t->of, 0, sizeof(t->of));
}

static struct told
read_all(struct latency *l, struct latency_key key)
{
	struct told t = { .reader = { tell, tell_again }, .key = key };

	latency_read(l, &t.reader);
	return t;
}

static void
note(struct latency *l, struct latency_key key, uint64_t ns, uint64_t now)
{
	struct latency_call c = { .key = key,
				  .ns = ns,
				  .bytes_in = 3,
				  .bytes_out = 5,
				  .failed = ns % 2 };

	latency_note(l, &c, now);
}

static void
test_cells(void **state)
{
	struct latency_key a = { .export_id = 7, .client = 1, .proc = 6 };
	struct latency_key b = { .export_id = 7, .client = 2, .proc = 6 };
	struct latency *l = latency_new();
	struct told t = read_all(l, a);

	assert_int_equal(t.cells, 0);
	note(l, a, 1000, 1);
	note(l, a, 3001, 2);
	note(l, b, 5000, 3);
	t = read_all(l, a);
	assert_int_equal(t.cells, 2);
	assert_int_equal(t.of.calls, 2);
	assert_int_equal(t.of.failed, 1);
	assert_int_equal(t.of.ns, 4001);
	assert_int_equal(t.of.bytes_in, 6);
	assert_int_equal(t.of.bytes_out, 10);
	assert_int_equal(t.of.bucket[latency_bucket(3001)], 1);
	assert_int_equal(t.all.calls, 3);
	latency_subtract(&t.all, &t.of);
	assert_int_equal(t.all.calls, 1);
	assert_int_equal(t.all.ns, 5000);
	assert_int_equal(t.all.bucket[latency_bucket(5000)], 1);
	latency_subtract(&t.all, &t.of); /* never below */
	assert_int_equal(t.all.ns, 999);
	assert_int_equal(t.all.bytes_in, 0);
	latency_free(l);
}

/* Clients without end: no call is lost, and the newest have their own. */
static void
test_room(void **state)
{
	const unsigned clients = 3 * LATENCY_CELLS;
	struct latency_key k = { .export_id = 9, .proc = 1 }, last;
	struct latency_key others = { .proc = 1 };
	struct latency *l = latency_new();
	struct told t;
	unsigned i;

	for (i = 1; i <= clients; i++) {
		k.client = i;
		note(l, k, 1000 + i, i * MS);
		note(l, k, 1000 + i, i * MS);
		last = (struct latency_key){ .export_id = 9,
					     .client = 1,
					     .proc = 1 };
		if (i % 100 == 0) /* one that comes back again and again */
			note(l, last, 1000, i * MS);
	}
	t = read_all(l, others);
	assert_int_equal(t.all.calls, 2 * clients + clients / 100);
	assert_int_equal(t.all.bytes_in, 3 * t.all.calls);
	assert_true(t.of.calls > clients);
	assert_true(t.cells <= LATENCY_CELLS);
	t = read_all(l, k);
	assert_int_equal(t.of.calls, 2);
	t = read_all(l, last);
	assert_true(t.of.calls >= clients / 100);
	latency_free(l);
}

/* All of one age: half of them goes. */
static void
test_one_age(void **state)
{
	struct latency_key k = { .export_id = 9, .proc = 2 };
	struct latency *l = latency_new();
	struct told t;

	for (k.client = 1; k.client <= 2 * LATENCY_CELLS; k.client++)
		note(l, k, 1000, 5);
	t = read_all(l, k);
	assert_int_equal(t.all.calls, 2 * LATENCY_CELLS);
	latency_free(l);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buckets),
		cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_cells),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_one_age),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
