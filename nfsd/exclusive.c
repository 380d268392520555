/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an EXCLUSIVE CREATE keeps its verifier (RFC 1813, 3.3.8): all 64 bits,
 * in the new file itself, so that they are as durable as its name and outlive
 * the server. The client's SETATTR that follows puts the times right.
 *
 * Each half of the verifier goes into one time stamp: 29 bits are nanoseconds
 * (2^29 < 10^9) and 3 bits are seconds. A file system that rounds times loses
 * bits, which is found by reading back; there an extended attribute keeps the
 * verifier. Stateless, on workers.
 */
#include "nfsd/proc.h"

#include <errno.h>
#include <string.h>
#include <sys/xattr.h>

#define VERF_XATTR "trusted.nvnfsd.create"
#define NSEC_BITS  29
#define SEC_NONE   8 /* past the three bits */
#define NSEC_MASK  ((1u << NSEC_BITS) - 1)

static struct timespec
half_encode(const uint8_t verf[NFS3_CREATEVERFSIZE], unsigned half)
{
	struct timespec t;
	uint32_t bits;

	memcpy(&bits, verf + half * sizeof(bits), sizeof(bits));
	t.tv_sec = bits >> NSEC_BITS;
	t.tv_nsec = bits & NSEC_MASK;
	return t;
}

static bool
half_same(const struct timespec *t, const struct statx_timestamp *kept)
{
	return t->tv_sec == kept->tv_sec && t->tv_nsec == kept->tv_nsec;
}

static bool
times_hold(const struct statx *st, const uint8_t verf[NFS3_CREATEVERFSIZE])
{
	const struct timespec a = half_encode(verf, 0);
	const struct timespec m = half_encode(verf, 1);

	return half_same(&a, &st->stx_atime) && half_same(&m, &st->stx_mtime);
}

static int
attribute_keep(int fd, const uint8_t verf[NFS3_CREATEVERFSIZE])
{
	/* Times that no verifier makes: what rounding left may be another's. */
	const struct timespec none[2] = { { .tv_sec = SEC_NONE },
					  { .tv_sec = SEC_NONE } };

	if (futimens(fd, none) < 0)
		return -errno;
	if (fsetxattr(fd, VERF_XATTR, verf, NFS3_CREATEVERFSIZE, 0) == 0)
		return 0;
	/* Without the right to trusted attributes there are none for us. */
	return errno == EPERM ? -EOPNOTSUPP : -errno;
}

int
exclusive_keep(int fd, const uint8_t verf[NFS3_CREATEVERFSIZE])
{
	const struct timespec times[2] = { half_encode(verf, 0),
					   half_encode(verf, 1) };
	struct statx st;

	if (futimens(fd, times) < 0)
		return -errno;
	if (!nfs3_statx(fd, &st) && times_hold(&st, verf))
		return 0;
	return attribute_keep(fd, verf);
}

void
exclusive_end(int fd, const struct statx *st)
{
	char path[NAME_FD_PATH_BYTES];

	/* Times that were not rounded have kept it: no attribute. */
	if (!S_ISREG(st->stx_mode) || st->stx_atime.tv_nsec != 0 ||
	    st->stx_mtime.tv_nsec != 0)
		return;
	name_fd_path(path, fd);
	(void)removexattr(path, VERF_XATTR); /* mostly there is none */
}

bool
exclusive_same(int fd, const struct statx *st,
	       const uint8_t verf[NFS3_CREATEVERFSIZE])
{
	uint8_t kept[NFS3_CREATEVERFSIZE];
	char path[NAME_FD_PATH_BYTES];

	if (!S_ISREG(st->stx_mode))
		return false;
	if (times_hold(st, verf))
		return true;
	name_fd_path(path, fd);
	return getxattr(path, VERF_XATTR, kept, sizeof(kept)) ==
		       (ssize_t)sizeof(kept) &&
	       memcmp(kept, verf, sizeof(kept)) == 0;
}
