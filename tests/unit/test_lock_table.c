/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of locked ranges: each rule by a case, and all of them by random
 * operations beside a model that keeps a lock for every byte.
 */
#include "nfsd/lock_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OWNERS 4
#define BYTES  48
#define ROUNDS 200000

/* The table knows of an owner that it is another than others. */
struct lock_owner {
	char name;
};
static struct lock_owner owners[OWNERS] = {
	{ 'a' }, { 'b' }, { 'c' }, { 'd' }
};
#define A (&owners[0])
#define B (&owners[1])
#define C (&owners[2])

static const struct lock_span everything = { 0, UINT64_MAX };

static struct lock_span
span(uint64_t first, uint64_t last)
{
	return (struct lock_span){ first, last };
}

static bool
try_set(struct lock_table *t, struct lock_owner *o, struct lock_span s,
	bool exclusive)
{
	struct lock_spare spare;
	bool ok = !lock_table_conflict(t, NULL, o, &s, exclusive);

	assert_int_equal(lock_spare_init(&spare), 0);
	if (ok)
		lock_table_set(t, o, &s, exclusive, 7, &spare);
	lock_spare_fini(&spare);
	return ok;
}

static void
clear(struct lock_table *t, struct lock_owner *o, struct lock_span s)
{
	struct lock_spare spare;

	assert_int_equal(lock_spare_init(&spare), 0);
	lock_table_clear(t, o, &s, &spare);
	lock_spare_fini(&spare);
}

/* "a0-4x b2-9s": the whole table, in its order. */
static void
assert_table(const struct lock_table *t, const char *expected)
{
	const struct lock_range *r;
	char text[512] = "";
	size_t n = 0;
	unsigned count = 0;

	TAILQ_FOREACH (r, &t->ranges, link) {
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "%s%c%llu-%llu%c", n > 0 ? " " : "",
				      r->owner->name,
				      (unsigned long long)r->span.first,
				      (unsigned long long)r->span.last,
				      r->exclusive ? 'x' : 's');
		assert_true(n < sizeof(text));
		count++;
	}
	assert_string_equal(text, expected);
	assert_int_equal(t->count, count);
}

static void
test_conflicts(void **state)
{
	struct lock_table t;
	struct lock_range *r;

	lock_table_init(&t);
	assert_true(try_set(&t, A, span(10, 19), false));
	assert_true(try_set(&t, B, span(15, 24), false));
	assert_false(try_set(&t, C, span(19, 19), true));
	assert_false(try_set(&t, A, span(10, 19), true));
	assert_true(try_set(&t, A, span(10, 14), true));
	assert_false(try_set(&t, B, span(0, 10), false));
	assert_true(try_set(&t, C, span(25, 25), true));
	assert_table(&t, "a10-14x b15-24s a15-19s c25-25x");
	/* Who is in the way, one after the other. */
	r = lock_table_conflict(&t, NULL, C, &everything, true);
	assert_ptr_equal(r->owner, A);
	r = lock_table_conflict(&t, r, C, &everything, true);
	assert_ptr_equal(r->owner, B);
	r = lock_table_conflict(&t, r, C, &everything, true);
	assert_int_equal(r->span.first, 15);
	assert_ptr_equal(r->owner, A);
	assert_null(lock_table_conflict(&t, r, C, &everything, true));
	r = lock_table_conflict(&t, NULL, C, &everything, false);
	assert_ptr_equal(r->owner, A);
	assert_null(lock_table_conflict(&t, r, C, &everything, false));
	lock_table_fini(&t);
	assert_int_equal(t.count, 0);
}

static void
test_split_and_merge(void **state)
{
	struct lock_table t;

	lock_table_init(&t);
	assert_true(try_set(&t, A, span(0, 99), true));
	clear(&t, A, span(40, 59));
	assert_table(&t, "a0-39x a60-99x");
	clear(&t, A, span(30, 69));
	assert_table(&t, "a0-29x a70-99x");
	/* Not what is another's, nor what is not there. */
	clear(&t, B, everything);
	clear(&t, A, span(30, 69));
	assert_table(&t, "a0-29x a70-99x");
	/* Touching on both sides it is one. */
	assert_true(try_set(&t, A, span(30, 69), true));
	assert_table(&t, "a0-99x");
	/* Of the other kind it is not. */
	assert_true(try_set(&t, A, span(50, 59), false));
	assert_table(&t, "a0-49x a50-59s a60-99x");
	assert_true(try_set(&t, A, span(40, 79), false));
	assert_table(&t, "a0-39x a40-79s a80-99x");
	assert_true(try_set(&t, A, span(0, 99), true));
	assert_table(&t, "a0-99x");
	clear(&t, A, span(0, 9));
	clear(&t, A, span(90, 200));
	assert_table(&t, "a10-89x");
	clear(&t, A, everything);
	assert_table(&t, "");
	lock_table_fini(&t);
}

static void
test_ends(void **state)
{
	struct lock_table t;
	const struct lock_span last = { UINT64_MAX, UINT64_MAX };

	lock_table_init(&t);
	assert_true(try_set(&t, A, everything, false));
	assert_true(try_set(&t, A, last, true));
	assert_table(&t, "a0-18446744073709551614s "
			 "a18446744073709551615-18446744073709551615x");
	assert_false(try_set(&t, B, last, false));
	clear(&t, A, span(0, 0));
	assert_true(try_set(&t, B, span(0, 0), true));
	assert_true(try_set(&t, A, last, false));
	assert_table(&t, "b0-0x a1-18446744073709551615s");
	assert_true(lock_table_has(&t, A, &last, false));
	assert_false(lock_table_has(&t, A, &last, true));
	assert_false(lock_table_has(&t, A, &everything, false));
	lock_table_fini(&t);
}

