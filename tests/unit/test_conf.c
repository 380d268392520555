/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvnfsd.conf: golden pairs, words and sizes, what a failed read leaves alone,
 * and that sample and man page know every key.
 */
#include "tests/unit/golden.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

static int
parse(const char *text, size_t n, const char *name, struct conf_report *r,
      FILE *out)
{
	struct conf c;
	int error;

	conf_init(&c);
	error = conf_parse(&c, text, n, name, r);
	if (!error)
		conf_print(&c, out);
	conf_fini(&c);
	return error;
}

static void
test_golden(void **state)
{
	golden_run(parse, "conf", 17);
}

static void
test_modes(void **state)
{
	static const char *const modes[] = { "buffered", "dontcache",
					     "direct" };
	static const char *const edges[] = { "drop", "dontcache", "buffered",
					     "join" };
	static const char *const stable[] = { "none", "data", "file" };
	enum conf_mode m;
	enum conf_edges e;
	enum conf_stable s;

	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(conf_mode_parse(modes[i], &m), 0);
		assert_int_equal(m, i);
		assert_string_equal(conf_mode_name(m), modes[i]);
		assert_int_equal(conf_edges_parse(edges[i], &e), 0);
		assert_int_equal(e, i);
		assert_string_equal(conf_edges_name(e), edges[i]);
		assert_int_equal(conf_stable_parse(stable[i], &s), 0);
		assert_int_equal(s, i);
		assert_string_equal(conf_stable_name(s), stable[i]);
	}
	assert_int_equal(conf_mode_parse("Direct", &m), -EINVAL);
	assert_int_equal(conf_mode_parse("", &m), -EINVAL);
	assert_int_equal(conf_edges_parse("direct", &e), -EINVAL);
	assert_int_equal(conf_stable_parse("drop", &s), -EINVAL);
}

static void
test_sizes(void **state)
{
	static const struct {
		const char *word;
		uint64_t bytes;
	} good[] = {
		{ "0", 0 },
		{ "4096", 4096 },
		{ "64k", 65536 },
		{ "64K", 65536 },
		{ "64KB", 65536 },
		{ "64kiB", 65536 },
		{ "64ki", 65536 },
		{ "4M", 4 << 20 },
		{ "1GiB", 1 << 30 },
		{ "2t", 2ull << 40 },
		{ "007", 7 },
		{ "18446744073709551615", UINT64_MAX },
		{ "16777215T", 16777215ull << 40 },
	};
	static const char *const bad[] = { "",     "k",     "-1",   "+1",
					   " 1",   "1 ",    "1 k",  "1x",
					   "1kk",  "1kib2", "1bk",  "1b",
					   "0x10", "1.5M",  "1kBi", "1iB" };
	static const char *const large[] = { "18446744073709551616",
					     "16777216T",
					     "99999999999999999999k" };
	uint64_t n = 77;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(conf_size_parse(bad[i], &n), -EINVAL);
	for (unsigned i = 0; i < sizeof(large) / sizeof(*large); i++)
		assert_int_equal(conf_size_parse(large[i], &n), -ERANGE);
	assert_int_equal(n, 77);
	for (unsigned i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(conf_size_parse(good[i].word, &n), 0);
		assert_int_equal(n, good[i].bytes);
	}
}

static void
test_bools(void **state)
{
	static const char *const yes[] = { "1",   "t",  "true", "y",
					   "yes", "on", "YES",  "True" };
	static const char *const no[] = { "0",  "f",   "false", "n",
					  "no", "off", "NO",    "False" };
	bool is;

	for (unsigned i = 0; i < 8; i++) {
		is = false;
		assert_int_equal(word_bool(yes[i], &is), 0);
		assert_true(is);
		assert_int_equal(word_bool(no[i], &is), 0);
		assert_false(is);
	}
	assert_int_equal(word_bool("", &is), -EINVAL);
	assert_int_equal(word_bool("2", &is), -EINVAL);
	assert_int_equal(word_bool("yess", &is), -EINVAL);
}

static void
test_distance(void **state)
{
	char longer[64];

	assert_int_equal(conf_text_distance("", ""), 0);
	assert_int_equal(conf_text_distance("", "abc"), 3);
	assert_int_equal(conf_text_distance("abc", ""), 3);
	assert_int_equal(conf_text_distance("port", "prot"), 1);
	assert_int_equal(conf_text_distance("port", "PORT"), 0);
	assert_int_equal(conf_text_distance("kitten", "sitting"), 3);
	assert_int_equal(conf_text_distance("ca", "abc"), 3);
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(conf_text_distance(longer, "x"), UINT_MAX);
	longer[32] = '\0';
	assert_int_equal(conf_text_distance(longer, "x"), 31);
}

