/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One READ, and one COMMIT. The objects are the caller's struct io_read and
 * struct io_commit, on their reactor from start to done.
 *
 * A READ in direct mode goes to the device, rounded out to what it can read,
 * into a buffer of the pool, and the answer lies inside it: nothing is copied.
 * Small misaligned ones go through the page cache, uncached, where their page
 * may be at hand. Never over a range with a direct write in flight, and direct
 * reads over none with any write. In the order of time: size, buffer, range,
 * I/O, size again. The buffer comes before the range: a WRITE has its buffer
 * when it waits for a range, so nobody waits for the other the other way.
 *
 * RFC 1813, 3.3.6 and 3.3.21; preadv2(2).
 */
#include "io/compat.h"
#include "io/device.h"
#include "io/file.h"
#include "io/reactor.h"
#include "io/trace.h"

#include <string.h>

#define DIRECT_BYTES_MIN (64u << 10) /* of a misaligned READ */
#define DIRECT_NS_MAX    NS_PER_S    /* after a direct write no readahead */
#define READ_AGAIN_MAX   16

static void read_io(struct io_read *r);

static struct volume_counters *
counters(const struct io_read *r)
{
	return volume_counters(r->file->volume);
}

/* end ---------------------------------------------------------------------- */

/* got bytes are there; what does that say about the end of the file? */
static void
read_tell(struct io_read *r, uint32_t got)
{
	uint64_t resets;
	struct stat st;

	r->got = got;
	do {
		resets = io_size_resets();
		/* Nothing read is an end in any case: a client would ask for
		 * ever. */
		r->eof = got == 0 || fstat(r->file->fd, &st) != 0 ||
			 r->offset + got >= join_size(r->file->inode,
						      (uint64_t)st.st_size);
	} while (resets != io_size_resets());
	r->done(r);
}

static void
read_slot_give(struct io_read *r)
{
	if (r->slot.slots == 0)
		return;
	device_slots_give(volume_slots(r->file->volume), r->slot.slots);
	r->slot.slots = 0;
}

static void
read_end(struct io_read *r, int error)
{
	uint32_t skip = (uint32_t)(r->offset - r->aligned);
	uint32_t got = r->have > skip ? r->have - skip : 0;

	read_slot_give(r);
	inode_unlock(r->file->inode, &r->lock);
	if (got > r->want)
		got = r->want;
	if (error != 0 && got == 0) {
		r->error =
			error == -ECANCELED || error == -EAGAIN ? -EIO : error;
		r->done(r);
		return;
	}
	r->data = r->buf.base + skip;
	count_add(r->direct ? &counters(r)->read_direct_bytes
			    : &counters(r)->read_buffered_bytes,
		  got);
	read_tell(r, got);
}

static void
tell_nothing(struct message *m)
{
	struct io_read *r = container_of(m, struct io_read, msg);

	r->done(r);
}

/* Nothing to read, or an error; not from inside io_read_start. */
static void
read_refuse(struct io_read *r, int error, bool eof)
{
	r->error = error;
	r->eof = eof;
	r->msg.run = tell_nothing;
	reactor_post(r->reactor, &r->msg);
}

/* I/O ---------------------------------------------------------------------- */

/* The range part of a direct READ is the stronger one: nothing to lock anew. */
static void
read_fall_back(struct io_read *r)
{
	count_add(&counters(r)->fallbacks, 1);
	if (r->have == 0)
		atomic_store(&r->file->direct_refused, true);
	r->direct = false;
	r->rwf = r->file->facts.dontcache ? RWF_DONTCACHE : 0;
	read_io(r);
}

/* A direct read stopped early: at the end of the file, or for no reason? */
static void
read_short(struct io_read *r)
{
	uint32_t align = r->file->facts.read_align;
	struct stat st;

	if (fstat(r->file->fd, &st) != 0 ||
	    r->aligned + r->have >= (uint64_t)st.st_size)
		read_end(r, 0);
	else if (r->have % align != 0)
		read_fall_back(r);
	else
		read_io(r);
}

