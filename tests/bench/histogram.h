/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Latencies as a histogram of fixed size: 128 classes of equal width in each
 * power of two, so that a quantile is right to within 0.8 % however long a run
 * is. One thread.
 */
#ifndef NVNFSD_HISTOGRAM_H
#define NVNFSD_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BITS    7u
#define HISTOGRAM_CLASSES ((64u - HISTOGRAM_BITS + 1) << HISTOGRAM_BITS)

struct histogram {
	uint64_t classes[HISTOGRAM_CLASSES];
	uint64_t count, min_ns, max_ns, sum_ns;
};

void histogram_add(struct histogram *t, uint64_t ns);
/* The smallest latency that at least this share does not exceed; 0 when there
 * is none. */
uint64_t histogram_quantile(const struct histogram *t, double share);

#endif
