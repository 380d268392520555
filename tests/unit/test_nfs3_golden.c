/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NFS arguments and results against bytes written down by hand from RFC 1813:
 * no encoder but the reader's eye stands behind them. Words are in hexadecimal;
 * every value is different, so that no two fields can trade places.
 */
#include "nfsd/nfs3.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BYTES_MAX 512u

/* Handles of 5 and of 2 bytes; names "ab" and "cdefg". */
#define FH    "00000005 f1f2f3f4 f5000000 "
#define FH2   "00000002 e1e20000 "
#define NAME  "00000002 61620000 "
#define NAME2 "00000005 63646566 67000000 "
/* mode 0644 set, uid not, gid 7 set, size 0x1_0000_0002 set, atime of the
 * server's, mtime of the client's */
#define SATTR                                                                  \
	"00000001 000001a4 00000000 00000001 00000007 "                        \
	"00000001 00000001 00000002 00000001 00000002 00000011 00000022 "
#define VERF "d1d2d3d4 d5d6d7d8 "

#define FATTR                                                                  \
	"00000003 00000180 00000002 00000064 00000065 " /* BLK 0600 2 100 101  \
							 */                    \
	"00000001 00000200 00000000 00001000 "          /* size, used */       \
	"00000008 00000011 00000000 00000fed "          /* rdev 8:17, fsid */  \
	"00000000 00000abc "                            /* fileid */           \
	"00000031 00000032 00000041 00000042 00000051 00000052 "
#define PRE   "00000001 00000000 000001ff 00000061 00000062 00000071 00000072 "
#define ATTR  "00000001 " FATTR
#define WCC   PRE ATTR
#define NONE  "00000000 "
#define TWICE NONE NONE

static uint32_t
from_hex(uint8_t *out, const char *hex)
{
	uint32_t n = 0;
	char pair[3] = "";

	for (; *hex; hex++) {
		if (isspace((unsigned char)*hex))
			continue;
		assert_true(n < BYTES_MAX);
		memcpy(pair, hex++, 2);
		out[n++] = (uint8_t)strtoul(pair, NULL, 16);
	}
	return n;
}

static union nfs3_args
decoded(nfs3_decode_fn *fn, const char *hex)
{
	static uint8_t bytes[BYTES_MAX];
	uint32_t n = from_hex(bytes, hex);
	union nfs3_args args;
	XDR x;

	memset(&args, 0x5a, sizeof(args));
	xdrmem_create(&x, (char *)bytes, n, XDR_DECODE);
	assert_true(fn(&x, &args));
	assert_int_equal(XDR_GETPOS(&x), n);
	return args;
}

static void
encodes(nfs3_encode_fn *fn, enum nfsstat3 status, const union nfs3_res *res,
	const char *hex)
{
	uint8_t expect[BYTES_MAX], bytes[BYTES_MAX];
	uint32_t n = from_hex(expect, hex);
	XDR x;

	xdrmem_create(&x, (char *)bytes, n, XDR_ENCODE);
	assert_true(fn(&x, status, res));
	assert_int_equal(XDR_GETPOS(&x), n);
	assert_memory_equal(bytes, expect, n);
}

static void
is_fh(const struct nfs_fh3 *fh)
{
	assert_int_equal(fh->bytes, 5);
	assert_memory_equal(fh->data, "\xf1\xf2\xf3\xf4\xf5", 5);
}

static void
is_where(const struct diropargs3 *d)
{
	is_fh(&d->dir);
	assert_int_equal(d->name.bytes, 2);
	assert_memory_equal(d->name.data, "ab", 2);
}

static void
is_link_where(const struct diropargs3 *d)
{
	assert_int_equal(d->dir.bytes, 2);
	assert_memory_equal(d->dir.data, "\xe1\xe2", 2);
	assert_int_equal(d->name.bytes, 5);
	assert_memory_equal(d->name.data, "cdefg", 5);
}

static void
is_sattr(const struct sattr3 *a)
{
	assert_true(a->set_mode && !a->set_uid && a->set_gid && a->set_size);
	assert_int_equal(a->mode, 0644);
	assert_int_equal(a->gid, 7);
	assert_int_equal(a->size, 0x100000002u);
	assert_int_equal(a->set_atime, SET_TO_SERVER_TIME);
	assert_int_equal(a->set_mtime, SET_TO_CLIENT_TIME);
	assert_int_equal(a->mtime.seconds, 0x11);
	assert_int_equal(a->mtime.nseconds, 0x22);
}

