/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One peer that sends datagrams: who it is, the pair of sockets whose other end
 * is its connection, records into it and replies out of it. Made by its first
 * datagram; it goes when its connection ends, when it has been quiet for a
 * minute, or as the one least recently used when there are UDP_PEERS_MAX. The
 * reply of a call that is then in service goes nowhere; sent again, that call
 * meets the duplicate request cache.
 *
 * It blocks nowhere: what the pair or the network does not take at once is
 * dropped and counted.
 */
#include "nfsd/udp_peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define PEER_IDLE_NS (60ull * 1000000000)

static void
count(_Atomic uint64_t *c)
{
	stat_add(c, 1); /* this thread alone counts */
}

void
peers_init(struct peers *all, struct server *s, int epoll_fd,
	   struct udp_counters *counters)
{
	all->server = s;
	all->hashed = NULL;
	TAILQ_INIT(&all->lru);
	all->epoll_fd = epoll_fd;
	all->counters = counters;
}

static void
key_address(uint8_t addr[16], uint32_t *scope, const struct sockaddr_storage *a)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)a;

	if (a->ss_family == AF_INET6) {
		memcpy(addr, &v6->sin6_addr, sizeof(v6->sin6_addr));
		*scope = v6->sin6_scope_id;
	} else {
		memcpy(addr, &v4->sin_addr, sizeof(v4->sin_addr));
	}
}

static in_port_t *
port_of(struct sockaddr_storage *a)
{
	if (a->ss_family == AF_INET6)
		return &((struct sockaddr_in6 *)a)->sin6_port;
	return &((struct sockaddr_in *)a)->sin_port;
}

static void
key_init(struct peer_key *k, const struct udp_socket *s,
	 struct datagram_ends *ends)
{
	memset(k, 0, sizeof(*k));
	k->socket = (uint32_t)s->source.fd;
	k->port = *port_of(&ends->peer);
	key_address(k->addr, &k->scope, &ends->peer);
	key_address(k->local, &k->local_scope, &ends->local);
}

/* NOLINTBEGIN: uthash's macros */
static struct udp_peer *
peer_find(struct peers *all, const struct peer_key *k)
{
	struct udp_peer *p;

	HASH_FIND(hh, all->hashed, k, sizeof(*k), p);
	return p;
}

static void
peer_hash(struct peers *all, struct udp_peer *p)
{
	HASH_ADD(hh, all->hashed, key, sizeof(p->key), p);
}

static void
peer_unhash(struct peers *all, struct udp_peer *p)
{
	HASH_DEL(all->hashed, p);
}
/* NOLINTEND */

/* Its connection comes to its end by itself. */
static void
peer_free(struct peers *all, struct udp_peer *p)
{
	peer_unhash(all, p);
	TAILQ_REMOVE(&all->lru, p, lru);
	close(p->source.fd);
	stat_add(&all->counters->peers, (uint64_t)-1);
	free(p->rest);
	free(p->out);
	free(p);
}

int
peers_watch(const struct peers *all, struct source *s, int how, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = s };

	return epoll_ctl(all->epoll_fd, how, s->fd, &e) < 0 ? -errno : 0;
}

static struct udp_peer *
peer_new(struct peers *all, struct udp_socket *s, const struct peer_key *k,
	 const struct datagram_ends *ends)
{
	struct udp_peer *p;
	int pair[2];

	if (all->counters->peers >= UDP_PEERS_MAX) {
		count(&all->counters->peers_evicted);
		peer_free(all, TAILQ_FIRST(&all->lru));
	}
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return NULL;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		free(p);
		return NULL;
	}
	p->key = *k;
	p->ends = *ends;
	p->source = (struct source){ pair[0], p, s };
	peer_hash(all, p);
	TAILQ_INSERT_TAIL(&all->lru, p, lru);
	count(&all->counters->peers);
	if (peers_watch(all, &p->source, EPOLL_CTL_ADD, EPOLLIN) < 0) {
		peer_free(all, p);
		close(pair[1]);
		return NULL;
	}
	conn_start_datagrams(s->shard != NULL ? s->shard
					      : listen_shard(all->server),
			     &s->listener, pair[1], ends);
	return p;
}

