/* SPDX-License-Identifier: Apache-2.0 */
/* CREATE, MKDIR, SYMLINK, MKNOD. */
#include "tests/unit/proc_env.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

static struct env env;

static void
where(struct diropargs3 *w, enum env_export x, const char *name)
{
	w->dir = env.root[x];
	w->name = env_bytes(name);
}

static enum nfsstat3
create_at(enum env_export x, const char *name, enum createmode3 mode,
	  const struct sattr3 *attr)
{
	struct nfs3_create_args *args = &env.rq.args.create;

	memset(args, 0, sizeof(*args));
	where(&args->where, x, name);
	args->mode = mode;
	args->attr = *attr;
	return env_run(&env, nfs3_create);
}

static enum nfsstat3
create(const char *name, enum createmode3 mode, const struct sattr3 *attr)
{
	return create_at(ENV_RW, name, mode, attr);
}

static enum nfsstat3
exclusive_at(enum env_export x, const char *name, const uint8_t verf[8])
{
	struct nfs3_create_args *args = &env.rq.args.create;

	memset(args, 0, sizeof(*args));
	where(&args->where, x, name);
	args->mode = EXCLUSIVE;
	memcpy(args->verf, verf, sizeof(args->verf));
	return env_run(&env, nfs3_create);
}

static enum nfsstat3
exclusive(const char *name, const uint8_t verf[8])
{
	return exclusive_at(ENV_RW, name, verf);
}

static enum nfsstat3
make_dir(const char *name, const struct sattr3 *attr)
{
	where(&env.rq.args.mkdir.where, ENV_RW, name);
	env.rq.args.mkdir.attr = *attr;
	return env_run(&env, nfs3_mkdir);
}

static enum nfsstat3
make_symlink(const char *name, const void *target, uint32_t n)
{
	memset(&env.rq.args, 0, sizeof(env.rq.args));
	where(&env.rq.args.symlink.where, ENV_RW, name);
	env.rq.args.symlink.target = (struct nfs3_bytes){ target, n };
	return env_run(&env, nfs3_symlink);
}

static enum nfsstat3
make_node(const char *name, uint32_t type, uint32_t major, uint32_t minor)
{
	struct nfs3_mknod_args *args = &env.rq.args.mknod;

	memset(args, 0, sizeof(*args));
	where(&args->where, ENV_RW, name);
	args->type = type;
	args->attr.set_mode = true;
	args->attr.mode = 0640;
	args->spec.specdata1 = major;
	args->spec.specdata2 = minor;
	return env_run(&env, nfs3_mknod);
}

/* The reply describes what is really there, and the directory's change. */
static struct statx
check_reply(const char *name)
{
	const struct nfs3_create_res *res = &env.rq.res.create;
	struct statx st = env_stat(&env, ENV_RW, name);
	struct nfs_fh3 fh;

	assert_true(res->fh.follows && res->attr.follows);
	assert_true(res->dir_wcc.before.follows && res->dir_wcc.after.follows);
	assert_int_equal(res->attr.attr.fileid, st.stx_ino);
	assert_int_equal(res->attr.attr.mode, st.stx_mode & 07777);
	assert_int_equal(res->attr.attr.uid, st.stx_uid);
	assert_int_equal(res->attr.attr.size, st.stx_size);
	fh = res->fh.fh;
	assert_memory_equal(fh.data, env_lookup(&env, ENV_RW, name).data,
			    fh.bytes);
	return st;
}

static void
test_file(void **state)
{
	const struct sattr3 none = { 0 };
	struct sattr3 attr = { .set_mode = true, .mode = 0644 };
	struct statx before, st;

	env_caller(&env, 1000, 2000);
	before = env_stat(&env, ENV_RW, ".");
	assert_int_equal(create("a", GUARDED, &attr), NFS3_OK);
	assert_int_equal(env.rq.res.create.dir_wcc.before.mtime.nseconds,
			 before.stx_mtime.tv_nsec);
	assert_int_equal(env.rq.res.create.dir_wcc.after.attr.mtime.nseconds,
			 env_stat(&env, ENV_RW, ".").stx_mtime.tv_nsec);
	st = check_reply("a");
	assert_int_equal(st.stx_mode, S_IFREG | 0644);
	assert_int_equal(st.stx_uid, 1000);
	assert_int_equal(st.stx_gid, 2000);
	assert_int_equal(create("a", GUARDED, &attr), NFS3ERR_EXIST);
	assert_true(env.rq.res.create.dir_wcc.after.follows);
	/* No mode: none. No umask of the server's either. */
	assert_int_equal(create("b", UNCHECKED, &none), NFS3_OK);
	assert_int_equal(check_reply("b").stx_mode, S_IFREG);
	attr.mode = 06777;
	assert_int_equal(create("c", UNCHECKED, &attr), NFS3_OK);
	assert_int_equal(check_reply("c").stx_mode, S_IFREG | 06777);
}

