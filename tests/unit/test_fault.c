/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fault points (a build with -Dfault=true), on both backends: that they do
 * what they say, and that the engine goes on.
 */
#include "tests/unit/engine_harness.h"

#include "io/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

struct fixture {
	enum io_backend backend;
	struct engine *engine;
	struct reactor *r;
};

static struct fixture uring = { .backend = IO_BACKEND_URING };
static struct fixture plain = { .backend = IO_BACKEND_THREADS };

static char abcd[] = "abcd", aaaa[] = "aaaa", bb[] = "bb", cc[] = "c";

static struct fixture *
begin(void **state, const char *spec)
{
	struct fixture *f = *state;

	assert_int_equal(setenv("NVNFSD_FAULT", spec, 1), 0);
	f->engine = engine_make(f->backend, 1, 0);
	f->r = engine_reactor(f->engine, 0);
	return f;
}

static void
end(struct fixture *f)
{
	engine_free(f->engine);
	unsetenv("NVNFSD_FAULT");
}

static void
pair(int fd[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
}

static void
pair_close(const int fd[2])
{
	close(fd[0]);
	close(fd[1]);
}

static int
temp_file(void)
{
	const char *dir = getenv("TMPDIR");
	int fd = open(dir ? dir : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC,
		      0600);

	assert_true(fd >= 0);
	return fd;
}

static void
texts(void **state)
{
	static const char *const bad[] = {
		"write",           "write:1",
		"write:0:EIO",     "write:x:EIO",
		"write:1:EWHAT",   "write:1:eio",
		"writ:1:EIO",      "write:1:EIO:x",
		"write:1:EIO:1:1", "sqfull",
		"sqfull:1:EIO",    "write:-1:EIO",
		"write:1:delay=",  "write:1:delay=x",
		"write:1:EIO;x",   ":::",
	};
	static const char *const good[] = {
		"",
		";",
		"write:1:EIO",
		"recv:3:short:2",
		"sqfull:1",
		"eintr:5:9",
		"read:1:late=5:*",
		"fsync:2:ENOSPC;;accept:1:EMFILE",
		"flush:1:EIO;metasync:1:EIO:*",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(fault_set(bad[i]), -EINVAL);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(fault_set(good[i]), 0);
	assert_int_equal(setenv("NVNFSD_FAULT", "nonsense", 1), 0);
	assert_int_equal(fault_init(), -EINVAL);
	unsetenv("NVNFSD_FAULT");
	assert_int_equal(fault_init(), 0);
}

/* A blocking call asks before it runs. */
static void
blocking_calls(void **state)
{
	uint32_t len = 1000;

	assert_int_equal(fault_set("fsync:2:EIO;write:1:short:2"), 0);
	assert_int_equal(fault_point(OP_FSYNC, NULL), 0);
	assert_int_equal(fault_hits(), 0);
	assert_int_equal(fault_point(OP_FSYNC, NULL), -EIO);
	assert_int_equal(fault_point(OP_FSYNC, NULL), 0);
	assert_int_equal(fault_point(OP_WRITE, &len), 0);
	assert_int_equal(len, 500);
	len = 12288;
	assert_int_equal(fault_point(OP_WRITE, &len), 0);
	assert_int_equal(len, 8192);
	assert_int_equal(fault_point(OP_WRITE, &len), 0);
	assert_int_equal(len, 8192);
	assert_int_equal(fault_hits(), 3);
	assert_int_equal(fault_set("flush:1:EIO;metasync:2:ENOSPC"), 0);
	assert_int_equal(fault_hits(), 0);
	assert_int_equal(fault_point(OP_METASYNC, NULL), 0);
	assert_int_equal(fault_point(OP_FLUSH, NULL), -EIO);
	assert_int_equal(fault_point(OP_METASYNC, NULL), -ENOSPC);
	assert_int_equal(fault_set(NULL), 0);
}

/* The second to the third of four writes fail, and wrote nothing. */
static void
write_fails(void **state)
{
	struct fixture *f = begin(state, "write:2:ENOSPC:2");
	int fd = temp_file();
	struct task t = { .kind = OP_WRITE, .fd = fd, .buf = abcd, .len = 1 };
	static const int want[] = { 1, -ENOSPC, -ENOSPC, 1 };
	char in[4] = "....";

	for (unsigned i = 0; i < 4; i++) {
		t.offset = i;
		assert_int_equal(task_run(f->r, &t), want[i]);
	}
	assert_int_equal(pread(fd, in, 4, 0), 4);
	assert_memory_equal(in, "a\0\0a", 4);
	close(fd);
	end(f);
}

/* -EAGAIN never reaches the caller: the operation goes again, counted. */
static void
would_block(void **state)
{
	struct fixture *f = begin(state, "write:1:EAGAIN;read:1:EAGAIN");
	int fd = temp_file();
	uint64_t before = atomic_load(&reactor_counters(f->r)->punts);
	char in[4] = "....";
	struct task w = { .kind = OP_WRITE, .fd = fd, .buf = abcd, .len = 4 };
	struct task r = { .kind = OP_READ, .fd = fd, .buf = in, .len = 4 };

	assert_int_equal(task_run(f->r, &w), 4);
	assert_int_equal(task_run(f->r, &r), 4);
	assert_memory_equal(in, "abcd", 4);
	assert_int_equal(atomic_load(&reactor_counters(f->r)->punts) - before,
			 2);
	close(fd);
	end(f);
}

static void
come_short(void **state)
{
	struct fixture *f = begin(state, "write:1:short;read:1:short;"
					 "sendmsg:1:short;recv:1:short");
	int fd = temp_file(), s[2], queued = 0;
	char out[10000] = "", in[10000];
	struct iovec iov[2] = { { out, 6000 }, { out, 3000 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	struct task t = { .kind = OP_WRITE,
			  .fd = fd,
			  .buf = out,
			  .len = sizeof(out),
			  .flags = 0,
			  .msg = &msg };

	assert_int_equal(task_run(f->r, &t), 5000);
	assert_int_equal(task_run(f->r, &t), 10000);
	t.kind = OP_READ;
	t.buf = in;
	assert_int_equal(task_run(f->r, &t), 5000);
	assert_int_equal(task_run(f->r, &t), 10000);
	pair(s);
	t.kind = OP_SENDMSG;
	t.fd = s[0];
	assert_int_equal(task_run(f->r, &t), 4500);
	assert_int_equal(iov[0].iov_len + iov[1].iov_len, 9000);
	assert_int_equal(ioctl(s[1], FIONREAD, &queued), 0);
	assert_int_equal(queued, 4500);
	t.kind = OP_RECV;
	t.fd = s[1];
	t.len = 4500;
	t.flags = MSG_WAITALL;
	assert_int_equal(task_run(f->r, &t), 2250);
	t.len = 2250;
	assert_int_equal(task_run(f->r, &t), 2250);
	pair_close(s);
	close(fd);
	end(f);
}

static void
sockets_fail(void **state)
{
	struct fixture *f = begin(state, "accept:1:EMFILE;recv:1:ECONNRESET;"
					 "recv_small:1:EIO;sendmsg:2:EPIPE:*");
	struct iovec iov = { abcd, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	char in;
	int s[2];
	struct task t = {
		.kind = OP_ACCEPT, .buf = &in, .len = 1, .msg = &msg
	};

	pair(s);
	t.fd = s[0];
	assert_int_equal(task_run(f->r, &t), -EMFILE);
	t.kind = OP_SENDMSG;
	assert_int_equal(task_run(f->r, &t), 1);
	assert_int_equal(task_run(f->r, &t), -EPIPE);
	assert_int_equal(task_run(f->r, &t), -EPIPE);
	t.fd = s[1];
	t.kind = OP_RECV_SMALL;
	assert_int_equal(task_run(f->r, &t), -EIO);
	t.kind = OP_RECV;
	assert_int_equal(task_run(f->r, &t), -ECONNRESET);
	assert_int_equal(task_run(f->r, &t), 1);
	pair_close(s);
	end(f);
}

/* delay: the first is written after the second is done. late: it is written
 * and nobody knows. */
static void
take_their_time(void **state)
{
	struct fixture *f =
		begin(state, "write:1:delay=1000;write:3:late=1000");
	int fd = temp_file();
	struct task a = { .kind = OP_WRITE, .fd = fd, .buf = aaaa, .len = 4 };
	struct task b = { .kind = OP_WRITE, .fd = fd, .buf = bb, .len = 2 };
	struct task c = { .kind = OP_WRITE, .fd = fd, .buf = cc, .len = 1 };
	char in[4] = "....";

	task_start(f->r, &a);
	assert_int_equal(task_run(f->r, &b), 2);
	assert_int_equal(task_wait(&a), 4);
	assert_int_equal(pread(fd, in, 4, 0), 4);
	assert_memory_equal(in, "aaaa", 4);
	task_start(f->r, &c);
	while (in[0] != 'c')
		assert_int_equal(pread(fd, in, 1, 0), 1);
	assert_int_equal(c.finished, 0);
	assert_int_equal(task_wait(&c), 1);
	close(fd);
	end(f);
}

/* One that is held back can be cancelled, and ends in its time. */
static void
cancel_delayed(void **state)
{
	struct fixture *f = begin(state, "recv:1:delay=20");
	char in;
	int s[2];
	struct task t = { .kind = OP_RECV, .buf = &in, .len = 1 };

	pair(s);
	t.fd = s[0];
	task_start(f->r, &t);
	task_cancel(&t);
	assert_int_equal(task_wait(&t), -ECANCELED);
	pair_close(s);
	end(f);
}

/* However often the queue is full and the wait interrupted: echo, cancel. */
static void
echo_and_cancel(struct fixture *f)
{
	char out[1000], in[1000];
	struct iovec iov = { out, sizeof(out) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct task send = { .kind = OP_SENDMSG, .msg = &msg };
	struct task recv = { .kind = OP_RECV,
			     .buf = in,
			     .len = sizeof(in),
			     .flags = MSG_WAITALL };
	int s[2];

	pair(s);
	send.fd = s[0];
	recv.fd = s[1];
	for (int i = 0; i < 20; i++) {
		memset(out, i, sizeof(out));
		task_start(f->r, &recv);
		assert_int_equal(task_run(f->r, &send), sizeof(out));
		assert_int_equal(task_wait(&recv), sizeof(in));
		assert_memory_equal(in, out, sizeof(in));
		task_start(f->r, &recv);
		task_cancel(&recv);
		assert_int_equal(task_wait(&recv), -ECANCELED);
	}
	pair_close(s);
}

static void
queue_full(void **state)
{
	char spec[64];

	/* Whichever submission it is that finds no room, for one attempt, for
	 * both of them, and for several turns. */
	for (unsigned n = 1; n < 40; n++) {
		for (unsigned count = 1; count < 8; count += 2) {
			struct fixture *f;

			(void)snprintf(spec, sizeof(spec), "sqfull:%u:%u", n,
				       count);
			f = begin(state, spec);
			echo_and_cancel(f);
			if (f->backend == IO_BACKEND_URING)
				assert_true(reactor_counters(f->r)->sqe_waits >
					    0);
			end(f);
		}
	}
}

static void
interrupted(void **state)
{
	struct fixture *f = begin(state, "eintr:1:30;eintr:40:1000");

	echo_and_cancel(f);
	end(f);
}

#define BOTH(test)                                                             \
	{ #test " (io_uring)", test, NULL, NULL, &uring },                     \
	{                                                                      \
#test " (threads)", test, NULL, NULL, &plain                   \
	}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts), cmocka_unit_test(blocking_calls),
		BOTH(write_fails),       BOTH(would_block),
		BOTH(come_short),        BOTH(sockets_fail),
		BOTH(take_their_time),   BOTH(cancel_delayed),
		BOTH(queue_full),        BOTH(interrupted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
