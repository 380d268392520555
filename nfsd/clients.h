/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is and was connected, by address: small numbers for what counts by
 * client. Any thread.
 */
#ifndef NVNFSD_CLIENTS_H
#define NVNFSD_CLIENTS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define CLIENTS_MAX    512u
#define CLIENTS_OTHERS 0u /* the number of those for whom there is no room */

struct client {
	uint32_t number;
	char address[INET6_ADDRSTRLEN];
	unsigned connections; /* now */
	uint64_t connections_total;
	uint64_t since_ns, seen_ns; /* CLOCK_MONOTONIC: first, last change */
};

struct clients;
struct clients *clients_new(void); /* NULL: no memory */
void clients_free(struct clients *c);
/* A connection begins: the number of its client. An address keeps its number
 * until CLIENTS_MAX others have come; numbers are not used again. */
uint32_t clients_enter(struct clients *c, const struct sockaddr *addr,
		       uint64_t now_ns);
void clients_leave(struct clients *c, uint32_t number, uint64_t now_ns);
/* Copies at most max of them; how many. */
unsigned clients_list(struct clients *c, struct client *out, unsigned max);

#endif
