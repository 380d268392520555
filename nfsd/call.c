/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call from its whole record to its reply: judged (RFC 5531), looked up in
 * the table, checked against the duplicate request cache, run where the table
 * says, encoded, and handed to its connection. Also the slots that calls live
 * in: a shard owns SHARD_CALLS of them, call_free is the only way back.
 *
 * All of it runs on the call's reactor, but for call_work, which runs a plain
 * procedure on a worker thread; a slot has one owner at any time.
 */
#include "nfsd/server.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Slots ------------------------------------------------------------------- */

struct call *
call_new(struct shard *s, struct conn *conn)
{
	struct call *c;

	if (s->free_count == 0)
		return NULL;
	c = &s->calls[s->free_calls[--s->free_count]];
	assert(c->magic == 0);
	memset(c, 0, offsetof(struct call, rq));
	memset(&c->rq, 0, offsetof(struct request, res));
	c->magic = CALL_MAGIC;
	c->shard = s;
	c->conn = conn;
	c->at_ns[CALL_FIRST] = reactor_now_ns(s->reactor);
	stat_add(&s->stats.calls_in_service, 1);
	conn->calls++;
	return c;
}

void
call_free(struct call *c)
{
	struct shard *s = c->shard;
	struct conn *conn = c->conn;
	struct buf_pool *pool = reactor_pool(s->reactor);

	assert(c->magic == CALL_MAGIC && c->drc == NULL);
	if (c->waiting)
		buf_unwait(pool, &c->body_waiter);
	if (c->attached)
		LIST_REMOVE(c, attached_link);
	if (c->row != NULL && c->row->tail == TAIL_LIST)
		free((void *)c->tail); /* const to the sender only */
	if (c->row != NULL && c->row->where == RUN_DATA)
		data_fini(c);
	if (c->room.base != NULL)
		buf_give(pool, &c->room);
	if (c->body.base != NULL)
		buf_give(pool, &c->body);
	if (c->rq.exports != NULL)
		export_table_put(c->rq.exports);
	conn->held_bytes -= c->held_bytes;
	stat_add(&s->stats.calls_in_service, (uint64_t)-1);
	c->magic = 0;
	s->free_calls[s->free_count++] = (uint16_t)(c - s->calls);
	if (shard_starving(s))
		shard_wake(s);
	conn_unref(conn);
}

void
call_hold(struct call *c, size_t bytes)
{
	c->held_bytes += bytes;
	c->conn->held_bytes += bytes;
}

/* Replies -------------------------------------------------------------------
 */

/* The reply is encoded: remember it where a retry may ask for it. False: one
 * that came meanwhile has got it, and c is to be freed. Any thread. */
static bool
call_keep(struct call *c)
{
	struct call *newest;

	if (c->drc == NULL)
		return true;
	newest = drc_done(c->shard->server->drc, c->drc,
			  c->reply + RPC_MARK_BYTES,
			  c->reply_bytes - RPC_MARK_BYTES);
	c->drc = NULL;
	if (newest == NULL)
		return true;
	memcpy(newest->reply, c->reply, c->reply_bytes);
	newest->reply_bytes = c->reply_bytes;
	reactor_post(newest->shard->reactor, &newest->msg);
	return false;
}

static void
call_send(struct call *c)
{
	if (call_keep(c))
		conn_send(c->conn, c);
	else
		call_free(c);
}

/* On a worker: keep the reply, and send it from here where c was alone. True:
 * what is left to do on the reactor can wait. */
static bool
call_send_here(struct call *c)
{
	c->kept = call_keep(c);
	c->sent = CONN_SENT_NOTHING;
	if (c->kept && c->alone)
		c->sent = conn_send_here(c->conn, c);
	return c->sent == CONN_SENT_ALL;
}

/* After call_send_here, on the reactor. */
static void
call_sent(struct call *c)
{
	if (c->kept)
		conn_sent(c->conn, c, c->sent);
	else
		call_free(c);
}

/* As one datagram? A list may be longer: its caller is told so, and may ask
 * again by TCP. */
static bool
call_fits(const struct call *c)
{
	return !c->conn->datagrams ||
	       c->reply_bytes - RPC_MARK_BYTES + c->tail_bytes + c->pad_bytes <=
		       DATAGRAM_BYTES_MAX;
}

