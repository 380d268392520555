/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to io/: block devices. What is found of them (device.c,
 * device_chain.c, nvme.c), what follows from it (device_plan.c), and the
 * devices that are in use, each with its slots for direct I/O (device_set.c,
 * device_slots.c).
 */
#ifndef NVNFSD_IO_DEVICE_H
#define NVNFSD_IO_DEVICE_H

#include "io/facts.h"

#include <pthread.h>
#include <sys/queue.h>

struct slot_waiter;

/* device.c: one block device in sysfs ---------------------------------------
 */

/* sys is where sysfs is mounted. An open directory of dev, or -errno: -ENOENT
 * when dev is no block device (btrfs and others have anonymous ones). */
int device_open(const char *sys, dev_t dev);
int device_open_dir(int at, const char *path);
/* An attribute's first line, or "". */
void device_text(int dir, const char *path, char *text, size_t bytes);
uint64_t device_number(int dir, const char *path);
/* Kind, name, detail and dev of what dir is; limits of a whole device. */
void device_node_read(struct device_node *ret, int dir);

/* device_chain.c: from a file system down -----------------------------------
 */

/* root_fd: a directory of the file system, for those with anonymous devices
 * (btrfs), or -1. A chain without nodes where nothing is known. Blocks. */
void device_chain_read(struct device_chain *ret, const char *sys, dev_t dev,
		       int root_fd);
/* The first that is no partition: its limits hold for the file system. NULL:
 * nothing is known. */
const struct device_node *device_chain_top(const struct device_chain *c);
/* What the file system's I/O ends at: a disk, or a loop device. */
bool device_is_leaf(const struct device_node *n);
/* That through whose queue the fewest requests fit, none that only backs a
 * loop device. NULL: none has a queue of its own. */
const struct device_node *device_chain_narrow(const struct device_chain *c);
/* How many requests a device takes at once; 0: not told. */
uint32_t device_requests(const struct device_limits *l);

/* nvme.c: what only the controller knows ------------------------------------
 */

#define NVME_PAGE_BYTES      4096u /* of either identify page */
#define NVME_SMART_LOG_BYTES 512u

/* Pure: from the pages of Identify Controller and Identify Namespace as they
 * came from the device. */
void nvme_decode(struct nvme_facts *ret, uint32_t nsid,
		 const uint8_t ctrl_page[NVME_PAGE_BYTES],
		 const uint8_t ns_page[NVME_PAGE_BYTES]);
void nvme_decode_smart(struct nvme_smart *ret,
		       const uint8_t log_page[NVME_SMART_LOG_BYTES]);
/* Ask the block device name (in /dev, with the number dev). 0, or -errno:
 * -ENODEV: not NVMe; -ENOSYS: built without libnvme; -EACCES, -EPERM: no right
 * to ask; -EIO: the device refused. Blocks. */
int nvme_ask(struct nvme_facts *ret, const char *name, dev_t dev);
int nvme_ask_smart(struct nvme_smart *ret, const char *name, dev_t dev);

/* device_plan.c: what follows for I/O ---------------------------------------
 */

struct dio_facts {
	uint32_t mem, offset, read; /* alignments; 0: no direct I/O */
	bool atomic_told;           /* statx knows of atomic writes */
	uint32_t atomic_min, atomic_max;
};

struct plan_ask {
	uint32_t page_bytes;
	uint32_t block_bytes; /* of the file system */
	struct dio_facts dio; /* of a file there */
	const struct device_chain *chain;
	const struct nvme_facts *nvme; /* of the device that the file system
					  lies on, NULL: not NVMe, or unknown */
};

/* Pure. Fills in of f: cut_bytes, dio_ alignments, logical_bytes,
 * physical_bytes, piece_, write_, slots, request_bytes, atomic_, direct_why,
 * sync_by_fua, polls, write_cache, device. */
void device_plan(struct volume_facts *f, const struct plan_ask *ask);
/* What a file system is known to do where statx does not tell. */
void device_plan_assume(struct dio_facts *ret, uint64_t fs_type,
			uint32_t block_bytes, const struct device_chain *c);
/* Can we do direct I/O with these alignments? */
bool device_plan_suits(const struct dio_facts *d, uint64_t page);
/* The cut of one file that differs from others in its alignment. */
uint32_t device_plan_cut(const struct volume_facts *f, uint32_t offset_align);

/* Of the device through whose queue the I/O goes: how many requests direct I/O
 * may have in flight (0: any number), and how large one is at most. */
uint32_t device_slots_limit(const struct device_limits *l);
uint32_t device_request_bytes(const struct device_limits *l);

/* device_slots.c: how much direct I/O a device gets at once ------------------
 */

/* First come, first served. */
struct device_slots {
	pthread_mutex_t mutex;
	uint32_t limit; /* 0: none */
	uint32_t request_bytes;
	uint32_t used;
	struct slot_waiter *head, *tail;
	uint64_t waits, wait_ns;
};

void device_slots_init(struct device_slots *s, uint32_t limit,
		       uint32_t request_bytes);
void device_slots_fini(struct device_slots *s); /* asserts that all are home */
/* How many slots an I/O of so many bytes takes. */
uint32_t device_slots_of(const struct device_slots *s, uint32_t bytes);
/* True: w->slots are taken. False: w waits, and ready comes. w->reactor and
 * ready are set. */
bool device_slots_take(struct device_slots *s, struct slot_waiter *w,
		       uint32_t bytes);
/* From a thread that blocks in its I/O: no more of them than threads, so they
 * go beyond the limit rather than wait. Returns the slots taken. */
uint32_t device_slots_force(struct device_slots *s, uint32_t bytes);
void device_slots_give(struct device_slots *s, uint32_t slots);
/* Fills in the slot part. */
void device_slots_tell(struct device_slots *s, struct device_state *ret);

/* device_set.c: the devices that volumes stand on ---------------------------
 */

struct device {
	LIST_ENTRY(device) link; /* under device_set.mutex, as what follows */
	unsigned refs;
	int nvme_error, smart_error;
	struct nvme_facts nvme;
	struct nvme_smart smart;
	uint64_t smart_ns; /* when it was read */
	/* constant */
	struct device_set *set;
	dev_t dev;
	char name[DEVICE_NAME_MAX];
	struct device_slots slots;
};

struct device_set;

int device_set_new(struct device_set **ret, struct engine *e);
void device_set_free(struct device_set *s); /* NULL is fine */
/* A reference to the device of a node; asks it when it is new. NULL: out of
 * memory. Blocks. */
struct device *device_get(struct device_set *s, const struct device_node *n);
void device_put(struct device *d); /* NULL is fine */

#endif
