/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams, made to look like connections. For each peer (its address and
 * port, and the address of ours that it asked) there is a pair of sockets: one
 * end is an ordinary connection of a shard, the other is held here. A datagram
 * goes into it as one record, and a record that comes out is one datagram, so
 * everything that is true of a connection's calls (limits, duplicate requests,
 * identities, order of the checks) is true of them.
 *
 * A struct udp is opened with the listening sockets. Its thread owns the peers
 * (udp_peer.c) from udp_start to udp_free, and blocks in epoll_wait(2) only. It
 * does not know what a record means, but for the few bytes that tell a call.
 */
#include "nfsd/udp.h"

#include "nfsd/udp_peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TICK_MS        1000
#define EVENTS         64
#define RECEIVE_BATCH  64 /* then the others have their turn */
#define CALL_BYTES_MIN 12 /* xid, direction, RPC version: else no answer */

struct udp {
	struct server *server;
	struct udp_socket sockets[SERVER_LISTENERS_MAX];
	unsigned count;
	struct source wake;
	int epoll_fd;
	pthread_t thread;
	bool started;
	_Atomic bool closing, ending;
	pthread_mutex_t lock; /* what follows; a leaf */
	pthread_cond_t changed;
	bool closed; /* nothing is received any more */
	struct peers peers;
	struct udp_counters counters;
	uint8_t record[UDP_RECORD_BYTES_MAX];
};

/* The thread ------------------------------------------------------------------
 */

static void
count(_Atomic uint64_t *c)
{
	stat_add(c, 1); /* this thread alone counts */
}

/* Only a call makes a peer, or can be answered. */
static bool
is_call(const uint8_t *bytes, ssize_t n)
{
	static const uint8_t call[4]; /* CALL is 0 */

	return n >= CALL_BYTES_MIN && memcmp(bytes + 4, call, 4) == 0;
}

static in_port_t *
port_of(struct sockaddr_storage *a)
{
	if (a->ss_family == AF_INET6)
		return &((struct sockaddr_in6 *)a)->sin6_port;
	return &((struct sockaddr_in *)a)->sin_port;
}

static void
take_datagram(struct udp *u, struct udp_socket *s, struct datagram_ends *ends,
	      uint32_t n)
{
	struct udp_peer *p;

	if (ends->local.ss_family == AF_UNSPEC)
		ends->local = s->listener.addr;
	*port_of(&ends->local) = *port_of(&s->listener.addr);
	p = peer_get(&u->peers, s, ends);
	if (p == NULL) {
		count(&u->counters.dropped);
		return;
	}
	record_mark(u->record, n);
	peer_push(&u->peers, p, u->record, RPC_MARK_BYTES + n);
}

static void
socket_ready(struct udp *u, struct udp_socket *s)
{
	uint8_t *bytes = u->record + RPC_MARK_BYTES;
	struct datagram_ends ends;
	ssize_t n;
	int i;

	for (i = 0; i < RECEIVE_BATCH; i++) {
		n = datagram_receive(s->source.fd, bytes, DATAGRAM_BYTES_MAX,
				     &ends);
		if (n < 0 && n != -EMSGSIZE)
			return;
		count(&u->counters.received);
		if (n == -EMSGSIZE)
			count(&u->counters.long_ones);
		else if (!is_call(bytes, n))
			count(&u->counters.garbage);
		else if (u->server->draining)
			count(&u->counters.dropped);
		else
			take_datagram(u, s, &ends, (uint32_t)n);
	}
}

/* Whoever waits in udp_stop_receiving may go on. */
static void
close_sockets(struct udp *u)
{
	unsigned i;

	for (i = 0; i < u->count; i++)
		(void)epoll_ctl(u->epoll_fd, EPOLL_CTL_DEL,
				u->sockets[i].source.fd, NULL);
	pthread_mutex_lock(&u->lock);
	u->closed = true;
	pthread_cond_signal(&u->changed);
	pthread_mutex_unlock(&u->lock);
}

static void
woken(struct udp *u)
{
	uint64_t n;

	(void)!read(u->wake.fd, &n, sizeof(n));
	if (u->closing)
		close_sockets(u);
}

/* Not a peer's, which may be gone meanwhile. */
static bool
is_own(const struct udp *u, const struct source *s)
{
	return (const char *)s >= (const char *)u &&
	       (const char *)s < (const char *)(u + 1);
}

/* Peers first: what comes in may end one of which an event tells. */
static void
handle(struct udp *u, const struct epoll_event *e, int n)
{
	struct source *s;
	int i;

	for (i = 0; i < n; i++) {
		s = e[i].data.ptr;
		if (!is_own(u, s))
			peer_ready(&u->peers, s->peer, e[i].events);
	}
	for (i = 0; i < n; i++) {
		s = e[i].data.ptr;
		if (s == &u->wake)
			woken(u);
		else if (is_own(u, s) && !u->closing)
			socket_ready(u, s->socket);
	}
}

