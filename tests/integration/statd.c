/* SPDX-License-Identifier: Apache-2.0 */
/* See statd.h. */
#include "statd.h"

#include "called.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SM_PROGRAM 100024
#define SM_VERSION 1

struct statd {
	struct called *called;
	atomic_bool refuse;
};

static void
take_call(struct called_call *c, struct statd_news *news)
{
	memset(news, 0, sizeof(*news));
	news->proc = c->proc;
	news->datagram = c->datagram;
	memcpy(news->from, c->from, sizeof(news->from));
	memcpy(news->to, c->to, sizeof(news->to));
	news->from_port = c->from_port;
	called_string(c, news->mon_name, sizeof(news->mon_name));
	if (news->proc == STATD_NOTIFY) {
		news->state = called_word(c);
		return;
	}
	called_string(c, news->my_name, sizeof(news->my_name));
	news->prog = called_word(c);
	news->vers = called_word(c);
	news->callback = called_word(c);
	if (news->proc != STATD_MON)
		return;
	for (unsigned i = 0; i < sizeof(news->priv); i += 4) {
		uint32_t word = htonl(called_word(c));

		memcpy(news->priv + i, &word, 4);
	}
}

/* On a slow machine one is sent again before it is answered. */
static bool
is_same_notify(const void *kept, const void *came)
{
	const struct statd_news *a = kept, *b = came;

	return b->proc == STATD_NOTIFY && a->proc == b->proc &&
	       a->state == b->state && strcmp(a->to, b->to) == 0 &&
	       strcmp(a->mon_name, b->mon_name) == 0;
}

static uint32_t
serve(void *arg, struct called *called, struct called_call *c,
      uint32_t out[CALLED_RESULT_MAX])
{
	struct statd *d = arg;
	struct statd_news news;
	uint32_t n = 0;

	take_call(c, &news);
	if (called_is_muted(called, c))
		return CALLED_SILENT;
	if (news.proc == STATD_MON)
		out[n++] = htonl(d->refuse);
	if (news.proc != STATD_NOTIFY)
		out[n++] = htonl(7); /* a state number */
	if (!called_has(called, &news, is_same_notify))
		called_keep(called, &news);
	return n;
}

struct statd *
statd_new(bool udp, bool tcp)
{
	struct statd *d = calloc(1, sizeof(*d));
	const struct called_program program = { .prog = SM_PROGRAM,
						.vers = SM_VERSION,
						.udp = udp,
						.tcp = tcp,
						.news_bytes = sizeof(
							struct statd_news),
						.serve = serve,
						.arg = d };

	assert_non_null(d);
	d->called = called_new(&program);
	return d;
}

void
statd_free(struct statd *d)
{
	called_free(d->called);
	free(d);
}

void
statd_refuse(struct statd *d, bool refuse)
{
	d->refuse = refuse;
}

void
statd_mute(struct statd *d, const char *address)
{
	called_mute(d->called, address);
}

struct statd_news
statd_take(struct statd *d, uint32_t proc, const char *mon_name)
{
	struct statd_news news;

	called_take(d->called, &news);
	assert_int_equal(news.proc, proc);
	if (mon_name != NULL)
		assert_string_equal(news.mon_name, mon_name);
	return news;
}

unsigned
statd_left(struct statd *d)
{
	return called_left(d->called);
}

void
statd_tell_reboot(const char *client, uint16_t statd_port, const char *mon_name,
		  uint32_t state)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	struct raw *r = raw_connect_udp(statd_port);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(inet_pton(AF_INET, client, &a.sin_addr), 1);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	a.sin_port = htons(statd_port);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	close(r->fd);
	r->fd = fd;
	raw_build(r, SM_PROGRAM, SM_VERSION, STATD_NOTIFY, NULL, NULL);
	raw_put_opaque(r, mon_name, (uint32_t)strlen(mon_name));
	raw_put(r, state);
	raw_send(r);
	assert_true(raw_receive(r));
	assert_int_equal(r->accept_stat, 0);
	raw_close(r);
}
