/* SPDX-License-Identifier: Apache-2.0 */
/* See called.h. */
#include "called.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PMAP_PROGRAM 100000
#define PMAP_PORT    111
#define PMAP_SET     1
#define PMAP_UNSET   2
#define REPLY_WORDS  7u /* before the result; the record mark is the first */
#define CONNS_MAX    64u
#define NEWS_MAX     256u
#define CALL_BYTES   8192u
#define SILENCE_S    60 /* ends the wait, and the test */

struct called {
	struct called_program program;
	pthread_t thread;
	uint16_t port;
	int udp, listening, wake[2]; /* -1: is not served */
	int conn[CONNS_MAX];
	unsigned conns;
	pthread_mutex_t lock; /* all below */
	pthread_cond_t changed;
	char mute[16];
	char *news; /* a ring of NEWS_MAX */
	unsigned kept, taken;
};

/* Calls -------------------------------------------------------------------- */

uint32_t
called_word(struct called_call *c)
{
	uint32_t w;

	assert_true(c->at + 4 <= c->n);
	memcpy(&w, c->bytes + c->at, 4);
	c->at += 4;
	return ntohl(w);
}

uint64_t
called_hyper(struct called_call *c)
{
	uint64_t high = called_word(c);

	return high << 32 | called_word(c);
}

uint32_t
called_opaque(struct called_call *c, void *out, uint32_t room)
{
	uint32_t n = called_word(c);

	assert_true(n <= room && c->at + n <= c->n);
	memcpy(out, c->bytes + c->at, n);
	c->at += (n + 3) & ~3u;
	return n;
}

void
called_string(struct called_call *c, char *out, uint32_t room)
{
	out[called_opaque(c, out, room - 1)] = '\0';
}

/* Up to its arguments; the xid. */
static uint32_t
take_header(const struct called *d, struct called_call *c)
{
	uint8_t credential[400];
	uint32_t xid = called_word(c);

	assert_int_equal(called_word(c), 0);
	assert_int_equal(called_word(c), 2);
	assert_int_equal(called_word(c), d->program.prog);
	assert_int_equal(called_word(c), d->program.vers);
	c->proc = called_word(c);
	for (unsigned i = 0; i < 2; i++) { /* credential and verifier */
		called_word(c);
		called_opaque(c, credential, sizeof(credential));
	}
	return xid;
}

/* The reply to c, with a record mark before it; its length, or 0. */
static uint32_t
answer(struct called *d, struct called_call *c,
       uint32_t out[REPLY_WORDS + CALLED_RESULT_MAX])
{
	uint32_t xid = take_header(d, c);
	uint32_t n = d->program.serve(d->program.arg, d, c, out + REPLY_WORDS);

	assert_int_equal(c->at, c->n);
	if (n == CALLED_SILENT)
		return 0;
	assert_true(n <= CALLED_RESULT_MAX);
	n = 4 * (REPLY_WORDS + n);
	memset(out, 0, 4 * REPLY_WORDS); /* accepted, AUTH_NONE, success */
	out[0] = htonl((n - 4) | 0x80000000u);
	out[1] = htonl(xid);
	out[2] = htonl(1);
	return n;
}

static void
set_ends(struct called_call *c, const struct sockaddr_in *from,
	 const struct in_addr *to)
{
	inet_ntop(AF_INET, &from->sin_addr, c->from, sizeof(c->from));
	inet_ntop(AF_INET, to, c->to, sizeof(c->to));
	c->from_port = ntohs(from->sin_port);
}

/* Sockets ------------------------------------------------------------------ */

