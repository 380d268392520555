/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to io/: what engine.c, reactor.c, op.c, the two backends, work.c and
 * buf.c know of each other. Everything in a struct reactor belongs to its own
 * thread from reactor_start until reactor_join, but the mailbox, sleeping and
 * the counters.
 */
#ifndef NVNFSD_IO_REACTOR_H
#define NVNFSD_IO_REACTOR_H

#include "io/engine.h"
#include "io/fault.h"

#include <assert.h>
#include <pthread.h>

#define OP_SLOTS        65536u /* operations in flight, of one reactor */
#define OP_SLOT_NONE    UINT32_MAX
#define SMALL_BUFFERS   512u /* a power of two: a provided-buffer ring */
#define NS_PER_S        1000000000ull
#define NS_PER_MS       1000000ull
#define REACTORS_MAX    256u
#define THREAD_NAME_MAX 16

struct file_cache;
struct ring;
struct poller;

/* Where a started operation is. */
enum op_place {
	OP_HOME,       /* not started */
	OP_WAITING,    /* ops.waiting: no slot, or no room in the queue */
	OP_RUNNING,    /* the backend has it */
	OP_SMALL_WAIT, /* small.waiting: no small buffer */
	OP_DELAYED,    /* ops.delayed: a fault point holds it */
	OP_FINISHED    /* ops.finished: res is known, done() comes */
};

struct op_list {
	struct op *head;
	struct op *tail;
};

struct op_slot {
	struct op *op;       /* NULL: free */
	uint32_t generation; /* of the last submission */
	uint32_t next_free;
#ifdef NVNFSD_FAULT
	struct fault fault; /* what a fault point wants of this operation */
	uint64_t due_ns;    /* in ops.delayed: until then */
	bool told_late;     /* its result is known */
	void *copy;         /* of a msghdr that was shortened */
#endif
};

struct op_table {
	struct op_slot *slot; /* OP_SLOTS of them */
	uint32_t free;        /* head of the list, or OP_SLOT_NONE */
	uint32_t top;         /* slots at or above were never used */
	uint32_t live;        /* operations that are not home */
	uint32_t file_live;   /* of them, reads and writes of files */
	uint32_t polled;      /* nothing will wake us when one of them ends */
	struct op_list waiting;
	struct op_list finished;
	struct op_list delayed;
};

struct small_pool {
	uint8_t *base; /* SMALL_BUFFERS of IO_SMALL_BYTES */
	uint32_t free; /* buffers not in a caller's hands */
	struct op_list waiting;
	bool held[SMALL_BUFFERS];
};

/* What a reactor's operations run on: ring.c or ring_threads.c. */
struct backend {
	/* Before the reactor's thread starts; 0 or -errno. */
	int (*open)(struct reactor *r);
	/* After it ended. */
	void (*close)(struct reactor *r);
	/* On its thread, first and last. */
	int (*enter)(struct reactor *r);
	/* On its thread, when its init has run: what the thread is then, with
	 * what capabilities, is what its I/O is done with. */
	void (*settle)(struct reactor *r);
	void (*leave)(struct reactor *r);
	/* Start op, which has a slot; false when the queue is full. */
	bool (*submit)(struct reactor *r, struct op *op);
	/* op is OP_RUNNING. */
	void (*cancel)(struct reactor *r, struct op *op);
	/* op came back with op->res: true when it was started once more. */
	bool (*again)(struct reactor *r, struct op *op);
	/* Small buffer i is free again. */
	void (*small_back)(struct reactor *r, uint32_t i);
	/* Submit what is queued, wait at most timeout_ns (0: not at all) for
	 * something to happen, and op_finish() what is ready. */
	void (*wait)(struct reactor *r, uint64_t timeout_ns);
};

extern const struct backend backend_uring;
extern const struct backend backend_threads;

enum reactor_phase {
	REACTOR_NEW,
	REACTOR_ENTERED, /* its thread waits */
	REACTOR_RUNS,    /* it may go on */
	REACTOR_LOOPS,   /* its init has run */
	REACTOR_QUITS    /* it shall end, no init was run */
};

/* The mailbox has a cache line of its own.
 * NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct reactor {
	struct engine *engine;
	unsigned index;
	pthread_t thread;
	bool started;
	bool stopping;
	enum reactor_phase phase; /* under phase_lock, between its thread and
				     the engine's */
	pthread_mutex_t phase_lock;
	pthread_cond_t phase_moved;
	int enter_error;
	int sqpoll_error, busy_poll_error, iopoll_error; /* see engine_facts */
	bool buffers_registered;
	const struct backend *backend;
	struct ring *ring;     /* ring.c's */
	struct poller *poller; /* ring_threads.c's */
	struct buf_pool *pool;
	void *user;
	uint64_t now_ns;
	uint64_t tick_ns; /* when the next tick is due */
	struct op_table ops;
	struct small_pool small;
	struct message stop;
	struct reactor_counters counters;
	int wake_fd; /* eventfd; any thread writes it */
	/* Any thread. */
	_Alignas(64) _Atomic(struct message *) mailbox; /* newest first */
	_Atomic bool sleeping;
	_Atomic unsigned hungry; /* see reactor_hunger; its own thread adds */
};

