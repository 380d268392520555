/* SPDX-License-Identifier: Apache-2.0 */
/* See device.h. */
#include "device.h"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define EXTENTS_MAX 64u
#define SPARE_MIB   8u /* of the tmpfs, besides the image */

static void
must(int status)
{
	assert_int_equal(status, 0);
}

bool
device_mount(struct harness *h, const char *fs, unsigned mib)
{
	if (harness_sh("mkdir %s/small && "
		       "mount -t tmpfs -o size=%uM none %s/small",
		       h->dir, mib + SPARE_MIB, h->dir) != 0) {
		print_message("skip: no tmpfs can be mounted here\n");
		return false;
	}
	(void)snprintf(h->image, sizeof(h->image), "%.200s/small/image",
		       h->dir);
	if (!harness_mount(h, fs, 4096, mib))
		return false;
	/* No request is larger than a page: the loop driver takes a write that
	 * its backing file system cut short for a good one. */
	must(harness_sh("echo 4 >/sys/block/%s/queue/max_sectors_kb",
			h->loop + 5));
	must(harness_sh("fallocate -l %uM %s", mib, h->image));
	return true;
}

/* Where the file's bytes lie on the device, and that they lie nowhere below
 * it. */
static void
punch(struct harness *h, int fd)
{
	struct {
		struct fiemap map;
		struct fiemap_extent extent[EXTENTS_MAX];
	} f;
	int image = open(h->image, O_RDWR | O_CLOEXEC);
	unsigned i;

	assert_true(image >= 0);
	memset(&f, 0, sizeof(f));
	f.map.fm_length = FIEMAP_MAX_OFFSET;
	f.map.fm_flags = FIEMAP_FLAG_SYNC;
	f.map.fm_extent_count = EXTENTS_MAX;
	must(ioctl(fd, FS_IOC_FIEMAP, &f));
	assert_in_range(f.map.fm_mapped_extents, 1, EXTENTS_MAX - 1);
	for (i = 0; i < f.map.fm_mapped_extents; i++)
		must(fallocate(image,
			       FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			       (off_t)f.extent[i].fe_physical,
			       (off_t)f.extent[i].fe_length));
	close(image);
}

void
device_promise(struct harness *h, const char *name, uint64_t bytes)
{
	int fd =
		open(harness_path(h, name), O_RDWR | O_CREAT | O_CLOEXEC, 0666);

	assert_true(fd >= 0);
	must(fallocate(fd, 0, 0, (off_t)bytes));
	must(fsync(fd));
	punch(h, fd);
	close(fd);
}

void
device_fill(struct harness *h)
{
	/* It ends when nothing more fits. */
	must(!harness_sh("dd if=/dev/zero of=%s/small/fill bs=64k 2>/dev/null",
			 h->dir));
}

void
device_empty(struct harness *h)
{
	must(harness_sh("rm %s/small/fill", h->dir));
}

const char *
device_power_cut(struct harness *h, const char *name)
{
	static char path[900];

	/* Until two copies are the same: nothing was written in between. */
	must(harness_sh("cd %s && mkdir -p cut && "
			"until cp --sparse=always %s cut.image && "
			"cmp -s %s cut.image; do :; done",
			h->dir, h->image, h->image));
	must(harness_sh(
		"cd %s && case $(blkid -p -o value -s TYPE cut.image) in "
		"xfs) o=,nouuid ;; *) o= ;; esac && L=$(losetup -b 4096 --show "
		"-f cut.image) && mount -o noatime$o $L cut; s=$?; "
		"losetup -d $L; exit $s",
		h->dir));
	(void)snprintf(path, sizeof(path), "%s/cut/%s", h->dir, name);
	return path;
}

void
device_power_back(struct harness *h)
{
	must(harness_sh("cd %s && umount cut && rm cut.image", h->dir));
}
