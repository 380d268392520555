/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workload of nvnfsd-load: which record goes next, its request, its reply,
 * and what a client owes unstable data: COMMIT at the end, the verifiers
 * compared, and what a restarted or failed server may have lost sent again
 * (RFC 1813, 3.3.7 and 3.3.21).
 *
 * A slot holds one record from its first request to its last reply. A short
 * reply sends the rest; a lost connection sends the whole request again.
 */
#include "tests/bench/load.h"
#include "tests/bench/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMMIT_ROUNDS_MAX 1000u

static void slot_send(struct slot *s);

static uint64_t
random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void
order_fill(struct load *l)
{
	uint64_t state = l->opt.seed * 2 + 1;
	uint64_t limit = l->opt.operations_max;

	for (uint32_t i = 0; i < l->record_count; i++)
		l->order[i] = i;
	for (uint32_t i = l->record_count; l->opt.random && i > 1; i--) {
		uint32_t j = (uint32_t)(random_next(&state) % i);
		uint32_t t = l->order[i - 1];

		l->order[i - 1] = l->order[j];
		l->order[j] = t;
	}
	l->order_count = l->record_count;
	if (limit != 0 && limit < l->record_count)
		l->order_count = (uint32_t)limit;
}

int
run_init(struct load *l)
{
	const struct load_options *o = &l->opt;

	l->record_count = (uint32_t)((o->file_bytes + o->record_bytes - 1) /
				     o->record_bytes);
	l->slot_count = o->writers * o->in_flight;
	l->key = pattern_key(o->file, o->generation);
	l->records = calloc(l->record_count, sizeof(*l->records));
	l->order = calloc(l->record_count, sizeof(*l->order));
	l->cursor = calloc(o->writers, sizeof(*l->cursor));
	l->slots = calloc(l->slot_count, sizeof(*l->slots));
	if (!l->records || !l->order || !l->cursor || !l->slots)
		return -1;
	for (unsigned i = 0; o->op == LOAD_WRITE && i < l->slot_count; i++) {
		l->slots[i].payload = malloc(o->record_bytes);
		if (l->slots[i].payload == NULL)
			return -1;
	}
	order_fill(l);
	return 0;
}

void
run_fini(struct load *l)
{
	for (unsigned i = 0; l->slots != NULL && i < l->slot_count; i++)
		free(l->slots[i].payload);
	free(l->records);
	free(l->order);
	free(l->cursor);
	free(l->slots);
	free(l->fh.data.data_val);
}

static uint32_t
record_len(const struct load *l, uint32_t record)
{
	uint64_t offset = (uint64_t)record * l->opt.record_bytes;
	uint64_t left = l->opt.file_bytes - offset;

	return left < l->opt.record_bytes ? (uint32_t)left
					  : l->opt.record_bytes;
}

static void
slot_next(struct slot *s)
{
	struct load *l = s->load;
	uint64_t i =
		(uint64_t)l->cursor[s->writer] * l->opt.writers + s->writer;

	s->busy = false;
	if (i >= l->order_count && l->opt.seconds > 0 && !l->settling) {
		l->cursor[s->writer] = 0;
		i = s->writer;
	}
	if (l->stop || l->over || i >= l->order_count)
		return;
	l->cursor[s->writer]++;
	s->record = l->order[i];
	s->offset = (uint64_t)s->record * l->opt.record_bytes;
	s->len = record_len(l, s->record);
	s->done = 0;
	s->busy = true;
	s->start_ns = now_ns();
	slot_send(s);
}

/* The record of s is finished. */
static void
slot_done(struct slot *s)
{
	struct load *l = s->load;
	uint64_t now = now_ns();

	uint64_t second = (now - l->start_ns) / 1000000000u;

	latency_add(l, now - s->start_ns);
	l->last_reply_ns = now;
	l->operations++;
	if (second < SECONDS_MAX) {
		l->second_bytes[second] += s->len;
		l->seconds = (unsigned)second + 1;
	}
	if (l->opt.seconds > 0 && second >= l->opt.seconds)
		l->over = true;
	slot_next(s);
}

static void
slot_fail(struct slot *s, const char *what, const char *why)
{
	load_fail(s->load, "%s at %" PRIu64 ": %s", what, s->offset + s->done,
		  why);
	s->load->stop = true;
	s->busy = false;
}

/* True when data is a result. Otherwise the call was lost with its connection:
 * sent again when that is back, or an error. */
