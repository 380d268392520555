/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client may do: addresses, networks and names (asked only where that
 * may block, answers kept), `secure` and its one line in the log, and sockets
 * that have no address.
 */
#include "tests/unit/export_world.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* In place of the C library's: the clock is as far ahead as the test says. */
static _Atomic time_t ahead_s;

int /* NOLINTNEXTLINE(readability-inconsistent-declaration-*) */
clock_gettime(clockid_t id, struct timespec *t)
{
	long r = syscall(SYS_clock_gettime, id, t);

	t->tv_sec += ahead_s;
	return (int)r;
}

static int
ask(struct export_table *t, struct export *e, const struct sockaddr *client,
    bool may_block)
{
	struct access a = { 0 };
	int r = export_access(t, e, client, may_block, &a);

	if (r == 0) {
		assert_ptr_equal(a.table, t);
		assert_ptr_equal(a.export, e);
		assert_int_equal(export_table_refs(t), 2);
		r = a.volume == e->rw ? 'w' : 'r';
		assert_ptr_equal(a.volume, a.options->rw ? e->rw : e->ro);
		access_put(&a);
		assert_null(a.table);
	}
	assert_int_equal(export_table_refs(t), 1);
	return r;
}

static void
by_address(void **state)
{
	struct world *w = *state;
	struct export_table *t;
	struct export *e;

	assert_int_equal(world_load(w, &t, NULL,
				    "%s/a 10.1.0.0/16(ro) 10.1.2.3(rw) "
				    "10.1.2.0/24(rw) fd00::/16(ro) "
				    "fd00::5(rw)\n"),
			 0);
	e = world_export(w, t, "a");
	/* the most specific one says, whatever the order */
	assert_int_equal(ask(t, e, world_client("10.1.2.3", 700), false), 'w');
	assert_int_equal(ask(t, e, world_client("10.1.2.9", 700), false), 'w');
	assert_int_equal(ask(t, e, world_client("10.1.3.9", 700), false), 'r');
	assert_int_equal(ask(t, e, world_client("10.2.0.1", 700), false),
			 -EACCES);
	/* as a dual-stack socket shows them */
	assert_int_equal(ask(t, e, world_client("::ffff:10.1.2.3", 700), false),
			 'w');
	assert_int_equal(ask(t, e, world_client("::ffff:10.2.0.1", 700), false),
			 -EACCES);
	assert_int_equal(ask(t, e, world_client("fd00::5", 700), false), 'w');
	assert_int_equal(ask(t, e, world_client("fd00::6", 700), false), 'r');
	assert_int_equal(ask(t, e, world_client("fe00::5", 700), false),
			 -EACCES);
	export_table_put(t);
}

/* Someone on a local socket is nobody but "anyone", and has no port. */
static void
local_sockets(void **state)
{
	struct world *w = *state;
	struct export_table *t;

	assert_int_equal(world_load(w, &t, NULL,
				    "%s/a 127.0.0.0/8(rw) localhost(rw) "
				    "@friends(rw)\n%s/b *(ro,secure)\n"),
			 0);
	assert_int_equal(
		ask(t, world_export(w, t, "a"), world_client("unix", 0), false),
		-EACCES);
	assert_int_equal(
		ask(t, world_export(w, t, "b"), world_client("unix", 0), false),
		'r');
	export_table_put(t);
}

/* names ----------------------------------------------------------------- */

static void
by_name(void **state)
{
	static const char *const lines[] = {
		"%s/a client.example.org(rw,insecure)\n",
		"%s/a *.example.org(rw,insecure)\n",
	};
	struct world *w = *state;
	struct export_table *t;
	struct export *e;

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(world_load(w, &t, NULL, lines[i]), 0);
		e = world_export(w, t, "a");
		assert_int_equal(ask(t, e, world_client("10.9.8.7", 1), false),
				 -EAGAIN);
		assert_int_equal(ask(t, e, world_client("10.9.8.7", 1), true),
				 'w');
		/* kept, for the client whatever its port and socket */
		assert_int_equal(ask(t, e, world_client("10.9.8.7", 9), false),
				 'w');
		assert_int_equal(
			ask(t, e, world_client("::ffff:10.9.8.7", 1), false),
			'w');
		/* no is an answer too */
		assert_int_equal(ask(t, e, world_client("10.9.8.8", 1), false),
				 -EAGAIN);
		assert_int_equal(ask(t, e, world_client("10.9.8.8", 1), true),
				 -EACCES);
		assert_int_equal(ask(t, e, world_client("10.9.8.8", 1), false),
				 -EACCES);
		export_table_put(t);
	}
}

