/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers what perm.c found, by open file and identity, so that a READ or
 * WRITE on a warm descriptor does not read the ACL again. One a reactor, made,
 * used and freed on its thread. A table of fixed size: nothing is allocated per
 * call, and what falls out is only computed again.
 *
 * An answer holds while ctime, mode, owner and group stay. A change of the ACL
 * moves the ctime, but only by the clock's tick where the kernel has no finer
 * one; so what was found within some ticks of the ctime is not remembered.
 */
#include "nfsd/cred.h"
#include "nfsd/nfsd.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define SETS      512u
#define WAYS      4u
#define SETTLE_NS 40000000 /* four ticks at HZ=100 */

struct entry {
	uint64_t file;
	uint64_t identity;
	int64_t ctime_s;
	uint32_t ctime_ns;
	uint32_t uid, gid; /* of the inode */
	uint16_t mode;
	bool used;
	uint8_t granted;
};

struct perm_cache {
	struct {
		struct entry way[WAYS];
		unsigned next; /* to be replaced */
	} set[SETS];
};

struct perm_cache *
perm_cache_new(void)
{
	return calloc(1, sizeof(struct perm_cache));
}

void
perm_cache_free(struct perm_cache *c)
{
	free(c);
}

static bool
entry_holds(const struct entry *e, const struct statx *st)
{
	return e->ctime_s == st->stx_ctime.tv_sec &&
	       e->ctime_ns == st->stx_ctime.tv_nsec &&
	       e->mode == st->stx_mode && e->uid == st->stx_uid &&
	       e->gid == st->stx_gid;
}

/* A clock that was set back makes files whose time never comes: they are only
 * slower. */
static bool
settled(const struct statx *st)
{
	struct timespec now;
	int64_t s, ns;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	s = now.tv_sec - st->stx_ctime.tv_sec;
	ns = now.tv_nsec - (int64_t)st->stx_ctime.tv_nsec;
	return s > 1 || s * 1000000000 + ns > SETTLE_NS;
}

/* The entry of file and identity, or the one to replace with it. */
static struct entry *
entry_find(struct perm_cache *c, uint64_t file, uint64_t identity)
{
	unsigned i = (unsigned)((file * 0x9e3779b97f4a7c15u ^ identity) % SETS);
	struct entry *e = c->set[i].way;

	for (unsigned w = 0; w < WAYS; w++) {
		if (e[w].used && e[w].file == file && e[w].identity == identity)
			return &e[w];
	}
	return &e[c->set[i].next++ % WAYS];
}

int
perm_cache_granted(struct perm_cache *c, const struct identity *id,
		   struct file *f, const struct statx *st, unsigned *ret)
{
	uint64_t file = file_id(f), identity = identity_hash(id);
	struct entry *e = entry_find(c, file, identity);
	int r;

	if (e->used && e->file == file && e->identity == identity &&
	    entry_holds(e, st)) {
		*ret = e->granted;
		return 0;
	}
	r = perm_granted(id, file_fd(f), st, ret);
	if (r < 0 || !settled(st))
		return r;
	*e = (struct entry){
		.file = file,
		.identity = identity,
		.ctime_s = st->stx_ctime.tv_sec,
		.ctime_ns = st->stx_ctime.tv_nsec,
		.uid = st->stx_uid,
		.gid = st->stx_gid,
		.mode = st->stx_mode,
		.used = true,
		.granted = (uint8_t)*ret,
	};
	return 0;
}

int
perm_cache_data(struct perm_cache *c, const struct identity *id, struct file *f,
		const struct statx *st, bool write)
{
	unsigned granted;
	int r;

	/* Most callers own their file: no hash, no look-up. */
	if (id->uid == st->stx_uid)
		return 0;
	r = perm_cache_granted(c, id, f, st, &granted);
	if (r < 0)
		return r;
	return granted & (write ? PERM_WRITE : PERM_READ | PERM_EXEC) ? 0
								      : -EACCES;
}
