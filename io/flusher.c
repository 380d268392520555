/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Write-back that starts soon enough. The object is the flusher of a device,
 * with a thread of its own: made with the first volume on that device, ended
 * with the engine. Each export has an account of what is dirty in the page
 * cache because its clients wrote it, or is about to be. When a share of the
 * account's bound has come in, the thread writes back that much, inode by inode
 * and first come, first served; what would go over the bound waits before it is
 * written. So neither the kernel nor a writer ever has to write back much at
 * once, and what lies before a reader's I/O on the device is one share at the
 * most.
 *
 * Several inodes are under way at a time: their write-back is started before
 * the oldest is waited for. Each ends in a turn of the inode's sync_job, which
 * takes the errors and drops the pages.
 *
 * It knows no WRITE and no client. sync_file_range(2).
 */
#include "io/flusher.h"

#include "io/file.h"
#include "io/reactor.h"

#include <stdlib.h>
#include <string.h>

#define UNDER_WAY_MAX 16u

struct flusher {
	LIST_ENTRY(flusher) in_cache;
	dev_t dev;
	pthread_t thread;
	pthread_mutex_t mutex; /* guards what follows and the accounts' lists */
	pthread_cond_t came;
	TAILQ_HEAD(, flush_account) due;
	bool ending;
};

/* A file whose write-back was started. */
struct started {
	struct file *file; /* a reference */
	struct flush_account *account;
	uint64_t bytes;
};

/* accounts ----------------------------------------------------------------- */

void
account_init(struct flush_account *a, struct flusher *f)
{
	a->flusher = f;
	TAILQ_INIT(&a->inodes);
	STAILQ_INIT(&a->waiting);
}

void
account_fini(struct flush_account *a)
{
	if (a->flusher == NULL)
		return;
	pthread_mutex_lock(&a->flusher->mutex);
	assert(TAILQ_EMPTY(&a->inodes) && STAILQ_EMPTY(&a->waiting));
	if (atomic_load(&a->due))
		TAILQ_REMOVE(&a->flusher->due, a, in_due);
	pthread_mutex_unlock(&a->flusher->mutex);
}

void
account_limit(struct flush_account *a, uint64_t max, unsigned share_percent)
{
	uint64_t share = max / 100 * share_percent;

	atomic_store(&a->max, (int64_t)max);
	atomic_store(&a->share, (int64_t)share);
}

/* Long runs are written back as they come. What lies scattered may wait for
 * its neighbours until it makes up half of what there may be. */
static bool
wants(const struct flush_account *a)
{
	int64_t started = atomic_load(&a->started);
	int64_t fresh = atomic_load(&a->fresh) - started;
	int64_t ready = atomic_load(&a->ready) - started;

	if (ready > atomic_load(&a->share) || fresh > atomic_load(&a->max) / 2)
		return true;
	/* Others wait, and not for what will soon be clean anyway. */
	return fresh > 0 && atomic_load(&a->waiters) > 0 &&
	       fresh > atomic_load(&a->bytes) / 2;
}

/* With the mutex. */
static void
set_due(struct flush_account *a)
{
	if (atomic_load(&a->due))
		return;
	atomic_store(&a->due, true);
	TAILQ_INSERT_TAIL(&a->flusher->due, a, in_due);
	pthread_cond_signal(&a->flusher->came);
}

/* Never more than max, but for one that is larger and alone. */
static bool
try_admit(struct flush_account *a, int64_t bytes)
{
	int64_t was = atomic_load(&a->bytes);

	do
		if (was > 0 && was + bytes > atomic_load(&a->max))
			return false;
	while (!atomic_compare_exchange_weak(&a->bytes, &was, was + bytes));
	return true;
}

