/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The results of NFS version 3 calls, encoded (RFC 1813, 3.3; XDR: RFC 4506).
 *
 * The object is a libtirpc memory stream that the caller created over the room
 * for a reply. Pure functions, any thread. They know which arm a status selects
 * and nothing of what is in it. READ's payload, READDIR's entries and MOUNT's
 * lists are sent from where they lie and are not copied here.
 *
 * Runs of fixed length are put together on the stack and stored by one bounds
 * checked copy, so a reply that has no room left is never half a structure.
 */
#include "nfsd/nfs3.h"
#include "nfsd/xdr.h"

#include <assert.h>
#include <string.h>

#define WORD 4u /* bytes of an XDR unit */

static_assert(NFS3_FATTR_BYTES == 21 * WORD, "fattr3");
static_assert(NFS3_PRE_OP_BYTES == WORD + 6 * WORD, "pre_op_attr");
static_assert(NFS3_FHSIZE % WORD == 0, "a full handle has no filler");
static_assert(NFS3_PATH_BYTES ==
		      WORD + sizeof(((struct nfs3_readlink_res *)0)->data),
	      "nfspath3");
static_assert(NFS3_FSSTAT_BYTES == 13 * WORD, "FSSTAT3resok");
static_assert(NFS3_FSINFO_BYTES == 12 * WORD, "FSINFO3resok");
static_assert(NFS3_PATHCONF_BYTES == 6 * WORD, "PATHCONF3resok");

/* Parts --------------------------------------------------------------- */

static void
store_time(int32_t **run, const struct nfstime3 *t)
{
	IXDR_PUT_U_INT32(*run, t->seconds);
	IXDR_PUT_U_INT32(*run, t->nseconds);
}

static bool
put_verf(XDR *x, const uint8_t verf[NFS3_VERF_BYTES])
{
	return XDR_PUTBYTES(x, (const char *)verf, NFS3_VERF_BYTES);
}

static bool
put_fh(XDR *x, const struct nfs_fh3 *fh)
{
	assert(fh->bytes <= NFS3_FHSIZE);
	return put_bytes(x, fh->data, fh->bytes);
}

static bool
put_fattr(XDR *x, const struct fattr3 *a)
{
	int32_t word[NFS3_FATTR_BYTES / WORD], *run = word;

	IXDR_PUT_U_INT32(run, a->type);
	IXDR_PUT_U_INT32(run, a->mode);
	IXDR_PUT_U_INT32(run, a->nlink);
	IXDR_PUT_U_INT32(run, a->uid);
	IXDR_PUT_U_INT32(run, a->gid);
	store_u64(&run, a->size);
	store_u64(&run, a->used);
	IXDR_PUT_U_INT32(run, a->rdev.specdata1);
	IXDR_PUT_U_INT32(run, a->rdev.specdata2);
	store_u64(&run, a->fsid);
	store_u64(&run, a->fileid);
	store_time(&run, &a->atime);
	store_time(&run, &a->mtime);
	store_time(&run, &a->ctime);
	assert((size_t)(run - word) == sizeof(word) / sizeof(*word));
	return XDR_PUTBYTES(x, (char *)word, sizeof(word));
}

static bool
put_post_op(XDR *x, const struct post_op_attr *a)
{
	return put_u32(x, a->follows) &&
	       (!a->follows || put_fattr(x, &a->attr));
}

static bool
put_pre_op(XDR *x, const struct pre_op_attr *a)
{
	int32_t word[NFS3_PRE_OP_BYTES / WORD], *run = word;

	if (!a->follows)
		return put_u32(x, 0);
	IXDR_PUT_U_INT32(run, 1);
	store_u64(&run, a->size);
	store_time(&run, &a->mtime);
	store_time(&run, &a->ctime);
	assert((size_t)(run - word) == sizeof(word) / sizeof(*word));
	return XDR_PUTBYTES(x, (char *)word, sizeof(word));
}

static bool
put_wcc(XDR *x, const struct wcc_data *w)
{
	return put_pre_op(x, &w->before) && put_post_op(x, &w->after);
}

static bool
put_post_fh(XDR *x, const struct post_op_fh3 *f)
{
	return put_u32(x, f->follows) && (!f->follows || put_fh(x, &f->fh));
}

/* Procedures, in the order of their numbers --------------------------- */

bool
nfs3_encode_void(XDR *x, enum nfsstat3 status, const union nfs3_res *res)
{
	return true;
}

bool
nfs3_encode_getattr(XDR *x, enum nfsstat3 status, const union nfs3_res *res)
{
	return put_u32(x, status) &&
	       (status != NFS3_OK || put_fattr(x, &res->attr.attr.attr));
}

