/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranges of one file that are locked, and by whom: overlap, split, merge,
 * upgrade and downgrade as fcntl(2) has them. Pure; whoever has the table sees
 * to it that one thread uses it at a time. An owner is a pointer that is
 * compared, no more.
 */
#ifndef NVNFSD_LOCK_TABLE_H
#define NVNFSD_LOCK_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct lock_owner;

/* From first to last, both of them in it. */
struct lock_span {
	uint64_t first, last;
};

struct lock_range {
	struct lock_owner *owner;
	struct lock_span span;
	bool exclusive;
	uint64_t since_ns; /* the longest that a part of it is held */
	TAILQ_ENTRY(lock_range) link;
};

/* By first. Ranges of one owner neither overlap, nor touch where they are of
 * one kind. */
TAILQ_HEAD(lock_ranges, lock_range);

struct lock_table {
	struct lock_ranges ranges;
	unsigned count;
};

/* What a change may need, so that it cannot fail once it is begun. */
struct lock_spare {
	struct lock_range *range[2];
};

static inline bool
lock_span_meets(const struct lock_span *a, const struct lock_span *b)
{
	return a->first <= b->last && b->first <= a->last;
}

static inline bool
lock_span_same(const struct lock_span *a, const struct lock_span *b)
{
	return a->first == b->first && a->last == b->last;
}

/* lock_table.c ------------------------------------------------------------- */

void lock_table_init(struct lock_table *t);
/* Whatever is left in it is freed. */
void lock_table_fini(struct lock_table *t);

/* For one lock_table_set or lock_table_clear. 0 or -ENOMEM. */
int lock_spare_init(struct lock_spare *s);
/* What was not used. */
void lock_spare_fini(struct lock_spare *s);

/* The first range after (NULL: of all) that keeps owner from having this; NULL:
 * none. */
struct lock_range *lock_table_conflict(const struct lock_table *t,
				       const struct lock_range *after,
				       const struct lock_owner *owner,
				       const struct lock_span *span,
				       bool exclusive);
/* Does the owner have all of it, of this kind? */
bool lock_table_has(const struct lock_table *t, const struct lock_owner *owner,
		    const struct lock_span *span, bool exclusive);
/* The next range of the owner after (NULL: the first) that meets span. */
struct lock_range *lock_table_next(const struct lock_table *t,
				   const struct lock_range *after,
				   const struct lock_owner *owner,
				   const struct lock_span *span);
/* All of span is the owner's, of this kind, whatever it had there; nothing of
 * others may be in the way (asserted). */
void lock_table_set(struct lock_table *t, struct lock_owner *owner,
		    const struct lock_span *span, bool exclusive,
		    uint64_t now_ns, struct lock_spare *s);
/* Nothing of span is the owner's. */
void lock_table_clear(struct lock_table *t, struct lock_owner *owner,
		      const struct lock_span *span, struct lock_spare *s);
/* Take r out, and free it. */
void lock_table_remove(struct lock_table *t, struct lock_range *r);
/* Each longest part of span, in order, of which nobody has anything. */
void lock_table_gaps(const struct lock_table *t, const struct lock_span *span,
		     void (*gap)(const struct lock_span *gap, void *arg),
		     void *arg);

#endif
