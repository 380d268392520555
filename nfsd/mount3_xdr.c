/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The results of MOUNT calls, encoded (RFC 1813, 5.2; version 1: RFC 1094,
 * appendix A; version 2: The Open Group, XNFS, 7). Its arguments are decoded in
 * nfs3_xdr.c.
 *
 * Pure functions over libtirpc memory streams, any thread. They know neither
 * exports nor who has mounted what.
 */
#include "nfsd/nfs3.h"
#include "nfsd/xdr.h"
#include "rpc/rpc.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static_assert(MOUNT3_MNT_BYTES == 4 + NFS3_FH_BYTES + 4 + 4,
	      "status, handle, a list of one flavor");

static bool
put_string(XDR *x, const char *s)
{
	return put_bytes(x, s, strlen(s));
}

bool
mount3_encode_mnt(XDR *x, enum nfsstat3 status, const union nfs3_res *res)
{
	const struct mount3_mnt_res *r = &res->mnt;

	if (r->status != MNT3_OK)
		return put_u32(x, r->status);
	assert(r->fh.bytes <= NFS3_FHSIZE);
	return put_u32(x, MNT3_OK) && put_u32(x, r->fh.bytes) &&
	       xdr_opaque(x, (char *)r->fh.data, r->fh.bytes) &&
	       put_u32(x, 1) && put_u32(x, RPC_AUTH_SYS);
}

/* fhstatus holds an errno of UNIX: of ours, those below 10000 are the same. */
bool
mount1_encode_mnt(XDR *x, enum nfsstat3 status, const union nfs3_res *res)
{
	uint32_t error = res->mnt.status;

	if (error == MNT3_OK || error >= MNT3ERR_NOTSUPP)
		error = EINVAL;
	return put_u32(x, error);
}

/* Shorts and characters take a word each. */
bool
mount2_encode_pathconf(XDR *x, enum nfsstat3 status, const union nfs3_res *res)
{
	const struct mount2_pathconf_res *r = &res->mount_pathconf;
	const int32_t word[MOUNT2_PATHCONF_BYTES / BYTES_PER_XDR_UNIT] = {
		r->link_max, r->max_canon, r->max_input, r->name_max,
		r->path_max, r->pipe_buf, r->vdisable,
		0, /* pc_xxx, which only aligns */
		/* pc_mask: what is set is not to be had; bit 0 is all of it */
		r->failed ? 1 : 0, 0
	};
	size_t i;

	for (i = 0; i < sizeof(word) / sizeof(*word); i++)
		if (!put_u32(x, (uint32_t)word[i]))
			return false;
	return true;
}

bool
mount3_encode_list(XDR *x, enum nfsstat3 status, const union nfs3_res *res)
{
	return true;
}

bool
mount3_put_mount(XDR *x, const char *host, const char *dir)
{
	return put_u32(x, 1) && put_string(x, host) && put_string(x, dir);
}

bool
mount3_put_export(XDR *x, const char *dir)
{
	return put_u32(x, 1) && put_string(x, dir);
}

bool
mount3_put_group(XDR *x, const char *name)
{
	return put_u32(x, 1) && put_string(x, name);
}

bool
mount3_put_end(XDR *x)
{
	return put_u32(x, 0);
}
