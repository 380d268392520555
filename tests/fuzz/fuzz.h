/* SPDX-License-Identifier: Apache-2.0 */
/* What a fuzz target defines, and who calls it: libFuzzer or standalone.c. */
#ifndef NVNFSD_FUZZ_H
#define NVNFSD_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#endif
