/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The peers of a struct udp, private to it. All of it belongs to its thread.
 */
#ifndef NVNFSD_UDP_PEER_H
#define NVNFSD_UDP_PEER_H

#include "nfsd/server.h"
#include "nfsd/udp.h"

#include <uthash.h>

#define UDP_RECORD_BYTES_MAX (RPC_MARK_BYTES + DATAGRAM_BYTES_MAX)

struct udp_peer;
struct udp_socket;

/* What epoll tells of. */
struct source {
	int fd;
	struct udp_peer *peer;     /* NULL: it is no peer's */
	struct udp_socket *socket; /* of that peer; or itself */
};

struct udp_socket {
	struct source source;
	struct listener listener; /* what its connections find served */
	struct shard *shard;      /* NULL: whichever has the fewest */
};

/* By bytes: zeroed before it is filled. */
struct peer_key {
	uint32_t socket; /* its descriptor */
	uint32_t scope, local_scope;
	in_port_t port;
	uint8_t addr[16], local[16];
};

struct udp_peer {
	UT_hash_handle hh;
	TAILQ_ENTRY(udp_peer) lru; /* first: longest unused */
	struct peer_key key;
	struct source source;
	struct datagram_ends ends;
	uint64_t used_ns;
	uint8_t *rest; /* of a record that the pair took only a part of */
	uint32_t rest_at, rest_bytes;
	uint8_t *out; /* UDP_RECORD_BYTES_MAX: a reply that is not whole yet */
	uint32_t out_bytes;
};

struct peers {
	struct server *server;
	struct udp_peer *hashed;
	TAILQ_HEAD(, udp_peer) lru;
	int epoll_fd;
	struct udp_counters *counters;
};

void peers_init(struct peers *all, struct server *s, int epoll_fd,
		struct udp_counters *counters);
int peers_watch(const struct peers *all, struct source *s, int how,
		uint32_t events);
/* Found or made, and the last to go from now on. NULL: there is no room. */
struct udp_peer *peer_get(struct peers *all, struct udp_socket *s,
			  struct datagram_ends *ends);
/* Pass on a record of n bytes, mark included. It may be the peer's end. */
void peer_push(struct peers *all, struct udp_peer *p, const uint8_t *record,
	       uint32_t n);
/* epoll tells these of it. Likewise. */
void peer_ready(struct peers *all, struct udp_peer *p, uint32_t events);
/* Those that have sent nothing for a while go. */
void peers_forget_idle(struct peers *all);

#endif
