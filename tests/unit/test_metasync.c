/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Are changes of metadata durable when volume_sync_metadata returns? The image
 * of the file system is copied right after it, as a power cut would leave it,
 * and the copy is mounted: log recovery has to bring back every change. And it
 * must be cheap: no dirty data of any file is written for it, and concurrent
 * changes share one log force.
 */
#include "io_client.h"
#include "loop_fs.h"

#include <sys/sendfile.h>
#include <sys/syscall.h>

#define MIB         (1u << 20)
#define IMAGE_BYTES ((uint64_t)320 * MIB)
#define DIRTY_BYTES ((size_t)64 * MIB)
#define CHANGERS    8u
#define CHANGES     20u

static struct {
	const char *kind;
	const char *why; /* it cannot be tested */
	struct loop_fs fs;
	struct loop_fs copy;
	struct engine *engine;
	struct volume *volume;
	uid_t uid; /* 0, or whom changers act as */
} env;

static int
path_fd(const char *name)
{
	int fd = openat(volume_root_fd(env.volume), name,
			O_PATH | O_NOFOLLOW | O_CLOEXEC);

	assert(fd >= 0);
	return fd;
}

static void
sync_named(const char *name)
{
	int fd = path_fd(name);
	int r = volume_sync_metadata(env.volume, fd);

	assert(r == 0);
	close(fd);
}

