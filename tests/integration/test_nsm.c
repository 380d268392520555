/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reboots: a client with a lock is watched by rpc.statd and kept on disk before
 * it has the lock; what statd calls back frees its locks; and after a restart,
 * however the last run ended, those who had locks are told by SM_NOTIFY from
 * the address that they used, and nobody else. In a world of its own with an
 * rpcbind, a statd that tells what it was asked, and once with the real one.
 */
#include "called.h"
#include "nlm.h"
#include "site.h"
#include "statd.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NLM_PROGRAM 100021u
#define A           "127.0.0.5"
#define B           "127.0.0.6"
#define SERVER      "127.0.0.1"

/* A grace period that no test outlives. */
static const char conf[] = "[lockd]\ngrace = 3600\n";

struct world {
	struct site *s;
	struct raw *a, *b;
	struct raw_fh fh;
};

static struct world
world_new(void)
{
	struct world w = { .s = site_prepare("uring", NULL, NULL) };

	harness_conf(w.s->h, conf);
	site_start(w.s);
	raw_create(w.s->r, &w.s->root, "file", 0666, &w.fh);
	w.a = site_connect_from(w.s, A);
	w.b = site_connect_from(w.s, B);
	return w;
}

static void
world_free(struct world *w)
{
	raw_close(w->a);
	raw_close(w->b);
	site_free(w->s);
}

/* The server was ended by this function, and comes again. */
static void
world_restart(struct world *w, void (*end)(struct harness *h))
{
	raw_close(w->s->r);
	raw_close(w->a);
	raw_close(w->b);
	end(w->s->h);
	harness_start(w->s->h);
	w->s->r = raw_connect(w->s->h->port);
	w->a = site_connect_from(w->s, A);
	w->b = site_connect_from(w->s, B);
}

static int
lock(const struct world *w, struct raw *r, uint64_t offset, bool reclaim)
{
	const struct lock l = { .fh = &w->fh,
				.oh = "owner",
				.svid = 1,
				.offset = offset,
				.length = 1,
				.exclusive = true,
				.reclaim = reclaim };

	return nlm_ask(r, NLM_LOCK, &l);
}

/* Is this host kept, in this directory of the state directory? */
static bool
is_kept(const struct world *w, const char *where, const char *host)
{
	char path[400];

	(void)snprintf(path, sizeof(path), "%s/state/%s/%s", w->s->h->dir,
		       where, host);
	return access(path, F_OK) == 0;
}

static void
await_gone(const struct world *w, const char *where, const char *host)
{
	while (is_kept(w, where, host))
		usleep(2000);
}

/* Watched ------------------------------------------------------------------ */

static void
test_watched(void **state)
{
	struct statd *d = statd_new(true, false);
	struct world w = world_new();
	struct statd_news news;

	assert_int_equal(statd_left(d), 0);
	assert_int_equal(lock(&w, w.a, 0, false), LOCK_GRANTED);
	/* That was before the reply. */
	assert_int_equal(statd_left(d), 1);
	news = statd_take(d, STATD_MON, A);
	assert_int_equal(news.prog, NLM_PROGRAM);
	assert_int_equal(news.vers, 4);
	assert_int_equal(news.callback, NLM_SM_NOTIFY);
	assert_string_equal(news.from, SERVER);
	assert_true(news.from_port < 1024);
	assert_true(is_kept(&w, "nsm.hosts", A));
	assert_int_equal(lock(&w, w.a, 1, false), LOCK_GRANTED);
	assert_int_equal(lock(&w, w.b, 2, false), LOCK_GRANTED);
	assert_int_equal(statd_left(d), 1);
	(void)statd_take(d, STATD_MON, B);
	/* A lock that nobody watches for. */
	assert_false(is_kept(&w, "nsm.hosts", SERVER));
	assert_int_equal(nlm_ask(w.s->r, NLM_NM_LOCK,
				 &(struct lock){ .fh = &w.fh,
						 .oh = "nm",
						 .offset = 9,
						 .length = 1 }),
			 LOCK_GRANTED);
	assert_int_equal(statd_left(d), 0);
	assert_false(is_kept(&w, "nsm.hosts", SERVER));
	world_free(&w);
	statd_free(d);
}

/* It calls back: the host has no locks any more. Nobody else's word counts. */
static void
test_rebooted(void **state)
{
	struct statd *d = statd_new(true, false);
	struct world w = world_new();
	struct raw *root;
	struct statd_news news;
	uint8_t none[16] = { 0 };

	assert_int_equal(lock(&w, w.a, 0, false), LOCK_GRANTED);
	news = statd_take(d, STATD_MON, A);
	assert_int_equal(lock(&w, w.b, 0, false), LOCK_DENIED);
	/* From ports that anybody can have, or with nothing of ours. */
	nlm_notify(w.b, NLM_SM_NOTIFY, A, 3, news.priv);
	root = raw_connect_reserved(w.s->h->port);
	nlm_notify(root, NLM_SM_NOTIFY, A, 3, none);
	assert_int_equal(lock(&w, w.b, 0, false), LOCK_DENIED);
	nlm_notify(root, NLM_SM_NOTIFY, A, 5, news.priv);
	assert_int_equal(lock(&w, w.b, 0, false), LOCK_GRANTED);
	raw_close(root);
	world_free(&w);
	statd_free(d);
}

