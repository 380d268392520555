/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to volume.c, probe.c and meta.c: what a volume is made of.
 */
#ifndef NVNFSD_IO_VOLUME_H
#define NVNFSD_IO_VOLUME_H

#include "io/device.h"
#include "io/file.h"
#include "io/flusher.h"

#define VOLUME_MAGIC 0x766f6c75u
#define XFS_MAGIC    0x58465342u

struct volume_shared {
	_Atomic unsigned refs;
	_Atomic uint64_t verifier;
	_Atomic uint64_t failure; /* the last that changed it */
	struct volume_counters counters;
	struct flush_account account;
};

/* Who waits for which turn of the log. */
struct meta_group {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	uint64_t begun, done, failed; /* turns */
	int error;                    /* of turn failed */
	bool busy;
};

struct volume {
	uint32_t magic;
	_Atomic unsigned refs;
	unsigned files;
	struct engine *engine;
	int root_fd;
	int meta_fd; /* the nameless file, or -1 */
	bool read_only;
	dev_t dev;
	void *user;
	struct volume_facts facts;
	struct device_chain chain;
	struct device *device[DEVICE_NODES_MAX]; /* of the chain's nodes */
	struct device_slots *slots;              /* of one of them, or NULL */
	_Atomic uint64_t policy;                 /* see policy_pack */
	_Atomic uint64_t dirty_max;
	_Atomic uint32_t flush_share;
	struct volume_shared *shared;
	struct meta_group meta;
};

/* probe.c: blocks. Fills dev, facts, chain, device and slots of v, and meta_fd
 * where one log covers all. engine, root_fd and read_only are set. 0 or -errno
 * (then some of it may be filled). */
int volume_probe(struct volume *v);

/* meta.c */
void meta_group_init(struct meta_group *g);
void meta_group_fini(struct meta_group *g);

#endif