/* What the device holds now, mounted: its root. */
static int
mount_copy(void)
{
	const char *options = env.kind[0] == 'x' ? "nouuid" : NULL;
	int from = open(env.fs.image, O_RDONLY | O_CLOEXEC), to, root;
	off_t at = 0;

	env.copy = (struct loop_fs){ .kind = env.kind, .keep = -1 };
	(void)snprintf(env.copy.image, sizeof(env.copy.image), "%s/copy",
		       env.fs.base);
	(void)snprintf(env.copy.mount, sizeof(env.copy.mount), "%s/after",
		       env.fs.base);
	(void)mkdir(env.copy.mount, 0755);
	to = open(env.copy.image, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(from >= 0 && to >= 0);
	while (at < (off_t)IMAGE_BYTES)
		assert_true(sendfile(to, from, &at,
				     (size_t)((off_t)IMAGE_BYTES - at)) > 0);
	close(from);
	close(to);
	assert_null(loop_attach(&env.copy, 4096));
	assert_int_equal(
		mount(env.copy.device, env.copy.mount, env.kind, 0, options),
		0);
	loop_release(&env.copy); /* it ends with its mount */
	root = open(env.copy.mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(root >= 0);
	return root;
}

static void
umount_copy(int root)
{
	close(root);
	assert_int_equal(umount2(env.copy.mount, 0), 0);
	assert_int_equal(unlink(env.copy.image), 0);
}

static bool
is_there(int root, const char *name)
{
	return faccessat(root, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static unsigned
mode_of(int root, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(root, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_mode & 07777;
}

static void
create(const char *name)
{
	int fd = openat(volume_root_fd(env.volume), name,
			O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	assert(fd >= 0);
	close(fd);
}

static void
each_change_is_durable(void **state)
{
	int root = volume_root_fd(env.volume), after;
	char target[16] = "";

	(void)state;
	create("mode");
	create("old-name");
	create("removed");
	create("linked");
	assert_int_equal(syncfs(root), 0);
	assert_int_equal(fchmodat(root, "mode", 0751, 0), 0);
	sync_named("mode");
	after = mount_copy();
	assert_int_equal(mode_of(after, "mode"), 0751);
	umount_copy(after);

	create("new");
	assert_int_equal(renameat(root, "old-name", root, "new-name"), 0);
	assert_int_equal(unlinkat(root, "removed", 0), 0);
	assert_int_equal(linkat(root, "linked", root, "link", 0), 0);
	assert_int_equal(mkdirat(root, "dir", 0700), 0);
	assert_int_equal(symlinkat("target", root, "symlink"), 0);
	assert_int_equal(mkfifoat(root, "fifo", 0600), 0);
	sync_named(".");
	after = mount_copy();
	assert_true(is_there(after, "new"));
	assert_true(is_there(after, "new-name"));
	assert_false(is_there(after, "old-name"));
	assert_false(is_there(after, "removed"));
	assert_true(is_there(after, "link"));
	assert_int_equal(mode_of(after, "dir"), 0700);
	assert_int_equal(readlinkat(after, "symlink", target, sizeof(target)),
			 6);
	assert_true(is_there(after, "fifo"));
	umount_copy(after);
}

/* A chmod of a file with much dirty data writes none of it. */
static void
no_data_is_written(void **state)
{
	int root = volume_root_fd(env.volume), after;
	uint8_t *p = malloc(DIRTY_BYTES);
	int fd = openat(root, "dirty", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	uint64_t before, written;

	(void)state;
	assert_true(p != NULL && fd >= 0);
	assert_int_equal(syncfs(root), 0);
	memset(p, 1, DIRTY_BYTES);
	assert_int_equal(write(fd, p, DIRTY_BYTES), DIRTY_BYTES);
	before = loop_count(&env.fs, LOOP_SECTORS_WRITTEN);
	assert_int_equal(fchmod(fd, 0640), 0);
	sync_named("dirty");
	written = loop_count(&env.fs, LOOP_SECTORS_WRITTEN) - before;
	assert_true(written * 512 < DIRTY_BYTES / 16);
	after = mount_copy();
	assert_int_equal(mode_of(after, "dirty"), 0640);
	umount_copy(after);
	close(fd);
	free(p);
}

static void *
changer_main(void *arg)
{
	unsigned index = *(unsigned *)arg;
	char name[32];

	if (env.uid != 0) {
		long r = syscall(SYS_setfsuid, env.uid);

		assert(r >= 0);
	}
	for (unsigned i = 0; i < CHANGES; i++) {
		(void)snprintf(name, sizeof(name), "c%u-%u", index, i);
		create(name);
		sync_named(".");
	}
	return NULL;
}

static void
run_changers(unsigned from)
{
	pthread_t thread[CHANGERS];
	unsigned index[CHANGERS];

	for (unsigned i = 0; i < CHANGERS; i++) {
		index[i] = from + i;
		assert_int_equal(pthread_create(&thread[i], NULL, changer_main,
						&index[i]),
				 0);
	}
	for (unsigned i = 0; i < CHANGERS; i++)
		pthread_join(thread[i], NULL);
}

static void
check_changers(unsigned from)
{
	int after = mount_copy();
	char name[32];

	for (unsigned i = 0; i < CHANGERS; i++)
		for (unsigned k = 0; k < CHANGES; k++) {
			(void)snprintf(name, sizeof(name), "c%u-%u", from + i,
				       k);
			assert_true(is_there(after, name));
		}
	umount_copy(after);
}

static void
changes_share(void **state)
{
	struct volume_counters *c = volume_counters(env.volume);
	uint64_t syncs = counted(&c->meta_syncs);
	uint64_t asked = counted(&c->meta_sync_requests);

	(void)state;
	run_changers(0);
	syncs = counted(&c->meta_syncs) - syncs;
	asked = counted(&c->meta_sync_requests) - asked;
	print_message("%llu log forces for %llu changes\n",
		      (unsigned long long)syncs, (unsigned long long)asked);
	assert_int_equal(asked, CHANGERS * CHANGES);
	assert_true(syncs >= CHANGES && syncs < asked);
	check_changers(0);
}

/* Whoever the thread acts as, who owns nothing of ours. */
static void
under_another_identity(void **state)
{
	struct volume_counters *c = volume_counters(env.volume);
	uint64_t syncs = counted(&c->meta_syncs);

	(void)state;
	assert_int_equal(fchmod(volume_root_fd(env.volume), 01777), 0);
	env.uid = 65534;
	run_changers(100);
	env.uid = 0;
	assert_true(counted(&c->meta_syncs) - syncs >= CHANGES);
	check_changers(100);
}

/* A tree whose file system has no such log, here because it may not be written
 * to: the object is synced, or the file system. */
static void
object_itself(void **state)
{
	struct volume *ro = NULL;
	int fd = open(env.fs.mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC), after;
	int root = volume_root_fd(env.volume);
	static const char *const names[] = { ".", "mode", "symlink", "fifo" };

	(void)state;
	assert_int_equal(
		volume_new(&ro, env.engine, fd, true, 1, &direct_policy, NULL),
		0);
	assert_false(volume_facts(ro)->log_covers);
	for (unsigned i = 0; i < 4; i++) {
		fd = path_fd(names[i]);
		assert_int_equal(fchownat(root, names[i], 1000 + i, 77,
					  AT_SYMLINK_NOFOLLOW),
				 0);
		assert_int_equal(volume_sync_metadata(ro, fd), 0);
		close(fd);
	}
	volume_put(ro);
	after = mount_copy();
	for (unsigned i = 0; i < 4; i++) {
		struct stat st;

		assert_int_equal(
			fstatat(after, names[i], &st, AT_SYMLINK_NOFOLLOW), 0);
		assert_int_equal(st.st_uid, 1000 + i);
	}
	umount_copy(after);
}

static int
set_up(void **state)
{
	(void)state;
	env.engine = engine_make(IO_BACKEND_THREADS, 1, 4u << 20);
	env.volume = volume_at(env.engine, env.fs.mount, &direct_policy);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	volume_put(env.volume);
	engine_free(env.engine);
	return 0;
}

static void
log_is_known(void **state)
{
	(void)state;
	assert_true(volume_facts(env.volume)->log_covers);
}

static void
no_place(void **state)
{
	(void)state;
	print_message("skip: %s\n", env.why);
	skip();
}

static int
run_on(const char *kind)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log_is_known),
		cmocka_unit_test(each_change_is_durable),
		cmocka_unit_test(no_data_is_written),
		cmocka_unit_test(changes_share),
		cmocka_unit_test(under_another_identity),
		cmocka_unit_test(object_itself),
	};
	const struct CMUnitTest missing[] = { cmocka_unit_test(no_place) };
	int failed;

	memset(&env, 0, sizeof(env));
	env.kind = kind;
	env.why = loop_fs_make(&env.fs, kind, 4096, IMAGE_BYTES,
			       2ull * IMAGE_BYTES + 64ull * MIB);
	if (env.why != NULL)
		failed = cmocka_run_group_tests_name(kind, missing, NULL, NULL);
	else
		failed = cmocka_run_group_tests_name(kind, tests, set_up,
						     tear_down);
	loop_fs_remove(&env.fs);
	return failed;
}

int
main(void)
{
	return run_on("xfs") + run_on("ext4");
}
