/* SPDX-License-Identifier: Apache-2.0 */
/* The errno maps, and attributes of real files against stat(2). */
#include "nfsd/nfs3.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static void
test_nfs3_status(void **state)
{
	static const int map[][2] = {
		{ 0, NFS3_OK },
		{ EPERM, NFS3ERR_PERM },
		{ ENOENT, NFS3ERR_NOENT },
		{ EIO, NFS3ERR_IO },
		{ ENXIO, NFS3ERR_NXIO },
		{ EACCES, NFS3ERR_ACCES },
		{ EEXIST, NFS3ERR_EXIST },
		{ EXDEV, NFS3ERR_XDEV },
		{ ENODEV, NFS3ERR_NODEV },
		{ ENOTDIR, NFS3ERR_NOTDIR },
		{ EISDIR, NFS3ERR_ISDIR },
		{ EINVAL, NFS3ERR_INVAL },
		{ EFBIG, NFS3ERR_FBIG },
		{ ENOSPC, NFS3ERR_NOSPC },
		{ EROFS, NFS3ERR_ROFS },
		{ EMLINK, NFS3ERR_MLINK },
		{ ENAMETOOLONG, NFS3ERR_NAMETOOLONG },
		{ ENOTEMPTY, NFS3ERR_NOTEMPTY },
		{ EDQUOT, NFS3ERR_DQUOT },
		{ ESTALE, NFS3ERR_STALE },
		{ EREMOTE, NFS3ERR_REMOTE },
		{ EBADF, NFS3ERR_BADHANDLE },
		{ EOPNOTSUPP, NFS3ERR_NOTSUPP },
		{ EAGAIN, NFS3ERR_JUKEBOX },
		{ ENOMEM, NFS3ERR_JUKEBOX },
		{ ENFILE, NFS3ERR_JUKEBOX },
		{ EBUSY, NFS3ERR_ACCES },
		/* not known: IO, never the errno itself */
		{ ENOTTY, NFS3ERR_IO },
		{ EUCLEAN, NFS3ERR_IO },
		{ 4095, NFS3ERR_IO },
	};

	for (unsigned i = 0; i < sizeof(map) / sizeof(*map); i++) {
		assert_int_equal(nfs3_status(map[i][0]), map[i][1]);
		assert_int_equal(nfs3_status(-map[i][0]), map[i][1]);
	}
}

static bool
is_nfsstat3(int v)
{
	static const int all[] = { 0,     1,     2,     5,     6,     13,
				   17,    18,    19,    20,    21,    22,
				   27,    28,    30,    31,    63,    66,
				   69,    70,    71,    10001, 10002, 10003,
				   10004, 10005, 10006, 10007, 10008 };

	for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (all[i] == v)
			return true;
	return false;
}

/* No errno gets out as a number that RFC 1813 does not have, or as OK. */
static void
test_no_errno_leaks(void **state)
{
	static const int mount[] = { 1, 2, 5, 13, 20, 22, 63, 10004, 10006 };
	unsigned found;
	int status;

	for (int e = 1; e < 4096; e++) {
		if (e == ECANCELED)
			continue;
		status = (int)nfs3_status(-e);
		assert_true(status != NFS3_OK && is_nfsstat3(status));
		status = (int)mount3_status(-e);
		found = 0;
		for (unsigned i = 0; i < sizeof(mount) / sizeof(*mount); i++)
			found += mount[i] == status;
		assert_int_equal(found, 1);
	}
}

static void
test_mount3_status(void **state)
{
	static const int map[][2] = {
		{ 0, MNT3_OK },
		{ EPERM, MNT3ERR_ACCES },
		{ EACCES, MNT3ERR_ACCES },
		{ EXDEV, MNT3ERR_ACCES },
		{ ELOOP, MNT3ERR_ACCES },
		{ ENOENT, MNT3ERR_NOENT },
		{ EIO, MNT3ERR_IO },
		{ ENOTDIR, MNT3ERR_NOTDIR },
		{ EINVAL, MNT3ERR_INVAL },
		{ ENAMETOOLONG, MNT3ERR_NAMETOOLONG },
		{ EOPNOTSUPP, MNT3ERR_NOTSUPP },
		{ ENOMEM, MNT3ERR_SERVERFAULT },
	};

	for (unsigned i = 0; i < sizeof(map) / sizeof(*map); i++)
		assert_int_equal(mount3_status(-map[i][0]), map[i][1]);
}

