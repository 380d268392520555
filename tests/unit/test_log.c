/* SPDX-License-Identifier: Apache-2.0 */
/* What arrives on stderr, as a plain file and as the journal's stream. */
#include "nfsd/nfsd.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static int real_stderr;
static int capture;

/* Send stderr to an empty file in memory. */
static int
begin(void **state)
{
	real_stderr = dup(STDERR_FILENO);
	capture = memfd_create("stderr", MFD_CLOEXEC);
	unsetenv("JOURNAL_STREAM");
	log_set_level(LOG_NOTICE_);
	return dup2(capture, STDERR_FILENO) < 0;
}

static int
end(void **state)
{
	dup2(real_stderr, STDERR_FILENO);
	close(real_stderr);
	close(capture);
	unsetenv("JOURNAL_STREAM");
	return 0;
}

/* All that was written since the last call. */
static const char *
captured(void)
{
	static char text[8192];
	ssize_t n = pread(capture, text, sizeof(text) - 1, 0);

	assert_true(n >= 0);
	text[n] = '\0';
	assert_int_equal(ftruncate(capture, 0), 0);
	assert_int_equal(lseek(capture, 0, SEEK_SET), 0);
	return text;
}

static void
test_plain(void **state)
{
	errno = ENOTTY;
	log_msg(LOG_WARNING_, "export %s: %d", "/a", 7);
	assert_int_equal(errno, ENOTTY);
	assert_string_equal(captured(), "nvnfsd: export /a: 7\n");
}

/* Where stderr is gone, the caller's errno stays all the same. */
static void
test_no_stderr(void **state)
{
	static struct log_limit limit;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(dup2(null, STDERR_FILENO) >= 0);
	close(null);
	errno = ENOTTY;
	log_msg(LOG_ERR_, "lost");
	assert_int_equal(errno, ENOTTY);
	log_limited(&limit, LOG_ERR_, "lost");
	assert_int_equal(errno, ENOTTY);
	assert_true(dup2(capture, STDERR_FILENO) >= 0);
	assert_string_equal(captured(), "");
}

static void
test_levels(void **state)
{
	static const char *const line[] = { "e", "w", "n", "i", "d" };
	char expect[64];

	for (int max = LOG_ERR_; max <= LOG_DEBUG_; max++) {
		log_set_level(max);
		expect[0] = '\0';
		for (int l = LOG_ERR_; l <= LOG_DEBUG_; l++) {
			log_msg(l, "%s", line[l]);
			if (l <= max)
				(void)sprintf(expect + strlen(expect),
					      "nvnfsd: %s\n", line[l]);
		}
		assert_string_equal(captured(), expect);
	}
}

static void
set_stream(unsigned long long dev, unsigned long long ino, const char *more)
{
	char stream[96];

	(void)snprintf(stream, sizeof(stream), "%llu:%llu%s", dev, ino, more);
	setenv("JOURNAL_STREAM", stream, 1);
}

static void
test_journal(void **state)
{
	struct stat st;

	assert_int_equal(fstat(capture, &st), 0);
	set_stream(st.st_dev, st.st_ino, "");
	log_set_level(LOG_DEBUG_);
	log_msg(LOG_ERR_, "e");
	log_msg(LOG_WARNING_, "w");
	log_msg(LOG_NOTICE_, "n");
	log_msg(LOG_INFO_, "i");
	log_msg(LOG_DEBUG_, "d");
	assert_string_equal(captured(), "<3>e\n<4>w\n<5>n\n<6>i\n<7>d\n");
}

/* A JOURNAL_STREAM that is not fd 2's: inherited, then redirected. */
static void
test_not_the_journal(void **state)
{
	static const char *const junk[] = {
		"", ":", "12", "12:", ":34", "x:y"
	};
	struct stat st;

	assert_int_equal(fstat(capture, &st), 0);
	set_stream(st.st_dev, st.st_ino + 1, "");
	log_msg(LOG_ERR_, "a");
	set_stream(st.st_dev + 1, st.st_ino, "");
	log_msg(LOG_ERR_, "b");
	set_stream(st.st_dev, st.st_ino, "x");
	log_msg(LOG_ERR_, "c");
	assert_string_equal(captured(), "nvnfsd: a\nnvnfsd: b\nnvnfsd: c\n");
	for (unsigned i = 0; i < sizeof(junk) / sizeof(*junk); i++) {
		setenv("JOURNAL_STREAM", junk[i], 1);
		log_msg(LOG_ERR_, "d");
		assert_string_equal(captured(), "nvnfsd: d\n");
	}
}

