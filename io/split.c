/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a WRITE is cut: arithmetic only. The middle is what lies between the
 * first and the last multiple of cut inside the WRITE; head and tail are what
 * is left over at both ends. Nothing is ever cut anywhere else, and cut is
 * never below a page: two pieces of one page, one direct and one buffered,
 * would race in the page cache. It knows no file and no device.
 */
#include "io/io.h"

#include <assert.h>

const char *
split_reason_name(enum split_reason r)
{
	static const char *const names[SPLIT_REASONS] = {
		[SPLIT_YES] = "split",   [SPLIT_ALIGNED] = "aligned",
		[SPLIT_SMALL] = "small", [SPLIT_NO_DIRECT] = "no-direct",
		[SPLIT_MODE] = "mode",
	};

	assert(r < SPLIT_REASONS);
	return names[r];
}

static struct segment
segment(uint64_t start, uint64_t end)
{
	return (struct segment){ .offset = start,
				 .bytes = (uint32_t)(end - start) };
}

static enum split_reason
whole(struct split *s, uint64_t start, uint64_t end, enum split_reason why)
{
	s->head = segment(start, start);
	s->middle = segment(start, start);
	s->tail = segment(start, end);
	return why;
}

static enum split_reason
cut_at(struct split *s, uint64_t start, uint64_t end, uint64_t cut,
       uint32_t direct_min)
{
	/* end is below 2^63, so rounding up cannot overflow. */
	uint64_t first = (start + cut - 1) & ~(cut - 1);
	uint64_t last = end & ~(cut - 1);

	if (last <= first || last - first < direct_min)
		return whole(s, start, end, SPLIT_SMALL);
	s->head = segment(start, first);
	s->middle = segment(first, last);
	s->tail = segment(last, end);
	return first == start && last == end ? SPLIT_ALIGNED : SPLIT_YES;
}

void
split_write(struct split *s, uint64_t offset, uint32_t bytes, uint32_t cut,
	    uint32_t direct_min, enum io_mode mode)
{
	uint64_t end = offset + bytes;

	assert((cut & (cut - 1)) == 0);
	assert(end >= offset && end <= INT64_MAX);
	if (mode != IO_DIRECT)
		s->reason = whole(s, offset, end, SPLIT_MODE);
	else if (cut == 0)
		s->reason = whole(s, offset, end, SPLIT_NO_DIRECT);
	else
		s->reason = cut_at(s, offset, end, cut, direct_min);
}