static void *
udp_run(void *arg)
{
	struct epoll_event events[EVENTS];
	struct udp *u = arg;
	uint64_t tick_ns = monotonic_ns();
	bool any;
	int n;

	while ((any = u->counters.peers > 0) || !u->ending) {
		n = epoll_wait(u->epoll_fd, events, EVENTS, any ? TICK_MS : -1);
		handle(u, events, n);
		if (monotonic_ns() - tick_ns > TICK_MS * 1000000ull) {
			peers_forget_idle(&u->peers);
			tick_ns = monotonic_ns();
		}
	}
	return NULL;
}

static void
wake(struct udp *u)
{
	uint64_t one = 1;

	(void)!write(u->wake.fd, &one, sizeof(one));
}

/* Start and end ---------------------------------------------------------------
 */

/* What a listening socket serves is served by UDP beside it, but for NFS where
 * it was not asked for. False: nothing is left. */
static bool
take_programs(const struct server *s, const struct listener *from,
	      struct listener *to)
{
	to->addr = from->addr;
	to->programs = from->programs;
	if (!s->conf.udp)
		to->programs &= ~(1u << PROGRAM_NFS3 | 1u << PROGRAM_ACL3);
	return to->programs != 0;
}

/* 0, also where it is done without it; or -errno. */
static int
open_socket(struct udp *u, struct udp_socket *s, bool same)
{
	int rc = datagram_open(&s->listener.addr, &s->source.fd);

	if (rc == 0) {
		s->source.socket = s;
		u->count++;
		return 0;
	}
	if (rc == -EADDRINUSE && same)
		return rc;
	log_msg(u->server->conf.udp ? LOG_ERR_ : LOG_WARNING_,
		"cannot receive on UDP port %u: %s%s",
		ntohs(*port_of(&s->listener.addr)), strerror(-rc),
		u->server->conf.udp ? "" : ": MOUNT and locks are by TCP only");
	return u->server->conf.udp ? rc : 0;
}

static int
open_sockets(struct udp *u, bool same)
{
	struct server *s = u->server;
	const struct listener *l;
	struct udp_socket *next;
	int rc = 0;

	for (l = s->listener; rc == 0 && l < s->listener + s->listeners; l++) {
		next = &u->sockets[u->count];
		if (take_programs(s, l, &next->listener))
			rc = open_socket(u, next, same);
	}
	return rc;
}

int
udp_open(struct udp **ret, struct server *s, bool same)
{
	struct udp *u = calloc(1, sizeof(*u));
	int rc = 0;

	if (u == NULL)
		return -ENOMEM;
	u->server = s;
	pthread_mutex_init(&u->lock, NULL);
	pthread_cond_init(&u->changed, NULL);
	u->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	u->wake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (u->epoll_fd < 0 || u->wake.fd < 0)
		rc = -errno;
	peers_init(&u->peers, s, u->epoll_fd, &u->counters);
	if (rc == 0)
		rc = open_sockets(u, same);
	if (rc < 0) {
		udp_free(u);
		return rc;
	}
	*ret = u;
	return 0;
}

/* NFS is spread over the shards; what else comes by UDP is little, and leaves
 * the others to connections. */
int
udp_start(struct udp *u)
{
	unsigned i;
	int rc;

	rc = peers_watch(&u->peers, &u->wake, EPOLL_CTL_ADD, EPOLLIN);
	for (i = 0; rc == 0 && i < u->count; i++) {
		if (!u->server->conf.udp)
			u->sockets[i].shard = u->server->shard[0];
		rc = peers_watch(&u->peers, &u->sockets[i].source,
				 EPOLL_CTL_ADD, EPOLLIN);
	}
	if (rc == 0)
		rc = -pthread_create(&u->thread, NULL, udp_run, u);
	u->started = rc == 0;
	return rc;
}

void
udp_stop_receiving(struct udp *u)
{
	if (u == NULL || !u->started)
		return;
	u->closing = true;
	wake(u);
	pthread_mutex_lock(&u->lock);
	while (!u->closed)
		pthread_cond_wait(&u->changed, &u->lock);
	pthread_mutex_unlock(&u->lock);
}

void
udp_free(struct udp *u)
{
	if (u == NULL)
		return;
	u->ending = true;
	if (u->started) {
		wake(u);
		pthread_join(u->thread, NULL);
	}
	while (u->count > 0)
		close(u->sockets[--u->count].source.fd);
	if (u->epoll_fd >= 0)
		close(u->epoll_fd);
	if (u->wake.fd >= 0)
		close(u->wake.fd);
	pthread_mutex_destroy(&u->lock);
	pthread_cond_destroy(&u->changed);
	free(u);
}

unsigned
udp_count(const struct udp *u)
{
	return u->count;
}

const struct listener *
udp_socket(const struct udp *u, unsigned i)
{
	assert(i < u->count);
	return &u->sockets[i].listener;
}

struct udp_counters *
udp_counters(struct udp *u)
{
	return &u->counters;
}
