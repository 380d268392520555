/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For integration tests: many calls in flight over several connections, by one
 * thread. A call is embedded in whatever its test keeps of it; done() runs
 * inside flow_turn and may send more. Sends never block, so that a server that
 * waits for its replies to be taken is not waited for. Each function fails the
 * running test when something goes wrong.
 */
#ifndef NVNFSD_TESTS_FLOW_H
#define NVNFSD_TESTS_FLOW_H

#include "harness.h"

struct flow_call {
	/* The accepted reply lies in r, for raw_result(). */
	void (*done)(struct flow_call *c, struct raw *r);
	/* private to flow.c */
	struct flow_call *next;
	uint8_t *record; /* with its mark; NULL once it is sent */
	size_t bytes, sent;
	uint32_t xid;
};

struct flow;

struct flow *flow_new(uint16_t port, unsigned connections);
/* Nothing may be in flight. NULL is fine. */
void flow_free(struct flow *f);
/* For a blocking call: only while nothing is in flight on this connection. */
struct raw *flow_raw(struct flow *f, unsigned conn);
/* conn is taken modulo the number of connections; c->done is set. */
void flow_call(struct flow *f, unsigned conn, struct flow_call *c,
	       uint32_t proc, raw_zdr_fn *encode, void *args);
/* NFSv3 shorthand: flow_nfs(f, conn, call, WRITE, &args). */
#define flow_nfs(f, conn, call, NAME, args)                                    \
	flow_call((f), (conn), (call), NFS3_##NAME,                            \
		  (raw_zdr_fn *)zdr_##NAME##3args, (args))
struct flow_write {
	const struct raw_fh *fh;
	uint64_t offset;
	void *data; /* copied, not changed */
	uint32_t bytes;
	int stable;
};
void flow_write(struct flow *f, unsigned conn, struct flow_call *c,
		const struct flow_write *w);
void flow_read(struct flow *f, unsigned conn, struct flow_call *c,
	       const struct raw_fh *fh, uint64_t offset, uint32_t bytes);
void flow_commit(struct flow *f, unsigned conn, struct flow_call *c,
		 const struct raw_fh *fh);
/* Wait for something to happen and serve it. How many are still in flight. */
unsigned flow_turn(struct flow *f);
void flow_drain(struct flow *f); /* turns until nothing is in flight */

#endif
