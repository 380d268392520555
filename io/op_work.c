/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File operations as plain system calls, on the engine's threads for them: all
 * of them with the threads backend, and with the ring those that would block.
 * io_uring has threads for these, but makes them when they are needed, and a
 * memory control group that is full of what only we can write back refuses
 * that, or kills somebody for it; ours are there from the start, and bounded
 * for all reactors together. The object is the op, which takes its result with
 * it. preadv2(2).
 */
#include "io/compat.h"
#include "io/reactor.h"

#include <errno.h>
#include <sys/uio.h>

static void
op_work_run(struct work *w)
{
	struct op *op = container_of(w, struct op, work);
	struct iovec iov = { .iov_base = op->buf, .iov_len = op->len };
	int flags = op->flags & ~RWF_HIPRI; /* nobody would poll */
	ssize_t n;

	do {
		if (op->kind == OP_READ)
			n = preadv2(op->fd, &iov, 1, (off_t)op->offset, flags);
		else
			n = pwritev2(op->fd, &iov, 1, (off_t)op->offset, flags);
	} while (n < 0 && errno == EINTR);
	op->res = n < 0 ? -errno : (int)n;
}

static void
op_work_done(struct work *w)
{
	struct op *op = container_of(w, struct op, work);

	op_finish(w->reactor, op, op->res);
}

void
op_work(struct reactor *r, struct op *op)
{
	assert(op->kind == OP_READ || op->kind == OP_WRITE);
	counter_add(&r->counters.punts, 1);
	op->work = (struct work){ .run = op_work_run,
				  .done = op_work_done,
				  .reactor = r };
	work_submit(r->engine, WORK_FILES, &op->work);
}
