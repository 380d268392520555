/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may a client do with an export? The first of the export's clients that
 * matches its address says. Addresses and networks are compared at once; names,
 * wildcards and netgroups need the resolver, which blocks, so its answers are
 * kept for a minute, also the answer no.
 *
 * The answers belong to their table and end with it. They and the list of
 * clients refused by `secure` (each is logged once) are tables of fixed size
 * under one lock, which is a leaf. Any thread.
 *
 * exports(5), "Machine Name Formats", `secure`.
 */
#include "nfsd/cred.h"
#include "nfsd/export.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SETS        512u
#define WAYS        4u
#define KEPT_NS     (60ull * 1000000000)
#define REFUSED_MAX 256u

/* An IPv4 address stands mapped; no padding, so that it can be hashed. */
struct address {
	uint8_t byte[16];
};

struct question {
	const struct conf_client_match *match;
	struct address client;
};

struct answer {
	struct question question;
	uint64_t until_ns; /* 0: unused */
	bool yes;
};

struct refused {
	const struct export *export;
	struct address client;
};

struct export_answers {
	pthread_mutex_t lock;
	struct answer answer[SETS][WAYS];
	unsigned refused_count;
	struct refused refused[REFUSED_MAX];
};

struct export_answers *
export_answers_new(void)
{
	struct export_answers *a = calloc(1, sizeof(*a));

	if (a)
		pthread_mutex_init(&a->lock, NULL);
	return a;
}

void
export_answers_free(struct export_answers *a)
{
	if (!a)
		return;
	pthread_mutex_destroy(&a->lock);
	free(a);
}

/* false: it is no Internet address. */
static bool
address_of(const struct sockaddr *client, struct address *out)
{
	const struct sockaddr_in *v4 = (const void *)client;
	const struct sockaddr_in6 *v6 = (const void *)client;

	if (client->sa_family == AF_INET6) {
		memcpy(out->byte, &v6->sin6_addr, sizeof(out->byte));
		return true;
	}
	if (client->sa_family != AF_INET)
		return false;
	memset(out->byte, 0, 10);
	memset(out->byte + 10, 0xff, 2);
	memcpy(out->byte + 12, &v4->sin_addr, 4);
	return true;
}

static unsigned
port_of(const struct sockaddr *client)
{
	const struct sockaddr_in *v4 = (const void *)client;
	const struct sockaddr_in6 *v6 = (const void *)client;

	return ntohs(client->sa_family == AF_INET ? v4->sin_port
						  : v6->sin6_port);
}

static void
address_text(const struct address *a, char text[INET6_ADDRSTRLEN])
{
	struct in6_addr v6;

	memcpy(&v6, a->byte, sizeof(v6));
	if (IN6_IS_ADDR_V4MAPPED(&v6))
		inet_ntop(AF_INET, a->byte + 12, text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, a->byte, text, INET6_ADDRSTRLEN);
}

/* names --------------------------------------------------------------- */

static struct answer *
answer_set(struct export_answers *a, const struct question *q)
{
	return a->answer[cred_hash(q, sizeof(*q)) % SETS];
}

static bool
same_question(const struct question *a, const struct question *b)
{
	return a->match == b->match &&
	       memcmp(&a->client, &b->client, sizeof(a->client)) == 0;
}

/* 1, 0, or -EAGAIN. */
static int
answer_find(struct export_answers *a, const struct question *q)
{
	struct answer *set = answer_set(a, q);
	uint64_t now = monotonic_ns();
	int r = -EAGAIN;

	pthread_mutex_lock(&a->lock);
	for (unsigned i = 0; i < WAYS; i++) {
		if (now < set[i].until_ns && same_question(&set[i].question, q))
			r = set[i].yes;
	}
	pthread_mutex_unlock(&a->lock);
	return r;
}

