/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NLM version 4 over the wire: each procedure, what it judges, what is garbage,
 * where it is served, and what a drain and an unexport leave of locks.
 */
#include "called.h"
#include "control.h"
#include "nlm_scene.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define PROGRAM 100021

#define PROG_UNAVAIL  1u
#define PROG_MISMATCH 2u
#define PROC_UNAVAIL  3u
#define GARBAGE_ARGS  4u

static const char engine[] = "uring";

/* The reply to what raw_build() and others made is no result. */
static void
expect_error(struct raw *r, uint32_t accept_stat)
{
	raw_send(r);
	assert_true(raw_receive(r));
	assert_int_equal(r->reply_stat, 0);
	assert_int_equal(r->accept_stat, accept_stat);
}

static void
test_numbers(void **state)
{
	static const uint32_t none[] = { 17, 18, 19, 24 };
	struct scene v;
	unsigned i;

	scene_start(&v, site_new(engine, NULL, NULL));
	raw_call(v.b, PROGRAM, 4, 0, NULL, NULL, NULL, NULL);
	for (i = 0; i < 4; i++) {
		raw_build(v.b, PROGRAM, 4, none[i], NULL, NULL);
		expect_error(v.b, PROC_UNAVAIL);
		raw_build(v.b, PROGRAM, i, 0, NULL, NULL);
		expect_error(v.b, PROG_MISMATCH);
		assert_int_equal(v.b->low, 4);
		assert_int_equal(v.b->high, 4);
	}
	assert_int_equal(harness_stat(v.s->h, "nlm.NULL"), 1);
	scene_end(&v);
}

static void
test_holder(void **state)
{
	struct lock mine, other;
	struct holder h;
	struct scene v;

	scene_start(&v, site_new(engine, NULL, NULL));
	mine = scene_lock(&v, 7, 100, 50);
	other = scene_lock(&v, 7, 0, 0);
	assert_int_equal(nlm_ask(v.a, NLM_LOCK, &mine), LOCK_GRANTED);
	assert_int_equal(nlm_test(v.a, &other, &h), LOCK_GRANTED);
	assert_int_equal(nlm_test(v.b, &other, &h), LOCK_DENIED);
	assert_true(h.exclusive);
	assert_int_equal(h.svid, 7);
	assert_string_equal(h.oh, "owner");
	assert_int_equal(h.offset, 100);
	assert_int_equal(h.length, 50);
	other.block = false;
	assert_int_equal(nlm_ask(v.b, NLM_LOCK, &other), LOCK_DENIED);
	other.length = 100;
	assert_int_equal(nlm_ask(v.b, NLM_LOCK, &other), LOCK_GRANTED);
	assert_int_equal(nlm_ask(v.a, NLM_UNLOCK, &mine), LOCK_GRANTED);
	assert_int_equal(nlm_test(v.c, &mine, &h), LOCK_GRANTED);
	scene_end(&v);
}

/* This server asks nobody for a lock. */
static void
test_no_client(void **state)
{
	static const uint32_t res[] = { NLM_LOCK_RES, NLM_CANCEL_RES,
					NLM_UNLOCK_RES, NLM_GRANTED_RES,
					NLM_TEST_RES };
	struct lock l;
	struct scene v;
	unsigned i;

	scene_start(&v, site_new(engine, NULL, NULL));
	l = scene_lock(&v, 1, 0, 0);
	assert_int_equal(nlm_ask(v.b, NLM_GRANTED, &l), LOCK_DENIED);
	nlm_tell(v.b, NLM_GRANTED_MSG, &l);
	scene_expect_res(&v, NLM_GRANTED_RES, LOCK_DENIED);
	for (i = 0; i < sizeof(res) / sizeof(*res); i++)
		nlm_reply(v.b, res[i], "12345678", 8, LOCK_GRANTED);
	assert_int_equal(harness_stat(v.s->h, "nlm.LOCK_RES"), 1);
	assert_int_equal(nlm_test(v.a, &l, NULL), LOCK_GRANTED);
	scene_end(&v);
}

