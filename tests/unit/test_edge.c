/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edges: when is a page complete, what is taken, what stays. The model keeps a
 * byte map: a page may go out only when each of its bytes was noted, every
 * page whose bytes were noted must have gone out by the next take, and with
 * wholes of some pages a folio that straddles must lie in one taken range.
 */
#include "io/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define P     4096u
#define PAGES 512u

static uint64_t seed = 7;

static uint64_t
next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed >> 8;
}

static void
two_halves(void **state)
{
	struct edge_table t;

	(void)state;
	edge_init(&t, P);
	assert_true(edge_add(&t, 3 * P + 1000, 4 * P, true));
	edge_take(&t, EDGE_TAKE_SYNC);
	assert_int_equal(t.outs, 0);
	assert_int_equal(t.spans, 1);
	assert_true(edge_add(&t, 3 * P, 3 * P + 1000, true));
	assert_int_equal(t.spans, 1);
	edge_take(&t, EDGE_TAKE_SYNC);
	assert_int_equal(t.outs, 1);
	assert_int_equal(t.out[0].start, 3 * P);
	assert_int_equal(t.out[0].end, 4 * P);
	assert_int_equal(t.spans, 0);
	assert_int_equal(t.pages, 0);
	edge_put_out(&t);
	edge_take(&t, EDGE_TAKE_SYNC);
	assert_int_equal(t.outs, 0);
	edge_fini(&t);
}

static void
pages_in(void **state)
{
	struct edge_table t;

	(void)state;
	edge_init(&t, P);
	assert_int_equal(edge_pages_in(&t, 0, 100 * P), 0);
	assert_true(edge_add(&t, 3 * P + 1000, 6 * P + 1, true));
	assert_true(edge_add(&t, 10 * P - 1, 10 * P, true));
	assert_int_equal(edge_pages_in(&t, 0, 100 * P), 5);
	assert_int_equal(edge_pages_in(&t, 0, 3 * P), 0);
	assert_int_equal(edge_pages_in(&t, 3 * P, 4 * P), 1);
	assert_int_equal(edge_pages_in(&t, 5 * P, 9 * P), 2);
	assert_int_equal(edge_pages_in(&t, 7 * P, 9 * P), 0);
	assert_int_equal(edge_pages_in(&t, 10 * P, 11 * P), 0);
	/* What is being dropped is still ours. */
	edge_take(&t, EDGE_TAKE_ALL);
	assert_int_equal(t.spans, 0);
	assert_int_equal(edge_pages_in(&t, 0, 100 * P), 5);
	edge_put_out(&t);
	assert_int_equal(edge_pages_in(&t, 0, 100 * P), 0);
	edge_fini(&t);
}

static void
neighbours_are_one_drop(void **state)
{
	struct edge_table t;

	(void)state;
	edge_init(&t, P);
	edge_add(&t, 0, P, true);
	edge_add(&t, 2 * P, 3 * P, true);
	edge_add(&t, P, 2 * P, true);
	edge_add(&t, 9 * P, 10 * P, true);
	edge_take(&t, EDGE_TAKE_SYNC);
	assert_int_equal(t.outs, 2);
	assert_int_equal(t.out[0].end, 3 * P);
	edge_put_out(&t);
	edge_fini(&t);
}

static void
forgotten(void **state)
{
	struct edge_table t;

	(void)state;
	edge_init(&t, P);
	edge_add(&t, 0, 100, true);
	edge_forget(&t);
	edge_add(&t, 100, P, true);
	edge_take(&t, EDGE_TAKE_SYNC);
	assert_int_equal(t.outs, 0); /* the first half does not count */
	edge_put_out(&t);
	edge_take(&t, EDGE_TAKE_ALL);
	assert_int_equal(t.outs, 1);
	assert_int_equal(t.out[0].start, 0);
	assert_int_equal(t.out[0].end, P);
	assert_int_equal(t.spans, 0);
	edge_put_out(&t);
	edge_fini(&t);
}

