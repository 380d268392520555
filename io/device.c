/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One block device as sysfs has it: what it is called, what kind it is, and the
 * limits of its queue. No object: functions on open directories, on any thread,
 * at start. sysfs stands wherever the caller says, so that tests bring their
 * own tree.
 *
 * Documentation/ABI/stable/sysfs-block of the kernel names the attributes.
 */
#include "io/device.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define NUMBER_BYTES 64
#define SECTOR_BYTES 512u

const char *
device_kind_name(enum device_kind k)
{
	static const char *const names[] = {
		[DEVICE_DISK] = "disk", [DEVICE_PARTITION] = "partition",
		[DEVICE_DM] = "dm",     [DEVICE_MD] = "md",
		[DEVICE_LOOP] = "loop",
	};

	return (unsigned)k < sizeof(names) / sizeof(*names) ? names[k] : "";
}

int
device_open_dir(int at, const char *path)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int
device_open(const char *sys, dev_t dev)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/dev/block/%u:%u", sys,
		       major(dev), minor(dev));
	return device_open_dir(AT_FDCWD, path);
}

void
device_text(int dir, const char *path, char *text, size_t bytes)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	text[0] = '\0';
	if (fd < 0)
		return;
	n = read(fd, text, bytes - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

uint64_t
device_number(int dir, const char *path)
{
	char text[NUMBER_BYTES];

	device_text(dir, path, text, sizeof(text));
	return strtoull(text, NULL, 10);
}

static uint32_t
fit(uint64_t n)
{
	return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

/* A number of units as bytes; 0 where it says that there is no limit. */
static uint32_t
bytes_of(int dir, const char *path, uint64_t unit)
{
	uint64_t n = device_number(dir, path);

	return n > UINT32_MAX / unit ? 0 : (uint32_t)(n * unit);
}

/* mq/ has a directory for each queue of the hardware. */
static uint32_t
count_queues(int dir)
{
	int fd = device_open_dir(dir, "mq");
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	uint32_t n = 0;

	if (d == NULL) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while ((e = readdir(d)) != NULL)
		n += e->d_name[0] >= '0' && e->d_name[0] <= '9';
	closedir(d);
	return n;
}

/* Of the directory that has queue/ and mq/. */
static void
limits_read(struct device_limits *ret, int dir)
{
	char cache[NUMBER_BYTES];
	uint64_t mask = device_number(dir, "queue/virt_boundary_mask");

	device_text(dir, "queue/write_cache", cache, sizeof(cache));
	*ret = (struct device_limits){
		.logical_bytes = bytes_of(dir, "queue/logical_block_size", 1),
		.physical_bytes = bytes_of(dir, "queue/physical_block_size", 1),
		.minimum_bytes = bytes_of(dir, "queue/minimum_io_size", 1),
		.optimal_bytes = bytes_of(dir, "queue/optimal_io_size", 1),
		.boundary_bytes =
			bytes_of(dir, "queue/chunk_sectors", SECTOR_BYTES),
		.transfer_bytes_max =
			bytes_of(dir, "queue/max_hw_sectors_kb", 1024),
		.request_bytes_max =
			bytes_of(dir, "queue/max_sectors_kb", 1024),
		.virt_boundary_bytes =
			mask == 0 || mask >= UINT32_MAX ? 0 : fit(mask + 1),
		.dma_align_bytes =
			fit(device_number(dir, "queue/dma_alignment") + 1),
		.atomic_bytes_min =
			bytes_of(dir, "queue/atomic_write_unit_min_bytes", 1),
		.atomic_bytes_max =
			bytes_of(dir, "queue/atomic_write_unit_max_bytes", 1),
		.atomic_boundary_bytes =
			bytes_of(dir, "queue/atomic_write_boundary_bytes", 1),
		.queues = count_queues(dir),
		.queue_requests = fit(device_number(dir, "queue/nr_requests")),
		/* Where nothing is told there may be one. */
		.write_cache = strcmp(cache, "write through") != 0,
		.fua = device_number(dir, "queue/fua") != 0,
		.rotational = device_number(dir, "queue/rotational") != 0,
		.polls = device_number(dir, "queue/io_poll") != 0,
	};
}

/* A device's directory is named as the device. */
static void
read_name(int dir, char name[DEVICE_NAME_MAX])
{
	char link[64], path[PATH_MAX];
	const char *base;
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	base = strrchr(path, '/');
	(void)snprintf(name, DEVICE_NAME_MAX, "%.63s",
		       base == NULL ? "" : base + 1);
}

static dev_t
read_dev(int dir)
{
	char text[NUMBER_BYTES];
	char *end;
	unsigned long major_number;

	device_text(dir, "dev", text, sizeof(text));
	major_number = strtoul(text, &end, 10);
	if (*end != ':')
		return 0;
	return makedev((unsigned)major_number,
		       (unsigned)strtoul(end + 1, NULL, 10));
}

static bool
has(int dir, const char *path)
{
	return faccessat(dir, path, F_OK, 0) == 0;
}

void
device_node_read(struct device_node *ret, int dir)
{
	static const struct {
		enum device_kind kind;
		const char *sign, *detail;
	} kinds[] = {
		{ DEVICE_PARTITION, "partition", "" },
		{ DEVICE_DM, "dm", "dm/name" },
		{ DEVICE_MD, "md", "md/level" },
		{ DEVICE_LOOP, "loop/backing_file", "loop/backing_file" },
	};

	*ret = (struct device_node){ .kind = DEVICE_DISK,
				     .aligned = true,
				     .dev = read_dev(dir) };
	read_name(dir, ret->name);
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (!has(dir, kinds[i].sign))
			continue;
		ret->kind = kinds[i].kind;
		device_text(dir, kinds[i].detail, ret->detail,
			    sizeof(ret->detail));
		break;
	}
	if (ret->kind == DEVICE_PARTITION)
		ret->start = device_number(dir, "start") * SECTOR_BYTES;
	else
		limits_read(&ret->limits, dir);
	ret->aligned = device_number(dir, "alignment_offset") == 0;
}
