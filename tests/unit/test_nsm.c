/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of hosts that have locks, and the state number, on disk: what was
 * durable is there after a kill at any moment, and what is torn or garbage is
 * as if it was not. And how rpc.statd is told whom it watches.
 */
#include "nfsd/nsm.h"
#include "nfsd/nsm_list.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64];
static int dir_fd;

static int
setup(void **state)
{
	strcpy(dir, "/tmp/test_nsm.XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY);
	return dir_fd < 0 ? -1 : 0;
}

static int
teardown(void **state)
{
	char command[100];

	close(dir_fd);
	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command); /* NOLINT(cert-env33-c): our own text */
}

static struct nsm_list *
list_open(void)
{
	struct nsm_list *l;

	assert_int_equal(nsm_list_open(&l, dir_fd), 0);
	return l;
}

static void
put(const char *name, const char *text, size_t n)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), n);
	close(fd);
}

static struct sockaddr_storage
address(const char *name)
{
	struct sockaddr_storage a;

	assert_true(nsm_address(name, &a));
	return a;
}

static void
add(struct nsm_list *l, const char *host, const char *local)
{
	struct sockaddr_storage a = address(local);

	assert_int_equal(nsm_list_add(l, host, (struct sockaddr *)&a), 0);
}

/* "HOST LOCAL\n" of each that is to be told, in the order of the names. */
struct told {
	char *line[64];
	unsigned count;
};

static void
tell(void *arg, const char *host, const struct sockaddr_storage *local)
{
	char name[NSM_NAME_BYTES] = "-";
	struct told *t = arg;

	assert_true(t->count < 64);
	if (local->ss_family != AF_UNSPEC)
		assert_true(nsm_name(name, (const struct sockaddr *)local));
	assert_true(asprintf(&t->line[t->count++], "%s %s\n", host, name) > 0);
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
expect_untold(struct nsm_list *l, const char *want)
{
	struct told t = { .count = 0 };
	char all[4096] = "";
	size_t used = 0;
	unsigned i;

	assert_int_equal(nsm_list_untold(l, tell, &t), 0);
	qsort(t.line, t.count, sizeof(*t.line), by_text);
	for (i = 0; i < t.count; i++) {
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s",
					 t.line[i]);
		assert_true(used < sizeof(all));
		free(t.line[i]);
	}
	assert_string_equal(all, want);
}

/* Names ------------------------------------------------------------------- */

static void
test_names(void **state)
{
	static const char *const names[] = { "192.0.2.1", "2001:db8::1", "::1",
					     "255.255.255.255" };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	struct sockaddr_un_like {
		sa_family_t family;
	} unix_addr = { AF_UNIX };
	struct sockaddr_storage a;
	char name[NSM_NAME_BYTES], link[32];
	unsigned i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		a = address(names[i]);
		assert_true(nsm_name(name, (struct sockaddr *)&a));
		assert_string_equal(name, names[i]);
	}
	assert_int_equal(inet_pton(AF_INET6, "::ffff:192.0.2.7", &v6.sin6_addr),
			 1);
	assert_true(nsm_name(name, (struct sockaddr *)&v6));
	assert_string_equal(name, "192.0.2.7");
	assert_false(nsm_name(name, (struct sockaddr *)&unix_addr));
	assert_int_equal(inet_pton(AF_INET6, "fe80::5", &v6.sin6_addr), 1);
	v6.sin6_scope_id = if_nametoindex("lo");
	assert_true(nsm_name(name, (struct sockaddr *)&v6));
	(void)snprintf(link, sizeof(link), "fe80::5%%lo");
	assert_string_equal(name, link);
	a = address(name);
	assert_int_equal(((struct sockaddr_in6 *)&a)->sin6_scope_id,
			 v6.sin6_scope_id);
	assert_false(nsm_address("host", &a));
	assert_false(nsm_address("192.0.2.1.new", &a));
	assert_false(nsm_address("", &a));
	assert_false(nsm_address("fe80::5%no-such-link", &a));
}

/* Hosts -------------------------------------------------------------------- */

static void
test_hosts(void **state)
{
	struct nsm_list *l = list_open();
	struct sockaddr_storage none = { .ss_family = AF_UNSPEC };

	expect_untold(l, "");
	add(l, "192.0.2.1", "192.0.2.100");
	add(l, "2001:db8::1", "2001:db8::100");
	add(l, "192.0.2.2", "192.0.2.100");
	add(l, "192.0.2.3", "192.0.2.100");
	assert_int_equal(nsm_list_add(l, "192.0.2.4", (struct sockaddr *)&none),
			 0);
	assert_true(nsm_list_has(l, "192.0.2.2"));
	nsm_list_remove(l, "192.0.2.2");
	assert_false(nsm_list_has(l, "192.0.2.2"));
	nsm_list_remove(l, "192.0.2.99");
	add(l, "192.0.2.3", "192.0.2.101"); /* it asks there now */
	expect_untold(l, "");
	nsm_list_close(l);
	l = list_open();
	expect_untold(l, "192.0.2.1 192.0.2.100\n192.0.2.3 192.0.2.101\n"
			 "192.0.2.4 -\n2001:db8::1 2001:db8::100\n");
	assert_false(nsm_list_has(l, "192.0.2.1"));
	/* It is back before it was told, and told of another. */
	add(l, "192.0.2.1", "192.0.2.102");
	nsm_list_told(l, "192.0.2.3");
	nsm_list_told(l, "192.0.2.98");
	nsm_list_close(l);
	l = list_open();
	expect_untold(l, "192.0.2.1 192.0.2.102\n192.0.2.4 -\n"
			 "2001:db8::1 2001:db8::100\n");
	nsm_list_close(l);
	nsm_list_close(NULL);
}

