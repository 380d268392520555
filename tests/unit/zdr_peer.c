/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments as libnfs encodes them: see zdr_peer.h. */
#include "tests/unit/zdr_parts.h"

#include <string.h>

static bool
args_fh(ZDR *z, const struct sample *s)
{
	GETATTR3args a = { make_fh(&s->fh) };

	return zdr_GETATTR3args(z, &a);
}

static bool
args_setattr(ZDR *z, const struct sample *s)
{
	SETATTR3args a = { .object = make_fh(&s->fh),
			   .new_attributes = make_sattr(&s->sattr),
			   .guard.check = s->flag[0] };

	a.guard.sattrguard3_u.obj_ctime = make_time(s->time);
	return zdr_SETATTR3args(z, &a);
}

static bool
args_dirop(ZDR *z, const struct sample *s)
{
	LOOKUP3args a = { make_dirop(&s->fh, s->name) };

	return zdr_LOOKUP3args(z, &a);
}

static bool
args_access(ZDR *z, const struct sample *s)
{
	ACCESS3args a = { make_fh(&s->fh), s->u32[0] };

	return zdr_ACCESS3args(z, &a);
}

static bool
args_read(ZDR *z, const struct sample *s)
{
	READ3args a = { make_fh(&s->fh), s->u64[0], s->u32[0] };

	return zdr_READ3args(z, &a);
}

static bool
args_write(ZDR *z, const struct sample *s)
{
	WRITE3args a = { make_fh(&s->fh),
			 s->u64[0],
			 s->u32[0],
			 s->stable,
			 { s->data_bytes, (char *)s->data } };

	return zdr_WRITE3args(z, &a);
}

static bool
args_create(ZDR *z, const struct sample *s)
{
	CREATE3args a = { .where = make_dirop(&s->fh, s->name),
			  .how.mode = s->createmode };

	if (a.how.mode == EXCLUSIVE)
		memcpy(a.how.createhow3_u.verf, s->verf, sizeof(s->verf));
	else
		a.how.createhow3_u.obj_attributes = make_sattr(&s->sattr);
	return zdr_CREATE3args(z, &a);
}

static bool
args_mkdir(ZDR *z, const struct sample *s)
{
	MKDIR3args a = { make_dirop(&s->fh, s->name), make_sattr(&s->sattr) };

	return zdr_MKDIR3args(z, &a);
}

static bool
args_symlink(ZDR *z, const struct sample *s)
{
	SYMLINK3args a = { make_dirop(&s->fh, s->name),
			   { make_sattr(&s->sattr), (char *)s->path } };

	return zdr_SYMLINK3args(z, &a);
}

static bool
args_mknod(ZDR *z, const struct sample *s)
{
	MKNOD3args a = { .where = make_dirop(&s->fh, s->name),
			 .what.type = s->mktype };
	devicedata3 *d = &a.what.mknoddata3_u.chr_device;

	d->dev_attributes = make_sattr(&s->sattr);
	d->spec.specdata1 = s->u32[0];
	d->spec.specdata2 = s->u32[1];
	return zdr_MKNOD3args(z, &a);
}

static bool
args_rename(ZDR *z, const struct sample *s)
{
	RENAME3args a = { make_dirop(&s->fh, s->name),
			  make_dirop(&s->fh2, s->name2) };

	return zdr_RENAME3args(z, &a);
}

static bool
args_link(ZDR *z, const struct sample *s)
{
	LINK3args a = { make_fh(&s->fh), make_dirop(&s->fh2, s->name) };

	return zdr_LINK3args(z, &a);
}

static bool
args_readdir(ZDR *z, const struct sample *s)
{
	READDIR3args a = { .dir = make_fh(&s->fh),
			   .cookie = s->u64[0],
			   .count = s->u32[0] };

	memcpy(a.cookieverf, s->verf, sizeof(s->verf));
	return zdr_READDIR3args(z, &a);
}

static bool
args_readdirplus(ZDR *z, const struct sample *s)
{
	READDIRPLUS3args a = { .dir = make_fh(&s->fh),
			       .cookie = s->u64[0],
			       .dircount = s->u32[0],
			       .maxcount = s->u32[1] };

	memcpy(a.cookieverf, s->verf, sizeof(s->verf));
	return zdr_READDIRPLUS3args(z, &a);
}

static bool
args_commit(ZDR *z, const struct sample *s)
{
	COMMIT3args a = { make_fh(&s->fh), s->u64[0], s->u32[0] };

	return zdr_COMMIT3args(z, &a);
}

static bool
args_void(ZDR *z, const struct sample *s)
{
	return true;
}

typedef bool args_fn(ZDR *z, const struct sample *s);

static args_fn *const args_table[22] = {
	args_void,    args_fh,      args_setattr,     args_dirop,  args_access,
	args_fh,      args_read,    args_write,       args_create, args_mkdir,
	args_symlink, args_mknod,   args_dirop,       args_dirop,  args_rename,
	args_link,    args_readdir, args_readdirplus, args_fh,     args_fh,
	args_fh,      args_commit,
};

uint32_t
peer_args(unsigned proc, const struct sample *s, uint8_t *out, uint32_t room)
{
	ZDR z;

	zdrmem_create(&z, (char *)out, room, ZDR_ENCODE);
	must(args_table[proc](&z, s));
	return zdr_getpos(&z);
}
