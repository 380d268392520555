/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory: a stream of aligned WRITEs that passes through without filling the
 * page cache or the server, a file that a local reader has warmed and that
 * stays warm where nobody wrote, and readahead that keeps out of the way of
 * WRITEs.
 */
#include "flow.h"
#include "shadow.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MIB         (1ul << 20)
#define PAGE        4096ul
#define FILE_MIB    256ul
#define IN_FLIGHT   16u
#define CONNECTIONS 4u
#define POOL_MIB    96ul
#define CACHE_MAX   (16 * MIB)
/* Code, stacks, caches of the allocator; the rest is buffers. */
#define OTHER_MAX   (48 * MIB)

struct stream {
	struct flow_call call[IN_FLIGHT];
	struct harness *h;
	struct flow *flow;
	struct raw_fh fh;
	uint64_t bytes; /* to pass */
	uint64_t next;  /* MiB sent so far */
	uint64_t replies;
	unsigned long resident_max;
	uint8_t *scratch;
};

static struct stream *the_stream;

static uint32_t
generation(uint64_t mib)
{
	return 1 + (uint32_t)(mib / FILE_MIB);
}

static void
stream_send(struct stream *s, struct flow_call *c)
{
	struct flow_write w = { .fh = &s->fh,
				.offset = s->next % FILE_MIB * MIB,
				.data = s->scratch,
				.bytes = (uint32_t)MIB,
				.stable = UNSTABLE };

	shadow_fill(generation(s->next), w.offset, s->scratch, MIB);
	s->next++;
	flow_write(s->flow, (unsigned)(c - s->call), c, &w);
}

static void
stream_done(struct flow_call *c, struct raw *r)
{
	struct stream *s = the_stream;
	unsigned long n;
	WRITE3res res;

	memset(&res, 0, sizeof(res));
	raw_result(r, (raw_zdr_fn *)zdr_WRITE3res, &res);
	assert_int_equal(res.status, NFS3_OK);
	assert_int_equal(res.WRITE3res_u.resok.count, MIB);
	if (++s->replies % 32 == 0) {
		n = harness_resident(s->h, "f");
		if (n > s->resident_max)
			s->resident_max = n;
	}
	/* One generation after the other, so that the last one stays. */
	if (s->next % FILE_MIB != 0)
		stream_send(s, c);
}

static void
stream_run(struct stream *s)
{
	COMMIT3res res;
	unsigned i;

	the_stream = s;
	while (s->next < s->bytes / MIB) {
		for (i = 0; i < IN_FLIGHT; i++) {
			s->call[i].done = stream_done;
			stream_send(s, &s->call[i]);
		}
		flow_drain(s->flow);
	}
	assert_int_equal(raw_commit(flow_raw(s->flow, 0), &s->fh, &res),
			 NFS3_OK);
}

/* VmHWM of the server, in bytes. */
static uint64_t
rss_max(const struct harness *h)
{
	char path[64], line[256];
	uint64_t kib = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)h->pid);
	f = fopen(path, "r");
	assert_non_null(f);
	while (kib == 0 && fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, "VmHWM:", 6) == 0)
			kib = strtoull(line + 6, NULL, 10);
	assert_int_equal(fclose(f), 0);
	assert_true(kib > 0);
	return kib << 10;
}

static void
check_rss(struct harness *h)
{
	uint64_t pool = harness_stat(h, "buffer_bytes"), rss = rss_max(h);

	print_message("%llu MiB resident at most, %llu MiB of buffers\n",
		      (unsigned long long)rss >> 20,
		      (unsigned long long)pool >> 20);
	assert_true(pool <= POOL_MIB * MIB);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_true(rss <= pool + OTHER_MAX);
#endif
}

static void
check_last_generation(const struct stream *s)
{
	int fd = open(harness_path(s->h, "f"), O_RDONLY | O_CLOEXEC);
	uint8_t *got = malloc(MIB);
	unsigned i;

	assert_true(fd >= 0 && got != NULL);
	for (i = 0; i < FILE_MIB; i++) {
		assert_int_equal(pread(fd, got, MIB, (off_t)i * MIB), MIB);
		shadow_fill(generation(s->next - 1), (uint64_t)i * MIB,
			    s->scratch, MIB);
		assert_memory_equal(got, s->scratch, MIB);
	}
	free(got);
	close(fd);
}

static bool
start(struct harness *h, const char *engine, unsigned mib)
{
	char conf[60];

	if (!harness_mount(h, "xfs", 4096, mib)) {
		harness_free(h);
		return false;
	}
	(void)snprintf(conf, sizeof(conf), "[limits]\nbuffer-memory = %luM\n",
		       POOL_MIB);
	harness_conf(h, conf);
	/* With one a core, the least that they need is more on some machines.
	 */
	harness_arg(h, "--threads");
	harness_arg(h, "2");
	harness_arg(h, "--engine");
	harness_arg(h, engine);
	harness_start(h);
	return true;
}