bool
flush_admit(struct flush_account *a, struct flush_waiter *w)
{
	bool in;

	if (atomic_load(&a->waiters) == 0 && try_admit(a, w->bytes))
		return true;
	pthread_mutex_lock(&a->flusher->mutex);
	/* Counted first: whoever releases after this looks into the queue. */
	atomic_fetch_add(&a->waiters, 1);
	in = STAILQ_EMPTY(&a->waiting) && try_admit(a, w->bytes);
	if (in) {
		atomic_fetch_sub(&a->waiters, 1);
	} else {
		w->since_ns = clock_ns();
		STAILQ_INSERT_TAIL(&a->waiting, w, next);
		set_due(a);
	}
	pthread_mutex_unlock(&a->flusher->mutex);
	return in;
}

static void
waiter_run(struct message *m)
{
	struct flush_waiter *w = container_of(m, struct flush_waiter, msg);

	w->ready(w);
}

static void
admit_waiting(struct flush_account *a)
{
	STAILQ_HEAD(, flush_waiter) in = STAILQ_HEAD_INITIALIZER(in);
	struct flush_waiter *w;

	pthread_mutex_lock(&a->flusher->mutex);
	while ((w = STAILQ_FIRST(&a->waiting)) != NULL &&
	       try_admit(a, w->bytes)) {
		STAILQ_REMOVE_HEAD(&a->waiting, next);
		STAILQ_INSERT_TAIL(&in, w, next);
		atomic_fetch_sub(&a->waiters, 1);
	}
	if (w != NULL && wants(a))
		set_due(a);
	pthread_mutex_unlock(&a->flusher->mutex);
	while ((w = STAILQ_FIRST(&in)) != NULL) {
		STAILQ_REMOVE_HEAD(&in, next);
		w->msg.run = waiter_run;
		reactor_post(w->reactor, &w->msg);
	}
}

void
flush_release(struct flush_account *a, int64_t bytes)
{
	if (bytes == 0)
		return;
	atomic_fetch_sub(&a->bytes, bytes);
	if (atomic_load(&a->waiters) > 0)
		admit_waiting(a);
}

void
flush_note(struct inode *i, int64_t bytes, int64_t ready)
{
	struct flush_account *a = volume_account(i->volume);

	atomic_fetch_add(&a->bytes, bytes);
	atomic_fetch_add(&a->fresh, bytes);
	atomic_fetch_add(&a->ready, ready);
	if (atomic_load(&i->dirty_listed) &&
	    (atomic_load(&a->due) || !wants(a)))
		return;
	pthread_mutex_lock(&a->flusher->mutex);
	if (!atomic_load(&i->dirty_listed)) {
		atomic_store(&i->dirty_listed, true);
		TAILQ_INSERT_TAIL(&a->inodes, i, in_dirty);
	}
	if (wants(a))
		set_due(a);
	pthread_mutex_unlock(&a->flusher->mutex);
}

void
flush_taken(struct inode *i, int64_t bytes, int64_t ready)
{
	struct flush_account *a = volume_account(i->volume);

	atomic_fetch_sub(&a->fresh, bytes);
	atomic_fetch_sub(&a->ready, ready);
}

void
flush_forget(struct inode *i)
{
	struct flush_account *a = volume_account(i->volume);

	pthread_mutex_lock(&a->flusher->mutex);
	if (atomic_load(&i->dirty_listed))
		TAILQ_REMOVE(&a->inodes, i, in_dirty);
	atomic_store(&i->dirty_listed, false);
	pthread_mutex_unlock(&a->flusher->mutex);
}

/* the thread --------------------------------------------------------------- */

/* With the mutex: the inode that has been dirty longest, of the account whose
 * turn it is. */
static bool
take_next(struct flusher *f, struct started *s)
{
	struct flush_account *a;
	struct inode *i;

	while ((a = TAILQ_FIRST(&f->due)) != NULL) {
		TAILQ_REMOVE(&f->due, a, in_due);
		i = wants(a) ? TAILQ_FIRST(&a->inodes) : NULL;
		if (i == NULL) {
			atomic_store(&a->due, false);
			continue;
		}
		TAILQ_INSERT_TAIL(&f->due, a, in_due);
		TAILQ_REMOVE(&a->inodes, i, in_dirty);
		atomic_store(&i->dirty_listed, false);
		/* NULL: its last file is being closed, which syncs it. */
		s->file = cache_file_of(i);
		s->account = a;
		if (s->file != NULL)
			return true;
	}
	return false;
}

