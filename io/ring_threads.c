/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads backend: the same operations by plain system calls, where
 * io_uring is refused and for debugging. Sockets wait in one epoll instance a
 * reactor and are served on its thread; file operations are calls that block,
 * on workers (op_work.c).
 *
 * A socket's descriptor stays as it is (MSG_DONTWAIT does it), but a listening
 * one is made non-blocking. A descriptor is registered when first an operation
 * has to wait for it and leaves the epoll set by being closed; one-shot
 * registrations mean that a descriptor nobody waits for says nothing.
 */
#include "io/compat.h"
#include "io/reactor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define POLLER_EVENTS 64

/* Operations that wait for one descriptor, in the order they came. */
struct poller_fd {
	struct op_list in, out;
};

struct poller {
	int epoll_fd;
	struct poller_fd *fd; /* by number */
	size_t fds;
	uint32_t small[SMALL_BUFFERS]; /* free ones, a stack */
	uint32_t smalls;
};

static void
poller_close(struct reactor *r)
{
	struct poller *p = r->poller;

	if (!p)
		return;
	if (p->epoll_fd >= 0)
		close(p->epoll_fd);
	free(p->fd);
	free(p);
	r->poller = NULL;
}

static int
poller_open(struct reactor *r)
{
	struct poller *p = calloc(1, sizeof(*p));
	struct epoll_event ev = { .events = EPOLLIN };
	int err;

	if (!p)
		return -ENOMEM;
	r->poller = p;
	ev.data.fd = r->wake_fd;
	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->epoll_fd < 0 ||
	    epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, r->wake_fd, &ev) < 0) {
		err = -errno;
		poller_close(r);
		return err;
	}
	while (p->smalls < SMALL_BUFFERS) {
		p->small[p->smalls] = SMALL_BUFFERS - 1 - p->smalls;
		p->smalls++;
	}
	buf_pool_lock(r->pool);
	return 0;
}

static int
poller_enter(struct reactor *r)
{
	return 0;
}

static void
poller_leave(struct reactor *r)
{
}

static struct poller_fd *
poller_fd(struct poller *p, int fd)
{
	size_t want = (size_t)fd + 1;
	struct poller_fd *bigger;

	if (want <= p->fds)
		return &p->fd[fd];
	if (want < 2 * p->fds)
		want = 2 * p->fds;
	bigger = realloc(p->fd, want * sizeof(*bigger));
	if (!bigger)
		return NULL;
	memset(bigger + p->fds, 0, (want - p->fds) * sizeof(*bigger));
	p->fd = bigger;
	p->fds = want;
	return &p->fd[fd];
}

static int
poller_arm(struct poller *p, int fd)
{
	struct poller_fd *f = &p->fd[fd];
	struct epoll_event ev = { .events = EPOLLONESHOT };

	ev.data.fd = fd;
	if (f->in.head)
		ev.events |= EPOLLIN | EPOLLRDHUP;
	if (f->out.head)
		ev.events |= EPOLLOUT;
	if (epoll_ctl(p->epoll_fd, EPOLL_CTL_MOD, fd, &ev) == 0)
		return 0;
	if (errno == ENOENT &&
	    epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &ev) == 0)
		return 0;
	return -errno;
}

/* Receive what is there; with MSG_WAITALL go on until all is. */
static int
poller_recv(struct op *op)
{
	int flags = (op->flags & ~MSG_WAITALL) | MSG_DONTWAIT;
	uint32_t have;
	ssize_t n;

	do {
		have = (uint32_t)op->offset;
		n = recv(op->fd, (uint8_t *)op->buf + have, op->len - have,
			 flags);
		if (n > 0)
			op->offset += (uint64_t)n;
		if (n > 0 && op->offset < op->len && op->flags & MSG_WAITALL)
			n = -1, errno = EINTR;
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN && !op->offset)
		return -EAGAIN;
	if (n < 0 && errno == EAGAIN && op->flags & MSG_WAITALL)
		return -EAGAIN;
	if (op->offset > 0)
		return (int)op->offset;
	return n < 0 ? -errno : 0;
}

