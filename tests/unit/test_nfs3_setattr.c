/* SPDX-License-Identifier: Apache-2.0 */
/* SETATTR: who may, what happens, and that a refusal changes nothing. */
#include "tests/unit/proc_env.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct env env;

static enum nfsstat3
set_fh(const struct nfs_fh3 *fh, const struct sattr3 *a)
{
	struct nfs3_setattr_args *args = &env.rq.args.setattr;

	memset(args, 0, sizeof(*args));
	args->fh = *fh;
	args->attr = *a;
	return env_run(&env, nfs3_setattr);
}

static enum nfsstat3
set(const char *name, const struct sattr3 *a)
{
	const struct nfs_fh3 fh = env_lookup(&env, ENV_RW, name);

	return set_fh(&fh, a);
}

/* wcc_data told what was, and what is. */
static void
check_wcc(const struct statx *before, const char *name)
{
	const struct wcc_data *wcc = &env.rq.res.wcc.wcc;
	struct statx after = env_stat(&env, ENV_RW, name);

	assert_true(wcc->before.follows && wcc->after.follows);
	assert_int_equal(wcc->before.size, before->stx_size);
	assert_int_equal(wcc->before.ctime.seconds, before->stx_ctime.tv_sec);
	assert_int_equal(wcc->before.ctime.nseconds, before->stx_ctime.tv_nsec);
	assert_int_equal(wcc->before.mtime.nseconds, before->stx_mtime.tv_nsec);
	assert_int_equal(wcc->after.attr.size, after.stx_size);
	assert_int_equal(wcc->after.attr.mode, after.stx_mode & 07777);
	assert_int_equal(wcc->after.attr.ctime.nseconds,
			 after.stx_ctime.tv_nsec);
}

static void
test_mode(void **state)
{
	struct sattr3 a = { .set_mode = true, .mode = 0107711 };
	struct statx st;

	env_file(&env, ENV_RW, "f", "text", 0644, 1000);
	st = env_stat(&env, ENV_RW, "f");
	env_caller(&env, 1000, 1000);
	assert_int_equal(set("f", &a), NFS3_OK);
	check_wcc(&st, "f");
	st = env_stat(&env, ENV_RW, "f");
	assert_int_equal(st.stx_mode, S_IFREG | 07711);
	env_caller(&env, 1001, 1000);
	a.mode = 0777;
	assert_int_equal(set("f", &a), NFS3ERR_PERM);
	assert_true(env.rq.res.wcc.wcc.after.follows);
	assert_int_equal(env_stat(&env, ENV_RW, "f").stx_mode, S_IFREG | 07711);
}

/* Other kinds of object; a symlink's mode is left alone, without an error. */
static void
test_kinds(void **state)
{
	static const char *const names[] = { "fifo", "dir", "dev" };
	struct sattr3 a = { .set_mode = true, .mode = 0123 };
	const struct sattr3 size = { .set_size = true };
	size_t i;

	assert_int_equal(mkfifoat(env.dir[ENV_RW], "fifo", 0666), 0);
	assert_int_equal(mkdirat(env.dir[ENV_RW], "dir", 0777), 0);
	assert_int_equal(mknodat(env.dir[ENV_RW], "dev", S_IFCHR | 0666, 0x103),
			 0);
	env_file(&env, ENV_RW, "f", "text", 0644, 0);
	assert_int_equal(symlinkat("f", env.dir[ENV_RW], "link"), 0);
	for (i = 0; i < 3; i++) {
		assert_int_equal(set(names[i], &a), NFS3_OK);
		assert_int_equal(env_stat(&env, ENV_RW, names[i]).stx_mode &
					 07777,
				 0123);
		assert_int_equal(set(names[i], &size),
				 i == 1 ? NFS3ERR_ISDIR : NFS3ERR_INVAL);
		assert_true(env.rq.res.wcc.wcc.after.follows);
	}
	a.set_uid = true;
	a.uid = 77;
	assert_int_equal(set("link", &a), NFS3_OK);
	assert_int_equal(env_stat(&env, ENV_RW, "link").stx_uid, 77);
	assert_int_equal(env_stat(&env, ENV_RW, "f").stx_uid, 0);
	assert_int_equal(env_stat(&env, ENV_RW, "f").stx_mode, S_IFREG | 0644);
	assert_int_equal(set("link", &size), NFS3ERR_INVAL);
}

