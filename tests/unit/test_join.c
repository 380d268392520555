/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edges that wait in memory (edges=join), at the moments that a client meets by
 * chance only (a build with -Dfault=true): while they are being written out, a
 * READ finds them, and the size never goes back.
 */
#include "io_client.h"

#include "io/fault.h"
#include "io/file.h"

#define RECORD 47008u
#define EDGE   45056u /* where the block of the tail begins */

static struct {
	struct engine *engine;
	struct volume *volume;
	char dir[64];
} env;

static const struct io_policy join_policy = {
	.read_mode = IO_DIRECT,
	.write_mode = IO_DIRECT,
	.edges = IO_EDGES_JOIN,
	.direct_min = 16384,
	.stable_floor = IO_UNSTABLE,
};

static void *
flush_main(void *f)
{
	join_flush(f);
	return NULL;
}

static uint64_t
size_of(struct file *f)
{
	uint64_t resets, size;
	struct stat st;

	do {
		resets = io_size_resets();
		assert(fstat(file_fd(f), &st) == 0);
		size = io_size(st.st_dev, st.st_ino, (uint64_t)st.st_size);
	} while (resets != io_size_resets());
	return size;
}

/* Its tail waits; the middle is where it belongs. */
static struct file *
file_with_tail(const char *name)
{
	struct reactor *r = engine_reactor(env.engine, 0);
	struct file *f = create_named(env.engine, env.volume, name);
	struct stat st;

	(void)write_all(r, f, 0, RECORD, 1, IO_UNSTABLE);
	assert_int_equal(fstat(file_fd(f), &st), 0);
	if (!join_any(f->inode)) {
		print_message("skip: no direct I/O in /var/tmp\n");
		skip();
	}
	assert_int_equal(st.st_size, EDGE);
	assert_int_equal(size_of(f), RECORD);
	return f;
}

static void
read_while_it_is_written_out(void **state)
{
	struct file *f = file_with_tail("read");
	struct client_read c = { 0 };
	uint8_t got[RECORD - EDGE];
	pthread_t thread;

	(void)state;
	assert_int_equal(fault_set("write:1:delay=300"), 0);
	assert_int_equal(pthread_create(&thread, NULL, flush_main, f), 0);
	usleep(100000); /* its write waits now */
	assert_int_equal(size_of(f), RECORD);
	client_read(&c, engine_reactor(env.engine, 0), f, EDGE, RECORD - EDGE,
		    got);
	assert_int_equal(c.io.error, 0);
	assert_int_equal(c.io.got, RECORD - EDGE);
	assert_true(c.io.eof);
	assert_int_equal(pattern_check(got, EDGE, RECORD - EDGE, 1),
			 RECORD - EDGE);
	pthread_join(thread, NULL);
	assert_int_equal(fault_set(NULL), 0);
	assert_false(join_any(f->inode));
	assert_int_equal(size_of(f), RECORD);
	file_put(f);
}

struct watcher {
	struct file *file;
	_Atomic bool enough;
	uint64_t least;
};

static void *
watch_main(void *arg)
{
	struct watcher *w = arg;

	while (!atomic_load(&w->enough)) {
		uint64_t size = size_of(w->file);

		if (size < w->least)
			w->least = size;
	}
	return NULL;
}

static void
size_never_goes_back(void **state)
{
	struct watcher w = { .least = RECORD };
	pthread_t thread;

	(void)state;
	for (unsigned i = 0; i < 50; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "size%u", i);
		w.file = file_with_tail(name);
		atomic_store(&w.enough, false);
		assert_int_equal(pthread_create(&thread, NULL, watch_main, &w),
				 0);
		join_flush(w.file);
		atomic_store(&w.enough, true);
		pthread_join(thread, NULL);
		file_put(w.file);
	}
	assert_int_equal(w.least, RECORD);
}

/* Others that go on writing keep no volume from being closed, and what waits
 * counts in bytes. */
static void
closed_with_edges(void **state)
{
	struct file *f = file_with_tail("closed");
	struct file_cache *c = f->cache;

	(void)state;
	assert_int_equal(atomic_load(&c->join_bytes), f->facts.cut);
	file_put(f);
	assert_int_equal(file_close_all(env.engine, env.volume, in_seconds(60)),
			 0);
	assert_int_equal(atomic_load(&c->join_bytes), 0);
}

static int
set_up(void **state)
{
	(void)state;
	(void)snprintf(env.dir, sizeof(env.dir), "/var/tmp/join.XXXXXX");
	if (mkdtemp(env.dir) == NULL)
		return -1;
	env.engine = engine_make(IO_BACKEND_THREADS, 1, 0);
	env.volume = volume_at(env.engine, env.dir, &join_policy);
	return 0;
}

static int
tear_down(void **state)
{
	char command[128];

	(void)state;
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
		cmocka_unit_test(read_while_it_is_written_out),
		cmocka_unit_test(size_never_goes_back),
		cmocka_unit_test(closed_with_edges),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
