/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which peers a client of an export matches. The resolver and the netgroups are
 * this file's own: getaddrinfo, getnameinfo and innetgr below take the place of
 * the C library's, over one table of names.
 */
#include "conf/parse.h"

#include <stdarg.h>

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <netdb.h>

/* name -> address (forward), address -> name (reverse): one may lie. */
static const struct {
	const char *name, *addr;
	bool forward, reverse;
} zone[] = {
	{ "a.example.org", "192.0.2.1", true, true },
	{ "a", "192.0.2.1", true, false },
	{ "multi.example.org", "192.0.2.7", true, false },
	{ "multi.example.org", "192.0.2.8", true, false },
	{ "multi.example.org", "2001:db8::8", true, true },
	{ "b.example.org", "2001:db8::1", true, true },
	{ "B6.Sub.Example.ORG", "2001:db8::2", true, true },
	/* claims a name that is not its own */
	{ "a.example.org", "203.0.113.6", false, true },
	{ "orphan.example.org", "203.0.113.7", false, true },
	/* a PTR record that holds the address itself */
	{ "203.0.113.8", "203.0.113.8", true, true },
};

#define ZONE (sizeof(zone) / sizeof(*zone))

static unsigned lookups;

static void
address(struct sockaddr_storage *ss, const char *text)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ss;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ss;

	memset(ss, 0, sizeof(*ss));
	ss->ss_family = strchr(text, ':') ? AF_INET6 : AF_INET;
	if (ss->ss_family == AF_INET)
		assert_int_equal(inet_pton(AF_INET, text, &v4->sin_addr), 1);
	else
		assert_int_equal(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
	v4->sin_port = htons(891);
}

/* The C library's signatures: its parameters have reserved names. */
// NOLINTBEGIN(readability-*)
int
getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
	    struct addrinfo **ret)
{
	struct addrinfo *list = NULL;

	lookups++;
	assert_null(service);
	for (unsigned i = 0; i < ZONE; i++) {
		struct addrinfo *ai;

		if (!zone[i].forward || strcasecmp(zone[i].name, name) != 0)
			continue;
		ai = calloc(1, sizeof(*ai) + sizeof(struct sockaddr_storage));
		assert_non_null(ai);
		ai->ai_addr = (struct sockaddr *)(ai + 1);
		address((struct sockaddr_storage *)(ai + 1), zone[i].addr);
		ai->ai_next = list;
		list = ai;
	}
	*ret = list;
	return list ? 0 : EAI_NONAME;
}

void
freeaddrinfo(struct addrinfo *list)
{
	while (list) {
		struct addrinfo *next = list->ai_next;

		free(list);
		list = next;
	}
}

int
getnameinfo(const struct sockaddr *sa, socklen_t bytes, char *host,
	    socklen_t host_bytes, char *service, socklen_t service_bytes,
	    int flags)
{
	char text[INET6_ADDRSTRLEN];
	const void *addr =
		sa->sa_family == AF_INET
			? (const void *)&((const struct sockaddr_in *)sa)
				  ->sin_addr
			: &((const struct sockaddr_in6 *)sa)->sin6_addr;

	lookups++;
	assert_true(flags & NI_NAMEREQD);
	assert_non_null(inet_ntop(sa->sa_family, addr, text, sizeof(text)));
	for (unsigned i = 0; i < ZONE; i++) {
		if (!zone[i].reverse || strcmp(zone[i].addr, text) != 0)
			continue;
		(void)snprintf(host, host_bytes, "%s", zone[i].name);
		/* Our own domain is example.org. */
		if (flags & NI_NOFQDN && strstr(host, ".example.org"))
			*strstr(host, ".example.org") = '\0';
		return 0;
	}
	return EAI_NONAME;
}

// NOLINTEND(readability-*)

int
innetgr(const char *group, const char *host, const char *user,
	const char *domain)
{
	static const char *const members[][2] = {
		{ "full", "a.example.org" },
		{ "short", "a" },
		{ "number", "203.0.113.9" },
		{ "six", "2001:db8::2" },
		{ "orphans", "orphan.example.org" },
		{ "selves", "203.0.113.8" },
	};

	assert_true(!user && !domain);
	for (unsigned i = 0; i < sizeof(members) / sizeof(*members); i++)
		if (!strcmp(members[i][0], group) &&
		    !strcasecmp(members[i][1], host))
			return 1;
	return 0;
}

#define NAMED 2 /* conf_match_addr asks for a look-up */

/* How a client matches a peer: by conf_match_addr, and on the whole. */
static void
check(const char *client, const char *peer, int by_addr, int whole)
{
	struct conf_client_match m;
	struct sockaddr_storage ss;
	char why[CONF_REASON_BYTES];
	int is;

	assert_int_equal(conf_client_parse(&m, client, why), 0);
	address(&ss, peer);
	lookups = 0;
	is = conf_match_addr(&m, (const struct sockaddr *)&ss);
	assert_int_equal(is, by_addr == NAMED ? -EAGAIN : by_addr);
	assert_int_equal(lookups, 0);
	is = conf_match_names(&m, (const struct sockaddr *)&ss);
	if (is != whole)
		fail_msg("%s for %s: %d", client, peer, is);
	if (by_addr != NAMED)
		assert_int_equal(lookups, 0);
	conf_client_fini(&m);
}

static void
same(const char *client, const char *peer, int is)
{
	check(client, peer, is, is);
}

static void
named(const char *client, const char *peer, int is)
{
	check(client, peer, NAMED, is);
}

