/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What perm.c grants is what the kernel grants the same identity
 * (faccessat2(2), AT_EACCESS): all modes and thousands of generated ACLs, for
 * owner, group, member, stranger and root. Then READ and WRITE's own rule, and
 * what the cache may remember.
 */
#include "nfsd/cred.h"
#include "nfsd/nfsd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define ACCESS_XATTR "system.posix_acl_access"
#define ENTRIES_MAX  8000u

/* The engine's open file, as far as perm_cache.c sees it. */
struct file {
	uint64_t id;
	int fd;
};

uint64_t
file_id(const struct file *f)
{
	return f->id;
}

int
file_fd(const struct file *f)
{
	return f->fd;
}

static const uint32_t many[] = { 5001, 6000, 6001, 6002, 6003, 6004, 6005,
				 6006, 6007, 6008, 6009, 6010, 6011, 6012,
				 6013, 6014, 6015, 6016, 6017, 6018 };

static struct identity ids[] = {
	{ .uid = 4000, .gid = 4000 },
	{ .uid = 4001, .gid = 5000 },
	{ .uid = 4002, .gid = 1, .gids = 2, .gid_inline = { 9, 5000 } },
	{ .uid = 4003, .gid = 1, .gids = 2, .gid_inline = { 5001, 5002 } },
	{ .uid = 4004, .gid = 1 }, /* gets the list */
	{ .uid = 4005, .gid = 1 },
	{ .uid = 0, .gid = 0 },
};
#define IDS (sizeof(ids) / sizeof(ids[0]))

static char dir_path[] = "/var/tmp/test_perm.XXXXXX";
static unsigned compared;

static unsigned
kernel_granted(const struct identity *id, int fd)
{
	static const struct {
		unsigned bit;
		int mode;
	} ask[] = { { PERM_READ, R_OK },
		    { PERM_WRITE, W_OK },
		    { PERM_EXEC, X_OK } };
	unsigned granted = 0;

	identity_assume(id);
	for (unsigned i = 0; i < 3; i++) {
		if (syscall(SYS_faccessat2, fd, "", ask[i].mode,
			    AT_EACCESS | AT_EMPTY_PATH) == 0)
			granted |= ask[i].bit;
		else
			assert_int_equal(errno, EACCES);
	}
	identity_drop();
	return granted;
}

static struct statx
statx_of(int fd)
{
	struct statx st;

	assert_int_equal(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st),
			 0);
	return st;
}

static void
compare(int fd, int path_fd)
{
	struct statx st = statx_of(fd);
	unsigned ours, kernels;

	for (unsigned i = 0; i < IDS; i++) {
		kernels = kernel_granted(&ids[i], path_fd);
		ours = 99;
		assert_int_equal(perm_granted(&ids[i], path_fd, &st, &ours), 0);
		if (ours != kernels)
			print_error("mode %o, uid %u\n", st.stx_mode,
				    ids[i].uid);
		assert_int_equal(ours, kernels);
		assert_int_equal(perm_granted(&ids[i], fd, &st, &ours), 0);
		assert_int_equal(ours, kernels);
		compared++;
	}
}

static int
make(const char *name, bool dir, int *path_fd)
{
	int fd;

	if (dir)
		assert_int_equal(mkdir(name, 0700), 0);
	fd = open(name,
		  dir ? O_RDONLY | O_DIRECTORY : O_CREAT | O_EXCL | O_RDWR,
		  0600);
	assert_true(fd >= 0);
	assert_int_equal(fchown(fd, 4000, 5000), 0);
	*path_fd = open(name, O_PATH | O_NOFOLLOW);
	assert_true(*path_fd >= 0);
	return fd;
}

static void
every_mode(void **state)
{
	for (int dir = 0; dir < 2; dir++) {
		int path_fd, fd = make(dir ? "dir" : "file", dir, &path_fd);

		for (mode_t mode = 0; mode <= 0777; mode++) {
			assert_int_equal(fchmod(fd, mode), 0);
			compare(fd, path_fd);
		}
		assert_int_equal(fchmod(fd, 07751), 0);
		compare(fd, path_fd);
		close(fd);
		close(path_fd);
	}
	unlink("file");
	rmdir("dir");
	assert_int_equal(compared, (size_t)2 * 513 * IDS);
}

static void
symlinks(void **state)
{
	struct statx st;
	unsigned granted;
	int fd;

	assert_int_equal(symlink("nowhere", "link"), 0);
	fd = open("link", O_PATH | O_NOFOLLOW);
	st = statx_of(fd);
	assert_int_equal(perm_granted(&ids[5], fd, &st, &granted), 0);
	assert_int_equal(granted, PERM_READ | PERM_WRITE | PERM_EXEC);
	close(fd);
	unlink("link");
}

/* ACLs ---------------------------------------------------------------- */

static struct {
	struct posix_acl_xattr_header h;
	struct posix_acl_xattr_entry e[ENTRIES_MAX];
} acl;
static unsigned entries;

static void
acl_begin(void)
{
	acl.h.a_version = POSIX_ACL_XATTR_VERSION;
	entries = 0;
}

