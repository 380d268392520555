/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MNT's argument, from its bytes to the path that an export is looked up by:
 * absolute, no empty, "." or ".." name, no longer than what was sent, and
 * normalised again the same.
 */
#include "nfsd/nfsd.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void
check_path(const char *path, uint32_t sent)
{
	size_t n = strlen(path);
	const char *name = path;

	assert(path[0] == '/' && n <= sent);
	assert(n == 1 || path[n - 1] != '/');
	while (n > 1 && *name == '/') {
		size_t length = strcspn(++name, "/");

		assert(length > 0);
		assert(length != 1 || name[0] != '.');
		assert(length != 2 || name[0] != '.' || name[1] != '.');
		name += length;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char path[MNT3_PATHLEN + 1], again[MNT3_PATHLEN + 1];
	const struct nfs3_bytes *sent;
	union nfs3_args args;
	XDR x;

	if (n > 1 << 20)
		return 0;
	xdrmem_create(&x, (char *)data, n, XDR_DECODE);
	if (!mount3_decode_path(&x, &args))
		return 0;
	sent = &args.mount.path;
	assert(sent->bytes <= n);
	if (mount_path_normalise(path, sent->data, sent->bytes) < 0)
		return 0;
	check_path(path, sent->bytes);
	assert(mount_path_normalise(again, (const uint8_t *)path,
				    strlen(path)) == 0);
	assert(strcmp(path, again) == 0);
	return 0;
}
