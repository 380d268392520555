/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fault points: with -Dfault=true the n-th operation of a kind is made to
 * fail, to come short, or to take its time. Without, nothing of it is built.
 *
 * NVNFSD_FAULT="KIND:N:WHAT[:COUNT][;...]"
 *   KIND  accept recv recv_small sendmsg read write; fsync of a file, flush
 *         (sync_file_range), metasync (the force of the log)
 *   N     counts from 1, over all reactors and workers of the process; a retry
 *         inside the engine is no new operation
 *   WHAT  an errno's name (EIO); short (half the bytes, rounded down to whole
 *         4096 where the whole was a multiple of it); delay=MS (starts later);
 *         late=MS (done, but told later)
 *   COUNT how many in a row, 1 unless given; * for all that follow
 * and "sqfull:N[:COUNT]" (the N-th submission finds no room), "eintr:N[:COUNT]"
 * (the N-th wait is interrupted).
 */
#ifndef NVNFSD_IO_FAULT_H
#define NVNFSD_IO_FAULT_H

#include "io/engine.h"

struct fault {
	int error; /* 0 or -errno */
	bool shorten;
	uint32_t delay_ms;
	uint32_t late_ms;
};

#ifdef NVNFSD_FAULT

/* Take the points from the environment. As fault_set. */
int fault_init(void);
/* Replace all fault points and start counting anew; NULL: none. 0, or -EINVAL
 * and nothing changed. No operation may be in flight. */
int fault_set(const char *spec);
/* Count one operation and say what shall happen to it. */
struct fault fault_next(enum op_kind kind);
/* The same for a blocking call, on a worker: sleeps, cuts *len, or returns the
 * error to fail with instead of the call. */
int fault_point(enum op_kind kind, uint32_t *len);
uint32_t fault_short(uint32_t len);
bool fault_queue_full(void);
bool fault_interrupted(void);
/* How many operations have met a point since fault_set: what a test loops on
 * until its script is through without. */
uint64_t fault_hits(void);

#else

static inline int
fault_init(void)
{
	return 0;
}

static inline struct fault
fault_next(enum op_kind kind)
{
	return (struct fault){ 0 };
}

static inline int
fault_point(enum op_kind kind, uint32_t *len)
{
	return 0;
}

static inline uint32_t
fault_short(uint32_t len)
{
	return len;
}

static inline bool
fault_queue_full(void)
{
	return false;
}

static inline bool
fault_interrupted(void)
{
	return false;
}

#endif
#endif