/* The attributes of path, not following it, against lstat. */
static void
same_as_lstat(const char *path, enum ftype3 type)
{
	struct pre_op_attr pre;
	struct fattr3 a;
	struct statx stx;
	struct stat st;
	int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(nfs3_statx(fd, &stx), 0);
	close(fd);
	assert_int_equal(lstat(path, &st), 0);
	memset(&a, 0xff, sizeof(a));
	nfs3_attr_from_statx(&a, &stx, 0x1122334455667788u);
	assert_int_equal(a.type, type);
	assert_int_equal(a.mode, st.st_mode & 07777);
	assert_int_equal(a.nlink, st.st_nlink);
	assert_int_equal(a.uid, st.st_uid);
	assert_int_equal(a.gid, st.st_gid);
	assert_int_equal(a.size, st.st_size);
	assert_int_equal(a.used, st.st_blocks * 512);
	assert_int_equal(a.rdev.specdata1, major(st.st_rdev));
	assert_int_equal(a.rdev.specdata2, minor(st.st_rdev));
	assert_int_equal(a.fsid, 0x1122334455667788u);
	assert_int_equal(a.fileid, st.st_ino);
	assert_int_equal(a.atime.seconds, st.st_atim.tv_sec);
	assert_int_equal(a.atime.nseconds, st.st_atim.tv_nsec);
	assert_int_equal(a.mtime.seconds, st.st_mtim.tv_sec);
	assert_int_equal(a.mtime.nseconds, st.st_mtim.tv_nsec);
	assert_int_equal(a.ctime.seconds, st.st_ctim.tv_sec);
	assert_int_equal(a.ctime.nseconds, st.st_ctim.tv_nsec);
	memset(&pre, 0, sizeof(pre));
	nfs3_pre_op_from_statx(&pre, &stx);
	assert_true(pre.follows);
	assert_int_equal(pre.size, a.size);
	assert_memory_equal(&pre.mtime, &a.mtime, sizeof(a.mtime));
	assert_memory_equal(&pre.ctime, &a.ctime, sizeof(a.ctime));
}

static void
make_socket(const char *name)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strncpy(addr.sun_path, name, sizeof(addr.sun_path) - 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
}

static void
test_files(void **state)
{
	char dir[] = "/tmp/nvnfsd-attr-XXXXXX";
	static const char *const made[] = { "file", "link", "fifo", "sock" };
	int fd;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	fd = open("file", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "12345", 5, 100000), 5);
	assert_int_equal(fchmod(fd, 06751), 0);
	close(fd);
	assert_int_equal(symlink("to/where", "link"), 0);
	assert_int_equal(mkfifo("fifo", 0640), 0);
	make_socket("sock");
	same_as_lstat("file", NF3REG);
	same_as_lstat("link", NF3LNK);
	same_as_lstat("fifo", NF3FIFO);
	same_as_lstat("sock", NF3SOCK);
	same_as_lstat(dir, NF3DIR);
	same_as_lstat("/dev/null", NF3CHR);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(unlink(made[i]), 0);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(nfs3_statx(-1, &(struct statx){ 0 }), -EBADF);
}

static void
test_block_device(void **state)
{
	struct statx st = { .stx_mode = S_IFBLK | 0660,
			    .stx_rdev_major = 259,
			    .stx_rdev_minor = 70000 };
	struct fattr3 a;

	nfs3_attr_from_statx(&a, &st, 1);
	assert_int_equal(a.type, NF3BLK);
	assert_int_equal(a.mode, 0660);
	assert_int_equal(a.rdev.specdata1, 259);
	assert_int_equal(a.rdev.specdata2, 70000);
}

/* Seconds outside nfstime3 become its nearer end. */
static void
test_times(void **state)
{
	struct statx st = {
		.stx_mode = S_IFREG,
		.stx_atime = { .tv_sec = -1, .tv_nsec = 5 },
		.stx_mtime = { .tv_sec = 0xffffffffll, .tv_nsec = 6 },
		.stx_ctime = { .tv_sec = 0x100000000ll, .tv_nsec = 7 }
	};
	struct fattr3 a;

	memset(&a, 0xff, sizeof(a));
	nfs3_attr_from_statx(&a, &st, 1);
	assert_int_equal(a.atime.seconds, 0);
	assert_int_equal(a.atime.nseconds, 0);
	assert_int_equal(a.mtime.seconds, 0xffffffffu);
	assert_int_equal(a.mtime.nseconds, 6);
	assert_int_equal(a.ctime.seconds, 0xffffffffu);
	assert_int_equal(a.ctime.nseconds, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nfs3_status),
		cmocka_unit_test(test_no_errno_leaks),
		cmocka_unit_test(test_mount3_status),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_block_device),
		cmocka_unit_test(test_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