static void
test_attributes(void **state)
{
	struct sattr3 attr = {
		.set_mode = true,
		.mode = 04755,
		.set_uid = true,
		.uid = 1234,
		.set_gid = true,
		.gid = 4321,
		.set_size = true,
		.size = 5000,
		.set_atime = SET_TO_CLIENT_TIME,
		.atime = { 1000, 1 },
		.set_mtime = SET_TO_CLIENT_TIME,
		.mtime = { 4000000000u, 999999999 },
	};
	struct statx st;

	assert_int_equal(create("a", GUARDED, &attr), NFS3_OK);
	st = check_reply("a");
	assert_int_equal(st.stx_mode, S_IFREG | 04755);
	assert_int_equal(st.stx_uid, 1234);
	assert_int_equal(st.stx_gid, 4321);
	assert_int_equal(st.stx_size, 5000);
	assert_int_equal(st.stx_atime.tv_sec, 1000);
	assert_int_equal(st.stx_atime.tv_nsec, 1);
	assert_int_equal(st.stx_mtime.tv_sec, 4000000000);
	assert_int_equal(st.stx_mtime.tv_nsec, 999999999);
	/* Others than root cannot give it away; it is theirs. */
	env_caller(&env, 1000, 1000);
	assert_int_equal(create("b", GUARDED, &attr), NFS3_OK);
	assert_int_equal(check_reply("b").stx_uid, 1000);
	/* What cannot be is refused before there is a file. */
	attr.mtime.nseconds = 1000000000;
	assert_int_equal(create("c", GUARDED, &attr), NFS3ERR_INVAL);
	attr.mtime.nseconds = 0;
	attr.size = UINT64_MAX;
	assert_int_equal(create("c", GUARDED, &attr), NFS3ERR_FBIG);
	assert_int_equal(faccessat(env.dir[ENV_RW], "c", F_OK, 0), -1);
}

static void
test_unchecked_existing(void **state)
{
	struct sattr3 attr = { .set_mode = true,
			       .mode = 0777,
			       .set_mtime = SET_TO_CLIENT_TIME };
	struct statx st;

	env_file(&env, ENV_RW, "own", "text", 0444, 1000);
	env_file(&env, ENV_RW, "other", "text", 0644, 1001);
	env_caller(&env, 1000, 1000);
	assert_int_equal(create("own", UNCHECKED, &attr), NFS3_OK);
	st = check_reply("own");
	assert_int_equal(st.stx_mode, S_IFREG | 0444);
	assert_int_equal(st.stx_size, 4);
	assert_int_not_equal(st.stx_mtime.tv_sec, 0);
	attr.set_size = true; /* open(O_TRUNC) by its owner */
	assert_int_equal(create("own", UNCHECKED, &attr), NFS3_OK);
	assert_int_equal(check_reply("own").stx_size, 0);
	assert_int_equal(check_reply("own").stx_mode, S_IFREG | 0444);
	assert_int_equal(create("other", UNCHECKED, &attr), NFS3ERR_ACCES);
	assert_int_equal(env_stat(&env, ENV_RW, "other").stx_size, 4);
}

/* Nothing that is no file is opened, followed or taken for one. */
static void
test_existing_others(void **state)
{
	static const char *const names[] = { "fifo", "dir", "link", "away" };
	struct sattr3 attr = { .set_size = true };
	const uint8_t verf[8] = { 0 };
	size_t i;

	assert_int_equal(mkfifoat(env.dir[ENV_RW], "fifo", 0666), 0);
	assert_int_equal(mkdirat(env.dir[ENV_RW], "dir", 0777), 0);
	assert_int_equal(symlinkat("new", env.dir[ENV_RW], "link"), 0);
	assert_int_equal(symlinkat("/etc/passwd", env.dir[ENV_RW], "away"), 0);
	for (i = 0; i < 4; i++) {
		assert_int_equal(create(names[i], UNCHECKED, &attr),
				 NFS3ERR_EXIST);
		assert_int_equal(create(names[i], GUARDED, &attr),
				 NFS3ERR_EXIST);
		assert_int_equal(exclusive(names[i], verf), NFS3ERR_EXIST);
	}
	assert_int_equal(faccessat(env.dir[ENV_RW], "new", F_OK, 0), -1);
}

