/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier of an EXCLUSIVE CREATE: in times, or where those are rounded. */
#include "nfsd/proc.h"
#include "tests/unit/loop_fs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/xattr.h>

#include <cmocka.h>

#define IMAGE_BYTES (16ll << 20)
#define ATTRIBUTE   "trusted.nvnfsd.create"

static const uint64_t values[] = { 0,
				   UINT64_MAX,
				   1,
				   0x0123456789abcdef,
				   0x1fffffff1fffffff,
				   0xe0000000e0000000,
				   0x3ffffffe3fffffff };

static bool
same(int fd, uint64_t bits)
{
	uint8_t verf[NFS3_CREATEVERFSIZE];
	struct statx st;

	memcpy(verf, &bits, sizeof(verf));
	assert_int_equal(nfs3_statx(fd, &st), 0);
	return exclusive_same(fd, &st, verf);
}

/* In a directory of any file system: kept, told from its neighbours, ended. */
static void
keep_in(const char *dir)
{
	const struct timespec whole[2] = { { 9, 0 }, { 9, 0 } };
	uint8_t verf[NFS3_CREATEVERFSIZE];
	struct statx st;
	int fd, path_fd, bit;
	size_t i;

	for (i = 0; i < sizeof(values) / sizeof(*values); i++) {
		char path[128], proc[NAME_FD_PATH_BYTES];

		(void)snprintf(path, sizeof(path), "%s/exclusive", dir);
		fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0);
		assert_true(fd >= 0);
		path_fd = open(path, O_PATH | O_CLOEXEC);
		memcpy(verf, &values[i], sizeof(verf));
		assert_false(same(fd, values[i]));
		assert_int_equal(exclusive_keep(fd, verf), 0);
		name_fd_path(proc, path_fd);
		assert_true(same(path_fd, values[i]));
		for (bit = 0; bit < 64; bit++)
			assert_false(same(path_fd, values[i] ^ 1ull << bit));
		assert_int_equal(nfs3_statx(fd, &st), 0);
		assert_int_equal(futimens(fd, whole), 0);
		exclusive_end(path_fd, &st);
		assert_false(same(path_fd, values[i]));
		assert_int_equal(getxattr(proc, ATTRIBUTE, verf, sizeof(verf)),
				 -1);
		assert_int_equal(close(path_fd), 0);
		assert_int_equal(close(fd), 0);
		assert_int_equal(unlink(path), 0);
	}
}

static void
test_times(void **state)
{
	char dir[] = "/tmp/nvnfsd-exclusive-XXXXXX";

	assert_non_null(mkdtemp(dir));
	keep_in(dir);
	assert_int_equal(rmdir(dir), 0);
}

/* ext4 with inodes of 128 bytes has times in whole seconds. */
static void
test_rounded_times(void **state)
{
	char dir[] = "/tmp/nvnfsd-exclusive-XXXXXX", image[64], mnt[64];
	const char *mkfs[] = {
		"mkfs.ext4", "-q", "-F", "-I", "128", image, NULL
	};
	const char *mount_it[] = { "mount", "-t",  "ext4", "-o",
				   "loop",  image, mnt,    NULL };
	bool mounted;
	int fd;

	assert_non_null(mkdtemp(dir));
	(void)snprintf(image, sizeof(image), "%s/image", dir);
	(void)snprintf(mnt, sizeof(mnt), "%s/mnt", dir);
	fd = open(image, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, IMAGE_BYTES), 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(mkdir(mnt, 0755), 0);
	mounted = own_mounts() == NULL && run_quietly(mkfs) == 0 &&
		  run_quietly(mount_it) == 0;
	if (mounted) {
		keep_in(mnt);
		assert_int_equal(umount(mnt), 0);
	}
	assert_int_equal(rmdir(mnt), 0);
	assert_int_equal(unlink(image), 0);
	assert_int_equal(rmdir(dir), 0);
	if (!mounted) {
		print_message("skip: no ext4 on a loop device\n");
		skip();
	}
}

static void
test_others(void **state)
{
	const uint8_t verf[NFS3_CREATEVERFSIZE] = { 0 };
	struct statx st;
	int fd = open("/", O_PATH | O_CLOEXEC);

	/* What is no file was never made by CREATE. */
	assert_int_equal(nfs3_statx(fd, &st), 0);
	st.stx_atime.tv_sec = st.stx_mtime.tv_sec = 0;
	st.stx_atime.tv_nsec = st.stx_mtime.tv_nsec = 0;
	assert_false(exclusive_same(fd, &st, verf));
	st.stx_mode = S_IFREG | 0644;
	assert_true(exclusive_same(fd, &st, verf));
	assert_int_equal(close(fd), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_rounded_times),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
