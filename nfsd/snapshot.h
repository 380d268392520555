/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All counters at one time, the latencies of all shards added up: for the
 * control thread and the metrics.
 */
#ifndef NVNFSD_SNAPSHOT_H
#define NVNFSD_SNAPSHOT_H

#include "nfsd/clients.h"
#include "nfsd/latency.h"
#include "nfsd/nfsd.h"

#include <json-c/json.h>

struct snapshot_cell;

struct snapshot {
	struct json_object *counters;      /* as stats.json */
	struct snapshot_cell *cells;       /* a uthash by key */
	struct export_table *exports;      /* a reference, for names */
	struct client client[CLIENTS_MAX]; /* for names */
	unsigned clients;
};

/* NULL: no memory. */
struct snapshot *snapshot_take(struct server *s);
void snapshot_free(struct snapshot *s); /* NULL is taken */
/* What was counted since before. */
void snapshot_subtract(struct snapshot *s, const struct snapshot *before);
/* In the order of client, export, procedure. NULL behind the last. */
const struct latency_sum *snapshot_first(struct snapshot *s);
const struct latency_sum *snapshot_next(const struct latency_sum *sum);

/* Names of a key's parts, valid as long as s, or static. */
const char *snapshot_client(const struct snapshot *s, uint32_t number);
const char *snapshot_export(const struct snapshot *s, uint64_t id);
const char *snapshot_procedure(uint32_t proc);

#endif
