/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NFS arguments: decoded from bytes that libnfs made, from bytes written by
 * hand, cut off at every length, and with each discriminant out of range.
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

#define SEEDS        400u
#define BYTES_MAX    4096u
#define WRITE_HEADER 24u /* of an empty handle's WRITE */

static nfs3_decode_fn *const decoder[NFSPROC3_COUNT] = {
	[NFSPROC3_NULL] = nfs3_decode_void,
	[NFSPROC3_GETATTR] = nfs3_decode_fh,
	[NFSPROC3_SETATTR] = nfs3_decode_setattr,
	[NFSPROC3_LOOKUP] = nfs3_decode_dirop,
	[NFSPROC3_ACCESS] = nfs3_decode_access,
	[NFSPROC3_READLINK] = nfs3_decode_fh,
	[NFSPROC3_READ] = nfs3_decode_read,
	[NFSPROC3_WRITE] = nfs3_decode_write,
	[NFSPROC3_CREATE] = nfs3_decode_create,
	[NFSPROC3_MKDIR] = nfs3_decode_mkdir,
	[NFSPROC3_SYMLINK] = nfs3_decode_symlink,
	[NFSPROC3_MKNOD] = nfs3_decode_mknod,
	[NFSPROC3_REMOVE] = nfs3_decode_dirop,
	[NFSPROC3_RMDIR] = nfs3_decode_dirop,
	[NFSPROC3_RENAME] = nfs3_decode_rename,
	[NFSPROC3_LINK] = nfs3_decode_link,
	[NFSPROC3_READDIR] = nfs3_decode_readdir,
	[NFSPROC3_READDIRPLUS] = nfs3_decode_readdirplus,
	[NFSPROC3_FSSTAT] = nfs3_decode_fh,
	[NFSPROC3_FSINFO] = nfs3_decode_fh,
	[NFSPROC3_PATHCONF] = nfs3_decode_fh,
	[NFSPROC3_COMMIT] = nfs3_decode_commit,
};

/*
 * Decode from a heap block of exactly n bytes, off bytes behind a word
 * boundary, so that AddressSanitizer sees a read past the end. The block stays
 * until the next call: args point into it.
 */
static bool
decode_at(nfs3_decode_fn *fn, const uint8_t *bytes, uint32_t n, unsigned off,
	  union nfs3_args *args, uint32_t *used)
{
	static uint8_t *block;
	bool ok;
	XDR x;

	free(block);
	block = malloc(off + n ? off + n : 1);
	assert_non_null(block);
	memcpy(block + off, bytes, n);
	memset(args, 0xa5, sizeof(*args));
	xdrmem_create(&x, (char *)block + off, n, XDR_DECODE);
	ok = fn(&x, args);
	if (used)
		*used = XDR_GETPOS(&x);
	return ok;
}

static bool
decode(nfs3_decode_fn *fn, const uint8_t *bytes, uint32_t n,
       union nfs3_args *args)
{
	return decode_at(fn, bytes, n, 0, args, NULL);
}

/* What a call does not give is zero in args. */
static const struct sample_time no_time;
static const struct sample_sattr no_sattr;

/* Args against the sample ---------------------------------------------- */

static void
same_fh(const struct nfs_fh3 *fh, const struct sample_fh *s)
{
	assert_int_equal(fh->bytes, s->bytes);
	assert_memory_equal(fh->data, s->data, s->bytes);
}

static void
same_text(const struct nfs3_bytes *b, const char *s)
{
	assert_int_equal(b->bytes, strlen(s));
	assert_memory_equal(b->data, s, b->bytes);
}

static void
same_time(struct nfstime3 t, struct sample_time s)
{
	assert_int_equal(t.seconds, s.s);
	assert_int_equal(t.nseconds, s.ns);
}

