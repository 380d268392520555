/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What udp.sh asks with: a NULL call by libtirpc's client for datagrams, over a
 * socket that is connected, so that it takes no reply from another address than
 * it asked:
 *
 *	udp_call ADDRESS PORT PROGRAM VERSION
 *	udp_call hold PORT
 *
 * Prints "ok", or what libtirpc says. hold has that port of IPv4 to itself
 *until its standard input ends.
 */
#include <rpc/types.h>

#include <rpc/auth.h>
#include <rpc/clnt.h>

#include <err.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define SECONDS 30 /* ends the wait, and not a test's verdict */

static bool_t
xdr_nothing(XDR *xdrs, ...)
{
	(void)xdrs;
	return TRUE;
}

static int
connect_to(const char *address, const char *port, struct sockaddr_storage *peer,
	   socklen_t *bytes)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
				  .ai_socktype = SOCK_DGRAM };
	struct addrinfo *a;
	int fd;

	if (getaddrinfo(address, port, &hints, &a) != 0)
		errx(2, "%s: no address", address);
	fd = socket(a->ai_family, a->ai_socktype, 0);
	if (fd < 0 || connect(fd, a->ai_addr, a->ai_addrlen) < 0)
		err(1, "%s", address);
	memcpy(peer, a->ai_addr, a->ai_addrlen);
	*bytes = a->ai_addrlen;
	freeaddrinfo(a);
	return fd;
}

static void
hold(const char *port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	char byte;

	addr.sin_port = htons((uint16_t)strtoul(port, NULL, 10));
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		err(1, "%s", port);
	puts("held");
	(void)fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	close(fd);
}

static int
call(char **argv)
{
	struct timeval retry = { .tv_sec = 1 }, limit = { .tv_sec = SECONDS };
	struct sockaddr_storage peer;
	struct netbuf to = { .buf = &peer };
	enum clnt_stat stat;
	socklen_t bytes = 0;
	CLIENT *client;
	int fd;

	fd = connect_to(argv[0], argv[1], &peer, &bytes);
	to.len = to.maxlen = bytes;
	client = clnt_dg_create(fd, &to, strtoul(argv[2], NULL, 10),
				strtoul(argv[3], NULL, 10), 0, 0);
	if (client == NULL)
		errx(1, "clnt_dg_create");
	clnt_control(client, CLSET_FD_CLOSE, NULL);
	clnt_control(client, CLSET_RETRY_TIMEOUT, (char *)&retry);
	stat = clnt_call(client, NULLPROC, xdr_nothing, NULL, xdr_nothing, NULL,
			 limit);
	if (stat == RPC_SUCCESS)
		puts("ok");
	else
		clnt_perrno(stat);
	auth_destroy(client->cl_auth);
	clnt_destroy(client);
	return stat == RPC_SUCCESS ? 0 : 1;
}

int
main(int argc, char **argv)
{
	if (argc == 5)
		return call(argv + 1);
	if (argc != 3 || strcmp(argv[1], "hold") != 0)
		errx(2, "usage: see the head of udp_call.c");
	hold(argv[2]);
	return 0;
}
