/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations of a reactor, whatever they run on: slots, the order in which
 * completions are acted upon, and the small buffers for first bytes.
 *
 * A struct op belongs to its caller; while it is busy it occupies one slot of
 * its reactor's table, so that what a backend hands around is a slot and a
 * generation and never a pointer that may be stale. A completion is only noted
 * (op_finish); ops_run acts upon it later, from the loop: done() may start and
 * cancel operations at will and never finds itself inside another's start.
 * Nothing is refused: where there is no slot, no room in the queue, or no
 * small buffer, an operation waits here.
 *
 * It knows neither io_uring nor epoll (ring.c, ring_threads.c), and no files.
 */
#include "io/reactor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void
op_list_push(struct op_list *l, struct op *op)
{
	op->next = NULL;
	if (l->head)
		l->tail->next = op;
	else
		l->head = op;
	l->tail = op;
}

struct op *
op_list_pop(struct op_list *l)
{
	struct op *op = l->head;

	if (op) {
		l->head = op->next;
		op->next = NULL;
	}
	return op;
}

void
op_list_remove(struct op_list *l, struct op *op)
{
	struct op *before = NULL, *o = l->head;

	while (o != op) {
		assert(o);
		before = o;
		o = o->next;
	}
	if (before)
		before->next = op->next;
	else
		l->head = op->next;
	if (l->tail == op)
		l->tail = before;
	op->next = NULL;
}

static void
small_close(struct small_pool *s)
{
	if (!s->base)
		return;
	assert(s->free == SMALL_BUFFERS);
	munmap(s->base, (size_t)SMALL_BUFFERS * IO_SMALL_BYTES);
	s->base = NULL;
}