static void
test_args_of_files(void **state)
{
	union nfs3_args a;

	(void)decoded(nfs3_decode_void, "");
	a = decoded(nfs3_decode_fh, FH);
	is_fh(&a.fh.fh);
	a = decoded(nfs3_decode_setattr, FH SATTR "00000001 00000033 00000044");
	is_fh(&a.setattr.fh);
	is_sattr(&a.setattr.attr);
	assert_true(a.setattr.guard);
	assert_int_equal(a.setattr.guard_ctime.seconds, 0x33);
	assert_int_equal(a.setattr.guard_ctime.nseconds, 0x44);
	a = decoded(nfs3_decode_setattr, FH SATTR "00000000");
	assert_false(a.setattr.guard);
	a = decoded(nfs3_decode_access, FH "0000002d");
	is_fh(&a.access.fh);
	assert_int_equal(a.access.access, 0x2d);
	a = decoded(nfs3_decode_read, FH "fedcba98 76543210 00100000");
	is_fh(&a.read.fh);
	assert_int_equal(a.read.offset, 0xfedcba9876543210u);
	assert_int_equal(a.read.count, 1 << 20);
	a = decoded(nfs3_decode_write,
		    FH "00000001 00000002 00000003 00000001 00000004");
	is_fh(&a.write.fh);
	assert_int_equal(a.write.offset, 0x100000002u);
	assert_int_equal(a.write.count, 3);
	assert_int_equal(a.write.stable, DATA_SYNC);
	assert_int_equal(a.write.data_bytes, 4);
	a = decoded(nfs3_decode_commit, FH "00000005 00000006 00000007");
	is_fh(&a.commit.fh);
	assert_int_equal(a.commit.offset, 0x500000006u);
	assert_int_equal(a.commit.count, 7);
}

static void
test_args_of_names(void **state)
{
	union nfs3_args a;

	a = decoded(nfs3_decode_dirop, FH NAME);
	is_where(&a.dirop.where);
	a = decoded(nfs3_decode_create, FH NAME "00000000" SATTR);
	is_where(&a.create.where);
	assert_int_equal(a.create.mode, UNCHECKED);
	is_sattr(&a.create.attr);
	a = decoded(nfs3_decode_create, FH NAME "00000001" SATTR);
	assert_int_equal(a.create.mode, GUARDED);
	is_sattr(&a.create.attr);
	a = decoded(nfs3_decode_create, FH NAME "00000002" VERF);
	is_where(&a.create.where);
	assert_int_equal(a.create.mode, EXCLUSIVE);
	assert_memory_equal(a.create.verf, "\xd1\xd2\xd3\xd4\xd5\xd6\xd7\xd8",
			    8);
	a = decoded(nfs3_decode_mkdir, FH NAME SATTR);
	is_where(&a.mkdir.where);
	is_sattr(&a.mkdir.attr);
	a = decoded(nfs3_decode_symlink, FH NAME SATTR NAME2);
	is_where(&a.symlink.where);
	is_sattr(&a.symlink.attr);
	assert_int_equal(a.symlink.target.bytes, 5);
	assert_memory_equal(a.symlink.target.data, "cdefg", 5);
	a = decoded(nfs3_decode_rename, FH NAME FH2 NAME2);
	is_where(&a.rename.from);
	is_link_where(&a.rename.to);
	a = decoded(nfs3_decode_link, FH FH2 NAME2);
	is_fh(&a.link.fh);
	is_link_where(&a.link.link);
}

static void
test_args_of_mknod(void **state)
{
	union nfs3_args a;

	a = decoded(nfs3_decode_mknod,
		    FH NAME "00000004" SATTR "00000009 0000000a");
	is_where(&a.mknod.where);
	assert_int_equal(a.mknod.type, NF3CHR);
	is_sattr(&a.mknod.attr);
	assert_int_equal(a.mknod.spec.specdata1, 9);
	assert_int_equal(a.mknod.spec.specdata2, 10);
	a = decoded(nfs3_decode_mknod,
		    FH NAME "00000003" SATTR "00000009 0000000a");
	assert_int_equal(a.mknod.type, NF3BLK);
	assert_int_equal(a.mknod.spec.specdata2, 10);
	a = decoded(nfs3_decode_mknod, FH NAME "00000006" SATTR);
	assert_int_equal(a.mknod.type, NF3SOCK);
	is_sattr(&a.mknod.attr);
	a = decoded(nfs3_decode_mknod, FH NAME "00000007" SATTR);
	assert_int_equal(a.mknod.type, NF3FIFO);
	is_sattr(&a.mknod.attr);
	a = decoded(nfs3_decode_mknod, FH NAME "00000001");
	assert_int_equal(a.mknod.type, NF3REG);
}

