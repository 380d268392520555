/* SPDX-License-Identifier: Apache-2.0 */
/* LOOKUP, REMOVE, RMDIR, RENAME, LINK. */
#include "tests/unit/proc_env.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cmocka.h>

static struct env env;

static enum nfsstat3
dirop(nfs3_run_fn *run, const struct nfs_fh3 *dir, const char *name)
{
	struct diropargs3 *args = &env.rq.args.dirop.where;

	args->dir = *dir;
	args->name = env_bytes(name);
	return env_run(&env, run);
}

static enum nfsstat3
lookup(const struct nfs_fh3 *dir, const char *name)
{
	return dirop(nfs3_lookup, dir, name);
}

static bool
exists(const char *name)
{
	return faccessat(env.dir[ENV_RW], name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool
same_fh(const struct nfs_fh3 *a, const struct nfs_fh3 *b)
{
	return a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

static void
make_dir(const char *name, mode_t mode)
{
	assert_int_equal(mkdirat(env.dir[ENV_RW], name, 0700), 0);
	assert_int_equal(fchmodat(env.dir[ENV_RW], name, mode, 0), 0);
}

static void
test_lookup(void **state)
{
	const struct nfs3_lookup_res *res = &env.rq.res.lookup;
	const struct nfs_fh3 *root = &env.root[ENV_RW];
	struct nfs_fh3 sub, file;

	make_dir("sub", 0755);
	env_file(&env, ENV_RW, "sub/\xff\n *", "text", 0600, 1000);
	assert_int_equal(symlinkat("/", env.dir[ENV_RW], "away"), 0);
	assert_int_equal(lookup(root, "sub"), NFS3_OK);
	assert_true(res->attr.follows && res->dir_attr.follows);
	assert_int_equal(res->attr.attr.type, NF3DIR);
	assert_int_equal(res->dir_attr.attr.fileid,
			 env_stat(&env, ENV_RW, ".").stx_ino);
	sub = res->fh;
	assert_int_equal(lookup(&sub, "\xff\n *"), NFS3_OK);
	assert_int_equal(res->attr.attr.uid, 1000);
	file = res->fh;
	assert_int_equal(lookup(&sub, "."), NFS3_OK);
	assert_true(same_fh(&res->fh, &sub));
	assert_int_equal(lookup(&sub, ".."), NFS3_OK);
	assert_true(same_fh(&res->fh, root));
	assert_int_equal(lookup(root, "."), NFS3_OK);
	assert_true(same_fh(&res->fh, root));
	/* Not above the export. */
	assert_int_equal(lookup(root, ".."), NFS3_OK);
	assert_true(same_fh(&res->fh, root));
	assert_int_equal(res->attr.attr.fileid,
			 env_stat(&env, ENV_RW, ".").stx_ino);
	/* A symlink is what is there, not where it leads. */
	assert_int_equal(lookup(root, "away"), NFS3_OK);
	assert_int_equal(res->attr.attr.type, NF3LNK);
	assert_int_equal(lookup(&res->fh, "etc"), NFS3ERR_NOTDIR);
	assert_int_equal(lookup(root, "absent"), NFS3ERR_NOENT);
	assert_true(res->dir_attr.follows);
	assert_int_equal(lookup(root, "sub/x"), NFS3ERR_ACCES);
	assert_int_equal(lookup(root, ""), NFS3ERR_ACCES);
	assert_int_equal(lookup(&file, "x"), NFS3ERR_NOTDIR);
	assert_int_equal(lookup(&file, ".."), NFS3ERR_NOTDIR);
	assert_true(res->dir_attr.follows);
}

static void
test_lookup_permission(void **state)
{
	struct nfs_fh3 sub;

	make_dir("sub", 0744);
	env_file(&env, ENV_RW, "sub/f", "text", 0644, 0);
	sub = env_lookup(&env, ENV_RW, "sub");
	env_caller(&env, 1000, 1000);
	assert_int_equal(lookup(&sub, "f"), NFS3ERR_ACCES);
	assert_int_equal(lookup(&sub, "."), NFS3ERR_ACCES);
	assert_int_equal(lookup(&sub, ".."), NFS3ERR_ACCES);
	assert_int_equal(fchmodat(env.dir[ENV_RW], "sub", 0711, 0), 0);
	assert_int_equal(lookup(&sub, "f"), NFS3_OK);
	assert_int_equal(lookup(&sub, ".."), NFS3_OK);
}

/* What is mounted below the export is not shown, nor is it in the way. */
static void
test_mount_below(void **state)
{
	uint64_t ino;
	char path[160];

	make_dir("sub", 0755);
	ino = env_stat(&env, ENV_RW, "sub").stx_ino;
	(void)snprintf(path, sizeof(path), "%s/rw/sub", env.path);
	assert_int_equal(mount("tmpfs", path, "tmpfs", 0, NULL), 0);
	assert_int_equal(lookup(&env.root[ENV_RW], "sub"), NFS3_OK);
	assert_int_equal(env.rq.res.lookup.attr.attr.fileid, ino);
	assert_int_equal(dirop(nfs3_rmdir, &env.root[ENV_RW], "sub"),
			 NFS3ERR_ACCES); /* in use on the server */
	assert_int_equal(umount(path), 0);
	assert_int_equal(dirop(nfs3_rmdir, &env.root[ENV_RW], "sub"), NFS3_OK);
}

static void
check_wcc(const struct wcc_data *wcc, const struct statx *before,
	  const char *dir)
{
	struct statx after = env_stat(&env, ENV_RW, dir);

	assert_true(wcc->before.follows && wcc->after.follows);
	assert_int_equal(wcc->before.mtime.seconds, before->stx_mtime.tv_sec);
	assert_int_equal(wcc->before.mtime.nseconds, before->stx_mtime.tv_nsec);
	assert_int_equal(wcc->before.ctime.nseconds, before->stx_ctime.tv_nsec);
	assert_int_equal(wcc->after.attr.mtime.nseconds,
			 after.stx_mtime.tv_nsec);
	assert_int_equal(wcc->after.attr.nlink, after.stx_nlink);
}

static void
test_remove(void **state)
{
	const struct nfs_fh3 *root = &env.root[ENV_RW];
	struct statx before;
	struct nfs_fh3 fh;

	make_dir("sub", 0777);
	make_dir("mine", 0755);
	env_file(&env, ENV_RW, "f", "text", 0644, 1000);
	env_file(&env, ENV_RW, "mine/f", "text", 0666, 1000);
	fh = env_lookup(&env, ENV_RW, "f");
	env_caller(&env, 1000, 1000);
	before = env_stat(&env, ENV_RW, ".");
	assert_int_equal(dirop(nfs3_remove, root, "f"), NFS3_OK);
	check_wcc(&env.rq.res.wcc.wcc, &before, ".");
	assert_false(exists("f"));
	env.rq.args.fh.fh = fh;
	assert_int_equal(env_run(&env, nfs3_getattr), NFS3ERR_STALE);
	assert_int_equal(dirop(nfs3_remove, root, "f"), NFS3ERR_NOENT);
	assert_true(env.rq.res.wcc.wcc.before.follows);
	assert_int_equal(dirop(nfs3_remove, root, "sub"), NFS3ERR_ISDIR);
	assert_int_equal(dirop(nfs3_remove, root, "."), NFS3ERR_ISDIR);
	assert_int_equal(dirop(nfs3_remove, root, ".."), NFS3ERR_ISDIR);
	assert_int_equal(dirop(nfs3_remove, root, ""), NFS3ERR_ACCES);
	assert_int_equal(dirop(nfs3_remove, root, "mine/f"), NFS3ERR_ACCES);
	assert_true(env.rq.res.wcc.wcc.after.follows);
	fh = env_lookup(&env, ENV_RW, "mine");
	assert_int_equal(dirop(nfs3_remove, &fh, "f"), NFS3ERR_ACCES);
	assert_true(exists("mine/f"));
	env_read_only(&env, true);
	assert_int_equal(dirop(nfs3_remove, root, "sub"), NFS3ERR_ROFS);
	assert_int_equal(dirop(nfs3_rmdir, root, "sub"), NFS3ERR_ROFS);
}

/* The sticky bit: in a directory like /tmp only one's own. */
static void
test_remove_sticky(void **state)
{
	struct nfs_fh3 fh;

	make_dir("tmp", 01777);
	env_file(&env, ENV_RW, "tmp/f", "text", 0666, 1000);
	fh = env_lookup(&env, ENV_RW, "tmp");
	env_caller(&env, 1001, 1001);
	assert_int_equal(dirop(nfs3_remove, &fh, "f"), NFS3ERR_PERM);
	env_caller(&env, 1000, 1000);
	assert_int_equal(dirop(nfs3_remove, &fh, "f"), NFS3_OK);
}

static void
test_rmdir(void **state)
{
	const struct nfs_fh3 *root = &env.root[ENV_RW];
	struct statx before;

	make_dir("sub", 0777);
	env_file(&env, ENV_RW, "sub/f", "text", 0644, 0);
	before = env_stat(&env, ENV_RW, ".");
	assert_int_equal(dirop(nfs3_rmdir, root, "sub"), NFS3ERR_NOTEMPTY);
	check_wcc(&env.rq.res.wcc.wcc, &before, ".");
	assert_int_equal(unlinkat(env.dir[ENV_RW], "sub/f", 0), 0);
	assert_int_equal(dirop(nfs3_rmdir, root, "sub"), NFS3_OK);
	assert_false(exists("sub"));
	assert_int_equal(dirop(nfs3_rmdir, root, "sub"), NFS3ERR_NOENT);
	env_file(&env, ENV_RW, "f", "text", 0644, 0);
	assert_int_equal(dirop(nfs3_rmdir, root, "f"), NFS3ERR_NOTDIR);
	assert_int_equal(dirop(nfs3_rmdir, root, "."), NFS3ERR_INVAL);
	assert_int_equal(dirop(nfs3_rmdir, root, ".."), NFS3ERR_EXIST);
	assert_true(env.rq.res.wcc.wcc.after.follows);
}

static enum nfsstat3
rename_in(const struct nfs_fh3 *from_dir, const char *from,
	  const struct nfs_fh3 *to_dir, const char *to)
{
	struct nfs3_rename_args *args = &env.rq.args.rename;

	args->from.dir = *from_dir;
	args->from.name = env_bytes(from);
	args->to.dir = *to_dir;
	args->to.name = env_bytes(to);
	return env_run(&env, nfs3_rename);
}

static void
test_rename(void **state)
{
	const struct nfs_fh3 *root = &env.root[ENV_RW];
	struct statx before, before_sub;
	struct nfs_fh3 sub, fh;
	enum nfsstat3 status;

	make_dir("sub", 0777);
	env_file(&env, ENV_RW, "f", "text", 0644, 0);
	env_file(&env, ENV_RW, "g", "other", 0644, 0);
	sub = env_lookup(&env, ENV_RW, "sub");
	fh = env_lookup(&env, ENV_RW, "f");
	before = env_stat(&env, ENV_RW, ".");
	before_sub = env_stat(&env, ENV_RW, "sub");
	assert_int_equal(rename_in(root, "f", &sub, "h"), NFS3_OK);
	check_wcc(&env.rq.res.rename.from, &before, ".");
	check_wcc(&env.rq.res.rename.to, &before_sub, "sub");
	assert_false(exists("f"));
	env.rq.args.fh.fh = fh; /* the handle goes with the file */
	assert_int_equal(env_run(&env, nfs3_getattr), NFS3_OK);
	assert_int_equal(env.rq.res.attr.attr.attr.fileid,
			 env_stat(&env, ENV_RW, "sub/h").stx_ino);
	assert_int_equal(rename_in(root, "g", &sub, "h"), NFS3_OK);
	env.rq.args.fh.fh = fh;
	assert_int_equal(env_run(&env, nfs3_getattr), NFS3ERR_STALE);
	assert_int_equal(rename_in(&sub, "h", &sub, "h"), NFS3_OK);
	assert_int_equal(rename_in(root, "g", root, "x"), NFS3ERR_NOENT);
	assert_int_equal(rename_in(root, "sub", &sub, "x"), NFS3ERR_INVAL);
	make_dir("full", 0777);
	env_file(&env, ENV_RW, "full/f", "", 0644, 0);
	status = rename_in(root, "sub", root, "full");
	/* RFC 1813 allows both; XFS says EXIST. */
	assert_true(status == NFS3ERR_NOTEMPTY || status == NFS3ERR_EXIST);
	assert_int_equal(rename_in(&sub, "h", root, "full"), NFS3ERR_ISDIR);
	assert_int_equal(rename_in(root, "full", &sub, "h"), NFS3ERR_NOTDIR);
	assert_true(env.rq.res.rename.from.after.follows);
	assert_true(env.rq.res.rename.to.after.follows);
}

static void
test_rename_refused(void **state)
{
	const struct nfs3_rename_res *res = &env.rq.res.rename;
	const struct nfs_fh3 *root = &env.root[ENV_RW];
	struct nfs_fh3 bad = *root;

	env_file(&env, ENV_RW, "f", "text", 0644, 0);
	bad.data[bad.bytes - 1] ^= 1;
	assert_int_equal(rename_in(root, ".", root, "x"), NFS3ERR_INVAL);
	assert_int_equal(rename_in(root, "f", root, ".."), NFS3ERR_INVAL);
	assert_int_equal(rename_in(root, "", root, "x"), NFS3ERR_ACCES);
	assert_int_equal(rename_in(root, "f", root, "a/b"), NFS3ERR_ACCES);
	assert_int_equal(rename_in(root, "f", &env.root[ENV_OTHER], "f"),
			 NFS3ERR_XDEV);
	assert_true(res->from.after.follows && res->to.after.follows);
	/* Each side is told what can be, though the other is no handle. */
	assert_int_equal(rename_in(&bad, "f", root, "x"), NFS3ERR_BADHANDLE);
	assert_false(res->from.after.follows);
	assert_true(res->to.after.follows);
	assert_int_equal(rename_in(root, "f", &bad, "x"), NFS3ERR_BADHANDLE);
	assert_true(res->from.after.follows);
	assert_false(res->to.after.follows);
	env_read_only(&env, true);
	assert_int_equal(rename_in(root, "f", root, "x"), NFS3ERR_ROFS);
	assert_true(exists("f"));
}

static enum nfsstat3
link_in(const struct nfs_fh3 *fh, const struct nfs_fh3 *dir, const char *name)
{
	struct nfs3_link_args *args = &env.rq.args.link;

	args->fh = *fh;
	args->link.dir = *dir;
	args->link.name = env_bytes(name);
	return env_run(&env, nfs3_link);
}

static void
test_link(void **state)
{
	const struct nfs3_link_res *res = &env.rq.res.link;
	const struct nfs_fh3 *root = &env.root[ENV_RW];
	struct nfs_fh3 fh, sub;
	struct statx before;

	make_dir("sub", 0755);
	env_file(&env, ENV_RW, "f", "text", 0644, 1000);
	assert_int_equal(symlinkat("f", env.dir[ENV_RW], "s"), 0);
	fh = env_lookup(&env, ENV_RW, "f");
	sub = env_lookup(&env, ENV_RW, "sub");
	env_caller(&env, 1000, 1000);
	before = env_stat(&env, ENV_RW, ".");
	assert_int_equal(link_in(&fh, root, "g"), NFS3_OK);
	check_wcc(&res->dir_wcc, &before, ".");
	assert_true(res->attr.follows);
	assert_int_equal(res->attr.attr.nlink, 2);
	assert_int_equal(env_stat(&env, ENV_RW, "g").stx_ino,
			 env_stat(&env, ENV_RW, "f").stx_ino);
	assert_int_equal(link_in(&fh, root, "g"), NFS3ERR_EXIST);
	assert_int_equal(link_in(&fh, &sub, "g"), NFS3ERR_ACCES);
	assert_int_equal(link_in(&sub, root, "x"), NFS3ERR_ISDIR);
	assert_int_equal(link_in(&fh, root, "."), NFS3ERR_INVAL);
	assert_int_equal(link_in(&fh, root, "a/b"), NFS3ERR_ACCES);
	assert_int_equal(link_in(&fh, &fh, "x"), NFS3ERR_NOTDIR);
	assert_int_equal(link_in(&fh, &env.root[ENV_OTHER], "x"), NFS3ERR_XDEV);
	assert_true(res->attr.follows && res->dir_wcc.after.follows);
	env_caller(&env, 0, 0);
	/* A link to the symlink itself. */
	fh = env_lookup(&env, ENV_RW, "s");
	assert_int_equal(link_in(&fh, root, "t"), NFS3_OK);
	assert_int_equal(env_stat(&env, ENV_RW, "t").stx_mode & S_IFMT,
			 S_IFLNK);
	/* One of two names goes: the other still works. */
	fh = env_lookup(&env, ENV_RW, "f");
	assert_int_equal(dirop(nfs3_remove, root, "f"), NFS3_OK);
	env.rq.args.fh.fh = fh;
	assert_int_equal(env_run(&env, nfs3_getattr), NFS3_OK);
}

/* The open-file cache lets go of what was removed or replaced, so that its
 * space comes back. */
static void
test_forget(void **state)
{
	const struct nfs_fh3 *root = &env.root[ENV_RW];
	struct file_key key;
	struct object o;
	struct file *f;
	int i;

	for (i = 0; i < 2; i++) {
		env_file(&env, ENV_RW, "f", "text", 0644, 0);
		env_file(&env, ENV_RW, "g", "text", 0644, 0);
		env.rq.args.fh.fh = env_lookup(&env, ENV_RW, "f");
		assert_int_equal(object_open(&o, &env.rq, &env.rq.args.fh.fh),
				 0);
		object_file_key(&o, &key);
		object_fini(&o);
		assert_int_equal(file_open(env.server.engine, &key, &f), 0);
		file_put(f);
		assert_int_equal(file_count(env.server.engine), 1);
		assert_int_equal(i == 0 ? dirop(nfs3_remove, root, "f")
					: rename_in(root, "g", root, "f"),
				 NFS3_OK);
		while (file_count(env.server.engine) > 0)
			(void)sched_yield();
		env_clean(&env);
	}
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
		cmocka_unit_test_teardown(test_lookup, clean),
		cmocka_unit_test_teardown(test_lookup_permission, clean),
		cmocka_unit_test_teardown(test_mount_below, clean),
		cmocka_unit_test_teardown(test_remove, clean),
		cmocka_unit_test_teardown(test_remove_sticky, clean),
		cmocka_unit_test_teardown(test_rmdir, clean),
		cmocka_unit_test_teardown(test_rename, clean),
		cmocka_unit_test_teardown(test_rename_refused, clean),
		cmocka_unit_test_teardown(test_link, clean),
		cmocka_unit_test_teardown(test_forget, clean),
	};

	return env_test(&env, tests, sizeof(tests) / sizeof(tests[0]));
}
