/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For integration tests: a running server with one mounted connection, made in
 * one step and ended in another.
 */
#ifndef NVNFSD_TESTS_SITE_H
#define NVNFSD_TESTS_SITE_H

#include "ask.h"

struct site {
	struct harness *h;
	struct raw *r; /* root's, to begin with */
	struct raw_fh root;
};

/*
 * options: of the export line, or NULL; fs: a loop device with "xfs", "ext4" or
 * "btrfs" under the export, or NULL for the plain directory. The running test
 * is skipped where there can be none.
 */
struct site *site_new(const char *engine, const char *options, const char *fs);
/* For more arguments: as site_new up to the start, then site_start. */
struct site *site_prepare(const char *engine, const char *options,
			  const char *fs);
void site_start(struct site *s);
/* In between: another file system on the device, by this command and its
 * options. */
void site_mkfs(struct site *s, const char *command);
/* Stop and start: the handles stay, the connection is a new one. */
void site_restart(struct site *s);
/* Stop (cleanly, or the test fails), and free all. */
void site_free(struct site *s);
/* Ask, and fail the running test when the status is another. */
void site_expect(struct site *s, struct question q, int status);
/* A further connection, from this address of this machine. */
struct raw *site_connect_from(struct site *s, const char *address);
/* A name below the export as a path, and as a handle that must be had. */
const char *site_path(const struct site *s, const char *name);
struct raw_fh site_lookup(struct site *s, const char *name);
/* A name in dir, which must be had. */
struct raw_fh site_lookup_in(struct site *s, const struct raw_fh *dir,
			     const char *name);
/* The same handle twice, or the test fails. */
void site_expect_same(const struct raw_fh *a, const struct raw_fh *b);
/* A file made locally, with this mode, owner and text. */
void site_file(struct site *s, const char *name, unsigned mode, unsigned uid,
	       unsigned gid, const char *text);
/* A new file of so many records of so many bytes, WRITEs one after the other
 * and a COMMIT. */
struct raw_fh site_write(struct site *s, const char *name, unsigned records,
			 uint32_t record_bytes, int stable);

#endif
