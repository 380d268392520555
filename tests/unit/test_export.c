/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports over real mounts: clones (read-only ones really are, what is mounted
 * below does not show), ids, what is refused and how it is told.
 */
#include "tests/unit/export_world.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void
is_export(struct world *w, struct export_table *t, const char *path,
	  const char *expected, const char *expected_rest)
{
	char full[128], want[128];
	const char *rest = NULL;
	const struct export *e;

	(void)snprintf(full, sizeof(full), "%s%s", w->dir, path);
	e = export_find_path(t, full, &rest);
	if (!expected) {
		assert_null(e);
		return;
	}
	(void)snprintf(want, sizeof(want), "%s%s", w->dir, expected);
	assert_non_null(e);
	assert_string_equal(e->path, want);
	assert_string_equal(rest, expected_rest);
}

static void
found_by_path_and_id(void **state)
{
	struct world *w = *state;
	struct export_table *t;
	const char *rest;

	assert_int_equal(mkdir("a/deep", 0755), 0);
	assert_int_equal(
		world_load(w, &t, NULL,
			   "%s/a *(rw)\n%s/a/deep *(rw)\n%s/b *(ro)\n"),
		0);
	assert_int_equal(export_table_count(t), 3);
	is_export(w, t, "/a", "/a", "");
	is_export(w, t, "/a/x/y", "/a", "x/y");
	is_export(w, t, "/a/deep", "/a/deep", "");
	is_export(w, t, "/a/deep/x", "/a/deep", "x");
	is_export(w, t, "/a/deeper", "/a", "deeper");
	is_export(w, t, "/b/x", "/b", "x");
	is_export(w, t, "/bb", NULL, NULL);
	is_export(w, t, "", NULL, NULL);
	assert_null(export_find_path(t, "/", &rest));
	assert_null(export_find_path(t, "a", &rest));
	assert_null(export_find_path(t, "", &rest));
	for (unsigned i = 0; i < 3; i++) {
		struct export *e = export_table_at(t, i);

		assert_ptr_equal(export_find(t, e->id), e);
		assert_null(export_find(t, e->id ^ 1));
	}
	export_table_put(t);
	assert_int_equal(rmdir("a/deep"), 0);
}

static void
root_is_a_prefix_of_all(void **state)
{
	struct world *w = *state;
	struct export_table *t;
	const char *rest;

	assert_int_equal(world_load(w, &t, NULL, "/ *(rw)\n%s/a *(rw)\n"), 0);
	is_export(w, t, "/a/x", "/a", "x");
	assert_string_equal(export_find_path(t, "/usr/lib", &rest)->path, "/");
	assert_string_equal(rest, "usr/lib");
	assert_string_equal(export_find_path(t, "/", &rest)->path, "/");
	assert_string_equal(rest, "");
	export_table_put(t);
}

/* clones -------------------------------------------------------------- */

static void
only_what_clients_need(void **state)
{
	struct world *w = *state;
	struct export_table *t;
	struct export *a, *b;

	assert_int_equal(world_load(w, &t, NULL,
				    "%s/a 10.0.0.1(rw) *(ro)\n%s/b *(ro)\n"),
			 0);
	a = world_export(w, t, "a");
	b = world_export(w, t, "b");
	assert_non_null(a->rw);
	assert_non_null(a->ro);
	assert_ptr_equal(volume_counters(a->rw), volume_counters(a->ro));
	assert_int_equal(volume_verifier(a->rw), volume_verifier(a->ro));
	assert_false(volume_read_only(a->rw));
	assert_true(volume_read_only(a->ro));
	assert_null(b->rw);
	assert_non_null(b->ro);
	assert_string_equal(export_volume_path(b->ro), b->path);
	assert_int_equal(w->report.count, 0);
	export_table_put(t);
}

static int
open_by_handle(const struct volume *v, const char *name, int flags)
{
	struct fh fh;

	assert_int_equal(fh_from_fd(&fh, volume_root_fd(v), name), 0);
	return fh_open(&fh, volume_root_fd(v), flags);
}

