/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data calls under fault points (a build with -Dfault=true): the n-th
 * operation of a kind fails, comes short, or is late, for each n until the
 * script runs through without meeting one. For each n: what is told is true of
 * the content, the verifier moves when it must, and nothing leaks (the engine
 * asserts that everything is home when it ends).
 */
#include "io_client.h"
#include "loop_fs.h"

#include "io/fault.h"

#define RECORD 100003u
#define ROUNDS 200u

static struct {
	enum io_backend backend;
	struct engine *engine;
	struct volume *volume;
	const char *dir;
	const char *why; /* it cannot be tested */
	_Atomic unsigned told;
} env;

static void
on_error(struct volume *v, const char *what, int error)
{
	(void)v;
	(void)what;
	(void)error;
	atomic_fetch_add(&env.told, 1);
}

/* Fault points change only while no engine runs. */
static void
start(const char *faults)
{
	struct engine_config config = { .backend = env.backend,
					.reactors = 2,
					.workers = 2,
					.io_workers = 2,
					.buffer_bytes = 8u << 20,
					.on_error = on_error };

	assert_int_equal(setenv("NVNFSD_FAULT", faults, 1), 0);
	assert_int_equal(engine_new(&env.engine, &config), 0);
	env.volume = volume_at(env.engine, env.dir, &direct_policy);
}

static void
stop(void)
{
	volume_put(env.volume);
	engine_free(env.engine);
}

/* What one run of the script was told. */
struct outcome {
	struct io_write write[6];
	int commit_error;
	uint64_t commit_verifier;
	uint64_t first_verifier;
	unsigned told;
};

static struct outcome
script(struct file *f)
{
	static const enum io_stable stable[6] = {
		IO_UNSTABLE,  IO_FILE_SYNC, IO_UNSTABLE,
		IO_DATA_SYNC, IO_UNSTABLE,  IO_UNSTABLE,
	};
	static struct client_write w[6];
	struct outcome o = { .first_verifier = volume_verifier(env.volume) };

	atomic_store(&env.told, 0);
	memset(w, 0, sizeof(w));
	for (unsigned i = 0; i < 6; i++) {
		w[i].gen = i + 1;
		w[i].io.stable = stable[i];
		/* Two at a time: pieces of both are in flight together. */
		client_write_start(&w[i], engine_reactor(env.engine, i % 2), f,
				   (uint64_t)i * RECORD, RECORD);
		if (i % 2 == 1) {
			client_write_wait(&w[i - 1]);
			client_write_wait(&w[i]);
		}
	}
	o.commit_error = client_commit(engine_reactor(env.engine, 0), f,
				       &o.commit_verifier);
	for (unsigned i = 0; i < 6; i++)
		o.write[i] = w[i].io;
	o.told = atomic_load(&env.told);
	return o;
}

/* The prefix that was told is there, read past the engine. */
static void
check_content(const struct outcome *o, int fd)
{
	uint8_t *p = malloc(RECORD);

	assert_non_null(p);
	for (unsigned i = 0; i < 6; i++) {
		uint32_t n = o->write[i].written;

		if (o->write[i].error != 0) {
			assert_int_equal(n, 0);
			continue;
		}
		assert_in_range(n, 1, RECORD);
		assert_int_equal(pread(fd, p, n, (off_t)i * RECORD), n);
		assert_int_equal(
			pattern_check(p, (uint64_t)i * RECORD, n, i + 1), n);
	}
	free(p);
}

static void
check_errors(const struct outcome *o, int error)
{
	for (unsigned i = 0; i < 6; i++) {
		const struct io_write *w = &o->write[i];

		assert_true(w->error == 0 || w->error == error);
		if (w->error == 0)
			assert_true(w->committed >= w->stable);
	}
	assert_true(o->commit_error == 0 || o->commit_error == error);
}

static bool
all_well(const struct outcome *o)
{
	for (unsigned i = 0; i < 6; i++)
		if (o->write[i].error != 0 || o->write[i].written != RECORD)
			return false;
	return o->commit_error == 0;
}

/* A failed sync moves the verifier, and is told once. */
static void
check_verifier(const struct outcome *o)
{
	bool moved = volume_verifier(env.volume) != o->first_verifier;

	assert_int_equal(moved, o->told > 0);
	if (o->commit_error == 0)
		assert_int_equal(o->commit_verifier,
				 volume_verifier(env.volume));
}

