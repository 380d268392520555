/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations of a reactor, each test on io_uring and on the threads backend.
 */
#include "tests/unit/engine_harness.h"

#include "io/compat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

struct fixture {
	enum io_backend backend;
	struct engine *engine;
	struct reactor *r;
};

static struct fixture uring = { .backend = IO_BACKEND_URING };
static struct fixture plain = { .backend = IO_BACKEND_THREADS };

static int
setup(void **state)
{
	struct fixture *f = *state;

	f->engine = engine_make(f->backend, 1, 0);
	f->r = engine_reactor(f->engine, 0);
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	engine_free(f->engine); /* asserts that all is home */
	return 0;
}

static void
pair(int fd[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
}

static void
pattern(uint8_t *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)((i * 31 + i / 251 + seed) & 0xff);
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
			uint32_t left = n - sent;
			struct iovec iov[3] = {
				{ out + sent, left / 3 },
				{ out + sent + left / 3, left / 3 },
				{ out + sent + left / 3 * 2,
				  left - left / 3 * 2 },
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

#define BOTH(test)                                                             \
	{ #test " (io_uring)", test, setup, teardown, &uring },                \
	{                                                                      \
#test " (threads)", test, setup, teardown, &plain              \
	}

int
main(void)
{
	const struct CMUnitTest tests[] = { BOTH(echo_sizes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