/* A write of 8192 bytes at 5 P - 100 - 8192 + P makes a folio of two pages at
 * 2 P that ends in a half page; completing that page must take both. */
static void
folio_of_two_pages(void **state)
{
	struct edge_table t;

	(void)state;
	edge_init(&t, P);
	edge_add(&t, 2 * P, 4 * P - 100, true); /* 8092 bytes: order 0 */
	assert_int_equal(t.fold, P);
	edge_add(&t, 20 * P, 22 * P,
		 true); /* 8192 bytes: folios of two pages */
	assert_int_equal(t.fold, 2 * P);
	edge_take(&t, EDGE_TAKE_SYNC);
	assert_int_equal(t.outs, 2);
	assert_int_equal(t.out[0].end, 3 * P);
	edge_put_out(&t);
	assert_int_equal(t.spans, 1);
	assert_int_equal(t.span[0].start, 2 * P); /* as far as the folio */
	assert_false(t.span[0].fresh);
	edge_take(&t, EDGE_TAKE_SYNC);
	assert_int_equal(t.outs, 0); /* not again and again */
	edge_add(&t, 4 * P - 100, 4 * P, true);
	edge_take(&t, EDGE_TAKE_SYNC);
	assert_int_equal(t.outs, 1);
	assert_int_equal(t.out[0].start, 2 * P);
	assert_int_equal(t.out[0].end, 4 * P);
	edge_put_out(&t);
	edge_fini(&t);
}

static void
old_halves_go(void **state)
{
	struct edge_table t;
	unsigned n = EDGE_SPANS_SOFT + 100;

	(void)state;
	edge_init(&t, P);
	for (uint64_t i = 0; i < n; i++)
		assert_true(edge_add(&t, i * 2 * P, i * 2 * P + 10, true));
	assert_int_equal(t.spans, n);
	edge_take(&t, EDGE_TAKE_SYNC);
	assert_true(t.outs >= n / 2 - 1 && t.outs <= n / 2 + 1);
	assert_int_equal(t.outs + t.spans, n);
	for (unsigned i = 0; i < t.outs; i++) /* the oldest, whole pages */
		assert_int_equal(t.out[i].start, (uint64_t)i * 2 * P);
	assert_int_equal(t.out[0].end, P);
	edge_put_out(&t);
	edge_take(&t, EDGE_TAKE_SYNC);
	assert_int_equal(t.outs, 0);
	edge_take(&t, EDGE_TAKE_SHORT);
	assert_true(t.outs > 0);
	edge_put_out(&t);
	edge_fini(&t);
}

static void
bounded(void **state)
{
	struct edge_table t;
	uint64_t added = 0;

	(void)state;
	edge_init(&t, P);
	for (uint64_t i = 0; i < 4 * EDGE_SPANS_HARD; i++)
		added += edge_add(&t, i * 2 * P, i * 2 * P + 10, true);
	assert_int_equal(added, EDGE_SPANS_HARD);
	assert_int_equal(t.spans, added);
	/* What joins a span still finds room. */
	assert_true(edge_add(&t, 10, P, true));
	edge_take(&t, EDGE_TAKE_ALL);
	assert_int_equal(t.outs, added);
	assert_int_equal(t.spans, 0);
	edge_put_out(&t);
	edge_fini(&t);
}

/* A flush takes long runs and leaves what lies scattered for its neighbours,
 * until that is most of it: then the older half goes. */
