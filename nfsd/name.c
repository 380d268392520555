/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One component of a path: what a client may call a directory entry (RFC 1813,
 * 3.2), and how it is opened so that nothing is followed and the export is not
 * left. Stateless, any thread. It knows no handle and no export.
 */
#include "nfsd/proc.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum nfsstat3
name_take(struct name *n, const struct nfs3_bytes *wire)
{
	if (wire->bytes == 0)
		return NFS3ERR_ACCES;
	if (wire->bytes > NAME_MAX)
		return NFS3ERR_NAMETOOLONG;
	if (memchr(wire->data, '/', wire->bytes) != NULL ||
	    memchr(wire->data, '\0', wire->bytes) != NULL)
		return NFS3ERR_ACCES;
	memcpy(n->text, wire->data, wire->bytes);
	n->text[wire->bytes] = '\0';
	return NFS3_OK;
}

bool
name_is_dot(const struct name *n)
{
	return strcmp(n->text, ".") == 0;
}

bool
name_is_dotdot(const struct name *n)
{
	return strcmp(n->text, "..") == 0;
}

bool
name_is_dots(const struct name *n)
{
	return name_is_dot(n) || name_is_dotdot(n);
}

int
name_open(int dir_fd, const struct name *n)
{
	struct open_how how = {
		.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV |
			   RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS,
	};
	long fd = syscall(SYS_openat2, dir_fd, n->text, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

void
name_fd_path(char path[NAME_FD_PATH_BYTES], int fd)
{
	int n = snprintf(path, NAME_FD_PATH_BYTES, "/proc/self/fd/%d", fd);

	assert(n > 0 && n < (int)NAME_FD_PATH_BYTES);
}
