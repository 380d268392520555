/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP record marking (RFC 5531, section 11): finds records in a byte stream,
 * whatever pieces it arrives in. A struct record belongs to one connection and
 * its thread, lives in the connection, and owns nothing. It knows neither the
 * socket nor what a record means.
 */
#include "rpc/rpc.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#define LAST_FRAGMENT 0x80000000u

/* No sender has a reason for many: beyond this it only keeps us busy. */
#define EMPTY_FRAGMENTS_MAX 1024u

void
record_init(struct record *r, uint32_t bytes_max)
{
	memset(r, 0, sizeof(*r));
	r->bytes_max = bytes_max;
}

static void
record_begin(struct record *r)
{
	r->inside = true;
	r->bytes = 0;
	r->empties = 0;
}

/* A mark is complete. 0, or the error that ends the connection. */
static int
record_open_fragment(struct record *r)
{
	uint32_t word = (uint32_t)r->mark[0] << 24 |
			(uint32_t)r->mark[1] << 16 | (uint32_t)r->mark[2] << 8 |
			r->mark[3];
	uint32_t bytes = word & ~LAST_FRAGMENT;

	r->mark_bytes = 0;
	r->last = (word & LAST_FRAGMENT) != 0;
	r->fragment_left = bytes;
	/* bytes never passes bytes_max, so the difference does not wrap. */
	if (bytes > r->bytes_max - r->bytes)
		return -EMSGSIZE;
	if (bytes == 0 && ++r->empties > EMPTY_FRAGMENTS_MAX)
		return -EBADMSG;
	return 0;
}

/* Take n payload bytes of the fragment as received; does the record end? */
static bool
record_advance(struct record *r, uint32_t n)
{
	r->fragment_left -= n;
	r->bytes += n;
	if (r->fragment_left != 0 || !r->last)
		return false;
	r->last = false; /* ended once: the next n = 0 ends nothing */
	r->inside = false;
	return true;
}

int
record_feed(struct record *r, const uint8_t *in, uint32_t n,
	    struct record_span *span)
{
	uint32_t used = 0;
	int error;

	assert(n <= INT_MAX);
	span->data = in;
	span->bytes = 0;
	span->end = false;
	/* Marks first, over as many empty fragments as there are. */
	while (r->fragment_left == 0 && !span->end && used < n) {
		if (!r->inside)
			record_begin(r);
		r->mark[r->mark_bytes++] = in[used++];
		if (r->mark_bytes < sizeof(r->mark))
			continue;
		error = record_open_fragment(r);
		if (error != 0)
			return error;
		if (r->fragment_left == 0)
			span->end = record_advance(r, 0);
	}
	span->data = in + used;
	if (r->fragment_left != 0 && used < n) {
		span->bytes = n - used < r->fragment_left ? n - used
							  : r->fragment_left;
		span->end = record_advance(r, span->bytes);
	}
	return (int)(used + span->bytes);
}

bool
record_skip(struct record *r, uint32_t n)
{
	assert(n <= r->fragment_left);
	return record_advance(r, n);
}

void
record_mark(uint8_t mark[4], uint32_t n)
{
	assert(n < LAST_FRAGMENT);
	n |= LAST_FRAGMENT;
	mark[0] = (uint8_t)(n >> 24);
	mark[1] = (uint8_t)(n >> 16);
	mark[2] = (uint8_t)(n >> 8);
	mark[3] = (uint8_t)n;
}
