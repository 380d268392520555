/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One inode through two volumes, as two exports of one directory make it (a
 * build with -Dfault=true): a file that leaves the cache while the other's sync
 * runs is synced all the same, and its volume hears of the failure.
 */
#include "io_client.h"

#include "io/fault.h"

#define RECORD 50000u

static struct {
	struct engine *engine;
	struct volume *a, *b;
	char dir[64];
} env;

static struct client_commit *
commit_start(struct file *f)
{
	static struct client_commit c;

	c = (struct client_commit){
		.io = { .reactor = engine_reactor(env.engine, 0), .file = f }
	};
	sem_init(&c.done, 0, 0);
	visit(c.io.reactor, client_commit_visit, &c);
	return &c;
}

static void
closed_beside_a_sync(void **state)
{
	struct file *fa = create_named(env.engine, env.a, "f");
	struct file *fb = open_named(env.engine, env.b, "f");
	struct client_commit *c;
	uint64_t verifier;

	(void)state;
	assert_int_equal(fault_set("fsync:1:delay=1000;fsync:2:EIO"), 0);
	verifier = write_all(engine_reactor(env.engine, 0), fa, 7, RECORD, 1,
			     IO_UNSTABLE);
	file_put(fa);
	c = commit_start(fb);
	while (counted(&volume_counters(env.b)->syncs) == 0)
		sched_yield();
	/* The sync of b's file runs now, and is not the one that fails. */
	assert_int_equal(file_close_all(env.engine, env.a, in_seconds(60)),
			 -EIO);
	assert_true(volume_verifier(env.a) != verifier);
	while (sem_wait(&c->done) < 0)
		;
	sem_destroy(&c->done);
	/* Nobody knows which of the two the error belongs to. */
	assert_true(c->io.error == 0 || c->io.error == -EIO);
	assert_int_equal(fault_set(NULL), 0);
	file_put(fb);
	assert_int_equal(file_close_all(env.engine, NULL, in_seconds(60)), 0);
}

static int
set_up(void **state)
{
	(void)state;
	(void)snprintf(env.dir, sizeof(env.dir), "/var/tmp/two.XXXXXX");
	assert_non_null(mkdtemp(env.dir));
	env.engine = engine_make(IO_BACKEND_THREADS, 1, 0);
	env.a = volume_at(env.engine, env.dir, &direct_policy);
	env.b = volume_at(env.engine, env.dir, &direct_policy);
	return 0;
}

static int
tear_down(void **state)
{
	char path[80];

	(void)state;
	volume_put(env.a);
	volume_put(env.b);
	engine_free(env.engine);
	(void)snprintf(path, sizeof(path), "%s/f", env.dir);
	unlink(path);
	return rmdir(env.dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closed_beside_a_sync),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
