/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of a reactor on files, on each backend. */
#include "tests/unit/ring_harness.h"

#include "io/compat.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* A temporary file without a name; flags may be O_DIRECT. -1: the file system
 * has no direct I/O. */
static int
temp_file(int flags)
{
	const char *dir = getenv("TMPDIR");
	int fd = open(dir ? dir : "/var/tmp",
		      O_TMPFILE | O_RDWR | O_CLOEXEC | flags, 0600);

	assert_true(fd >= 0 || (flags & O_DIRECT && errno == EINVAL));
	return fd;
}

static void
files_buffered(void **state)
{
	struct fixture *f = *state;
	uint32_t n = 300001;
	uint8_t *out = malloc(n), *in = calloc(1, n);
	int fd = temp_file(0);
	struct task w = { .kind = OP_WRITE,
			  .fd = fd,
			  .buf = out,
			  .len = n,
			  .offset = 12345 };
	struct task r = {
		.kind = OP_READ, .fd = fd, .buf = in, .len = n, .offset = 12345
	};

	pattern(out, n, 3);
	assert_int_equal(task_run(f->r, &w), (int)n);
	assert_int_equal(task_run(f->r, &r), (int)n);
	assert_memory_equal(in, out, n);
	r.offset = 12345 + n - 5;
	assert_int_equal(task_run(f->r, &r), 5);
	r.offset = 12345 + n;
	assert_int_equal(task_run(f->r, &r), 0);
	w.flags = RWF_DSYNC;
	w.tells = true; /* a synced write would be punted */
	if (f->backend == IO_BACKEND_URING)
		assert_int_equal(task_run(f->r, &w), -EAGAIN);
	w.tells = false;
	assert_int_equal(task_run(f->r, &w), (int)n);
	assert_true(atomic_load(&reactor_counters(f->r)->punts) >= 1);
	close(fd);
	assert_int_equal(task_run(f->r, &w), -EBADF);
	free(out);
	free(in);
}

/* io_uring's are among them. */
static unsigned
threads_now(void)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *d;
	unsigned n = 0;

	assert_non_null(dir);
	while ((d = readdir(dir)) != NULL)
		n += d->d_name[0] != '.';
	closedir(dir);
	return n;
}

#define SYNCED 32

/* However many writes block at once, the threads are those of the start: with
 * io-wq's, one would be made when there may be no memory for it. They would
 * stay some seconds after the last. */
static void
punts_make_no_thread(void **state)
{
	struct engine_config config = { .backend = IO_BACKEND_URING,
					.reactors = 1,
					.workers = 1,
					.io_workers = 2 };
	static uint8_t data[65536];
	struct task t[SYNCED];
	struct engine *e;
	struct reactor *r;
	unsigned threads;

	assert_int_equal(engine_new(&e, &config), 0);
	threads = threads_now();
	r = engine_reactor(e, 0);
	for (unsigned i = 0; i < SYNCED; i++) {
		t[i] = (struct task){ .kind = OP_WRITE,
				      .fd = temp_file(0),
				      .buf = data,
				      .len = sizeof(data),
				      .flags = RWF_DSYNC };
		task_start(r, &t[i]);
	}
	for (unsigned i = 0; i < SYNCED; i++) {
		assert_int_equal(task_wait(&t[i]), sizeof(data));
		close(t[i].fd);
	}
	assert_int_equal(threads_now(), threads);
	assert_int_equal(atomic_load(&reactor_counters(r)->punts), SYNCED);
	engine_free(e);
}

struct take {
	struct buf buf;
	uint32_t bytes;
};

static void
take_visit(struct reactor *r, void *arg)
{
	struct take *t = arg;

	assert_int_equal(buf_take(reactor_pool(r), &t->buf, t->bytes), 0);
}

static void
give_visit(struct reactor *r, void *arg)
{
	struct take *t = arg;

	buf_give(reactor_pool(r), &t->buf);
}

/* The pool's memory (a fixed buffer where registered) and other memory, direct
 * and not, extending (which punts) and overwriting. */
static void
direct_from(struct fixture *f, int fd, uint8_t *out, uint8_t *in, uint32_t n)
{
	struct task w = { .kind = OP_WRITE, .fd = fd, .buf = out, .len = n };
	struct task r = { .kind = OP_READ, .fd = fd, .buf = in, .len = n };

	for (unsigned pass = 0; pass < 3; pass++) {
		pattern(out, n, pass);
		assert_int_equal(task_run(f->r, &w), (int)n);
		memset(in, 0xee, n);
		assert_int_equal(task_run(f->r, &r), (int)n);
		assert_memory_equal(in, out, n);
	}
	/* A start that is no multiple of any block. */
	w.offset = 1;
	assert_int_equal(task_run(f->r, &w), -EINVAL);
	assert_int_equal(ftruncate(fd, 0), 0);
}

static void
files_direct(void **state)
{
	struct fixture *f = *state;
	uint32_t n = 1u << 20;
	struct take out = { .bytes = n }, in = { .bytes = n };
	void *elsewhere = NULL;
	int fd = temp_file(O_DIRECT);

	if (fd < 0)
		skip();
	visit(f->r, take_visit, &out);
	visit(f->r, take_visit, &in);
	assert_int_equal(posix_memalign(&elsewhere, 4096, n), 0);
	direct_from(f, fd, out.buf.base, in.buf.base, n);
	direct_from(f, fd, elsewhere, in.buf.base, n);
	direct_from(f, fd, out.buf.base, elsewhere, n);
	assert_true(atomic_load(&reactor_counters(f->r)->punts) >= 3);
	visit(f->r, give_visit, &in);
	visit(f->r, give_visit, &out);
	free(elsewhere);
	close(fd);
}

static void
many_files(void **state)
{
	struct fixture *f = *state;
	unsigned n = MANY;

	many = calloc(1, sizeof(*many));
	many->kind = OP_READ;
	many->fd = temp_file(0);
	for (unsigned i = 0; i < n; i += 4096)
		assert_int_equal(pwrite(many->fd, &many->byte, 4096, i), 4096);
	visit(f->r, many_start, &n);
	while (atomic_load(&many->finished) < n)
		sched_yield();
	assert_int_equal(many->wrong, 0);
	if (f->backend == IO_BACKEND_URING)
		assert_true(atomic_load(&reactor_counters(f->r)->sqe_waits) >
			    0);
	close(many->fd);
	free(many);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(files_buffered),
		EACH(files_direct),
		EACH(many_files),
		cmocka_unit_test(punts_make_no_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
