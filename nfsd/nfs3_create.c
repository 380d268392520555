/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes things: CREATE, MKDIR, SYMLINK, MKNOD (RFC 1813, 3.3.8 to 3.3.11).
 * Plain blocking procedures, on a worker.
 *
 * A struct creation lives on the stack from the call to its reply. Steps:
 * resolve the directory and judge the name; with the directory locked, make the
 * object as the caller and open what was made; then put the attributes on it
 * that the kernel's call did not take; make all of it durable. Existing objects
 * are only ever opened with O_PATH: a FIFO or a device is never woken.
 */
#include "nfsd/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define CREATE_TRIES 8u
#define MAJOR_MAX    0xfffu /* what the kernel's dev_t holds */
#define MINOR_MAX    0xfffffu

struct creation {
	struct request *rq;
	const struct diropargs3 *where;
	const struct sattr3 *attr;
	mode_t mode; /* as asked, 0 where it was not */
	struct change change;
	int fd;       /* what was made or found; -1 when it vanished */
	bool existed; /* CREATE found it */
	bool kept;    /* EXCLUSIVE: the verifier is in it already */
};

/* Make the object, as the caller, and leave cr->fd open where the call gives a
 * descriptor. 0 or -errno. */
typedef int make_fn(struct creation *cr);

static void
creation_init(struct creation *cr, struct request *rq,
	      const struct diropargs3 *where, const struct sattr3 *attr)
{
	cr->rq = rq;
	cr->where = where;
	cr->attr = attr;
	cr->mode = attr->set_mode ? attr->mode & 07777u : 0;
	cr->fd = -1;
	cr->existed = false;
	cr->kept = false;
}

static enum nfsstat3
creation_open(struct creation *cr)
{
	enum nfsstat3 status = change_open(&cr->change, cr->rq, cr->where,
					   &cr->rq->res.create.dir_wcc);

	if (status == NFS3_OK && name_is_dots(&cr->change.name))
		return NFS3ERR_EXIST;
	if (status == NFS3_OK)
		status = nfs3_status(sattr_check(cr->attr));
	return status;
}

static int
creation_make(struct creation *cr, make_fn *make)
{
	struct change *c = &cr->change;
	struct dirlock lock;
	int error;

	dirlock_take(&lock, &c->dir.st, NULL);
	change_begin(c);
	identity_assume(&c->dir.id);
	error = make(cr);
	/* Gone again already: the reply then has neither handle nor
	 * attributes, which RFC 1813 allows. */
	if (!error && cr->fd < 0)
		cr->fd = name_open(c->dir.fd, &c->name);
	identity_drop();
	change_end(c);
	dirlock_drop(&lock);
	return error;
}

static int
creation_dress(struct creation *cr)
{
	const struct identity *id = &cr->change.dir.id;
	int error;

	if (cr->fd < 0 || !sattr_dresses(cr->attr))
		return 0;
	identity_assume(id);
	error = sattr_apply_new(id, cr->fd, cr->attr);
	identity_drop();
	return error;
}

static void
creation_tell(struct creation *cr)
{
	struct nfs3_create_res *res = &cr->rq->res.create;
	struct object *dir = &cr->change.dir;
	struct statx st;

	if (cr->fd < 0)
		return;
	res->fh.follows = !object_handle(dir, cr->fd, NULL, &res->fh.fh);
	res->attr.follows = !nfs3_statx(cr->fd, &st);
	if (res->attr.follows)
		nfs3_attr_from_statx(&res->attr.attr, &st,
				     dir->access.export->fsid);
}

static void
creation_close(struct creation *cr)
{
	if (cr->fd >= 0)
		(void)close(cr->fd);
	change_close(&cr->change);
}

/* The steps of MKDIR, SYMLINK and MKNOD between open and close. */
static enum nfsstat3
creation_finish(struct creation *cr, make_fn *make)
{
	int error = creation_make(cr, make);

	if (!error)
		error = creation_dress(cr);
	if (error)
		return nfs3_status(error);
	creation_tell(cr);
	return change_sync(&cr->change.dir, cr->fd);
}

static enum nfsstat3
creation_run(struct creation *cr, make_fn *make)
{
	enum nfsstat3 status = creation_open(cr);

	if (status == NFS3_OK)
		status = creation_finish(cr, make);
	creation_close(cr);
	return status;
}

/* MKDIR ----------------------------------------------------------------------
 */

