/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See shadow.h. The file is a sorted list of pieces, each with those WRITEs
 * that its bytes may be of: all that are in flight there, and all ended ones
 * that no other WRITE, begun after they had ended, has replaced by ending. A
 * READ may see what was possible when it began, or any WRITE begun since.
 */
#include "shadow.h"

#include "harness.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CANDIDATES_MAX 120u
#define CHECK_BYTES    (1u << 20)

struct change {
	uint64_t start, end;
	uint64_t begun, ended; /* by the shadow's clock; ended 0: in flight */
	bool zeros;
};

struct piece {
	uint64_t start; /* up to the next piece's */
	unsigned count;
	uint32_t id[CANDIDATES_MAX];
};

/* Sorted, the first one starts at 0 or where a READ does. */
struct pieces {
	struct piece *piece;
	unsigned count, room;
};

struct shadow_read {
	struct shadow_read *next;
	uint64_t start, end;
	struct pieces seen;
	uint32_t *later; /* begun meanwhile */
	unsigned later_count;
};

struct shadow {
	const char *name;
	uint64_t clock;
	struct change *change;
	uint32_t changes, room;
	struct pieces now;
	struct shadow_read *reads;
};

/* content ---------------------------------------------------------------------
 */

static uint64_t
word_of(uint32_t id, uint64_t index)
{
	uint64_t x = index * 0x9e3779b97f4a7c15ull +
		     (uint64_t)id * 0xd6e8feb86659fd93ull;

	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	return x ^ x >> 29;
}

void
shadow_fill(uint32_t id, uint64_t offset, void *buf, size_t n)
{
	uint8_t *p = buf;

	while (n > 0) {
		uint64_t word = word_of(id, offset / 8);
		size_t skip = offset % 8, part = n < 8 - skip ? n : 8 - skip;

		memcpy(p, (uint8_t *)&word + skip, part);
		p += part;
		offset += part;
		n -= part;
	}
}

static void
fill(const struct shadow *s, uint32_t id, uint64_t offset, void *buf, size_t n)
{
	if (s->change[id].zeros)
		memset(buf, 0, n);
	else
		shadow_fill(id, offset, buf, n);
}

/* pieces ----------------------------------------------------------------------
 */

static uint64_t
piece_end(const struct pieces *p, unsigned i)
{
	return i + 1 < p->count ? p->piece[i + 1].start : UINT64_MAX;
}

/* The piece that holds offset. */
static unsigned
find(const struct pieces *p, uint64_t offset)
{
	unsigned low = 0, high = p->count;

	while (high - low > 1) {
		unsigned mid = low + (high - low) / 2;

		if (p->piece[mid].start <= offset)
			low = mid;
		else
			high = mid;
	}
	return low;
}

static void
insert(struct pieces *p, unsigned at, const struct piece *what)
{
	if (p->count == p->room) {
		p->room = p->room * 2 + 8;
		p->piece = reallocarray(p->piece, p->room, sizeof(*p->piece));
		assert_non_null(p->piece);
	}
	memmove(&p->piece[at + 1], &p->piece[at],
		(p->count - at) * sizeof(*p->piece));
	p->piece[at] = *what;
	p->count++;
}

/* A piece starts at offset; which? */
static unsigned
cut(struct pieces *p, uint64_t offset)
{
	unsigned i = find(p, offset);
	struct piece second;

	if (p->piece[i].start == offset || offset == UINT64_MAX)
		return offset == UINT64_MAX ? p->count : i;
	second = p->piece[i];
	second.start = offset;
	insert(p, i + 1, &second);
	return i + 1;
}

static bool
same(const struct piece *a, const struct piece *b)
{
	return a->count == b->count &&
	       memcmp(a->id, b->id, a->count * sizeof(a->id[0])) == 0;
}

/* Join equal neighbours among [first, last] and the one before. */
static void
join(struct pieces *p, unsigned first, unsigned last)
{
	unsigned from = first > 0 ? first - 1 : 0, to = from, i;

	for (i = from + 1; i < p->count; i++) {
		if (i <= last && same(&p->piece[to], &p->piece[i]))
			continue;
		to++;
		if (to != i)
			p->piece[to] = p->piece[i];
	}
	p->count = to + 1;
}

/* changes
 * -----------------------------------------------------------------------
 */

