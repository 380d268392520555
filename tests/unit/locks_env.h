/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of the lock manager: it, on files of an exported directory, with
 * something that notes whom it calls back and whom it has watched.
 */
#ifndef NVNFSD_TESTS_LOCKS_ENV_H
#define NVNFSD_TESTS_LOCKS_ENV_H

#include "nfsd/lock_manager.h"
#include "tests/unit/proc_env.h"

#define ENV_FILES  4u
#define ENV_GRANTS 64u

/* A file, open as whoever env_caller is when it is made. */
struct locked {
	struct object object;
	char path[192]; /* as a local process sees it */
};

struct locks_env {
	struct env env;
	struct locks *locks;
	struct locked file[ENV_FILES]; /* "f0", ... mode 666, root's */
	/* what the manager called, under the lock */
	pthread_mutex_t lock;
	pthread_cond_t called;
	struct lock_grant grant[ENV_GRANTS]; /* the oldest */
	unsigned grants;
	unsigned firsts, lasts;
	struct lock_host first, last; /* the latest */
	int first_result;             /* what host_first returns */
};

/* Around a group of tests: 0, 77, -1. */
int locks_env_start(struct locks_env *e);
void locks_env_stop(struct locks_env *e);
/* Around each: fresh files, a fresh manager. */
void locks_env_open(struct locks_env *e);
void locks_env_close(struct locks_env *e);

/* Open one more file, and let go of it. As env_caller has it. */
void locked_open(struct locks_env *e, struct locked *f, const char *name);
void locked_close(struct locked *f);

/* Who asks: a host by its address, and an owner there. */
struct asker {
	const char *host;
	uint32_t svid;
};

/* What of: offset and length as the protocol has them. The addresses are this
 * thread's until it makes the next request. */
struct lock_request env_request(const struct locked *f, const struct asker *who,
				uint64_t offset, uint64_t length);
/* enum nlm4_stats of one LOCK, blocking and not; and of UNLOCK. */
int env_lock(struct locks_env *e, const struct locked *f,
	     const struct asker *who, uint64_t offset, uint64_t length,
	     bool exclusive);
int env_wait(struct locks_env *e, const struct locked *f,
	     const struct asker *who, uint64_t offset, uint64_t length,
	     bool exclusive);
int env_unlock(struct locks_env *e, const struct locked *f,
	       const struct asker *who, uint64_t offset, uint64_t length);
/* Wait until so many grants were called back. */
void env_await_grants(struct locks_env *e, unsigned n);

/* A descriptor of a local process. */
int local_open(const struct locked *f);
/* What keeps it from locking all of it exclusively: F_RDLCK, F_WRLCK, or
 * F_UNLCK for nothing. */
int local_sees(int fd, uint64_t offset, uint64_t length);
/* F_OFD_SETLK: 0 or -errno. */
int local_set(int fd, int type, uint64_t offset, uint64_t length);

#endif
