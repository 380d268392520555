/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shard: what the server has on one reactor: its connections, its call
 * slots, its cache of permissions. Made and ended on the reactor's thread by
 * the engine's callbacks; other threads reach it by messages only.
 */
#include "nfsd/server.h"
#include "nfsd/slow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void
shard_drained(struct shard *s)
{
	struct server *srv = s->server;

	if (!s->stopping || s->drained || s->conn_count > 0)
		return;
	s->drained = true;
	pthread_mutex_lock(&srv->lock);
	srv->shards_drained++;
	pthread_cond_signal(&srv->drained);
	pthread_mutex_unlock(&srv->lock);
}

static void
wake_run(struct message *m)
{
	struct shard *s = container_of(m, struct shard, wake);
	struct conn *c;

	s->waking = false;
	while (s->free_count > 0 && (c = TAILQ_FIRST(&s->starved)) != NULL) {
		TAILQ_REMOVE(&s->starved, c, starved_link);
		c->is_starved = false;
		stat_add(&s->stats.stall_slot_ns,
			 reactor_now_ns(s->reactor) - c->starved_ns);
		conn_run(c);
	}
	/* The others must not so much as look at the first: at the end it may
	 * be gone before them. Their places are taken at its next tick. */
	if (reactor_index(s->reactor) == 0)
		listen_resume(s->server);
	shard_drained(s);
}

/* By message, so that whoever freed something is done with it first. */
void
shard_wake(struct shard *s)
{
	if (s->waking)
		return;
	s->waking = true;
	reactor_post(s->reactor, &s->wake);
}

/* Reactor 0 accepts for all. */
bool
shard_serves_one(const struct shard *s)
{
	return s->conn_count == 1 && reactor_index(s->reactor) != 0;
}

bool
shard_starving(const struct shard *s)
{
	return !TAILQ_EMPTY(&s->starved);
}

static void
stop_run(struct message *m)
{
	struct shard *s = container_of(m, struct shard, stop);
	struct conn *c, *next;

	s->stopping = true;
	if (reactor_index(s->reactor) == 0)
		listen_stop(s->server);
	for (c = TAILQ_FIRST(&s->conns); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		conn_drain(c);
	}
	shard_drained(s);
}

static void
force_run(struct message *m)
{
	struct shard *s = container_of(m, struct shard, force);
	struct conn *c, *next;

	for (c = TAILQ_FIRST(&s->conns); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		conn_end(c);
	}
}

void
shard_stop_rest(struct server *s)
{
	unsigned i;

	for (i = 1; i < s->shards; i++)
		reactor_post(s->shard[i]->reactor, &s->shard[i]->stop);
}

void *
shard_init(struct reactor *r, void *server)
{
	struct server *srv = server;
	struct shard *s = calloc(1, sizeof(*s));
	unsigned i;

	if (s == NULL)
		return NULL;
	s->magic = SHARD_MAGIC;
	s->server = srv;
	s->reactor = r;
	TAILQ_INIT(&s->conns);
	TAILQ_INIT(&s->starved);
	s->wake.run = wake_run;
	s->stop.run = stop_run;
	s->force.run = force_run;
	drain_init(s);
	s->perms = perm_cache_new();
	s->latency = latency_new();
	s->slow = slow_new();
	/* Beyond those present from the start (see process.c) touched only as
	 * far as it is used: the free slots are a stack. */
	s->calls = mmap(NULL, SHARD_CALLS * sizeof(*s->calls),
			PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);
	s->free_calls = calloc(SHARD_CALLS, sizeof(*s->free_calls));
	if (s->perms == NULL || s->latency == NULL || s->slow == NULL ||
	    s->calls == MAP_FAILED || s->free_calls == NULL)
		abort(); /* at start, and nothing else would do */
	for (i = 0; i < SHARD_CALLS; i++)
		s->free_calls[i] = (uint16_t)(SHARD_CALLS - 1 - i);
	s->free_count = SHARD_CALLS;
	memset(s->calls, 0, SHARD_CALLS_PRESENT * sizeof(*s->calls));
	if (identity_reactor_init() < 0)
		log_msg(LOG_WARNING_, "cannot drop a reactor's capabilities: "
				      "quotas and setuid bits may not hold");
	assert(reactor_index(r) < CONF_THREADS_MAX);
	srv->shard[reactor_index(r)] = s;
	return s;
}

void
shard_tick(struct reactor *r)
{
	struct shard *s = reactor_user(r);
	struct conn *c, *next;

	for (c = TAILQ_FIRST(&s->conns); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		conn_tick(c);
	}
	/* Once stopping, the files are closed by whoever stops, and the engine
	 * takes its parts down while reactors still tick. */
	if (reactor_index(r) == 0 && !s->stopping) {
		listen_resume(s->server);
		/* The server may not have been given its engine yet. */
		file_expire(reactor_engine(r));
		device_refresh(reactor_engine(r));
	}
}

void
shard_fini(struct reactor *r)
{
	struct shard *s = reactor_user(r);

	assert(s->magic == SHARD_MAGIC && TAILQ_EMPTY(&s->conns));
	assert(s->free_count == SHARD_CALLS);
	munmap(s->calls, SHARD_CALLS * sizeof(*s->calls));
	free(s->free_calls);
	perm_cache_free(s->perms);
	latency_free(s->latency);
	slow_free(s->slow);
	free(s);
}
