/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listening sockets. They live on reactor 0, which hands each connection
 * to the shard that has the fewest, itself last: with few connections
 * SO_REUSEPORT's hash leaves cores idle. At the limit of connections nothing is
 * accepted until one ends.
 */
#include "nfsd/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

/* Those of TCP. The two counts are not read at once: where a datagrams' comes
 * or goes in between, it is one more or less. */
static unsigned
conn_total(const struct server *s)
{
	unsigned i, n = 0, datagrams = s->conns_datagrams;

	for (i = 0; i < s->shards; i++)
		n += s->shard[i]->conn_count;
	return n > datagrams ? n - datagrams : 0;
}

struct shard *
listen_shard(const struct server *s)
{
	struct shard *best = s->shard[0];
	unsigned i;

	for (i = 1; i < s->shards; i++)
		if (!s->shard[i]->blocked &&
		    s->shard[i]->conn_count <= best->conn_count)
			best = s->shard[i];
	return best;
}

static bool
is_accepting(const struct server *s)
{
	const struct listener *l;

	for (l = s->listener; l < s->listener + s->listeners; l++)
		if (l->accepting)
			return true;
	return false;
}

static void
accept_done(struct op *op, int res)
{
	struct listener *l = container_of(op, struct listener, op);
	static struct log_limit limit;

	l->accepting = false;
	if (res >= 0)
		conn_start(listen_shard(l->shard->server), l, res);
	else if (res != -EAGAIN && res != -EINTR && res != -ECONNABORTED &&
		 res != -ECANCELED)
		log_limited(&limit, LOG_WARNING_,
			    "cannot accept a connection: %s", strerror(-res));
	if (l->shard->stopping) {
		if (!is_accepting(l->shard->server))
			shard_stop_rest(l->shard->server);
		return;
	}
	if (res >= 0 || res == -EAGAIN || res == -EINTR || res == -ECONNABORTED)
		listen_resume(l->shard->server);
	/* else the next tick tries again: it may be out of descriptors */
}

bool
listen_tune(struct server *s, int fd)
{
	(void)net_tune(fd);
	/* Only this thread adds to them. */
	if (s->conns_reserved >= CONNS_RESERVED_MAX || net_reserve(fd) < 0)
		return false;
	s->conns_reserved++;
	return true;
}

void
listen_resume(struct server *s)
{
	struct shard *first = s->shard[0];
	struct listener *l;

	if (!reactor_is_current(first->reactor) || first->stopping)
		return;
	if (s->listener->shard == NULL || /* not before listen_start */
	    s->draining)
		return;
	if (conn_total(s) >= s->conns_max)
		return;
	for (l = s->listener; l < s->listener + s->listeners; l++) {
		if (l->accepting)
			continue;
		l->accepting = true;
		l->op.done = accept_done;
		op_accept(first->reactor, &l->op, l->fd);
	}
}

void
listen_start(struct server *s)
{
	struct listener *l;

	for (l = s->listener; l < s->listener + s->listeners; l++)
		l->shard = s->shard[0];
	listen_resume(s);
}

void
listen_pause(struct server *s)
{
	struct listener *l;

	for (l = s->listener; l < s->listener + s->listeners; l++)
		if (l->accepting)
			op_cancel(s->shard[0]->reactor, &l->op);
}

void
listen_stop(struct server *s)
{
	listen_pause(s);
	if (!is_accepting(s))
		shard_stop_rest(s);
}

void
listen_close(struct server *s)
{
	while (s->listeners > 0)
		close(s->listener[--s->listeners].fd);
}

const struct listener *
listen_first(const struct server *s, unsigned program)
{
	const struct listener *l;

	for (l = s->listener; l < s->listener + s->listeners; l++)
		if (listener_serves(l, program))
			return l;
	return NULL;
}

static void
set_port(struct sockaddr_storage *a, uint16_t port)
{
	if (a->ss_family == AF_INET)
		((struct sockaddr_in *)a)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)a)->sin6_port = htons(port);
}

static uint16_t
get_port(const struct sockaddr_storage *a)
{
	if (a->ss_family == AF_INET)
		return ntohs(((const struct sockaddr_in *)a)->sin_port);
	return ntohs(((const struct sockaddr_in6 *)a)->sin6_port);
}

static void
log_in_use(const struct sockaddr_storage *a, const char *option)
{
	char holder[256];
	const char *how = "stop it";

	net_port_holder(a, holder, sizeof(holder));
	if (strstr(holder, "kernel") != NULL)
		how = "stop it (systemctl stop nfs-server)";
	log_msg(LOG_ERR_,
		"port %u is in use by %s: %s or choose another with %s",
		get_port(a), holder, how, option);
}

