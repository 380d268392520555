/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the corners of READ and WRITE: a file system of its own exported
 * in one mode, and files of known content. */
#ifndef NVNFSD_TESTS_CORNER_H
#define NVNFSD_TESTS_CORNER_H

#include "harness.h"

#define TRANSFER_MAX (4u << 20)
#define OFFSET_MAX   ((uint64_t)INT64_MAX)

struct corner {
	struct harness *h;
	struct raw *r;
	struct raw_fh root;
};

/* mode is for READ and WRITE. False where such a file system cannot be had:
 * then the test is to skip(). */
bool corner_init(struct corner *c, const char *fs, unsigned sector,
		 const char *mode);
void corner_fini(struct corner *c);
/* A file of bytes bytes by a local process, with the content of the shadow's
 * WRITE 1. */
void corner_file(struct corner *c, const char *name, uint32_t bytes,
		 struct raw_fh *fh);
uint64_t corner_size(struct corner *c, const char *name);

struct corner_read {
	uint64_t size, offset; /* of the file; of the READ */
	uint32_t ask;
};
/* READ it: all of what is asked for and exists comes, and eof is exact. */
void corner_check_read(struct corner *c, const struct raw_fh *fh,
		       const struct corner_read *e);

#endif
