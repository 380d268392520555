/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock manager's start and end, and the procedures TEST, LOCK, NM_LOCK and
 * UNLOCK. The server makes one struct locks and frees it at its end, when no
 * call is in service; workers call it. Its own thread does what nothing else
 * calls for: locks_tick.
 *
 * A lock is taken in this order: is it allowed at all; is its host watched; is
 * it free among clients; is it free on the file itself. Only then does the
 * table change, which cannot fail.
 *
 * The Open Group, XNFS, 10 and 14; fcntl(2).
 */
#include "nfsd/lock_manager.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOST_RANGES_MAX (LOCKS_RANGES_MAX / LOCKS_HOST_PART)

/* Start and end ------------------------------------------------------------ */

/* When there is something to do, by the clock. */
static uint64_t
tick_due_ns(const struct locks *l)
{
	return l->ticked_ns +
	       (l->waits > 0 ? LOCKS_TICK_NS : LOCKS_TICK_IDLE_NS);
}

static void
tick_wait(struct locks *l)
{
	uint64_t due_ns = tick_due_ns(l);
	struct timespec t = { .tv_sec = (time_t)(due_ns / 1000000000),
			      .tv_nsec = (long)(due_ns % 1000000000) };

	if (lock_peers_count(l) == 0)
		pthread_cond_wait(&l->changed, &l->lock);
	else
		pthread_cond_timedwait(&l->changed, &l->lock, &t);
}

static void *
locks_run(void *arg)
{
	struct locks *l = arg;

	locks_enter(l);
	while (!l->stop) {
		if (lock_peers_count(l) == 0 ||
		    monotonic_ns() < tick_due_ns(l)) {
			tick_wait(l);
			continue;
		}
		l->ticked_ns = monotonic_ns();
		locks_tick(l, l->ticked_ns);
		locks_leave(l);
		locks_enter(l);
	}
	locks_leave(l);
	return NULL;
}

int
locks_new(struct locks **ret, const struct locks_ops *ops, void *arg)
{
	struct locks *l = calloc(1, sizeof(*l));
	pthread_condattr_t attr;
	int r;

	if (!l)
		return -ENOMEM;
	l->ops = ops;
	l->arg = arg;
	l->ticked_ns = monotonic_ns();
	SLIST_INIT(&l->dead);
	pthread_mutex_init(&l->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&l->changed, &attr);
	pthread_condattr_destroy(&attr);
	r = pthread_create(&l->thread, NULL, locks_run, l);
	if (r != 0) {
		pthread_cond_destroy(&l->changed);
		pthread_mutex_destroy(&l->lock);
		free(l);
		return -r;
	}
	(void)pthread_setname_np(l->thread, "locks");
	*ret = l;
	return 0;
}

static void
drop(struct locks *l, struct lock_file *f, void *arg)
{
	lock_file_drop(l, f);
}