static void
test_state_number(void **state)
{
	static const struct {
		const char *text;
		int32_t next; /* 0: as far as the time has come */
	} rows[] = {
		{ "1\n", 3 },
		{ "2\n", 3 },
		{ "41\n", 43 },
		{ "2147483645\n", INT32_MAX },
		{ "2147483646\n", INT32_MAX },
		{ "2147483647\n", 1 },
		{ "2147483648\n", 0 },
		{ "-5\n", 0 },
		{ "7", 0 },
		{ "", 0 },
		{ "x7\n", 0 },
		{ "7x\n", 0 },
		{ "\n", 0 },
		{ "99999999999999999999\n", 0 },
	};
	struct nsm_list *l = list_open();
	int32_t first = nsm_list_state(l), n;
	unsigned i;

	assert_true(first > 1700000000 && first % 2 == 1);
	nsm_list_close(l);
	l = list_open();
	assert_int_equal(nsm_list_state(l), first + 2);
	nsm_list_close(l);
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		put("nsm.state", rows[i].text, strlen(rows[i].text));
		l = list_open();
		n = nsm_list_state(l);
		if (rows[i].next != 0)
			assert_int_equal(n, rows[i].next);
		else
			assert_true(n >= first && n % 2 == 1);
		nsm_list_close(l);
		l = list_open();
		assert_int_equal(nsm_list_state(l), n == INT32_MAX ? 1 : n + 2);
		nsm_list_close(l);
	}
}

/* What a kill, a power failure or a stranger leave behind ------------------ */

static void
test_garbage(void **state)
{
	char noise[300];
	struct nsm_list *l = list_open();
	struct stat st;

	nsm_list_close(l);
	memset(noise, 0xa5, sizeof(noise));
	put("nsm.hosts/192.0.2.1", "192.0.2.100\n", 12);
	put("nsm.hosts/192.0.2.2", "192.0.2.1", 9); /* torn */
	put("nsm.hosts/192.0.2.3", "", 0);          /* likewise */
	put("nsm.hosts/192.0.2.4", noise, sizeof(noise));
	put("nsm.hosts/192.0.2.5", "no address\n", 11);
	put("nsm.hosts/192.0.2.6.new", "192.0.2.100\n", 12);
	put("nsm.hosts/host.example.org", "192.0.2.100\n", 12);
	put("nsm.hosts/127.1", "192.0.2.100\n", 12); /* no name of ours */
	put("nsm.hosts/\xff\xfe", "192.0.2.100\n", 12);
	assert_int_equal(symlinkat("/etc/passwd", dir_fd, "nsm.hosts/::2"), 0);
	assert_int_equal(mkdirat(dir_fd, "nsm.hosts/::3", 0700), 0);
	assert_int_equal(mkfifoat(dir_fd, "nsm.hosts/::4", 0600), 0);
	put("nsm.state.new", "12", 2);
	l = list_open();
	/* Who it is, is what counts; where it asked is a help. */
	expect_untold(l, "192.0.2.1 192.0.2.100\n192.0.2.2 -\n192.0.2.3 -\n"
			 "192.0.2.4 -\n192.0.2.5 -\n::2 -\n::3 -\n::4 -\n");
	assert_int_equal(fstatat(dir_fd, "nsm.hosts/host.example.org", &st, 0),
			 0);
	/* One that was being written when we were killed. */
	add(l, "192.0.2.6", "192.0.2.100");
	nsm_list_close(l);
	l = list_open();
	nsm_list_told(l, "::2");
	expect_untold(l, "192.0.2.1 192.0.2.100\n192.0.2.2 -\n192.0.2.3 -\n"
			 "192.0.2.4 -\n192.0.2.5 -\n192.0.2.6 192.0.2.100\n"
			 "::3 -\n::4 -\n");
	nsm_list_close(l);
}

/* In the place of our directories there is something else. */
static void
test_no_room(void **state)
{
	struct nsm_list *l;

	put("nsm.hosts", "x", 1);
	assert_int_equal(nsm_list_open(&l, dir_fd), -ENOTDIR);
	assert_int_equal(unlinkat(dir_fd, "nsm.hosts", 0), 0);
	assert_int_equal(mkdirat(dir_fd, "nsm.state", 0700), 0);
	assert_int_equal(nsm_list_open(&l, dir_fd), -EISDIR);
	assert_int_equal(unlinkat(dir_fd, "nsm.state", AT_REMOVEDIR), 0);
	l = list_open();
	nsm_list_close(l);
}

