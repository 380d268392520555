/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters as OpenMetrics text, version 1.0.0.
 */
#ifndef NVNFSD_OPENMETRICS_H
#define NVNFSD_OPENMETRICS_H

#include <stddef.h>

struct server;

#define OPENMETRICS_TYPE                                                       \
	"application/openmetrics-text; version=1.0.0; charset=utf-8"

/* malloc'd; NULL: no memory. Any thread but a reactor's. */
char *openmetrics_text(struct server *s, size_t *ret_bytes);

#endif
