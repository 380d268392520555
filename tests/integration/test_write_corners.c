/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WRITE where servers get it wrong (RFC 1813, 3.3.7): no bytes, lengths that
 * disagree, beyond what a file can hold, far out, the largest transfers.
 */
#include "corner.h"

#include "shadow.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* WRITE ---------------------------------------------------------------------
 */

static void
test_empty_write(void **state)
{
	static const int how[] = { UNSTABLE, DATA_SYNC, FILE_SYNC };
	static const uint64_t at[] = { 0, 100, 1 << 20 };
	struct stat before, after;
	struct raw_fh fh;
	struct corner w;
	WRITE3res res;
	unsigned i;

	if (!corner_init(&w, "xfs", 4096, "direct"))
		skip();
	corner_file(&w, "e", 1000, &fh);
	assert_int_equal(stat(harness_path(w.h, "e"), &before), 0);
	for (i = 0; i < 9; i++) {
		assert_int_equal(
			raw_write(w.r, &fh, at[i / 3], "", 0, how[i % 3], &res),
			NFS3_OK);
		assert_int_equal(res.WRITE3res_u.resok.count, 0);
		assert_true((int)res.WRITE3res_u.resok.committed >= how[i % 3]);
	}
	assert_int_equal(stat(harness_path(w.h, "e"), &after), 0);
	assert_int_equal(after.st_size, 1000);
	assert_int_equal(after.st_blocks, before.st_blocks);
	assert_memory_equal(&after.st_mtim, &before.st_mtim,
			    sizeof(after.st_mtim));
	assert_memory_equal(&after.st_ctim, &before.st_ctim,
			    sizeof(after.st_ctim));
	corner_fini(&w);
}

/* count and the length of the data say different things. */
static int
write_disagreeing(struct corner *w, const struct raw_fh *fh, uint32_t count,
		  uint32_t bytes, WRITE3res *res)
{
	static char data[100000];
	WRITE3args args;

	memset(&args, 0, sizeof(args));
	memset(res, 0, sizeof(*res));
	memset(data, 'd', sizeof(data));
	args.file = raw_nfs_fh(fh);
	args.count = count;
	args.stable = FILE_SYNC;
	args.data.data_len = bytes;
	args.data.data_val = data;
	raw_nfs(w->r, WRITE, &args, res);
	return (int)res->status;
}

static void
test_count_disagrees(void **state)
{
	static const uint32_t pairs[][2] = {
		{ 10, 20 },          { 20, 10 },           { 0, 10 },
		{ 10, 0 },           { 50000, 100000 },    { 100000, 50000 },
		{ UINT32_MAX, 100 }, { TRANSFER_MAX, 99 },
	};
	struct raw_fh fh;
	struct corner w;
	WRITE3res res;
	unsigned i;

	if (!corner_init(&w, "xfs", 4096, "direct"))
		skip();
	raw_create(w.r, &w.root, "d", 0644, &fh);
	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		uint32_t least =
			pairs[i][0] < pairs[i][1] ? pairs[i][0] : pairs[i][1];

		assert_int_equal(truncate(harness_path(w.h, "d"), 0), 0);
		if (write_disagreeing(&w, &fh, pairs[i][0], pairs[i][1],
				      &res) == NFS3_OK)
			assert_true(res.WRITE3res_u.resok.count <= least);
		else
			assert_int_equal(res.status, NFS3ERR_INVAL);
		assert_true(corner_size(&w, "d") <= least);
	}
	corner_fini(&w);
}

static int
write_at(struct corner *w, const struct raw_fh *fh, uint64_t offset, uint32_t n,
	 WRITE3res *res)
{
	uint8_t *data = malloc(n);
	int status;

	assert_non_null(data);
	shadow_fill(1, offset, data, n);
	status = raw_write(w->r, fh, offset, data, n, FILE_SYNC, res);
	free(data);
	return status;
}

/* Beyond what an offset can say, and beyond what this file system can hold. */
static void
beyond(const char *fs, const char *mode, uint64_t limit)
{
	static const uint64_t far[] = { OFFSET_MAX - 10, OFFSET_MAX,
					OFFSET_MAX + 1, UINT64_MAX - 100,
					UINT64_MAX };
	uint32_t n = 100000, first;
	struct raw_fh fh;
	struct corner w;
	WRITE3res res;
	unsigned i;

	if (!corner_init(&w, fs, 4096, mode))
		skip();
	raw_create(w.r, &w.root, "b", 0644, &fh);
	for (i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
		assert_int_equal(write_at(&w, &fh, far[i], n, &res),
				 NFS3ERR_FBIG);
		assert_int_equal(write_at(&w, &fh, far[i], 11, &res),
				 NFS3ERR_FBIG);
	}
	assert_int_equal(corner_size(&w, "b"), 0);
	if (limit != 0) {
		assert_int_equal(write_at(&w, &fh, limit, n, &res),
				 NFS3ERR_FBIG);
		/* What crosses the limit is cut there, or refused. */
		if (write_at(&w, &fh, limit - 50001, n, &res) == NFS3_OK) {
			first = res.WRITE3res_u.resok.count;
			assert_in_range(first, 1, 50001);
			assert_int_equal(corner_size(&w, "b"),
					 limit - 50001 + first);
			assert_int_equal(write_at(&w, &fh, limit, 1, &res),
					 NFS3ERR_FBIG);
		} else {
			assert_int_equal(res.status, NFS3ERR_FBIG);
		}
	}
	corner_fini(&w);
}