static inline void
counter_add(_Atomic uint64_t *c, uint64_t n)
{
	atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

/* Of a counter that only r's own thread changes. */
static inline void
counter_set(_Atomic uint64_t *c, uint64_t n)
{
	atomic_store_explicit(c, n, memory_order_relaxed);
}

uint64_t clock_ns(void); /* CLOCK_MONOTONIC */

/* op.c ------------------------------------------------------------------- */

int ops_open(struct reactor *r);
void ops_close(struct reactor *r); /* asserts that all is home */
/* The result of op is known: done() comes from ops_run. */
void op_finish(struct reactor *r, struct op *op, int res);
/* op_work.c: a read or write of a file by a worker, which may block; counted as
 * a punt. op_finish() follows. */
void op_work(struct reactor *r, struct op *op);
/* (Re)start op; it waits where there is no room. */
void op_submit(struct reactor *r, struct op *op);
void op_wait_small(struct reactor *r, struct op *op);
/* A turn's share: start what waited, then call done() of what is finished. */
void ops_start_waiting(struct reactor *r);
void ops_run(struct reactor *r);
/* How long may the reactor sleep for its operations' sake? UINT64_MAX: for
 * ever; 0: there is something to do. */
uint64_t ops_sleep_ns(const struct reactor *r);
void ops_assert_cancelled(const struct reactor *r);
void op_list_push(struct op_list *l, struct op *op);
struct op *op_list_pop(struct op_list *l);
void op_list_remove(struct op_list *l, struct op *op); /* op is in l */
/* A small buffer passed to its caller; returns its address. */
void *small_hold(struct reactor *r, uint32_t i);

/* op_fault.c -------------------------------------------------------------- */

#ifdef NVNFSD_FAULT
/* At op's first start: true when it failed or waits. */
bool op_fault_start(struct reactor *r, struct op *op);
/* op is finished: true when it is told later. */
bool op_fault_finish(struct reactor *r, struct op *op);
void op_fault_end(struct reactor *r, struct op *op);
/* Go on with operations whose time has come; how long until the next? */
void ops_fault_due(struct reactor *r);
uint64_t ops_fault_sleep_ns(const struct reactor *r);
#else
static inline bool
op_fault_start(struct reactor *r, struct op *op)
{
	return false;
}

static inline bool
op_fault_finish(struct reactor *r, struct op *op)
{
	return false;
}

static inline void
op_fault_end(struct reactor *r, struct op *op)
{
}

static inline void
ops_fault_due(struct reactor *r)
{
}

static inline uint64_t
ops_fault_sleep_ns(const struct reactor *r)
{
	return UINT64_MAX;
}
#endif

/* reactor.c --------------------------------------------------------------- */

void reactor_wake(struct reactor *r); /* write its eventfd; any thread */
int reactor_open(struct reactor **ret, struct engine *e, unsigned index,
		 const struct backend *backend, size_t pool_bytes);
/* Start its thread, which waits for reactor_run: so that when one reactor of
 * several cannot start, none has begun to serve. */
int reactor_start(struct reactor *r);
void reactor_run(struct reactor *r);  /* returns when its init has run */
void reactor_stop(struct reactor *r); /* ask; then join */
void reactor_join(struct reactor *r);
void reactor_close(struct reactor *r);

/* work.c ---------------------------------------------------------------------
 */

struct crew;
int crew_new(struct crew **ret, struct engine *e, char letter,
	     unsigned threads);
/* Finishes what was submitted, then joins. NULL is fine. */
void crew_end(struct crew *c);
/* Then, when no thread is left that may be inside crew_submit. */
void crew_free(struct crew *c);
void crew_submit(struct crew *c, struct work *w);
/* run() has ended: done() shall come on the reactor. */
void work_tell(struct work *w);

/* buf.c ----------------------------------------------------------------------
 */

#define BUF_FIXED_SHIFT 30 /* a registered buffer has at most 1 GiB */

int buf_pool_new(struct buf_pool **ret, struct reactor *r, size_t bytes);
void buf_pool_free(struct buf_pool *p); /* asserts that every buffer is home */
/* The region as iovecs for registration; returns their number, at most max. */
unsigned buf_pool_iovecs(const struct buf_pool *p, struct iovec *iov,
			 unsigned max);
void buf_pool_lock(struct buf_pool *p); /* in memory, where limits allow it */

/* engine.c --------------------------------------------------------------------
 */

const struct engine_config *engine_config(const struct engine *e);
/* Made by file_cache_new once the workers run, and ended first of all, by
 * file_cache_free, while every thread still runs. */
struct file_cache *engine_files(struct engine *e);
/* Outlives every volume. */
struct device_set *engine_devices(struct engine *e);
unsigned engine_io_workers(const struct engine *e);
/* Tell config.on_error. Any thread. */
void engine_error(struct engine *e, struct volume *v, const char *what,
		  int error);
/* Start a thread with all signals blocked, named nvnfsd/LETTERn. 0, -errno. */
int engine_thread(pthread_t *thread, char letter, unsigned n,
		  void *(*run)(void *), void *arg);
/* This thread must make progress for memory to be reclaimed when a client is
 * mounted on the server itself: PR_SET_IO_FLUSHER, where it is allowed. */
void engine_thread_flushes(void);

#endif
