/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fault points of a reactor's operations (built with -Dfault=true only): what
 * fault.c says of an operation is done here, on either side of the backend, so
 * that the code below and above runs as it always does. Reactor's thread.
 */
#include "io/reactor.h"

#include <stdlib.h>

/* A copy of a message that ends early. */
struct short_message {
	struct msghdr msg;
	struct iovec iov[];
};

static struct short_message *
message_shorten(const struct msghdr *msg)
{
	size_t total = 0;
	struct short_message *s;

	for (size_t i = 0; i < msg->msg_iovlen; i++)
		total += msg->msg_iov[i].iov_len;
	s = malloc(sizeof(*s) + msg->msg_iovlen * sizeof(s->iov[0]));
	if (!s)
		return NULL;
	s->msg = *msg;
	s->msg.msg_iov = s->iov;
	total = fault_short((uint32_t)total);
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		s->iov[i] = msg->msg_iov[i];
		if (s->iov[i].iov_len > total)
			s->iov[i].iov_len = total;
		total -= s->iov[i].iov_len;
	}
	return s;
}

static void
op_shorten(struct op *op, struct op_slot *s)
{
	if (op->kind != OP_SENDMSG) {
		op->len = fault_short(op->len);
		return;
	}
	s->copy = message_shorten(op->buf);
	if (s->copy)
		op->buf = s->copy;
}

static void
op_delay(struct reactor *r, struct op *op, uint32_t ms)
{
	r->ops.slot[op->slot].due_ns = clock_ns() + ms * NS_PER_MS;
	op->place = OP_DELAYED;
	op_list_push(&r->ops.delayed, op);
}

bool
op_fault_start(struct reactor *r, struct op *op)
{
	struct op_slot *s = &r->ops.slot[op->slot];

	s->fault = fault_next(op->kind);
	s->told_late = false;
	if (s->fault.error) {
		op_finish(r, op, s->fault.error);
		return true;
	}
	if (s->fault.shorten)
		op_shorten(op, s);
	if (s->fault.delay_ms == 0)
		return false;
	op_delay(r, op, s->fault.delay_ms);
	return true;
}

bool
op_fault_finish(struct reactor *r, struct op *op)
{
	struct op_slot *s;

	if (op->slot == OP_SLOT_NONE)
		return false;
	s = &r->ops.slot[op->slot];
	if (s->fault.late_ms == 0 || s->told_late)
		return false;
	s->told_late = true;
	op_delay(r, op, s->fault.late_ms);
	return true;
}

void
op_fault_end(struct reactor *r, struct op *op)
{
	struct op_slot *s = &r->ops.slot[op->slot];

	free(s->copy);
	s->copy = NULL;
	s->fault = (struct fault){ 0 };
}

void
ops_fault_due(struct reactor *r)
{
	struct op_list list = r->ops.delayed;
	uint64_t now = clock_ns();
	struct op *op;

	r->ops.delayed = (struct op_list){ 0 };
	while ((op = op_list_pop(&list)) != NULL) {
		const struct op_slot *s = &r->ops.slot[op->slot];

		if (now < s->due_ns)
			op_list_push(&r->ops.delayed, op);
		else if (s->told_late)
			op_finish(r, op, op->res);
		else
			op_submit(r, op);
	}
}

uint64_t
ops_fault_sleep_ns(const struct reactor *r)
{
	uint64_t now = clock_ns(), least = UINT64_MAX;

	for (const struct op *op = r->ops.delayed.head; op; op = op->next) {
		uint64_t due = r->ops.slot[op->slot].due_ns;
		uint64_t left = due > now ? due - now : 0;

		if (left < least)
			least = left;
	}
	return least;
}
