/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHARE and UNSHARE: the modes in which DOS programs open files, which keep out
 * each other only (XNFS, 14.3). They are not enforced on READ and WRITE, which
 * do not say for whom they are. A struct lock_share is in its file's list until
 * it is unshared or its host is forgotten.
 */
#include "nfsd/lock_manager.h"

#include <assert.h>
#include <stdlib.h>

#define HOST_SHARES_MAX (LOCKS_SHARES_MAX / LOCKS_HOST_PART)

/* The bits of a mode are those of the accesses that it denies. */
static_assert((int)FSM_DR == (int)FSA_R && (int)FSM_DW == (int)FSA_W &&
		      (int)FSM_DRW == (int)FSA_RW,
	      "modes and accesses are compared");

static struct lock_share *
share_find(const struct lock_file *f, const struct lock_owner *o)
{
	struct lock_share *s;

	LIST_FOREACH (s, &f->shares, link)
		if (s->owner == o)
			return s;
	return NULL;
}

static bool
share_conflicts(const struct lock_file *f, const struct lock_owner *o,
		const struct lock_request *rq)
{
	const struct lock_share *s;

	LIST_FOREACH (s, &f->shares, link)
		if (s->owner != o &&
		    (((unsigned)s->mode & (unsigned)rq->access) != 0 ||
		     ((unsigned)s->access & (unsigned)rq->mode) != 0))
			return true;
	return false;
}

static struct lock_share *
share_new(struct locks *l, const struct lock_place *p)
{
	struct lock_share *s;

	if (l->shares >= LOCKS_SHARES_MAX || p->peer->shares >= HOST_SHARES_MAX)
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->owner = p->owner;
	s->since_ns = monotonic_ns();
	LIST_INSERT_HEAD(&p->file->shares, s, link);
	p->owner->shares++;
	p->peer->shares++;
	l->shares++;
	return s;
}

void
lock_share_free(struct locks *l, struct lock_share *s)
{
	struct lock_owner *o = s->owner;

	LIST_REMOVE(s, link);
	free(s);
	o->shares--;
	o->peer->shares--;
	l->shares--;
	lock_owner_settle(o);
}

static int
share(struct locks *l, const struct lock_request *rq,
      const struct lock_place *p)
{
	struct lock_share *s = share_find(p->file, p->owner);

	if (share_conflicts(p->file, p->owner, rq))
		return NLM4_DENIED;
	if (!s)
		s = share_new(l, p);
	if (!s)
		return NLM4_DENIED_NOLOCKS;
	s->mode = rq->mode;
	s->access = rq->access;
	return NLM4_GRANTED;
}

int
locks_share(struct locks *l, const struct lock_request *rq)
{
	bool writes = ((unsigned)rq->access & FSA_W) != 0;
	struct lock_place p;
	int r = lock_judge(rq, writes);

	if (r != NLM4_GRANTED)
		return r;
	locks_enter(l);
	r = lock_place_init(l, rq, LOCK_PLACE_SHARE, &p);
	if (r == NLM4_GRANTED)
		r = share(l, rq, &p);
	lock_place_fini(l, &p);
	locks_leave(l);
	return r;
}

int
locks_unshare(struct locks *l, const struct lock_request *rq)
{
	struct lock_place p;
	struct lock_share *s;

	locks_enter(l);
	if (lock_place_find(l, rq, LOCK_PLACE_SHARE, &p)) {
		s = share_find(p.file, p.owner);
		if (s)
			lock_share_free(l, s);
	}
	lock_place_fini(l, &p);
	locks_leave(l);
	return NLM4_GRANTED;
}
