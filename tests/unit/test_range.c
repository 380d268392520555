/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges in flight: the matrix of kinds, page rounding, the order of waiters,
 * and random comings and goings against a model that knows only the rules.
 */
#include "io/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LOCKS 24
#define STEPS 300000

static uint64_t seed = 42;

static uint64_t
next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed >> 8;
}

static void
lock_of(struct range_lock *l, enum range_kind kind, uint64_t offset, uint64_t n)
{
	memset(l, 0, sizeof(*l));
	range_add(l, kind, offset, n);
}

/* May b be granted beside a, in the same page? */
static bool
beside(enum range_kind a, enum range_kind b)
{
	struct range_list list = { 0 };
	struct range_lock x, y;
	bool granted;

	lock_of(&x, a, 0, 100);
	lock_of(&y, b, 200, 100);
	assert_true(range_enter(&list, &x));
	granted = range_enter(&list, &y);
	assert_int_equal(list.waiting, !granted);
	assert_ptr_equal(range_leave(&list, &x), granted ? NULL : &y);
	assert_true(y.granted);
	assert_null(range_leave(&list, &y));
	assert_null(list.head);
	return granted;
}

static void
matrix(void **state)
{
	/* As DESIGN has it: rows and columns D, B, RD, RB, X. */
	static const char *const rows[RANGE_KINDS] = { ".....", ".1.1.",
						       "..11.", ".111.",
						       "....." };

	(void)state;
	for (int a = 0; a < RANGE_KINDS; a++)
		for (int b = 0; b < RANGE_KINDS; b++)
			assert_int_equal(
				beside((enum range_kind)a, (enum range_kind)b),
				rows[a][b] == '1');
}

static void
pages(void **state)
{
	struct range_list list = { 0 };
	uint64_t page = page_bytes();
	struct range_lock a, b, c, all;

	(void)state;
	lock_of(&a, RANGE_DIRECT, page, page);
	lock_of(&b, RANGE_BUFFERED, 2 * page,
		1); /* the next page: no conflict */
	lock_of(&c, RANGE_BUFFERED, 2 * page - 1, 1);
	assert_true(range_enter(&list, &a));
	assert_true(range_enter(&list, &b));
	assert_false(range_enter(&list, &c));
	assert_ptr_equal(range_leave(&list, &a), &c);
	lock_of(&all, RANGE_EXCLUSIVE, 0, UINT64_MAX);
	assert_false(range_enter(&list, &all));
	assert_null(range_leave(&list, &b));
	assert_ptr_equal(range_leave(&list, &c), &all);
	assert_int_equal(all.part[0].end, UINT64_MAX);
	lock_of(&a, RANGE_READ_BUFFERED, (uint64_t)INT64_MAX, 1);
	assert_false(range_enter(&list, &a));
	assert_ptr_equal(range_leave(&list, &all), &a);
	assert_null(range_leave(&list, &a));
}

/* Nobody is overtaken by what it conflicts with. */
static void
first_come_first_served(void **state)
{
	struct range_list list = { 0 };
	struct range_lock read, freeze, late, other;

	(void)state;
	lock_of(&read, RANGE_READ_DIRECT, 0, 10);
	lock_of(&freeze, RANGE_EXCLUSIVE, 0, UINT64_MAX);
	lock_of(&late, RANGE_READ_DIRECT, 0, 10);
	lock_of(&other, RANGE_READ_DIRECT, 1u << 20, 10);
	assert_true(range_enter(&list, &read));
	assert_false(range_enter(&list, &freeze));
	assert_false(range_enter(&list, &late));
	assert_false(range_enter(&list, &other));
	assert_ptr_equal(range_leave(&list, &read), &freeze);
	assert_null(freeze.wake);
	assert_ptr_equal(range_leave(&list, &freeze), &late);
	assert_ptr_equal(late.wake, &other); /* both at once, in order */
	assert_null(other.wake);
	assert_null(range_leave(&list, &other));
	assert_null(range_leave(&list, &late));
}

