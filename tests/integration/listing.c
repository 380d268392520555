/* SPDX-License-Identifier: Apache-2.0 */
/* See listing.h (RFC 1813, 3.3.16 and 3.3.17). */
#include "listing.h"

#include <arpa/inet.h>
#include <string.h>

#define FATTR_BYTES 84u

static uint32_t
word(struct listing *l)
{
	uint32_t w;

	assert_true(l->end - l->at >= 4);
	memcpy(&w, l->at, 4);
	l->at += 4;
	return ntohl(w);
}

static uint64_t
hyper(struct listing *l)
{
	uint64_t high = word(l);

	return high << 32 | word(l);
}

static const uint8_t *
bytes(struct listing *l, uint32_t n)
{
	const uint8_t *p = l->at;

	assert_true((uint32_t)(l->end - l->at) >= n);
	l->at += n;
	return p;
}

void
listing_begin(struct listing *l, const struct raw *r, uint32_t proc)
{
	memset(l, 0, sizeof(*l));
	l->at = r->in + r->body;
	l->end = r->in + r->in_bytes;
	l->plus = proc == NFS3_READDIRPLUS;
	assert_int_equal(word(l), NFS3_OK);
	l->bytes = (uint32_t)(l->end - l->at);
	if (word(l) == 1)
		(void)bytes(l, FATTR_BYTES);
	(void)bytes(l, 8); /* cookieverf */
}

static void
take_attr(struct listing *l, struct listed *e)
{
	struct listing in;

	e->has_attr = word(l) == 1;
	if (!e->has_attr)
		return;
	in = *l;
	in.at = bytes(l, FATTR_BYTES);
	e->attr.type = (ftype3)word(&in);
	e->attr.mode = word(&in);
	(void)bytes(&in, 44); /* up to fsid, inclusively */
	e->attr.fileid = hyper(&in);
}

static void
take_handle(struct listing *l, struct listed *e)
{
	e->has_fh = word(l) == 1;
	if (!e->has_fh)
		return;
	e->fh.bytes = word(l);
	assert_in_range(e->fh.bytes, 1, sizeof(e->fh.data));
	memcpy(e->fh.data, bytes(l, (e->fh.bytes + 3) & ~3u), e->fh.bytes);
}

bool
listing_next(struct listing *l, struct listed *e)
{
	const uint8_t *from = l->at;
	uint32_t n, more = word(l);

	memset(e, 0, sizeof(*e));
	if (more == 0) {
		n = word(l);
		assert_in_range(n, 0, 1);
		l->eof = n == 1;
		assert_ptr_equal(l->at, l->end);
		return false;
	}
	assert_int_equal(more, 1);
	e->fileid = hyper(l);
	n = word(l);
	assert_in_range(n, 1, sizeof(e->name) - 1);
	memcpy(e->name, bytes(l, (n + 3) & ~3u), n);
	e->cookie = hyper(l);
	e->dirbytes = 8 + 4 + ((n + 3) & ~3u) + 8;
	if (l->plus) {
		take_attr(l, e);
		take_handle(l, e);
	}
	e->bytes = (uint32_t)(l->at - from);
	l->dirbytes += e->dirbytes;
	return true;
}
