/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GETACL and SETACL of NFSACL version 3, Solaris's protocol beside NFS version
 * 3, which Linux speaks too: plain blocking procedures, on a worker, between
 * the wire and the POSIX ACLs of the file system, which judges who may set them
 * (its owner) and what becomes of the mode. Nothing is kept here.
 *
 * All that can be judged is judged before the first change, since the access
 * and the default ACL are two of them. An ACL that the mask does not name stays
 * as it is. What an export with no_acl tells is the mode's, as of a file system
 * that has no ACLs.
 *
 * acl(5), xattr(7).
 */
#include "nfsd/acl.h"
#include "nfsd/proc.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define XATTR_ACCESS  "system.posix_acl_access"
#define XATTR_DEFAULT "system.posix_acl_default"

/* GETACL ------------------------------------------------------------------- */

/* No entries where there is none. */
static int
acl_read(const struct object *o, const char *name, struct acl *a)
{
	uint8_t bytes[ACL_XATTR_BYTES_MAX];
	char path[NAME_FD_PATH_BYTES];
	ssize_t n;

	a->count = 0;
	name_fd_path(path, o->fd);
	n = getxattr(path, name, bytes, sizeof(bytes));
	if (n > 0)
		return acl_from_xattr(a, bytes, (size_t)n);
	if (n == 0 || errno == ENODATA || errno == EOPNOTSUPP)
		return 0;
	/* More entries than the wire has room for. */
	return errno == ERANGE ? -EINVAL : -errno;
}

static int
read_access(const struct object *o, struct acl *a)
{
	int error = 0;

	a->count = 0;
	if (o->access.options->acl)
		error = acl_read(o, XATTR_ACCESS, a);
	if (!error && a->count == 0)
		acl_from_mode(a, o->st.stx_mode);
	return error;
}

static int
read_default(const struct object *o, struct acl *a)
{
	a->count = 0;
	if (!o->access.options->acl || !S_ISDIR(o->st.stx_mode))
		return 0;
	return acl_read(o, XATTR_DEFAULT, a);
}

struct both {
	struct acl access, default_;
};

static int
read_both(const struct object *o, uint32_t mask, struct both *b)
{
	int error = 0;

	b->access.count = 0;
	b->default_.count = 0;
	if (mask & (NFSACL_ACCESS | NFSACL_ACCESS_COUNT))
		error = read_access(o, &b->access);
	if (!error && mask & (NFSACL_DEFAULT | NFSACL_DEFAULT_COUNT))
		error = read_default(o, &b->default_);
	return error;
}

/* The part of the reply that is sent apart. */
static int
put_both(const struct object *o, uint32_t mask, const struct both *b,
	 struct mount3_list_res *ret)
{
	struct acl_owner owner = { o->st.stx_uid, o->st.stx_gid };
	uint32_t room = BYTES_PER_XDR_UNIT + acl_wire_bytes(&b->access) +
			acl_wire_bytes(&b->default_);
	uint8_t *list = malloc(room);
	bool ok;
	XDR x;

	if (!list)
		return -ENOMEM;
	xdrmem_create(&x, (char *)list, room, XDR_ENCODE);
	ok = xdr_u_int32_t(&x, &mask) &&
	     acl_put_wire(&x, &b->access, mask & NFSACL_ACCESS, 0, &owner) &&
	     acl_put_wire(&x, &b->default_, mask & NFSACL_DEFAULT,
			  ACL_WIRE_DEFAULT, &owner);
	assert(ok);
	ret->list = list;
	ret->list_bytes = XDR_GETPOS(&x);
	return 0;
}

static int
getacl_object(const struct object *o, uint32_t mask,
	      struct mount3_list_res *ret)
{
	struct both *b;
	int error;

	if (mask & ~NFSACL_MASK)
		return -EINVAL;
	b = malloc(sizeof(*b));
	if (!b)
		return -ENOMEM;
	error = read_both(o, mask, b);
	if (!error)
		error = put_both(o, mask, b, ret);
	free(b);
	return error;
}

