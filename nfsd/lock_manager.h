/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the lock manager share; all else includes locks.h.
 *
 * Everything is under one lock, from locks_enter to locks_leave. Three things
 * are done without it, each with a pin on what it is about: a file is opened, a
 * file is closed (locks_leave), and host_first or host_last is called. fcntl(2)
 * is called with it: on a local file system that waits for nothing.
 */
#ifndef NVNFSD_LOCK_MANAGER_H
#define NVNFSD_LOCK_MANAGER_H

#include "nfsd/lock_table.h"
#include "nfsd/locks.h"

#include <pthread.h>
#include <sys/queue.h>

/* Without memory an element is not added: its hh.tbl is NULL. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* What a file can have at most: off_t. */
#define LOCK_LAST_MAX           ((uint64_t)INT64_MAX)
#define LOCK_ADDRESS_BYTES      16u
#define LOCK_ADDRESS_TEXT_BYTES 46u                 /* INET6_ADDRSTRLEN */
#define LOCKS_TICK_NS           (1ull * 1000000000) /* while somebody waits */
#define LOCKS_TICK_IDLE_NS      (30ull * 1000000000)
#define LOCKS_HOST_IDLE_NS      (300ull * 1000000000)
#define LOCKS_HOST_AGAIN_NS     (60ull * 1000000000) /* after host_first failed */

/* IPv6, and of a link-local one the interface. */
struct lock_peer_key {
	uint8_t address[LOCK_ADDRESS_BYTES];
	uint32_t scope;
};

struct lock_peer; /* a host: lock_hosts.c */

/* Client, svid and oh; of SHARE client and oh. It is there while it has
 * anything. */
struct lock_owner {
	struct lock_peer *peer;
	int32_t state; /* NSM's, of its latest LOCK; 0: unknown */
	bool doomed;   /* all it has is being taken */
	unsigned pins; /* calls in service, grants */
	unsigned ranges, shares;
	unsigned mark; /* seen in the search for a deadlock of this number */
	struct lock_owner *todo;
	TAILQ_HEAD(, lock_wait) waits;
	UT_hash_handle hh; /* in peer's, by key */
	uint32_t key_bytes, oh_bytes;
	uint32_t svid;
	const uint8_t *oh; /* in key */
	char *name;        /* caller_name, behind key */
	uint8_t key[];
};

struct lock_peer {
	struct lock_peer_key key;
	struct lock_host host;
	int32_t state;
	bool told;    /* host_first was called, and host_last has not been */
	bool watched; /* it returned 0 */
	bool busy;    /* a thread is in host_first or host_last */
	unsigned pins;
	unsigned ranges, waits, shares; /* of all its owners */
	uint64_t watch_again_ns, used_ns;
	struct lock_owner *owners;
	UT_hash_handle hh;
};

/* A range that an owner had before a grant. */
struct lock_held {
	struct lock_span span;
	bool exclusive;
};

/* A LOCK that waits, or that was granted and whose client may not know it. */
struct lock_wait {
	struct lock_owner *owner;
	struct lock_file *file;
	struct lock_span span;
	bool exclusive;
	uint64_t id; /* of its grant; 0: it waits */
	uint64_t since_ns, asked_ns, granted_ns;
	bool polled; /* when last tried, nothing but a local process was in
		      * its way */
	/* of the latest LOCK */
	struct sockaddr_storage client, local;
	int transport;
	bool message;
	uint64_t offset, length;
	/* of a grant */
	struct lock_held *held;
	unsigned held_count;
	TAILQ_ENTRY(lock_wait) file_link, owner_link;
	UT_hash_handle hh; /* of a grant: by id */
};
TAILQ_HEAD(lock_waits, lock_wait);

struct lock_share {
	struct lock_owner *owner;
	enum fsh4_mode mode;
	enum fsh4_access access;
	uint64_t since_ns;
	LIST_ENTRY(lock_share) link;
};

/* It is there, and open, while it has anything or is pinned. */
struct lock_file {
	struct fh fh; /* its key, zero behind its last byte */
	int fd;
	bool writable;  /* else fd can have shared locks only */
	bool read_only; /* since its file system is */
	bool gone;      /* not in the manager's any more */
	unsigned pins;
	struct lock_table table;
	struct lock_waits waits; /* first come, first served */
	struct lock_waits grants;
	LIST_HEAD(, lock_share) shares;
	SLIST_ENTRY(lock_file) dead_link;
	UT_hash_handle hh;
};
SLIST_HEAD(lock_files, lock_file);

struct locks {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* for the thread, and who waits for a host */
	pthread_t thread;
	bool stop;
	uint64_t ticked_ns; /* the thread's */
	const struct locks_ops *ops;
	void *arg;
	struct export_table *exports;
	struct lock_peer *peers;
	struct lock_file *files;
	struct lock_wait *grants;
	struct lock_files dead; /* to be closed */
	unsigned ranges, waits, shares;
	unsigned mark;
	uint64_t id; /* of the latest grant */
	uint64_t grace_until_ns;
	struct locks_counters count; /* but for what is counted above */
};

enum lock_place_kind { LOCK_PLACE_RANGE, LOCK_PLACE_SHARE };

/* What a call is about. Of SHARE there is no span. */
struct lock_place {
	struct lock_peer *peer;
	struct lock_owner *owner;
	struct lock_file *file;
	struct lock_span span;
};

/* locks.c ------------------------------------------------------------------ */

