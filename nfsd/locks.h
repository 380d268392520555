/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock manager: who holds and who waits for which bytes of which file, and
 * SHARE's modes. What the protocol looks like on the wire, how a client is
 * called back and how statd is told, its users know (struct locks_ops).
 *
 * A client is an address (an IPv4 one in its IPv6 clothes is the same one; the
 * port is nothing). An owner of locks is a client with svid and oh. All that
 * is locked here is locked on the file itself as well (open file description
 * locks), so that local processes and NFS clients keep each other out.
 *
 * Unless it says otherwise a function may be called on any thread but a
 * reactor's, blocks for no longer than its own lock and fcntl(2) take, and
 * copies what it keeps of its arguments.
 */
#ifndef NVNFSD_LOCKS_H
#define NVNFSD_LOCKS_H

#include "nfsd/nfsd.h"
#include "nfsd/nlm.h"

#include <json-c/json.h>

/* Limits on what peers can make grow: beyond them NLM4_DENIED_NOLOCKS. */
#define LOCKS_HOSTS_MAX   4096u
#define LOCKS_FILES_MAX   16384u /* each has a descriptor */
#define LOCKS_RANGES_MAX  262144u
#define LOCKS_WAITERS_MAX 32768u
#define LOCKS_SHARES_MAX  65536u
/* Of each of the last three, what one host may have; and of files, once half
 * of them are in use. */
#define LOCKS_HOST_PART   8u /* the eighth part */

struct locks;

/* A client that has locks. */
struct lock_host {
	struct sockaddr_storage client; /* port: of its latest request */
	struct sockaddr_storage local;  /* the address of ours that it called */
	char name[LM_MAXSTRLEN + 1];    /* its caller_name */
};

/* What a callback GRANTED says. */
struct lock_grant {
	uint64_t id; /* never used again */
	struct lock_host host;
	int transport; /* IPPROTO_TCP or IPPROTO_UDP, of the latest LOCK */
	bool message;  /* which was a LOCK_MSG */
	struct fh fh;
	bool exclusive;
	uint32_t svid;
	uint64_t offset, length; /* as the client sent them */
	uint32_t oh_bytes;
	uint8_t oh[MAXNETOBJ_SZ];
};

struct locks_ops {
	/*
	 * A lock that a client waits for is now its own: tell it, and report by
	 * locks_granted. g is gone afterwards. Called with the manager's lock
	 * held: it must not block and not call back into locks.h.
	 */
	void (*grant)(void *arg, const struct lock_grant *g);
	/*
	 * A host is about to have its first monitored lock: when it returns,
	 * this is known to statd and to the next server (durably). May block;
	 * only on a thread that may (may_block). 0, or -errno: the lock is
	 * granted all the same, and this is asked again with a lock that comes
	 * a while later. Never at once for one host, nor beside its host_last.
	 */
	int (*host_first)(void *arg, const struct lock_host *h);
	/*
	 * A host for which host_first was called has had no lock for a while,
	 * or was forgotten. On a thread of the manager's own; may block. Not
	 * called at the server's end: the next server has to know the host.
	 */
	void (*host_last)(void *arg, const struct lock_host *h);
};

/* Of TEST, LOCK, NM_LOCK, CANCEL, UNLOCK, SHARE and UNSHARE. */
struct lock_request {
	const struct sockaddr *client, *local;
	int transport;
	bool message; /* LOCK_MSG: so is the callback */
	struct nlm_netobj caller_name, oh;
	uint32_t svid;
	/* What is locked. */
	const struct fh *fh;
	/* The same, open (object_open), whose rights decide; fh may be its. Of
	 * UNLOCK, CANCEL and UNSHARE: NULL, for the file may be gone or the
	 * client's right to it. */
	const struct object *object;
	bool exclusive, block, reclaim;
	bool monitored; /* not by NM_LOCK: nobody watches for its reboot */
	bool may_block; /* this thread may wait for statd: request_may_block */
	int32_t state;  /* the client's NSM state; 0: unknown */
	uint64_t offset, length; /* 0: to the end */
	/* SHARE */
	enum fsh4_mode mode;
	enum fsh4_access access;
};

/* locks.c ------------------------------------------------------------------ */

/* ops and arg outlive it. Starts a thread. 0 or -errno. */
int locks_new(struct locks **ret, const struct locks_ops *ops, void *arg);
/* Everything is let go of, no one is told. Nobody uses it any more. NULL is
 * taken. */
