/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients as exports(5) names them, over the wire: who matches several of a
 * line's clients is the one that it says comes first; names are looked up anew
 * after a reload; and a reload takes rights from who is connected. In an /etc
 * of the test's own, with hosts and netgroups of its own; each client there
 * makes files for another user, by which it is known what it was taken for.
 */
#include "site.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static const char *why; /* it cannot be tested here */

struct world {
	struct site s;
	char table[400];
	unsigned files;
};

static void
write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* The server is our child and sees the mounts that we see. */
static bool
own_etc(const char *dir)
{
	char etc[300];

	(void)snprintf(etc, sizeof(etc), "%s/etc", dir);
	assert_int_equal(harness_sh("mkdir %s", etc), 0);
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("etc", etc, "tmpfs", 0, NULL) < 0 ||
	    harness_sh("cd /etc && for f in passwd group ld.so.cache "
		       "alternatives netconfig services rpc; do "
		       "[ ! -e $f ] || cp -a $f %s; done",
		       etc) != 0 ||
	    mount(etc, "/etc", NULL, MS_MOVE, NULL) < 0)
		why = strerror(errno);
	return why == NULL;
}

static void
write_names(const char *a, const char *friends)
{
	write_file("/etc/nsswitch.conf",
		   "passwd: files\ngroup: files\nhosts: files\n"
		   "netgroup: files\n");
	write_file("/etc/host.conf", "multi on\n");
	write_file("/etc/netgroup", friends);
	write_file("/etc/hosts", a);
}

#define HOSTS                                                                  \
	"127.0.0.1 localhost\n127.0.0.12 b.lab.test\n"                         \
	"127.0.0.17 d.lab.test\n127.0.0.41 e.lab.test\n"                       \
	"127.0.0.42 z.other.test\n127.0.0.45 N.Lab.Test n\n"
#define FRIENDS                                                                \
	"friends (e.lab.test,,) (z.other.test,,) (n,,) inner\n"                \
	"inner (127.0.0.44,,)\n"

/* In no order. */
static const struct {
	const char *client;
	unsigned uid;
} clients[] = {
	{ "*", 1009 },
	{ "@friends", 1005 },
	{ "?.lab.test", 1004 },
	{ "127.0.0.0/27", 1003 },
	{ "127.0.0.8/255.255.255.248", 1002 },
	{ "::ffff:127.0.0.48/124", 1006 },
	{ "127.0.0.9", 1007 },
	{ "a.lab.test", 1001 },
};

/* NULL: those. */
static void
write_table(struct world *w, const char *text)
{
	FILE *f = fopen(w->table, "we");
	const char *path = w->s.h->export;
	unsigned i;

	assert_non_null(f);
	if (text != NULL)
		(void)fprintf(f, "%s %s\n", path, text);
	for (i = 0; text == NULL && i < sizeof(clients) / sizeof(clients[0]);
	     i++)
		(void)fprintf(f, "%s %s(rw,insecure,all_squash,anonuid=%u)\n",
			      path, clients[i].client, clients[i].uid);
	assert_int_equal(fclose(f), 0);
}

static struct world *
world_new(const char *text)
{
	static struct world world;
	static bool once;
	struct world *w = &world;

	memset(w, 0, sizeof(*w));
	w->s.h = harness_new(NULL);
	once = once || own_etc(w->s.h->dir);
	if (!once) {
		harness_free(w->s.h);
		print_message("skip: no /etc of our own: %s\n", why);
		return NULL;
	}
	write_names("127.0.0.11 a.lab.test\n" HOSTS, FRIENDS);
	(void)snprintf(w->table, sizeof(w->table), "%s/table", w->s.h->dir);
	(void)snprintf(w->s.h->exports, sizeof(w->s.h->exports), "%s/table",
		       w->s.h->dir);
	write_table(w, text);
	harness_start(w->s.h);
	return w;
}

static void
world_free(struct world *w)
{
	harness_stop(w->s.h);
	harness_free(w->s.h);
}

static void
reload(struct world *w)
{
	unsigned before = harness_log_count(w->s.h, " reloaded$");

	harness_signal(w->s.h, SIGHUP);
	while (harness_log_count(w->s.h, " reloaded$") == before)
		usleep(1000);
}

