/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file handle in a call, resolved: to its export, to what this client may do
 * there, to the identity it acts under, and, on a worker, to an O_PATH
 * descriptor. An object lives in its call's slot, from object_resolve to
 * object_fini, on whichever thread the call is.
 *
 * It is resolved with the server's rights (open_by_handle_at needs
 * CAP_DAC_READ_SEARCH) and checks no permission on the inode: what the caller
 * then does is done, and checked, under o->id.
 */
#include "nfsd/nfsd.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int
object_resolve(struct object *o, struct request *rq, const struct nfs_fh3 *wire,
	       bool may_block)
{
	struct export *e;
	int r;

	memset(o, 0, sizeof(*o));
	o->rq = rq;
	o->fd = -1;
	if (!fh_decode(server_fh_key(rq->server), wire, &o->fh))
		return -EBADF;
	e = export_find(rq->exports, o->fh.export_id);
	if (!e)
		return -ESTALE;
	rq->export_id = e->id;
	r = export_access(rq->exports, e, rq->client, may_block, &o->access);
	/* To a client without a right to it an export is not there. */
	if (r == -EACCES)
		return -ESTALE;
	if (r < 0)
		return r;
	r = identity_make(&o->id, rq->cred, o->access.options,
			  server_manage_gids(rq->server), may_block);
	if (r < 0)
		object_fini(o);
	return r;
}

int
object_open(struct object *o, struct request *rq, const struct nfs_fh3 *wire)
{
	int r = object_resolve(o, rq, wire, request_may_block(rq));

	if (r == -EAGAIN)
		rq->wants_names = true;
	if (r < 0)
		return r;
	r = fh_open(&o->fh, volume_root_fd(o->access.volume), O_PATH);
	if (r >= 0) {
		o->fd = r;
		r = object_stat(o);
	}
	/* Removed, but kept in memory by someone who has it open. */
	if (r == 0 && o->st.stx_nlink == 0)
		r = -ESTALE;
	if (r < 0)
		object_fini(o);
	return r;
}

int
object_stat(struct object *o)
{
	assert(o->fd >= 0);
	return nfs3_statx(o->fd, &o->st);
}

int
object_is_root(const struct object *o)
{
	struct statx root;
	int r = nfs3_statx(volume_root_fd(o->access.volume), &root);

	if (r < 0)
		return r;
	return root.stx_ino == o->st.stx_ino &&
	       root.stx_dev_major == o->st.stx_dev_major &&
	       root.stx_dev_minor == o->st.stx_dev_minor;
}

void
object_fini(struct object *o)
{
	if (!o->rq)
		return;
	if (o->fd >= 0)
		close(o->fd);
	o->fd = -1;
	o->rq = NULL;
	identity_fini(&o->id);
	access_put(&o->access);
}

int
object_handle(struct object *o, int fd, const char *name, struct nfs_fh3 *wire)
{
	struct fh fh;
	int r = fh_from_fd(&fh, fd, name);

	if (r < 0)
		return r;
	fh.export_id = o->fh.export_id;
	fh_encode(server_fh_key(o->rq->server), &fh, wire);
	return 0;
}

void
object_file_key(const struct object *o, struct file_key *key)
{
	memset(key, 0, sizeof(*key));
	key->volume = o->access.volume;
	key->handle_type = o->fh.type;
	key->handle_bytes = o->fh.bytes;
	memcpy(key->handle, o->fh.data, o->fh.bytes);
}

void
object_attr(struct object *o, struct post_op_attr *out)
{
	out->follows = true;
	nfs3_attr_from_statx(&out->attr, &o->st, o->access.export->fsid);
}

void
object_attr_now(struct object *o, struct post_op_attr *out)
{
	out->follows = false;
	if (o->fd >= 0 && object_stat(o) == 0)
		object_attr(o, out);
}