static void
acl_add(unsigned tag, unsigned perm, uint32_t id)
{
	assert_true(entries < ENTRIES_MAX);
	acl.e[entries++] = (struct posix_acl_xattr_entry){
		.e_tag = (uint16_t)tag, .e_perm = (uint16_t)perm, .e_id = id
	};
}

static void
acl_put(int fd)
{
	assert_int_equal(fsetxattr(fd, ACCESS_XATTR, &acl,
				   sizeof(acl.h) + entries * sizeof(acl.e[0]),
				   0),
			 0);
}

static unsigned
random_bits(void)
{
	return (unsigned)(random() % 8);
}

/* Named users and groups are a random choice, in the order of ids that the
 * kernel demands. */
static void
acl_random(void)
{
	acl_begin();
	acl_add(ACL_USER_OBJ, random_bits(), UINT32_MAX);
	for (uint32_t uid = 4000; uid < 4006; uid++) {
		if (random() % 4 == 0)
			acl_add(ACL_USER, random_bits(), uid);
	}
	acl_add(ACL_GROUP_OBJ, random_bits(), UINT32_MAX);
	for (uint32_t gid = 5000; gid < 5003; gid++) {
		if (random() % 3 == 0)
			acl_add(ACL_GROUP, random_bits(), gid);
	}
	if (random() % 3 == 0)
		acl_add(ACL_GROUP, random_bits(), 6018);
	acl_add(ACL_MASK, random_bits(), UINT32_MAX);
	acl_add(ACL_OTHER, random_bits(), UINT32_MAX);
}

static void
random_acls(void **state)
{
	srandom(1);
	for (int dir = 0; dir < 2; dir++) {
		int path_fd, fd = make(dir ? "dir" : "file", dir, &path_fd);

		for (int i = 0; i < 2000; i++) {
			uid_t owner = 4000 + (uid_t)(random() % 3);

			acl_random();
			acl_put(fd);
			assert_int_equal(fchown(fd, owner, 5000), 0);
			compare(fd, path_fd);
		}
		close(fd);
		close(path_fd);
	}
	unlink("file");
	rmdir("dir");
}

/* More than the buffer on the stack: tmpfs takes it (ext4 has a block). */
static void
large_acl(void **state)
{
	char path[] = "/dev/shm/test_perm.XXXXXX";
	int fd = mkstemp(path), path_fd;

	assert_true(fd >= 0);
	path_fd = open(path, O_PATH);
	assert_int_equal(fchown(fd, 1, 1), 0);
	acl_begin();
	acl_add(ACL_USER_OBJ, 7, UINT32_MAX);
	for (uint32_t uid = 100000; uid < 101000; uid++)
		acl_add(ACL_USER, 7, uid);
	acl_add(ACL_GROUP_OBJ, 0, UINT32_MAX);
	acl_add(ACL_GROUP, 5, 6018);
	acl_add(ACL_MASK, 7, UINT32_MAX);
	acl_add(ACL_OTHER, 2, UINT32_MAX);
	acl_put(fd);
	compare(fd, path_fd);
	close(path_fd);
	close(fd);
	unlink(path);
}

/* READ and WRITE ------------------------------------------------------ */

static void
data_rule(void **state)
{
	int path_fd, fd = make("file", false, &path_fd);
	struct statx st;

	/* the owner always, as a local one could with the file open */
	assert_int_equal(fchmod(fd, 0), 0);
	st = statx_of(fd);
	assert_int_equal(perm_data(&ids[0], fd, &st, false), 0);
	assert_int_equal(perm_data(&ids[0], fd, &st, true), 0);
	assert_int_equal(perm_data(&ids[1], fd, &st, false), -EACCES);
	assert_int_equal(perm_data(&ids[5], fd, &st, true), -EACCES);
	assert_int_equal(perm_data(&ids[6], fd, &st, true), 0);

	/* execute is enough to READ: a client pages a program in */
	assert_int_equal(fchmod(fd, 0012), 0);
	st = statx_of(fd);
	assert_int_equal(perm_data(&ids[1], fd, &st, false), 0);
	assert_int_equal(perm_data(&ids[1], fd, &st, true), -EACCES);
	assert_int_equal(perm_data(&ids[5], fd, &st, false), -EACCES);
	assert_int_equal(perm_data(&ids[5], fd, &st, true), 0);
	close(fd);
	close(path_fd);
	unlink("file");
}

static void
acl_for_stranger(int fd, unsigned bits)
{
	acl_begin();
	acl_add(ACL_USER_OBJ, 6, UINT32_MAX);
	acl_add(ACL_USER, bits, 4005);
	acl_add(ACL_GROUP_OBJ, 0, UINT32_MAX);
	acl_add(ACL_MASK, 7, UINT32_MAX);
	acl_add(ACL_OTHER, 0, UINT32_MAX);
	acl_put(fd);
}

static void
let_settle(void)
{
	const struct timespec t = { .tv_nsec = 200000000 };

	nanosleep(&t, NULL);
}

