/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts and owners of locks. A struct lock_peer is made with the first request
 * of an address; once it has had a lock it is watched (host_first), until it
 * has had nothing for a while: a program that locks and unlocks all day costs
 * one SM_MON, not one a lock. A struct lock_owner is there while it has
 * anything. What they have is in the files; here it is counted.
 */
#include "nfsd/lock_manager.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Addresses ---------------------------------------------------------------- */

static void
key_make(struct lock_peer_key *key, const struct sockaddr *a)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)a;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a;

	memset(key, 0, sizeof(*key));
	if (a->sa_family == AF_INET) {
		key->address[10] = key->address[11] = 0xff;
		memcpy(key->address + 12, &v4->sin_addr, 4);
	} else if (a->sa_family == AF_INET6) {
		memcpy(key->address, &v6->sin6_addr, sizeof(key->address));
		if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr))
			key->scope = v6->sin6_scope_id;
	}
}

void
lock_address_copy(struct sockaddr_storage *to, const struct sockaddr *from)
{
	memset(to, 0, sizeof(*to));
	if (from->sa_family == AF_INET)
		memcpy(to, from, sizeof(struct sockaddr_in));
	else if (from->sa_family == AF_INET6)
		memcpy(to, from, sizeof(struct sockaddr_in6));
}

/* Tables ------------------------------------------------------------------- */

/* NOLINTBEGIN: uthash's macros */
struct lock_peer *
lock_peer_find(struct locks *l, const struct sockaddr *client)
{
	struct lock_peer_key key;
	struct lock_peer *p;

	key_make(&key, client);
	HASH_FIND(hh, l->peers, &key, sizeof(key), p);
	return p;
}

static bool
peer_add(struct locks *l, struct lock_peer *p)
{
	HASH_ADD(hh, l->peers, key, sizeof(p->key), p);
	return p->hh.tbl != NULL;
}

static void
peer_remove(struct locks *l, struct lock_peer *p)
{
	HASH_DEL(l->peers, p);
	free(p);
}

static struct lock_owner *
owner_of(struct lock_peer *p, const struct lock_owner *key)
{
	struct lock_owner *o;

	HASH_FIND(hh, p->owners, key->key, key->key_bytes, o);
	return o;
}

static bool
owner_add(struct lock_peer *p, struct lock_owner *o)
{
	HASH_ADD_KEYPTR(hh, p->owners, o->key, o->key_bytes, o);
	return o->hh.tbl != NULL;
}

static void
owner_remove(struct lock_owner *o)
{
	HASH_DEL(o->peer->owners, o);
	free(o);
}

unsigned
lock_peers_count(const struct locks *l)
{
	return HASH_COUNT(l->peers);
}
/* NOLINTEND */

/* Owners ------------------------------------------------------------------- */

/* Not in the table. NULL: no memory. */
static struct lock_owner *
owner_new(struct lock_peer *p, const struct lock_request *rq, bool share)
{
	const struct nlm_netobj *oh = &rq->oh, *name = &rq->caller_name;
	uint32_t svid = share ? 0 : rq->svid;
	uint32_t key_bytes = 1 + (uint32_t)sizeof(svid) + oh->bytes;
	struct lock_owner *o =
		calloc(1, sizeof(*o) + key_bytes + name->bytes + 1);

	if (!o)
		return NULL;
	o->peer = p;
	TAILQ_INIT(&o->waits);
	o->key_bytes = key_bytes;
	o->key[0] = share;
	memcpy(o->key + 1, &svid, sizeof(svid));
	o->svid = svid;
	o->oh = o->key + 1 + sizeof(svid);
	o->oh_bytes = oh->bytes;
	if (oh->bytes > 0)
		memcpy(o->key + 1 + sizeof(svid), oh->data, oh->bytes);
	o->name = (char *)o->key + key_bytes;
	if (name->bytes > 0)
		memcpy(o->name, name->data, name->bytes);
	return o;
}

struct lock_owner *
lock_owner_find(struct lock_peer *p, const struct lock_request *rq, bool share)
{
	struct lock_owner *key = owner_new(p, rq, share), *o;

	if (!key)
		return NULL;
	o = owner_of(p, key);
	free(key);
	if (o)
		o->pins++;
	return o;
}

struct lock_owner *
lock_owner_get(struct lock_peer *p, const struct lock_request *rq, bool share)
{
	struct lock_owner *o = owner_new(p, rq, share), *there;

	if (!o)
		return NULL;
	there = owner_of(p, o);
	if (there || !owner_add(p, o)) {
		free(o);
		o = there;
	}
	if (o) {
		o->pins++;
		/* It was, where a call had it while all that it had was taken;
		 * what it takes from now on is its own. */
		o->doomed = false;
	}
	return o;
}

void
lock_owner_settle(struct lock_owner *o)
{
	if (o->pins == 0 && o->ranges == 0 && o->shares == 0 &&
	    TAILQ_EMPTY(&o->waits))
		owner_remove(o);
}

void
lock_owner_unpin(struct lock_owner *o)
{
	o->pins--;
	lock_owner_settle(o);
}

/* Hosts -------------------------------------------------------------------- */

