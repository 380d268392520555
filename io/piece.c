/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces of a WRITE: each is issued, to the ring, to the inode's strand, or by
 * a call that blocks, until all its bytes are written or no more will be: what
 * is left of a short one goes again, and where the kernel refuses direct I/O it
 * goes through the page cache. The object is struct io_piece, inside its struct
 * io_write; whoever issues a piece (the reactor, or a worker) owns it until it
 * has ended. It knows nothing of other pieces: write.c says what goes when.
 */
#include "io/write.h"

#include "io/compat.h"
#include "io/device.h"
#include "io/reactor.h"
#include "io/trace.h"

#include <sys/uio.h>

#define AGAIN_MAX 16

static void
piece_init(struct io_write *w, struct io_piece *p, uint64_t offset,
	   uint32_t bytes, bool direct)
{
	p->write = w;
	p->data = w->data + (offset - w->offset);
	p->offset = offset;
	p->bytes = bytes;
	p->done_bytes = 0;
	p->again = 0;
	p->direct = direct;
	p->rwf = w->buffered_rwf;
	if (direct)
		p->rwf = (w->through ? RWF_DSYNC : 0) |
			 (w->atomic ? RWF_ATOMIC : 0);
}

uint32_t
write_chunk_bytes(const struct io_write *w)
{
	const struct volume_facts *f = volume_facts(w->file->volume);
	uint64_t end = w->split.middle.offset + w->split.middle.bytes;
	uint64_t stop = w->middle_next + f->piece_bytes_max;
	uint32_t cut = w->file->facts.cut;

	/* An extending one is waited for by itself: the kernel cuts it and has
	 * all parts on their way together. */
	if (stop >= end || w->atomic || w->extending)
		return (uint32_t)(end - w->middle_next);
	if (f->piece_boundary != 0 &&
	    stop - stop % f->piece_boundary > w->middle_next)
		stop -= stop % f->piece_boundary;
	stop = round_down(stop, cut);
	if (stop <= w->middle_next)
		stop = w->middle_next + cut;
	return (uint32_t)(stop - w->middle_next);
}

/* A direct piece needs slots of its device. True: it may go; else p->slot.ready
 * comes, and then it may. */
static bool
piece_slot_take(struct io_piece *p)
{
	struct device_slots *s = volume_slots(p->write->file->volume);

	p->slot.slots = 0;
	if (!p->direct || s == NULL)
		return true;
	p->slot.reactor = p->write->reactor;
	return device_slots_take(s, &p->slot, p->bytes);
}

/* The same where the caller blocks in its I/O. */
static void
piece_slot_force(struct io_piece *p)
{
	struct device_slots *s = volume_slots(p->write->file->volume);

	p->slot.slots = 0;
	if (p->direct && s != NULL)
		p->slot.slots = device_slots_force(s, p->bytes);
}

/* Also when it ended as a buffered one. */
static void
piece_slot_give(struct io_piece *p)
{
	if (p->slot.slots == 0)
		return;
	device_slots_give(volume_slots(p->write->file->volume), p->slot.slots);
	p->slot.slots = 0;
}

static int
piece_fd(const struct io_piece *p)
{
	return p->direct ? p->write->file->direct_fd : p->write->file->fd;
}

/* Blocks: write the rest, or what one call takes of it. The result. */
static int
piece_call(struct io_piece *p)
{
	uint32_t left = p->bytes - p->done_bytes;
	int r = fault_point(OP_WRITE, &left);
	struct iovec iov;
	ssize_t n;

	if (r != 0)
		return r;
	iov.iov_base = (void *)(p->data + p->done_bytes);
	iov.iov_len = left;
	trace_submit(p->write, p->offset + p->done_bytes, left, p->direct);
	n = pwritev2(piece_fd(p), &iov, 1, (off_t)(p->offset + p->done_bytes),
		     p->rwf);
	r = n < 0 ? -errno : (int)n;
	trace_complete(p->write, p->offset + p->done_bytes, r, p->direct);
	return r;
}

/* The kernel does no direct I/O here after all. The range is ours alone (a
 * direct part keeps everything out), so the rest may go buffered. */
static void
fall_back(struct io_piece *p)
{
	struct io_write *w = p->write;

	count_add(&volume_counters(w->file->volume)->fallbacks, 1);
	if (p->done_bytes == 0)
		atomic_store(&w->file->direct_refused, true);
	p->direct = false;
	p->rwf = w->buffered_rwf;
	w->through = false;
}

/* It was to be stable at once, and something failed, perhaps what others wrote:
 * a plain write shows which, and a sync finds what is to be found. */
static void
fall_back_to_sync(struct io_piece *p)
{
	p->write->through = false;
	p->rwf &= ~RWF_DSYNC;
}

static bool
refused_direct(int res)
{
	return res == -EINVAL || res == -EOPNOTSUPP || res == -ENOTBLK;
}

/* Nothing came of it and it may be tried once more. The ring tries again by
 * itself what would have blocked; who says -EAGAIN after that is short of
 * something, which shall not become a client's error at once. */
