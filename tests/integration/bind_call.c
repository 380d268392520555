/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What bind.sh runs to register, to withdraw, and to be a server that somebody
 * else has registered:
 *
 *	bind_call register|unregister PORT PORT6 [PROGRAM.VERSION]...
 *	bind_call serve PROGRAM.VERSION [udp]
 *
 * Each port is TCP's and UDP's, of IPv4 and IPv6; 0 means not on that protocol.
 * Without programs: those of nvnfsd. Prints the result as an error's name, or
 * "ok". serve takes a free port of 127.0.0.1, prints it, answers every call of
 * its program with success, and ends with its standard input.
 */
#include "rpc/rpc.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SERVICES_MAX 16

static uint32_t
number(const char *text, char end, const char **rest)
{
	char *stop;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &stop, 10);
	if (errno != 0 || stop == text || *stop != end || n > UINT32_MAX)
		errx(2, "%s: not a number", text);
	if (rest != NULL)
		*rest = stop + 1;
	return (uint32_t)n;
}

static void
parse_program(const char *text, uint32_t *prog, uint32_t *vers)
{
	const char *rest;

	*prog = number(text, '.', &rest);
	*vers = number(rest, '\0', NULL);
}

static unsigned
parse_services(struct bind_service *s, int argc, char *const *argv)
{
	static const char *const defaults[] = { "100003.3", "100005.3",
						"100005.2", "100005.1",
						"100227.3", "100011.1",
						"100011.2", "100021.4" };
	const char *const *programs =
		argc > 2 ? (const char *const *)argv + 2 : defaults;
	unsigned n = argc > 2 ? (unsigned)argc - 2
			      : sizeof(defaults) / sizeof(*defaults);
	unsigned i, net;

	if (argc < 2 || n > SERVICES_MAX)
		errx(2, "usage: see the head of bind_call.c");
	for (i = 0; i < n; i++) {
		parse_program(programs[i], &s[i].prog, &s[i].vers);
		for (net = 0; net < BIND_NETIDS; net++) {
			struct bind_port *p = &s[i].at[net];
			bool v6 = net == BIND_TCP6 || net == BIND_UDP6;

			p->port = (uint16_t)number(argv[v6], '\0', NULL);
			(void)snprintf(p->addr, sizeof(p->addr), "%s",
				       v6 ? "::" : "0.0.0.0");
		}
	}
	return n;
}

static int
listen_free_port(int type)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t n = sizeof(addr);
	int fd = socket(AF_INET, type, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, n) != 0 ||
	    (type == SOCK_STREAM && listen(fd, 8) != 0) ||
	    getsockname(fd, (struct sockaddr *)&addr, &n) != 0)
		err(1, "listen");
	printf("%u\n", ntohs(addr.sin_port));
	(void)fflush(stdout);
	return fd;
}

/* The length of the reply to a call of n bytes, 0: none. */
static uint32_t
answer(const struct rpc_program *table, const uint8_t *in, uint32_t n,
       uint8_t out[RPC_REPLY_ERROR_BYTES_MAX])
{
	enum rpc_verdict v;
	struct rpc_call c;
	unsigned index;

	v = rpc_call_decode(&c, in, n, true);
	if (v == RPC_OK)
		v = rpc_program_find(table, 1, &c, &index);
	if (v == RPC_OK)
		rpc_reply_success(out, c.xid);
	else if (v >= RPC_MISMATCH)
		return rpc_reply_error(out, &c, v);
	return v == RPC_OK ? RPC_REPLY_BYTES : 0;
}

/* One connection, one call. */
static void
serve_one(int fd, const struct rpc_program *table)
{
	uint8_t in[1024], out[RPC_MARK_BYTES + RPC_REPLY_ERROR_BYTES_MAX];
	ssize_t n = recv(fd, in, sizeof(in), 0);
	uint32_t bytes;

	if (n < (ssize_t)RPC_MARK_BYTES)
		return;
	bytes = answer(table, in + RPC_MARK_BYTES, (uint32_t)n - RPC_MARK_BYTES,
		       out + RPC_MARK_BYTES);
	record_mark(out, bytes);
	if (bytes > 0 &&
	    send(fd, out, RPC_MARK_BYTES + bytes, MSG_NOSIGNAL) < 0)
		warn("send");
}

static void
serve_datagram(int fd, const struct rpc_program *table)
{
	uint8_t in[1024], out[RPC_REPLY_ERROR_BYTES_MAX];
	struct sockaddr_in peer;
	socklen_t peer_bytes = sizeof(peer);
	ssize_t n = recvfrom(fd, in, sizeof(in), 0, (struct sockaddr *)&peer,
			     &peer_bytes);
	uint32_t bytes = n > 0 ? answer(table, in, (uint32_t)n, out) : 0;

	if (bytes > 0 &&
	    sendto(fd, out, bytes, 0, (struct sockaddr *)&peer, peer_bytes) < 0)
		warn("sendto");
}

static void
serve(uint32_t prog, uint32_t vers, int type)
{
	const struct rpc_program table = { prog, vers, 1 };
	struct pollfd polled[2] = { { .fd = STDIN_FILENO, .events = POLLIN },
				    { .fd = listen_free_port(type),
				      .events = POLLIN } };
	int fd;

	while (poll(polled, 2, -1) > 0 && polled[0].revents == 0) {
		if (type == SOCK_DGRAM) {
			serve_datagram(polled[1].fd, &table);
			continue;
		}
		fd = accept(polled[1].fd, NULL, NULL);
		if (fd < 0)
			err(1, "accept");
		serve_one(fd, &table);
		close(fd);
	}
	close(polled[1].fd);
}

int
main(int argc, char **argv)
{
	struct bind_service services[SERVICES_MAX] = { 0 };
	uint32_t prog, vers;
	unsigned n;
	int error;

	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		err(1, "signal");
	if (argc >= 3 && strcmp(argv[1], "serve") == 0) {
		parse_program(argv[2], &prog, &vers);
		serve(prog, vers,
		      argc > 3 && strcmp(argv[3], "udp") == 0 ? SOCK_DGRAM
							      : SOCK_STREAM);
		return 0;
	}
	if (argc < 4)
		errx(2, "usage: see the head of bind_call.c");
	n = parse_services(services, argc - 2, argv + 2);
	if (strcmp(argv[1], "unregister") == 0) {
		bind_unregister(services, n);
		puts("ok");
		return 0;
	}
	error = bind_register(services, n);
	puts(error == 0 ? "ok" : strerrorname_np(-error));
	return 0;
}
