/* SPDX-License-Identifier: Apache-2.0 */
/* GETATTR, ACCESS, READLINK, FSSTAT, FSINFO, PATHCONF. */
#include "tests/unit/proc_env.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cmocka.h>

#define ALL 0x3fu

static struct env env;

static enum nfsstat3
query(nfs3_run_fn *run, const char *name)
{
	env.rq.args.fh.fh = env_lookup(&env, ENV_RW, name);
	return env_run(&env, run);
}

static void
test_getattr(void **state)
{
	const struct fattr3 *a = &env.rq.res.attr.attr.attr;
	struct statx st;

	env_file(&env, ENV_RW, "f", "text", 04751, 1000);
	st = env_stat(&env, ENV_RW, "f");
	assert_int_equal(query(nfs3_getattr, "f"), NFS3_OK);
	assert_int_equal(a->type, NF3REG);
	assert_int_equal(a->mode, 04751);
	assert_int_equal(a->nlink, 1);
	assert_int_equal(a->uid, 1000);
	assert_int_equal(a->size, 4);
	assert_int_equal(a->used, st.stx_blocks * 512);
	assert_int_equal(a->fileid, st.stx_ino);
	assert_int_equal(a->fsid, env_export(&env, ENV_RW)->fsid);
	assert_int_equal(a->mtime.nseconds, st.stx_mtime.tv_nsec);
	env.rq.args.fh.fh.data[1] ^= 1;
	assert_int_equal(env_run(&env, nfs3_getattr), NFS3ERR_BADHANDLE);
	env.rq.args.fh.fh.bytes = 0;
	assert_int_equal(env_run(&env, nfs3_getattr), NFS3ERR_BADHANDLE);
}

static uint32_t
access_of(const char *name, uint32_t asked)
{
	env.rq.args.access.fh = env_lookup(&env, ENV_RW, name);
	env.rq.args.access.access = asked;
	assert_int_equal(env_run(&env, nfs3_access), NFS3_OK);
	assert_true(env.rq.res.access.attr.follows);
	return env.rq.res.access.access;
}

#define READ     ACCESS3_READ
#define LOOKUP   ACCESS3_LOOKUP
#define WRITES   (ACCESS3_MODIFY | ACCESS3_EXTEND)
#define EXECUTE  ACCESS3_EXECUTE
#define DIRWRITE (WRITES | ACCESS3_DELETE)

/* By mode: the owner, the group, others, for a file and for a directory. */
static void
test_access(void **state)
{
	static const struct {
		uint32_t uid, gid, file, dir;
		mode_t mode;
	} rows[] = {
		{ 1000, 1, READ | WRITES | EXECUTE, READ | LOOKUP | DIRWRITE,
		  0700 },
		{ 1000, 1, READ, READ, 0477 },
		{ 1000, 1, WRITES, 0, 0277 }, /* a directory takes x as well */
		{ 1000, 1, EXECUTE, LOOKUP, 0177 },
		{ 1000, 1, 0, 0, 0077 },
		{ 1001, 1000, READ | WRITES, READ, 0060 },
		{ 1001, 1000, WRITES | EXECUTE, LOOKUP | DIRWRITE, 0737 },
		{ 1001, 1001, READ | EXECUTE, READ | LOOKUP, 0005 },
		{ 1001, 1001, 0, 0, 0770 },
		{ 0, 0, READ | WRITES, READ | LOOKUP | DIRWRITE, 0000 },
		{ 0, 0, READ | WRITES | EXECUTE, READ | LOOKUP | DIRWRITE,
		  0001 },
	};
	size_t i;

	env_file(&env, ENV_RW, "f", "text", 0, 1000);
	assert_int_equal(mkdirat(env.dir[ENV_RW], "d", 0), 0);
	assert_int_equal(fchownat(env.dir[ENV_RW], "d", 1000, 1000, 0), 0);
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_int_equal(
			fchmodat(env.dir[ENV_RW], "f", rows[i].mode, 0), 0);
		assert_int_equal(
			fchmodat(env.dir[ENV_RW], "d", rows[i].mode, 0), 0);
		env_caller(&env, rows[i].uid, rows[i].gid);
		assert_int_equal(access_of("f", ALL), rows[i].file);
		assert_int_equal(access_of("d", ALL), rows[i].dir);
		assert_int_equal(access_of("f", READ), rows[i].file & READ);
		assert_int_equal(access_of("d", ~0u), rows[i].dir);
		assert_int_equal(access_of("d", 0), 0);
	}
}

static void
test_access_read_only(void **state)
{
	env_file(&env, ENV_RW, "f", "text", 0777, 1000);
	env_read_only(&env, true);
	assert_int_equal(access_of("f", ALL), READ | EXECUTE);
	assert_int_equal(access_of(".", ALL), READ | LOOKUP);
}

static void
test_readlink(void **state)
{
	const struct nfs3_readlink_res *res = &env.rq.res.readlink;
	char target[1001]; /* XFS keeps up to 1024 bytes */

	memset(target, '\xfe', sizeof(target) - 1);
	target[sizeof(target) - 1] = '\0';
	assert_int_equal(symlinkat(target, env.dir[ENV_RW], "s"), 0);
	env_file(&env, ENV_RW, "f", "text", 0644, 0);
	env_caller(&env, 1000, 1000);
	assert_int_equal(query(nfs3_readlink, "s"), NFS3_OK);
	assert_int_equal(res->bytes, sizeof(target) - 1);
	assert_memory_equal(res->data, target, sizeof(target) - 1);
	assert_int_equal(res->attr.attr.type, NF3LNK);
	assert_int_equal(query(nfs3_readlink, "f"), NFS3ERR_INVAL);
	assert_int_equal(query(nfs3_readlink, "."), NFS3ERR_INVAL);
	assert_true(res->attr.follows);
}

