/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acting under an identity, in processes that are started in each way in which
 * the daemon can come by its capabilities: as root, as root with ambient ones,
 * as another user that kept them, that has them as ambient ones, or from the
 * program's file.
 */
#include "nfsd/nfsd.h"
#include "tests/unit/child.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#define DAEMON_UID 3999u

static uint64_t
caps_of(int which)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[2];

	CHECK(syscall(SYS_capget, &h, d) == 0);
	if (which == 0)
		return d[0].effective | (uint64_t)d[1].effective << 32;
	return d[0].permitted | (uint64_t)d[1].permitted << 32;
}

static void
caps_put(uint64_t effective, uint64_t permitted, uint64_t inheritable)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[2] = {
		{ (uint32_t)effective, (uint32_t)permitted,
		  (uint32_t)inheritable },
		{ (uint32_t)(effective >> 32), (uint32_t)(permitted >> 32),
		  (uint32_t)(inheritable >> 32) },
	};

	CHECK(syscall(SYS_capset, &h, d) == 0);
}

static bool
has_cap(int cap)
{
	return caps_of(0) >> cap & 1;
}

/* acting, in a process of its own -------------------------------------- */

static const struct identity user = {
	.uid = 4000, .gid = 4000, .gids = 2, .gid_inline = { 5000, 5001 }
};
static const struct identity root = { 0 };

static bool
can_open(const char *name, int flags)
{
	int fd = open(name, flags);

	if (fd >= 0)
		close(fd);
	else
		CHECK(errno == EACCES);
	return fd >= 0;
}

static void
check_user_opens(void)
{
	CHECK(!can_open("strangers", O_RDONLY));
	CHECK(!can_open("strangers", O_WRONLY));
	CHECK(can_open("own", O_RDWR));
	CHECK(can_open("groups", O_RDWR));
	CHECK(!can_open("daemons", O_RDONLY));
}

static void
check_no_capability(const struct fh *fh, int dir)
{
	CHECK(caps_of(0) == 0);
	CHECK(fh_open(fh, dir, O_PATH) == -EPERM);
	CHECK(chown("own", 4001, (gid_t)-1) < 0 && errno == EPERM);
	CHECK(chmod("strangers", 0666) < 0 && errno == EPERM);
	CHECK(mknod("device", S_IFCHR | 0600, makedev(1, 3)) < 0);
	CHECK(errno == EPERM);
	CHECK(setxattr("own", "trusted.t", "", 0, 0) < 0 && errno == EPERM);
}

static void
check_user_makes(void)
{
	int fd = open("made", O_CREAT | O_EXCL | O_RDWR, 0666);
	struct stat st;

	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	CHECK(st.st_uid == 4000 && st.st_gid == 4000);
	CHECK((st.st_mode & 07777) == 0666);
	CHECK(unlink("made") == 0);
	close(fd);
}

/* As an unsquashed root: all, but not over quotas. */
static void
check_root(void)
{
	CHECK(can_open("strangers", O_RDWR));
	CHECK(chown("own", 4001, (gid_t)-1) == 0);
	CHECK(chown("own", 4000, (gid_t)-1) == 0);
	CHECK(has_cap(CAP_DAC_OVERRIDE) && has_cap(CAP_FSETID));
	CHECK(!has_cap(CAP_SYS_RESOURCE));
}

static void
check_server(uint32_t uid, uint64_t caps)
{
	CHECK((uint32_t)setfsuid((uid_t)-1) == uid);
	CHECK(can_open("strangers", O_RDWR));
	CHECK(caps_of(0) == caps);
	CHECK(!has_cap(CAP_FSETID) && !has_cap(CAP_SYS_RESOURCE));
}

/* The body of every way of starting; the directory is where we are. */
static void
act(void)
{
	uint32_t uid = (uint32_t)setfsuid((uid_t)-1);
	int dir = open(".", O_RDONLY | O_DIRECTORY);
	struct fh fh;
	uint64_t caps;

	umask(077);
	CHECK(has_cap(CAP_DAC_OVERRIDE));
	CHECK(fh_from_fd(&fh, dir, "own") == 0);
	CHECK(identity_worker_init() == 0);
	CHECK(getgroups(0, NULL) == 0);
	caps = caps_of(0);
	CHECK(caps != 0);
	for (int i = 0; i < 3; i++) {
		check_server(uid, caps);
		identity_assume(&user);
		check_user_opens();
		check_no_capability(&fh, dir);
		check_user_makes();
		identity_drop();
		check_server(uid, caps);
		identity_assume(&root);
		CHECK(getgroups(0, NULL) == 0);
		check_root();
		identity_drop();
	}
	check_server(uid, caps);
	_exit(0);
}