/* There is no statd, or it does not want to: said once, locked all the same. */
static void
test_unwatched(void **state)
{
	struct world w = world_new();
	struct statd *d;

	assert_int_equal(lock(&w, w.a, 0, false), LOCK_GRANTED);
	assert_true(harness_logged(w.s->h, A " has locks.*no rpc.statd runs"));
	assert_true(is_kept(&w, "nsm.hosts", A));
	assert_int_equal(lock(&w, w.b, 1, false), LOCK_GRANTED);
	assert_int_equal(harness_log_count(w.s->h, "no rpc.statd runs"), 1);
	world_free(&w);
	d = statd_new(true, false);
	statd_refuse(d, true);
	w = world_new();
	assert_int_equal(lock(&w, w.a, 0, false), LOCK_GRANTED);
	(void)statd_take(d, STATD_MON, A);
	assert_true(harness_logged(w.s->h, A " has locks.*does not watch it"));
	world_free(&w);
	statd_free(d);
}

/* What cannot be kept on disk is locked, and watched, all the same. */
static void
test_not_kept(void **state)
{
	struct statd *d = statd_new(true, false);
	struct world w = world_new();

	assert_int_equal(harness_sh("rm -r %s/state/nsm.hosts", w.s->h->dir),
			 0);
	assert_int_equal(lock(&w, w.a, 0, false), LOCK_GRANTED);
	(void)statd_take(d, STATD_MON, A);
	assert_true(harness_logged(w.s->h, "cannot keep that " A " has locks"));
	assert_int_equal(lock(&w, w.a, 1, false), LOCK_GRANTED);
	assert_int_equal(statd_left(d), 0);
	world_free(&w);
	statd_free(d);
}

/* After a restart ------------------------------------------------------------
 */

/* Told, by this transport, that the server has this state now. */
static uint32_t
expect_told(struct statd *d, const char *host, bool datagram)
{
	struct statd_news news = statd_take(d, STATD_NOTIFY, NULL);
	char name[256] = "";

	(void)gethostname(name, sizeof(name) - 1);
	assert_string_equal(news.mon_name, name);
	assert_string_equal(news.to, host);
	assert_string_equal(news.from, SERVER);
	assert_true(news.from_port < 1024);
	assert_int_equal(news.datagram, datagram);
	assert_int_equal(news.state % 2, 1);
	/* By the name before the dot too, where there is one. */
	if (strchr(name, '.') != NULL) {
		news = statd_take(d, STATD_NOTIFY, NULL);
		*strchr(name, '.') = '\0';
		assert_string_equal(news.mon_name, name);
	}
	return news.state;
}

static void
test_told(void **state)
{
	struct statd *d = statd_new(true, false);
	struct world w = world_new();
	uint32_t first, second;

	assert_int_equal(lock(&w, w.a, 0, false), LOCK_GRANTED);
	(void)statd_take(d, STATD_MON, A);
	world_restart(&w, harness_kill);
	assert_true(harness_logged(w.s->h, "1 client had locks"));
	first = expect_told(d, A, true);
	/* It has been told, and does not come: nobody watches it any more. */
	(void)statd_take(d, STATD_UNMON, A);
	await_gone(&w, "nsm.untold", A);
	assert_int_equal(lock(&w, w.b, 0, false), LOCK_GRACE);
	assert_int_equal(lock(&w, w.b, 0, true), LOCK_GRANTED);
	(void)statd_take(d, STATD_MON, B);
	/* A clean stop gives up the locks as well. */
	world_restart(&w, harness_stop);
	second = expect_told(d, B, true);
	assert_true(second > first);
	(void)statd_take(d, STATD_UNMON, B);
	/* Nobody has locks now, nobody is told, and there is no grace. */
	await_gone(&w, "nsm.untold", B);
	world_restart(&w, harness_kill);
	assert_int_equal(lock(&w, w.b, 0, false), LOCK_GRANTED);
	(void)statd_take(d, STATD_MON, B);
	assert_int_equal(statd_left(d), 0);
	world_free(&w);
	statd_free(d);
}

/* One that does not answer holds up nobody, and is told when it does: by the
 * next run if need be. */
