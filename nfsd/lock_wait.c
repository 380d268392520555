/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LOCKs that wait, and grants whose clients may not know of them yet. A struct
 * lock_wait is made by a LOCK that blocks and waits in its file's list; when
 * nothing is in its way any more the lock is its owner's at once, so that
 * nobody comes between, and the struct lock_wait moves to the list of grants
 * until the client has said what it thinks of it.
 *
 * Who waits longest is tried first, but does not keep others from what is free:
 * a waiter that nothing but an earlier waiter is in the way of could wait for
 * ever, where that one waits for it by another file.
 */
#include "nfsd/lock_manager.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HOST_WAITERS_MAX (LOCKS_WAITERS_MAX / LOCKS_HOST_PART)

/* Grants by number --------------------------------------------------------- */

/* NOLINTBEGIN: uthash's macros */
static struct lock_wait *
grant_of(struct locks *l, uint64_t id)
{
	struct lock_wait *w;

	HASH_FIND(hh, l->grants, &id, sizeof(id), w);
	return w;
}

static bool
grant_add(struct locks *l, struct lock_wait *w)
{
	HASH_ADD(hh, l->grants, id, sizeof(w->id), w);
	return w->hh.tbl != NULL;
}

static void
grant_remove(struct locks *l, struct lock_wait *w)
{
	HASH_DEL(l->grants, w);
}

unsigned
lock_grants_count(const struct locks *l)
{
	return HASH_COUNT(l->grants);
}
/* NOLINTEND */

void
lock_wait_free(struct locks *l, struct lock_wait *w)
{
	if (w->id != 0) {
		grant_remove(l, w);
		TAILQ_REMOVE(&w->file->grants, w, file_link);
		w->owner->pins--;
	} else {
		TAILQ_REMOVE(&w->file->waits, w, file_link);
		TAILQ_REMOVE(&w->owner->waits, w, owner_link);
	}
	w->owner->peer->waits--;
	l->waits--;
	free(w->held);
	free(w);
}

static struct lock_wait *
wait_find(struct lock_waits *list, const struct lock_place *p, bool exclusive)
{
	struct lock_wait *w;

	TAILQ_FOREACH (w, list, file_link)
		if (w->owner == p->owner && w->exclusive == exclusive &&
		    lock_span_same(&w->span, &p->span))
			return w;
	return NULL;
}

/* Deadlock ----------------------------------------------------------------- */

/* Put those on the list whom o waits for to get span of f. */
static struct lock_owner *
push_holders(struct locks *l, struct lock_owner *list,
	     const struct lock_file *f, const struct lock_owner *o,
	     const struct lock_held *wants)
{
	struct lock_range *r = NULL;

	while ((r = lock_table_conflict(&f->table, r, o, &wants->span,
					wants->exclusive)) != NULL) {
		if (r->owner->mark == l->mark)
			continue;
		r->owner->mark = l->mark;
		r->owner->todo = list;
		list = r->owner;
	}
	return list;
}

/* Would p's owner wait for itself? Owners that wait for a local process wait
 * for nobody that is known. */
static bool
is_deadlock(struct locks *l, const struct lock_place *p, bool exclusive)
{
	struct lock_held wants = { p->span, exclusive };
	struct lock_owner *list, *o;
	const struct lock_wait *w;

	l->mark++;
	list = push_holders(l, NULL, p->file, p->owner, &wants);
	while (list != NULL) {
		o = list;
		list = o->todo;
		if (o == p->owner)
			return true;
		TAILQ_FOREACH (w, &o->waits, owner_link) {
			wants.span = w->span;
			wants.exclusive = w->exclusive;
			list = push_holders(l, list, w->file, o, &wants);
		}
	}
	return false;
}

/* Begin and end ------------------------------------------------------------ */

static void
wait_note(struct lock_wait *w, const struct lock_request *rq)
{
	lock_address_copy(&w->client, rq->client);
	lock_address_copy(&w->local, rq->local);
	w->transport = rq->transport;
	w->message = rq->message;
	w->offset = rq->offset;
	w->length = rq->length;
	w->asked_ns = monotonic_ns();
}

/* Is somebody else's lock in its way, that is known? */
static bool
wait_conflicts(const struct lock_wait *w)
{
	return lock_table_conflict(&w->file->table, NULL, w->owner, &w->span,
				   w->exclusive) != NULL;
}

int
lock_wait_begin(struct locks *l, const struct lock_request *rq,
		const struct lock_place *p)
{
	struct lock_wait *w = wait_find(&p->file->waits, p, rq->exclusive);

	if (w) {
		wait_note(w, rq);
		return NLM4_BLOCKED;
	}
	if (is_deadlock(l, p, rq->exclusive)) {
		l->count.deadlocks++;
		return NLM4_DEADLCK;
	}
	if (l->waits >= LOCKS_WAITERS_MAX || p->peer->waits >= HOST_WAITERS_MAX)
		return NLM4_DENIED_NOLOCKS;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NLM4_DENIED_NOLOCKS;
	wait_note(w, rq);
	w->owner = p->owner;
	w->file = p->file;
	w->span = p->span;
	w->exclusive = rq->exclusive;
	w->since_ns = w->asked_ns;
	w->polled = !wait_conflicts(w);
	TAILQ_INSERT_TAIL(&p->file->waits, w, file_link);
	TAILQ_INSERT_TAIL(&p->owner->waits, w, owner_link);
	p->peer->waits++;
	if (l->waits++ == 0)
		pthread_cond_broadcast(&l->changed);
	return NLM4_BLOCKED;
}

