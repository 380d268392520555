/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For integration tests of locks: a server with a file, three clients of it, by
 * their addresses, and the lock manager that is called back.
 */
#ifndef NVNFSD_TESTS_NLM_SCENE_H
#define NVNFSD_TESTS_NLM_SCENE_H

#include "nlm.h"
#include "site.h"

#define A_HOST "127.0.0.1"
#define B_HOST "127.0.0.2"
#define C_HOST "127.0.0.3"

struct scene {
	struct site *s;
	struct nlm_peer *p;
	struct raw *a, *b, *c;
	struct raw_fh fh;
};

/* Takes s, which runs. After world_enter(). */
void scene_start(struct scene *v, struct site *s);
/* Kill the server, and start it with this nvnfsd.conf. */
void scene_restart(struct scene *v, const char *conf);
/* Every call of the server's must have been taken. */
void scene_end(struct scene *v);

/* An exclusive lock that may be waited for. */
struct lock scene_lock(const struct scene *v, uint32_t svid, uint64_t offset,
		       uint64_t length);
/* Until this client may lock what l says: another gives it back. */
void scene_until_free(struct raw *r, const struct lock *l);
/* B gets the answer to a _MSG of its, with the cookie of the call. */
struct nlm_news scene_expect_res(struct scene *v, uint32_t proc, uint32_t stat);

#endif
