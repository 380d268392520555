/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In the state directory: nsm.state holds the state number; nsm.hosts has a
 * file for each host with locks, nsm.untold one for each that had some when an
 * earlier run ended and has not been told since. A file is named by the host's
 * address and holds the address of ours that it used.
 *
 * Whatever happens at any moment, a host whose file was there is in one of the
 * two directories: a file comes into being by rename(2) when its bytes are on
 * the disk, and goes from one to the other by rename(2). The directory is
 * synced before anybody relies on what is in it.
 */
#include "nfsd/nsm_list.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STATE_FILE "nsm.state"
#define STATE_NEW  "nsm.state.new"
#define HOSTS_DIR  "nsm.hosts"
#define UNTOLD_DIR "nsm.untold"
#define NEW_SUFFIX ".new" /* no address ends so */

struct nsm_list {
	int state_fd, hosts_fd, untold_fd;
	int32_t state;
};

/* Names ------------------------------------------------------------------- */

bool
nsm_name(char name[NSM_NAME_BYTES], const struct sockaddr *addr)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)addr;
	struct sockaddr_in v4 = { .sin_family = AF_INET };

	if (addr->sa_family == AF_INET6 &&
	    IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
		memcpy(&v4.sin_addr, v6->sin6_addr.s6_addr + 12,
		       sizeof(v4.sin_addr));
		addr = (const struct sockaddr *)&v4;
	}
	if (addr->sa_family != AF_INET && addr->sa_family != AF_INET6)
		return false;
	return getnameinfo(addr,
			   addr->sa_family == AF_INET6 ? sizeof(*v6)
						       : sizeof(v4),
			   name, NSM_NAME_BYTES, NULL, 0, NI_NUMERICHOST) == 0;
}

bool
nsm_address(const char *name, struct sockaddr_storage *ret)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST,
				  .ai_socktype = SOCK_STREAM };
	struct addrinfo *a;

	memset(ret, 0, sizeof(*ret));
	if (getaddrinfo(name, NULL, &hints, &a) != 0)
		return false;
	memcpy(ret, a->ai_addr, a->ai_addrlen);
	freeaddrinfo(a);
	return true;
}

/* "127.1" is an address, but not how we write one. */
static bool
is_name(const char *text)
{
	struct sockaddr_storage addr;
	char name[NSM_NAME_BYTES];

	return nsm_address(text, &addr) &&
	       nsm_name(name, (const struct sockaddr *)&addr) &&
	       strcmp(name, text) == 0;
}

/* Files ------------------------------------------------------------------- */

/* A file with this text and a line's end, durable but for its name. */
static int
file_write(int dir_fd, const char *name, const char *text)
{
	int fd = openat(dir_fd, name,
			O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
			0600);
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (dprintf(fd, "%s\n", text) < 0 || fsync(fd) < 0)
		rc = -errno;
	if (close(fd) < 0 && rc == 0)
		rc = -errno;
	return rc;
}