static int
poller_recv_small(struct reactor *r, struct op *op)
{
	struct poller *p = r->poller;
	uint32_t i;
	ssize_t n;

	if (p->smalls == 0)
		return -ENOBUFS;
	i = p->small[p->smalls - 1];
	n = recv(op->fd, r->small.base + (size_t)i * IO_SMALL_BYTES, op->len,
		 MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	if (n > 0) {
		p->smalls--;
		op->small = small_hold(r, i);
	}
	return (int)n;
}

/* -EAGAIN: wait for the descriptor. */
static int
poller_try(struct reactor *r, struct op *op)
{
	ssize_t n;

	switch (op->kind) {
	case OP_ACCEPT:
		n = accept4(op->fd, NULL, NULL, SOCK_CLOEXEC);
		return n < 0 ? -errno : (int)n;
	case OP_RECV:
		return poller_recv(op);
	case OP_RECV_SMALL:
		return poller_recv_small(r, op);
	default:
		assert(op->kind == OP_SENDMSG);
		n = sendmsg(op->fd, op->buf, op->flags | MSG_DONTWAIT);
		return n < 0 ? -errno : (int)n;
	}
}

/* True: op is done with, finished or waiting for a small buffer. */
static bool
poller_attempt(struct reactor *r, struct op *op)
{
	int res = poller_try(r, op);

	if (res == -EAGAIN || res == -EINTR)
		return false;
	if (res == -ENOBUFS && op->kind == OP_RECV_SMALL)
		op_wait_small(r, op);
	else
		op_finish(r, op, res);
	return true;
}

static void
poller_serve(struct reactor *r, struct op_list *l)
{
	struct op *op;

	while ((op = l->head) != NULL) {
		struct op *next = op->next;

		if (!poller_attempt(r, op))
			break;
		l->head = next;
	}
}

static void
poller_fail(struct reactor *r, struct op_list *l, int err)
{
	struct op *op;

	while ((op = op_list_pop(l)) != NULL)
		op_finish(r, op, err);
}

static void
poller_submit_socket(struct reactor *r, struct op *op)
{
	struct poller_fd *f = poller_fd(r->poller, op->fd);
	struct op_list *l;
	int err;

	if (!f) {
		op_finish(r, op, -ENOMEM);
		return;
	}
	if (op->kind == OP_ACCEPT &&
	    fcntl(op->fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0) {
		op_finish(r, op, -errno);
		return;
	}
	l = op->kind == OP_SENDMSG ? &f->out : &f->in;
	if (!l->head && poller_attempt(r, op))
		return;
	op_list_push(l, op);
	err = poller_arm(r->poller, op->fd);
	if (err)
		poller_fail(r, l, err);
}

static bool
poller_submit(struct reactor *r, struct op *op)
{
	if (op->kind != OP_READ && op->kind != OP_WRITE) {
		poller_submit_socket(r, op);
		return true;
	}
	op_work(r, op);
	return true;
}

/* A file operation is left to end by itself. */
static void
poller_cancel(struct reactor *r, struct op *op)
{
	struct poller_fd *f;

	if (op->kind == OP_READ || op->kind == OP_WRITE)
		return;
	f = &r->poller->fd[op->fd];
	op_list_remove(op->kind == OP_SENDMSG ? &f->out : &f->in, op);
	if (op->kind == OP_RECV && op->offset > 0)
		op_finish(r, op, (int)op->offset);
	else
		op_finish(r, op, -ECANCELED);
}

/* No call of ours says -EAGAIN; one that a fault point makes goes once more,
 * as it would with the ring. */
static bool
poller_again(struct reactor *r, struct op *op)
{
	if (op->kind != OP_READ && op->kind != OP_WRITE)
		return false;
	if (op->res != -EAGAIN || !op->nowait || op->cancelled)
		return false;
	op->nowait = false;
	op_submit(r, op);
	return true;
}

static void
poller_small_back(struct reactor *r, uint32_t i)
{
	struct poller *p = r->poller;

	assert(p->smalls < SMALL_BUFFERS);
	p->small[p->smalls++] = i;
}

static void
poller_event(struct reactor *r, const struct epoll_event *ev)
{
	struct poller *p = r->poller;
	struct poller_fd *f;
	uint64_t count;
	int err;

	if (ev->data.fd == r->wake_fd) {
		ssize_t n = read(r->wake_fd, &count, sizeof(count));

		assert(n == sizeof(count));
		return;
	}
	f = &p->fd[ev->data.fd];
	poller_serve(r, &f->in);
	poller_serve(r, &f->out);
	if (!f->in.head && !f->out.head)
		return;
	err = poller_arm(p, ev->data.fd);
	if (err) {
		poller_fail(r, &f->in, err);
		poller_fail(r, &f->out, err);
	}
}

static void
poller_wait(struct reactor *r, uint64_t timeout_ns)
{
	struct epoll_event ev[POLLER_EVENTS];
	uint64_t ms = timeout_ns / NS_PER_MS + (timeout_ns % NS_PER_MS > 0);
	int n;

	if (fault_interrupted())
		return;
	if (ms > INT_MAX)
		ms = INT_MAX;
	n = epoll_wait(r->poller->epoll_fd, ev, POLLER_EVENTS, (int)ms);
	assert(n >= 0 || errno == EINTR);
	for (int i = 0; i < n; i++)
		poller_event(r, &ev[i]);
}

static void
poller_settle(struct reactor *r)
{
	const struct engine_config *c = engine_config(r->engine);

	r->sqpoll_error = c->sqpoll ? -EOPNOTSUPP : 0;
	r->busy_poll_error = c->busy_poll_us > 0 ? -EOPNOTSUPP : 0;
	r->iopoll_error = c->iopoll ? -EOPNOTSUPP : 0;
}

const struct backend backend_threads = {
	.open = poller_open,
	.close = poller_close,
	.enter = poller_enter,
	.settle = poller_settle,
	.leave = poller_leave,
	.submit = poller_submit,
	.cancel = poller_cancel,
	.again = poller_again,
	.small_back = poller_small_back,
	.wait = poller_wait,
};
