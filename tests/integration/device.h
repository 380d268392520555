/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For integration tests: a device that runs out of room, so that write-back
 * fails although the file system has its blocks, and a look at what a power cut
 * would have left. All of it lies below the harness's directory and goes with
 * it. Each function fails the running test when something goes wrong.
 */
#ifndef NVNFSD_TESTS_DEVICE_H
#define NVNFSD_TESTS_DEVICE_H

#include "harness.h"

/* harness_mount, with the image on a tmpfs that has little more room than the
 * image needs, and all of it allocated. False: as harness_mount. */
bool device_mount(struct harness *h, const char *fs, unsigned mib);
/* A file of bytes below export whose blocks the file system has given it and
 * the device has not: writing them needs room. */
void device_promise(struct harness *h, const char *name, uint64_t bytes);
/* No room from now on, and room again. */
void device_fill(struct harness *h);
void device_empty(struct harness *h);

/* What would be there after a power cut now: the device is copied (no client
 * may be waiting for a reply) and the copy is mounted. A path below it, static;
 * until device_power_back. Also on a device of harness_mount. */
const char *device_power_cut(struct harness *h, const char *name);
void device_power_back(struct harness *h);

#endif