bool
nfs3_encode_wcc(XDR *x, enum nfsstat3 status, const union nfs3_res *res)
{
	return put_u32(x, status) && put_wcc(x, &res->wcc.wcc);
}

bool
nfs3_encode_lookup(XDR *x, enum nfsstat3 status, const union nfs3_res *res)
{
	const struct nfs3_lookup_res *r = &res->lookup;

	if (!put_u32(x, status))
		return false;
	if (status == NFS3_OK &&
	    (!put_fh(x, &r->fh) || !put_post_op(x, &r->attr)))
		return false;
	return put_post_op(x, &r->dir_attr);
}

bool
nfs3_encode_access(XDR *x, enum nfsstat3 status, const union nfs3_res *res)
{
	const struct nfs3_access_res *r = &res->access;

	return put_u32(x, status) && put_post_op(x, &r->attr) &&
	       (status != NFS3_OK || put_u32(x, r->access));
}

bool
nfs3_encode_readlink(XDR *x, enum nfsstat3 status, const union nfs3_res *res)
{
	const struct nfs3_readlink_res *r = &res->readlink;

	assert(r->bytes <= sizeof(r->data));
	return put_u32(x, status) && put_post_op(x, &r->attr) &&
	       (status != NFS3_OK || put_bytes(x, r->data, r->bytes));
}

bool
nfs3_encode_read(XDR *x, enum nfsstat3 status, const union nfs3_res *res)
{
	const struct nfs3_read_res *r = &res->read;

	if (!put_u32(x, status) || !put_post_op(x, &r->attr))
		return false;
	if (status != NFS3_OK)
		return true;
	/* count, and again as the length of the opaque data */
	return put_u32(x, r->count) && put_u32(x, r->eof) &&
	       put_u32(x, r->count);
}

bool
nfs3_encode_write(XDR *x, enum nfsstat3 status, const union nfs3_res *res)
{
	const struct nfs3_write_res *r = &res->write;

	if (!put_u32(x, status) || !put_wcc(x, &r->wcc))
		return false;
	if (status != NFS3_OK)
		return true;
	return put_u32(x, r->count) && put_u32(x, r->committed) &&
	       put_verf(x, r->verf);
}

bool
nfs3_encode_create(XDR *x, enum nfsstat3 status, const union nfs3_res *res)
{
	const struct nfs3_create_res *r = &res->create;

	if (!put_u32(x, status))
		return false;
	if (status == NFS3_OK &&
	    (!put_post_fh(x, &r->fh) || !put_post_op(x, &r->attr)))
		return false;
	return put_wcc(x, &r->dir_wcc);
}

bool
nfs3_encode_rename(XDR *x, enum nfsstat3 status, const union nfs3_res *res)
{
	return put_u32(x, status) && put_wcc(x, &res->rename.from) &&
	       put_wcc(x, &res->rename.to);
}

bool
nfs3_encode_link(XDR *x, enum nfsstat3 status, const union nfs3_res *res)
{
	return put_u32(x, status) && put_post_op(x, &res->link.attr) &&
	       put_wcc(x, &res->link.dir_wcc);
}

bool
nfs3_encode_readdir(XDR *x, enum nfsstat3 status, const union nfs3_res *res)
{
	const struct nfs3_readdir_res *r = &res->readdir;

	return put_u32(x, status) && put_post_op(x, &r->dir_attr) &&
	       (status != NFS3_OK || put_verf(x, r->cookieverf));
}

static bool
put_fsstat(XDR *x, const struct nfs3_fsstat_res *r)
{
	int32_t word[NFS3_FSSTAT_BYTES / WORD], *run = word;

	store_u64(&run, r->tbytes);
	store_u64(&run, r->fbytes);
	store_u64(&run, r->abytes);
	store_u64(&run, r->tfiles);
	store_u64(&run, r->ffiles);
	store_u64(&run, r->afiles);
	IXDR_PUT_U_INT32(run, r->invarsec);
	assert((size_t)(run - word) == sizeof(word) / sizeof(*word));
	return XDR_PUTBYTES(x, (char *)word, sizeof(word));
}

bool
nfs3_encode_fsstat(XDR *x, enum nfsstat3 status, const union nfs3_res *res)
{
	return put_u32(x, status) && put_post_op(x, &res->fsstat.attr) &&
	       (status != NFS3_OK || put_fsstat(x, &res->fsstat));
}