static void
start(struct flusher *f, struct started *s)
{
	s->bytes = writeback_start(s->file);
	pthread_mutex_lock(&f->mutex);
	atomic_fetch_add(&s->account->started, (int64_t)s->bytes);
	pthread_mutex_unlock(&f->mutex);
}

static void
finish(struct flusher *f, struct started *s)
{
	pthread_mutex_lock(&f->mutex);
	atomic_fetch_sub(&s->account->started, (int64_t)s->bytes);
	/* It may have been judged by what a sync has taken meanwhile. */
	if (wants(s->account))
		set_due(s->account);
	pthread_mutex_unlock(&f->mutex);
	sync_flush_here(s->file);
}

static bool
room_for_more(const struct started *s, unsigned n)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < n; i++)
		bytes += s[i].bytes;
	return n == 0 || (n < UNDER_WAY_MAX &&
			  (int64_t)bytes < atomic_load(&s[0].account->share));
}

/* Wait for something to flush; false at the end. */
static bool
wait_first(struct flusher *f, struct started *s)
{
	bool got;

	pthread_mutex_lock(&f->mutex);
	while (!(got = take_next(f, s)) && !f->ending)
		pthread_cond_wait(&f->came, &f->mutex);
	pthread_mutex_unlock(&f->mutex);
	return got;
}

static bool
take_more(struct flusher *f, struct started *s)
{
	bool got;

	pthread_mutex_lock(&f->mutex);
	got = take_next(f, s);
	pthread_mutex_unlock(&f->mutex);
	return got;
}

static void *
flusher_main(void *arg)
{
	struct started s[UNDER_WAY_MAX];
	struct flusher *f = arg;
	unsigned n = 0;

	engine_thread_flushes();
	while (n > 0 || wait_first(f, &s[0])) {
		if (n == 0)
			start(f, &s[n++]);
		while (room_for_more(s, n) && take_more(f, &s[n]))
			start(f, &s[n++]);
		finish(f, &s[0]);
		memmove(&s[0], &s[1], --n * sizeof(s[0]));
	}
	return NULL;
}

/* life --------------------------------------------------------------------- */

static int
flusher_new(struct flusher **ret, dev_t dev, unsigned index)
{
	struct flusher *f = calloc(1, sizeof(*f));
	int r;

	if (f == NULL)
		return -ENOMEM;
	f->dev = dev;
	TAILQ_INIT(&f->due);
	pthread_mutex_init(&f->mutex, NULL);
	pthread_cond_init(&f->came, NULL);
	r = engine_thread(&f->thread, 'f', index, flusher_main, f);
	if (r != 0) {
		pthread_cond_destroy(&f->came);
		pthread_mutex_destroy(&f->mutex);
		free(f);
		return r;
	}
	*ret = f;
	return 0;
}

int
flusher_of(struct flusher **ret, struct file_cache *c, dev_t dev)
{
	unsigned index = 0;
	struct flusher *f;
	int r = 0;

	pthread_mutex_lock(&c->flushers_mutex);
	LIST_FOREACH (f, &c->flushers, in_cache) {
		if (f->dev == dev)
			break;
		index++;
	}
	if (f == NULL)
		r = flusher_new(&f, dev, index);
	if (r == 0 && f->in_cache.le_prev == NULL)
		LIST_INSERT_HEAD(&c->flushers, f, in_cache);
	pthread_mutex_unlock(&c->flushers_mutex);
	if (r == 0)
		*ret = f;
	return r;
}

void
flushers_end(struct file_cache *c)
{
	struct flusher *f;

	while ((f = LIST_FIRST(&c->flushers)) != NULL) {
		LIST_REMOVE(f, in_cache);
		pthread_mutex_lock(&f->mutex);
		f->ending = true;
		pthread_cond_signal(&f->came);
		pthread_mutex_unlock(&f->mutex);
		pthread_join(f->thread, NULL);
		pthread_cond_destroy(&f->came);
		pthread_mutex_destroy(&f->mutex);
		free(f);
	}
}