static bool
slot_answered(struct slot *s, int status, const void *data)
{
	s->queued = false;
	s->load->in_service--;
	if (status == RPC_STATUS_SUCCESS)
		return true;
	s->conn->lost = true;
	if (!s->load->opt.reconnect)
		slot_fail(s, "call",
			  status == RPC_STATUS_ERROR && data
				  ? (const char *)data
				  : "connection lost");
	return false;
}

static void
record_written(struct load *l, const struct slot *s, const WRITE3resok *ok)
{
	struct record *r = &l->records[s->record];
	uint64_t verf;

	memcpy(&verf, ok->verf, sizeof(verf));
	if (ok->committed >= DATA_SYNC && s->done == 0) {
		r->state = RECORD_STABLE;
	} else if (ok->committed < DATA_SYNC) {
		/* A record in pieces is as old as its first. */
		if (s->done == 0 || r->state == RECORD_STABLE)
			r->verf = verf;
		r->state = RECORD_UNSTABLE;
	}
}

static void
write_done(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	struct slot *s = private_data;
	struct load *l = s->load;
	const WRITE3res *res = data;
	const WRITE3resok *ok;

	if (!slot_answered(s, status, data))
		return;
	if (res->status != NFS3_OK) {
		slot_fail(s, "WRITE", nfsstat3_to_str((int)res->status));
		return;
	}
	ok = &res->WRITE3res_u.resok;
	if (ok->count == 0 || ok->count > s->len - s->done) {
		slot_fail(s, "WRITE", "count out of range");
		return;
	}
	if (ok->committed < l->opt.stable) {
		slot_fail(s, "WRITE", "committed less than was asked for");
		return;
	}
	record_written(l, s, ok);
	s->done += ok->count;
	l->bytes += ok->count;
	if (s->done < s->len) {
		l->short_replies++;
		slot_send(s);
	} else {
		slot_done(s);
	}
}

static void
read_check(struct slot *s, const READ3resok *ok)
{
	struct load *l = s->load;
	uint64_t at = s->offset + s->done;
	uint32_t good;

	if (!l->opt.verify)
		return;
	good = pattern_check(l->key, at, ok->data.data_val, ok->count);
	if (good < ok->count && l->mismatches++ == 0)
		l->first_mismatch = at + good;
}

static void
read_done(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	struct slot *s = private_data;
	struct load *l = s->load;
	const READ3res *res = data;
	const READ3resok *ok;

	if (!slot_answered(s, status, data))
		return;
	if (res->status != NFS3_OK) {
		slot_fail(s, "READ", nfsstat3_to_str((int)res->status));
		return;
	}
	ok = &res->READ3res_u.resok;
	if (ok->count != ok->data.data_len || ok->count > s->len - s->done) {
		slot_fail(s, "READ", "count out of range");
		return;
	}
	if (ok->count == 0) {
		slot_fail(s, "READ",
			  ok->eof ? "the file ends early"
				  : "no bytes and no end");
		return;
	}
	read_check(s, ok);
	s->done += ok->count;
	l->bytes += ok->count;
	if (s->done < s->len) {
		l->short_replies++;
		slot_send(s);
	} else {
		slot_done(s);
	}
}

static void
null_done(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	if (slot_answered(private_data, status, data))
		slot_done(private_data);
}

static unsigned
slot_number(const struct slot *s)
{
	return (unsigned)(s - s->load->slots);
}

static int
send_write(struct slot *s)
{
	struct load *l = s->load;
	WRITE3args args = { .file = l->fh,
			    .offset = s->offset + s->done,
			    .count = s->len - s->done,
			    .stable = l->opt.stable };

	pattern_fill(l->key, args.offset, s->payload, args.count);
	args.data.data_len = args.count;
	args.data.data_val = s->payload;
	if (l->opt.raw) {
		wire_write(s->conn->wire, slot_number(s), &args, write_done, s);
		return 0;
	}
	return rpc_nfs3_write_async(s->conn->rpc, write_done, &args, s);
}

static int
send_read(struct slot *s)
{
	READ3args args = { .file = s->load->fh,
			   .offset = s->offset + s->done,
			   .count = s->len - s->done };

	if (s->load->opt.raw) {
		wire_read(s->conn->wire, slot_number(s), &args, read_done, s);
		return 0;
	}
	return rpc_nfs3_read_async(s->conn->rpc, read_done, &args, s);
}

static void
slot_send(struct slot *s)
{
	int rc = 0;

	/* run_ready sends it later. */
	if (s->conn->state != CONN_READY || s->conn->lost)
		return;
	if (s->load->opt.op == LOAD_NULL)
		wire_null(s->conn->wire, slot_number(s), null_done, s);
	else
		rc = s->load->opt.op == LOAD_WRITE ? send_write(s)
						   : send_read(s);
	if (rc < 0) {
		slot_fail(s, "queue", rpc_get_error(s->conn->rpc));
		return;
	}
	s->queued = true;
	s->load->in_service++;
}