void
lock_wait_over(struct locks *l, const struct lock_place *p, bool exclusive)
{
	struct lock_wait *w = wait_find(&p->file->waits, p, exclusive), *next;

	if (w)
		lock_wait_free(l, w);
	/* What it asked for anew is not to be given back. */
	for (w = TAILQ_FIRST(&p->file->grants); w; w = next) {
		next = TAILQ_NEXT(w, file_link);
		if (w->owner == p->owner && lock_span_meets(&w->span, &p->span))
			lock_wait_free(l, w);
	}
}

/* Grants ------------------------------------------------------------------- */

static void
held_clip(struct lock_held *h, const struct lock_range *r,
	  const struct lock_span *span)
{
	h->span = r->span;
	h->exclusive = r->exclusive;
	if (h->span.first < span->first)
		h->span.first = span->first;
	if (h->span.last > span->last)
		h->span.last = span->last;
}

/* What its owner has there now. 0 or -ENOMEM. */
static int
wait_remember(struct lock_wait *w)
{
	const struct lock_table *t = &w->file->table;
	struct lock_range *r = NULL;
	unsigned n = 0;

	while ((r = lock_table_next(t, r, w->owner, &w->span)) != NULL)
		n++;
	free(w->held);
	w->held_count = 0;
	w->held = calloc(n + 1, sizeof(*w->held));
	if (!w->held)
		return -ENOMEM;
	while ((r = lock_table_next(t, r, w->owner, &w->span)) != NULL)
		held_clip(&w->held[w->held_count++], r, &w->span);
	return 0;
}

static void
wait_tell(struct locks *l, const struct lock_wait *w)
{
	const struct lock_owner *o = w->owner;
	struct lock_grant g = {
		.id = w->id,
		.host = o->peer->host,
		.transport = w->transport,
		.message = w->message,
		.fh = w->file->fh,
		.exclusive = w->exclusive,
		.svid = o->svid,
		.offset = w->offset,
		.length = w->length,
		.oh_bytes = o->oh_bytes,
	};

	g.host.client = w->client;
	g.host.local = w->local;
	/* As it calls itself there, which the client may compare. */
	memcpy(g.host.name, o->name, strlen(o->name) + 1);
	if (o->oh_bytes > 0)
		memcpy(g.oh, o->oh, o->oh_bytes);
	l->count.callbacks++;
	l->ops->grant(l->arg, &g);
}

/* Take it, where nothing is in its way. */
static bool
wait_take(struct locks *l, struct lock_wait *w, struct lock_spare *s)
{
	struct lock_file *f = w->file;

	if (wait_remember(w) < 0)
		return false;
	w->id = l->id + 1;
	if (!grant_add(l, w)) {
		w->id = 0;
		return false;
	}
	if (lock_file_take(f, &w->span, w->exclusive) < 0) {
		grant_remove(l, w);
		w->id = 0;
		return false;
	}
	l->id++;
	lock_file_set(l, f, w->owner, &w->span, w->exclusive, s);
	TAILQ_REMOVE(&f->waits, w, file_link);
	TAILQ_REMOVE(&w->owner->waits, w, owner_link);
	TAILQ_INSERT_TAIL(&f->grants, w, file_link);
	w->owner->pins++;
	w->granted_ns = monotonic_ns();
	return true;
}

static bool
wait_grant(struct locks *l, struct lock_wait *w)
{
	struct lock_spare s;
	bool ok;

	/* Without memory it is as if a local process were in its way. */
	w->polled = !wait_conflicts(w);
	if (!w->polled || lock_spare_init(&s) < 0)
		return false;
	ok = wait_take(l, w, &s);
	lock_spare_fini(&s);
	if (ok)
		wait_tell(l, w);
	return ok;
}

/* A shared lock may have been exclusive in part: others come in there. */
static bool
grant_weakens(const struct lock_wait *w)
{
	for (unsigned i = 0; i < w->held_count; i++)
		if (w->held[i].exclusive && !w->exclusive)
			return true;
	return false;
}

void
lock_waits_try(struct locks *l, struct lock_file *f,
	       const struct lock_span *span)
{
	struct lock_wait *w = TAILQ_FIRST(&f->waits), *next;

	for (; w; w = next) {
		next = TAILQ_NEXT(w, file_link);
		if (span && !lock_span_meets(&w->span, span))
			continue;
		if (!wait_grant(l, w) || !grant_weakens(w))
			continue;
		span = NULL;
		next = TAILQ_FIRST(&f->waits);
	}
}

