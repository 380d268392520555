/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an inode's mode and ACL grant an identity. Pure but for reading one
 * extended attribute; any thread. The server needs this beside the kernel's own
 * check because its descriptors of regular files are opened with its own rights
 * and shared by all callers (RFC 1813, 4.4).
 *
 * acl(5), "ACCESS CHECK ALGORITHM"; inode(7).
 */
#include "nfsd/cred.h"
#include "nfsd/nfsd.h"

#include <endian.h>
#include <errno.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#define PERM_ALL        (PERM_READ | PERM_WRITE | PERM_EXEC)
#define ACL_XATTR       "system.posix_acl_access"
#define ACL_BYTES       4096u  /* on the stack; larger ones are rare */
#define ACL_BYTES_MAX   65536u /* XATTR_SIZE_MAX */
#define MODE_GROUP_BITS 0070u

/* The bytes read, 0 when there is no ACL, or -errno. */
static ssize_t
acl_read(int fd, void *acl, size_t room)
{
	char path[sizeof("/proc/self/fd/") + 11];
	ssize_t n = fgetxattr(fd, ACL_XATTR, acl, room);

	if (n < 0 && errno == EBADF) { /* O_PATH */
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = getxattr(path, ACL_XATTR, acl, room);
	}
	if (n >= 0)
		return n;
	return errno == ENODATA || errno == EOPNOTSUPP ? 0 : -errno;
}

/* What applies to one caller who is not the owner. */
struct acl_match {
	unsigned user, group, other, mask;
	bool has_user, has_group;
};

static void
acl_match_entry(struct acl_match *m, const struct posix_acl_xattr_entry *e,
		const struct identity *id, uint32_t owner_gid)
{
	uint32_t who = le32toh(e->e_id);
	unsigned bits = le16toh(e->e_perm) & PERM_ALL;

	switch (le16toh(e->e_tag)) {
	case ACL_USER:
		if (who == id->uid) {
			m->user = bits;
			m->has_user = true;
		}
		break;
	case ACL_GROUP_OBJ:
		who = owner_gid;
		/* fall through */
	case ACL_GROUP:
		if (identity_in_group(id, who)) {
			m->group |= bits;
			m->has_group = true;
		}
		break;
	case ACL_MASK:
		m->mask = bits;
		break;
	case ACL_OTHER:
		m->other = bits;
		break;
	default: /* the owner's is in the mode */
		break;
	}
}

static int
acl_granted(const uint8_t *acl, size_t n, const struct identity *id,
	    uint32_t owner_gid, unsigned *ret)
{
	struct acl_match m = { .mask = PERM_ALL };
	struct posix_acl_xattr_header h;
	struct posix_acl_xattr_entry e;

	if (n < sizeof(h))
		return -EIO;
	memcpy(&h, acl, sizeof(h));
	if (le32toh(h.a_version) != POSIX_ACL_XATTR_VERSION)
		return -EIO;
	for (size_t at = sizeof(h); at + sizeof(e) <= n; at += sizeof(e)) {
		memcpy(&e, acl + at, sizeof(e));
		acl_match_entry(&m, &e, id, owner_gid);
	}
	if (m.has_user)
		*ret = m.user & m.mask;
	else if (m.has_group)
		*ret = m.group & m.mask;
	else
		*ret = m.other;
	return 0;
}

/* *has: there was an ACL, and it decided. */
static int
acl_try(const struct identity *id, int fd, uint32_t owner_gid, bool *has,
	unsigned *ret)
{
	uint8_t small[ACL_BYTES], *acl = small;
	ssize_t n = acl_read(fd, small, sizeof(small));
	int r = 0;

	if (n == -ERANGE) {
		acl = malloc(ACL_BYTES_MAX);
		if (!acl)
			return -ENOMEM;
		n = acl_read(fd, acl, ACL_BYTES_MAX);
	}
	if (n < 0)
		r = (int)n;
	else if (n > 0)
		r = acl_granted(acl, (size_t)n, id, owner_gid, ret);
	*has = n > 0;
	if (acl != small)
		free(acl);
	return r;
}

static unsigned
root_granted(uint16_t mode)
{
	if (S_ISDIR(mode) || (mode & 0111))
		return PERM_ALL;
	return PERM_READ | PERM_WRITE;
}

int
perm_granted(const struct identity *id, int fd, const struct statx *st,
	     unsigned *ret)
{
	uint16_t mode = st->stx_mode;
	bool has = false;
	int r;

	if (id->uid == 0) {
		*ret = root_granted(mode);
		return 0;
	}
	if (id->uid == st->stx_uid) {
		*ret = mode >> 6 & PERM_ALL;
		return 0;
	}
	/* With an ACL the mode's group bits are its mask. Linux does not look
	 * at the ACL when they are clear, and lets the other bits decide. */
	if ((mode & MODE_GROUP_BITS) && !S_ISLNK(mode)) {
		r = acl_try(id, fd, st->stx_gid, &has, ret);
		if (r < 0 || has)
			return r;
	}
	*ret = (identity_in_group(id, st->stx_gid) ? mode >> 3 : mode) &
	       PERM_ALL;
	return 0;
}

int
perm_data(const struct identity *id, int fd, const struct statx *st, bool write)
{
	unsigned granted;
	int r;

	if (id->uid == st->stx_uid)
		return 0;
	r = perm_granted(id, fd, st, &granted);
	if (r < 0)
		return r;
	return granted & (write ? PERM_WRITE : PERM_READ | PERM_EXEC) ? 0
								      : -EACCES;
}
