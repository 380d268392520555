/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a sample as libnfs's structs: see zdr_peer.h. */
#include "tests/unit/zdr_parts.h"

#include <stdlib.h>

void
must(bool ok)
{
	if (!ok)
		abort();
}

nfs_fh3
make_fh(const struct sample_fh *f)
{
	nfs_fh3 fh = { { f->bytes, (char *)f->data } };

	return fh;
}

nfstime3
make_time(struct sample_time t)
{
	nfstime3 time = { t.s, t.ns };

	return time;
}

fattr3
make_fattr(const struct sample_attr *a)
{
	fattr3 f = { .type = a->type,
		     .mode = a->mode,
		     .nlink = a->nlink,
		     .uid = a->uid,
		     .gid = a->gid,
		     .size = a->size,
		     .used = a->used,
		     .rdev = { a->major, a->minor },
		     .fsid = a->fsid,
		     .fileid = a->fileid,
		     .atime = make_time(a->atime),
		     .mtime = make_time(a->mtime),
		     .ctime = make_time(a->ctime) };

	return f;
}

post_op_attr
make_attr(const struct sample_attr *a)
{
	post_op_attr p = { .attributes_follow = a->follows };

	p.post_op_attr_u.attributes = make_fattr(a);
	return p;
}

wcc_data
make_wcc(const struct sample_wcc *w)
{
	wcc_data d = { .before.attributes_follow = w->before.follows };
	wcc_attr *a = &d.before.pre_op_attr_u.attributes;

	a->size = w->before.size;
	a->mtime = make_time(w->before.mtime);
	a->ctime = make_time(w->before.ctime);
	d.after = make_attr(&w->after);
	return d;
}

post_op_fh3
make_post_fh(const struct sample_fh *f)
{
	post_op_fh3 p = { .handle_follows = f->follows };

	p.post_op_fh3_u.handle = make_fh(f);
	return p;
}

sattr3
make_sattr(const struct sample_sattr *a)
{
	sattr3 s = { .mode.set_it = a->set_mode,
		     .uid.set_it = a->set_uid,
		     .gid.set_it = a->set_gid,
		     .size.set_it = a->set_size,
		     .atime.set_it = a->atime_how,
		     .mtime.set_it = a->mtime_how };

	s.mode.set_mode3_u.mode = a->mode;
	s.uid.set_uid3_u.uid = a->uid;
	s.gid.set_gid3_u.gid = a->gid;
	s.size.set_size3_u.size = a->size;
	s.atime.set_atime_u.atime = make_time(a->atime);
	s.mtime.set_mtime_u.mtime = make_time(a->mtime);
	return s;
}

diropargs3
make_dirop(const struct sample_fh *f, const char *name)
{
	diropargs3 d = { make_fh(f), (char *)name };

	return d;
}
