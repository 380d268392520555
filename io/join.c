/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edges that wait in memory (edges=join). The object is the join_table of an
 * inode: blocks of which UNSTABLE WRITEs have brought one end, in memory of our
 * own, until a neighbour brings the other; then the whole block goes to the
 * device with O_DIRECT, so that the page cache sees none of it. Whoever wants
 * the file as a whole (COMMIT, truncation, a READ or another WRITE there)
 * freezes it first, which writes out through the page cache what waits, and so
 * does the clock within two seconds.
 *
 * A block is made by the WRITE that brings its first bytes, once its middle is
 * written, under the inode's mutex. When it is full it belongs to a reactor: it
 * takes the range, then it is out of the table, so that whoever comes later
 * makes a new one, which gets the range after it. It holds a reference to its
 * file.
 *
 * Until then the kernel does not know of these bytes: what they add to the size
 * is asked of io_size.
 */
#include "io/compat.h"
#include "io/device.h"
#include "io/fault.h"
#include "io/file.h"
#include "io/reactor.h"

#include <stdlib.h>
#include <string.h>

#define BYTES_MAX   (16u << 20) /* of all inodes' blocks */
#define JOIN_NS_MAX NS_PER_S
#define AGAIN_MAX   16
#define FLUSH_FILES 32u /* in one go */

struct join_block {
	LIST_ENTRY(join_block) in_table;
	uint64_t offset;
	uint32_t bytes;
	uint32_t front, back; /* [0, front) and [back, bytes) are there */
	bool full;            /* on its way to its reactor */
	bool gone;            /* written out meanwhile */
	bool direct;
	uint8_t again;
	uint64_t since_ns;
	bool cached;    /* some of it went through the page cache */
	uint32_t slots; /* of its device, while it is written direct */
	struct file_cache *cache;
	struct file *file; /* a reference, while it is in use */
	struct reactor *reactor;
	struct message msg;
	struct range_lock lock;
	struct op op;
	uint32_t done;
	uint8_t *data; /* page-aligned */
};

/* Inodes with blocks, for who asks about sizes and for the clock. Taken under
 * an inode's mutex; the file cache's is taken under it. */
static struct {
	pthread_mutex_t mutex;
	TAILQ_HEAD(, join_table) tables;
	_Atomic unsigned count;
	_Atomic uint64_t
		resets; /* how often an end was forgotten, see io_size */
} joined = { PTHREAD_MUTEX_INITIALIZER, TAILQ_HEAD_INITIALIZER(joined.tables),
	     0, 0 };

/* blocks ------------------------------------------------------------------- */

struct join_block *
join_block_new(struct file *f)
{
	uint32_t bytes = f->facts.cut;
	struct join_block *b;

	if (atomic_load(&f->cache->join_bytes) + bytes > BYTES_MAX)
		return NULL;
	b = calloc(1, sizeof(*b));
	if (b == NULL)
		return NULL;
	b->data = aligned_alloc(bytes, bytes);
	if (b->data == NULL) {
		free(b);
		return NULL;
	}
	b->bytes = b->back = bytes;
	b->cache = f->cache;
	atomic_fetch_add(&b->cache->join_bytes, bytes);
	return b;
}

void
join_block_free(struct join_block *b)
{
	if (b == NULL)
		return;
	atomic_fetch_sub(&b->cache->join_bytes, b->bytes);
	free(b->data);
	free(b);
}

static struct join_list *
join_bucket(struct join_table *t, uint64_t offset)
{
	return &t->bucket[offset / page_bytes() % JOIN_BUCKETS];
}

static struct join_block *
find(struct join_table *t, uint64_t offset)
{
	struct join_block *b;

	LIST_FOREACH (b, &join_bucket(t, offset)->head, in_table)
		if (b->offset == offset)
			return b;
	return NULL;
}

static void
table_list(struct inode *i)
{
	struct join_table *t = &i->joins;

	pthread_mutex_lock(&joined.mutex);
	t->dev = i->dev;
	t->ino = i->ino;
	t->inode = i;
	TAILQ_INSERT_TAIL(&joined.tables, t, in_joined);
	atomic_fetch_add(&joined.count, 1);
	pthread_mutex_unlock(&joined.mutex);
}

