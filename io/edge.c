/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Half-written pages. The object is the edge_table of an inode: byte spans
 * that we wrote through the page cache and mean to drop from there. A page
 * whose bytes all lie inside one span has been completed by both neighbours;
 * once a sync that began after that has succeeded, it is dropped, so that it
 * never has to be read back and does not stay. Plain data: the caller holds the
 * inode's mutex. It knows no file and makes no system call.
 *
 * Large folios: a WRITE of some pages through the cache makes folios of up to
 * its own size (naturally aligned, inside its page-rounded range), and the
 * kernel drops a folio only as a whole. So a half page at the end of a span may
 * share its folio with full pages before it. These are taken and tried at once,
 * and also stay in the span, not fresh, so that the drop is repeated over the
 * whole folio when the half page is completed. Edges of a split are shorter
 * than a page and make single pages.
 */
#include "io/file.h"

#include <stdlib.h>
#include <string.h>

#define EDGE_ROOM_FIRST 16u

void
edge_init(struct edge_table *t, uint64_t page)
{
	*t = (struct edge_table){ .page = page, .fold = page };
}

void
edge_fini(struct edge_table *t)
{
	free(t->span);
	free(t->spare);
	free(t->out);
	*t = (struct edge_table){ 0 };
}

static uint64_t
span_pages(const struct edge_table *t, const struct edge_span *s)
{
	return (round_up(s->end, t->page) - round_down(s->start, t->page)) /
	       t->page;
}

static int
grow_one(struct edge_span **p, unsigned room)
{
	struct edge_span *n = reallocarray(*p, room, sizeof(**p));

	if (n == NULL)
		return -ENOMEM;
	*p = n;
	return 0;
}

static unsigned
room_for(unsigned had, unsigned spans)
{
	unsigned room = had == 0 ? EDGE_ROOM_FIRST : had;

	while (room < spans)
		room *= 2;
	return room;
}

/* Both arrays hold room spans, or (after a failure) more. */
static bool
grow_to(struct edge_table *t, unsigned spans)
{
	unsigned room = room_for(t->room, spans);

	if (room == t->room)
		return true;
	if (grow_one(&t->span, room) != 0 || grow_one(&t->spare, room) != 0)
		return false;
	t->room = room;
	return true;
}

/* Only when nothing is out: whoever took it reads it without the mutex. */
static bool
grow_out(struct edge_table *t, unsigned spans)
{
	unsigned room = room_for(t->out_room, spans);

	assert(t->outs == 0);
	if (room == t->out_room)
		return true;
	if (grow_one(&t->out, room) != 0)
		return false;
	t->out_room = room;
	return true;
}

static bool
has_room(struct edge_table *t)
{
	return t->spans < EDGE_SPANS_HARD && grow_to(t, t->spans + 1);
}

