/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of block devices and of the file systems on them, as plain
 * structs: found by device*.c, nvme.c and probe.c when a volume opens and
 * constant from then on, read by whoever plans or shows. A device_state alone
 * is a copy of what moves. It knows no open files and no calls.
 */
#ifndef NVNFSD_IO_FACTS_H
#define NVNFSD_IO_FACTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct engine;

/* device*.c, nvme.c: what lies under a file system ------------------------- */

#define DEVICE_NODES_MAX 32u
#define DEVICE_NAME_MAX  64u

enum device_kind {
	DEVICE_DISK,
	DEVICE_PARTITION,
	DEVICE_DM,
	DEVICE_MD,
	DEVICE_LOOP
};
const char *device_kind_name(enum device_kind k);

/* Of a request queue, as sysfs has it; 0: not told, or none. A stacked device
 * has what the kernel has made of the limits of those below it. */
struct device_limits {
	uint32_t logical_bytes, physical_bytes;
	uint32_t minimum_bytes, optimal_bytes; /* preferred sizes of I/O */
	uint32_t boundary_bytes;               /* chunk_sectors */
	uint32_t transfer_bytes_max;           /* of the hardware */
	uint32_t request_bytes_max; /* the kernel makes no larger ones */
	uint32_t virt_boundary_bytes, dma_align_bytes;
	uint32_t atomic_bytes_min, atomic_bytes_max, atomic_boundary_bytes;
	uint32_t queues, queue_requests;
	bool write_cache; /* volatile: a flush means something */
	bool fua;
	bool rotational;
	bool polls; /* it has queues to ask for completions */
};

/* One block device of a chain. */
struct device_node {
	enum device_kind kind;
	dev_t dev;
	unsigned above; /* which node stands on it; itself: none */
	unsigned below; /* how many it stands on; 0: a leaf */
	bool backing;   /* holds a loop device's file, or is under it */
	bool aligned;   /* its start suits its disk */
	uint64_t start; /* of a partition, in bytes of its disk */
	char name[DEVICE_NAME_MAX]; /* the kernel's: "nvme0n1p2" */
	char detail[256]; /* dm: its name; md: its level; loop: its file */
	struct device_limits limits; /* a partition has its disk's */
};

/* From what the file system lies on ([0]) down to the leaves. */
struct device_chain {
	unsigned count; /* 0: no block device is known */
	bool cut_short; /* there was more */
	struct device_node node[DEVICE_NODES_MAX];
};

/* What an NVMe controller and namespace say of themselves (NVMe base
 * specification, Identify); sizes in bytes, 0: not told, or no limit. */
struct nvme_facts {
	char model[41], firmware[9];
	uint32_t nsid;
	uint8_t format; /* index of the LBA format */
	uint32_t block_bytes, metadata_bytes;
	uint32_t npwg_bytes, npwa_bytes, nows_bytes, noiob_bytes;
	uint32_t awun_bytes, awupf_bytes, mdts_bytes;
	bool volatile_cache; /* VWC */
};

/* Its SMART / Health Information log. Data units are 512,000 bytes. */
struct nvme_smart {
	uint8_t critical_warning; /* bits */
	int temperature_celsius;
	uint8_t spare_percent, spare_threshold_percent, used_percent;
	uint64_t media_errors, unsafe_shutdowns;
	uint64_t data_units_read, data_units_written;
};

/* A device with a queue of its own, for whoever shows or counts. */
struct device_state {
	char name[DEVICE_NAME_MAX];
	dev_t dev;
	/* Direct I/O: requests in flight now, how many may be (0: any number),
	 * and who had to wait for that. */
	uint32_t slots, slots_used;
	uint64_t slot_waits, slot_wait_ns;
	int nvme_error; /* 0: nvme is told; -ENODEV: it is none; why not */
	struct nvme_facts nvme;
	int smart_error; /* 0: smart is told; else why not */
	uint64_t smart_age_ns;
	struct nvme_smart smart;
};

/* Fills at most max; returns how many there are. Any thread. */
unsigned device_states(struct engine *e, struct device_state *ret,
		       unsigned max);
/* The state of one that a volume stands on. False: none such. */
bool device_state_of(struct engine *e, dev_t dev, struct device_state *ret);
/* Each second from any thread: once a minute starts to read the SMART logs. */
void device_refresh(struct engine *e);

struct volume_facts {
	uint64_t fs_type;     /* statfs f_type */
	uint32_t block_bytes; /* file system block */
	uint32_t cut_bytes;   /* A: where a WRITE may be cut */
	uint32_t cut_floor;   /* of any file's cut */
	uint32_t dio_mem_align;
	uint32_t dio_offset_align; /* 0: no direct I/O */
	uint32_t logical_bytes;    /* of the device */
	uint32_t physical_bytes;
	uint32_t piece_bytes_max;  /* of a direct piece */
	uint32_t piece_boundary;   /* 0, or cut pieces at its multiples */
	uint32_t write_pref_bytes; /* FSINFO's wtpref and wtmult */
	uint32_t write_mult_bytes;
	uint32_t slots;         /* direct requests in flight, 0: any number */
	uint32_t request_bytes; /* that a slot stands for */
	uint32_t atomic_bytes_min, atomic_bytes_max; /* 0: no atomic writes */
	const char *atomic_why;                      /* then the reason */
	const char *direct_why; /* why no direct I/O although it would work */
	bool sync_by_fua;       /* RWF_DSYNC is cheaper than a sync */
	bool polls;             /* direct I/O can be polled (iopoll) */
	bool dontcache;         /* RWF_DONTCACHE works */
	bool nowait_buffered;   /* buffered writes do not punt */
	bool log_covers;        /* one log force covers earlier changes */
	bool write_cache;
	char device[DEVICE_NAME_MAX]; /* leaf device's name, or "" */
};

#endif