/* A WRITE takes head, middle and tail at once or waits for all. */
static void
all_parts_or_none(void **state)
{
	struct range_list list = { 0 };
	uint64_t page = page_bytes();
	struct range_lock busy, w, edge;

	(void)state;
	lock_of(&busy, RANGE_DIRECT, 5 * page, page);
	assert_true(range_enter(&list, &busy));
	memset(&w, 0, sizeof(w));
	range_add(&w, RANGE_BUFFERED, 100, page - 100);
	range_add(&w, RANGE_DIRECT, page, 4 * page);
	range_add(&w, RANGE_BUFFERED, 5 * page, 7);
	assert_false(range_enter(&list, &w));
	lock_of(&edge, RANGE_BUFFERED, 0,
		100); /* shares only the head's page */
	assert_true(range_enter(&list, &edge));
	assert_ptr_equal(range_leave(&list, &busy), &w);
	assert_null(range_leave(&list, &edge));
	assert_null(range_leave(&list, &w));
}

/* The rules once more, slowly: order of coming, and what may not overlap. */
struct model {
	struct range_lock lock;
	bool in;
	uint64_t came;
};

static bool
kinds_conflict(unsigned a, unsigned b)
{
	unsigned low = a < b ? a : b, high = a < b ? b : a;

	if (high == RANGE_EXCLUSIVE || low == RANGE_DIRECT)
		return true;
	return low == RANGE_BUFFERED && high == RANGE_READ_DIRECT;
}

static bool
overlap(const struct range_lock *a, const struct range_lock *b)
{
	for (unsigned i = 0; i < a->parts; i++)
		for (unsigned j = 0; j < b->parts; j++)
			if (a->part[i].start < b->part[j].end &&
			    b->part[j].start < a->part[i].end &&
			    kinds_conflict(a->part[i].kind, b->part[j].kind))
				return true;
	return false;
}

static void
check_model(const struct model *m)
{
	for (int i = 0; i < LOCKS; i++) {
		bool blocked = false;

		if (!m[i].in)
			continue;
		for (int j = 0; j < LOCKS; j++)
			if (j != i && m[j].in && m[j].came < m[i].came &&
			    overlap(&m[i].lock, &m[j].lock))
				blocked = true;
		assert_int_equal(m[i].lock.granted, !blocked);
	}
}

static void
fill_random(struct range_lock *l)
{
	uint64_t page = page_bytes(), at = next_random() % 12 * page;

	memset(l, 0, sizeof(*l));
	switch (next_random() % 6) {
	case 0:
		range_add(l, RANGE_EXCLUSIVE, 0, UINT64_MAX);
		break;
	case 1:
		range_add(l, RANGE_READ_DIRECT, at, 1 + next_random() % 9000);
		break;
	case 2:
		range_add(l, RANGE_READ_BUFFERED, at, 1 + next_random() % 9000);
		break;
	case 3:
		range_add(l, RANGE_BUFFERED, at + 9, 1 + next_random() % 9000);
		break;
	default:
		range_add(l, RANGE_BUFFERED, at + 9, page - 9);
		range_add(l, RANGE_DIRECT, at + page, page);
		range_add(l, RANGE_BUFFERED, at + 2 * page, 3);
	}
}

static void
random_against_model(void **state)
{
	static struct model m[LOCKS];
	struct range_list list = { 0 };
	uint64_t clock = 0;
	unsigned in = 0;

	(void)state;
	for (int step = 0; step < STEPS; step++) {
		struct model *p = &m[next_random() % LOCKS];

		if (!p->in) {
			fill_random(&p->lock);
			(void)range_enter(&list, &p->lock);
			p->in = true;
			p->came = ++clock;
			in++;
		} else if (p->lock.granted) {
			struct range_lock *w = range_leave(&list, &p->lock);

			p->in = false;
			in--;
			for (; w != NULL; w = w->wake)
				assert_true(w->granted);
		}
		check_model(m);
	}
	assert_true(in <= LOCKS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matrix),
		cmocka_unit_test(pages),
		cmocka_unit_test(first_come_first_served),
		cmocka_unit_test(all_parts_or_none),
		cmocka_unit_test(random_against_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