/* Its number: an index. */
static uint32_t
change_add(struct shadow *s, uint64_t start, uint64_t end, bool zeros)
{
	if (s->changes == s->room) {
		s->room = s->room * 2 + 64;
		s->change =
			reallocarray(s->change, s->room, sizeof(*s->change));
		assert_non_null(s->change);
	}
	s->change[s->changes] = (struct change){
		.start = start, .end = end, .begun = ++s->clock, .zeros = zeros
	};
	return s->changes++;
}

struct shadow *
shadow_new(const char *name)
{
	struct shadow *s = calloc(1, sizeof(*s));
	struct piece all = { .count = 1 };

	assert_non_null(s);
	s->name = name;
	all.id[0] = change_add(s, 0, UINT64_MAX, true);
	s->change[all.id[0]].ended = ++s->clock;
	insert(&s->now, 0, &all);
	return s;
}

void
shadow_free(struct shadow *s)
{
	if (s == NULL)
		return;
	assert_null(s->reads);
	free(s->now.piece);
	free(s->change);
	free(s);
}

static void
read_note(struct shadow_read *r, uint32_t id, const struct change *c)
{
	if (c->start >= r->end || c->end <= r->start)
		return;
	r->later =
		reallocarray(r->later, r->later_count + 1, sizeof(*r->later));
	assert_non_null(r->later);
	r->later[r->later_count++] = id;
}

static uint32_t
begin(struct shadow *s, uint64_t start, uint64_t end, bool zeros)
{
	uint32_t id = change_add(s, start, end, zeros);
	unsigned i = cut(&s->now, start), last = cut(&s->now, end);
	struct shadow_read *r;

	for (; i < last; i++) {
		struct piece *p = &s->now.piece[i];

		assert_true(p->count < CANDIDATES_MAX);
		p->id[p->count++] = id;
	}
	for (r = s->reads; r != NULL; r = r->next)
		read_note(r, id, &s->change[id]);
	return id;
}

uint32_t
shadow_begin(struct shadow *s, uint64_t offset, uint64_t n)
{
	return begin(s, offset, offset + n, false);
}

uint32_t
shadow_truncate(struct shadow *s, uint64_t size)
{
	return begin(s, size, UINT64_MAX, true);
}

/* Who had ended before began is gone from this piece. */
static void
replace(const struct shadow *s, struct piece *p, uint64_t began)
{
	unsigned i, n = 0;

	for (i = 0; i < p->count; i++) {
		const struct change *c = &s->change[p->id[i]];

		if (c->ended == 0 || c->ended > began)
			p->id[n++] = p->id[i];
	}
	p->count = n;
}

void
shadow_end(struct shadow *s, uint32_t id)
{
	struct change *c = &s->change[id];
	unsigned first, last, i;

	assert_int_equal(c->ended, 0);
	c->ended = ++s->clock;
	first = cut(&s->now, c->start);
	last = cut(&s->now, c->end);
	for (i = first; i < last; i++)
		replace(s, &s->now.piece[i], c->begun);
	join(&s->now, first, last);
}

/* judging
 * ------------------------------------------------------------------------
 */

struct judged {
	const struct shadow *s;
	const struct shadow_read *r;
	uint64_t offset; /* of data[0] */
	const uint8_t *data;
	uint8_t *scratch;
};

static bool
byte_is(const struct judged *j, uint32_t id, uint64_t at)
{
	uint8_t want;

	fill(j->s, id, at, &want, 1);
	return j->data[at - j->offset] == want;
}

static bool
byte_may_be(const struct judged *j, const struct piece *p, uint64_t at)
{
	unsigned i;

	for (i = 0; i < p->count; i++)
		if (byte_is(j, p->id[i], at))
			return true;
	for (i = 0; i < j->r->later_count; i++) {
		const struct change *c = &j->s->change[j->r->later[i]];

		if (c->start <= at && at < c->end &&
		    byte_is(j, j->r->later[i], at))
			return true;
	}
	return false;
}

static void
tell(const struct shadow *s, const char *what, uint32_t id)
{
	const struct change *c = &s->change[id];

	print_message("  %s %u: [%" PRIu64 ", %" PRIu64 ") begun %" PRIu64
		      " ended %" PRIu64 "%s\n",
		      what, id, c->start, c->end, c->begun, c->ended,
		      c->zeros ? " zeros" : "");
}