/* Run the script with the n-th operation struck, n from 1 on. */
static void
each_operation(const char *kind, const char *what, int error)
{
	char spec[64];
	unsigned n;

	for (n = 1; n < ROUNDS; n++) {
		struct outcome o;
		struct file *f;
		uint64_t hits;

		(void)snprintf(spec, sizeof(spec), "%s:%u:%s", kind, n, what);
		start(spec);
		f = create_named(env.engine, env.volume, "f");
		o = script(f);
		hits = fault_hits();
		check_content(&o, file_fd(f));
		check_errors(&o, error);
		check_verifier(&o);
		if (hits == 0) /* what follows may be struck: no matter */
			assert_true(all_well(&o));
		else /* service goes on */
			(void)write_all(engine_reactor(env.engine, 0), f, 7,
					RECORD, 9, IO_FILE_SYNC);
		file_put(f);
		(void)file_close_all(env.engine, NULL, in_seconds(60));
		assert_int_equal(file_count(env.engine), 0);
		stop();
		if (hits == 0)
			break;
	}
	assert_in_range(n, 3, ROUNDS - 1);
}

static void
writes_fail(void **state)
{
	(void)state;
	each_operation("write", "EIO", -EIO);
	each_operation("write", "ENOSPC", -ENOSPC);
	each_operation("write", "EDQUOT", -EDQUOT);
}

/* What is not a client's business is done again, or otherwise. */
static void
writes_are_done_otherwise(void **state)
{
	(void)state;
	each_operation("write", "EINTR", 0);
	each_operation("write", "EAGAIN", 0);
	each_operation("write", "short", 0);
	each_operation("write", "late=5", 0);
	each_operation("write", "delay=5", 0);
	each_operation("write", "ECANCELED", -EIO);
}

static void
syncs_fail(void **state)
{
	(void)state;
	each_operation("fsync", "EIO", -EIO);
	each_operation("fsync", "ENOSPC", -ENOSPC);
	each_operation("fsync", "delay=20", 0);
}

/* O_DIRECT is refused after all: the middle goes through the page cache. */
static void
direct_refused(void **state)
{
	struct file *f;
	uint64_t fallbacks;
	uint8_t *p = malloc(RECORD);

	(void)state;
	start("write:1:EINVAL");
	f = create_named(env.engine, env.volume, "f");
	fallbacks = counted(&volume_counters(env.volume)->fallbacks);
	/* It extends the file, so the ring does not try by itself again; and
	 * it is not stable, else it went through the page cache. */
	(void)write_all(engine_reactor(env.engine, 0), f, 4096, 65536, 3,
			IO_UNSTABLE);
	assert_int_equal(counted(&volume_counters(env.volume)->fallbacks),
			 fallbacks + 1);
	assert_int_equal(pread(file_fd(f), p, 65536, 4096), 65536);
	assert_int_equal(pattern_check(p, 4096, 65536, 3), 65536);
	(void)write_all(engine_reactor(env.engine, 0), f, 5, RECORD, 4,
			IO_UNSTABLE);
	assert_int_equal(
		counted(&volume_counters(env.volume)->writes[SPLIT_NO_DIRECT]),
		1);
	free(p);
	file_put(f);
	assert_int_equal(file_close_all(env.engine, NULL, in_seconds(60)), 0);
	stop();
}

/* After a failed sync no half page counts as written. */
static void
failure_forgets_edges(void **state)
{
	struct reactor *r;
	struct file *f;

	(void)state;
	start("fsync:1:EIO");
	r = engine_reactor(env.engine, 0);
	f = create_named(env.engine, env.volume, "f");
	(void)write_all(r, f, 100, RECORD, 1, IO_UNSTABLE);
	assert_true(counted(&volume_counters(env.volume)->edge_spans) > 0);
	assert_int_equal(client_commit(r, f, NULL), -EIO);
	assert_int_equal(counted(&volume_counters(env.volume)->edge_spans), 0);
	assert_int_equal(client_commit(r, f, NULL), 0);
	file_put(f);
	assert_int_equal(file_close_all(env.engine, NULL, in_seconds(60)), 0);
	stop();
}

/* A sync fails while the pieces of two WRITEs are on their way: the stable one
 * fails although its own sync is good, the other has the old verifier. */