static bool
put_fsinfo(XDR *x, const struct nfs3_fsinfo_res *r)
{
	int32_t word[NFS3_FSINFO_BYTES / WORD], *run = word;

	IXDR_PUT_U_INT32(run, r->rtmax);
	IXDR_PUT_U_INT32(run, r->rtpref);
	IXDR_PUT_U_INT32(run, r->rtmult);
	IXDR_PUT_U_INT32(run, r->wtmax);
	IXDR_PUT_U_INT32(run, r->wtpref);
	IXDR_PUT_U_INT32(run, r->wtmult);
	IXDR_PUT_U_INT32(run, r->dtpref);
	store_u64(&run, r->maxfilesize);
	store_time(&run, &r->time_delta);
	IXDR_PUT_U_INT32(run, r->properties);
	assert((size_t)(run - word) == sizeof(word) / sizeof(*word));
	return XDR_PUTBYTES(x, (char *)word, sizeof(word));
}

bool
nfs3_encode_fsinfo(XDR *x, enum nfsstat3 status, const union nfs3_res *res)
{
	return put_u32(x, status) && put_post_op(x, &res->fsinfo.attr) &&
	       (status != NFS3_OK || put_fsinfo(x, &res->fsinfo));
}

static bool
put_pathconf(XDR *x, const struct nfs3_pathconf_res *r)
{
	int32_t word[NFS3_PATHCONF_BYTES / WORD], *run = word;

	IXDR_PUT_U_INT32(run, r->linkmax);
	IXDR_PUT_U_INT32(run, r->name_max);
	IXDR_PUT_U_INT32(run, r->no_trunc);
	IXDR_PUT_U_INT32(run, r->chown_restricted);
	IXDR_PUT_U_INT32(run, r->case_insensitive);
	IXDR_PUT_U_INT32(run, r->case_preserving);
	assert((size_t)(run - word) == sizeof(word) / sizeof(*word));
	return XDR_PUTBYTES(x, (char *)word, sizeof(word));
}

bool
nfs3_encode_pathconf(XDR *x, enum nfsstat3 status, const union nfs3_res *res)
{
	return put_u32(x, status) && put_post_op(x, &res->pathconf.attr) &&
	       (status != NFS3_OK || put_pathconf(x, &res->pathconf));
}

bool
nfs3_encode_commit(XDR *x, enum nfsstat3 status, const union nfs3_res *res)
{
	return put_u32(x, status) && put_wcc(x, &res->commit.wcc) &&
	       (status != NFS3_OK || put_verf(x, res->commit.verf));
}

bool
nfsacl_encode_res(XDR *x, enum nfsstat3 status, const union nfs3_res *res)
{
	return put_u32(x, status) && put_post_op(x, &res->acl.attr);
}

bool
rquota_encode(XDR *x, enum nfsstat3 status, const union nfs3_res *res)
{
	const struct rquota_res *r = &res->quota;

	if (!put_u32(x, r->status) || r->status != RQUOTA_OK)
		return r->status != RQUOTA_OK;
	return put_u32(x, r->block_bytes) && put_u32(x, 1) && /* it counts */
	       put_u32(x, r->blocks_hard) && put_u32(x, r->blocks_soft) &&
	       put_u32(x, r->blocks) && put_u32(x, r->files_hard) &&
	       put_u32(x, r->files_soft) && put_u32(x, r->files) &&
	       put_u32(x, r->blocks_seconds) && put_u32(x, r->files_seconds);
}

/* Entries of a directory ---------------------------------------------- */

static bool
put_entry(XDR *x, uint64_t fileid, const char *name, uint32_t name_bytes,
	  uint64_t cookie)
{
	return put_u32(x, 1) && put_u64(x, fileid) &&
	       put_bytes(x, name, name_bytes) && put_u64(x, cookie);
}

uint32_t
nfs3_encode_entry(uint8_t *out, uint32_t room, uint64_t fileid,
		  const char *name, uint32_t name_bytes, uint64_t cookie)
{
	XDR x;

	xdrmem_create(&x, (char *)out, room, XDR_ENCODE);
	if (!put_entry(&x, fileid, name, name_bytes, cookie))
		return 0;
	return XDR_GETPOS(&x);
}

/* NOLINTBEGIN(readability-function-size): an entry has these parts */
uint32_t
nfs3_encode_entryplus(uint8_t *out, uint32_t room, uint64_t fileid,
		      const char *name, uint32_t name_bytes, uint64_t cookie,
		      const struct fattr3 *attr, const struct nfs_fh3 *fh)
{
	XDR x;

	xdrmem_create(&x, (char *)out, room, XDR_ENCODE);
	if (!put_entry(&x, fileid, name, name_bytes, cookie) ||
	    !put_u32(&x, attr != NULL) || (attr && !put_fattr(&x, attr)) ||
	    !put_u32(&x, fh != NULL) || (fh && !put_fh(&x, fh)))
		return 0;
	return XDR_GETPOS(&x);
}
/* NOLINTEND(readability-function-size) */