void
lock_waits_poll(struct locks *l, struct lock_file *f)
{
	struct lock_wait *w = TAILQ_FIRST(&f->waits), *next;

	for (; w; w = next) {
		next = TAILQ_NEXT(w, file_link);
		if (!w->polled || !wait_grant(l, w) || !grant_weakens(w))
			continue;
		lock_waits_try(l, f, NULL);
		return;
	}
}

/* Given back --------------------------------------------------------------- */

static void
clear_part(struct locks *l, const struct lock_wait *w, uint64_t first,
	   uint64_t end)
{
	const struct lock_span part = { first, end - 1 };
	struct lock_spare s;

	/* Without memory it stays locked until its owner unlocks it. */
	if (first >= end || lock_spare_init(&s) < 0)
		return;
	lock_file_clear(l, w->file, w->owner, &part, &s);
	lock_spare_fini(&s);
}

/* What it had before, unless it has unlocked some of it meanwhile. */
static void
restore_part(struct locks *l, const struct lock_wait *w,
	     const struct lock_held *h)
{
	struct lock_table *t = &w->file->table;
	struct lock_spare s;

	if (h->exclusive == w->exclusive ||
	    !lock_table_has(t, w->owner, &h->span, w->exclusive) ||
	    lock_table_conflict(t, NULL, w->owner, &h->span, h->exclusive) ||
	    lock_spare_init(&s) < 0)
		return;
	if (lock_file_take(w->file, &h->span, h->exclusive) == 0)
		lock_file_set(l, w->file, w->owner, &h->span, h->exclusive, &s);
	lock_spare_fini(&s);
}

/* w's file is pinned. */
static void
grant_undo(struct locks *l, struct lock_wait *w)
{
	const struct lock_span span = w->span;
	struct lock_owner *o = w->owner;
	struct lock_file *f = w->file;
	uint64_t at = span.first;

	for (unsigned i = 0; i < w->held_count; i++) {
		clear_part(l, w, at, w->held[i].span.first);
		restore_part(l, w, &w->held[i]);
		at = w->held[i].span.last + 1;
	}
	clear_part(l, w, at, span.last + 1);
	lock_wait_free(l, w);
	lock_owner_settle(o);
	lock_waits_try(l, f, &span);
}

static void
wait_forget(struct locks *l, struct lock_wait *w)
{
	struct lock_file *f = w->file;

	f->pins++;
	lock_wait_free(l, w);
	lock_file_put(l, f);
}

/* What it waits for, and has not asked for since then. */
static void
forget_silent(struct locks *l, struct lock_peer *p, uint64_t since_ns)
{
	struct lock_owner *o, *next_owner;
	struct lock_wait *w, *next;

	for (o = p->owners; o; o = next_owner) {
		next_owner = o->hh.next;
		for (w = TAILQ_FIRST(&o->waits); w; w = next) {
			next = TAILQ_NEXT(w, owner_link);
			if (w->asked_ns <= since_ns)
				wait_forget(l, w);
		}
		lock_owner_settle(o);
	}
}

void
locks_unreachable(struct locks *l, uint64_t id)
{
	struct lock_wait *w;

	locks_enter(l);
	w = grant_of(l, id);
	if (w)
		forget_silent(l, w->owner->peer, w->granted_ns);
	locks_leave(l);
	locks_granted(l, id, false);
}

void
locks_granted(struct locks *l, uint64_t id, bool accepted)
{
	struct lock_wait *w;
	struct lock_owner *o;
	struct lock_file *f;

	locks_enter(l);
	w = grant_of(l, id);
	if (w) {
		o = w->owner;
		f = w->file;
		f->pins++;
		if (accepted) {
			lock_wait_free(l, w);
			lock_owner_settle(o);
		} else {
			l->count.callbacks_failed++;
			grant_undo(l, w);
		}
		lock_file_put(l, f);
	}
	locks_leave(l);
}

bool
locks_grant_waits(struct locks *l, uint64_t id)
{
	bool waits;

	locks_enter(l);
	waits = grant_of(l, id) != NULL;
	locks_leave(l);
	return waits;
}

/* Is there one, waiting or granted? Then no more. */
static bool
cancel(struct locks *l, const struct lock_place *p, bool exclusive)
{
	struct lock_wait *w = wait_find(&p->file->waits, p, exclusive);

	if (w) {
		lock_wait_free(l, w);
		return true;
	}
	w = wait_find(&p->file->grants, p, exclusive);
	if (w)
		grant_undo(l, w);
	return w != NULL;
}

int
locks_cancel(struct locks *l, const struct lock_request *rq)
{
	struct lock_place p;
	int r = NLM4_DENIED;

	locks_enter(l);
	if (lock_place_find(l, rq, LOCK_PLACE_RANGE, &p) &&
	    cancel(l, &p, rq->exclusive))
		r = NLM4_GRANTED;
	lock_place_fini(l, &p);
	locks_leave(l);
	return r;
}