static void
raise_ambient(void)
{
	uint64_t permitted = caps_of(1);

	caps_put(permitted, permitted, permitted);
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++) {
		if (permitted >> cap & 1)
			CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap,
				    0, 0) == 0);
	}
}

static void
become_daemon(bool keep)
{
	gid_t group = 6000;

	CHECK(setgroups(1, &group) == 0);
	CHECK(setresgid(DAEMON_UID, DAEMON_UID, DAEMON_UID) == 0);
	CHECK(prctl(PR_SET_KEEPCAPS, keep, 0, 0, 0) == 0);
	CHECK(setresuid(DAEMON_UID, DAEMON_UID, DAEMON_UID) == 0);
	if (keep)
		caps_put(caps_of(1), caps_of(1), 0);
}

static void
act_as_root(void)
{
	act();
}

static void
act_as_root_ambient(void)
{
	raise_ambient();
	execl("/proc/self/exe", "test_act", "act", NULL);
}

static void
act_as_keeper(void)
{
	become_daemon(true);
	act();
}

static void
act_as_ambient(void)
{
	become_daemon(true);
	raise_ambient();
	execl("/proc/self/exe", "test_act", "act", NULL);
}

/* No capability but those in the file's attribute. */
static void
act_as_file(void)
{
	become_daemon(false);
	CHECK(caps_of(1) == 0);
	execl("./program", "test_act", "act", NULL);
}

static void
each_way_of_starting(void **state)
{
	run(act_as_root);
	run(act_as_root_ambient);
	run(act_as_keeper);
	run(act_as_ambient);
	run(act_as_file);
}

/* Others' threads keep their groups, ids and capabilities. */
struct seen {
	pthread_barrier_t barrier;
	pid_t tid;
};

static void *
bystander(void *arg)
{
	struct seen *s = arg;
	gid_t groups[4];

	pthread_barrier_wait(&s->barrier); /* the other acts now */
	CHECK(getgroups(4, groups) == 1 && groups[0] == 6000);
	CHECK(setfsuid((uid_t)-1) == 0 && setfsgid((gid_t)-1) == 0);
	CHECK(has_cap(CAP_DAC_OVERRIDE) && has_cap(CAP_FSETID));
	CHECK(can_open("strangers", O_RDONLY));
	pthread_barrier_wait(&s->barrier);
	return NULL;
}

static void
act_beside(void)
{
	gid_t group = 6000, groups[4];
	struct seen s;
	pthread_t t;

	CHECK(setgroups(1, &group) == 0);
	CHECK(pthread_barrier_init(&s.barrier, NULL, 2) == 0);
	CHECK(pthread_create(&t, NULL, bystander, &s) == 0);
	CHECK(identity_worker_init() == 0);
	identity_assume(&user);
	CHECK(getgroups(4, groups) == 2 && groups[0] == 5000);
	pthread_barrier_wait(&s.barrier);
	pthread_barrier_wait(&s.barrier);
	CHECK(!can_open("strangers", O_RDONLY));
	identity_drop();
	pthread_join(t, NULL);
	_exit(0);
}

static void
this_thread_only(void **state)
{
	run(act_beside);
}

/* Each caller has its own groups, however they follow each other. */
static void
act_in_turn(void)
{
	struct identity few = user, fewer = user, none = user, other = user;
	const struct identity *turn[] = {
		&few,   &few,   &fewer, &none, &none,
		&fewer, &other, &few,   &root, &other
	};
	gid_t groups[4];
	int n;

	fewer.gids = 1;
	none.gids = 0;
	other.gid_inline[1] = 5002;
	CHECK(identity_worker_init() == 0);
	for (unsigned i = 0; i < sizeof(turn) / sizeof(turn[0]); i++) {
		identity_assume(turn[i]);
		n = getgroups(4, groups);
		CHECK(n == (int)turn[i]->gids);
		for (int g = 0; g < n; g++)
			CHECK(groups[g] == turn[i]->gid_inline[g]);
		identity_drop();
	}
	_exit(0);
}

