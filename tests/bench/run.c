/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workload of nvnfsd-load: which record goes next, its request and its
 * reply. RFC 1813, 3.3.6 and 3.3.7.
 *
 * A slot holds one record from its first request to its last reply. A short
 * reply sends the rest; a lost connection sends the whole request again.
 */
#include "tests/bench/load.h"
#include "tests/bench/wire.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define COMMIT_ROUNDS_MAX 1000u
#define PAGE_BYTES        4096u

static void slot_send(struct slot *s);

volatile sig_atomic_t run_interrupted;

/* Does a writer that has come to the end begin again? */
static bool
goes_on(const struct load *l)
{
	return !l->settling && (l->opt.seconds > 0 ||
				(l->opt.until_interrupt && !run_interrupted));
}

static uint64_t
random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

void
load_file_name(const struct load *l, unsigned n, char *name, size_t size)
{
	if (l->opt.files == 1)
		(void)snprintf(name, size, "%s", l->opt.file);
	else
		(void)snprintf(name, size, "%s.%u", l->opt.file, n);
}

/* In sequence: the first record of each file, the second of each, and so on, so
 * that a writer stays with its file where there is one for each. */
static void
order_fill(struct load *l)
{
	uint64_t state = l->opt.seed * 2 + 1;
	uint64_t limit = l->opt.operations_max;

	for (uint32_t i = 0; i < l->record_count; i++)
		l->order[i] =
			i % l->opt.files * l->file_records + i / l->opt.files;
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

/* What stays the same of each slot, and how many each connection has. */
static int
slots_init(struct load *l)
{
	const struct load_options *o = &l->opt;
	unsigned *on_conn = calloc(o->connections, sizeof(*on_conn));

	if (on_conn == NULL)
		return -1;
	for (unsigned i = 0; i < l->slots_all; i++) {
		struct slot *s = &l->slots[i];
		unsigned conn;

		s->load = l;
		s->writer = i % l->slot_count % o->writers;
		conn = s->writer % o->connections;
		s->number = on_conn[conn]++;
		if (on_conn[conn] > l->conn_slots)
			l->conn_slots = on_conn[conn];
		if (i >= l->slot_count) {
			s->lead = &l->slots[i - l->slot_count];
			s->lead->twin = s;
		}
		if (o->op != LOAD_WRITE)
			continue;
		s->payload = malloc(o->record_bytes);
		if (s->payload == NULL)
			break;
	}
	free(on_conn);
	return o->op == LOAD_WRITE && !l->slots[l->slots_all - 1].payload ? -1
									  : 0;
}

int
run_init(struct load *l)
{
	const struct load_options *o = &l->opt;
	char name[256];

	l->file_records = (uint32_t)((o->file_bytes + o->record_bytes - 1) /
				     o->record_bytes);
	l->record_count = l->file_records * o->files;
	l->slot_count = l->slots_all = o->writers * o->in_flight;
	if (o->split == SPLIT_TOGETHER)
		l->slots_all *= 2;
	l->files = calloc(o->files, sizeof(*l->files));
	l->records = calloc(l->record_count, sizeof(*l->records));
	l->order = calloc(l->record_count, sizeof(*l->order));
	l->cursor = calloc(o->writers, sizeof(*l->cursor));
	l->writer_done = calloc(o->writers, sizeof(*l->writer_done));
	l->slots = calloc(l->slots_all, sizeof(*l->slots));
	if (!l->files || !l->records || !l->order || !l->cursor ||
	    !l->writer_done || !l->slots || slots_init(l) < 0)
		return -1;
	for (unsigned i = 0; i < o->files; i++) {
		load_file_name(l, i, name, sizeof(name));
		l->files[i].key = pattern_key(name, o->generation);
	}
	order_fill(l);
	return 0;
}

void
run_fini(struct load *l)
{
	for (unsigned i = 0; l->slots != NULL && i < l->slots_all; i++)
		free(l->slots[i].payload);
	for (unsigned i = 0; l->files != NULL && i < l->opt.files; i++)
		free(l->files[i].fh.data.data_val);
	free(l->root.data.data_val);
	free(l->files);
	free(l->records);
	free(l->order);
	free(l->cursor);
	free(l->writer_done);
	free(l->slots);
}

static uint64_t
record_offset(const struct load *l, uint32_t record)
{
	return (uint64_t)(record % l->file_records) * l->opt.record_bytes;
}

uint32_t
record_len(const struct load *l, uint32_t record)
{
	uint64_t offset = record_offset(l, record);
	uint64_t left = l->opt.file_bytes - offset;

	return left < l->opt.record_bytes ? (uint32_t)left
					  : l->opt.record_bytes;
}

/* Where the first of two requests for a record ends: at its last page boundary,
 * or with the record. */
static uint32_t
record_cut(const struct load *l, uint64_t offset, uint32_t len)
{
	uint64_t cut = (offset + len) & ~(uint64_t)(PAGE_BYTES - 1);

	if (l->opt.split == SPLIT_NONE || cut <= offset)
		return len;
	return (uint32_t)(cut - offset);
}

/* The rest of the lead's record. */
static void
twin_take(struct slot *lead, struct slot *s)
{
	s->busy = lead->cut < lead->len;
	if (!s->busy)
		return;
	s->file = lead->file;
	s->record = lead->record;
	s->offset = lead->offset + lead->cut;
	s->len = s->cut = lead->len - lead->cut;
	s->done = 0;
	lead->len = lead->cut;
}

static void
slot_next(struct slot *s)
{
	struct load *l = s->load;
	uint64_t i =
		(uint64_t)l->cursor[s->writer] * l->opt.writers + s->writer;

	s->busy = false;
	if (i >= l->order_count && goes_on(l)) {
		l->cursor[s->writer] = 0;
		i = s->writer;
	}
	if (l->stop || l->over || i >= l->order_count)
		return;
	l->cursor[s->writer]++;
	s->record = l->order[i];
	s->file = &l->files[s->record / l->file_records];
	s->offset = record_offset(l, s->record);
	s->len = record_len(l, s->record);
	s->cut = record_cut(l, s->offset, s->len);
	s->done = 0;
	s->busy = true;
	s->start_ns = now_ns();
	l->records[s->record].begun = false;
	if (s->twin != NULL)
		twin_take(s, s->twin);
	slot_send(s);
	if (s->twin != NULL && s->twin->busy)
		slot_send(s->twin);
}

/* All that was asked for by s has come; with its twin, if it has one, the
 * record is finished. */
static void
slot_done(struct slot *s)
{
	struct slot *lead = s->lead ? s->lead : s;
	struct load *l = s->load;
	uint64_t now = now_ns();
	uint64_t tick = (now - l->start_ns) / TICK_NS;

	s->busy = false;
	if (lead->busy || (lead->twin != NULL && lead->twin->busy))
		return;
	histogram_add(&l->latency, now - lead->start_ns);
	l->last_reply_ns = now;
	l->operations++;
	l->writer_done[lead->writer]++;
	if (tick < TICKS_MAX) {
		l->tick_bytes[tick] += record_len(l, lead->record);
		l->ticks = (unsigned)tick + 1;
	}
	if (l->opt.seconds > 0 &&
	    now - l->start_ns >= l->opt.seconds * 1000000000u)
		l->over = true;
	slot_next(lead);
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
	if (ok->committed >= DATA_SYNC && !r->begun) {
		r->state = RECORD_STABLE;
	} else if (ok->committed < DATA_SYNC) {
		/* A record in pieces is as old as its first. */
		if (!r->begun || r->state == RECORD_STABLE)
			r->verf = verf;
		r->state = RECORD_UNSTABLE;
	}
	r->begun = true;
}

static void
write_done(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	struct slot *s = private_data;
	struct load *l = s->load;
	const WRITE3res *res = data;
	const WRITE3resok *ok;
	uint32_t end;

	if (!slot_answered(s, status, data))
		return;
	if (res->status != NFS3_OK) {
		slot_fail(s, "WRITE", nfsstat3_to_str((int)res->status));
		return;
	}
	ok = &res->WRITE3res_u.resok;
	end = s->done < s->cut ? s->cut : s->len;
	if (ok->count == 0 || ok->count > end - s->done) {
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
	l->short_replies += s->done < end;
	if (s->done < s->len)
		slot_send(s);
	else
		slot_done(s);
}

static void
read_check(struct slot *s, const READ3resok *ok)
{
	struct load *l = s->load;
	uint64_t at = s->offset + s->done;
	uint32_t good;

	if (!l->opt.verify)
		return;
	good = pattern_check(s->file->key, at, ok->data.data_val, ok->count);
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

static int
send_write(struct slot *s)
{
	struct load *l = s->load;
	uint32_t end = s->done < s->cut ? s->cut : s->len;
	WRITE3args args = { .file = s->file->fh,
			    .offset = s->offset + s->done,
			    .count = end - s->done,
			    .stable = l->opt.stable };

	pattern_fill(s->file->key, args.offset, s->payload, args.count);
	args.data.data_len = args.count;
	args.data.data_val = s->payload;
	if (l->opt.raw) {
		wire_write(s->conn->wire, s->number, &args, write_done, s);
		return 0;
	}
	return rpc_nfs3_write_async(s->conn->rpc, write_done, &args, s);
}

static int
send_read(struct slot *s)
{
	READ3args args = { .file = s->file->fh,
			   .offset = s->offset + s->done,
			   .count = s->len - s->done };

	if (s->load->opt.raw) {
		wire_read(s->conn->wire, s->number, &args, read_done, s);
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
		wire_null(s->conn->wire, s->number, null_done, s);
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
	for (unsigned i = 0; i < l->slots_all; i++) {
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
	for (unsigned i = 0; i < l->slots_all; i++)
		if (l->slots[i].busy && (l->slots[i].queued || !l->stop))
			return true;
	return false;
}

/* Everything in l->order, once. */
static bool
pass(struct load *l)
{
	memset(l->cursor, 0, l->opt.writers * sizeof(*l->cursor));
	for (unsigned i = 0; i < l->slots_all; i++)
		l->slots[i].conn =
			&l->conns[l->slots[i].writer % l->opt.connections];
	for (unsigned i = 0; i < l->slot_count; i++)
		slot_next(&l->slots[i]);
	while (busy(l))
		if (conn_turn(l) < 0)
			return false;
	return !l->stop;
}

bool
run(struct load *l)
{
	bool good;

	while (l->conns[0].state != CONN_READY)
		if (conn_turn(l) < 0)
			return false;
	l->start_ns = l->last_reply_ns = now_ns();
	good = l->opt.op == LOAD_COMMIT ? commit_all(l) : pass(l);
	l->over = false;
	l->settling = true;
	l->stable_ns = l->last_reply_ns;
	for (unsigned i = 0; good && any_unstable(l); i++) {
		if (i == COMMIT_ROUNDS_MAX) {
			load_fail(l, "the verifier never stays the same");
			return false;
		}
		good = commit_all(l);
		if (!good)
			break;
		l->stable_ns = now_ns();
		if (l->order_count > 0)
			good = pass(l);
	}
	if (good && l->opt.syncfs != NULL)
		good = sync_file_system(l);
	return good && l->errors == 0 && l->mismatches == 0;
}
