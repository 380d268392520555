/* SPDX-License-Identifier: Apache-2.0 */
/* The list of mounts and its file; and how paths to mount are normalised. */
#include "nfsd/nfsd.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* Paths -------------------------------------------------------------------- */

static void
normalises(const char *path, const char *expect)
{
	char out[MNT3_PATHLEN + 1];

	assert_int_equal(
		mount_path_normalise(out, (const uint8_t *)path, strlen(path)),
		0);
	assert_string_equal(out, expect);
}

static void
test_normalise(void **state)
{
	normalises("/", "/");
	normalises("///", "/");
	normalises("/a", "/a");
	normalises("/a/", "/a");
	normalises("//a///b//", "/a/b");
	normalises("/./a/./b/.", "/a/b");
	normalises("/a/../b", "/b");
	normalises("/a/b/..", "/a");
	normalises("/a/b/../..", "/");
	normalises("/a/../../../b", "/b");
	normalises("/..", "/");
	normalises("/../a", "/a");
	normalises("/export/../..", "/");
	normalises("/a/...", "/a/...");
	normalises("/a/..b", "/a/..b");
	normalises("/a/.b", "/a/.b");
	normalises("/a/b./c..", "/a/b./c..");
	normalises("/a b/\xff\n", "/a b/\xff\n");
}

static void
test_normalise_refuses(void **state)
{
	char out[MNT3_PATHLEN + 1];
	uint8_t path[MNT3_PATHLEN + 1] = { 0 };

	assert_int_equal(mount_path_normalise(out, path, 0), -EACCES);
	assert_int_equal(mount_path_normalise(out, (uint8_t *)"a", 1), -EACCES);
	assert_int_equal(mount_path_normalise(out, (uint8_t *)"./a", 3),
			 -EACCES);
	assert_int_equal(mount_path_normalise(out, (uint8_t *)"/a\0/b", 5),
			 -EINVAL);
	assert_int_equal(mount_path_normalise(out, (uint8_t *)"/a\0", 3),
			 -EINVAL);
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	assert_int_equal(mount_path_normalise(out, path, sizeof(path)),
			 -ENAMETOOLONG);
	assert_int_equal(mount_path_normalise(out, path, MNT3_PATHLEN), 0);
	assert_int_equal(strlen(out), MNT3_PATHLEN);
	assert_memory_equal(out, path, MNT3_PATHLEN);
}

/* The list -------------------------------------------------------------- */

static char state_dir[64];
static int state_fd;
static struct mount_list *list;

static int
begin(void **state)
{
	(void)snprintf(state_dir, sizeof(state_dir),
		       "/tmp/nvnfsd-mounts-XXXXXX");
	if (!mkdtemp(state_dir))
		return -1;
	state_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	log_set_level(LOG_ERR_);
	return mount_list_new(&list, state_fd);
}

/* Nothing but rmtab is ever left in the directory. */
static int
end(void **state)
{
	mount_list_free(list);
	(void)unlinkat(state_fd, "rmtab", 0);
	close(state_fd);
	return rmdir(state_dir);
}

/* The encoded list as "host:path " each; it is one whole mountlist. */
static const char *
dump(void)
{
	static char text[8192];
	static uint8_t bytes[8192];
	char *host, *path;
	uint32_t more, encoded;
	size_t n = 0;
	XDR x;

	xdrmem_create(&x, (char *)bytes, sizeof(bytes), XDR_ENCODE);
	assert_true(mount_list_encode(list, &x));
	encoded = XDR_GETPOS(&x);
	xdrmem_create(&x, (char *)bytes, encoded, XDR_DECODE);
	text[0] = '\0';
	while (xdr_u_int32_t(&x, &more) && more == 1) {
		host = path = NULL;
		assert_true(xdr_string(&x, &host, MNT3_NAMLEN) &&
			    xdr_string(&x, &path, MNT3_PATHLEN));
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s:%s ",
				      host, path);
		free(host);
		free(path);
	}
	assert_int_equal(more, 0);
	assert_int_equal(XDR_GETPOS(&x), encoded);
	xdrmem_create(&x, (char *)bytes, encoded - 1, XDR_ENCODE);
	assert_false(mount_list_encode(list, &x));
	return text;
}

static unsigned
entries(void)
{
	unsigned n = 0;

	for (const char *p = dump(); (p = strchr(p, ' ')) != NULL; p++)
		n++;
	return n;
}

/* The next server starts with what the last one had. */
static void
restart(int fd)
{
	mount_list_free(list);
	assert_int_equal(mount_list_new(&list, fd), 0);
}

static void
test_survives(void **state)
{
	mount_list_add(list, "h1", "/a");
	mount_list_add(list, "h2", "/with space\n\\and\x7f\xc3\xa9");
	mount_list_add(list, "h3", "/c");
	mount_list_remove(list, "h1", "/a");
	restart(state_fd);
	assert_string_equal(dump(), "h2:/with space\n\\and\x7f\xc3\xa9 h3:/c ");
	assert_int_equal(faccessat(state_fd, "rmtab.new", F_OK, 0), -1);
	mount_list_remove(list, "h2", NULL);
	mount_list_remove(list, "h3", "/c");
	restart(state_fd);
	assert_string_equal(dump(), "");
}

