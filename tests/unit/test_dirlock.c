/* SPDX-License-Identifier: Apache-2.0 */
/* Locks of directories exclude, and two at a time never deadlock. */
#include "nfsd/proc.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define THREADS 4u
#define INODES  16u
#define ROUNDS  20000u

/* What a lock guards; not atomic, so that a hole shows (TSan sees it too). */
static unsigned long held[INODES];
static unsigned long taken[INODES];

static struct statx
inode(uint64_t ino, uint32_t dev)
{
	struct statx st;

	memset(&st, 0, sizeof(st));
	st.stx_ino = ino;
	st.stx_dev_minor = dev;
	return st;
}

static unsigned
bump(unsigned i)
{
	unsigned broken = held[i] != 0;

	held[i]++;
	taken[i]++;
	return broken;
}

struct worker {
	pthread_t thread;
	unsigned index, broken;
};

/* Half of the threads name their pair the other way round. */
static void *
work(void *arg)
{
	struct worker *w = arg;
	unsigned i, a, b;
	struct dirlock l;

	for (i = 0; i < ROUNDS; i++) {
		struct statx one, two;

		a = (i * 7 + w->index) % INODES;
		b = (i * 5 + w->index / 2) % INODES;
		one = inode(w->index % 2 ? a : b, 8);
		two = inode(w->index % 2 ? b : a, 8);
		dirlock_take(&l, &one, &two);
		w->broken += bump(a);
		if (b != a)
			w->broken += bump(b);
		if (i % 64 == 0)
			(void)sched_yield();
		held[a] = 0;
		held[b] = 0;
		dirlock_drop(&l);
	}
	return NULL;
}

static unsigned long
expected(unsigned inode_index)
{
	unsigned long n = 0;
	unsigned t, i, a, b;

	for (t = 0; t < THREADS; t++)
		for (i = 0; i < ROUNDS; i++) {
			a = (i * 7 + t) % INODES;
			b = (i * 5 + t / 2) % INODES;
			n += a == inode_index || b == inode_index;
		}
	return n;
}

static void
test_exclusion(void **state)
{
	struct worker w[THREADS];
	unsigned i;

	memset(w, 0, sizeof(w));
	for (i = 0; i < THREADS; i++) {
		w[i].index = i;
		assert_int_equal(
			pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	}
	for (i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(w[i].thread, NULL), 0);
		assert_int_equal(w[i].broken, 0);
	}
	for (i = 0; i < INODES; i++)
		assert_int_equal(taken[i], expected(i));
}

static void
test_one_stripe(void **state)
{
	struct statx st = inode(77, 3);
	struct dirlock l;

	/* The same inode twice is one lock, taken once. */
	dirlock_take(&l, &st, &st);
	assert_int_equal(l.low, l.high);
	dirlock_drop(&l);
	dirlock_take(&l, &st, NULL);
	assert_int_equal(l.low, l.high);
	dirlock_drop(&l);
}

/* A row of inodes and its neighbours on another device use many stripes. */
static void
test_spread(void **state)
{
	bool used[1u << 16] = { false };
	unsigned i, stripes = 0;
	struct dirlock l;

	for (i = 0; i < 1024; i++) {
		struct statx st = inode(i / 2, i % 2);

		dirlock_take(&l, &st, NULL);
		assert_true(l.low < sizeof(used));
		stripes += !used[l.low];
		used[l.low] = true;
		dirlock_drop(&l);
	}
	assert_true(stripes > 512);
}

/* After all that, every stripe is free again and order is low before high. */
static void
test_order(void **state)
{
	unsigned i;

	for (i = 0; i < 4096; i++) {
		struct statx a = inode(i, 1), b = inode(i * 31 + 7, 2);
		struct dirlock l;

		dirlock_take(&l, &a, &b);
		assert_true(l.low <= l.high);
		dirlock_drop(&l);
		dirlock_take(&l, &b, &a);
		dirlock_drop(&l);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exclusion),
		cmocka_unit_test(test_one_stripe),
		cmocka_unit_test(test_spread),
		cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
