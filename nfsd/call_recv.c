/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiving half of a call: where the bytes of its record go.
 *
 * The first CALL_PLACE_BYTES of a record are collected in the slot. They are
 * enough to tell a WRITE from the rest and to decode it up to its payload. A
 * WRITE then gets a buffer in which the payload's address is congruent to the
 * file offset modulo the page, so that the middle can go to the device from
 * where it was received. Other records stay in the slot, or move as a whole
 * into a buffer where they outgrow it.
 *
 * Nothing is judged here: a record that is no valid call takes the common path
 * and is answered by call.c.
 */
#include "nfsd/server.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

enum examined { EXAMINE_MORE, EXAMINE_WRITE, EXAMINE_OTHER };

static uint32_t
page_bytes(void)
{
	return (uint32_t)sysconf(_SC_PAGESIZE); /* from the auxiliary vector */
}

/* Is this call for NFS's WRITE, and may this port serve it? */
static bool
is_write(const struct call *c, const struct rpc_call *rpc)
{
	return rpc->prog == NFS3_PROGRAM && rpc->vers == NFS3_VERSION &&
	       rpc->proc == NFSPROC3_WRITE &&
	       listener_serves(c->conn->listener, PROGRAM_NFS3);
}

/* What do the bytes so far say? */
static enum examined
call_examine(struct call *c)
{
	struct rpc_call rpc;
	union nfs3_args args;
	XDR x;
	bool ok;
	enum rpc_verdict v;

	v = rpc_call_decode(&rpc, c->head, c->head_bytes, false);
	if (v == RPC_SHORT)
		return EXAMINE_MORE;
	if (v != RPC_OK || !is_write(c, &rpc))
		return EXAMINE_OTHER;
	xdrmem_create(&x, (char *)c->head + rpc.header_bytes,
		      c->head_bytes - rpc.header_bytes, XDR_DECODE);
	ok = nfs3_decode_write(&x, &args);
	c->payload_at = rpc.header_bytes + xdr_getpos(&x);
	xdr_destroy(&x);
	if (!ok)
		return EXAMINE_MORE; /* garbage, or not there yet */
	if (args.write.data_bytes > IO_TRANSFER_BYTES_MAX)
		return EXAMINE_OTHER;
	c->payload_bytes = args.write.data_bytes;
	c->body_need = (c->payload_bytes + 3) & ~3u;
	c->page_offset = (uint32_t)(args.write.offset % page_bytes());
	c->want_bytes = c->page_offset + c->body_need;
	if (c->want_bytes == 0)
		c->want_bytes = 1; /* an empty WRITE has a payload too */
	c->want_phase = CALL_BODY;
	return EXAMINE_WRITE;
}

/* The slot is full and the record goes on: all of it into one buffer. */
static void
call_outgrow(struct call *c)
{
	c->want_bytes = RECORD_BYTES_MAX;
	c->want_phase = CALL_LINEAR;
	if (c->conn->record.last)
		c->want_bytes =
			c->conn->record.bytes + c->conn->record.fragment_left;
	c->body_need = c->want_bytes;
}

static uint32_t
take_head(struct call *c, const uint8_t *data, uint32_t n)
{
	uint32_t end = c->examined ? CALL_HEAD_BYTES : CALL_PLACE_BYTES;
	uint32_t room = end - c->head_bytes;

	if (n > room)
		n = room;
	memcpy(c->head + c->head_bytes, data, n);
	c->head_bytes += n;
	if (!c->examined) {
		enum examined e = call_examine(c);

		c->examined = e == EXAMINE_OTHER ||
			      (e == EXAMINE_MORE &&
			       c->head_bytes == CALL_PLACE_BYTES);
	} else if (c->head_bytes == CALL_HEAD_BYTES) {
		call_outgrow(c);
	}
	return n;
}

uint32_t
call_take(struct call *c, const uint8_t *data, uint32_t n)
{
	uint8_t *at;
	uint32_t room;

	assert(c->want_bytes == 0 && n > 0);
	if (c->phase == CALL_HEAD)
		return take_head(c, data, n);
	if (!call_place(c, &at, &room)) {
		/* More than the opaque's length: told apart by body_have. */
		c->body_have += n;
		return n;
	}
	if (n > room)
		n = room;
	memcpy(at, data, n);
	call_placed(c, n);
	return n;
}

bool
call_place(struct call *c, uint8_t **at, uint32_t *room)
{
	if (c->phase != CALL_BODY && c->phase != CALL_LINEAR)
		return false;
	if (c->body_have >= c->body_need)
		return false;
	*at = (c->phase == CALL_BODY ? c->payload : c->body.base) +
	      c->body_have;
	*room = c->body_need - c->body_have;
	return true;
}

void
call_placed(struct call *c, uint32_t n)
{
	c->body_have += n;
}

/* The buffer is there: move into it what the slot holds of it. */
static void
call_settle(struct call *c)
{
	uint32_t over;

	c->phase = c->want_phase;
	c->want_bytes = 0;
	call_hold(c, c->body.bytes);
	if (c->phase == CALL_LINEAR) {
		memcpy(c->body.base, c->head, c->head_bytes);
		c->body_have = c->head_bytes;
		return;
	}
	c->payload = c->body.base + c->page_offset;
	over = c->head_bytes - c->payload_at;
	c->body_have = over; /* over body_need: garbage, told by call.c */
	if (over > c->body_need)
		over = c->body_need;
	memcpy(c->payload, c->head + c->payload_at, over);
	c->head_bytes = c->payload_at;
}

static void
buffer_ready(struct buf_waiter *w)
{
	struct call *c = container_of(w, struct call, body_waiter);

	assert(c->magic == CALL_MAGIC && c->waiting);
	c->waiting = false;
	call_settle(c);
	conn_run(c->conn);
}

bool
call_get_buffer(struct call *c)
{
	struct buf_pool *pool = reactor_pool(c->shard->reactor);

	if (c->waiting)
		return false;
	if (buf_take(pool, &c->body, c->want_bytes) == 0) {
		call_settle(c);
		return true;
	}
	c->body_waiter.ready = buffer_ready;
	c->body_waiter.bytes = c->want_bytes;
	c->body_waiter.buf = &c->body;
	c->waiting = true;
	buf_wait(pool, &c->body_waiter);
	return false;
}
