/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One WRITE, from its payload in an aligned buffer to what may be replied. The
 * object is the caller's struct io_write; all of it happens on its reactor but
 * the pieces that the ring would only punt, which run as work. In the order of
 * time: choose (write_choose.c), wait for room and for the ranges, note
 * verifier and error sequence, issue pieces, take their results, leave the
 * ranges, and, for a stable WRITE, join the next sync.
 *
 * A WRITE that extends the file is written by one worker, piece by piece, so
 * that a failure leaves no bytes behind a hole. What is told is the contiguous
 * prefix that was written. A lone stable WRITE goes another way, see
 * write_goes_solo.
 *
 * It knows no stable_how but as an order to sync. RFC 1813, 3.3.7.
 */
#include "io/write.h"

#include "io/flusher.h"
#include "io/reactor.h"

#include <string.h>

enum { PIECE_HEAD, PIECE_TAIL, PIECE_MIDDLE }; /* and those after it */

/* end ---------------------------------------------------------------------- */

static void
write_finish(struct io_write *w)
{
	join_block_free(w->join[0]);
	join_block_free(w->join[1]);
	w->done(w);
}

static void
finish_later(struct message *m)
{
	write_finish(container_of(m, struct io_write, msg));
}

/* Not from inside io_write_start. */
static void
write_refuse(struct io_write *w, int error)
{
	w->error = error;
	w->msg.run = finish_later;
	reactor_post(w->reactor, &w->msg);
}

static void
write_synced(struct sync_waiter *s)
{
	struct io_write *w = container_of(s, struct io_write, waiter);

	w->error = s->error;
	if (w->error == 0) /* an earlier sync failed after we had begun */
		w->error = ledger_error_since(w->file, w->error_seq);
	if (w->error == 0)
		w->committed = s->whole ? IO_FILE_SYNC : IO_DATA_SYNC;
	else
		w->written = 0;
	write_finish(w);
}

static void
write_unheld(struct sync_waiter *s)
{
	write_finish(container_of(s, struct io_write, waiter));
}

/* The middle is written: its edges go to memory, while its range keeps out who
 * takes the file as a whole. The tail only when nothing failed before it. */
static void
store_edges(struct io_write *w)
{
	const struct segment *head = &w->split.head, *tail = &w->split.tail;

	if (head->bytes > 0)
		join_store(w->file, w->reactor, head, w->data, &w->join[0]);
	if (tail->bytes > 0 && w->fail_at == write_end(w))
		join_store(w->file, w->reactor, tail,
			   w->data + (tail->offset - w->offset), &w->join[1]);
}

/* No piece is in flight and none will be: what has been written? */
static void
write_settle(struct io_write *w)
{
	w->landed_ns = clock_ns();
	w->written = (uint32_t)(w->fail_at - w->offset);
	assert(w->written > 0 || w->error != 0);
	if (w->written > 0)
		w->error = 0;
	ledger_dirty(w->file);
	if (w->joins)
		store_edges(w);
	inode_unlock(w->file->inode, &w->lock);
	flush_release(volume_account(w->file->inode->volume), w->room.bytes);
	w->waiter.reactor = w->reactor;
	w->waiter.data = write_wanted(w) == IO_DATA_SYNC;
	w->waiter.done =
		write_wanted(w) == IO_UNSTABLE ? write_unheld : write_synced;
}

static void
write_settled(struct io_write *w)
{
	bool waits = false;

	if (w->through && w->written == w->bytes) {
		count_add(&write_counters(w)->writes_through, 1);
		w->waiter.error = 0;
		write_synced(&w->waiter);
		return;
	}
	if (w->written > 0 && write_wanted(w) != IO_UNSTABLE) {
		sync_join(w->file, &w->waiter);
		waits = true;
	} else if (w->written > 0 && w->drop) {
		waits = sync_hold(w->file, &w->waiter);
	}
	if (!waits)
		write_finish(w);
}

static void
write_landed(struct io_write *w)
{
	write_settle(w);
	write_settled(w);
}

/* issuing ------------------------------------------------------------------ */

static struct io_piece *
idle_middle(struct io_write *w)
{
	for (unsigned i = PIECE_MIDDLE; i < IO_PIECES_MAX; i++)
		if (!w->piece[i].busy)
			return &w->piece[i];
	return NULL;
}

