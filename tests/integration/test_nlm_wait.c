/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks that are waited for: how their clients are told, what becomes of those
 * who refuse or do not answer, and of all of them when the server is killed.
 */
#include "called.h"
#include "nlm_scene.h"

#include <stdio.h>
#include <unistd.h>

static const char engine[] = "uring";

static void
check_news(const struct nlm_news *news, const struct lock *l)
{
	assert_int_equal(news->holder.exclusive, l->exclusive);
	assert_int_equal(news->holder.svid, l->svid);
	assert_string_equal(news->holder.oh, l->oh);
	assert_int_equal(news->holder.offset, l->offset);
	assert_int_equal(news->holder.length, l->length);
	site_expect_same(&news->fh, l->fh);
	assert_string_equal(news->caller, NLM_CALLER);
}

static void
test_granted(void **state)
{
	struct lock has, wants;
	struct nlm_news news;
	struct holder h;
	struct scene v;

	scene_start(&v, site_new(engine, NULL, NULL));
	has = scene_lock(&v, 1, 0, 0);
	wants = scene_lock(&v, 2, UINT64_C(5) << 32, 10);
	assert_int_equal(nlm_ask(v.a, NLM_LOCK, &has), LOCK_GRANTED);
	assert_int_equal(nlm_ask(v.b, NLM_LOCK, &wants), LOCK_BLOCKED);
	assert_int_equal(nlm_ask(v.a, NLM_UNLOCK, &has), LOCK_GRANTED);
	news = nlm_peer_expect(v.p, NLM_GRANTED, B_HOST);
	assert_false(news.datagram);
	check_news(&news, &wants);
	assert_int_equal(nlm_test(v.a, &has, &h), LOCK_DENIED);
	assert_int_equal(h.svid, 2);
	assert_int_equal(nlm_ask(v.b, NLM_UNLOCK, &wants), LOCK_GRANTED);
	assert_int_equal(nlm_test(v.a, &has, &h), LOCK_GRANTED);
	scene_end(&v);
}

/* What is asked by UDP is granted by UDP. */
static void
test_udp(void **state)
{
	struct lock has, wants;
	struct nlm_news news;
	struct scene v;
	struct raw *u;

	scene_start(&v, site_new(engine, NULL, NULL));
	u = raw_connect_udp(v.s->h->port);
	has = scene_lock(&v, 1, 0, 10);
	wants = scene_lock(&v, 2, 0, 0);
	assert_int_equal(nlm_ask(v.b, NLM_LOCK, &has), LOCK_GRANTED);
	assert_int_equal(nlm_ask(u, NLM_LOCK, &wants), LOCK_BLOCKED);
	assert_int_equal(nlm_ask(v.b, NLM_UNLOCK, &has), LOCK_GRANTED);
	news = nlm_peer_expect(v.p, NLM_GRANTED, A_HOST);
	assert_true(news.datagram);
	check_news(&news, &wants);
	/* The same client by TCP. */
	assert_int_equal(nlm_ask(v.a, NLM_UNLOCK, &wants), LOCK_GRANTED);
	assert_int_equal(nlm_test(v.b, &has, NULL), LOCK_GRANTED);
	raw_close(u);
	scene_end(&v);
}

/* Sent again it is the same call, asked again the same wait. */
static void
test_again(void **state)
{
	struct lock has, wants;
	struct scene v;

	scene_start(&v, site_new(engine, NULL, NULL));
	has = scene_lock(&v, 1, 0, 0);
	wants = scene_lock(&v, 2, 0, 10);
	assert_int_equal(nlm_ask(v.a, NLM_LOCK, &has), LOCK_GRANTED);
	assert_int_equal(nlm_ask(v.b, NLM_LOCK, &wants), LOCK_BLOCKED);
	raw_send(v.b);
	assert_true(raw_receive(v.b));
	assert_int_equal(nlm_result(v.b, NULL), LOCK_BLOCKED);
	assert_int_equal(harness_stat(v.s->h, "drc_hits"), 1);
	assert_int_equal(nlm_ask(v.b, NLM_LOCK, &wants), LOCK_BLOCKED);
	assert_int_equal(nlm_ask(v.a, NLM_UNLOCK, &has), LOCK_GRANTED);
	nlm_peer_expect(v.p, NLM_GRANTED, B_HOST);
	/* It has it, and it does no harm to ask. */
	assert_int_equal(nlm_ask(v.b, NLM_LOCK, &wants), LOCK_GRANTED);
	assert_int_equal(nlm_ask(v.b, NLM_UNLOCK, &wants), LOCK_GRANTED);
	assert_int_equal(nlm_ask(v.a, NLM_LOCK, &has), LOCK_GRANTED);
	scene_end(&v);
}

