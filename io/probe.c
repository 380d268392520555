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
#include "io/reactor.h"
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

static void
dio_assume(struct dio_facts *ret, const struct volume *v)
{
	device_plan_assume(ret, v->facts.fs_type, v->facts.block_bytes,
			   &v->chain);
}

static void
dio_read(struct dio_facts *ret, const struct volume *v, int fd)
{
	struct statx st = { 0 };

	*ret = (struct dio_facts){ 0 };
	if (statx(fd, "", AT_EMPTY_PATH,
		  STATX_DIOALIGN | STATX_DIO_READ_ALIGN | STATX_WRITE_ATOMIC,
		  &st) != 0)
		return;
	if ((st.stx_mask & STATX_DIOALIGN) == 0) {
		dio_assume(ret, v);
	} else {
		ret->mem = statx_u32(&st, STATX_AT_DIO_MEM_ALIGN);
		ret->offset = statx_u32(&st, STATX_AT_DIO_OFFSET_ALIGN);
		ret->read = ret->offset;
	}
	if ((st.stx_mask & STATX_DIO_READ_ALIGN) != 0)
		ret->read = statx_u32(&st, STATX_AT_DIO_READ_OFFSET_ALIGN);
	if (!device_plan_suits(ret, page_bytes()))
		*ret = (struct dio_facts){ 0 };
	ret->atomic_told = (st.stx_mask & STATX_WRITE_ATOMIC) != 0;
	if (!ret->atomic_told)
		return;
	ret->atomic_min = statx_u32(&st, STATX_AT_ATOMIC_UNIT_MIN);
	ret->atomic_max = statx_u32(&st, STATX_AT_ATOMIC_UNIT_MAX);
}

void
volume_file_facts(const struct volume *v, int fd, struct file_facts *ret)
{
	struct dio_facts dio;

	dio_read(&dio, v, fd);
	ret->cut = device_plan_cut(&v->facts, dio.offset);
	ret->read_align = ret->cut == 0 ? 0 : dio.read;
	ret->dontcache = takes_dontcache(fd);
	ret->atomic_min = ret->atomic_max = 0;
	if (ret->cut == 0 || dio.atomic_max < ret->cut)
		return;
	ret->atomic_min = dio.atomic_min > ret->cut ? dio.atomic_min : ret->cut;
	ret->atomic_max = dio.atomic_max;
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

static void
probe_file(struct volume *v, struct dio_facts *dio, int fd, bool writable)
{
	struct volume_facts *f = &v->facts;

	dio_read(dio, v, fd);
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

/* Nothing to ask: what these file systems are known to do; each file is asked
 * again when it is opened. */
static void
assume_facts(struct volume *v, struct dio_facts *dio)
{
	dio_assume(dio, v);
	v->facts.dontcache = dio->offset != 0;
}

/* Ask a file of the file system. */
static void
probe_files(struct volume *v, struct dio_facts *dio)
{
	int fd = -1;

	if (!v->read_only)
		fd = openat(v->root_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC,
			    0600);
	if (fd >= 0) {
		probe_file(v, dio, fd, true);
		v->facts.log_covers = log_covers(v) && fchmod(fd, 0666) == 0;
		if (v->facts.log_covers)
			v->meta_fd = fd;
		else
			close(fd);
		return;
	}
	fd = open_some_file(v->root_fd);
	if (fd >= 0) {
		probe_file(v, dio, fd, false);
		close(fd);
	} else {
		assume_facts(v, dio);
	}
}

/* What the NVMe device says on which the file system lies itself: through dm or
 * md its preferences would be told for other offsets than ours. */
static bool
ask_nvme(struct volume *v, struct nvme_facts *ret)
{
	const struct device_node *top = device_chain_top(&v->chain);
	struct device_state s;

	if (top == NULL || top->kind != DEVICE_DISK ||
	    !device_state_of(v->engine, top->dev, &s) || s.nvme_error != 0)
		return false;
	*ret = s.nvme;
	return true;
}

/* Each whole device of the chain, for its queue or its health. */
static int
hold_devices(struct volume *v)
{
	const struct device_node *narrow = device_chain_narrow(&v->chain);

	for (unsigned i = 0; i < v->chain.count; i++) {
		const struct device_node *n = &v->chain.node[i];

		if (n->kind == DEVICE_PARTITION)
			continue;
		v->device[i] = device_get(engine_devices(v->engine),
					  &v->chain.node[i]);
		if (v->device[i] == NULL)
			return -ENOMEM;
		if (n == narrow)
			v->slots = &v->device[i]->slots;
	}
	return 0;
}

static int
probe_all(struct volume *v)
{
	const char *sys = engine_config(v->engine)->sysfs;
	struct dio_facts dio = { 0 };
	struct nvme_facts nvme;
	struct plan_ask ask = { .page_bytes = (uint32_t)page_bytes(),
				.block_bytes = v->facts.block_bytes,
				.chain = &v->chain };
	int r;

	device_chain_read(&v->chain, sys == NULL ? "/sys" : sys, v->dev,
			  v->root_fd);
	r = hold_devices(v);
	if (r != 0)
		return r;
	probe_files(v, &dio);
	ask.dio = dio;
	if (ask_nvme(v, &nvme))
		ask.nvme = &nvme;
	device_plan(&v->facts, &ask);
	return 0;
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

	return r == 0 ? probe_all(v) : r;
}
