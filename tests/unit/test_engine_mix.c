/* SPDX-License-Identifier: Apache-2.0 */
/*
 * READs of all shapes through the whole engine, and WRITEs that meet others:
 * truncation between them, and random misaligned ones that overlap.
 */
#include "tests/unit/engine_places.h"

#define TILES_MAX 64u

/* reads -------------------------------------------------------------------- */

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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_of_all_shapes),
		cmocka_unit_test(holes_are_zeros),
		cmocka_unit_test(beyond_the_largest_offset),
		cmocka_unit_test(truncation_among_writes),
		cmocka_unit_test(random_overlapping),
	};
	const size_t count = sizeof(tests) / sizeof(tests[0]);

	return run_places(tests, count, count);
}
