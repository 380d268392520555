/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listening sockets: shared with nobody; who holds a port; and what a
 * connection is tuned to.
 */
#include "io/engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct sockaddr_storage
loopback(int family)
{
	struct sockaddr_storage a = { .ss_family = (sa_family_t)family };

	if (family == AF_INET6)
		((struct sockaddr_in6 *)&a)->sin6_addr = in6addr_loopback;
	else
		((struct sockaddr_in *)&a)->sin_addr.s_addr =
			htonl(INADDR_LOOPBACK);
	return a;
}

static unsigned
port_of(const struct sockaddr_storage *a)
{
	if (a->ss_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)a)->sin6_port);
	return ntohs(((const struct sockaddr_in *)a)->sin_port);
}

static socklen_t
bytes_of(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					: sizeof(struct sockaddr_in);
}

static int
connect_to(const struct sockaddr_storage *a)
{
	int fd = socket(a->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)a, bytes_of(a)),
			 0);
	return fd;
}

/* Nobody joins, not even who would be let to by SO_REUSEPORT. */
static void
shares_no_port(void **state)
{
	static const int families[] = { AF_INET, AF_INET6 };
	int fd, other, one = 1;

	for (unsigned f = 0; f < 2; f++) {
		struct sockaddr_storage addr = loopback(families[f]);

		assert_int_equal(net_listen(&addr, &fd), 0);
		assert_true(port_of(&addr) > 0);
		assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
		other = socket(families[f], SOCK_STREAM, 0);
		setsockopt(other, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		setsockopt(other, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
		assert_int_equal(
			bind(other, (struct sockaddr *)&addr, bytes_of(&addr)),
			-1);
		assert_int_equal(errno, EADDRINUSE);
		close(other);
		close(fd);
	}
}

/* A stranger may be as willing to share as he likes. */
static void
in_use(void **state)
{
	struct sockaddr_storage addr = loopback(AF_INET), before;
	int stranger, one = 1, fd = -1;
	socklen_t bytes = sizeof(addr);

	for (int shares = 0; shares < 2; shares++) {
		stranger = socket(AF_INET, SOCK_STREAM, 0);
		setsockopt(stranger, SOL_SOCKET, SO_REUSEADDR, &one,
			   sizeof(one));
		if (shares)
			setsockopt(stranger, SOL_SOCKET, SO_REUSEPORT, &one,
				   sizeof(one));
		addr = loopback(AF_INET);
		assert_int_equal(bind(stranger, (struct sockaddr *)&addr,
				      bytes_of(&addr)),
				 0);
		assert_int_equal(listen(stranger, 1), 0);
		bytes = sizeof(addr);
		assert_int_equal(
			getsockname(stranger, (struct sockaddr *)&addr, &bytes),
			0);
		before = addr;
		assert_int_equal(net_listen(&addr, &fd), -EADDRINUSE);
		assert_int_equal(fd, -1);
		assert_memory_equal(&addr, &before, sizeof(addr));
		close(stranger);
	}
}

/* Connections of the last run that linger do not keep a server from its
 * port. */
static void
start_again(void **state)
{
	struct sockaddr_storage addr = loopback(AF_INET);
	int fd, c, s;

	assert_int_equal(net_listen(&addr, &fd), 0);
	c = connect_to(&addr);
	s = accept(fd, NULL, NULL);
	assert_true(s >= 0);
	close(fd);
	close(s); /* first: TIME_WAIT is this side's */
	close(c);
	assert_int_equal(net_listen(&addr, &fd), 0);
	close(fd);
}

/* The two families of one port are two sockets. */
static void
both_families(void **state)
{
	struct sockaddr_storage v4 = { .ss_family = AF_INET }, v6 = v4;
	int a, b;

	v6.ss_family = AF_INET6;
	assert_int_equal(net_listen(&v4, &a), 0);
	((struct sockaddr_in6 *)&v6)->sin6_port =
		((struct sockaddr_in *)&v4)->sin_port;
	assert_int_equal(net_listen(&v6, &b), 0);
	close(a);
	close(b);
	v4.ss_family = AF_UNIX;
	assert_int_equal(net_listen(&v4, &a), -EAFNOSUPPORT);
}

static void
holder(void **state)
{
	static const int families[] = { AF_INET, AF_INET6 };
	char text[64], want[64];
	int fd;

	(void)snprintf(want, sizeof(want), "%d test_net", (int)getpid());
	for (unsigned f = 0; f < 2; f++) {
		struct sockaddr_storage addr = loopback(families[f]);

		assert_int_equal(net_listen(&addr, &fd), 0);
		net_port_holder(&addr, text, sizeof(text));
		assert_string_equal(text, want);
		close(fd);
		net_port_holder(&addr, text, sizeof(text));
		assert_string_equal(text, "an unknown process");
		net_port_holder(&addr, text, 4);
		assert_string_equal(text, "an ");
	}
}

static void
tune(void **state)
{
	struct sockaddr_storage addr = loopback(AF_INET);
	socklen_t bytes = sizeof(int);
	int fd, c, value = 0;

	assert_int_equal(net_listen(&addr, &fd), 0);
	c = connect_to(&addr);
	assert_int_equal(net_tune(c), 0);
	assert_int_equal(
		getsockopt(c, IPPROTO_TCP, TCP_NODELAY, &value, &bytes), 0);
	assert_int_equal(value, 1);
	assert_int_equal(
		getsockopt(c, SOL_SOCKET, SO_KEEPALIVE, &value, &bytes), 0);
	assert_int_equal(value, 1);
	close(c);
	assert_int_equal(net_tune(c), -EBADF);
	close(fd);
}

/* The end of a new connection that was accepted from the given address. */
static int
accept_from(int listener, const struct sockaddr_storage *to, const char *from,
	    int *ret_client)
{
	struct sockaddr_in own = { .sin_family = AF_INET };
	int c = socket(to->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;

	assert_true(c >= 0);
	if (to->ss_family == AF_INET) {
		assert_int_equal(inet_pton(AF_INET, from, &own.sin_addr), 1);
		assert_int_equal(bind(c, (struct sockaddr *)&own, sizeof(own)),
				 0);
	}
	assert_int_equal(connect(c, (const struct sockaddr *)to, bytes_of(to)),
			 0);
	fd = accept(listener, NULL, NULL);
	assert_true(fd >= 0);
	*ret_client = c;
	return fd;
}

static void
assert_reserved(int fd)
{
	int rc = net_reserve(fd), value = 0;
	socklen_t bytes = sizeof(value);

	assert_int_equal(
		getsockopt(fd, SOL_SOCKET, SO_RESERVE_MEM, &value, &bytes), 0);
	if (rc == 0)
		assert_true(value >= 4 << 20);
	else /* in no control group that accounts for sockets */
		assert_true(rc == -EOPNOTSUPP && value == 0);
}

static void
reserve_for_this_machine(void **state)
{
	struct sockaddr_storage v4 = loopback(AF_INET), v6 = loopback(AF_INET6);
	int l4, l6, fd, c;

	assert_int_equal(net_listen(&v4, &l4), 0);
	assert_int_equal(net_listen(&v6, &l6), 0);
	fd = accept_from(l4, &v4, "127.0.0.1", &c);
	assert_reserved(fd);
	close(fd);
	close(c);
	fd = accept_from(l6, &v6, NULL, &c);
	assert_reserved(fd);
	close(fd);
	close(c);
	fd = accept_from(l4, &v4, "127.0.0.2", &c);
	assert_int_equal(net_reserve(fd), -EREMOTE);
	close(fd);
	close(c);
	assert_int_equal(net_reserve(l4), -ENOTCONN);
	close(l4);
	close(l6);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_no_port),
		cmocka_unit_test(in_use),
		cmocka_unit_test(start_again),
		cmocka_unit_test(both_families),
		cmocka_unit_test(holder),
		cmocka_unit_test(tune),
		cmocka_unit_test(reserve_for_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
