/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NFS and NFSACL arguments. The first byte chooses the procedure, the rest is
 * what a client sent. Whatever is decoded lies inside the input, says the same
 * wherever the stream begins, and is not decoded from fewer bytes.
 */
#include "nfsd/acl.h"
#include "nfsd/nfs3.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static nfs3_decode_fn *const decoder[] = {
	nfs3_decode_void,     nfs3_decode_fh,      nfs3_decode_setattr,
	nfs3_decode_dirop,    nfs3_decode_access,  nfs3_decode_read,
	nfs3_decode_write,    nfs3_decode_create,  nfs3_decode_mkdir,
	nfs3_decode_symlink,  nfs3_decode_mknod,   nfs3_decode_rename,
	nfs3_decode_link,     nfs3_decode_readdir, nfs3_decode_readdirplus,
	nfs3_decode_commit,   mount3_decode_path,  nfsacl_decode_getacl,
	nfsacl_decode_setacl, rquota_decode,       rquota2_decode,
};
#define DECODERS (sizeof(decoder) / sizeof(*decoder))

struct input {
	uint8_t *data;
	uint32_t bytes;
};

static bool
decode(nfs3_decode_fn *fn, const struct input *in, union nfs3_args *args,
       uint32_t *used)
{
	bool ok;
	XDR x;

	memset(args, 0, sizeof(*args));
	xdrmem_create(&x, (char *)in->data, in->bytes, XDR_DECODE);
	ok = fn(&x, args);
	*used = XDR_GETPOS(&x);
	assert(*used <= in->bytes);
	return ok;
}

static void
check_bytes(const struct nfs3_bytes *b, const struct input *in)
{
	uint32_t sum = 0;

	assert(b->data >= in->data &&
	       b->data + b->bytes <= in->data + in->bytes);
	for (uint32_t i = 0; i < b->bytes; i++)
		sum += b->data[i];
	/* read, so that a sanitizer looks at every byte */
	assert(sum <= 255 * b->bytes);
}

static void
check_where(const struct diropargs3 *d, const struct input *in)
{
	assert(d->dir.bytes <= NFS3_FHSIZE);
	check_bytes(&d->name, in);
}

static void
check_sattr(const struct sattr3 *a)
{
	assert(a->set_atime <= SET_TO_CLIENT_TIME);
	assert(a->set_mtime <= SET_TO_CLIENT_TIME);
}

/* What is taken for an ACL is so again as a file system's, and on the wire. */
static void
check_acl(const struct nfs3_bytes *b, const struct input *in)
{
	static struct acl a, again;
	static uint8_t bytes[ACL_XATTR_BYTES_MAX];
	const struct acl_owner owner = { 1, 2 };
	static uint8_t wire[8 + ACL_ENTRIES_MAX * ACL_WIRE_BYTES];
	XDR x;

	check_bytes(b, in);
	assert(b->bytes % ACL_WIRE_BYTES == 0);
	if (acl_from_wire(&a, b->data, b->bytes) < 0)
		return;
	assert(acl_from_xattr(&again, bytes, acl_to_xattr(bytes, &a)) == 0);
	assert(again.count == a.count);
	xdrmem_create(&x, (char *)wire, sizeof(wire), XDR_ENCODE);
	assert(acl_put_wire(&x, &again, true, ACL_WIRE_DEFAULT, &owner));
	assert(XDR_GETPOS(&x) == acl_wire_bytes(&a));
	assert(acl_from_wire(&again, wire + 8, XDR_GETPOS(&x) - 8) == 0);
	assert(again.count == a.count);
	assert(memcmp(again.entry, a.entry, a.count * sizeof(a.entry[0])) == 0);
}

static void
check(nfs3_decode_fn *fn, const union nfs3_args *a, const struct input *in)
{
	if (fn == nfs3_decode_void)
		return;
	if (fn == mount3_decode_path) {
		check_bytes(&a->mount.path, in);
		return;
	}
	if (fn == rquota_decode || fn == rquota2_decode) {
		check_bytes(&a->quota.path, in);
		return;
	}
	assert(a->fh.fh.bytes <= NFS3_FHSIZE); /* all others begin with one */
	if (fn == nfs3_decode_setattr) {
		check_sattr(&a->setattr.attr);
	} else if (fn == nfs3_decode_write) {
		assert(a->write.stable <= FILE_SYNC);
	} else if (fn == nfs3_decode_create) {
		check_where(&a->create.where, in);
		check_sattr(&a->create.attr);
		assert(a->create.mode <= EXCLUSIVE);
	} else if (fn == nfs3_decode_mkdir) {
		check_where(&a->mkdir.where, in);
		check_sattr(&a->mkdir.attr);
	} else if (fn == nfs3_decode_symlink) {
		check_where(&a->symlink.where, in);
		check_sattr(&a->symlink.attr);
		check_bytes(&a->symlink.target, in);
	} else if (fn == nfs3_decode_mknod) {
		check_where(&a->mknod.where, in);
		check_sattr(&a->mknod.attr);
	} else if (fn == nfs3_decode_dirop) {
		check_where(&a->dirop.where, in);
	} else if (fn == nfs3_decode_rename) {
		check_where(&a->rename.from, in);
		check_where(&a->rename.to, in);
	} else if (fn == nfs3_decode_link) {
		check_where(&a->link.link, in);
	} else if (fn == nfsacl_decode_setacl) {
		check_acl(&a->setacl.access, in);
		check_acl(&a->setacl.default_, in);
	}
}

/* The same bytes from a block of exactly their size, off bytes behind a word
 * boundary. */
static struct input
copy_at(uint8_t **block, const uint8_t *data, uint32_t n, unsigned off)
{
	struct input in;

	*block = malloc(off + n + (off + n == 0));
	assert(*block != NULL);
	if (n)
		memcpy(*block + off, data, n);
	in.data = *block + off;
	in.bytes = n;
	return in;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	union nfs3_args args;
	uint32_t used, first_used = 0;
	nfs3_decode_fn *fn;
	bool first = false;
	struct input in;
	uint8_t *block;

	if (n == 0 || n > 1 << 20)
		return 0;
	fn = decoder[data[0] % DECODERS];
	for (unsigned off = 0; off < 4; off++) {
		in = copy_at(&block, data + 1, n - 1, off);
		if (decode(fn, &in, &args, &used)) {
			assert(off == 0 || (first && used == first_used));
			first = true;
			first_used = used;
			check(fn, &args, &in);
		} else {
			assert(!first);
		}
		free(block);
	}
	if (!first || first_used == 0)
		return 0;
	in = copy_at(&block, data + 1, first_used - 1, 0);
	assert(!decode(fn, &in, &args, &used));
	free(block);
	return 0;
}