static void
test_owner(void **state)
{
	struct sattr3 a = { .set_uid = true, .uid = 1001 };
	struct statx st;

	env_file(&env, ENV_RW, "f", "text", 0644, 1000);
	env_caller(&env, 1000, 1000);
	assert_int_equal(set("f", &a), NFS3ERR_PERM);
	a = (struct sattr3){ .set_gid = true, .gid = 5 };
	assert_int_equal(set("f", &a), NFS3ERR_PERM);
	env.cred.gids = 1;
	env.cred.gid_list[0] = 5;
	assert_int_equal(set("f", &a), NFS3_OK);
	assert_int_equal(env_stat(&env, ENV_RW, "f").stx_gid, 5);
	/* Giving it to whom it belongs is no change. */
	a = (struct sattr3){ .set_uid = true, .uid = 1000 };
	assert_int_equal(set("f", &a), NFS3_OK);
	env_caller(&env, 0, 0);
	a = (struct sattr3){
		.set_uid = true, .uid = 7, .set_gid = true, .gid = 8
	};
	assert_int_equal(set("f", &a), NFS3_OK);
	st = env_stat(&env, ENV_RW, "f");
	assert_int_equal(st.stx_uid, 7);
	assert_int_equal(st.stx_gid, 8);
	a.uid = a.gid = UINT32_MAX; /* chown's "leave it" */
	assert_int_equal(set("f", &a), NFS3_OK);
	assert_int_equal(env_stat(&env, ENV_RW, "f").stx_uid, 7);
}

/* A chown or a truncation takes setuid and setgid away; a mode stands. */
static void
test_setuid(void **state)
{
	struct sattr3 a = { .set_gid = true, .gid = 5 };

	env_file(&env, ENV_RW, "f", "text", 06755, 1000);
	env_caller(&env, 1000, 1000);
	env.cred.gids = 1;
	env.cred.gid_list[0] = 5;
	assert_int_equal(set("f", &a), NFS3_OK);
	assert_int_equal(env_stat(&env, ENV_RW, "f").stx_mode, S_IFREG | 0755);
	a.set_mode = true;
	a.mode = 04755;
	a.gid = 1000;
	assert_int_equal(set("f", &a), NFS3_OK);
	assert_int_equal(env_stat(&env, ENV_RW, "f").stx_mode, S_IFREG | 04755);
	a = (struct sattr3){ .set_size = true, .size = 1 };
	assert_int_equal(set("f", &a), NFS3_OK);
	assert_int_equal(env_stat(&env, ENV_RW, "f").stx_mode, S_IFREG | 0755);
}

static void
test_size(void **state)
{
	struct sattr3 a = { .set_size = true, .size = 2 };
	uint8_t back[10000], zeros[10000] = { 0 };
	struct statx st;
	int fd;

	env_file(&env, ENV_RW, "f", "text", 0444, 1000);
	env_caller(&env, 1000, 1000); /* the owner, whatever the mode */
	st = env_stat(&env, ENV_RW, "f");
	assert_int_equal(set("f", &a), NFS3_OK);
	check_wcc(&st, "f");
	assert_int_equal(env_stat(&env, ENV_RW, "f").stx_size, 2);
	a.size = sizeof(back);
	assert_int_equal(set("f", &a), NFS3_OK);
	fd = openat(env.dir[ENV_RW], "f", O_RDONLY);
	assert_int_equal(pread(fd, back, sizeof(back), 0), sizeof(back));
	assert_memory_equal(back, "te", 2);
	assert_memory_equal(back + 2, zeros, sizeof(back) - 2);
	assert_int_equal(close(fd), 0);
	a.size = (uint64_t)INT64_MAX + 1;
	assert_int_equal(set("f", &a), NFS3ERR_FBIG);
	a.size = UINT64_MAX;
	assert_int_equal(set("f", &a), NFS3ERR_FBIG);
	env_caller(&env, 1001, 1000);
	a.size = 0;
	assert_int_equal(set("f", &a), NFS3ERR_ACCES);
	assert_int_equal(env_stat(&env, ENV_RW, "f").stx_size, sizeof(back));
	/* Who may write may cut, with the mtime along, as truncate(2) asks. */
	assert_int_equal(fchmodat(env.dir[ENV_RW], "f", 0464, 0), 0);
	a.set_mtime = SET_TO_SERVER_TIME;
	assert_int_equal(set("f", &a), NFS3_OK);
	assert_int_equal(env_stat(&env, ENV_RW, "f").stx_size, 0);
}

