/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel says, in the protocol's terms: the one map from errno to a
 * status, and fattr3 from statx (RFC 1813, 2.5 and 2.6; 5.1.5 for MOUNT).
 *
 * Pure functions but for nfs3_statx, any thread. It knows no call: a status
 * that no errno stands for (NOT_SYNC, BAD_COOKIE, TOOSMALL, BADTYPE) is the
 * procedure's own.
 */
#include "nfsd/nfs3.h"

#include "io/io.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static_assert(NFS3_STATX_MASK == STATX_BASIC_STATS, "what fattr3 needs");

/* Unit of stx_blocks, whatever the block size. */
#define STATX_BLOCK_BYTES 512u

struct error_row {
	int error;
	uint32_t status;
};

static const struct error_row nfs3_errors[] = {
	{ EPERM, NFS3ERR_PERM },
	{ ENOENT, NFS3ERR_NOENT },
	{ EIO, NFS3ERR_IO },
	{ ENXIO, NFS3ERR_NXIO },
	{ EACCES, NFS3ERR_ACCES },
	{ EEXIST, NFS3ERR_EXIST },
	{ EXDEV, NFS3ERR_XDEV },
	{ ENODEV, NFS3ERR_NODEV },
	{ ENOTDIR, NFS3ERR_NOTDIR },
	{ EISDIR, NFS3ERR_ISDIR },
	{ EINVAL, NFS3ERR_INVAL },
	{ EFBIG, NFS3ERR_FBIG },
	{ ENOSPC, NFS3ERR_NOSPC },
	{ EROFS, NFS3ERR_ROFS },
	{ EMLINK, NFS3ERR_MLINK },
	{ ENAMETOOLONG, NFS3ERR_NAMETOOLONG },
	{ ENOTEMPTY, NFS3ERR_NOTEMPTY },
	{ EDQUOT, NFS3ERR_DQUOT },
	{ ESTALE, NFS3ERR_STALE },
	{ EREMOTE, NFS3ERR_REMOTE },
	/* Ours: a handle that is malformed or forged. */
	{ EBADF, NFS3ERR_BADHANDLE },
	{ EOPNOTSUPP, NFS3ERR_NOTSUPP },
	{ ENOSYS, NFS3ERR_NOTSUPP },
	/* A symlink where none may be: it is the wrong kind of object. */
	{ ELOOP, NFS3ERR_INVAL },
	/* A name that the file system's encoding does not allow. */
	{ EILSEQ, NFS3ERR_INVAL },
	/* In use by the server itself (a mount point, a running program). A
	 * client can do nothing but report it; IO would look like a bad disk.
	 */
	{ EBUSY, NFS3ERR_ACCES },
	{ ETXTBSY, NFS3ERR_ACCES },
	/* Encrypted, and the key is not there. */
	{ ENOKEY, NFS3ERR_PERM },
	/* A shortage that passes: the client is to ask again later. */
	{ EAGAIN, NFS3ERR_JUKEBOX },
	{ ENOMEM, NFS3ERR_JUKEBOX },
	{ ENFILE, NFS3ERR_JUKEBOX },
	{ EMFILE, NFS3ERR_JUKEBOX },
	{ EINTR, NFS3ERR_JUKEBOX },
	{ ETIMEDOUT, NFS3ERR_JUKEBOX },
};

static const struct error_row mount3_errors[] = {
	/* EPERM: a port that `secure` refuses. Clients know what to say of
	 * ACCES; PERM is for a user without the right to mount. */
	{ EPERM, MNT3ERR_ACCES },
	{ EACCES, MNT3ERR_ACCES },
	{ ENOENT, MNT3ERR_NOENT },
	{ EIO, MNT3ERR_IO },
	{ ENOTDIR, MNT3ERR_NOTDIR },
	{ EINVAL, MNT3ERR_INVAL },
	{ ENAMETOOLONG, MNT3ERR_NAMETOOLONG },
	{ EOPNOTSUPP, MNT3ERR_NOTSUPP },
	/* How openat2 refuses a way out: above the root or to another mount,
	 * and a magic link. */
	{ EXDEV, MNT3ERR_ACCES },
	{ ELOOP, MNT3ERR_ACCES },
};

