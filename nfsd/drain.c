/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draining: no new connections, those that are there end when their calls in
 * service have been answered, and then everything is synced; until it is
 * resumed. The server then holds nothing that is not on its devices, and a
 * client waits for it as for one that is stopped. Any thread asks, by messages;
 * server.c's stop is its own matter and goes through all the same.
 */
#include "nfsd/server.h"

static void
drain_run(struct message *m)
{
	struct shard *s = container_of(m, struct shard, drain);
	struct conn *c, *next;

	s->draining_posted = false;
	if (!s->server->draining) {
		listen_resume(s->server); /* of the first shard only */
		return;
	}
	if (reactor_index(s->reactor) == 0)
		listen_pause(s->server);
	for (c = TAILQ_FIRST(&s->conns); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		conn_drain(c);
	}
}

void
drain_init(struct shard *s)
{
	s->drain.run = drain_run;
}

/* A message is posted once at a time. */
static void
post_all(struct server *s)
{
	unsigned i;

	for (i = 0; i < s->shards; i++)
		if (!atomic_exchange(&s->shard[i]->draining_posted, true))
			reactor_post(s->shard[i]->reactor, &s->shard[i]->drain);
}

void
drain_begin(struct server *s)
{
	s->draining = true;
	post_all(s);
}

void
drain_end(struct server *s)
{
	s->draining = false;
	post_all(s);
}

unsigned
drain_left(const struct server *s)
{
	unsigned i, n = 0;

	for (i = 0; i < s->shards; i++)
		n += s->shard[i]->conn_count;
	return n;
}
