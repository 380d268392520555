/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the server's counters: what stats.json, nvnfsctl stats and the
 * metrics show comes from it, under one name and with one help text.
 */
#ifndef NVNFSD_COUNTERS_H
#define NVNFSD_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct server;

enum counter_type {
	COUNTER, /* only grows */
	GAUGE    /* as it is now */
};

/* Where the values lie: offset is into that, and they are added up. */
enum counter_scope {
	IN_SHARD,   /* struct stats, one a shard */
	IN_REACTOR, /* struct reactor_counters, one a reactor */
	IN_VOLUME,  /* struct volume_counters, one an export: told by export */
	IN_DRC,     /* struct drc_counters */
	IN_LOCKS,   /* struct locks_counters */
	IN_UDP,     /* struct udp_counters */
	BY_CALL,    /* read() */
	BY_LABEL    /* list() */
};

/* Receives the values of a BY_LABEL counter. */
struct counter_sink {
	void (*put)(struct counter_sink *k, const char *label, uint64_t value);
};

struct counter {
	/* As in stats.json. With nvnfsd_ before it (and _total after it for a
	 * COUNTER) that of the metric, where metric is NULL; _ns becomes
	 * _seconds there. */
	const char *name, *metric;
	const char *help;
	enum counter_type type;
	enum counter_scope scope;
	size_t offset;
	/* So many values side by side (0: one), told apart by a label. */
	unsigned values;
	const char *label;
	const char *(*value_name)(unsigned i);
	/* 0; or -ENODATA where the kernel or the hardware does not tell: then
	 * it is shown as n/a and left out of the metrics. */
	int (*read)(struct server *s, uint64_t *ret);
	int (*list)(struct server *s, struct counter_sink *k);
};

/* Row i; NULL behind the last. */
const struct counter *counter_row(unsigned i);
/* Value i of a counter that is IN_SHARD, IN_REACTOR, IN_DRC or IN_UDP,
 * summed up, or BY_CALL. 0 or -ENODATA. */
int counter_read(const struct counter *c, struct server *s, unsigned i,
		 uint64_t *ret);
/* Value i of one that is IN_VOLUME; n are a volume's counters. */
struct volume_counters;
uint64_t counter_of_volume(const struct counter *c,
			   const struct volume_counters *n, unsigned i);

/* tags.c: requests that wait for a device's tag, by the device's name, of the
 * devices under the exports. -ENODATA where debugfs does not show it. */
int tags_list(struct server *s, struct counter_sink *k);
/* The same of one device, with the block directory of a debugfs. */
int tags_waiting(int block_fd, const char *device, uint64_t *ret);

#endif
