/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that share pages, written by many through the whole engine: contents
 * against what was written, device reads and resident pages after them, syncs
 * that are shared, and each mode.
 */
#include "tests/unit/engine_places.h"

#define RECORD     47008u
#define RECORDS    1024u
#define WRITERS    16u
#define GATE_WORKS 16u /* more than the pool has threads */

/* records: interleaved writers of one file --------------------------------- */

struct writer {
	pthread_t thread;
	struct file *file;
	unsigned index;
	uint32_t record;
	unsigned records;
	enum io_stable stable;
};

static void *
writer_main(void *arg)
{
	struct writer *w = arg;

	for (unsigned s = w->index; s < w->records; s += WRITERS)
		(void)write_all(reactor_of(w->index), w->file,
				(uint64_t)s * w->record, w->record, s + 1,
				w->stable);
	return NULL;
}

static void
write_records(struct file *f, uint32_t record, unsigned records,
	      enum io_stable stable)
{
	struct writer w[WRITERS];

	for (unsigned i = 0; i < WRITERS; i++) {
		w[i] = (struct writer){ .index = i,
					.file = f,
					.record = record,
					.records = records,
					.stable = stable };
		assert_int_equal(
			pthread_create(&w[i].thread, NULL, writer_main, &w[i]),
			0);
	}
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(w[i].thread, NULL);
}

/* By a descriptor of our own: what is in the file, cached or not. */
static void
check_records(int fd, uint32_t record, unsigned records)
{
	uint8_t *p = malloc(record);

	assert_non_null(p);
	for (unsigned s = 0; s < records; s++) {
		assert_int_equal(pread(fd, p, record, (off_t)s * record),
				 record);
		assert_int_equal(
			pattern_check(p, (uint64_t)s * record, record, s + 1),
			record);
	}
	free(p);
}