static void
flush_takes_long_runs(void **state)
{
	struct edge_table t;
	struct edge_run run[4];

	(void)state;
	edge_init(&t, P);
	assert_true(edge_add(&t, 100, 100 * P + 100, true));
	for (uint64_t i = 0; i < 20; i++)
		assert_true(edge_add(&t, (200 + 2 * i) * P + 10,
				     (200 + 2 * i) * P + 20, true));
	assert_int_equal(t.pages, 121);
	assert_int_equal(t.long_pages, 101);
	assert_int_equal(edge_runs(&t, run, 4), 1);
	assert_int_equal(run[0].start, 0);
	assert_int_equal(run[0].end, 101 * P);
	edge_take(&t, EDGE_TAKE_FLUSH);
	assert_int_equal(t.runs, 1);
	assert_int_equal(t.run[0].end, 101 * P);
	assert_int_equal(t.outs, 1); /* without the half pages at its ends */
	assert_int_equal(t.out[0].start, P);
	assert_int_equal(t.out[0].end, 100 * P);
	assert_int_equal(t.pages, 20);
	assert_int_equal(t.long_pages, 0);
	edge_put_out(&t);
	for (uint64_t i = 20; i < 100; i++)
		assert_true(edge_add(&t, (200 + 2 * i) * P + 10,
				     (200 + 2 * i) * P + 20, true));
	assert_int_equal(edge_runs(&t, run, 4), 1); /* one over all */
	assert_int_equal(run[0].start, 200 * P);
	assert_int_equal(run[0].end, 399 * P);
	edge_take(&t, EDGE_TAKE_FLUSH);
	assert_int_equal(t.outs, 0); /* clean, but not complete */
	assert_true(t.pages > 30 && t.pages < 70);
	assert_int_equal(t.run[0].start, 200 * P);
	assert_int_equal(t.runs, EDGE_RUNS_MAX);
	edge_put_out(&t);
	edge_fini(&t);
}

/* What is to stay is forgotten once it is being written back. */
static void
what_stays_is_not_dropped(void **state)
{
	struct edge_table t;

	(void)state;
	edge_init(&t, P);
	assert_true(edge_add(&t, 10, 80 * P, false));
	assert_true(edge_add(&t, 200 * P, 300 * P, false));
	edge_take(&t, EDGE_TAKE_FLUSH);
	assert_int_equal(t.outs, 0);
	assert_int_equal(t.runs, 2);
	assert_int_equal(t.spans, 0);
	assert_int_equal(t.pages, 0);
	edge_put_out(&t);
	/* Joined with what is to go it goes as well. */
	assert_true(edge_add(&t, 0, P, false));
	assert_true(edge_add(&t, P, 2 * P, true));
	edge_take(&t, EDGE_TAKE_SYNC);
	assert_int_equal(t.outs, 1);
	assert_int_equal(t.out[0].end, 2 * P);
	edge_put_out(&t);
	edge_fini(&t);
}

/* Without room for it a piece still counts, and all of the file is meant. */
static void
loose_pages_are_flushed(void **state)
{
	struct edge_table t;

	(void)state;
	edge_init(&t, P);
	for (uint64_t i = 0; i < EDGE_SPANS_HARD; i++)
		assert_true(edge_add(&t, i * 2 * P, i * 2 * P + 10, true));
	assert_false(edge_add(&t, 1ull << 40, (1ull << 40) + 10 * P, true));
	assert_int_equal(t.pages, EDGE_SPANS_HARD + 10);
	edge_take(&t, EDGE_TAKE_FLUSH);
	assert_int_equal(t.runs, 1);
	assert_int_equal(t.run[0].start, 0);
	assert_int_equal(t.run[0].end, INT64_MAX);
	assert_int_equal(t.pages, 0);
	edge_put_out(&t);
	edge_take(&t, EDGE_TAKE_ALL);
	edge_put_out(&t);
	assert_int_equal(t.room, 0); /* nor does it keep the memory */
	edge_fini(&t);
}

/* The random test's own view. */
struct model {
	uint8_t noted[PAGES * P];
	bool whole[PAGES];   /* all bytes noted */
	bool pending[PAGES]; /* noted since it last went out */
};

static bool
page_whole(const struct model *m, unsigned page)
{
	for (unsigned i = 0; i < P; i++)
		if (!m->noted[page * P + i])
			return false;
	return true;
}

static void
note(struct model *m, struct edge_table *t, uint64_t start, uint64_t end)
{
	assert_true(edge_add(t, start, end, true));
	memset(m->noted + start, 1, end - start);
	for (unsigned p = (unsigned)(start / P); p <= (end - 1) / P; p++)
		m->pending[p] = true;
}

