/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Record marking: streams of records, in fragments of every kind, come out as
 * they went in, wherever the input is cut; limits and endless empty fragments
 * are told as early as they can be.
 */
#include "rpc/rpc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STREAM_BYTES_MAX 8192

/* A stream of fragments as sent, or records as received. */
struct stream {
	uint8_t bytes[STREAM_BYTES_MAX];
	uint32_t n;
	uint32_t ends[64]; /* where records end */
	uint32_t records;
};

static void
put_mark(struct stream *s, uint32_t n, bool last)
{
	uint8_t mark[4];

	record_mark(mark, n);
	if (!last)
		mark[0] &= 0x7f;
	memcpy(s->bytes + s->n, mark, 4);
	s->n += 4;
}

/* n payload bytes, each unlike its neighbours; also into the record that is
 * to come out. */
static void
put_fragment(struct stream *wire, struct stream *records, uint32_t n, bool last)
{
	uint32_t i;

	put_mark(wire, n, last);
	for (i = 0; i < n; i++) {
		uint8_t byte = (uint8_t)(records->n * 37 + 11);

		wire->bytes[wire->n++] = byte;
		records->bytes[records->n++] = byte;
	}
	if (last)
		records->ends[records->records++] = records->n;
}

/* Feed one piece, collect what comes out. 0 or the error. */
static int
feed(struct record *r, const uint8_t *in, uint32_t n, struct stream *out)
{
	struct record_span span;
	int used;

	while (n > 0) {
		used = record_feed(r, in, n, &span);
		if (used < 0)
			return used;
		assert_in_range(used, 1, n);
		/* The span is what the call used last. */
		assert_ptr_equal(span.data + span.bytes, in + used);
		memcpy(out->bytes + out->n, span.data, span.bytes);
		out->n += span.bytes;
		if (span.end) {
			out->ends[out->records++] = out->n;
			assert_false(r->inside);
			assert_int_equal(r->fragment_left, 0);
		}
		in += used;
		n -= (uint32_t)used;
	}
	return 0;
}

static void
assert_same(const struct stream *got, const struct stream *want)
{
	assert_int_equal(got->n, want->n);
	assert_memory_equal(got->bytes, want->bytes, want->n);
	assert_int_equal(got->records, want->records);
	assert_memory_equal(got->ends, want->ends,
			    want->records * sizeof(want->ends[0]));
}

/* Pieces of step bytes; 0: all at once. */
static void
check_cut(const struct stream *wire, const struct stream *want, uint32_t step)
{
	struct stream got = { .n = 0 };
	struct record r;
	uint32_t at, n;

	record_init(&r, 4096);
	for (at = 0; at < wire->n; at += n) {
		n = step == 0 || step > wire->n - at ? wire->n - at : step;
		assert_int_equal(feed(&r, wire->bytes + at, n, &got), 0);
	}
	assert_same(&got, want);
	assert_false(r.inside);
	assert_int_equal(r.mark_bytes, 0);
}

/* Cut in two places: every pair. */
static void
check_all_cuts(const struct stream *wire, const struct stream *want)
{
	uint32_t first, second;
	struct record r;

	for (first = 0; first <= wire->n; first++) {
		for (second = first; second <= wire->n; second++) {
			struct stream got = { .n = 0 };

			record_init(&r, 4096);
			feed(&r, wire->bytes, first, &got);
			feed(&r, wire->bytes + first, second - first, &got);
			feed(&r, wire->bytes + second, wire->n - second, &got);
			assert_same(&got, want);
		}
	}
}

/* A record of 12 bytes in fragments cut at every place, then another. */
static void
every_fragment_boundary(void **state)
{
	uint32_t cut;

	for (cut = 0; cut <= 12; cut++) {
		struct stream wire = { .n = 0 }, want = { .n = 0 };

		put_fragment(&wire, &want, cut, false);
		put_fragment(&wire, &want, 12 - cut, true);
		put_fragment(&wire, &want, 3, true);
		check_cut(&wire, &want, 0);
		check_all_cuts(&wire, &want);
	}
}

/* Fragments of one byte each, the input one byte at a time. */
static void
one_byte_fragments(void **state)
{
	struct stream wire = { .n = 0 }, want = { .n = 0 };
	uint32_t i, step;

	for (i = 0; i < 40; i++)
		put_fragment(&wire, &want, 1, i % 10 == 9);
	for (step = 0; step < 50; step++)
		check_cut(&wire, &want, step);
}

static void
empty_fragments(void **state)
{
	struct stream wire = { .n = 0 }, want = { .n = 0 };

	put_fragment(&wire, &want, 0, false);
	put_fragment(&wire, &want, 0, false);
	put_fragment(&wire, &want, 5, false);
	put_fragment(&wire, &want, 0, false);
	put_fragment(&wire, &want, 0, true); /* ends a record of 5 */
	put_fragment(&wire, &want, 0, true); /* a record of 0 */
	put_fragment(&wire, &want, 1, true);
	assert_int_equal(want.records, 3);
	check_all_cuts(&wire, &want);
}

static void
many_records_in_one_input(void **state)
{
	struct stream wire = { .n = 0 }, want = { .n = 0 };
	uint32_t i, step;

	for (i = 0; i < 60; i++)
		put_fragment(&wire, &want, i, true);
	for (step = 0; step < 200; step++)
		check_cut(&wire, &want, step);
}

static void
nothing_fed(void **state)
{
	struct record_span span = { .bytes = 9, .end = true };
	struct record r;
	uint8_t byte = 0;

	record_init(&r, 16);
	assert_int_equal(record_feed(&r, &byte, 0, &span), 0);
	assert_int_equal(span.bytes, 0);
	assert_false(span.end);
	assert_false(r.inside);
}

