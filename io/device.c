/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts of the block device under a file system, out of sysfs: the limits that
 * the kernel has already combined for the whole stack (the disk that holds the
 * partition, or the dm or md device), and the name of the leaf below it. No
 * object: one function, on any thread, at start. It knows no file system, and
 * sysfs stands wherever the caller says, so that tests bring their own tree.
 *
 * Documentation/ABI/stable/sysfs-block of the kernel names the attributes.
 */
#include "io/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#define DEPTH_MAX    8 /* partition on dm on md on partition ... */
#define ATTR_BYTES   64
#define BOUNDARY_MIN (64u << 10) /* cutting finer costs more than it gains */
#define TRANSFER_MIN (256u << 10)

static int
open_dir(int at, const char *path)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static bool
exists(int dir, const char *path)
{
	return faccessat(dir, path, F_OK, 0) == 0;
}

/* The attribute's first line, or "" . */
static void
attr_text(int dir, const char *path, char text[ATTR_BYTES])
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	text[0] = '\0';
	if (fd < 0)
		return;
	n = read(fd, text, ATTR_BYTES - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

static uint64_t
attr_number(int dir, const char *path)
{
	char text[ATTR_BYTES];

	attr_text(dir, path, text);
	return strtoull(text, NULL, 10);
}

static uint32_t
fit(uint64_t n)
{
	return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

/* dir is a partition: its disk, in its place. */
static int
whole_disk(int *dir)
{
	int disk;

	if (!exists(*dir, "partition"))
		return 0;
	disk = open_dir(*dir, "..");
	if (disk < 0)
		return disk;
	close(*dir);
	*dir = disk;
	return 0;
}

/* The first of slaves/ by name, so that the answer does not change. */
static bool
first_slave(int dir, char name[NAME_MAX + 1])
{
	int fd = open_dir(dir, "slaves");
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	name[0] = '\0';
	if (d == NULL) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while ((e = readdir(d)) != NULL)
		if (e->d_name[0] != '.' &&
		    (name[0] == '\0' || strcmp(e->d_name, name) < 0))
			memcpy(name, e->d_name, strlen(e->d_name) + 1);
	closedir(d);
	return name[0] != '\0';
}

/* From dir down to the leaf; takes dir over. */
static int
descend(int dir)
{
	char path[sizeof("slaves/") + NAME_MAX];
	char name[NAME_MAX + 1];

	for (int depth = 0; depth < DEPTH_MAX; depth++) {
		int below;

		if (!first_slave(dir, name))
			break;
		(void)snprintf(path, sizeof(path), "slaves/%s", name);
		below = open_dir(dir, path);
		if (below < 0)
			break;
		if (whole_disk(&below) != 0) {
			close(below);
			break;
		}
		close(dir);
		dir = below;
	}
	return dir;
}

/* A device's directory is named as the device. */
static void
device_name(int dir, char name[64])
{
	char link[64], path[PATH_MAX];
	const char *base;
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	base = strrchr(path, '/');
	(void)snprintf(name, 64, "%.63s", base == NULL ? "" : base + 1);
}

static void
read_queue(struct device_facts *d, int dir)
{
	char text[ATTR_BYTES];
	uint64_t chunk = attr_number(dir, "queue/chunk_sectors") * 512;
	uint64_t optimal = attr_number(dir, "queue/optimal_io_size");
	uint64_t most = attr_number(dir, "queue/max_hw_sectors_kb") * 1024;

	d->logical_bytes = fit(attr_number(dir, "queue/logical_block_size"));
	d->physical_bytes = fit(attr_number(dir, "queue/physical_block_size"));
	d->transfer_bytes_max = fit(most);
	/* The kernel cuts smaller transfers itself, and cheaper than we. */
	if (d->transfer_bytes_max < TRANSFER_MIN)
		d->transfer_bytes_max = TRANSFER_MIN;
	if (chunk >= BOUNDARY_MIN)
		d->boundary_bytes = fit(chunk);
	else if (optimal >= BOUNDARY_MIN)
		d->boundary_bytes = fit(optimal);
	attr_text(dir, "queue/write_cache", text);
	d->write_cache = strcmp(text, "write back") == 0;
	d->fua = attr_number(dir, "queue/fua") != 0;
}

int
device_read(struct device_facts *ret, const char *sys, dev_t dev)
{
	struct device_facts d = { 0 };
	char path[PATH_MAX];
	int dir, r;

	(void)snprintf(path, sizeof(path), "%s/dev/block/%u:%u", sys,
		       major(dev), minor(dev));
	dir = open_dir(AT_FDCWD, path);
	if (dir < 0)
		return dir;
	r = whole_disk(&dir);
	if (r != 0) {
		close(dir);
		return r;
	}
	read_queue(&d, dir);
	dir = descend(dir);
	device_name(dir, d.name);
	close(dir);
	*ret = d;
	return 0;
}