/* Who a file belongs to that he makes. */
static void
expect_is(struct world *w, const char *address, uint32_t uid)
{
	struct raw *r = site_connect_from(&w->s, address);
	struct raw_fh root, fh;
	uint32_t got;
	char name[16];

	(void)snprintf(name, sizeof(name), "f%u", w->files++);
	assert_int_equal(raw_mount(r, w->s.h->export, &root), MNT3_OK);
	raw_create(r, &root, name, 0644, &fh);
	got = ask_attr(r, &fh).uid;
	if (got != uid)
		fail_msg("%s is taken for %u, not %u", address, got, uid);
	raw_close(r);
}

static void
test_order(void **state)
{
	struct world *w = world_new(NULL);

	if (w == NULL)
		skip();
	expect_is(w, "127.0.0.11", 1001); /* a host by its name */
	expect_is(w, "127.0.0.9", 1007);  /* a host by its address */
	expect_is(w, "127.0.0.12", 1002); /* the smaller network */
	expect_is(w, "127.0.0.17", 1003); /* a network before a name's form */
	expect_is(w, "127.0.0.41", 1004); /* that before a netgroup */
	expect_is(w, "127.0.0.42", 1005);
	expect_is(w, "127.0.0.44", 1005); /* in a netgroup by its address */
	expect_is(w, "127.0.0.45", 1004); /* whatever the case */
	expect_is(w, "127.0.0.50", 1006);
	expect_is(w, "127.0.0.64", 1009);
	world_free(w);
}

/* A name that moves: after a reload it is who has it now. */
static void
test_moves(void **state)
{
	struct world *w = world_new(NULL);

	if (w == NULL)
		skip();
	expect_is(w, "127.0.0.11", 1001);
	expect_is(w, "127.0.0.64", 1009);
	expect_is(w, "127.0.0.42", 1005);
	write_names("127.0.0.64 a.lab.test\n127.0.0.65 a.lab.test\n" HOSTS,
		    "friends (,,)\n");
	reload(w);
	expect_is(w, "127.0.0.64", 1001);
	expect_is(w, "127.0.0.65", 1001);
	expect_is(w, "127.0.0.11", 1002);
	expect_is(w, "127.0.0.66", 1005); /* everybody is a friend now */
	world_free(w);
}

static int
try_write(struct raw *r, const struct raw_fh *fh)
{
	return ask(r, ask_write(fh, 0, "text", 4, FILE_SYNC), NULL);
}

/* Connected, with a file in use: each reload counts for the next call. */
static void
test_shrinks(void **state)
{
	struct world *w =
		world_new("b.lab.test(rw,insecure) ?.lab.test(rw,insecure)");
	struct raw *b, *e;
	struct raw_fh root, fh;

	if (w == NULL)
		skip();
	b = site_connect_from(&w->s, "127.0.0.12");
	e = site_connect_from(&w->s, "127.0.0.41");
	ask_as(b, 1000, 1000);
	ask_as(e, 1000, 1000);
	assert_int_equal(raw_mount(e, w->s.h->export, &root), MNT3_OK);
	raw_create(e, &root, "f", 0666, &fh);
	assert_int_equal(try_write(b, &fh), NFS3_OK);
	assert_int_equal(try_write(e, &fh), NFS3_OK);
	write_table(w, "b.lab.test(rw,insecure) ?.lab.test(ro,insecure)");
	reload(w);
	assert_int_equal(try_write(b, &fh), NFS3_OK);
	assert_int_equal(try_write(e, &fh), NFS3ERR_ROFS);
	assert_int_equal(ask(e, ask_read(&fh, 0, 4), NULL), NFS3_OK);
	write_table(w, "b.lab.test(rw,insecure)");
	reload(w);
	assert_int_equal(try_write(b, &fh), NFS3_OK);
	assert_int_equal(try_write(e, &fh), NFS3ERR_STALE);
	assert_int_equal(ask(e, ask_read(&fh, 0, 4), NULL), NFS3ERR_STALE);
	assert_int_equal(raw_mount(e, w->s.h->export, &root), MNT3ERR_ACCES);
	write_table(w, "?.lab.test(rw,insecure)");
	reload(w);
	assert_int_equal(try_write(b, &fh), NFS3_OK);
	assert_int_equal(try_write(e, &fh), NFS3_OK);
	raw_close(b);
	raw_close(e);
	world_free(w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_shrinks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