/* The kernel knows its size now. */
static void
end_forget(struct join_table *t)
{
	atomic_store(&t->end, 0);
	atomic_fetch_add(&joined.resets, 1);
}

static void
table_unlist(struct join_table *t)
{
	pthread_mutex_lock(&joined.mutex);
	TAILQ_REMOVE(&joined.tables, t, in_joined);
	end_forget(t);
	atomic_fetch_sub(&joined.count, 1);
	pthread_mutex_unlock(&joined.mutex);
}

/* With the inode's mutex: f's WRITE brings the first bytes of b. */
static void
block_enter(struct file *f, struct join_block *b, uint64_t offset)
{
	struct join_table *t = &f->inode->joins;

	b->offset = offset;
	b->since_ns = clock_ns();
	b->file = f;
	file_get(f);
	LIST_INSERT_HEAD(&join_bucket(t, offset)->head, b, in_table);
	if (atomic_fetch_add(&t->count, 1) == 0)
		table_list(f->inode);
}

/* b is in no table, and nobody waits for it. */
static void
block_leave(struct join_block *b)
{
	struct file *f = b->file;
	struct inode *i = f->inode;

	pthread_mutex_lock(&i->mutex);
	if (atomic_fetch_sub(&i->joins.count, 1) == 1)
		table_unlist(&i->joins);
	pthread_mutex_unlock(&i->mutex);
	join_block_free(b);
	file_put(f);
}

/* a full block's way ------------------------------------------------------- */

static void
slots_take(struct join_block *b)
{
	struct device_slots *s = volume_slots(b->file->volume);

	if (s != NULL)
		b->slots = device_slots_force(s, b->bytes);
}

static void
slots_give(struct join_block *b)
{
	if (b->slots > 0)
		device_slots_give(volume_slots(b->file->volume), b->slots);
	b->slots = 0;
}

static void
full_end(struct join_block *b, int error)
{
	struct file *f = b->file;

	if (error != 0)
		ledger_fail(f, "joined edge", error);
	ledger_dirty(f);
	count_add(&volume_counters(f->volume)->edges_joined,
		  error == 0 && !b->cached);
	slots_give(b);
	inode_unlock(f->inode, &b->lock);
	block_leave(b);
}

static void full_io(struct join_block *b);

static void
full_done(struct op *op, int res)
{
	struct join_block *b = container_of(op, struct join_block, op);

	if (res == -EINTR || (res == -EAGAIN && b->again++ < AGAIN_MAX)) {
		full_io(b);
	} else if (res <= 0 && b->direct) {
		/* Acknowledged long ago: the page cache keeps it, to be read
		 * and to be tried again by the next sync, which then tells. */
		b->direct = false;
		full_io(b);
	} else if (res <= 0) {
		full_end(b, res == 0 ? -EIO : res);
	} else {
		b->cached = b->cached || !b->direct;
		if (!b->direct)
			sync_note_buffered(b->file, b->offset + b->done,
					   b->offset + b->done + (uint32_t)res,
					   true);
		b->done += (uint32_t)res;
		b->direct = false; /* a rest is not aligned any more */
		if (b->done == b->bytes)
			full_end(b, 0);
		else
			full_io(b);
	}
}

static void
full_io(struct join_block *b)
{
	b->op.done = full_done;
	op_write(b->reactor, &b->op,
		 b->direct ? b->file->direct_fd : b->file->fd,
		 b->data + b->done, b->bytes - b->done, b->offset + b->done, 0,
		 false);
}

/* The range is its own: from here on it is out of the table. */
static void
full_ready(struct range_lock *l)
{
	struct join_block *b = container_of(l, struct join_block, lock);
	struct inode *i = b->file->inode;
	bool gone;

	pthread_mutex_lock(&i->mutex);
	gone = b->gone;
	if (!gone)
		LIST_REMOVE(b, in_table);
	pthread_mutex_unlock(&i->mutex);
	if (gone) {
		inode_unlock(i, &b->lock);
		block_leave(b);
		return;
	}
	b->direct = true;
	slots_take(b);
	full_io(b);
}