/* Nobody writes a second line, or a journal level, through a name. */
static void
test_control_characters(void **state)
{
	log_msg(LOG_ERR_, "client %s", "a\n<0>b\r\033[2J\x7f\tc\xc3\xa9");
	assert_string_equal(captured(),
			    "nvnfsd: client a?<0>b??[2J??c\xc3\xa9\n");
}

static void
test_long(void **state)
{
	static struct log_limit limit;
	char long_text[4000];
	const char *got, *text;

	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	log_msg(LOG_ERR_, "%s", long_text);
	got = captured();
	assert_true(strlen(got) <= 1024);
	text = strstr(got, ": ");
	assert_non_null(text);
	assert_int_equal(strspn(text + 2, "x"), strlen(text + 2) - 1);
	assert_int_equal(got[strlen(got) - 1], '\n');
	/* what was left out is said also then */
	limit.suppressed = UINT64_MAX;
	log_limited(&limit, LOG_ERR_, "%s", long_text);
	got = captured();
	assert_true(strlen(got) <= 1024);
	assert_non_null(
		strstr(got, "x (18446744073709551615 like it left out)\n"));
}

static void
test_limited(void **state)
{
	static struct log_limit limit, other;

	for (int i = 0; i < 100; i++)
		log_limited(&limit, LOG_ERR_, "refused %d", i);
	assert_string_equal(captured(), "nvnfsd: refused 0\n");
	assert_int_equal(limit.suppressed, 99);
	log_limited(&other, LOG_ERR_, "another place");
	assert_string_equal(captured(), "nvnfsd: another place\n");
	/* as if the ten seconds had passed */
	limit.next_ns = 0;
	errno = EPIPE;
	log_limited(&limit, LOG_ERR_, "refused 100");
	log_limited(&limit, LOG_ERR_, "refused 101");
	assert_int_equal(errno, EPIPE);
	assert_string_equal(captured(),
			    "nvnfsd: refused 100 (99 like it left out)\n");
	limit.next_ns = 0;
	log_limited(&limit, LOG_ERR_, "refused 102");
	assert_string_equal(captured(),
			    "nvnfsd: refused 102 (1 like it left out)\n");
}

/* The pause is ten seconds of CLOCK_MONOTONIC. */
static void
test_limited_period(void **state)
{
	static struct log_limit limit;
	struct timespec before, after;
	uint64_t low, high;

	(void)clock_gettime(CLOCK_MONOTONIC, &before);
	log_limited(&limit, LOG_ERR_, "x");
	(void)clock_gettime(CLOCK_MONOTONIC, &after);
	low = (before.tv_sec + 10) * 1000000000ull + before.tv_nsec;
	high = (after.tv_sec + 10) * 1000000000ull + after.tv_nsec;
	assert_in_range(limit.next_ns, low, high);
	captured();
}

/* What the level hides uses up no turn. */
static void
test_limited_level(void **state)
{
	static struct log_limit limit;

	log_limited(&limit, LOG_DEBUG_, "hidden");
	assert_int_equal(limit.next_ns, 0);
	assert_int_equal(limit.suppressed, 0);
	log_limited(&limit, LOG_INFO_, "hidden");
	log_limited(&limit, LOG_NOTICE_, "shown");
	assert_string_equal(captured(), "nvnfsd: shown\n");
}

static struct log_limit shared;

static void *
speak(void *arg)
{
	for (int i = 0; i < 1000; i++)
		log_limited(&shared, LOG_ERR_, "at once");
	return NULL;
}

static void
test_limited_threads(void **state)
{
	pthread_t thread[8];

	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, speak, NULL),
				 0);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	assert_string_equal(captured(), "nvnfsd: at once\n");
	assert_int_equal(shared.suppressed, 7999);
}

int
main(void)
{
#define LOG_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		LOG_TEST(test_plain),
		LOG_TEST(test_no_stderr),
		LOG_TEST(test_levels),
		LOG_TEST(test_journal),
		LOG_TEST(test_not_the_journal),
		LOG_TEST(test_control_characters),
		LOG_TEST(test_long),
		LOG_TEST(test_limited),
		LOG_TEST(test_limited_period),
		LOG_TEST(test_limited_level),
		LOG_TEST(test_limited_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