static void
issue_middle(struct io_write *w)
{
	uint64_t end = w->split.middle.offset + w->split.middle.bytes;
	struct io_piece *p;

	/* What lies behind a failure is not worth writing. */
	while (w->middle_next < end && w->middle_next < w->fail_at) {
		uint64_t offset = w->middle_next;
		uint32_t bytes = write_chunk_bytes(w);

		p = idle_middle(w);
		if (p == NULL)
			return;
		w->middle_next += bytes;
		piece_start(w, p, offset, bytes, !w->cached);
	}
}

static void
issue_tail(struct io_write *w)
{
	const struct segment *t = &w->split.tail;

	if (w->joins || w->tail_issued || t->bytes == 0 ||
	    w->fail_at <= t->offset)
		return;
	w->tail_issued = true;
	piece_start(w, &w->piece[PIECE_TAIL], t->offset, t->bytes, false);
}

void
write_go_on(struct io_write *w)
{
	issue_middle(w);
	issue_tail(w);
	if (w->flying == 0)
		write_landed(w);
}

/* on one worker ------------------------------------------------------------ */

/* All pieces, in their order. */
static void
write_here(struct io_write *w)
{
	const struct split *s = &w->split;
	uint64_t end = s->middle.offset + s->middle.bytes;
	struct io_piece *p = &w->piece[PIECE_HEAD];

	if (s->head.bytes > 0 && !w->joins)
		piece_here(w, p, s->head.offset, s->head.bytes, false);
	while (w->middle_next < end && w->middle_next < w->fail_at) {
		uint64_t offset = w->middle_next;
		uint32_t bytes = write_chunk_bytes(w);

		w->middle_next += bytes;
		piece_here(w, p, offset, bytes, !w->cached);
	}
	if (s->tail.bytes > 0 && !w->joins && w->fail_at > s->tail.offset)
		piece_here(w, p, s->tail.offset, s->tail.bytes, false);
	write_settle(w);
}

static void
extend_run(struct work *work)
{
	write_here(container_of(work, struct io_write, work));
}

static void
extend_done(struct work *work)
{
	write_settled(container_of(work, struct io_write, work));
}

/*
 * The kernel extends a file by one write at a time and waits for each: so does
 * one worker, for all that come to the inode; and piece by piece, so that a
 * failure leaves no bytes behind a hole.
 */
static void
extend_start(struct io_write *w)
{
	w->work = (struct work){ .run = extend_run,
				 .done = extend_done,
				 .reactor = w->reactor };
	count_add(&reactor_counters(w->reactor)->punts, 1);
	strand_submit(w->file, &w->work);
}

/* On a worker: all pieces, then the sync. Once that is joined, w may be gone.
 */
static void
solo_run(struct work *work)
{
	struct io_write *w = container_of(work, struct io_write, work);

	write_here(w);
	w->waiter.anywhere = w->anywhere;
	if (w->written > 0)
		sync_join_here(w->file, &w->waiter);
	else
		reactor_post(w->reactor, &w->msg);
}

/*
 * Not even a worker, where the reactor has nothing else to do and the last sync
 * of the file was quick: no change of thread at all, and warm caches.
 */
static void
solo_start(struct io_write *w)
{
	w->work = (struct work){ .run = solo_run };
	w->msg.run = finish_later;
	if (w->may_block && w->anywhere && sync_is_quick(w->file)) {
		solo_run(&w->work);
		return;
	}
	work_submit(reactor_engine(w->reactor), WORK_DATA, &w->work);
}

/* begin -------------------------------------------------------------------- */

/* The ranges are ours. */
static void
write_begin(struct io_write *w)
{
	const struct segment *head = &w->split.head;

	w->ranged_ns = reactor_now_ns(w->reactor);
	w->error_seq = ledger_error_seq(w->file);
	w->verifier = volume_verifier(w->file->volume);
	w->extending = write_extends(w);
	w->middle_next = w->split.middle.offset;
	w->fail_at = write_end(w);
	w->through = write_goes_through(w);
	if (!w->through && write_goes_solo(w)) {
		solo_start(w);
		return;
	}
	if (w->extending) {
		extend_start(w);
		return;
	}
	if (head->bytes > 0 && !w->joins)
		piece_start(w, &w->piece[PIECE_HEAD], head->offset, head->bytes,
			    false);
	write_go_on(w);
}

