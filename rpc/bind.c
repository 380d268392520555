/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registration with rpcbind (RFC 1833, version 4) over its local socket, by
 * libtirpc's client. There, rpcbind sees who we are, so that nobody else can
 * withdraw what root registered. libtirpc's own rpcb_set() would do the same,
 * but falls back to UDP and waits up to a minute, and cannot tell an absent
 * rpcbind from a refusal.
 *
 * Everything blocks, on the thread of the caller, for at most a few seconds:
 * the socket's and the calls' time limits are ours. One connection serves one
 * bind_register() or bind_unregister(); nothing is kept between them.
 */
#include "rpc/rpc.h"

#include <rpc/types.h>

#include <rpc/auth.h>
#include <rpc/clnt.h>
#include <rpc/rpcb_prot.h>

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define RPCBIND_SECONDS 3  /* for each answer of rpcbind */
#define HOLDER_SECONDS  1  /* for a server of this machine to prove alive */
#define ALL_SECONDS     10 /* after which nothing further is begun */

/* INET6_ADDRSTRLEN and ".255.255" */
#define UADDR_BYTES 64

/* One registration: a service on one protocol. */
struct binding {
	uint32_t prog, vers;
	const char *netid;
	char uaddr[UADDR_BYTES]; /* RFC 5665: address, port by two bytes */
};

#define BINDINGS_MAX (BIND_SERVICES_MAX * BIND_NETIDS)

static const char *const netids[BIND_NETIDS] = {
	[BIND_TCP] = "tcp",
	[BIND_TCP6] = "tcp6",
	[BIND_UDP] = "udp",
	[BIND_UDP6] = "udp6",
};

/* A client over a fresh connection, or by datagrams, whose every step takes at
 * most seconds; or NULL with errno set. */
static CLIENT *
client_open(struct sockaddr *addr, socklen_t addr_bytes, int type,
	    uint32_t prog, uint32_t vers, int seconds)
{
	struct timeval limit = { .tv_sec = seconds };
	struct netbuf peer = { .buf = addr,
			       .len = addr_bytes,
			       .maxlen = addr_bytes };
	CLIENT *client;
	int fd, error;

	fd = socket(addr->sa_family, type | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return NULL;
	/* The limit of connect() and of each send. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) ||
	    connect(fd, addr, addr_bytes) != 0) {
		error = errno;
		goto close_fd;
	}
	client = type == SOCK_DGRAM
			 ? clnt_dg_create(fd, &peer, prog, vers, 0, 0)
			 : clnt_vc_create(fd, &peer, prog, vers, 0, 0);
	if (client == NULL) {
		error = EIO;
		goto close_fd;
	}
	clnt_control(client, CLSET_FD_CLOSE, NULL);
	clnt_control(client, CLSET_TIMEOUT, (char *)&limit);
	return client;

close_fd:
	close(fd);
	errno = error;
	return NULL;
}

static void
client_close(CLIENT *client)
{
	auth_destroy(client->cl_auth);
	clnt_destroy(client);
}

/* 0, or -errno with *ret NULL. */
static int
rpcbind_open(CLIENT **ret)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX,
				    .sun_path = _PATH_RPCBINDSOCK };

	*ret = client_open((struct sockaddr *)&addr, sizeof(addr), SOCK_STREAM,
			   RPCBPROG, RPCBVERS4, RPCBIND_SECONDS);
	if (*ret != NULL)
		return 0;
	/* No socket, no one behind it, or no /run at all: no rpcbind. */
	if (errno == ENOENT || errno == ENOTDIR)
		return -ECONNREFUSED;
	return errno == EACCES ? -EPERM : -errno;
}

/* xdr_void() with the type that clnt_call() wants. */
static bool_t
xdr_nothing(XDR *xdrs, ...)
{
	(void)xdrs;
	return TRUE;
}

/* The time limit was set once for the client; what is passed here is not
 * looked at. */
static int
rpcbind_call(CLIENT *client, rpcproc_t proc, xdrproc_t encode, void *in,
	     xdrproc_t decode, void *out)
{
	struct timeval unused = { .tv_sec = RPCBIND_SECONDS };

	switch (clnt_call(client, proc, encode, in, decode, out, unused)) {
	case RPC_SUCCESS:
		return 0;
	case RPC_TIMEDOUT:
		return -ETIMEDOUT;
	case RPC_AUTHERROR:
		return -EPERM;
	default:
		return -EIO;
	}
}

