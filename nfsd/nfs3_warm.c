/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GETATTR and ACCESS (RFC 1813, 3.3.1, 3.3.4) of a file that the server has
 * open: its inode is in memory, so that nothing blocks and the reactor answers
 * at once (a lone caller waits 18 us instead of 27; for NULL it is 17). What is
 * not open, or not to be told at once, takes nfs3_query.c's way.
 *
 * It opens nothing and has no state.
 */
#include "nfsd/proc.h"
#include "nfsd/server.h"

#include <string.h>

static const struct nfs_fh3 *
warm_fh(const struct call *c)
{
	return c->rpc.proc == NFSPROC3_ACCESS ? &c->rq.args.access.fh
					      : &c->rq.args.fh.fh;
}

/* o is resolved and f its file: make the results. */
static bool
warm_answer(struct call *c, struct object *o, struct file *f)
{
	unsigned perm;

	/* Without a name it is stale, and to be let go of: a worker's. */
	if (nfs3_statx(file_fd(f), &o->st) < 0 || o->st.stx_nlink == 0)
		return false;
	if (c->rpc.proc == NFSPROC3_GETATTR) {
		memset(&c->rq.res.attr, 0, sizeof(c->rq.res.attr));
		object_attr(o, &c->rq.res.attr.attr);
		return true;
	}
	if (perm_cache_granted(c->shard->perms, &o->id, f, &o->st, &perm) < 0)
		return false;
	memset(&c->rq.res.access, 0, sizeof(c->rq.res.access));
	object_attr(o, &c->rq.res.access.attr);
	c->rq.res.access.access =
		c->rq.args.access.access & nfs3_access_bits(o, perm);
	return true;
}

bool
warm_run(struct call *c)
{
	struct object o;
	struct file_key key;
	struct file *f = NULL;
	bool done = false;

	if (object_resolve(&o, &c->rq, warm_fh(c), false) == 0) {
		object_file_key(&o, &key);
		f = file_find(c->shard->server->engine, &key);
	}
	if (f != NULL) {
		done = warm_answer(c, &o, f);
		file_put(f);
	}
	object_fini(&o);
	c->status = NFS3_OK;
	return done;
}
