/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Duplicate request cache: the replies of calls that must not run twice. The
 * server makes one struct drc at start and frees it after its last call; every
 * thread uses it, under one lock that is held for a few list operations and at
 * most one copy of a reply, and under which no other lock is taken.
 *
 * All entries are allocated at start; a reply's bytes are allocated when it is
 * kept. An entry is free, in service (begun, not yet done or aborted; never
 * evicted, since its caller holds a pointer to it) or finished (holds a reply;
 * the least recently used is evicted for room). It is hashed while it is not
 * free. The hash is keyed, so that no client can choose keys that share a
 * bucket, nor records that share a checksum.
 *
 * It does not know what a call is, nor whose waiter it keeps.
 */
#include "rpc/rpc.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define CHECKSUM_BYTES 256u

/* What is hashed and compared: no padding, no port. */
struct key {
	uint64_t checksum;
	uint32_t xid, prog, vers, proc;
	uint32_t family, scope;
	uint8_t addr[16];
};
static_assert(sizeof(struct key) == 48, "struct key has padding");

enum entry_state { ENTRY_FREE, ENTRY_IN_SERVICE, ENTRY_FINISHED };

struct drc_entry {
	LIST_ENTRY(drc_entry) chain;    /* in its bucket, unless free */
	TAILQ_ENTRY(drc_entry) lru;     /* finished */
	LIST_ENTRY(drc_entry) attached; /* in service, with a waiter */
	SLIST_ENTRY(drc_entry) next;    /* free */
	struct key key;
	enum entry_state state;
	void *waiter;
	uint8_t *reply;
	uint32_t reply_bytes;
};
LIST_HEAD(entry_list, drc_entry);

struct drc {
	pthread_mutex_t lock; /* all below, up to the constants */
	struct entry_list *buckets;
	TAILQ_HEAD(, drc_entry) lru; /* first: to be evicted next */
	struct entry_list attached;
	SLIST_HEAD(, drc_entry) free;
	uint32_t in_service;
	struct drc_counters counters;

	struct drc_entry *entries;
	uint32_t bucket_mask;
	size_t bytes_max;
	uint32_t reply_bytes_max;
	uint8_t hash_key[crypto_shorthash_KEYBYTES];
};

static uint64_t
drc_hash(const struct drc *d, const void *bytes, size_t n)
{
	uint8_t hash[crypto_shorthash_BYTES];
	uint64_t h;

	static_assert(sizeof(hash) == sizeof(h), "SipHash is 64 bits");
	crypto_shorthash(hash, bytes, n, d->hash_key);
	memcpy(&h, hash, sizeof(h));
	return h;
}

/* Buckets for entries_max at a load of at most one. */
static int
drc_alloc(struct drc *d, uint32_t entries_max)
{
	size_t buckets = 1;

	while (buckets < entries_max)
		buckets <<= 1;
	d->bucket_mask = (uint32_t)(buckets - 1);
	d->buckets = calloc(buckets, sizeof(*d->buckets));
	d->entries = calloc(entries_max, sizeof(*d->entries));
	return d->buckets && d->entries ? 0 : -ENOMEM;
}

int
drc_new(struct drc **ret, uint32_t entries_max, size_t bytes_max,
	uint32_t reply_bytes_max)
{
	struct drc *d;
	uint32_t i;

	assert(entries_max > 0);
	if (sodium_init() < 0)
		return -EIO;
	d = calloc(1, sizeof(*d));
	if (d == NULL)
		return -ENOMEM;
	if (drc_alloc(d, entries_max) != 0)
		goto free_tables;
	if (pthread_mutex_init(&d->lock, NULL) != 0)
		goto free_tables;
	crypto_shorthash_keygen(d->hash_key);
	d->bytes_max = bytes_max;
	d->reply_bytes_max = reply_bytes_max;
	TAILQ_INIT(&d->lru);
	for (i = entries_max; i-- > 0;)
		SLIST_INSERT_HEAD(&d->free, &d->entries[i], next);
	*ret = d;
	return 0;

free_tables:
	free(d->entries);
	free(d->buckets);
	free(d);
	return -ENOMEM;
}

void
drc_free(struct drc *d)
{
	struct drc_entry *e;

	if (d == NULL)
		return;
	assert(d->in_service == 0);
	TAILQ_FOREACH (e, &d->lru, lru)
		free(e->reply);
	pthread_mutex_destroy(&d->lock);
	free(d->entries);
	free(d->buckets);
	free(d);
}

uint64_t
drc_checksum(const struct drc *d, const uint8_t *bytes, uint32_t n)
{
	return drc_hash(d, bytes, n < CHECKSUM_BYTES ? n : CHECKSUM_BYTES);
}

static void
key_init(struct key *k, const struct drc_key *from)
{
	const struct sockaddr_in *v4 = (const void *)&from->addr;
	const struct sockaddr_in6 *v6 = (const void *)&from->addr;

	memset(k, 0, sizeof(*k));
	k->checksum = from->checksum;
	k->xid = from->xid;
	k->prog = from->prog;
	k->vers = from->vers;
	k->proc = from->proc;
	k->family = from->addr.ss_family;
	if (k->family == AF_INET) {
		memcpy(k->addr, &v4->sin_addr, sizeof(v4->sin_addr));
	} else if (k->family == AF_INET6) {
		memcpy(k->addr, &v6->sin6_addr, sizeof(v6->sin6_addr));
		k->scope = v6->sin6_scope_id;
	}
}

static struct entry_list *
drc_bucket(struct drc *d, const struct key *k)
{
	return &d->buckets[drc_hash(d, k, sizeof(*k)) & d->bucket_mask];
}