/* This machine does not have the address, or its whole family. */
static bool
family_missing(int rc)
{
	return rc == -EAFNOSUPPORT || rc == -EADDRNOTAVAIL;
}

/* How another port is chosen for them. */
static const char *
port_option(uint32_t programs)
{
	if ((programs & 1u << PROGRAM_NFS3) != 0)
		return "--port";
	return (programs & PROGRAMS_MOUNT) != 0 ? "--mount-port"
						: "port in [lockd]";
}

/* One address of one port. What fails is logged, but for family_missing. */
static int
open_one(struct server *s, struct sockaddr_storage addr, uint16_t *port,
	 uint32_t programs)
{
	struct listener *l = &s->listener[s->listeners];
	int rc;

	if (s->listeners == SERVER_LISTENERS_MAX) {
		log_msg(LOG_ERR_, "more than %u addresses to listen on",
			SERVER_LISTENERS_MAX);
		return -E2BIG;
	}
	set_port(&addr, *port);
	l->addr = addr;
	rc = net_listen(&l->addr, &l->fd);
	if (rc == -EADDRINUSE)
		log_in_use(&addr, port_option(programs));
	else if (rc < 0 && !family_missing(rc))
		log_msg(LOG_ERR_, "cannot listen on port %u: %s", *port,
			strerror(-rc));
	if (rc < 0)
		return rc;
	*port = get_port(&l->addr); /* the next address takes the same */
	l->programs = programs;
	s->listeners++;
	return 0;
}

/* All addresses of one host= (NULL: any, IPv4 and IPv6). */
static int
open_host(struct server *s, const char *host, uint16_t *port, uint32_t programs)
{
	struct addrinfo hints = { .ai_flags = AI_PASSIVE,
				  .ai_socktype = SOCK_STREAM };
	struct addrinfo *list, *a;
	struct sockaddr_storage addr;
	unsigned before = s->listeners;
	int rc;

	rc = getaddrinfo(host, host == NULL ? "0" : NULL, &hints, &list);
	if (rc != 0) {
		log_msg(LOG_ERR_, "cannot listen on \"%s\": %s",
			host == NULL ? "any" : host, gai_strerror(rc));
		return -EADDRNOTAVAIL;
	}
	for (a = list; a != NULL; a = a->ai_next) {
		memset(&addr, 0, sizeof(addr));
		memcpy(&addr, a->ai_addr, a->ai_addrlen);
		rc = open_one(s, addr, port, programs);
		/* "Any" is what there is: one family will do. */
		if (rc < 0 && (host != NULL || !family_missing(rc)))
			break;
	}
	freeaddrinfo(list);
	if (host == NULL && family_missing(rc) && s->listeners > before)
		return 0;
	if (family_missing(rc))
		log_msg(LOG_ERR_, "cannot listen on \"%s\": %s",
			host == NULL ? "any" : host, strerror(-rc));
	return rc;
}

static int
open_port(struct server *s, uint16_t port, uint32_t programs)
{
	unsigned i;
	int rc = 0;

	if (s->conf.host_count == 0)
		return open_host(s, NULL, &port, programs);
	for (i = 0; rc == 0 && i < s->conf.host_count; i++)
		rc = open_host(s, s->conf.hosts[i], &port, programs);
	return rc;
}

/* One port for both? 0 takes a free one for each. */
static bool
is_same(uint16_t a, uint16_t b)
{
	return a == b && a != 0;
}

int
listen_open(struct server *s)
{
	const struct conf *c = &s->conf;
	uint32_t nfs = PROGRAMS_NFS, mount = PROGRAMS_MOUNT;
	uint32_t lock = PROGRAMS_LOCK;
	int rc;

	if (!c->has_mount_port || is_same(c->mount_port, c->port)) {
		nfs |= mount;
		mount = 0;
	}
	if (!c->has_lockd_port || is_same(c->lockd_port, c->port)) {
		nfs |= lock;
		lock = 0;
	} else if (mount != 0 && is_same(c->lockd_port, c->mount_port)) {
		mount |= lock;
		lock = 0;
	}
	rc = open_port(s, c->port, nfs);
	if (rc == 0 && mount != 0)
		rc = open_port(s, c->mount_port, mount);
	if (rc == 0 && lock != 0)
		rc = open_port(s, c->lockd_port, lock);
	return rc;
}