static void
read_op_done(struct op *op, int res)
{
	struct io_read *r = container_of(op, struct io_read, op);

	trace_complete(r, r->aligned + r->have, res, r->direct);
	if (res == -EINTR || (res == -EAGAIN && r->again++ < READ_AGAIN_MAX)) {
		read_io(r);
	} else if (r->direct &&
		   (res == -EINVAL || res == -EOPNOTSUPP || res == -EROFS)) {
		/* EROFS: it would have to write back first, which a file system
		 * that found itself in error does no more. */
		read_fall_back(r);
	} else if (res <= 0) {
		read_end(r, res);
	} else {
		assert((uint32_t)res <= r->need - r->have);
		r->have += (uint32_t)res;
		if (r->have == r->need)
			read_end(r, 0);
		else if (r->direct)
			read_short(r);
		else
			read_io(r);
	}
}

static int
read_fd(const struct io_read *r)
{
	if (r->direct)
		return r->file->direct_fd;
	return r->ahead ? r->file->read_fd : r->file->fd;
}

static void
read_slot_ready(struct slot_waiter *s)
{
	read_io(container_of(s, struct io_read, slot));
}

/* False: a direct read waits for its turn at the device. */
static bool
read_slot_take(struct io_read *r)
{
	struct device_slots *s = volume_slots(r->file->volume);

	if (!r->direct || s == NULL || r->slot.slots != 0)
		return true;
	r->slot.reactor = r->reactor;
	r->slot.ready = read_slot_ready;
	return device_slots_take(s, &r->slot, r->need);
}

static void
read_io(struct io_read *r)
{
	if (!read_slot_take(r))
		return;
	r->op.done = read_op_done;
	trace_submit(r, r->aligned + r->have, r->need - r->have, r->direct);
	op_read(r->reactor, &r->op, read_fd(r), r->buf.base + r->have,
		r->need - r->have, r->aligned + r->have,
		r->rwf | file_hipri(r->file, r->direct));
}

static void
read_begin(struct io_read *r)
{
	r->ranged_ns = reactor_now_ns(r->reactor);
	read_io(r);
}

static void
read_lock_ready(struct range_lock *l)
{
	struct io_read *r = container_of(l, struct io_read, lock);

	count_add(&counters(r)->range_wait_ns, clock_ns() - l->since_ns);
	read_begin(r);
}

/*
 * Readahead is for whoever reads through the cache by choice, and it brings in
 * large folios far beyond the READ. Where an edge is written into one while a
 * direct write is in flight in another part of it, the kernel cannot invalidate
 * it and poisons the mapping. So with readahead the READ keeps direct writes
 * out of all that follows, and where there are any there is no readahead.
 */
static bool
reads_ahead(const struct io_read *r)
{
	uint64_t written = atomic_load(&r->file->inode->direct_ns);

	return !r->direct && r->policy.read_mode != IO_DIRECT &&
	       (written == 0 ||
		reactor_now_ns(r->reactor) > written + DIRECT_NS_MAX);
}

static void
read_lock(struct io_read *r)
{
	r->ahead = reads_ahead(r);
	range_add(&r->lock, r->direct ? RANGE_READ_DIRECT : RANGE_READ_BUFFERED,
		  r->aligned, r->ahead ? UINT64_MAX - r->aligned : r->need);
	r->lock.reactor = r->reactor;
	r->lock.ready = read_lock_ready;
	if (inode_lock(r->file->inode, &r->lock))
		read_begin(r);
	else
		count_add(&counters(r)->range_waits, 1);
}

static void
read_buf_ready(struct buf_waiter *b)
{
	read_lock(container_of(b, struct io_read, waiter));
}

/* start -------------------------------------------------------------------- */

static bool
goes_direct(const struct io_read *r, uint64_t size)
{
	uint32_t align = r->file->facts.read_align;
	uint64_t end = r->offset + r->want;

	if (align == 0 || r->file->direct_fd < 0 ||
	    atomic_load(&r->file->direct_refused))
		return false;
	/* Rounded out it would leave what off_t can say. */
	if (round_up(end, align) > INT64_MAX)
		return false;
	if (r->want >= DIRECT_BYTES_MIN)
		return true;
	return r->offset % align == 0 && (end % align == 0 || end == size);
}

static enum io_mode
choose_mode(const struct io_read *r)
{
	struct auto_use u = { .offset = r->offset,
			      .bytes = r->want,
			      .now_ns = reactor_now_ns(r->reactor) };

	return auto_mode(r->file, &u);
}