static void
verf_make(uint8_t verf[8], uint64_t bits)
{
	memcpy(verf, &bits, sizeof(bits));
}

/* Each of the 64 bits counts. */
static void
test_exclusive(void **state)
{
	static const uint64_t values[] = { 0, UINT64_MAX, 0x0123456789abcdef,
					   0xdfffffffdfffffff,
					   0x5f5e0ff5f5e0ff };
	const struct sattr3 set = { .set_mtime = SET_TO_SERVER_TIME,
				    .set_atime = SET_TO_SERVER_TIME };
	uint8_t verf[8];
	size_t i;
	int bit;

	env_caller(&env, 1000, 1000);
	for (i = 0; i < sizeof(values) / sizeof(*values); i++) {
		verf_make(verf, values[i]);
		assert_int_equal(exclusive("x", verf), NFS3_OK);
		assert_int_equal(check_reply("x").stx_uid, 1000);
		assert_int_equal(exclusive("x", verf), NFS3_OK);
		assert_int_equal(check_reply("x").stx_size, 0);
		for (bit = 0; bit < 64; bit++) {
			verf_make(verf, values[i] ^ 1ull << bit);
			assert_int_equal(exclusive("x", verf), NFS3ERR_EXIST);
		}
		/* The client's SETATTR puts the times right; then it is a file
		 * like any other. */
		env.rq.args.setattr.fh = env_lookup(&env, ENV_RW, "x");
		env.rq.args.setattr.attr = set;
		env.rq.args.setattr.guard = false;
		assert_int_equal(env_run(&env, nfs3_setattr), NFS3_OK);
		verf_make(verf, values[i]);
		assert_int_equal(exclusive("x", verf), NFS3ERR_EXIST);
		assert_int_equal(unlinkat(env.dir[ENV_RW], "x", 0), 0);
	}
}

/* A file system that rounds times: the verifier is in an attribute. */
static void
test_exclusive_xattr(void **state)
{
	const struct timespec rounded[2] = { { 3, 0 }, { 4, 0 } };
	const uint8_t verf[8] = "verifier", other[8] = "Verifier";
	int fd = openat(env.dir[ENV_RW], "x", O_CREAT | O_WRONLY, 0600);
	struct statx st;

	assert_true(fd >= 0);
	if (fsetxattr(fd, "trusted.nvnfsd.create", verf, 8, 0) < 0) {
		print_message("skip: no extended attributes here\n");
		skip();
	}
	assert_int_equal(futimens(fd, rounded), 0);
	assert_int_equal(nfs3_statx(fd, &st), 0);
	assert_true(exclusive_same(fd, &st, verf));
	assert_false(exclusive_same(fd, &st, other));
	assert_int_equal(close(fd), 0);
	assert_int_equal(exclusive("x", verf), NFS3_OK);
	assert_int_equal(exclusive("x", other), NFS3ERR_EXIST);
}

static void
test_mkdir(void **state)
{
	struct sattr3 attr = { .set_mode = true, .mode = 02750 };
	const struct sattr3 none = { 0 };
	struct statx st;

	env_caller(&env, 1000, 1000);
	assert_int_equal(make_dir("a", &attr), NFS3_OK);
	st = check_reply("a");
	assert_int_equal(st.stx_mode, S_IFDIR | 02750);
	assert_int_equal(make_dir("a", &attr), NFS3ERR_EXIST);
	assert_int_equal(make_dir("b", &none), NFS3_OK);
	assert_int_equal(check_reply("b").stx_mode, S_IFDIR);
	assert_int_equal(make_dir(".", &attr), NFS3ERR_EXIST);
	assert_int_equal(make_dir("..", &attr), NFS3ERR_EXIST);
	assert_int_equal(make_dir("", &attr), NFS3ERR_ACCES);
	assert_int_equal(make_dir("a/b", &attr), NFS3ERR_ACCES);
	assert_true(env.rq.res.create.dir_wcc.after.follows);
}

