/* SPDX-License-Identifier: Apache-2.0 */
/* The content of nvnfsd-load must tell every misplaced byte. */
#include "tests/bench/pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define BYTES 8192u

static void
pieces_make_the_whole(void **state)
{
	uint64_t key = pattern_key("f", 1);
	uint8_t whole[BYTES], part[BYTES];

	pattern_fill(key, 0, whole, BYTES);
	for (uint32_t step = 1; step < 40; step++) {
		for (uint32_t at = 0; at < 400; at += step) {
			pattern_fill(key, at, part, step);
			assert_memory_equal(part, whole + at, step);
			assert_int_equal(pattern_check(key, at, part, step),
					 step);
		}
	}
}

static void
one_wrong_byte_is_found(void **state)
{
	uint64_t key = pattern_key("f", 1);
	uint8_t buf[BYTES];

	for (uint32_t at = 0; at < 64; at++) {
		pattern_fill(key, 5, buf, BYTES);
		buf[at] ^= 1;
		assert_int_equal(pattern_check(key, 5, buf, BYTES), at);
	}
}

/* No word of another place, file or generation passes for the right one. */
static void
other_content_is_wrong_at_once(void **state)
{
	uint64_t key = pattern_key("f", 1);
	uint8_t buf[BYTES];

	for (uint64_t offset = 8; offset < 1u << 20; offset += 8) {
		pattern_fill(key, offset, buf, 8);
		assert_true(pattern_check(key, 0, buf, 8) < 8);
	}
	pattern_fill(pattern_key("f", 2), 0, buf, BYTES);
	assert_true(pattern_check(key, 0, buf, BYTES) < 8);
	pattern_fill(pattern_key("g", 1), 0, buf, BYTES);
	assert_true(pattern_check(key, 0, buf, BYTES) < 8);
	memset(buf, 0, BYTES);
	assert_true(pattern_check(key, 0, buf, BYTES) < 8);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_make_the_whole),
		cmocka_unit_test(one_wrong_byte_is_found),
		cmocka_unit_test(other_content_is_wrong_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
