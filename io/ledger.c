/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger of an inode: what of it is written and not yet durable, and what
 * was lost. The object is part of struct inode: dirty, the pages that wait in
 * its edge table (counted for the cache, for the volume, and for the flusher's
 * account), and the newest error with its sequence number; all under the
 * inode's mutex, from any thread.
 *
 * fsync and sync_file_range each consume the descriptor's error (a later
 * success proves nothing about what was lost), so every result comes here. A
 * failure counts error_seq up, gives all volumes of the inode a new verifier,
 * and makes the edge table forget what it took for complete. Whoever noted an
 * older error_seq before its first piece must fail when it promises stability.
 *
 * It does no I/O: sync.c and writeback.c do. RFC 1813, 3.3.21.
 */
#include "io/sync.h"

#include "io/flusher.h"
#include "io/reactor.h"

#define TOTAL_SPANS 16384 /* of all inodes: then each keeps to its share */

/* pages that wait ---------------------------------------------------------- */

struct edge_level {
	unsigned spans;
	uint64_t pages, long_pages, completed;
};

static int64_t
bytes_of(const struct inode *i, uint64_t pages)
{
	return (int64_t)(pages * i->edges.page);
}

static struct edge_level
level(const struct inode *i)
{
	return (struct edge_level){ i->edges.spans, i->edges.pages,
				    i->edges.long_pages, i->edges.completed };
}

/* What changed since was; the inode's mutex is held. */
static void
account(struct inode *i, struct edge_level was)
{
	struct edge_level now = level(i);

	atomic_fetch_add(&i->cache->edge_spans,
			 (int64_t)now.spans - (int64_t)was.spans);
	atomic_fetch_add(&i->cache->edge_inodes,
			 (now.spans > 0) - (was.spans > 0));
	count_add(&volume_counters(i->volume)->edge_spans,
		  (uint64_t)now.spans - (uint64_t)was.spans);
	count_add(&volume_counters(i->volume)->edge_pages,
		  now.pages - was.pages);
	count_add(&volume_counters(i->volume)->edge_pages_completed,
		  now.completed - was.completed);
}

/* All inodes together hold much, and this one more than its share. */
static bool
over_share(const struct inode *i)
{
	int64_t inodes = atomic_load(&i->cache->edge_inodes);

	return atomic_load(&i->cache->edge_spans) > TOTAL_SPANS && inodes > 0 &&
	       i->edges.spans > TOTAL_SPANS / inodes;
}

bool
ledger_add(struct inode *i, uint64_t start, uint64_t end, bool drop)
{
	struct edge_level was = level(i);

	(void)edge_add(&i->edges, start, end, drop); /* full: see edge_add */
	account(i, was);
	flush_note(i, bytes_of(i, i->edges.pages) - bytes_of(i, was.pages),
		   bytes_of(i, i->edges.long_pages) -
			   bytes_of(i, was.long_pages));
	return i->edges.spans > EDGE_SPANS_SOFT || over_share(i);
}

int64_t
ledger_take(struct inode *i, bool all, bool sync)
{
	struct edge_level was = level(i);
	int64_t bytes;

	edge_take(&i->edges, all             ? EDGE_TAKE_ALL
			     : over_share(i) ? EDGE_TAKE_SHORT
			     : sync          ? EDGE_TAKE_SYNC
					     : EDGE_TAKE_FLUSH);
	account(i, was);
	bytes = bytes_of(i, was.pages) - bytes_of(i, i->edges.pages);
	flush_taken(i, bytes,
		    bytes_of(i, was.long_pages) -
			    bytes_of(i, i->edges.long_pages));
	return bytes;
}

void
ledger_forget(struct inode *i)
{
	struct edge_level was;

	pthread_mutex_lock(&i->mutex);
	was = level(i);
	edge_forget(&i->edges);
	account(i, was);
	flush_taken(i, bytes_of(i, was.pages), bytes_of(i, was.long_pages));
	pthread_mutex_unlock(&i->mutex);
	flush_release(volume_account(i->volume), bytes_of(i, was.pages));
}

/* dirty, and lost ---------------------------------------------------------- */

void
ledger_dirty(struct file *f)
{
	struct inode *i = f->inode;

	pthread_mutex_lock(&i->mutex);
	i->dirty = true;
	pthread_mutex_unlock(&i->mutex);
}

uint64_t
ledger_error_seq(struct file *f)
{
	struct inode *i = f->inode;
	uint64_t seq;

	pthread_mutex_lock(&i->mutex);
	seq = i->error_seq;
	pthread_mutex_unlock(&i->mutex);
	return seq;
}

int
ledger_error_since(struct file *f, uint64_t seq)
{
	struct inode *i = f->inode;
	int r;

	pthread_mutex_lock(&i->mutex);
	r = i->error_seq == seq ? 0 : i->error_last;
	pthread_mutex_unlock(&i->mutex);
	return r;
}

/* The sequence number first: who reads the old verifier after it only writes
 * again for nothing, and no COMMIT can be served before this turn ends. */
void
ledger_fail(struct file *f, const char *what, int error)
{
	static _Atomic uint64_t failures;
	uint64_t failure = atomic_fetch_add(&failures, 1) + 1;
	struct inode *i = f->inode;
	struct file *g;

	ledger_forget(i);
	pthread_mutex_lock(&i->mutex);
	i->error_seq++;
	i->error_last = error;
	i->dirty = true;
	pthread_mutex_unlock(&i->mutex);
	pthread_mutex_lock(&f->cache->mutex);
	LIST_FOREACH (g, &i->files, in_inode)
		volume_fail(g->volume, failure);
	pthread_mutex_unlock(&f->cache->mutex);
	engine_error(f->cache->engine, f->volume, what, error);
}