/* A setgid directory hands its group down, and so does its default ACL. */
static void
test_inherited(void **state)
{
	struct sattr3 attr = { .set_mode = true, .mode = 0666 };

	/* In this order: without CAP_FSETID, as a worker is, chmod(2) leaves
	 * the bit only to members of the group. */
	assert_int_equal(fchmod(env.dir[ENV_RW], 02777), 0);
	assert_int_equal(fchown(env.dir[ENV_RW], 0, 5000), 0);
	env_caller(&env, 1000, 1000);
	assert_int_equal(create("a", GUARDED, &attr), NFS3_OK);
	assert_int_equal(check_reply("a").stx_gid, 5000);
	attr.set_gid = true;
	attr.gid = 1000; /* as clients send along */
	assert_int_equal(create("b", GUARDED, &attr), NFS3_OK);
	assert_int_equal(check_reply("b").stx_gid, 5000);
	assert_int_equal(make_dir("d", &attr), NFS3_OK);
	assert_int_equal(check_reply("d").stx_gid, 5000);
	assert_int_equal(check_reply("d").stx_mode, S_IFDIR | 02666);
	assert_int_equal(fchown(env.dir[ENV_RW], 0, 0), 0);
	assert_int_equal(fchmod(env.dir[ENV_RW], 0777), 0);
}

static void
test_symlink(void **state)
{
	static const char target[] = "../\xff//anywhere \n";
	char longest[PATH_MAX], back[PATH_MAX];
	ssize_t n;

	memset(longest, 'x', sizeof(longest));
	env_caller(&env, 1000, 1000);
	assert_int_equal(make_symlink("a", target, sizeof(target) - 1),
			 NFS3_OK);
	assert_int_equal(check_reply("a").stx_mode & S_IFMT, S_IFLNK);
	n = readlinkat(env.dir[ENV_RW], "a", back, sizeof(back));
	assert_int_equal(n, sizeof(target) - 1);
	assert_memory_equal(back, target, (size_t)n);
	assert_int_equal(make_symlink("a", target, 3), NFS3ERR_EXIST);
	assert_int_equal(make_symlink("b", "a\0b", 3), NFS3ERR_INVAL);
	assert_int_equal(make_symlink("b", "ab\0", 3), NFS3ERR_INVAL);
	assert_int_equal(make_symlink("b", "", 0), NFS3ERR_INVAL);
	assert_int_equal(make_symlink("b", longest, PATH_MAX),
			 NFS3ERR_NAMETOOLONG);
	assert_true(env.rq.res.create.dir_wcc.before.follows);
	assert_int_equal(make_symlink(".", "a", 1), NFS3ERR_EXIST);
}

static void
test_mknod(void **state)
{
	static const uint32_t bad[] = {
		0, NF3REG, NF3DIR, NF3LNK, 8, UINT32_MAX
	};
	struct statx st;
	size_t i;

	assert_int_equal(make_node("c", NF3CHR, 1, 0x3ffff), NFS3_OK);
	st = check_reply("c");
	assert_int_equal(st.stx_mode, S_IFCHR | 0640);
	assert_int_equal(st.stx_rdev_major, 1);
	assert_int_equal(st.stx_rdev_minor, 0x3ffff);
	assert_int_equal(make_node("b", NF3BLK, 7, 3), NFS3_OK);
	assert_int_equal(check_reply("b").stx_mode & S_IFMT, S_IFBLK);
	assert_int_equal(make_node("x", NF3CHR, 0x1000, 0), NFS3ERR_INVAL);
	assert_int_equal(make_node("x", NF3CHR, 0, 0x100000), NFS3ERR_INVAL);
	env_caller(&env, 1000, 1000);
	assert_int_equal(make_node("x", NF3CHR, 1, 3), NFS3ERR_PERM);
	assert_int_equal(make_node("x", NF3CHR, 0, 0), NFS3ERR_PERM);
	assert_int_equal(make_node("x", NF3BLK, 1, 3), NFS3ERR_PERM);
	assert_int_equal(make_node("f", NF3FIFO, 9, 9), NFS3_OK);
	assert_int_equal(check_reply("f").stx_mode, S_IFIFO | 0640);
	assert_int_equal(make_node("s", NF3SOCK, 0, 0), NFS3_OK);
	assert_int_equal(check_reply("s").stx_mode, S_IFSOCK | 0640);
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(make_node("x", bad[i], 0, 0), NFS3ERR_BADTYPE);
	assert_true(env.rq.res.create.dir_wcc.after.follows);
	assert_int_equal(faccessat(env.dir[ENV_RW], "x", F_OK, 0), -1);
}

static enum nfsstat3
create_in(const struct nfs_fh3 *dir)
{
	struct nfs3_create_args *args = &env.rq.args.create;

	memset(args, 0, sizeof(*args));
	args->where.dir = *dir;
	args->where.name = env_bytes("a");
	args->mode = GUARDED;
	return env_run(&env, nfs3_create);
}

