/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a WRITE: whether it is cut, which of its pieces go direct,
 * whether its pages are dropped and its edges wait in memory, and, once it has
 * its ranges, whether it can be stable without a sync or all at once on one
 * thread. The object is the caller's struct io_write, on its reactor; what is
 * decided here goes by the policy, the arithmetic of split.c, and who else uses
 * the file at that moment. It writes nothing: write.c does.
 */
#include "io/write.h"

#include "io/compat.h"
#include "io/reactor.h"
#include "io/trace.h"

#define SOLO_BYTES_MAX (64u << 10)

bool
write_extends(const struct io_write *w)
{
	struct stat st;

	return fstat(w->file->fd, &st) != 0 ||
	       write_end(w) > (uint64_t)st.st_size;
}

/*
 * What others have in the page cache is written there. A direct write would
 * take it from them, and with each of its pages the whole folio, of up to 2 MiB
 * (a file that a local reader has warmed would soon be cold). And while they
 * read along, their readahead makes folios that reach over an edge and a direct
 * write in flight: then the kernel cannot invalidate, and fails a sync. So this
 * holds in every edges mode, though with other edges than dropped ones the
 * pages may be our own.
 */
bool
write_is_cached(const struct io_write *w)
{
	const struct segment *m = &w->split.middle;

	return m->bytes > 0 && inode_cached(w->file, m->offset, m->bytes);
}

/*
 * A small stable WRITE that will go solo: as a whole it costs one write to the
 * page cache and one I/O of the sync's, cut up three I/Os in a row (47008 bytes
 * rewriting a cold file over NFS: 225 us instead of 260; 49152 extending: 190
 * instead of 230). Its pages are dropped like edges, once the reply is out. An
 * aligned one that does not extend is as quick direct.
 */
static bool
goes_lone(const struct io_write *w)
{
	enum split_reason r = w->split.reason;

	return w->drop && write_wanted(w) != IO_UNSTABLE &&
	       w->bytes <= SOLO_BYTES_MAX && sync_idle(w->file) &&
	       (r == SPLIT_YES || (r == SPLIT_ALIGNED && write_extends(w)));
}

/* Whatever the mode, and whoever has its pages in the cache. A file that cannot
 * what its file system can (encrypted, say) is written as others are. */
static bool
choose_atomic(struct io_write *w)
{
	const struct file_facts *f = &w->file->facts;
	const struct volume_facts *v = volume_facts(w->file->volume);
	struct split s;

	w->atomic = split_atomic(&w->split, w->offset, w->bytes, f->atomic_min,
				 f->atomic_max);
	if (!w->atomic &&
	    split_atomic(&s, w->offset, w->bytes, v->atomic_bytes_min,
			 v->atomic_bytes_max))
		count_add(&write_counters(w)->writes_tearable, 1);
	return w->atomic;
}

static void
choose(struct io_write *w)
{
	const struct file_facts *f = &w->file->facts;
	uint32_t cut = f->cut;

	if (w->file->direct_fd < 0 || atomic_load(&w->file->direct_refused))
		cut = 0;
	split_write(&w->split, w->offset, w->bytes, cut, w->policy.direct_min,
		    w->policy.write_mode);
	w->drop = w->policy.write_mode == IO_DONTCACHE ||
		  (w->policy.write_mode == IO_DIRECT &&
		   (w->policy.edges == IO_EDGES_DROP ||
		    w->policy.edges == IO_EDGES_JOIN));
	if (w->policy.torn_free && choose_atomic(w))
		return;
	if (write_is_cached(w))
		split_whole(&w->split, w->offset, w->bytes, SPLIT_CACHED);
	else if (goes_lone(w))
		split_whole(&w->split, w->offset, w->bytes, SPLIT_LONE);
	if (f->dontcache && w->policy.write_mode == IO_DIRECT &&
	    w->policy.edges == IO_EDGES_DONTCACHE)
		w->buffered_rwf = RWF_DONTCACHE;
}

