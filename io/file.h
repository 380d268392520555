/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to io/: open files and what belongs to them, as volume.c, file.c,
 * range.c, edge.c, sync.c, write.c and read.c know them of each other.
 *
 * A struct file is one descriptor set, opened through one volume. All open
 * files of one inode (a path exported twice, read-write and read-only clones)
 * share one struct inode: it owns the ranges in flight, the edges, the errors
 * and the sync, so that these have one owner whatever way a WRITE came.
 *
 * Locks, in order: inode.mutex; flusher.mutex, or the one of join.c (never both
 * at a time); file_cache.mutex. They are held for moments and never across a
 * system call that can block; a thread that must wait for a reactor's progress
 * waits on a condition, and a reactor never waits: it is resumed by
 * reactor_post.
 */
#ifndef NVNFSD_IO_FILE_H
#define NVNFSD_IO_FILE_H

#include "io/io.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

struct device_slots;
struct file_cache;

static inline uint64_t
page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static inline uint64_t
round_down(uint64_t n, uint64_t to)
{
	return n & ~(to - 1);
}

/* n + to must not overflow: callers keep n at or below 2^63. */
static inline uint64_t
round_up(uint64_t n, uint64_t to)
{
	return round_down(n + to - 1, to);
}

static inline bool
power_of_two(uint64_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

static inline void
count_add(_Atomic uint64_t *c, uint64_t n)
{
	atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

/* range.c: pieces in flight ------------------------------------------------ */

enum range_kind {
	RANGE_DIRECT,
	RANGE_BUFFERED,
	RANGE_READ_DIRECT,
	RANGE_READ_BUFFERED,
	RANGE_EXCLUSIVE,
	RANGE_KINDS
};

/*
 * Locks of one inode in the order of their coming, granted and waiting. A lock
 * is granted when no part of it conflicts with a part of any lock before it,
 * so nobody is overtaken by what it conflicts with, and (as each request takes
 * all it needs at once) nobody waits in a circle.
 */
struct range_list {
	struct range_lock *head;
	unsigned waiting;
	unsigned parts[RANGE_KINDS]; /* of all locks, by kind */
};

/* Zero l first; add its parts; then enter. bytes > 0. */
void range_add(struct range_lock *l, enum range_kind kind, uint64_t offset,
	       uint64_t bytes);
/* True when granted at once. */
bool range_enter(struct range_list *list, struct range_lock *l);
/* l leaves; returns those that this lets in, linked by wake. */
struct range_lock *range_leave(struct range_list *list, struct range_lock *l);

/* edge.c: what we wrote through the page cache ----------------------------- */

struct edge_span {
	uint64_t start, end; /* bytes written buffered */
	uint64_t age : 62;   /* of its newest byte: smaller is older */
	uint64_t fresh : 1;  /* grew since it was last written back */
	uint64_t drop : 1;   /* its pages are to leave the page cache */
};

struct edge_run {
	uint64_t start, end;
};

#define EDGE_RUNS_MAX 16u

/*
 * Which bytes of an inode lie in the page cache because we wrote them there,
 * sorted, adjacent ones merged. What is to be dropped is taken out, in full
 * pages, when a sync begins and dropped when it succeeded; half pages stay for
 * their neighbour. What is not to be dropped stays until it is clean.
 */
struct edge_table {
	struct edge_span *span, *spare; /* room each */
	struct edge_span *out;          /* taken, page-rounded, sorted */
	unsigned spans, room, outs, out_room, runs;
	struct edge_run run[EDGE_RUNS_MAX]; /* taken: to be written back */
	uint64_t pages;      /* of the fresh spans, and loose: an upper bound */
	uint64_t long_pages; /* of those in long runs */
	uint64_t loose;      /* pages for which there was no room */
	uint64_t fold; /* bytes of the largest folio that our writes made */
	uint64_t completed; /* pages that went out full, ever */
	uint64_t page;
	uint64_t age;
};

/* A straggler among interleaved writers leaves two half pages a WRITE. */
#define EDGE_SPANS_SOFT 8192u  /* then a flush, and old halves go */
#define EDGE_SPANS_HARD 16384u /* then nothing more is remembered */

/* How much a take takes. In each case full pages go to out, and what was fresh
 * is not so any more. */
enum edge_take {
	EDGE_TAKE_FLUSH, /* long runs, and where there are few the older half */
	EDGE_TAKE_SYNC,  /* all that is fresh */
	EDGE_TAKE_SHORT, /* memory is short: the older half pages go too */
	EDGE_TAKE_ALL    /* everything, half pages as well */
};

void edge_init(struct edge_table *t, uint64_t page);
void edge_fini(struct edge_table *t);
/* [start, end) was written buffered in one piece. False: the table is full
 * (the pages then stay until the kernel wants them). */
bool edge_add(struct edge_table *t, uint64_t start, uint64_t end, bool drop);
/* Move full pages to out and what is to be written back to run (which must be
 * empty: edge_put_out). Where many spans are there the older half pages go in
 * any case. Until edge_put_out nothing else touches out and run: the taker
 * reads them without the mutex. */
void edge_take(struct edge_table *t, enum edge_take how);
/* out and run were dealt with. */
void edge_put_out(struct edge_table *t);
/* The long runs that are fresh now, at most max, or where there are few of
 * those one range over all: they stay. How many. */
unsigned edge_runs(const struct edge_table *t, struct edge_run *run,
		   unsigned max);
/* Nothing counts as written any more. */
void edge_forget(struct edge_table *t);
/* How many pages of [start, end), both at pages' borders, are in the table or
 * out: an upper bound. */
uint64_t edge_pages_in(const struct edge_table *t, uint64_t start,
		       uint64_t end);

/* volume.c ----------------------------------------------------------------- */

struct file_facts {
	uint32_t cut;                    /* 0: no direct I/O */
	uint32_t read_align;             /* 0: no direct reads */
	uint32_t atomic_min, atomic_max; /* 0: no atomic writes */
	bool dontcache;
};

/* probe.c. What one regular file can do: by statx, and by a read beyond any
 * end. Whether it opens with O_DIRECT the caller finds out. */
void volume_file_facts(const struct volume *v, int fd, struct file_facts *ret);
/* Of the device that direct I/O goes to; NULL: none is known. */
struct device_slots *volume_slots(const struct volume *v);
struct flush_account *volume_account(struct volume *v);
dev_t volume_dev(const struct volume *v);
/* The mode nearest to m that the file system has. */
enum io_mode volume_nearest_mode(const struct volume *v, enum io_mode m);
/* Open files of v: counted by file.c, under its mutex. */
unsigned *volume_files(struct volume *v);
/* A sync or flush failed: a new verifier, once for each failure (ids are
 * unique and not 0), also where several of its files share the inode. */
void volume_fail(struct volume *v, uint64_t failure);

/* join.c ------------------------------------------------------------------- */

struct join_block;

#define JOIN_BUCKETS 64u

/* Blocks of an inode of which one end waits for the other, see join.c. */
struct join_table {
	struct join_list {
		LIST_HEAD(, join_block) head;
	} bucket[JOIN_BUCKETS]; /* by offset */
	_Atomic unsigned count; /* with those on their way to the device */
	_Atomic uint64_t end;   /* of their bytes, or before */
	TAILQ_ENTRY(join_table) in_joined;
	/* constant while count > 0 */
	struct inode *inode;
	dev_t dev;
	uint64_t ino;
};

/* For an edge of a WRITE to f; NULL: no memory, or enough wait. Freed by the
 * caller where join_store did not take it. NULL is fine. */
struct join_block *join_block_new(struct file *f);
void join_block_free(struct join_block *b);
/* The edge s of a WRITE whose middle is written: data, in the memory that
 * *spare is, unless the block is there already. Where it is full now it is
 * written from reactor r. Any thread; does not block. */
void join_store(struct file *f, struct reactor *r, const struct segment *s,
		const uint8_t *data, struct join_block **spare);
bool join_any(const struct inode *i);
/* Does a block with waiting bytes overlap? */
bool join_overlaps(struct inode *i, uint64_t offset, uint64_t bytes);
/* size, or what it is with the bytes that wait. */
uint64_t join_size(const struct inode *i, uint64_t size);
/* Blocks, with i frozen: all that waits goes to the page cache. */
void join_write_out(struct inode *i);
/* Blocks, as file_freeze does: the same. */
void join_flush(struct file *f);
/* Blocks likewise: what has waited long, or all; of some files at a time. */
void join_flush_old(struct file_cache *c, bool all);

/* auto.c ------------------------------------------------------------------- */

struct learned;

/* A READ or WRITE as it comes. */
struct auto_use {
	uint64_t offset;
	uint32_t bytes;
	bool writes, stable;
	uint64_t size, allocated; /* of the file before a WRITE, in bytes */
	uint64_t now_ns;
};

/* In a policy's mode auto: the mode for it. Any thread, does not block. */
enum io_mode auto_mode(struct file *f, const struct auto_use *u);

/* file.c ------------------------------------------------------------------- */

/* One turn of an inode's sync_job, private to it (io/sync.h). */
struct sync_turn {
	struct file *file;
	struct sync_waiter *waiting, *held;
	unsigned served;
	int64_t bytes;    /* that were fresh and are written back */
	bool sync;        /* else a flush */
	bool thorough;    /* somebody wants the pages gone before its reply */
	bool data;        /* nobody wants more than the data */
	uint64_t sync_ns; /* how long it took */
	int error;
};

/* group.c's; under the inode's mutex. */
struct sync_group {
	pthread_cond_t enough;
	unsigned joined;  /* since the last turn began */
	unsigned wanted;  /* so many are worth waiting for */
	uint64_t sync_ns; /* how long the last sync took */
	bool waits;       /* a turn, for enough */
};

struct sync_job {
	struct work work;
	struct sync_turn failed; /* handed to the thread that deals with it */
	struct file *file;       /* the descriptor it syncs by; a reference */
	bool busy;               /* submitted or running: one at a time */
	bool flush;              /* pages are to be made clean */
	struct sync_waiter *waiting; /* for the next sync, newest first */
	struct sync_waiter *held;    /* for fewer dirty pages, newest first */
	struct sync_group group;
	int error; /* of write-back that was started before a turn */
};

struct strand {
	pthread_mutex_t mutex; /* guards what follows */
	struct work *first, *last;
	bool busy;         /* work is submitted or runs */
	struct file *file; /* a reference while busy */
	struct work work;
};

struct inode {
	pthread_mutex_t mutex; /* guards what follows */
	pthread_cond_t cond;   /* for blocked threads: freeze */
	struct range_list ranges;
	struct edge_table edges;
	struct join_table joins;
	struct learned *learned; /* NULL: no mode auto so far */
	struct sync_job job;
	struct range_lock freeze;
	bool frozen;
	bool dirty;                /* written since the last good sync began */
	_Atomic bool dirty_listed; /* in its account's list */
	TAILQ_ENTRY(inode) in_dirty;
	uint64_t error_seq;
	int error_last;
	uint64_t brackets_begun;
	unsigned brackets_open;
	/* under file_cache.mutex */
	LIST_ENTRY(inode) in_cache;
	LIST_HEAD(, file) files;
	unsigned refs;
	struct strand strand; /* any thread */
	/* any thread: when the last direct write came, 0: never */
	_Atomic uint64_t direct_ns;
	/* constant */
	struct file_cache *cache;
	struct volume *volume; /* of its first file; a reference */
	dev_t dev;
	uint64_t ino;
};

enum file_state {
	FILE_OPENING,
	FILE_READY,
	FILE_ENDED /* nobody may take it into use any more */
};

struct file {
	/* under file_cache.mutex */
	LIST_ENTRY(file) in_bucket;
	TAILQ_ENTRY(file) in_idle;
	unsigned refs;
	uint64_t uses;         /* references ever taken */
	uint64_t uses_closing; /* when closing began */
	uint64_t idle_since_ns;
	enum file_state state;
	bool idle;      /* in the idle list */
	bool closing;   /* a thread syncs it to close it */
	bool forgotten; /* removed: out of its bucket */
	LIST_ENTRY(file) in_inode;
	/* constant while READY */
	struct file_cache *cache;
	struct volume *volume;
	struct inode *inode;
	struct file_key key;
	uint64_t id;
	int fd;          /* buffered, no readahead: edges, syncs, fstat */
	int direct_fd;   /* -1: no direct I/O */
	int read_fd;     /* buffered, with readahead */
	int write_error; /* 0: writable; else why not */
	struct file_facts facts;
	/* any thread */
	_Atomic bool direct_refused; /* the kernel said no after all */
};

struct file_list {
	LIST_HEAD(, file) head;
};
struct inode_list {
	LIST_HEAD(, inode) head;
};

struct file_cache {
	struct engine *engine;
	pthread_mutex_t mutex;
	pthread_cond_t changed; /* opened, closed, or let go of */
	struct file_list *files;
	struct inode_list *inodes;
	unsigned mask;           /* of both tables */
	TAILQ_HEAD(, file) idle; /* least recently used first */
	unsigned count, files_max;
	unsigned closing; /* by whom they may yet be taken into use again */
	unsigned ending;  /* out of the table, and still counted */
	uint64_t next_id;
	struct work expire;
	bool expiring;
	pthread_mutex_t flushers_mutex;
	LIST_HEAD(, flusher) flushers;
	/* any thread: what waits for neighbours, and where */
	_Atomic int64_t edge_spans;
	_Atomic unsigned join_bytes;
	_Atomic bool join_flushing, looking;
	_Atomic bool learns; /* some inode has learned */
	_Atomic unsigned memory_pressure;
	_Atomic uint64_t memory_bytes;
	struct work join_work; /* flushes old ones */
	struct work look_work; /* looks at memory */
	_Atomic int64_t edge_inodes;
};

/* One more reference to f, of which the caller has one. Takes the cache's
 * mutex. */
void file_get(struct file *f);
/* What a read or write of f may have besides: its device can be polled. */
static inline int
file_hipri(const struct file *f, bool direct)
{
	return direct && volume_facts(f->volume)->polls ? RWF_HIPRI : 0;
}
/* With the cache's mutex held: */
struct inode_list *cache_inodes(struct file_cache *c, uint64_t ino);
/* f is in nobody's use: into the idle list. */
void cache_rest(struct file *f);
/* Take the file that has been idle longest for closing (file_shut), if it was
 * idle at until_ns already; v NULL: of any volume. */
struct file *cache_take_idle(struct file_cache *c, const struct volume *v,
			     uint64_t until_ns);
/* True when the caller is to submit c->expire. */
bool cache_want_expire(struct file_cache *c);
/* And without: f, which is in no table any more, ends. Its place is free once
 * its descriptors are, and all of it is done when the counts say so. */
void file_end_counted(struct file *f);
/* A file of i with a reference, or NULL: it is being opened or has ended. i is
 * kept from being freed by the caller. Takes the cache's mutex. */
struct file *cache_file_of(struct inode *i);
/* Likewise of the inode with this number, NULL also where it is not open. */
struct file *cache_find_file(struct file_cache *c, dev_t dev, uint64_t ino);

/* close.c ------------------------------------------------------------------ */

/* f was taken by cache_take_idle: sync it, then close it unless somebody has
 * found it meanwhile. Blocks. 0, or the sync's error (the ledger knows it). */
int file_shut(struct file *f);
/* files_max 0: a default that the descriptor limit allows. 0 or -errno. */
int file_cache_new(struct file_cache **ret, struct engine *e,
		   unsigned files_max);
/* Syncs and closes what is left; asserts that nobody uses it. NULL is fine. */
void file_cache_free(struct file_cache *c);

/* open.c ------------------------------------------------------------------- */

/* Blocks. Fills the descriptors and facts of f; *st is the inode's. 0 or
 * -errno as file_open; file_close_fds afterwards in either case. */
int file_open_fds(struct file *f, struct stat *st);
void file_close_fds(struct file *f);
/* Has the inode a link left (or can that not be told)? */
bool file_has_name(const struct file *f);

/* inode.c ------------------------------------------------------------------ */

struct inode *inode_new(struct file *first, const struct stat *st);
void inode_free(struct inode *i); /* NULL is fine */
/* Ranges of an inode: takes its mutex. True: granted; else l->ready comes on
 * l->reactor, or a thread waits for inode.cond. */
bool inode_lock(struct inode *i, struct range_lock *l);
void inode_unlock(struct inode *i, struct range_lock *l);
/* Are there pages of [offset, offset + bytes) in the page cache that are not of
 * our edges? */
bool inode_cached(struct file *f, uint64_t offset, uint64_t bytes);

/* strand.c ----------------------------------------------------------------- */

void strand_init(struct strand *s);
void strand_fini(struct strand *s);
/* Any thread: run w on a worker, after all that was submitted for f's inode
 * before; then w->done as with work_submit. f is in use. */
void strand_submit(struct file *f, struct work *w);
/* Does work of f's inode run, or wait? Only a hint. */
bool strand_busy(struct file *f);

/* group.c ------------------------------------------------------------------ */

/* The inode's mutex is held in all of them, but for the first two. */
void group_init(struct sync_group *g);
void group_fini(struct sync_group *g);
/* One more waits for the next sync. */
void group_joined(struct sync_group *g);
/* A turn is about to begin: blocks, without the mutex, while it pays to wait
 * for more. */
void group_wait(struct sync_group *g, pthread_mutex_t *mutex);
/* The turn has taken all that had joined. */
void group_taken(struct sync_group *g);
/* It has served so many, by a sync that took so long. */
void group_synced(struct sync_group *g, unsigned served, uint64_t ns);

/* sync.c ------------------------------------------------------------------- */

/* A piece written buffered through f has landed: remember its pages, until they
 * are clean, or dropped. */
void sync_note_buffered(struct file *f, uint64_t start, uint64_t end,
			bool drop);
/* Blocks: write it back, and drop what is to be dropped. Takes the caller's
 * reference to f. */
void sync_flush_here(struct file *f);
/* Join the next sync of f's inode. s->done, s->reactor are set; the caller's
 * reference to f lasts until then. */
void sync_join(struct file *f, struct sync_waiter *s);
/* The same from a thread that may block: does that sync itself when no other
 * thread syncs the inode. s may be done, and gone, on return. */
void sync_join_here(struct file *f, struct sync_waiter *s);
/* Did the last sync take less than a blocked reactor does harm by? True before
 * the first. */
bool sync_is_quick(struct file *f);
/* Is nothing in flight, and nobody syncs? */
bool sync_idle(struct file *f);
/* Is l the only one in flight, and nobody syncs? */
bool sync_alone(struct file *f, const struct range_lock *l);
/* Many pages wait to be dropped: then s waits until a flush ended (true), else
 * nothing happens (false). */
bool sync_hold(struct file *f, struct sync_waiter *s);
/* Blocks: sync, and drop all pages unless another thread is about to. For a
 * file that is about to be closed. */
int sync_last(struct file *f);

/* ledger.c ----------------------------------------------------------------- */

/* A WRITE's pieces have landed. */
void ledger_dirty(struct file *f);
/* No page of i waits for anything any more. */
void ledger_forget(struct inode *i);
/* Something acknowledged was lost: what is told as failed from now on. */
void ledger_fail(struct file *f, const char *what, int error);
uint64_t ledger_error_seq(struct file *f);
/* 0, or what the newest failure was when one came after seq. */
int ledger_error_since(struct file *f, uint64_t seq);

/* writeback.c -------------------------------------------------------------- */

/* Blocks, but not for the device: start to write back what f's inode has fresh.
 * How many bytes that may be. */
uint64_t writeback_start(struct file *f);

#endif