/* The moves of an open that was killed half way: it was told before, or not. */
static void
test_half_moved(void **state)
{
	struct nsm_list *l = list_open();

	add(l, "192.0.2.1", "192.0.2.100");
	add(l, "192.0.2.2", "192.0.2.100");
	nsm_list_close(l);
	assert_int_equal(renameat(dir_fd, "nsm.hosts/192.0.2.1", dir_fd,
				  "nsm.untold/192.0.2.1"),
			 0);
	l = list_open();
	expect_untold(l, "192.0.2.1 192.0.2.100\n192.0.2.2 192.0.2.100\n");
	nsm_list_close(l);
}

/* A server's life: each host that is added, told or removed is told to the
 * parent when that is over. */
struct news {
	int32_t state;
	uint8_t host;
	char what; /* a: added, r: to be removed, R: removed */
};

static void
live(int out)
{
	struct sockaddr_storage local = { 0 };
	struct news n = { 0 };
	char host[32];
	struct nsm_list *l;

	if (nsm_list_open(&l, dir_fd) != 0 ||
	    !nsm_address("192.0.2.100", &local))
		_exit(1);
	n.state = nsm_list_state(l);
	for (;; n.host++) {
		(void)snprintf(host, sizeof(host), "192.0.2.%u", n.host % 8);
		n.what = 'a';
		if (nsm_list_add(l, host, (struct sockaddr *)&local) != 0 ||
		    write(out, &n, sizeof(n)) != sizeof(n))
			_exit(1);
		if (n.host % 3 != 0)
			continue;
		n.what = 'r';
		if (write(out, &n, sizeof(n)) != sizeof(n))
			_exit(1);
		nsm_list_remove(l, host);
		n.what = 'R';
		if (write(out, &n, sizeof(n)) != sizeof(n))
			_exit(1);
	}
}

static void
mark(void *arg, const char *host, const struct sockaddr_storage *local)
{
	bool *there = arg;

	assert_int_equal(strncmp(host, "192.0.2.", 8), 0);
	/* Nothing is ever torn. */
	assert_int_equal(local->ss_family, AF_INET);
	there[strtoul(host + 8, NULL, 10)] = true;
}

/* Read what it has told until it is killed; the last word on each host. */
static int32_t
read_news(int in, unsigned enough, pid_t child, char last[8])
{
	int32_t number = 0;
	struct news n;
	unsigned seen = 0;

	while (read(in, &n, sizeof(n)) == sizeof(n)) {
		number = n.state;
		last[n.host % 8] = n.what;
		if (++seen == enough)
			kill(child, SIGKILL);
	}
	return number;
}

static void
test_killed(void **state)
{
	int32_t before = 0, number;
	char last[8] = { 0 };
	bool there[256];
	struct nsm_list *l;
	unsigned run, i;
	int fds[2];
	pid_t child;

	for (run = 0; run < 60; run++) {
		assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
		child = fork();
		if (child == 0)
			live(fds[1]);
		close(fds[1]);
		number = read_news(fds[0], 1 + run % 23, child, last);
		close(fds[0]);
		assert_int_equal(waitpid(child, NULL, 0), child);
		assert_true(number > before);
		before = number;
		l = list_open();
		assert_true(nsm_list_state(l) > before);
		before = nsm_list_state(l);
		memset(there, 0, sizeof(there));
		assert_int_equal(nsm_list_untold(l, mark, there), 0);
		for (i = 0; i < 8; i++)
			assert_true(last[i] != 'a' || there[i]);
		nsm_list_close(l);
	}
}

/* What rpc.statd keeps for us --------------------------------------------- */

static void
test_private(void **state)
{
	static const uint8_t none[NSM_PRIV_BYTES];
	static const uint8_t v4[NSM_PRIV_BYTES] = { [10] = 0xff, 0xff, 192,
						    0,           2,    7 };
	static const uint8_t v6[NSM_PRIV_BYTES] = { 0x20, 0x01, 0x0d,
						    0xb8, [15] = 1 };
	struct sockaddr_storage a;
	char name[NSM_NAME_BYTES];

	assert_false(nsm_host_of(none, &a));
	assert_true(nsm_host_of(v4, &a));
	assert_true(nsm_name(name, (struct sockaddr *)&a));
	assert_string_equal(name, "192.0.2.7");
	assert_true(nsm_host_of(v6, &a));
	assert_true(nsm_name(name, (struct sockaddr *)&a));
	assert_string_equal(name, "2001:db8::1");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_names),   TEST(test_hosts),   TEST(test_state_number),
		TEST(test_garbage), TEST(test_no_room), TEST(test_half_moved),
		TEST(test_killed),  TEST(test_private),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