int
ops_open(struct reactor *r)
{
	struct op_table *t = &r->ops;
	void *p;

	t->slot = calloc(OP_SLOTS, sizeof(*t->slot));
	if (!t->slot)
		return -ENOMEM;
	t->free = OP_SLOT_NONE;
	p = mmap(NULL, (size_t)SMALL_BUFFERS * IO_SMALL_BYTES,
		 PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return -errno;
	/* Present before memory can be short, see engine_thread_flushes.
	 * MAP_POPULATE does nothing after mlockall(MCL_ONFAULT). */
	memset(p, 0, (size_t)SMALL_BUFFERS * IO_SMALL_BYTES);
	r->small.base = p;
	r->small.free = SMALL_BUFFERS;
	return 0;
}

void
ops_close(struct reactor *r)
{
	assert(r->ops.live == 0);
	assert(!r->ops.waiting.head && !r->ops.finished.head);
	assert(!r->ops.delayed.head && !r->small.waiting.head);
	small_close(&r->small);
	free(r->ops.slot);
	r->ops.slot = NULL;
}

static bool
slot_take(struct op_table *t, struct op *op)
{
	struct op_slot *s;
	uint32_t i = t->free;

	if (i != OP_SLOT_NONE)
		t->free = t->slot[i].next_free;
	else if (t->top < OP_SLOTS)
		i = t->top++;
	else
		return false;
	s = &t->slot[i];
	assert(!s->op);
	s->op = op;
	op->slot = i;
	return true;
}

static void
slot_give(struct reactor *r, struct op *op)
{
	struct op_table *t = &r->ops;
	struct op_slot *s = &t->slot[op->slot];

	assert(s->op == op);
	op_fault_end(r, op);
	s->op = NULL;
	s->next_free = t->free;
	t->free = op->slot;
	op->slot = OP_SLOT_NONE;
}

/* Give op to the backend; false where there is no slot or no room. */
static bool
op_try(struct reactor *r, struct op *op)
{
	bool fresh = op->slot == OP_SLOT_NONE;

	if (fresh && !slot_take(&r->ops, op))
		return false;
	if (op->cancelled) {
		op_finish(r, op, -ECANCELED);
		return true;
	}
	if (fresh && op_fault_start(r, op))
		return true;
	op->place = OP_RUNNING;
	r->ops.slot[op->slot].generation++;
	return r->backend->submit(r, op);
}

void
op_submit(struct reactor *r, struct op *op)
{
	if (!r->ops.waiting.head && op_try(r, op))
		return;
	op->place = OP_WAITING;
	op->since_ns = r->now_ns;
	counter_add(&r->counters.op_waits, 1);
	op_list_push(&r->ops.waiting, op);
}

void
op_finish(struct reactor *r, struct op *op, int res)
{
	assert(op->busy && op->place != OP_FINISHED);
	op->res = res;
	op->place = OP_FINISHED;
	op_list_push(&r->ops.finished, op);
}

void
op_wait_small(struct reactor *r, struct op *op)
{
	counter_add(&r->counters.small_waits, 1);
	op->place = OP_SMALL_WAIT;
	op->since_ns = r->now_ns;
	op_list_push(&r->small.waiting, op);
}

/*
 * A free small buffer may be wanted by any of those that wait for one, and one
 * whose peer is silent uses none up: so as many as there are buffers are tried
 * again, each turn, and not one for each buffer given back.
 */
static void
small_serve(struct reactor *r)
{
	struct op *op;

	for (uint32_t n = r->small.free; n > 0; n--) {
		op = op_list_pop(&r->small.waiting);
		if (!op)
			break;
		counter_add(&r->counters.small_wait_ns,
			    r->now_ns - op->since_ns);
		op_submit(r, op);
	}
}

void
ops_start_waiting(struct reactor *r)
{
	struct op_list *l = &r->ops.waiting;
	struct op *op;

	ops_fault_due(r);
	while ((op = op_list_pop(l)) != NULL) {
		if (op_try(r, op)) {
			counter_add(&r->counters.op_wait_ns,
				    r->now_ns - op->since_ns);
			continue;
		}
		op->place = OP_WAITING;
		op->next = l->head;
		if (!l->head)
			l->tail = op;
		l->head = op;
		break;
	}
	small_serve(r);
}

static bool
op_is_file(const struct op *op)
{
	return op->kind == OP_READ || op->kind == OP_WRITE;
}

static void
op_end(struct reactor *r, struct op *op)
{
	if (op->slot != OP_SLOT_NONE)
		slot_give(r, op);
	r->ops.live--;
	if (op_is_file(op))
		counter_set(&r->counters.file_ops, --r->ops.file_live);
	op->busy = false;
	op->place = OP_HOME;
	op->done(op, op->res); /* may free op */
}

void
ops_run(struct reactor *r)
{
	struct op_list list = r->ops.finished;
	struct op *op;

	r->ops.finished = (struct op_list){ 0 };
	while ((op = op_list_pop(&list)) != NULL) {
		if (op->slot != OP_SLOT_NONE && r->backend->again(r, op))
			continue;
		if (op_fault_finish(r, op))
			continue;
		op_end(r, op);
	}
}

uint64_t
ops_sleep_ns(const struct reactor *r)
{
	const struct op_table *t = &r->ops;
	const struct op *first = t->waiting.head;

	if (t->finished.head || t->polled > 0)
		return 0;
	/* One that waits for a slot is woken by a completion. */
	if (first && (first->slot != OP_SLOT_NONE || t->free != OP_SLOT_NONE))
		return 0;
	if (r->small.waiting.head && r->small.free > 0)
		return 0;
	return ops_fault_sleep_ns(r);
}

void
ops_assert_cancelled(const struct reactor *r)
{
	for (uint32_t i = 0; i < r->ops.top; i++) {
		const struct op *op = r->ops.slot[i].op;

		assert(!op || op->cancelled || op->place == OP_FINISHED);
	}
}

static void
op_begin(struct reactor *r, struct op *op, enum op_kind kind, int fd)
{
	assert(reactor_is_current(r));
	assert(!op->busy && op->done);
	op->busy = true;
	op->kind = kind;
	op->fd = fd;
	op->slot = OP_SLOT_NONE;
	op->small = NULL;
	op->cancelled = false;
	op->polled = false;
	r->ops.live++;
	if (op_is_file(op))
		counter_set(&r->counters.file_ops, ++r->ops.file_live);
	op_submit(r, op);
}

void
op_accept(struct reactor *r, struct op *op, int listen_fd)
{
	op->buf = NULL;
	op->len = 0;
	op->flags = 0;
	op_begin(r, op, OP_ACCEPT, listen_fd);
}

void
op_recv(struct reactor *r, struct op *op, int fd, void *buf, uint32_t len,
	int flags)
{
	assert(len > 0);
	op->buf = buf;
	op->len = len;
	op->flags = flags;
	op->offset = 0;
	op_begin(r, op, OP_RECV, fd);
}

void
op_recv_small(struct reactor *r, struct op *op, int fd)
{
	op->buf = NULL;
	op->len = IO_SMALL_BYTES;
	op->flags = 0;
	op->offset = 0;
	op_begin(r, op, OP_RECV_SMALL, fd);
}

void
op_sendmsg(struct reactor *r, struct op *op, int fd, const struct msghdr *msg)
{
	op->buf = (void *)msg; /* only read */
	op->len = 0;
	op->flags = MSG_NOSIGNAL;
	op_begin(r, op, OP_SENDMSG, fd);
}

/* As many parameters as pwritev2 has, and whose.
 * NOLINTBEGIN(readability-function-size) */
void
op_read(struct reactor *r, struct op *op, int fd, void *buf, uint32_t len,
	uint64_t offset, int rwf)
{
	op->buf = buf;
	op->len = len;
	op->offset = offset;
	op->flags = rwf;
	op->blocks = false;
	op->nowait = true;
	op->tells = false;
	op_begin(r, op, OP_READ, fd);
}

void
op_write(struct reactor *r, struct op *op, int fd, const void *buf,
	 uint32_t len, uint64_t offset, int rwf, bool tells)
{
	op->buf = (void *)buf; /* only read */
	op->len = len;
	op->offset = offset;
	op->flags = rwf;
	op->blocks = false;
	op->nowait = true;
	op->tells = tells;
	op_begin(r, op, OP_WRITE, fd);
}
/* NOLINTEND(readability-function-size) */

void
op_cancel(struct reactor *r, struct op *op)
{
	assert(reactor_is_current(r));
	assert(op->busy);
	if (op->cancelled)
		return;
	op->cancelled = true;
	if (op->place == OP_RUNNING) {
		r->backend->cancel(r, op);
	} else if (op->place == OP_WAITING) {
		op_list_remove(&r->ops.waiting, op);
		op_finish(r, op, -ECANCELED);
	} else if (op->place == OP_SMALL_WAIT) {
		op_list_remove(&r->small.waiting, op);
		op_finish(r, op, -ECANCELED);
	}
}

void *
small_hold(struct reactor *r, uint32_t i)
{
	struct small_pool *s = &r->small;

	assert(i < SMALL_BUFFERS && !s->held[i] && s->free > 0);
	s->held[i] = true;
	s->free--;
	return s->base + (size_t)i * IO_SMALL_BYTES;
}

void
small_give(struct reactor *r, void *small)
{
	struct small_pool *s = &r->small;
	size_t at = (size_t)((uint8_t *)small - s->base);
	uint32_t i = (uint32_t)(at / IO_SMALL_BYTES);

	assert(reactor_is_current(r));
	assert(at % IO_SMALL_BYTES == 0 && i < SMALL_BUFFERS && s->held[i]);
	s->held[i] = false;
	s->free++;
	r->backend->small_back(r, i);
}