static void
test_addresses(void **state)
{
	same("*", "192.0.2.1", 1);
	same("*", "2001:db8::1", 1);
	same("", "2001:db8::1", 1);
	same("192.0.2.1", "192.0.2.1", 1);
	same("192.0.2.1", "192.0.2.2", 0);
	same("192.0.2.1", "::ffff:192.0.2.1", 1);
	same("::ffff:192.0.2.1", "192.0.2.1", 1);
	same("::ffff:192.0.2.1", "::ffff:192.0.2.1", 1);
	same("192.0.2.1", "::192.0.2.1", 0);
	same("2001:db8::1", "2001:db8::1", 1);
	same("2001:db8::1", "2001:db8::2", 0);
	same("2001:db8::1", "192.0.2.1", 0);
	/* 0.0.0.0 is not ::, nor anything of the other family */
	same("::", "0.0.0.0", 0);
	same("0.0.0.0", "::", 0);
}

static void
test_networks(void **state)
{
	same("192.0.2.0/24", "192.0.2.255", 1);
	same("192.0.2.0/24", "192.0.3.0", 0);
	same("192.0.2.0/24", "::ffff:192.0.2.9", 1);
	same("192.0.2.77/24", "192.0.2.1", 1);
	same("192.0.2.0/255.255.254.0", "192.0.3.255", 1);
	same("192.0.2.0/255.255.254.0", "192.0.4.0", 0);
	same("192.0.2.128/25", "192.0.2.127", 0);
	same("192.0.2.128/25", "192.0.2.128", 1);
	same("192.0.2.1/32", "192.0.2.1", 1);
	same("192.0.2.1/32", "192.0.2.0", 0);
	same("0.0.0.0/0", "255.255.255.255", 1);
	same("0.0.0.0/0", "::1", 0);
	same("0.0.0.0/1", "127.255.255.255", 1);
	same("0.0.0.0/1", "128.0.0.0", 0);
	same("::/0", "2001:db8::1", 1);
	same("::/0", "192.0.2.1", 0);
	same("2001:db8::/33", "2001:db8:7fff::1", 1);
	same("2001:db8::/33", "2001:db8:8000::1", 0);
	same("2001:db8::1/128", "2001:db8::1", 1);
	same("2001:db8::1/128", "2001:db8::", 0);
	same("::ffff:10.0.0.0/104", "10.255.0.1", 1);
	same("::ffff:10.0.0.0/104", "11.0.0.1", 0);
}

static void
test_hosts(void **state)
{
	named("a.example.org", "192.0.2.1", 1);
	named("A.Example.Org", "192.0.2.1", 1);
	named("a.example.org", "::ffff:192.0.2.1", 1);
	named("a", "192.0.2.1", 1);
	/* Any of its addresses, whatever their reverse names. */
	named("multi.example.org", "192.0.2.7", 1);
	named("multi.example.org", "192.0.2.8", 1);
	named("multi.example.org", "2001:db8::8", 1);
	named("multi.example.org", "192.0.2.1", 0);
	named("b.example.org", "2001:db8::1", 1);
	named("nowhere.example.org", "192.0.2.1", 0);
	/* A reverse name alone gives nothing. */
	named("a.example.org", "203.0.113.6", 0);
	named("orphan.example.org", "203.0.113.7", 0);
}

static void
test_wildcards(void **state)
{
	named("*.example.org", "192.0.2.1", 1);
	named("?.example.org", "192.0.2.1", 1);
	named("[ab].example.org", "192.0.2.1", 1);
	named("[!ab].example.org", "192.0.2.1", 0);
	named("[c-z].example.org", "192.0.2.1", 0);
	named("*.EXAMPLE.org", "192.0.2.1", 1);
	named("*.example.net", "192.0.2.1", 0);
	named("*.example.org", "::ffff:192.0.2.1", 1);
	/* A * takes in dots, too (exports(5)). */
	named("*.example.org", "2001:db8::2", 1);
	named("*.sub.example.org", "2001:db8::2", 1);
	named("*.example.org", "2001:db8::1", 1);
	/* names that do not resolve back */
	named("*.example.org", "203.0.113.6", 0);
	named("*.example.org", "203.0.113.7", 0);
	named("*[0-9]", "203.0.113.8", 0);
	/* no name at all */
	named("*.example.org", "203.0.113.9", 0);
	named("?*", "203.0.113.9", 0);
}

static void
test_netgroups(void **state)
{
	named("@full", "192.0.2.1", 1);
	named("@full", "::ffff:192.0.2.1", 1);
	named("@full", "203.0.113.6", 0);
	named("@short", "192.0.2.1", 1);
	named("@short", "2001:db8::1", 0);
	named("@number", "203.0.113.9", 1);
	named("@six", "2001:db8::2", 1);
	named("@orphans", "203.0.113.7", 0);
	named("@selves", "203.0.113.8", 1);
	named("@none", "192.0.2.1", 0);
}

/* A peer that is no IP address matches "*" and nothing else. */
static void
test_other_family(void **state)
{
	static const char *const clients[] = { "192.0.2.0/24", "::/0",
					       "0.0.0.0/0",    "a",
					       "*.org",        "@full" };
	struct sockaddr sa = { .sa_family = AF_UNIX };
	struct conf_client_match m;
	char why[CONF_REASON_BYTES];

	for (unsigned i = 0; i < sizeof(clients) / sizeof(*clients); i++) {
		assert_int_equal(conf_client_parse(&m, clients[i], why), 0);
		assert_int_equal(conf_match_names(&m, &sa), 0);
		conf_client_fini(&m);
	}
	assert_int_equal(conf_client_parse(&m, "*", why), 0);
	assert_int_equal(conf_match_names(&m, &sa), 1);
	conf_client_fini(&m);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_networks),
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_wildcards),
		cmocka_unit_test(test_netgroups),
		cmocka_unit_test(test_other_family),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
