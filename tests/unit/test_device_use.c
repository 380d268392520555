/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the facts of a device change in the engine, on a real file system (XFS
 * with 4096-byte blocks on a loop device) whose device is what a made sysfs
 * says of it: how much direct I/O is in flight, and how a stable WRITE is
 * synced.
 */
#include "io/device.h"
#include "io/write.h"

#include "io_client.h"
#include "loop_fs.h"
#include "tests/unit/made_sysfs.h"

#include <sys/sysmacros.h>

#define MIB         (1ull << 20)
#define IMAGE_BYTES (512 * MIB)
#define RECORD      47008u
#define RECORDS     128u
#define WRITES      64u
#define WRITE_BYTES (1u << 20)

static struct {
	struct loop_fs fs;
	dev_t dev;
	int root;
	struct engine *engine;
	struct volume *volume;
	const char *why;
} env;

static void
must_run(void)
{
	if (env.why == NULL)
		return;
	print_message("skip: %s\n", env.why);
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

/* What is there already is written side by side. */
static struct file *
make_filled(const char *name)
{
	struct file *f = create_named(env.engine, env.volume, name);

	for (unsigned i = 0; i < WRITES; i++)
		(void)write_all(engine_reactor(env.engine, i % 2), f,
				i * (uint64_t)WRITE_BYTES, WRITE_BYTES, 99,
				IO_UNSTABLE);
	return f;
}

/* All of it at once; hold: and not before all have come. The most slots that
 * were seen in use after that. */
static uint32_t
write_flood(struct file *f, bool hold)
{
	struct device_slots *slots = volume_slots(env.volume);
	uint32_t all = hold ? device_slots_force(slots, UINT32_MAX) : 0;
	struct client_write w[WRITES] = { 0 };
	uint32_t most = 0, used;

	for (unsigned i = 0; i < WRITES; i++) {
		w[i].gen = i + 1;
		client_write_start(&w[i], engine_reactor(env.engine, i % 2), f,
				   i * (uint64_t)WRITE_BYTES, WRITE_BYTES);
	}
	device_slots_give(slots, all);
	for (unsigned i = 0; i < WRITES; i++) {
		used = device_now().slots_used;
		most = used > most ? used : most;
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
	f = make_filled("few");
	most = write_flood(f, true);
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
	f = make_filled("many");
	(void)write_flood(f, false);
	assert_int_equal(device_now().slot_waits, 0);
	assert_int_equal(device_now().slots_used, 0);
	file_put(f);
	close_volume();
}

/* pieces ---------------------------------------------------------------------
 */

/* Where the pieces of a middle from 100 KiB to 2 MiB end, in KiB; 0 ends. */
static void
check_pieces_of(bool extending, const char *max_kb, const char *chunk_sectors,
		const unsigned ends[])
{
	struct io_write w = { .split.middle = { 100u << 10, 1948u << 10 },
			      .extending = extending };

	sysfs_put("vdz", "queue/max_hw_sectors_kb", max_kb);
	sysfs_put("vdz", "queue/chunk_sectors", chunk_sectors);
	open_volume(&direct_policy);
	w.file = create_named(env.engine, env.volume, "pieces");
	w.middle_next = w.split.middle.offset;
	for (unsigned i = 0; ends[i] != 0; i++) {
		w.middle_next += write_chunk_bytes(&w);
		assert_int_equal(w.middle_next, (uint64_t)ends[i] << 10);
	}
	file_put(w.file);
	close_volume();
	assert_int_equal(unlinkat(env.root, "pieces", 0), 0);
}

static void
check_pieces(const char *max_kb, const char *chunk_sectors,
	     const unsigned ends[])
{
	check_pieces_of(false, max_kb, chunk_sectors, ends);
}

static void
pieces(void **state)
{
	(void)state;
	must_run();
	check_pieces("2048", "0", (unsigned[]){ 2048, 0 });
	check_pieces("768", "0", (unsigned[]){ 868, 1636, 2048, 0 });
	check_pieces("768", "1024", (unsigned[]){ 512, 1024, 1536, 2048, 0 });
	check_pieces("2048", "2048", (unsigned[]){ 2048, 0 });
	check_pieces("1280", "2048", (unsigned[]){ 1024, 2048, 0 });
	/* What extends the file goes in one. */
	check_pieces_of(true, "768", "1024", (unsigned[]){ 2048, 0 });
	sysfs_put("vdz", "queue/chunk_sectors", "0");
}

/* a coarse cut ----------------------------------------------------------------
 */

static void
check_records(int fd, unsigned records)
{
	uint8_t *p = malloc(RECORD);

	assert_non_null(p);
	for (unsigned i = 0; i < records; i++) {
		assert_int_equal(pread(fd, p, RECORD, (off_t)i * RECORD),
				 RECORD);
		assert_int_equal(
			pattern_check(p, i * (uint64_t)RECORD, RECORD, i + 1),
			RECORD);
	}
	free(p);
}

/* Records that share blocks of 16 KiB, 32 at a time: the edges are up to four
 * pages then, and still every byte is there, in the cache and on the device. */
static void
coarse_cut(void **state)
{
	struct client_write w[RECORDS] = { 0 };
	const struct volume_counters *c;
	struct file *f;
	int fd;

	(void)state;
	must_run();
	sysfs_put("vdz", "queue/physical_block_size", "16384");
	open_volume(&direct_policy);
	sysfs_put("vdz", "queue/physical_block_size", "4096");
	assert_int_equal(volume_facts(env.volume)->cut_bytes, 16384);
	c = volume_counters(env.volume);
	f = create_named(env.engine, env.volume, "coarse");
	assert_int_equal(f->facts.cut, 16384);
	for (unsigned i = 0; i < RECORDS; i++) {
		w[i].gen = i + 1;
		w[i].io.stable = i % 3 == 0 ? IO_FILE_SYNC : IO_UNSTABLE;
		client_write_start(&w[i], engine_reactor(env.engine, i % 2), f,
				   i * (uint64_t)RECORD, RECORD);
	}
	for (unsigned i = 0; i < RECORDS; i++) {
		client_write_wait(&w[i]);
		assert_int_equal(w[i].io.error, 0);
	}
	assert_true(counted(&c->writes[SPLIT_YES]) > RECORDS / 4);
	assert_true(counted(&c->direct_bytes) % 16384 == 0);
	assert_int_equal(client_commit(engine_reactor(env.engine, 0), f, NULL),
			 0);
	file_put(f);
	close_volume();
	fd = openat(env.root, "coarse", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	check_records(fd, RECORDS);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	check_records(fd, RECORDS);
	close(fd);
	assert_int_equal(unlinkat(env.root, "coarse", 0), 0);
}

/* how a stable WRITE is synced ------------------------------------------------
 */

struct told {
	uint64_t through, syncs;
	enum io_stable committed;
};

/* A sync that has told its WRITE may still drop pages. */
static void
wait_idle(struct file *f)
{
	while (!sync_idle(f))
		usleep(100);
}

/* A lone aligned WRITE over what is there. */
static struct told
rewrite(enum io_stable stable, uint64_t offset, uint32_t bytes)
{
	const struct volume_counters *c = volume_counters(env.volume);
	struct file *f = open_named(env.engine, env.volume, "stable");
	struct client_write w = { .gen = 9 };
	struct told t = { .through = counted(&c->writes_through),
			  .syncs = counted(&c->syncs) };

	wait_idle(f);
	w.io.stable = stable;
	client_write(&w, engine_reactor(env.engine, 0), f, offset, bytes);
	assert_int_equal(w.io.error, 0);
	assert_int_equal(w.io.written, bytes);
	t.through = counted(&c->writes_through) - t.through;
	t.syncs = counted(&c->syncs) - t.syncs;
	t.committed = w.io.committed;
	file_put(f);
	return t;
}

static void
make_file(void)
{
	struct file *f = create_named(env.engine, env.volume, "stable");

	(void)write_all(engine_reactor(env.engine, 0), f, 0, 1u << 20, 8,
			IO_FILE_SYNC);
	file_put(f);
}

/* cache and fua as the device's sysfs has them; true: by RWF_DSYNC. */
static void
check_sync(const char *cache, const char *fua, bool through)
{
	struct told t;

	sysfs_put("vdz", "queue/write_cache", cache);
	sysfs_put("vdz", "queue/fua", fua);
	open_volume(&direct_policy);
	make_file();
	t = rewrite(IO_DATA_SYNC, 65536, 131072);
	assert_int_equal(t.through, through);
	assert_int_equal(t.syncs, !through);
	assert_int_equal(t.committed, IO_DATA_SYNC);
	/* More than data, more than a middle, a new end: always a sync. */
	t = rewrite(IO_FILE_SYNC, 65536, 131072);
	assert_int_equal(t.through, 0);
	assert_int_equal(t.syncs, 1);
	assert_int_equal(t.committed, IO_FILE_SYNC);
	t = rewrite(IO_DATA_SYNC, 65536 + 100, 131072);
	assert_int_equal(t.through, 0);
	assert_int_equal(t.syncs, 1);
	t = rewrite(IO_DATA_SYNC, 1u << 20, 131072);
	assert_int_equal(t.through, 0);
	assert_int_equal(t.syncs, 1);
	close_volume();
	assert_int_equal(unlinkat(env.root, "stable", 0), 0);
}

static void
sync_choice(void **state)
{
	(void)state;
	must_run();
	check_sync("write back", "0", false);
	check_sync("write back", "1", true);
	check_sync("write through", "0", true);
}

/* torn-free ------------------------------------------------------------------
 */

static int
write_whole(struct file *f, uint64_t offset, uint32_t bytes)
{
	struct client_write w = { .gen = 3 };

	w.io.stable = IO_FILE_SYNC;
	client_write(&w, engine_reactor(env.engine, 0), f, offset, bytes);
	assert_true(w.io.error != 0 || w.io.written == bytes);
	return w.io.error;
}

static void
open_torn_free(void)
{
	struct io_policy policy = direct_policy;

	policy.torn_free = true;
	open_volume(&policy);
	assert_null(volume_refuses(env.volume, &direct_policy));
}

/* What cannot be written whole fails: it is not written otherwise. All else is
 * as ever. */
static void
torn_free_or_not_at_all(void **state)
{
	const struct volume_counters *c;
	struct file *f;

	(void)state;
	must_run();
	open_torn_free();
	c = volume_counters(env.volume);
	f = create_named(env.engine, env.volume, "whole");
	/* This file could not, although the volume might. */
	f->facts.atomic_min = f->facts.atomic_max = 0;
	assert_int_equal(write_whole(f, 65536, 65536), 0);
	assert_int_equal(counted(&c->writes[SPLIT_ATOMIC]), 0);
	assert_int_equal(counted(&c->writes_tearable),
			 volume_facts(env.volume)->atomic_bytes_max >= 65536);
	/* More than any kernel takes, whatever this one says. */
	f->facts.atomic_min = 4096;
	f->facts.atomic_max = 4u << 20;
	assert_int_equal(write_whole(f, 4u << 20, 4u << 20), -EIO);
	assert_int_equal(counted(&c->writes[SPLIT_ATOMIC]), 1);
	assert_int_equal(write_whole(f, 4096, 65536), 0);
	assert_int_equal(write_whole(f, 65536, 131072 + 4096), 0);
	assert_int_equal(write_whole(f, 65536, 47008), 0);
	assert_int_equal(counted(&c->writes[SPLIT_ATOMIC]), 1);
	assert_false(atomic_load(&f->direct_refused));
	file_put(f);
	close_volume();
	assert_int_equal(unlinkat(env.root, "whole", 0), 0);
}

static void
check_whole_file(void)
{
	struct file *f = open_named(env.engine, env.volume, "whole");
	struct client_read r = { 0 };
	uint8_t *p = malloc(65536);

	assert_non_null(p);
	for (uint64_t at = 0; at < 1048576; at += 65536) {
		client_read(&r, engine_reactor(env.engine, 0), f, at, 65536, p);
		assert_int_equal(r.io.got, 65536);
		assert_int_equal(pattern_check(p, at, 65536, 3), 65536);
	}
	free(p);
	file_put(f);
}

/* Where this kernel has atomic writes on the file system (XFS from Linux 6.16
 * on has them on any device): they are taken, over what is there and beyond. */
static void
torn_free(void **state)
{
	const struct volume_counters *c;
	struct file *f;

	(void)state;
	must_run();
	open_torn_free();
	c = volume_counters(env.volume);
	if (volume_facts(env.volume)->atomic_bytes_max < 65536) {
		print_message("skip: %s\n",
			      volume_facts(env.volume)->atomic_why);
		close_volume();
		skip();
	}
	f = create_named(env.engine, env.volume, "whole");
	for (int round = 0; round < 2; round++) {
		for (uint64_t at = 0; at < 1048576; at += 65536)
			assert_int_equal(write_whole(f, at, 65536), 0);
		assert_int_equal(write_whole(f, 12288, 4096), 0);
	}
	assert_int_equal(counted(&c->writes[SPLIT_ATOMIC]), 34);
	file_put(f);
	check_whole_file();
	close_volume();
	assert_int_equal(unlinkat(env.root, "whole", 0), 0);
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
	env.root = open(env.fs.mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(env.root >= 0);
	sysfs_disk("vdz", env.dev);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	if (env.why == NULL)
		close(env.root);
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
		cmocka_unit_test(pieces),
		cmocka_unit_test(coarse_cut),
		cmocka_unit_test(sync_choice),
		cmocka_unit_test(torn_free_or_not_at_all),
		cmocka_unit_test(torn_free),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