static void
test_fsstat(void **state)
{
	const struct nfs3_fsstat_res *res = &env.rq.res.fsstat;
	struct statvfs fs;

	assert_int_equal(query(nfs3_fsstat, "."), NFS3_OK);
	assert_int_equal(fstatvfs(env.dir[ENV_RW], &fs), 0);
	assert_int_equal(res->tbytes, fs.f_blocks * fs.f_frsize);
	assert_true(res->fbytes <= res->tbytes);
	assert_true(res->abytes <= res->fbytes);
	assert_int_equal(res->tfiles, fs.f_files);
	assert_true(res->ffiles <= res->tfiles);
	assert_true(res->attr.follows);
}

static void
test_fsinfo(void **state)
{
	const struct nfs3_fsinfo_res *res = &env.rq.res.fsinfo;
	const struct timespec times[2] = { { 9, 123456789 }, { 9, 123456789 } };
	struct statx st;
	uint64_t grain;
	int fd;

	assert_int_equal(query(nfs3_fsinfo, "."), NFS3_OK);
	assert_true(res->attr.follows);
	assert_true(res->rtmax >= 4u << 20 && res->wtmax >= 4u << 20);
	assert_true(res->wtpref >= 65536 && res->wtpref <= res->wtmax);
	assert_int_equal(res->wtpref % res->wtmult, 0);
	assert_int_equal(res->rtpref, 1u << 20);
	assert_true(res->wtmult > 0 && res->wtmax % res->wtmult == 0);
	assert_true(res->rtmult > 0 && res->dtpref >= 4096);
	assert_int_equal(res->properties, FSF3_LINK | FSF3_SYMLINK |
						  FSF3_HOMOGENEOUS |
						  FSF3_CANSETTIME);
	/* A file of that size can be, and none that is larger. */
	env_file(&env, ENV_RW, "f", "", 0644, 0);
	fd = openat(env.dir[ENV_RW], "f", O_WRONLY);
	assert_int_equal(ftruncate(fd, (off_t)res->maxfilesize), 0);
	if (res->maxfilesize < INT64_MAX) {
		assert_int_equal(ftruncate(fd, (off_t)res->maxfilesize + 1),
				 -1);
		assert_int_equal(errno, EFBIG);
	}
	grain = res->time_delta.seconds * 1000000000ull +
		res->time_delta.nseconds;
	assert_true(grain > 0);
	assert_int_equal(futimens(fd, times), 0);
	assert_int_equal(nfs3_statx(fd, &st), 0);
	assert_int_equal(st.stx_mtime.tv_nsec,
			 123456789 - 123456789 % (grain > 0 ? grain : 1));
	assert_int_equal(close(fd), 0);
	/* Remembered: the same again, also from where none can be made. */
	env_read_only(&env, true);
	grain = res->maxfilesize;
	assert_int_equal(query(nfs3_fsinfo, "f"), NFS3_OK);
	assert_int_equal(res->maxfilesize, grain);
}

static void
test_pathconf(void **state)
{
	const struct nfs3_pathconf_res *res = &env.rq.res.pathconf;

	assert_int_equal(query(nfs3_pathconf, "."), NFS3_OK);
	assert_int_equal(res->name_max, 255);
	assert_true(res->linkmax >= 127);
	assert_true(res->no_trunc && res->chown_restricted);
	assert_true(res->case_preserving && !res->case_insensitive);
	assert_true(res->attr.follows);
}

/* ext4's limit, asked of ext4: the table says what the kernel does. */
static void
test_link_max(void **state)
{
	const struct volume_facts *facts =
		volume_facts(env_export(&env, ENV_RW)->rw);
	char name[16];
	uint32_t i;

	if (facts->fs_type != 0xEF53) {
		print_message("skip: the export is not on ext4\n");
		skip();
	}
	assert_int_equal(query(nfs3_pathconf, "."), NFS3_OK);
	env_file(&env, ENV_RW, "f", "", 0644, 0);
	for (i = 1; i < env.rq.res.pathconf.linkmax; i++) {
		(void)snprintf(name, sizeof(name), "l%u", i);
		assert_int_equal(
			linkat(env.dir[ENV_RW], "f", env.dir[ENV_RW], name, 0),
			0);
	}
	assert_int_equal(
		linkat(env.dir[ENV_RW], "f", env.dir[ENV_RW], "one more", 0),
		-1);
	assert_int_equal(errno, EMLINK);
}

static int
clean(void **state)
{
	env_reset(&env);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_getattr, clean),
		cmocka_unit_test_teardown(test_access, clean),
		cmocka_unit_test_teardown(test_access_read_only, clean),
		cmocka_unit_test_teardown(test_readlink, clean),
		cmocka_unit_test_teardown(test_fsstat, clean),
		cmocka_unit_test_teardown(test_fsinfo, clean),
		cmocka_unit_test_teardown(test_pathconf, clean),
		cmocka_unit_test_teardown(test_link_max, clean),
	};

	return env_test(&env, tests, sizeof(tests) / sizeof(tests[0]));
}
