/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sending half of a connection. Replies go out in the order in which they
 * became ready, one send at a time, all that are ready in one send.
 *
 * A worker may send the reply of a call that is the only one in service, where
 * it stands: the caller then waits for one change of thread less. Whose turn it
 * is to send is the connection's sender; a worker holds it for one call of
 * sendmsg(2) that does not block, or until the reactor has sent the rest.
 */
#include "nfsd/server.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* So much in one send: what it carries is given back when all of it is out, and
 * the caller's next READs wait for that. */
#define SEND_BYTES (1u << 20)

static const uint8_t zeros[4];

static struct conn *
conn_of_send(struct op *op)
{
	return container_of(op, struct conn, send_op);
}

static uint32_t
call_total(const struct call *call)
{
	return call->reply_bytes + call->tail_bytes + call->pad_bytes;
}

static void
iov_add(struct msghdr *msg, const void *base, size_t bytes, uint32_t *skip)
{
	struct iovec *v = &msg->msg_iov[msg->msg_iovlen];
	uint32_t cut = *skip < bytes ? *skip : (uint32_t)bytes;

	*skip -= cut;
	if (bytes == cut)
		return;
	v->iov_base = (uint8_t *)base + cut;
	v->iov_len = bytes - cut;
	msg->msg_iovlen++;
}

/* At most CALL_IOV parts. */
static void
iov_add_call(struct msghdr *msg, const struct call *call)
{
	uint32_t skip = call->sent_bytes;

	iov_add(msg, call->reply, call->reply_bytes, &skip);
	iov_add(msg, call->tail, call->tail_bytes, &skip);
	iov_add(msg, zeros, call->pad_bytes, &skip);
}

/* The reactor's turn? Else the worker that sends will come back to it. */
static bool
sender_claim(struct conn *c)
{
	unsigned char was = SENDER_NONE;

	if (atomic_compare_exchange_strong(&c->sender, &was, SENDER_REACTOR))
		return true;
	assert(was == SENDER_WORKER || was == SENDER_WANTED);
	/* It may have let go in between. */
	return !atomic_compare_exchange_strong(&c->sender, &was,
					       SENDER_WANTED) &&
	       was == SENDER_NONE && sender_claim(c);
}

static void
send_done(struct op *op, int res)
{
	struct conn *c = conn_of_send(op);
	struct call *call;
	uint32_t left = res > 0 ? (uint32_t)res : 0, n;

	assert(c->magic == CONN_MAGIC && c->sending);
	c->sending = false;
	atomic_store(&c->sender, SENDER_NONE);
	if (res > 0)
		c->send_ns = reactor_now_ns(c->shard->reactor);
	c->running = true; /* what is freed below must not run us again */
	while (left > 0 && (call = STAILQ_FIRST(&c->ready)) != NULL) {
		n = call_total(call) - call->sent_bytes;
		if (left < n) {
			call->sent_bytes += left;
			break;
		}
		left -= n;
		STAILQ_REMOVE_HEAD(&c->ready, ready_link);
		call_note(call);
		call_free(call);
	}
	c->running = false;
	if (res <= 0 && res != -EINTR && res != -EAGAIN &&
	    c->state != CONN_ENDING) {
		conn_end(c);
		return;
	}
	conn_flush(c);
	conn_run(c);
}

void
conn_flush(struct conn *c)
{
	struct call *call;
	size_t bytes = 0;

	if (c->sending || c->state == CONN_ENDING || STAILQ_EMPTY(&c->ready) ||
	    !sender_claim(c))
		return;
	memset(&c->msg, 0, sizeof(c->msg));
	c->msg.msg_iov = c->iov;
	STAILQ_FOREACH (call, &c->ready, ready_link) {
		if (c->msg.msg_iovlen + CALL_IOV > CONN_IOV ||
		    bytes >= SEND_BYTES)
			break;
		iov_add_call(&c->msg, call);
		bytes += call_total(call);
	}
	c->sending = true;
	c->send_op.done = send_done;
	op_sendmsg(c->shard->reactor, &c->send_op, c->fd, &c->msg);
}

void
conn_send(struct conn *c, struct call *call)
{
	if (c->state == CONN_ENDING) {
		call_free(call);
		return;
	}
	if (STAILQ_EMPTY(&c->ready))
		c->send_ns = reactor_now_ns(c->shard->reactor);
	STAILQ_INSERT_TAIL(&c->ready, call, ready_link);
	/* Else conn_run does it, with whatever else it makes ready. */
	if (!c->running)
		conn_flush(c);
}

enum conn_sent
conn_send_here(struct conn *c, struct call *call)
{
	struct iovec iov[CALL_IOV];
	struct msghdr msg = { .msg_iov = iov };
	unsigned char was = SENDER_NONE;
	ssize_t n;

	if (!atomic_compare_exchange_strong(&c->sender, &was, SENDER_WORKER))
		return CONN_SENT_NOTHING;
	iov_add_call(&msg, call);
	n = sendmsg(c->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n > 0 && (size_t)n < call_total(call)) {
		call->sent_bytes = (uint32_t)n;
		return CONN_SENT_SOME;
	}
	if (n > 0)
		call->sent_ns = monotonic_ns();
	was = atomic_exchange(&c->sender, SENDER_NONE);
	if (n <= 0)
		return CONN_SENT_NOTHING;
	return was == SENDER_WANTED ? CONN_SENT_FLUSH : CONN_SENT_ALL;
}

void
conn_sent(struct conn *c, struct call *call, enum conn_sent how)
{
	if (how == CONN_SENT_NOTHING) {
		conn_send(c, call);
		return;
	}
	if (how == CONN_SENT_SOME) {
		atomic_store(&c->sender, SENDER_NONE);
		if (c->state == CONN_ENDING) {
			call_free(call);
			return;
		}
		c->send_ns = reactor_now_ns(c->shard->reactor);
		STAILQ_INSERT_HEAD(&c->ready, call, ready_link);
		conn_flush(c);
		return;
	}
	conn_flush(c);
	call_note(call);
	call_free(call);
}
