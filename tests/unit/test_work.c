/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker threads: where run and done happen, order, many at once, and work
 * that nobody waits for.
 */
#include "tests/unit/engine_harness.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

struct job {
	struct work work;
	struct engine *engine;
	pthread_t ran_on;
	unsigned number;
	unsigned order;
	bool ran;
	sem_t done;
};

static _Atomic unsigned ran, finished;

static void
job_run(struct work *w)
{
	struct job *j = container_of(w, struct job, work);

	assert_false(reactor_is_current(engine_reactor(j->engine, 0)));
	assert_false(j->ran);
	j->ran = true;
	j->ran_on = pthread_self();
	j->order = atomic_fetch_add(&ran, 1);
}

static void
job_done(struct work *w)
{
	struct job *j = container_of(w, struct job, work);

	assert_true(reactor_is_current(w->reactor));
	assert_true(j->ran);
	atomic_fetch_add(&finished, 1);
	sem_post(&j->done);
}

static void
job_start(struct job *j, struct engine *e, enum work_pool pool,
	  unsigned reactor)
{
	*j = (struct job){ .engine = e,
			   .work = { .run = job_run,
				     .done = job_done,
				     .reactor = engine_reactor(e, reactor) } };
	sem_init(&j->done, 0, 0);
	work_submit(e, pool, &j->work);
}

static void
job_wait(struct job *j)
{
	while (sem_wait(&j->done) < 0)
		;
	sem_destroy(&j->done);
}

static void
run_then_done(void **state)
{
	struct engine *e = engine_make(IO_BACKEND_THREADS, 2, 0);
	struct job j[WORK_POOLS][2];

	for (unsigned pool = 0; pool < WORK_POOLS; pool++) {
		for (unsigned r = 0; r < 2; r++)
			job_start(&j[pool][r], e, pool, r);
	}
	for (unsigned pool = 0; pool < WORK_POOLS; pool++) {
		for (unsigned r = 0; r < 2; r++)
			job_wait(&j[pool][r]);
	}
	/* Two pools, not one under two names. */
	assert_false(
		pthread_equal(j[WORK_META][0].ran_on, j[WORK_DATA][0].ran_on));
	engine_free(e);
}

/* One thread serves in order. */
static void
first_come_first_served(void **state)
{
	struct engine_config config = { .backend = IO_BACKEND_THREADS,
					.reactors = 1,
					.workers = 1,
					.io_workers = 1 };
	struct job j[200];
	struct engine *e;

	assert_int_equal(engine_new(&e, &config), 0);
	ran = 0;
	for (unsigned i = 0; i < 200; i++)
		job_start(&j[i], e, WORK_META, 0);
	for (unsigned i = 0; i < 200; i++) {
		job_wait(&j[i]);
		assert_int_equal(j[i].order, i);
	}
	engine_free(e);
}

/* As many calls block at once as there are threads: each waits for all. */
struct meeting {
	struct work work[4];
	pthread_barrier_t all;
	_Atomic unsigned left;
};

static struct meeting meeting;

static void
meet(struct work *w)
{
	pthread_barrier_wait(&meeting.all);
	atomic_fetch_sub(&meeting.left, 1);
}

static void
all_threads_serve(void **state)
{
	struct engine *e = engine_make(IO_BACKEND_THREADS, 1, 0);

	pthread_barrier_init(&meeting.all, NULL, 4);
	for (unsigned pool = 0; pool < WORK_POOLS; pool++) {
		meeting.left = 4;
		for (unsigned i = 0; i < 4; i++) {
			meeting.work[i] = (struct work){ .run = meet };
			work_submit(e, pool, &meeting.work[i]);
		}
		while (atomic_load(&meeting.left) > 0)
			sched_yield();
	}
	engine_free(e);
	pthread_barrier_destroy(&meeting.all);
}

static void
forget_run(struct work *w)
{
	atomic_fetch_add(&ran, 1);
	free(w);
}

/* Work without done may be freed by run; and the engine's end waits for what
 * was submitted. */
static void
fire_and_forget(void **state)
{
	struct engine *e = engine_make(IO_BACKEND_THREADS, 1, 0);

	ran = 0;
	for (unsigned i = 0; i < 1000; i++) {
		struct work *w = calloc(1, sizeof(*w));

		w->run = forget_run;
		work_submit(e, i % WORK_POOLS, w);
	}
	engine_free(e);
	assert_int_equal(ran, 1000);
}

/* From done back into the pool, over and over, on all reactors. */
#define CHAINS 50u
#define LINKS  400u

struct chain {
	struct work work;
	struct engine *engine;
	unsigned links;
};

static void
chain_run(struct work *w)
{
	struct chain *c = container_of(w, struct chain, work);

	c->links++;
}

static void
chain_done(struct work *w)
{
	struct chain *c = container_of(w, struct chain, work);
	unsigned next = (reactor_index(w->reactor) + 1) % 2;

	if (c->links == LINKS) {
		atomic_fetch_add(&finished, 1);
		return;
	}
	w->reactor = engine_reactor(c->engine, next);
	work_submit(c->engine, c->links % WORK_POOLS, w);
}

static void
storm(void **state)
{
	struct engine *e = engine_make(IO_BACKEND_URING, 2, 0);
	struct chain *c = calloc(CHAINS, sizeof(*c));

	finished = 0;
	for (unsigned i = 0; i < CHAINS; i++) {
		c[i].engine = e;
		c[i].work.run = chain_run;
		c[i].work.done = chain_done;
		c[i].work.reactor = engine_reactor(e, i % 2);
		work_submit(e, WORK_META, &c[i].work);
	}
	while (atomic_load(&finished) < CHAINS)
		sched_yield();
	engine_free(e);
	free(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run_then_done),
		cmocka_unit_test(first_come_first_served),
		cmocka_unit_test(all_threads_serve),
		cmocka_unit_test(fire_and_forget),
		cmocka_unit_test(storm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
