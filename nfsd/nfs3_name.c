/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What acts on names: LOOKUP, REMOVE, RMDIR, RENAME, LINK (RFC 1813, 3.3.3 and
 * 3.3.12 to 3.3.15). Plain blocking procedures, on a worker: handles are opened
 * as the server, what is done to names is done as the caller.
 */
#include "nfsd/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* LOOKUP ---------------------------------------------------------------------
 */

/* The export's root is its own parent. Inside a clone the kernel sees to that
 * as well; where no clone could be had, only this does. */
static int
open_parent(const struct object *dir)
{
	int at_root = object_is_root(dir), fd;

	if (at_root < 0)
		return at_root;
	fd = openat(dir->fd, at_root ? "." : "..",
		    O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int
lookup_open(const struct object *dir, const struct name *name)
{
	int fd;

	identity_assume(&dir->id);
	if (name_is_dotdot(name))
		fd = open_parent(dir);
	else
		fd = name_open(dir->fd, name);
	identity_drop();
	/* A mount point: what is mounted there is not exported, and what is
	 * below it cannot be seen without a clone. */
	return fd == -EXDEV ? -EACCES : fd;
}

static enum nfsstat3
lookup_in(struct object *dir, const struct nfs3_bytes *wire,
	  struct nfs3_lookup_res *res)
{
	enum nfsstat3 status;
	struct statx st;
	struct name name;
	int fd, error;

	if (!S_ISDIR(dir->st.stx_mode))
		return NFS3ERR_NOTDIR;
	status = name_take(&name, wire);
	if (status != NFS3_OK)
		return status;
	fd = lookup_open(dir, &name);
	if (fd < 0)
		return nfs3_status(fd);
	error = object_handle(dir, fd, NULL, &res->fh);
	if (!error && !nfs3_statx(fd, &st)) {
		res->attr.follows = true;
		nfs3_attr_from_statx(&res->attr.attr, &st,
				     dir->access.export->fsid);
	}
	(void)close(fd);
	return nfs3_status(error);
}

enum nfsstat3
nfs3_lookup(struct request *rq)
{
	const struct diropargs3 *what = &rq->args.dirop.where;
	struct nfs3_lookup_res *res = &rq->res.lookup;
	enum nfsstat3 status;
	struct object dir;

	status = nfs3_status(object_open(&dir, rq, &what->dir));
	if (status == NFS3_OK) {
		status = lookup_in(&dir, &what->name, res);
		object_attr(&dir, &res->dir_attr);
	}
	object_fini(&dir);
	return status;
}

/* REMOVE, RMDIR --------------------------------------------------------------
 */

/* What name refers to now, kept open across a change that may end it, so that
 * its links can be counted afterwards. */
static int
victim_open(const struct change *c)
{
	int fd = name_open(c->dir.fd, &c->name);

	return fd < 0 ? -1 : fd;
}

static int
remove_locked(struct change *c, int flags, int *victim_fd)
{
	struct dirlock lock;
	int error = 0;

	dirlock_take(&lock, &c->dir.st, NULL);
	change_begin(c);
	identity_assume(&c->dir.id);
	if (flags == 0)
		*victim_fd = victim_open(c);
	if (unlinkat(c->dir.fd, c->name.text, flags) < 0)
		error = -errno;
	identity_drop();
	change_end(c);
	dirlock_drop(&lock);
	return error;
}

static enum nfsstat3
remove_judge(const struct name *name, int flags)
{
	if (!name_is_dots(name))
		return NFS3_OK;
	if (flags == 0)
		return NFS3ERR_ISDIR;
	return name_is_dot(name) ? NFS3ERR_INVAL : NFS3ERR_EXIST;
}

static enum nfsstat3
remove_name(struct request *rq, int flags)
{
	int victim_fd = -1;
	enum nfsstat3 status;
	struct change c;

	status = change_open(&c, rq, &rq->args.dirop.where, &rq->res.wcc.wcc);
	if (status == NFS3_OK)
		status = remove_judge(&c.name, flags);
	if (status == NFS3_OK)
		status = nfs3_status(remove_locked(&c, flags, &victim_fd));
	change_forget(&c.dir, victim_fd);
	if (status == NFS3_OK)
		status = change_sync(&c.dir, -1);
	change_close(&c);
	return status;
}

enum nfsstat3
nfs3_remove(struct request *rq)
{
	return remove_name(rq, 0);
}

enum nfsstat3
nfs3_rmdir(struct request *rq)
{
	return remove_name(rq, AT_REMOVEDIR);
}

/* RENAME ---------------------------------------------------------------------
 */

static int
rename_locked(struct change *from, struct change *to, int *victim_fd)
{
	struct dirlock lock;
	int error = 0;

	dirlock_take(&lock, &from->dir.st, &to->dir.st);
	change_begin(from);
	change_begin(to);
	identity_assume(&from->dir.id);
	*victim_fd = victim_open(to);
	if (renameat(from->dir.fd, from->name.text, to->dir.fd, to->name.text) <
	    0)
		error = -errno;
	identity_drop();
	change_end(from);
	change_end(to);
	dirlock_drop(&lock);
	return error;
}

static enum nfsstat3
rename_judge(const struct change *from, const struct change *to)
{
	if (from->dir.access.export != to->dir.access.export)
		return NFS3ERR_XDEV;
	if (name_is_dots(&from->name) || name_is_dots(&to->name))
		return NFS3ERR_INVAL;
	return NFS3_OK;
}

enum nfsstat3
nfs3_rename(struct request *rq)
{
	struct nfs3_rename_res *res = &rq->res.rename;
	enum nfsstat3 status, second;
	struct change from, to;
	int victim_fd = -1;

	/* Both in any case, so that both wcc_data are told. */
	status = change_open(&from, rq, &rq->args.rename.from, &res->from);
	second = change_open(&to, rq, &rq->args.rename.to, &res->to);
	if (status == NFS3_OK)
		status = second;
	if (status == NFS3_OK)
		status = rename_judge(&from, &to);
	if (status == NFS3_OK)
		status = nfs3_status(rename_locked(&from, &to, &victim_fd));
	change_forget(&to.dir, victim_fd);
	if (status == NFS3_OK)
		change_settle(&to);
	if (status == NFS3_OK)
		status = change_sync(&from.dir, to.dir.fd);
	change_close(&to);
	change_close(&from);
	return status;
}

/* LINK -----------------------------------------------------------------------
 */

/* By the descriptor's name in /proc: AT_EMPTY_PATH wants a capability that the
 * caller does not have. The kernel follows it to the inode and no further. */
static int
link_locked(struct change *c, struct object *file, struct post_op_attr *attr)
{
	char path[NAME_FD_PATH_BYTES];
	struct dirlock lock;
	int error = 0;

	name_fd_path(path, file->fd);
	dirlock_take(&lock, &c->dir.st, &file->st);
	change_begin(c);
	identity_assume(&c->dir.id);
	if (linkat(AT_FDCWD, path, c->dir.fd, c->name.text, AT_SYMLINK_FOLLOW) <
	    0)
		error = -errno;
	identity_drop();
	change_end(c);
	object_attr_now(file, attr);
	dirlock_drop(&lock);
	return error;
}

static enum nfsstat3
link_judge(const struct change *c, const struct object *file)
{
	if (file->access.export != c->dir.access.export)
		return NFS3ERR_XDEV;
	if (S_ISDIR(file->st.stx_mode))
		return NFS3ERR_ISDIR;
	if (name_is_dots(&c->name))
		return NFS3ERR_INVAL;
	return NFS3_OK;
}

enum nfsstat3
nfs3_link(struct request *rq)
{
	struct nfs3_link_res *res = &rq->res.link;
	enum nfsstat3 status, second;
	struct object file;
	struct change c;

	status = nfs3_status(object_open(&file, rq, &rq->args.link.fh));
	if (status == NFS3_OK)
		object_attr(&file, &res->attr);
	second = change_open(&c, rq, &rq->args.link.link, &res->dir_wcc);
	if (status == NFS3_OK)
		status = second;
	if (status == NFS3_OK)
		status = link_judge(&c, &file);
	if (status == NFS3_OK)
		status = nfs3_status(link_locked(&c, &file, &res->attr));
	if (status == NFS3_OK)
		status = change_sync(&c.dir, file.fd);
	change_close(&c);
	object_fini(&file);
	return status;
}