static void
serve_datagram(struct called *d)
{
	uint8_t bytes[CALL_BYTES], space[256];
	struct called_call c = { .bytes = bytes, .datagram = true };
	struct sockaddr_in from;
	struct iovec iov = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	struct msghdr m = { .msg_name = &from,
			    .msg_namelen = sizeof(from),
			    .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = space,
			    .msg_controllen = sizeof(space) };
	uint32_t out[REPLY_WORDS + CALLED_RESULT_MAX], n;
	ssize_t got = recvmsg(d->udp, &m, 0);
	struct cmsghdr *h;

	assert_true(got > 0);
	c.n = (uint32_t)got;
	for (h = CMSG_FIRSTHDR(&m); h != NULL; h = CMSG_NXTHDR(&m, h))
		if (h->cmsg_type == IP_PKTINFO)
			set_ends(
				&c, &from,
				&((struct in_pktinfo *)CMSG_DATA(h))->ipi_addr);
	n = answer(d, &c, out);
	if (n > 0) /* any address of this machine will do */
		assert_int_equal(sendto(d->udp, out + 1, n - 4, 0,
					(struct sockaddr *)&from, sizeof(from)),
				 n - 4);
}

static bool
read_all(int fd, void *to, size_t n)
{
	return recv(fd, to, n, MSG_WAITALL) == (ssize_t)n;
}

/* False: its peer is gone. */
static bool
serve_stream(struct called *d, int fd)
{
	uint8_t bytes[CALL_BYTES];
	struct called_call c = { .bytes = bytes };
	struct sockaddr_in from, to;
	socklen_t from_bytes = sizeof(from), to_bytes = sizeof(to);
	uint32_t out[REPLY_WORDS + CALLED_RESULT_MAX], n;

	if (!read_all(fd, &n, 4))
		return false;
	c.n = ntohl(n) & 0x7fffffff;
	assert_true(c.n <= sizeof(bytes) && read_all(fd, bytes, c.n));
	if (getpeername(fd, (struct sockaddr *)&from, &from_bytes) < 0 ||
	    getsockname(fd, (struct sockaddr *)&to, &to_bytes) < 0)
		return false;
	set_ends(&c, &from, &to.sin_addr);
	n = answer(d, &c, out);
	if (n > 0)
		(void)!send(fd, out, n, MSG_NOSIGNAL);
	return true;
}

static void
serve_streams(struct called *d, const struct pollfd *ready)
{
	unsigned i, left = 0;

	for (i = 0; i < d->conns; i++) {
		if (ready[i].revents == 0 || serve_stream(d, d->conn[i]))
			d->conn[left++] = d->conn[i];
		else
			close(d->conn[i]);
	}
	d->conns = left;
}

static void *
serve(void *arg)
{
	struct called *d = arg;
	struct pollfd f[3 + CONNS_MAX];
	unsigned i;

	for (;;) {
		f[0] = (struct pollfd){ d->wake[0], POLLIN, 0 };
		f[1] = (struct pollfd){ d->udp, POLLIN, 0 };
		f[2] = (struct pollfd){ d->listening, POLLIN, 0 };
		for (i = 0; i < d->conns; i++)
			f[3 + i] = (struct pollfd){ d->conn[i], POLLIN, 0 };
		(void)poll(f, 3 + d->conns, -1);
		if (f[0].revents != 0)
			return NULL;
		serve_streams(d, f + 3);
		if (f[1].revents != 0)
			serve_datagram(d);
		if (f[2].revents != 0) {
			assert_true(d->conns < CONNS_MAX);
			d->conn[d->conns++] = accept(d->listening, NULL, NULL);
		}
	}
}

/* Start and end ------------------------------------------------------------ */

bool
called_register(uint32_t prog, uint32_t vers, int protocol, uint16_t port)
{
	struct raw *r = raw_connect_reserved(PMAP_PORT);
	bool done;

	r->flavor = 0;
	raw_build(r, PMAP_PROGRAM, 2, port != 0 ? PMAP_SET : PMAP_UNSET, NULL,
		  NULL);
	raw_put(r, prog);
	raw_put(r, vers);
	raw_put(r, (uint32_t)protocol);
	raw_put(r, port);
	raw_send(r);
	assert_true(raw_receive(r));
	assert_int_equal(r->accept_stat, 0);
	done = raw_get(r, r->body) == 1;
	raw_close(r);
	return done;
}