static void
test_args_of_directories(void **state)
{
	union nfs3_args a;

	a = decoded(nfs3_decode_readdir,
		    FH "00000001 00000002" VERF "00001000");
	is_fh(&a.readdir.dir);
	assert_int_equal(a.readdir.cookie, 0x100000002u);
	assert_memory_equal(a.readdir.cookieverf,
			    "\xd1\xd2\xd3\xd4\xd5\xd6\xd7\xd8", 8);
	assert_int_equal(a.readdir.maxcount, 0x1000);
	assert_int_equal(a.readdir.dircount, 0);
	assert_false(a.readdir.plus);
	a = decoded(nfs3_decode_readdirplus,
		    FH "00000001 00000002" VERF "00001000 00008000");
	assert_int_equal(a.readdir.dircount, 0x1000);
	assert_int_equal(a.readdir.maxcount, 0x8000);
	assert_true(a.readdir.plus);
}

static const struct post_op_attr attr = {
	.follows = true,
	.attr = { .type = NF3BLK,
		  .mode = 0600,
		  .nlink = 2,
		  .uid = 100,
		  .gid = 101,
		  .size = 0x100000200u,
		  .used = 0x1000,
		  .rdev = { 8, 17 },
		  .fsid = 0xfed,
		  .fileid = 0xabc,
		  .atime = { 0x31, 0x32 },
		  .mtime = { 0x41, 0x42 },
		  .ctime = { 0x51, 0x52 } },
};
static const struct pre_op_attr pre = {
	true, 0x1ff, { 0x61, 0x62 }, { 0x71, 0x72 }
};
static const struct nfs_fh3 fh = { 5, { 0xf1, 0xf2, 0xf3, 0xf4, 0xf5 } };
#define VERF_BYTES                                                             \
	{                                                                      \
		0xd1, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8                 \
	}

static void
test_results_of_files(void **state)
{
	struct wcc_data wcc = { pre, attr };
	union nfs3_res r = { .attr = { attr } };

	encodes(nfs3_encode_void, NFS3_OK, &r, "");
	encodes(nfs3_encode_getattr, NFS3_OK, &r, "00000000" FATTR);
	encodes(nfs3_encode_getattr, NFS3ERR_STALE, &r, "00000046");
	r.wcc.wcc = wcc;
	encodes(nfs3_encode_wcc, NFS3_OK, &r, "00000000" WCC);
	encodes(nfs3_encode_wcc, NFS3ERR_NOT_SYNC, &r, "00002712" WCC);
	r.access = (struct nfs3_access_res){ attr, 0x1f };
	encodes(nfs3_encode_access, NFS3_OK, &r, "00000000" ATTR "0000001f");
	encodes(nfs3_encode_access, NFS3ERR_IO, &r, "00000005" ATTR);
	r.readlink = (struct nfs3_readlink_res){ attr, 5, "cdefg" };
	encodes(nfs3_encode_readlink, NFS3_OK, &r, "00000000" ATTR NAME2);
	encodes(nfs3_encode_readlink, NFS3ERR_INVAL, &r, "00000016" ATTR);
	r.read = (struct nfs3_read_res){ attr, 0x1234, true };
	encodes(nfs3_encode_read, NFS3_OK, &r,
		"00000000" ATTR "00001234 00000001 00001234");
	encodes(nfs3_encode_read, NFS3ERR_ACCES, &r, "0000000d" ATTR);
	r.write = (struct nfs3_write_res){ wcc, 0x4321, FILE_SYNC, VERF_BYTES };
	encodes(nfs3_encode_write, NFS3_OK, &r,
		"00000000" WCC "00004321 00000002" VERF);
	encodes(nfs3_encode_write, NFS3ERR_NOSPC, &r, "0000001c" WCC);
	r.commit = (struct nfs3_commit_res){ wcc, VERF_BYTES };
	encodes(nfs3_encode_commit, NFS3_OK, &r, "00000000" WCC VERF);
	encodes(nfs3_encode_commit, NFS3ERR_IO, &r, "00000005" WCC);
}