static void
test_dead_host(void **state)
{
	struct statd *d = statd_new(true, false);
	struct world w = world_new();
	uint32_t first, second;

	assert_int_equal(lock(&w, w.a, 0, false), LOCK_GRANTED);
	assert_int_equal(lock(&w, w.b, 1, false), LOCK_GRANTED);
	(void)statd_take(d, STATD_MON, A);
	(void)statd_take(d, STATD_MON, B);
	statd_mute(d, A);
	world_restart(&w, harness_kill);
	assert_true(harness_logged(w.s->h, "2 clients had locks"));
	first = expect_told(d, B, true);
	(void)statd_take(d, STATD_UNMON, B);
	assert_true(is_kept(&w, "nsm.untold", A));
	world_restart(&w, harness_kill);
	assert_true(harness_logged(w.s->h, "1 client had locks"));
	statd_mute(d, NULL);
	second = expect_told(d, A, true);
	assert_true(second > first);
	(void)statd_take(d, STATD_UNMON, A);
	await_gone(&w, "nsm.untold", A);
	world_free(&w);
	statd_free(d);
}

/* One that is not told yet, but claims its locks: it knows. */
static void
test_claims_untold(void **state)
{
	struct statd *d = statd_new(true, false);
	struct world w = world_new();

	assert_int_equal(lock(&w, w.a, 0, false), LOCK_GRANTED);
	(void)statd_take(d, STATD_MON, A);
	statd_mute(d, A);
	world_restart(&w, harness_kill);
	assert_int_equal(lock(&w, w.a, 0, true), LOCK_GRANTED);
	(void)statd_take(d, STATD_MON, A);
	await_gone(&w, "nsm.untold", A);
	assert_true(is_kept(&w, "nsm.hosts", A));
	assert_int_equal(statd_left(d), 0);
	world_free(&w);
	statd_free(d);
}

static void
test_told_by_tcp(void **state)
{
	struct statd *d = statd_new(true, false);
	struct world w = world_new();

	assert_int_equal(lock(&w, w.a, 0, false), LOCK_GRANTED);
	(void)statd_take(d, STATD_MON, A);
	statd_free(d);
	d = statd_new(false, true);
	world_restart(&w, harness_kill);
	(void)expect_told(d, A, false);
	await_gone(&w, "nsm.untold", A);
	world_free(&w);
	statd_free(d);
}

/* The real one --------------------------------------------------------------
 */

static pid_t
statd_start(void)
{
	pid_t pid;

	assert_int_equal(mount("tmpfs", "/var/lib/nfs", "tmpfs", 0, NULL), 0);
	assert_int_equal(mkdir("/var/lib/nfs/sm", 0755), 0);
	assert_int_equal(mkdir("/var/lib/nfs/sm.bak", 0755), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/usr/sbin/rpc.statd", "rpc.statd", "-F", "-L", NULL);
		execl("/sbin/rpc.statd", "rpc.statd", "-F", "-L", NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	return pid;
}

/* The port at which rpcbind knows it by UDP, 0: not yet. */
static uint16_t
statd_port(void)
{
	struct raw *r = raw_connect(111);
	uint32_t port;

	r->flavor = 0;
	raw_build(r, 100000, 2, 3, NULL, NULL);
	raw_put(r, 100024);
	raw_put(r, 1);
	raw_put(r, 17);
	raw_put(r, 0);
	raw_send(r);
	assert_true(raw_receive(r));
	port = raw_get(r, r->body);
	raw_close(r);
	return (uint16_t)port;
}

static void
test_real_statd(void **state)
{
	pid_t pid = statd_start();
	struct world w;
	uint16_t port;

	while ((port = statd_port()) == 0) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			fail_msg("rpc.statd has ended");
		usleep(20000);
	}
	w = world_new();
	assert_true(called_register(NLM_PROGRAM, 4, IPPROTO_UDP, w.s->h->port));
	assert_int_equal(lock(&w, w.a, 0, false), LOCK_GRANTED);
	assert_false(harness_logged(w.s->h, "has locks, and nobody"));
	assert_int_equal(access("/var/lib/nfs/sm/" A, F_OK), 0);
	assert_int_equal(lock(&w, w.b, 0, false), LOCK_DENIED);
	/* Another host's reboot changes nothing, its own does. */
	statd_tell_reboot("127.0.0.9", port, "stranger", 5);
	assert_int_equal(lock(&w, w.b, 0, false), LOCK_DENIED);
	statd_tell_reboot(A, port, "client", 5);
	while (lock(&w, w.b, 0, false) == LOCK_DENIED)
		usleep(2000);
	assert_int_equal(access("/var/lib/nfs/sm/" B, F_OK), 0);
	world_free(&w);
	assert_true(called_register(NLM_PROGRAM, 4, IPPROTO_UDP, 0));
	kill(pid, SIGTERM);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(umount("/var/lib/nfs"), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_watched),
		cmocka_unit_test(test_rebooted),
		cmocka_unit_test(test_unwatched),
		cmocka_unit_test(test_not_kept),
		cmocka_unit_test(test_told),
		cmocka_unit_test(test_dead_host),
		cmocka_unit_test(test_claims_untold),
		cmocka_unit_test(test_told_by_tcp),
		cmocka_unit_test(test_real_statd),
	};

	if (!world_enter())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