/* RPCBPROC_SET or RPCBPROC_UNSET; -EPERM when rpcbind says no. */
static int
rpcbind_change(CLIENT *client, rpcproc_t proc, const struct binding *b)
{
	char none[] = "";
	rpcb args = { .r_prog = b->prog,
		      .r_vers = b->vers,
		      .r_netid = (char *)b->netid,
		      .r_addr = (char *)b->uaddr,
		      .r_owner = none };
	bool_t granted = FALSE;
	int error;

	error = rpcbind_call(client, proc, (xdrproc_t)xdr_rpcb, &args,
			     (xdrproc_t)xdr_bool, &granted);
	if (error == 0 && !granted)
		return -EPERM;
	return error;
}

/* All registrations as they were made; free with rpcbind_free_list(). */
static int
rpcbind_list(CLIENT *client, rpcblist_ptr *ret)
{
	*ret = NULL;
	return rpcbind_call(client, RPCBPROC_DUMP, xdr_nothing, NULL,
			    (xdrproc_t)xdr_rpcblist_ptr, ret);
}

static void
rpcbind_free_list(rpcblist_ptr list)
{
	xdr_free((xdrproc_t)xdr_rpcblist_ptr, &list);
}

/* The address that b's program, version and protocol are registered at. */
static const char *
registered_at(const rpcblist *list, const struct binding *b)
{
	for (; list != NULL; list = list->rpcb_next) {
		const rpcb *map = &list->rpcb_map;

		if (map->r_prog == b->prog && map->r_vers == b->vers &&
		    strcmp(map->r_netid, b->netid) == 0)
			return map->r_addr;
	}
	return NULL;
}

static bool
binding_is_datagram(const struct binding *b)
{
	return b->netid == netids[BIND_UDP] || b->netid == netids[BIND_UDP6];
}

static void
binding_init(struct binding *b, const struct bind_service *s,
	     enum bind_netid net)
{
	const struct bind_port *p = &s->at[net];

	b->prog = s->prog;
	b->vers = s->vers;
	b->netid = netids[net];
	(void)snprintf(b->uaddr, sizeof(b->uaddr), "%s.%u.%u", p->addr,
		       p->port >> 8, p->port & 0xffu);
}

/* How many registrations the services make. */
static unsigned
bindings_init(struct binding bindings[BINDINGS_MAX],
	      const struct bind_service *services, unsigned n)
{
	unsigned i, net, made = 0;

	assert(n <= BIND_SERVICES_MAX);
	for (i = 0; i < n; i++)
		for (net = 0; net < BIND_NETIDS; net++)
			if (services[i].at[net].port != 0)
				binding_init(&bindings[made++], &services[i],
					     (enum bind_netid)net);
	return made;
}

/* A universal address ends in its port's two bytes; NULL when it does not. */
static const char *
uaddr_port(const char *uaddr)
{
	const char *low = strrchr(uaddr, '.');

	return low ? memrchr(uaddr, '.', (size_t)(low - uaddr)) : NULL;
}

static bool
uaddr_same_port(const char *a, const char *b)
{
	const char *port_a = uaddr_port(a), *port_b = uaddr_port(b);

	return port_a && port_b && strcmp(port_a, port_b) == 0;
}

/* ".8.1" is port 2049. */
static bool
port_decode(const char *text, in_port_t *ret)
{
	unsigned long high, low;
	char *end;

	high = strtoul(text + 1, &end, 10);
	if (*end != '.')
		return false;
	low = strtoul(end + 1, &end, 10);
	if (*end != '\0' || high > 255 || low > 255)
		return false;
	*ret = htons((uint16_t)(high << 8 | low));
	return true;
}

/* The socket address of a universal address, or its length 0. */
static socklen_t
uaddr_decode(const char *uaddr, struct sockaddr_storage *ret)
{
	struct sockaddr_in *v4 = (void *)ret;
	struct sockaddr_in6 *v6 = (void *)ret;
	const char *port_text = uaddr_port(uaddr);
	char host[UADDR_BYTES];
	in_port_t port;

	if (port_text == NULL || port_text - uaddr >= (ptrdiff_t)sizeof(host) ||
	    !port_decode(port_text, &port))
		return 0;
	memcpy(host, uaddr, (size_t)(port_text - uaddr));
	host[port_text - uaddr] = '\0';
	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = port;
		return sizeof(*v4);
	}
	if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = port;
		return sizeof(*v6);
	}
	return 0;
}

