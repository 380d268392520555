/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory about to change: what CREATE, MKDIR, SYMLINK, MKNOD, REMOVE,
 * RMDIR, RENAME and LINK have in common. A struct change lives on the stack of
 * its procedure, on a worker, from change_open to change_close; between
 * change_begin and change_end the caller holds the directory's lock.
 *
 * It does not know what is changed. RFC 1813, 2.6 (wcc_data), 3.1, 3.2, 4.8.
 */
#include "nfsd/proc.h"

#include <fcntl.h>
#include <unistd.h>

enum nfsstat3
change_open(struct change *c, struct request *rq,
	    const struct diropargs3 *where, struct wcc_data *wcc)
{
	int error = object_open(&c->dir, rq, &where->dir);

	c->wcc = wcc;
	if (error)
		return nfs3_status(error);
	object_attr(&c->dir, &wcc->after);
	if (!S_ISDIR(c->dir.st.stx_mode))
		return NFS3ERR_NOTDIR;
	/* The clone's mount says so as well, where there is a clone. */
	if (volume_read_only(c->dir.access.volume))
		return NFS3ERR_ROFS;
	return name_take(&c->name, &where->name);
}

void
change_close(struct change *c)
{
	object_fini(&c->dir);
}

void
change_begin(struct change *c)
{
	if (!object_stat(&c->dir))
		nfs3_pre_op_from_statx(&c->wcc->before, &c->dir.st);
}

void
change_end(struct change *c)
{
	object_attr_now(&c->dir, &c->wcc->after);
}

enum nfsstat3
change_sync_always(const struct object *o, int other_fd)
{
	struct volume *v = o->access.volume;
	int error = volume_sync_metadata(v, o->fd);

	if (!error && other_fd >= 0 && !volume_facts(v)->log_covers)
		error = volume_sync_metadata(v, other_fd);
	return error ? NFS3ERR_IO : NFS3_OK;
}

enum nfsstat3
change_sync(const struct object *o, int other_fd)
{
	if (!o->access.options->sync)
		return NFS3_OK;
	return change_sync_always(o, other_fd);
}

void
change_settle(struct change *c)
{
	struct stat st;

	if (fstatat(c->dir.fd, c->name.text, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISREG(st.st_mode))
		file_settle(server_engine(c->dir.rq->server),
			    c->dir.access.volume, st.st_ino);
}

void
change_forget(struct object *o, int victim_fd)
{
	const struct export *e;
	struct engine *engine;
	struct statx st;

	if (victim_fd < 0)
		return;
	e = o->access.export;
	engine = server_engine(o->rq->server);
	if (!nfs3_statx(victim_fd, &st) && st.stx_nlink == 0 &&
	    S_ISREG(st.stx_mode)) {
		if (e->rw != NULL)
			file_forget(engine, e->rw, st.stx_ino);
		if (e->ro != NULL)
			file_forget(engine, e->ro, st.stx_ino);
	}
	(void)close(victim_fd);
}
