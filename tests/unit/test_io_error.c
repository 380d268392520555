/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Write-back that fails. The device is a loop device whose image lies in a
 * tmpfs without room: every block of the image is there but those of the test's
 * file, which were punched out, so that data has no place and metadata has. The
 * truth is read from the image itself, past every cache: what was acknowledged
 * as stable has to be there, the verifier has to have moved, and with room
 * again all goes on.
 */
#include "io_client.h"
#include "loop_fs.h"

#include <linux/fiemap.h>
#include <linux/fs.h>

#define MIB         (1u << 20)
#define IMAGE_BYTES ((uint64_t)320 * MIB)
#define TMPFS_BYTES (IMAGE_BYTES + (uint64_t)8 * MIB)
#define FILE_BYTES  ((uint64_t)32 * MIB)
#define ROOM_BYTES  ((off_t)6 * MIB)
#define RECORD      20011u
#define RECORDS     1024u
#define WRITERS     8u
#define BATCH       4u
#define EXTENTS_MAX 64u

struct extent {
	uint64_t logical, physical, bytes;
};

static struct {
	const char *kind;
	const char *why; /* it cannot be tested */
	struct loop_fs fs;
	struct engine *engine;
	struct volume *volume;
	struct extent extent[EXTENTS_MAX];
	unsigned extents;
	_Atomic unsigned told;   /* on_error calls */
	_Atomic unsigned failed; /* WRITEs and COMMITs */
	_Atomic bool safe[RECORDS];
	uint32_t gen;
} env;

static void
on_error(struct volume *v, const char *what, int error)
{
	assert(v == env.volume && what != NULL && error < 0);
	atomic_fetch_add(&env.told, 1);
}

/* the device --------------------------------------------------------------- */

static void
map_file(int fd)
{
	size_t size = sizeof(struct fiemap) +
		      EXTENTS_MAX * sizeof(struct fiemap_extent);
	struct fiemap *m = calloc(1, size);

	assert_non_null(m);
	m->fm_length = FILE_BYTES;
	m->fm_flags = FIEMAP_FLAG_SYNC;
	m->fm_extent_count = EXTENTS_MAX;
	assert_int_equal(ioctl(fd, FS_IOC_FIEMAP, m), 0);
	assert_in_range(m->fm_mapped_extents, 1, EXTENTS_MAX - 1);
	env.extents = m->fm_mapped_extents;
	for (unsigned i = 0; i < env.extents; i++)
		env.extent[i] = (struct extent){
			.logical = m->fm_extents[i].fe_logical,
			.physical = m->fm_extents[i].fe_physical,
			.bytes = m->fm_extents[i].fe_length,
		};
	free(m);
}

static void
punch_file(void)
{
	int image = open(env.fs.image, O_RDWR | O_CLOEXEC);

	assert_true(image >= 0);
	/* All of it is there from now on ... */
	assert_int_equal(fallocate(image, 0, 0, (off_t)IMAGE_BYTES), 0);
	for (unsigned i = 0; i < env.extents; i++) /* ... but the data */
		assert_int_equal(
			fallocate(image,
				  FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				  (off_t)env.extent[i].physical,
				  (off_t)env.extent[i].bytes),
			0);
	close(image);
}

static void
fill_path(char path[128])
{
	(void)snprintf(path, 128, "%s/fill", env.fs.base);
}

