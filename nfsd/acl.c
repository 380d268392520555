/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POSIX ACLs between the extended attribute of a Linux file system
 * (linux/posix_acl_xattr.h) and NFSACL's wire. Pure functions, any thread; a
 * struct acl is its caller's. Bytes come from clients and from disks, so all is
 * judged: whatever gets into a struct acl from the wire, a file system may be
 * given.
 *
 * acl(5).
 */
#include "nfsd/acl.h"
#include "nfsd/xdr.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdlib.h>
#include <string.h>

#define PERM_BITS 7u
#define COUNT_MIN 4u /* on the wire, of a valid ACL */

static_assert(ACL_XATTR_BYTES_MAX ==
		      sizeof(struct posix_acl_xattr_header) +
			      ACL_ENTRIES_MAX *
				      sizeof(struct posix_acl_xattr_entry),
	      "as the kernel has it");

/* Mode and extended attribute ---------------------------------------------- */

void
acl_from_mode(struct acl *a, unsigned mode)
{
	static const uint16_t tag[] = { ACL_USER_OBJ, ACL_GROUP_OBJ,
					ACL_OTHER };
	unsigned i;

	a->count = 3;
	for (i = 0; i < a->count; i++)
		a->entry[i] = (struct acl_entry){
			.tag = tag[i],
			.perm = (uint16_t)(mode >> (6 - 3 * i) & PERM_BITS),
			.id = (uint32_t)ACL_UNDEFINED_ID,
		};
}

int
acl_from_xattr(struct acl *a, const void *bytes, size_t n)
{
	struct posix_acl_xattr_header h;
	struct posix_acl_xattr_entry e;
	const uint8_t *at = bytes;

	if (n < sizeof(h) || (n - sizeof(h)) % sizeof(e) != 0)
		return -EIO;
	memcpy(&h, at, sizeof(h));
	if (le32toh(h.a_version) != POSIX_ACL_XATTR_VERSION)
		return -EIO;
	if (n > ACL_XATTR_BYTES_MAX)
		return -EINVAL;
	a->count = 0;
	for (at += sizeof(h), n -= sizeof(h); n > 0;
	     at += sizeof(e), n -= sizeof(e)) {
		memcpy(&e, at, sizeof(e));
		a->entry[a->count++] = (struct acl_entry){
			.tag = le16toh(e.e_tag),
			.perm = le16toh(e.e_perm),
			.id = le32toh(e.e_id),
		};
	}
	return 0;
}

size_t
acl_to_xattr(uint8_t out[ACL_XATTR_BYTES_MAX], const struct acl *a)
{
	struct posix_acl_xattr_header h = { .a_version = htole32(
						    POSIX_ACL_XATTR_VERSION) };
	struct posix_acl_xattr_entry e;
	uint8_t *at = out;
	uint32_t i;

	memcpy(at, &h, sizeof(h));
	at += sizeof(h);
	for (i = 0; i < a->count; i++, at += sizeof(e)) {
		e.e_tag = htole16(a->entry[i].tag);
		e.e_perm = htole16(a->entry[i].perm);
		e.e_id = htole32(a->entry[i].id);
		memcpy(at, &e, sizeof(e));
	}
	return (size_t)(at - out);
}

/* From the wire ------------------------------------------------------------ */

static uint32_t
get_word(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return be32toh(word);
}

/* One entry; false where there is no such tag, id or permission. */
static bool
entry_take(struct acl_entry *e, const uint8_t *bytes)
{
	uint32_t tag = get_word(bytes) & ~ACL_WIRE_DEFAULT;
	uint32_t id = get_word(bytes + 4), perm = get_word(bytes + 8);

	e->id = (uint32_t)ACL_UNDEFINED_ID;
	switch (tag) {
	case ACL_USER:
	case ACL_GROUP:
		if (id == (uint32_t)ACL_UNDEFINED_ID)
			return false;
		e->id = id;
		break;
	case ACL_MASK:
		perm &= PERM_BITS; /* Solaris sets more here */
		break;
	case ACL_USER_OBJ:
	case ACL_GROUP_OBJ:
	case ACL_OTHER:
		break;
	default:
		return false;
	}
	e->tag = (uint16_t)tag;
	e->perm = (uint16_t)(perm & PERM_BITS);
	return perm <= PERM_BITS;
}