static struct drc_entry *
entry_find(struct entry_list *bucket, const struct key *k)
{
	struct drc_entry *e;

	LIST_FOREACH (e, bucket, chain) {
		if (memcmp(&e->key, k, sizeof(*k)) == 0)
			return e;
	}
	return NULL;
}

/* To the free list, from whatever it was; its waiter has been taken. */
static void
entry_release(struct drc *d, struct drc_entry *e)
{
	if (e->state == ENTRY_FINISHED) {
		TAILQ_REMOVE(&d->lru, e, lru);
		d->counters.bytes -= e->reply_bytes;
		free(e->reply);
	} else {
		d->in_service--;
	}
	LIST_REMOVE(e, chain);
	d->counters.entries--;
	memset(e, 0, sizeof(*e));
	SLIST_INSERT_HEAD(&d->free, e, next);
}

/* false: nothing is finished. */
static bool
drc_evict(struct drc *d)
{
	struct drc_entry *e = TAILQ_FIRST(&d->lru);

	if (e == NULL)
		return false;
	entry_release(d, e);
	d->counters.evicted++;
	return true;
}

/* A free entry, in service from here on; NULL when all are in service. */
static struct drc_entry *
entry_start(struct drc *d, struct entry_list *bucket, const struct key *k)
{
	struct drc_entry *e;

	if (SLIST_EMPTY(&d->free) && !drc_evict(d))
		return NULL;
	e = SLIST_FIRST(&d->free);
	SLIST_REMOVE_HEAD(&d->free, next);
	e->state = ENTRY_IN_SERVICE;
	e->key = *k;
	LIST_INSERT_HEAD(bucket, e, chain);
	d->in_service++;
	d->counters.entries++;
	return e;
}

static void *
entry_attach(struct drc *d, struct drc_entry *e, void *waiter)
{
	void *replaced = e->waiter;

	assert(waiter != NULL);
	if (replaced == NULL)
		LIST_INSERT_HEAD(&d->attached, e, attached);
	e->waiter = waiter;
	return replaced;
}

static void *
entry_take_waiter(struct drc_entry *e)
{
	void *waiter = e->waiter;

	if (waiter != NULL)
		LIST_REMOVE(e, attached);
	e->waiter = NULL;
	return waiter;
}

static void
entry_replay(struct drc *d, struct drc_entry *e, uint8_t *reply,
	     uint32_t *reply_bytes)
{
	memcpy(reply, e->reply, e->reply_bytes);
	*reply_bytes = e->reply_bytes;
	TAILQ_REMOVE(&d->lru, e, lru);
	TAILQ_INSERT_TAIL(&d->lru, e, lru);
}

enum drc_verdict
/* NOLINTNEXTLINE(readability-function-size): one parameter too many */
drc_begin(struct drc *d, const struct drc_key *key, void *waiter,
	  struct drc_entry **ret_entry, uint8_t *reply, uint32_t *reply_bytes,
	  void **ret_replaced)
{
	struct entry_list *bucket;
	enum drc_verdict v;
	struct drc_entry *e;
	struct key k;

	key_init(&k, key);
	bucket = drc_bucket(d, &k);
	pthread_mutex_lock(&d->lock);
	e = entry_find(bucket, &k);
	if (e != NULL && e->state == ENTRY_FINISHED) {
		entry_replay(d, e, reply, reply_bytes);
		d->counters.hits++;
		v = DRC_REPLAY;
	} else if (e != NULL) {
		*ret_replaced = entry_attach(d, e, waiter);
		d->counters.attached++;
		v = DRC_ATTACHED;
	} else if ((e = entry_start(d, bucket, &k)) != NULL) {
		*ret_entry = e;
		d->counters.misses++;
		v = DRC_NEW;
	} else {
		d->counters.full++;
		v = DRC_FULL;
	}
	pthread_mutex_unlock(&d->lock);
	return v;
}

/* Room for n bytes more; what is in service holds none. */
static bool
drc_make_room(struct drc *d, uint32_t n)
{
	if (n > d->bytes_max)
		return false;
	while (d->counters.bytes > d->bytes_max - n) {
		if (!drc_evict(d))
			return false;
	}
	return true;
}

void *
drc_done(struct drc *d, struct drc_entry *e, const uint8_t *reply,
	 uint32_t reply_bytes)
{
	uint8_t *copy = NULL;
	void *waiter;

	if (reply_bytes <= d->reply_bytes_max)
		copy = malloc(reply_bytes ? reply_bytes : 1);
	if (copy != NULL && reply_bytes != 0)
		memcpy(copy, reply, reply_bytes);
	pthread_mutex_lock(&d->lock);
	assert(e->state == ENTRY_IN_SERVICE);
	waiter = entry_take_waiter(e);
	if (copy != NULL && drc_make_room(d, reply_bytes)) {
		e->state = ENTRY_FINISHED;
		e->reply = copy;
		e->reply_bytes = reply_bytes;
		TAILQ_INSERT_TAIL(&d->lru, e, lru);
		d->in_service--;
		d->counters.bytes += reply_bytes;
		copy = NULL;
	} else {
		entry_release(d, e);
	}
	pthread_mutex_unlock(&d->lock);
	free(copy);
	return waiter;
}

bool
drc_detach(struct drc *d, void *waiter)
{
	struct drc_entry *e;

	pthread_mutex_lock(&d->lock);
	LIST_FOREACH (e, &d->attached, attached) {
		if (e->waiter == waiter)
			break;
	}
	if (e != NULL)
		entry_take_waiter(e);
	pthread_mutex_unlock(&d->lock);
	return e != NULL;
}

void
drc_stats(struct drc *d, struct drc_counters *out)
{
	pthread_mutex_lock(&d->lock);
	*out = d->counters;
	pthread_mutex_unlock(&d->lock);
}
