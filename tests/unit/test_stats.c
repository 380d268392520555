/* SPDX-License-Identifier: Apache-2.0 */
/* What the counters have grown by since reset-stats, exports come and gone. */
#include "nfsd/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* As stats_json makes it, of a few rows: bytes and a gauge by export. */
static struct json_object *
stats(const char *exports, unsigned bytes, unsigned spans, unsigned rejected)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "direct_bytes",
			       json_object_new_uint64(bytes));
	json_object_object_add(o, "edge_spans", json_object_new_uint64(spans));
	json_object_object_add(o, "rejected", json_object_new_uint64(rejected));
	json_object_object_add(o, "exports", json_tokener_parse(exports));
	return o;
}

static uint64_t
number(struct json_object *o, const char *name)
{
	struct json_object *value;

	assert_true(json_object_object_get_ex(o, name, &value));
	return json_object_get_uint64(value);
}

static struct json_object *
part(struct json_object *o, const char *name, const char *inner)
{
	struct json_object *value;

	assert_true(json_object_object_get_ex(o, name, &value));
	assert_true(json_object_object_get_ex(value, inner, &value));
	return value;
}

/* Counters are told from then on, gauges as they are. */
static void
test_growth(void **state)
{
	struct json_object *was = stats("{\"/a\":{\"direct_bytes\":100,"
					"\"edge_spans\":9}}",
					100, 9, 3);
	struct json_object *now = stats("{\"/a\":{\"direct_bytes\":150,"
					"\"edge_spans\":4}}",
					150, 4, 5);

	stats_subtract(now, was);
	assert_int_equal(number(now, "direct_bytes"), 50);
	assert_int_equal(number(now, "edge_spans"), 4);
	assert_int_equal(number(now, "rejected"), 2);
	assert_int_equal(number(part(now, "exports", "/a"), "direct_bytes"),
			 50);
	json_object_put(now);
	json_object_put(was);
}

/* An export that was withdrawn takes nothing from what the others did; one
 * that came counts whole, and one that came back counts anew. */
static void
test_withdrawn(void **state)
{
	struct json_object *was = stats("{\"/a\":{\"direct_bytes\":100,"
					"\"writes\":{\"split\":7}},"
					"\"/b\":{\"direct_bytes\":10,"
					"\"writes\":{\"split\":2}},"
					"\"/c\":{\"direct_bytes\":500}}",
					610, 0, 0);
	struct json_object *now = stats("{\"/b\":{\"direct_bytes\":40,"
					"\"writes\":{\"split\":6}},"
					"\"/c\":{\"direct_bytes\":200},"
					"\"/d\":{\"direct_bytes\":1}}",
					241, 0, 0);

	stats_subtract(now, was);
	assert_int_equal(number(part(now, "exports", "/b"), "direct_bytes"),
			 30);
	assert_int_equal(number(part(now, "exports", "/c"), "direct_bytes"),
			 200);
	assert_int_equal(number(part(now, "exports", "/d"), "direct_bytes"), 1);
	assert_int_equal(number(now, "direct_bytes"), 231);
	assert_int_equal(json_object_get_uint64(part(now, "writes", "split")),
			 4);
	json_object_put(now);
	json_object_put(was);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_withdrawn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