static void
test_share(void **state)
{
	struct scene v;

	scene_start(&v, site_new(engine, NULL, NULL));
	/* Deny modes and accesses: 1 read, 2 write. */
	assert_int_equal(nlm_share(v.a, NLM_SHARE, &v.fh, "x", 2, 1),
			 LOCK_GRANTED);
	assert_int_equal(nlm_share(v.b, NLM_SHARE, &v.fh, "x", 0, 2),
			 LOCK_DENIED);
	assert_int_equal(nlm_share(v.b, NLM_SHARE, &v.fh, "x", 1, 1),
			 LOCK_DENIED);
	assert_int_equal(nlm_share(v.b, NLM_SHARE, &v.fh, "x", 0, 1),
			 LOCK_GRANTED);
	assert_int_equal(nlm_share(v.a, NLM_UNSHARE, &v.fh, "x", 0, 0),
			 LOCK_GRANTED);
	assert_int_equal(nlm_share(v.c, NLM_SHARE, &v.fh, "x", 0, 2),
			 LOCK_GRANTED);
	scene_end(&v);
}

/* Each host frees what is its own. */
static void
test_free_all(void **state)
{
	struct lock mine, others;
	struct scene v;

	scene_start(&v, site_new(engine, NULL, NULL));
	mine = scene_lock(&v, 1, 0, 10);
	others = scene_lock(&v, 2, 10, 10);
	assert_int_equal(nlm_ask(v.b, NLM_NM_LOCK, &mine), LOCK_GRANTED);
	assert_int_equal(nlm_ask(v.c, NLM_LOCK, &others), LOCK_GRANTED);
	nlm_notify(v.a, NLM_FREE_ALL, NLM_CALLER, 1, NULL);
	assert_int_equal(nlm_test(v.a, &mine, NULL), LOCK_DENIED);
	nlm_notify(v.b, NLM_FREE_ALL, NLM_CALLER, 1, NULL);
	assert_int_equal(nlm_test(v.a, &mine, NULL), LOCK_GRANTED);
	assert_int_equal(nlm_test(v.a, &others, NULL), LOCK_DENIED);
	scene_end(&v);
}

/* Anybody could say that B has rebooted: rpc.statd alone, which root has
 * started here, is believed. What it was given is an address. */
static void
test_notify(void **state)
{
	static const uint8_t priv[16] = { [10] = 0xff, 0xff, 127, 0, 0, 2 };
	struct raw *reserved;
	struct lock l;
	struct scene v;

	scene_start(&v, site_new(engine, NULL, NULL));
	l = scene_lock(&v, 1, 0, 10);
	assert_int_equal(nlm_ask(v.b, NLM_LOCK, &l), LOCK_GRANTED);
	nlm_notify(v.b, NLM_SM_NOTIFY, B_HOST, 3, priv);
	assert_true(harness_logged(v.s->h, "not rpc.statd.s are ignored"));
	assert_int_equal(nlm_test(v.a, &l, NULL), LOCK_DENIED);
	reserved = raw_connect_reserved(v.s->h->port);
	nlm_notify(reserved, NLM_SM_NOTIFY, B_HOST, 3, priv);
	raw_close(reserved);
	assert_int_equal(nlm_test(v.a, &l, NULL), LOCK_GRANTED);
	scene_end(&v);
}