static void
ro_is_enforced_by_the_kernel(void **state)
{
	struct world *w = *state;
	struct export_table *t;
	struct export *e;
	int fd;

	assert_int_equal(world_load(w, &t, NULL, "%s/a 10.0.0.1(rw) *(ro)\n"),
			 0);
	e = world_export(w, t, "a");
	fd = openat(volume_root_fd(e->rw), "f", O_CREAT | O_EXCL | O_RDWR,
		    0644);
	assert_true(fd >= 0);
	close(fd);
	fd = open_by_handle(e->rw, "f", O_RDWR);
	assert_true(fd >= 0);
	close(fd);
	fd = open_by_handle(e->ro, "f", O_RDONLY);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(open_by_handle(e->ro, "f", O_RDWR), -EROFS);
	assert_int_equal(unlinkat(volume_root_fd(e->ro), "f", 0), -1);
	assert_int_equal(errno, EROFS);
	assert_int_equal(mkdirat(volume_root_fd(e->ro), "d", 0755), -1);
	assert_int_equal(errno, EROFS);
	assert_int_equal(unlinkat(volume_root_fd(e->rw), "f", 0), 0);
	export_table_put(t);
}

static void
clones_are_nosuid_and_nodev(void **state)
{
	struct world *w = *state;
	struct export_table *t;
	struct export *e;
	struct statvfs st;

	assert_int_equal(world_load(w, &t, NULL, "%s/a 10.0.0.1(rw) *(ro)\n"),
			 0);
	e = world_export(w, t, "a");
	assert_int_equal(fstatvfs(volume_root_fd(e->rw), &st), 0);
	assert_true((st.f_flag & ST_NOSUID) && (st.f_flag & ST_NODEV));
	assert_false(st.f_flag & ST_RDONLY);
	assert_int_equal(fstatvfs(volume_root_fd(e->ro), &st), 0);
	assert_true((st.f_flag & ST_NOSUID) && (st.f_flag & ST_NODEV));
	assert_true(st.f_flag & ST_RDONLY);
	export_table_put(t);
}

/* Nor does the way up lead out. */
static void
mounts_below_do_not_show(void **state)
{
	struct world *w = *state;
	struct export_table *t;
	struct stat root, up, outside;
	int fd;

	assert_int_equal(mkdir("a/sub", 0755), 0);
	assert_int_equal(mount("t", "a/sub", "tmpfs", 0, NULL), 0);
	assert_int_equal(close(open("a/sub/f", O_CREAT | O_RDWR, 0644)), 0);
	assert_int_equal(world_load(w, &t, NULL, "%s/a *(rw)\n"), 0);
	fd = volume_root_fd(world_export(w, t, "a")->rw);
	assert_int_equal(faccessat(fd, "sub", F_OK, 0), 0);
	assert_int_equal(faccessat(fd, "sub/f", F_OK, 0), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(fstat(fd, &root), 0);
	assert_int_equal(fstatat(fd, "..", &up, 0), 0);
	assert_int_equal(stat("a/..", &outside), 0);
	assert_true(up.st_ino == root.st_ino);
	assert_true(up.st_ino != outside.st_ino);
	export_table_put(t);
	assert_int_equal(umount("a/sub"), 0);
	assert_int_equal(rmdir("a/sub"), 0);
}

/* Under a clone of a file system that was since unmounted work goes on, and a
 * withdrawn export lets go of it. */
static void
umount_waits_for_the_export(void **state)
{
	struct world *w = *state;
	struct export_table *t;
	int fd;

	assert_int_equal(mount("t", "b", "tmpfs", 0, NULL), 0);
	assert_int_equal(world_load(w, &t, NULL, "%s/b *(rw)\n"), 0);
	assert_int_equal(umount("b"), 0);
	fd = openat(volume_root_fd(world_export(w, t, "b")->rw), "f",
		    O_CREAT | O_EXCL | O_RDWR, 0644);
	assert_true(fd >= 0);
	close(fd);
	fd = open_by_handle(world_export(w, t, "b")->rw, "f", O_RDWR);
	assert_true(fd >= 0);
	close(fd);
	export_table_put(t);
}

/* Without the right to clone: as it is mounted, and told once. */
static void
drop_sys_admin(void)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[2];

	if (syscall(SYS_capget, &h, d) < 0)
		_exit(2);
	d[0].effective &= ~(1u << CAP_SYS_ADMIN);
	if (syscall(SYS_capset, &h, d) < 0)
		_exit(2);
}

