/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of replies to libnfs's structs, for wire.c. No byte is trusted: what
 * ends early, or says that more follows than does, sets bad. RFC 1813.
 */
#ifndef NVNFSD_WIRE_REPLY_H
#define NVNFSD_WIRE_REPLY_H

#include "tests/bench/load.h"

enum { PROC_NULL = 0, PROC_READ = 6, PROC_WRITE = 7, PROC_COMMIT = 21 };

/* Bytes of a reply, bounds checked; sticky. */
struct cursor {
	const char *at;
	size_t left;
	bool bad;
};

union result {
	WRITE3res write;
	READ3res read;
	COMMIT3res commit;
};

const char *cursor_skip(struct cursor *c, size_t n);
uint32_t cursor_u32(struct cursor *c);
/* The result of a procedure; data stays where it lies. */
void result_take(struct cursor *c, unsigned proc, union result *res);

#endif