static void
stream(const char *engine, uint64_t bytes)
{
	struct stream s = { .h = harness_new(NULL), .bytes = bytes };
	struct raw_fh root;

	if (!start(s.h, engine, (unsigned)FILE_MIB + 128))
		skip();
	s.flow = flow_new(s.h->port, CONNECTIONS);
	s.scratch = malloc(MIB);
	assert_non_null(s.scratch);
	assert_int_equal(raw_mount(flow_raw(s.flow, 0), s.h->export, &root), 0);
	raw_create(flow_raw(s.flow, 0), &root, "f", 0644, &s.fh);
	stream_run(&s);
	print_message("%s: %lu pages of the file in the cache at most\n",
		      engine, s.resident_max);
	assert_true(s.resident_max * PAGE < CACHE_MAX);
	check_rss(s.h);
	flow_free(s.flow);
	harness_stop(s.h);
	harness_remount(s.h);
	check_last_generation(&s);
	free(s.scratch);
	harness_free(s.h);
}

static void
test_stream(void **state)
{
	stream("uring", 4ull << 30);
}

static void
test_stream_threads(void **state)
{
	stream("threads", 1ull << 30);
}

/* a warm file
 * -------------------------------------------------------------------
 */

#define WARM_BYTES   (64 * MIB)
#define RECORD_BYTES 47008u
#define WARM_TRIES   20u

/* Which pages are in the cache: one byte each. */
static unsigned char *
pages_of(struct harness *h, const char *name, size_t bytes)
{
	int fd = open(harness_path(h, name), O_RDONLY | O_CLOEXEC);
	unsigned char *vec = malloc(bytes / PAGE);
	void *map;

	assert_true(fd >= 0 && vec != NULL);
	map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	assert_int_equal(mincore(map, bytes, vec), 0);
	munmap(map, bytes);
	close(fd);
	return vec;
}

static unsigned
count(const unsigned char *vec, size_t from, size_t to)
{
	unsigned n = 0;

	for (; from < to; from++)
		n += vec[from] & 1;
	return n;
}

