/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server without sockets for tests of procedures: an engine, exports on a
 * temporary directory, and one request at a time, run on the test's own thread.
 */
#ifndef NVNFSD_TESTS_PROC_ENV_H
#define NVNFSD_TESTS_PROC_ENV_H

#include "nfsd/proc.h"
#include "nfsd/server.h"

#define ENV_ROOM_BYTES (256u << 10)

/* Exports: "rw" (sync), "async" (rw), "ro" (read-only, of the same tree as
 * "rw", seen from another address), "other" (rw, another tree). */
enum env_export { ENV_RW, ENV_ASYNC, ENV_OTHER, ENV_EXPORTS };

struct CMUnitTest;

struct env {
	char path[128];       /* the exports lie below it */
	int dir[ENV_EXPORTS]; /* plain descriptors of the exported trees */
	struct nfs_fh3 root[ENV_EXPORTS];
	struct server server;
	struct export_table *exports;
	struct rpc_cred cred;
	struct sockaddr_in client;
	struct request rq;
	uint8_t *room;
};

/* In $TMPDIR, so that it can be told which file system to try. 0; or 77 where
 * this machine cannot (not root, no handles, no mounts). It runs in a mount
 * namespace of its own from then on. */
int env_start(struct env *e);
/* The same with the devices of a made sysfs. */
int env_start_on(struct env *e, const char *sysfs);
void env_stop(struct env *e);

/* Who calls from now on. read_only: from the address that "rw" is ro to. */
void env_caller(struct env *e, uint32_t uid, uint32_t gid);
void env_read_only(struct env *e, bool read_only);
/* Run with e->rq.args as they are; res is zeroed before. */
enum nfsstat3 env_run(struct env *e, nfs3_run_fn *run);
struct export *env_export(struct env *e, enum env_export x);
struct nfs3_bytes env_bytes(const char *text);
/* LOOKUP by the root user, which must succeed. */
struct nfs_fh3 env_lookup(struct env *e, enum env_export x, const char *name);
/* What the kernel says of a name in an exported tree; it must be there. */
struct statx env_stat(struct env *e, enum env_export x, const char *name);
/* Make a file with these contents, mode and owner, behind the server's back. */
void env_file(struct env *e, enum env_export x, const char *name,
	      const char *text, mode_t mode, uint32_t uid);
/* Empty all trees. */
void env_clean(struct env *e);
/* After a test: root calls again, may write, and all trees are empty. */
void env_reset(struct env *e);
/* main's result: the tests, between env_start and env_stop. */
int env_test(struct env *e, const struct CMUnitTest *tests, size_t count);

#endif