static void
write_lock_ready(struct range_lock *l)
{
	struct io_write *w = container_of(l, struct io_write, lock);

	count_add(&write_counters(w)->range_wait_ns, clock_ns() - l->since_ns);
	/* It has waited: what was so when it was cut may not be so now. */
	w->cached = !w->atomic && write_is_cached(w);
	w->may_block = false; /* it was true then */
	write_begin(w);
}

/* start -------------------------------------------------------------------- */

static void
add_parts(struct io_write *w)
{
	const struct split *s = &w->split;

	if (s->head.bytes > 0 && !w->joins)
		range_add(&w->lock, RANGE_BUFFERED, s->head.offset,
			  s->head.bytes);
	if (s->middle.bytes > 0) {
		atomic_store(&w->file->inode->direct_ns,
			     reactor_now_ns(w->reactor));
		range_add(&w->lock, RANGE_DIRECT, s->middle.offset,
			  s->middle.bytes);
	}
	if (s->tail.bytes > 0 && !w->joins)
		range_add(&w->lock, RANGE_BUFFERED, s->tail.offset,
			  s->tail.bytes);
}

static void
write_enter(struct io_write *w)
{
	add_parts(w);
	w->lock.reactor = w->reactor;
	w->lock.ready = write_lock_ready;
	if (inode_lock(w->file->inode, &w->lock))
		write_begin(w);
	else
		count_add(&write_counters(w)->range_waits, 1);
}

static void
write_room_ready(struct flush_waiter *f)
{
	struct io_write *w = container_of(f, struct io_write, room);

	count_add(&write_counters(w)->dirty_wait_ns, clock_ns() - f->since_ns);
	w->may_block = false; /* it was true then */
	write_enter(w);
}

static int64_t
dirty_bytes(const struct segment *s)
{
	uint64_t page = page_bytes();

	return s->bytes == 0 ? 0
			     : (int64_t)(round_up(s->offset + s->bytes, page) -
					 round_down(s->offset, page));
}

/* Is there room for what it will make dirty? Asked before it holds a range, so
 * that whoever has to be waited for can go on. */
static bool
write_admit(struct io_write *w)
{
	if (!w->joins)
		w->room.bytes = dirty_bytes(&w->split.head) +
				dirty_bytes(&w->split.tail);
	if (w->room.bytes == 0)
		return true;
	w->room.reactor = w->reactor;
	w->room.ready = write_room_ready;
	return flush_admit(volume_account(w->file->inode->volume), &w->room);
}

static void
write_ask(struct io_write *w)
{
	if (write_admit(w))
		write_enter(w);
	else
		count_add(&write_counters(w)->dirty_waits, 1);
}

static void
write_join_run(struct work *work)
{
	join_flush(container_of(work, struct io_write, work)->file);
}

static void
write_join_done(struct work *work)
{
	struct io_write *w = container_of(work, struct io_write, work);

	w->may_block = false; /* it was true then */
	write_ask(w);
}

void
io_write_start(struct io_write *w)
{
	const size_t first = offsetof(struct io_write, error);

	assert(reactor_is_current(w->reactor));
	assert(w->bytes > 0);
	assert((uintptr_t)w->data % page_bytes() == w->offset % page_bytes());
	memset((char *)w + first, 0, sizeof(*w) - first);
	w->verifier = volume_verifier(w->file->volume);
	if (w->offset > INT64_MAX || w->bytes > INT64_MAX - w->offset) {
		write_refuse(w, -EFBIG);
		return;
	}
	if (w->file->write_error != 0) {
		write_refuse(w, w->file->write_error);
		return;
	}
	write_choose(w);
	if (!write_meets_joined(w)) {
		write_ask(w);
		return;
	}
	w->work = (struct work){ .run = write_join_run,
				 .done = write_join_done,
				 .reactor = w->reactor };
	work_submit(reactor_engine(w->reactor), WORK_META, &w->work);
}
