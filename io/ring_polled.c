/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reactor's second ring, for direct I/O on devices with queues that are
 * polled (nvme.poll_queues): IORING_SETUP_IOPOLL, io_uring_setup(2). No
 * interrupt tells of a completion there, so while anything is in flight the
 * reactor does not sleep (ops.polled) and asks the devices once a turn of its
 * loop. Only files take part; sockets and all else stay in the first ring.
 *
 * What the kernel will not poll (-EOPNOTSUPP, -EINVAL), and what would block
 * (-EAGAIN), goes to the first ring.
 */
#include "io/compat.h"
#include "io/ring.h"

#include <errno.h>

#define POLLED_MAX 1024u /* in flight; the rest goes the usual way */

int
ring_polled_open(struct reactor *r)
{
	struct io_uring_params params = { .flags = IORING_SETUP_IOPOLL |
						   IORING_SETUP_SINGLE_ISSUER |
						   IORING_SETUP_SUBMIT_ALL };
	struct ring *ring = r->ring;
	int ret =
		io_uring_queue_init_params(POLLED_MAX, &ring->polled, &params);

	if (ret < 0)
		return ret;
	ring->has_polled = true;
	ring->polled_fixed = ring_register_pool(r, &ring->polled);
	return 0;
}

void
ring_polled_close(struct ring *ring)
{
	if (ring->has_polled)
		io_uring_queue_exit(&ring->polled);
	ring->has_polled = false;
}

bool
ring_polled_submit(struct reactor *r, struct op *op)
{
	struct ring *ring = r->ring;
	struct io_uring_sqe *sqe;

	if (!ring->has_polled || op->blocks || r->ops.polled == POLLED_MAX)
		return false;
	/* Each entry is one of those in flight. */
	sqe = io_uring_get_sqe(&ring->polled);
	if (!sqe)
		return false;
	ring_prep_file(r, sqe, op, ring->polled_fixed);
	io_uring_sqe_set_data64(sqe, ring_user_data(r, op));
	op->polled = true;
	r->ops.polled++;
	counter_add(&r->counters.polled, 1);
	return true;
}

void
ring_polled_turn(struct reactor *r)
{
	struct ring *ring = r->ring;

	if (!ring->has_polled || r->ops.polled == 0)
		return;
	ring_check(io_uring_submit_and_get_events(&ring->polled));
	ring_reap(r, &ring->polled);
}

bool
ring_polled_again(struct reactor *r, struct op *op)
{
	op->polled = false;
	if ((op->res != -EOPNOTSUPP && op->res != -EINVAL) || op->cancelled)
		return false;
	op->flags &= ~RWF_HIPRI;
	op_submit(r, op);
	return true;
}
