/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The io_uring backend: operations on one ring a reactor, used by the reactor's
 * thread only (ring_setup.c makes it; ring_polled.c has a second one).
 * io_uring(7), io_uring_enter(2).
 *
 * user_data is slot | generation << 32. Two slots beyond the table stand for
 * the eventfd's read, which is armed whenever the loop may sleep, and for
 * cancellations, whose own result says nothing.
 *
 * A file operation is first tried with RWF_NOWAIT. Without it io_uring would
 * punt in silence to threads of its own; so the -EAGAIN comes here, and the
 * operation goes to one of ours (op_work.c).
 */
#include "io/ring.h"
#include "io/compat.h"

#include <errno.h>

#define RING_UNARMED_NS NS_PER_MS

#define USER_DATA_WAKE   ((uint64_t)OP_SLOTS)
#define USER_DATA_CANCEL ((uint64_t)OP_SLOTS + 1)

uint64_t
ring_user_data(const struct reactor *r, const struct op *op)
{
	uint64_t generation = r->ops.slot[op->slot].generation;

	return op->slot | generation << 32;
}

/* The operation that a completion belongs to. Each submission has its own
 * generation and one completion: another one is our mistake. */
static struct op *
user_data_op(const struct reactor *r, uint64_t data)
{
	uint32_t i = (uint32_t)data;
	const struct op_slot *s = &r->ops.slot[i];

	assert(i < r->ops.top && s->op);
	assert(s->generation == data >> 32 && s->op->place == OP_RUNNING);
	return s->op;
}

void
ring_small_add(struct reactor *r, uint32_t i, int at)
{
	io_uring_buf_ring_add(r->ring->small,
			      r->small.base + (size_t)i * IO_SMALL_BYTES,
			      IO_SMALL_BYTES, (unsigned short)i,
			      io_uring_buf_ring_mask(SMALL_BUFFERS), at);
}

void
ring_check(int ret)
{
	assert(ret >= 0 || ret == -ETIME || ret == -EINTR || ret == -EAGAIN ||
	       ret == -EBUSY || ret == -ENOMEM);
}

static struct io_uring_sqe *
ring_sqe(struct reactor *r)
{
	struct io_uring *u = &r->ring->uring;
	struct io_uring_sqe *sqe = NULL;

	if (!fault_queue_full())
		sqe = io_uring_get_sqe(u);
	if (sqe)
		return sqe;
	counter_add(&r->counters.sqe_waits, 1);
	ring_check(io_uring_submit(u));
	return fault_queue_full() ? NULL : io_uring_get_sqe(u);
}

void
ring_prep_file(const struct reactor *r, struct io_uring_sqe *sqe,
	       const struct op *op, bool fixed)
{
	int index = 0;

	/* The kernel (6.18) takes atomic writes from plain memory only. */
	fixed = fixed && (op->flags & RWF_ATOMIC) == 0 &&
		buf_pool_holds(r->pool, op->buf, op->len, &index);
	if (op->kind == OP_READ && fixed)
		io_uring_prep_read_fixed(sqe, op->fd, op->buf, op->len,
					 op->offset, index);
	else if (op->kind == OP_READ)
		io_uring_prep_read(sqe, op->fd, op->buf, op->len, op->offset);
	else if (fixed)
		io_uring_prep_write_fixed(sqe, op->fd, op->buf, op->len,
					  op->offset, index);
	else
		io_uring_prep_write(sqe, op->fd, op->buf, op->len, op->offset);
	/* The ring says whether it is polled for. */
	sqe->rw_flags =
		(op->flags & ~RWF_HIPRI) | (op->nowait ? RWF_NOWAIT : 0);
}

/* Is it for a device that is asked for completions? */
static bool
op_is_polled(const struct op *op)
{
	return (op->kind == OP_READ || op->kind == OP_WRITE) &&
	       (op->flags & RWF_HIPRI) != 0;
}

static bool
ring_submit(struct reactor *r, struct op *op)
{
	struct io_uring_sqe *sqe;

	if (op->blocks) {
		op_work(r, op);
		return true;
	}
	if (op_is_polled(op) && ring_polled_submit(r, op))
		return true;
	sqe = ring_sqe(r);
	if (!sqe)
		return false;
	switch (op->kind) {
	case OP_ACCEPT:
		io_uring_prep_accept(sqe, op->fd, NULL, NULL, SOCK_CLOEXEC);
		break;
	case OP_RECV:
		io_uring_prep_recv(sqe, op->fd, op->buf, op->len, op->flags);
		break;
	case OP_RECV_SMALL:
		io_uring_prep_recv(sqe, op->fd, NULL, op->len, 0);
		io_uring_sqe_set_flags(sqe, IOSQE_BUFFER_SELECT);
		sqe->buf_group = RING_SMALL_GROUP;
		break;
	case OP_SENDMSG:
		/* WAITALL: the kernel goes on where a send was short. */
		io_uring_prep_sendmsg(sqe, op->fd, op->buf,
				      (unsigned)op->flags | MSG_WAITALL);
		break;
	default:
		assert(op->kind == OP_READ || op->kind == OP_WRITE);
		ring_prep_file(r, sqe, op, r->buffers_registered);
	}
	io_uring_sqe_set_data64(sqe, ring_user_data(r, op));
	return true;
}

static bool
ring_cancel_send(struct reactor *r, const struct op *op)
{
	struct io_uring_sqe *sqe = ring_sqe(r);

	if (!sqe)
		return false;
	io_uring_prep_cancel64(sqe, ring_user_data(r, op), 0);
	io_uring_sqe_set_data64(sqe, USER_DATA_CANCEL);
	return true;
}

