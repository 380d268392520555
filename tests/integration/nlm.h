/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For integration tests: calls of NLM version 4 by hand, and a lock manager of
 * the test's own, which is what a server calls back. The clients are addresses
 * of 127.0.0.0/8; all of them have that one lock manager.
 */
#ifndef NVNFSD_TESTS_NLM_H
#define NVNFSD_TESTS_NLM_H

#include "harness.h"

enum {
	NLM_TEST = 1,
	NLM_LOCK,
	NLM_CANCEL,
	NLM_UNLOCK,
	NLM_GRANTED,
	NLM_TEST_MSG,
	NLM_LOCK_MSG,
	NLM_CANCEL_MSG,
	NLM_UNLOCK_MSG,
	NLM_GRANTED_MSG,
	NLM_TEST_RES,
	NLM_LOCK_RES,
	NLM_CANCEL_RES,
	NLM_UNLOCK_RES,
	NLM_GRANTED_RES,
	NLM_SM_NOTIFY,
	NLM_SHARE = 20,
	NLM_UNSHARE,
	NLM_NM_LOCK,
	NLM_FREE_ALL
};

enum {
	LOCK_GRANTED,
	LOCK_DENIED,
	LOCK_NOLOCKS,
	LOCK_BLOCKED,
	LOCK_GRACE,
	LOCK_DEADLOCK,
	LOCK_ROFS,
	LOCK_STALE,
	LOCK_FBIG,
	LOCK_FAILED
};

#define NLM_CALLER "client.example" /* of all calls */

/* What is locked, and how. */
struct lock {
	const struct raw_fh *fh;
	const char *oh;
	uint32_t svid;
	uint64_t offset, length;
	bool exclusive, block, reclaim;
	int state;
};

/* nlm.c ------------------------------------------------------------------- */

#define NLM_OH_BYTES 64u

struct holder {
	bool exclusive;
	uint32_t svid;
	char oh[NLM_OH_BYTES];
	uint64_t offset, length;
};

/* Build a call of proc, TEST to GRANTED_MSG or NM_LOCK; it is then sent. */
void nlm_build(struct raw *r, uint32_t proc, const struct lock *l);
/* The reply that has come, to a call with a result: its status. With holder,
 * to a TEST: filled where it was denied. */
int nlm_result(struct raw *r, struct holder *holder);
/* Both, and the sending. */
int nlm_ask(struct raw *r, uint32_t proc, const struct lock *l);
int nlm_test(struct raw *r, const struct lock *l, struct holder *holder);
/* A call without a result: nothing may be in its reply. */
void nlm_tell(struct raw *r, uint32_t proc, const struct lock *l);
/* An answer to what the server sent: its cookie, and what became of it. */
void nlm_reply(struct raw *r, uint32_t proc, const void *cookie, uint32_t n,
	       uint32_t stat);
/* SHARE or UNSHARE. */
int nlm_share(struct raw *r, uint32_t proc, const struct raw_fh *fh,
	      const char *oh, uint32_t mode, uint32_t access);
/* FREE_ALL, or with priv (16 bytes) SM_NOTIFY. */
void nlm_notify(struct raw *r, uint32_t proc, const char *name, int state,
		const void *priv);

/* nlm_peer.c: the lock manager, by TCP and UDP; after world_enter() ---------
 */

/* One call that the server made. */
struct nlm_news {
	uint32_t proc;
	bool datagram;
	char from[16], to[16]; /* the server's address, the client's */
	uint16_t from_port;
	uint8_t cookie[32];
	uint32_t cookie_bytes;
	uint32_t stat;        /* of a _RES */
	struct holder holder; /* of TEST_RES, and what GRANTED grants */
	struct raw_fh fh;     /* of GRANTED, and in whose name */
	char caller[64];
};

struct nlm_peer;
/* Serve, and be registered. */
struct nlm_peer *nlm_peer_new(void);
void nlm_peer_free(struct nlm_peer *p);
/* How GRANTED is answered from now on: with this status; or NLM_SILENT. To
 * begin with LOCK_GRANTED. */
#define NLM_SILENT (-1)
void nlm_peer_answer(struct nlm_peer *p, int stat);
/* The same for one client only, by its address. NULL: for none any more. */
void nlm_peer_mute(struct nlm_peer *p, const char *client);
/* The next call, which must come. */
struct nlm_news nlm_peer_take(struct nlm_peer *p);
/* And be this. */
struct nlm_news nlm_peer_expect(struct nlm_peer *p, uint32_t proc,
				const char *client);
/* Calls that were not taken yet. */
unsigned nlm_peer_left(struct nlm_peer *p);

#endif
