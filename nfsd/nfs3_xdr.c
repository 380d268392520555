/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of NFS version 3, NFSACL, RQUOTA and MOUNT calls, decoded (RFC
 * 1813, 3.3 and 5.2; XDR: RFC 4506).
 *
 * The object is a libtirpc memory stream that the caller created over a record;
 * names, paths and link targets stay where they lie in it. Pure functions, any
 * thread. They know the shape of the arguments and nothing of their meaning: a
 * handle is bytes, a name may hold anything.
 *
 * All that is read comes through the library's bounds checks. A decoder is one
 * chain of conditions, so that the first thing that is wrong ends it.
 */
#include "nfsd/acl.h"
#include "nfsd/nfs3.h"
#include "nfsd/xdr.h"

#include <string.h>

/* Parts --------------------------------------------------------------- */

static bool
get_time(XDR *x, struct nfstime3 *ret)
{
	int32_t word[2], *run = word;

	if (!XDR_GETBYTES(x, (char *)word, sizeof(word)))
		return false;
	ret->seconds = IXDR_GET_U_INT32(run);
	ret->nseconds = IXDR_GET_U_INT32(run);
	return true;
}

static bool
get_verf(XDR *x, uint8_t verf[8])
{
	return XDR_GETBYTES(x, (char *)verf, 8);
}

static bool
get_bytes(XDR *x, struct nfs3_bytes *ret)
{
	if (!get_u32(x, &ret->bytes))
		return false;
	ret->data = get_inline(x, ret->bytes);
	return ret->data != NULL;
}

static bool
get_fh(XDR *x, struct nfs_fh3 *ret)
{
	const uint8_t *data;

	if (!get_enum(x, NFS3_FHSIZE, &ret->bytes))
		return false;
	data = get_inline(x, ret->bytes);
	if (!data)
		return false;
	memcpy(ret->data, data, ret->bytes);
	memset(ret->data + ret->bytes, 0, NFS3_FHSIZE - ret->bytes);
	return true;
}

static bool
get_dirop(XDR *x, struct diropargs3 *ret)
{
	return get_fh(x, &ret->dir) && get_bytes(x, &ret->name);
}

static bool
get_optional_u32(XDR *x, bool *set, uint32_t *ret)
{
	return get_bool(x, set) && (!*set || get_u32(x, ret));
}

static bool
get_time_how(XDR *x, enum time_how *how, struct nfstime3 *ret)
{
	uint32_t value;

	if (!get_enum(x, SET_TO_CLIENT_TIME, &value))
		return false;
	*how = value;
	return *how != SET_TO_CLIENT_TIME || get_time(x, ret);
}

static bool
get_sattr(XDR *x, struct sattr3 *ret)
{
	memset(ret, 0, sizeof(*ret));
	return get_optional_u32(x, &ret->set_mode, &ret->mode) &&
	       get_optional_u32(x, &ret->set_uid, &ret->uid) &&
	       get_optional_u32(x, &ret->set_gid, &ret->gid) &&
	       get_bool(x, &ret->set_size) &&
	       (!ret->set_size || get_u64(x, &ret->size)) &&
	       get_time_how(x, &ret->set_atime, &ret->atime) &&
	       get_time_how(x, &ret->set_mtime, &ret->mtime);
}

/* Procedures, in the order of their numbers --------------------------- */

bool
nfs3_decode_void(XDR *x, union nfs3_args *args)
{
	return at_end(x);
}

bool
nfs3_decode_fh(XDR *x, union nfs3_args *args)
{
	return get_fh(x, &args->fh.fh) && at_end(x);
}

bool
nfs3_decode_setattr(XDR *x, union nfs3_args *args)
{
	struct nfs3_setattr_args *a = &args->setattr;

	memset(&a->guard_ctime, 0, sizeof(a->guard_ctime));
	return get_fh(x, &a->fh) && get_sattr(x, &a->attr) &&
	       get_bool(x, &a->guard) &&
	       (!a->guard || get_time(x, &a->guard_ctime)) && at_end(x);
}

bool
nfs3_decode_dirop(XDR *x, union nfs3_args *args)
{
	return get_dirop(x, &args->dirop.where) && at_end(x);
}

bool
nfs3_decode_access(XDR *x, union nfs3_args *args)
{
	struct nfs3_access_args *a = &args->access;

	return get_fh(x, &a->fh) && get_u32(x, &a->access) && at_end(x);
}

bool
nfs3_decode_read(XDR *x, union nfs3_args *args)
{
	struct nfs3_read_args *a = &args->read;

	return get_fh(x, &a->fh) && get_u64(x, &a->offset) &&
	       get_u32(x, &a->count) && at_end(x);
}

bool
nfs3_decode_write(XDR *x, union nfs3_args *args)
{
	struct nfs3_write_args *a = &args->write;
	uint32_t stable = 0;

	if (!get_fh(x, &a->fh) || !get_u64(x, &a->offset) ||
	    !get_u32(x, &a->count) || !get_enum(x, FILE_SYNC, &stable))
		return false;
	a->stable = stable;
	return get_u32(x, &a->data_bytes);
}