static void
drop_pages(struct harness *h, const char *name)
{
	int fd = open(harness_path(h, name), O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	close(fd);
}

/* As any program reads a file, through the page cache with readahead, which
 * makes other folios than writing it does. */
static void
read_through(struct harness *h, const char *name)
{
	drop_pages(h, name);
	assert_int_equal(harness_sh("cat %s >/dev/null", harness_path(h, name)),
			 0);
}

/* A record each stride bytes, up to end; touched: the pages of them. */
struct strewn {
	uint64_t stride, end;
	int stable;
	uint8_t touched[WARM_BYTES / PAGE];
};

static void
strew(struct raw *r, const struct raw_fh *fh, struct strewn *s)
{
	static uint8_t data[RECORD_BYTES];
	COMMIT3res c;
	WRITE3res w;
	uint64_t at, i;

	for (at = 100; at + RECORD_BYTES < s->end; at += s->stride) {
		assert_int_equal(
			raw_write(r, fh, at, data, RECORD_BYTES, s->stable, &w),
			NFS3_OK);
		for (i = at / PAGE; i <= (at + RECORD_BYTES - 1) / PAGE; i++)
			s->touched[i] = 1;
	}
	assert_int_equal(raw_commit(r, fh, &c), NFS3_OK);
}

static unsigned
count_untouched(const struct strewn *s, const unsigned char *vec)
{
	unsigned n = 0, i;

	for (i = 0; i < WARM_BYTES / PAGE; i++)
		n += s->touched[i] == 0 && (vec == NULL || (vec[i] & 1) != 0);
	return n;
}

/* "w" is written by NFS, "control" is not. False where pages of control went as
 * well: then somebody else wants the memory. */
static bool
warm_once(struct harness *h, struct raw *r, const struct raw_fh *fh,
	  struct strewn *s)
{
	unsigned char *vec, *control;
	unsigned stayed, all, others;

	read_through(h, "w");
	read_through(h, "control");
	strew(r, fh, s);
	vec = pages_of(h, "w", WARM_BYTES);
	control = pages_of(h, "control", WARM_BYTES);
	stayed = count_untouched(s, vec);
	all = count_untouched(s, NULL);
	others = (unsigned)(WARM_BYTES / PAGE) -
		 count(control, 0, WARM_BYTES / PAGE);
	free(vec);
	free(control);
	if (others > WARM_BYTES / PAGE / 1000)
		return false;
	print_message("%u of %u pages stay where nothing was written\n", stayed,
		      all);
	assert_true(stayed * 100 >= all * 99);
	return true;
}

static void
warm(const char *engine, uint64_t stride, int stable)
{
	struct strewn s = { .stride = stride, .stable = stable };
	struct harness *h = harness_new(NULL);
	struct raw_fh root, fh;
	unsigned tries = 0;
	struct raw *r;

	if (!start(h, engine, 512))
		skip();
	assert_int_equal(
		harness_sh("for f in w control; do "
			   "head -c %lu /dev/urandom >%s/$f || exit 1; "
			   "done; sync -f %s",
			   WARM_BYTES, h->export, h->export),
		0);
	s.end = stride == RECORD_BYTES ? WARM_BYTES / 2 : WARM_BYTES;
	r = raw_connect(h->port);
	assert_int_equal(raw_mount(r, h->export, &root), 0);
	assert_int_equal(raw_lookup(r, &root, "w", &fh), NFS3_OK);
	while (tries < WARM_TRIES && !warm_once(h, r, &fh, &s))
		tries++;
	assert_true(tries == WARM_TRIES ||
		    harness_stat(h, "writes.cached") > 0);
	raw_close(r);
	harness_stop(h);
	harness_free(h);
	if (tries == WARM_TRIES) {
		print_message("skip: the machine is short of memory: the page "
			      "cache loses pages that nobody touches\n");
		skip();
	}
}

static void
test_warm_half(void **state)
{
	warm("uring", RECORD_BYTES, UNSTABLE);
}

static void
test_warm_half_stable(void **state)
{
	warm("threads", RECORD_BYTES, FILE_SYNC);
}

static void
test_warm_strewn(void **state)
{
	warm("uring", 3 * MIB, FILE_SYNC);
}

static void
test_warm_strewn_unstable(void **state)
{
	warm("threads", 3 * MIB, UNSTABLE);
}

/* readahead ---------------------------------------------------------------- */

#define READ_BYTES (64ul << 10)
#define READS      2ul

static void
read_some(struct raw *r, const struct raw_fh *fh)
{
	uint64_t at;
	READ3res res;

	for (at = 0; at < READS * READ_BYTES; at += READ_BYTES)
		assert_int_equal(raw_read(r, fh, at, READ_BYTES, &res),
				 NFS3_OK);
}

/* A new file, none of whose pages is in the cache. */
static void
cold_file(struct harness *h, struct raw *r, const char *name, struct raw_fh *fh)
{
	struct raw_fh root;

	assert_int_equal(harness_sh("rm -f %s; head -c %lu /dev/zero >%s; "
				    "sync -f %s",
				    harness_path(h, name), 4 * MIB,
				    harness_path(h, name), h->export),
			 0);
	drop_pages(h, name);
	assert_int_equal(harness_resident(h, name), 0);
	assert_int_equal(raw_mount(r, h->export, &root), 0);
	assert_int_equal(raw_lookup(r, &root, name, fh), NFS3_OK);
}

static uint64_t
now_ms(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &t), 0);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* A direct WRITE, then READs: false when they came too late to be beside it. */
static bool
read_beside_write(struct harness *h, struct raw *r)
{
	static uint8_t data[MIB];
	struct raw_fh fh;
	uint64_t began;
	unsigned long n;
	WRITE3res w;

	cold_file(h, r, "written", &fh);
	began = now_ms();
	assert_int_equal(raw_write(r, &fh, 3 * MIB, data, MIB, FILE_SYNC, &w),
			 NFS3_OK);
	read_some(r, &fh);
	if (now_ms() - began > 500)
		return false;
	n = harness_resident(h, "written");
	print_message("%lu pages after READs beside a WRITE\n", n);
	assert_true(n <= READS * READ_BYTES / PAGE);
	return true;
}

/* Large folios that reach beyond a READ would meet direct WRITEs in flight. */
static void
test_readahead(void **state)
{
	struct harness *h =
		harness_new("rw,no_root_squash,insecure,read-mode=buffered");
	struct raw_fh fh;
	unsigned long n;
	struct raw *r;

	if (!start(h, "uring", 512))
		skip();
	r = raw_connect(h->port);
	cold_file(h, r, "read", &fh);
	read_some(r, &fh);
	n = harness_resident(h, "read");
	print_message("%lu pages after READs of %lu\n", n,
		      READS * READ_BYTES / PAGE);
	assert_true(n > READS * READ_BYTES / PAGE);
	while (!read_beside_write(h, r))
		;
	raw_close(r);
	harness_stop(h);
	harness_free(h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_stream_threads),
		cmocka_unit_test(test_readahead),
		cmocka_unit_test(test_warm_half),
		cmocka_unit_test(test_warm_half_stable),
		cmocka_unit_test(test_warm_strewn),
		cmocka_unit_test(test_warm_strewn_unstable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
