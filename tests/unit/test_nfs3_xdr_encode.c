/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NFS results: encoded to the very bytes that libnfs makes of the same values,
 * read back by libnfs, refused in any smaller room, and never longer than the
 * bounds in nfs3.h add up to.
 */
#include "nfsd/nfs3.h"
#include "tests/unit/zdr_peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEEDS     400u
#define BYTES_MAX 8192u

/* How each procedure's result is encoded, and what bounds its header. */
struct row {
	nfs3_encode_fn *encode;
	uint32_t ok_bytes_max, fail_bytes_max;
};

#define STATUS NFS3_STATUS_BYTES
#define ATTR   NFS3_POST_OP_BYTES
#define WCC    NFS3_WCC_BYTES
#define CREATE_ROW                                                             \
	{                                                                      \
		nfs3_encode_create, STATUS + NFS3_POST_FH_BYTES + ATTR + WCC,  \
			STATUS + WCC                                           \
	}
#define WCC_ROW                                                                \
	{                                                                      \
		nfs3_encode_wcc, STATUS + WCC, STATUS + WCC                    \
	}
#define READDIR_ROW                                                            \
	{                                                                      \
		nfs3_encode_readdir, STATUS + ATTR + NFS3_VERF_BYTES,          \
			STATUS + ATTR                                          \
	}

static const struct row rows[NFSPROC3_COUNT] = {
	[NFSPROC3_NULL] = { nfs3_encode_void, 0, 0 },
	[NFSPROC3_GETATTR] = { nfs3_encode_getattr, STATUS + NFS3_FATTR_BYTES,
			       STATUS },
	[NFSPROC3_SETATTR] = WCC_ROW,
	[NFSPROC3_LOOKUP] = { nfs3_encode_lookup,
			      STATUS + NFS3_FH_BYTES + 2 * ATTR,
			      STATUS + ATTR },
	[NFSPROC3_ACCESS] = { nfs3_encode_access, STATUS + ATTR + 4,
			      STATUS + ATTR },
	[NFSPROC3_READLINK] = { nfs3_encode_readlink,
				STATUS + ATTR + NFS3_PATH_BYTES,
				STATUS + ATTR },
	[NFSPROC3_READ] = { nfs3_encode_read, STATUS + ATTR + 12,
			    STATUS + ATTR },
	[NFSPROC3_WRITE] = { nfs3_encode_write,
			     STATUS + WCC + 8 + NFS3_VERF_BYTES, STATUS + WCC },
	[NFSPROC3_CREATE] = CREATE_ROW,
	[NFSPROC3_MKDIR] = CREATE_ROW,
	[NFSPROC3_SYMLINK] = CREATE_ROW,
	[NFSPROC3_MKNOD] = CREATE_ROW,
	[NFSPROC3_REMOVE] = WCC_ROW,
	[NFSPROC3_RMDIR] = WCC_ROW,
	[NFSPROC3_RENAME] = { nfs3_encode_rename, STATUS + 2 * WCC,
			      STATUS + 2 * WCC },
	[NFSPROC3_LINK] = { nfs3_encode_link, STATUS + ATTR + WCC,
			    STATUS + ATTR + WCC },
	[NFSPROC3_READDIR] = READDIR_ROW,
	[NFSPROC3_READDIRPLUS] = READDIR_ROW,
	[NFSPROC3_FSSTAT] = { nfs3_encode_fsstat,
			      STATUS + ATTR + NFS3_FSSTAT_BYTES,
			      STATUS + ATTR },
	[NFSPROC3_FSINFO] = { nfs3_encode_fsinfo,
			      STATUS + ATTR + NFS3_FSINFO_BYTES,
			      STATUS + ATTR },
	[NFSPROC3_PATHCONF] = { nfs3_encode_pathconf,
				STATUS + ATTR + NFS3_PATHCONF_BYTES,
				STATUS + ATTR },
	[NFSPROC3_COMMIT] = { nfs3_encode_commit,
			      STATUS + WCC + NFS3_VERF_BYTES, STATUS + WCC },
};

/* The sample as our results --------------------------------------------------
 */

