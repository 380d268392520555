/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of libtirpc's with time limits of ours, and universal addresses (RFC
 * 5665). Private to rpc/.
 */
#ifndef NVNFSD_RPC_CLIENT_H
#define NVNFSD_RPC_CLIENT_H

#include <rpc/types.h>

#include <rpc/auth.h>
#include <rpc/clnt.h>

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

struct client_at {
	const struct sockaddr *addr;
	socklen_t addr_bytes;
	const struct sockaddr *local; /* leave from there, NULL: from anywhere;
					 with a reserved port where we may */
	bool datagram;
	bool once;   /* a datagram is not sent again */
	int seconds; /* at most, for each step */
	uint32_t prog, vers;
};

/* 0, or -errno with *ret NULL. Blocks. */
int client_open(CLIENT **ret, const struct client_at *at);
void client_close(CLIENT *client);
/* 0; -ETIMEDOUT; -EPERM: who we are did not do; -EPROTONOSUPPORT: no such
 * program, version or procedure there; -ECONNREFUSED; or -EIO. */
int client_call(CLIENT *client, uint32_t proc, xdrproc_t encode, void *in,
		xdrproc_t decode, void *out);
/* xdr_void() with the type that clnt_call() wants. */
bool_t client_xdr_nothing(XDR *xdrs, ...);

/* INET6_ADDRSTRLEN and ".255.255" */
#define UADDR_BYTES 64

/* The port's part of a universal address, NULL where it has none: its two
 * bytes, with the dot before them. */
const char *uaddr_port(const char *uaddr);
bool uaddr_same_port(const char *a, const char *b);
/* ".8.1" is port 2049. In network order. */
bool uaddr_port_decode(const char *text, in_port_t *ret);
/* The socket address of a universal address, or its length 0. */
socklen_t uaddr_decode(const char *uaddr, struct sockaddr_storage *ret);

#endif