static void
test_bad_handles(void **state)
{
	static const char long_handle[1024];
	struct raw_fh forged, dir;
	struct lock l;
	struct scene v;
	unsigned i;

	scene_start(&v, site_new(engine, NULL, NULL));
	forged = v.fh;
	forged.data[forged.bytes - 1] ^= 1;
	l = scene_lock(&v, 1, 0, 10);
	l.fh = &forged;
	assert_int_equal(nlm_ask(v.b, NLM_LOCK, &l), LOCK_STALE);
	assert_int_equal(nlm_ask(v.b, NLM_UNLOCK, &l), LOCK_STALE);
	assert_int_equal(nlm_test(v.b, &l, NULL), LOCK_STALE);
	assert_int_equal(nlm_ask(v.b, NLM_CANCEL, &l), LOCK_STALE);
	assert_int_equal(nlm_share(v.b, NLM_SHARE, &forged, "x", 0, 1),
			 LOCK_STALE);
	forged.bytes = 0;
	assert_int_equal(nlm_ask(v.b, NLM_LOCK, &l), LOCK_STALE);
	assert_int_equal(harness_sh("mkdir %s", site_path(v.s, "dir")), 0);
	dir = site_lookup(v.s, "dir");
	l.fh = &dir;
	assert_int_equal(nlm_ask(v.b, NLM_LOCK, &l), LOCK_FAILED);
	l.fh = &v.fh;
	l.offset = UINT64_MAX - 5;
	assert_int_equal(nlm_ask(v.b, NLM_LOCK, &l), LOCK_FBIG);
	/* Longer than any handle, but a netobj. */
	raw_build(v.b, PROGRAM, 4, NLM_UNLOCK, NULL, NULL);
	raw_put_opaque(v.b, "c\0o\1k", 5);
	raw_put_opaque(v.b, "client", 6);
	raw_put_opaque(v.b, long_handle, sizeof(long_handle));
	raw_put_opaque(v.b, "owner", 5);
	for (i = 0; i < 5; i++)
		raw_put(v.b, 0);
	raw_send(v.b);
	assert_true(raw_receive(v.b));
	assert_int_equal(nlm_result(v.b, NULL), LOCK_STALE);
	scene_end(&v);
}

static void
test_garbage(void **state)
{
	static const uint32_t proc[] = { NLM_TEST,   NLM_LOCK,    NLM_CANCEL,
					 NLM_UNLOCK, NLM_GRANTED, NLM_LOCK_MSG,
					 NLM_NM_LOCK };
	struct lock l;
	struct scene v;
	unsigned i;

	scene_start(&v, site_new(engine, NULL, NULL));
	l = scene_lock(&v, 1, 0, 10);
	for (i = 0; i < sizeof(proc) / sizeof(*proc); i++) {
		nlm_build(v.b, proc[i], &l);
		v.b->out_bytes -= 4;
		expect_error(v.b, GARBAGE_ARGS);
		nlm_build(v.b, proc[i], &l);
		raw_put(v.b, 0);
		expect_error(v.b, GARBAGE_ARGS);
		raw_build(v.b, PROGRAM, 4, proc[i], NULL, NULL);
		raw_put(v.b, 1025); /* of a cookie */
		expect_error(v.b, GARBAGE_ARGS);
	}
	raw_build(v.b, PROGRAM, 4, NLM_FREE_ALL, NULL, NULL);
	expect_error(v.b, GARBAGE_ARGS);
	raw_build(v.b, PROGRAM, 4, NLM_SM_NOTIFY, NULL, NULL);
	raw_put_opaque(v.b, "name", 4);
	raw_put(v.b, 1);
	expect_error(v.b, GARBAGE_ARGS);
	assert_int_equal(nlm_test(v.a, &l, NULL), LOCK_GRANTED);
	scene_end(&v);
}

static void
test_read_only(void **state)
{
	struct lock l;
	struct scene v;

	scene_start(&v, site_new(engine, "ro,no_root_squash,insecure", NULL));
	l = scene_lock(&v, 1, 0, 10);
	assert_int_equal(nlm_ask(v.b, NLM_LOCK, &l), LOCK_ROFS);
	l.exclusive = false;
	assert_int_equal(nlm_ask(v.b, NLM_LOCK, &l), LOCK_GRANTED);
	scene_end(&v);
}

/* NULL of a program, at a port. */
static uint32_t
answer_of(uint16_t port, uint32_t program, uint32_t version)
{
	struct raw *r = raw_connect(port);
	uint32_t stat;

	raw_build(r, program, version, 0, NULL, NULL);
	raw_send(r);
	assert_true(raw_receive(r));
	stat = r->accept_stat;
	raw_close(r);
	return stat;
}

