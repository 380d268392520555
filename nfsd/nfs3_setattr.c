/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SETATTR (RFC 1813, 3.3.2): a plain blocking procedure, on a worker.
 *
 * All that can be judged is judged first, so that a refusal changes nothing:
 * RFC 1813 leaves open what a partial success has changed. Then, in this order,
 * size, owner, mode and times. Order of locks: the file is frozen (no piece of
 * a WRITE in flight), then the inode's lock, so that nobody waits behind our
 * waiting for pieces.
 */
#include "nfsd/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* The open file of an object, where it has one, bracketed for wcc_data. */
struct held {
	struct file *file; /* NULL: not open, no data call is under way */
	struct file_bracket bracket;
	bool frozen;
};

static int
held_begin(struct held *h, struct object *o, bool freeze)
{
	struct engine *engine = server_engine(o->rq->server);
	struct file_key key;
	int error = 0;

	h->file = NULL;
	h->frozen = false;
	if (!S_ISREG(o->st.stx_mode))
		return 0;
	object_file_key(o, &key);
	if (freeze)
		error = file_open(engine, &key, &h->file);
	else
		h->file = file_find(engine, &key);
	if (error || h->file == NULL)
		return error;
	file_begin(h->file, &h->bracket);
	if (freeze)
		file_freeze(h->file);
	h->frozen = freeze;
	return 0;
}

/* Whether what was read before the change was true until then. */
static bool
held_end(struct held *h)
{
	bool alone;

	if (h->file == NULL)
		return true;
	if (h->frozen)
		file_thaw(h->file);
	alone = file_end(h->file, &h->bracket);
	file_put(h->file);
	return alone;
}

/*
 * As the caller, so that the kernel clears setuid and setgid bits and counts
 * quotas as it does for a local one. The descriptor is the server's own: a
 * caller whom sattr_permitted let through as the owner of a 0444 file could
 * not open it.
 */
static int
size_set(struct object *o, struct file *f, uint64_t size)
{
	char path[NAME_FD_PATH_BYTES];
	int fd = -1, error = 0;

	/* Not writable when it was opened: as ever it was refused now. */
	if (!file_writable(f)) {
		name_fd_path(path, o->fd);
		fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			return -errno;
	}
	identity_assume(&o->id);
	if (ftruncate(fd < 0 ? file_fd(f) : fd, (off_t)size) < 0)
		error = -errno;
	identity_drop();
	if (fd >= 0)
		(void)close(fd);
	return error;
}

static bool
guard_holds(const struct nfstime3 *guard, const struct pre_op_attr *before)
{
	return guard == NULL || (guard->seconds == before->ctime.seconds &&
				 guard->nseconds == before->ctime.nseconds);
}

/* With the inode's lock held. */
static enum nfsstat3
setattr_locked(struct object *o, struct held *h, const struct sattr3 *a,
	       const struct nfstime3 *guard, struct wcc_data *wcc)
{
	int error = object_stat(o);

	if (error)
		return nfs3_status(error);
	nfs3_pre_op_from_statx(&wcc->before, &o->st);
	if (!guard_holds(guard, &wcc->before))
		return NFS3ERR_NOT_SYNC;
	if (a->set_size)
		error = size_set(o, h->file, a->size);
	if (!error)
		error = sattr_apply(o, a);
	if (!error && a->set_mtime != DONT_CHANGE)
		exclusive_end(o->fd, &o->st);
	return nfs3_status(error);
}

static enum nfsstat3
setattr_judge(struct object *o, const struct sattr3 *a)
{
	int error;

	if (volume_read_only(o->access.volume))
		return NFS3ERR_ROFS;
	if (a->set_size && S_ISDIR(o->st.stx_mode))
		return NFS3ERR_ISDIR;
	if (a->set_size && !S_ISREG(o->st.stx_mode))
		return NFS3ERR_INVAL;
	error = sattr_check(a);
	if (!error)
		error = sattr_permitted(o, a);
	return nfs3_status(error);
}

enum nfsstat3
setattr_object(struct object *o, const struct sattr3 *a,
	       const struct nfstime3 *guard, struct wcc_data *wcc)
{
	enum nfsstat3 status;
	struct dirlock lock;
	struct held held;
	int error;

	object_attr(o, &wcc->after);
	status = setattr_judge(o, a);
	if (status != NFS3_OK)
		return status;
	/* What waits in memory would be written after it, and move it. */
	if (a->set_mtime != DONT_CHANGE && S_ISREG(o->st.stx_mode))
		file_settle(server_engine(o->rq->server), o->access.volume,
			    o->st.stx_ino);
	error = held_begin(&held, o, a->set_size);
	if (error)
		return nfs3_status(error);
	dirlock_take(&lock, &o->st, NULL);
	status = setattr_locked(o, &held, a, guard, wcc);
	object_attr_now(o, &wcc->after);
	dirlock_drop(&lock);
	if (!held_end(&held))
		wcc->before.follows = false;
	return status;
}

enum nfsstat3
nfs3_setattr(struct request *rq)
{
	const struct nfs3_setattr_args *args = &rq->args.setattr;
	enum nfsstat3 status;
	struct object o;

	status = nfs3_status(object_open(&o, rq, &args->fh));
	if (status == NFS3_OK)
		status = setattr_object(&o, &args->attr,
					args->guard ? &args->guard_ctime : NULL,
					&rq->res.wcc.wcc);
	if (status == NFS3_OK)
		status = change_sync(&o, -1);
	object_fini(&o);
	return status;
}
