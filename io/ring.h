/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to the io_uring backend: what ring.c (operations), ring_setup.c
 * (rings made and closed) and ring_polled.c (the ring for polled devices) know
 * of each other. A struct ring belongs to its reactor's thread.
 */
#ifndef NVNFSD_IO_RING_H
#define NVNFSD_IO_RING_H

#include "io/reactor.h"

#include <liburing.h>

#define RING_SMALL_GROUP 0 /* of provided buffers */

struct ring {
	struct io_uring uring;
	struct io_uring_buf_ring *small;
	uint64_t wake_count; /* the eventfd's read lands here */
	bool wake_armed;
	bool cancels_owed; /* a cancellation found the queue full */
	bool sqpoll;       /* a thread of the kernel submits */
	/* A second ring, for devices that are asked for completions. */
	bool has_polled;
	bool polled_fixed; /* the pool is registered with it, too */
	struct io_uring polled;
};

/* ring.c ------------------------------------------------------------------ */

/* What io_uring_enter may say in the course of things; the rest is our
 * mistake. What it did not take stays in the queue for the next turn. */
void ring_check(int ret);
uint64_t ring_user_data(const struct reactor *r, const struct op *op);
/* Fill sqe with a read or write; fixed: the pool is registered with its ring.
 */
void ring_prep_file(const struct reactor *r, struct io_uring_sqe *sqe,
		    const struct op *op, bool fixed);
void ring_small_add(struct reactor *r, uint32_t i, int at);
/* op_finish what has completed in u, one of r's rings. */
void ring_reap(struct reactor *r, struct io_uring *u);

/* ring_setup.c ------------------------------------------------------------ */

/* As struct backend has them. */
int ring_open(struct reactor *r);
void ring_close(struct reactor *r);
int ring_enter(struct reactor *r);
void ring_settle(struct reactor *r);
/* The pool with u; without it (memory limits) everything works, and costs a
 * little more a call. */
bool ring_register_pool(struct reactor *r, struct io_uring *u);

/* ring_polled.c ----------------------------------------------------------- */

int ring_polled_open(struct reactor *r);
void ring_polled_close(struct ring *ring);
/* Take op, which has RWF_HIPRI; false: it is to go the usual way. */
bool ring_polled_submit(struct reactor *r, struct op *op);
/* Submit, ask the devices, and op_finish what is ready. */
void ring_polled_turn(struct reactor *r);
/* op, which was polled, came back: true when it goes the usual way after all.
 */
bool ring_polled_again(struct reactor *r, struct op *op);

#endif
