/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does a client of an export table match a peer's address? No state. Addresses
 * are compared at once, on any thread; names go through the resolver and the
 * netgroup database and block. It keeps no answers: its caller does.
 *
 * A name that an address resolves to is what the owner of that address claims;
 * it counts only when the name resolves back to the address.
 */
#include "conf/parse.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fnmatch.h>
#include <netdb.h>
#include <pthread.h>
#include <string.h>

struct peer {
	int family; /* AF_INET, AF_INET6, or what else it is */
	uint8_t addr[16];
};

/* IPv4-mapped IPv6 is what a dual-stack socket shows of an IPv4 peer. */
static void
peer_init(struct peer *p, const struct sockaddr *sa)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	memset(p, 0, sizeof(*p));
	p->family = sa->sa_family;
	if (p->family == AF_INET) {
		memcpy(&v4, sa, sizeof(v4));
		memcpy(p->addr, &v4.sin_addr, sizeof(v4.sin_addr));
	}
	if (p->family != AF_INET6)
		return;
	memcpy(&v6, sa, sizeof(v6));
	if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
		p->family = AF_INET;
		memcpy(p->addr, &v6.sin6_addr.s6_addr[12], 4);
	} else {
		memcpy(p->addr, &v6.sin6_addr, sizeof(v6.sin6_addr));
	}
}

static int
peer_matches(const struct peer *p, const struct conf_client_match *m)
{
	if (m->kind == CONF_CLIENT_ANY)
		return 1;
	if (!m->family)
		return -EAGAIN;
	return p->family == m->family &&
	       conf_client_prefix_equal(p->addr, m->addr, m->prefix);
}

int
conf_match_addr(const struct conf_client_match *m, const struct sockaddr *addr)
{
	struct peer p;

	peer_init(&p, addr);
	return peer_matches(&p, m);
}

/* Is p among the addresses of name? */
static bool
peer_has_name(const struct peer *p, const char *name)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC,
				  .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	struct peer other;
	bool found = false;

	if (getaddrinfo(name, NULL, &hints, &list) != 0)
		return false;
	for (struct addrinfo *ai = list; ai && !found; ai = ai->ai_next) {
		peer_init(&other, ai->ai_addr);
		found = other.family == p->family &&
			!memcmp(other.addr, p->addr, sizeof(p->addr));
	}
	freeaddrinfo(list);
	return found;
}

/* The peer's name, confirmed. false: it has none. flags: NI_NOFQDN. */
static bool
peer_name(const struct peer *p, int flags, char name[NI_MAXHOST])
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	const struct sockaddr *sa = (const struct sockaddr *)&v4;
	socklen_t bytes = sizeof(v4);
	struct in_addr number;
	struct in6_addr number6;

	memcpy(&v4.sin_addr, p->addr, sizeof(v4.sin_addr));
	memcpy(&v6.sin6_addr, p->addr, sizeof(v6.sin6_addr));
	if (p->family == AF_INET6) {
		sa = (const struct sockaddr *)&v6;
		bytes = sizeof(v6);
	}
	if (getnameinfo(sa, bytes, name, NI_MAXHOST, NULL, 0,
			NI_NAMEREQD | flags) != 0)
		return false;
	/* A PTR record may hold "10.0.0.1", which would confirm itself. */
	if (inet_pton(AF_INET, name, &number) == 1 ||
	    inet_pton(AF_INET6, name, &number6) == 1)
		return false;
	return peer_has_name(p, name);
}

static bool
in_netgroup(const char *group, const char *host)
{
	/* innetgr(3): not safe to call from several threads. */
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	bool is;

	pthread_mutex_lock(&lock);
	is = innetgr(group, host, NULL, NULL) == 1;
	pthread_mutex_unlock(&lock);
	return is;
}

/* A netgroup may list addresses, full names, or names of our own domain. */
static bool
peer_in_netgroup(const struct peer *p, const char *group)
{
	char name[NI_MAXHOST];

	if (inet_ntop(p->family, p->addr, name, sizeof(name)) &&
	    in_netgroup(group, name))
		return true;
	if (!peer_name(p, 0, name))
		return false;
	if (in_netgroup(group, name))
		return true;
	return peer_name(p, NI_NOFQDN, name) && in_netgroup(group, name);
}

int
conf_match_names(const struct conf_client_match *m, const struct sockaddr *addr)
{
	char name[NI_MAXHOST];
	struct peer p;
	int is;

	peer_init(&p, addr);
	is = peer_matches(&p, m);
	if (is != -EAGAIN)
		return is;
	if (p.family != AF_INET && p.family != AF_INET6)
		return 0;
	switch (m->kind) {
	case CONF_CLIENT_HOST:
		return peer_has_name(&p, m->text);
	case CONF_CLIENT_WILDCARD:
		return peer_name(&p, 0, name) &&
		       fnmatch(m->text, name, FNM_CASEFOLD | FNM_NOESCAPE) == 0;
	case CONF_CLIENT_NETGROUP:
		return peer_in_netgroup(&p, m->text + 1);
	case CONF_CLIENT_ANY:
	case CONF_CLIENT_NETWORK:
		break;
	}
	return 0;
}
