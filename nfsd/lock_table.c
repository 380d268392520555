/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One list of ranges, in the order of where they begin. It is walked from its
 * beginning: a file with very many locks pays for them, as it does in Linux,
 * and the manager limits how many there can be.
 *
 * fcntl(2), "Advisory record locking".
 */
#include "nfsd/lock_table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

void
lock_table_init(struct lock_table *t)
{
	TAILQ_INIT(&t->ranges);
	t->count = 0;
}

void
lock_table_remove(struct lock_table *t, struct lock_range *r)
{
	TAILQ_REMOVE(&t->ranges, r, link);
	t->count--;
	free(r);
}

void
lock_table_fini(struct lock_table *t)
{
	struct lock_range *r, *next;

	for (r = TAILQ_FIRST(&t->ranges); r; r = next) {
		next = TAILQ_NEXT(r, link);
		free(r);
	}
	lock_table_init(t);
}

int
lock_spare_init(struct lock_spare *s)
{
	s->range[0] = malloc(sizeof(struct lock_range));
	s->range[1] = malloc(sizeof(struct lock_range));
	if (s->range[0] && s->range[1])
		return 0;
	lock_spare_fini(s);
	return -ENOMEM;
}

void
lock_spare_fini(struct lock_spare *s)
{
	free(s->range[0]);
	free(s->range[1]);
	s->range[0] = s->range[1] = NULL;
}

static struct lock_range *
spare_take(struct lock_spare *s)
{
	unsigned i = s->range[0] ? 0 : 1;
	struct lock_range *r = s->range[i];

	assert(r);
	s->range[i] = NULL;
	return r;
}

/* Questions ---------------------------------------------------------------- */

static struct lock_range *
range_after(const struct lock_table *t, const struct lock_range *after)
{
	return after ? TAILQ_NEXT(after, link) : TAILQ_FIRST(&t->ranges);
}

struct lock_range *
lock_table_conflict(const struct lock_table *t, const struct lock_range *after,
		    const struct lock_owner *owner,
		    const struct lock_span *span, bool exclusive)
{
	struct lock_range *r = range_after(t, after);

	for (; r && r->span.first <= span->last; r = TAILQ_NEXT(r, link))
		if (r->owner != owner && r->span.last >= span->first &&
		    (exclusive || r->exclusive))
			return r;
	return NULL;
}

struct lock_range *
lock_table_next(const struct lock_table *t, const struct lock_range *after,
		const struct lock_owner *owner, const struct lock_span *span)
{
	struct lock_range *r = range_after(t, after);

	for (; r && r->span.first <= span->last; r = TAILQ_NEXT(r, link))
		if (r->owner == owner && r->span.last >= span->first)
			return r;
	return NULL;
}

bool
lock_table_has(const struct lock_table *t, const struct lock_owner *owner,
	       const struct lock_span *span, bool exclusive)
{
	/* Of one kind and without a gap it is one range. */
	const struct lock_range *r = lock_table_next(t, NULL, owner, span);

	return r && r->exclusive == exclusive && r->span.first <= span->first &&
	       r->span.last >= span->last;
}

void
lock_table_gaps(const struct lock_table *t, const struct lock_span *span,
		void (*gap)(const struct lock_span *gap, void *arg), void *arg)
{
	uint64_t at = span->first;
	const struct lock_range *r;
	struct lock_span g;

	TAILQ_FOREACH (r, &t->ranges, link) {
		if (r->span.first > span->last)
			break;
		if (r->span.last < at)
			continue;
		if (r->span.first > at) {
			g.first = at;
			g.last = r->span.first - 1;
			gap(&g, arg);
		}
		if (r->span.last >= span->last)
			return;
		at = r->span.last + 1;
	}
	g.first = at;
	g.last = span->last;
	gap(&g, arg);
}

/* Changes ------------------------------------------------------------------ */

static void
range_insert(struct lock_table *t, struct lock_range *r)
{
	struct lock_range *next;

	TAILQ_FOREACH (next, &t->ranges, link)
		/* The analyzer thinks that what range_merge took out may still
		 * be the list's head.
		 * NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		if (next->span.first > r->span.first)
			break;
	if (next)
		TAILQ_INSERT_BEFORE(next, r, link);
	else
		TAILQ_INSERT_TAIL(&t->ranges, r, link);
}

/* r begins later from now on. */
static void
range_cut_front(struct lock_table *t, struct lock_range *r, uint64_t first)
{
	TAILQ_REMOVE(&t->ranges, r, link);
	r->span.first = first;
	range_insert(t, r);
}

/* r holds more than span at both ends: what is behind is a range of its own. */
static void
range_split(struct lock_table *t, struct lock_range *r,
	    const struct lock_span *span, struct lock_spare *s)
{
	struct lock_range *behind = spare_take(s);

	*behind = *r;
	behind->span.first = span->last + 1;
	r->span.last = span->first - 1;
	range_insert(t, behind);
	t->count++;
}

static void
range_cut(struct lock_table *t, struct lock_range *r,
	  const struct lock_span *span, struct lock_spare *s)
{
	if (r->span.first < span->first && r->span.last > span->last)
		range_split(t, r, span, s);
	else if (r->span.first < span->first)
		r->span.last = span->first - 1;
	else if (r->span.last > span->last)
		range_cut_front(t, r, span->last + 1);
	else
		lock_table_remove(t, r);
}

void
lock_table_clear(struct lock_table *t, struct lock_owner *owner,
		 const struct lock_span *span, struct lock_spare *s)
{
	struct lock_range *r = lock_table_next(t, NULL, owner, span), *next;

	for (; r; r = next) {
		next = lock_table_next(t, r, owner, span);
		range_cut(t, r, span, s);
	}
}

/* What of the owner touches r and is of its kind becomes part of it. r is not
 * in the table. */
static void
range_merge(struct lock_table *t, struct lock_range *r)
{
	struct lock_range *o, *next;

	for (o = TAILQ_FIRST(&t->ranges); o; o = next) {
		next = TAILQ_NEXT(o, link);
		if (o->owner != r->owner || o->exclusive != r->exclusive)
			continue;
		if (r->span.first > 0 && o->span.last == r->span.first - 1)
			r->span.first = o->span.first;
		else if (r->span.last < UINT64_MAX &&
			 o->span.first == r->span.last + 1)
			r->span.last = o->span.last;
		else
			continue;
		if (o->since_ns < r->since_ns)
			r->since_ns = o->since_ns;
		lock_table_remove(t, o);
	}
}

void
lock_table_set(struct lock_table *t, struct lock_owner *owner,
	       const struct lock_span *span, bool exclusive, uint64_t now_ns,
	       struct lock_spare *s)
{
	struct lock_range *r = spare_take(s);

	assert(span->first <= span->last);
	assert(!lock_table_conflict(t, NULL, owner, span, exclusive));
	lock_table_clear(t, owner, span, s);
	r->owner = owner;
	r->span = *span;
	r->exclusive = exclusive;
	r->since_ns = now_ns;
	range_merge(t, r);
	range_insert(t, r);
	t->count++;
}
