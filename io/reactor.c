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
 * the one poster that takes the sleeping mark away. A quiet message wakes a
 * reactor only where somebody there hungers for what it brings; the same order
 * holds for that mark.
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

static void
mailbox_push(struct reactor *r, struct message *m)
{
	struct message *head = atomic_load(&r->mailbox);

	do
		m->next = head;
	while (!atomic_compare_exchange_weak(&r->mailbox, &head, m));
}

static void
reactor_rouse(struct reactor *r)
{
	if (atomic_load(&r->sleeping) && atomic_exchange(&r->sleeping, false))
		reactor_wake(r);
}

void
reactor_post(struct reactor *r, struct message *m)
{
	mailbox_push(r, m);
	reactor_rouse(r);
}

void
reactor_post_quiet(struct reactor *r, struct message *m)
{
	mailbox_push(r, m);
	if (atomic_load(&r->hungry) > 0)
		reactor_rouse(r);
}

void
reactor_hunger(struct reactor *r, int n)
{
	assert(reactor_is_current(r));
	assert(n > 0 || atomic_load(&r->hungry) >= (unsigned)-n);
	atomic_fetch_add(&r->hungry, (unsigned)n);
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
	r->now_ns = clock_ns();
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

static void
phase_move(struct reactor *r, enum reactor_phase phase)
{
	pthread_mutex_lock(&r->phase_lock);
	r->phase = phase;
	pthread_cond_broadcast(&r->phase_moved);
	pthread_mutex_unlock(&r->phase_lock);
}

/* Wait until the phase is another one; returns it. */
static enum reactor_phase
phase_leave(struct reactor *r, enum reactor_phase from)
{
	enum reactor_phase now;

	pthread_mutex_lock(&r->phase_lock);
	while (r->phase == from)
		pthread_cond_wait(&r->phase_moved, &r->phase_lock);
	now = r->phase;
	pthread_mutex_unlock(&r->phase_lock);
	return now;
}

static void *
reactor_main(void *arg)
{
	struct reactor *r = arg;
	const struct engine_config *config = engine_config(r->engine);

	current = r;
	engine_thread_flushes();
	r->enter_error = r->backend->enter(r);
	phase_move(r, REACTOR_ENTERED);
	if (r->enter_error)
		return NULL;
	if (phase_leave(r, REACTOR_ENTERED) == REACTOR_RUNS) {
		r->now_ns = clock_ns();
		r->tick_ns = r->now_ns + NS_PER_S;
		if (config->reactor_init)
			r->user = config->reactor_init(r, config->arg);
		r->backend->settle(r);
		phase_move(r, REACTOR_LOOPS);
		reactor_loop(r);
		if (config->reactor_fini)
			config->reactor_fini(r);
	}
	r->backend->leave(r);
	return NULL;
}

int
reactor_start(struct reactor *r)
{
	int err = engine_thread(&r->thread, 'r', r->index, reactor_main, r);

	if (err)
		return err;
	phase_leave(r, REACTOR_NEW);
	r->started = true;
	if (r->enter_error)
		reactor_join(r);
	return r->enter_error;
}

void
reactor_run(struct reactor *r)
{
	phase_move(r, REACTOR_RUNS);
	phase_leave(r, REACTOR_RUNS);
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
	if (r->phase == REACTOR_ENTERED) { /* another did not start */
		phase_move(r, REACTOR_QUITS);
		return;
	}
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
	pthread_mutex_init(&r->phase_lock, NULL);
	pthread_cond_init(&r->phase_moved, NULL);
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
	pthread_cond_destroy(&r->phase_moved);
	pthread_mutex_destroy(&r->phase_lock);
	free(r);
}
