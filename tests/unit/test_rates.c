/* SPDX-License-Identifier: Apache-2.0 */
/* nvnfsctl top: two results of stats made into rates. */
#include "nfsd/latency.h"
#include "nfsd/nvnfsctl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CELL                                                                   \
	"{\"client\":\"%s\",\"export\":\"%s\",\"procedure\":\"%s\","           \
	"\"calls\":%u,\"failed\":0,\"bytes_in\":%u,\"bytes_out\":0,\"ns\":0,"  \
	"\"buckets\":[[%u,%u]]}"

/* One cell, all of whose calls took about ns. */
static struct json_object *
cell(const char *client, const char *export, const char *procedure,
     unsigned calls, unsigned bytes, uint64_t ns)
{
	char text[512];

	(void)snprintf(text, sizeof(text), CELL, client, export, procedure,
		       calls, bytes, latency_bucket(ns), calls);
	return json_tokener_parse(text);
}

static struct json_object *
stats(uint64_t at_ns, struct json_object *a, struct json_object *b)
{
	struct json_object *o = json_object_new_object();
	struct json_object *list = json_object_new_array();

	json_object_array_add(list, a);
	if (b != NULL)
		json_object_array_add(list, b);
	json_object_object_add(o, "at_ns", json_object_new_uint64(at_ns));
	json_object_object_add(o, "calls_in_service",
			       json_object_new_uint64(7));
	json_object_object_add(o, "latency", list);
	return o;
}

/* Only what is new counts, its percentiles too. */
static void
test_difference(void **state)
{
	struct json_object *before = stats(
		1000000000, cell("a", "/x", "WRITE", 100, 1 << 20, 5000), NULL);
	struct json_object *now =
		stats(3000000000, cell("a", "/x", "WRITE", 300, 5 << 20, 5000),
		      cell("b", "/x", "READ", 1000, 0, 90000000));
	struct rates r;

	assert_int_equal(rates_make(&r, before, now, GROUP_ALL), 0);
	assert_true(r.seconds == 2);
	assert_int_equal(r.calls_in_service, 7);
	assert_int_equal(r.rows, 2);
	assert_string_equal(r.row[0].procedure, "READ");
	assert_true(r.row[0].calls == 500);
	assert_int_equal(latency_bucket(r.row[0].p50_ns),
			 latency_bucket(90000000));
	assert_string_equal(r.row[1].client, "a");
	assert_true(r.row[1].calls == 100 && r.row[1].mib == 2);
	assert_true(r.calls == 600 && r.mib_in == 2 && r.mib_out == 0);
	rates_free(&r);
	/* Nothing new, no row. */
	assert_int_equal(rates_make(&r, now, now, GROUP_ALL), 0);
	assert_int_equal(r.rows, 0);
	assert_true(r.calls == 0);
	rates_free(&r);
	json_object_put(before);
	json_object_put(now);
}

static void
test_groups(void **state)
{
	struct json_object *before =
		stats(0, cell("z", "/z", "NULL", 1, 0, 300), NULL);
	struct json_object *now =
		stats(1000000000, cell("a", "/x", "WRITE", 10, 0, 5000),
		      cell("b", "/x", "WRITE", 30, 0, 9000));
	struct rates r;

	assert_int_equal(rates_make(&r, before, now, GROUP_CLIENT), 0);
	assert_int_equal(r.rows, 2);
	assert_string_equal(r.row[0].client, "b");
	assert_string_equal(r.row[0].export, "*");
	rates_free(&r);
	assert_int_equal(rates_make(&r, before, now, GROUP_EXPORT), 0);
	assert_int_equal(r.rows, 1);
	assert_string_equal(r.row[0].export, "/x");
	assert_true(r.row[0].calls == 40);
	rates_free(&r);
	assert_int_equal(rates_make(&r, before, now, GROUP_PROCEDURE), 0);
	assert_int_equal(r.rows, 1);
	assert_string_equal(r.row[0].procedure, "WRITE");
	assert_string_equal(r.row[0].client, "*");
	rates_free(&r);
	json_object_put(before);
	json_object_put(now);
}

/* A server of another version, or none of ours. */
static void
test_strange(void **state)
{
	struct json_object *o = json_tokener_parse(
		"{\"latency\":[{\"buckets\":[[99999,1],[0],7]},{}]}");
	struct json_object *empty = json_object_new_object();
	struct rates r;

	assert_int_equal(rates_make(&r, empty, empty, GROUP_ALL), 0);
	assert_int_equal(r.rows, 0);
	rates_free(&r);
	assert_int_equal(rates_make(&r, empty, o, GROUP_ALL), 0);
	rates_free(&r);
	json_object_put(o);
	json_object_put(empty);
}

static void
test_words(void **state)
{
	char out[SHOW_BYTES];

	assert_string_equal(show_size(out, 0), "0 B");
	assert_string_equal(show_size(out, 1536), "1.5 KiB");
	assert_string_equal(show_size(out, 3.0 * 1024 * 1024 * 1024),
			    "3.0 GiB");
	assert_string_equal(show_time(out, 999), "999 ns");
	assert_string_equal(show_time(out, 1500), "1.5 us");
	assert_string_equal(show_time(out, 2.5e6), "2.5 ms");
	assert_string_equal(show_time(out, 119e9), "119.0 s");
	assert_string_equal(show_time(out, 600e9), "10 min");
	assert_string_equal(show_time(out, 36000e9), "10.0 h");
	assert_string_equal(show_time(out, 864000e9), "10.0 d");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_difference),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_strange),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