static void
groups_follow_the_caller(void **state)
{
	run(act_in_turn);
}

static mode_t
mode_after_write(const char *name)
{
	int fd = open(name, O_CREAT | O_RDWR, 0600);
	struct stat st;

	CHECK(fd >= 0 && fchmod(fd, 06777) == 0);
	CHECK(pwrite(fd, "x", 1, 0) == 1);
	CHECK(fstat(fd, &st) == 0);
	close(fd);
	unlink(name);
	return st.st_mode & 07777;
}

static void
react(void)
{
	CHECK(mode_after_write("setuid") == 06777);
	CHECK(identity_reactor_init() == 0);
	CHECK(mode_after_write("setuid") == 0777);
	CHECK(!has_cap(CAP_SYS_RESOURCE) && has_cap(CAP_DAC_READ_SEARCH));
	CHECK(!(caps_of(1) >> CAP_FSETID & 1));
	_exit(0);
}

static void
work_as_server(void)
{
	CHECK(identity_worker_init() == 0);
	CHECK(mode_after_write("setuid") == 0777);
	_exit(0);
}

static void
setuid_bits_go(void **state)
{
	run(react);
	run(work_as_server);
}

static void
without_rights(void)
{
	become_daemon(false);
	CHECK(identity_worker_init() == -EPERM);
	_exit(0);
}

static void
refused_without_rights(void **state)
{
	run(without_rights);
}

/* a directory for all ------------------------------------------------- */

static char dir_path[] = "/var/tmp/test_act.XXXXXX";

static int
put_owned(const char *name, uid_t uid, gid_t gid, mode_t mode)
{
	int fd = open(name, O_CREAT | O_EXCL | O_RDWR, 0600);

	if (fd < 0 || fchown(fd, uid, gid) < 0 || fchmod(fd, mode) < 0)
		return -1;
	return close(fd);
}

/* This program again, with capabilities as setcap(8) gives them. */
static int
put_program(void)
{
	struct vfs_cap_data caps = {
		.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
		.data = { { .permitted = UINT32_MAX }, { .permitted = 0x1ff } },
	};
	int in = open("/proc/self/exe", O_RDONLY);
	int out = open("program", O_CREAT | O_EXCL | O_WRONLY, 0755);
	struct stat st;
	ssize_t n = 1;

	if (in < 0 || out < 0 || fstat(in, &st) < 0)
		return -1;
	while (n > 0)
		n = sendfile(out, in, NULL, (size_t)st.st_size);
	close(in);
	close(out);
	/* the capabilities that we have ourselves, or exec refuses */
	caps.data[0].permitted = (uint32_t)caps_of(1);
	caps.data[1].permitted = (uint32_t)(caps_of(1) >> 32);
	return n < 0 ? -1
		     : setxattr("program", "security.capability", &caps,
				sizeof(caps), 0);
}

static int
group_setup(void **state)
{
	if (geteuid() != 0) {
		(void)fprintf(stderr, "test_act needs root\n");
		exit(77);
	}
	umask(022);
	if (!mkdtemp(dir_path) || chdir(dir_path) < 0 || chmod(".", 0777) < 0)
		return -1;
	if (put_owned("strangers", 4001, 4001, 0600) < 0 ||
	    put_owned("own", 4000, 4000, 0600) < 0 ||
	    put_owned("groups", 4001, 5001, 0060) < 0 ||
	    put_owned("daemons", DAEMON_UID, 6000, 0660) < 0)
		return -1;
	return put_program();
}

static int
group_teardown(void **state)
{
	static const char *const names[] = { "strangers", "own", "groups",
					     "daemons", "program" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(names[i]);
	return rmdir(dir_path);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_way_of_starting),
		cmocka_unit_test(this_thread_only),
		cmocka_unit_test(groups_follow_the_caller),
		cmocka_unit_test(setuid_bits_go),
		cmocka_unit_test(refused_without_rights),
	};

	if (argc == 2 && strcmp(argv[1], "act") == 0)
		act();
	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