static void
test_beyond_xfs(void **state)
{
	beyond("xfs", "direct", 0);
}

/* 2^32 - 1 blocks. */
static void
test_beyond_ext4(void **state)
{
	beyond("ext4", "direct", UINT32_MAX * 4096ull);
}

static void
test_beyond_ext4_buffered(void **state)
{
	beyond("ext4", "buffered", UINT32_MAX * 4096ull);
}

/* Far out, to the last byte that there can be. */
static void
sparse(const char *mode)
{
	static const uint64_t at[] = { 1ull << 32, (1ull << 40) + 13,
				       (1ull << 50) - 77,
				       OFFSET_MAX - (1u << 20),
				       OFFSET_MAX - 150000 };
	struct corner_read e = { 0 };
	struct raw_fh fh;
	struct corner w;
	WRITE3res res;
	unsigned i;

	if (!corner_init(&w, "xfs", 4096, mode))
		skip();
	raw_create(w.r, &w.root, "s", 0644, &fh);
	for (i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		assert_int_equal(write_at(&w, &fh, at[i], 150000, &res),
				 NFS3_OK);
		assert_int_equal(res.WRITE3res_u.resok.count, 150000);
		e.size = at[i] + 150000;
		assert_int_equal(corner_size(&w, "s"), e.size);
		e.offset = at[i];
		for (e.ask = 1; e.ask < (1u << 20); e.ask *= 3)
			corner_check_read(&w, &fh, &e);
		e.offset = e.size - 5000;
		e.ask = 4096;
		corner_check_read(&w, &fh, &e);
		e.ask = 1u << 20;
		corner_check_read(&w, &fh, &e);
		e.offset = e.size - 100000;
		corner_check_read(&w, &fh, &e);
	}
	corner_fini(&w);
}

static void
test_sparse(void **state)
{
	sparse("direct");
}

static void
test_sparse_buffered(void **state)
{
	sparse("buffered");
}

/* The largest transfers, aligned and not, there and back. */
static void
largest(const char *mode)
{
	static const uint64_t at[] = { 0, 1, 4095, 12345678 };
	struct corner_read e = { 0 };
	struct raw_fh fh;
	struct corner w;
	WRITE3res res;
	unsigned i;

	if (!corner_init(&w, "xfs", 4096, mode))
		skip();
	raw_create(w.r, &w.root, "l", 0644, &fh);
	for (i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		assert_int_equal(truncate(harness_path(w.h, "l"), 0), 0);
		assert_int_equal(write_at(&w, &fh, at[i], TRANSFER_MAX, &res),
				 NFS3_OK);
		assert_int_equal(res.WRITE3res_u.resok.count, TRANSFER_MAX);
		e.size = at[i] + TRANSFER_MAX;
		e.offset = at[i];
		e.ask = TRANSFER_MAX;
		corner_check_read(&w, &fh, &e);
		e.ask = UINT32_MAX;
		corner_check_read(&w, &fh, &e);
	}
	corner_fini(&w);
}

static void
test_largest(void **state)
{
	largest("direct");
}

static void
test_largest_buffered(void **state)
{
	largest("buffered");
}

/* A server says what it takes: no less than this. */
static void
test_fsinfo(void **state)
{
	FSINFO3args args;
	FSINFO3res res;
	struct corner w;

	if (!corner_init(&w, "xfs", 4096, "direct"))
		skip();
	memset(&args, 0, sizeof(args));
	memset(&res, 0, sizeof(res));
	args.fsroot = raw_nfs_fh(&w.root);
	raw_nfs(w.r, FSINFO, &args, &res);
	assert_int_equal(res.status, NFS3_OK);
	assert_true(res.FSINFO3res_u.resok.wtmax >= TRANSFER_MAX);
	assert_true(res.FSINFO3res_u.resok.rtmax >= TRANSFER_MAX);
	assert_int_equal(res.FSINFO3res_u.resok.wtpref, 1 << 20);
	corner_fini(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_write),
		cmocka_unit_test(test_count_disagrees),
		cmocka_unit_test(test_beyond_xfs),
		cmocka_unit_test(test_beyond_ext4),
		cmocka_unit_test(test_beyond_ext4_buffered),
		cmocka_unit_test(test_sparse),
		cmocka_unit_test(test_sparse_buffered),
		cmocka_unit_test(test_largest),
		cmocka_unit_test(test_largest_buffered),
		cmocka_unit_test(test_fsinfo),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