static struct nfstime3
make_time(struct sample_time t)
{
	struct nfstime3 out = { t.s, t.ns };

	return out;
}

static struct nfs_fh3
make_fh(const struct sample_fh *f)
{
	struct nfs_fh3 out = { .bytes = f->bytes };

	memcpy(out.data, f->data, f->bytes);
	return out;
}

static struct post_op_attr
make_attr(const struct sample_attr *a)
{
	struct post_op_attr out = { .follows = a->follows };

	out.attr = (struct fattr3){ .type = a->type,
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
	return out;
}

static struct wcc_data
make_wcc(const struct sample_wcc *w)
{
	struct wcc_data out = { .before = { .follows = w->before.follows,
					    .size = w->before.size },
				.after = make_attr(&w->after) };

	out.before.mtime = make_time(w->before.mtime);
	out.before.ctime = make_time(w->before.ctime);
	return out;
}

static struct post_op_fh3
make_post_fh(const struct sample_fh *f)
{
	struct post_op_fh3 out = { f->follows, make_fh(f) };

	return out;
}

static void
fill_lookup(union nfs3_res *r, const struct sample *s)
{
	r->lookup.fh = make_fh(&s->fh);
	r->lookup.attr = make_attr(&s->attr);
	r->lookup.dir_attr = make_attr(&s->attr2);
}

static void
fill_readlink(union nfs3_res *r, const struct sample *s)
{
	r->readlink.attr = make_attr(&s->attr);
	r->readlink.bytes = strlen(s->path);
	memcpy(r->readlink.data, s->path, r->readlink.bytes);
}

static void
fill_read(union nfs3_res *r, const struct sample *s)
{
	r->read.attr = make_attr(&s->attr);
	r->read.count = s->data_bytes;
	r->read.eof = s->flag[0];
}

static void
fill_write(union nfs3_res *r, const struct sample *s)
{
	r->write.wcc = make_wcc(&s->wcc);
	r->write.count = s->u32[0];
	r->write.committed = s->stable;
	memcpy(r->write.verf, s->verf, 8);
}

static void
fill_create(union nfs3_res *r, const struct sample *s)
{
	r->create.fh = make_post_fh(&s->fh);
	r->create.attr = make_attr(&s->attr);
	r->create.dir_wcc = make_wcc(&s->wcc);
}

static void
fill_fsstat(union nfs3_res *r, const struct sample *s)
{
	r->fsstat = (struct nfs3_fsstat_res){ .attr = make_attr(&s->attr),
					      .tbytes = s->u64[0],
					      .fbytes = s->u64[1],
					      .abytes = s->u64[2],
					      .tfiles = s->u64[3],
					      .ffiles = s->u64[4],
					      .afiles = s->u64[5],
					      .invarsec = s->u32[0] };
}

static void
fill_fsinfo(union nfs3_res *r, const struct sample *s)
{
	r->fsinfo = (struct nfs3_fsinfo_res){ .attr = make_attr(&s->attr),
					      .rtmax = s->u32[0],
					      .rtpref = s->u32[1],
					      .rtmult = s->u32[2],
					      .wtmax = s->u32[3],
					      .wtpref = s->u32[4],
					      .wtmult = s->u32[5],
					      .dtpref = s->u32[6],
					      .maxfilesize = s->u64[0],
					      .time_delta = make_time(s->time),
					      .properties = s->u32[7] };
}

static void
fill_pathconf(union nfs3_res *r, const struct sample *s)
{
	r->pathconf =
		(struct nfs3_pathconf_res){ .attr = make_attr(&s->attr),
					    .linkmax = s->u32[0],
					    .name_max = s->u32[1],
					    .no_trunc = s->flag[0],
					    .chown_restricted = s->flag[1],
					    .case_insensitive = s->flag[2],
					    .case_preserving = s->flag[3] };
}

static void
fill(unsigned proc, union nfs3_res *r, const struct sample *s)
{
	memset(r, 0, sizeof(*r));
	switch (proc) {
	case NFSPROC3_NULL:
		break;
	case NFSPROC3_GETATTR:
		r->attr.attr = make_attr(&s->attr);
		break;
	case NFSPROC3_SETATTR:
	case NFSPROC3_REMOVE:
	case NFSPROC3_RMDIR:
		r->wcc.wcc = make_wcc(&s->wcc);
		break;
	case NFSPROC3_LOOKUP:
		fill_lookup(r, s);
		break;
	case NFSPROC3_ACCESS:
		r->access.attr = make_attr(&s->attr);
		r->access.access = s->u32[0];
		break;
	case NFSPROC3_READLINK:
		fill_readlink(r, s);
		break;
	case NFSPROC3_READ:
		fill_read(r, s);
		break;
	case NFSPROC3_WRITE:
		fill_write(r, s);
		break;
	case NFSPROC3_RENAME:
		r->rename.from = make_wcc(&s->wcc);
		r->rename.to = make_wcc(&s->wcc2);
		break;
	case NFSPROC3_LINK:
		r->link.attr = make_attr(&s->attr);
		r->link.dir_wcc = make_wcc(&s->wcc);
		break;
	case NFSPROC3_READDIR:
	case NFSPROC3_READDIRPLUS:
		r->readdir.dir_attr = make_attr(&s->attr2);
		memcpy(r->readdir.cookieverf, s->verf, 8);
		break;
	case NFSPROC3_FSSTAT:
		fill_fsstat(r, s);
		break;
	case NFSPROC3_FSINFO:
		fill_fsinfo(r, s);
		break;
	case NFSPROC3_PATHCONF:
		fill_pathconf(r, s);
		break;
	case NFSPROC3_COMMIT:
		r->commit.wcc = make_wcc(&s->wcc);
		memcpy(r->commit.verf, s->verf, 8);
		break;
	default:
		fill_create(r, s);
	}
}

/* Tests
 * ------------------------------------------------------------------------ */

static void
put_word(uint8_t **p, uint32_t v)
{
	uint32_t wire = htonl(v);

	memcpy(*p, &wire, 4);
	*p += 4;
}

/* What is sent apart from the header: READ's payload, the list of entries. */
static uint32_t
append_tail(unsigned proc, const struct sample *s, uint8_t *out, uint32_t room)
{
	struct post_op_attr attr = make_attr(&s->attr);
	struct nfs_fh3 fh = make_fh(&s->fh);
	uint32_t name = strlen(s->name), name2 = strlen(s->name2);
	uint8_t *p = out, *end = out + room;

	if (proc == NFSPROC3_READ) {
		memcpy(p, s->data, s->data_bytes);
		return RNDUP(s->data_bytes);
	}
	if (proc == NFSPROC3_READDIR) {
		p += nfs3_encode_entry(p, end - p, s->u64[0], s->name, name,
				       s->u64[1]);
		p += nfs3_encode_entry(p, end - p, s->u64[2], s->name2, name2,
				       s->u64[3]);
	} else if (proc == NFSPROC3_READDIRPLUS) {
		p += nfs3_encode_entryplus(p, end - p, s->u64[0], s->name, name,
					   s->u64[1],
					   attr.follows ? &attr.attr : NULL,
					   s->fh.follows ? &fh : NULL);
		p += nfs3_encode_entryplus(p, end - p, s->u64[2], s->name2,
					   name2, s->u64[3], NULL, NULL);
	} else {
		return 0;
	}
	put_word(&p, 0);
	put_word(&p, s->flag[0]);
	return p - out;
}

/* Encode into a heap block of exactly room bytes at off behind a word boundary,
 * then copy to out. Its length, or -1. */
static int
encode_in(unsigned proc, enum nfsstat3 status, const union nfs3_res *res,
	  uint32_t room, unsigned off, uint8_t *out)
{
	char *block = malloc(off + room ? off + room : 1);
	int n = -1;
	XDR x;

	assert_non_null(block);
	xdrmem_create(&x, block + off, room, XDR_ENCODE);
	if (rows[proc].encode(&x, status, res)) {
		n = (int)XDR_GETPOS(&x);
		assert_in_range(n, 0, room);
		memcpy(out, block + off, n);
	}
	free(block);
	return n;
}

static const enum nfsstat3 statuses[] = { NFS3_OK, NFS3ERR_IO,
					  NFS3ERR_JUKEBOX };

static void
same_as_libnfs(unsigned proc, enum nfsstat3 status, const struct sample *s,
	       unsigned off)
{
	uint8_t ours[BYTES_MAX] = { 0 }, theirs[BYTES_MAX];
	uint32_t n = peer_res(proc, status, s, theirs, sizeof(theirs));
	union nfs3_res res;
	int header;

	fill(proc, &res, s);
	header = encode_in(proc, status, &res, BYTES_MAX, off, ours);
	assert_true(header >= 0);
	if (status == NFS3_OK)
		header += (int)append_tail(proc, s, ours + header,
					   sizeof(ours) - header);
	assert_int_equal(header, n);
	assert_memory_equal(ours, theirs, n);
	assert_true(peer_res_reads(proc, ours, n));
}

static void
test_libnfs_bytes(void **state)
{
	struct sample s;

	for (unsigned seed = 0; seed < SEEDS; seed++) {
		sample_random(&s, seed);
		for (unsigned p = 0; p < NFSPROC3_COUNT; p++)
			for (unsigned i = 0; i < 3; i++)
				same_as_libnfs(p, statuses[i], &s, seed % 4);
	}
}

/* The longest result is exactly as long as its bound, and fits nowhere
 * smaller. */
static void
test_bounds(void **state)
{
	static uint8_t out[BYTES_MAX];
	union nfs3_res res;
	struct sample s;

	sample_largest(&s);
	for (unsigned p = 0; p < NFSPROC3_COUNT; p++) {
		fill(p, &res, &s);
		if (p == NFSPROC3_READLINK)
			res.readlink.bytes = sizeof(res.readlink.data);
		assert_int_equal(encode_in(p, NFS3_OK, &res, BYTES_MAX, 0, out),
				 rows[p].ok_bytes_max);
		assert_int_equal(
			encode_in(p, NFS3ERR_STALE, &res, BYTES_MAX, 0, out),
			rows[p].fail_bytes_max);
		for (uint32_t n = 0; n < rows[p].ok_bytes_max; n++)
			assert_int_equal(
				encode_in(p, NFS3_OK, &res, n, n % 4, out), -1);
	}
}

/* An entry goes in when room is its length and not when it is a byte less; what
 * lies behind room is never touched. */
static void
entry_room(uint32_t name_bytes, const struct fattr3 *attr,
	   const struct nfs_fh3 *fh, bool plus, uint32_t expect)
{
	static const char name[256];
	uint8_t out[1024];
	uint32_t got;

	for (uint32_t room = 0; room <= expect + 5; room++) {
		memset(out, 0xc3, sizeof(out));
		if (plus)
			got = nfs3_encode_entryplus(out, room, 1, name,
						    name_bytes, 2, attr, fh);
		else
			got = nfs3_encode_entry(out, room, 1, name, name_bytes,
						2);
		assert_int_equal(got, room < expect ? 0 : expect);
		for (uint32_t i = room; i < expect + 8; i++)
			assert_int_equal(out[i], 0xc3);
	}
}

static void
test_entry_room(void **state)
{
	struct fattr3 attr = { .type = NF3REG };
	struct nfs_fh3 fh = { .bytes = NFS3_FHSIZE }, small = { .bytes = 41 };
	uint32_t bare;

	for (uint32_t n = 0; n <= 255; n += n < 9 ? 1 : 41) {
		bare = NFS3_ENTRY_BYTES(n);
		entry_room(n, NULL, NULL, false, bare);
		entry_room(n, NULL, NULL, true, bare + 8);
		entry_room(n, &attr, NULL, true, bare + 8 + NFS3_FATTR_BYTES);
		entry_room(n, NULL, &fh, true, bare + 8 + NFS3_FH_BYTES);
		entry_room(n, &attr, &small, true,
			   bare + 8 + NFS3_FATTR_BYTES + 4 + 44);
		entry_room(n, &attr, &fh, true, NFS3_ENTRYPLUS_BYTES(n));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_libnfs_bytes),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_entry_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
