/* SPDX-License-Identifier: Apache-2.0 */
/* Results as libnfs encodes them, and what it reads: see zdr_peer.h. */
#include "tests/unit/zdr_parts.h"

#include <stdlib.h>
#include <string.h>

union any_res {
	GETATTR3res getattr;
	SETATTR3res setattr;
	LOOKUP3res lookup;
	ACCESS3res access;
	READLINK3res readlink;
	READ3res read;
	WRITE3res write;
	CREATE3res create;
	RENAME3res rename;
	LINK3res link;
	READDIR3res readdir;
	READDIRPLUS3res readdirplus;
	FSSTAT3res fsstat;
	FSINFO3res fsinfo;
	PATHCONF3res pathconf;
	COMMIT3res commit;
};

static void
res_getattr(union any_res *r, const struct sample *s)
{
	r->getattr.GETATTR3res_u.resok.obj_attributes = make_fattr(&s->attr);
}

/* SETATTR, REMOVE, RMDIR: the arms are alike, also for failure. */
static void
res_wcc(union any_res *r, const struct sample *s)
{
	r->setattr.SETATTR3res_u.resok.obj_wcc = make_wcc(&s->wcc);
}

static void
res_lookup(union any_res *r, const struct sample *s)
{
	LOOKUP3resok *ok = &r->lookup.LOOKUP3res_u.resok;

	if (r->lookup.status != NFS3_OK) {
		r->lookup.LOOKUP3res_u.resfail.dir_attributes =
			make_attr(&s->attr2);
		return;
	}
	ok->object = make_fh(&s->fh);
	ok->obj_attributes = make_attr(&s->attr);
	ok->dir_attributes = make_attr(&s->attr2);
}

/* In the arms below, the attributes come first in success and in failure. */
static void
res_access(union any_res *r, const struct sample *s)
{
	r->access.ACCESS3res_u.resok.obj_attributes = make_attr(&s->attr);
	r->access.ACCESS3res_u.resok.access = s->u32[0];
}

static void
res_readlink(union any_res *r, const struct sample *s)
{
	READLINK3resok *ok = &r->readlink.READLINK3res_u.resok;

	ok->symlink_attributes = make_attr(&s->attr);
	ok->data = (char *)s->path;
}

static void
res_read(union any_res *r, const struct sample *s)
{
	READ3resok *ok = &r->read.READ3res_u.resok;

	ok->file_attributes = make_attr(&s->attr);
	ok->count = s->data_bytes;
	ok->eof = s->flag[0];
	ok->data.data_len = s->data_bytes;
	ok->data.data_val = (char *)s->data;
}

static void
res_write(union any_res *r, const struct sample *s)
{
	WRITE3resok *ok = &r->write.WRITE3res_u.resok;

	ok->file_wcc = make_wcc(&s->wcc);
	ok->count = s->u32[0];
	ok->committed = s->stable;
	memcpy(ok->verf, s->verf, sizeof(s->verf));
}

/* CREATE, MKDIR, SYMLINK, MKNOD */
static void
res_create(union any_res *r, const struct sample *s)
{
	CREATE3resok *ok = &r->create.CREATE3res_u.resok;

	if (r->create.status != NFS3_OK) {
		r->create.CREATE3res_u.resfail.dir_wcc = make_wcc(&s->wcc);
		return;
	}
	ok->obj = make_post_fh(&s->fh);
	ok->obj_attributes = make_attr(&s->attr);
	ok->dir_wcc = make_wcc(&s->wcc);
}

static void
res_rename(union any_res *r, const struct sample *s)
{
	r->rename.RENAME3res_u.resok.fromdir_wcc = make_wcc(&s->wcc);
	r->rename.RENAME3res_u.resok.todir_wcc = make_wcc(&s->wcc2);
}

static void
res_link(union any_res *r, const struct sample *s)
{
	r->link.LINK3res_u.resok.file_attributes = make_attr(&s->attr);
	r->link.LINK3res_u.resok.linkdir_wcc = make_wcc(&s->wcc);
}

/* Two entries: what flag[1] and flag[2] say of the first, the second bare. */
static void
res_readdir(union any_res *r, const struct sample *s)
{
	READDIR3resok *ok = &r->readdir.READDIR3res_u.resok;
	static entry3 entry[2];

	entry[0].fileid = s->u64[0];
	entry[0].name = (char *)s->name;
	entry[0].cookie = s->u64[1];
	entry[0].nextentry = &entry[1];
	entry[1].fileid = s->u64[2];
	entry[1].name = (char *)s->name2;
	entry[1].cookie = s->u64[3];
	entry[1].nextentry = NULL;
	ok->dir_attributes = make_attr(&s->attr2);
	if (r->readdir.status != NFS3_OK)
		return;
	memcpy(ok->cookieverf, s->verf, sizeof(s->verf));
	ok->reply.entries = entry;
	ok->reply.eof = s->flag[0];
}

static void
res_readdirplus(union any_res *r, const struct sample *s)
{
	READDIRPLUS3resok *ok = &r->readdirplus.READDIRPLUS3res_u.resok;
	static entryplus3 entry[2];

	memset(entry, 0, sizeof(entry));
	entry[0].fileid = s->u64[0];
	entry[0].name = (char *)s->name;
	entry[0].cookie = s->u64[1];
	entry[0].name_attributes = make_attr(&s->attr);
	entry[0].name_handle = make_post_fh(&s->fh);
	entry[0].nextentry = &entry[1];
	entry[1].fileid = s->u64[2];
	entry[1].name = (char *)s->name2;
	entry[1].cookie = s->u64[3];
	ok->dir_attributes = make_attr(&s->attr2);
	if (r->readdirplus.status != NFS3_OK)
		return;
	memcpy(ok->cookieverf, s->verf, sizeof(s->verf));
	ok->reply.entries = entry;
	ok->reply.eof = s->flag[0];
}

