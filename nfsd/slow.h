/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slowest calls of the last minutes, with the time that each stage took.
 * One struct slow a shard; its reactor notes, any thread reads.
 */
#ifndef NVNFSD_SLOW_H
#define NVNFSD_SLOW_H

#include "nfsd/latency.h"

#define SLOW_CALLS     32u /* remembered of each period, and of the one before */
#define SLOW_PERIOD_NS (60ull * 1000000000)

/* In the order of time. */
enum slow_stage {
	SLOW_RECEIVE, /* from the first byte of the record to its last */
	SLOW_QUEUE,   /* until a thread took it up, or its file was open */
	SLOW_SPLIT,   /* until it was cut and had its ranges */
	SLOW_IO,      /* until all pieces had landed; a procedure's whole run */
	SLOW_SYNC,    /* until it was durable */
	SLOW_REPLY,   /* until the last byte of the reply was TCP's */
	SLOW_STAGES
};

struct slow_call {
	struct latency_key key;
	uint32_t xid;
	int status;        /* nfsstat3 */
	int stable;        /* of a WRITE, else -1 */
	int split;         /* a WRITE's enum split_reason, else -1 */
	uint64_t begin_ns; /* CLOCK_MONOTONIC */
	uint64_t ns;
	uint64_t stage_ns[SLOW_STAGES];
	uint64_t offset, bytes; /* of READ and WRITE */
};

struct slow;
struct slow *slow_new(void); /* NULL: no memory */
void slow_free(struct slow *s);
/* Owner's thread: is a call of so many ns worth a note? Cheap. */
bool slow_wants(const struct slow *s, uint64_t ns, uint64_t now_ns);
void slow_note(struct slow *s, const struct slow_call *c, uint64_t now_ns);
/* Copies at most max, in no order, of those that ended in the last two periods;
 * how many. */
unsigned slow_list(struct slow *s, uint64_t now_ns, struct slow_call *out,
		   unsigned max);

const char *slow_stage_name(enum slow_stage stage);

#endif
