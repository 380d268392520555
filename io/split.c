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
		[SPLIT_MODE] = "mode",   [SPLIT_CACHED] = "cached",
		[SPLIT_LONE] = "lone",   [SPLIT_ATOMIC] = "atomic",
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

void
split_whole(struct split *s, uint64_t offset, uint32_t bytes,
	    enum split_reason why)
{
	s->head = segment(offset, offset);
	s->middle = segment(offset, offset);
	s->tail = segment(offset, offset + bytes);
	s->reason = why;
}

bool
split_atomic(struct split *s, uint64_t offset, uint32_t bytes, uint32_t min,
	     uint32_t max)
{
	if ((bytes & (bytes - 1)) != 0 || bytes < min || bytes > max ||
	    offset % bytes != 0)
		return false;
	s->head = segment(offset, offset);
	s->middle = segment(offset, offset + bytes);
	s->tail = segment(offset + bytes, offset + bytes);
	s->reason = SPLIT_ATOMIC;
	return true;
}

void
split_write(struct split *s, uint64_t offset, uint32_t bytes, uint32_t cut,
	    uint32_t direct_min, enum io_mode mode)
{
	uint64_t end = offset + bytes, first, last;

	assert((cut & (cut - 1)) == 0);
	assert(end >= offset && end <= INT64_MAX);
	if (mode != IO_DIRECT || cut == 0) {
		split_whole(s, offset, bytes,
			    mode != IO_DIRECT ? SPLIT_MODE : SPLIT_NO_DIRECT);
		return;
	}
	/* end is below 2^63, so rounding up cannot overflow. */
	first = (offset + cut - 1) & ~((uint64_t)cut - 1);
	last = end & ~((uint64_t)cut - 1);
	if (last <= first || last - first < direct_min) {
		split_whole(s, offset, bytes, SPLIT_SMALL);
		return;
	}
	s->head = segment(offset, first);
	s->middle = segment(first, last);
	s->tail = segment(last, end);
	s->reason = first == offset && last == end ? SPLIT_ALIGNED : SPLIT_YES;
}
