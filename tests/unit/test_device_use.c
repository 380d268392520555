/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the facts of a device change in the engine, on a real file system (XFS
 * with 4096-byte blocks on a loop device) whose device is what a made sysfs
 * says of it: how much direct I/O is in flight, and how a stable WRITE is
 * synced.
 */
#include "io/device.h"

#include "io_client.h"
#include "loop_fs.h"
#include "tests/unit/made_sysfs.h"

#include <sys/sysmacros.h>

#define MIB         (1ull << 20)
#define IMAGE_BYTES (512 * MIB)
#define WRITES      64u
#define WRITE_BYTES (1u << 20)

static struct {
	struct loop_fs fs;
	dev_t dev;
	struct engine *engine;
	struct volume *volume;
	const char *why;
} env;

static void
must_run(void)
{
	if (env.why == NULL)
		return;
	print_message("skipped: %s\n", env.why);
	skip();
}

/* A fresh engine and volume: what sysfs says is read when it opens. */
static void
open_volume(const struct io_policy *policy)
{
	const struct engine_config config = { .backend = IO_BACKEND_URING,
					      .reactors = 2,
					      .workers = 2,
					      .io_workers = 2,
					      .buffer_bytes = 64u << 20,
					      .sysfs = sysfs_root() };

	assert_int_equal(engine_new(&env.engine, &config), 0);
	env.volume = volume_at(env.engine, env.fs.mount, policy);
}

static void
close_volume(void)
{
	assert_int_equal(file_close_all(env.engine, env.volume, in_seconds(60)),
			 0);
	volume_put(env.volume);
	engine_free(env.engine);
}

static struct device_state
device_now(void)
{
	struct device_state s = { 0 };

	assert_true(device_state_of(env.engine, env.dev, &s));
	return s;
}

/* slots ----------------------------------------------------------------------
 */

/* All of it at once; the most slots that were seen in use. */
static uint32_t
write_flood(struct file *f)
{
	struct client_write w[WRITES] = { 0 };
	uint32_t most = 0, used;

	for (unsigned i = 0; i < WRITES; i++) {
		w[i].gen = i + 1;
		client_write_start(&w[i], engine_reactor(env.engine, i % 2), f,
				   i * (uint64_t)WRITE_BYTES, WRITE_BYTES);
		used = device_now().slots_used;
		most = used > most ? used : most;
	}
	for (unsigned i = 0; i < WRITES; i++) {
		client_write_wait(&w[i]);
		assert_int_equal(w[i].io.error, 0);
		assert_int_equal(w[i].io.written, WRITE_BYTES);
	}
	return most;
}

static void
read_flood(struct file *f)
{
	struct client_read r = { 0 };
	uint8_t *p = malloc(WRITE_BYTES);

	assert_non_null(p);
	for (unsigned i = 0; i < WRITES; i++) {
		client_read(&r, engine_reactor(env.engine, i % 2), f,
			    i * (uint64_t)WRITE_BYTES, WRITE_BYTES, p);
		assert_int_equal(r.io.error, 0);
		assert_int_equal(r.io.got, WRITE_BYTES);
		assert_int_equal(pattern_check(p, i * (uint64_t)WRITE_BYTES,
					       WRITE_BYTES, i + 1),
				 WRITE_BYTES);
	}
	free(p);
}

/* A device of few requests has few direct pieces in flight; the others wait,
 * are counted, and come to their end. */
static void
few_requests(void **state)
{
	struct device_state s;
	struct file *f;
	uint32_t most;

	(void)state;
	must_run();
	sysfs_put("vdz", "queue/nr_requests", "8");
	sysfs_put("vdz", "queue/max_sectors_kb", "512");
	open_volume(&direct_policy);
	assert_int_equal(volume_facts(env.volume)->slots, 6);
	assert_int_equal(volume_facts(env.volume)->request_bytes, 512u << 10);
	f = create_named(env.engine, env.volume, "few");
	most = write_flood(f);
	s = device_now();
	print_message("%u slots of %u at most, %lu waits, %lu us\n", most,
		      s.slots, s.slot_waits, s.slot_wait_ns / 1000);
	assert_true(most <= 6);
	assert_int_equal(s.slots_used, 0);
	assert_true(s.slot_waits > 0);
	assert_true(s.slot_wait_ns > 0);
	read_flood(f);
	assert_int_equal(device_now().slots_used, 0);
	file_put(f);
	close_volume();
}

static void
many_requests(void **state)
{
	struct file *f;

	(void)state;
	must_run();
	sysfs_put("vdz", "queue/nr_requests", "1023");
	open_volume(&direct_policy);
	assert_int_equal(volume_facts(env.volume)->slots, 767);
	f = create_named(env.engine, env.volume, "many");
	(void)write_flood(f);
	assert_int_equal(device_now().slot_waits, 0);
	assert_int_equal(device_now().slots_used, 0);
	file_put(f);
	close_volume();
}

/* frame ----------------------------------------------------------------------
 */

static int
set_up(void **state)
{
	struct stat st;

	(void)state;
	sysfs_make();
	env.why = loop_fs_make(&env.fs, "xfs", 4096, IMAGE_BYTES,
			       IMAGE_BYTES + 64 * MIB);
	if (env.why != NULL)
		return 0;
	assert_int_equal(stat(env.fs.mount, &st), 0);
	env.dev = st.st_dev;
	sysfs_disk("vdz", env.dev);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	loop_fs_remove(&env.fs);
	sysfs_remove();
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_requests),
		cmocka_unit_test(many_requests),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
