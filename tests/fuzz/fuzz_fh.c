/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File handles. Input: a byte that says how, then a handle. As it is: taken
 * only when encoding gives the same bytes again. With the right hash put at its
 * end, to get past it: the same. As a decoded handle: it must come back.
 */
#include "nfsd/nfsd.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#define MAC_BYTES 8u

static const uint8_t key[FH_KEY_BYTES] = "0123456789abcde";

static bool
take(const struct nfs_fh3 *wire)
{
	struct nfs_fh3 again;
	struct fh fh;

	if (!fh_decode(key, wire, &fh))
		return false;
	assert(fh.bytes >= 1 && fh.bytes <= IO_HANDLE_BYTES_MAX);
	fh_encode(key, &fh, &again);
	assert(again.bytes == wire->bytes);
	assert(memcmp(again.data, wire->data, wire->bytes) == 0);
	return true;
}

static void
take_as_it_is(const uint8_t *data, size_t n)
{
	struct nfs_fh3 wire = { .bytes = (uint32_t)n };

	memcpy(wire.data, data, n < NFS3_FHSIZE ? n : NFS3_FHSIZE);
	take(&wire);
}

/* Everything that the hash covers is then wrong or right by itself. */
static void
take_hashed(const uint8_t *data, size_t n)
{
	struct nfs_fh3 wire = { .bytes = (uint32_t)n + MAC_BYTES };
	bool right = n > 12 && n - 12 <= IO_HANDLE_BYTES_MAX && data[0] == 1 &&
		     data[1] == n - 12;

	if (n + MAC_BYTES > NFS3_FHSIZE)
		return;
	memcpy(wire.data, data, n);
	crypto_shorthash(wire.data + n, wire.data, n, key);
	assert(take(&wire) == right);
}

static void
encode(const uint8_t *data, size_t n)
{
	struct fh fh = { 0 }, back;
	struct nfs_fh3 wire;

	if (n < 11 || n - 10 > IO_HANDLE_BYTES_MAX)
		return;
	memcpy(&fh.export_id, data, 8);
	fh.type = data[8] << 8 | data[9];
	fh.bytes = (uint32_t)n - 10;
	memcpy(fh.data, data + 10, fh.bytes);
	fh_encode(key, &fh, &wire);
	assert(take(&wire));
	assert(fh_decode(key, &wire, &back));
	assert(back.export_id == fh.export_id && back.type == fh.type &&
	       back.bytes == fh.bytes &&
	       memcmp(back.data, fh.data, sizeof(fh.data)) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	if (n < 1 || n > 256)
		return 0;
	if (data[0] % 3 == 0)
		take_as_it_is(data + 1, n - 1);
	else if (data[0] % 3 == 1)
		take_hashed(data + 1, n - 1);
	else
		encode(data + 1, n - 1);
	return 0;
}
