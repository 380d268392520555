/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings of a reactor: made, probed, registered and closed. Each reactor gets
 * a plain one (SINGLE_ISSUER, DEFER_TASKRUN), made disabled by engine_new's
 * thread so that a refusal is seen there, and enabled by its own.
 *
 * What an operator may want besides comes once the reactor's init has run
 * (ring_settle), and what the kernel refuses of it is left out: sqpoll, which
 * excludes DEFER_TASKRUN and so takes a ring of its own in the place of the
 * first; busy polling of network devices; the ring for polled block devices.
 * The kernel thread of sqpoll has the credentials and the flags of the thread
 * that makes the ring, and does all I/O with them: it must be the reactor's,
 * with the capabilities that its init has left it.
 *
 * io_uring_setup(2), io_uring_register(2).
 */
#include "io/compat.h"
#include "io/ring.h"

#include <errno.h>
#include <stdlib.h>

#define RING_SQ_ENTRIES 1024u
#define RING_CQ_ENTRIES 16384u
#define RING_IOVECS_MAX 64u

static const int ring_opcodes[] = {
	IORING_OP_ACCEPT,      IORING_OP_RECV,        IORING_OP_SENDMSG,
	IORING_OP_READ,        IORING_OP_WRITE,       IORING_OP_READ_FIXED,
	IORING_OP_WRITE_FIXED, IORING_OP_ASYNC_CANCEL
};

static int
ring_probe(struct io_uring *u)
{
	size_t n = sizeof(ring_opcodes) / sizeof(ring_opcodes[0]);
	struct io_uring_probe *probe = io_uring_get_probe_ring(u);
	int err = 0;

	if (!probe)
		return -EOPNOTSUPP;
	for (size_t i = 0; i < n; i++)
		if (!io_uring_opcode_supported(probe, ring_opcodes[i]))
			err = -EOPNOTSUPP;
	io_uring_free_probe(probe);
	return err;
}

static int
ring_register_small(struct reactor *r)
{
	struct ring *ring = r->ring;
	struct io_uring_buf_reg reg = { .ring_entries = SMALL_BUFFERS,
					.bgid = RING_SMALL_GROUP };
	void *p = NULL;
	int ret;

	ret = posix_memalign(&p, (size_t)sysconf(_SC_PAGESIZE),
			     SMALL_BUFFERS * sizeof(struct io_uring_buf));
	if (ret)
		return -ret;
	ring->small = p;
	io_uring_buf_ring_init(ring->small);
	reg.ring_addr = (uintptr_t)p;
	ret = io_uring_register_buf_ring(&ring->uring, &reg, 0);
	if (ret < 0)
		return ret;
	for (uint32_t i = 0; i < SMALL_BUFFERS; i++)
		ring_small_add(r, i, (int)i);
	io_uring_buf_ring_advance(ring->small, SMALL_BUFFERS);
	return 0;
}

bool
ring_register_pool(struct reactor *r, struct io_uring *u)
{
	struct iovec iov[RING_IOVECS_MAX];
	unsigned n = buf_pool_iovecs(r->pool, iov, RING_IOVECS_MAX);

	return io_uring_register_buffers(u, iov, n) == 0;
}

static void
ring_free(struct ring *ring)
{
	if (!ring)
		return;
	ring_polled_close(ring);
	if (ring->uring.ring_fd >= 0)
		io_uring_queue_exit(&ring->uring);
	free(ring->small);
	free(ring);
}

void
ring_close(struct reactor *r)
{
	ring_free(r->ring);
	r->ring = NULL;
}

/* Into r->ring; on failure there is none. */
static int
ring_make(struct reactor *r, struct io_uring_params *params)
{
	struct ring *ring = calloc(1, sizeof(*ring));
	int ret;

	r->ring = ring;
	if (!ring)
		return -ENOMEM;
	ring->uring.ring_fd = -1;
	ret = io_uring_queue_init_params(RING_SQ_ENTRIES, &ring->uring, params);
	if (ret < 0)
		ring->uring.ring_fd = -1;
	else if (!(params->features & IORING_FEAT_NODROP) ||
		 !(params->features & IORING_FEAT_EXT_ARG))
		ret = -EOPNOTSUPP;
	else
		ret = ring_probe(&ring->uring);
	if (ret >= 0)
		ret = ring_register_small(r);
	if (ret < 0)
		ring_close(r);
	return ret < 0 ? ret : 0;
}

int
ring_open(struct reactor *r)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_SINGLE_ISSUER |
			 IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_R_DISABLED |
			 IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE |
			 IORING_SETUP_CLAMP,
		.cq_entries = RING_CQ_ENTRIES,
	};
	int ret = ring_make(r, &params);

	if (ret < 0)
		return ret;
	r->buffers_registered = ring_register_pool(r, &r->ring->uring);
	return 0;
}

/* liburing 2.3 declares io_uring_enable_rings and does not export it. */
static int
ring_enable(const struct io_uring *u)
{
	long ret = syscall(__NR_io_uring_register, u->ring_fd,
			   IORING_REGISTER_ENABLE_RINGS, NULL, 0);

	return ret < 0 ? -errno : 0;
}

/* Both classes of io-wq's threads. Nothing that we ask for needs any: sockets
 * are polled, and what would block goes to threads of ours. */
static int
ring_bound_workers(struct reactor *r)
{
	unsigned n = engine_io_workers(r->engine), max[2] = { n, n };

	return io_uring_register_iowq_max_workers(&r->ring->uring, max);
}

int
ring_enter(struct reactor *r)
{
	int ret = ring_enable(&r->ring->uring);

	return ret < 0 ? ret : ring_bound_workers(r);
}

/* A ring with sqpoll in the place of the first one, which has not been used
 * yet and stays where this one cannot be had. */
static int
ring_sqpoll(struct reactor *r, unsigned idle_ms)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_SQPOLL |
			 IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE |
			 IORING_SETUP_CLAMP,
		.cq_entries = RING_CQ_ENTRIES,
		.sq_thread_idle = idle_ms,
	};
	struct ring *first = r->ring;
	int ret = ring_make(r, &params);

	if (ret == 0) {
		ret = ring_bound_workers(r);
		if (ret < 0)
			ring_close(r);
	}
	if (ret < 0) {
		r->ring = first;
		return ret;
	}
	r->ring->sqpoll = true;
	/* Now, not when the kernel gets to it: locked memory has a limit. */
	if (r->buffers_registered)
		(void)io_uring_unregister_buffers(&first->uring);
	ring_free(first);
	r->buffers_registered = ring_register_pool(r, &r->ring->uring);
	return 0;
}

static int
ring_busy_poll(struct reactor *r, unsigned us)
{
	struct napi_register napi = { .busy_poll_us = us, .prefer = 0 };
	long ret = syscall(__NR_io_uring_register, r->ring->uring.ring_fd,
			   NAPI_REGISTER, &napi, 1);

	return ret < 0 ? -errno : 0;
}

void
ring_settle(struct reactor *r)
{
	const struct engine_config *c = engine_config(r->engine);

	assert(r->ops.live == 0);
	if (c->sqpoll)
		r->sqpoll_error = ring_sqpoll(r, c->sqpoll_idle_ms);
	if (c->busy_poll_us > 0)
		r->busy_poll_error = ring_busy_poll(r, c->busy_poll_us);
	if (c->iopoll)
		r->iopoll_error = ring_polled_open(r);
}