/* Whose bytes are they, if any old WRITE's? */
static void
tell_origin(const struct judged *j, uint64_t at, uint64_t end)
{
	uint64_t n = end - at < 16 ? end - at : 16;
	uint8_t want[16];
	uint32_t id;

	for (id = 0; id < j->s->changes; id++) {
		const struct change *c = &j->s->change[id];

		if (c->start > at || c->end < at + n)
			continue;
		fill(j->s, id, at, want, n);
		if (memcmp(want, j->data + (at - j->offset), n) == 0)
			tell(j->s, "holds", id);
	}
}

static void
condemn(const struct judged *j, const struct piece *p, uint64_t at,
	uint64_t end)
{
	uint64_t bad = at;
	unsigned i;

	while (bad < end && !byte_may_be(j, p, bad))
		bad++;
	print_message("%s: bytes [%" PRIu64 ", %" PRIu64 ") are wrong, the "
		      "clock is %" PRIu64 "\n",
		      j->s->name, at, bad, j->s->clock);
	tell_origin(j, at, bad);
	for (i = 0; i < p->count; i++)
		tell(j->s, "may be", p->id[i]);
	for (i = 0; i < j->r->later_count; i++)
		tell(j->s, "began meanwhile:", j->r->later[i]);
	fail_msg("%s: wrong content at %" PRIu64, j->s->name, at);
}

/* [start, end) of one piece. */
static void
judge(const struct judged *j, const struct piece *p, uint64_t start,
      uint64_t end)
{
	unsigned i;
	uint64_t at;

	for (i = 0; i < p->count; i++) {
		fill(j->s, p->id[i], start, j->scratch, end - start);
		if (memcmp(j->scratch, j->data + (start - j->offset),
			   end - start) == 0)
			return;
	}
	for (at = start; at < end; at++)
		if (!byte_may_be(j, p, at))
			condemn(j, p, at, end);
}

static void
judge_all(const struct judged *j, const struct pieces *p, uint64_t start,
	  uint64_t end)
{
	unsigned i;

	for (i = find(p, start); start < end; i++) {
		uint64_t stop = piece_end(p, i) < end ? piece_end(p, i) : end;

		judge(j, &p->piece[i], start, stop);
		start = stop;
	}
}

struct shadow_read *
shadow_read_begin(struct shadow *s, uint64_t offset, uint32_t n)
{
	struct shadow_read *r = calloc(1, sizeof(*r));
	unsigned i;

	assert_non_null(r);
	r->start = offset;
	r->end = offset + n;
	for (i = find(&s->now, offset);
	     i < s->now.count && s->now.piece[i].start < r->end; i++)
		insert(&r->seen, r->seen.count, &s->now.piece[i]);
	r->next = s->reads;
	s->reads = r;
	return r;
}

void
shadow_read_end(struct shadow *s, struct shadow_read *r, const uint8_t *data,
		uint32_t got, bool eof)
{
	struct judged j = { .s = s, .r = r, .offset = r->start };
	uint32_t n = (uint32_t)(r->end - r->start);
	uint8_t *all = calloc(2, n + 1u);
	struct shadow_read **at;

	assert_non_null(all);
	assert_true(got <= n);
	memcpy(all, data, got); /* zeros behind the end */
	j.data = all;
	j.scratch = all + n;
	judge_all(&j, &r->seen, r->start, eof ? r->end : r->start + got);
	for (at = &s->reads; *at != r; at = &(*at)->next)
		;
	*at = r->next;
	free(r->seen.piece);
	free(r->later);
	free(r);
	free(all);
}

void
shadow_check_file(struct shadow *s, const char *path, uint64_t end)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t *buf = malloc(CHECK_BYTES);
	uint64_t at;

	assert_true(fd >= 0 && buf != NULL);
	for (at = 0; at < end; at += CHECK_BYTES) {
		uint32_t n = end - at < CHECK_BYTES ? (uint32_t)(end - at)
						    : CHECK_BYTES;
		struct shadow_read *r = shadow_read_begin(s, at, n);
		ssize_t got = pread(fd, buf, n, (off_t)at);

		assert_true(got >= 0);
		shadow_read_end(s, r, buf, (uint32_t)got, true);
	}
	free(buf);
	close(fd);
}