/* Its one line into text, of n bytes; false where it is none, or longer. */
static bool
file_read(int dir_fd, const char *name, char *text, size_t n)
{
	int fd = openat(dir_fd, name,
			O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t got;
	char *end;

	if (fd < 0)
		return false;
	got = read(fd, text, n);
	close(fd);
	if (got <= 0)
		return false;
	end = memchr(text, '\n', (size_t)got);
	if (end == NULL)
		return false;
	*end = '\0';
	return true;
}

static int
file_replace(int dir_fd, const char *new_name, const char *name,
	     const char *text)
{
	int rc = file_write(dir_fd, new_name, text);

	if (rc == 0 && renameat(dir_fd, new_name, dir_fd, name) < 0)
		rc = -errno;
	if (rc == 0 && fsync(dir_fd) < 0)
		rc = -errno;
	if (rc < 0)
		(void)unlinkat(dir_fd, new_name, 0);
	return rc;
}

static int
dir_open(int state_fd, const char *name)
{
	int fd;

	if (mkdirat(state_fd, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(state_fd, name,
		    O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

/* Calls each with every file whose name is a host's, until one fails. */
typedef int walk_fn(void *arg, const char *name);

static int
dir_walk(int dir_fd, walk_fn *each, void *arg)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int rc = 0;

	if (d == NULL) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	while (rc == 0 && (e = readdir(d)) != NULL)
		if (is_name(e->d_name))
			rc = each(arg, e->d_name);
	closedir(d);
	return rc;
}

/* Opening ----------------------------------------------------------------- */

/* Where the last number is not known, the time is greater than it: numbers grow
 * by two a start, and there is no start each second. */
static int32_t
next_state(const char *last)
{
	char *end;
	long n = strtol(last, &end, 10);

	if (end == last || *end != '\0' || n < 0 || n > INT32_MAX)
		n = (long)(time(NULL) % INT32_MAX);
	n = (n + 1) | 1;
	return n > INT32_MAX ? 1 : (int32_t)n;
}

static int
take_state(struct nsm_list *l)
{
	char text[16] = "";

	if (!file_read(l->state_fd, STATE_FILE, text, sizeof(text)))
		text[0] = '\0';
	l->state = next_state(text);
	(void)snprintf(text, sizeof(text), "%d", l->state);
	return file_replace(l->state_fd, STATE_NEW, STATE_FILE, text);
}

static int
move_one(void *arg, const char *name)
{
	const struct nsm_list *l = arg;

	return renameat(l->hosts_fd, name, l->untold_fd, name) < 0 ? -errno : 0;
}

/* First the disk knows where they are, then that they are not where they were
 * (one sync of a directory may do for both, but need not). */
static int
move_all(struct nsm_list *l)
{
	int rc = dir_walk(l->hosts_fd, move_one, l);

	if (rc == 0 && fsync(l->untold_fd) < 0)
		rc = -errno;
	if (rc == 0 && fsync(l->hosts_fd) < 0)
		rc = -errno;
	return rc;
}

int
nsm_list_open(struct nsm_list **ret, int state_fd)
{
	struct nsm_list *l = calloc(1, sizeof(*l));
	int rc;

	if (l == NULL)
		return -ENOMEM;
	l->state_fd = state_fd;
	l->untold_fd = -1;
	rc = l->hosts_fd = dir_open(state_fd, HOSTS_DIR);
	if (rc >= 0)
		rc = l->untold_fd = dir_open(state_fd, UNTOLD_DIR);
	if (rc >= 0)
		rc = take_state(l); /* syncs the directory of the two */
	if (rc == 0)
		rc = move_all(l);
	if (rc < 0) {
		nsm_list_close(l);
		return rc;
	}
	*ret = l;
	return 0;
}

void
nsm_list_close(struct nsm_list *l)
{
	if (l == NULL)
		return;
	if (l->hosts_fd >= 0)
		close(l->hosts_fd);
	if (l->untold_fd >= 0)
		close(l->untold_fd);
	free(l);
}

int32_t
nsm_list_state(const struct nsm_list *l)
{
	return l->state;
}

/* Hosts -------------------------------------------------------------------- */

int
nsm_list_add(struct nsm_list *l, const char *host, const struct sockaddr *local)
{
	char text[NSM_NAME_BYTES] = "", new_name[NSM_NAME_BYTES + 8];

	if (local->sa_family != AF_UNSPEC && !nsm_name(text, local))
		text[0] = '\0';
	(void)snprintf(new_name, sizeof(new_name), "%s" NEW_SUFFIX, host);
	return file_replace(l->hosts_fd, new_name, host, text);
}

void
nsm_list_remove(struct nsm_list *l, const char *host)
{
	(void)unlinkat(l->hosts_fd, host, 0);
}

bool
nsm_list_has(const struct nsm_list *l, const char *host)
{
	return faccessat(l->hosts_fd, host, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

struct untold {
	const struct nsm_list *list;
	nsm_list_fn *each;
	void *arg;
};

static int
untold_one(void *arg, const char *name)
{
	const struct untold *u = arg;
	struct sockaddr_storage local = { .ss_family = AF_UNSPEC };
	char text[NSM_NAME_BYTES];

	/* Not as we write it: then from any address of ours. */
	if (file_read(u->list->untold_fd, name, text, sizeof(text)))
		(void)nsm_address(text, &local);
	u->each(u->arg, name, &local);
	return 0;
}

int
nsm_list_untold(const struct nsm_list *l, nsm_list_fn *each, void *arg)
{
	struct untold u = { l, each, arg };

	return dir_walk(l->untold_fd, untold_one, &u);
}

void
nsm_list_told(struct nsm_list *l, const char *host)
{
	(void)unlinkat(l->untold_fd, host, 0);
}