static void
on_the_way_while_failing(void **state)
{
	struct client_write stable = { .gen = 1 }, unstable = { .gen = 2 };
	struct reactor *r;
	struct file *f;

	(void)state;
	start("write:1:delay=300:*;fsync:1:EIO");
	r = engine_reactor(env.engine, 0);
	f = create_named(env.engine, env.volume, "f");
	stable.io.stable = IO_FILE_SYNC;
	client_write_start(&stable, r, f, 0, RECORD);
	client_write_start(&unstable, r, f, 2ull * RECORD, RECORD);
	usleep(50000);
	assert_int_equal(client_commit(r, f, NULL), -EIO);
	client_write_wait(&stable);
	client_write_wait(&unstable);
	assert_int_equal(stable.io.error, -EIO);
	assert_int_equal(stable.io.written, 0);
	assert_int_equal(unstable.io.error, 0);
	assert_true(unstable.io.verifier != volume_verifier(env.volume));
	file_put(f);
	assert_int_equal(file_close_all(env.engine, NULL, in_seconds(60)), 0);
	stop();
}

/* reads ------------------------------------------------------------------- */

static void
read_under(const char *what, int error)
{
	static const struct {
		uint64_t offset;
		uint32_t bytes;
	} reads[] = {
		{ 0, 65536 },
		{ 100, 3000 },
		{ 4097, 200001 },
		{ 299000, 9999 },
	};
	uint32_t size = 300001;
	uint8_t *p = malloc(size);
	char spec[64];

	for (unsigned n = 1; n < ROUNDS; n++) {
		struct file *f;
		uint64_t hits;

		(void)snprintf(spec, sizeof(spec), "read:%u:%s", n, what);
		start(spec);
		f = create_named(env.engine, env.volume, "f");
		(void)write_all(engine_reactor(env.engine, 0), f, 0, size, 6,
				IO_FILE_SYNC);
		for (unsigned i = 0; i < 4; i++) {
			struct client_read r = { 0 };
			uint32_t want = reads[i].bytes;

			if (want > size - reads[i].offset)
				want = (uint32_t)(size - reads[i].offset);
			client_read(&r, engine_reactor(env.engine, 1), f,
				    reads[i].offset, reads[i].bytes, p);
			assert_true(r.io.error == 0 || r.io.error == error);
			if (r.io.error != 0)
				continue;
			assert_int_equal(r.io.got, want);
			assert_int_equal(r.io.eof,
					 reads[i].offset + want == size);
			assert_int_equal(
				pattern_check(p, reads[i].offset, want, 6),
				want);
		}
		hits = fault_hits();
		file_put(f);
		assert_int_equal(
			file_close_all(env.engine, NULL, in_seconds(60)), 0);
		stop();
		if (hits == 0) {
			assert_in_range(n, 5, ROUNDS - 1);
			break;
		}
	}
	free(p);
}

static void
reads_fail_or_go_on(void **state)
{
	(void)state;
	read_under("EIO", -EIO);
	read_under("EINTR", 0);
	read_under("EAGAIN", 0);
	read_under("EINVAL", -EINVAL);
	read_under("short", 0);
	read_under("late=5", 0);
}

static void
no_place(void **state)
{
	(void)state;
	print_message("skip: %s\n", env.why);
	skip();
}

static int
run_backend(enum io_backend backend, const char *name)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_fail),
		cmocka_unit_test(writes_are_done_otherwise),
		cmocka_unit_test(syncs_fail),
		cmocka_unit_test(direct_refused),
		cmocka_unit_test(failure_forgets_edges),
		cmocka_unit_test(on_the_way_while_failing),
		cmocka_unit_test(reads_fail_or_go_on),
	};
	const struct CMUnitTest missing[] = { cmocka_unit_test(no_place) };

	env.backend = backend;
	if (env.why != NULL)
		return cmocka_run_group_tests_name(name, missing, NULL, NULL);
	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

/* On XFS the ring writes edges itself, elsewhere workers do. */
static int
run_on(const char *kind)
{
	struct loop_fs fs;
	int failed;

	env.why = loop_fs_make(&fs, kind, 4096, 512ull << 20, 512ull << 20);
	env.dir = fs.mount;
	failed = run_backend(IO_BACKEND_URING, "uring") +
		 run_backend(IO_BACKEND_THREADS, "threads");
	env.dir = NULL; /* it points into fs */
	env.why = NULL;
	loop_fs_remove(&fs);
	return failed;
}

int
main(void)
{
	return run_on("xfs") + run_on("ext4");
}
