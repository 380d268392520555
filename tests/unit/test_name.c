/* SPDX-License-Identifier: Apache-2.0 */
/* Names as clients send them, and what opening by name may reach. */
#include "nfsd/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static enum nfsstat3
take(struct name *n, const void *bytes, uint32_t count)
{
	const struct nfs3_bytes wire = { bytes, count };

	return name_take(n, &wire);
}

static void
test_refused(void **state)
{
	struct name n;
	char longest[NAME_MAX + 1];

	memset(longest, 'x', sizeof(longest));
	assert_int_equal(take(&n, "", 0), NFS3ERR_ACCES);
	assert_int_equal(take(&n, "/", 1), NFS3ERR_ACCES);
	assert_int_equal(take(&n, "a/b", 3), NFS3ERR_ACCES);
	assert_int_equal(take(&n, "ab/", 3), NFS3ERR_ACCES);
	assert_int_equal(take(&n, "\0", 1), NFS3ERR_ACCES);
	assert_int_equal(take(&n, "a\0b", 3), NFS3ERR_ACCES);
	assert_int_equal(take(&n, "ab\0", 3), NFS3ERR_ACCES);
	assert_int_equal(take(&n, longest, NAME_MAX + 1), NFS3ERR_NAMETOOLONG);
	assert_int_equal(take(&n, longest, NAME_MAX), NFS3_OK);
	assert_int_equal(strlen(n.text), NAME_MAX);
}

/* Every byte but '/' and NUL passes, at every place. */
static void
test_bytes(void **state)
{
	char in[3] = { 'a', 0, 'z' };
	struct name n;
	int c;

	for (c = 1; c < 256; c++) {
		if (c == '/')
			continue;
		in[1] = (char)c;
		assert_int_equal(take(&n, in, sizeof(in)), NFS3_OK);
		assert_memory_equal(n.text, in, sizeof(in));
		assert_int_equal(n.text[sizeof(in)], 0);
		assert_int_equal(take(&n, in + 1, 1), NFS3_OK);
		assert_int_equal(n.text[0], (char)c);
		assert_int_equal(n.text[1], 0);
	}
}

static void
test_dots(void **state)
{
	static const struct {
		const char *text;
		bool dot, dotdot;
	} rows[] = { { ".", true, false },    { "..", false, true },
		     { "...", false, false }, { ".a", false, false },
		     { "..a", false, false }, { "a.", false, false } };
	struct name n;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_int_equal(
			take(&n, rows[i].text, (uint32_t)strlen(rows[i].text)),
			NFS3_OK);
		assert_int_equal(name_is_dot(&n), rows[i].dot);
		assert_int_equal(name_is_dotdot(&n), rows[i].dotdot);
		assert_int_equal(name_is_dots(&n),
				 rows[i].dot || rows[i].dotdot);
	}
}

static int
open_name(int dir_fd, const char *text, mode_t *ret_type)
{
	struct name n;
	struct stat st;
	int fd;

	assert_int_equal(take(&n, text, (uint32_t)strlen(text)), NFS3_OK);
	fd = name_open(dir_fd, &n);
	if (fd < 0)
		return fd;
	assert_int_equal(fstat(fd, &st), 0);
	*ret_type = st.st_mode & S_IFMT;
	assert_true(fcntl(fd, F_GETFL) & O_PATH);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(close(fd), 0);
	return 0;
}

static void
test_open(void **state)
{
	char path[] = "/tmp/nvnfsd-name-XXXXXX";
	mode_t type = 0;
	int dir;

	assert_non_null(mkdtemp(path));
	dir = open(path, O_RDONLY | O_DIRECTORY);
	assert_true(dir >= 0);
	assert_int_equal(symlinkat("/etc/passwd", dir, "away"), 0);
	assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
	assert_int_equal(open_name(dir, "away", &type), 0);
	assert_int_equal(type, S_IFLNK);
	/* A FIFO without a peer: an open for reading would hang. */
	assert_int_equal(open_name(dir, "fifo", &type), 0);
	assert_int_equal(type, S_IFIFO);
	assert_int_equal(open_name(dir, ".", &type), 0);
	assert_int_equal(type, S_IFDIR);
	assert_int_equal(open_name(dir, "..", &type), -EXDEV);
	assert_int_equal(open_name(dir, "absent", &type), -ENOENT);
	assert_int_equal(unlinkat(dir, "away", 0), 0);
	assert_int_equal(unlinkat(dir, "fifo", 0), 0);
	assert_int_equal(close(dir), 0);
	assert_int_equal(rmdir(path), 0);
}

static void
test_mount_point(void **state)
{
	int root = open("/", O_RDONLY | O_DIRECTORY);
	mode_t type = 0;

	assert_true(root >= 0);
	assert_int_equal(open_name(root, "proc", &type), -EXDEV);
	assert_int_equal(close(root), 0);
}

static void
test_fd_path(void **state)
{
	char path[NAME_FD_PATH_BYTES], target[PATH_MAX];
	int fd = open("/etc", O_PATH);
	ssize_t n;

	assert_true(fd >= 0);
	name_fd_path(path, fd);
	n = readlink(path, target, sizeof(target));
	assert_int_equal(n, 4);
	assert_memory_equal(target, "/etc", 4);
	assert_int_equal(close(fd), 0);
	name_fd_path(path, INT_MAX);
	assert_string_equal(path, "/proc/self/fd/2147483647");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_dots),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_mount_point),
		cmocka_unit_test(test_fd_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