static void
write_rmtab(const char *text, size_t n)
{
	int fd = openat(state_fd, "rmtab", O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), n);
	close(fd);
}

/* Lines that are not ours are left out, the others are taken. */
static void
test_strange_file(void **state)
{
	static const char text[] = "ok /a\n"
				   "nopath\n"
				   " /nohost\n"
				   "h relative\n"
				   "h /bad\\escape\n"
				   "h /bad\\400\n"
				   "h /bad\\000\n"
				   "h /bad\\1\n"
				   "h\\040x /\\141\n"
				   "ok /a\n"
				   "z\0z /b\n"
				   "last /c";

	write_rmtab(text, sizeof(text) - 1);
	restart(state_fd);
	assert_string_equal(dump(), "ok:/a h x:/a last:/c ");
}

static void
test_limit(void **state)
{
	static uint8_t bytes[1 << 20];
	char host[32];
	XDR x;

	restart(-1); /* no file: this is about the bound */
	for (unsigned i = 0; i < MOUNT_LIST_MAX + 3; i++) {
		(void)snprintf(host, sizeof(host), "host%u", i);
		mount_list_add(list, host, "/p");
	}
	/* the first three went; "host3" is the oldest */
	xdrmem_create(&x, (char *)bytes, sizeof(bytes), XDR_ENCODE);
	assert_true(mount_list_encode(list, &x));
	assert_memory_equal(bytes + 8, "host3\0\0\0", 8);
	/* TRUE, a name of 5 to 8 bytes, a path of 2; the FALSE at the end */
	assert_int_equal(XDR_GETPOS(&x), MOUNT_LIST_MAX * (4 + 12 + 8) + 4);
}

/* The list goes on in memory where the file cannot be written. */
static void
test_unwritable(void **state)
{
	int fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	restart(fd);
	mount_list_add(list, "h", "/a");
	assert_string_equal(dump(), "h:/a ");
	close(fd);
}

/* Where rmtab cannot be replaced, nothing half-made is left beside it. */
static void
test_not_replaced(void **state)
{
	assert_int_equal(mkdirat(state_fd, "rmtab", 0700), 0);
	mount_list_add(list, "h", "/a");
	assert_int_equal(faccessat(state_fd, "rmtab.new", F_OK, 0), -1);
	assert_int_equal(errno, ENOENT);
	restart(state_fd);
	assert_string_equal(dump(), "");
	assert_int_equal(unlinkat(state_fd, "rmtab", AT_REMOVEDIR), 0);
}

/* The longest host and path are kept, a byte more is no line of ours. */
static void
test_longest(void **state)
{
	char host[MNT3_NAMLEN + 2], path[MNT3_PATHLEN + 2];

	memset(host, 0xff, sizeof(host));
	memset(path, 'p', sizeof(path));
	path[0] = '/';
	host[MNT3_NAMLEN] = path[MNT3_PATHLEN] = '\0';
	mount_list_add(list, host, path);
	restart(state_fd);
	assert_int_equal(entries(), 1);
	mount_list_remove(list, host, path);
	assert_int_equal(entries(), 0);
	host[MNT3_NAMLEN] = 'h';
	host[MNT3_NAMLEN + 1] = '\0';
	mount_list_add(list, host, path);
	mount_list_add(list, "h", path);
	path[MNT3_PATHLEN] = 'p';
	path[MNT3_PATHLEN + 1] = '\0';
	mount_list_add(list, "h", path);
	restart(state_fd);
	assert_int_equal(entries(), 1);
}

static void *
storm(void *arg)
{
	char host[32];

	for (unsigned i = 0; i < 200; i++) {
		(void)snprintf(host, sizeof(host), "%s-%u", (char *)arg, i % 8);
		mount_list_add(list, host, "/p");
		if (i % 3 == 0)
			mount_list_remove(list, host, "/p");
		mount_list_add(list, host, "/q");
	}
	mount_list_remove(list, host, NULL);
	mount_list_add(list, arg, "/end");
	return NULL;
}

/* Whoever wrote last, the file is what the list was at the end. */
static void
test_threads(void **state)
{
	static char names[4][2] = { "a", "b", "c", "d" };
	pthread_t thread[4];
	char before[4096];

	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(
			pthread_create(&thread[i], NULL, storm, names[i]), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	(void)snprintf(before, sizeof(before), "%s", dump());
	assert_non_null(strstr(before, "a:/end "));
	assert_non_null(strstr(before, "d:/end "));
	restart(state_fd);
	assert_string_equal(dump(), before);
}

int
main(void)
{
#define LIST_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_normalise),
		cmocka_unit_test(test_normalise_refuses),
		LIST_TEST(test_survives),
		LIST_TEST(test_strange_file),
		LIST_TEST(test_limit),
		LIST_TEST(test_unwritable),
		LIST_TEST(test_not_replaced),
		LIST_TEST(test_longest),
		LIST_TEST(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
