/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The split as a property: whatever the WRITE, its segments lie in order, cover
 * it exactly once, the middle is aligned and as large as it can be, and no cut
 * lies anywhere but at a multiple of the alignment. Exhaustive for small
 * numbers, random for large ones.
 */
#include "io/io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define RANDOM_WRITES 2000000

static uint64_t seed = 0x9e3779b97f4a7c15ull;

static uint64_t
next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Counted byte by byte, as the definition says it, not as the code does. */
static uint64_t
first_multiple(uint64_t from, uint64_t cut)
{
	return from % cut == 0 ? from : from + (cut - from % cut);
}

static void
check_whole(const struct split *s, uint64_t offset, uint32_t bytes)
{
	assert_int_equal(s->head.bytes, 0);
	assert_int_equal(s->middle.bytes, 0);
	assert_int_equal(s->tail.offset, offset);
	assert_int_equal(s->tail.bytes, bytes);
}

static void
check_cut(const struct split *s, uint64_t offset, uint32_t bytes, uint64_t cut)
{
	uint64_t end = offset + bytes;

	assert_int_equal(s->head.offset, offset);
	assert_int_equal(s->head.offset + s->head.bytes, s->middle.offset);
	assert_int_equal(s->middle.offset + s->middle.bytes, s->tail.offset);
	assert_int_equal(s->tail.offset + s->tail.bytes, end);
	assert_int_equal(s->middle.offset % cut, 0);
	assert_int_equal(s->middle.bytes % cut, 0);
	assert_true(s->head.bytes < cut);
	assert_true(s->tail.bytes < cut);
	assert_true(s->middle.bytes > 0);
	assert_int_equal(s->reason == SPLIT_ALIGNED,
			 s->head.bytes == 0 && s->tail.bytes == 0);
}

static void
check(uint64_t offset, uint32_t bytes, uint32_t cut, uint32_t direct_min)
{
	uint64_t first = first_multiple(offset, cut);
	uint64_t end = offset + bytes;
	uint64_t middle = end - end % cut > first ? end - end % cut - first : 0;
	struct split s;

	split_write(&s, offset, bytes, cut, direct_min, IO_DIRECT);
	if (middle == 0 || middle < direct_min) {
		assert_int_equal(s.reason, SPLIT_SMALL);
		check_whole(&s, offset, bytes);
		return;
	}
	assert_true(s.reason == SPLIT_YES || s.reason == SPLIT_ALIGNED);
	assert_int_equal(s.middle.bytes, middle);
	check_cut(&s, offset, bytes, cut);
}

static void
exhaustive_small(void **state)
{
	static const uint32_t cuts[] = { 1, 2, 8, 16 };
	static const uint32_t mins[] = { 0, 1, 8, 17, 32 };

	(void)state;
	for (unsigned c = 0; c < 4; c++)
		for (unsigned m = 0; m < 5; m++)
			for (uint64_t offset = 0; offset < 40; offset++)
				for (uint32_t n = 1; n < 80; n++)
					check(offset, n, cuts[c], mins[m]);
}

static void
random_large(void **state)
{
	(void)state;
	for (int i = 0; i < RANDOM_WRITES; i++) {
		uint32_t cut = 1u << (9 + next_random() % 8);
		uint32_t bytes = 1 + (uint32_t)(next_random() %
						(IO_TRANSFER_BYTES_MAX - 1));
		uint64_t offset = next_random() >> (1 + next_random() % 50);
		uint32_t min = (uint32_t)(next_random() % (256u << 10));

		if (i % 3 == 0)
			bytes = 1 + bytes % 20000;
		if (i % 5 == 0)
			offset = offset / cut * cut;
		if (offset > (uint64_t)INT64_MAX - bytes)
			offset = (uint64_t)INT64_MAX - bytes;
		check(offset, bytes, cut, min);
	}
}

/* A power of two at a multiple of itself, within what can be written so. */
static void
atomic(void **state)
{
	struct split s;

	(void)state;
	for (uint32_t n = 1; n < 70000; n++)
		for (uint64_t at = 0; at < 4; at++) {
			bool is = (n & (n - 1)) == 0 && n >= 4096 && n <= 32768;
			bool here = is && at * 8192 % n == 0;

			assert_int_equal(
				split_atomic(&s, at * 8192, n, 4096, 32768),
				here);
			if (!here)
				continue;
			assert_int_equal(s.reason, SPLIT_ATOMIC);
			assert_int_equal(s.middle.offset, at * 8192);
			assert_int_equal(s.middle.bytes, n);
			assert_int_equal(s.head.bytes + s.tail.bytes, 0);
		}
	/* No device: never. */
	assert_false(split_atomic(&s, 0, 4096, 0, 0));
}

static void
at_the_largest_offset(void **state)
{
	(void)state;
	for (uint32_t bytes = 1; bytes < 20000; bytes++)
		check((uint64_t)INT64_MAX - bytes, bytes, 4096, 0);
}

static void
reasons(void **state)
{
	struct split s;

	(void)state;
	split_write(&s, 0, 1u << 20, 4096, 0, IO_BUFFERED);
	assert_int_equal(s.reason, SPLIT_MODE);
	check_whole(&s, 0, 1u << 20);
	split_write(&s, 5, 1u << 20, 4096, 0, IO_DONTCACHE);
	assert_int_equal(s.reason, SPLIT_MODE);
	check_whole(&s, 5, 1u << 20);
	split_write(&s, 7, 9000, 0, 0, IO_DIRECT);
	assert_int_equal(s.reason, SPLIT_NO_DIRECT);
	check_whole(&s, 7, 9000);
	split_write(&s, 47008, 47008, 4096, 32768, IO_DIRECT);
	assert_int_equal(s.reason, SPLIT_YES);
	split_write(&s, 1u << 20, 1u << 20, 4096, 32768, IO_DIRECT);
	assert_int_equal(s.reason, SPLIT_ALIGNED);
	split_write(&s, 4096, 28672, 4096, 32768, IO_DIRECT);
	assert_int_equal(s.reason, SPLIT_SMALL);
	for (int r = 0; r < SPLIT_REASONS; r++)
		assert_non_null(split_reason_name((enum split_reason)r));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_small),
		cmocka_unit_test(random_large),
		cmocka_unit_test(atomic),
		cmocka_unit_test(at_the_largest_offset),
		cmocka_unit_test(reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
