/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of which all XDR codecs are made, over libtirpc's memory streams (RFC
 * 4506). What is read goes through the library's bounds checks; bytes of
 * variable length are left where they lie. For the codecs only.
 */
#ifndef NVNFSD_XDR_H
#define NVNFSD_XDR_H

#include <rpc/xdr.h>
#include <stdbool.h>
#include <stdint.h>

static inline bool
get_u32(XDR *x, uint32_t *ret)
{
	return xdr_u_int32_t(x, ret);
}

static inline uint64_t
take_u64(int32_t **run)
{
	uint64_t high = IXDR_GET_U_INT32(*run);

	return high << 32 | IXDR_GET_U_INT32(*run);
}

/*
 * Fixed runs of words are copied out first (a few words at most): libtirpc has
 * no inline pointer to give when the stream begins off a word boundary.
 */
static inline bool
get_u64(XDR *x, uint64_t *ret)
{
	int32_t word[2], *run = word;

	if (!XDR_GETBYTES(x, (char *)word, sizeof(word)))
		return false;
	*ret = take_u64(&run);
	return true;
}

/* An enumeration whose values are 0 to max; a boolean is one (RFC 4506, 4.4),
 * which xdr_bool would not insist on. */
static inline bool
get_enum(XDR *x, uint32_t max, uint32_t *ret)
{
	return get_u32(x, ret) && *ret <= max;
}

static inline bool
get_bool(XDR *x, bool *ret)
{
	uint32_t value;

	if (!get_enum(x, 1, &value))
		return false;
	*ret = value;
	return true;
}

/* n bytes and their filler where they lie; NULL when they are not there. */
static inline const uint8_t *
get_inline(XDR *x, uint32_t n)
{
	uint32_t padded = RNDUP(n), pos;
	const int32_t *p;

	if (padded < n)
		return NULL;
	p = XDR_INLINE(x, padded);
	if (p)
		return (const uint8_t *)p;
	/* Not there, or a stream off a word boundary: step over it instead. */
	pos = XDR_GETPOS(x);
	if (padded > UINT32_MAX - pos || !XDR_SETPOS(x, pos + padded))
		return NULL;
	return (const uint8_t *)x->x_base + pos;
}

/* Nothing may be left over: a byte more would be read if there was one. */
static inline bool
at_end(XDR *x)
{
	char byte;

	return !XDR_GETBYTES(x, &byte, 1);
}

static inline bool
put_u32(XDR *x, uint32_t v)
{
	return xdr_u_int32_t(x, &v);
}

static inline void
store_u64(int32_t **run, uint64_t v)
{
	IXDR_PUT_U_INT32(*run, v >> 32);
	IXDR_PUT_U_INT32(*run, v);
}

static inline bool
put_u64(XDR *x, uint64_t v)
{
	int32_t word[2], *run = word;

	store_u64(&run, v);
	return XDR_PUTBYTES(x, (char *)word, sizeof(word));
}

static inline bool
put_bytes(XDR *x, const void *data, uint32_t n)
{
	return put_u32(x, n) && xdr_opaque(x, (char *)data, n);
}

#endif