static void
test_since(void **state)
{
	const struct lock_span early = { 0, 4 }, late = { 5, 9 };
	struct lock_spare spare;
	struct lock_table t;

	lock_table_init(&t);
	assert_int_equal(lock_spare_init(&spare), 0);
	lock_table_set(&t, A, &early, true, 100, &spare);
	lock_spare_fini(&spare);
	assert_int_equal(lock_spare_init(&spare), 0);
	lock_table_set(&t, A, &late, true, 200, &spare);
	lock_spare_fini(&spare);
	assert_table(&t, "a0-9x");
	assert_int_equal(TAILQ_FIRST(&t.ranges)->since_ns, 100);
	lock_table_fini(&t);
}

/* Beside a model -------------------------------------------------------------
 */

enum kind { NONE, SHARED, EXCLUSIVE };

struct model {
	enum kind kind[OWNERS][BYTES];
	struct lock_table t;
	bool free[BYTES]; /* as the gaps say */
};

static bool
model_allows(const struct model *m, unsigned owner, const struct lock_span *s,
	     bool exclusive)
{
	for (unsigned o = 0; o < OWNERS; o++)
		for (uint64_t b = s->first; o != owner && b <= s->last; b++)
			if (m->kind[o][b] == EXCLUSIVE ||
			    (exclusive && m->kind[o][b] != NONE))
				return false;
	return true;
}

static void
model_set(struct model *m, unsigned owner, const struct lock_span *s,
	  enum kind kind)
{
	for (uint64_t b = s->first; b <= s->last; b++)
		m->kind[owner][b] = kind;
}

static void
note_gap(const struct lock_span *gap, void *arg)
{
	struct model *m = arg;

	assert_true(gap->first <= gap->last && gap->last < BYTES);
	/* The longest: a gap does not follow a gap. */
	assert_true(gap->first == 0 || !m->free[gap->first - 1]);
	for (uint64_t b = gap->first; b <= gap->last; b++)
		m->free[b] = true;
}

static void
check_gaps(struct model *m)
{
	const struct lock_span all = { 0, BYTES - 1 };

	memset(m->free, 0, sizeof(m->free));
	lock_table_gaps(&m->t, &all, note_gap, m);
	for (unsigned b = 0; b < BYTES; b++) {
		bool none = true;

		for (unsigned o = 0; o < OWNERS; o++)
			none = none && m->kind[o][b] == NONE;
		assert_int_equal(none, m->free[b]);
	}
}

/* Every byte is as the model has it, and every range is as long as can be. */
static void
check_table(struct model *m)
{
	enum kind seen[OWNERS][BYTES] = { 0 };
	const struct lock_range *r, *before = NULL;
	unsigned o;

	TAILQ_FOREACH (r, &m->t.ranges, link) {
		enum kind kind = r->exclusive ? EXCLUSIVE : SHARED;

		o = (unsigned)(r->owner - owners);
		assert_true(!before || before->span.first <= r->span.first);
		assert_true(r->span.first <= r->span.last);
		assert_true(r->span.last < BYTES);
		if (r->span.first > 0)
			assert_int_not_equal(m->kind[o][r->span.first - 1],
					     kind);
		for (uint64_t b = r->span.first; b <= r->span.last; b++) {
			assert_int_equal(seen[o][b], NONE);
			seen[o][b] = kind;
		}
		before = r;
	}
	assert_memory_equal(seen, m->kind, sizeof(seen));
}

static void
test_model(void **state)
{
	unsigned seed = 1, refused = 0, granted = 0;
	static struct model m;

	lock_table_init(&m.t);
	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned o = (unsigned)rand_r(&seed) % OWNERS;
		uint64_t first = (uint64_t)rand_r(&seed) % BYTES;
		uint64_t room = BYTES - first;
		struct lock_span s = { first, 0 };
		unsigned what = (unsigned)rand_r(&seed) % 5;
		bool exclusive = what < 2, ok;

		if (room > 12 && rand_r(&seed) % 4 != 0)
			room = 12;
		s.last = first + (uint64_t)rand_r(&seed) % room;
		if (what == 4) {
			clear(&m.t, &owners[o], s);
			model_set(&m, o, &s, NONE);
		} else {
			ok = model_allows(&m, o, &s, exclusive);
			assert_int_equal(
				try_set(&m.t, &owners[o], s, exclusive), ok);
			if (ok)
				model_set(&m, o, &s,
					  exclusive ? EXCLUSIVE : SHARED);
			granted += ok;
			refused += !ok;
		}
		if (i % 16 == 0) {
			check_table(&m);
			check_gaps(&m);
		}
	}
	/* Both happen, or the rest says little. */
	assert_true(granted > ROUNDS / 20);
	assert_true(refused > ROUNDS / 20);
	lock_table_fini(&m.t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conflicts),
		cmocka_unit_test(test_split_and_merge),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_since),
		cmocka_unit_test(test_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
