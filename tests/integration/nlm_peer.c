/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See nlm.h: a lock manager of the test's own, by TCP and UDP on one port, and
 * a world in which it can be registered. One thread serves; what comes is kept,
 * in order, for the test's.
 */
#include "nlm.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NLM_PROGRAM  100021
#define NLM_VERSION  4
#define PMAP_PROGRAM 100000
#define PMAP_PORT    111
#define PMAP_SET     1
#define PMAP_UNSET   2
#define CONNS_MAX    64u
#define NEWS_MAX     256u
#define CALL_BYTES   8192u
#define SILENCE_S    60 /* ends the wait, and the test */

/* A world of our own ------------------------------------------------------- */

static bool
lo_up(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ok = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &lo) == 0;

	close(fd);
	return ok;
}

static bool
rpcbind_answers(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(PMAP_PORT) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool ok;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ok = connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
	close(fd);
	return ok;
}

/* Until the test's end, however it comes, closes the pipe: rpcbind becomes
 * another user, and so would not be told of its parent's death. */
static void
rpcbind_run(int until)
{
	pid_t pid = fork();
	char byte;

	if (pid == 0) {
		execl("/usr/sbin/rpcbind", "rpcbind", "-w", "-f", NULL);
		execl("/sbin/rpcbind", "rpcbind", "-w", "-f", NULL);
		_exit(127);
	}
	(void)!read(until, &byte, 1);
	kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	_exit(0);
}

static bool
rpcbind_start(void)
{
	const struct passwd *who = getpwnam("_rpc");
	int until[2];

	if (access("/usr/sbin/rpcbind", X_OK) < 0 &&
	    access("/sbin/rpcbind", X_OK) < 0)
		return false;
	(void)mkdir("/run/rpcbind", 0755);
	if (who != NULL)
		(void)!chown("/run/rpcbind", who->pw_uid, who->pw_gid);
	if (pipe2(until, O_CLOEXEC) < 0)
		return false;
	if (fork() == 0) {
		close(until[1]);
		rpcbind_run(until[0]);
	}
	close(until[0]);
	while (!rpcbind_answers())
		usleep(20000);
	return true;
}

const char *
nlm_world(void)
{
	if (unshare(CLONE_NEWNET | CLONE_NEWNS) < 0)
		return "no right to make namespaces (needs root)";
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", "/run", "tmpfs", 0, "mode=755") < 0)
		return "no /run of its own can be had";
	if (!lo_up())
		return "no loopback of its own can be had";
	return rpcbind_start() ? NULL : "no rpcbind here";
}

/* The lock manager --------------------------------------------------------- */

struct nlm_peer {
	pthread_t thread;
	uint16_t port;
	int udp, listening, wake[2];
	int conn[CONNS_MAX];
	unsigned conns;
	pthread_mutex_t lock; /* all below */
	pthread_cond_t changed;
	int answer;
	char mute[16];
	struct nlm_news news[NEWS_MAX];
	unsigned first, count;
};

/* A call that has come. */
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

static uint64_t
two_words(struct incoming *c)
{
	uint64_t high = word(c);

	return high << 32 | word(c);
}

/* An opaque into out, which must have room; its length. */
static uint32_t
opaque(struct incoming *c, void *out, uint32_t room)
{
	uint32_t n = word(c);

	assert_true(n <= room && c->at + n <= c->n);
	memcpy(out, c->bytes + c->at, n);
	c->at += (n + 3) & ~3u;
	return n;
}

/* GRANTED's and TEST_RES's have nearly the same in another order. */
static void
take_granted(struct incoming *c, struct nlm_news *news)
{
	news->holder.exclusive = word(c) == 1;
	opaque(c, news->caller, sizeof(news->caller) - 1);
	news->fh.bytes = opaque(c, news->fh.data, sizeof(news->fh.data));
	opaque(c, news->holder.oh, sizeof(news->holder.oh) - 1);
	news->holder.svid = word(c);
	news->holder.offset = two_words(c);
	news->holder.length = two_words(c);
}

static void
take_answer(struct incoming *c, struct nlm_news *news)
{
	news->stat = word(c);
	if (news->proc != NLM_TEST_RES || news->stat != LOCK_DENIED)
		return;
	news->holder.exclusive = word(c) == 1;
	news->holder.svid = word(c);
	opaque(c, news->holder.oh, sizeof(news->holder.oh) - 1);
	news->holder.offset = two_words(c);
	news->holder.length = two_words(c);
}