static bool
peer_is_idle(const struct lock_peer *p)
{
	return p->pins == 0 && p->ranges == 0 && p->waits == 0 &&
	       p->shares == 0 && !p->owners;
}

/* Room for one more host: one goes that has nothing, and that nobody was
 * told of. */
static bool
peers_have_room(struct locks *l)
{
	struct lock_peer *p, *next;

	if (lock_peers_count(l) < LOCKS_HOSTS_MAX)
		return true;
	for (p = l->peers; p; p = next) {
		next = p->hh.next;
		if (peer_is_idle(p) && !p->told)
			peer_remove(l, p);
	}
	return lock_peers_count(l) < LOCKS_HOSTS_MAX;
}

static struct lock_peer *
peer_new(struct locks *l, const struct sockaddr *client)
{
	struct lock_peer *p;

	if (!peers_have_room(l))
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	key_make(&p->key, client);
	if (peer_add(l, p)) {
		pthread_cond_broadcast(&l->changed); /* there is what to tick */
		return p;
	}
	free(p);
	return NULL;
}

/* What its latest request says of it. */
static void
peer_note(struct lock_peer *p, const struct lock_request *rq)
{
	uint32_t n = rq->caller_name.bytes;

	lock_address_copy(&p->host.client, rq->client);
	lock_address_copy(&p->host.local, rq->local);
	if (n > LM_MAXSTRLEN)
		n = LM_MAXSTRLEN;
	if (n > 0)
		memcpy(p->host.name, rq->caller_name.data, n);
	p->host.name[n] = '\0';
	p->used_ns = monotonic_ns();
}

/* The lock is left meanwhile. */
static void
peer_watch(struct locks *l, struct lock_peer *p)
{
	struct lock_host host = p->host;
	int r;

	p->busy = p->told = true;
	pthread_mutex_unlock(&l->lock);
	r = l->ops->host_first(l->arg, &host);
	pthread_mutex_lock(&l->lock);
	p->busy = false;
	p->watched = r == 0;
	p->watch_again_ns = monotonic_ns() + LOCKS_HOST_AGAIN_NS;
	pthread_cond_broadcast(&l->changed);
}

/* Until it is watched, or that is known not to work. 0 or -EAGAIN. */
static int
peer_see_watched(struct locks *l, struct lock_peer *p, bool may_block)
{
	while (!p->watched &&
	       (p->busy || monotonic_ns() >= p->watch_again_ns)) {
		if (!may_block)
			return -EAGAIN;
		if (p->busy)
			pthread_cond_wait(&l->changed, &l->lock);
		else
			peer_watch(l, p);
	}
	return 0;
}

int
lock_peer_get(struct locks *l, const struct lock_request *rq,
	      struct lock_peer **ret)
{
	struct lock_peer *p = lock_peer_find(l, rq->client);
	int r = 0;

	if (!p)
		p = peer_new(l, rq->client);
	if (!p)
		return NLM4_DENIED_NOLOCKS;
	p->pins++;
	peer_note(p, rq);
	if (rq->monitored)
		r = peer_see_watched(l, p, rq->may_block);
	if (r < 0)
		lock_peer_put(p);
	else
		*ret = p;
	return r;
}

void
lock_peer_put(struct lock_peer *p)
{
	p->pins--;
}

/* Nothing has been heard of it for long. The lock is left for a while. */
static void
peer_leave(struct locks *l, struct lock_peer *p)
{
	struct lock_host host = p->host;

	if (p->told) {
		p->told = p->watched = false;
		p->busy = true;
		pthread_mutex_unlock(&l->lock);
		l->ops->host_last(l->arg, &host);
		pthread_mutex_lock(&l->lock);
		p->busy = false;
		p->watch_again_ns = 0;
		pthread_cond_broadcast(&l->changed);
	}
	/* Somebody may have come for it. */
	if (peer_is_idle(p))
		peer_remove(l, p);
}

static struct lock_peer *
peer_to_leave(struct locks *l, uint64_t now_ns)
{
	uint64_t idle_ns = LOCKS_HOST_IDLE_NS;
	struct lock_peer *p;

	/* Make room in time. */
	if (lock_peers_count(l) > LOCKS_HOSTS_MAX / 2)
		idle_ns = LOCKS_TICK_NS;
	for (p = l->peers; p; p = p->hh.next)
		if (peer_is_idle(p) && !p->busy &&
		    now_ns >= p->used_ns + idle_ns)
			return p;
	return NULL;
}

static void
try_waits(struct locks *l, struct lock_file *f, void *arg)
{
	f->pins++;
	lock_waits_poll(l, f);
	lock_file_put(l, f);
}

void
locks_tick(struct locks *l, uint64_t now_ns)
{
	struct lock_peer *p;

	/* What only a local process is in the way of: nothing tells when it is
	 * not any more. */
	if (l->waits > 0)
		lock_files_each(l, try_waits, NULL);
	while (!l->stop && (p = peer_to_leave(l, now_ns)) != NULL)
		peer_leave(l, p);
}

void
lock_peers_free(struct locks *l)
{
	struct lock_peer *p, *next;

	for (p = l->peers; p; p = next) {
		next = p->hh.next;
		peer_remove(l, p);
	}
}