void
run_ready(struct load *l, struct conn *c)
{
	for (unsigned i = 0; i < l->slot_count; i++) {
		struct slot *s = &l->slots[i];

		if (s->conn == c && s->busy && !s->queued)
			slot_send(s);
	}
}

/* With a slot in service there is no need to look at them all. */
static bool
busy(const struct load *l)
{
	if (l->in_service > 0)
		return true;
	for (unsigned i = 0; i < l->slot_count; i++)
		if (l->slots[i].busy && (l->slots[i].queued || !l->stop))
			return true;
	return false;
}

/* Everything in l->order, once. */
static bool
pass(struct load *l)
{
	memset(l->cursor, 0, l->opt.writers * sizeof(*l->cursor));
	for (unsigned i = 0; i < l->slot_count; i++) {
		struct slot *s = &l->slots[i];

		s->load = l;
		s->writer = i % l->opt.writers;
		s->conn = &l->conns[s->writer % l->opt.connections];
		slot_next(s);
	}
	while (busy(l))
		if (conn_turn(l) < 0)
			return false;
	return !l->stop;
}

static void
commit_done(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	struct load *l = private_data;
	const COMMIT3res *res = data;

	l->committing = false;
	if (status != RPC_STATUS_SUCCESS) {
		l->conns[0].lost = true;
		return;
	}
	if (res->status != NFS3_OK) {
		load_fail(l, "COMMIT: %s", nfsstat3_to_str((int)res->status));
		l->stop = true;
		return;
	}
	l->commits++;
	l->committed = true;
	memcpy(&l->commit_verf, res->COMMIT3res_u.resok.verf,
	       sizeof(l->commit_verf));
}

static bool
commit(struct load *l)
{
	COMMIT3args args = { .file = l->fh };

	l->committed = false;
	while (!l->committed) {
		struct conn *c = &l->conns[0];

		if (!l->committing && c->state == CONN_READY && !c->lost) {
			if (l->opt.raw)
				wire_commit(c->wire, l->slot_count, &args,
					    commit_done, l);
			else if (rpc_nfs3_commit_async(c->rpc, commit_done,
						       &args, l) < 0)
				return false;
			l->committing = true;
		}
		if (conn_turn(l) < 0 || l->stop)
			return false;
	}
	return true;
}

/* What the COMMIT made stable, and in l->order what it did not. */
static void
settle(struct load *l)
{
	l->order_count = 0;
	for (uint32_t i = 0; i < l->record_count; i++) {
		struct record *r = &l->records[i];

		if (r->state != RECORD_UNSTABLE)
			continue;
		if (r->verf == l->commit_verf) {
			r->state = RECORD_STABLE;
			continue;
		}
		l->order[l->order_count++] = i;
		l->bytes -= record_len(l, i); /* counted when sent again */
	}
	if (l->order_count > 0)
		l->verifier_changes++;
	l->resent += l->order_count;
}

static bool
any_unstable(const struct load *l)
{
	for (uint32_t i = 0; i < l->record_count; i++)
		if (l->records[i].state == RECORD_UNSTABLE)
			return true;
	return false;
}

/* What the server has answered for may still hang on the file system's own log;
 * a server that answered early pays here. */
static bool
sync_file_system(struct load *l)
{
	int fd = open(l->opt.syncfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool good = fd >= 0 && syncfs(fd) == 0;

	if (!good)
		load_fail(l, "syncfs %s: %s", l->opt.syncfs, strerror(errno));
	if (fd >= 0)
		(void)close(fd);
	l->stable_ns = now_ns();
	return good;
}

bool
run(struct load *l)
{
	bool good;

	while (l->conns[0].state != CONN_READY)
		if (conn_turn(l) < 0)
			return false;
	l->start_ns = l->last_reply_ns = now_ns();
	good = pass(l);
	l->over = false;
	l->settling = true;
	l->stable_ns = l->last_reply_ns;
	for (unsigned i = 0; good && any_unstable(l); i++) {
		if (i == COMMIT_ROUNDS_MAX) {
			load_fail(l, "the verifier never stays the same");
			return false;
		}
		good = commit(l);
		if (!good)
			break;
		settle(l);
		l->stable_ns = now_ns();
		if (l->order_count > 0)
			good = pass(l);
	}
	if (good && l->opt.syncfs != NULL)
		good = sync_file_system(l);
	return good && l->errors == 0 && l->mismatches == 0;
}
