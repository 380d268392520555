/* SPDX-License-Identifier: Apache-2.0 */
/*
 * READ where servers get it wrong (RFC 1813, 3.3.6): the end of the file to the
 * byte, offsets up to 2^64 - 1, holes, what is no regular file (for WRITE and
 * COMMIT as well). In each mode, on devices of 512- and 4096-byte blocks.
 */
#include "corner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* READ ----------------------------------------------------------------------
 */

static void
check_reads_of(struct corner *w, uint32_t size)
{
	static const uint32_t asks[] = { 0,     1,        511,       512,
					 4095,  4096,     4097,      65536,
					 70001, 1u << 20, UINT32_MAX };
	static const int64_t places[] = { -70000, -65536, -4097, -4096, -513,
					  -512,   -1,     0,     1,     4096 };
	struct corner_read e = { .size = size };
	struct raw_fh fh;
	unsigned i, k;

	corner_file(w, "r", size, &fh);
	for (k = 0; k < sizeof(asks) / sizeof(asks[0]); k++) {
		e.ask = asks[k];
		e.offset = 0;
		corner_check_read(w, &fh, &e);
		for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
			if (places[i] < 0 && size < (uint64_t)-places[i])
				continue;
			e.offset = size + (uint64_t)places[i];
			corner_check_read(w, &fh, &e);
		}
		e.offset = OFFSET_MAX - 1;
		corner_check_read(w, &fh, &e);
		e.offset = OFFSET_MAX;
		corner_check_read(w, &fh, &e);
		e.offset = OFFSET_MAX + 1;
		corner_check_read(w, &fh, &e);
		e.offset = UINT64_MAX;
		corner_check_read(w, &fh, &e);
	}
	assert_int_equal(unlink(harness_path(w->h, "r")), 0);
}

static void
reads(const char *fs, unsigned sector, const char *mode)
{
	static const uint32_t sizes[] = { 0,     1,      511,    512,    513,
					  4095,  4096,   4097,   65536,  65537,
					  70003, 204877, 262144, 1049089 };
	struct corner w;
	unsigned i;

	if (!corner_init(&w, fs, sector, mode))
		skip();
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		check_reads_of(&w, sizes[i]);
	corner_fini(&w);
}

static void
test_reads_direct(void **state)
{
	reads("xfs", 4096, "direct");
}

static void
test_reads_direct_512(void **state)
{
	reads("xfs", 512, "direct");
}

static void
test_reads_ext4(void **state)
{
	reads("ext4", 512, "direct");
}

static void
test_reads_dontcache(void **state)
{
	reads("ext4", 4096, "dontcache");
}

static void
test_reads_buffered(void **state)
{
	reads("xfs", 512, "buffered");
}

static void
test_reads_btrfs(void **state)
{
	reads("btrfs", 4096, "direct");
}

/* Holes are zeros, whatever the piece of them that is asked for. */
static void
test_holes(void **state)
{
	static const uint64_t at[] = { 0, 1, 4095, 65536, 999999, 3000000 };
	uint32_t n = 300001;
	uint8_t *zeros;
	struct raw_fh fh;
	struct corner w;
	READ3res res;
	unsigned i;

	if (!corner_init(&w, "xfs", 4096, "direct"))
		skip();
	zeros = calloc(1, n);
	assert_non_null(zeros);
	raw_create(w.r, &w.root, "h", 0644, &fh);
	assert_int_equal(truncate(harness_path(w.h, "h"), 4 << 20), 0);
	for (i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		assert_int_equal(raw_read(w.r, &fh, at[i], n, &res), NFS3_OK);
		assert_int_equal(res.READ3res_u.resok.count, n);
		assert_memory_equal(res.READ3res_u.resok.data.data_val, zeros,
				    n);
	}
	corner_fini(&w);
	free(zeros);
}

/* COMMIT --------------------------------------------------------------------
 */

