/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For integration tests: GETACL and SETACL of NFSACL version 3, by hand, since
 * libnfs has no calls for them.
 */
#ifndef NVNFSD_TESTS_NFSACL_H
#define NVNFSD_TESTS_NFSACL_H

#include "harness.h"

#define ACL           1u
#define COUNT         2u
#define DEFAULT       4u
#define DEFAULT_COUNT 8u
#define ALL           15u

#define PROC_GETACL 1u
#define PROC_SETACL 2u
#define ACES_MAX    1024u

/* As on the wire. */
struct ace {
	uint32_t tag, id, perm;
};

struct acl {
	uint32_t count, length; /* as told, as brought along */
	struct ace ace[ACES_MAX];
};

/* The status. The attributes must be there where there is an object. */
int nfsacl_get(struct raw *r, const struct raw_fh *fh, uint32_t mask,
	       struct acl *access, struct acl *deflt);
/* One ACL; the other's place is empty, and not named by the mask. */
int nfsacl_set(struct raw *r, const struct raw_fh *fh, uint32_t mask,
	       const struct ace *ace, uint32_t n);
/* The same in two steps: to be sent in between, or more than once. */
void nfsacl_build_set(struct raw *r, const struct raw_fh *fh, uint32_t mask,
		      const struct ace *ace, uint32_t n);
int nfsacl_answered(struct raw *r);

#endif
