/* SPDX-License-Identifier: Apache-2.0 */
/* See nlm.h: a lock manager of the test's own, by TCP and UDP on one port. */
#include "called.h"
#include "nlm.h"

#include <arpa/inet.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define NLM_PROGRAM 100021
#define NLM_VERSION 4

struct nlm_peer {
	struct called *called;
	_Atomic int answer;
};

static void
take_range(struct called_call *c, struct holder *h)
{
	h->offset = called_hyper(c);
	h->length = called_hyper(c);
}

/* GRANTED's and TEST_RES's have nearly the same in another order. */
static void
take_granted(struct called_call *c, struct nlm_news *news)
{
	news->holder.exclusive = called_word(c) == 1;
	called_string(c, news->caller, sizeof(news->caller));
	news->fh.bytes = called_opaque(c, news->fh.data, sizeof(news->fh.data));
	called_string(c, news->holder.oh, sizeof(news->holder.oh));
	news->holder.svid = called_word(c);
	take_range(c, &news->holder);
}

static void
take_answer(struct called_call *c, struct nlm_news *news)
{
	news->stat = called_word(c);
	if (news->proc != NLM_TEST_RES || news->stat != LOCK_DENIED)
		return;
	news->holder.exclusive = called_word(c) == 1;
	news->holder.svid = called_word(c);
	called_string(c, news->holder.oh, sizeof(news->holder.oh));
	take_range(c, &news->holder);
}

static void
take_call(struct called_call *c, struct nlm_news *news)
{
	memset(news, 0, sizeof(*news));
	news->proc = c->proc;
	news->datagram = c->datagram;
	memcpy(news->from, c->from, sizeof(news->from));
	memcpy(news->to, c->to, sizeof(news->to));
	news->from_port = c->from_port;
	news->cookie_bytes =
		called_opaque(c, news->cookie, sizeof(news->cookie));
	if (news->proc == NLM_GRANTED || news->proc == NLM_GRANTED_MSG)
		take_granted(c, news);
	else
		take_answer(c, news);
}

static uint32_t
serve(void *arg, struct called *d, struct called_call *c,
      uint32_t out[CALLED_RESULT_MAX])
{
	struct nlm_peer *p = arg;
	int stat = called_is_muted(d, c) ? NLM_SILENT : p->answer;
	struct nlm_news news;
	uint32_t n = 0;

	take_call(c, &news);
	called_keep(d, &news);
	if (stat == NLM_SILENT)
		return CALLED_SILENT;
	if (news.proc != NLM_GRANTED)
		return 0;
	out[n++] = htonl(news.cookie_bytes);
	memset(out + n, 0, sizeof(news.cookie));
	memcpy(out + n, news.cookie, news.cookie_bytes);
	n += (news.cookie_bytes + 3) / 4;
	out[n++] = htonl((uint32_t)stat);
	return n;
}

struct nlm_peer *
nlm_peer_new(void)
{
	struct nlm_peer *p = calloc(1, sizeof(*p));
	const struct called_program program = { .prog = NLM_PROGRAM,
						.vers = NLM_VERSION,
						.udp = true,
						.tcp = true,
						.news_bytes =
							sizeof(struct nlm_news),
						.serve = serve,
						.arg = p };

	assert_non_null(p);
	p->called = called_new(&program);
	return p;
}

void
nlm_peer_free(struct nlm_peer *p)
{
	called_free(p->called);
	free(p);
}

void
nlm_peer_answer(struct nlm_peer *p, int stat)
{
	p->answer = stat;
}

void
nlm_peer_mute(struct nlm_peer *p, const char *client)
{
	called_mute(p->called, client);
}

struct nlm_news
nlm_peer_take(struct nlm_peer *p)
{
	struct nlm_news news;

	called_take(p->called, &news);
	return news;
}

struct nlm_news
nlm_peer_expect(struct nlm_peer *p, uint32_t proc, const char *client)
{
	struct nlm_news news = nlm_peer_take(p);

	assert_int_equal(news.proc, proc);
	assert_string_equal(news.to, client);
	assert_string_equal(news.from, "127.0.0.1");
	return news;
}

unsigned
nlm_peer_left(struct nlm_peer *p)
{
	return called_left(p->called);
}