/* Leave so much room, and no more. */
static void
fill_up(void)
{
	char path[128], zeros[4096] = { 0 };
	off_t end;
	int fd;

	fill_path(path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	while (write(fd, zeros, sizeof(zeros)) == (ssize_t)sizeof(zeros))
		;
	end = lseek(fd, 0, SEEK_END);
	assert_true(end > ROOM_BYTES);
	assert_int_equal(ftruncate(fd, end - ROOM_BYTES), 0);
	close(fd);
}

static void
make_room(void)
{
	char path[128];

	fill_path(path);
	assert_int_equal(unlink(path), 0);
}

/* n bytes of the file as the device has them. */
static void
read_truth(int image, uint8_t *p, uint64_t offset, size_t n)
{
	while (n > 0) {
		size_t some = 0;

		for (unsigned i = 0; i < env.extents && some == 0; i++) {
			const struct extent *e = &env.extent[i];
			uint64_t in = offset - e->logical;

			if (offset < e->logical || in >= e->bytes)
				continue;
			some = n < e->bytes - in ? n : (size_t)(e->bytes - in);
			assert_int_equal(pread(image, p, some,
					       (off_t)(e->physical + in)),
					 some);
		}
		assert_true(some > 0);
		p += some;
		offset += some;
		n -= some;
	}
}

static unsigned
check_truth(bool all)
{
	int image = open(env.fs.image, O_RDONLY | O_CLOEXEC);
	uint8_t *p = malloc(RECORD);
	unsigned n = 0;

	assert_true(image >= 0 && p != NULL);
	for (unsigned s = 0; s < RECORDS; s++) {
		if (!all && !atomic_load(&env.safe[s]))
			continue;
		n++;
		read_truth(image, p, (uint64_t)s * RECORD, RECORD);
		if (pattern_check(p, (uint64_t)s * RECORD, RECORD, env.gen) !=
		    RECORD)
			fail_msg("record %u was acknowledged and is lost", s);
	}
	free(p);
	close(image);
	return n;
}

/* clients ------------------------------------------------------------------ */

struct writer {
	pthread_t thread;
	struct file *file;
	unsigned index;
};

static void
note_batch(const unsigned *record, const uint64_t *verifier, unsigned n,
	   uint64_t committed)
{
	for (unsigned i = 0; i < n; i++)
		if (verifier[i] == committed)
			atomic_store(&env.safe[record[i]], true);
		else
			atomic_fetch_add(&env.failed, 1);
}

/* Odd writers: some UNSTABLE WRITEs, then COMMIT, as a client does. */
static void
write_batch(const struct writer *w, unsigned first)
{
	struct reactor *r = engine_reactor(env.engine, w->index / 2 % 2);
	unsigned record[BATCH], n = 0;
	uint64_t verifier[BATCH], committed;

	for (unsigned i = 0; i < BATCH; i++) {
		unsigned s = first + i * WRITERS;
		struct client_write c = { .gen = env.gen };

		if (s >= RECORDS)
			break;
		client_write(&c, r, w->file, (uint64_t)s * RECORD, RECORD);
		if (c.io.error != 0 || c.io.written != RECORD) {
			atomic_fetch_add(&env.failed, 1);
			continue;
		}
		record[n] = s;
		verifier[n++] = c.io.verifier;
	}
	if (client_commit(r, w->file, &committed) == 0)
		note_batch(record, verifier, n, committed);
	else
		atomic_fetch_add(&env.failed, 1);
}

static void
write_stable(const struct writer *w, unsigned s)
{
	struct client_write c = { .gen = env.gen };

	c.io.stable = IO_FILE_SYNC;
	client_write(&c, engine_reactor(env.engine, w->index / 2 % 2), w->file,
		     (uint64_t)s * RECORD, RECORD);
	if (c.io.error == 0 && c.io.written == RECORD &&
	    c.io.committed == IO_FILE_SYNC)
		atomic_store(&env.safe[s], true);
	else
		atomic_fetch_add(&env.failed, 1);
}

static void *
writer_main(void *arg)
{
	const struct writer *w = arg;

	for (unsigned s = w->index; s < RECORDS;) {
		if (w->index % 2 == 0) {
			write_stable(w, s);
			s += WRITERS;
		} else {
			write_batch(w, s);
			s += BATCH * WRITERS;
		}
	}
	return NULL;
}

static void
write_everything(struct file *f)
{
	struct writer w[WRITERS];

	for (unsigned s = 0; s < RECORDS; s++)
		atomic_store(&env.safe[s], false);
	atomic_store(&env.failed, 0);
	for (unsigned i = 0; i < WRITERS; i++) {
		w[i] = (struct writer){ .file = f, .index = i };
		assert_int_equal(
			pthread_create(&w[i].thread, NULL, writer_main, &w[i]),
			0);
	}
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(w[i].thread, NULL);
}

/* tests -------------------------------------------------------------------- */

/* The file's blocks exist in the file system, written, so that writing them
 * again changes no metadata. */
static void
prepare_file(void)
{
	int fd = openat(volume_root_fd(env.volume), "f",
			O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	uint8_t *zeros = calloc(1, MIB);

	assert_true(fd >= 0 && zeros != NULL);
	for (uint64_t at = 0; at < FILE_BYTES; at += MIB)
		assert_int_equal(pwrite(fd, zeros, MIB, (off_t)at), MIB);
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(syncfs(fd), 0);
	map_file(fd);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	free(zeros);
	close(fd);
}

static void
nothing_acknowledged_is_lost(void **state)
{
	struct volume_counters *c = volume_counters(env.volume);
	uint64_t first = volume_verifier(env.volume), before;
	struct file *f;
	unsigned safe;

	(void)state;
	prepare_file();
	f = open_named(env.engine, env.volume, "f");
	for (env.gen = 1; env.gen <= 5; env.gen++) {
		punch_file();
		fill_up();
		before = volume_verifier(env.volume);
		write_everything(f);
		safe = check_truth(false);
		print_message(
			"round %u: %u safe, %u failed, %llu verifiers\n",
			env.gen, safe, atomic_load(&env.failed),
			(unsigned long long)counted(&c->verifier_changes));
		assert_true(safe > 0 && safe < RECORDS);
		assert_true(volume_verifier(env.volume) != before);
		make_room();
	}
	assert_true(volume_verifier(env.volume) != first);
	assert_int_equal(atomic_load(&env.told), counted(&c->verifier_changes));
	/* With room, clients send again what was not acknowledged. */
	write_everything(f);
	assert_int_equal(atomic_load(&env.failed), 0);
	assert_int_equal(check_truth(true), RECORDS);
	file_put(f);
	assert_int_equal(file_close_all(env.engine, NULL, in_seconds(60)), 0);
}

/* A file that nobody asks to sync leaves the cache: its failure is told. */
static void
closing_tells(void **state)
{
	struct file *f = open_named(env.engine, env.volume, "f");
	uint64_t verifier = volume_verifier(env.volume);
	unsigned told = atomic_load(&env.told);

	(void)state;
	env.gen = 77;
	punch_file();
	fill_up();
	/* More than there is room for, through the page cache. */
	for (unsigned i = 0; i < 1600; i++) {
		struct client_write c = { .gen = 77 };

		client_write(&c, engine_reactor(env.engine, 0), f,
			     (uint64_t)i * 8192 + 100, 4000);
		assert_int_equal(c.io.error, 0);
		if (volume_verifier(env.volume) != verifier)
			break; /* a flush has told it already */
	}
	file_put(f);
	(void)file_close_all(env.engine, NULL, in_seconds(60));
	assert_int_equal(file_count(env.engine), 0);
	assert_true(volume_verifier(env.volume) != verifier);
	assert_true(atomic_load(&env.told) > told);
	make_room();
}

static int
set_up(void **state)
{
	struct engine_config config = { .backend = IO_BACKEND_URING,
					.reactors = 2,
					.workers = 2,
					.io_workers = 4,
					.buffer_bytes = 16u << 20,
					.on_error = on_error };

	(void)state;
	assert_int_equal(engine_new(&env.engine, &config), 0);
	env.volume = volume_at(env.engine, env.fs.mount, &direct_policy);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	volume_put(env.volume);
	engine_free(env.engine);
	return 0;
}

static void
no_place(void **state)
{
	(void)state;
	print_message("skip: %s\n", env.why);
	skip();
}

static int
run_on(const char *kind)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_acknowledged_is_lost),
		cmocka_unit_test(closing_tells),
	};
	const struct CMUnitTest missing[] = { cmocka_unit_test(no_place) };
	int failed;

	memset(&env, 0, sizeof(env));
	env.kind = kind;
	env.why = loop_fs_make(&env.fs, kind, 4096, IMAGE_BYTES, TMPFS_BYTES);
	if (env.why == NULL && !loop_one_page_at_a_time(&env.fs))
		env.why = "requests of the loop device cannot be bounded";
	if (env.why != NULL)
		failed = cmocka_run_group_tests_name(kind, missing, NULL, NULL);
	else
		failed = cmocka_run_group_tests_name(kind, tests, set_up,
						     tear_down);
	loop_fs_remove(&env.fs);
	return failed;
}

int
main(void)
{
	return run_on("xfs") + run_on("ext4");
}
