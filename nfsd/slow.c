/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slowest calls. The object is struct slow, a shard's: two lists, of the
 * period that runs and of the one before, each with the SLOW_CALLS slowest. Its
 * reactor notes; the mutex, a leaf, is taken only for a call that gets in,
 * which soon is rare. It knows no names.
 */
#include "nfsd/slow.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct period {
	uint64_t begun_ns;
	uint64_t floor_ns; /* the fastest in a full list, else 0 */
	unsigned count;
	struct slow_call call[SLOW_CALLS];
};

struct slow {
	pthread_mutex_t mutex;
	struct period now, before;
};

struct slow *
slow_new(void)
{
	struct slow *s = calloc(1, sizeof(*s));

	if (s != NULL)
		pthread_mutex_init(&s->mutex, NULL);
	return s;
}

void
slow_free(struct slow *s)
{
	if (s == NULL)
		return;
	pthread_mutex_destroy(&s->mutex);
	free(s);
}

bool
slow_wants(const struct slow *s, uint64_t ns, uint64_t now_ns)
{
	return ns > s->now.floor_ns ||
	       now_ns - s->now.begun_ns > SLOW_PERIOD_NS;
}

static struct slow_call *
fastest(struct period *p)
{
	struct slow_call *least = p->call;
	unsigned i;

	for (i = 1; i < p->count; i++)
		if (p->call[i].ns < least->ns)
			least = &p->call[i];
	return least;
}

static void
turn_over(struct slow *s, uint64_t now_ns)
{
	s->before = s->now;
	/* A silence of two periods leaves nothing recent. */
	if (now_ns - s->now.begun_ns > 2 * SLOW_PERIOD_NS)
		s->before.count = 0;
	s->now.begun_ns = now_ns;
	s->now.floor_ns = 0;
	s->now.count = 0;
}

void
slow_note(struct slow *s, const struct slow_call *c, uint64_t now_ns)
{
	struct period *p = &s->now;

	pthread_mutex_lock(&s->mutex);
	if (now_ns - p->begun_ns > SLOW_PERIOD_NS)
		turn_over(s, now_ns);
	if (p->count < SLOW_CALLS)
		p->call[p->count++] = *c;
	else if (c->ns > p->floor_ns)
		*fastest(p) = *c;
	if (p->count == SLOW_CALLS)
		p->floor_ns = fastest(p)->ns;
	pthread_mutex_unlock(&s->mutex);
}

/* A shard without calls does not turn over: what is too old is left out. */
static unsigned
copy(const struct period *p, uint64_t now_ns, struct slow_call *out,
     unsigned max)
{
	unsigned n = 0, i;

	for (i = 0; i < p->count && n < max; i++) {
		const struct slow_call *c = &p->call[i];

		if (c->begin_ns + c->ns + 2 * SLOW_PERIOD_NS >= now_ns)
			out[n++] = *c;
	}
	return n;
}

unsigned
slow_list(struct slow *s, uint64_t now_ns, struct slow_call *out, unsigned max)
{
	unsigned n;

	pthread_mutex_lock(&s->mutex);
	n = copy(&s->now, now_ns, out, max);
	n += copy(&s->before, now_ns, out + n, max - n);
	pthread_mutex_unlock(&s->mutex);
	return n;
}

const char *
slow_stage_name(enum slow_stage stage)
{
	static const char *const names[] = {
		[SLOW_RECEIVE] = "receive", [SLOW_QUEUE] = "queue",
		[SLOW_SPLIT] = "split",     [SLOW_IO] = "io",
		[SLOW_SYNC] = "sync",       [SLOW_REPLY] = "reply",
	};

	assert((unsigned)stage < SLOW_STAGES);
	return names[stage];
}
