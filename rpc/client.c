/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of libtirpc's, over a socket of ours: made here because its own ways
 * to make one take their time (a minute where nobody answers) and leave from
 * any address. A CLIENT is used by the thread that opened it, which blocks, for
 * so many seconds at each step as it was told. Nothing is kept between two.
 */
#include "rpc/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define RETRY_SECONDS 1 /* a datagram is sent again after it */

/* libtirpc's: a reserved port at sa's address. */
extern int bindresvport_sa(int fd, struct sockaddr *sa);

/* A copy with the port 0; its length. */
static socklen_t
any_port(struct sockaddr_storage *to, const struct sockaddr *from)
{
	memset(to, 0, sizeof(*to));
	if (from->sa_family == AF_INET6) {
		memcpy(to, from, sizeof(struct sockaddr_in6));
		((struct sockaddr_in6 *)to)->sin6_port = 0;
		return sizeof(struct sockaddr_in6);
	}
	memcpy(to, from, sizeof(struct sockaddr_in));
	((struct sockaddr_in *)to)->sin_port = 0;
	return sizeof(struct sockaddr_in);
}

static int
bind_local(int fd, const struct sockaddr *local)
{
	struct sockaddr_storage addr;
	socklen_t n;

	(void)any_port(&addr, local);
	if (bindresvport_sa(fd, (struct sockaddr *)&addr) == 0)
		return 0;
	/* None is to be had. It has written its last try there. */
	n = any_port(&addr, local);
	return bind(fd, (struct sockaddr *)&addr, n);
}

/* The socket: bound, and connected where it is a stream. Or -errno. */
static int
socket_open(const struct client_at *at)
{
	struct timeval limit = { .tv_sec = at->seconds };
	int type = at->datagram ? SOCK_DGRAM : SOCK_STREAM, error;
	int fd = socket(at->addr->sa_family, type | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	/* The limit of connect() and of each send. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0)
		goto close_fd;
	if (at->local != NULL && bind_local(fd, at->local) < 0)
		goto close_fd;
	if (!at->datagram && connect(fd, at->addr, at->addr_bytes) < 0)
		goto close_fd;
	return fd;

close_fd:
	error = errno;
	close(fd);
	return error == EINPROGRESS ? -ETIMEDOUT : -error;
}

int
client_open(CLIENT **ret, const struct client_at *at)
{
	struct timeval limit = { .tv_sec = at->seconds };
	struct timeval retry = { .tv_sec = at->once ? at->seconds + 1
						    : RETRY_SECONDS };
	struct netbuf peer = { .buf = (void *)at->addr,
			       .len = at->addr_bytes,
			       .maxlen = at->addr_bytes };
	int fd = socket_open(at);

	*ret = NULL;
	if (fd < 0)
		return fd;
	if (at->datagram)
		*ret = clnt_dg_create(fd, &peer, at->prog, at->vers, 0, 0);
	else
		*ret = clnt_vc_create(fd, &peer, at->prog, at->vers, 0, 0);
	if (*ret == NULL) {
		close(fd);
		return -EIO;
	}
	clnt_control(*ret, CLSET_FD_CLOSE, NULL);
	clnt_control(*ret, CLSET_TIMEOUT, (char *)&limit);
	if (at->datagram)
		clnt_control(*ret, CLSET_RETRY_TIMEOUT, (char *)&retry);
	return 0;
}

void
client_close(CLIENT *client)
{
	auth_destroy(client->cl_auth);
	clnt_destroy(client);
}

bool_t
client_xdr_nothing(XDR *xdrs, ...)
{
	(void)xdrs;
	return TRUE;
}

int
client_call(CLIENT *client, uint32_t proc, xdrproc_t encode, void *in,
	    xdrproc_t decode, void *out)
{
	/* The limit was set once for the client; this is not looked at. */
	struct timeval unused = { .tv_sec = 1 };
	struct rpc_err error;

	switch (clnt_call(client, proc, encode, in, decode, out, unused)) {
	case RPC_SUCCESS:
		return 0;
	case RPC_TIMEDOUT:
		return -ETIMEDOUT;
	case RPC_AUTHERROR:
		return -EPERM;
	case RPC_PROGUNAVAIL:
	case RPC_PROGVERSMISMATCH:
	case RPC_PROCUNAVAIL:
		return -EPROTONOSUPPORT;
	case RPC_CANTSEND:
	case RPC_CANTRECV:
		clnt_geterr(client, &error);
		return error.re_errno == ECONNREFUSED ? -ECONNREFUSED : -EIO;
	default:
		return -EIO;
	}
}

/* Universal addresses ----------------------------------------------------- */

const char *
uaddr_port(const char *uaddr)
{
	const char *low = strrchr(uaddr, '.');

	return low ? memrchr(uaddr, '.', (size_t)(low - uaddr)) : NULL;
}

bool
uaddr_same_port(const char *a, const char *b)
{
	const char *port_a = uaddr_port(a), *port_b = uaddr_port(b);

	return port_a && port_b && strcmp(port_a, port_b) == 0;
}

bool
uaddr_port_decode(const char *text, in_port_t *ret)
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

socklen_t
uaddr_decode(const char *uaddr, struct sockaddr_storage *ret)
{
	struct sockaddr_in *v4 = (void *)ret;
	struct sockaddr_in6 *v6 = (void *)ret;
	const char *port_text = uaddr_port(uaddr);
	char host[UADDR_BYTES];
	in_port_t port;

	if (port_text == NULL || port_text - uaddr >= (ptrdiff_t)sizeof(host) ||
	    !uaddr_port_decode(port_text, &port))
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