void locks_enter(struct locks *l);
/* Closes files that nothing needs any more. */
void locks_leave(struct locks *l);
/* false: no file has such a range. */
bool lock_span_of(const struct lock_request *rq, struct lock_span *ret);
/* What a call may do, whatever else is locked: without the lock. writes: it
 * makes sense only where the client may write at all. */
int lock_judge(const struct lock_request *rq, bool writes);
/* Find or make, and pin, all that p is about. NLM4_GRANTED or what is the
 * matter, -EAGAIN among it. May leave the lock for a while. lock_place_fini in
 * any case. */
int lock_place_init(struct locks *l, const struct lock_request *rq,
		    enum lock_place_kind kind, struct lock_place *p);
void lock_place_fini(struct locks *l, struct lock_place *p);
/* The same, but only what is there already: false where that is not all, or the
 * range is none. */
bool lock_place_find(struct locks *l, const struct lock_request *rq,
		     enum lock_place_kind kind, struct lock_place *p);

/* lock_files.c ------------------------------------------------------------- */

/* May leave the lock. NLM4_GRANTED, and *ret is pinned; or what is the matter.
 * For p to lock; NULL: only to look. */
int lock_file_get(struct locks *l, const struct fh *fh,
		  const struct lock_peer *p, struct lock_file **ret);
/* Pinned; NULL: nothing is locked there. */
struct lock_file *lock_file_find(struct locks *l, const struct fh *fh);
void lock_file_put(struct locks *l, struct lock_file *f);
/* Nothing is the owner's there any more, the table's part; all counts. */
void lock_file_set(struct locks *l, struct lock_file *f,
		   struct lock_owner *owner, const struct lock_span *span,
		   bool exclusive, struct lock_spare *s);
void lock_file_clear(struct locks *l, struct lock_file *f,
		     struct lock_owner *owner, const struct lock_span *span,
		     struct lock_spare *s);
/* All that doomed owners (all: everybody) have there goes. */
void lock_file_forget(struct locks *l, struct lock_file *f, bool all);
/* Out of the manager's, with all that it has. */
void lock_file_drop(struct locks *l, struct lock_file *f);
unsigned lock_files_count(const struct locks *l);
/* All files. visit may drop or put the one it is given. */
void lock_files_each(struct locks *l,
		     void (*visit)(struct locks *l, struct lock_file *f,
				   void *arg),
		     void *arg);

/* On the file itself: take span of this kind, where no owner but who asks has
 * any of it of the other. 0, -EAGAIN: a local process has; -errno. */
int lock_file_take(struct lock_file *f, const struct lock_span *span,
		   bool exclusive);
/* On the file itself: give back what of span nobody has. */
void lock_file_release(struct lock_file *f, const struct lock_span *span);
/* Does a local process keep this from being taken? Then *holder tells. */
bool lock_file_local(struct lock_file *f, const struct lock_span *span,
		     bool exclusive, struct nlm4_holder *holder);

/* lock_hosts.c ------------------------------------------------------------- */

void lock_address_copy(struct sockaddr_storage *to,
		       const struct sockaddr *from);
unsigned lock_peers_count(const struct locks *l);
/* Pinned, and where rq is monitored host_first has come before. As
 * lock_place_init. */
int lock_peer_get(struct locks *l, const struct lock_request *rq,
		  struct lock_peer **ret);
void lock_peer_put(struct lock_peer *p);
/* NULL: it has nothing. Not pinned. */
struct lock_peer *lock_peer_find(struct locks *l,
				 const struct sockaddr *client);
/* Both pinned. NULL: no memory; there is none. share: SHARE's. */
struct lock_owner *lock_owner_get(struct lock_peer *p,
				  const struct lock_request *rq, bool share);
struct lock_owner *lock_owner_find(struct lock_peer *p,
				   const struct lock_request *rq, bool share);
/* Free it where it has nothing. */
void lock_owner_settle(struct lock_owner *o);
void lock_owner_unpin(struct lock_owner *o);
/* All that is due now: waits for local processes, idle hosts. Leaves the lock
 * for a while. */
void locks_tick(struct locks *l, uint64_t now_ns);
/* Everything; for locks_free. */
void lock_peers_free(struct locks *l);

/* lock_forget.c ------------------------------------------------------------ */

/* What owners of this name have from before this state goes. None of them is
 * freed that is pinned. */
void lock_peer_outlives(struct locks *l, struct lock_peer *p, const char *name,
			int32_t state);
void lock_address_text(char text[LOCK_ADDRESS_TEXT_BYTES],
		       const struct lock_peer_key *key);
bool lock_grace_holds(const struct locks *l);

/* lock_share.c ------------------------------------------------------------- */

/* Settles its owner. */
void lock_share_free(struct locks *l, struct lock_share *s);

/* lock_wait.c -------------------------------------------------------------- */

/* NLM4_BLOCKED, or why it may not wait. */
int lock_wait_begin(struct locks *l, const struct lock_request *rq,
		    const struct lock_place *p);
/* p has its lock: it waits for it no more, nor for its callback. */
void lock_wait_over(struct locks *l, const struct lock_place *p,
		    bool exclusive);
/* Grant what can be granted of f's waiters that meet span (NULL: all). */
void lock_waits_try(struct locks *l, struct lock_file *f,
		    const struct lock_span *span);
/* The same of those that only a local process was in the way of. */
void lock_waits_poll(struct locks *l, struct lock_file *f);
unsigned lock_grants_count(const struct locks *l);
/* Forget w, a grant or not. Its owner is not settled. */
void lock_wait_free(struct locks *l, struct lock_wait *w);

#endif