static void
take_call(struct incoming *c, struct nlm_news *news, uint32_t *xid)
{
	uint8_t credential[400];

	memset(news, 0, sizeof(*news));
	*xid = word(c);
	assert_int_equal(word(c), 0);
	assert_int_equal(word(c), 2);
	assert_int_equal(word(c), NLM_PROGRAM);
	assert_int_equal(word(c), NLM_VERSION);
	news->proc = word(c);
	for (unsigned i = 0; i < 2; i++) { /* credential and verifier */
		word(c);
		opaque(c, credential, sizeof(credential));
	}
	news->datagram = c->datagram;
	inet_ntop(AF_INET, &c->from.sin_addr, news->from, sizeof(news->from));
	inet_ntop(AF_INET, &c->to.sin_addr, news->to, sizeof(news->to));
	news->from_port = ntohs(c->from.sin_port);
	news->cookie_bytes = opaque(c, news->cookie, sizeof(news->cookie));
	if (news->proc == NLM_GRANTED || news->proc == NLM_GRANTED_MSG)
		take_granted(c, news);
	else
		take_answer(c, news);
	assert_int_equal(c->at, c->n);
}

/* Keep it; how it is answered. */
static int
keep(struct nlm_peer *p, const struct nlm_news *news)
{
	int stat;

	pthread_mutex_lock(&p->lock);
	assert_true(p->count < NEWS_MAX);
	p->news[(p->first + p->count++) % NEWS_MAX] = *news;
	stat = strcmp(news->to, p->mute) == 0 ? NLM_SILENT : p->answer;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	return stat;
}

/* The reply to c, with a record mark before it; its length, or 0. */
static uint32_t
answer(struct nlm_peer *p, struct incoming *c, uint32_t out[32])
{
	struct nlm_news news;
	uint32_t xid, n = 1;
	int stat;

	take_call(c, &news, &xid);
	stat = keep(p, &news);
	if (stat == NLM_SILENT)
		return 0;
	out[n++] = htonl(xid);
	out[n++] = htonl(1);
	for (unsigned i = 0; i < 4; i++) /* accepted, AUTH_NONE, success */
		out[n++] = 0;
	if (news.proc == NLM_GRANTED) {
		out[n++] = htonl(news.cookie_bytes);
		memcpy(out + n, news.cookie, news.cookie_bytes);
		n += (news.cookie_bytes + 3) / 4;
		out[n++] = htonl((uint32_t)stat);
	}
	out[0] = htonl((4 * n - 4) | 0x80000000u);
	return 4 * n;
}

static void
serve_datagram(struct nlm_peer *p)
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
	uint32_t out[32] = { 0 }, n;
	ssize_t got = recvmsg(p->udp, &m, 0);
	struct cmsghdr *h;

	assert_true(got > 0);
	c.n = (uint32_t)got;
	for (h = CMSG_FIRSTHDR(&m); h != NULL; h = CMSG_NXTHDR(&m, h))
		if (h->cmsg_type == IP_PKTINFO)
			c.to.sin_addr =
				((struct in_pktinfo *)CMSG_DATA(h))->ipi_addr;
	n = answer(p, &c, out);
	if (n > 0) /* any address of this machine will do */
		assert_int_equal(sendto(p->udp, out + 1, n - 4, 0,
					(struct sockaddr *)&c.from,
					sizeof(c.from)),
				 n - 4);
}

static bool
read_all(int fd, void *to, size_t n)
{
	return recv(fd, to, n, MSG_WAITALL) == (ssize_t)n;
}

/* False: its peer is gone. */
static bool
serve_stream(struct nlm_peer *p, int fd)
{
	uint8_t bytes[CALL_BYTES];
	struct incoming c = { .bytes = bytes };
	socklen_t from = sizeof(c.from), to = sizeof(c.to);
	uint32_t out[32] = { 0 }, n;

	if (!read_all(fd, &n, 4))
		return false;
	c.n = ntohl(n) & 0x7fffffff;
	assert_true(c.n <= sizeof(bytes) && read_all(fd, bytes, c.n));
	if (getpeername(fd, (struct sockaddr *)&c.from, &from) < 0 ||
	    getsockname(fd, (struct sockaddr *)&c.to, &to) < 0)
		return false;
	n = answer(p, &c, out);
	if (n > 0)
		(void)!send(fd, out, n, MSG_NOSIGNAL);
	return true;
}

static void
serve_streams(struct nlm_peer *p, const struct pollfd *ready)
{
	unsigned i, left = 0;

	for (i = 0; i < p->conns; i++) {
		if (ready[i].revents == 0 || serve_stream(p, p->conn[i]))
			p->conn[left++] = p->conn[i];
		else
			close(p->conn[i]);
	}
	p->conns = left;
}

