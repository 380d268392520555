/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Export tables: golden pairs, tables from several files and the command line,
 * and that sample and man page know every option.
 */
#include "tests/unit/golden.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static int
parse(const char *text, size_t n, const char *name, struct conf_report *r,
      FILE *out)
{
	struct conf_exports e;
	int error = conf_exports_parse(&e, text, n, name, r);

	if (!error) {
		conf_exports_print(&e, out);
		conf_exports_fini(&e);
	}
	return error;
}

static void
test_golden(void **state)
{
	golden_run(parse, "exports", 35);
}

/* A directory for a table: exports, and exports.d. */
struct place {
	char dir[32], file[64], d[64];
};

static int
place_setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	memcpy(p->dir, "/tmp/test_exports.XXXXXX", 25);
	assert_non_null(mkdtemp(p->dir));
	(void)snprintf(p->file, sizeof(p->file), "%s/exports", p->dir);
	(void)snprintf(p->d, sizeof(p->d), "%s/exports.d", p->dir);
	*state = p;
	return 0;
}

static int
place_teardown(void **state)
{
	struct place *p = *state;
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", p->dir);
	assert_int_equal(system(command), 0);
	free(p);
	return 0;
}

static void
put(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void
test_nothing(void **state)
{
	struct place *p = *state;
	struct conf_report r = { 0 };
	struct conf_exports e;

	assert_int_equal(conf_exports_read(&e, p->file, p->d, NULL, 0, &r), 0);
	assert_int_equal(e.count, 0);
	assert_int_equal(r.count, 0);
	conf_exports_fini(&e);
	assert_int_equal(conf_exports_read(&e, NULL, NULL, NULL, 0, &r), 0);
	assert_int_equal(e.count, 0);
	conf_exports_fini(&e);
	conf_exports_fini(&e);
	conf_exports_fini(NULL);
}

static void
test_joined(void **state)
{
	char b[] = "/b h5(rw)", z[] = "/z *(rw,insecure)";
	char *extra[] = { b, z };
	struct place *p = *state;
	struct conf_report r = { 0 };
	struct conf_exports e;

	put(p->dir, "exports", "\n/b h1\n/a h1\n");
	assert_int_equal(mkdir(p->d, 0700), 0);
	put(p->d, "20.exports", "/b h3\n");
	put(p->d, "10.exports", "/b h2\n/c h1\n");
	put(p->d, ".30.exports", "/hidden h\n");
	put(p->d, "40.exports.bak", "not even syntax\n");
	put(p->d, "exports", "nor this\n");
	assert_int_equal(conf_exports_read(&e, p->file, p->d, extra, 2, &r), 0);
	assert_int_equal(r.count, 0);
	assert_int_equal(e.count, 4);
	assert_string_equal(e.exports[0].path, "/a");
	assert_string_equal(e.exports[1].path, "/b");
	assert_string_equal(e.exports[2].path, "/c");
	assert_string_equal(e.exports[3].path, "/z");
	assert_string_equal(e.exports[1].file, p->file);
	assert_int_equal(e.exports[1].line, 2);
	assert_int_equal(e.exports[1].client_count, 4);
	assert_string_equal(e.exports[1].clients[1].match.text, "h2");
	assert_int_equal(e.exports[1].clients[1].line, 1);
	assert_non_null(strstr(e.exports[1].clients[1].file, "10.exports"));
	assert_string_equal(e.exports[1].clients[3].match.text, "h5");
	assert_string_equal(e.exports[3].file, "--export");
	assert_int_equal(e.exports[3].line, 2);
	assert_true(e.exports[3].clients[0].options.rw);
	assert_false(e.exports[3].clients[0].options.secure);
	conf_exports_fini(&e);
}

/* What is wrong names its file; the result stays as it was. */
static void
test_errors(void **state)
{
	char a[] = "/a h(rw)", bad[] = "/b h(nohide)", b[] = "/b h",
	     twice[] = "/a h";
	char *extra[] = { a, bad, twice };
	struct place *p = *state;
	struct conf_report r = { 0 };
	struct conf_exports e = { .count = 77 };

	assert_int_equal(conf_exports_read(&e, NULL, NULL, extra, 2, &r),
			 -EINVAL);
	assert_int_equal(e.count, 77);
	assert_int_equal(r.errors, 1);
	assert_memory_equal(r.messages[0].text, "--export:2: nohide", 18);
	conf_report_fini(&r);
	extra[1] = b;
	assert_int_equal(conf_exports_read(&e, NULL, NULL, extra, 3, &r),
			 -EINVAL);
	assert_string_equal(r.messages[0].text,
			    "--export:3: /a is exported to h twice, first in "
			    "--export:1");
	conf_report_fini(&r);
	/* A directory where a file should be, and the reverse. */
	assert_int_equal(conf_exports_read(&e, p->dir, NULL, NULL, 0, &r),
			 -EISDIR);
	put(p->dir, "exports.d", "");
	assert_int_equal(conf_exports_read(&e, NULL, p->d, NULL, 0, &r),
			 -ENOTDIR);
	assert_int_equal(r.errors, 2);
	assert_int_equal(unlink(p->d), 0);
	assert_int_equal(mkdir(p->d, 0700), 0);
	put(p->d, "bad.exports", "/x h\n/y h(x)\n");
	assert_int_equal(conf_exports_read(&e, NULL, p->d, NULL, 0, &r),
			 -EINVAL);
	assert_non_null(strstr(r.messages[2].text,
			       "exports.d/bad.exports:2: unknown option x"));
	assert_int_equal(e.count, 77);
	conf_report_fini(&r);
}

/* A FIFO that nobody writes must not hold the start. */
static void
test_fifo(void **state)
{
	struct place *p = *state;
	struct conf_report r = { 0 };
	struct conf_exports e;

	assert_int_equal(mkfifo(p->file, 0600), 0);
	assert_int_equal(conf_exports_read(&e, p->file, NULL, NULL, 0, &r), 0);
	assert_int_equal(e.count, 0);
	conf_exports_fini(&e);
}

static void
test_many(void **state)
{
	struct conf_report r = { 0 };
	struct conf_exports e;
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	assert_non_null(f);
	for (unsigned i = 0; i < 500; i++)
		assert_true(fprintf(f, "/e%u h%u(rw) *(mp=/m)\n", i % 100, i) >
			    0);
	for (unsigned i = 0; i < 500; i++)
		assert_true(fprintf(f, "/f g%u\n", i) > 0);
	assert_int_equal(fclose(f), 0);
	/* "*" again and again: 4 times for each of 100. */
	assert_int_equal(conf_exports_parse(&e, text, n, "many", &r), -EINVAL);
	assert_int_equal(r.errors, 400);
	assert_int_equal(r.count, CONF_MESSAGES_MAX);
	conf_report_fini(&r);
	for (char *p = text; (p = strstr(p, "*(mp=/m)")); p += 8)
		memset(p, ' ', 8);
	assert_int_equal(conf_exports_parse(&e, text, n, "many", &r), 0);
	assert_int_equal(e.count, 101);
	assert_int_equal(e.exports[0].client_count, 5);
	assert_int_equal(e.exports[100].client_count, 500);
	assert_string_equal(e.exports[100].clients[499].match.text, "g499");
	conf_exports_fini(&e);
	free(text);
}

#define SAMPLE SOURCE_ROOT "/systemd/exports.sample"

static void
test_sample(void **state)
{
	struct conf_report r = { 0 };
	struct conf_exports e;
	size_t n;
	char *text = golden_text(SAMPLE, &n);

	assert_int_equal(conf_exports_parse(&e, text, n, SAMPLE, &r), 0);
	assert_int_equal(r.count, 0);
	assert_int_equal(e.count, 0);
	conf_exports_fini(&e);
	/* Entries stand commented as "#/path ..."; prose begins with "# ". */
	for (char *p = text; (p = strstr(p, "\n#/")); p++)
		p[1] = ' ';
	assert_int_equal(conf_exports_parse(&e, text, n, SAMPLE, &r), 0);
	assert_int_equal(r.errors, 0);
	/* subtree_check and no more */
	assert_int_equal(r.count, 1);
	assert_non_null(strstr(r.messages[0].text, "subtree_check"));
	assert_true(e.count > 5);
	conf_exports_fini(&e);
	conf_report_fini(&r);
	free(text);
}

static bool
stands_in(const char *text, const char *name)
{
	size_t n = strlen(name);
	const char *p = text;

	while ((p = strstr(p, name))) {
		bool before = p > text && strchr(" (,-\n", p[-1]);

		if (before && strchr(" ),=\n", p[n]))
			return true;
		p++;
	}
	return false;
}

static void
test_every_option_is_told(void **state)
{
	bool served;
	const char *name;
	size_t n;
	char *sample = golden_text(SAMPLE, &n);
	char *man = golden_text(SOURCE_ROOT "/systemd/nvnfsd-exports.5", &n);

	for (unsigned i = 0; (name = conf_options_name(i, &served)); i++) {
		if (!stands_in(man, name))
			fail_msg("nvnfsd-exports.5 lacks %s", name);
		if (served && !stands_in(sample, name))
			fail_msg("exports.sample lacks %s", name);
	}
	free(sample);
	free(man);
}

#define IN_PLACE(test)                                                         \
	cmocka_unit_test_setup_teardown(test, place_setup, place_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		IN_PLACE(test_nothing),
		IN_PLACE(test_joined),
		IN_PLACE(test_errors),
		IN_PLACE(test_fifo),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_every_option_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
