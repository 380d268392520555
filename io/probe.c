/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file system can do, asked when a volume opens and again of each file
 * when it is opened. The volume asks a file without a name in its root
 * (O_TMPFILE), or, where it may not write, some regular file there: alignment
 * of direct I/O (statx(2), STATX_DIOALIGN), RWF_DONTCACHE and RWF_NOWAIT
 * (pwritev2(2)), and the device's limits. On any thread; blocks. It decides
 * nothing: volume.c chooses modes by what is found here.
 */
#include "io/compat.h"
#include "io/volume.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#define BEYOND      (1ll << 60) /* past the end of any file */
#define PROBE_NAMES 256         /* entries looked at for a regular file */

/* Both kinds of I/O take the flag, or neither; the kernel looks at it before
 * it looks at the offset, so a read of nothing tells. */
static bool
takes_dontcache(int fd)
{
	char byte;
	struct iovec iov = { &byte, 1 };

	return preadv2(fd, &iov, 1, BEYOND, RWF_DONTCACHE) >= 0;
}

static bool
takes_nowait_write(int fd)
{
	char byte = 0;
	struct iovec iov = { &byte, 1 };

	if (pwrite(fd, &byte, 1, 0) != 1)
		return false;
	/* EAGAIN only says: not this one, now. btrfs says it every time. */
	for (int i = 0; i < 3; i++)
		if (pwritev2(fd, &iov, 1, 0, RWF_NOWAIT) == 1)
			return true;
	return false;
}

struct dio_facts {
	uint32_t mem, offset, read; /* 0: no direct I/O */
};

static void
dio_read(struct dio_facts *ret, int fd)
{
	struct statx st = { 0 };
	uint64_t page = page_bytes();

	*ret = (struct dio_facts){ 0 };
	if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN | STATX_DIO_READ_ALIGN,
		  &st) != 0 ||
	    (st.stx_mask & STATX_DIOALIGN) == 0)
		return;
	ret->mem = statx_u32(&st, STATX_AT_DIO_MEM_ALIGN);
	ret->offset = statx_u32(&st, STATX_AT_DIO_OFFSET_ALIGN);
	ret->read = ret->offset;
	if ((st.stx_mask & STATX_DIO_READ_ALIGN) != 0)
		ret->read = statx_u32(&st, STATX_AT_DIO_READ_OFFSET_ALIGN);
	/* Buffers are page-aligned, and cuts want powers of two. */
	if (!power_of_two(ret->offset) || !power_of_two(ret->read) ||
	    !power_of_two(ret->mem) || ret->mem > page)
		*ret = (struct dio_facts){ 0 };
}

static uint32_t
cut_bytes(const struct volume *v, uint32_t offset_align)
{
	uint32_t cut = (uint32_t)page_bytes();

	if (offset_align == 0)
		return 0;
	if (v->facts.block_bytes > cut)
		cut = v->facts.block_bytes;
	return offset_align > cut ? offset_align : cut;
}

void
volume_file_facts(const struct volume *v, int fd, struct file_facts *ret)
{
	struct dio_facts dio;

	dio_read(&dio, fd);
	ret->cut = cut_bytes(v, dio.offset);
	ret->read_align = dio.read;
	ret->dontcache = takes_dontcache(fd);
}

/* Some regular file of the root, read-only: a tree that we may not write to
 * tells its alignment by it. */
