/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One change of a directory at a time, for wcc_data (RFC 1813, 2.6): striped
 * locks by device and inode number, the process's own for its whole life. Two
 * exports of one file system meet in the same stripe, since the key is the
 * inode's and not the export's.
 *
 * Order: the lower stripe first, both in one call; inside, only the engine's
 * locks are taken. It excludes no local process: what one of those changes
 * between two stats is told as ours.
 */
#include "nfsd/proc.h"

#include <assert.h>

#define DIRLOCK_STRIPES 1024u /* a power of two */

static pthread_mutex_t stripes[DIRLOCK_STRIPES] = {
	[0 ... DIRLOCK_STRIPES - 1] = PTHREAD_MUTEX_INITIALIZER
};

/* Mixes as SplitMix64 does: inode numbers come in rows, devices are few. */
static unsigned
stripe_of(const struct statx *st)
{
	uint64_t x = st->stx_ino ^ ((uint64_t)st->stx_dev_major << 52) ^
		     ((uint64_t)st->stx_dev_minor << 32);

	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	x ^= x >> 31;
	return (unsigned)x & (DIRLOCK_STRIPES - 1);
}

void
dirlock_take(struct dirlock *l, const struct statx *a, const struct statx *b)
{
	unsigned one = stripe_of(a), two = b == NULL ? one : stripe_of(b);
	int error;

	l->low = one < two ? one : two;
	l->high = one < two ? two : one;
	error = pthread_mutex_lock(&stripes[l->low]);
	if (l->high != l->low)
		error |= pthread_mutex_lock(&stripes[l->high]);
	assert(error == 0);
}

void
dirlock_drop(struct dirlock *l)
{
	int error = pthread_mutex_unlock(&stripes[l->low]);

	if (l->high != l->low)
		error |= pthread_mutex_unlock(&stripes[l->high]);
	assert(error == 0);
}