enum nfsstat3
nfsacl_getacl(struct request *rq)
{
	const struct nfsacl_getacl_args *args = &rq->args.getacl;
	struct nfsacl_res *res = &rq->res.acl;
	struct object o;
	int error = object_open(&o, rq, &args->fh);

	if (error)
		return nfs3_status(error);
	object_attr(&o, &res->attr);
	error = getacl_object(&o, args->mask, &res->list);
	object_fini(&o);
	return nfs3_status(error);
}

/* SETACL ------------------------------------------------------------------- */

/* No entries take the ACL away. As the caller. */
static int
acl_write(const struct object *o, const char *name, const struct acl *a)
{
	uint8_t bytes[ACL_XATTR_BYTES_MAX];
	char path[NAME_FD_PATH_BYTES];
	int r;

	name_fd_path(path, o->fd);
	if (a->count > 0)
		r = setxattr(path, name, bytes, acl_to_xattr(bytes, a), 0);
	else
		r = removexattr(path, name);
	if (r == 0 || (a->count == 0 && errno == ENODATA))
		return 0;
	return -errno;
}

static int
write_both(const struct object *o, uint32_t mask, const struct both *b)
{
	int error = 0;

	identity_assume(&o->id);
	if (mask & NFSACL_ACCESS)
		error = acl_write(o, XATTR_ACCESS, &b->access);
	if (!error && mask & NFSACL_DEFAULT && S_ISDIR(o->st.stx_mode))
		error = acl_write(o, XATTR_DEFAULT, &b->default_);
	identity_drop();
	return error;
}

/* As SETATTR: whoever reads attributes before and after a change of his own
 * must not take this one for his. */
static int
write_locked(struct object *o, uint32_t mask, const struct both *b)
{
	struct file_bracket bracket;
	struct file *f = NULL;
	struct file_key key;
	struct dirlock lock;
	int error;

	if (S_ISREG(o->st.stx_mode)) {
		object_file_key(o, &key);
		f = file_find(server_engine(o->rq->server), &key);
	}
	if (f)
		file_begin(f, &bracket);
	dirlock_take(&lock, &o->st, NULL);
	error = write_both(o, mask, b);
	dirlock_drop(&lock);
	if (f) {
		(void)file_end(f, &bracket);
		file_put(f);
	}
	return error;
}

static int
take_both(const struct object *o, const struct nfsacl_setacl_args *args,
	  struct both *b)
{
	int error = 0;

	b->access.count = 0;
	b->default_.count = 0;
	if (args->mask & NFSACL_ACCESS)
		error = acl_from_wire(&b->access, args->access.data,
				      args->access.bytes);
	if (!error && args->mask & NFSACL_DEFAULT)
		error = acl_from_wire(&b->default_, args->default_.data,
				      args->default_.bytes);
	if (!error && b->default_.count > 0 && !S_ISDIR(o->st.stx_mode))
		error = -EACCES; /* as Linux says to a local one */
	return error;
}

static int
setacl_object(struct object *o, const struct nfsacl_setacl_args *args)
{
	struct both *b;
	int error;

	if (volume_read_only(o->access.volume))
		return -EROFS;
	if (!o->access.options->acl)
		return -EOPNOTSUPP;
	if (args->mask & ~NFSACL_MASK)
		return -EINVAL;
	b = malloc(sizeof(*b));
	if (!b)
		return -ENOMEM;
	error = take_both(o, args, b);
	if (!error)
		error = write_locked(o, args->mask, b);
	free(b);
	return error;
}

enum nfsstat3
nfsacl_setacl(struct request *rq)
{
	const struct nfsacl_setacl_args *args = &rq->args.setacl;
	enum nfsstat3 status;
	struct object o;

	status = nfs3_status(object_open(&o, rq, &args->fh));
	if (status != NFS3_OK)
		return status;
	status = nfs3_status(setacl_object(&o, args));
	if (status == NFS3_OK)
		status = change_sync(&o, -1);
	object_attr_now(&o, &rq->res.acl.attr);
	object_fini(&o);
	return status;
}