/* A late copy of a LOCK takes nothing; another client's is another call. */
static void
test_late(void **state)
{
	struct lock wants;
	struct scene v;
	struct raw *late;

	scene_start(&v, site_new(engine, NULL, NULL));
	wants = scene_lock(&v, 2, 0, 10);
	nlm_build(v.b, NLM_LOCK, &wants);
	raw_send(v.b);
	assert_true(raw_receive(v.b));
	assert_int_equal(nlm_result(v.b, NULL), LOCK_GRANTED);
	ask_again(v.c, v.b);
	assert_true(raw_receive(v.c));
	assert_int_equal(nlm_result(v.c, NULL), LOCK_BLOCKED);
	assert_int_equal(nlm_ask(v.c, NLM_CANCEL, &wants), LOCK_GRANTED);
	late = site_connect_from(v.s, B_HOST);
	assert_int_equal(nlm_ask(late, NLM_UNLOCK, &wants), LOCK_GRANTED);
	ask_again(late, v.b);
	assert_true(raw_receive(late));
	assert_int_equal(nlm_result(late, NULL), LOCK_GRANTED);
	raw_close(late);
	assert_int_equal(nlm_test(v.a, &wants, NULL), LOCK_GRANTED);
	scene_end(&v);
}

static void
test_cancel(void **state)
{
	struct lock has, wants;
	struct scene v;

	scene_start(&v, site_new(engine, NULL, NULL));
	has = scene_lock(&v, 1, 0, 0);
	wants = scene_lock(&v, 2, 0, 10);
	assert_int_equal(nlm_ask(v.a, NLM_LOCK, &has), LOCK_GRANTED);
	assert_int_equal(nlm_ask(v.b, NLM_LOCK, &wants), LOCK_BLOCKED);
	assert_int_equal(nlm_ask(v.c, NLM_LOCK, &wants), LOCK_BLOCKED);
	assert_int_equal(nlm_ask(v.b, NLM_CANCEL, &wants), LOCK_GRANTED);
	assert_int_equal(nlm_ask(v.b, NLM_CANCEL, &wants), LOCK_DENIED);
	assert_int_equal(nlm_ask(v.a, NLM_UNLOCK, &has), LOCK_GRANTED);
	nlm_peer_expect(v.p, NLM_GRANTED, C_HOST);
	assert_int_equal(nlm_ask(v.c, NLM_UNLOCK, &wants), LOCK_GRANTED);
	assert_int_equal(nlm_test(v.a, &has, NULL), LOCK_GRANTED);
	scene_end(&v);
}