static void
answer_keep(struct export_answers *a, const struct question *q, bool yes)
{
	struct answer *set = answer_set(a, q), *e = set;

	pthread_mutex_lock(&a->lock);
	for (unsigned i = 0; i < WAYS; i++) {
		if (same_question(&set[i].question, q)) {
			e = &set[i];
			break;
		}
		if (set[i].until_ns < e->until_ns)
			e = &set[i];
	}
	*e = (struct answer){ .question = *q,
			      .until_ns = monotonic_ns() + KEPT_NS,
			      .yes = yes };
	pthread_mutex_unlock(&a->lock);
}

static int
match_by_name(struct export_answers *a, const struct conf_client_match *m,
	      const struct sockaddr *client, bool may_block)
{
	struct question q;
	int r;

	memset(&q, 0, sizeof(q));
	q.match = m;
	if (!address_of(client, &q.client))
		return 0;
	r = answer_find(a, &q);
	if (r != -EAGAIN || !may_block)
		return r;
	r = conf_match_names(m, client) == 1;
	answer_keep(a, &q, r == 1);
	return r;
}

/* 1, 0, or -EAGAIN. Someone on a local socket has no address to match. */
static int
client_matches(struct export_answers *a, const struct conf_client_match *m,
	       const struct sockaddr *client, bool may_block)
{
	int r;

	if (m->kind == CONF_CLIENT_ANY)
		return 1;
	if (client->sa_family != AF_INET && client->sa_family != AF_INET6)
		return 0;
	r = conf_match_addr(m, client);
	return r == -EAGAIN ? match_by_name(a, m, client, may_block) : r == 1;
}

/* secure -------------------------------------------------------------- */

static bool
port_allowed(const struct conf_export_options *o, const struct sockaddr *client)
{
	if (!o->secure ||
	    (client->sa_family != AF_INET && client->sa_family != AF_INET6))
		return true;
	return port_of(client) < IPPORT_RESERVED;
}

/* true the first time, as long as there is room: a peer with many addresses
 * must not fill the log. */
static bool
refused_first(struct export_answers *a, const struct export *e,
	      const struct address *client)
{
	bool first;

	pthread_mutex_lock(&a->lock);
	first = a->refused_count < REFUSED_MAX;
	for (unsigned i = 0; first && i < a->refused_count; i++) {
		if (a->refused[i].export == e &&
		    memcmp(&a->refused[i].client, client, sizeof(*client)) == 0)
			first = false;
	}
	if (first)
		a->refused[a->refused_count++] = (struct refused){ e, *client };
	pthread_mutex_unlock(&a->lock);
	return first;
}

static void
refused_log(struct export_answers *a, const struct export *e,
	    const struct sockaddr *client)
{
	char text[INET6_ADDRSTRLEN];
	struct address address;

	if (!address_of(client, &address) || !refused_first(a, e, &address))
		return;
	address_text(&address, text);
	log_msg(LOG_WARNING_,
		"%s: refused %s, whose port %u is not below %d: the export "
		"option \"insecure\" lets it in",
		e->path, text, port_of(client), IPPORT_RESERVED);
}

int
export_access_any_port(struct export_table *t, struct export *e,
		       const struct sockaddr *client, bool may_block,
		       struct access *ret)
{
	const struct conf_export_options *o = NULL;
	int r;

	for (unsigned i = 0; !o && i < e->conf.client_count; i++) {
		const struct conf_client *c = &e->conf.clients[i];

		r = client_matches(t->answers, &c->match, client, may_block);
		if (r < 0)
			return r;
		if (r > 0)
			o = &c->options;
	}
	if (!o)
		return -EACCES;
	export_table_get(t);
	*ret = (struct access){ .table = t,
				.export = e,
				.options = o,
				.volume = o->rw ? e->rw : e->ro };
	return 0;
}

int
export_access(struct export_table *t, struct export *e,
	      const struct sockaddr *client, bool may_block, struct access *ret)
{
	struct access a;
	int r = export_access_any_port(t, e, client, may_block, &a);

	if (r < 0)
		return r;
	if (!port_allowed(a.options, client)) {
		refused_log(t->answers, e, client);
		access_put(&a);
		return -EPERM;
	}
	*ret = a;
	return 0;
}

void
access_put(struct access *a)
{
	export_table_put(a->table);
	memset(a, 0, sizeof(*a));
}
