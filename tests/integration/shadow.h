/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For integration tests: what each byte of a file may be while WRITEs and
 * truncations of it are in flight, overlapping ones among them. Every WRITE has
 * a number, and its bytes follow from number and offset, so a byte out of
 * place, old or torn is seen to be. One thread; the order in which it calls
 * begin and end is the order that is judged by: what began after another had
 * ended is later than it, everything else may have come in either order, byte
 * by byte.
 */
#ifndef NVNFSD_TESTS_SHADOW_H
#define NVNFSD_TESTS_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shadow;
struct shadow_read;

/* The bytes of WRITE id at [offset, offset + n). Id 0 and truncations are
 * zeros (see shadow_truncate). */
void shadow_fill(uint32_t id, uint64_t offset, void *buf, size_t n);

/* An empty file: zeros everywhere. name is for messages, kept by pointer. */
struct shadow *shadow_new(const char *name);
void shadow_free(struct shadow *s); /* NULL is fine */
/* A WRITE is about to be sent; its number. */
uint32_t shadow_begin(struct shadow *s, uint64_t offset, uint64_t n);
/* A truncation to size: zeros from there on. */
uint32_t shadow_truncate(struct shadow *s, uint64_t size);
/* It has succeeded, in full. */
void shadow_end(struct shadow *s, uint32_t id);

/* A READ is about to be sent; and its reply: got bytes, and if got < n whether
 * the end of the file comes next (else nothing is known of the rest). Fails the
 * test when a byte cannot be so. */
struct shadow_read *shadow_read_begin(struct shadow *s, uint64_t offset,
				      uint32_t n);
void shadow_read_end(struct shadow *s, struct shadow_read *r,
		     const uint8_t *data, uint32_t got, bool eof);
/* While nothing is in flight: the file at path, byte for byte, up to end. */
void shadow_check_file(struct shadow *s, const char *path, uint64_t end);

#endif
