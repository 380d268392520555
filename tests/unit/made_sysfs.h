/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made sysfs in a temporary directory: block devices with the attributes that
 * a test gives them. One at a time.
 */
#ifndef NVNFSD_TEST_MADE_SYSFS_H
#define NVNFSD_TEST_MADE_SYSFS_H

#include <sys/types.h>

void sysfs_make(void);
void sysfs_remove(void);
/* To give to whoever reads sysfs. */
const char *sysfs_root(void);
/* A device below devices/, say "nvme0n1" or "nvme0n1/nvme0n1p1", with its
 * number and the link by that number. */
void sysfs_device(const char *path, dev_t dev);
/* A device with a queue like a plain NVMe disk's, of 4096-byte blocks: one
 * queue of 128 requests of at most 1280 KiB, a write cache, no FUA. */
void sysfs_disk(const char *path, dev_t dev);
/* Set an attribute of a device: "queue/fua", "dm/name", "partition". */
void sysfs_put(const char *path, const char *attribute, const char *text);
/* Hardware queues. */
void sysfs_queues(const char *path, unsigned n);
/* upper stands on lower, both paths. */
void sysfs_slave(const char *upper, const char *lower);

#endif