/* A bad file changes nothing; a good one changes what it names. */
static void
test_untouched(void **state)
{
	static const char first[] = "[nfsd]\nhost = a, b\nport = 7\n";
	static const char bad[] = "[nfsd]\nhost = c\nport = 8\nthreads = x\n";
	static const char second[] = "[nfsd]\nthreads = 3\n";
	static const char third[] = "[nfsd]\nhost = d\n";
	struct conf_report r = { 0 };
	struct conf c;

	conf_init(&c);
	assert_int_equal(c.port, 2049);
	assert_int_equal(c.level, CONF_LOG_NOTICE);
	assert_int_equal(conf_parse(&c, first, sizeof(first) - 1, "1", &r), 0);
	assert_int_equal(conf_parse(&c, bad, sizeof(bad) - 1, "2", &r),
			 -EINVAL);
	assert_int_equal(r.errors, 1);
	assert_int_equal(c.host_count, 2);
	assert_string_equal(c.hosts[1], "b");
	assert_int_equal(c.port, 7);
	/* An error of an earlier read is not this one's. */
	assert_int_equal(conf_parse(&c, second, sizeof(second) - 1, "3", &r),
			 0);
	assert_int_equal(c.threads, 3);
	assert_int_equal(c.host_count, 2);
	assert_int_equal(conf_parse(&c, third, sizeof(third) - 1, "4", &r), 0);
	assert_int_equal(c.host_count, 1);
	assert_string_equal(c.hosts[0], "d");
	conf_fini(&c);
	conf_fini(&c);
	conf_fini(NULL);
	conf_report_fini(&r);
	conf_report_fini(NULL);
}

static void
test_read(void **state)
{
	char dir[] = "/tmp/test_conf.XXXXXX", path[64];
	struct conf_report r = { 0 };
	struct conf c;
	FILE *f;

	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/c", dir);
	conf_init(&c);
	assert_int_equal(conf_read(&c, path, &r), -ENOENT);
	assert_int_equal(r.count, 0);
	assert_int_equal(conf_read(&c, dir, &r), -EISDIR);
	assert_int_equal(r.count, 1);
	assert_non_null(strstr(r.messages[0].text, dir));
	conf_report_fini(&r);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs("[log]\nlevel = info\n", f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(conf_read(&c, path, &r), 0);
	assert_int_equal(c.level, CONF_LOG_INFO);
	/* Larger than the first block that is read, and than any file. */
	assert_int_equal(truncate(path, 5000), 0);
	assert_int_equal(conf_read(&c, path, &r), -EINVAL);
	assert_int_equal(truncate(path, CONF_FILE_BYTES_MAX + 1), 0);
	assert_int_equal(conf_read(&c, path, &r), -EFBIG);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	conf_fini(&c);
	conf_report_fini(&r);
}

#define SAMPLE SOURCE_ROOT "/systemd/nvnfsd.conf.sample"

/* As shipped the sample says nothing. */
static void
test_sample(void **state)
{
	struct conf_report r = { 0 };
	char *said = NULL, *plain = NULL;
	size_t n;
	FILE *out = open_memstream(&said, &n);
	FILE *def = open_memstream(&plain, &n);
	struct conf c;

	assert_true(out && def);
	conf_init(&c);
	conf_print(&c, def);
	assert_int_equal(conf_read(&c, SAMPLE, &r), 0);
	assert_int_equal(r.count, 0);
	conf_print(&c, out);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(fclose(def), 0);
	assert_string_equal(said, plain);
	free(said);
	free(plain);
	conf_fini(&c);
}

/* "#key = value" -> "key = value"; prose begins with "# ". */
static void
uncomment(char *text)
{
	for (char *p = text; *p; p++)
		if (*p == '#' && (p == text || p[-1] == '\n') && p[1] >= 'a' &&
		    p[1] <= 'z')
			*p = ' ';
}

static void
test_sample_uncommented(void **state)
{
	struct conf_report r = { 0 };
	struct conf c, plain;
	size_t n;
	char *text = golden_text(SAMPLE, &n);

	uncomment(text);
	conf_init(&plain);
	conf_init(&c);
	assert_int_equal(conf_parse(&c, text, n, SAMPLE, &r), 0);
	assert_int_equal(r.count, 0);
	/* What it shows are the defaults. */
	assert_int_equal(c.port, plain.port);
	assert_int_equal(c.threads, plain.threads);
	assert_int_equal(c.manage_gids, plain.manage_gids);
	assert_int_equal(c.level, plain.level);
	for (unsigned i = 0; conf_policy_name(i); i++)
		assert_true(conf_policy_has(&c.policy, i));
	assert_int_equal(c.policy.read_mode, CONF_DIRECT);
	assert_int_equal(c.policy.write_mode, CONF_DIRECT);
	assert_int_equal(c.policy.edges, CONF_EDGES_DROP);
	assert_int_equal(c.policy.stable_floor, CONF_STABLE_NONE);
	assert_true(c.host_count && c.has_mount_port && c.has_lockd_port);
	assert_int_equal(c.grace_s, plain.grace_s);
	free(text);
	conf_fini(&c);
}

/* Each key stands in the sample behind its section, and in the man page. */
static void
test_every_key_is_told(void **state)
{
	const char *section, *name;
	char wanted[128];
	size_t n;
	char *sample = golden_text(SAMPLE, &n);
	const char *at;
	char *man = golden_text(SOURCE_ROOT "/systemd/nvnfsd.conf.5", &n);

	for (unsigned i = 0; (name = conf_key_name(i, &section)); i++) {
		(void)snprintf(wanted, sizeof(wanted), "\n[%s]\n", section);
		at = strstr(sample, wanted);
		assert_non_null(at);
		(void)snprintf(wanted, sizeof(wanted), "\n#%s = ", name);
		assert_non_null(strstr(at, wanted));
		(void)snprintf(wanted, sizeof(wanted),
			       "\n.It Cm %s Li = ", name);
		if (!strstr(man, wanted))
			fail_msg("nvnfsd.conf.5 lacks %s", name);
	}
	free(sample);
	free(man);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_modes),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_bools),
		cmocka_unit_test(test_distance),
		cmocka_unit_test(test_untouched),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_sample_uncommented),
		cmocka_unit_test(test_every_key_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
