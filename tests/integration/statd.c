/* SPDX-License-Identifier: Apache-2.0 */
/* See statd.h. One thread serves; what comes is kept, in order. */
#include "statd.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SM_PROGRAM   100024
#define SM_VERSION   1
#define PMAP_PROGRAM 100000
#define PMAP_PORT    111
#define PMAP_SET     1
#define PMAP_UNSET   2
#define CALL_BYTES   4096u
#define NEWS_MAX     256u
#define SILENCE_S    60 /* ends the wait, and the test */

struct statd {
	pthread_t thread;
	int udp, tcp, wake[2];
	pthread_mutex_t lock; /* all below */
	pthread_cond_t changed;
	bool refuse;
	char mute[16];
	struct statd_news news[NEWS_MAX]; /* all that came, in order */
	unsigned taken, count;
};

/* Calls -------------------------------------------------------------------- */

struct incoming {
	const uint8_t *bytes;
	uint32_t n, at;
	struct sockaddr_in from, to;
	bool datagram;
};

static uint32_t
word(struct incoming *c)
{
	uint32_t w;

	assert_true(c->at + 4 <= c->n);
	memcpy(&w, c->bytes + c->at, 4);
	c->at += 4;
	return ntohl(w);
}

static void
string(struct incoming *c, char *out, uint32_t room)
{
	uint32_t n = word(c);

	assert_true(n < room && c->at + n <= c->n);
	memcpy(out, c->bytes + c->at, n);
	out[n] = '\0';
	c->at += (n + 3) & ~3u;
}

static void
take_arguments(struct incoming *c, struct statd_news *news)
{
	string(c, news->mon_name, sizeof(news->mon_name));
	if (news->proc == STATD_NOTIFY) {
		news->state = word(c);
	} else {
		string(c, news->my_name, sizeof(news->my_name));
		news->prog = word(c);
		news->vers = word(c);
		news->callback = word(c);
	}
	if (news->proc == STATD_MON) {
		assert_true(c->at + sizeof(news->priv) <= c->n);
		memcpy(news->priv, c->bytes + c->at, sizeof(news->priv));
		c->at += sizeof(news->priv);
	}
	assert_int_equal(c->at, c->n);
}

static void
take_call(struct incoming *c, struct statd_news *news, uint32_t *xid)
{
	memset(news, 0, sizeof(*news));
	*xid = word(c);
	assert_int_equal(word(c), 0);
	assert_int_equal(word(c), 2);
	assert_int_equal(word(c), SM_PROGRAM);
	assert_int_equal(word(c), SM_VERSION);
	news->proc = word(c);
	for (unsigned i = 0; i < 2; i++) { /* credential and verifier */
		word(c);
		c->at += word(c);
	}
	news->datagram = c->datagram;
	inet_ntop(AF_INET, &c->from.sin_addr, news->from, sizeof(news->from));
	inet_ntop(AF_INET, &c->to.sin_addr, news->to, sizeof(news->to));
	news->from_port = ntohs(c->from.sin_port);
	take_arguments(c, news);
}

/* On a slow machine one is sent again before it is answered. */
static bool
is_repeated(const struct statd *d, const struct statd_news *news)
{
	unsigned i;

	for (i = 0; i < d->count; i++)
		if (news->proc == STATD_NOTIFY &&
		    d->news[i].proc == news->proc &&
		    d->news[i].state == news->state &&
		    strcmp(d->news[i].to, news->to) == 0 &&
		    strcmp(d->news[i].mon_name, news->mon_name) == 0)
			return true;
	return false;
}

/* The reply to c, with a record mark before it; its length, or 0. */
static uint32_t
answer(struct statd *d, struct incoming *c, uint32_t out[16])
{
	struct statd_news news;
	uint32_t xid, n = 1;
	bool muted;

	take_call(c, &news, &xid);
	pthread_mutex_lock(&d->lock);
	muted = strcmp(news.to, d->mute) == 0;
	if (!muted && !is_repeated(d, &news)) {
		assert_true(d->count < NEWS_MAX);
		d->news[d->count++] = news;
	}
	out[n++] = htonl(xid);
	out[n++] = htonl(1);
	for (unsigned i = 0; i < 4; i++) /* accepted, AUTH_NONE, success */
		out[n++] = 0;
	if (news.proc == STATD_MON)
		out[n++] = htonl(d->refuse);
	if (news.proc != STATD_NOTIFY)
		out[n++] = htonl(7); /* a state number */
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
	out[0] = htonl((4 * n - 4) | 0x80000000u);
	return muted ? 0 : 4 * n;
}

/* Sockets ------------------------------------------------------------------ */

static void
serve_datagram(struct statd *d)
{
	uint8_t bytes[CALL_BYTES], space[256];
	struct incoming c = { .bytes = bytes, .datagram = true };
	struct iovec iov = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	struct msghdr m = { .msg_name = &c.from,
			    .msg_namelen = sizeof(c.from),
			    .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = space,
			    .msg_controllen = sizeof(space) };
	uint32_t out[16], n;
	ssize_t got = recvmsg(d->udp, &m, 0);
	struct cmsghdr *h;

	assert_true(got > 0);
	c.n = (uint32_t)got;
	for (h = CMSG_FIRSTHDR(&m); h != NULL; h = CMSG_NXTHDR(&m, h))
		if (h->cmsg_type == IP_PKTINFO)
			c.to.sin_addr =
				((struct in_pktinfo *)CMSG_DATA(h))->ipi_addr;
	n = answer(d, &c, out);
	if (n > 0)
		assert_int_equal(sendto(d->udp, out + 1, n - 4, 0,
					(struct sockaddr *)&c.from,
					sizeof(c.from)),
				 n - 4);
}