static int
commit_range(struct corner *w, const struct raw_fh *fh, uint64_t offset,
	     uint32_t count)
{
	COMMIT3args args = { .file = raw_nfs_fh(fh),
			     .offset = offset,
			     .count = count };
	COMMIT3res res;

	memset(&res, 0, sizeof(res));
	raw_nfs(w->r, COMMIT, &args, &res);
	return (int)res.status;
}

/* Any range: of the file, beyond it, beyond all files. */
static void
test_commit_ranges(void **state)
{
	static const uint64_t at[] = {
		0, 1, 999, 1000, 1 << 30, OFFSET_MAX, OFFSET_MAX + 1, UINT64_MAX
	};
	static const uint32_t counts[] = { 0, 1, 4096, UINT32_MAX };
	struct raw_fh fh;
	struct corner w;
	unsigned i, k;

	if (!corner_init(&w, "xfs", 4096, "direct"))
		skip();
	corner_file(&w, "c", 1000, &fh);
	for (i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		for (k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
			assert_int_equal(
				commit_range(&w, &fh, at[i], counts[k]),
				NFS3_OK);
	assert_int_equal(corner_size(&w, "c"), 1000);
	corner_fini(&w);
}

/* no regular file -----------------------------------------------------------
 */

static void
refuses(struct corner *w, const char *name, nfsstat3 want)
{
	struct raw_fh fh;
	WRITE3res wr;
	READ3res rd;

	assert_int_equal(raw_lookup(w->r, &w->root, name, &fh), NFS3_OK);
	assert_int_equal(raw_read(w->r, &fh, 0, 100, &rd), want);
	assert_int_equal(raw_read(w->r, &fh, UINT64_MAX, 0, &rd), want);
	assert_int_equal(raw_write(w->r, &fh, 0, "x", 1, FILE_SYNC, &wr), want);
	assert_int_equal(raw_write(w->r, &fh, 0, "", 0, UNSTABLE, &wr), want);
	assert_int_equal(commit_range(w, &fh, 0, 0), want);
}

/* An answer at once, and nobody has opened it: a FIFO has no reader and no
 * writer all the while. */
static void
test_no_regular_file(void **state)
{
	struct corner w;
	int fd;

	if (!corner_init(&w, "xfs", 4096, "direct"))
		skip();
	assert_int_equal(mkfifo(harness_path(w.h, "fifo"), 0666), 0);
	assert_int_equal(
		mknod(harness_path(w.h, "chr"), S_IFCHR | 0666, makedev(1, 3)),
		0);
	assert_int_equal(
		mknod(harness_path(w.h, "blk"), S_IFBLK | 0666, makedev(7, 0)),
		0);
	assert_int_equal(mknod(harness_path(w.h, "sock"), S_IFSOCK | 0666, 0),
			 0);
	assert_int_equal(mkdir(harness_path(w.h, "dir"), 0777), 0);
	assert_int_equal(symlink("nowhere", harness_path(w.h, "link")), 0);
	refuses(&w, "fifo", NFS3ERR_INVAL);
	fd = open(harness_path(w.h, "fifo"), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd < 0 && errno == ENXIO);
	refuses(&w, "chr", NFS3ERR_INVAL);
	refuses(&w, "blk", NFS3ERR_INVAL);
	refuses(&w, "sock", NFS3ERR_INVAL);
	refuses(&w, "link", NFS3ERR_INVAL);
	refuses(&w, "dir", NFS3ERR_ISDIR);
	corner_fini(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_direct),
		cmocka_unit_test(test_reads_direct_512),
		cmocka_unit_test(test_reads_ext4),
		cmocka_unit_test(test_reads_dontcache),
		cmocka_unit_test(test_reads_buffered),
		cmocka_unit_test(test_reads_btrfs),
		cmocka_unit_test(test_holes),
		cmocka_unit_test(test_commit_ranges),
		cmocka_unit_test(test_no_regular_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