static void
same_sattr(const struct sattr3 *a, const struct sample_sattr *s)
{
	assert_int_equal(a->set_mode, s->set_mode);
	assert_int_equal(a->set_uid, s->set_uid);
	assert_int_equal(a->set_gid, s->set_gid);
	assert_int_equal(a->set_size, s->set_size);
	assert_int_equal(a->mode, s->set_mode ? s->mode : 0);
	assert_int_equal(a->uid, s->set_uid ? s->uid : 0);
	assert_int_equal(a->gid, s->set_gid ? s->gid : 0);
	assert_int_equal(a->size, s->set_size ? s->size : 0);
	assert_int_equal(a->set_atime, s->atime_how);
	assert_int_equal(a->set_mtime, s->mtime_how);
	same_time(a->atime,
		  s->atime_how == SET_TO_CLIENT_TIME ? s->atime : no_time);
	same_time(a->mtime,
		  s->mtime_how == SET_TO_CLIENT_TIME ? s->mtime : no_time);
}

static void
same_dirop(const struct diropargs3 *d, const struct sample_fh *fh,
	   const char *name)
{
	same_fh(&d->dir, fh);
	same_text(&d->name, name);
}

static void
same_setattr(const union nfs3_args *a, const struct sample *s)
{
	same_fh(&a->setattr.fh, &s->fh);
	same_sattr(&a->setattr.attr, &s->sattr);
	assert_int_equal(a->setattr.guard, s->flag[0]);
	same_time(a->setattr.guard_ctime, s->flag[0] ? s->time : no_time);
}

static void
same_write(const union nfs3_args *a, const struct sample *s)
{
	same_fh(&a->write.fh, &s->fh);
	assert_int_equal(a->write.offset, s->u64[0]);
	assert_int_equal(a->write.count, s->u32[0]);
	assert_int_equal(a->write.stable, s->stable);
	assert_int_equal(a->write.data_bytes, s->data_bytes);
}

static void
same_create(const union nfs3_args *a, const struct sample *s)
{
	same_dirop(&a->create.where, &s->fh, s->name);
	assert_int_equal(a->create.mode, s->createmode);
	if (s->createmode == EXCLUSIVE)
		assert_memory_equal(a->create.verf, s->verf, 8);
	same_sattr(&a->create.attr,
		   s->createmode == EXCLUSIVE ? &no_sattr : &s->sattr);
}

static void
same_mknod(const union nfs3_args *a, const struct sample *s)
{
	bool device = s->mktype == NF3CHR || s->mktype == NF3BLK;

	same_dirop(&a->mknod.where, &s->fh, s->name);
	assert_int_equal(a->mknod.type, s->mktype);
	same_sattr(&a->mknod.attr, s->mktype == NF3LNK ? &no_sattr : &s->sattr);
	assert_int_equal(a->mknod.spec.specdata1, device ? s->u32[0] : 0);
	assert_int_equal(a->mknod.spec.specdata2, device ? s->u32[1] : 0);
}

static void
same_readdir(const union nfs3_args *a, const struct sample *s, bool plus)
{
	const struct nfs3_readdir_args *r = &a->readdir;

	same_fh(&r->dir, &s->fh);
	assert_int_equal(r->cookie, s->u64[0]);
	assert_memory_equal(r->cookieverf, s->verf, 8);
	assert_int_equal(r->plus, plus);
	assert_int_equal(r->dircount, plus ? s->u32[0] : 0);
	assert_int_equal(r->maxcount, plus ? s->u32[1] : s->u32[0]);
}

