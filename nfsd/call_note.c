/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is noted of a call when its reply has gone out: its latency by client,
 * export and procedure, and, of the slowest, the time of each stage. On the
 * call's reactor. The times themselves were stamped where a stage ended, mostly
 * with the clock that the reactor reads once a turn: a call costs no reading of
 * the clock of its own.
 */
#include "io/trace.h"
#include "nfsd/server.h"
#include "nfsd/slow.h"

#include <string.h>

uint64_t
call_clock_ns(const struct call *c)
{
	const struct shard *s = c->shard;

	if (!reactor_is_current(s->reactor) || s->blocked)
		return monotonic_ns();
	return reactor_now_ns(s->reactor);
}

void
call_stamp(struct call *c, enum call_stamp what)
{
	c->at_ns[what] = call_clock_ns(c);
}

static bool
is_nfs(const struct call *c, uint32_t proc)
{
	return c->program == PROGRAM_NFS3 && c->rpc.proc == proc;
}

static uint32_t
proc_number(const struct call *c)
{
	return nfsd_proc_number(c->program, c->rpc.proc);
}

void
call_trace(const struct call *c)
{
	trace_receive(&c->io, c->rpc.xid, proc_number(c), c->conn->client,
		      c->head_bytes);
}

static void
fill_key(const struct call *c, struct latency_key *k)
{
	k->client = c->conn->client;
	k->export_id = c->rq.export_id;
	k->proc = proc_number(c);
}

/* A stage whose end nobody stamped took no time. */
static void
fill_stages(const struct call *c, uint64_t sent_ns, struct slow_call *s)
{
	uint64_t end[SLOW_STAGES] = {
		[SLOW_RECEIVE] = c->at_ns[CALL_WHOLE],
		[SLOW_QUEUE] = c->at_ns[CALL_TAKEN],
		[SLOW_SPLIT] = c->at_ns[CALL_RANGED],
		[SLOW_IO] = c->at_ns[CALL_LANDED],
		[SLOW_SYNC] = c->at_ns[CALL_DONE],
		[SLOW_REPLY] = sent_ns,
	};
	uint64_t from = c->at_ns[CALL_FIRST];
	unsigned i;

	for (i = 0; i < SLOW_STAGES; i++) {
		if (end[i] < from)
			end[i] = from;
		s->stage_ns[i] = end[i] - from;
		from = end[i];
	}
}

static void
note_slow(struct call *c, const struct latency_call *l, uint64_t sent_ns)
{
	struct slow_call s = { .key = l->key,
			       .xid = c->rpc.xid,
			       .status = c->status,
			       .stable = -1,
			       .split = -1,
			       .begin_ns = c->at_ns[CALL_FIRST],
			       .ns = l->ns };

	if (is_nfs(c, NFSPROC3_READ)) {
		s.offset = c->rq.args.read.offset;
		s.bytes = c->rq.args.read.count;
	} else if (is_nfs(c, NFSPROC3_WRITE)) {
		s.offset = c->rq.args.write.offset;
		s.bytes = c->rq.args.write.count;
		s.stable = (int)c->rq.args.write.stable;
		if (c->at_ns[CALL_LANDED] != 0)
			s.split = (int)c->io.write.split.reason;
	}
	fill_stages(c, sent_ns, &s);
	slow_note(c->shard->slow, &s, sent_ns);
}

void
call_note(struct call *c)
{
	struct shard *s = c->shard;
	uint64_t now_ns = reactor_now_ns(s->reactor);
	/* A worker that has sent it says when. */
	uint64_t sent_ns = c->sent_ns != 0 ? c->sent_ns : now_ns;
	struct latency_call l;

	if (c->row == NULL || c->attached) /* rejected */
		return;
	fill_key(c, &l.key);
	/* Clocks that were read on two threads may be a little apart. */
	l.ns = sent_ns > c->at_ns[CALL_FIRST] ? sent_ns - c->at_ns[CALL_FIRST]
					      : 0;
	l.failed = c->status != NFS3_OK;
	trace_reply(&c->io, c->rpc.xid, l.key.proc, c->status, l.ns);
	l.bytes_in = is_nfs(c, NFSPROC3_WRITE) && !l.failed
			     ? c->rq.res.write.count
			     : 0;
	l.bytes_out = is_nfs(c, NFSPROC3_READ) && !l.failed ? c->tail_bytes : 0;
	latency_note(s->latency, &l, now_ns);
	if (slow_wants(s->slow, l.ns, now_ns))
		note_slow(c, &l, sent_ns);
}