/* How, and which bytes of the file. */
static void
choose(struct io_read *r, uint64_t size)
{
	uint32_t align = r->file->facts.read_align;

	/* Once: the mode may change while it waits for a buffer. */
	r->policy = volume_policy(r->file->volume);
	if (r->policy.read_mode == IO_AUTO)
		r->policy.read_mode = choose_mode(r);
	r->direct = r->policy.read_mode == IO_DIRECT && goes_direct(r, size);
	if (r->direct) {
		r->aligned = round_down(r->offset, align);
		r->need = (uint32_t)(round_up(r->offset + r->want, align) -
				     r->aligned);
		return;
	}
	r->aligned = r->offset;
	r->need = r->want;
	if (r->policy.read_mode != IO_BUFFERED && r->file->facts.dontcache)
		r->rwf = RWF_DONTCACHE;
}

static void
take_buffer(struct io_read *r)
{
	struct buf_pool *pool = reactor_pool(r->reactor);
	int error = buf_take(pool, &r->buf, r->need);

	if (error == 0) {
		read_lock(r);
	} else if (error == -EAGAIN) {
		r->waiter.ready = read_buf_ready;
		r->waiter.bytes = r->need;
		r->waiter.buf = &r->buf;
		buf_wait(pool, &r->waiter);
	} else {
		read_refuse(r, error, false);
	}
}

static void
read_look(struct io_read *r)
{
	struct stat st;
	uint64_t left;

	if (fstat(r->file->fd, &st) != 0) {
		read_refuse(r, -errno, false);
		return;
	}
	/* Offsets may be anything up to 2^64 - 1. */
	if (r->offset >= (uint64_t)st.st_size) {
		read_refuse(r, 0, true);
		return;
	}
	left = (uint64_t)st.st_size - r->offset;
	r->want = r->bytes < left ? r->bytes : (uint32_t)left;
	if (r->want == 0) { /* none asked for, before the end */
		read_refuse(r, 0, false);
		return;
	}
	choose(r, (uint64_t)st.st_size);
	take_buffer(r);
}

static void
read_join_run(struct work *w)
{
	join_flush(container_of(w, struct io_read, work)->file);
}

static void
read_join_done(struct work *w)
{
	read_look(container_of(w, struct io_read, work));
}

void
io_read_start(struct io_read *r)
{
	const size_t first = offsetof(struct io_read, error);

	assert(reactor_is_current(r->reactor));
	memset((char *)r + first, 0, sizeof(*r) - first);
	if (!join_any(r->file->inode) ||
	    !join_overlaps(r->file->inode, r->offset, r->bytes)) {
		read_look(r);
		return;
	}
	r->work = (struct work){ .run = read_join_run,
				 .done = read_join_done,
				 .reactor = r->reactor };
	work_submit(reactor_engine(r->reactor), WORK_META, &r->work);
}

/* COMMIT ------------------------------------------------------------------- */

static void
commit_synced(struct sync_waiter *s)
{
	struct io_commit *c = container_of(s, struct io_commit, waiter);

	c->error = s->error;
	if (c->error == 0)
		c->error = ledger_error_since(c->file, c->error_seq);
	c->verifier = volume_verifier(c->file->volume);
	c->done(c);
}

static void
commit_join_run(struct work *w)
{
	join_flush(container_of(w, struct io_commit, work)->file);
}

static void
commit_join_done(struct work *w)
{
	struct io_commit *c = container_of(w, struct io_commit, work);

	sync_join(c->file, &c->waiter);
}

void
io_commit_start(struct io_commit *c)
{
	const size_t first = offsetof(struct io_commit, error);

	assert(reactor_is_current(c->reactor));
	memset((char *)c + first, 0, sizeof(*c) - first);
	c->error_seq = ledger_error_seq(c->file);
	c->waiter.reactor = c->reactor;
	c->waiter.done = commit_synced;
	c->waiter.thorough = true;
	if (!join_any(c->file->inode)) {
		sync_join(c->file, &c->waiter);
		return;
	}
	c->work = (struct work){ .run = commit_join_run,
				 .done = commit_join_done,
				 .reactor = c->reactor };
	work_submit(reactor_engine(c->reactor), WORK_META, &c->work);
}