static int
compare(const void *one, const void *other)
{
	const struct acl_entry *a = one, *b = other;

	if (a->tag != b->tag)
		return a->tag < b->tag ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

/* The mask of an ACL that has no more to say than a mode, as Solaris wants it.
 * Only with all four tags it is sorted this way. */
static void
drop_mask(struct acl *a)
{
	if (a->count != COUNT_MIN || a->entry[1].tag != ACL_GROUP_OBJ ||
	    a->entry[2].tag != ACL_MASK || a->entry[1].perm != a->entry[2].perm)
		return;
	a->entry[2] = a->entry[3];
	a->count--;
}

/* Tags are bits of their own. */
static bool
is_valid(const struct acl *a)
{
	const unsigned always = ACL_USER_OBJ | ACL_GROUP_OBJ | ACL_OTHER;
	const unsigned named = ACL_USER | ACL_GROUP;
	unsigned tags = 0;
	uint32_t i;

	for (i = 0; i < a->count; i++) {
		if (i > 0 && compare(&a->entry[i - 1], &a->entry[i]) == 0)
			return false;
		tags |= a->entry[i].tag;
	}
	return (tags & always) == always &&
	       ((tags & named) == 0 || (tags & ACL_MASK) != 0);
}

int
acl_from_wire(struct acl *a, const uint8_t *bytes, uint32_t n)
{
	uint32_t i;

	a->count = n / ACL_WIRE_BYTES;
	for (i = 0; i < a->count; i++, bytes += ACL_WIRE_BYTES)
		if (!entry_take(&a->entry[i], bytes))
			return -EINVAL;
	if (a->count == 0)
		return 0;
	qsort(a->entry, a->count, sizeof(a->entry[0]), compare);
	drop_mask(a);
	return is_valid(a) ? 0 : -EINVAL;
}

/* To the wire -------------------------------------------------------------- */

static bool
put_entry(XDR *x, const struct acl_entry *e, uint32_t flag,
	  const struct acl_owner *owner)
{
	uint32_t id = 0; /* which Solaris wants where there is none */

	if (e->tag == ACL_USER_OBJ)
		id = owner->uid;
	else if (e->tag == ACL_GROUP_OBJ)
		id = owner->gid;
	else if (e->tag == ACL_USER || e->tag == ACL_GROUP)
		id = e->id;
	return put_u32(x, e->tag | flag) && put_u32(x, id) &&
	       put_u32(x, e->perm & PERM_BITS);
}

/* Where it says no more than a mode, the wire has a mask behind the group.
 * (What comes from a disk may be anything.) */
static bool
wants_mask(const struct acl *a)
{
	return a->count == COUNT_MIN - 1 && a->entry[1].tag == ACL_GROUP_OBJ;
}

static uint32_t
wire_count(const struct acl *a)
{
	return a->count + wants_mask(a);
}

uint32_t
acl_wire_bytes(const struct acl *a)
{
	return 2 * BYTES_PER_XDR_UNIT + wire_count(a) * ACL_WIRE_BYTES;
}

bool
acl_put_wire(XDR *x, const struct acl *a, bool entries, uint32_t flag,
	     const struct acl_owner *owner)
{
	struct acl_entry mask = { .tag = ACL_MASK };
	uint32_t i;

	if (!put_u32(x, wire_count(a)) ||
	    !put_u32(x, entries ? wire_count(a) : 0))
		return false;
	for (i = 0; entries && i < a->count; i++) {
		if (!put_entry(x, &a->entry[i], flag, owner))
			return false;
		mask.perm = a->entry[i].perm;
		if (i == 1 && wants_mask(a) &&
		    !put_entry(x, &mask, flag, owner))
			return false;
	}
	return true;
}
