/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A POSIX ACL (acl(5)) in its three forms: struct acl, the extended attribute
 * of a Linux file system, and NFSACL's wire. Pure. The wire's format is
 * Solaris's, which no RFC tells: an entry is three words, tag, id and
 * permissions; the entries of owner and group carry their ids; an ACL that says
 * no more than a mode has a mask all the same, equal to the group's entry.
 */
#ifndef NVNFSD_ACL_H
#define NVNFSD_ACL_H

#include <rpc/xdr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ACL_ENTRIES_MAX     1024u /* on the wire, as Linux has it */
#define ACL_WIRE_BYTES      12u   /* an entry */
/* Its extended attribute: version, and 8 bytes an entry. */
#define ACL_XATTR_BYTES_MAX (4u + 8u * ACL_ENTRIES_MAX)
/* Set in each tag of a default ACL. */
#define ACL_WIRE_DEFAULT    0x1000u

struct acl_entry {
	uint16_t tag, perm;
	uint32_t id; /* ACL_UNDEFINED_ID but for ACL_USER and ACL_GROUP */
};

/* Entries in the order of their tags and ids; none: there is no ACL. */
struct acl {
	uint32_t count;
	struct acl_entry entry[ACL_ENTRIES_MAX];
};

/* What the permission bits of a mode say. */
void acl_from_mode(struct acl *a, unsigned mode);
/* 0, -EIO: it is none, -EINVAL: more than ACL_ENTRIES_MAX. */
int acl_from_xattr(struct acl *a, const void *bytes, size_t n);
/* The length of what was written to out. */
size_t acl_to_xattr(uint8_t out[ACL_XATTR_BYTES_MAX], const struct acl *a);
/*
 * n bytes of entries, whole ones and at most ACL_ENTRIES_MAX. In any order; the
 * mask that only the wire wants goes. 0, or -EINVAL: no valid ACL (acl(5), "ACL
 * ENTRIES": the four tags that must be there, no entry twice).
 */
int acl_from_wire(struct acl *a, const uint8_t *bytes, uint32_t n);
/* What acl_put_wire writes of a, with its entries. */
uint32_t acl_wire_bytes(const struct acl *a);
/*
 * The number of entries, and the entries (with entries false: none). flag: for
 * the tags, 0 or ACL_WIRE_DEFAULT. uid, gid: owner and group. false: no room.
 */
struct acl_owner {
	uint32_t uid, gid;
};
bool acl_put_wire(XDR *x, const struct acl *a, bool entries, uint32_t flag,
		  const struct acl_owner *owner);

#endif