static void
serve_stream(struct statd *d)
{
	uint8_t bytes[CALL_BYTES];
	struct incoming c = { .bytes = bytes };
	socklen_t from = sizeof(c.from), to = sizeof(c.to);
	uint32_t out[16], n;
	int fd = accept(d->tcp, NULL, NULL);

	assert_true(fd >= 0);
	if (getpeername(fd, (struct sockaddr *)&c.from, &from) < 0 ||
	    getsockname(fd, (struct sockaddr *)&c.to, &to) < 0)
		fail();
	while (recv(fd, &n, 4, MSG_WAITALL) == 4) {
		c.at = 0;
		c.n = ntohl(n) & 0x7fffffff;
		assert_true(c.n <= sizeof(bytes));
		assert_int_equal(recv(fd, bytes, c.n, MSG_WAITALL), c.n);
		n = answer(d, &c, out);
		if (n > 0)
			assert_int_equal(send(fd, out, n, MSG_NOSIGNAL), n);
	}
	close(fd);
}

static void *
serve(void *arg)
{
	struct statd *d = arg;
	struct pollfd f[3] = { { d->wake[0], POLLIN, 0 },
			       { d->udp, POLLIN, 0 },
			       { d->tcp, POLLIN, 0 } };

	while (poll(f, 3, -1) > 0 && f[0].revents == 0) {
		if (f[1].revents != 0)
			serve_datagram(d);
		if (f[2].revents != 0)
			serve_stream(d);
	}
	return NULL;
}

void
statd_pmap(uint32_t prog, uint32_t vers, bool udp, uint16_t port)
{
	struct raw *r = raw_connect_reserved(PMAP_PORT);

	r->flavor = 0;
	raw_build(r, PMAP_PROGRAM, 2, port != 0 ? PMAP_SET : PMAP_UNSET, NULL,
		  NULL);
	raw_put(r, prog);
	raw_put(r, vers);
	raw_put(r, udp ? IPPROTO_UDP : IPPROTO_TCP);
	raw_put(r, port);
	raw_send(r);
	assert_true(raw_receive(r));
	assert_int_equal(r->accept_stat, 0);
	assert_int_equal(raw_get(r, r->body), 1);
	raw_close(r);
}

static int
open_socket(int type)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0), one = 1;

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, n), 0);
	if (type == SOCK_STREAM)
		assert_int_equal(listen(fd, 64), 0);
	else
		assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &one,
					    sizeof(one)),
				 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
	statd_pmap(SM_PROGRAM, SM_VERSION, type == SOCK_DGRAM,
		   ntohs(a.sin_port));
	return fd;
}

struct statd *
statd_new(bool udp, bool tcp)
{
	struct statd *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	d->udp = udp ? open_socket(SOCK_DGRAM) : -1;
	d->tcp = tcp ? open_socket(SOCK_STREAM) : -1;
	assert_int_equal(pipe2(d->wake, O_CLOEXEC), 0);
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->changed, NULL);
	assert_int_equal(pthread_create(&d->thread, NULL, serve, d), 0);
	return d;
}

void
statd_free(struct statd *d)
{
	statd_pmap(SM_PROGRAM, SM_VERSION, false, 0);
	close(d->wake[1]);
	pthread_join(d->thread, NULL);
	close(d->wake[0]);
	if (d->udp >= 0)
		close(d->udp);
	if (d->tcp >= 0)
		close(d->tcp);
	pthread_mutex_destroy(&d->lock);
	pthread_cond_destroy(&d->changed);
	free(d);
}

void
statd_refuse(struct statd *d, bool refuse)
{
	pthread_mutex_lock(&d->lock);
	d->refuse = refuse;
	pthread_mutex_unlock(&d->lock);
}

void
statd_mute(struct statd *d, const char *address)
{
	pthread_mutex_lock(&d->lock);
	(void)snprintf(d->mute, sizeof(d->mute), "%s",
		       address != NULL ? address : "");
	pthread_mutex_unlock(&d->lock);
}

struct statd_news
statd_take(struct statd *d, uint32_t proc, const char *mon_name)
{
	struct statd_news news;
	struct timespec until;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SILENCE_S;
	pthread_mutex_lock(&d->lock);
	while (d->count == d->taken && rc == 0)
		rc = pthread_cond_timedwait(&d->changed, &d->lock, &until);
	if (d->count == d->taken) {
		pthread_mutex_unlock(&d->lock);
		fail_msg("the server does not call statd");
	}
	news = d->news[d->taken++];
	pthread_mutex_unlock(&d->lock);
	assert_int_equal(news.proc, proc);
	if (mon_name != NULL)
		assert_string_equal(news.mon_name, mon_name);
	return news;
}

unsigned
statd_left(struct statd *d)
{
	unsigned n;

	pthread_mutex_lock(&d->lock);
	n = d->count - d->taken;
	pthread_mutex_unlock(&d->lock);
	return n;
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
