/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For integration tests with many peers: a server with limits, a good client
 * with a file, plain connections that send what they like, and WRITEs and READs
 * in parts, whose data follow from their offsets.
 */
#ifndef NVNFSD_TESTS_PEERS_H
#define NVNFSD_TESTS_PEERS_H

#include "client.h"

#define MIB         (1u << 20)
#define RECORD_LAST 0x80000000u

struct peers_world {
	struct harness *h;
	struct raw *good; /* a client that behaves */
	struct raw_fh root, fh;
};

/* A server with these [limits], and a good client with a file. */
struct peers_world *peers_world_new(const char *engine, const char *limits);
void peers_world_free(struct peers_world *w);
void peers_null_call(struct raw *r);
/* A plain connection; what a raw costs in memory a thousand have not. */
int peers_dial(const struct peers_world *w);
/* Send what the peer takes; it may have gone. */
void peers_push(int fd, const void *bytes, size_t n);
void peers_push_mark(int fd, uint32_t mark);
/* Calls, to be sent as a whole or in parts, and what must come back. What a
 * WRITE of n bytes at offset wrote, a READ of the same expects. */
void peers_build_write(struct raw *r, const struct raw_fh *fh, uint64_t offset,
		       uint32_t n);
void peers_build_read(struct raw *r, const struct raw_fh *fh, uint64_t offset,
		      uint32_t n);
void peers_expect_written(struct raw *r, uint32_t n);
void peers_expect_read(struct raw *r, uint64_t offset, uint32_t n);

#endif
