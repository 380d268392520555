/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Golden pairs: golden/DIR/NAME.in is read, and what comes of it (messages,
 * then the normal form where there were no errors) must be golden/DIR/NAME.ok.
 * The normal form is read again and must give itself.
 */
#ifndef NVNFSD_TEST_GOLDEN_H
#define NVNFSD_TEST_GOLDEN_H

#include "conf/parse.h"

#include <stdarg.h>

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <glob.h>

/* Parse text; the normal form goes to out when there were no errors. Returns
 * what the parser returned. */
typedef int golden_fn(const char *text, size_t n, const char *name,
		      struct conf_report *r, FILE *out);

/* Not inline: gcc 12 then takes what strstr finds for a pointer to text itself
 * (-Wdangling-pointer). */
__attribute__((noinline, unused)) static char *
golden_text(const char *path, size_t *ret_bytes)
{
	char *text = NULL;

	assert_int_equal(conf_text_read(path, &text, ret_bytes), 0);
	return text;
}

static inline void
golden_messages(const struct conf_report *r, FILE *out)
{
	for (unsigned i = 0; i < r->count; i++)
		assert_true(
			fprintf(out, "%s: %s\n",
				r->messages[i].warning ? "warning" : "error",
				r->messages[i].text) > 0);
}

/* The normal form read again is itself, without an error. */
static inline void
golden_again(golden_fn *parse, const char *normal, size_t n)
{
	struct conf_report r = { 0 };
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(out);
	assert_int_equal(parse(normal, n, "normal", &r, out), 0);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, normal);
	assert_int_equal(r.errors, 0);
	free(text);
	conf_report_fini(&r);
}

static inline void
golden_pair(golden_fn *parse, const char *path)
{
	struct conf_report r = { 0 };
	char *in, *ok, *normal = NULL, *said = NULL, *ok_path = strdup(path);
	size_t in_bytes, ok_bytes, normal_bytes = 0, said_bytes = 0;
	FILE *out = open_memstream(&normal, &normal_bytes);
	FILE *all = open_memstream(&said, &said_bytes);
	int error;

	assert_true(ok_path && out && all);
	memcpy(ok_path + strlen(path) - 2, "ok", 2);
	in = golden_text(path, &in_bytes);
	ok = golden_text(ok_path, &ok_bytes);
	error = parse(in, in_bytes, strrchr(path, '/') + 1, &r, out);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(error != 0, r.errors != 0);
	golden_messages(&r, all);
	assert_true(fputs(normal, all) >= 0);
	assert_int_equal(fclose(all), 0);
	assert_string_equal(said, ok);
	if (!error)
		golden_again(parse, normal, normal_bytes);
	free(in);
	free(ok);
	free(ok_path);
	free(normal);
	free(said);
	conf_report_fini(&r);
}

/* All pairs of a directory, at least at_least. */
static inline void
golden_run(golden_fn *parse, const char *dir, size_t at_least)
{
	char pattern[4096];
	glob_t found;

	(void)snprintf(pattern, sizeof(pattern),
		       SOURCE_ROOT "/tests/unit/golden/%s/*.in", dir);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_true(found.gl_pathc >= at_least);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		print_message("%s\n", found.gl_pathv[i]);
		golden_pair(parse, found.gl_pathv[i]);
	}
	globfree(&found);
}

#endif
