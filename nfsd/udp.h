/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server by UDP: sockets beside the listening ones, and a thread that
 * passes datagrams to connections and their replies back.
 */
#ifndef NVNFSD_UDP_H
#define NVNFSD_UDP_H

#include <stdbool.h>
#include <stdint.h>

struct listener;
struct server;
struct udp;

/* Peers (an address and port) at a time: the one that has sent nothing for the
 * longest time goes for a new one. */
#define UDP_PEERS_MAX 512u

struct udp_counters {
	_Atomic uint64_t received, sent;
	_Atomic uint64_t long_ones; /* longer than any call may be */
	_Atomic uint64_t garbage;   /* no call */
	/* For want of room (its peer, or the network, is too fast), or at a
	 * stop: it is for the peer to send them again. */
	_Atomic uint64_t dropped, replies_dropped;
	_Atomic uint64_t peers; /* now */
	_Atomic uint64_t peers_evicted;
};

/* A socket at each address and port that s listens on. 0, or -errno, logged: a
 * port that is in use is done without where not even NFS is wanted there. same:
 * then -EADDRINUSE instead, and nothing is logged. */
int udp_open(struct udp **ret, struct server *s, bool same);
/* Serve: the shards are there, and there is something exported. 0, -errno. */
int udp_start(struct udp *u);
/* Take no more. When this returns no new connection comes from here; replies
 * still go out. */
void udp_stop_receiving(struct udp *u);
/* Ends when the last connection from here is gone. NULL is taken. */
void udp_free(struct udp *u);

unsigned udp_count(const struct udp *u);
/* What is served at socket i, at its address. */
const struct listener *udp_socket(const struct udp *u, unsigned i);
struct udp_counters *udp_counters(struct udp *u);

#endif
