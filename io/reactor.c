/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop of one reactor and the mailbox through which other threads reach
 * it. A reactor is made and closed by engine.c's thread; in between it belongs
 * to its own.
 *
 * A turn: tick, messages, what waited for room, wait, act upon completions.
 *
 * The mailbox is a stack that posters push onto and the reactor takes as a
 * whole. No wake-up is lost: the reactor says that it sleeps before it looks
 * at the mailbox a last time, a poster pushes before it looks whether the
 * reactor sleeps, all in one order (seq_cst). The eventfd is written only by
 * the one poster that takes the sleeping mark away.
 */
#include "io/reactor.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

static _Thread_local const struct reactor *current;

uint64_t
clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

bool
reactor_is_current(const struct reactor *r)
{
	return current == r;
}

unsigned
reactor_index(const struct reactor *r)
{
	return r->index;
}

struct engine *
reactor_engine(const struct reactor *r)
{
	return r->engine;
}

struct buf_pool *
reactor_pool(struct reactor *r)
{
	return r->pool;
}

struct reactor_counters *
reactor_counters(struct reactor *r)
{
	return &r->counters;
}

void *
reactor_user(const struct reactor *r)
{
	return r->user;
}

uint64_t
reactor_now_ns(const struct reactor *r)
{
	return r->now_ns;
}

void
reactor_wake(struct reactor *r)
{
	uint64_t one = 1;
	ssize_t n;

	do
		n = write(r->wake_fd, &one, sizeof(one));
	while (n < 0 && errno == EINTR);
	assert(n == sizeof(one));
}

void
reactor_post(struct reactor *r, struct message *m)
{
	struct message *head = atomic_load(&r->mailbox);

	do
		m->next = head;
	while (!atomic_compare_exchange_weak(&r->mailbox, &head, m));
	if (atomic_load(&r->sleeping) && atomic_exchange(&r->sleeping, false))
		reactor_wake(r);
}

/* Run what was posted until now, oldest first; what that posts is for the next
 * turn. */
static void
mailbox_run(struct reactor *r)
{
	struct message *m, *next, *oldest = NULL;

	if (!atomic_load(&r->mailbox))
		return;
	for (m = atomic_exchange(&r->mailbox, NULL); m; m = next) {
		next = m->next;
		m->next = oldest;
		oldest = m;
	}
	for (m = oldest; m; m = next) {
		next = m->next;
		m->run(m); /* may free m, or post it anew */
	}
}

static bool
reactor_ticks(const struct reactor *r)
{
	return !r->stopping && engine_config(r->engine)->reactor_tick;
}

static void
reactor_tick(struct reactor *r)
{
	r->now_ns = clock_ns();
	if (!reactor_ticks(r) || r->now_ns < r->tick_ns)
		return;
	r->tick_ns = r->now_ns + NS_PER_S;
	engine_config(r->engine)->reactor_tick(r);
}

static uint64_t
reactor_sleep_ns(const struct reactor *r)
{
	uint64_t ns = ops_sleep_ns(r), tick;

	if (!reactor_ticks(r))
		return ns;
	tick = r->tick_ns > r->now_ns ? r->tick_ns - r->now_ns : 0;
	return ns < tick ? ns : tick;
}

static void
reactor_wait(struct reactor *r)
{
	uint64_t ns = reactor_sleep_ns(r);

	if (ns > 0) {
		atomic_store(&r->sleeping, true);
		if (atomic_load(&r->mailbox))
			ns = 0;
	}
	r->backend->wait(r, ns);
	atomic_store(&r->sleeping, false);
}

static bool
reactor_is_done(const struct reactor *r)
{
	return r->stopping && r->ops.live == 0 && !atomic_load(&r->mailbox);
}

static void
reactor_loop(struct reactor *r)
{
	for (;;) {
		reactor_tick(r);
		mailbox_run(r);
		if (reactor_is_done(r))
			break;
		ops_start_waiting(r);
		reactor_wait(r);
		ops_run(r);
	}
}

struct reactor_start {
	struct reactor *reactor;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool told;
	int err;
};

static void
reactor_tell(struct reactor_start *s, int err)
{
	pthread_mutex_lock(&s->lock);
	s->err = err;
	s->told = true;
	pthread_cond_signal(&s->cond);
	pthread_mutex_unlock(&s->lock);
}

static void *
reactor_main(void *arg)
{
	struct reactor_start *s = arg;
	struct reactor *r = s->reactor;
	const struct engine_config *config = engine_config(r->engine);
	int err;

	current = r;
	engine_thread_flushes();
	err = r->backend->enter(r);
	if (err < 0) {
		reactor_tell(s, err);
		return NULL;
	}
	r->now_ns = clock_ns();
	r->tick_ns = r->now_ns + NS_PER_S;
	if (config->reactor_init)
		r->user = config->reactor_init(r, config->arg);
	reactor_tell(s, 0); /* s is gone now */
	reactor_loop(r);
	if (config->reactor_fini)
		config->reactor_fini(r);
	r->backend->leave(r);
	return NULL;
}

int
reactor_start(struct reactor *r)
{
	struct reactor_start s = { .reactor = r };
	int err;

	pthread_mutex_init(&s.lock, NULL);
	pthread_cond_init(&s.cond, NULL);
	err = engine_thread(&r->thread, 'r', r->index, reactor_main, &s);
	if (err)
		goto out;
	pthread_mutex_lock(&s.lock);
	while (!s.told)
		pthread_cond_wait(&s.cond, &s.lock);
	err = s.err;
	pthread_mutex_unlock(&s.lock);
	if (err)
		pthread_join(r->thread, NULL);
	else
		r->started = true;
out:
	pthread_cond_destroy(&s.cond);
	pthread_mutex_destroy(&s.lock);
	return err;
}

static void
reactor_stop_message(struct message *m)
{
	struct reactor *r = container_of(m, struct reactor, stop);

	ops_assert_cancelled(r);
	r->stopping = true;
}

void
reactor_stop(struct reactor *r)
{
	if (!r->started)
		return;
	r->stop.run = reactor_stop_message;
	reactor_post(r, &r->stop);
}

void
reactor_join(struct reactor *r)
{
	if (!r->started)
		return;
	pthread_join(r->thread, NULL);
	r->started = false;
	assert(!atomic_load(&r->mailbox));
}

int
reactor_open(struct reactor **ret, struct engine *e, unsigned index,
	     const struct backend *backend, size_t pool_bytes)
{
	struct reactor *r;
	int err;

	r = aligned_alloc(_Alignof(struct reactor), sizeof(*r));
	if (!r)
		return -ENOMEM;
	*r = (struct reactor){ .engine = e,
			       .index = index,
			       .backend = backend };
	r->wake_fd = eventfd(0, EFD_CLOEXEC);
	err = r->wake_fd < 0 ? -errno : 0;
	if (!err)
		err = ops_open(r);
	if (!err)
		err = buf_pool_new(&r->pool, r, pool_bytes);
	if (!err)
		err = backend->open(r);
	if (err) {
		reactor_close(r);
		return err;
	}
	*ret = r;
	return 0;
}

void
reactor_close(struct reactor *r)
{
	if (!r)
		return;
	assert(!r->started);
	r->backend->close(r);
	ops_close(r);
	buf_pool_free(r->pool);
	if (r->wake_fd >= 0)
		close(r->wake_fd);
	free(r);
}
