/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces in flight: which of them may touch an inode at the same time. The
 * object is the range_list of an inode; its locks are embedded in the requests
 * that hold them. Plain data: the caller holds the inode's mutex. It knows
 * neither files nor reactors.
 *
 * Asynchronous direct I/O returns the kernel's inode lock before it completes,
 * so the kernel does not keep a buffered piece from the pages of a direct one;
 * where they collide, the mapping is poisoned with EIO. Ranges are therefore
 * page-rounded, and only buffered pieces may share a page. Truncation and
 * other changes of size take everything (RANGE_EXCLUSIVE).
 */
#include "io/file.h"

#define BIT(kind) (1u << (kind))

/* Row: what a part is. Bits: what it may not overlap. Symmetric. */
static const unsigned conflicts[RANGE_KINDS] = {
	[RANGE_DIRECT] = BIT(RANGE_DIRECT) | BIT(RANGE_BUFFERED) |
			 BIT(RANGE_READ_DIRECT) | BIT(RANGE_READ_BUFFERED) |
			 BIT(RANGE_EXCLUSIVE),
	[RANGE_BUFFERED] = BIT(RANGE_DIRECT) | BIT(RANGE_READ_DIRECT) |
			   BIT(RANGE_EXCLUSIVE),
	[RANGE_READ_DIRECT] =
		BIT(RANGE_DIRECT) | BIT(RANGE_BUFFERED) | BIT(RANGE_EXCLUSIVE),
	[RANGE_READ_BUFFERED] = BIT(RANGE_DIRECT) | BIT(RANGE_EXCLUSIVE),
	[RANGE_EXCLUSIVE] = BIT(RANGE_DIRECT) | BIT(RANGE_BUFFERED) |
			    BIT(RANGE_READ_DIRECT) | BIT(RANGE_READ_BUFFERED) |
			    BIT(RANGE_EXCLUSIVE),
};

void
range_add(struct range_lock *l, enum range_kind kind, uint64_t offset,
	  uint64_t bytes)
{
	uint64_t page = page_bytes();
	unsigned i = l->parts;

	assert(i < sizeof(l->part) / sizeof(l->part[0]));
	assert(bytes > 0 && offset + bytes >= offset);
	l->part[i].kind = (uint8_t)kind;
	l->part[i].start = round_down(offset, page);
	l->part[i].end = round_down(offset + bytes - 1, page) + page;
	if (l->part[i].end == 0) /* a lock of everything */
		l->part[i].end = UINT64_MAX;
	l->parts++;
}

static bool
locks_conflict(const struct range_lock *a, const struct range_lock *b)
{
	for (unsigned i = 0; i < a->parts; i++)
		for (unsigned j = 0; j < b->parts; j++)
			if (a->part[i].start < b->part[j].end &&
			    b->part[j].start < a->part[i].end &&
			    (conflicts[a->part[i].kind] &
			     BIT(b->part[j].kind)) != 0)
				return true;
	return false;
}

static void
count_parts(struct range_list *list, const struct range_lock *l, int by)
{
	for (unsigned i = 0; i < l->parts; i++)
		list->parts[l->part[i].kind] += (unsigned)by;
}

/* Is anything of a kind there that l could conflict with? So that many READs,
 * or many WRITEs through the page cache, need not look at each other. */
static bool
may_conflict(const struct range_list *list, const struct range_lock *l)
{
	unsigned kinds = 0, own[RANGE_KINDS] = { 0 };

	for (unsigned i = 0; i < l->parts; i++) {
		kinds |= conflicts[l->part[i].kind];
		own[l->part[i].kind]++;
	}
	for (unsigned k = 0; k < RANGE_KINDS; k++)
		if ((kinds & BIT(k)) != 0 && list->parts[k] > own[k])
			return true;
	return false;
}

/* Does l conflict with anyone who came before it? */
static bool
must_wait(const struct range_list *list, const struct range_lock *l)
{
	if (!may_conflict(list, l))
		return false;
	for (const struct range_lock *p = list->head; p != l; p = p->next)
		if (locks_conflict(p, l))
			return true;
	return false;
}

/* head->prev is the tail, tail->next is NULL. */
static void
append(struct range_list *list, struct range_lock *l)
{
	l->next = NULL;
	if (list->head == NULL) {
		l->prev = l;
		list->head = l;
		return;
	}
	l->prev = list->head->prev;
	l->prev->next = l;
	list->head->prev = l;
}

static void
unlink_lock(struct range_list *list, struct range_lock *l)
{
	if (l->next != NULL)
		l->next->prev = l->prev;
	else if (l != list->head)
		list->head->prev = l->prev;
	if (l == list->head)
		list->head = l->next;
	else
		l->prev->next = l->next;
	l->next = l->prev = NULL;
}

bool
range_enter(struct range_list *list, struct range_lock *l)
{
	assert(l->parts > 0 && l->prev == NULL);
	append(list, l);
	count_parts(list, l, 1);
	l->granted = !must_wait(list, l);
	if (!l->granted)
		list->waiting++;
	return l->granted;
}

struct range_lock *
range_leave(struct range_list *list, struct range_lock *l)
{
	struct range_lock *first = NULL, **last = &first, *next = l->next;
	unsigned left = list->waiting;

	assert(l->granted && l->prev != NULL);
	unlink_lock(list, l);
	count_parts(list, l, -1);
	l->granted = false;
	/* Only those behind l can have waited for it. */
	for (struct range_lock *w = next; w != NULL && left > 0; w = w->next) {
		if (w->granted)
			continue;
		left--;
		if (!locks_conflict(l, w) || must_wait(list, w))
			continue;
		w->granted = true;
		w->wake = NULL;
		*last = w;
		last = &w->wake;
		list->waiting--;
	}
	return first;
}
