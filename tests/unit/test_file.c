/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files: one for a key whoever opens it, nothing but regular files ever
 * opened, limits, closing and its races, removal, truncation that waits, and
 * two volumes of one tree that share the owner of an inode.
 */
#include "io_client.h"

#include "io/file.h"
#include "io/reactor.h"

#include <ftw.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#define FILES_MAX 6u
#define THREADS   8u

static struct {
	struct engine *engine;
	struct volume *volume;
	char dir[64];
	_Atomic unsigned errors;
} env;

static void
on_error(struct volume *v, const char *what, int error)
{
	(void)v;
	(void)what;
	(void)error;
	atomic_fetch_add(&env.errors, 1);
}

static struct reactor *
reactor_of(unsigned n)
{
	return engine_reactor(env.engine, n % 2);
}

static void
close_all_now(void)
{
	assert_int_equal(file_close_all(env.engine, NULL, in_seconds(60)), 0);
	assert_int_equal(file_count(env.engine), 0);
}

struct opener {
	pthread_t thread;
	struct file_key key;
	struct file *file;
	unsigned rounds;
	bool close;
};

static void *
opener_main(void *arg)
{
	struct opener *o = arg;

	for (unsigned i = 0; i < o->rounds; i++) {
		int r = file_open(env.engine, &o->key, &o->file);

		assert(r == 0);
		if (o->close) {
			assert(file_writable(o->file));
			file_put(o->file);
			r = file_close_all(env.engine, NULL, in_seconds(0));
			assert(r == 0 || r == -EBUSY);
		}
	}
	return NULL;
}

static void
run_openers(struct opener o[THREADS], const char *name, unsigned rounds,
	    bool close)
{
	for (unsigned i = 0; i < THREADS; i++) {
		o[i] = (struct opener){ .rounds = rounds, .close = close };
		key_of(&o[i].key, env.volume, name);
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&o[i].thread, NULL, opener_main, &o[i]),
			0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(o[i].thread, NULL);
}

static void
one_file_for_one_key(void **state)
{
	struct file *first = create_named(env.engine, env.volume, "one");
	struct file_key key;
	struct opener o[THREADS];

	(void)state;
	file_put(first);
	close_all_now();
	key_of(&key, env.volume, "one");
	assert_null(file_find(env.engine, &key));
	run_openers(o, "one", 1, false);
	assert_int_equal(file_count(env.engine), 1);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_ptr_equal(o[i].file, o[0].file);
		file_put(o[i].file);
	}
	first = file_find(env.engine, &key);
	assert_ptr_equal(first, o[0].file);
	file_put(first);
	close_all_now();
}

/* Found, opened and closed by many at once: closing gives way to finding. */
static void
opening_against_closing(void **state)
{
	struct opener o[THREADS];

	(void)state;
	file_put(create_named(env.engine, env.volume, "busy"));
	run_openers(o, "busy", 200, true);
	close_all_now();
}

static void *
open_once(void *arg)
{
	struct opener *o = arg;
	int r = file_open(env.engine, &o->key, &o->file);

	assert(r == 0);
	return NULL;
}

/* A file that has left the table, but whose descriptors are not closed yet,
 * takes up a place for a moment, and nobody is refused for that. */
static void
waits_for_one_that_ends(void **state)
{
	struct file_cache *c = engine_files(env.engine);
	struct opener o = { 0 };

	(void)state;
	file_put(create_named(env.engine, env.volume, "next"));
	close_all_now();
	key_of(&o.key, env.volume, "next");
	pthread_mutex_lock(&c->mutex);
	c->count += FILES_MAX;
	c->ending++;
	pthread_mutex_unlock(&c->mutex);
	assert_int_equal(pthread_create(&o.thread, NULL, open_once, &o), 0);
	usleep(20000); /* by then it waits, or was refused */
	pthread_mutex_lock(&c->mutex);
	c->count -= FILES_MAX;
	c->ending--;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->mutex);
	pthread_join(o.thread, NULL);
	file_put(o.file);
	close_all_now();
}

static void
only_regular_files(void **state)
{
	int root = volume_root_fd(env.volume);
	struct file_key key;
	struct file *f = NULL;

	(void)state;
	assert_int_equal(mkfifoat(root, "fifo", 0644), 0);
	assert_int_equal(mkdirat(root, "dir", 0755), 0);
	assert_int_equal(symlinkat("fifo", root, "link"), 0);
	assert_int_equal(mknodat(root, "null", S_IFCHR | 0666, 0x103), 0);
	key_of(&key, env.volume, "fifo");
	assert_int_equal(file_open(env.engine, &key, &f), -EINVAL);
	key_of(&key, env.volume, "dir");
	assert_int_equal(file_open(env.engine, &key, &f), -EISDIR);
	key_of(&key, env.volume, "link");
	assert_int_equal(file_open(env.engine, &key, &f), -EINVAL);
	key_of(&key, env.volume, "null");
	assert_int_equal(file_open(env.engine, &key, &f), -EINVAL);
	key.handle[key.handle_bytes - 1] ^= 0x55;
	assert_int_equal(file_open(env.engine, &key, &f), -ESTALE);
	assert_null(f);
	assert_int_equal(file_count(env.engine), 0);
}