static uint32_t
error_find(const struct error_row *row, size_t rows, int error, uint32_t other)
{
	error = abs(error);
	if (error == 0)
		return 0;
	assert(error != ECANCELED);
	for (size_t i = 0; i < rows; i++)
		if (row[i].error == error)
			return row[i].status;
	return other;
}

enum nfsstat3
nfs3_status(int error)
{
	return error_find(nfs3_errors,
			  sizeof(nfs3_errors) / sizeof(*nfs3_errors), error,
			  NFS3ERR_IO);
}

enum mountstat3
mount3_status(int error)
{
	return error_find(mount3_errors,
			  sizeof(mount3_errors) / sizeof(*mount3_errors), error,
			  MNT3ERR_SERVERFAULT);
}

static enum ftype3
type_from_mode(unsigned mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return NF3DIR;
	case S_IFBLK:
		return NF3BLK;
	case S_IFCHR:
		return NF3CHR;
	case S_IFLNK:
		return NF3LNK;
	case S_IFSOCK:
		return NF3SOCK;
	case S_IFIFO:
		return NF3FIFO;
	default:
		return NF3REG;
	}
}

/* nfstime3 counts from 1970 to 2106; what lies outside is told as the nearer
 * end, since a number that wrapped would be a wrong time, not a rough one. */
static void
time_from_statx(struct nfstime3 *out, const struct statx_timestamp *t)
{
	if (t->tv_sec < 0) {
		out->seconds = 0;
		out->nseconds = 0;
		return;
	}
	if (t->tv_sec > UINT32_MAX) {
		out->seconds = UINT32_MAX;
		out->nseconds = 0;
		return;
	}
	out->seconds = (uint32_t)t->tv_sec;
	out->nseconds = t->tv_nsec;
}

void
nfs3_attr_from_statx(struct fattr3 *out, const struct statx *st, uint64_t fsid)
{
	out->type = type_from_mode(st->stx_mode);
	out->mode = st->stx_mode & 07777u;
	out->nlink = st->stx_nlink;
	out->uid = st->stx_uid;
	out->gid = st->stx_gid;
	out->size = st->stx_size;
	out->used = st->stx_blocks * STATX_BLOCK_BYTES;
	out->rdev.specdata1 = st->stx_rdev_major;
	out->rdev.specdata2 = st->stx_rdev_minor;
	out->fsid = fsid;
	out->fileid = st->stx_ino;
	time_from_statx(&out->atime, &st->stx_atime);
	time_from_statx(&out->mtime, &st->stx_mtime);
	time_from_statx(&out->ctime, &st->stx_ctime);
}

void
nfs3_pre_op_from_statx(struct pre_op_attr *out, const struct statx *st)
{
	out->follows = true;
	out->size = st->stx_size;
	time_from_statx(&out->mtime, &st->stx_mtime);
	time_from_statx(&out->ctime, &st->stx_ctime);
}

static void
add_waiting(struct statx *st)
{
	if (S_ISREG(st->stx_mode))
		st->stx_size =
			io_size(makedev(st->stx_dev_major, st->stx_dev_minor),
				st->stx_ino, st->stx_size);
}

int
nfs3_statx_at(int fd, const char *name, int flags, struct statx *st)
{
	uint64_t resets;

	do {
		resets = io_size_resets();
		if (statx(fd, name, flags, NFS3_STATX_MASK, st) < 0)
			return -errno;
		add_waiting(st);
	} while (resets != io_size_resets());
	return 0;
}

int
nfs3_statx(int fd, struct statx *st)
{
	return nfs3_statx_at(fd, "", AT_EMPTY_PATH, st);
}
