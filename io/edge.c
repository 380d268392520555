/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What we wrote through the page cache. The object is the edge_table of an
 * inode: byte spans, fresh ones until they are written back, and those that are
 * to leave the cache until they are dropped. A page whose bytes all lie inside
 * one span has been completed by both neighbours; once it was written back
 * after that, it is dropped, so that it never has to be read back and does not
 * stay. Plain data: the caller holds the inode's mutex. It knows no file and
 * makes no system call.
 *
 * A flush goes for long runs: among interleaved writers the half pages between
 * them wait for a straggler, and written back now they would be again.
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
#define EDGE_ROOM_KEEP  256u /* of an empty table */
#define RUN_PAGES       64u  /* a long run */

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

/* The first of n spans that ends at or after offset. */
static unsigned
find(const struct edge_span *span, unsigned n, uint64_t offset)
{
	unsigned low = 0, high = n;

	while (low < high) {
		unsigned mid = low + (high - low) / 2;

		if (span[mid].end < offset)
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

static bool
is_long(const struct edge_table *t, const struct edge_span *s)
{
	return span_pages(t, s) >= RUN_PAGES;
}

static void
count_fresh(struct edge_table *t, const struct edge_span *s)
{
	t->pages += span_pages(t, s);
	if (is_long(t, s))
		t->long_pages += span_pages(t, s);
}

static void
uncount_fresh(struct edge_table *t, const struct edge_span *s)
{
	t->pages -= span_pages(t, s);
	if (is_long(t, s))
		t->long_pages -= span_pages(t, s);
}

static bool
no_room(struct edge_table *t, const struct edge_span *s)
{
	t->loose += span_pages(t, s);
	t->pages += span_pages(t, s);
	return false;
}

bool
edge_add(struct edge_table *t, uint64_t start, uint64_t end, bool drop)
{
	unsigned first, last;
	struct edge_span s = { start, end, ++t->age, true, drop };

	assert(start < end);
	learn_fold(t, end - start);
	first = find(t->span, t->spans, start);
	for (last = first; last < t->spans && t->span[last].start <= end;
	     last++)
		;
	if (last == first && !has_room(t))
		return no_room(t, &s);
	for (unsigned i = first; i < last; i++) {
		const struct edge_span *o = &t->span[i];

		if (o->start < s.start)
			s.start = o->start;
		if (o->end > s.end)
			s.end = o->end;
		s.drop |= o->drop;
		if (o->fresh)
			uncount_fresh(t, o);
	}
	if (last != first + 1) /* nothing moves where one was replaced */
		memmove(&t->span[first + 1], &t->span[last],
			(t->spans - last) * sizeof(s));
	t->span[first] = s;
	t->spans = t->spans - (last - first) + 1;
	count_fresh(t, &s);
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

static uint64_t
pages_among(const struct edge_table *t, const struct edge_span *span,
	    unsigned spans, uint64_t start, uint64_t end)
{
	uint64_t n = 0;

	for (unsigned i = find(span, spans, start);
	     i < spans && span[i].start < end; i++)
		n += pages_within(t, &span[i], start, end);
	return n;
}

uint64_t
edge_pages_in(const struct edge_table *t, uint64_t start, uint64_t end)
{
	return pages_among(t, t->span, t->spans, start, end) +
	       pages_among(t, t->out, t->outs, start, end);
}

/* taking ------------------------------------------------------------------- */

/* Beyond the last place the last run grows, over what lies between. */
static void
put_run(struct edge_table *t, const struct edge_span *s)
{
	uint64_t start = round_down(s->start, t->page);
	uint64_t end = round_up(s->end, t->page);
	struct edge_run *last = t->runs > 0 ? &t->run[t->runs - 1] : NULL;

	if (last != NULL && (start <= last->end || t->runs == EDGE_RUNS_MAX)) {
		if (end > last->end)
			last->end = end;
		return;
	}
	t->run[t->runs++] = (struct edge_run){ start, end };
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
	assert(t->out != NULL && t->outs < t->out_room);
	t->out[t->outs++] = (struct edge_span){ .start = start, .end = end };
}

/* Keep [start, end) of s in the table that is being made. Where memory for both
 * ends of each was refused, let this one go. */
static void
keep(struct edge_table *t, unsigned *spans, uint64_t start, uint64_t end,
     const struct edge_span *of)
{
	struct edge_span s = { start, end, of->age, false, of->drop };

	if (start >= end)
		return;
	if (*spans == t->room) {
		put_run(t, &s);
		put_out(t, round_down(start, t->page), round_up(end, t->page));
		return;
	}
	t->spare[(*spans)++] = s;
}

/* The whole of s stays as it is. */
static void
keep_all(struct edge_table *t, unsigned *spans, const struct edge_span *s)
{
	unsigned at = *spans;

	keep(t, spans, s->start, s->end, s);
	if (at == *spans || !s->fresh)
		return;
	t->spare[at].fresh = true;
	count_fresh(t, s);
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

/* Half of the ages that there are lie below. */
static uint64_t
age_limit(const struct edge_table *t, bool only_fresh)
{
	uint64_t oldest = t->age;

	for (unsigned i = 0; i < t->spans; i++)
		if (t->span[i].age < oldest &&
		    (t->span[i].fresh || !only_fresh))
			oldest = t->span[i].age;
	return oldest + (t->age - oldest) / 2 + 1;
}

/* Do long runs make up half of what is fresh? */
static bool
mostly_long(const struct edge_table *t)
{
	return t->long_pages >= t->pages / 2;
}

/* What a take takes: spans older than old go as a whole; fresh ones that are
 * neither long nor older than short_old stay. */
struct taking {
	uint64_t old, short_old;
};

static void
take_span(struct edge_table *t, unsigned *spans, const struct edge_span *s,
	  const struct taking *k)
{
	bool old = s->age < k->old;

	if (!old && s->fresh && s->age >= k->short_old && !is_long(t, s)) {
		keep_all(t, spans, s);
		return;
	}
	if (s->fresh)
		put_run(t, s);
	if (!s->drop)
		return;
	if (old)
		put_out(t, round_down(s->start, t->page),
			round_up(s->end, t->page));
	else
		take_full(t, spans, s);
}

/* Without room nothing was noted, so all of the file is meant. */
static void
take_loose(struct edge_table *t)
{
	if (t->loose == 0)
		return;
	t->run[0] = (struct edge_run){ 0, INT64_MAX };
	t->runs = 1;
	t->loose = 0;
}

static void
take(struct edge_table *t, const struct taking *k)
{
	struct edge_span *was;
	unsigned n = t->spans, spans = 0;

	assert(t->outs == 0);
	t->runs = 0;
	if (n == 0 && t->loose == 0)
		return;
	/* A span gives one range at the most. Without memory for them the pages
	 * stay until the next time. */
	if (!grow_out(t, n))
		return;
	(void)grow_to(t, 2 * n);
	was = t->span;
	t->pages = t->long_pages = 0;
	for (unsigned i = 0; i < n; i++)
		take_span(t, &spans, &was[i], k);
	take_loose(t);
	t->span = t->spare;
	t->spare = was;
	t->spans = spans;
}

void
edge_take(struct edge_table *t, enum edge_take how)
{
	struct taking k = { 0, UINT64_MAX };

	if (how == EDGE_TAKE_ALL)
		k.old = UINT64_MAX;
	else if (how == EDGE_TAKE_SHORT || t->spans > EDGE_SPANS_SOFT)
		k.old = age_limit(t, false);
	if (how == EDGE_TAKE_FLUSH && t->loose == 0 && mostly_long(t))
		k.short_old = 0;
	else if (how == EDGE_TAKE_FLUSH && t->loose == 0 &&
		 t->spans > RUN_PAGES)
		k.short_old = age_limit(t, true);
	take(t, &k);
}

/* From the first to the last that is fresh. */
static unsigned
one_run(const struct edge_table *t, struct edge_run *run)
{
	unsigned n = 0;

	for (unsigned i = 0; i < t->spans; i++) {
		if (!t->span[i].fresh)
			continue;
		if (n++ == 0)
			run->start = round_down(t->span[i].start, t->page);
		run->end = round_up(t->span[i].end, t->page);
	}
	return n > 0;
}

unsigned
edge_runs(const struct edge_table *t, struct edge_run *run, unsigned max)
{
	unsigned n = 0;

	if (!mostly_long(t))
		return one_run(t, run);
	for (unsigned i = 0; i < t->spans && n < max; i++) {
		const struct edge_span *s = &t->span[i];

		if (s->fresh && is_long(t, s))
			run[n++] =
				(struct edge_run){ round_down(s->start,
							      t->page),
						   round_up(s->end, t->page) };
	}
	return n;
}

/* A burst of many spans shall not cost memory until the file is closed. */
static void
shrink(struct edge_table *t)
{
	if (t->spans > 0 ||
	    (t->room <= EDGE_ROOM_KEEP && t->out_room <= EDGE_ROOM_KEEP))
		return;
	free(t->span);
	free(t->spare);
	free(t->out);
	t->span = t->spare = t->out = NULL;
	t->room = t->out_room = 0;
}

void
edge_put_out(struct edge_table *t)
{
	t->outs = t->runs = 0;
	shrink(t);
}

void
edge_forget(struct edge_table *t)
{
	t->spans = 0;
	t->pages = t->long_pages = t->loose = 0;
}