/* What it remembers shows when the ACL changes and the statx is an old one. */
static void
cache_remembers(void **state)
{
	struct perm_cache *c = perm_cache_new();
	int path_fd, fd = make("file", false, &path_fd);
	struct file f = { .id = 7, .fd = fd }, g = { .id = 8, .fd = fd };
	struct statx old, now;

	assert_non_null(c);
	acl_for_stranger(fd, PERM_READ);
	let_settle();
	old = statx_of(fd);
	assert_int_equal(perm_cache_data(c, &ids[5], &f, &old, false), 0);
	assert_int_equal(perm_cache_data(c, &ids[5], &f, &old, true), -EACCES);
	acl_for_stranger(fd, PERM_WRITE);
	now = statx_of(fd);
	/* by the same file and identity */
	assert_int_equal(perm_cache_data(c, &ids[5], &f, &old, false), 0);
	assert_int_equal(perm_cache_data(c, &ids[5], &f, &old, true), -EACCES);
	/* not by another */
	assert_int_equal(perm_cache_data(c, &ids[5], &g, &old, true), 0);
	assert_int_equal(perm_cache_data(c, &ids[4], &f, &old, true), -EACCES);
	/* and no longer than the ctime stays */
	assert_int_equal(perm_cache_data(c, &ids[5], &f, &now, false), -EACCES);
	assert_int_equal(perm_cache_data(c, &ids[5], &f, &now, true), 0);
	perm_cache_free(c);
	close(fd);
	close(path_fd);
	unlink("file");
}

/* Mode, owner and group each count, also where no ctime tells. */
static void
cache_forgets(void **state)
{
	struct perm_cache *c = perm_cache_new();
	int path_fd, fd = make("file", false, &path_fd);
	struct file f = { .id = 7, .fd = fd };
	struct statx st, other;

	assert_int_equal(fchmod(fd, 0640), 0);
	let_settle();
	st = statx_of(fd);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(perm_cache_data(c, &ids[1], &f, &st, false),
				 0);
		other = st;
		if (i == 0)
			other.stx_mode = S_IFREG | 0600;
		else if (i == 1)
			other.stx_gid = 1;
		else if (i == 2)
			other.stx_ctime.tv_nsec ^= 1;
		else
			other.stx_uid = ids[1].uid;
		assert_int_equal(perm_cache_data(c, &ids[1], &f, &other, false),
				 i < 2 ? -EACCES : 0);
	}
	perm_cache_free(c);
	close(fd);
	close(path_fd);
	unlink("file");
}

/* Just changed: the next change may have the same ctime. */
static void
cache_waits(void **state)
{
	struct perm_cache *c = perm_cache_new();
	int path_fd, fd = make("file", false, &path_fd);
	struct file f = { .id = 7, .fd = fd };
	struct statx st;
	struct timespec now;

	acl_for_stranger(fd, PERM_READ);
	st = statx_of(fd);
	/* as if it had changed this very moment, however slow the test is */
	clock_gettime(CLOCK_REALTIME, &now);
	st.stx_ctime.tv_sec = now.tv_sec + 1;
	assert_int_equal(perm_cache_data(c, &ids[5], &f, &st, false), 0);
	acl_for_stranger(fd, 0);
	assert_int_equal(perm_cache_data(c, &ids[5], &f, &st, false), -EACCES);
	perm_cache_free(c);
	close(fd);
	close(path_fd);
	unlink("file");
}

/* Far more than it has room for: answers stay right. */
static void
cache_overflows(void **state)
{
	struct perm_cache *c = perm_cache_new();
	int path_fd, fd = make("file", false, &path_fd);
	struct file f = { .fd = fd };
	struct statx st;

	assert_int_equal(fchmod(fd, 0640), 0);
	let_settle();
	st = statx_of(fd);
	for (int round = 0; round < 2; round++) {
		for (f.id = 1; f.id < 10000; f.id++) {
			unsigned i = 1 + (unsigned)(f.id % 5);

			assert_int_equal(
				perm_cache_data(c, &ids[i], &f, &st, false),
				i <= 2 ? 0 : -EACCES);
		}
	}
	perm_cache_free(c);
	close(fd);
	close(path_fd);
	unlink("file");
}

static int
group_setup(void **state)
{
	if (geteuid() != 0) {
		(void)fprintf(stderr, "test_perm needs root\n");
		exit(77);
	}
	umask(0);
	if (!mkdtemp(dir_path) || chdir(dir_path) < 0)
		return -1;
	ids[4].list = gid_list_new(many, sizeof(many) / sizeof(many[0]));
	ids[4].gids = ids[4].list->count;
	return identity_worker_init();
}

static int
group_teardown(void **state)
{
	identity_fini(&ids[4]);
	return rmdir(dir_path);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_mode),
		cmocka_unit_test(symlinks),
		cmocka_unit_test(random_acls),
		cmocka_unit_test(large_acl),
		cmocka_unit_test(data_rule),
		cmocka_unit_test(cache_remembers),
		cmocka_unit_test(cache_forgets),
		cmocka_unit_test(cache_waits),
		cmocka_unit_test(cache_overflows),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