/* Memory for the block of each edge, before anything is written. */
static bool
goes_joined(struct io_write *w)
{
	const struct split *s = &w->split;

	if (w->policy.edges != IO_EDGES_JOIN || s->reason != SPLIT_YES ||
	    write_wanted(w) != IO_UNSTABLE)
		return false;
	if (s->head.bytes > 0)
		w->join[0] = join_block_new(w->file);
	if (s->tail.bytes > 0)
		w->join[1] = join_block_new(w->file);
	return (s->head.bytes == 0 || w->join[0] != NULL) &&
	       (s->tail.bytes == 0 || w->join[1] != NULL);
}

static void
count_write(const struct io_write *w)
{
	struct volume_counters *c = write_counters(w);
	const struct split *s = &w->split;

	count_add(&c->writes[s->reason], 1);
	count_add(&c->direct_bytes, s->middle.bytes);
	if (s->middle.bytes > 0)
		count_add(&c->edge_bytes, s->head.bytes + s->tail.bytes);
	else
		count_add(&c->buffered_bytes, s->tail.bytes);
}

static enum io_mode
choose_mode(const struct io_write *w)
{
	struct auto_use u = { .offset = w->offset,
			      .bytes = w->bytes,
			      .writes = true,
			      .stable = write_wanted(w) != IO_UNSTABLE,
			      .now_ns = reactor_now_ns(w->reactor) };
	struct stat st;

	if (fstat(w->file->fd, &st) == 0) {
		u.size = (uint64_t)st.st_size;
		u.allocated = (uint64_t)st.st_blocks * 512;
	}
	return auto_mode(w->file, &u);
}

void
write_choose(struct io_write *w)
{
	w->policy = volume_policy(w->file->volume);
	if (w->policy.write_mode == IO_AUTO)
		w->policy.write_mode = choose_mode(w);
	choose(w);
	trace_split(w, file_id(w->file), w->offset, w->bytes, w->split.reason,
		    w->split.middle.bytes);
	w->joins = goes_joined(w);
	count_write(w);
}

/* What waits in memory below it is older: that goes first. Its own edges only
 * join what is there. */
bool
write_meets_joined(const struct io_write *w)
{
	struct inode *i = w->file->inode;

	if (!join_any(i))
		return false;
	return w->joins ? join_overlaps(i, w->split.middle.offset,
					w->split.middle.bytes)
			: join_overlaps(i, w->offset, w->bytes);
}

/*
 * A stable WRITE that has the inode to itself shares its sync with nobody, and
 * what counts is its latency: one worker does all of it, which costs two
 * changes of thread instead of four or more. (XFS on a loop device, 47008
 * bytes: 121 us instead of 138 where it extends, 115 instead of 124 where not;
 * pwrite and fsync alone take 89 and 66. From 256 KiB on it is slower, since
 * the pieces no longer overlap.)
 */
bool
write_goes_solo(const struct io_write *w)
{
	return write_wanted(w) != IO_UNSTABLE && w->bytes <= SOLO_BYTES_MAX &&
	       sync_alone(w->file, &w->lock);
}

/*
 * RWF_DSYNC instead of a sync: where the device writes through (see plan_sync),
 * only data is to be stable, nothing but the middle is written, into extents
 * that are there, and nobody else could share a sync. Without FUA it costs what
 * pwrite and fdatasync cost (XFS on a loop device, 64 KiB: 133 and 132 us, with
 * fsync 201), and with others waiting one flush for all is better.
 */
bool
write_goes_through(const struct io_write *w)
{
	struct stat st;

	return write_wanted(w) == IO_DATA_SYNC && !w->extending && !w->cached &&
	       (w->atomic || w->split.reason == SPLIT_ALIGNED) &&
	       volume_facts(w->file->volume)->sync_by_fua &&
	       sync_alone(w->file, &w->lock) && fstat(w->file->fd, &st) == 0 &&
	       st.st_blocks * 512 >= st.st_size;
}
