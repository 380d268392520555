/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The duplicate request cache over the wire, while a call is in service: it
 * runs once, and the newest of its retries is answered, whatever connections
 * they come by and however those end. The call is kept there as long as wanted
 * by freezing the file system below it. Once an engine.
 */
#include "frozen.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *engine;

static struct site *
site_on_device(void)
{
	return site_new(engine, NULL, "xfs");
}

/* Until there are no more connections than this, the asker's own aside. */
static void
await_connections(struct site *s, uint64_t count)
{
	while (frozen_stat(s, "connections") > count + 1)
		usleep(1000);
}

/* Calls and their retries -----------------------------------------------------
 */

static void
send_mkdir(struct site *s, struct raw *r, const char *name)
{
	struct question q = ask_mkdir(&s->root, name, ask_mode(0755));

	ask_send(r, &q);
}

/* The reply to the last MKDIR by r, or to its retry, has come. */
static void
expect_mkdir(struct raw *r)
{
	struct answer a;

	assert_true(raw_receive(r));
	assert_int_equal(r->reply_xid, r->xid - 1);
	ask_take(r, NFS3_MKDIR, &a);
	assert_int_equal(a.status, NFS3_OK);
	assert_true(a.has_fh);
}

/* Nothing has come, and nothing will: the next reply is the next call's. */
static void
expect_silence(struct raw *r)
{
	raw_call(r, 100003, 3, 0, NULL, NULL, NULL, NULL);
}

/* End a connection by a reset, so that the server's receive fails. */
static void
reset(struct raw *r)
{
	const struct linger l = { .l_onoff = 1, .l_linger = 0 };

	assert_int_equal(
		setsockopt(r->fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)), 0);
	raw_close(r);
}

/* A MKDIR that is in service, by s->r, and stays there. */
static void
begin(struct site *s, const char *name)
{
	uint64_t before = harness_stat(s->h, "nfs3.MKDIR");

	frozen_freeze(s);
	send_mkdir(s, s->r, name);
	frozen_await(s, "nfs3.MKDIR", before + 1);
}

/* In service ------------------------------------------------------------------
 */

static void
test_newest_gets_it(void **state)
{
	struct site *s = site_on_device();
	struct raw *r[4];
	unsigned i;

	begin(s, "d");
	for (i = 0; i < 4; i++)
		r[i] = frozen_attach(s);
	frozen_thaw();
	expect_mkdir(r[3]);
	expect_silence(s->r);
	for (i = 0; i < 4; i++) {
		expect_silence(r[i]);
		raw_close(r[i]);
	}
	assert_int_equal(harness_stat(s->h, "nfs3.MKDIR"), 1);
	site_free(s);
}

static void
test_same_connection(void **state)
{
	struct site *s = site_on_device();

	begin(s, "d");
	raw_send(s->r);
	raw_send(s->r);
	frozen_await(s, "drc_attached", 2);
	frozen_thaw();
	expect_mkdir(s->r);
	expect_silence(s->r);
	assert_int_equal(harness_stat(s->h, "nfs3.MKDIR"), 1);
	site_free(s);
}

/* The waiter's connection ends by a reset: nobody waits any more. */
static void
test_waiter_reset(void **state)
{
	struct site *s = site_on_device();
	struct raw *r;
	unsigned i;

	begin(s, "d");
	/* On each reactor, in turn. */
	for (i = 0; i < 4; i++) {
		reset(frozen_attach(s));
		await_connections(s, 1);
	}
	r = frozen_attach(s);
	frozen_thaw();
	expect_mkdir(r);
	expect_silence(s->r);
	raw_close(r);
	site_free(s);
}

/* The same with all gone: the first gets it again. */
static void
test_waiter_gone(void **state)
{
	struct site *s = site_on_device();

	begin(s, "d");
	reset(frozen_attach(s));
	await_connections(s, 1);
	frozen_thaw();
	expect_mkdir(s->r);
	site_free(s);
}

