/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making it durable: group sync, the error ledger, and the dropping of pages.
 * The object is the sync_job of an inode: one turn at a time, on a thread of
 * the data pool. A turn serves everyone who had joined when it began, by one
 * fsync; who comes while it runs is served by the next (group.c says how long a
 * turn waits for more). Without anyone waiting a turn may only flush: make many
 * pages clean so that they can be dropped.
 *
 * The ledger: fsync and sync_file_range each consume the descriptor's error
 * (a later success proves nothing about what was lost), so every result comes
 * here. A failure counts error_seq up, gives all volumes of the inode a new
 * verifier, and makes the edge table forget what it took for complete. Whoever
 * noted an older error_seq before its first piece must fail when it promises
 * stability.
 *
 * fsync(2), sync_file_range(2), posix_fadvise(2); RFC 1813, 3.3.21.
 */
#include "io/compat.h"
#include "io/file.h"
#include "io/reactor.h"
#include "io/trace.h"

#include <fcntl.h>

#define SYNC_QUICK_NS NS_PER_MS /* see sync_is_quick */
#define DROP_TRIES    20
#define DROP_PAUSE_US 1000
#define HOLD_SPANS    (EDGE_SPANS_HARD / 4 * 3) /* then UNSTABLE WRITEs wait */
#define TOTAL_SPANS   16384 /* of all inodes: then each keeps to its share */

/* accounts of waiting pages ------------------------------------------------ */

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

static bool
flush_due(const struct inode *i)
{
	return i->edges.spans > EDGE_SPANS_SOFT || over_share(i);
}

/* starting ----------------------------------------------------------------- */

static void job_run(struct work *w);

/* With the mutex held: true when the caller is to submit the job. */
static bool
claim(struct inode *i)
{
	if (i->job.busy)
		return false;
	i->job.busy = true;
	return true;
}

/* f: a file of the inode that is in use; the job gets its own reference. */
static void
submit(struct file *f)
{
	struct sync_job *j = &f->inode->job;

	file_get(f);
	j->file = f;
	j->work = (struct work){ .run = job_run };
	work_submit(f->cache->engine, WORK_DATA, &j->work);
}

static void
waiter_run(struct message *m)
{
	struct sync_waiter *s = container_of(m, struct sync_waiter, msg);

	s->done(s);
}

static void
push(struct sync_waiter **list, struct file *f, struct sync_waiter *s)
{
	s->file = f;
	s->msg.run = waiter_run;
	s->error = 0;
	s->next = *list;
	*list = s;
}

void
sync_join(struct file *f, struct sync_waiter *s)
{
	struct inode *i = f->inode;
	bool start;

	pthread_mutex_lock(&i->mutex);
	push(&i->job.waiting, f, s);
	group_joined(&i->job.group);
	start = claim(i);
	pthread_mutex_unlock(&i->mutex);
	if (start)
		submit(f);
}

void
sync_join_here(struct file *f, struct sync_waiter *s)
{
	struct inode *i = f->inode;
	bool start;

	file_get(f); /* s may end before the turn does */
	pthread_mutex_lock(&i->mutex);
	push(&i->job.waiting, f, s);
	group_joined(&i->job.group);
	start = claim(i);
	if (start)
		i->job.file = f;
	pthread_mutex_unlock(&i->mutex);
	if (start)
		job_run(&i->job.work);
	else
		file_put(f);
}

bool
sync_idle(struct file *f)
{
	struct inode *i = f->inode;
	bool idle;

	pthread_mutex_lock(&i->mutex);
	idle = i->ranges.head == NULL && !i->job.busy;
	pthread_mutex_unlock(&i->mutex);
	return idle;
}

bool
sync_is_quick(struct file *f)
{
	struct inode *i = f->inode;
	bool quick;

	pthread_mutex_lock(&i->mutex);
	quick = i->job.group.sync_ns < SYNC_QUICK_NS;
	pthread_mutex_unlock(&i->mutex);
	return quick;
}

bool
sync_alone(struct file *f, const struct range_lock *l)
{
	struct inode *i = f->inode;
	bool alone;

	pthread_mutex_lock(&i->mutex);
	alone = i->ranges.head == l && l->next == NULL && !i->job.busy;
	pthread_mutex_unlock(&i->mutex);
	return alone;
}

bool
sync_hold(struct file *f, struct sync_waiter *s)
{
	struct inode *i = f->inode;
	bool hold, start = false;

	pthread_mutex_lock(&i->mutex);
	hold = i->edges.spans > HOLD_SPANS;
	if (hold) {
		push(&i->job.held, f, s);
		i->job.flush = true;
		start = claim(i);
	}
	pthread_mutex_unlock(&i->mutex);
	if (start)
		submit(f);
	return hold;
}