static void
same_args(unsigned proc, const union nfs3_args *a, const struct sample *s)
{
	switch (proc) {
	case NFSPROC3_NULL:
		break;
	case NFSPROC3_SETATTR:
		same_setattr(a, s);
		break;
	case NFSPROC3_LOOKUP:
	case NFSPROC3_REMOVE:
	case NFSPROC3_RMDIR:
		same_dirop(&a->dirop.where, &s->fh, s->name);
		break;
	case NFSPROC3_ACCESS:
		same_fh(&a->access.fh, &s->fh);
		assert_int_equal(a->access.access, s->u32[0]);
		break;
	case NFSPROC3_READ:
		same_fh(&a->read.fh, &s->fh);
		assert_int_equal(a->read.offset, s->u64[0]);
		assert_int_equal(a->read.count, s->u32[0]);
		break;
	case NFSPROC3_WRITE:
		same_write(a, s);
		break;
	case NFSPROC3_CREATE:
		same_create(a, s);
		break;
	case NFSPROC3_MKDIR:
		same_dirop(&a->mkdir.where, &s->fh, s->name);
		same_sattr(&a->mkdir.attr, &s->sattr);
		break;
	case NFSPROC3_SYMLINK:
		same_dirop(&a->symlink.where, &s->fh, s->name);
		same_sattr(&a->symlink.attr, &s->sattr);
		same_text(&a->symlink.target, s->path);
		break;
	case NFSPROC3_MKNOD:
		same_mknod(a, s);
		break;
	case NFSPROC3_RENAME:
		same_dirop(&a->rename.from, &s->fh, s->name);
		same_dirop(&a->rename.to, &s->fh2, s->name2);
		break;
	case NFSPROC3_LINK:
		same_fh(&a->link.fh, &s->fh);
		same_dirop(&a->link.link, &s->fh2, s->name);
		break;
	case NFSPROC3_READDIR:
	case NFSPROC3_READDIRPLUS:
		same_readdir(a, s, proc == NFSPROC3_READDIRPLUS);
		break;
	case NFSPROC3_COMMIT:
		same_fh(&a->commit.fh, &s->fh);
		assert_int_equal(a->commit.offset, s->u64[0]);
		assert_int_equal(a->commit.count, s->u32[0]);
		break;
	default:
		same_fh(&a->fh.fh, &s->fh);
	}
}

/* Tests ----------------------------------------------------------------- */

static void
test_libnfs_bytes(void **state)
{
	uint8_t bytes[BYTES_MAX];
	union nfs3_args args;
	struct sample s;
	uint32_t n, used, tail;

	for (unsigned seed = 0; seed < SEEDS; seed++) {
		sample_random(&s, seed);
		for (unsigned p = 0; p < NFSPROC3_COUNT; p++) {
			n = peer_args(p, &s, bytes, sizeof(bytes));
			assert_true(decode_at(decoder[p], bytes, n, seed % 4,
					      &args, &used));
			same_args(p, &args, &s);
			/* WRITE stops at its payload, the others at the end. */
			tail = p == NFSPROC3_WRITE ? RNDUP(s.data_bytes) : 0;
			assert_int_equal(used, n - tail);
		}
	}
}

static void
test_cut_off_anywhere(void **state)
{
	uint8_t bytes[BYTES_MAX];
	union nfs3_args args;
	struct sample s;
	uint32_t n;

	for (unsigned seed = 0; seed < 12; seed++) {
		sample_random(&s, seed);
		for (unsigned p = 1; p < NFSPROC3_COUNT; p++) {
			n = peer_args(p, &s, bytes, sizeof(bytes));
			if (p == NFSPROC3_WRITE)
				n -= RNDUP(s.data_bytes);
			for (uint32_t cut = 0; cut < n; cut++)
				assert_false(decode_at(decoder[p], bytes, cut,
						       cut % 4, &args, NULL));
			assert_true(decode(decoder[p], bytes, n, &args));
		}
	}
}

static void
test_left_over(void **state)
{
	uint8_t bytes[BYTES_MAX] = { 0 };
	union nfs3_args args;
	struct sample s;
	uint32_t n;

	sample_random(&s, 1);
	for (unsigned p = 0; p < NFSPROC3_COUNT; p++) {
		n = peer_args(p, &s, bytes, sizeof(bytes) - 8);
		for (uint32_t more = 1; more <= 4; more++)
			assert_int_equal(
				decode(decoder[p], bytes, n + more, &args),
				p == NFSPROC3_WRITE);
	}
}