/* A waiter that another retry has replaced is nobody's when it goes. */
static void
test_replaced_reset(void **state)
{
	struct site *s = site_on_device();
	struct raw *old, *newest;

	begin(s, "d");
	old = frozen_attach(s);
	newest = frozen_attach(s);
	reset(old);
	await_connections(s, 2);
	frozen_thaw();
	expect_mkdir(newest);
	expect_silence(s->r);
	raw_close(newest);
	site_free(s);
}

/* Many waiters on one connection, each of a call of its own, and other calls
 * that have been answered there. */
static void
test_many_waiters_reset(void **state)
{
	struct site *s = site_on_device();
	struct raw *r = raw_connect(s->h->port);
	char name[8][8];
	unsigned i;

	frozen_freeze(s);
	for (i = 0; i < 8; i++) {
		(void)snprintf(name[i], sizeof(name[i]), "d%u", i);
		send_mkdir(s, s->r, name[i]);
		frozen_await(s, "nfs3.MKDIR", i + 1);
		ask_again(r, s->r);
		frozen_await(s, "drc_attached", i + 1);
		expect_silence(r);
	}
	reset(r);
	await_connections(s, 1);
	frozen_thaw();
	for (i = 0; i < 8; i++)
		assert_true(raw_receive(s->r));
	expect_silence(s->r);
	site_free(s);
}

/* It has sent all that it wanted to send, and still wants its answer. */
static void
test_waiter_half_closed(void **state)
{
	struct site *s = site_on_device();
	struct raw *r;

	begin(s, "d");
	r = frozen_attach(s);
	assert_int_equal(shutdown(r->fd, SHUT_WR), 0);
	expect_silence(s->r);
	frozen_thaw();
	expect_mkdir(r);
	assert_true(raw_closed(r));
	expect_silence(s->r);
	raw_close(r);
	site_free(s);
}

/* The first's connection is gone: its retry is answered, now and later. */
static void
test_first_reset(void **state)
{
	struct site *s = site_on_device();
	struct raw *waits, *later;

	begin(s, "d");
	waits = frozen_attach(s);
	later = raw_connect(s->h->port);
	memcpy(later->out, waits->out, waits->out_bytes);
	later->out_bytes = waits->out_bytes;
	later->xid = waits->xid;
	reset(s->r);
	await_connections(s, 3); /* it stays for its call */
	frozen_thaw();
	expect_mkdir(waits);
	raw_send(later);
	expect_mkdir(later);
	assert_int_equal(harness_stat(s->h, "nfs3.MKDIR"), 1);
	raw_close(waits);
	s->r = later;
	site_free(s);
}

/* Nobody was there to hear it: it is told when asked for. */
static void
test_nobody_left(void **state)
{
	struct site *s = site_on_device();
	struct raw *r = raw_connect(s->h->port);
	struct raw *other = raw_connect(s->h->port);

	begin(s, "d");
	memcpy(r->out, s->r->out, s->r->out_bytes);
	r->out_bytes = s->r->out_bytes;
	r->xid = s->r->xid;
	reset(s->r);
	expect_silence(other);
	frozen_thaw();
	await_connections(s, 2);
	raw_send(r);
	expect_mkdir(r);
	assert_int_equal(harness_stat(s->h, "drc_hits"), 1);
	raw_close(other);
	s->r = r;
	site_free(s);
}

/* A server that stops answers what it has in service, its retries too. */
static void
test_stop(void **state)
{
	struct site *s = site_on_device();
	struct raw *idle = raw_connect(s->h->port), *r;

	begin(s, "d");
	r = frozen_attach(s);
	expect_silence(idle);
	harness_signal(s->h, SIGTERM);
	assert_true(raw_closed(idle));
	frozen_thaw();
	expect_mkdir(r);
	assert_true(raw_closed(r));
	assert_true(raw_closed(s->r));
	raw_close(r);
	raw_close(idle);
	site_free(s);
}

/* It waits for its calls, but not for ever: then their connections end, those
 * of retries too, and what a call answers later goes nowhere. */
