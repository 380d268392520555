/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data calls through the whole engine, on real file systems: contents
 * against what was written, device reads and resident pages after records that
 * share pages, syncs that are shared, truncation between WRITEs, and random
 * misaligned WRITEs that overlap. Both backends; XFS on 4096- and 512-byte
 * blocks, ext4, and btrfs, each fresh on a loop device; without one, the plain
 * directory /tmp.
 */
#include "io_client.h"
#include "loop_fs.h"

#define RECORD      47008u
#define RECORDS     1024u
#define WRITERS     16u
#define GATE_WORKS  16u /* more than the pool has threads */
#define MIB         (1ull << 20)
#define IMAGE_BYTES (1ull << 30)
#define TILES_MAX   64u

struct place {
	const char *name; /* NULL: /tmp as it is */
	uint32_t block_bytes;
	enum io_backend backend;
};

static struct {
	const struct place *place;
	struct loop_fs fs;
	struct engine *engine;
	struct volume *volume;
	bool loop;
	char dir[128];
	const char *why; /* it cannot be tested */
} env;

static uint64_t
next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed >> 8;
}

static struct reactor *
reactor_of(unsigned n)
{
	return engine_reactor(env.engine, n % 2);
}

/* btrfs takes O_DIRECT and mostly buffers it. */
static bool
is_direct(void)
{
	const char *fs = env.place->name;

	return volume_policy(env.volume).write_mode == IO_DIRECT &&
	       (fs == NULL || strcmp(fs, "btrfs") != 0);
}

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

/* reads -------------------------------------------------------------------- */

static void
check_read(struct file *f, uint64_t offset, uint32_t bytes, uint64_t size,
	   uint32_t gen)
{
	struct client_read r = { 0 };
	uint8_t *p = calloc(1, bytes + 1);
	uint64_t left = offset < size ? size - offset : 0;
	uint32_t want = left < bytes ? (uint32_t)left : bytes;

	assert_non_null(p);
	client_read(&r, reactor_of((unsigned)offset), f, offset, bytes, p);
	assert_int_equal(r.io.error, 0);
	assert_int_equal(r.io.got, want);
	assert_int_equal(r.io.eof, left <= bytes);
	assert_int_equal(pattern_check(p, offset, want, gen), want);
	free(p);
}

static void
reads_of_all_shapes(void **state)
{
	static const uint64_t sizes[] = { 0,     1,      511,    4096,
					  10000, 300001, 3 * MIB };
	uint64_t seed = 99;

	(void)state;
	for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		struct file *f = create_named(env.engine, env.volume, "read");
		uint64_t size = sizes[s];

		if (size > 0)
			(void)write_all(reactor_of(s), f, 0, (uint32_t)size, 5,
					IO_UNSTABLE);
		for (int i = 0; i < 200; i++) {
			uint64_t at = next_random(&seed) % (size + 5000);
			uint32_t n = 1 + (uint32_t)(next_random(&seed) %
						    (i % 2 ? 9000 : 400000));

			if (i % 4 == 0)
				at = at / PAGE * PAGE;
			if (i % 8 == 0)
				n = (n + PAGE - 1) / PAGE * PAGE;
			check_read(f, at, n, size, 5);
		}
		check_read(f, 0, 4 * MIB, size, 5);
		check_read(f, size, 100, size, 5);
		check_read(f, UINT64_MAX, 100, size, 5);
		check_read(f, (uint64_t)INT64_MAX - 10, 100, size, 5);
		check_read(f, 1ull << 63, UINT32_MAX >> 8, size, 5);
		file_put(f);
	}
}

static void
holes_are_zeros(void **state)
{
	struct file *f = create_named(env.engine, env.volume, "hole");
	uint8_t *p = malloc(MIB);
	struct client_read r = { 0 };

	(void)state;
	assert_non_null(p);
	(void)write_all(reactor_of(0), f, 5 * MIB + 77, 100000, 3, IO_UNSTABLE);
	client_read(&r, reactor_of(1), f, 4 * MIB + 1, MIB, p);
	assert_int_equal(r.io.error, 0);
	assert_int_equal(r.io.got, MIB);
	assert_false(r.io.eof);
	for (uint32_t i = 0; i < MIB - 1; i++)
		assert_int_equal(p[i], 0);
	check_read(f, 5 * MIB + 77, 200000, 5 * MIB + 77 + 100000, 3);
	free(p);
	file_put(f);
}

