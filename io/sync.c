/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making it durable: group sync. The object is the sync_job of an inode: one
 * turn at a time, on a thread of the data pool. A turn serves everyone who had
 * joined when it began, by one fsync; who comes while it runs is served by the
 * next (group.c says how long a turn waits for more). Without anyone waiting a
 * turn may only flush: make many pages clean so that they can be dropped
 * (writeback.c). What a turn takes on, and what its failure means, is in the
 * ledger (ledger.c).
 *
 * fsync(2); RFC 1813, 3.3.21.
 */
#include "io/sync.h"

#include "io/flusher.h"
#include "io/reactor.h"
#include "io/trace.h"

#define SYNC_QUICK_NS NS_PER_MS                 /* see sync_is_quick */
#define HOLD_SPANS    (EDGE_SPANS_HARD / 4 * 3) /* then UNSTABLE WRITEs wait */

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

/* The job is claimed. f: a file of the inode that is in use; the job gets its
 * own reference. */
static void
submit(struct file *f)
{
	struct sync_job *j = &f->inode->job;

	file_get(f);
	j->file = f;
	j->work = (struct work){ .run = job_run };
	work_submit(f->cache->engine, WORK_DATA, &j->work);
}

/* Blocks: the same by this thread, with the caller's reference. */
static void
run_here(struct file *f)
{
	struct sync_job *j = &f->inode->job;

	j->file = f;
	job_run(&j->work);
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

/* s waits for the next sync. True: the job is claimed, and to be started. */
static bool
join(struct file *f, struct sync_waiter *s)
{
	struct inode *i = f->inode;
	bool start;

	pthread_mutex_lock(&i->mutex);
	push(&i->job.waiting, f, s);
	group_joined(&i->job.group);
	start = claim(i);
	pthread_mutex_unlock(&i->mutex);
	return start;
}

void
sync_join(struct file *f, struct sync_waiter *s)
{
	if (join(f, s))
		submit(f);
}

void
sync_join_here(struct file *f, struct sync_waiter *s)
{
	file_get(f); /* s may end before the turn does */
	if (join(f, s))
		run_here(f);
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
	bool go = false;

	pthread_mutex_lock(&i->mutex);
	if (ledger_add(i, start, end, drop)) {
		i->job.flush = true;
		go = claim(i);
	}
	pthread_mutex_unlock(&i->mutex);
	if (go)
		submit(f);
}

void
sync_flush_here(struct file *f)
{
	struct inode *i = f->inode;
	bool start;

	pthread_mutex_lock(&i->mutex);
	i->job.flush = true;
	start = claim(i);
	pthread_mutex_unlock(&i->mutex);
	if (start)
		run_here(f);
	else
		file_put(f); /* whoever has the job sees flush */
}

/* a turn ------------------------------------------------------------------- */

static void
turn_begin(struct sync_turn *t, bool all)
{
	struct inode *i = t->file->inode;

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
	t->bytes = ledger_take(i, all, t->sync);
	pthread_mutex_unlock(&i->mutex);
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
	writeback_drop_all(f);
	ledger_fail(f, t->sync ? "sync" : "flush", t->error);
	file_thaw(f);
}

static void
turn_run(struct sync_turn *t, bool all)
{
	turn_begin(t, all);
	if (t->error == 0)
		t->error = t->sync ? turn_sync(t) : all ? 0 : writeback_turn(t);
	if (t->error != 0)
		writeback_put_out(t->file->inode);
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
		writeback_drop(t);
	wake(t->waiting, t->error, !t->data);
	if (t->error == 0 && !t->thorough)
		writeback_drop(t);
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