static void
check_cold(const char *name, uint32_t record, unsigned records)
{
	int fd = openat(volume_root_fd(env.volume), name, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	check_records(fd, record, records);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	check_records(fd, record, records);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	close(fd);
}

/* A sync that has told its WRITE may still drop pages. */
static size_t
resident_when_quiet(int fd, size_t at_most)
{
	size_t n = resident_pages(fd);

	for (int i = 0; i < 2000 && n > at_most; i++) {
		usleep(1000);
		n = resident_pages(fd);
	}
	return n;
}

static void
records_of(uint32_t record, enum io_stable stable, const char *name)
{
	struct volume_counters *c = volume_counters(env.volume);
	struct file *f = create_named(env.engine, env.volume, name);
	uint64_t syncs = counted(&c->syncs);
	uint64_t sectors =
		env.loop ? loop_count(&env.fs, LOOP_SECTORS_READ) : 0;
	uint64_t reads;
	size_t resident;

	write_records(f, record, RECORDS, stable);
	if (stable == IO_UNSTABLE)
		assert_int_equal(client_commit(reactor_of(0), f, NULL), 0);
	syncs = counted(&c->syncs) - syncs;
	resident = resident_when_quiet(file_fd(f), RECORDS / 100);
	reads = env.loop
			? (loop_count(&env.fs, LOOP_SECTORS_READ) - sectors) / 8
			: 0;
	print_message("%s %u: %.3f reads, %zu resident, %.3f syncs a WRITE\n",
		      name, record, (double)reads / RECORDS, resident,
		      (double)syncs / RECORDS);
	if (is_direct()) {
		assert_true(reads <= RECORDS / 100);
		assert_true(resident <= RECORDS / 100);
	}
	if (stable == IO_UNSTABLE)
		assert_int_equal(syncs, 1);
	else
		assert_true(syncs < RECORDS);
	file_put(f);
	check_cold(name, record, RECORDS);
	assert_int_equal(file_close_all(env.engine, env.volume, in_seconds(60)),
			 0);
}

static void
records_stable(void **state)
{
	(void)state;
	records_of(RECORD, IO_FILE_SYNC, "stable");
}

static void
records_unstable(void **state)
{
	(void)state;
	records_of(RECORD, IO_UNSTABLE, "unstable");
}

/* Below direct_min: whole WRITEs of some pages, whose folios straddle. */
static void
small_records(void **state)
{
	(void)state;
	records_of(6000, IO_FILE_SYNC, "small-stable");
	records_of(6000, IO_UNSTABLE, "small-unstable");
	records_of(14001, IO_FILE_SYNC, "middling-stable");
	records_of(14001, IO_UNSTABLE, "middling-unstable");
}

/* Every second record first: each page waits long for its other half. */
static void
neighbours_come_late(void **state)
{
	struct file *f = create_named(env.engine, env.volume, "late");
	uint64_t sectors =
		env.loop ? loop_count(&env.fs, LOOP_SECTORS_READ) : 0;
	uint64_t reads;

	(void)state;
	for (unsigned odd = 0; odd < 2; odd++)
		for (unsigned s = odd; s < RECORDS; s += 2)
			(void)write_all(reactor_of(s), f, (uint64_t)s * RECORD,
					RECORD, s + 1, IO_UNSTABLE);
	assert_int_equal(client_commit(reactor_of(0), f, NULL), 0);
	reads = env.loop
			? (loop_count(&env.fs, LOOP_SECTORS_READ) - sectors) / 8
			: 0;
	print_message("late: %.3f reads\n", (double)reads / RECORDS);
	if (is_direct()) {
		assert_true(reads <= RECORDS / 100);
		assert_true(resident_pages(file_fd(f)) <= RECORDS / 100);
	}
	file_put(f);
	check_cold("late", RECORD, RECORDS);
}

/* While it is shut, the data pool's threads wait at it: no sync begins. */
static struct {
	struct work work[GATE_WORKS];
	sem_t open;
} gate;

static void
gate_run(struct work *w)
{
	(void)w;
	while (sem_wait(&gate.open) < 0)
		;
}

static void
gate_shut(void)
{
	sem_init(&gate.open, 0, 0);
	for (unsigned i = 0; i < GATE_WORKS; i++) {
		gate.work[i].run = gate_run;
		work_submit(env.engine, WORK_DATA, &gate.work[i]);
	}
}

static void
gate_open(void)
{
	for (unsigned i = 0; i < GATE_WORKS; i++)
		sem_post(&gate.open);
}

/* COMMITs that come before any of them is served: few syncs, all answered. */
static void
commits_visit(struct reactor *r, void *arg)
{
	struct client_commit *c = arg;

	for (unsigned i = 0; i < WRITERS; i++) {
		c[i].io.reactor = r;
		client_commit_visit(r, &c[i]);
	}
}

static void
syncs_are_shared(void **state)
{
	struct volume_counters *n = volume_counters(env.volume);
	struct file *f = create_named(env.engine, env.volume, "shared");
	struct client_commit c[WRITERS] = { 0 };
	uint64_t syncs = counted(&n->syncs), asked = counted(&n->sync_requests);

	(void)state;
	(void)write_all(reactor_of(0), f, 0, MIB, 1, IO_UNSTABLE);
	for (unsigned i = 0; i < WRITERS; i++) {
		c[i].io.file = f;
		sem_init(&c[i].done, 0, 0);
	}
	gate_shut();
	visit(reactor_of(0), commits_visit, c);
	gate_open();
	for (unsigned i = 0; i < WRITERS; i++) {
		while (sem_wait(&c[i].done) < 0)
			;
		assert_int_equal(c[i].io.error, 0);
		assert_int_equal(c[i].io.verifier, volume_verifier(env.volume));
	}
	assert_int_equal(counted(&n->sync_requests) - asked, WRITERS);
	syncs = counted(&n->syncs) - syncs;
	assert_in_range(syncs, 1, 2);
	file_put(f);
}

/* A file that a local reader warmed stays so where we wrote nothing. */
static void
warm_pages_stay(void **state)
{
	struct file *f = create_named(env.engine, env.volume, "warm");
	uint32_t size = 8 * MIB;
	uint8_t *p = calloc(1, size);
	int fd = openat(volume_root_fd(env.volume), "warm", O_RDWR | O_CLOEXEC);
	size_t before, after;

	(void)state;
	assert_true(p != NULL && fd >= 0);
	assert_int_equal(pwrite(fd, p, size, 0), size);
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(pread(fd, p, size, 0), size);
	before = resident_pages(fd);
	assert_int_equal(before, size / PAGE);
	for (unsigned i = 0; i < 16; i++)
		(void)write_all(reactor_of(i), f,
				2 * MIB + (uint64_t)i * RECORD, RECORD, 1,
				IO_FILE_SYNC);
	assert_int_equal(client_commit(reactor_of(0), f, NULL), 0);
	after = resident_pages(fd);
	print_message("warm: %zu of %zu pages stay\n", after, before);
	/* Direct I/O invalidates whole folios, of up to 2 MiB. */
	assert_true(after >= before - 2 * MIB / PAGE);
	close(fd);
	free(p);
	file_put(f);
}

/* each mode ---------------------------------------------------------------- */

static void
all_modes(void **state)
{
	(void)state;
	for (int m = IO_BUFFERED; m <= IO_DIRECT; m++)
		for (int e = IO_EDGES_DROP; e <= IO_EDGES_BUFFERED; e++) {
			struct io_policy p = { .read_mode = (enum io_mode)m,
					       .write_mode = (enum io_mode)m,
					       .edges = (enum io_edges)e,
					       .stable_floor =
						       e == 1 ? IO_DATA_SYNC
							      : IO_UNSTABLE };
			struct file *f =
				create_named(env.engine, env.volume, "modes");

			(void)volume_set_policy(env.volume, &p);
			write_records(f, RECORD, 100, IO_UNSTABLE);
			for (unsigned s = 0; s < 100; s++)
				check_read(f, (uint64_t)s * RECORD, RECORD,
					   100ull * RECORD, s + 1);
			check_cold("modes", RECORD, 100);
			file_put(f);
		}
	(void)volume_set_policy(env.volume, &direct_policy);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_stable),
		cmocka_unit_test(records_unstable),
		cmocka_unit_test(small_records),
		cmocka_unit_test(neighbours_come_late),
		cmocka_unit_test(syncs_are_shared),
		cmocka_unit_test(all_modes),
		cmocka_unit_test(warm_pages_stay), /* direct I/O only */
	};
	const size_t count = sizeof(tests) / sizeof(tests[0]);

	return run_places(tests, count, count - 1);
}