static void
put(uint8_t *out, uint32_t at, uint32_t value)
{
	out[at] = (uint8_t)(value >> 24);
	out[at + 1] = (uint8_t)(value >> 16);
	out[at + 2] = (uint8_t)(value >> 8);
	out[at + 3] = (uint8_t)value;
}

/* What decoder says of the sample's bytes with the word at at made to be each
 * of values; the first of them is one that it takes. */
static void
only_first(unsigned proc, const struct sample *s, uint32_t at,
	   const uint32_t *values, unsigned count)
{
	uint8_t bytes[BYTES_MAX];
	uint32_t n = peer_args(proc, s, bytes, sizeof(bytes));
	union nfs3_args args;

	for (unsigned i = 0; i < count; i++) {
		put(bytes, at, values[i]);
		assert_int_equal(decode(decoder[proc], bytes, n, &args),
				 i == 0);
	}
}

/* An empty handle and name, nothing set: every discriminant is one word at a
 * place that can be counted. */
static void
plain_sample(struct sample *s)
{
	memset(s, 0, sizeof(*s));
}

static void
test_booleans(void **state)
{
	static const uint32_t value[] = { 0,     2,           3,
					  0x100, 0x80000000u, 0xffffffffu };
	unsigned count = sizeof(value) / sizeof(*value);
	struct sample s;

	plain_sample(&s);
	/* set_mode, set_uid, set_gid, set_size, both time_how, guard: the words
	 * behind a handle of no bytes */
	for (unsigned i = 0; i < 4; i++)
		only_first(NFSPROC3_SETATTR, &s, 4 + 4 * i, value, count);
	only_first(NFSPROC3_SETATTR, &s, 28, value, count);
	for (unsigned i = 0; i < 4; i++)
		only_first(NFSPROC3_MKDIR, &s, 8 + 4 * i, value, count);
}

static void
test_enumerations(void **state)
{
	static const uint32_t how[] = { 0, 3, 4, 0x80000000u, 0xffffffffu };
	static const uint32_t server[] = { SET_TO_SERVER_TIME, 3, 0xffffffffu };
	static const uint32_t stable[] = { FILE_SYNC, 3, 0xffffffffu };
	static const uint32_t guarded[] = { GUARDED, 3, 0xffffffffu };
	struct sample s;

	plain_sample(&s);
	only_first(NFSPROC3_SETATTR, &s, 20, how, 5);
	only_first(NFSPROC3_SETATTR, &s, 24, how, 5);
	only_first(NFSPROC3_SETATTR, &s, 20, server, 3);
	only_first(NFSPROC3_SYMLINK, &s, 24, how, 5);
	only_first(NFSPROC3_SYMLINK, &s, 28, server, 3);
	only_first(NFSPROC3_WRITE, &s, 16, stable, 3);
	only_first(NFSPROC3_CREATE, &s, 8, guarded, 3);
}

/* ftype3 out of range is the procedure's to refuse, with the void arm. */
static void
test_mknod_type(void **state)
{
	static const uint32_t type[] = { 0,      NF3REG, NF3DIR,
					 NF3LNK, 8,      0xffffffffu };
	uint8_t bytes[16] = { 0 };
	union nfs3_args args;

	for (unsigned i = 0; i < sizeof(type) / sizeof(*type); i++) {
		put(bytes, 8, type[i]);
		assert_true(decode(nfs3_decode_mknod, bytes, 12, &args));
		assert_int_equal(args.mknod.type, type[i]);
		assert_false(decode(nfs3_decode_mknod, bytes, 16, &args));
	}
}

