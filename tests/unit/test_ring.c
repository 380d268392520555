/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of a reactor on sockets, on each backend. */
#include "tests/unit/ring_harness.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static void
pair(int fd[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
}

/* What one side sends in one message of three parts arrives whole at the
 * other, with MSG_WAITALL. */
static void
echo_sizes(void **state)
{
	static const uint32_t sizes[] = {
		1, 3, 4095, 4096, 4097, 65536, 1000000, IO_TRANSFER_BYTES_MAX
	};
	struct fixture *f = *state;
	int fd[2];

	pair(fd);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t n = sizes[i], sent = 0;
		uint8_t *out = malloc(n), *in = calloc(1, n);
		struct task recv = { .kind = OP_RECV,
				     .fd = fd[1],
				     .buf = in,
				     .len = n,
				     .flags = MSG_WAITALL };

		pattern(out, n, (unsigned)i);
		task_start(f->r, &recv);
		while (sent < n) {
			size_t left = n - sent, part = left / 3;
			uint8_t *p = out + sent;
			struct iovec iov[3] = {
				{ p, part },
				{ p + part, part },
				{ p + 2 * part, left - 2 * part },
			};
			struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 3 };
			struct task send = { .kind = OP_SENDMSG,
					     .fd = fd[0],
					     .msg = &msg };
			int res = task_run(f->r, &send);

			assert_true(res > 0);
			sent += (uint32_t)res;
		}
		assert_int_equal(task_wait(&recv), (int)n);
		assert_memory_equal(in, out, n);
		free(in);
		free(out);
	}
	close(fd[0]);
	close(fd[1]);
}

static struct msghdr
message_of(struct iovec *iov, void *data, size_t n)
{
	*iov = (struct iovec){ data, n };
	return (struct msghdr){ .msg_iov = iov, .msg_iovlen = 1 };
}

static void
send_bytes(int fd, size_t n)
{
	static const uint8_t zeros[65536];

	assert_true(n <= sizeof(zeros));
	assert_int_equal(send(fd, zeros, n, 0), (ssize_t)n);
}

/* Without MSG_WAITALL what is there is enough; with it, only the peer's end
 * makes the result short; after that there are none; then nobody to send to. */
static void
recv_ends(void **state)
{
	struct fixture *f = *state;
	uint8_t in[100];
	struct iovec iov;
	struct msghdr msg = message_of(&iov, in, sizeof(in));
	struct task t = { .kind = OP_RECV, .buf = in, .len = sizeof(in) };
	int fd[2];

	pair(fd);
	t.fd = fd[1];
	send_bytes(fd[0], 10);
	assert_int_equal(task_run(f->r, &t), 10);
	t.flags = MSG_WAITALL;
	task_start(f->r, &t);
	send_bytes(fd[0], 20);
	send_bytes(fd[0], 20);
	assert_int_equal(shutdown(fd[0], SHUT_WR), 0);
	assert_int_equal(task_wait(&t), 40);
	assert_int_equal(task_run(f->r, &t), 0);
	close(fd[0]);
	t.kind = OP_SENDMSG;
	t.msg = &msg;
	assert_int_equal(task_run(f->r, &t), -EPIPE); /* and no SIGPIPE */
	close(fd[1]);
	t.kind = OP_RECV;
	assert_int_equal(task_run(f->r, &t), -EBADF);
}

static void
small_buffers(void **state)
{
	struct fixture *f = *state;
	struct task t = { .kind = OP_RECV_SMALL };
	int fd[2];

	pair(fd);
	t.fd = fd[1];
	task_start(f->r, &t);
	assert_int_equal(send(fd[0], "hello", 5, 0), 5);
	assert_int_equal(task_wait(&t), 5);
	assert_memory_equal(t.op.small, "hello", 5);
	visit(f->r, small_give_visit, t.op.small);
	send_bytes(fd[0], 2 * (size_t)IO_SMALL_BYTES);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(task_run(f->r, &t), IO_SMALL_BYTES);
		visit(f->r, small_give_visit, t.op.small);
	}
	close(fd[0]);
	assert_int_equal(task_run(f->r, &t), 0);
	assert_null(t.op.small);
	close(fd[1]);
}

/* Takes small buffers until an operation has to wait for one. Returns how many
 * were held; want waits on fd[1]. */
static unsigned
small_exhaust(struct fixture *f, const int fd[2], void **held, unsigned max,
	      struct task *want)
{
	struct reactor_counters *c = reactor_counters(f->r);
	struct task t = { .kind = OP_RECV_SMALL, .fd = fd[1] };
	unsigned n = 0;

	for (;;) {
		assert_true(n < max);
		send_bytes(fd[0], 1);
		*want = t;
		task_start(f->r, want);
		while (!want->finished && atomic_load(&c->small_waits) == 0)
			sched_yield();
		if (atomic_load(&c->small_waits) > 0)
			return n;
		assert_int_equal(task_wait(want), 1);
		held[n++] = want->op.small;
	}
}

#define HELD_MAX 4096

/* With none left an operation waits, is counted, and goes on when one comes
 * back; a silent peer in front of it does not take the buffer away. */