static void
test_forced_stop(void **state)
{
	struct site *s = site_prepare(engine, NULL, "xfs");
	struct raw *r[3];
	unsigned i;

	harness_conf(s->h, "[nfsd]\nstop-timeout = 1\n");
	site_start(s);
	begin(s, "d");
	for (i = 0; i < 3; i++)
		r[i] = frozen_attach(s);
	harness_signal(s->h, SIGTERM);
	for (i = 0; i < 3; i++)
		assert_true(raw_closed(r[i]));
	assert_true(raw_closed(s->r));
	assert_true(harness_logged(s->h, "calls are still in service"));
	frozen_thaw();
	for (i = 0; i < 3; i++)
		raw_close(r[i]);
	site_free(s);
}

/* Retries by chance, on connections that end by chance, with the file system
 * frozen for some of the time: every MKDIR has run once. */
#define CHANCE_CALLS 8u
#define CHANCE_CONNS 5u

static unsigned
chance(unsigned below)
{
	static uint32_t x = 2463534242u;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x % below;
}

struct chance {
	struct site *s;
	struct raw *call[CHANCE_CALLS]; /* holds a record, and sends it first */
	struct raw *conn[CHANCE_CONNS];
	char name[CHANCE_CALLS][24];
};

static void
chance_retry(struct chance *c)
{
	unsigned i = chance(CHANCE_CONNS);

	ask_again(c->conn[i], c->call[chance(CHANCE_CALLS)]);
	if (chance(3) != 0)
		return;
	reset(c->conn[i]);
	c->conn[i] = raw_connect(c->s->h->port);
}

/* What r has sent, the server has taken up: no later retry is older than it. */
static void
chance_flush(struct raw *r)
{
	uint32_t bytes = r->out_bytes, xid = r->xid, null;
	uint8_t *record = malloc(bytes);

	assert_non_null(record);
	memcpy(record, r->out, bytes);
	r->xid += 1000000;
	null = raw_build(r, 100003, 3, 0, NULL, NULL);
	raw_send(r);
	do
		assert_true(raw_receive(r));
	while (r->reply_xid != null);
	memcpy(r->out, record, bytes);
	r->out_bytes = bytes;
	r->xid = xid;
	free(record);
}

static void
chance_round(struct chance *c, unsigned round)
{
	bool freezes = chance(2) == 0;
	unsigned i, retries = chance(24);

	for (i = 0; i < CHANCE_CONNS; i++)
		c->conn[i] = raw_connect(c->s->h->port);
	if (freezes)
		frozen_freeze(c->s);
	for (i = 0; i < CHANCE_CALLS; i++) {
		c->call[i] = raw_connect(c->s->h->port);
		c->call[i]->xid = (round * CHANCE_CALLS + i) * 16;
		(void)snprintf(c->name[i], sizeof(c->name[i]), "r%u-%u", round,
			       i);
		send_mkdir(c->s, c->call[i], c->name[i]);
	}
	for (i = 0; i < retries; i++)
		chance_retry(c);
	if (freezes)
		frozen_thaw();
	for (i = 0; i < CHANCE_CONNS; i++)
		reset(c->conn[i]);
	await_connections(c->s, 1 + CHANCE_CALLS);
	/* Where a retry took the reply with it, it is asked for again. */
	for (i = 0; i < CHANCE_CALLS; i++) {
		struct raw *r = raw_connect(c->s->h->port);

		chance_flush(c->call[i]);
		ask_again(r, c->call[i]);
		expect_mkdir(r);
		raw_close(r);
		raw_close(c->call[i]);
	}
}

static void
test_chance(void **state)
{
	struct chance c = { .s = site_on_device() };
	unsigned round;

	for (round = 0; round < 20; round++)
		chance_round(&c, round);
	await_connections(c.s, 1);
	site_free(c.s);
}

static int
run(const char *name)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_newest_gets_it),
		cmocka_unit_test(test_same_connection),
		cmocka_unit_test(test_waiter_reset),
		cmocka_unit_test(test_waiter_gone),
		cmocka_unit_test(test_replaced_reset),
		cmocka_unit_test(test_many_waiters_reset),
		cmocka_unit_test(test_waiter_half_closed),
		cmocka_unit_test(test_first_reset),
		cmocka_unit_test(test_nobody_left),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_forced_stop),
		cmocka_unit_test(test_chance),
	};

	engine = name;
	print_message("engine %s\n", name);
	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int
main(void)
{
	return run("uring") + run("threads");
}
