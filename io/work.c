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

struct crew {
	struct engine *engine;
	pthread_mutex_t lock; /* of what follows; no other lock inside */
	pthread_cond_t work_came;
	pthread_cond_t started_one;
	struct work *first, *last;
	unsigned started;
	int err; /* the first that worker_init returned */
	bool ending;
	/* engine_new's thread only */
	unsigned threads;
	pthread_t thread[];
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

/* NULL: the crew ends and nothing is left. */
static struct work *
crew_next(struct crew *c)
{
	struct work *w;

	pthread_mutex_lock(&c->lock);
	while (!c->first && !c->ending)
		pthread_cond_wait(&c->work_came, &c->lock);
	w = c->first;
	if (w)
		c->first = w->next;
	pthread_mutex_unlock(&c->lock);
	return w;
}

static void *
crew_main(void *arg)
{
	struct crew *c = arg;
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
	while ((w = crew_next(c)) != NULL)
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
	pthread_cond_init(&c->work_came, NULL);
	pthread_cond_init(&c->started_one, NULL);
	while (!err && c->threads < threads) {
		err = engine_thread(&c->thread[c->threads], letter, c->threads,
				    crew_main, c);
		if (!err)
			c->threads++;
	}
	init_err = crew_wait_started(c);
	if (!err)
		err = init_err;
	if (err) {
		crew_free(c);
		return err;
	}
	*ret = c;
	return 0;
}

void
crew_free(struct crew *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->ending = true;
	pthread_cond_broadcast(&c->work_came);
	pthread_mutex_unlock(&c->lock);
	for (unsigned i = 0; i < c->threads; i++)
		pthread_join(c->thread[i], NULL);
	assert(!c->first);
	pthread_cond_destroy(&c->started_one);
	pthread_cond_destroy(&c->work_came);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void
crew_submit(struct crew *c, struct work *w)
{
	assert(w->run && (!w->done || w->reactor));
	w->next = NULL;
	pthread_mutex_lock(&c->lock);
	assert(!c->ending);
	if (c->first)
		c->last->next = w;
	else
		c->first = w;
	c->last = w;
	pthread_cond_signal(&c->work_came);
	pthread_mutex_unlock(&c->lock);
}