static void *
serve(void *arg)
{
	struct nlm_peer *p = arg;
	struct pollfd f[3 + CONNS_MAX];
	unsigned i, had;

	for (;;) {
		f[0] = (struct pollfd){ p->wake[0], POLLIN, 0 };
		f[1] = (struct pollfd){ p->udp, POLLIN, 0 };
		f[2] = (struct pollfd){ p->listening, POLLIN, 0 };
		for (i = 0; i < p->conns; i++)
			f[3 + i] = (struct pollfd){ p->conn[i], POLLIN, 0 };
		had = p->conns;
		(void)poll(f, 3 + had, -1);
		if (f[0].revents != 0)
			return NULL;
		serve_streams(p, f + 3);
		if (f[1].revents != 0)
			serve_datagram(p);
		if (f[2].revents != 0) {
			assert_true(p->conns < CONNS_MAX);
			p->conn[p->conns++] = accept(p->listening, NULL, NULL);
		}
	}
}

/* What rpcbind says to it. */
static uint32_t
pmap(uint32_t proc, int protocol, uint16_t port)
{
	struct raw *r = raw_connect_reserved(PMAP_PORT);
	uint32_t done;

	r->flavor = 0;
	raw_build(r, PMAP_PROGRAM, 2, proc, NULL, NULL);
	raw_put(r, NLM_PROGRAM);
	raw_put(r, NLM_VERSION);
	raw_put(r, (uint32_t)protocol);
	raw_put(r, port);
	raw_send(r);
	assert_true(raw_receive(r));
	assert_int_equal(r->accept_stat, 0);
	done = raw_get(r, r->body);
	raw_close(r);
	return done;
}

/* A stream and a datagram socket on one port of all addresses. */
static void
open_sockets(struct nlm_peer *p)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t n = sizeof(a);
	int one = 1;

	p->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	p->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(p->udp >= 0 && p->listening >= 0);
	assert_int_equal(bind(p->listening, (struct sockaddr *)&a, n), 0);
	assert_int_equal(listen(p->listening, 64), 0);
	assert_int_equal(getsockname(p->listening, (struct sockaddr *)&a, &n),
			 0);
	assert_int_equal(bind(p->udp, (struct sockaddr *)&a, n), 0);
	assert_int_equal(
		setsockopt(p->udp, IPPROTO_IP, IP_PKTINFO, &one, sizeof(one)),
		0);
	p->port = ntohs(a.sin_port);
}

struct nlm_peer *
nlm_peer_new(void)
{
	struct nlm_peer *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	open_sockets(p);
	assert_int_equal(pipe2(p->wake, O_CLOEXEC), 0);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->changed, NULL);
	/* A test that failed may have left its own. */
	(void)pmap(PMAP_UNSET, 0, 0);
	assert_int_equal(pmap(PMAP_SET, IPPROTO_TCP, p->port), 1);
	assert_int_equal(pmap(PMAP_SET, IPPROTO_UDP, p->port), 1);
	assert_int_equal(pthread_create(&p->thread, NULL, serve, p), 0);
	return p;
}

void
nlm_peer_free(struct nlm_peer *p)
{
	assert_int_equal(pmap(PMAP_UNSET, 0, 0), 1); /* of every protocol */
	close(p->wake[1]);
	pthread_join(p->thread, NULL);
	close(p->wake[0]);
	close(p->udp);
	close(p->listening);
	while (p->conns > 0)
		close(p->conn[--p->conns]);
	pthread_mutex_destroy(&p->lock);
	pthread_cond_destroy(&p->changed);
	free(p);
}

void
nlm_peer_answer(struct nlm_peer *p, int stat)
{
	pthread_mutex_lock(&p->lock);
	p->answer = stat;
	pthread_mutex_unlock(&p->lock);
}

void
nlm_peer_mute(struct nlm_peer *p, const char *client)
{
	pthread_mutex_lock(&p->lock);
	(void)snprintf(p->mute, sizeof(p->mute), "%s",
		       client != NULL ? client : "");
	pthread_mutex_unlock(&p->lock);
}

struct nlm_news
nlm_peer_take(struct nlm_peer *p)
{
	struct nlm_news news;
	struct timespec until;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SILENCE_S;
	pthread_mutex_lock(&p->lock);
	while (p->count == 0 && rc == 0)
		rc = pthread_cond_timedwait(&p->changed, &p->lock, &until);
	if (p->count == 0) {
		pthread_mutex_unlock(&p->lock);
		fail_msg("the server does not call");
	}
	news = p->news[p->first];
	p->first = (p->first + 1) % NEWS_MAX;
	p->count--;
	pthread_mutex_unlock(&p->lock);
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
	unsigned n;

	pthread_mutex_lock(&p->lock);
	n = p->count;
	pthread_mutex_unlock(&p->lock);
	return n;
}