/* Does a server answer for b at this address? NULL procedure, as rpcinfo. */
static bool
holder_answers(const struct binding *b, const char *uaddr)
{
	struct timeval limit = { .tv_sec = HOLDER_SECONDS };
	struct sockaddr_storage addr;
	socklen_t addr_bytes = uaddr_decode(uaddr, &addr);
	enum clnt_stat stat;
	CLIENT *client;

	if (addr_bytes == 0)
		return false;
	client = client_open((struct sockaddr *)&addr, addr_bytes,
			     binding_is_datagram(b) ? SOCK_DGRAM : SOCK_STREAM,
			     b->prog, b->vers, HOLDER_SECONDS);
	if (client == NULL)
		return false;
	stat = clnt_call(client, NULLPROC, xdr_nothing, NULL, xdr_nothing, NULL,
			 limit);
	client_close(client);
	return stat == RPC_SUCCESS;
}

static time_t
seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/*
 * -EADDRINUSE when a living server holds one of the registrations: its clients
 * must not find us instead. A port that we listen on can only have been left
 * there by a server that is dead; asking it would be asking ourselves.
 */
static int
bindings_check(const rpcblist *list, const struct binding *bindings, unsigned n,
	       time_t until)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		const char *uaddr = registered_at(list, &bindings[i]);

		if (uaddr == NULL || uaddr_same_port(uaddr, bindings[i].uaddr))
			continue;
		if (seconds_now() > until)
			return -ETIMEDOUT;
		if (holder_answers(&bindings[i], uaddr))
			return -EADDRINUSE;
	}
	return 0;
}

static int
bindings_set(CLIENT *client, const rpcblist *list,
	     const struct binding *bindings, unsigned n, time_t until)
{
	int error = 0;
	unsigned i;

	for (i = 0; i < n && error == 0; i++) {
		if (seconds_now() > until)
			return -ETIMEDOUT;
		if (registered_at(list, &bindings[i]) != NULL)
			error = rpcbind_change(client, RPCBPROC_UNSET,
					       &bindings[i]);
		if (error == 0)
			error = rpcbind_change(client, RPCBPROC_SET,
					       &bindings[i]);
	}
	if (error == 0 || error == -ETIMEDOUT)
		return error;
	/* The last of them failed; what came before it was made. */
	for (i--; i-- > 0;)
		(void)rpcbind_change(client, RPCBPROC_UNSET, &bindings[i]);
	return error;
}

int
bind_register(const struct bind_service *services, unsigned n)
{
	struct binding bindings[BINDINGS_MAX];
	unsigned made = bindings_init(bindings, services, n);
	time_t until = seconds_now() + ALL_SECONDS;
	rpcblist_ptr list;
	CLIENT *client;
	int error;

	error = rpcbind_open(&client);
	if (client == NULL)
		return error;
	error = rpcbind_list(client, &list);
	if (error == 0)
		error = bindings_check(list, bindings, made, until);
	if (error == 0)
		error = bindings_set(client, list, bindings, made, until);
	rpcbind_free_list(list);
	client_close(client);
	return error;
}

void
bind_unregister(const struct bind_service *services, unsigned n)
{
	struct binding bindings[BINDINGS_MAX];
	unsigned made = bindings_init(bindings, services, n);
	rpcblist_ptr list;
	time_t until = seconds_now() + ALL_SECONDS;
	const char *uaddr;
	CLIENT *client;
	unsigned i;

	(void)rpcbind_open(&client);
	if (client == NULL)
		return;
	if (rpcbind_list(client, &list) == 0) {
		for (i = 0; i < made && seconds_now() <= until; i++) {
			uaddr = registered_at(list, &bindings[i]);
			if (uaddr && strcmp(uaddr, bindings[i].uaddr) == 0)
				(void)rpcbind_change(client, RPCBPROC_UNSET,
						     &bindings[i]);
		}
	}
	rpcbind_free_list(list);
	client_close(client);
}
