/* SPDX-License-Identifier: Apache-2.0 */
/* The histogram of nvnfsd-load against values that are known one by one. */
#include "tests/bench/histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct histogram t;

static int
clear(void **state)
{
	memset(&t, 0, sizeof(t));
	return 0;
}

static void
nothing_is_zero(void **state)
{
	assert_int_equal(histogram_quantile(&t, 0.5), 0);
}

static void
small_values_are_exact(void **state)
{
	for (uint64_t ns = 1; ns <= 100; ns++)
		histogram_add(&t, ns);
	assert_int_equal(histogram_quantile(&t, 0.5), 50);
	assert_int_equal(histogram_quantile(&t, 0.99), 99);
	assert_int_equal(histogram_quantile(&t, 1), 100);
	assert_int_equal(histogram_quantile(&t, 0), 1);
	assert_int_equal(t.sum_ns, 5050);
	assert_int_equal(t.min_ns, 1);
	assert_int_equal(t.max_ns, 100);
}

/* Every power of two, one below and one above it. */
static void
any_value_is_right_within_a_class(void **state)
{
	for (unsigned bit = 1; bit < 63; bit++)
		for (int d = -1; d <= 1; d++) {
			uint64_t ns = (1ull << bit) + (uint64_t)(int64_t)d;
			uint64_t got;

			clear(NULL);
			histogram_add(&t, ns);
			histogram_add(&t, UINT64_MAX);
			got = histogram_quantile(&t, 0.5);
			assert_true(got >= ns);
			assert_true(got - ns <= ns / 128 + 1);
		}
}

static void
no_quantile_is_above_the_highest(void **state)
{
	histogram_add(&t, 1000001);
	assert_int_equal(histogram_quantile(&t, 0.5), 1000001);
	assert_int_equal(histogram_quantile(&t, 1), 1000001);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nothing_is_zero, clear),
		cmocka_unit_test_setup(small_values_are_exact, clear),
		cmocka_unit_test_setup(any_value_is_right_within_a_class,
				       clear),
		cmocka_unit_test_setup(no_quantile_is_above_the_highest, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
