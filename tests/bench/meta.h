/* SPDX-License-Identifier: Apache-2.0 */
/* nvnfsd-meta: what its two files share. */
#ifndef NVNFSD_META_H
#define NVNFSD_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum meta_op { META_CREATE, META_STAT, META_LIST, META_REMOVE };

struct meta {
	enum meta_op op;
	const char *dir;   /* in the export, or in local */
	const char *local; /* a directory of this machine; NULL: over NFS */
	uint64_t entries, in_flight;
	uint64_t operations, listed, without_attributes;
};

uint64_t meta_now_ns(void);
/* Of the n-th entry. */
void meta_name(uint64_t n, char *name, size_t size);
/* Tells and ends the program. */
void meta_fail(const char *what, const char *why) __attribute__((noreturn));

/* meta_local.c --------------------------------------------------------------
 */

/* Make the directory where it is missing, and open it. */
void meta_local_open(const struct meta *m);
void meta_local_run(struct meta *m);

#endif