static void
res_fsstat(union any_res *r, const struct sample *s)
{
	FSSTAT3resok *ok = &r->fsstat.FSSTAT3res_u.resok;

	ok->obj_attributes = make_attr(&s->attr);
	ok->tbytes = s->u64[0];
	ok->fbytes = s->u64[1];
	ok->abytes = s->u64[2];
	ok->tfiles = s->u64[3];
	ok->ffiles = s->u64[4];
	ok->afiles = s->u64[5];
	ok->invarsec = s->u32[0];
}

static void
res_fsinfo(union any_res *r, const struct sample *s)
{
	FSINFO3resok *ok = &r->fsinfo.FSINFO3res_u.resok;

	ok->obj_attributes = make_attr(&s->attr);
	ok->rtmax = s->u32[0];
	ok->rtpref = s->u32[1];
	ok->rtmult = s->u32[2];
	ok->wtmax = s->u32[3];
	ok->wtpref = s->u32[4];
	ok->wtmult = s->u32[5];
	ok->dtpref = s->u32[6];
	ok->maxfilesize = s->u64[0];
	ok->time_delta = make_time(s->time);
	ok->properties = s->u32[7];
}

static void
res_pathconf(union any_res *r, const struct sample *s)
{
	PATHCONF3resok *ok = &r->pathconf.PATHCONF3res_u.resok;

	ok->obj_attributes = make_attr(&s->attr);
	ok->linkmax = s->u32[0];
	ok->name_max = s->u32[1];
	ok->no_trunc = s->flag[0];
	ok->chown_restricted = s->flag[1];
	ok->case_insensitive = s->flag[2];
	ok->case_preserving = s->flag[3];
}

static void
res_commit(union any_res *r, const struct sample *s)
{
	r->commit.COMMIT3res_u.resok.file_wcc = make_wcc(&s->wcc);
	memcpy(r->commit.COMMIT3res_u.resok.verf, s->verf, sizeof(s->verf));
}

struct res_row {
	void (*fill)(union any_res *r, const struct sample *s);
	zdrproc_t codec;
};

static const struct res_row res_table[22] = {
	{ NULL, NULL },
	{ res_getattr, (zdrproc_t)zdr_GETATTR3res },
	{ res_wcc, (zdrproc_t)zdr_SETATTR3res },
	{ res_lookup, (zdrproc_t)zdr_LOOKUP3res },
	{ res_access, (zdrproc_t)zdr_ACCESS3res },
	{ res_readlink, (zdrproc_t)zdr_READLINK3res },
	{ res_read, (zdrproc_t)zdr_READ3res },
	{ res_write, (zdrproc_t)zdr_WRITE3res },
	{ res_create, (zdrproc_t)zdr_CREATE3res },
	{ res_create, (zdrproc_t)zdr_MKDIR3res },
	{ res_create, (zdrproc_t)zdr_SYMLINK3res },
	{ res_create, (zdrproc_t)zdr_MKNOD3res },
	{ res_wcc, (zdrproc_t)zdr_REMOVE3res },
	{ res_wcc, (zdrproc_t)zdr_RMDIR3res },
	{ res_rename, (zdrproc_t)zdr_RENAME3res },
	{ res_link, (zdrproc_t)zdr_LINK3res },
	{ res_readdir, (zdrproc_t)zdr_READDIR3res },
	{ res_readdirplus, (zdrproc_t)zdr_READDIRPLUS3res },
	{ res_fsstat, (zdrproc_t)zdr_FSSTAT3res },
	{ res_fsinfo, (zdrproc_t)zdr_FSINFO3res },
	{ res_pathconf, (zdrproc_t)zdr_PATHCONF3res },
	{ res_commit, (zdrproc_t)zdr_COMMIT3res },
};

uint32_t
peer_res(unsigned proc, uint32_t status, const struct sample *s, uint8_t *out,
	 uint32_t room)
{
	const struct res_row *row = &res_table[proc];
	union any_res r;
	ZDR z;

	if (!row->codec)
		return 0;
	memset(&r, 0, sizeof(r));
	r.getattr.status = status; /* each begins with it */
	row->fill(&r, s);
	zdrmem_create(&z, (char *)out, room, ZDR_ENCODE);
	must(row->codec(&z, &r));
	return zdr_getpos(&z);
}

bool
peer_res_reads(unsigned proc, const uint8_t *in, uint32_t n)
{
	uint8_t *again = calloc(1, n + 1);
	union any_res r;
	ZDR read, write;
	bool same;

	if (!again)
		abort();
	memset(&r, 0, sizeof(r));
	zdrmem_create(&read, (char *)in, n, ZDR_DECODE);
	zdrmem_create(&write, (char *)again, n, ZDR_ENCODE);
	if (!res_table[proc].codec)
		same = n == 0;
	else
		same = res_table[proc].codec(&read, &r) &&
		       zdr_getpos(&read) == n &&
		       res_table[proc].codec(&write, &r) &&
		       zdr_getpos(&write) == n && memcmp(in, again, n) == 0;
	zdr_destroy(&write);
	zdr_destroy(&read);
	free(again);
	return same;
}
