/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RQUOTA versions 1 and 2, by which quota(1) on a client asks what a user or
 * (version 2) a group has used and may use: a plain blocking procedure, on a
 * worker. What the kernel counts on the file system of an export is told, as
 * the server asks it; who may ask is judged here: each for itself and its
 * groups, root for all, after squashing; from any port, `secure` or not, since
 * quota(1) is a user's program. Nothing is set and nothing kept.
 *
 * No RFC tells of it; Sun's rquota.x does. quotactl(2).
 */
#include "nfsd/nfsd.h"

#include <errno.h>
#include <linux/quota.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BLOCK_BYTES  1024u /* of dqb_bhardlimit and dqb_bsoftlimit */
#define BLOCK_DOUBLE 20u   /* times, at most: 2^32 of them are 2^62 bytes */

/* -ENOSYS before Linux 5.14; -ESRCH, -ENOENT: no quota, no such user. */
static int
quota_read(const struct volume *v, const struct rquota_args *args,
	   struct if_dqblk *ret)
{
	unsigned type = args->type == RQUOTA_USER ? USRQUOTA : GRPQUOTA;
	unsigned command = (unsigned)Q_GETQUOTA << SUBCMDSHIFT | type;

	/* Unlike quotactl(2) it needs no path of the device. */
	if (syscall(SYS_quotactl_fd, volume_root_fd(v), command, args->id,
		    ret) < 0)
		return -errno;
	return 0;
}

/* Counted as blocks of block bytes, a begun one as a whole. */
static uint64_t
count_of(uint64_t bytes, uint32_t block)
{
	return bytes / block + (bytes % block != 0);
}

/* Of a limit in BLOCK_BYTES, whose bytes may be too many for 64 bits. */
static uint64_t
limit_of(uint64_t blocks, uint32_t block)
{
	return count_of(blocks, block / BLOCK_BYTES);
}

/* The smallest block by which all three can be told. */
static uint32_t
block_for(const struct if_dqblk *q)
{
	uint32_t block = BLOCK_BYTES;
	unsigned i;

	for (i = 0; i < BLOCK_DOUBLE; i++) {
		if (limit_of(q->dqb_bhardlimit, block) <= UINT32_MAX &&
		    limit_of(q->dqb_bsoftlimit, block) <= UINT32_MAX &&
		    count_of(q->dqb_curspace, block) <= UINT32_MAX)
			break;
		block *= 2;
	}
	return block;
}

static uint32_t
fit(uint64_t n)
{
	return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

/* Of grace: negative when it is over, 0 when none runs. */
static uint32_t
seconds_left(uint64_t until, int64_t now)
{
	int64_t left = (int64_t)until - now;

	if (until == 0)
		return 0;
	if (left > INT32_MAX)
		left = INT32_MAX;
	if (left < INT32_MIN)
		left = INT32_MIN;
	return left == 0 ? UINT32_MAX : (uint32_t)left;
}

void
rquota_fill(struct rquota_res *r, const struct if_dqblk *q, int64_t now)
{
	uint32_t block = block_for(q);

	r->block_bytes = block;
	r->blocks_hard = fit(limit_of(q->dqb_bhardlimit, block));
	r->blocks_soft = fit(limit_of(q->dqb_bsoftlimit, block));
	r->blocks = fit(count_of(q->dqb_curspace, block));
	r->files_hard = fit(q->dqb_ihardlimit);
	r->files_soft = fit(q->dqb_isoftlimit);
	r->files = fit(q->dqb_curinodes);
	r->blocks_seconds = seconds_left(q->dqb_btime, now);
	r->files_seconds = seconds_left(q->dqb_itime, now);
}

/* As quotactl(2) judges a local one. */
static bool
is_permitted(const struct identity *id, const struct rquota_args *args)
{
	if (id->uid == 0)
		return true;
	if (args->type == RQUOTA_USER)
		return id->uid == args->id;
	return identity_in_group(id, args->id);
}

static int
quota_of_export(struct request *rq, const struct access *a, bool may_block,
		struct if_dqblk *ret)
{
	const struct rquota_args *args = &rq->args.quota;
	struct identity id;
	bool permitted;
	int error;

	error = identity_make(&id, rq->cred, a->options,
			      server_manage_gids(rq->server), may_block);
	if (error < 0)
		return error;
	permitted = is_permitted(&id, args);
	identity_fini(&id);
	return permitted ? quota_read(a->volume, args, ret) : -EPERM;
}

static int
quota_of_path(struct request *rq, const char *path, struct if_dqblk *ret)
{
	const char *rest;
	struct export *e = export_find_path(rq->exports, path, &rest);
	bool may_block = request_may_block(rq);
	struct access a;
	int error;

	if (!e)
		return -ENOENT;
	rq->export_id = e->id;
	error = export_access_any_port(rq->exports, e, rq->client, may_block,
				       &a);
	if (error < 0)
		return error == -EACCES ? -EPERM : error;
	error = quota_of_export(rq, &a, may_block, ret);
	access_put(&a);
	return error;
}

static enum rquota_status
status_of(int error)
{
	if (error == 0)
		return RQUOTA_OK;
	return error == -EPERM ? RQUOTA_EPERM : RQUOTA_NOQUOTA;
}

enum nfsstat3
rquota_getquota(struct request *rq)
{
	const struct rquota_args *args = &rq->args.quota;
	struct rquota_res *res = &rq->res.quota;
	char path[MNT3_PATHLEN + 1];
	struct if_dqblk q = { 0 };
	int error;

	error = mount_path_normalise(path, args->path.data, args->path.bytes);
	if (!error && args->type > RQUOTA_GROUP)
		error = -EINVAL;
	if (!error)
		error = quota_of_path(rq, path, &q);
	if (error == -EAGAIN)
		rq->wants_names = true;
	if (!error)
		rquota_fill(res, &q, time(NULL));
	res->status = status_of(error);
	return nfs3_status(error);
}
