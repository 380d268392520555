/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What only asks: GETATTR, ACCESS, READLINK, FSSTAT, FSINFO, PATHCONF (RFC
 * 1813, 3.3.1, 3.3.4, 3.3.5, 3.3.18 to 3.3.20). Plain blocking procedures, on a
 * worker. None of them acts on a name, so none needs the caller's identity but
 * ACCESS, which judges it by mode and ACL.
 */
#include "nfsd/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define READ_PREFERRED_BYTES    (1u << 20)
#define READDIR_PREFERRED_BYTES (64u << 10)

/* Resolve, and tell the attributes, which each of these replies has. */
static enum nfsstat3
query_open(struct object *o, struct request *rq, const struct nfs_fh3 *fh,
	   struct post_op_attr *attr)
{
	int error = object_open(o, rq, fh);

	if (!error)
		object_attr(o, attr);
	return nfs3_status(error);
}

enum nfsstat3
nfs3_getattr(struct request *rq)
{
	enum nfsstat3 status;
	struct object o;

	status = query_open(&o, rq, &rq->args.fh.fh, &rq->res.attr.attr);
	object_fini(&o);
	return status;
}

/* Each bit of ACCESS and the permission that it takes. */
struct access_row {
	uint32_t access;
	unsigned perm;
};

static const struct access_row access_file[] = {
	{ ACCESS3_READ, PERM_READ },
	{ ACCESS3_MODIFY, PERM_WRITE },
	{ ACCESS3_EXTEND, PERM_WRITE },
	{ ACCESS3_EXECUTE, PERM_EXEC },
	{ 0, 0 },
};

static const struct access_row access_dir[] = {
	{ ACCESS3_READ, PERM_READ },
	{ ACCESS3_LOOKUP, PERM_EXEC },
	{ ACCESS3_MODIFY, PERM_WRITE | PERM_EXEC },
	{ ACCESS3_EXTEND, PERM_WRITE | PERM_EXEC },
	{ ACCESS3_DELETE, PERM_WRITE | PERM_EXEC },
	{ 0, 0 },
};

uint32_t
nfs3_access_bits(const struct object *o, unsigned perm)
{
	const struct access_row *row =
		S_ISDIR(o->st.stx_mode) ? access_dir : access_file;
	uint32_t granted = 0;

	for (; row->access != 0; row++)
		if ((perm & row->perm) == row->perm)
			granted |= row->access;
	if (volume_read_only(o->access.volume))
		granted &= ~(ACCESS3_MODIFY | ACCESS3_EXTEND | ACCESS3_DELETE);
	return granted;
}

enum nfsstat3
nfs3_access(struct request *rq)
{
	const struct nfs3_access_args *args = &rq->args.access;
	struct nfs3_access_res *res = &rq->res.access;
	enum nfsstat3 status;
	struct object o;
	unsigned perm;

	status = query_open(&o, rq, &args->fh, &res->attr);
	if (status == NFS3_OK)
		status = nfs3_status(perm_granted(&o.id, o.fd, &o.st, &perm));
	if (status == NFS3_OK)
		res->access = args->access & nfs3_access_bits(&o, perm);
	object_fini(&o);
	return status;
}

enum nfsstat3
nfs3_readlink(struct request *rq)
{
	struct nfs3_readlink_res *res = &rq->res.readlink;
	enum nfsstat3 status;
	struct object o;
	ssize_t n = 0;

	status = query_open(&o, rq, &rq->args.fh.fh, &res->attr);
	if (status == NFS3_OK && !S_ISLNK(o.st.stx_mode))
		status = NFS3ERR_INVAL;
	if (status == NFS3_OK) {
		n = readlinkat(o.fd, "", res->data, sizeof(res->data));
		status = nfs3_status(n < 0 ? -errno : 0);
	}
	if (status == NFS3_OK)
		res->bytes = (uint32_t)n;
	object_fini(&o);
	return status;
}

enum nfsstat3
nfs3_fsstat(struct request *rq)
{
	struct nfs3_fsstat_res *res = &rq->res.fsstat;
	enum nfsstat3 status;
	struct statvfs fs;
	struct object o;

	status = query_open(&o, rq, &rq->args.fh.fh, &res->attr);
	if (status == NFS3_OK)
		status = nfs3_status(fstatvfs(o.fd, &fs) < 0 ? -errno : 0);
	if (status == NFS3_OK) {
		res->tbytes = (uint64_t)fs.f_blocks * fs.f_frsize;
		res->fbytes = (uint64_t)fs.f_bfree * fs.f_frsize;
		res->abytes = (uint64_t)fs.f_bavail * fs.f_frsize;
		res->tfiles = fs.f_files;
		res->ffiles = fs.f_ffree;
		res->afiles = fs.f_favail;
		res->invarsec = 0; /* it may change at any time */
	}
	object_fini(&o);
	return status;
}

static void
fsinfo_clamp(struct nfs3_fsinfo_res *res, uint32_t max)
{
	uint32_t *const sizes[] = { &res->rtmax, &res->rtpref, &res->rtmult,
				    &res->wtmax, &res->wtpref, &res->wtmult,
				    &res->dtpref };
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		if (*sizes[i] > max)
			*sizes[i] = max;
}

enum nfsstat3
nfs3_fsinfo(struct request *rq)
{
	struct nfs3_fsinfo_res *res = &rq->res.fsinfo;
	const struct volume_facts *facts;
	struct fslimits limits;
	enum nfsstat3 status;
	struct object o;

	status = query_open(&o, rq, &rq->args.fh.fh, &res->attr);
	if (status == NFS3_OK) {
		fslimits_get(&o, &limits);
		facts = volume_facts(o.access.volume);
		res->rtmax = res->wtmax = IO_TRANSFER_BYTES_MAX;
		res->rtpref = READ_PREFERRED_BYTES;
		res->wtpref = facts->write_pref_bytes;
		res->rtmult = res->wtmult = facts->write_mult_bytes;
		res->dtpref = READDIR_PREFERRED_BYTES;
		if (rq->datagram)
			fsinfo_clamp(res, DATAGRAM_DATA_MAX);
		res->maxfilesize = limits.file_bytes_max;
		res->time_delta.seconds = limits.time_grain_ns / 1000000000u;
		res->time_delta.nseconds = limits.time_grain_ns % 1000000000u;
		res->properties = FSF3_LINK | FSF3_SYMLINK | FSF3_HOMOGENEOUS |
				  FSF3_CANSETTIME;
	}
	object_fini(&o);
	return status;
}

enum nfsstat3
nfs3_pathconf(struct request *rq)
{
	struct nfs3_pathconf_res *res = &rq->res.pathconf;
	struct fslimits limits;
	enum nfsstat3 status;
	struct statvfs fs;
	struct object o;

	status = query_open(&o, rq, &rq->args.fh.fh, &res->attr);
	if (status == NFS3_OK)
		status = nfs3_status(fstatvfs(o.fd, &fs) < 0 ? -errno : 0);
	if (status == NFS3_OK) {
		fslimits_get(&o, &limits);
		res->linkmax = limits.link_max;
		res->name_max = (uint32_t)fs.f_namemax;
		res->no_trunc = true;
		res->chown_restricted = true;
		res->case_insensitive = limits.case_insensitive;
		res->case_preserving = true;
	}
	object_fini(&o);
	return status;
}
