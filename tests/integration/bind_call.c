/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What bind.sh runs to register, to withdraw, and to be a server that somebody
 * else has registered:
 *
 *	bind_call register|unregister PORT PORT6 [PROGRAM.VERSION]...
 *	bind_call serve PROGRAM.VERSION
 *
 * Without programs: nfs 3, mount 3 and mount 1, as nvnfsd does. A port of 0
 * means not on that protocol. Prints the result as an error's name, or "ok".
 * serve takes a free port of 127.0.0.1, prints it, answers every call of its
 * program with success, and ends with its standard input.
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
						"100011.2" };
	const char *const *programs =
		argc > 2 ? (const char *const *)argv + 2 : defaults;
	unsigned n = argc > 2 ? (unsigned)argc - 2
			      : sizeof(defaults) / sizeof(*defaults);
	unsigned i;

	if (argc < 2 || n > SERVICES_MAX)
		errx(2, "usage: see the head of bind_call.c");
	for (i = 0; i < n; i++) {
		parse_program(programs[i], &s[i].prog, &s[i].vers);
		s[i].port_v4 = (uint16_t)number(argv[0], '\0', NULL);
		s[i].port_v6 = (uint16_t)number(argv[1], '\0', NULL);
		strcpy(s[i].addr_v4, "0.0.0.0");
		strcpy(s[i].addr_v6, "::");
	}
	return n;
}

static int
listen_free_port(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t n = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, n) != 0 ||
	    listen(fd, 8) != 0 ||
	    getsockname(fd, (struct sockaddr *)&addr, &n) != 0)
		err(1, "listen");
	printf("%u\n", ntohs(addr.sin_port));
	(void)fflush(stdout);
	return fd;
}

/* One connection, one call. */
static void
serve_one(int fd, uint32_t prog, uint32_t vers)
{
	const struct rpc_program table = { prog, vers, 1 };
	uint8_t in[1024], out[RPC_MARK_BYTES + RPC_REPLY_ERROR_BYTES_MAX];
	ssize_t n = recv(fd, in, sizeof(in), 0);
	enum rpc_verdict v;
	struct rpc_call c;
	unsigned index;
	uint32_t bytes = RPC_REPLY_BYTES;

	if (n < (ssize_t)RPC_MARK_BYTES)
		return;
	v = rpc_call_decode(&c, in + RPC_MARK_BYTES,
			    (uint32_t)n - RPC_MARK_BYTES, true);
	if (v == RPC_OK)
		v = rpc_program_find(&table, 1, &c, &index);
	if (v == RPC_OK)
		rpc_reply_success(out + RPC_MARK_BYTES, c.xid);
	else if (v >= RPC_MISMATCH)
		bytes = rpc_reply_error(out + RPC_MARK_BYTES, &c, v);
	else
		return;
	record_mark(out, bytes);
	if (send(fd, out, RPC_MARK_BYTES + bytes, MSG_NOSIGNAL) < 0)
		warn("send");
}

static void
serve(uint32_t prog, uint32_t vers)
{
	struct pollfd polled[2] = { { .fd = STDIN_FILENO, .events = POLLIN },
				    { .fd = listen_free_port(),
				      .events = POLLIN } };

	while (poll(polled, 2, -1) > 0 && polled[0].revents == 0) {
		int fd = accept(polled[1].fd, NULL, NULL);

		if (fd < 0)
			err(1, "accept");
		serve_one(fd, prog, vers);
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
	if (argc == 3 && strcmp(argv[1], "serve") == 0) {
		parse_program(argv[2], &prog, &vers);
		serve(prog, vers);
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
