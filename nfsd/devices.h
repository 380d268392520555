/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of the devices under the exports, for the log, nvnfsctl and the
 * counters. Prototypes stand under the file that defines them.
 */
#ifndef NVNFSD_DEVICES_H
#define NVNFSD_DEVICES_H

#include "nfsd/counters.h"
#include "nfsd/nfsd.h"

#define DEVICES_SHOWN_MAX 64u

/* devices.c: in words */

/* Each line of what is known of an export's devices, and of what follows from
 * it. Any thread. */
typedef void devices_line_fn(void *arg, const char *line);
void devices_tell(struct engine *e, const struct volume *v,
		  devices_line_fn *line, void *arg);
/* The same at level info, each line after the export's path. */
void devices_log(struct engine *e, const char *path, const struct volume *v);
/* Why a device did not tell what NVMe devices tell. */
const char *devices_nvme_why(int error);

/* device_counters.c: by device, for the table of counters; -ENODATA where no
 * device tells. */
int devices_slots(struct server *s, struct counter_sink *k);
int devices_slots_used(struct server *s, struct counter_sink *k);
int devices_slot_waits(struct server *s, struct counter_sink *k);
int devices_slot_wait_ns(struct server *s, struct counter_sink *k);
int devices_critical_warning(struct server *s, struct counter_sink *k);
int devices_temperature(struct server *s, struct counter_sink *k);
int devices_spare(struct server *s, struct counter_sink *k);
int devices_used(struct server *s, struct counter_sink *k);
int devices_media_errors(struct server *s, struct counter_sink *k);
int devices_unsafe_shutdowns(struct server *s, struct counter_sink *k);
int devices_read_bytes(struct server *s, struct counter_sink *k);
int devices_written_bytes(struct server *s, struct counter_sink *k);

#endif
