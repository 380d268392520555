/* SPDX-License-Identifier: Apache-2.0 */
/* What nvnfsd-load writes, and how it knows it again. */
#ifndef NVNFSD_PATTERN_H
#define NVNFSD_PATTERN_H

#include <stdint.h>

/* What stands at an offset depends on file, offset and generation, so that a
 * byte from another place, file or run is seen to be wrong. */
uint64_t pattern_key(const char *file, uint64_t generation);
void pattern_fill(uint64_t key, uint64_t offset, void *buf, uint32_t n);
/* n when every byte is right, else the index of the first that is not. */
uint32_t pattern_check(uint64_t key, uint64_t offset, const void *buf,
		       uint32_t n);

#endif
