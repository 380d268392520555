/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounds-checked reader over XDR bytes (RFC 4506), private to rpc/. It reads
 * in place and copies nothing. Failure is sticky: after the first read past the
 * end every value is 0 and failed stays set, so a decoder checks once.
 */
#ifndef NVNFSD_RPC_CURSOR_H
#define NVNFSD_RPC_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cursor {
	const uint8_t *at;
	uint32_t left;
	bool failed;
};

static inline uint32_t
cursor_u32(struct cursor *c)
{
	const uint8_t *p = c->at;

	if (c->left < 4) {
		c->left = 0;
		c->failed = true;
		return 0;
	}
	c->at += 4;
	c->left -= 4;
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	       (uint32_t)p[2] << 8 | p[3];
}

/* n bytes of opaque data and the padding after them; NULL past the end. */
static inline const uint8_t *
cursor_opaque(struct cursor *c, uint32_t n)
{
	const uint8_t *p = c->at;
	uint64_t padded = ((uint64_t)n + 3) & ~(uint64_t)3;

	if (c->left < padded) {
		c->left = 0;
		c->failed = true;
		return NULL;
	}
	c->at += padded;
	c->left -= (uint32_t)padded;
	return p;
}

#endif
