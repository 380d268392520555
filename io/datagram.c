/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UDP sockets: a reply has to leave from the address that was asked, on a
 * machine that has several, so each datagram tells where it was sent to. Blocks
 * nowhere, keeps nothing. udp(7), ip(7), ipv6(7); RFC 3542 (packet info).
 */
#include "io/engine.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* What waits in a socket while its thread is away: some 60 of the longest. */
#define BUFFER_BYTES (4 << 20)

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
};

static socklen_t
addr_bytes(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in);
}

static int
option_on(int fd, int level, int name)
{
	int on = 1;

	return setsockopt(fd, level, name, &on, sizeof(on)) < 0 ? -errno : 0;
}

/* What it gets is what the system allows. */
static void
grow_buffers(int fd)
{
	int bytes = BUFFER_BYTES;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) <
	    0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes,
				 sizeof(bytes));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) <
	    0)
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes,
				 sizeof(bytes));
}

static int
bind_to(int fd, struct sockaddr_storage *addr)
{
	socklen_t bytes = addr_bytes(addr);
	int rc;

	if (addr->ss_family == AF_INET6)
		rc = option_on(fd, IPPROTO_IPV6, IPV6_V6ONLY);
	else
		rc = option_on(fd, IPPROTO_IP, IP_PKTINFO);
	if (rc == 0 && addr->ss_family == AF_INET6)
		rc = option_on(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO);
	if (rc < 0)
		return rc;
	grow_buffers(fd);
	if (bind(fd, (struct sockaddr *)addr, bytes) < 0 ||
	    getsockname(fd, (struct sockaddr *)addr, &bytes) < 0)
		return -errno;
	return 0;
}

int
datagram_open(struct sockaddr_storage *addr, int *ret_fd)
{
	struct sockaddr_storage bound = *addr;
	int fd, rc;

	if (addr->ss_family != AF_INET && addr->ss_family != AF_INET6)
		return -EAFNOSUPPORT;
	fd = socket(addr->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	rc = bind_to(fd, &bound);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	*addr = bound;
	*ret_fd = fd;
	return 0;
}

/* An IPv6 address says nothing without its link, where it is one link's. */
static void
take_v6(struct sockaddr_in6 *local, const struct in6_pktinfo *info)
{
	local->sin6_family = AF_INET6;
	local->sin6_addr = info->ipi6_addr;
	if (IN6_IS_ADDR_LINKLOCAL(&info->ipi6_addr))
		local->sin6_scope_id = info->ipi6_ifindex;
}

/* Of a broadcast, the address that stands for us on that network. */
static void
take_v4(struct sockaddr_in *local, const struct in_pktinfo *info)
{
	local->sin_family = AF_INET;
	local->sin_addr = info->ipi_spec_dst;
}

static void
take_local(struct msghdr *msg, struct sockaddr_storage *local)
{
	struct cmsghdr *c;

	memset(local, 0, sizeof(*local));
	for (c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO)
			take_v4((struct sockaddr_in *)local,
				(const void *)CMSG_DATA(c));
		if (c->cmsg_level == IPPROTO_IPV6 &&
		    c->cmsg_type == IPV6_PKTINFO)
			take_v6((struct sockaddr_in6 *)local,
				(const void *)CMSG_DATA(c));
	}
}

ssize_t
datagram_receive(int fd, void *buf, size_t bytes, struct datagram_ends *ends)
{
	union control control;
	struct iovec iov = { .iov_base = buf, .iov_len = bytes };
	struct msghdr msg = { .msg_name = &ends->peer,
			      .msg_namelen = sizeof(ends->peer),
			      .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	ssize_t n;

	memset(&ends->peer, 0, sizeof(ends->peer));
	n = recvmsg(fd, &msg, MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	if (msg.msg_flags & MSG_TRUNC)
		return -EMSGSIZE;
	take_local(&msg, &ends->local);
	return n;
}

/* The address to leave from, as ancillary data. */
static void
put_local(struct msghdr *msg, const struct sockaddr_storage *local)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)local;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)local;
	struct cmsghdr *c = msg->msg_control;
	struct in6_pktinfo info6 = { 0 };
	struct in_pktinfo info4 = { 0 };

	if (local->ss_family == AF_INET6) {
		info6.ipi6_addr = v6->sin6_addr;
		info6.ipi6_ifindex = v6->sin6_scope_id;
		c->cmsg_level = IPPROTO_IPV6;
		c->cmsg_type = IPV6_PKTINFO;
		c->cmsg_len = CMSG_LEN(sizeof(info6));
		memcpy(CMSG_DATA(c), &info6, sizeof(info6));
		msg->msg_controllen = CMSG_SPACE(sizeof(info6));
	} else if (local->ss_family == AF_INET) {
		info4.ipi_spec_dst = v4->sin_addr;
		c->cmsg_level = IPPROTO_IP;
		c->cmsg_type = IP_PKTINFO;
		c->cmsg_len = CMSG_LEN(sizeof(info4));
		memcpy(CMSG_DATA(c), &info4, sizeof(info4));
		msg->msg_controllen = CMSG_SPACE(sizeof(info4));
	}
}

int
datagram_send(int fd, const void *buf, size_t bytes,
	      const struct datagram_ends *ends)
{
	union control control = { 0 };
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = bytes };
	struct msghdr msg = { .msg_name = (void *)&ends->peer,
			      .msg_namelen = addr_bytes(&ends->peer),
			      .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control };

	put_local(&msg, &ends->local);
	return sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}