/* The world is our own, and so are all ports. */
static void
test_port(void **state)
{
	struct site *s = site_prepare(engine, NULL, NULL);

	harness_conf(s->h, "[lockd]\nport = 4045\n");
	site_start(s);
	assert_int_equal(answer_of(4045, PROGRAM, 4), 0);
	assert_int_equal(answer_of(4045, 100003, 3), PROG_UNAVAIL);
	assert_int_equal(answer_of(4045, 100005, 3), PROG_UNAVAIL);
	assert_int_equal(answer_of(s->h->port, PROGRAM, 4), PROG_UNAVAIL);
	assert_int_equal(answer_of(s->h->port, 100003, 3), 0);
	assert_int_equal(answer_of(s->h->port, 100005, 3), 0);
	site_free(s);
	s = site_prepare(engine, NULL, NULL);
	harness_conf(s->h, "[mountd]\nport = 4046\n[lockd]\nport = 4046\n");
	harness_start(s->h);
	assert_int_equal(answer_of(4046, PROGRAM, 4), 0);
	assert_int_equal(answer_of(4046, 100005, 1), 0);
	assert_int_equal(answer_of(4046, 100003, 3), PROG_UNAVAIL);
	site_free(s);
}

static void
reconnect(struct scene *v)
{
	raw_close(v->a);
	raw_close(v->b);
	v->a = site_connect_from(v->s, A_HOST);
	v->b = site_connect_from(v->s, B_HOST);
}

/* Connections come and go, locks stay. */
static void
test_drained(void **state)
{
	struct lock l;
	struct scene v;

	scene_start(&v, site_new(engine, NULL, NULL));
	l = scene_lock(&v, 1, 0, 10);
	assert_int_equal(nlm_ask(v.b, NLM_LOCK, &l), LOCK_GRANTED);
	assert_int_equal(control_run(v.s->h, NULL, "drain"), 0);
	assert_int_equal(control_run(v.s->h, NULL, "drain --resume"), 0);
	reconnect(&v);
	assert_int_equal(nlm_test(v.a, &l, NULL), LOCK_DENIED);
	assert_int_equal(nlm_ask(v.b, NLM_UNLOCK, &l), LOCK_GRANTED);
	assert_int_equal(nlm_test(v.a, &l, NULL), LOCK_GRANTED);
	scene_end(&v);
}

/* The file system of a withdrawn export is let go, and so are the locks there:
 * when the export comes back they are free. */
static void
test_withdrawn(void **state)
{
	struct lock l;
	struct scene v;

	scene_start(&v, site_new(engine, NULL, NULL));
	l = scene_lock(&v, 1, 0, 10);
	assert_int_equal(nlm_ask(v.b, NLM_LOCK, &l), LOCK_GRANTED);
	assert_int_equal(
		control_run(v.s->h, NULL, "unexport %s", v.s->h->export), 0);
	assert_int_equal(nlm_ask(v.a, NLM_LOCK, &l), LOCK_STALE);
	assert_int_equal(nlm_test(v.b, &l, NULL), LOCK_STALE);
	assert_int_equal(nlm_ask(v.b, NLM_UNLOCK, &l), LOCK_GRANTED);
	harness_signal(v.s->h, SIGHUP);
	while (nlm_ask(v.a, NLM_LOCK, &l) == LOCK_STALE)
		usleep(1000);
	assert_int_equal(nlm_test(v.b, &l, NULL), LOCK_DENIED);
	assert_int_equal(nlm_ask(v.a, NLM_UNLOCK, &l), LOCK_GRANTED);
	scene_end(&v);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_holder),
		cmocka_unit_test(test_no_client),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_free_all),
		cmocka_unit_test(test_notify),
		cmocka_unit_test(test_bad_handles),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_read_only),
		cmocka_unit_test(test_port),
		cmocka_unit_test(test_drained),
		cmocka_unit_test(test_withdrawn),
	};

	if (!world_enter())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