static void
test_results_of_names(void **state)
{
	struct wcc_data wcc = { pre, attr };
	union nfs3_res r = { .lookup = { fh, attr, { false } } };

	encodes(nfs3_encode_lookup, NFS3_OK, &r, "00000000" FH ATTR NONE);
	r.lookup.attr.follows = false;
	r.lookup.dir_attr = attr;
	encodes(nfs3_encode_lookup, NFS3_OK, &r, "00000000" FH NONE ATTR);
	encodes(nfs3_encode_lookup, NFS3ERR_NOENT, &r, "00000002" ATTR);
	r.create = (struct nfs3_create_res){ { true, fh }, attr, wcc };
	encodes(nfs3_encode_create, NFS3_OK, &r,
		"00000000 00000001" FH ATTR WCC);
	encodes(nfs3_encode_create, NFS3ERR_EXIST, &r, "00000011" WCC);
	r.create.fh.follows = r.create.attr.follows = false;
	encodes(nfs3_encode_create, NFS3_OK, &r, "00000000" TWICE WCC);
	memset(&r, 0, sizeof(r));
	r.rename.from.before = pre;
	r.rename.to.after = attr;
	encodes(nfs3_encode_rename, NFS3_OK, &r, "00000000" PRE NONE NONE ATTR);
	encodes(nfs3_encode_rename, NFS3ERR_NOTEMPTY, &r,
		"00000042" PRE NONE NONE ATTR);
	memset(&r, 0, sizeof(r));
	r.link.dir_wcc.before = pre;
	encodes(nfs3_encode_link, NFS3_OK, &r, "00000000" NONE PRE NONE);
	r.link.attr = attr;
	encodes(nfs3_encode_link, NFS3ERR_MLINK, &r, "0000001f" ATTR PRE NONE);
}

static void
test_results_of_directories(void **state)
{
	union nfs3_res r = { .readdir = { attr, VERF_BYTES } };
	struct fattr3 f = attr.attr;
	uint8_t out[BYTES_MAX], expect[BYTES_MAX];
	uint32_t n;

	encodes(nfs3_encode_readdir, NFS3_OK, &r, "00000000" ATTR VERF);
	encodes(nfs3_encode_readdir, NFS3ERR_TOOSMALL, &r, "00002715" ATTR);
	n = from_hex(expect,
		     "00000001 00000001 00000002" NAME2 "00000003 00000004");
	assert_int_equal(nfs3_encode_entry(out, n, 0x100000002u, "cdefg", 5,
					   0x300000004u),
			 n);
	assert_memory_equal(out, expect, n);
	n = from_hex(expect, "00000001 00000001 00000002" NAME
			     "00000003 00000004" ATTR "00000001" FH);
	assert_int_equal(nfs3_encode_entryplus(out, n, 0x100000002u, "ab", 2,
					       0x300000004u, &f, &fh),
			 n);
	assert_memory_equal(out, expect, n);
	n = from_hex(expect, "00000001 00000001 00000002" NAME
			     "00000003 00000004" TWICE);
	assert_int_equal(nfs3_encode_entryplus(out, n, 0x100000002u, "ab", 2,
					       0x300000004u, NULL, NULL),
			 n);
	assert_memory_equal(out, expect, n);
}

static void
test_results_of_file_systems(void **state)
{
	union nfs3_res r = { .fsstat = { attr, 1, 2, 3, 4, 5, 6, 7 } };

	encodes(nfs3_encode_fsstat, NFS3_OK, &r,
		"00000000" ATTR "00000000 00000001 00000000 00000002"
		"00000000 00000003 00000000 00000004 00000000 00000005"
		"00000000 00000006 00000007");
	encodes(nfs3_encode_fsstat, NFS3ERR_IO, &r, "00000005" ATTR);
	r.fsinfo = (struct nfs3_fsinfo_res){
		attr, 1, 2, 3, 4, 5, 6, 7, 0x800000009u, { 10, 11 }, 0x1b
	};
	encodes(nfs3_encode_fsinfo, NFS3_OK, &r,
		"00000000" ATTR "00000001 00000002 00000003 00000004"
		"00000005 00000006 00000007 00000008 00000009"
		"0000000a 0000000b 0000001b");
	encodes(nfs3_encode_fsinfo, NFS3ERR_IO, &r, "00000005" ATTR);
	r.pathconf = (struct nfs3_pathconf_res){ attr,  32000, 255,  true,
						 false, true,  false };
	encodes(nfs3_encode_pathconf, NFS3_OK, &r,
		"00000000" ATTR "00007d00 000000ff"
		"00000001 00000000 00000001 00000000");
	encodes(nfs3_encode_pathconf, NFS3ERR_IO, &r, "00000005" ATTR);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_args_of_files),
		cmocka_unit_test(test_args_of_names),
		cmocka_unit_test(test_args_of_mknod),
		cmocka_unit_test(test_args_of_directories),
		cmocka_unit_test(test_results_of_files),
		cmocka_unit_test(test_results_of_names),
		cmocka_unit_test(test_results_of_directories),
		cmocka_unit_test(test_results_of_file_systems),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