static void
hosts_write(const char *text)
{
	FILE *f = fopen("/etc/hosts", "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

#define HOSTS "127.0.0.1 localhost\n10.9.8.7 client.example.org\n"

/* What was kept is asked anew after a minute: a name that has moved is where it
 * is now, without a reload. */
static void
asked_again(void **state)
{
	struct world *w = *state;
	struct export_table *t;
	struct export *e;

	assert_int_equal(
		world_load(w, &t, NULL, "%s/a client.example.org(rw)\n"), 0);
	e = world_export(w, t, "a");
	assert_int_equal(ask(t, e, world_client("10.9.8.7", 1), true), 'w');
	assert_int_equal(ask(t, e, world_client("10.9.8.9", 1), true), -EACCES);
	hosts_write("10.9.8.9 client.example.org\n");
	assert_int_equal(ask(t, e, world_client("10.9.8.7", 1), true), 'w');
	ahead_s += 61;
	assert_int_equal(ask(t, e, world_client("10.9.8.7", 1), false),
			 -EAGAIN);
	assert_int_equal(ask(t, e, world_client("10.9.8.7", 1), true), -EACCES);
	assert_int_equal(ask(t, e, world_client("10.9.8.9", 1), true), 'w');
	hosts_write(HOSTS);
	export_table_put(t);
}

/* A look-up that an earlier entry needs must not be skipped: what comes later
 * may say less, or more. */
static void
name_before_any(void **state)
{
	struct world *w = *state;
	struct export_table *t;
	struct export *e;

	assert_int_equal(
		world_load(w, &t, NULL, "%s/a *(ro) *.example.org(rw)\n"), 0);
	e = world_export(w, t, "a");
	assert_int_equal(ask(t, e, world_client("10.9.8.7", 1), false),
			 -EAGAIN);
	assert_int_equal(ask(t, e, world_client("10.9.8.7", 1), true), 'w');
	assert_int_equal(ask(t, e, world_client("10.9.8.8", 1), true), 'r');
	assert_int_equal(ask(t, e, world_client("10.9.8.8", 1), false), 'r');
	export_table_put(t);
}

/* More clients than the table of answers holds. */
static void
answers_overflow(void **state)
{
	struct world *w = *state;
	struct export_table *t;
	struct export *e;
	char text[32];

	assert_int_equal(
		world_load(w, &t, NULL, "%s/a client.example.org(rw)\n"), 0);
	e = world_export(w, t, "a");
	for (unsigned i = 0; i < 5000; i++) {
		(void)snprintf(text, sizeof(text), "10.9.%u.%u", i / 250,
			       i % 250);
		assert_int_equal(ask(t, e, world_client(text, 1), true),
				 strcmp(text, "10.9.8.7") == 0 ? 'w' : -EACCES);
	}
	export_table_put(t);
}

/* secure ---------------------------------------------------------------- */

static int saved_stderr, log_fd;

static void
log_begin(void)
{
	char path[] = "/var/tmp/test_access.XXXXXX";

	(void)fflush(stderr);
	saved_stderr = dup(STDERR_FILENO);
	log_fd = mkstemp(path);
	assert_true(saved_stderr >= 0 && log_fd >= 0);
	unlink(path);
	assert_true(dup2(log_fd, STDERR_FILENO) >= 0);
}

/* How many lines; text holds their beginning. */
static unsigned
log_end(char *text, size_t room)
{
	off_t end = lseek(log_fd, 0, SEEK_END);
	unsigned lines = 0;
	ssize_t n;
	char c;

	dup2(saved_stderr, STDERR_FILENO);
	n = pread(log_fd, text, room - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	for (off_t at = 0; at < end; at++)
		lines += pread(log_fd, &c, 1, at) == 1 && c == '\n';
	close(log_fd);
	close(saved_stderr);
	return lines;
}

static void
ports(void **state)
{
	struct world *w = *state;
	struct export_table *t;
	struct export *a, *b;
	char text[256];

	assert_int_equal(
		world_load(w, &t, NULL, "%s/a *(rw)\n%s/b *(rw,insecure)\n"),
		0);
	a = world_export(w, t, "a");
	b = world_export(w, t, "b");
	log_begin();
	assert_int_equal(ask(t, a, world_client("10.0.0.1", 1023), false), 'w');
	assert_int_equal(ask(t, a, world_client("fd00::1", 1023), false), 'w');
	assert_int_equal(ask(t, b, world_client("10.0.0.1", 1024), false), 'w');
	assert_int_equal(log_end(text, sizeof(text)), 0);

	log_begin();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(
			ask(t, a, world_client("10.0.0.1", 1024), false),
			-EPERM);
		assert_int_equal(
			ask(t, a, world_client("::ffff:10.0.0.1", 9999), false),
			-EPERM);
	}
	assert_int_equal(log_end(text, sizeof(text)), 1);
	assert_non_null(strstr(text, "/a: refused 10.0.0.1, whose port 1024 "));
	assert_non_null(strstr(text, "\"insecure\""));

	log_begin();
	assert_int_equal(ask(t, a, world_client("fd00::1", 65535), false),
			 -EPERM);
	assert_int_equal(log_end(text, sizeof(text)), 1);
	assert_non_null(strstr(text, "fd00::1"));
	export_table_put(t);
}

/* A peer with a network of its own cannot fill the log. */
static void
log_is_bounded(void **state)
{
	struct world *w = *state;
	struct export_table *t;
	char address[64], text[64];

	assert_int_equal(world_load(w, &t, NULL, "%s/a *(rw)\n"), 0);
	log_begin();
	for (unsigned i = 0; i < 2000; i++) {
		(void)snprintf(address, sizeof(address), "fd00::%x", i + 1);
		assert_int_equal(ask(t, world_export(w, t, "a"),
				     world_client(address, 40000), false),
				 -EPERM);
	}
	assert_int_equal(log_end(text, sizeof(text)), 256);
	export_table_put(t);
}

static int
put_over(const char *path, const char *text)
{
	FILE *f = fopen("over", "w");
	int r;

	if (!f || fputs(text, f) < 0 || fclose(f) != 0)
		return -1;
	r = mount("over", path, NULL, MS_BIND, NULL);
	unlink("over");
	return r;
}

/* Names as this test has them, in this process's own mounts. */
static int
enter(void **state)
{
	if (world_enter(state) < 0)
		return -1;
	return put_over("/etc/nsswitch.conf", "hosts: files\n") < 0 ||
			       put_over("/etc/hosts", HOSTS) < 0
		       ? -1
		       : 0;
}

#define TEST(name)                                                             \
	cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(by_address),      TEST(local_sockets),
		TEST(by_name),         TEST(asked_again),
		TEST(name_before_any), TEST(answers_overflow),
		TEST(ports),           TEST(log_is_bounded),
	};

	return cmocka_run_group_tests(tests, enter, world_leave);
}
