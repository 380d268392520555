/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For integration tests: the entries of a READDIR or READDIRPLUS reply, taken
 * from its bytes one by one, with how many bytes each has. (libnfs builds lists
 * out of misaligned nodes.) Fails the running test on a malformed reply.
 */
#ifndef NVNFSD_TESTS_LISTING_H
#define NVNFSD_TESTS_LISTING_H

#include "ask.h"

struct listing {
	const uint8_t *at, *end;
	bool plus;
	bool eof;          /* once listing_next has said false */
	uint32_t bytes;    /* of the whole READDIR3resok */
	uint32_t dirbytes; /* of names, ids and cookies so far */
};

struct listed {
	uint64_t fileid, cookie;
	char name[256];
	uint32_t bytes;    /* of this entry */
	uint32_t dirbytes; /* of its name, id and cookie */
	bool has_attr, has_fh;
	fattr3 attr; /* type, mode and fileid alone */
	struct raw_fh fh;
};

/* The last reply of r, which was NFS3_OK to a question of proc. */
void listing_begin(struct listing *l, const struct raw *r, uint32_t proc);
bool listing_next(struct listing *l, struct listed *e);

#endif