/* On the worker or the reactor: header and tail from status and results. */
static void
call_encode(struct call *c)
{
	uint32_t total;
	XDR x;
	bool ok;

	xdrmem_create(&x, (char *)c->reply + RPC_MARK_BYTES + RPC_REPLY_BYTES,
		      NFS3_REPLY_BYTES_MAX, XDR_ENCODE);
	ok = c->row->encode(&x, c->status, &c->rq.res);
	assert(ok && xdr_getpos(&x) <= c->row->reply_bytes_max);
	c->reply_bytes = RPC_MARK_BYTES + RPC_REPLY_BYTES + xdr_getpos(&x);
	xdr_destroy(&x);
	rpc_reply_success(c->reply + RPC_MARK_BYTES, c->rpc.xid);
	if (c->row->tail == TAIL_LIST) {
		c->tail = c->rq.res.list.list;
		c->tail_bytes = c->rq.res.list.list_bytes;
	} else if (c->row->tail == TAIL_ENTRIES && c->status == NFS3_OK) {
		c->tail = c->rq.res.readdir.entries;
		c->tail_bytes = c->rq.res.readdir.entries_bytes;
	} else if (c->row->tail == TAIL_DATA && c->status == NFS3_OK) {
		c->tail = c->io.read.data;
		c->tail_bytes = c->rq.res.read.count;
		c->pad_bytes = -c->tail_bytes & 3;
	}
	if (!call_fits(c)) {
		c->reply_bytes = RPC_MARK_BYTES +
				 rpc_reply_error(c->reply + RPC_MARK_BYTES,
						 &c->rpc, RPC_SYSTEM_ERR);
		c->tail_bytes = 0;
	}
	total = c->reply_bytes - RPC_MARK_BYTES + c->tail_bytes + c->pad_bytes;
	record_mark(c->reply, total);
}

void
call_reply(struct call *c)
{
	call_encode(c);
	call_send(c);
}

static void
call_sent_run(struct message *m)
{
	call_sent(container_of(m, struct call, msg));
}

void
call_reply_anywhere(struct call *c)
{
	struct reactor *r = c->shard->reactor;

	if (!c->alone) {
		assert(reactor_is_current(r));
		call_reply(c);
		return;
	}
	call_encode(c);
	c->msg.run = call_sent_run;
	if (call_send_here(c))
		reactor_post_quiet(r, &c->msg);
	else
		reactor_post(r, &c->msg);
}

static void
call_reject(struct call *c, enum rpc_verdict v)
{
	uint32_t n;

	stat_add(&c->shard->stats.rejected, 1);
	n = rpc_reply_error(c->reply + RPC_MARK_BYTES, &c->rpc, v);
	record_mark(c->reply, n);
	c->reply_bytes = RPC_MARK_BYTES + n;
	conn_send(c->conn, c);
}

/* Duplicate requests ----------------------------------------------------------
 */

/* The first call's reply was put into ours, or a newer retry took our place. */
static void
call_resumed(struct message *m)
{
	struct call *c = container_of(m, struct call, msg);

	assert(c->magic == CALL_MAGIC && c->attached);
	LIST_REMOVE(c, attached_link);
	c->attached = false;
	if (c->abandoned)
		call_free(c);
	else
		conn_send(c->conn, c);
}

/* True: run it. False: it was answered, or waits for its first. */
static bool
call_first(struct call *c, const uint8_t *bytes, uint32_t n)
{
	struct drc *d = c->shard->server->drc;
	struct drc_key key;
	struct call *replaced = NULL;
	uint32_t reply_bytes = 0;
	enum drc_verdict v;

	memset(&key, 0, sizeof(key));
	key.xid = c->rpc.xid;
	key.prog = c->rpc.prog;
	key.vers = c->rpc.vers;
	key.proc = c->rpc.proc;
	key.addr = c->conn->peer;
	key.checksum = drc_checksum(d, bytes, n);
	/* Before drc_begin: the first's end may post to us at once. */
	c->msg.run = call_resumed;
	c->attached = true;
	LIST_INSERT_HEAD(&c->conn->attached, c, attached_link);
	v = drc_begin(d, &key, c, &c->drc, c->reply + RPC_MARK_BYTES,
		      &reply_bytes, (void **)&replaced);
	if (v == DRC_ATTACHED) {
		if (replaced != NULL) {
			replaced->abandoned = true;
			reactor_post(replaced->shard->reactor, &replaced->msg);
		}
		return false;
	}
	LIST_REMOVE(c, attached_link);
	c->attached = false;
	if (v != DRC_REPLAY)
		return true;
	record_mark(c->reply, reply_bytes);
	c->reply_bytes = RPC_MARK_BYTES + reply_bytes;
	conn_send(c->conn, c);
	return false;
}

/* Running
 * ---------------------------------------------------------------------- */

static struct call *
call_of_work(struct work *w)
{
	return container_of(w, struct call, work);
}

/* On a worker thread. */
static void
call_work(struct work *w)
{
	struct call *c = call_of_work(w);

	memset(&c->rq.res, 0, sizeof(c->rq.res));
	c->at_ns[CALL_TAKEN] = monotonic_ns();
	c->status = c->row->run(&c->rq);
	if (c->rq.wants_names)
		return;
	call_encode(c);
	c->at_ns[CALL_LANDED] = monotonic_ns();
	w->quiet = call_send_here(c);
}

/* It has done nothing yet but to ask for a name that is not known: where it may
 * wait for it, again. */
static void
call_work_again(struct call *c)
{
	c->rq.wants_names = false;
	work_submit(c->shard->server->engine, WORK_NAMES, &c->work);
}

static void
call_work_done(struct work *w)
{
	struct call *c = call_of_work(w);

	if (c->rq.wants_names)
		call_work_again(c);
	else
		call_sent(c);
}