struct udp_peer *
peer_get(struct peers *all, struct udp_socket *s, struct datagram_ends *ends)
{
	struct peer_key key;
	struct udp_peer *p;

	key_init(&key, s, ends);
	p = peer_find(all, &key);
	if (p == NULL)
		p = peer_new(all, s, &key, ends);
	if (p == NULL)
		return NULL;
	p->used_ns = monotonic_ns();
	TAILQ_REMOVE(&all->lru, p, lru);
	TAILQ_INSERT_TAIL(&all->lru, p, lru);
	return p;
}

/* In --------------------------------------------------------------------- */

/* The pair has taken n bytes of a record, and not the rest of it. */
static bool
keep_rest(struct peers *all, struct udp_peer *p, const uint8_t *rest,
	  uint32_t n)
{
	p->rest = malloc(n);
	if (p->rest == NULL)
		return false;
	memcpy(p->rest, rest, n);
	p->rest_at = 0;
	p->rest_bytes = n;
	return peers_watch(all, &p->source, EPOLL_CTL_MOD,
			   EPOLLIN | EPOLLOUT) == 0;
}

/* False: the peer is no good any more. */
static bool
push_rest(struct peers *all, struct udp_peer *p)
{
	ssize_t n =
		send(p->source.fd, p->rest + p->rest_at,
		     p->rest_bytes - p->rest_at, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	p->rest_at += (uint32_t)n;
	if (p->rest_at < p->rest_bytes)
		return true;
	free(p->rest);
	p->rest = NULL;
	return peers_watch(all, &p->source, EPOLL_CTL_MOD, EPOLLIN) == 0;
}

void
peer_push(struct peers *all, struct udp_peer *p, const uint8_t *record,
	  uint32_t n)
{
	ssize_t sent;

	if (p->rest != NULL) {
		count(&all->counters->dropped);
		return;
	}
	sent = send(p->source.fd, record, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent == (ssize_t)n)
		return;
	if (sent < 0)
		count(&all->counters->dropped);
	if (sent < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (sent < 0 || !keep_rest(all, p, record + sent, n - (uint32_t)sent))
		peer_free(all, p);
}

/* Out -------------------------------------------------------------------- */

static uint32_t
marked_bytes(const uint8_t mark[RPC_MARK_BYTES])
{
	uint32_t word;

	memcpy(&word, mark, sizeof(word));
	word = ntohl(word) & 0x7fffffffu; /* always the only fragment */
	assert(word <= DATAGRAM_BYTES_MAX);
	return word;
}

/* Read on into p->out, no further than a reply ends. The result of recv(2). */
static ssize_t
pull_some(struct udp_peer *p)
{
	uint32_t want = RPC_MARK_BYTES;
	ssize_t n;

	if (p->out_bytes >= RPC_MARK_BYTES)
		want += marked_bytes(p->out);
	n = recv(p->source.fd, p->out + p->out_bytes, want - p->out_bytes,
		 MSG_DONTWAIT);
	if (n > 0)
		p->out_bytes += (uint32_t)n;
	return n;
}

static void
send_reply(struct peers *all, struct udp_peer *p)
{
	int rc = datagram_send(p->source.socket->source.fd,
			       p->out + RPC_MARK_BYTES,
			       p->out_bytes - RPC_MARK_BYTES, &p->ends);

	p->out_bytes = 0;
	count(rc < 0 ? &all->counters->replies_dropped : &all->counters->sent);
}

/* False: its connection has ended. */
static bool
pull_replies(struct peers *all, struct udp_peer *p)
{
	ssize_t n;

	if (p->out == NULL)
		p->out = malloc(UDP_RECORD_BYTES_MAX);
	if (p->out == NULL)
		return false;
	while ((n = pull_some(p)) > 0)
		if (p->out_bytes > RPC_MARK_BYTES &&
		    p->out_bytes == RPC_MARK_BYTES + marked_bytes(p->out))
			send_reply(all, p);
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

void
peer_ready(struct peers *all, struct udp_peer *p, uint32_t events)
{
	if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR) &&
	     !pull_replies(all, p)) ||
	    (events & EPOLLOUT && p->rest != NULL && !push_rest(all, p)))
		peer_free(all, p);
}

void
peers_forget_idle(struct peers *all)
{
	uint64_t now = monotonic_ns();
	struct udp_peer *p, *next;

	for (p = TAILQ_FIRST(&all->lru);
	     p != NULL && now - p->used_ns > PEER_IDLE_NS; p = next) {
		next = TAILQ_NEXT(p, lru);
		peer_free(all, p);
	}
}
