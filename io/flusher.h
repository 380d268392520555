/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to io/: what may be dirty in the page cache, who writes it back, and
 * how much memory there is. A flush_account belongs to a volume, a flusher with
 * its thread to a device; any thread asks for room and notes what it has made
 * dirty.
 */
#ifndef NVNFSD_IO_FLUSHER_H
#define NVNFSD_IO_FLUSHER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

struct file_cache;
struct flush_waiter;
struct inode;

/* memory.c ----------------------------------------------------------------- */

struct memory {
	uint64_t max;  /* of this process's control groups, UINT64_MAX: none */
	uint64_t room; /* what is left of it and of the machine's */
	unsigned pressure; /* percent of the last 10 s that someone waited */
};

/* Blocks a little: reads some files of proc and cgroupfs. */
void memory_look(struct memory *m);
/* The same of these mounts. */
void memory_look_at(struct memory *m, const char *proc, const char *cgroups);

/* flusher.c ---------------------------------------------------------------- */

struct flusher;

/*
 * What clients of one export have made dirty in the page cache. bytes counts
 * what is dirty, being written back, or about to be written; fresh what has
 * landed and nobody writes back yet; ready what of that lies in long runs.
 */
struct flush_account {
	_Atomic int64_t bytes, fresh, ready;
	_Atomic int64_t max, share; /* of bytes; of ready, then it is flushed */
	_Atomic unsigned waiters;
	_Atomic bool due; /* in the flusher's queue */
	struct flusher *flusher;
	/* under the flusher's mutex */
	TAILQ_ENTRY(flush_account) in_due;
	TAILQ_HEAD(, inode) inodes; /* dirty ones, oldest first */
	STAILQ_HEAD(, flush_waiter) waiting;
	_Atomic int64_t started; /* of fresh: its write-back was started */
};

void account_init(struct flush_account *a, struct flusher *f);
/* Nobody uses it any more; its flusher still runs, or there never was one. */
void account_fini(struct flush_account *a);
/* Any thread. */
void account_limit(struct flush_account *a, uint64_t max,
		   unsigned share_percent);
/* w->bytes will be written through the page cache: true when they may be now,
 * else w->ready comes on w->reactor, in the order of asking. They count until
 * flush_release. */
bool flush_admit(struct flush_account *a, struct flush_waiter *w);
void flush_release(struct flush_account *a, int64_t bytes);
/* With i's mutex: bytes more of it (or less) are dirty and fresh, and ready; or
 * this many of them are being written back now, and bytes are to be released
 * after that. */
void flush_note(struct inode *i, int64_t bytes, int64_t ready);
void flush_taken(struct inode *i, int64_t bytes, int64_t ready);
/* i goes. */
void flush_forget(struct inode *i);
/* The flusher of this device, with its thread: kept until flushers_end. 0 or
 * -errno. */
int flusher_of(struct flusher **ret, struct file_cache *c, dev_t dev);
void flushers_end(struct file_cache *c);

#endif
