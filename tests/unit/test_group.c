/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who shares a sync: a turn waits until as many have joined as before, and no
 * longer than half a sync; a lone caller waits for nobody.
 */
#include "engine_harness.h"

#include "io/file.h"
#include "io/reactor.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static uint64_t
waited(struct sync_group *g)
{
	uint64_t begun = clock_ns();

	pthread_mutex_lock(&mutex);
	group_wait(g, &mutex);
	pthread_mutex_unlock(&mutex);
	return clock_ns() - begun;
}

static void
joined(struct sync_group *g, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		group_joined(g);
}

static void
lone(void **state)
{
	struct sync_group g = { 0 };

	(void)state;
	group_init(&g);
	for (unsigned i = 0; i < 3; i++) {
		joined(&g, 1);
		/* With a day's sync before: it would not come back. */
		(void)waited(&g);
		group_taken(&g);
		group_synced(&g, 1, 86400 * NS_PER_S);
		assert_int_equal(g.wanted, 1);
	}
	group_fini(&g);
}

/* What served and joined tells for the next time. */
static void
wanted(void **state)
{
	struct sync_group g = { 0 };

	(void)state;
	group_init(&g);
	joined(&g, 2);
	group_taken(&g);
	joined(&g, 3); /* while it ran */
	group_synced(&g, 2, 1000);
	assert_int_equal(g.wanted, 5);
	joined(&g, 2);
	group_taken(&g);
	group_synced(&g, 5, 1000); /* all came: may there be more? */
	assert_int_equal(g.wanted, 10);
	joined(&g, 6);
	group_taken(&g);
	group_synced(&g, 6, 1000); /* there were not */
	assert_int_equal(g.wanted, 6);
	joined(&g, 1);
	group_taken(&g);
	group_synced(&g, 1, 1000);
	assert_int_equal(g.wanted, 1);
	group_fini(&g);
}

static void
no_longer_than(void **state)
{
	struct sync_group g = { 0 };
	uint64_t ns;

	(void)state;
	group_init(&g);
	g.wanted = 8;
	/* Nobody has joined: a flush does not wait. */
	g.sync_ns = 86400 * NS_PER_S;
	(void)waited(&g);
	assert_int_equal(g.joined, 0);
	/* Half of it, and never more than a millisecond by itself. */
	joined(&g, 1);
	g.sync_ns = NS_PER_MS / 2;
	ns = waited(&g);
	assert_true(ns >= NS_PER_MS / 4);
	g.sync_ns = 86400 * NS_PER_S;
	ns = waited(&g);
	assert_true(ns >= NS_PER_MS);
	assert_int_equal(g.joined, 1);
	group_fini(&g);
}

static unsigned
count(const struct sync_group *g)
{
	unsigned n;

	pthread_mutex_lock(&mutex);
	n = g->joined;
	pthread_mutex_unlock(&mutex);
	return n;
}

static void *
latecomers(void *arg)
{
	struct sync_group *g = arg;

	for (unsigned i = 0; i < 7; i++) {
		pthread_mutex_lock(&mutex);
		group_joined(g);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

static void
enough(void **state)
{
	struct sync_group g = { .wanted = 8 };
	pthread_t thread;

	(void)state;
	group_init(&g);
	joined(&g, 1);
	g.sync_ns = 86400 * NS_PER_S;
	assert_int_equal(pthread_create(&thread, NULL, latecomers, &g), 0);
	while (count(&g) < 8)
		(void)waited(&g);
	pthread_join(thread, NULL);
	assert_int_equal(g.joined, 8);
	(void)waited(&g); /* at once */
	group_fini(&g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lone),
		cmocka_unit_test(wanted),
		cmocka_unit_test(no_longer_than),
		cmocka_unit_test(enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