/* The first span that ends at or after offset. */
static unsigned
find(const struct edge_table *t, uint64_t offset)
{
	unsigned low = 0, high = t->spans;

	while (low < high) {
		unsigned mid = low + (high - low) / 2;

		if (t->span[mid].end < offset)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The kernel's order for a write of n bytes: the power of two below it. */
static void
learn_fold(struct edge_table *t, uint64_t n)
{
	while (t->fold * 2 <= n)
		t->fold *= 2;
}

bool
edge_add(struct edge_table *t, uint64_t start, uint64_t end)
{
	unsigned first, last;
	struct edge_span s = { start, end, ++t->age, true };

	assert(start < end);
	learn_fold(t, end - start);
	first = find(t, start);
	for (last = first; last < t->spans && t->span[last].start <= end;
	     last++) {
		if (t->span[last].start < s.start)
			s.start = t->span[last].start;
		if (t->span[last].end > s.end)
			s.end = t->span[last].end;
		if (t->span[last].fresh)
			t->pages -= span_pages(t, &t->span[last]);
	}
	if (last == first && !has_room(t))
		return false;
	if (last != first + 1) /* nothing moves where one was replaced */
		memmove(&t->span[first + 1], &t->span[last],
			(t->spans - last) * sizeof(s));
	t->span[first] = s;
	t->spans = t->spans - (last - first) + 1;
	t->pages += span_pages(t, &s);
	return true;
}

static uint64_t
pages_within(const struct edge_table *t, const struct edge_span *s,
	     uint64_t start, uint64_t end)
{
	uint64_t from = round_down(s->start, t->page);
	uint64_t to = round_up(s->end, t->page);

	if (from < start)
		from = start;
	if (to > end)
		to = end;
	return from < to ? (to - from) / t->page : 0;
}

uint64_t
edge_pages_in(const struct edge_table *t, uint64_t start, uint64_t end)
{
	uint64_t n = 0;

	for (unsigned i = find(t, start);
	     i < t->spans && t->span[i].start < end; i++)
		n += pages_within(t, &t->span[i], start, end);
	for (unsigned i = 0; i < t->outs; i++)
		n += pages_within(t, &t->out[i], start, end);
	return n;
}

static void
put_out(struct edge_table *t, uint64_t start, uint64_t end)
{
	struct edge_span *o = t->outs > 0 ? &t->out[t->outs - 1] : NULL;

	/* Two halves of one page, or neighbouring pages: one drop. */
	if (o != NULL && start <= o->end) {
		if (start < o->start)
			o->start = start;
		if (end > o->end)
			o->end = end;
		return;
	}
	assert(t->outs < t->out_room);
	t->out[t->outs++] = (struct edge_span){ .start = start, .end = end };
}

/* Keep [start, end) of a taken span in the table that is being made. Where
 * memory for both ends of each was refused, let this one go. */
static void
keep(struct edge_table *t, unsigned *spans, uint64_t start, uint64_t end,
     const struct edge_span *of)
{
	struct edge_span s = { start, end, of->age, false };

	if (start >= end)
		return;
	if (*spans == t->room) {
		put_out(t, round_down(start, t->page), round_up(end, t->page));
		return;
	}
	t->spare[(*spans)++] = s;
}

/* The full pages of s go out; its ends stay, each as far as a folio may reach
 * that holds the half page there. */
static void
take_full(struct edge_table *t, unsigned *spans, const struct edge_span *s)
{
	uint64_t full = round_up(s->start, t->page);
	uint64_t full_end = round_down(s->end, t->page);
	uint64_t left = full, right = full_end;

	if (full >= full_end || !s->fresh) {
		keep(t, spans, s->start, s->end, s);
		return;
	}
	t->completed += (full_end - full) / t->page;
	if (s->start < full)
		left = round_up(full, t->fold);
	if (s->end > full_end)
		right = round_down(full_end, t->fold);
	if (left > full_end)
		left = full_end;
	if (right < full)
		right = full;
	if (s->start < full && s->end > full_end && right <= left) {
		put_out(t, full, full_end);
		keep(t, spans, s->start, s->end, s);
		return;
	}
	/* In the order of offsets, as put_out wants it. */
	if (s->start < full)
		keep(t, spans, s->start, left, s);
	put_out(t, full, full_end);
	if (s->end > full_end)
		keep(t, spans, right, s->end, s);
}

/* What is older goes as a whole: half of the ages that there are. */
static uint64_t
age_limit(const struct edge_table *t)
{
	uint64_t oldest = t->age;

	for (unsigned i = 0; i < t->spans; i++)
		if (t->span[i].age < oldest)
			oldest = t->span[i].age;
	return oldest + (t->age - oldest) / 2 + 1;
}

static void
take(struct edge_table *t, uint64_t limit)
{
	struct edge_span *was;
	unsigned n = t->spans, spans = 0;

	assert(t->outs == 0);
	/* A span gives one range at the most. Without memory for them the pages
	 * stay until the next time. */
	if (n == 0 || !grow_out(t, n))
		return;
	(void)grow_to(t, 2 * n);
	was = t->span;
	t->pages = 0;
	for (unsigned i = 0; i < n; i++) {
		const struct edge_span *s = &was[i];

		if (s->age < limit)
			put_out(t, round_down(s->start, t->page),
				round_up(s->end, t->page));
		else
			take_full(t, &spans, s);
	}
	t->span = t->spare;
	t->spare = was;
	t->spans = spans;
}

void
edge_take(struct edge_table *t, bool is_short)
{
	take(t, is_short || t->spans > EDGE_SPANS_SOFT ? age_limit(t) : 0);
}

void
edge_take_all(struct edge_table *t)
{
	take(t, UINT64_MAX);
}

void
edge_put_out(struct edge_table *t)
{
	t->outs = 0;
}

void
edge_forget(struct edge_table *t)
{
	t->spans = 0;
	t->pages = 0;
}
