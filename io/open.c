/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptors of a struct file: opened by handle under the volume's root,
 * as the server, on a worker thread, while the file is FILE_OPENING and nobody
 * else sees it. Only a regular file is opened, and only after an O_PATH look:
 * opening a FIFO or a device could block or act. Three descriptors, since what
 * they are told differs: fd for edges and syncs (no readahead, whose large
 * folios would cross the cuts), direct_fd with O_DIRECT, read_fd for buffered
 * reads with readahead. open_by_handle_at(2), statx(2), posix_fadvise(2).
 */
#include "io/file.h"

#include <fcntl.h>
#include <string.h>

union kernel_handle {
	struct file_handle h;
	char bytes[sizeof(struct file_handle) + IO_HANDLE_BYTES_MAX];
};

static int
open_handle(const struct file_key *k, int flags)
{
	union kernel_handle u = { 0 };
	int fd;

	u.h.handle_bytes = k->handle_bytes;
	u.h.handle_type = k->handle_type;
	memcpy(u.h.f_handle, k->handle, k->handle_bytes);
	fd = open_by_handle_at(volume_root_fd(k->volume), &u.h,
			       flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* What is there? Only a regular file with a name is opened. */
static int
look(const struct file_key *k, struct stat *st)
{
	int fd = open_handle(k, O_PATH);
	int r = 0;

	if (fd < 0)
		return fd;
	if (fstat(fd, st) != 0)
		r = -errno;
	else if (S_ISDIR(st->st_mode))
		r = -EISDIR;
	else if (!S_ISREG(st->st_mode))
		r = -EINVAL;
	else if (st->st_nlink == 0)
		r = -ESTALE;
	close(fd);
	return r;
}

static int
open_plain(struct file *f)
{
	int fd;

	f->write_error = volume_read_only(f->volume) ? -EROFS : 0;
	if (f->write_error == 0) {
		fd = open_handle(&f->key, O_RDWR | O_NOCTTY);
		if (fd != -EROFS && fd != -EACCES && fd != -EPERM &&
		    fd != -ETXTBSY)
			return fd;
		f->write_error = fd;
	}
	return open_handle(&f->key, O_RDONLY | O_NOCTTY);
}

/* All descriptors of f; on failure some may be open. */
static int
open_all(struct file *f)
{
	f->fd = open_plain(f);
	if (f->fd < 0)
		return f->fd;
	volume_file_facts(f->volume, f->fd, &f->facts);
	/* Edges must not make readahead's large folios, which cross cuts. */
	(void)posix_fadvise(f->fd, 0, 0, POSIX_FADV_RANDOM);
	f->read_fd = open_handle(&f->key, O_RDONLY | O_NOCTTY);
	if (f->read_fd < 0)
		return f->read_fd;
	if (f->facts.cut == 0)
		return 0;
	f->direct_fd =
		open_handle(&f->key, (f->write_error == 0 ? O_RDWR : O_RDONLY) |
					     O_DIRECT | O_NOCTTY);
	if (f->direct_fd < 0) {
		f->facts.cut = 0;
		f->facts.read_align = 0;
		return f->direct_fd == -EINVAL || f->direct_fd == -EOPNOTSUPP
			       ? 0
			       : f->direct_fd;
	}
	return 0;
}

void
file_close_fds(struct file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	if (f->direct_fd >= 0)
		close(f->direct_fd);
	if (f->read_fd >= 0)
		close(f->read_fd);
}

int
file_open_fds(struct file *f, struct stat *st)
{
	int r = look(&f->key, st);

	return r != 0 ? r : open_all(f);
}

bool
file_has_name(const struct file *f)
{
	struct stat st;

	return fstat(f->fd, &st) != 0 || st.st_nlink > 0;
}