static void
check_take(struct model *m, struct edge_table *t)
{
	bool out[PAGES] = { false };

	edge_take(t, EDGE_TAKE_SYNC);
	for (unsigned i = 0; i < t->outs; i++) {
		assert_int_equal(t->out[i].start % P, 0);
		assert_int_equal(t->out[i].end % P, 0);
		assert_true(i == 0 || t->out[i - 1].end < t->out[i].start);
		for (uint64_t p = t->out[i].start / P; p < t->out[i].end / P;
		     p++)
			out[p] = true;
	}
	for (unsigned p = 0; p < PAGES; p++) {
		bool whole = page_whole(m, p);

		if (out[p])
			assert_true(whole);
		if (whole && m->pending[p])
			assert_true(out[p]);
		if (!out[p])
			continue;
		m->pending[p] = false;
	}
	edge_put_out(t);
}

/* After a page went out its bytes may be forgotten by the table, so that the
 * model writes each byte once: tiles in random order, as clients do. */
static void
random_tiles(struct model *m, uint32_t longest)
{
	struct edge_table t;
	struct {
		uint64_t start, end;
	} tile[PAGES * 8];
	unsigned tiles = 0;

	memset(m, 0, sizeof(*m));
	edge_init(&t, P);
	for (uint64_t at = 0; at < PAGES * P;) {
		uint64_t n = 600 + next_random() % longest;

		if (n > PAGES * P - at)
			n = PAGES * P - at;
		tile[tiles].start = at;
		tile[tiles++].end = at + n;
		at += n;
	}
	for (unsigned i = 0; i < tiles; i++) {
		unsigned j = i + (unsigned)(next_random() % (tiles - i)) % 24;
		uint64_t start = tile[j].start, end = tile[j].end;

		tile[j] = tile[i];
		note(m, &t, start, end);
		if (next_random() % 4 == 0)
			check_take(m, &t);
	}
	check_take(m, &t);
	for (unsigned p = 0; p < PAGES; p++)
		assert_false(m->pending[p]);
	edge_take(&t, EDGE_TAKE_ALL);
	edge_put_out(&t);
	edge_fini(&t);
}

static void
random_against_model(void **state)
{
	struct model *m = calloc(1, sizeof(*m));

	(void)state;
	assert_non_null(m);
	for (int round = 0; round < 30; round++)
		random_tiles(m, round % 2 == 0 ? 3000 : 40000);
	free(m);
}

/* What was taken is read without the mutex while other spans come. */
static void
taken_stays_in_place(void **state)
{
	const struct edge_span *out;
	struct edge_table t;

	(void)state;
	edge_init(&t, P);
	edge_add(&t, 0, P, true);
	edge_take(&t, EDGE_TAKE_SYNC);
	out = t.out;
	for (uint64_t i = 1; i < 1000; i++) {
		assert_true(edge_add(&t, 2 * i * P, 2 * i * P + 100, true));
		assert_ptr_equal(t.out, out);
	}
	assert_int_equal(t.outs, 1);
	assert_int_equal(out[0].start, 0);
	assert_int_equal(out[0].end, P);
	edge_put_out(&t);
	edge_take(&t, EDGE_TAKE_ALL);
	assert_int_equal(t.outs, 999);
	edge_put_out(&t);
	edge_fini(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_halves),
		cmocka_unit_test(pages_in),
		cmocka_unit_test(neighbours_are_one_drop),
		cmocka_unit_test(forgotten),
		cmocka_unit_test(folio_of_two_pages),
		cmocka_unit_test(old_halves_go),
		cmocka_unit_test(bounded),
		cmocka_unit_test(flush_takes_long_runs),
		cmocka_unit_test(what_stays_is_not_dropped),
		cmocka_unit_test(loose_pages_are_flushed),
		cmocka_unit_test(taken_stays_in_place),
		cmocka_unit_test(random_against_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