static void
test_messages(void **state)
{
	struct lock has, wants;
	struct nlm_news news;
	struct scene v;

	scene_start(&v, site_new(engine, NULL, NULL));
	has = scene_lock(&v, 1, 10, 0);
	wants = scene_lock(&v, 2, 0, 11);
	assert_int_equal(nlm_ask(v.a, NLM_LOCK, &has), LOCK_GRANTED);
	nlm_tell(v.b, NLM_TEST_MSG, &wants);
	news = scene_expect_res(&v, NLM_TEST_RES, LOCK_DENIED);
	assert_int_equal(news.holder.svid, 1);
	assert_int_equal(news.holder.offset, 10);
	assert_int_equal(news.holder.length, 0);
	nlm_tell(v.b, NLM_LOCK_MSG, &wants);
	scene_expect_res(&v, NLM_LOCK_RES, LOCK_BLOCKED);
	nlm_tell(v.b, NLM_CANCEL_MSG, &wants);
	scene_expect_res(&v, NLM_CANCEL_RES, LOCK_GRANTED);
	nlm_tell(v.b, NLM_LOCK_MSG, &wants);
	scene_expect_res(&v, NLM_LOCK_RES, LOCK_BLOCKED);
	assert_int_equal(nlm_ask(v.a, NLM_UNLOCK, &has), LOCK_GRANTED);
	news = nlm_peer_expect(v.p, NLM_GRANTED_MSG, B_HOST);
	check_news(&news, &wants);
	nlm_reply(v.b, NLM_GRANTED_RES, news.cookie, news.cookie_bytes,
		  LOCK_GRANTED);
	assert_int_equal(nlm_test(v.a, &has, NULL), LOCK_DENIED);
	nlm_tell(v.b, NLM_UNLOCK_MSG, &wants);
	scene_expect_res(&v, NLM_UNLOCK_RES, LOCK_GRANTED);
	scene_until_free(v.a, &has);
	scene_end(&v);
}

/* Who does not want it any more says so, and he alone. */
static void
test_refused(void **state)
{
	struct lock has, wants;
	struct nlm_news news;
	struct scene v;

	scene_start(&v, site_new(engine, NULL, NULL));
	has = scene_lock(&v, 1, 0, 0);
	wants = scene_lock(&v, 2, 0, 10);
	nlm_peer_answer(v.p, LOCK_DENIED);
	assert_int_equal(nlm_ask(v.a, NLM_LOCK, &has), LOCK_GRANTED);
	assert_int_equal(nlm_ask(v.b, NLM_LOCK, &wants), LOCK_BLOCKED);
	assert_int_equal(nlm_ask(v.a, NLM_UNLOCK, &has), LOCK_GRANTED);
	nlm_peer_expect(v.p, NLM_GRANTED, B_HOST);
	scene_until_free(v.a, &has);
	assert_int_equal(nlm_ask(v.a, NLM_LOCK, &has), LOCK_GRANTED);
	nlm_tell(v.b, NLM_LOCK_MSG, &wants);
	scene_expect_res(&v, NLM_LOCK_RES, LOCK_BLOCKED);
	assert_int_equal(nlm_ask(v.a, NLM_UNLOCK, &has), LOCK_GRANTED);
	news = nlm_peer_expect(v.p, NLM_GRANTED_MSG, B_HOST);
	nlm_reply(v.c, NLM_GRANTED_RES, news.cookie, news.cookie_bytes,
		  LOCK_DENIED);
	assert_int_equal(nlm_test(v.a, &has, NULL), LOCK_DENIED);
	nlm_reply(v.b, NLM_GRANTED_RES, news.cookie, news.cookie_bytes,
		  LOCK_DENIED);
	scene_until_free(v.a, &has);
	scene_end(&v);
}

/* Who does not answer is told again, and keeps what he may believe to have; and
 * others are told meanwhile. */
static void
test_unanswered(void **state)
{
	struct lock has, wants, wants2;
	struct scene v;

	scene_start(&v, site_new(engine, NULL, NULL));
	has = scene_lock(&v, 1, 0, 0);
	wants = scene_lock(&v, 2, 0, 10);
	wants2 = scene_lock(&v, 3, 10, 10);
	nlm_peer_mute(v.p, B_HOST);
	assert_int_equal(nlm_ask(v.a, NLM_LOCK, &has), LOCK_GRANTED);
	assert_int_equal(nlm_ask(v.b, NLM_LOCK, &wants), LOCK_BLOCKED);
	assert_int_equal(nlm_ask(v.c, NLM_LOCK, &wants2), LOCK_BLOCKED);
	has.length = 10;
	assert_int_equal(nlm_ask(v.a, NLM_UNLOCK, &has), LOCK_GRANTED);
	nlm_peer_expect(v.p, NLM_GRANTED, B_HOST);
	has.length = 0;
	assert_int_equal(nlm_ask(v.a, NLM_UNLOCK, &has), LOCK_GRANTED);
	nlm_peer_expect(v.p, NLM_GRANTED, C_HOST);
	/* He knows nothing of it any more: he has taken it, or given it up. */
	nlm_peer_answer(v.p, LOCK_DENIED);
	nlm_peer_mute(v.p, NULL);
	nlm_peer_expect(v.p, NLM_GRANTED, B_HOST);
	has.length = 10;
	assert_int_equal(nlm_ask(v.a, NLM_LOCK, &has), LOCK_BLOCKED);
	nlm_peer_answer(v.p, LOCK_GRANTED);
	assert_int_equal(nlm_ask(v.b, NLM_UNLOCK, &wants), LOCK_GRANTED);
	nlm_peer_expect(v.p, NLM_GRANTED, A_HOST);
	scene_end(&v);
}

