/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of a reactor's operations: each test on io_uring, with a kernel
 * thread that submits and without, and on the threads backend; and very many
 * operations at once.
 */
#ifndef NVNFSD_TESTS_RING_HARNESS_H
#define NVNFSD_TESTS_RING_HARNESS_H

#include "tests/unit/engine_harness.h"

#include <sched.h>

struct fixture {
	enum io_backend backend;
	bool sqpoll;
	struct engine *engine;
	struct reactor *r;
};

static struct fixture uring = { .backend = IO_BACKEND_URING };
static struct fixture sqpoll = { .backend = IO_BACKEND_URING, .sqpoll = true };
static struct fixture plain = { .backend = IO_BACKEND_THREADS };

static inline int
setup(void **state)
{
	struct fixture *f = *state;

	f->engine = engine_make_polling(f->backend, 1, 0, f->sqpoll);
	f->r = engine_reactor(f->engine, 0);
	return 0;
}

static inline int
teardown(void **state)
{
	struct fixture *f = *state;

	engine_free(f->engine); /* asserts that all is home */
	return 0;
}

#define EACH(test)                                                             \
	{ #test " (io_uring)", test, setup, teardown, &uring },                \
		{ #test " (sqpoll)", test, setup, teardown, &sqpoll },         \
	{                                                                      \
#test " (threads)", test, setup, teardown, &plain              \
	}

static inline void
pattern(uint8_t *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)((i * 31 + i / 251 + seed) & 0xff);
}

/* Far more at once than the submission queue, the completion queue and the
 * slots hold: all are done, each once. */
#define MANY 70000

struct many {
	struct op op[MANY];
	uint8_t byte[MANY];
	_Atomic unsigned finished, wrong;
	int fd;
	enum op_kind kind;
};

static struct many *many;

static inline void
many_done(struct op *op, int res)
{
	if (res != 1)
		atomic_fetch_add(&many->wrong, 1);
	op->done = NULL; /* a second one would crash */
	atomic_fetch_add(&many->finished, 1);
}

static inline void
many_start(struct reactor *r, void *arg)
{
	unsigned n = *(unsigned *)arg;

	for (unsigned i = 0; i < n; i++) {
		struct op *op = &many->op[i];

		op->done = many_done;
		if (many->kind == OP_READ)
			op_read(r, op, many->fd, &many->byte[i], 1, i, 0);
		else
			op_recv(r, op, many->fd, &many->byte[i], 1, 0);
	}
}

#endif