bool
nfs3_decode_create(XDR *x, union nfs3_args *args)
{
	struct nfs3_create_args *a = &args->create;
	uint32_t mode = 0;

	memset(a, 0, sizeof(*a));
	if (!get_dirop(x, &a->where) || !get_enum(x, EXCLUSIVE, &mode))
		return false;
	a->mode = mode;
	if (a->mode == EXCLUSIVE)
		return get_verf(x, a->verf) && at_end(x);
	return get_sattr(x, &a->attr) && at_end(x);
}

bool
nfs3_decode_mkdir(XDR *x, union nfs3_args *args)
{
	struct nfs3_mkdir_args *a = &args->mkdir;

	return get_dirop(x, &a->where) && get_sattr(x, &a->attr) && at_end(x);
}

bool
nfs3_decode_symlink(XDR *x, union nfs3_args *args)
{
	struct nfs3_symlink_args *a = &args->symlink;

	return get_dirop(x, &a->where) && get_sattr(x, &a->attr) &&
	       get_bytes(x, &a->target) && at_end(x);
}

/* mknoddata3's arms by type; the default arm is void. */
static bool
get_mknod_data(XDR *x, struct nfs3_mknod_args *a)
{
	switch (a->type) {
	case NF3CHR:
	case NF3BLK:
		return get_sattr(x, &a->attr) &&
		       get_u32(x, &a->spec.specdata1) &&
		       get_u32(x, &a->spec.specdata2);
	case NF3SOCK:
	case NF3FIFO:
		return get_sattr(x, &a->attr);
	default:
		return true;
	}
}

bool
nfs3_decode_mknod(XDR *x, union nfs3_args *args)
{
	struct nfs3_mknod_args *a = &args->mknod;

	memset(a, 0, sizeof(*a));
	return get_dirop(x, &a->where) && get_u32(x, &a->type) &&
	       get_mknod_data(x, a) && at_end(x);
}

bool
nfs3_decode_rename(XDR *x, union nfs3_args *args)
{
	struct nfs3_rename_args *a = &args->rename;

	return get_dirop(x, &a->from) && get_dirop(x, &a->to) && at_end(x);
}

bool
nfs3_decode_link(XDR *x, union nfs3_args *args)
{
	struct nfs3_link_args *a = &args->link;

	return get_fh(x, &a->fh) && get_dirop(x, &a->link) && at_end(x);
}

static bool
get_readdir(XDR *x, struct nfs3_readdir_args *a)
{
	return get_fh(x, &a->dir) && get_u64(x, &a->cookie) &&
	       get_verf(x, a->cookieverf);
}

bool
nfs3_decode_readdir(XDR *x, union nfs3_args *args)
{
	struct nfs3_readdir_args *a = &args->readdir;

	a->plus = false;
	a->dircount = 0;
	return get_readdir(x, a) && get_u32(x, &a->maxcount) && at_end(x);
}

bool
nfs3_decode_readdirplus(XDR *x, union nfs3_args *args)
{
	struct nfs3_readdir_args *a = &args->readdir;

	a->plus = true;
	return get_readdir(x, a) && get_u32(x, &a->dircount) &&
	       get_u32(x, &a->maxcount) && at_end(x);
}

bool
nfs3_decode_commit(XDR *x, union nfs3_args *args)
{
	struct nfs3_commit_args *a = &args->commit;

	return get_fh(x, &a->fh) && get_u64(x, &a->offset) &&
	       get_u32(x, &a->count) && at_end(x);
}

bool
mount3_decode_path(XDR *x, union nfs3_args *args)
{
	return get_bytes(x, &args->mount.path) && at_end(x);
}

bool
nfsacl_decode_getacl(XDR *x, union nfs3_args *args)
{
	struct nfsacl_getacl_args *a = &args->getacl;

	return get_fh(x, &a->fh) && get_u32(x, &a->mask) && at_end(x);
}

/* How many entries there are is said twice: for the count that was asked for
 * alone, where the array is empty, and as the array's length. */
static bool
get_acl(XDR *x, struct nfs3_bytes *ret)
{
	uint32_t count, length;

	if (!get_u32(x, &count) || !get_enum(x, ACL_ENTRIES_MAX, &length) ||
	    (length != 0 && length != count))
		return false;
	ret->bytes = length * ACL_WIRE_BYTES;
	ret->data = get_inline(x, ret->bytes);
	return ret->data != NULL;
}

bool
nfsacl_decode_setacl(XDR *x, union nfs3_args *args)
{
	struct nfsacl_setacl_args *a = &args->setacl;

	return get_fh(x, &a->fh) && get_u32(x, &a->mask) &&
	       get_acl(x, &a->access) && get_acl(x, &a->default_) && at_end(x);
}

bool
rquota_decode(XDR *x, union nfs3_args *args)
{
	struct rquota_args *a = &args->quota;

	a->type = RQUOTA_USER;
	return get_bytes(x, &a->path) && get_u32(x, &a->id) && at_end(x);
}

bool
rquota2_decode(XDR *x, union nfs3_args *args)
{
	struct rquota_args *a = &args->quota;

	return get_bytes(x, &a->path) && get_u32(x, &a->type) &&
	       get_u32(x, &a->id) && at_end(x);
}