/* Of all addresses, on d's port, which the first one finds. */
static int
open_socket(struct called *d, int type, int protocol)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(d->port) };
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
	d->port = ntohs(a.sin_port);
	assert_true(called_register(d->program.prog, d->program.vers, protocol,
				    d->port));
	return fd;
}

struct called *
called_new(const struct called_program *p)
{
	struct called *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	d->program = *p;
	d->news = calloc(NEWS_MAX, p->news_bytes);
	assert_non_null(d->news);
	/* A test that failed may have left its own. */
	(void)called_register(p->prog, p->vers, 0, 0);
	d->listening = p->tcp ? open_socket(d, SOCK_STREAM, IPPROTO_TCP) : -1;
	d->udp = p->udp ? open_socket(d, SOCK_DGRAM, IPPROTO_UDP) : -1;
	assert_int_equal(pipe2(d->wake, O_CLOEXEC), 0);
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->changed, NULL);
	assert_int_equal(pthread_create(&d->thread, NULL, serve, d), 0);
	return d;
}

void
called_free(struct called *d)
{
	assert_true(called_register(d->program.prog, d->program.vers, 0, 0));
	close(d->wake[1]);
	pthread_join(d->thread, NULL);
	close(d->wake[0]);
	if (d->udp >= 0)
		close(d->udp);
	if (d->listening >= 0)
		close(d->listening);
	while (d->conns > 0)
		close(d->conn[--d->conns]);
	pthread_mutex_destroy(&d->lock);
	pthread_cond_destroy(&d->changed);
	free(d->news);
	free(d);
}

/* News --------------------------------------------------------------------- */

static void *
news_at(const struct called *d, unsigned i)
{
	return d->news + i % NEWS_MAX * d->program.news_bytes;
}

void
called_keep(struct called *d, const void *news)
{
	pthread_mutex_lock(&d->lock);
	assert_true(d->kept - d->taken < NEWS_MAX);
	memcpy(news_at(d, d->kept++), news, d->program.news_bytes);
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
}

bool
called_has(struct called *d, const void *news,
	   bool (*same)(const void *kept, const void *news))
{
	bool has = false;
	unsigned i;

	pthread_mutex_lock(&d->lock);
	for (i = 0; i < d->kept && i < NEWS_MAX && !has; i++)
		has = same(news_at(d, d->kept - 1 - i), news);
	pthread_mutex_unlock(&d->lock);
	return has;
}

void
called_take(struct called *d, void *news)
{
	struct timespec until;
	bool came;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SILENCE_S;
	pthread_mutex_lock(&d->lock);
	while (d->kept == d->taken && rc == 0)
		rc = pthread_cond_timedwait(&d->changed, &d->lock, &until);
	came = d->kept != d->taken;
	if (came)
		memcpy(news, news_at(d, d->taken++), d->program.news_bytes);
	pthread_mutex_unlock(&d->lock);
	if (!came)
		fail_msg("the server does not call");
}

unsigned
called_left(struct called *d)
{
	unsigned n;

	pthread_mutex_lock(&d->lock);
	n = d->kept - d->taken;
	pthread_mutex_unlock(&d->lock);
	return n;
}

void
called_mute(struct called *d, const char *address)
{
	pthread_mutex_lock(&d->lock);
	(void)snprintf(d->mute, sizeof(d->mute), "%s",
		       address != NULL ? address : "");
	pthread_mutex_unlock(&d->lock);
}

bool
called_is_muted(struct called *d, const struct called_call *c)
{
	bool muted;

	pthread_mutex_lock(&d->lock);
	muted = strcmp(c->to, d->mute) == 0;
	pthread_mutex_unlock(&d->lock);
	return muted;
}