static void
beyond_the_largest_offset(void **state)
{
	struct file *f = create_named(env.engine, env.volume, "large");
	struct client_write w = { .gen = 1 };
	struct stat st;

	(void)state;
	client_write(&w, reactor_of(0), f, (uint64_t)INT64_MAX - 10, 100);
	assert_int_equal(w.io.error, -EFBIG);
	client_write(&w, reactor_of(0), f, UINT64_MAX - 5, 100);
	assert_int_equal(w.io.error, -EFBIG);
	assert_int_equal(fstat(file_fd(f), &st), 0);
	assert_int_equal(st.st_size, 0);
	file_put(f);
}

/* truncation between WRITEs ------------------------------------------------ */

struct cutter {
	pthread_t thread;
	struct file *file;
	_Atomic bool stop;
	unsigned times;
};

/* Cuts the file down to a size that no writer goes below, again and again. */
static void *
cutter_main(void *arg)
{
	struct cutter *c = arg;

	while (!atomic_load(&c->stop)) {
		file_freeze(c->file);
		int r = ftruncate(file_fd(c->file), 3 * MIB);

		assert(r == 0);
		file_thaw(c->file);
		c->times++;
		usleep(2000);
	}
	return NULL;
}

static void
truncation_among_writes(void **state)
{
	struct file *f = create_named(env.engine, env.volume, "cut");
	struct cutter cut = { .file = f };
	uint64_t seed = 5;
	int fd = file_fd(f);
	uint8_t *p = malloc(3 * MIB);

	(void)state;
	assert_non_null(p);
	(void)write_all(reactor_of(0), f, 0, 3 * MIB, 9, IO_UNSTABLE);
	assert_int_equal(pthread_create(&cut.thread, NULL, cutter_main, &cut),
			 0);
	for (int i = 0; i < 300; i++) {
		uint32_t n = 1 + (uint32_t)(next_random(&seed) % 300000);
		uint64_t at = next_random(&seed) % (4 * MIB);

		(void)write_all(reactor_of((unsigned)i), f, at, n, 9,
				i % 3 == 0 ? IO_FILE_SYNC : IO_UNSTABLE);
	}
	atomic_store(&cut.stop, true);
	pthread_join(cut.thread, NULL);
	assert_true(cut.times > 1);
	assert_int_equal(client_commit(reactor_of(0), f, NULL), 0);
	for (int pass = 0; pass < 2; pass++) {
		assert_int_equal(pread(fd, p, 3 * MIB, 0), 3 * MIB);
		assert_int_equal(pattern_check(p, 0, 3 * MIB, 9), 3 * MIB);
		(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	}
	free(p);
	file_put(f);
}

/* random WRITEs, overlapping ----------------------------------------------- */

struct tile {
	uint64_t offset;
	uint32_t bytes, gen;
};

struct chaos {
	struct file *file;
	struct tile tile[TILES_MAX];
	_Atomic unsigned next;
	unsigned tiles;
	_Atomic unsigned failures;
};

static void *
chaos_main(void *arg)
{
	struct chaos *c = arg;
	unsigned i;

	while ((i = atomic_fetch_add(&c->next, 1)) < c->tiles) {
		struct client_write w = { .gen = c->tile[i].gen };

		w.io.stable = i % 4 == 0 ? IO_FILE_SYNC : IO_UNSTABLE;
		client_write(&w, reactor_of(i), c->file, c->tile[i].offset,
			     c->tile[i].bytes);
		if (w.io.error != 0 || w.io.written != c->tile[i].bytes)
			atomic_fetch_add(&c->failures, 1);
	}
	return NULL;
}

/* Each byte is from one of the round's WRITEs over it, or from before. */
static bool
explained(const struct chaos *c, uint8_t byte, uint8_t before, uint64_t at)
{
	bool covered = false;

	for (unsigned i = 0; i < c->tiles; i++) {
		const struct tile *t = &c->tile[i];

		if (at < t->offset || at >= t->offset + t->bytes)
			continue;
		covered = true;
		if (byte == pattern(at, t->gen))
			return true;
	}
	return !covered && byte == before;
}

static void
chaos_round(struct chaos *c, uint64_t *seed, uint32_t span)
{
	pthread_t thread[8];

	for (c->tiles = 0; c->tiles < TILES_MAX; c->tiles++) {
		struct tile *t = &c->tile[c->tiles];
		uint32_t most = c->tiles % 3 == 0   ? 8192
				: c->tiles % 3 == 1 ? 65536
						    : 300 * 1024;

		t->bytes = 1 + (uint32_t)(next_random(seed) % most);
		t->offset = next_random(seed) % (span - t->bytes);
		t->gen = 1 + (uint32_t)(next_random(seed) % 100000);
	}
	atomic_store(&c->next, 0);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(
			pthread_create(&thread[i], NULL, chaos_main, c), 0);
	for (unsigned i = 0; i < 8; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(atomic_load(&c->failures), 0);
}

static void
chaos_check(const struct chaos *c, int fd, uint8_t *shadow, uint8_t *now,
	    uint32_t span)
{
	assert_int_equal(pread(fd, now, span, 0), span);
	for (uint32_t i = 0; i < span; i++)
		if (!explained(c, now[i], shadow[i], i))
			fail_msg("byte %u is wrong", i);
	memcpy(shadow, now, span);
	(void)fdatasync(fd);
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	assert_int_equal(pread(fd, now, span, 0), span);
	assert_memory_equal(now, shadow, span); /* as the device has it */
}

static void
random_overlapping(void **state)
{
	uint32_t span = 2 * MIB;
	uint8_t *shadow = calloc(1, span), *now = malloc(span);
	struct file *f = create_named(env.engine, env.volume, "chaos");
	struct chaos *c = calloc(1, sizeof(*c));
	uint64_t seed = 4711;

	(void)state;
	assert(shadow != NULL && now != NULL && c != NULL);
	assert_int_equal(ftruncate(file_fd(f), span), 0);
	c->file = f;
	for (int round = 0; round < 15; round++) {
		chaos_round(c, &seed, span);
		assert_int_equal(client_commit(reactor_of(0), f, NULL), 0);
		chaos_check(c, file_fd(f), shadow, now, span);
	}
	file_put(f);
	free(shadow);
	free(now);
	free(c);
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

/* -------------------------------------------------------------------------- */

static const char *
find_place(const struct place *p)
{
	const char *why;

	if (p->name == NULL) {
		strcpy(env.dir, "/tmp/nvtest.XXXXXX");
		return mkdtemp(env.dir) == NULL ? "no directory in /tmp" : NULL;
	}
	why = loop_fs_make(&env.fs, p->name, p->block_bytes, IMAGE_BYTES,
			   IMAGE_BYTES + (64u << 20));
	if (why != NULL)
		loop_fs_remove(&env.fs);
	env.loop = why == NULL;
	(void)snprintf(env.dir, sizeof(env.dir), "%s", env.fs.mount);
	return why;
}

static int
set_up(void **state)
{
	(void)state;
	env.engine = engine_make(env.place->backend, 2, 64u << 20);
	env.volume = volume_at(env.engine, env.dir, &direct_policy);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	assert_int_equal(file_close_all(env.engine, env.volume, in_seconds(60)),
			 0);
	assert_int_equal(file_count(env.engine), 0);
	volume_put(env.volume);
	engine_free(env.engine);
	if (env.loop) {
		loop_fs_remove(&env.fs);
	} else {
		const char *const argv[] = { "rm", "-rf", env.dir, NULL };

		(void)run_quietly(argv);
	}
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
run_place(const struct place *p)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_stable),
		cmocka_unit_test(records_unstable),
		cmocka_unit_test(small_records),
		cmocka_unit_test(neighbours_come_late),
		cmocka_unit_test(syncs_are_shared),
		cmocka_unit_test(reads_of_all_shapes),
		cmocka_unit_test(holes_are_zeros),
		cmocka_unit_test(beyond_the_largest_offset),
		cmocka_unit_test(truncation_among_writes),
		cmocka_unit_test(random_overlapping),
		cmocka_unit_test(all_modes),
		cmocka_unit_test(warm_pages_stay), /* direct I/O only */
	};
	const struct CMUnitTest missing[] = { cmocka_unit_test(no_place) };
	bool btrfs = p->name != NULL && strcmp(p->name, "btrfs") == 0;
	char name[64];

	memset(&env, 0, sizeof(env));
	env.place = p;
	(void)snprintf(name, sizeof(name), "%s-%u-%s",
		       p->name == NULL ? "plain" : p->name, p->block_bytes,
		       p->backend == IO_BACKEND_URING ? "uring" : "threads");
	env.why = find_place(p);
	if (env.why != NULL)
		return cmocka_run_group_tests_name(name, missing, NULL, NULL);
	return _cmocka_run_group_tests(name, tests,
				       sizeof(tests) / sizeof(tests[0]) - btrfs,
				       set_up, tear_down);
}

int
main(void)
{
	static const struct place places[] = {
		{ NULL, 0, IO_BACKEND_URING },
		{ "xfs", 4096, IO_BACKEND_URING },
		{ "xfs", 4096, IO_BACKEND_THREADS },
		{ "xfs", 512, IO_BACKEND_URING },
		{ "ext4", 4096, IO_BACKEND_URING },
		{ "ext4", 512, IO_BACKEND_THREADS },
		{ "btrfs", 4096, IO_BACKEND_URING },
	};
	const char *only = getenv("PLACE"); /* an index, to look closer */
	int failed = 0;

	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (only == NULL || strtoul(only, NULL, 10) == i)
			failed += run_place(&places[i]);
	return failed;
}