void
locks_free(struct locks *l)
{
	if (!l)
		return;
	locks_enter(l);
	l->stop = true;
	pthread_cond_broadcast(&l->changed);
	locks_leave(l);
	pthread_join(l->thread, NULL);
	locks_enter(l);
	lock_files_each(l, drop, NULL);
	lock_peers_free(l);
	locks_leave(l);
	if (l->exports)
		export_table_put(l->exports);
	assert(l->ranges == 0 && l->waits == 0 && l->shares == 0);
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

void
locks_enter(struct locks *l)
{
	pthread_mutex_lock(&l->lock);
}

void
locks_leave(struct locks *l)
{
	struct lock_files dead = l->dead;
	struct lock_file *f;

	SLIST_INIT(&l->dead);
	pthread_mutex_unlock(&l->lock);
	/* To close a file that was open for writing may take a while. */
	while ((f = SLIST_FIRST(&dead)) != NULL) {
		SLIST_REMOVE_HEAD(&dead, dead_link);
		if (f->fd >= 0)
			(void)close(f->fd);
		free(f);
	}
}

static void
drop_withdrawn(struct locks *l, struct lock_file *f, void *arg)
{
	if (!export_find(l->exports, f->fh.export_id))
		lock_file_drop(l, f);
}

void
locks_exports(struct locks *l, struct export_table *t)
{
	struct export_table *old;

	export_table_get(t);
	locks_enter(l);
	old = l->exports;
	l->exports = t;
	lock_files_each(l, drop_withdrawn, NULL);
	locks_leave(l);
	if (old)
		export_table_put(old);
}

/* Judging ------------------------------------------------------------------ */

bool
lock_span_of(const struct lock_request *rq, struct lock_span *ret)
{
	uint64_t length = rq->length == UINT64_MAX ? 0 : rq->length;

	if (rq->offset > LOCK_LAST_MAX ||
	    (length > 0 && length - 1 > LOCK_LAST_MAX - rq->offset))
		return false;
	ret->first = rq->offset;
	ret->last = length > 0 ? rq->offset + (length - 1) : LOCK_LAST_MAX;
	return true;
}

/*
 * As Linux has it for flock(2): whoever may have the file open at all. That is
 * more than fcntl(2), which wants it open for writing for an exclusive lock;
 * but clients make both of them one.
 */
static bool
permitted(const struct object *o)
{
	return !o->access.options->auth_nlm ||
	       perm_data(&o->id, o->fd, &o->st, false) == 0 ||
	       perm_data(&o->id, o->fd, &o->st, true) == 0;
}

int
lock_judge(const struct lock_request *rq, bool writes)
{
	const struct object *o = rq->object;

	assert(rq->oh.bytes <= MAXNETOBJ_SZ &&
	       rq->caller_name.bytes <= LM_MAXSTRLEN);
	if (!S_ISREG(o->st.stx_mode))
		return NLM4_FAILED;
	if (writes && volume_read_only(o->access.volume))
		return NLM4_ROFS;
	return permitted(o) ? NLM4_GRANTED : NLM4_FAILED;
}

/* Places ------------------------------------------------------------------- */

/* A LOCK of a later state of its client than older ones: it has rebooted, and
 * what it had before is gone. By its name too, since several clients may be
 * behind one address. */
static void
owner_note_state(struct locks *l, const struct lock_request *rq,
		 struct lock_place *p)
{
	if (rq->state == 0)
		return;
	if (p->peer->state != rq->state)
		lock_peer_outlives(l, p->peer, p->owner->name, rq->state);
	p->peer->state = rq->state;
	p->owner->state = rq->state;
}

int
lock_place_init(struct locks *l, const struct lock_request *rq,
		enum lock_place_kind kind, struct lock_place *p)
{
	bool share = kind == LOCK_PLACE_SHARE;
	int r;

	memset(p, 0, sizeof(*p));
	if (!share && !lock_span_of(rq, &p->span))
		return NLM4_FBIG;
	if (rq->reclaim != lock_grace_holds(l))
		return NLM4_DENIED_GRACE_PERIOD;
	r = lock_peer_get(l, rq, &p->peer);
	if (r == NLM4_GRANTED)
		r = lock_file_get(l, rq->fh, p->peer, &p->file);
	if (r != NLM4_GRANTED)
		return r;
	p->owner = lock_owner_get(p->peer, rq, share);
	if (!p->owner)
		return NLM4_DENIED_NOLOCKS;
	owner_note_state(l, rq, p);
	return NLM4_GRANTED;
}

bool
lock_place_find(struct locks *l, const struct lock_request *rq,
		enum lock_place_kind kind, struct lock_place *p)
{
	bool share = kind == LOCK_PLACE_SHARE;

	memset(p, 0, sizeof(*p));
	if (!share && !lock_span_of(rq, &p->span))
		return false;
	p->peer = lock_peer_find(l, rq->client);
	if (!p->peer)
		return false;
	p->peer->pins++;
	p->peer->used_ns = monotonic_ns();
	p->owner = lock_owner_find(p->peer, rq, share);
	p->file = lock_file_find(l, rq->fh);
	return p->owner && p->file;
}

void
lock_place_fini(struct locks *l, struct lock_place *p)
{
	if (p->owner)
		lock_owner_unpin(p->owner);
	if (p->file)
		lock_file_put(l, p->file);
	if (p->peer)
		lock_peer_put(p->peer);
}

/* TEST --------------------------------------------------------------------- */

static void
holder_fill(struct nlm4_holder *h, const struct lock_range *r)
{
	const struct lock_owner *o = r->owner;

	h->exclusive = r->exclusive;
	h->svid = o->svid;
	h->oh_bytes = o->oh_bytes;
	if (o->oh_bytes > 0)
		memcpy(h->oh, o->oh, o->oh_bytes);
	h->l_offset = r->span.first;
	h->l_len = r->span.last == LOCK_LAST_MAX
			   ? 0
			   : r->span.last - r->span.first + 1;
}

static int
test(const struct lock_place *p, const struct lock_request *rq,
     struct nlm4_holder *holder)
{
	const struct lock_range *r = lock_table_conflict(
		&p->file->table, NULL, p->owner, &p->span, rq->exclusive);

	if (r)
		holder_fill(holder, r);
	else if (!lock_file_local(p->file, &p->span, rq->exclusive, holder))
		return NLM4_GRANTED;
	return NLM4_DENIED;
}

int
locks_test(struct locks *l, const struct lock_request *rq,
	   struct nlm4_holder *holder)
{
	int r = lock_judge(rq, false);
	struct lock_place p;

	if (r != NLM4_GRANTED)
		return r;
	locks_enter(l);
	(void)lock_place_find(l, rq, LOCK_PLACE_RANGE, &p);
	if (!lock_span_of(rq, &p.span))
		r = NLM4_FBIG;
	else if (lock_grace_holds(l))
		r = NLM4_DENIED_GRACE_PERIOD;
	else if (!p.file)
		r = lock_file_get(l, rq->fh, NULL, &p.file);
	if (r == NLM4_GRANTED)
		r = test(&p, rq, holder);
	lock_place_fini(l, &p);
	locks_leave(l);
	return r;
}

/* LOCK --------------------------------------------------------------------- */

/* On the file itself, then in the table. 0, -EAGAIN: somebody has it. */
static int
take(struct locks *l, const struct lock_place *p, bool exclusive)
{
	struct lock_spare s;
	int r;

	if (lock_table_conflict(&p->file->table, NULL, p->owner, &p->span,
				exclusive))
		return -EAGAIN;
	r = lock_spare_init(&s);
	if (r < 0)
		return r;
	r = lock_file_take(p->file, &p->span, exclusive);
	if (r == -EAGAIN)
		l->count.local_conflicts++;
	if (r == 0)
		lock_file_set(l, p->file, p->owner, &p->span, exclusive, &s);
	lock_spare_fini(&s);
	return r;
}

static int
lock(struct locks *l, const struct lock_request *rq, const struct lock_place *p)
{
	int r;

	if (rq->exclusive && p->file->read_only)
		return NLM4_ROFS;
	if (l->ranges >= LOCKS_RANGES_MAX || p->peer->ranges >= HOST_RANGES_MAX)
		return NLM4_DENIED_NOLOCKS;
	r = take(l, p, rq->exclusive);
	if (r == -EAGAIN)
		return rq->block ? lock_wait_begin(l, rq, p) : NLM4_DENIED;
	if (r < 0)
		return NLM4_DENIED_NOLOCKS;
	lock_wait_over(l, p, rq->exclusive);
	/* It may have been exclusive before. */
	if (!rq->exclusive)
		lock_waits_try(l, p->file, &p->span);
	return NLM4_GRANTED;
}

static void
count(struct locks *l, const struct lock_request *rq, int status)
{
	if (status == NLM4_GRANTED) {
		l->count.granted++;
		if (rq->reclaim)
			l->count.reclaimed++;
	} else if (status == NLM4_BLOCKED) {
		l->count.blocked++;
	} else if (status >= 0) {
		l->count.denied++;
	}
}

int
locks_lock(struct locks *l, const struct lock_request *rq)
{
	int r = lock_judge(rq, rq->exclusive);
	struct lock_place p;

	if (r != NLM4_GRANTED)
		return r;
	locks_enter(l);
	r = lock_place_init(l, rq, LOCK_PLACE_RANGE, &p);
	if (r == NLM4_GRANTED)
		r = lock(l, rq, &p);
	count(l, rq, r);
	lock_place_fini(l, &p);
	locks_leave(l);
	return r;
}

/* UNLOCK ------------------------------------------------------------------- */

int
locks_unlock(struct locks *l, const struct lock_request *rq)
{
	int r = NLM4_GRANTED;
	struct lock_spare s;
	struct lock_place p;
	struct lock_span span;

	if (!lock_span_of(rq, &span))
		return NLM4_FBIG;
	/* One lock fewer may be one range more. */
	if (lock_spare_init(&s) < 0)
		return NLM4_DENIED_NOLOCKS;
	locks_enter(l);
	if (lock_place_find(l, rq, LOCK_PLACE_RANGE, &p)) {
		lock_file_clear(l, p.file, p.owner, &p.span, &s);
		lock_waits_try(l, p.file, &p.span);
	}
	lock_place_fini(l, &p);
	locks_leave(l);
	lock_spare_fini(&s);
	return r;
}
