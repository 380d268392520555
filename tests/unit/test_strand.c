/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A strand: work of one inode, from several threads, runs one at a time and in
 * the order in which each thread submitted it; all of it is told, on the
 * reactor that wanted it; and two inodes do not wait for each other.
 */
#include "io_client.h"

#include "io/file.h"

#define THREADS 4u
#define JOBS    2000u /* of each thread; more than a strand's turn */

static struct {
	struct engine *engine;
	struct volume *volume;
	struct file *file;
	char dir[64];
} env;

static _Atomic unsigned running, most_running, told;
static unsigned next_of[THREADS]; /* only what runs touches them */
static _Atomic bool out_of_order;

struct job {
	struct work work;
	unsigned thread, number;
};

static struct job jobs[THREADS][JOBS];

static void
job_run(struct work *w)
{
	struct job *j = container_of(w, struct job, work);
	unsigned now = atomic_fetch_add(&running, 1) + 1;

	if (now > atomic_load(&most_running))
		atomic_store(&most_running, now);
	if (next_of[j->thread]++ != j->number)
		atomic_store(&out_of_order, true);
	atomic_fetch_sub(&running, 1);
}

static void
job_done(struct work *w)
{
	assert(reactor_is_current(w->reactor));
	atomic_fetch_add(&told, 1);
}

static void *
submitter(void *arg)
{
	unsigned t = (unsigned)(uintptr_t)arg;

	for (unsigned n = 0; n < JOBS; n++) {
		struct job *j = &jobs[t][n];

		j->thread = t;
		j->number = n;
		j->work = (struct work){
			.run = job_run,
			.done = job_done,
			.reactor = engine_reactor(env.engine, t % 2),
		};
		strand_submit(env.file, &j->work);
	}
	return NULL;
}

static void
one_at_a_time(void **state)
{
	pthread_t thread[THREADS];

	(void)state;
	for (uintptr_t t = 0; t < THREADS; t++)
		assert_int_equal(
			pthread_create(&thread[t], NULL, submitter, (void *)t),
			0);
	for (unsigned t = 0; t < THREADS; t++)
		pthread_join(thread[t], NULL);
	while (atomic_load(&told) < THREADS * JOBS)
		sched_yield();
	assert_int_equal(atomic_load(&most_running), 1);
	assert_false(atomic_load(&out_of_order));
	for (unsigned t = 0; t < THREADS; t++)
		assert_int_equal(next_of[t], JOBS);
}

/* Two that each wait until the other runs. */
struct pair {
	struct work work;
	sem_t *mine, *other;
	sem_t *done;
};

static void
pair_run(struct work *w)
{
	struct pair *p = container_of(w, struct pair, work);

	sem_post(p->mine);
	while (sem_wait(p->other) < 0)
		;
}

static void
pair_done(struct work *w)
{
	sem_post(container_of(w, struct pair, work)->done);
}

static void
inodes_apart(void **state)
{
	struct file *other = create_named(env.engine, env.volume, "other");
	struct reactor *r = engine_reactor(env.engine, 0);
	sem_t a, b, done;
	struct pair one, two;

	(void)state;
	sem_init(&a, 0, 0);
	sem_init(&b, 0, 0);
	sem_init(&done, 0, 0);
	one = (struct pair){
		{ .run = pair_run, .done = pair_done }, &a, &b, &done
	};
	two = (struct pair){
		{ .run = pair_run, .done = pair_done }, &b, &a, &done
	};
	one.work.reactor = two.work.reactor = r;
	strand_submit(env.file, &one.work);
	strand_submit(other, &two.work);
	for (unsigned i = 0; i < 2; i++)
		while (sem_wait(&done) < 0)
			;
	file_put(other);
	sem_destroy(&a);
	sem_destroy(&b);
	sem_destroy(&done);
}

static int
set_up(void **state)
{
	(void)state;
	(void)snprintf(env.dir, sizeof(env.dir), "/var/tmp/strand.XXXXXX");
	if (mkdtemp(env.dir) == NULL)
		return -1;
	env.engine = engine_make(IO_BACKEND_THREADS, 2, 0);
	env.volume = volume_at(env.engine, env.dir, &direct_policy);
	env.file = create_named(env.engine, env.volume, "f");
	return 0;
}

static int
tear_down(void **state)
{
	char command[128];

	(void)state;
	file_put(env.file);
	assert_int_equal(file_close_all(env.engine, NULL, in_seconds(60)), 0);
	volume_put(env.volume);
	engine_free(env.engine);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", env.dir);
	return system(command);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_at_a_time),
		cmocka_unit_test(inodes_apart),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
