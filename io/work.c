/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker threads for calls that block. A crew is one pool: a queue, served
 * first come, first served by a fixed number of threads that engine_new starts
 * and engine_free ends. run() belongs to the worker; then the work goes back
 * as a message to the reactor whose done() it wants.
 *
 * It does not know what the calls are.
 */
#include "io/reactor.h"

#include <errno.h>
#include <stdlib.h>

struct crew_thread {
	struct crew *crew;
	pthread_t thread;
	/* under the crew's lock */
	pthread_cond_t work_came;
	struct crew_thread *next_idle;
	bool idle;
};

struct crew {
	struct engine *engine;
	pthread_mutex_t lock; /* of what follows; no other lock inside */
	pthread_cond_t started_one;
	struct crew_thread *idle; /* who came last is on top */
	struct work *first, *last;
	unsigned started;
	int err; /* the first that worker_init returned */
	bool ending;
	/* engine_new's thread only */
	unsigned threads;
	struct crew_thread thread[];
};

static void
work_done(struct message *m)
{
	struct work *w = container_of(m, struct work, msg);

	w->done(w);
}

void
work_tell(struct work *w)
{
	w->msg.run = work_done;
	if (w->quiet)
		reactor_post_quiet(w->reactor, &w->msg);
	else
		reactor_post(w->reactor, &w->msg);
}

static void
work_run(struct work *w)
{
	/* Without done, run may free the work. */
	bool wants_done = w->done != NULL;

	w->run(w);
	if (wants_done)
		work_tell(w);
}

static void
crew_idle(struct crew *c, struct crew_thread *t)
{
	t->idle = true;
	t->next_idle = c->idle;
	c->idle = t;
	while (t->idle)
		pthread_cond_wait(&t->work_came, &c->lock);
}

/* With the lock: who has been idle for the shortest time, and has the warmest
 * caches; to be signalled without the lock, which it wants. */
static struct crew_thread *
crew_rouse(struct crew *c)
{
	struct crew_thread *t = c->idle;

	if (t) {
		c->idle = t->next_idle;
		t->idle = false;
	}
	return t;
}

/* NULL: the crew ends and nothing is left. */
static struct work *
crew_next(struct crew *c, struct crew_thread *t)
{
	struct work *w;

	pthread_mutex_lock(&c->lock);
	while (!c->first && !c->ending)
		crew_idle(c, t);
	w = c->first;
	if (w)
		c->first = w->next;
	pthread_mutex_unlock(&c->lock);
	return w;
}

static void *
crew_main(void *arg)
{
	struct crew_thread *t = arg;
	struct crew *c = t->crew;
	const struct engine_config *config = engine_config(c->engine);
	struct work *w;
	int err = 0;

	engine_thread_flushes();
	if (config->worker_init)
		err = config->worker_init(config->arg);
	pthread_mutex_lock(&c->lock);
	if (!c->err)
		c->err = err;
	c->started++;
	pthread_cond_signal(&c->started_one);
	pthread_mutex_unlock(&c->lock);
	while ((w = crew_next(c, t)) != NULL)
		work_run(w);
	return NULL;
}

static int
crew_wait_started(struct crew *c)
{
	int err;

	pthread_mutex_lock(&c->lock);
	while (c->started < c->threads)
		pthread_cond_wait(&c->started_one, &c->lock);
	err = c->err;
	pthread_mutex_unlock(&c->lock);
	return err;
}

int
crew_new(struct crew **ret, struct engine *e, char letter, unsigned threads)
{
	struct crew *c;
	int err = 0, init_err;

	assert(threads > 0);
	c = calloc(1, sizeof(*c) + threads * sizeof(c->thread[0]));
	if (!c)
		return -ENOMEM;
	c->engine = e;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->started_one, NULL);
	while (!err && c->threads < threads) {
		struct crew_thread *t = &c->thread[c->threads];

		t->crew = c;
		pthread_cond_init(&t->work_came, NULL);
		err = engine_thread(&t->thread, letter, c->threads, crew_main,
				    t);
		if (!err)
			c->threads++;
		else
			pthread_cond_destroy(&t->work_came);
	}
	init_err = crew_wait_started(c);
	if (!err)
		err = init_err;
	if (err) {
		crew_end(c);
		crew_free(c);
		return err;
	}
	*ret = c;
	return 0;
}

void
crew_end(struct crew *c)
{
	struct crew_thread *t;

	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->ending = true;
	while ((t = crew_rouse(c)) != NULL)
		pthread_cond_signal(&t->work_came);
	pthread_mutex_unlock(&c->lock);
	for (unsigned i = 0; i < c->threads; i++)
		pthread_join(c->thread[i].thread, NULL);
	assert(!c->first);
}

void
crew_free(struct crew *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < c->threads; i++)
		pthread_cond_destroy(&c->thread[i].work_came);
	pthread_cond_destroy(&c->started_one);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void
crew_submit(struct crew *c, struct work *w)
{
	struct crew_thread *t;

	assert(w->run && (!w->done || w->reactor));
	w->next = NULL;
	pthread_mutex_lock(&c->lock);
	assert(!c->ending);
	if (c->first)
		c->last->next = w;
	else
		c->first = w;
	c->last = w;
	t = crew_rouse(c);
	pthread_mutex_unlock(&c->lock);
	if (t)
		pthread_cond_signal(&t->work_came);
}
