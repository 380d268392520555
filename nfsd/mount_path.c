/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path that a client asks to mount, brought into the form in which exports
 * are kept: absolute, one slash between names, no "." and no "..".
 *
 * Purely lexical, any thread: it looks at no file, so that asking costs nothing
 * and tells nothing before the export is known (RFC 1813, 5.2.1). Symbolic
 * links below the export are openat2's to follow or to refuse (mount3.c).
 */
#include "nfsd/nfsd.h"

#include <errno.h>
#include <string.h>

/* out holds "" or "/a/b"; take the last name off. */
static uint32_t
drop_name(const char *out, uint32_t at)
{
	while (at > 0 && out[at - 1] != '/')
		at--;
	return at > 0 ? at - 1 : 0;
}

int
mount_path_normalise(char out[MNT3_PATHLEN + 1], const uint8_t *path,
		     uint32_t n)
{
	uint32_t at = 0, i = 0, name;

	if (n > MNT3_PATHLEN)
		return -ENAMETOOLONG;
	if (memchr(path, '\0', n))
		return -EINVAL;
	if (n == 0 || path[0] != '/')
		return -EACCES;
	while (i < n) {
		if (path[i] == '/') {
			i++;
			continue;
		}
		for (name = i; i < n && path[i] != '/'; i++)
			;
		if (i - name == 1 && path[name] == '.')
			continue;
		if (i - name == 2 && path[name] == '.' &&
		    path[name + 1] == '.') {
			at = drop_name(out, at);
			continue;
		}
		/* at + 1 + its length never passes what was read */
		out[at++] = '/';
		memcpy(out + at, path + name, i - name);
		at += i - name;
	}
	if (at == 0)
		out[at++] = '/';
	out[at] = '\0';
	return 0;
}
