/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvnfsd.conf read again by SIGHUP: a limit and the log's level change under
 * the connections that are there, what needs a restart is said to, and a bad
 * line leaves all as it was.
 */
#include "control.h"
#include "site.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static struct site *
site_with_conf(const char *text)
{
	struct site *s = site_prepare("uring", NULL, NULL);

	harness_conf(s->h, text);
	site_start(s);
	return s;
}

/* Until the log has said what came of it. */
static void
reload(struct site *s, const char *text, const char *said)
{
	unsigned before = harness_log_count(s->h, said);

	harness_conf(s->h, text);
	harness_signal(s->h, SIGHUP);
	while (harness_log_count(s->h, said) == before)
		usleep(2000);
}

/* A connection that has asked something, and has no answer yet. */
static struct raw *
asking(const struct site *s)
{
	struct raw *r = raw_connect(s->h->port);

	raw_build(r, 100003, 3, 0, NULL, NULL);
	raw_send(r);
	return r;
}

/* Does it get none within a moment? */
static bool
unanswered(const struct raw *r)
{
	struct pollfd p = { .fd = r->fd, .events = POLLIN };

	return poll(&p, 1, 300) == 0;
}

static bool
serves(struct site *s)
{
	struct answer a;

	return ask(s->r, ask_fsinfo(&s->root), &a) == NFS3_OK;
}

#define DEVICE_LINE "export .*: device .*blocks of"

static void
test_limit_and_level(void **state)
{
	struct site *s = site_with_conf("[limits]\nconnections = 2\n");
	struct raw *second = asking(s), *third;

	assert_true(raw_receive(second));
	third = asking(s);
	assert_true(unanswered(third));
	assert_false(harness_logged(s->h, DEVICE_LINE));
	reload(s, "[limits]\nconnections = 3\n[log]\nlevel = info\n",
	       " reloaded$");
	assert_true(raw_receive(third));
	assert_true(serves(s));
	assert_true(harness_logged(s->h, DEVICE_LINE));
	/* Fewer than there are: nobody is sent away, nobody more comes in. */
	reload(s, "[limits]\nconnections = 1\n", " reloaded$");
	assert_true(serves(s));
	raw_close(second);
	second = asking(s);
	assert_true(unanswered(second));
	raw_close(third);
	assert_true(unanswered(second));
	raw_close(second);
	site_free(s);
}

static void
test_bad_line(void **state)
{
	static const char good[] = "[limits]\nconnections = 2\n";
	static const char bad[] = "[log]\nlevel = err\n"
				  "[limits]\nconnections = lots\n";
	struct site *s = site_with_conf(good);
	struct raw *second = asking(s), *third;

	assert_true(raw_receive(second));
	reload(s, bad, "reload failed: the running configuration stays");
	assert_true(harness_logged(s->h, "/conf:4: .*connections = .*lots"));
	assert_true(serves(s));
	third = asking(s);
	assert_true(unanswered(third));
	/* Nothing before that line was taken either: this is a notice. */
	assert_int_equal(control_run(s->h, NULL, "unexport %s", s->h->export),
			 0);
	assert_true(harness_logged(s->h, ": withdrawn$"));
	reload(s, good, " reloaded$");
	assert_true(serves(s));
	raw_close(second);
	assert_true(raw_receive(third));
	raw_close(third);
	site_free(s);
}

static void
test_needs_restart(void **state)
{
	static const char said[] = "open-files.* change with a restart";
	struct site *s = site_with_conf("[nfsd]\ndirect-min = 8k\n");

	reload(s, "[nfsd]\ndirect-min = 16k\n", " reloaded$");
	assert_false(harness_logged(s->h, said));
	reload(s, "[limits]\nopen-files = 100\n", " reloaded$");
	assert_true(harness_logged(s->h, said));
	assert_true(serves(s));
	site_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limit_and_level),
		cmocka_unit_test(test_bad_line),
		cmocka_unit_test(test_needs_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