/* Nothing of a request is done when some of it may not be. */
static void
test_whole(void **state)
{
	struct sattr3 a = { .set_size = true,
			    .size = 1,
			    .set_mode = true,
			    .mode = 0600,
			    .set_uid = true,
			    .uid = 1001 };
	struct statx st, now;

	env_file(&env, ENV_RW, "f", "text", 0666, 1000);
	st = env_stat(&env, ENV_RW, "f");
	env_caller(&env, 1000, 1000);
	assert_int_equal(set("f", &a), NFS3ERR_PERM);
	env_caller(&env, 1001, 1001);
	a.set_uid = false;
	assert_int_equal(set("f", &a), NFS3ERR_PERM);
	a.set_mode = false;
	a.set_atime = SET_TO_CLIENT_TIME;
	assert_int_equal(set("f", &a), NFS3ERR_PERM);
	a.atime.nseconds = 1000000000;
	assert_int_equal(set("f", &a), NFS3ERR_INVAL);
	now = env_stat(&env, ENV_RW, "f");
	assert_int_equal(now.stx_size, 4);
	assert_int_equal(now.stx_mode, S_IFREG | 0666);
	assert_int_equal(now.stx_ctime.tv_nsec, st.stx_ctime.tv_nsec);
}

static void
test_guard(void **state)
{
	struct nfs3_setattr_args *args = &env.rq.args.setattr;
	struct statx st;

	env_file(&env, ENV_RW, "f", "text", 0644, 0);
	st = env_stat(&env, ENV_RW, "f");
	memset(args, 0, sizeof(*args));
	args->fh = env_lookup(&env, ENV_RW, "f");
	args->attr.set_size = true;
	args->guard = true;
	args->guard_ctime.seconds = (uint32_t)st.stx_ctime.tv_sec;
	args->guard_ctime.nseconds = st.stx_ctime.tv_nsec ^ 1;
	assert_int_equal(env_run(&env, nfs3_setattr), NFS3ERR_NOT_SYNC);
	check_wcc(&st, "f");
	args->guard_ctime.nseconds ^= 1;
	args->guard_ctime.seconds ^= 1;
	assert_int_equal(env_run(&env, nfs3_setattr), NFS3ERR_NOT_SYNC);
	assert_int_equal(env_stat(&env, ENV_RW, "f").stx_size, 4);
	args->guard_ctime.seconds ^= 1;
	assert_int_equal(env_run(&env, nfs3_setattr), NFS3_OK);
	assert_int_equal(env_stat(&env, ENV_RW, "f").stx_size, 0);
}

static void
test_client_times(void **state)
{
	struct sattr3 a = { .set_atime = SET_TO_CLIENT_TIME,
			    .atime = { 0, 0 },
			    .set_mtime = SET_TO_CLIENT_TIME,
			    .mtime = { 1234567890, 987654321 } };
	struct statx st;

	env_file(&env, ENV_RW, "f", "text", 0444, 1000);
	env_caller(&env, 1000, 1000);
	assert_int_equal(set("f", &a), NFS3_OK);
	st = env_stat(&env, ENV_RW, "f");
	assert_int_equal(st.stx_atime.tv_sec, 0);
	assert_int_equal(st.stx_mtime.tv_sec, 1234567890);
	assert_int_equal(st.stx_mtime.tv_nsec, 987654321);
	/* One alone leaves the other. */
	a.set_mtime = DONT_CHANGE;
	a.atime.seconds = 5;
	assert_int_equal(set("f", &a), NFS3_OK);
	st = env_stat(&env, ENV_RW, "f");
	assert_int_equal(st.stx_atime.tv_sec, 5);
	assert_int_equal(st.stx_mtime.tv_nsec, 987654321);
	/* What utimensat(2) takes for "now" and "leave it". */
	a.atime.nseconds = UTIME_NOW;
	assert_int_equal(set("f", &a), NFS3ERR_INVAL);
	a.atime.nseconds = UTIME_OMIT;
	assert_int_equal(set("f", &a), NFS3ERR_INVAL);
	a.atime.nseconds = 1000000000;
	assert_int_equal(set("f", &a), NFS3ERR_INVAL);
	assert_int_equal(env_stat(&env, ENV_RW, "f").stx_atime.tv_sec, 5);
}