static int
load_plain(void)
{
	struct export_table *t;
	struct world *w;
	void *state;

	drop_sys_admin();
	if (world_setup(&state) < 0)
		return 3;
	w = state;
	if (world_load(w, &t, NULL, "%s/a 10.0.0.1(rw) *(ro)\n%s/b *(ro)\n") <
	    0)
		return 4;
	if (w->report.count != 1 ||
	    !world_said(w, true, "exports:1: ", "no private clone"))
		return 5;
	if (!volume_read_only(world_export(w, t, "b")->ro))
		return 6;
	export_table_put(t);
	world_teardown(&state);
	return 0;
}

static void
without_clones(void **state)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(load_plain());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ids ----------------------------------------------------------------- */

static void
ids_stay_and_differ(void **state)
{
	struct world *w = *state;
	struct export_table *t, *again;
	struct export *a, *b;

	assert_int_equal(world_load(w, &t, NULL, "%s/a *(rw)\n%s/b *(rw)\n"),
			 0);
	a = world_export(w, t, "a");
	b = world_export(w, t, "b");
	assert_true(a->id != b->id);
	assert_true(a->fsid == b->fsid); /* one file system */
	assert_true(a->fsid != 0);
	/* not carried over: opened anew, in another order, by another path */
	assert_int_equal(symlink("a", "z"), 0);
	assert_int_equal(
		world_load(w, &again, NULL, "%s/z *(ro)\n%s/b *(ro)\n"), 0);
	assert_true(world_export(w, again, "z")->id == a->id);
	assert_true(world_export(w, again, "b")->id == b->id);
	export_table_put(again);
	export_table_put(t);
	unlink("z");
}

static struct export loaded_as(struct world *w, const char *format)
{
	struct export_table *t;
	struct export e;

	assert_int_equal(world_load(w, &t, NULL, format), 0);
	e = *export_table_at(t, 0);
	export_table_put(t);
	return e;
}

static void
fsid_option(void **state)
{
	struct world *w = *state;
	struct export none = loaded_as(w, "%s/a *(rw)\n");
	struct export seven = loaded_as(w, "%s/a *(rw,fsid=7)\n");
	struct export zero = loaded_as(w, "%s/a *(rw,fsid=0)\n");
	struct export root = loaded_as(w, "%s/a *(rw,fsid=root)\n");
	struct export b = loaded_as(w, "%s/b *(rw,fsid=7)\n");
	struct export uuid = loaded_as(
		w, "%s/a *(rw,fsid=00112233-4455-6677-8899-aabbccddeeff)\n");

	assert_int_equal(seven.fsid, 7);
	assert_int_equal(zero.fsid, 0);
	assert_true(zero.id == root.id);
	assert_true(seven.id != zero.id && seven.id != none.id);
	assert_true(seven.id != b.id); /* the root counts too */
	/* both halves, read from the low end, over each other */
	assert_true(uuid.fsid == 0x8888888888888888u);
	assert_true(uuid.id != seven.id && uuid.id != none.id);
}