static int
make_dir(struct creation *cr)
{
	const struct change *c = &cr->change;

	return mkdirat(c->dir.fd, c->name.text, cr->mode) < 0 ? -errno : 0;
}

enum nfsstat3
nfs3_mkdir(struct request *rq)
{
	const struct nfs3_mkdir_args *args = &rq->args.mkdir;
	struct creation cr;

	creation_init(&cr, rq, &args->where, &args->attr);
	return creation_run(&cr, make_dir);
}

/* SYMLINK --------------------------------------------------------------------
 */

static int
make_symlink(struct creation *cr)
{
	const struct nfs3_bytes *wire = &cr->rq->args.symlink.target;
	const struct change *c = &cr->change;
	char target[PATH_MAX];

	if (wire->bytes == 0 || memchr(wire->data, '\0', wire->bytes) != NULL)
		return -EINVAL;
	if (wire->bytes >= sizeof(target))
		return -ENAMETOOLONG;
	memcpy(target, wire->data, wire->bytes);
	target[wire->bytes] = '\0';
	return symlinkat(target, c->dir.fd, c->name.text) < 0 ? -errno : 0;
}

enum nfsstat3
nfs3_symlink(struct request *rq)
{
	const struct nfs3_symlink_args *args = &rq->args.symlink;
	struct creation cr;

	creation_init(&cr, rq, &args->where, &args->attr);
	return creation_run(&cr, make_symlink);
}

/* MKNOD ----------------------------------------------------------------------
 */

static bool
node_is_device(uint32_t type)
{
	return type == NF3CHR || type == NF3BLK;
}

static mode_t
node_type(uint32_t type)
{
	switch (type) {
	case NF3CHR:
		return S_IFCHR;
	case NF3BLK:
		return S_IFBLK;
	case NF3SOCK:
		return S_IFSOCK;
	case NF3FIFO:
		return S_IFIFO;
	default:
		return 0;
	}
}

static int
make_node(struct creation *cr)
{
	const struct nfs3_mknod_args *args = &cr->rq->args.mknod;
	const struct change *c = &cr->change;
	dev_t dev = 0;

	if (node_is_device(args->type)) {
		/* Linux lets anyone make the device 0:0 (a whiteout). */
		if (c->dir.id.uid != 0)
			return -EPERM;
		if (args->spec.specdata1 > MAJOR_MAX ||
		    args->spec.specdata2 > MINOR_MAX)
			return -EINVAL;
		dev = makedev(args->spec.specdata1, args->spec.specdata2);
	}
	return mknodat(c->dir.fd, c->name.text,
		       node_type(args->type) | cr->mode, dev) < 0
		       ? -errno
		       : 0;
}

enum nfsstat3
nfs3_mknod(struct request *rq)
{
	const struct nfs3_mknod_args *args = &rq->args.mknod;
	enum nfsstat3 status;
	struct creation cr;

	creation_init(&cr, rq, &args->where, &args->attr);
	status = creation_open(&cr);
	if (status == NFS3_OK && node_type(args->type) == 0)
		status = NFS3ERR_BADTYPE;
	if (status == NFS3_OK)
		status = creation_finish(&cr, make_node);
	creation_close(&cr);
	return status;
}

/* CREATE ---------------------------------------------------------------------
 */

/* O_EXCL: nothing that exists is opened, no symlink followed. */
static int
make_named(struct creation *cr)
{
	const struct change *c = &cr->change;

	cr->fd = openat(c->dir.fd, c->name.text,
			O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			cr->mode);
	return cr->fd < 0 ? -errno : 0;
}

/*
 * A file that has its verifier before it has its name: a server that dies in
 * between leaves nothing, and not a file that the client's retry would find and
 * not know. -EOPNOTSUPP: the file system has no nameless files, or nowhere to
 * keep the verifier.
 */
static int
make_verified(struct creation *cr)
{
	const struct change *c = &cr->change;
	char path[NAME_FD_PATH_BYTES];
	int error, fd;

	fd = openat(c->dir.fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, cr->mode);
	if (fd < 0)
		return -errno;
	identity_drop();
	error = exclusive_keep(fd, cr->rq->args.create.verf);
	identity_assume(&c->dir.id);
	name_fd_path(path, fd);
	if (!error && linkat(AT_FDCWD, path, c->dir.fd, c->name.text,
			     AT_SYMLINK_FOLLOW) < 0)
		error = -errno;
	if (error) {
		(void)close(fd);
		return error;
	}
	cr->fd = fd;
	cr->kept = true;
	return 0;
}

