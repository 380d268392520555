/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that other hosts serve (and our own host's rpc.statd): calls to
 * them, at the port that their rpcbind names. A struct rpc_peer is made, used
 * and closed by one thread, which blocks; it keeps one socket, and nothing is
 * kept after it. RFC 1833.
 *
 * It does not know what is called, nor why.
 */
#include "rpc/client.h"
#include "rpc/rpc.h"

#include <rpc/pmap_prot.h>
#include <rpc/rpcb_prot.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct rpc_peer {
	CLIENT *client;
};

static socklen_t
set_port(struct sockaddr_storage *addr, in_port_t port)
{
	if (addr->ss_family == AF_INET6) {
		((struct sockaddr_in6 *)addr)->sin6_port = port;
		return sizeof(struct sockaddr_in6);
	}
	((struct sockaddr_in *)addr)->sin_port = port;
	return sizeof(struct sockaddr_in);
}

/* Of of, only the program and how its datagrams are sent are there. */
static int
open_at(CLIENT **ret, const struct rpc_peer_where *w, in_port_t port,
	const struct client_at *of)
{
	struct sockaddr_storage addr = { 0 };
	struct client_at at = *of;

	memcpy(&addr, w->host,
	       w->host->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					      : sizeof(struct sockaddr_in));
	at.addr_bytes = set_port(&addr, port);
	at.addr = (const struct sockaddr *)&addr;
	at.local = w->local;
	at.datagram = w->datagram;
	at.seconds = (int)w->seconds;
	return client_open(ret, &at);
}

/* Version 2, which even an old portmapper speaks, knows IPv4 only. */
static int
port_v4(CLIENT *rpcbind, bool datagram, const struct client_at *of,
	in_port_t *ret)
{
	struct pmap args = { .pm_prog = of->prog,
			     .pm_vers = of->vers,
			     .pm_prot = datagram ? IPPROTO_UDP : IPPROTO_TCP };
	u_short port = 0;
	int error = client_call(rpcbind, PMAPPROC_GETPORT, (xdrproc_t)xdr_pmap,
				&args, (xdrproc_t)xdr_u_short, &port);

	if (error == 0 && port == 0)
		return -ENOENT;
	*ret = htons(port);
	return error;
}

static int
port_v6(CLIENT *rpcbind, bool datagram, const struct client_at *of,
	in_port_t *ret)
{
	char udp[] = "udp6", tcp[] = "tcp6", none[] = "", *uaddr = NULL;
	rpcb args = { .r_prog = of->prog,
		      .r_vers = of->vers,
		      .r_netid = datagram ? udp : tcp,
		      .r_addr = none,
		      .r_owner = none };
	const char *port;
	int error = client_call(rpcbind, RPCBPROC_GETADDR, (xdrproc_t)xdr_rpcb,
				&args, (xdrproc_t)xdr_wrapstring, &uaddr);

	if (error == 0) {
		port = uaddr != NULL ? uaddr_port(uaddr) : NULL;
		if (port == NULL || !uaddr_port_decode(port, ret))
			error = -ENOENT;
	}
	free(uaddr);
	return error;
}

static int
port_of(const struct rpc_peer_where *w, const struct client_at *of,
	in_port_t *ret)
{
	bool v6 = w->host->sa_family == AF_INET6;
	const struct client_at at = { .prog = PMAPPROG,
				      .vers = v6 ? RPCBVERS4 : PMAPVERS };
	CLIENT *rpcbind;
	int error = open_at(&rpcbind, w, htons(PMAPPORT), &at);

	if (error < 0)
		return error;
	error = v6 ? port_v6(rpcbind, w->datagram, of, ret)
		   : port_v4(rpcbind, w->datagram, of, ret);
	client_close(rpcbind);
	return error;
}

int
rpc_peer_open(struct rpc_peer **ret, const struct rpc_peer_where *w,
	      uint32_t prog, uint32_t vers)
{
	const struct client_at at = { .prog = prog,
				      .vers = vers,
				      .once = w->once };
	in_port_t port = 0;
	struct rpc_peer *p;
	int error = port_of(w, &at, &port);

	if (error < 0)
		return error;
	p = malloc(sizeof(*p));
	if (p == NULL)
		return -ENOMEM;
	error = open_at(&p->client, w, port, &at);
	if (error < 0) {
		free(p);
		return error;
	}
	*ret = p;
	return 0;
}

int
rpc_peer_call(struct rpc_peer *p, uint32_t proc, const struct rpc_peer_io *io)
{
	return client_call(
		p->client, proc,
		io->encode ? io->encode : (xdrproc_t)client_xdr_nothing,
		io->args,
		io->decode ? io->decode : (xdrproc_t)client_xdr_nothing,
		io->res);
}

void
rpc_peer_close(struct rpc_peer *p)
{
	if (p == NULL)
		return;
	client_close(p->client);
	free(p);
}