void
sync_note_buffered(struct file *f, uint64_t start, uint64_t end, bool drop)
{
	struct inode *i = f->inode;
	struct edge_level was;
	bool go = false;

	pthread_mutex_lock(&i->mutex);
	was = level(i);
	(void)edge_add(&i->edges, start, end, drop); /* full: see edge_add */
	account(i, was);
	flush_note(i, bytes_of(i, i->edges.pages) - bytes_of(i, was.pages),
		   bytes_of(i, i->edges.long_pages) -
			   bytes_of(i, was.long_pages));
	if (flush_due(i)) {
		i->job.flush = true;
		go = claim(i);
	}
	pthread_mutex_unlock(&i->mutex);
	if (go)
		submit(f);
}

void
sync_note_dirty(struct file *f)
{
	struct inode *i = f->inode;

	pthread_mutex_lock(&i->mutex);
	i->dirty = true;
	pthread_mutex_unlock(&i->mutex);
}

/* ledger ------------------------------------------------------------------- */

uint64_t
sync_error_seq(struct file *f)
{
	struct inode *i = f->inode;
	uint64_t seq;

	pthread_mutex_lock(&i->mutex);
	seq = i->error_seq;
	pthread_mutex_unlock(&i->mutex);
	return seq;
}

int
sync_error_since(struct file *f, uint64_t seq)
{
	struct inode *i = f->inode;
	int r;

	pthread_mutex_lock(&i->mutex);
	r = i->error_seq == seq ? 0 : i->error_last;
	pthread_mutex_unlock(&i->mutex);
	return r;
}

void
sync_forget(struct inode *i)
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

/* The sequence number first: who reads the old verifier after it only writes
 * again for nothing, and no COMMIT can be served before this turn ends. */