static void
full_begin(struct message *m)
{
	struct join_block *b = container_of(m, struct join_block, msg);

	range_add(&b->lock, RANGE_DIRECT, b->offset, b->bytes);
	b->lock.reactor = b->reactor;
	b->lock.ready = full_ready;
	if (inode_lock(b->file->inode, &b->lock))
		full_ready(&b->lock);
}

/* storing ------------------------------------------------------------------ */

static void
put_bytes(struct join_block *b, uint32_t at, const uint8_t *data,
	  uint32_t bytes)
{
	memcpy(b->data + at, data, bytes);
	if (at <= b->front && at + bytes > b->front)
		b->front = at + bytes;
	if (at + bytes >= b->back && at < b->back)
		b->back = at;
}

static void
grow_size(struct join_table *t, uint64_t end)
{
	if (end > atomic_load(&t->end))
		atomic_store(&t->end, end);
}

void
join_store(struct file *f, struct reactor *r, const struct segment *s,
	   const uint8_t *data, struct join_block **spare)
{
	uint64_t offset = round_down(s->offset, f->facts.cut);
	struct inode *i = f->inode;
	struct join_block *b;
	bool fills;

	pthread_mutex_lock(&i->mutex);
	b = find(&i->joins, offset);
	if (b == NULL) {
		b = *spare;
		*spare = NULL;
		block_enter(f, b, offset);
	}
	put_bytes(b, (uint32_t)(s->offset - offset), data, s->bytes);
	grow_size(&i->joins, s->offset + s->bytes);
	fills = b->front >= b->back && !b->full;
	if (fills) {
		b->full = true;
		b->reactor = r;
		b->msg.run = full_begin;
	}
	pthread_mutex_unlock(&i->mutex);
	if (fills)
		reactor_post(r, &b->msg);
}

/* asking ------------------------------------------------------------------- */

bool
join_any(const struct inode *i)
{
	return atomic_load(&i->joins.count) > 0;
}

bool
join_overlaps(struct inode *i, uint64_t offset, uint64_t bytes)
{
	bool found = false;

	if (!join_any(i))
		return false;
	pthread_mutex_lock(&i->mutex);
	for (unsigned n = 0; n < JOIN_BUCKETS && !found; n++) {
		const struct join_block *b;

		LIST_FOREACH (b, &i->joins.bucket[n].head, in_table)
			if (b->offset < offset + bytes &&
			    offset < b->offset + b->bytes)
				found = true;
	}
	pthread_mutex_unlock(&i->mutex);
	return found;
}

uint64_t
join_size(const struct inode *i, uint64_t size)
{
	uint64_t end = atomic_load(&i->joins.end);

	return end > size ? end : size;
}

uint64_t
io_size_resets(void)
{
	return atomic_load(&joined.resets);
}

uint64_t
io_size(dev_t dev, uint64_t ino, uint64_t size)
{
	const struct join_table *t;

	if (atomic_load(&joined.count) == 0)
		return size;
	pthread_mutex_lock(&joined.mutex);
	TAILQ_FOREACH (t, &joined.tables, in_joined)
		if (t->ino == ino && t->dev == dev &&
		    atomic_load(&t->end) > size)
			size = atomic_load(&t->end);
	pthread_mutex_unlock(&joined.mutex);
	return size;
}

/* writing out -------------------------------------------------------------- */

/* Blocks. [from, to) of b through the page cache. */
static int
write_part(struct join_block *b, uint32_t from, uint32_t to)
{
	while (from < to) {
		uint32_t left = to - from;
		int r = fault_point(OP_WRITE, &left);
		ssize_t n;

		if (r == 0) {
			n = pwrite(b->file->fd, b->data + from, left,
				   (off_t)(b->offset + from));
			r = n < 0 ? -errno : n == 0 ? -EIO : 0;
		}
		if (r == -EINTR)
			continue;
		if (r != 0)
			return r;
		sync_note_buffered(b->file, b->offset + from,
				   b->offset + from + (uint32_t)n, true);
		from += (uint32_t)n;
	}
	return 0;
}

/* What was acknowledged long ago is not lost with the first write that fails.
 */
static int
write_out(struct join_block *b, uint32_t from, uint32_t to)
{
	int r = write_part(b, from, to);

	return r == 0 ? 0 : write_part(b, from, to);
}

