/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of the engine: start one, run a function on a reactor's thread and
 * wait for it, start an operation there and wait for its result.
 */
#ifndef NVNFSD_TESTS_ENGINE_HARNESS_H
#define NVNFSD_TESTS_ENGINE_HARNESS_H

#include "io/io.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h wants those before it */
#include <cmocka.h>

static inline struct engine *
engine_make_polling(enum io_backend backend, unsigned reactors,
		    size_t buffer_bytes, bool sqpoll)
{
	struct engine_config config = { .backend = backend,
					.sqpoll = sqpoll,
					.reactors = reactors,
					.workers = 4,
					.io_workers = 4,
					.buffer_bytes = buffer_bytes };
	struct engine *e = NULL;

	assert_int_equal(engine_new(&e, &config), 0);
	assert_int_equal(engine_facts(e)->backend, backend);
	assert_int_equal(engine_facts(e)->sqpoll_error, 0);
	return e;
}

static inline struct engine *
engine_make(enum io_backend backend, unsigned reactors, size_t buffer_bytes)
{
	return engine_make_polling(backend, reactors, buffer_bytes, false);
}

/* A function called on a reactor's thread. */
struct visit {
	struct message message;
	struct reactor *reactor;
	void (*run)(struct reactor *r, void *arg);
	void *arg;
	sem_t done;
};

static inline void
visit_run(struct message *m)
{
	struct visit *v = container_of(m, struct visit, message);

	v->run(v->reactor, v->arg);
	sem_post(&v->done);
}

static inline void
visit(struct reactor *r, void (*run)(struct reactor *r, void *arg), void *arg)
{
	struct visit v = { .reactor = r, .run = run, .arg = arg };

	v.message.run = visit_run;
	sem_init(&v.done, 0, 0);
	reactor_post(r, &v.message);
	while (sem_wait(&v.done) < 0)
		;
	sem_destroy(&v.done);
}

/* An operation whose result a test's thread waits for. */
struct task {
	struct op op;
	struct reactor *reactor;
	enum op_kind kind;
	int fd;
	void *buf;
	uint32_t len;
	int flags; /* MSG_ or RWF_ */
	uint64_t offset;
	bool tells;
	const struct msghdr *msg;
	int res;
	_Atomic int finished; /* how often: must be 1 */
	sem_t done;
};

static inline void
task_done(struct op *op, int res)
{
	struct task *t = container_of(op, struct task, op);

	t->res = res;
	t->finished++;
	sem_post(&t->done);
}

static inline void
task_begin(struct reactor *r, void *arg)
{
	struct task *t = arg;
	struct op *op = &t->op;

	op->done = task_done;
	switch (t->kind) {
	case OP_ACCEPT:
		op_accept(r, op, t->fd);
		break;
	case OP_RECV:
		op_recv(r, op, t->fd, t->buf, t->len, t->flags);
		break;
	case OP_RECV_SMALL:
		op_recv_small(r, op, t->fd);
		break;
	case OP_SENDMSG:
		op_sendmsg(r, op, t->fd, t->msg);
		break;
	case OP_READ:
		op_read(r, op, t->fd, t->buf, t->len, t->offset, t->flags);
		break;
	default:
		op_write(r, op, t->fd, t->buf, t->len, t->offset, t->flags,
			 t->tells);
	}
	/* done() never comes from inside. */
	assert_int_equal(t->finished, 0);
}

static inline void
task_start(struct reactor *r, struct task *t)
{
	t->reactor = r;
	t->finished = 0;
	sem_init(&t->done, 0, 0);
	visit(r, task_begin, t);
}

static inline int
task_wait(struct task *t)
{
	while (sem_wait(&t->done) < 0)
		;
	assert_int_equal(t->finished, 1);
	sem_destroy(&t->done);
	return t->res;
}

static inline int
task_run(struct reactor *r, struct task *t)
{
	task_start(r, t);
	return task_wait(t);
}

static inline void
task_cancel_visit(struct reactor *r, void *arg)
{
	struct task *t = arg;

	if (!t->finished)
		op_cancel(r, &t->op);
}

static inline void
task_cancel(struct task *t)
{
	visit(t->reactor, task_cancel_visit, t);
}

static inline void
small_give_visit(struct reactor *r, void *arg)
{
	small_give(r, arg);
}

#endif