/* Those who do not answer do not keep others from being told, who are called
 * before one of them is called again. So many that the server is at one after
 * the other. */
static void
test_many_unanswered(void **state)
{
	enum { HOSTS = 48 };
	bool told[HOSTS] = { false };
	struct lock has, wants;
	struct nlm_news news;
	char host[16];
	struct scene v;
	struct raw *r;
	unsigned i, n;

	scene_start(&v, site_new(engine, NULL, NULL));
	has = scene_lock(&v, 1, 0, 0);
	nlm_peer_answer(v.p, NLM_SILENT);
	assert_int_equal(nlm_ask(v.a, NLM_LOCK, &has), LOCK_GRANTED);
	for (i = 0; i < HOSTS; i++) {
		(void)snprintf(host, sizeof(host), "127.0.1.%u", i);
		wants = scene_lock(&v, 2, i, 1);
		r = site_connect_from(v.s, host);
		assert_int_equal(nlm_ask(r, NLM_LOCK, &wants), LOCK_BLOCKED);
		raw_close(r);
	}
	assert_int_equal(nlm_ask(v.a, NLM_UNLOCK, &has), LOCK_GRANTED);
	for (i = 0; i < HOSTS; i++) {
		news = nlm_peer_take(v.p);
		assert_int_equal(sscanf(news.to, "127.0.1.%u", &n), 1);
		assert_true(n < HOSTS && !told[n]);
		told[n] = true;
	}
	/* All of them are about to be told again: no scene_end(). */
	raw_close(v.a);
	raw_close(v.b);
	raw_close(v.c);
	site_free(v.s);
	nlm_peer_free(v.p);
}

/* After a kill, who had a lock may claim it, and nobody takes another. */
static void
test_grace(void **state)
{
	struct lock l, other;
	struct scene v;

	scene_start(&v, site_new(engine, NULL, NULL));
	l = scene_lock(&v, 1, 0, 10);
	other = scene_lock(&v, 2, 10, 10);
	l.reclaim = true;
	assert_int_equal(nlm_ask(v.b, NLM_LOCK, &l), LOCK_GRACE);
	l.reclaim = false;
	assert_int_equal(nlm_ask(v.b, NLM_LOCK, &l), LOCK_GRANTED);
	scene_restart(&v, "[lockd]\ngrace = 3600\n");
	assert_true(harness_logged(v.s->h, "1 client had locks: for 3600"));
	assert_int_equal(nlm_ask(v.c, NLM_LOCK, &other), LOCK_GRACE);
	assert_int_equal(nlm_ask(v.b, NLM_LOCK, &l), LOCK_GRACE);
	l.reclaim = true;
	assert_int_equal(nlm_ask(v.b, NLM_LOCK, &l), LOCK_GRANTED);
	scene_restart(&v, "[lockd]\ngrace = 1\n");
	assert_int_equal(nlm_ask(v.b, NLM_LOCK, &l), LOCK_GRANTED);
	while (nlm_ask(v.c, NLM_LOCK, &other) == LOCK_GRACE)
		usleep(50000);
	assert_int_equal(nlm_test(v.a, &other, NULL), LOCK_DENIED);
	assert_int_equal(nlm_test(v.a, &l, NULL), LOCK_DENIED);
	scene_end(&v);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_granted),
		cmocka_unit_test(test_udp),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_unanswered),
		cmocka_unit_test(test_many_unanswered),
		cmocka_unit_test(test_grace),
	};

	if (!world_enter())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