static void
ring_cancel(struct reactor *r, struct op *op)
{
	if (!ring_cancel_send(r, op))
		r->ring->cancels_owed = true;
}

/* Rare: the queue was full when a cancellation came. Those already sent are
 * sent again, which does no harm. */
static void
ring_cancel_owed(struct reactor *r)
{
	r->ring->cancels_owed = false;
	for (uint32_t i = 0; i < r->ops.top; i++) {
		const struct op *op = r->ops.slot[i].op;

		if (!op || !op->cancelled || op->place != OP_RUNNING)
			continue;
		if (!ring_cancel_send(r, op)) {
			r->ring->cancels_owed = true;
			return;
		}
	}
}

/*
 * A failed NOWAIT goes to a worker: it would block (-EAGAIN, or a
 * write that took nothing), or the file system has no such thing: -EOPNOTSUPP,
 * and -EINVAL for a buffered write.
 */
static bool
ring_again_file(struct reactor *r, struct op *op)
{
	bool punt = op->res == -EAGAIN || op->res == -EOPNOTSUPP ||
		    op->res == -EINVAL;

	if (op->kind == OP_WRITE && op->res == 0 && op->len > 0)
		punt = true;
	if (!punt || !op->nowait || op->cancelled)
		return false;
	if (op->tells) {
		op->res = -EAGAIN;
		return false;
	}
	op->nowait = false;
	op->blocks = true;
	op_submit(r, op);
	return true;
}

static bool
ring_again(struct reactor *r, struct op *op)
{
	if (op->polled && ring_polled_again(r, op))
		return true;
	if (op->kind == OP_READ || op->kind == OP_WRITE)
		return ring_again_file(r, op);
	if (op->kind != OP_RECV_SMALL || op->res != -ENOBUFS || op->cancelled)
		return false;
	op_wait_small(r, op);
	return true;
}

static void
ring_small_back(struct reactor *r, uint32_t i)
{
	ring_small_add(r, i, 0);
	io_uring_buf_ring_advance(r->ring->small, 1);
}

static void
ring_complete(struct reactor *r, const struct io_uring_cqe *cqe)
{
	struct op *op;

	if (cqe->user_data == USER_DATA_CANCEL)
		return;
	if (cqe->user_data == USER_DATA_WAKE) {
		r->ring->wake_armed = false;
		return;
	}
	op = user_data_op(r, cqe->user_data);
	if (op->polled)
		r->ops.polled--;
	if (cqe->flags & IORING_CQE_F_BUFFER) {
		uint32_t i = cqe->flags >> IORING_CQE_BUFFER_SHIFT;

		if (cqe->res > 0)
			op->small = small_hold(r, i);
		else
			ring_small_back(r, i);
	}
	op_finish(r, op, cqe->res);
}

void
ring_reap(struct reactor *r, struct io_uring *u)
{
	struct io_uring_cqe *cqe;
	unsigned head, n = 0;

	io_uring_for_each_cqe (u, head, cqe) {
		ring_complete(r, cqe);
		n++;
	}
	io_uring_cq_advance(u, n);
}

static void
ring_arm_wake(struct reactor *r)
{
	struct ring *ring = r->ring;
	struct io_uring_sqe *sqe = ring_sqe(r);

	if (!sqe)
		return;
	io_uring_prep_read(sqe, r->wake_fd, &ring->wake_count,
			   sizeof(ring->wake_count), 0);
	io_uring_sqe_set_data64(sqe, USER_DATA_WAKE);
	ring->wake_armed = true;
}

/* Submit, and take in what is there without waiting for it. With sqpoll no
 * system call does either, but to wake the thread, or where completions found
 * the queue full. */
static void
ring_push(struct ring *ring)
{
	struct io_uring *u = &ring->uring;

	if (!ring->sqpoll) {
		ring_check(io_uring_submit_and_get_events(u));
		return;
	}
	ring_check(io_uring_submit(u));
	if (IO_URING_READ_ONCE(*u->sq.kflags) & IORING_SQ_CQ_OVERFLOW)
		ring_check(io_uring_get_events(u));
}

static void
ring_wait(struct reactor *r, uint64_t timeout_ns)
{
	struct ring *ring = r->ring;
	struct __kernel_timespec ts;
	struct io_uring_cqe *cqe;

	if (ring->cancels_owed)
		ring_cancel_owed(r);
	if (!ring->wake_armed)
		ring_arm_wake(r);
	if ((!ring->wake_armed || ring->cancels_owed) &&
	    timeout_ns > RING_UNARMED_NS)
		timeout_ns = RING_UNARMED_NS;
	if (fault_interrupted()) {
		ring_reap(r, &ring->uring);
		return;
	}
	if (timeout_ns == 0) {
		ring_push(ring);
	} else {
		ts.tv_sec = (long long)(timeout_ns / NS_PER_S);
		ts.tv_nsec = (long long)(timeout_ns % NS_PER_S);
		ring_check(io_uring_submit_and_wait_timeout(&ring->uring, &cqe,
							    1, &ts, NULL));
	}
	ring_reap(r, &ring->uring);
	ring_polled_turn(r);
}

/* The armed read writes to our memory: end it before the memory goes. */
static void
ring_leave(struct reactor *r)
{
	while (r->ring->wake_armed) {
		reactor_wake(r);
		ring_check(io_uring_submit_and_wait(&r->ring->uring, 1));
		ring_reap(r, &r->ring->uring);
	}
}

const struct backend backend_uring = {
	.open = ring_open,
	.close = ring_close,
	.enter = ring_enter,
	.settle = ring_settle,
	.leave = ring_leave,
	.submit = ring_submit,
	.cancel = ring_cancel,
	.again = ring_again,
	.small_back = ring_small_back,
	.wait = ring_wait,
};
