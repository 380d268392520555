/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of the data calls through the whole engine, on real file systems
 * and both backends: XFS on 4096- and 512-byte blocks, ext4, and btrfs, each
 * fresh on a loop device; without one, the plain directory /tmp. Each place is
 * a group of tests with an engine and a volume of its own, in env.
 */
#ifndef NVNFSD_TESTS_ENGINE_PLACES_H
#define NVNFSD_TESTS_ENGINE_PLACES_H

#include "tests/unit/io_client.h"
#include "tests/unit/loop_fs.h"

#define MIB         (1ull << 20)
#define IMAGE_BYTES (1ull << 30)

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

static inline uint64_t
next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed >> 8;
}

static inline struct reactor *
reactor_of(unsigned n)
{
	return engine_reactor(env.engine, n % 2);
}

/* btrfs takes O_DIRECT and mostly buffers it. */
static inline bool
is_direct(void)
{
	const char *fs = env.place->name;

	return volume_policy(env.volume).write_mode == IO_DIRECT &&
	       (fs == NULL || strcmp(fs, "btrfs") != 0);
}

static inline void
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

static inline const char *
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

static inline int
set_up(void **state)
{
	(void)state;
	env.engine = engine_make(env.place->backend, 2, 64u << 20);
	env.volume = volume_at(env.engine, env.dir, &direct_policy);
	return 0;
}

static inline int
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

static inline void
no_place(void **state)
{
	(void)state;
	print_message("skip: %s\n", env.why);
	skip();
}

static inline int
run_place(const struct place *p, const struct CMUnitTest *tests, size_t count)
{
	const struct CMUnitTest missing[] = { cmocka_unit_test(no_place) };
	char name[64];

	memset(&env, 0, sizeof(env));
	env.place = p;
	(void)snprintf(name, sizeof(name), "%s-%u-%s",
		       p->name == NULL ? "plain" : p->name, p->block_bytes,
		       p->backend == IO_BACKEND_URING ? "uring" : "threads");
	env.why = find_place(p);
	if (env.why != NULL)
		return cmocka_run_group_tests_name(name, missing, NULL, NULL);
	return _cmocka_run_group_tests(name, tests, count, set_up, tear_down);
}

/* The tests at each place; only the first so many on btrfs, which does not
 * really do direct I/O. How many failed. */
static inline int
run_places(const struct CMUnitTest *tests, size_t count, size_t on_btrfs)
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

	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const char *fs = places[i].name;
		bool btrfs = fs != NULL && strcmp(fs, "btrfs") == 0;

		if (only == NULL || strtoul(only, NULL, 10) == i)
			failed += run_place(&places[i], tests,
					    btrfs ? on_btrfs : count);
	}
	return failed;
}

#endif