static void
test_refused(void **state)
{
	const struct sattr3 none = { 0 };
	struct nfs_fh3 dir, file, gone;

	assert_int_equal(mkdirat(env.dir[ENV_RW], "sub", 0755), 0);
	assert_int_equal(mkdirat(env.dir[ENV_RW], "gone", 0755), 0);
	env_file(&env, ENV_RW, "f", "", 0644, 0);
	dir = env_lookup(&env, ENV_RW, "sub");
	file = env_lookup(&env, ENV_RW, "f");
	gone = env_lookup(&env, ENV_RW, "gone");
	assert_int_equal(unlinkat(env.dir[ENV_RW], "gone", AT_REMOVEDIR), 0);
	env_caller(&env, 1000, 1000);
	assert_int_equal(create_in(&dir), NFS3ERR_ACCES);
	assert_true(env.rq.res.create.dir_wcc.before.follows);
	assert_int_equal(create_in(&file), NFS3ERR_NOTDIR);
	assert_true(env.rq.res.create.dir_wcc.after.follows);
	assert_int_equal(create_in(&gone), NFS3ERR_STALE);
	assert_false(env.rq.res.create.dir_wcc.after.follows);
	dir.data[9] ^= 1;
	assert_int_equal(create_in(&dir), NFS3ERR_BADHANDLE);
	assert_int_equal(create(".", UNCHECKED, &none), NFS3ERR_EXIST);
	assert_int_equal(create("..", GUARDED, &none), NFS3ERR_EXIST);
}

static void
test_read_only(void **state)
{
	const struct sattr3 none = { 0 };
	const uint8_t verf[8] = { 1 };

	env_read_only(&env, true);
	assert_int_equal(create("a", UNCHECKED, &none), NFS3ERR_ROFS);
	assert_int_equal(exclusive("a", verf), NFS3ERR_ROFS);
	assert_int_equal(make_dir("a", &none), NFS3ERR_ROFS);
	assert_int_equal(make_symlink("a", "a", 1), NFS3ERR_ROFS);
	assert_int_equal(make_node("a", NF3FIFO, 0, 0), NFS3ERR_ROFS);
	assert_true(env.rq.res.create.dir_wcc.after.follows);
}

static uint64_t
syncs(enum env_export x)
{
	return volume_counters(env_export(&env, x)->rw)->meta_sync_requests;
}

/* Durable before the reply on a `sync` export, EXCLUSIVE on any. */
static void
test_durable(void **state)
{
	const struct sattr3 none = { 0 };
	const uint8_t verf[8] = { 1 };
	uint64_t n = syncs(ENV_RW);

	assert_int_equal(create("a", GUARDED, &none), NFS3_OK);
	assert_true(syncs(ENV_RW) > n);
	n = syncs(ENV_RW);
	assert_int_equal(create("a", GUARDED, &none), NFS3ERR_EXIST);
	assert_int_equal(syncs(ENV_RW), n);
	assert_int_equal(make_dir("d", &none), NFS3_OK);
	assert_true(syncs(ENV_RW) > n);
	n = syncs(ENV_RW);
	assert_int_equal(make_symlink("l", "a", 1), NFS3_OK);
	assert_true(syncs(ENV_RW) > n);
	n = syncs(ENV_RW);
	assert_int_equal(make_node("f", NF3FIFO, 0, 0), NFS3_OK);
	assert_true(syncs(ENV_RW) > n);
	n = syncs(ENV_ASYNC);
	assert_int_equal(create_at(ENV_ASYNC, "a", GUARDED, &none), NFS3_OK);
	assert_int_equal(syncs(ENV_ASYNC), n);
	assert_int_equal(exclusive_at(ENV_ASYNC, "x", verf), NFS3_OK);
	assert_true(syncs(ENV_ASYNC) > n);
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
		cmocka_unit_test_teardown(test_file, clean),
		cmocka_unit_test_teardown(test_attributes, clean),
		cmocka_unit_test_teardown(test_unchecked_existing, clean),
		cmocka_unit_test_teardown(test_existing_others, clean),
		cmocka_unit_test_teardown(test_exclusive, clean),
		cmocka_unit_test_teardown(test_exclusive_xattr, clean),
		cmocka_unit_test_teardown(test_mkdir, clean),
		cmocka_unit_test_teardown(test_inherited, clean),
		cmocka_unit_test_teardown(test_symlink, clean),
		cmocka_unit_test_teardown(test_mknod, clean),
		cmocka_unit_test_teardown(test_refused, clean),
		cmocka_unit_test_teardown(test_read_only, clean),
		cmocka_unit_test_teardown(test_durable, clean),
	};

	return env_test(&env, tests, sizeof(tests) / sizeof(tests[0]));
}
