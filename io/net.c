/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets: how they are made and tuned, and who holds a port that is taken.
 * Blocking calls of the main thread; sends and receives are operations of a
 * reactor (op.c). socket(7), tcp(7), ip(7), proc(5). SO_RESERVE_MEM has no
 * manual page yet; Linux 5.16 brought it.
 */
#include "io/engine.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NET_BACKLOG 1024 /* cut to net.core.somaxconn by the kernel */

/* Above what a socket takes in before its window closes (tcp_rmem[2] is 6 MiB).
 * With 4 MiB a full control group still stopped it: the kernel, refused memory
 * for what came, threw it away, and TCP sent it again ever more slowly. */
#define NET_RESERVE_BYTES (8 << 20)

/* A client whose host is gone is noticed after two minutes. */
#define NET_IDLE_S          60
#define NET_PROBE_S         10
#define NET_PROBES          6
#define NET_USER_TIMEOUT_MS 120000

static int
option_set(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) < 0 ? -errno
								      : 0;
}

static socklen_t
addr_bytes(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in);
}

/* Without SO_REUSEPORT: a stranger on that port is an error even where he would
 * share it, and nobody joins later to take half of the connections. */
static int
listen_on(int fd, struct sockaddr_storage *addr)
{
	socklen_t bytes = addr_bytes(addr);
	int err;

	err = option_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (!err && addr->ss_family == AF_INET6)
		err = option_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (!err && bind(fd, (struct sockaddr *)addr, bytes) < 0)
		err = -errno;
	if (!err && listen(fd, NET_BACKLOG) < 0)
		err = -errno;
	if (!err && getsockname(fd, (struct sockaddr *)addr, &bytes) < 0)
		err = -errno;
	return err;
}

int
net_listen(struct sockaddr_storage *addr, int *ret_fd)
{
	struct sockaddr_storage bound = *addr;
	int fd, err;

	if (addr->ss_family != AF_INET && addr->ss_family != AF_INET6)
		return -EAFNOSUPPORT;
	fd = socket(addr->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	err = listen_on(fd, &bound);
	if (err) {
		close(fd);
		return err;
	}
	*addr = bound;
	*ret_fd = fd;
	return 0;
}

/* The buffers' sizes are left to the kernel, which fits them to the path. */
int
net_tune(int fd)
{
	int err;

	err = option_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (!err)
		err = option_set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	if (!err)
		err = option_set(fd, IPPROTO_TCP, TCP_KEEPIDLE, NET_IDLE_S);
	if (!err)
		err = option_set(fd, IPPROTO_TCP, TCP_KEEPINTVL, NET_PROBE_S);
	if (!err)
		err = option_set(fd, IPPROTO_TCP, TCP_KEEPCNT, NET_PROBES);
	if (!err)
		err = option_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT,
				 NET_USER_TIMEOUT_MS);
	return err;
}

static bool
same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET6)
		return memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
			      &((const struct sockaddr_in6 *)b)->sin6_addr,
			      sizeof(struct in6_addr)) == 0;
	return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
	       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
}

int
net_reserve(int fd)
{
	struct sockaddr_storage own = { 0 }, peer = { 0 };
	socklen_t n = sizeof(own), m = sizeof(peer);

	if (getsockname(fd, (struct sockaddr *)&own, &n) < 0 ||
	    getpeername(fd, (struct sockaddr *)&peer, &m) < 0)
		return -errno;
	assert(own.ss_family == AF_INET || own.ss_family == AF_INET6);
	if (!same_host(&own, &peer))
		return -EREMOTE;
	return option_set(fd, SOL_SOCKET, SO_RESERVE_MEM, NET_RESERVE_BYTES);
}

void
net_abort(int fd)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

/* The inode of a socket that listens on port, by one table of /proc; 0: none.
 * Columns: sl local_address rem_address st ... inode, numbers in hex. */
static unsigned long
listener_inode(const char *table, unsigned port)
{
	FILE *f = fopen(table, "re");
	unsigned long inode = 0;
	char line[512];

	if (!f)
		return 0;
	while (!inode && fgets(line, sizeof(line), f)) {
		unsigned local = 0, state = 0;
		unsigned long found = 0;
		int n;

		/* NOLINTNEXTLINE(cert-err34-c): the kernel's own table */
		n = sscanf(line,
			   "%*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x "
			   "%*x:%*x %*x:%*x %*x %*u %*d %lu",
			   &local, &state, &found);
		if (n == 3 && local == port && state == TCP_LISTEN)
			inode = found;
	}
	(void)fclose(f);
	return inode;
}

static bool
process_name(const char *pid, char *name, size_t bytes)
{
	char path[64];
	FILE *f;
	bool ok;

	(void)snprintf(path, sizeof(path), "/proc/%.16s/comm", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fgets(name, (int)bytes, f) != NULL;
	if (ok)
		name[strcspn(name, "\n")] = '\0';
	(void)fclose(f);
	return ok;
}

static bool
process_has_socket(const char *pid, const char *link)
{
	char path[64], target[64];
	struct dirent *d;
	bool found = false;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%.16s/fd", pid);
	dir = opendir(path);
	if (!dir)
		return false;
	while (!found && (d = readdir(dir)) != NULL) {
		ssize_t n = readlinkat(dirfd(dir), d->d_name, target,
				       sizeof(target) - 1);

		if (n <= 0)
			continue;
		target[n] = '\0';
		found = strcmp(target, link) == 0;
	}
	closedir(dir);
	return found;
}

/* Calls is_it for each process until it says yes; then text names it. */
static bool
process_find(bool (*is_it)(const char *pid, const char *what), const char *what,
	     char *text, size_t text_bytes)
{
	char name[64];
	struct dirent *d;
	bool found = false;
	DIR *dir = opendir("/proc");

	if (!dir)
		return false;
	while (!found && (d = readdir(dir)) != NULL) {
		if (!isdigit((unsigned char)d->d_name[0]) ||
		    !is_it(d->d_name, what))
			continue;
		if (!process_name(d->d_name, name, sizeof(name)))
			(void)snprintf(name, sizeof(name), "?");
		(void)snprintf(text, text_bytes, "%.16s %s", d->d_name, name);
		found = true;
	}
	closedir(dir);
	return found;
}

/* A kernel thread has a name and no program. */
static bool
process_is_kernel_thread(const char *pid, const char *name)
{
	char path[64], target[8], comm[64];

	if (!process_name(pid, comm, sizeof(comm)) || strcmp(comm, name) != 0)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%.16s/exe", pid);
	return readlink(path, target, sizeof(target)) < 0 && errno == ENOENT;
}

void
net_port_holder(const struct sockaddr_storage *addr, char *text,
		size_t text_bytes)
{
	bool v6 = addr->ss_family == AF_INET6;
	unsigned port =
		ntohs(v6 ? ((const struct sockaddr_in6 *)addr)->sin6_port
			 : ((const struct sockaddr_in *)addr)->sin_port);
	unsigned long inode = listener_inode("/proc/net/tcp", port);
	char link[64];

	if (!inode)
		inode = listener_inode("/proc/net/tcp6", port);
	(void)snprintf(link, sizeof(link), "socket:[%lu]", inode);
	if (inode && process_find(process_has_socket, link, text, text_bytes))
		return;
	/* A socket of nobody's is the kernel's. */
	if (inode &&
	    process_find(process_is_kernel_thread, "nfsd", text, text_bytes))
		(void)snprintf(text, text_bytes, "the kernel's NFS server");
	else
		(void)snprintf(text, text_bytes, "an unknown process");
}
