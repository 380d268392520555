/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that not even the server may write: a WRITE says why (the file, not
 * the file system), and what only reads or syncs goes on.
 */
#include "site.h"

static void
immutable(const char *fs)
{
	struct site *s = site_new("uring", NULL, fs);
	struct raw_fh fh;
	struct answer a;

	site_file(s, "f", 0644, 0, 0, "text");
	assert_int_equal(harness_sh("chattr +i %s", site_path(s, "f")), 0);
	fh = site_lookup(s, "f");
	assert_int_equal(ask(s->r, ask_write(&fh, 0, "TEXT", 4, 0), &a),
			 NFS3ERR_PERM);
	assert_true(a.wcc.after.attributes_follow);
	assert_int_equal(ask(s->r, ask_setattr(&fh, ask_size(1), NULL), NULL),
			 NFS3ERR_PERM);
	assert_int_equal(ask(s->r, ask_commit(&fh), NULL), NFS3_OK);
	assert_int_equal(ask(s->r, ask_read(&fh, 0, 10), &a), NFS3_OK);
	assert_int_equal(a.u.read.count, 4);
	assert_memory_equal(a.u.read.data.data_val, "text", 4);
	assert_int_equal(harness_sh("chattr -i %s", site_path(s, "f")), 0);
	site_free(s);
}

static void
test_xfs(void **state)
{
	immutable("xfs");
}

static void
test_ext4(void **state)
{
	immutable("ext4");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_xfs),
		cmocka_unit_test(test_ext4),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
