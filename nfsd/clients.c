/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clients, by address. The object is struct clients: the server's, made at
 * its start; a connection enters when it is accepted and leaves when it ends.
 * Its mutex is a leaf, taken once a connection at either end. It knows no
 * calls.
 */
#include "nfsd/clients.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct clients {
	pthread_mutex_t mutex;
	unsigned count;
	uint32_t last; /* number given out */
	struct client client[CLIENTS_MAX];
};

struct clients *
clients_new(void)
{
	struct clients *c = calloc(1, sizeof(*c));

	if (c != NULL)
		pthread_mutex_init(&c->mutex, NULL);
	return c;
}

void
clients_free(struct clients *c)
{
	if (c == NULL)
		return;
	pthread_mutex_destroy(&c->mutex);
	free(c);
}

/* Without the port; an IPv4 address that came by IPv6 as what it is. */
static void
address_text(const struct sockaddr *addr, char out[INET6_ADDRSTRLEN])
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)addr;
	const void *ip = &v4->sin_addr;
	int family = addr->sa_family;

	if (family == AF_INET6) {
		ip = &v6->sin6_addr;
		if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
			ip = &v6->sin6_addr.s6_addr[12];
			family = AF_INET;
		}
	}
	if (inet_ntop(family, ip, out, INET6_ADDRSTRLEN) == NULL)
		out[0] = '\0';
}

static struct client *
find(struct clients *c, const char *address)
{
	unsigned i;

	for (i = 0; i < c->count; i++)
		if (strcmp(c->client[i].address, address) == 0)
			return &c->client[i];
	return NULL;
}

/* A place for a new one: the next, or that of whoever left first. */
static struct client *
place(struct clients *c)
{
	struct client *oldest = NULL;
	unsigned i;

	if (c->count < CLIENTS_MAX)
		return &c->client[c->count++];
	for (i = 0; i < CLIENTS_MAX; i++) {
		struct client *o = &c->client[i];

		if (o->connections == 0 &&
		    (oldest == NULL || o->seen_ns < oldest->seen_ns))
			oldest = o;
	}
	return oldest;
}

uint32_t
clients_enter(struct clients *c, const struct sockaddr *addr, uint64_t now_ns)
{
	char address[INET6_ADDRSTRLEN];
	uint32_t number = CLIENTS_OTHERS;
	struct client *o;

	address_text(addr, address);
	pthread_mutex_lock(&c->mutex);
	o = find(c, address);
	if (o == NULL && (o = place(c)) != NULL) {
		*o = (struct client){ .number = ++c->last, .since_ns = now_ns };
		memcpy(o->address, address, sizeof(address));
	}
	if (o != NULL) {
		o->connections++;
		o->connections_total++;
		o->seen_ns = now_ns;
		number = o->number;
	}
	pthread_mutex_unlock(&c->mutex);
	return number;
}

void
clients_leave(struct clients *c, uint32_t number, uint64_t now_ns)
{
	unsigned i;

	if (number == CLIENTS_OTHERS)
		return;
	pthread_mutex_lock(&c->mutex);
	for (i = 0; i < c->count; i++) {
		if (c->client[i].number != number)
			continue;
		c->client[i].connections--;
		c->client[i].seen_ns = now_ns;
		break;
	}
	pthread_mutex_unlock(&c->mutex);
}

unsigned
clients_list(struct clients *c, struct client *out, unsigned max)
{
	unsigned n;

	pthread_mutex_lock(&c->mutex);
	n = c->count < max ? c->count : max;
	memcpy(out, c->client, n * sizeof(*out));
	pthread_mutex_unlock(&c->mutex);
	return n;
}
