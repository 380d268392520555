/* SPDX-License-Identifier: Apache-2.0 */
/* Modes set at run time: what holds for whom, in which order, and until when.
 */
#include "nfsd/override.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static char why[CONF_REASON_BYTES];

static int
set(struct overrides *o, const char *path, const char *key, const char *value)
{
	return override_set(o, path, key, value, why);
}

/* direct-min for a path, 0: not set. */
static uint32_t
direct_min(const struct overrides *o, const char *path)
{
	struct conf_policy p;

	overrides_policy(o, path, &p);
	return p.has_direct_min ? p.direct_min : 0;
}

static void
test_order(void **state)
{
	struct overrides *o = overrides_new(), *copy;
	struct conf_policy p;

	overrides_policy(NULL, "/a", &p);
	assert_false(p.has_direct_min || p.has_edges);
	assert_int_equal(set(o, "/a", "direct-min", "4k"), 0);
	assert_int_equal(direct_min(o, "/a"), 4096);
	assert_int_equal(direct_min(o, "/b"), 0);
	/* For all: it replaces those for single ones, of this key. */
	assert_int_equal(set(o, "/a", "edges", "buffered"), 0);
	assert_int_equal(set(o, NULL, "direct-min", "8k"), 0);
	assert_int_equal(direct_min(o, "/a"), 8192);
	assert_int_equal(direct_min(o, "/b"), 8192);
	/* And one for a single goes over it again. */
	assert_int_equal(set(o, "/b", "direct-min", "16k"), 0);
	assert_int_equal(set(o, "/b", "direct-min", "32k"), 0);
	assert_int_equal(direct_min(o, "/a"), 8192);
	assert_int_equal(direct_min(o, "/b"), 32768);
	overrides_policy(o, "/a", &p);
	assert_true(p.has_edges && p.edges == CONF_EDGES_BUFFERED);
	copy = overrides_copy(o);
	overrides_free(o);
	assert_int_equal(direct_min(copy, "/b"), 32768);
	assert_int_equal(direct_min(copy, "/a"), 8192);
	overrides_free(copy);
}

static void
test_default(void **state)
{
	struct overrides *o = overrides_new();
	const char *path, *key, *value;
	unsigned n = 0;

	assert_int_equal(set(o, NULL, "direct-min", "8k"), 0);
	assert_int_equal(set(o, "/a", "direct-min", "4k"), 0);
	assert_int_equal(set(o, "/a", "direct-min", "default"), 0);
	assert_int_equal(direct_min(o, "/a"), 8192);
	assert_int_equal(set(o, "/a", "direct-min", "4k"), 0);
	while (override_at(o, n, &path, &key, &value))
		n++;
	assert_int_equal(n, 2);
	assert_int_equal(set(o, NULL, "direct-min", "default"), 0);
	assert_int_equal(direct_min(o, "/a"), 0);
	assert_false(override_at(o, 0, &path, &key, &value));
	overrides_free(o);
}

/* What is wrong changes nothing. */
static void
test_wrong(void **state)
{
	struct overrides *o = overrides_new();

	assert_int_equal(set(o, NULL, "direct-min", "8k"), 0);
	assert_int_equal(set(o, NULL, "colour", "red"), -ENOENT);
	assert_int_equal(set(o, NULL, "colour", "default"), -ENOENT);
	assert_int_equal(set(o, NULL, "port", "7"), -ENOENT);
	assert_int_equal(set(o, NULL, "direct-min", "much"), -EINVAL);
	assert_non_null(strstr(why, "not a size"));
	assert_int_equal(set(o, NULL, "direct-min", ""), -EINVAL);
	assert_int_equal(direct_min(o, "/a"), 8192);
	overrides_free(o);
	overrides_free(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_default),
		cmocka_unit_test(test_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
