/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FSINFO's advice for WRITEs (RFC 1813, 3.3.19: wtpref, wtmult) follows the
 * device: the same file system, with another device under it by what a made
 * sysfs says. And the cut and the split follow with it.
 */
#include "tests/unit/made_sysfs.h"
#include "tests/unit/proc_env.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct env env;

static dev_t
tmp_dev(void)
{
	const char *tmp = getenv("TMPDIR");
	struct stat st;

	assert_int_equal(stat(tmp == NULL ? "/tmp" : tmp, &st), 0);
	return st.st_dev;
}

/* FSINFO with one attribute of the queue changed, or skipped. */
static void
ask(const char *attribute, const char *text, struct nfs3_fsinfo_res *ret,
    struct volume_facts *facts)
{
	int r;

	sysfs_make();
	sysfs_disk("vdz", tmp_dev());
	if (attribute != NULL)
		sysfs_put("vdz", attribute, text);
	r = env_start_on(&env, sysfs_root());
	if (r == 0) {
		env.rq.args.fh.fh = env.root[ENV_RW];
		assert_int_equal(env_run(&env, nfs3_fsinfo), NFS3_OK);
		*ret = env.rq.res.fsinfo;
		*facts = *volume_facts(env_export(&env, ENV_RW)->rw);
		env_stop(&env);
	}
	sysfs_remove();
	/* No device where it is a tmpfs after all. */
	if (r != 0 || facts->device[0] == '\0') {
		print_message("skip: no file system on a device here\n");
		skip();
	}
}

static void
preferred_size(void **state)
{
	struct nfs3_fsinfo_res res;
	struct volume_facts facts;

	ask(NULL, NULL, &res, &facts);
	assert_int_equal(res.wtpref, 1u << 20);
	/* 768 KiB; 1.5 MiB; what is too large to follow; what is too small. */
	ask("queue/chunk_sectors", "1536", &res, &facts);
	assert_int_equal(res.wtpref, 768u << 10);
	ask("queue/chunk_sectors", "3072", &res, &facts);
	assert_int_equal(res.wtpref, 1536u << 10);
	ask("queue/chunk_sectors", "32768", &res, &facts);
	assert_int_equal(res.wtpref, 1u << 20);
	ask("queue/chunk_sectors", "64", &res, &facts);
	assert_int_equal(res.wtpref, 1u << 20);
	/* The stripe of a RAID 5 of four. */
	ask("queue/optimal_io_size", "1572864", &res, &facts);
	assert_int_equal(res.wtpref, 1536u << 10);
}

static void
multiple(void **state)
{
	struct nfs3_fsinfo_res res;
	struct volume_facts facts;
	struct split s;

	ask(NULL, NULL, &res, &facts);
	if (facts.cut_bytes == 0) {
		print_message("skip: no direct I/O here\n");
		skip();
	}
	assert_int_equal(res.wtmult, 4096);
	split_write(&s, 47008, 47008, facts.cut_bytes, 0, IO_DIRECT);
	assert_int_equal(s.middle.offset, 49152);
	assert_int_equal(s.middle.bytes, 40960);
	ask("queue/physical_block_size", "16384", &res, &facts);
	assert_int_equal(res.wtmult, 16384);
	assert_int_equal(facts.cut_bytes, 16384);
	split_write(&s, 47008, 47008, facts.cut_bytes, 0, IO_DIRECT);
	assert_int_equal(s.middle.offset, 49152);
	assert_int_equal(s.middle.bytes, 32768);
	/* It would cut in the midst of the device's blocks. */
	ask("alignment_offset", "512", &res, &facts);
	assert_int_equal(res.wtmult, 4096);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(preferred_size),
		cmocka_unit_test(multiple),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