/* A disk that comes up under another name is the same export. */
static void
id_survives_another_device(void **state)
{
	struct world *w = *state;
	struct export first, second;
	struct stat st1, st2;

	if (system("truncate -s 400M xfs.img && mkfs.xfs -q xfs.img && "
		   "truncate -s 64M ext4.img && mkfs.ext4 -q ext4.img && "
		   "mount -o loop xfs.img a && umount a") != 0) {
		(void)system("rm -f xfs.img ext4.img");
		print_message("skip: no XFS on a loop device\n");
		skip();
	}
	assert_int_equal(system("mount -o loop xfs.img a"), 0);
	assert_int_equal(stat("a", &st1), 0);
	first = loaded_as(w, "%s/a *(rw)\n");
	assert_int_equal(system("umount a"), 0);
	/* takes the loop device that the other had */
	assert_int_equal(system("mount -o loop ext4.img b"), 0);
	assert_int_equal(system("mount -o loop xfs.img a"), 0);
	assert_int_equal(stat("a", &st2), 0);
	assert_true(st1.st_dev != st2.st_dev);
	second = loaded_as(w, "%s/a *(rw)\n");
	assert_true(first.id == second.id);
	assert_true(first.fsid == second.fsid);
	assert_int_equal(system("umount a b && rm xfs.img ext4.img"), 0);
}

static void
one_directory_twice(void **state)
{
	struct world *w = *state;
	struct export_table *t = NULL;

	assert_int_equal(symlink("a", "z"), 0);
	assert_int_equal(
		world_load(w, &t, NULL, "%s/a *(rw)\n%s/b *(rw)\n%s/z *(rw)\n"),
		-EEXIST);
	assert_null(t);
	assert_int_equal(w->report.errors, 1);
	assert_true(world_said(w, false, "exports:3: ", "/a (exports:1)"));
	assert_true(world_said(w, false, "/z and ", "one directory"));
	unlink("z");
}

/* what is refused ----------------------------------------------------- */

static void
reasons_are_named(void **state)
{
	struct world *w = *state;
	struct export_table *t = NULL;

	assert_int_equal(close(open("file", O_CREAT | O_RDWR, 0644)), 0);
	assert_true(world_load(w, &t, NULL,
			       "%s/a *(rw)\n%s/none *(rw)\n%s/file *(rw)\n"
			       "/proc *(rw)\n") < 0);
	assert_null(t);
	assert_int_equal(w->report.errors, 3);
	assert_true(world_said(w, false, "exports:2: ",
			       "/none: cannot be opened: No such file"));
	assert_true(world_said(w, false, "exports:3: ", "Not a directory"));
	assert_true(world_said(w, false,
			       "exports:4: /proc: ", "gives no file handles"));
	unlink("file");
}

static void
mount_point_must_be_one(void **state)
{
	struct world *w = *state;
	struct export_table *t;

	assert_int_equal(
		world_load(w, &t, NULL, "%s/a *(rw)\n%s/b *(rw,mountpoint)\n"),
		0);
	assert_int_equal(export_table_count(t), 1);
	assert_true(world_said(w, true, "exports:2: ", "/b is not a mount"));
	export_table_put(t);

	assert_int_equal(mount("t", "b", "tmpfs", 0, NULL), 0);
	assert_int_equal(
		world_load(w, &t, NULL, "%s/a *(rw,mp=%s/b)\n%s/b *(rw,mp)\n"),
		0);
	assert_int_equal(export_table_count(t), 2);
	export_table_put(t);
	assert_int_equal(umount("b"), 0);
	assert_int_equal(world_load(w, &t, NULL, "%s/a *(rw,mp=%s/b)\n"), 0);
	assert_int_equal(export_table_count(t), 0);
	export_table_put(t);
}

#define TEST(name)                                                             \
	cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_clones), /* forks: no threads yet */
		TEST(found_by_path_and_id),
		TEST(root_is_a_prefix_of_all),
		TEST(only_what_clients_need),
		TEST(ro_is_enforced_by_the_kernel),
		TEST(clones_are_nosuid_and_nodev),
		TEST(mounts_below_do_not_show),
		TEST(umount_waits_for_the_export),
		TEST(ids_stay_and_differ),
		TEST(fsid_option),
		TEST(id_survives_another_device),
		TEST(one_directory_twice),
		TEST(reasons_are_named),
		TEST(mount_point_must_be_one),
	};

	return cmocka_run_group_tests(tests, world_enter, world_leave);
}