void
sync_fail(struct file *f, const char *what, int error)
{
	static _Atomic uint64_t failures;
	uint64_t failure = atomic_fetch_add(&failures, 1) + 1;
	struct inode *i = f->inode;
	struct file *g;

	sync_forget(i);
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

/* a turn ------------------------------------------------------------------- */

static void
turn_begin(struct sync_turn *t, bool all)
{
	struct inode *i = t->file->inode;
	struct edge_level was;

	pthread_mutex_lock(&i->mutex);
	if (!all)
		group_wait(&i->job.group, &i->mutex);
	group_taken(&i->job.group);
	t->waiting = i->job.waiting;
	t->held = i->job.held;
	i->job.waiting = i->job.held = NULL;
	i->job.flush = false;
	t->data = t->waiting != NULL;
	for (const struct sync_waiter *s = t->waiting; s != NULL; s = s->next) {
		t->served++;
		t->data = t->data && s->data;
		t->thorough = t->thorough || s->thorough;
	}
	t->sync = t->served > 0 || (all && i->dirty);
	if (t->sync)
		i->dirty = false;
	t->error = i->job.error;
	i->job.error = 0;
	was = level(i);
	edge_take(&i->edges, all             ? EDGE_TAKE_ALL
			     : over_share(i) ? EDGE_TAKE_SHORT
			     : t->sync       ? EDGE_TAKE_SYNC
					     : EDGE_TAKE_FLUSH);
	account(i, was);
	t->bytes = bytes_of(i, was.pages) - bytes_of(i, i->edges.pages);
	flush_taken(i, t->bytes,
		    bytes_of(i, was.long_pages) -
			    bytes_of(i, i->edges.long_pages));
	pthread_mutex_unlock(&i->mutex);
}

/* flushing ----------------------------------------------------------------- */

#define WRITE_AND_WAIT                                                         \
	(SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |                 \
	 SYNC_FILE_RANGE_WAIT_AFTER)

static int
flush_runs(struct file *f, const struct edge_run *run, unsigned runs,
	   unsigned flags)
{
	for (unsigned n = 0; n < runs; n++) {
		int r = fault_point(OP_FLUSH, NULL);

		if (r == 0 &&
		    sync_file_range(f->fd, (off64_t)run[n].start,
				    (off64_t)(run[n].end - run[n].start),
				    flags) != 0)
			r = -errno;
		if (r != 0)
			return r;
	}
	return 0;
}

static unsigned
fresh_runs(struct inode *i, struct edge_run *run)
{
	unsigned n;

	pthread_mutex_lock(&i->mutex);
	n = edge_runs(&i->edges, run, EDGE_RUNS_MAX);
	pthread_mutex_unlock(&i->mutex);
	return n;
}

/* What was taken belongs to this turn: nobody else touches it. Then, before the
 * turn drops pages, what has come in meanwhile is started, so that the device
 * has something to do. */
static int
flush_out(struct sync_turn *t)
{
	const struct edge_table *e = &t->file->inode->edges;
	struct edge_run run[EDGE_RUNS_MAX];
	int r = 0;

	if (e->runs == 0)
		return 0;
	count_add(&volume_counters(t->file->volume)->flushes, 1);
	if (e->runs > 1)
		r = flush_runs(t->file, e->run, e->runs, SYNC_FILE_RANGE_WRITE);
	if (r == 0)
		r = flush_runs(t->file, e->run, e->runs, WRITE_AND_WAIT);
	if (r == 0)
		r = flush_runs(t->file, run, fresh_runs(t->file->inode, run),
			       SYNC_FILE_RANGE_WRITE);
	return r;
}

static bool
is_busy(struct inode *i)
{
	bool busy;

	pthread_mutex_lock(&i->mutex);
	busy = i->job.busy;
	pthread_mutex_unlock(&i->mutex);
	return busy;
}

uint64_t
sync_flush_start(struct file *f)
{
	struct edge_run run[EDGE_RUNS_MAX];
	/* Its turn writes by itself, or deals with a failure. */
	unsigned runs = is_busy(f->inode) ? 0 : fresh_runs(f->inode, run);
	uint64_t bytes = 0;
	int r = flush_runs(f, run, runs, SYNC_FILE_RANGE_WRITE);

	if (r != 0) {
		pthread_mutex_lock(&f->inode->mutex);
		f->inode->job.error = r; /* the next turn deals with it */
		pthread_mutex_unlock(&f->inode->mutex);
	}
	for (unsigned n = 0; n < runs; n++)
		bytes += run[n].end - run[n].start;
	return bytes;
}

void
sync_flush_here(struct file *f)
{
	struct inode *i = f->inode;
	bool start;

	pthread_mutex_lock(&i->mutex);
	i->job.flush = true;
	start = claim(i);
	if (start)
		i->job.file = f;
	pthread_mutex_unlock(&i->mutex);
	if (start)
		job_run(&i->job.work);
	else
		file_put(f); /* whoever has the job sees flush */
}

/* a turn's end ------------------------------------------------------------- */

static int
turn_sync(struct sync_turn *t)
{
	struct volume_counters *c = volume_counters(t->file->volume);
	uint64_t begun_ns = clock_ns();
	int r;

	count_add(&c->syncs, 1);
	count_add(&c->sync_requests, t->served);
	r = fault_point(OP_FSYNC, NULL);
	if (r != 0)
		return r;
	r = t->data ? fdatasync(t->file->fd) : fsync(t->file->fd);
	r = r == 0 ? 0 : -errno;
	t->sync_ns = clock_ns() - begun_ns;
	trace_sync(file_id(t->file), t->served, r, t->sync_ns);
	return r;
}

static void
put_out(struct inode *i)
{
	pthread_mutex_lock(&i->mutex);
	edge_put_out(&i->edges);
	pthread_mutex_unlock(&i->mutex);
}

static void
drop_out(struct sync_turn *t)
{
	struct inode *i = t->file->inode;
	struct edge_table *e = &i->edges;
	uint64_t bytes = 0;

	for (unsigned n = 0; n < e->outs; n++) {
		uint64_t len = e->out[n].end - e->out[n].start;

		(void)posix_fadvise(t->file->fd, (off_t)e->out[n].start,
				    (off_t)len, POSIX_FADV_DONTNEED);
		trace_edge_drop(file_id(t->file), e->out[n].start,
				e->out[n].end, len / e->page);
		bytes += len;
	}
	count_add(&volume_counters(t->file->volume)->pages_dropped,
		  bytes / e->page);
	put_out(i);
}

static void
wake(struct sync_waiter *s, int error, bool whole)
{
	struct sync_waiter *next, *oldest = NULL;

	for (; s != NULL; s = next) { /* first come, first served */
		next = s->next;
		s->next = oldest;
		oldest = s;
	}
	for (s = oldest; s != NULL; s = next) {
		next = s->next; /* once posted, it is not ours */
		s->error = error;
		s->whole = whole;
		if (s->anywhere)
			s->done(s);
		else
			reactor_post(s->reactor, &s->msg);
	}
}

/* Who looks at a page at that moment (the flusher, a local reader) keeps it
 * from being dropped; who has it mapped does for good. */
static void
drop_all(struct file *f)
{
	for (unsigned n = 0; n < DROP_TRIES; n++) {
		(void)posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
		if (cached_pages(f->fd, 0, 0) == 0)
			return;
		usleep(DROP_PAUSE_US);
	}
}

/*
 * A sync or flush failed. All pages of the file go before anybody writes again,
 * for those whose write-back failed are clean now and not to be trusted: they
 * show what the device does not have, and on ext4 (6.18) such a page, written
 * again, reaches its block while the extent stays unwritten, so that the next
 * fsync succeeds and a cold read gives zeros. Whoever wrote before this ends
 * had noted the old error_seq or verifier, and writes again.
 *
 * Blocks until no piece is in flight: not on a thread of the data pool, which
 * pieces may be waiting for.
 */
static void
turn_recover(struct sync_turn *t)
{
	struct file *f = t->file;

	file_freeze(f);
	/* Only clean pages can be dropped. Its result says nothing new. */
	(void)fsync(f->fd);
	drop_all(f);
	sync_fail(f, t->sync ? "sync" : "flush", t->error);
	file_thaw(f);
}

static void
turn_run(struct sync_turn *t, bool all)
{
	turn_begin(t, all);
	if (t->error == 0)
		t->error = t->sync ? turn_sync(t) : all ? 0 : flush_out(t);
	if (t->error != 0)
		put_out(t->file->inode);
}

/* What came while the turn ran is to be found again. */
static void
note_rest(struct inode *i, const struct sync_turn *t)
{
	pthread_mutex_lock(&i->mutex);
	if (t->served > 0)
		group_synced(&i->job.group, t->served, t->sync_ns);
	if (i->edges.pages > 0)
		flush_note(i, 0, 0);
	pthread_mutex_unlock(&i->mutex);
}

static void
turn_end(struct sync_turn *t)
{
	flush_release(volume_account(t->file->inode->volume), t->bytes);
	if (t->error == 0 && t->thorough)
		drop_out(t);
	wake(t->waiting, t->error, !t->data);
	if (t->error == 0 && !t->thorough)
		drop_out(t);
	note_rest(t->file->inode, t);
	wake(t->held, 0, false);
}

/* Whoever joined meanwhile: its file, for the next turn. NULL: none, and the
 * job is free. */
static struct file *
turn_next(struct inode *i, struct file *own)
{
	struct file *f = NULL;

	pthread_mutex_lock(&i->mutex);
	if (i->job.waiting != NULL)
		f = i->job.waiting->file;
	else if (i->job.held != NULL)
		f = i->job.held->file;
	else if (i->job.flush)
		f = own;
	if (f == NULL) {
		if (i->job.flush && i->edges.pages > 0)
			flush_note(i, 0, 0); /* it is to be found again */
		i->job.flush = false;
		i->job.busy = false;
	}
	pthread_mutex_unlock(&i->mutex);
	return f;
}

static void
job_end(struct sync_turn *t)
{
	struct file *next;

	turn_end(t);
	next = turn_next(t->file->inode, t->file);
	if (next != NULL)
		submit(next);
	file_put(t->file);
}

static void
job_recover(struct work *w)
{
	struct sync_turn t = container_of(w, struct sync_job, work)->failed;

	turn_recover(&t);
	job_end(&t);
}

static void
job_run(struct work *w)
{
	struct sync_job *j = container_of(w, struct sync_job, work);
	struct sync_turn t = { .file = j->file };

	turn_run(&t, false);
	if (t.error == 0) {
		job_end(&t);
		return;
	}
	j->failed = t;
	j->work = (struct work){ .run = job_recover };
	work_submit(t.file->cache->engine, WORK_META, &j->work);
}

/* Another file of the inode is in use (or f again), and its turn runs. That
 * turn's result comes too late for f's volume, which is told through f: so f
 * looks for itself, whatever dirty says. */
static int
sync_beside(struct file *f)
{
	struct sync_turn t = { .file = f, .sync = true };

	t.error = turn_sync(&t);
	if (t.error != 0)
		turn_recover(&t);
	return t.error;
}

int
sync_last(struct file *f)
{
	struct inode *i = f->inode;
	struct sync_turn t = { .file = f };
	struct file *next;
	bool mine;

	pthread_mutex_lock(&i->mutex);
	mine = claim(i);
	pthread_mutex_unlock(&i->mutex);
	if (!mine)
		return sync_beside(f);
	turn_run(&t, true);
	if (t.error != 0)
		turn_recover(&t);
	turn_end(&t);
	next = turn_next(i, NULL);
	if (next != NULL)
		submit(next);
	return t.error;
}
