/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Record marking. Input: a byte that sets the record limit, a byte that sets
 * how the stream is cut into pieces, and the stream. What record_feed() and
 * record_skip() make of the pieces must be what a plain walk over the whole
 * stream finds, however it is cut.
 */
#include "rpc/rpc.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <errno.h>

/* All that a reader of the records sees, folded. */
struct trace {
	uint64_t hash;
	uint64_t records;
	uint64_t bytes;
	int error;
};

static void
trace_bytes(struct trace *t, const uint8_t *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		t->hash = (t->hash ^ p[i]) * 0x100000001b3u;
	t->bytes += n;
}

static void
trace_end(struct trace *t)
{
	t->hash = (t->hash ^ 0x100) * 0x100000001b3u;
	t->records++;
}

/* The walk: the RFC's words, on a stream that is all there. */
static void
walk(struct trace *t, const uint8_t *p, size_t n, uint32_t bytes_max)
{
	uint64_t record = 0;
	unsigned empties = 0;

	while (n >= 4) {
		uint32_t bytes = (uint32_t)(p[0] & 0x7f) << 24 | p[1] << 16 |
				 p[2] << 8 | p[3];
		bool last = p[0] >> 7;
		size_t here;

		p += 4;
		n -= 4;
		record += bytes;
		if (record > bytes_max) {
			t->error = -EMSGSIZE;
			return;
		}
		if (bytes == 0 && ++empties > 1024) {
			t->error = -EBADMSG;
			return;
		}
		here = bytes < n ? bytes : n;
		trace_bytes(t, p, here);
		p += here;
		n -= here;
		if (here < bytes)
			return;
		if (last) {
			trace_end(t);
			record = 0;
			empties = 0;
		}
	}
}

/* Feed one piece. Sometimes its payload is taken by record_skip(), as by a
 * receive straight into place. */
static void
feed(struct record *r, struct trace *t, const uint8_t *p, uint32_t n, bool skip)
{
	struct record_span span;
	int used;

	while (n > 0 && t->error == 0) {
		if (skip && r->fragment_left > 0) {
			used = n < r->fragment_left ? (int)n
						    : (int)r->fragment_left;
			trace_bytes(t, p, (size_t)used);
			if (record_skip(r, (uint32_t)used))
				trace_end(t);
		} else {
			used = record_feed(r, p, n, &span);
			if (used < 0) {
				t->error = used;
				return;
			}
			assert(used > 0 && (uint32_t)used <= n);
			assert(span.data + span.bytes == p + used);
			trace_bytes(t, span.data, span.bytes);
			if (span.end)
				trace_end(t);
		}
		assert(r->bytes <= r->bytes_max);
		p += used;
		n -= (uint32_t)used;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const uint32_t limits[] = { 0, 1, 64, 4096, 1u << 22, ~0u };
	struct trace want = { 0 }, got = { 0 };
	uint32_t bytes_max, state;
	struct record r;

	if (n < 2 || n > 1u << 20)
		return 0;
	bytes_max = limits[data[0] % 6];
	state = data[1];
	data += 2;
	n -= 2;
	walk(&want, data, n, bytes_max);
	record_init(&r, bytes_max);
	while (n > 0 && got.error == 0) {
		uint32_t piece = state == 0 ? (uint32_t)n : 1 + state % 23;

		state = state == 0 ? 0 : state * 1103515245u + 12345u;
		if (piece > n)
			piece = (uint32_t)n;
		feed(&r, &got, data, piece, (state >> 16) % 3 == 1);
		data += piece;
		n -= piece;
	}
	assert(got.hash == want.hash && got.records == want.records &&
	       got.bytes == want.bytes && got.error == want.error);
	return 0;
}
