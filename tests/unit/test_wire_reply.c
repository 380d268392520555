/* SPDX-License-Identifier: Apache-2.0 */
/* nvnfsd-load takes replies apart by hand: whole ones rightly, others never
 * beyond their end. RFC 1813, 3.3.6, 3.3.7, 3.3.21. */
#include "tests/bench/wire_reply.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static uint32_t words[128];
static size_t used;

static void
put(uint32_t v)
{
	words[used++] = htonl(v);
}

static void
put_zeros(unsigned n)
{
	while (n-- > 0)
		put(0);
}

static struct cursor
take(unsigned proc, size_t bytes, union result *res)
{
	struct cursor c = { .at = (const char *)words, .left = bytes };

	memset(res, 0, sizeof(*res));
	result_take(&c, proc, res);
	return c;
}

static int
clear(void **state)
{
	used = 0;
	return 0;
}

/* Every shorter reply is known to be one. */
static void
cut_is_bad(unsigned proc)
{
	union result res;

	for (size_t n = 0; n < used * 4; n++)
		assert_true(take(proc, n, &res).bad);
}

static void
a_write(void **state)
{
	union result res;
	struct cursor c;

	put(NFS3_OK);
	put(1); /* wcc_data: before and after */
	put_zeros(6);
	put(1);
	put_zeros(21);
	put(47008);
	put(FILE_SYNC);
	put(0x01020304);
	put(0x05060708);
	c = take(PROC_WRITE, used * 4, &res);
	assert_false(c.bad);
	assert_int_equal(c.left, 0);
	assert_int_equal(res.write.WRITE3res_u.resok.count, 47008);
	assert_int_equal(res.write.WRITE3res_u.resok.committed, FILE_SYNC);
	assert_memory_equal(res.write.WRITE3res_u.resok.verf,
			    "\1\2\3\4\5\6\7\10", 8);
	cut_is_bad(PROC_WRITE);
}

static void
a_write_that_failed(void **state)
{
	union result res;

	put(NFS3ERR_NOSPC);
	put(0);
	put(0);
	assert_false(take(PROC_WRITE, used * 4, &res).bad);
	assert_int_equal(res.write.status, NFS3ERR_NOSPC);
}

static void
a_read(void **state)
{
	union result res;
	const READ3resok *ok = &res.read.READ3res_u.resok;

	put(NFS3_OK);
	put(0);
	put(8);
	put(1);
	put(8);
	put(0x61626364);
	put(0x65666768);
	assert_false(take(PROC_READ, used * 4, &res).bad);
	assert_int_equal(ok->eof, 1);
	assert_int_equal(ok->data.data_len, 8);
	assert_memory_equal(ok->data.data_val, "abcdefgh", 8);
	cut_is_bad(PROC_READ);
}

static void
a_read_that_says_too_much(void **state)
{
	union result res;

	put(NFS3_OK);
	put(0);
	put(UINT32_MAX);
	put(0);
	put(UINT32_MAX);
	put(0);
	assert_true(take(PROC_READ, used * 4, &res).bad);
}

static void
a_commit(void **state)
{
	union result res;

	put(NFS3_OK);
	put(0);
	put(1);
	put_zeros(21);
	put(0x01020304);
	put(0x05060708);
	assert_false(take(PROC_COMMIT, used * 4, &res).bad);
	assert_memory_equal(res.commit.COMMIT3res_u.resok.verf,
			    "\1\2\3\4\5\6\7\10", 8);
	cut_is_bad(PROC_COMMIT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_write, clear),
		cmocka_unit_test_setup(a_write_that_failed, clear),
		cmocka_unit_test_setup(a_read, clear),
		cmocka_unit_test_setup(a_read_that_says_too_much, clear),
		cmocka_unit_test_setup(a_commit, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