void locks_free(struct locks *l);
/*
 * From now on this is what is exported: locks in exports that are not in it go,
 * with their descriptors and waiters, and calls that began with an older table
 * get NLM4_STALE_FH for those. Takes a reference. Before the first request,
 * and after each change. May block as export_table_put.
 */
void locks_exports(struct locks *l, struct export_table *t);

/*
 * The procedures: enum nlm4_stats. lock and share may also return -EAGAIN where
 * !rq->may_block: nothing has happened, and it is to be called again where it
 * may block.
 *
 * What is judged, in this order: the object is a regular file (else
 * NLM4_FAILED); what is exclusive, or a SHARE for writing, is on an export that
 * is rw to the client and a file system that can be written (NLM4_ROFS; not
 * TEST); the caller may read or write the file, or owns it, or the export has
 * no_auth_nlm (else NLM4_FAILED: NLM4_DENIED would be taken for somebody else's
 * lock); offset and length are such that a file can have (else NLM4_FBIG; a
 * length of all ones is taken as 0); grace: a reclaim is only taken during it,
 * all else but UNLOCK, CANCEL and UNSHARE only outside
 * (NLM4_DENIED_GRACE_PERIOD).
 */

/* NLM4_DENIED with *holder filled: another owner, or a local process (svid: its
 * pid, -1 where the kernel does not know; no oh). */
int locks_test(struct locks *l, const struct lock_request *rq,
	       struct nlm4_holder *holder);
/*
 * Replaces what the owner has there. NLM4_BLOCKED: it waits, and ops->grant
 * comes later; the same LOCK again keeps its place. A LOCK that is asked for
 * again while its grant is on its way is granted, and the callback's outcome
 * then is nothing.
 */
int locks_lock(struct locks *l, const struct lock_request *rq);
/* NLM4_GRANTED, also where there was nothing to unlock. */
int locks_unlock(struct locks *l, const struct lock_request *rq);
/* NLM4_DENIED: there is no such waiter. One whose grant is on its way gives the
 * lock back. */
int locks_cancel(struct locks *l, const struct lock_request *rq);
/* For client, caller_name and oh; a second SHARE of one replaces the first. */
int locks_share(struct locks *l, const struct lock_request *rq);
int locks_unshare(struct locks *l, const struct lock_request *rq);

/*
 * What became of a grant: accepted, or not (the client says so, or cannot be
 * reached for so long that nobody waits any more): then what it had before
 * comes back. An id that is over already is nothing.
 */
void locks_granted(struct locks *l, uint64_t id, bool accepted);
/*
 * Its client could not be reached for so long that it is taken to be gone: as
 * not accepted; and what else the host waits for, and has not asked for again
 * since the grant, is forgotten, for one after the other would be granted to
 * nobody.
 */
void locks_unreachable(struct locks *l, uint64_t id);
/* Is it worth telling the client (again)? */
bool locks_grant_waits(struct locks *l, uint64_t id);

/* lock_hosts.c ------------------------------------------------------------- */

/* FREE_ALL: the host at this address has no locks, waiters or shares any more.
 */
void locks_free_all(struct locks *l, const struct sockaddr *client);
/* It has rebooted, and its NSM state is now this one (0: unknown): what it took
 * in that same state stays. */
void locks_host_rebooted(struct locks *l, const struct sockaddr *client,
			 int32_t state);
/* The operator's FREE_ALL: client is an address or a caller_name. How many
 * hosts that were. */
unsigned locks_release(struct locks *l, const char *client);

/* For so many ns only reclaims are granted; 0 ends it. */
void locks_grace(struct locks *l, uint64_t ns);
bool locks_in_grace(struct locks *l);

/* lock_show.c -------------------------------------------------------------- */

/* Hosts with their locks, waiters and shares, as nvnfsctl shows them. */
struct json_object *locks_json(struct locks *l);

struct locks_counters {
	uint64_t held, waiting, shares, hosts, files; /* now */
	uint64_t granted, denied, blocked, deadlocks, reclaimed;
	uint64_t callbacks, callbacks_failed; /* grants, those given back */
	uint64_t local_conflicts; /* denied or blocked by a local process */
};
void locks_count(struct locks *l, struct locks_counters *ret);

#endif