static void
test_server_times(void **state)
{
	const struct timespec old[2] = { { 1000, 0 }, { 1000, 0 } };
	struct sattr3 a = { .set_mtime = SET_TO_SERVER_TIME };
	struct statx st;

	env_file(&env, ENV_RW, "f", "text", 0646, 1000);
	assert_int_equal(utimensat(env.dir[ENV_RW], "f", old, 0), 0);
	env_caller(&env, 1001, 1001); /* may write, is not the owner */
	assert_int_equal(set("f", &a), NFS3_OK);
	st = env_stat(&env, ENV_RW, "f");
	assert_int_equal(st.stx_atime.tv_sec, 1000);
	assert_true(st.stx_mtime.tv_sec > 1000);
	a.set_atime = SET_TO_SERVER_TIME;
	assert_int_equal(set("f", &a), NFS3_OK);
	assert_true(env_stat(&env, ENV_RW, "f").stx_atime.tv_sec > 1000);
	/* Another time than now is the owner's to set. */
	a.set_atime = SET_TO_CLIENT_TIME;
	assert_int_equal(set("f", &a), NFS3ERR_PERM);
	assert_int_equal(fchmodat(env.dir[ENV_RW], "f", 0644, 0), 0);
	a.set_atime = SET_TO_SERVER_TIME;
	assert_int_equal(set("f", &a), NFS3ERR_ACCES);
	a.set_atime = DONT_CHANGE;
	assert_int_equal(set("f", &a), NFS3ERR_ACCES);
}

static void
test_refused(void **state)
{
	const struct sattr3 none = { 0 };
	struct nfs_fh3 fh;

	env_file(&env, ENV_RW, "f", "text", 0644, 1000);
	fh = env_lookup(&env, ENV_RW, "f");
	assert_int_equal(set_fh(&fh, &none), NFS3_OK);
	env_read_only(&env, true);
	assert_int_equal(set_fh(&fh, &none), NFS3ERR_ROFS);
	assert_true(env.rq.res.wcc.wcc.after.follows);
	env_read_only(&env, false);
	assert_int_equal(unlinkat(env.dir[ENV_RW], "f", 0), 0);
	assert_int_equal(set_fh(&fh, &none), NFS3ERR_STALE);
	fh.data[0] ^= 0x80;
	assert_int_equal(set_fh(&fh, &none), NFS3ERR_BADHANDLE);
	assert_false(env.rq.res.wcc.wcc.after.follows);
}

/* With the file in use by a data call: pre_op is left out. */
static void
test_overlap(void **state)
{
	const struct sattr3 a = { .set_mode = true, .mode = 0600 };
	struct file_bracket bracket;
	struct file_key key;
	struct object o;
	struct file *f;

	env_file(&env, ENV_RW, "f", "text", 0644, 0);
	env.rq.args.fh.fh = env_lookup(&env, ENV_RW, "f");
	assert_int_equal(object_open(&o, &env.rq, &env.rq.args.fh.fh), 0);
	object_file_key(&o, &key);
	assert_int_equal(file_open(env.server.engine, &key, &f), 0);
	assert_int_equal(set("f", &a), NFS3_OK);
	assert_true(env.rq.res.wcc.wcc.before.follows);
	file_begin(f, &bracket);
	assert_int_equal(set("f", &a), NFS3_OK);
	assert_false(env.rq.res.wcc.wcc.before.follows);
	assert_true(env.rq.res.wcc.wcc.after.follows);
	assert_false(file_end(f, &bracket));
	file_put(f);
	object_fini(&o);
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
		cmocka_unit_test_teardown(test_mode, clean),
		cmocka_unit_test_teardown(test_kinds, clean),
		cmocka_unit_test_teardown(test_owner, clean),
		cmocka_unit_test_teardown(test_setuid, clean),
		cmocka_unit_test_teardown(test_size, clean),
		cmocka_unit_test_teardown(test_whole, clean),
		cmocka_unit_test_teardown(test_guard, clean),
		cmocka_unit_test_teardown(test_client_times, clean),
		cmocka_unit_test_teardown(test_server_times, clean),
		cmocka_unit_test_teardown(test_refused, clean),
		cmocka_unit_test_teardown(test_overlap, clean),
	};

	return env_test(&env, tests, sizeof(tests) / sizeof(tests[0]));
}
