/* SPDX-License-Identifier: Apache-2.0 */
/* RQUOTA's bytes, written by hand, and what a quota becomes in them. */
#include "nfsd/nfsd.h"

#include <linux/quota.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define NOW 1000000

static bool
decodes(nfs3_decode_fn *fn, const void *bytes, uint32_t n, union nfs3_args *a)
{
	XDR x;

	memset(a, 0x5a, sizeof(*a));
	xdrmem_create(&x, (char *)bytes, n, XDR_DECODE);
	return fn(&x, a);
}

static void
test_args(void **state)
{
	static const char one[] = "\0\0\0\2/a\0\0\0\0\3\xe8";
	static const char two[] = "\0\0\0\2/a\0\0\0\0\0\1\0\0\3\xe8";
	union nfs3_args a;

	assert_true(decodes(rquota_decode, one, 12, &a));
	assert_int_equal(a.quota.path.bytes, 2);
	assert_memory_equal(a.quota.path.data, "/a", 2);
	assert_int_equal(a.quota.type, RQUOTA_USER);
	assert_int_equal(a.quota.id, 1000);
	assert_false(decodes(rquota_decode, one, 11, &a));
	assert_false(decodes(rquota_decode, two, 16, &a));
	assert_true(decodes(rquota2_decode, two, 16, &a));
	assert_int_equal(a.quota.type, RQUOTA_GROUP);
	assert_int_equal(a.quota.id, 1000);
	assert_false(decodes(rquota2_decode, two, 15, &a));
	assert_false(decodes(rquota2_decode, one, 12, &a));
}

static uint32_t
encoded(uint8_t out[RQUOTA_BYTES], const union nfs3_res *res)
{
	XDR x;

	xdrmem_create(&x, (char *)out, RQUOTA_BYTES, XDR_ENCODE);
	assert_true(rquota_encode(&x, NFS3_OK, res));
	return XDR_GETPOS(&x);
}

static void
test_result(void **state)
{
	static const uint8_t want[RQUOTA_BYTES] = {
		0, 0, 0, 1, 0, 0, 4, 0, 0, 0, 0, 1, 0, 0, 0,
		2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0,
		0, 6, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0, 9,
	};
	static union nfs3_res res;
	uint8_t out[RQUOTA_BYTES];

	res.quota = (struct rquota_res){
		.status = RQUOTA_OK,
		.block_bytes = 1024,
		.blocks_hard = 2,
		.blocks_soft = 3,
		.blocks = 4,
		.files_hard = 5,
		.files_soft = 6,
		.files = 7,
		.blocks_seconds = 8,
		.files_seconds = 9,
	};
	assert_int_equal(encoded(out, &res), RQUOTA_BYTES);
	assert_memory_equal(out, want, sizeof(want));
	res.quota.status = RQUOTA_EPERM;
	assert_int_equal(encoded(out, &res), 4);
	assert_memory_equal(out, "\0\0\0\3", 4);
}

static void
test_small(void **state)
{
	struct if_dqblk q = {
		.dqb_bhardlimit = 200,
		.dqb_bsoftlimit = 100,
		.dqb_curspace = 150 * 1024 + 1,
		.dqb_ihardlimit = 20,
		.dqb_isoftlimit = 10,
		.dqb_curinodes = 15,
		.dqb_btime = NOW + 60,
		.dqb_itime = NOW - 60,
	};
	struct rquota_res r;

	rquota_fill(&r, &q, NOW);
	assert_int_equal(r.block_bytes, 1024);
	assert_int_equal(r.blocks_hard, 200);
	assert_int_equal(r.blocks_soft, 100);
	assert_int_equal(r.blocks, 151);
	assert_int_equal(r.files_hard, 20);
	assert_int_equal(r.files_soft, 10);
	assert_int_equal(r.files, 15);
	assert_int_equal(r.blocks_seconds, 60);
	assert_int_equal((int32_t)r.files_seconds, -60);
	q.dqb_btime = 0;
	q.dqb_itime = NOW; /* over, not none */
	rquota_fill(&r, &q, NOW);
	assert_int_equal(r.blocks_seconds, 0);
	assert_int_equal((int32_t)r.files_seconds, -1);
}

/* Where 1024 bytes are too small a unit. */
static void
test_large(void **state)
{
	struct if_dqblk q = { .dqb_bhardlimit = 1ull << 32,
			      .dqb_bsoftlimit = 3,
			      .dqb_curspace = 5000,
			      .dqb_ihardlimit = 1ull << 40 };
	struct rquota_res r;

	rquota_fill(&r, &q, NOW);
	assert_int_equal(r.block_bytes, 2048);
	assert_int_equal(r.blocks_hard, 1u << 31);
	assert_int_equal(r.blocks_soft, 2);
	assert_int_equal(r.blocks, 3);
	assert_int_equal(r.files_hard, UINT32_MAX);
	q.dqb_bhardlimit = UINT64_MAX;
	q.dqb_curspace = UINT64_MAX;
	rquota_fill(&r, &q, NOW);
	assert_int_equal(r.block_bytes, 1u << 30);
	assert_int_equal(r.blocks_hard, UINT32_MAX);
	assert_int_equal(r.blocks_soft, 1);
	q.dqb_bhardlimit = UINT32_MAX;
	q.dqb_curspace = 0;
	rquota_fill(&r, &q, NOW);
	assert_int_equal(r.block_bytes, 1024);
	assert_int_equal(r.blocks_hard, UINT32_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_args),
		cmocka_unit_test(test_result),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