static struct join_block *
any_block(struct inode *i)
{
	struct join_block *b = NULL;

	pthread_mutex_lock(&i->mutex);
	for (unsigned n = 0; n < JOIN_BUCKETS && b == NULL; n++)
		b = LIST_FIRST(&i->joins.bucket[n].head);
	pthread_mutex_unlock(&i->mutex);
	return b;
}

/* Not before its bytes are where a READ would look for them. */
static void
block_gone(struct inode *i, struct join_block *b)
{
	pthread_mutex_lock(&i->mutex);
	LIST_REMOVE(b, in_table);
	b->gone = true;
	pthread_mutex_unlock(&i->mutex);
}

void
join_write_out(struct inode *i)
{
	struct join_block *b;

	while ((b = any_block(i)) != NULL) {
		bool full = b->full; /* then its range comes, after ours */
		int r;

		r = b->front >= b->back ? write_out(b, 0, b->bytes)
					: write_out(b, 0, b->front);
		if (r == 0 && b->front < b->back)
			r = write_out(b, b->back, b->bytes);
		if (r != 0)
			ledger_fail(b->file, "edge", r);
		count_add(&volume_counters(b->file->volume)->edges_unjoined, 1);
		block_gone(i, b);
		if (!full)
			block_leave(b);
	}
	end_forget(&i->joins);
}

void
join_flush(struct file *f)
{
	file_freeze(f);
	file_thaw(f);
}

static bool
is_old(struct inode *i, uint64_t until_ns)
{
	bool old = false;

	pthread_mutex_lock(&i->mutex);
	for (unsigned n = 0; n < JOIN_BUCKETS && !old; n++) {
		const struct join_block *b;

		LIST_FOREACH (b, &i->joins.bucket[n].head, in_table)
			old = old || b->since_ns <= until_ns;
	}
	pthread_mutex_unlock(&i->mutex);
	return old;
}

/* Files of c with blocks, each with a reference: other ones the next time. */
static unsigned
files_with_blocks(struct file_cache *c, struct file **f, unsigned max)
{
	struct join_table *t;
	unsigned n = 0;

	pthread_mutex_lock(&joined.mutex);
	for (unsigned k = atomic_load(&joined.count); k > 0 && n < max; k--) {
		t = TAILQ_FIRST(&joined.tables);
		TAILQ_REMOVE(&joined.tables, t, in_joined);
		TAILQ_INSERT_TAIL(&joined.tables, t, in_joined);
		f[n] = t->inode->cache == c ? cache_file_of(t->inode) : NULL;
		n += f[n] != NULL;
	}
	pthread_mutex_unlock(&joined.mutex);
	return n;
}

/* Of inode ino of v, with a reference; NULL: nothing of it waits. */
static struct file *
file_with_blocks(const struct volume *v, uint64_t ino)
{
	const struct join_table *t;
	struct file *f = NULL;

	pthread_mutex_lock(&joined.mutex);
	TAILQ_FOREACH (t, &joined.tables, in_joined)
		if (t->ino == ino && t->dev == volume_dev(v))
			break;
	if (t != NULL)
		f = cache_file_of(t->inode);
	pthread_mutex_unlock(&joined.mutex);
	return f;
}

void
file_settle(struct engine *e, const struct volume *v, uint64_t ino)
{
	struct file *f;

	if (atomic_load(&joined.count) == 0)
		return;
	f = file_with_blocks(v, ino);
	if (f != NULL && f->cache == engine_files(e))
		join_flush(f);
	file_put(f);
}

static void
flush_some(struct file_cache *c, uint64_t until)
{
	struct file *f[FLUSH_FILES];
	unsigned n = files_with_blocks(c, f, FLUSH_FILES);

	for (unsigned k = 0; k < n; k++) {
		if (is_old(f[k]->inode, until))
			join_flush(f[k]);
		file_put(f[k]);
	}
}

/* Each that has blocks now is looked at; who goes on writing is not waited for.
 */
void
join_flush_old(struct file_cache *c, bool all)
{
	uint64_t until = all ? UINT64_MAX : clock_ns() - JOIN_NS_MAX;
	unsigned turns = atomic_load(&joined.count) / FLUSH_FILES + 1;

	while (turns-- > 0)
		flush_some(c, until);
}