static void
limits(void **state)
{
	struct file *f[FILES_MAX], *more = NULL;
	struct file_key key;
	char name[16];

	(void)state;
	file_put(create_named(env.engine, env.volume, "more"));
	for (unsigned i = 0; i < FILES_MAX; i++) { /* "more" makes room */
		(void)snprintf(name, sizeof(name), "many%u", i);
		f[i] = create_named(env.engine, env.volume, name);
	}
	assert_int_equal(file_count(env.engine), FILES_MAX);
	key_of(&key, env.volume, "more");
	assert_null(file_find(env.engine, &key));
	assert_int_equal(file_open(env.engine, &key, &more), -ENFILE);
	file_put(f[3]);
	assert_int_equal(file_open(env.engine, &key, &more), 0);
	assert_int_equal(file_close_all(env.engine, env.volume, in_seconds(0)),
			 -EBUSY);
	file_put(more);
	for (unsigned i = 0; i < FILES_MAX; i++)
		if (i != 3)
			file_put(f[i]);
	close_all_now();
}

static void
removed_files(void **state)
{
	struct file *f = create_named(env.engine, env.volume, "gone");
	struct file_key key;
	struct stat st;
	struct file *again = NULL;
	uint64_t syncs = counted(&volume_counters(env.volume)->syncs);

	(void)state;
	key_of(&key, env.volume, "gone");
	assert_int_equal(fstat(file_fd(f), &st), 0);
	file_forget(env.engine, env.volume, st.st_ino); /* it has a name yet */
	again = file_find(env.engine, &key);
	assert_ptr_equal(again, f);
	file_put(again);
	(void)write_all(reactor_of(0), f, 5, 100000, 1, IO_UNSTABLE);
	assert_int_equal(unlinkat(volume_root_fd(env.volume), "gone", 0), 0);
	file_forget(env.engine, env.volume, st.st_ino);
	assert_null(file_find(env.engine, &key));
	assert_int_equal(file_open(env.engine, &key, &again), -ESTALE);
	(void)write_all(reactor_of(0), f, 5, 100000, 1, IO_UNSTABLE);
	file_put(f);
	while (file_count(env.engine) > 0) /* closed in the background */
		usleep(1000);
	assert_int_equal(counted(&volume_counters(env.volume)->syncs), syncs);
}

static void
idle_files_expire(void **state)
{
	struct volume_counters *c = volume_counters(env.volume);
	struct file *f = create_named(env.engine, env.volume, "idle");
	uint64_t syncs = counted(&c->syncs);

	(void)state;
	(void)write_all(reactor_of(0), f, 1, 50000, 1, IO_UNSTABLE);
	file_expire(env.engine);
	assert_int_equal(file_count(env.engine), 1);
	file_put(f);
	while (file_count(env.engine) > 0) {
		file_expire(env.engine);
		usleep(50000);
	}
	assert_int_equal(counted(&c->syncs), syncs + 1); /* it was dirty */
	assert_int_equal(counted(&c->edge_spans), 0);
}

static void
brackets(void **state)
{
	struct file *f = create_named(env.engine, env.volume, "bracket");
	struct file_bracket a, b, c;

	(void)state;
	file_begin(f, &a);
	assert_true(file_end(f, &a));
	file_begin(f, &a);
	file_begin(f, &b);
	assert_false(file_end(f, &b)); /* inside another */
	assert_false(file_end(f, &a)); /* around another */
	file_begin(f, &a);
	file_begin(f, &b);
	assert_false(file_end(f, &a));
	file_begin(f, &c);
	assert_false(file_end(f, &b));
	assert_false(file_end(f, &c));
	file_begin(f, &a);
	assert_true(file_end(f, &a));
	file_put(f);
}