static int
make_fresh(struct creation *cr)
{
	int error = -EOPNOTSUPP;

	if (cr->rq->args.create.mode == EXCLUSIVE)
		error = make_verified(cr);
	return error == -EOPNOTSUPP ? make_named(cr) : error;
}

static int
make_file(struct creation *cr)
{
	const struct change *c = &cr->change;
	unsigned tries;
	int error, fd;

	for (tries = 0; tries < CREATE_TRIES; tries++) {
		error = make_fresh(cr);
		if (error != -EEXIST || cr->rq->args.create.mode == GUARDED)
			return error;
		fd = name_open(c->dir.fd, &c->name);
		if (fd >= 0) {
			cr->fd = fd;
			cr->existed = true;
			return 0;
		}
		if (fd != -ENOENT)
			return fd == -EXDEV ? -EEXIST : fd;
		/* Removed in between, by a local process: again. */
	}
	return -EEXIST;
}

/* UNCHECKED and the file is there: it is only cut to size, as one opened with
 * O_TRUNC; its other attributes stay. The directory is not locked any more. */
static enum nfsstat3
create_resize(struct creation *cr)
{
	const struct sattr3 size = { .set_size = true, .size = cr->attr->size };
	struct wcc_data unused = { .after.follows = false };
	enum nfsstat3 status;
	struct object file;
	struct nfs_fh3 fh;
	int error = object_handle(&cr->change.dir, cr->fd, NULL, &fh);

	if (error)
		return nfs3_status(error);
	status = nfs3_status(object_open(&file, cr->rq, &fh));
	if (status == NFS3_OK)
		status = setattr_object(&file, &size, NULL, &unused);
	object_fini(&file);
	return status;
}

static enum nfsstat3
create_found(struct creation *cr)
{
	const struct nfs3_create_args *args = &cr->rq->args.create;
	struct statx st;
	int error = nfs3_statx(cr->fd, &st);

	if (error)
		return nfs3_status(error);
	if (!S_ISREG(st.stx_mode))
		return NFS3ERR_EXIST;
	if (args->mode == EXCLUSIVE && !exclusive_same(cr->fd, &st, args->verf))
		return NFS3ERR_EXIST;
	if (args->mode == UNCHECKED && args->attr.set_size)
		return create_resize(cr);
	return NFS3_OK;
}

/* RFC 1813: a server that cannot keep the verifier fails the call with NOTSUPP,
 * and then there is no file either. */
static enum nfsstat3
create_exclusive(struct creation *cr)
{
	struct change *c = &cr->change;
	int error;

	if (cr->kept)
		return NFS3_OK;
	error = exclusive_keep(cr->fd, cr->rq->args.create.verf);
	if (!error)
		return NFS3_OK;
	(void)unlinkat(c->dir.fd, c->name.text, 0);
	change_end(c);
	return nfs3_status(error);
}

static enum nfsstat3
create_new(struct creation *cr)
{
	const struct nfs3_create_args *args = &cr->rq->args.create;
	int error = 0;

	if (args->mode == EXCLUSIVE)
		return create_exclusive(cr);
	if (args->attr.set_size && args->attr.size > 0) {
		identity_assume(&cr->change.dir.id);
		if (ftruncate(cr->fd, (off_t)args->attr.size) < 0)
			error = -errno;
		identity_drop();
	}
	if (!error)
		error = creation_dress(cr);
	return nfs3_status(error);
}

static enum nfsstat3
create_sync(const struct creation *cr)
{
	const struct object *dir = &cr->change.dir;

	if (cr->rq->args.create.mode == EXCLUSIVE)
		return change_sync_always(dir, cr->fd);
	return change_sync(dir, cr->fd);
}

enum nfsstat3
nfs3_create(struct request *rq)
{
	const struct nfs3_create_args *args = &rq->args.create;
	static const struct sattr3 none;
	enum nfsstat3 status;
	struct creation cr;

	creation_init(&cr, rq, &args->where,
		      args->mode == EXCLUSIVE ? &none : &args->attr);
	status = creation_open(&cr);
	if (status == NFS3_OK)
		status = nfs3_status(creation_make(&cr, make_file));
	if (status == NFS3_OK)
		status = cr.existed ? create_found(&cr) : create_new(&cr);
	if (status == NFS3_OK)
		creation_tell(&cr);
	if (status == NFS3_OK)
		status = create_sync(&cr);
	creation_close(&cr);
	return status;
}
