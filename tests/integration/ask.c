/* SPDX-License-Identifier: Apache-2.0 */
/* See ask.h: questions built, and answers taken apart, by one table. */
#include "ask.h"

#include <string.h>

union results {
	GETATTR3res getattr;
	SETATTR3res setattr;
	LOOKUP3res lookup;
	ACCESS3res access;
	READLINK3res readlink;
	READ3res read;
	WRITE3res write;
	CREATE3res create; /* MKDIR, SYMLINK and MKNOD have the same */
	REMOVE3res remove; /* and RMDIR */
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
take_fh(struct answer *a, const nfs_fh3 *fh)
{
	a->has_fh = true;
	raw_keep_fh(&a->fh, fh);
}

static void
take_getattr(struct answer *a, const union results *res)
{
	if (a->status != NFS3_OK)
		return;
	a->attr.attributes_follow = 1;
	a->attr.post_op_attr_u.attributes =
		res->getattr.GETATTR3res_u.resok.obj_attributes;
}

static void
take_setattr(struct answer *a, const union results *res)
{
	a->wcc = a->status == NFS3_OK
			 ? res->setattr.SETATTR3res_u.resok.obj_wcc
			 : res->setattr.SETATTR3res_u.resfail.obj_wcc;
}

static void
take_lookup(struct answer *a, const union results *res)
{
	const LOOKUP3resok *ok = &res->lookup.LOOKUP3res_u.resok;

	if (a->status != NFS3_OK) {
		a->dir = res->lookup.LOOKUP3res_u.resfail.dir_attributes;
		return;
	}
	a->attr = ok->obj_attributes;
	a->dir = ok->dir_attributes;
	take_fh(a, &ok->object);
}

/* Their failure has the attributes that their success begins with. */
#define TAKE_ATTR(name, results_u, member)                                     \
	static void take_##name(struct answer *a, const union results *res)    \
	{                                                                      \
		a->u.name = res->name.results_u.resok;                         \
		a->attr = a->u.name.member;                                    \
	}

TAKE_ATTR(access, ACCESS3res_u, obj_attributes)
TAKE_ATTR(readlink, READLINK3res_u, symlink_attributes)
TAKE_ATTR(read, READ3res_u, file_attributes)
TAKE_ATTR(readdir, READDIR3res_u, dir_attributes)
TAKE_ATTR(readdirplus, READDIRPLUS3res_u, dir_attributes)
TAKE_ATTR(fsstat, FSSTAT3res_u, obj_attributes)
TAKE_ATTR(fsinfo, FSINFO3res_u, obj_attributes)
TAKE_ATTR(pathconf, PATHCONF3res_u, obj_attributes)

static void
take_write(struct answer *a, const union results *res)
{
	a->u.write = res->write.WRITE3res_u.resok;
	a->wcc = a->u.write.file_wcc;
}

static void
take_commit(struct answer *a, const union results *res)
{
	a->u.commit = res->commit.COMMIT3res_u.resok;
	a->wcc = a->u.commit.file_wcc;
}

static void
take_create(struct answer *a, const union results *res)
{
	const CREATE3resok *ok = &res->create.CREATE3res_u.resok;

	if (a->status != NFS3_OK) {
		a->wcc = res->create.CREATE3res_u.resfail.dir_wcc;
		return;
	}
	a->attr = ok->obj_attributes;
	a->wcc = ok->dir_wcc;
	if (ok->obj.handle_follows)
		take_fh(a, &ok->obj.post_op_fh3_u.handle);
}

static void
take_remove(struct answer *a, const union results *res)
{
	a->wcc = res->remove.REMOVE3res_u.resok.dir_wcc;
}

static void
take_rename(struct answer *a, const union results *res)
{
	a->wcc = res->rename.RENAME3res_u.resok.fromdir_wcc;
	a->wcc_to = res->rename.RENAME3res_u.resok.todir_wcc;
}

static void
take_link(struct answer *a, const union results *res)
{
	a->attr = res->link.LINK3res_u.resok.file_attributes;
	a->wcc = res->link.LINK3res_u.resok.linkdir_wcc;
}

typedef void take_fn(struct answer *a, const union results *res);

struct row {
	raw_zdr_fn *encode, *decode;
	take_fn *take;
};

#define ROW(NAME, take)                                                        \
	[NFS3_##NAME] = { (raw_zdr_fn *)zdr_##NAME##3args,                     \
			  (raw_zdr_fn *)zdr_##NAME##3res, take }

static const struct row rows[] = {
	ROW(GETATTR, take_getattr),   ROW(SETATTR, take_setattr),
	ROW(LOOKUP, take_lookup),     ROW(ACCESS, take_access),
	ROW(READLINK, take_readlink), ROW(READ, take_read),
	ROW(WRITE, take_write),       ROW(CREATE, take_create),
	ROW(MKDIR, take_create),      ROW(SYMLINK, take_create),
	ROW(MKNOD, take_create),      ROW(REMOVE, take_remove),
	ROW(RMDIR, take_remove),      ROW(RENAME, take_rename),
	ROW(LINK, take_link),         ROW(READDIR, take_readdir),
	ROW(FSSTAT, take_fsstat),     ROW(READDIRPLUS, take_readdirplus),
	ROW(FSINFO, take_fsinfo),     ROW(PATHCONF, take_pathconf),
	ROW(COMMIT, take_commit),
};

uint32_t
ask_build(struct raw *r, const struct question *q)
{
	return raw_build(r, 100003, 3, q->proc, rows[q->proc].encode,
			 (void *)&q->u);
}

uint32_t
ask_send(struct raw *r, const struct question *q)
{
	uint32_t xid = ask_build(r, q);

	raw_send(r);
	return xid;
}

void
ask_again(struct raw *to, const struct raw *from)
{
	memcpy(to->out, from->out, from->out_bytes);
	to->out_bytes = from->out_bytes;
	to->xid = from->xid;
	raw_send(to);
}

void
ask_take(struct raw *r, uint32_t proc, struct answer *a)
{
	union results res;

	memset(a, 0, sizeof(*a));
	memset(&res, 0, sizeof(res));
	assert_int_equal(r->reply_stat, 0);
	assert_int_equal(r->accept_stat, 0);
	raw_result(r, rows[proc].decode, &res);
	a->status = (int)res.getattr.status; /* each begins with it */
	rows[proc].take(a, &res);
}

int
ask(struct raw *r, struct question q, struct answer *a)
{
	struct answer unwanted;
	uint32_t xid = ask_send(r, &q);

	if (a == NULL)
		a = &unwanted;
	assert_true(raw_receive(r));
	assert_int_equal(r->reply_xid, xid);
	ask_take(r, q.proc, a);
	return a->status;
}

/* Questions -----------------------------------------------------------------
 */

static struct question
question(uint32_t proc)
{
	struct question q;

	memset(&q, 0, sizeof(q));
	q.proc = proc;
	return q;
}

/* Those whose arguments begin with a handle. */
static struct question
question_fh(uint32_t proc, const struct raw_fh *fh)
{
	struct question q = question(proc);

	q.u.getattr.object = raw_nfs_fh(fh);
	return q;
}

/* Those whose arguments begin with a directory and a name. */
static struct question
question_name(uint32_t proc, const struct raw_fh *dir, const char *name)
{
	struct question q = question_fh(proc, dir);

	q.u.lookup.what.name = (char *)name;
	return q;
}

struct question
ask_getattr(const struct raw_fh *fh)
{
	return question_fh(NFS3_GETATTR, fh);
}

struct question
ask_setattr(const struct raw_fh *fh, const sattr3 *attr, const nfstime3 *guard)
{
	struct question q = question_fh(NFS3_SETATTR, fh);

	q.u.setattr.new_attributes = *attr;
	if (guard != NULL) {
		q.u.setattr.guard.check = 1;
		q.u.setattr.guard.sattrguard3_u.obj_ctime = *guard;
	}
	return q;
}

struct question
ask_lookup(const struct raw_fh *dir, const char *name)
{
	return question_name(NFS3_LOOKUP, dir, name);
}

struct question
ask_access(const struct raw_fh *fh, uint32_t bits)
{
	struct question q = question_fh(NFS3_ACCESS, fh);

	q.u.access.access = bits;
	return q;
}

struct question
ask_readlink(const struct raw_fh *fh)
{
	return question_fh(NFS3_READLINK, fh);
}

struct question
ask_read(const struct raw_fh *fh, uint64_t offset, uint32_t count)
{
	struct question q = question_fh(NFS3_READ, fh);

	q.u.read.offset = offset;
	q.u.read.count = count;
	return q;
}

struct question
ask_write(const struct raw_fh *fh, uint64_t offset, const void *data,
	  uint32_t n, int stable)
{
	struct question q = question_fh(NFS3_WRITE, fh);

	q.u.write.offset = offset;
	q.u.write.count = n;
	q.u.write.stable = (stable_how)stable;
	q.u.write.data.data_len = n;
	q.u.write.data.data_val = (char *)data;
	return q;
}

struct question
ask_create(const struct raw_fh *dir, const char *name, createmode3 mode,
	   const sattr3 *attr)
{
	struct question q = question_name(NFS3_CREATE, dir, name);

	q.u.create.how.mode = mode;
	q.u.create.how.createhow3_u.obj_attributes = *attr;
	return q;
}

struct question
ask_exclusive(const struct raw_fh *dir, const char *name, const uint8_t verf[8])
{
	struct question q = question_name(NFS3_CREATE, dir, name);

	q.u.create.how.mode = EXCLUSIVE;
	memcpy(q.u.create.how.createhow3_u.verf, verf, 8);
	return q;
}

struct question
ask_mkdir(const struct raw_fh *dir, const char *name, const sattr3 *attr)
{
	struct question q = question_name(NFS3_MKDIR, dir, name);

	q.u.mkdir.attributes = *attr;
	return q;
}

struct question
ask_symlink(const struct raw_fh *dir, const char *name, const char *target)
{
	struct question q = question_name(NFS3_SYMLINK, dir, name);

	q.u.symlink.symlink.symlink_data = (char *)target;
	return q;
}

struct question
ask_mknod(const struct raw_fh *dir, const char *name, ftype3 type,
	  const sattr3 *attr, uint32_t major, uint32_t minor)
{
	struct question q = question_name(NFS3_MKNOD, dir, name);
	devicedata3 *dev = &q.u.mknod.what.mknoddata3_u.chr_device;

	q.u.mknod.what.type = type;
	/* Of sockets and FIFOs it is the same place. */
	dev->dev_attributes = *attr;
	dev->spec.specdata1 = major;
	dev->spec.specdata2 = minor;
	return q;
}

struct question
ask_remove(const struct raw_fh *dir, const char *name)
{
	return question_name(NFS3_REMOVE, dir, name);
}

struct question
ask_rmdir(const struct raw_fh *dir, const char *name)
{
	return question_name(NFS3_RMDIR, dir, name);
}

struct question
ask_rename(const struct raw_fh *from, const char *name, const struct raw_fh *to,
	   const char *new_name)
{
	struct question q = question_name(NFS3_RENAME, from, name);

	q.u.rename.to.dir = raw_nfs_fh(to);
	q.u.rename.to.name = (char *)new_name;
	return q;
}

struct question
ask_link(const struct raw_fh *fh, const struct raw_fh *dir, const char *name)
{
	struct question q = question_fh(NFS3_LINK, fh);

	q.u.link.link.dir = raw_nfs_fh(dir);
	q.u.link.link.name = (char *)name;
	return q;
}

struct question
ask_readdir(const struct raw_fh *dir, uint64_t cookie, uint32_t count)
{
	struct question q = question_fh(NFS3_READDIR, dir);

	q.u.readdir.cookie = cookie;
	q.u.readdir.count = count;
	return q;
}

struct question
ask_readdirplus(const struct raw_fh *dir, uint64_t cookie, uint32_t dircount,
		uint32_t maxcount)
{
	struct question q = question_fh(NFS3_READDIRPLUS, dir);

	q.u.readdirplus.cookie = cookie;
	q.u.readdirplus.dircount = dircount;
	q.u.readdirplus.maxcount = maxcount;
	return q;
}

struct question
ask_fsstat(const struct raw_fh *fh)
{
	return question_fh(NFS3_FSSTAT, fh);
}

struct question
ask_fsinfo(const struct raw_fh *fh)
{
	return question_fh(NFS3_FSINFO, fh);
}

struct question
ask_pathconf(const struct raw_fh *fh)
{
	return question_fh(NFS3_PATHCONF, fh);
}

struct question
ask_commit(const struct raw_fh *fh)
{
	return question_fh(NFS3_COMMIT, fh);
}

/* Attributes ------------------------------------------------------------------
 */

static sattr3 *
sattr_next(void)
{
	static sattr3 attr[8];
	static unsigned next;
	sattr3 *a = &attr[next++ % 8];

	memset(a, 0, sizeof(*a));
	return a;
}

const sattr3 *
ask_nothing(void)
{
	return sattr_next();
}

const sattr3 *
ask_mode(uint32_t mode)
{
	sattr3 *a = sattr_next();

	a->mode.set_it = 1;
	a->mode.set_mode3_u.mode = mode;
	return a;
}

const sattr3 *
ask_size(uint64_t size)
{
	sattr3 *a = sattr_next();

	a->size.set_it = 1;
	a->size.set_size3_u.size = size;
	return a;
}

const sattr3 *
ask_owner(int64_t uid, int64_t gid)
{
	sattr3 *a = sattr_next();

	a->uid.set_it = uid >= 0;
	a->uid.set_uid3_u.uid = (uint32_t)uid;
	a->gid.set_it = gid >= 0;
	a->gid.set_gid3_u.gid = (uint32_t)gid;
	return a;
}

fattr3
ask_attr(struct raw *r, const struct raw_fh *fh)
{
	struct answer a;

	assert_int_equal(ask(r, ask_getattr(fh), &a), NFS3_OK);
	return a.attr.post_op_attr_u.attributes;
}

void
ask_as(struct raw *r, uint32_t uid, uint32_t gid)
{
	r->uid = uid;
	r->gid = gid;
	r->gids = 0;
}

bool
ask_same_time(const nfstime3 *a, const nfstime3 *b)
{
	return a->seconds == b->seconds && a->nseconds == b->nseconds;
}

bool
ask_same_attr(const fattr3 *a, const fattr3 *b)
{
	return a->type == b->type && a->mode == b->mode &&
	       a->nlink == b->nlink && a->uid == b->uid && a->gid == b->gid &&
	       a->size == b->size && a->used == b->used &&
	       a->rdev.specdata1 == b->rdev.specdata1 &&
	       a->rdev.specdata2 == b->rdev.specdata2 && a->fsid == b->fsid &&
	       a->fileid == b->fileid && ask_same_time(&a->mtime, &b->mtime) &&
	       ask_same_time(&a->ctime, &b->ctime);
}