static void
call_submit(struct call *c)
{
	c->work.run = call_work;
	c->work.done = call_work_done;
	c->work.reactor = c->shard->reactor;
	c->work.quiet = false;
	c->rq.quick = true;
	c->alone = c->conn->calls == 1;
	work_submit(c->shard->server->engine, WORK_META, &c->work);
}

static void
room_ready(struct buf_waiter *w)
{
	struct call *c = container_of(w, struct call, body_waiter);

	c->waiting = false;
	c->rq.room = c->room.base;
	c->rq.room_bytes = c->room.bytes;
	call_submit(c);
}

/* READDIR's list wants room before it runs. */
static void
call_find_room(struct call *c)
{
	struct buf_pool *pool = reactor_pool(c->shard->reactor);
	uint32_t want = c->rq.args.readdir.maxcount;

	if (want > CALL_ROOM_BYTES_MAX)
		want = CALL_ROOM_BYTES_MAX;
	if (c->conn->datagrams && want > DATAGRAM_DATA_MAX)
		want = DATAGRAM_DATA_MAX;
	if (want < IO_SMALL_BYTES)
		want = IO_SMALL_BYTES;
	call_hold(c, want);
	c->body_waiter.ready = room_ready;
	c->body_waiter.bytes = want;
	c->body_waiter.buf = &c->room;
	if (buf_take(pool, &c->room, want) == 0) {
		room_ready(&c->body_waiter);
		return;
	}
	c->waiting = true;
	buf_wait(pool, &c->body_waiter);
}

static void
call_run(struct call *c)
{
	struct server *s = c->shard->server;

	call_trace(c);
	stat_add(&c->shard->stats
			  .calls[nfsd_proc_number(c->program, c->rpc.proc)],
		 1);
	if (c->row->where == RUN_INLINE) {
		c->status = NFS3_OK;
		call_reply(c);
		return;
	}
	c->rq.server = s;
	c->rq.client = (const struct sockaddr *)&c->conn->peer;
	c->rq.local = (const struct sockaddr *)&c->conn->local;
	c->rq.datagram = c->conn->datagrams;
	c->rq.cred = &c->rpc.cred;
	c->rq.exports = server_exports_get(s);
	if (c->row->where == RUN_WARM && warm_run(c))
		call_reply(c);
	else if (c->row->where == RUN_DATA)
		data_begin(c);
	else if (c->row->tail == TAIL_ENTRIES)
		call_find_room(c);
	else
		call_submit(c);
}

/* Decode the arguments of what the table found. */
static bool
call_decode(struct call *c, const uint8_t *bytes, uint32_t n)
{
	XDR x;
	bool ok;

	if (c->program == PROGRAM_NFS3 && c->rpc.proc == NFSPROC3_WRITE &&
	    (c->phase != CALL_BODY || c->body_have != c->body_need))
		return false;
	xdrmem_create(&x, (char *)bytes + c->rpc.header_bytes,
		      n - c->rpc.header_bytes, XDR_DECODE);
	ok = c->row->decode(&x, &c->rq.args);
	xdr_destroy(&x);
	return ok;
}

/* In any version, at the port that it came to? */
static bool
is_served(const struct call *c)
{
	unsigned i;

	for (i = 0; i < PROGRAMS; i++)
		if (nfsd_programs[i].prog == c->rpc.prog &&
		    listener_serves(c->conn->listener, i))
			return true;
	return false;
}

static enum rpc_verdict
call_find(struct call *c)
{
	enum rpc_verdict v;
	unsigned row;

	if (!is_served(c))
		return RPC_PROG_UNAVAIL;
	v = rpc_program_find(nfsd_programs, PROGRAMS, &c->rpc, &row);
	if (v != RPC_OK)
		return v;
	c->program = row;
	c->row = nfsd_row(row, c->rpc.proc);
	return c->row->decode != NULL ? RPC_OK : RPC_PROC_UNAVAIL;
}

void
call_begin(struct call *c)
{
	const uint8_t *bytes = c->head;
	uint32_t n = c->head_bytes;
	enum rpc_verdict v;

	c->at_ns[CALL_WHOLE] = reactor_now_ns(c->shard->reactor);
	if (c->phase == CALL_LINEAR) {
		bytes = c->body.base;
		n = c->body_have;
	}
	v = rpc_call_decode(&c->rpc, bytes, n, true);
	if (v == RPC_NOT_A_CALL || v == RPC_SHORT) {
		/* No call to answer, but its record was well framed. */
		stat_add(&c->shard->stats.rejected, 1);
		call_free(c);
		return;
	}
	if (v == RPC_OK)
		v = call_find(c);
	if (v == RPC_OK && !call_decode(c, bytes, n))
		v = RPC_GARBAGE_ARGS;
	c->phase = CALL_SERVICE;
	if (v != RPC_OK) {
		c->row = NULL;
		call_reject(c, v);
		return;
	}
	if (c->row->idempotent || call_first(c, bytes, n))
		call_run(c);
}