static struct volume *
another_volume(bool read_only)
{
	struct volume *v = NULL;
	int fd = open(env.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(volume_new(&v, env.engine, fd, read_only, 7,
				    &direct_policy, NULL),
			 0);
	return v;
}

static void
not_writable(void **state)
{
	struct volume *ro = another_volume(true);
	struct client_write w = { .gen = 1 };
	struct file *f;
	int fd, flags = FS_IMMUTABLE_FL;

	(void)state;
	volume_share(ro, env.volume);
	assert_int_equal(volume_verifier(ro), volume_verifier(env.volume));
	assert_ptr_equal(volume_counters(ro), volume_counters(env.volume));
	file_put(create_named(env.engine, env.volume, "fixed"));
	f = open_named(env.engine, ro, "fixed");
	assert_false(file_writable(f));
	client_write(&w, reactor_of(0), f, 0, 100);
	assert_int_equal(w.io.error, -EROFS);
	assert_int_equal(client_commit(reactor_of(0), f, NULL), 0);
	file_put(f);
	close_all_now();
	volume_put(ro);
	fd = openat(volume_root_fd(env.volume), "fixed", O_RDONLY | O_CLOEXEC);
	if (ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0) {
		f = open_named(env.engine, env.volume, "fixed");
		assert_false(file_writable(f));
		client_write(&w, reactor_of(0), f, 0, 100);
		assert_int_equal(w.io.error, -EPERM);
		file_put(f);
		flags = 0;
		assert_int_equal(ioctl(fd, FS_IOC_SETFLAGS, &flags), 0);
	}
	close(fd);
	close_all_now();
}

/* A WRITE that comes while a truncation has the file waits for its end. */
static void
freeze_holds_writes(void **state)
{
	struct file *f = create_named(env.engine, env.volume, "frozen");
	struct client_write w = { .gen = 4 };
	struct stat st;

	(void)state;
	file_freeze(f);
	client_write_start(&w, reactor_of(1), f, 0, 200000);
	usleep(50000);
	assert_int_equal(fstat(file_fd(f), &st), 0);
	assert_int_equal(st.st_size, 0);
	file_thaw(f);
	client_write_wait(&w);
	assert_int_equal(w.io.error, 0);
	assert_int_equal(w.io.written, 200000);
	assert_int_equal(fstat(file_fd(f), &st), 0);
	assert_int_equal(st.st_size, 200000);
	file_put(f);
	close_all_now();
}

struct shared_writer {
	pthread_t thread;
	struct file *file;
	unsigned index;
};

static void *
shared_main(void *arg)
{
	struct shared_writer *s = arg;

	for (unsigned i = s->index; i < 400; i += 4)
		(void)write_all(reactor_of(i), s->file, i * 20001ull, 20001,
				i + 1, i % 8 == 0 ? IO_FILE_SYNC : IO_UNSTABLE);
	return NULL;
}

/* One tree exported twice: the files differ, the inode's owner does not. */
static void
two_volumes_of_one_tree(void **state)
{
	struct volume *second = another_volume(false);
	struct file *a = create_named(env.engine, env.volume, "twice");
	struct file *b = open_named(env.engine, second, "twice");
	struct shared_writer s[4];
	uint8_t *p = malloc(20001);

	(void)state;
	assert_non_null(p);
	assert_ptr_not_equal(a, b);
	assert_ptr_equal(a->inode, b->inode);
	for (unsigned i = 0; i < 4; i++) {
		s[i] = (struct shared_writer){ .file = i % 2 ? a : b,
					       .index = i };
		assert_int_equal(
			pthread_create(&s[i].thread, NULL, shared_main, &s[i]),
			0);
	}
	for (unsigned i = 0; i < 4; i++)
		pthread_join(s[i].thread, NULL);
	assert_int_equal(client_commit(reactor_of(0), a, NULL), 0);
	for (unsigned i = 0; i < 400; i++) {
		assert_int_equal(pread(file_fd(b), p, 20001, i * 20001ll),
				 20001);
		assert_int_equal(pattern_check(p, i * 20001ull, 20001, i + 1),
				 20001);
	}
	free(p);
	file_put(a);
	assert_int_equal(file_close_all(env.engine, env.volume, in_seconds(60)),
			 0);
	assert_int_equal(file_count(env.engine), 1);
	file_put(b);
	assert_int_equal(file_close_all(env.engine, second, in_seconds(60)), 0);
	volume_put(second);
	assert_int_equal(atomic_load(&env.errors), 0);
}

static int
set_up(void **state)
{
	struct engine_config config = { .backend = IO_BACKEND_URING,
					.reactors = 2,
					.workers = 2,
					.io_workers = 3,
					.buffer_bytes = 16u << 20,
					.files_max = FILES_MAX,
					.on_error = on_error };

	(void)state;
	strcpy(env.dir, "/tmp/nvtest.XXXXXX");
	assert_non_null(mkdtemp(env.dir));
	assert_int_equal(engine_new(&env.engine, &config), 0);
	env.volume = volume_at(env.engine, env.dir, &direct_policy);
	return 0;
}

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *f)
{
	(void)st;
	(void)kind;
	(void)f;
	return remove(path);
}

static int
tear_down(void **state)
{
	(void)state;
	volume_put(env.volume);
	engine_free(env.engine);
	return nftw(env.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_file_for_one_key),
		cmocka_unit_test(opening_against_closing),
		cmocka_unit_test(waits_for_one_that_ends),
		cmocka_unit_test(only_regular_files),
		cmocka_unit_test(limits),
		cmocka_unit_test(removed_files),
		cmocka_unit_test(idle_files_expire),
		cmocka_unit_test(brackets),
		cmocka_unit_test(not_writable),
		cmocka_unit_test(freeze_holds_writes),
		cmocka_unit_test(two_volumes_of_one_tree),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
