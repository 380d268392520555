/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registration with rpcbind (RFC 1833, version 4) over its local socket, by
 * libtirpc's client (client.c). There, rpcbind sees who we are, so that nobody
 * else can withdraw what root registered. libtirpc's own rpcb_set() would do
 * the same, but falls back to UDP and waits up to a minute, and cannot tell an
 * absent rpcbind from a refusal.
 *
 * Everything blocks, on the thread of the caller, for at most a few seconds:
 * the socket's and the calls' time limits are ours. One connection serves one
 * bind_register() or bind_unregister(); nothing is kept between them.
 */
#include "rpc/client.h"
#include "rpc/rpc.h"

#include <rpc/rpcb_prot.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>

#define RPCBIND_SECONDS 3  /* for each answer of rpcbind */
#define HOLDER_SECONDS  1  /* for a server of this machine to prove alive */
#define ALL_SECONDS     10 /* after which nothing further is begun */

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

/* 0, or -errno with *ret NULL. */
static int
rpcbind_open(CLIENT **ret)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX,
				    .sun_path = _PATH_RPCBINDSOCK };
	struct client_at at = { .addr = (struct sockaddr *)&addr,
				.addr_bytes = sizeof(addr),
				.seconds = RPCBIND_SECONDS,
				.prog = RPCBPROG,
				.vers = RPCBVERS4 };
	int error = client_open(ret, &at);

	/* No socket, no one behind it, or no /run at all: no rpcbind. */
	if (error == -ENOENT || error == -ENOTDIR)
		return -ECONNREFUSED;
	return error == -EACCES ? -EPERM : error;
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

	error = client_call(client, proc, (xdrproc_t)xdr_rpcb, &args,
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
	return client_call(client, RPCBPROC_DUMP, client_xdr_nothing, NULL,
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

/* How many registrations the services make. */
static unsigned
bindings_init(struct binding bindings[BINDINGS_MAX],
	      const struct bind_service *services, unsigned n)
{
	const struct bind_port *p;
	struct binding *b = bindings;
	unsigned i, net;

	assert(n <= BIND_SERVICES_MAX);
	for (i = 0; i < n; i++) {
		for (net = 0; net < BIND_NETIDS; net++) {
			p = &services[i].at[net];
			if (p->port == 0)
				continue;
			b->prog = services[i].prog;
			b->vers = services[i].vers;
			b->netid = netids[net];
			(void)snprintf(b->uaddr, sizeof(b->uaddr), "%s.%u.%u",
				       p->addr, p->port >> 8, p->port & 0xffu);
			b++;
		}
	}
	return (unsigned)(b - bindings);
}

/* Does a server answer for b at this address? NULL procedure, as rpcinfo. */
static bool
holder_answers(const struct binding *b, const char *uaddr)
{
	struct sockaddr_storage addr;
	struct client_at at = { .addr = (struct sockaddr *)&addr,
				.addr_bytes = uaddr_decode(uaddr, &addr),
				.datagram = strncmp(b->netid, "udp", 3) == 0,
				.seconds = HOLDER_SECONDS,
				.prog = b->prog,
				.vers = b->vers };
	CLIENT *client;
	int error;

	if (at.addr_bytes == 0 || client_open(&client, &at) < 0)
		return false;
	error = client_call(client, NULLPROC, (xdrproc_t)client_xdr_nothing,
			    NULL, (xdrproc_t)client_xdr_nothing, NULL);
	client_close(client);
	return error == 0;
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