static void
test_handle_length(void **state)
{
	uint8_t bytes[80] = { 0 };
	union nfs3_args args;

	put(bytes, 0, 64);
	assert_true(decode(nfs3_decode_fh, bytes, 68, &args));
	assert_int_equal(args.fh.fh.bytes, 64);
	put(bytes, 0, 65);
	assert_false(decode(nfs3_decode_fh, bytes, 72, &args));
	put(bytes, 0, 0xffffffffu);
	assert_false(decode(nfs3_decode_fh, bytes, 72, &args));
	/* the rest of a shorter handle is zero, whatever was there before */
	memset(bytes, 0xee, sizeof(bytes));
	put(bytes, 0, 5);
	assert_true(decode(nfs3_decode_fh, bytes, 12, &args));
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(args.fh.fh.data[i], i < 5 ? 0xee : 0);
}

/* Lengths near 2^32, where rounding up or adding could wrap. */
static void
test_name_length(void **state)
{
	static const uint32_t length[] = { 5,           0x7fffffffu,
					   0x80000000u, 0xfffffff8u,
					   0xfffffffcu, 0xfffffffdu,
					   0xffffffffu };
	uint8_t bytes[16] = { 0 };
	union nfs3_args args;

	for (unsigned off = 0; off < 4; off++) {
		for (unsigned i = 0; i < sizeof(length) / sizeof(*length);
		     i++) {
			put(bytes, 4, length[i]);
			assert_false(decode_at(nfs3_decode_dirop, bytes, 12,
					       off, &args, NULL));
		}
		put(bytes, 4, 4);
		assert_true(decode_at(nfs3_decode_dirop, bytes, 12, off, &args,
				      NULL));
	}
}

static void
test_write_by_hand(void **state)
{
	static const uint8_t bytes[] = {
		0, 0, 0,    3,    0xaa, 0xbb, 0xcc, 0x77, /* handle, filler */
		0, 0, 0,    1,    0,    0,    0x10, 0x02, /* offset */
		0, 0, 0xb7, 0xa0,                         /* count 47008 */
		0, 0, 0,    2,                            /* FILE_SYNC */
		0, 0, 0xb7, 0xa0,                         /* data length */
		1, 2, 3,    4,                            /* its first bytes */
	};
	union nfs3_args args;
	uint32_t used;

	assert_true(decode_at(nfs3_decode_write, bytes, sizeof(bytes), 0, &args,
			      &used));
	assert_int_equal(used, sizeof(bytes) - 4);
	assert_int_equal(args.write.fh.bytes, 3);
	assert_memory_equal(args.write.fh.data, "\xaa\xbb\xcc", 3);
	assert_int_equal(args.write.offset, 0x100001002u);
	assert_int_equal(args.write.count, 47008);
	assert_int_equal(args.write.stable, FILE_SYNC);
	assert_int_equal(args.write.data_bytes, 47008);
}

/* A full handle's WRITE is as long as the bound says. */
static void
test_write_bound(void **state)
{
	uint8_t bytes[BYTES_MAX];
	union nfs3_args args;
	struct sample s;
	uint32_t n, used;

	sample_largest(&s);
	n = peer_args(NFSPROC3_WRITE, &s, bytes, sizeof(bytes));
	assert_true(decode_at(nfs3_decode_write, bytes, n, 0, &args, &used));
	assert_int_equal(used, NFS3_WRITE_ARGS_BYTES_MAX);
	plain_sample(&s);
	n = peer_args(NFSPROC3_WRITE, &s, bytes, sizeof(bytes));
	assert_int_equal(n, WRITE_HEADER);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_libnfs_bytes),
		cmocka_unit_test(test_cut_off_anywhere),
		cmocka_unit_test(test_left_over),
		cmocka_unit_test(test_booleans),
		cmocka_unit_test(test_enumerations),
		cmocka_unit_test(test_mknod_type),
		cmocka_unit_test(test_handle_length),
		cmocka_unit_test(test_name_length),
		cmocka_unit_test(test_write_by_hand),
		cmocka_unit_test(test_write_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