static int
open_some_file(int root_fd)
{
	int copy = openat(root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *e;
	int fd = -1;

	if (d == NULL) {
		if (copy >= 0)
			close(copy);
		return -1;
	}
	for (int i = 0; i < PROBE_NAMES && fd < 0; i++) {
		e = readdir(d);
		if (e == NULL)
			break;
		if (e->d_type == DT_REG)
			fd = openat(root_fd, e->d_name,
				    O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
					    O_CLOEXEC);
	}
	closedir(d);
	return fd;
}

/* Nothing to ask: what these file systems are known to do; each file is asked
 * again when it is opened. */
static void
assume_facts(struct volume *v, const struct device_facts *d)
{
	struct volume_facts *f = &v->facts;

	if (f->fs_type != XFS_MAGIC && f->fs_type != EXT4_SUPER_MAGIC)
		return;
	f->dio_mem_align = d->logical_bytes;
	f->dio_offset_align = d->logical_bytes;
	f->dontcache = true;
}

static void
probe_file(struct volume *v, int fd, bool writable)
{
	struct volume_facts *f = &v->facts;
	struct dio_facts dio;

	dio_read(&dio, fd);
	f->dio_mem_align = dio.mem;
	f->dio_offset_align = dio.offset;
	f->dontcache = takes_dontcache(fd);
	if (writable) {
		f->nowait_buffered = takes_nowait_write(fd);
		if (ftruncate(fd, 0) != 0)
			f->nowait_buffered = false;
	}
}

/* ext4 without a journal has nothing that one fsync could force. */
static bool
has_journal(const struct volume *v)
{
	char link[64], path[PATH_MAX], text[32] = "";
	const char *base;
	ssize_t n;
	FILE *file;

	(void)snprintf(link, sizeof(link), "/sys/dev/block/%u:%u",
		       major(v->dev), minor(v->dev));
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	base = strrchr(path, '/');
	if (base == NULL)
		return false;
	memmove(path, base + 1, strlen(base + 1) + 1);
	(void)snprintf(link, sizeof(link), "/sys/fs/ext4/%.32s/journal_task",
		       path);
	file = fopen(link, "re");
	if (file == NULL)
		return false;
	if (fgets(text, sizeof(text), file) == NULL)
		text[0] = '\0';
	(void)fclose(file);
	return text[0] >= '0' && text[0] <= '9';
}

static bool
log_covers(const struct volume *v)
{
	return v->facts.fs_type == XFS_MAGIC ||
	       (v->facts.fs_type == EXT4_SUPER_MAGIC && has_journal(v));
}

static void
device_facts(struct volume_facts *f, const struct device_facts *d)
{
	uint32_t most = d->transfer_bytes_max;

	f->logical_bytes = d->logical_bytes;
	f->physical_bytes = d->physical_bytes;
	f->write_cache = d->write_cache;
	memcpy(f->device, d->name, sizeof(f->device));
	if (most == 0 || most > IO_TRANSFER_BYTES_MAX)
		most = IO_TRANSFER_BYTES_MAX;
	if (f->cut_bytes != 0) {
		most = (uint32_t)round_down(most, f->cut_bytes);
		if (most == 0)
			most = f->cut_bytes;
		if (d->boundary_bytes % f->cut_bytes == 0)
			f->piece_boundary = d->boundary_bytes;
	}
	f->piece_bytes_max = most;
}

static void
probe_all(struct volume *v)
{
	/* A missing device (btrfs, tmpfs) leaves zeros. */
	struct device_facts d = { .write_cache = true };
	int fd = -1;

	(void)device_read(&d, "/sys", v->dev);
	if (!v->read_only)
		fd = openat(v->root_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC,
			    0600);
	if (fd >= 0) {
		probe_file(v, fd, true);
		v->facts.log_covers = log_covers(v) && fchmod(fd, 0666) == 0;
		if (v->facts.log_covers)
			v->meta_fd = fd;
		else
			close(fd);
	} else {
		fd = open_some_file(v->root_fd);
		if (fd >= 0) {
			probe_file(v, fd, false);
			close(fd);
		} else {
			assume_facts(v, &d);
		}
	}
	v->facts.cut_bytes = cut_bytes(v, v->facts.dio_offset_align);
	device_facts(&v->facts, &d);
}

static int
identify(struct volume *v)
{
	struct statfs fs;
	struct stat st;

	if (fstat(v->root_fd, &st) != 0 || fstatfs(v->root_fd, &fs) != 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	v->dev = st.st_dev;
	v->facts.fs_type = (uint64_t)(unsigned long)fs.f_type;
	if (power_of_two((uint64_t)fs.f_bsize) &&
	    fs.f_bsize <= IO_TRANSFER_BYTES_MAX)
		v->facts.block_bytes = (uint32_t)fs.f_bsize;
	return 0;
}

int
volume_probe(struct volume *v)
{
	int r = identify(v);

	if (r == 0)
		probe_all(v);
	return r;
}