static void
small_exhaustion(void **state)
{
	struct fixture *f = *state;
	void **held = calloc(HELD_MAX, sizeof(*held));
	struct task want, silent = { .kind = OP_RECV_SMALL }, talking = silent;
	int fd[2], quiet[2], loud[2];
	unsigned n;

	pair(fd);
	pair(quiet);
	pair(loud);
	n = small_exhaust(f, fd, held, HELD_MAX, &want);
	silent.fd = quiet[1];
	talking.fd = loud[1];
	send_bytes(loud[0], 3);
	task_start(f->r, &silent);
	task_start(f->r, &talking);
	/* sqpoll's thread may not have got to them yet. */
	while (atomic_load(&reactor_counters(f->r)->small_waits) < 3)
		sched_yield();
	assert_int_equal(want.finished + silent.finished + talking.finished, 0);
	visit(f->r, small_give_visit, held[--n]);
	assert_int_equal(task_wait(&want), 1);
	visit(f->r, small_give_visit, want.op.small);
	assert_int_equal(task_wait(&talking), 3);
	assert_int_equal(silent.finished, 0);
	visit(f->r, small_give_visit, talking.op.small);
	task_cancel(&silent);
	assert_int_equal(task_wait(&silent), -ECANCELED);
	while (n > 0)
		visit(f->r, small_give_visit, held[--n]);
	for (int i = 0; i < 2; i++) {
		close(fd[i]);
		close(quiet[i]);
		close(loud[i]);
	}
	free(held);
}

static void
cancel_sockets(void **state)
{
	struct fixture *f = *state;
	uint8_t in[100];
	struct task t = { .kind = OP_RECV, .buf = in, .len = sizeof(in) };
	int fd[2], res;

	pair(fd);
	t.fd = fd[1];
	task_start(f->r, &t);
	task_cancel(&t);
	task_cancel(&t);
	assert_int_equal(task_wait(&t), -ECANCELED);
	/* What had come is not lost. */
	t.flags = MSG_WAITALL;
	task_start(f->r, &t);
	send_bytes(fd[0], 7);
	do
		assert_int_equal(ioctl(fd[1], FIONREAD, &res), 0);
	while (res > 0);
	task_cancel(&t);
	assert_int_equal(task_wait(&t), 7);
	t.kind = OP_RECV_SMALL;
	task_start(f->r, &t);
	task_cancel(&t);
	assert_int_equal(task_wait(&t), -ECANCELED);
	/* Nothing is left armed: the next bytes are the next receive's. */
	send_bytes(fd[0], 9);
	assert_int_equal(task_run(f->r, &t), 9);
	visit(f->r, small_give_visit, t.op.small);
	close(fd[0]);
	close(fd[1]);
}

/* A send to a peer that does not read waits, and can be cancelled. */
static void
cancel_send(void **state)
{
	struct fixture *f = *state;
	size_t n = (size_t)16 << 20;
	void *data = calloc(1, n);
	struct iovec iov;
	struct msghdr msg = message_of(&iov, data, n);
	struct task t = { .kind = OP_SENDMSG, .msg = &msg };
	int fd[2], res;

	pair(fd);
	t.fd = fd[0];
	do { /* the threads backend sends in parts */
		task_start(f->r, &t);
		task_cancel(&t);
		res = task_wait(&t);
	} while (res > 0 && f->backend == IO_BACKEND_THREADS);
	assert_true(res == -ECANCELED || res > 0);
	close(fd[0]);
	close(fd[1]);
	free(data);
}

static void
accept_one(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t bytes = sizeof(addr);
	struct task t = { .kind = OP_ACCEPT };
	int fd, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(listener, (struct sockaddr *)&addr, bytes), 0);
	assert_int_equal(listen(listener, 8), 0);
	assert_int_equal(
		getsockname(listener, (struct sockaddr *)&addr, &bytes), 0);
	t.fd = listener;
	for (int i = 0; i < 3; i++) {
		task_start(f->r, &t);
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(fd, (struct sockaddr *)&addr, bytes),
				 0);
		assert_true(task_wait(&t) >= 0);
		assert_int_equal(fcntl(t.res, F_GETFD), FD_CLOEXEC);
		assert_int_equal(fcntl(t.res, F_GETFL) & O_NONBLOCK, 0);
		close(t.res);
		close(fd);
	}
	task_start(f->r, &t);
	task_cancel(&t);
	assert_int_equal(task_wait(&t), -ECANCELED);
	close(listener);
}

static void
many_sockets(void **state)
{
	struct fixture *f = *state;
	unsigned n = 3000;
	int fd[2];

	pair(fd);
	many = calloc(1, sizeof(*many));
	many->kind = OP_RECV;
	many->fd = fd[1];
	visit(f->r, many_start, &n);
	send_bytes(fd[0], n);
	while (atomic_load(&many->finished) < n)
		sched_yield();
	assert_int_equal(many->wrong, 0);
	close(fd[0]);
	close(fd[1]);
	free(many);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(echo_sizes),     EACH(recv_ends),
		EACH(small_buffers),  EACH(small_exhaustion),
		EACH(cancel_sockets), EACH(cancel_send),
		EACH(accept_one),     EACH(many_sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