static void
torn_mark_is_inside(void **state)
{
	static const uint8_t mark[4] = { 0x80, 0, 0, 7 };
	struct record_span span;
	struct record r;
	unsigned i;

	record_init(&r, 16);
	for (i = 0; i < 4; i++) {
		assert_int_equal(record_feed(&r, mark + i, 1, &span), 1);
		assert_int_equal(span.bytes, 0);
		assert_false(span.end);
		assert_true(r.inside);
	}
	assert_int_equal(r.fragment_left, 7);
	assert_true(r.last);
}

/* The rest of a record received straight into place, in two steps. */
static void
skip_payload(void **state)
{
	struct stream wire = { .n = 0 }, want = { .n = 0 }, got = { .n = 0 };
	struct record r;

	put_fragment(&wire, &want, 10, false);
	put_fragment(&wire, &want, 20, true);
	put_fragment(&wire, &want, 5, true);
	record_init(&r, 30);
	assert_int_equal(feed(&r, wire.bytes, 4 + 3, &got), 0);
	assert_int_equal(r.fragment_left, 7);
	assert_false(record_skip(&r, 7)); /* the fragment, not the record */
	assert_true(r.inside);
	assert_int_equal(r.bytes, 10);
	assert_int_equal(feed(&r, wire.bytes + 14, 4, &got), 0);
	assert_int_equal(r.fragment_left, 20);
	assert_false(record_skip(&r, 0));
	assert_false(record_skip(&r, 19));
	assert_true(record_skip(&r, 1));
	assert_false(record_skip(&r, 0)); /* ended once */
	assert_false(r.inside);
	assert_int_equal(r.bytes, 30);
	assert_int_equal(feed(&r, wire.bytes + 38, 9, &got), 0);
	assert_int_equal(got.records, 1);
	assert_int_equal(r.bytes, 5);
}

/* The mark alone tells, whole or by the last of its bytes. */
static void
limit(void **state)
{
	struct stream wire = { .n = 0 }, want = { .n = 0 }, got = { .n = 0 };
	struct record_span span;
	struct record r;

	put_fragment(&wire, &want, 100, true);
	put_mark(&wire, 101, true);
	record_init(&r, 100);
	assert_int_equal(feed(&r, wire.bytes, 104, &got), 0);
	assert_same(&got, &want);
	assert_int_equal(record_feed(&r, wire.bytes + 104, 3, &span), 3);
	assert_int_equal(record_feed(&r, wire.bytes + 107, 1, &span),
			 -EMSGSIZE);
}

static void
limit_over_fragments(void **state)
{
	struct stream wire = { .n = 0 }, want = { .n = 0 }, got = { .n = 0 };
	struct record r;

	put_fragment(&wire, &want, 60, false);
	put_fragment(&wire, &want, 40, false);
	put_mark(&wire, 1, true);
	record_init(&r, 100);
	assert_int_equal(feed(&r, wire.bytes, wire.n - 4, &got), 0);
	assert_same(&got, &want);
	assert_int_equal(feed(&r, wire.bytes + wire.n - 4, 4, &got), -EMSGSIZE);
}

/* Lengths near 2^31 and limits near 2^32 must not wrap. */
static void
limit_no_wrap(void **state)
{
	struct stream wire = { .n = 0 }, want = { .n = 0 }, got = { .n = 0 };
	struct record r;

	put_fragment(&wire, &want, 1, false);
	put_mark(&wire, 0x7fffffff, true);
	record_init(&r, 0x7fffffff);
	assert_int_equal(feed(&r, wire.bytes, wire.n, &got), -EMSGSIZE);
	record_init(&r, UINT32_MAX);
	assert_int_equal(feed(&r, wire.bytes, wire.n, &got), 0);
	assert_int_equal(r.fragment_left, 0x7fffffff);
	assert_false(record_skip(&r, 0x7ffffffe));
	assert_true(record_skip(&r, 1));
	assert_int_equal(r.bytes, 0x80000000u);
}

static int
feed_empties(uint32_t n)
{
	struct stream wire = { .n = 0 }, want = { .n = 0 }, got = { .n = 0 };
	struct record r;
	uint32_t i;

	put_fragment(&wire, &want, 0, true); /* is another record's */
	for (i = 0; i < n; i++)
		put_fragment(&wire, &want, 0, false);
	put_fragment(&wire, &want, 4, true);
	record_init(&r, 16);
	return feed(&r, wire.bytes, wire.n, &got);
}

static void
endless_empties(void **state)
{
	assert_int_equal(feed_empties(1024), 0);
	assert_int_equal(feed_empties(1025), -EBADMSG);
}

static void
mark_bytes(void **state)
{
	static const uint8_t want[4] = { 0x80, 0x12, 0x34, 0x56 };
	static const uint8_t most[4] = { 0xff, 0xff, 0xff, 0xff };
	uint8_t mark[4];

	record_mark(mark, 0x123456);
	assert_memory_equal(mark, want, 4);
	record_mark(mark, 0x7fffffff);
	assert_memory_equal(mark, most, 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_fragment_boundary),
		cmocka_unit_test(one_byte_fragments),
		cmocka_unit_test(empty_fragments),
		cmocka_unit_test(many_records_in_one_input),
		cmocka_unit_test(nothing_fed),
		cmocka_unit_test(torn_mark_is_inside),
		cmocka_unit_test(skip_payload),
		cmocka_unit_test(limit),
		cmocka_unit_test(limit_over_fragments),
		cmocka_unit_test(limit_no_wrap),
		cmocka_unit_test(endless_empties),
		cmocka_unit_test(mark_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