static bool
wants_again(struct io_piece *p, int res)
{
	return res == -EINTR || (res == -EAGAIN && p->again++ < AGAIN_MAX);
}

static bool
is_part(const struct io_piece *p, int res)
{
	return res > 0 && (uint32_t)res < p->bytes;
}

/* Take the result of a call: 1: issue what is left; 0: all is written;
 * -errno: no more will be. */
static int
piece_judge(struct io_piece *p, int res)
{
	/* What must not tear is not written otherwise. */
	if (p->write->atomic && (refused_direct(res) || is_part(p, res)))
		return -EIO;
	if (p->direct && refused_direct(res)) {
		fall_back(p);
		return 1;
	}
	if (res <= 0 && wants_again(p, res))
		return 1;
	if (res < 0 && p->direct && (p->rwf & RWF_DSYNC) != 0) {
		fall_back_to_sync(p);
		return 1;
	}
	if (res <= 0)
		return res == 0 ? -EIO : res;
	assert((uint32_t)res <= p->bytes - p->done_bytes);
	p->done_bytes += (uint32_t)res;
	if (p->done_bytes == p->bytes)
		return 0;
	/* It may have stopped where direct I/O cannot go on. */
	if (p->direct && p->done_bytes % p->write->file->facts.cut != 0)
		fall_back(p);
	return 1;
}

/* p has ended so (0 or -errno): what that means for its WRITE and its pages. */
static void
piece_note(struct io_piece *p, int error)
{
	struct io_write *w = p->write;
	uint64_t reached = p->offset + p->done_bytes;

	/* A cancelled or interrupted call is not the client's business. */
	if (error == -ECANCELED || error == -EINTR || error == -EAGAIN)
		error = -EIO;
	if (error != 0 && reached < w->fail_at) {
		w->fail_at = reached;
		w->error = error;
	}
	if (!p->direct && p->done_bytes > 0)
		sync_note_buffered(w->file, p->offset, reached, w->drop);
}

/* on their way ------------------------------------------------------------- */

static void piece_go(struct io_piece *p);

static void
piece_result(struct io_piece *p, int res)
{
	struct io_write *w = p->write;
	int r = piece_judge(p, res);

	if (r > 0) {
		piece_go(p);
		return;
	}
	piece_slot_give(p);
	piece_note(p, r);
	p->busy = false;
	assert(w->flying > 0);
	w->flying--;
	write_go_on(w);
}

static void
piece_op_done(struct op *op, int res)
{
	struct io_piece *p = container_of(op, struct io_piece, op);

	trace_complete(p->write, p->offset + p->done_bytes, res, p->direct);
	if (res == -EAGAIN && !p->direct) {
		p->blocks = true;
		piece_go(p);
	} else {
		piece_result(p, res);
	}
}

static void
piece_work_run(struct work *work)
{
	struct io_piece *p = container_of(work, struct io_piece, work);

	p->res = piece_call(p);
}

static void
piece_work_done(struct work *work)
{
	struct io_piece *p = container_of(work, struct io_piece, work);

	piece_result(p, p->res);
}

/* The ring would punt it, or did, or would as soon as it meets what another
 * thread writes there. */
static bool
goes_to_strand(const struct io_piece *p)
{
	const struct file *f = p->write->file;

	return !p->direct &&
	       (p->blocks || !volume_facts(f->volume)->nowait_buffered ||
		strand_busy((struct file *)f));
}

/* (Re)issue what is left of p. */
static void
piece_go(struct io_piece *p)
{
	struct io_write *w = p->write;

	if (goes_to_strand(p)) {
		p->work = (struct work){ .run = piece_work_run,
					 .done = piece_work_done,
					 .reactor = w->reactor };
		count_add(&reactor_counters(w->reactor)->punts, 1);
		strand_submit(w->file, &p->work);
		return;
	}
	p->op.done = piece_op_done;
	trace_submit(w, p->offset + p->done_bytes, p->bytes - p->done_bytes,
		     p->direct);
	op_write(w->reactor, &p->op, piece_fd(p), p->data + p->done_bytes,
		 p->bytes - p->done_bytes, p->offset + p->done_bytes,
		 p->rwf | file_hipri(w->file, p->direct), !p->direct);
}

static void
piece_slot_ready(struct slot_waiter *s)
{
	piece_go(container_of(s, struct io_piece, slot));
}

void
piece_start(struct io_write *w, struct io_piece *p, uint64_t offset,
	    uint32_t bytes, bool direct)
{
	piece_init(w, p, offset, bytes, direct);
	p->busy = true;
	w->flying++;
	p->slot.ready = piece_slot_ready;
	if (piece_slot_take(p))
		piece_go(p);
}

/* by the caller ------------------------------------------------------------ */

void
piece_here(struct io_write *w, struct io_piece *p, uint64_t offset,
	   uint32_t bytes, bool direct)
{
	int r;

	piece_init(w, p, offset, bytes, direct);
	piece_slot_force(p);
	do
		r = piece_judge(p, piece_call(p));
	while (r > 0);
	piece_slot_give(p);
	piece_note(p, r);
}
