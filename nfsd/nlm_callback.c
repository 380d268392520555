/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls to the lock managers of clients, which block: on a few threads of their
 * own, made when there is something to send. One struct nlm_callback a server.
 * What is to be sent waits at its host, which has one thread at a time, so that
 * one that does not answer holds up nobody but itself; and it is left alone for
 * longer the longer it does not.
 *
 * Its lock is a leaf; the lock manager is asked without it. What is sent, and
 * when it is over, nlm_message.c knows. The Open Group, XNFS, 10 and 14.
 */
#include "nfsd/nlm_callback.h"

#include "nfsd/locks.h"
#include "nfsd/nlm_message.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define THREADS_MAX   16u
#define FAILING_MAX   8u    /* of them, for hosts that did not answer */
#define ANSWERS_MAX   1024u /* that wait; grants have the manager's limit */
#define AGAIN_NS      (1ull * 1000000000) /* doubles */
#define AGAIN_NS_MAX  (32ull * 1000000000)
#define AGAIN_DOUBLES 5u
#define GRACE_NS      (5ull * 1000000000)  /* the client's own */
#define RES_NS        (10ull * 1000000000) /* until GRANTED_RES comes */

/* A client for whom something waits. */
struct host {
	TAILQ_ENTRY(host) link;
	TAILQ_HEAD(, message_out) messages;
	struct sockaddr_storage client;
	bool busy;    /* has a thread */
	bool failing; /* and had not answered when it got it */
	unsigned failures;
	uint64_t due_ns; /* not before */
};

struct nlm_callback {
	struct server *server;
	pthread_mutex_t lock; /* all below */
	pthread_cond_t changed;
	TAILQ_HEAD(, host) hosts;
	bool ending;
	unsigned answers, idle, threads;
	unsigned failing; /* threads at hosts that did not answer */
	pthread_t thread[THREADS_MAX];
};

/* What waits -------------------------------------------------------------- */

static bool
same_address(const struct sockaddr *a, const struct sockaddr *b)
{
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&a6->sin6_addr, &b6->sin6_addr) &&
	       a6->sin6_scope_id == b6->sin6_scope_id;
}

static struct host *
host_find(struct nlm_callback *c, const struct sockaddr *client)
{
	struct host *h;

	TAILQ_FOREACH (h, &c->hosts, link)
		if (same_address((const struct sockaddr *)&h->client, client))
			return h;
	return NULL;
}

static struct host *
host_get(struct nlm_callback *c, const struct sockaddr *client)
{
	struct host *h = host_find(c, client);

	if (h != NULL)
		return h;
	h = calloc(1, sizeof(*h));
	if (h == NULL)
		return NULL;
	TAILQ_INIT(&h->messages);
	message_address(&h->client, client);
	TAILQ_INSERT_TAIL(&c->hosts, h, link);
	return h;
}

static void
message_free(struct nlm_callback *c, struct host *h, struct message_out *m)
{
	TAILQ_REMOVE(&h->messages, m, link);
	if (m->id == 0)
		c->answers--;
	free(m);
}

static void
host_settle(struct nlm_callback *c, struct host *h)
{
	if (h->busy || !TAILQ_EMPTY(&h->messages))
		return;
	TAILQ_REMOVE(&c->hosts, h, link);
	free(h);
}

/* The first of h's that is due; or *until is not after when one will be. */
static struct message_out *
host_due(const struct host *h, uint64_t now, uint64_t *until)
{
	struct message_out *m;
	uint64_t due;

	TAILQ_FOREACH (m, &h->messages, link) {
		due = m->due_ns > h->due_ns ? m->due_ns : h->due_ns;
		if (m->answered || due <= now)
			return m;
		if (due < *until)
			*until = due;
	}
	return NULL;
}

/* A host that no thread has yet, and a message of its that is due. Those that
 * did not answer come last, and leave some threads to the others. */
static struct host *
next_due(const struct nlm_callback *c, struct message_out **ret,
	 uint64_t *until)
{
	uint64_t now = monotonic_ns();
	struct host *h, *last = NULL;
	struct message_out *m;

	*until = now + AGAIN_NS_MAX;
	TAILQ_FOREACH (h, &c->hosts, link) {
		if (h->busy ||
		    (h->failures > 0 && (last || c->failing >= FAILING_MAX)))
			continue;
		m = host_due(h, now, until);
		if (m == NULL)
			continue;
		*ret = m;
		if (h->failures == 0)
			return h;
		last = h;
	}
	return last;
}

/* With the lock. */
static void
note_sent(struct nlm_callback *c, struct host *h, struct message_out *m,
	  enum message_sent sent)
{
	uint64_t now = monotonic_ns(), wait = AGAIN_NS;

	h->busy = false;
	c->failing -= h->failing;
	/* The others' turn. */
	TAILQ_REMOVE(&c->hosts, h, link);
	TAILQ_INSERT_TAIL(&c->hosts, h, link);
	if (sent == SENT_NOT) {
		if (h->failures < AGAIN_DOUBLES)
			h->failures++;
		wait <<= h->failures;
		h->due_ns = now + (wait < AGAIN_NS_MAX ? wait : AGAIN_NS_MAX);
	} else if (sent == SENT_LOST) {
		h->failures = h->failures > 0 ? h->failures : 1;
	} else {
		h->failures = 0;
	}
	if (sent == SENT_OVER || sent == SENT_LOST) {
		message_free(c, h, m);
	} else if (sent == SENT_WAITS) {
		m->due_ns =
			now + (m->proc == NLMPROC4_GRANTED ? GRACE_NS : RES_NS);
	}
	host_settle(c, h);
}

/* Threads ------------------------------------------------------------------ */

static void *callback_run(void *arg);

/* With the lock. Without a thread it waits for the next that comes. */
static void
wake(struct nlm_callback *c)
{
	if (c->idle > 0) {
		pthread_cond_signal(&c->changed);
		return;
	}
	if (c->threads < THREADS_MAX &&
	    pthread_create(&c->thread[c->threads], NULL, callback_run, c) == 0)
		c->threads++;
}

static void
wait_until(struct nlm_callback *c, uint64_t until)
{
	struct timespec t = { .tv_sec = (time_t)(until / 1000000000),
			      .tv_nsec = (long)(until % 1000000000) };

	c->idle++;
	(void)pthread_cond_timedwait(&c->changed, &c->lock, &t);
	c->idle--;
}

/* A GRANTED_RES or a message of h, dealt with; the lock is let go of. */
static void
serve(struct nlm_callback *c, struct host *h, struct message_out *m)
{
	bool answered = m->answered;
	uint32_t stat = m->stat;
	struct message_out *next;
	enum message_sent sent;
	uint64_t until;

	h->busy = true;
	h->failing = h->failures > 0;
	c->failing += h->failing;
	m->answered = false;
	/* This may take long: let another thread see to what else is due. */
	if (next_due(c, &next, &until) != NULL)
		wake(c);
	pthread_mutex_unlock(&c->lock);
	sent = answered ? message_judge(c->server, m, stat)
			: message_send(c->server,
				       (const struct sockaddr *)&h->client, m,
				       h->failing);
	pthread_mutex_lock(&c->lock);
	note_sent(c, h, m, sent);
}

static void *
callback_run(void *arg)
{
	struct nlm_callback *c = arg;
	struct message_out *m;
	struct host *h;
	uint64_t until;

	pthread_mutex_lock(&c->lock);
	while (!c->ending) {
		h = next_due(c, &m, &until);
		if (h != NULL)
			serve(c, h, m);
		else
			wait_until(c, until);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

int
nlm_callback_new(struct nlm_callback **ret, struct server *s)
{
	struct nlm_callback *c = calloc(1, sizeof(*c));
	pthread_condattr_t attr;

	if (c == NULL)
		return -ENOMEM;
	c->server = s;
	TAILQ_INIT(&c->hosts);
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->changed, &attr);
	pthread_condattr_destroy(&attr);
	*ret = c;
	return 0;
}

void
nlm_callback_stop(struct nlm_callback *c)
{
	unsigned i;

	pthread_mutex_lock(&c->lock);
	c->ending = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	/* None is made any more. */
	for (i = 0; i < c->threads; i++)
		pthread_join(c->thread[i], NULL);
}

static void
host_free(struct host *h)
{
	struct message_out *m, *next;

	for (m = TAILQ_FIRST(&h->messages); m != NULL; m = next) {
		next = TAILQ_NEXT(m, link);
		free(m);
	}
	free(h);
}

void
nlm_callback_free(struct nlm_callback *c)
{
	struct host *h, *next;

	if (c == NULL)
		return;
	for (h = TAILQ_FIRST(&c->hosts); h != NULL; h = next) {
		next = TAILQ_NEXT(h, link);
		host_free(h);
	}
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->changed);
	free(c);
}

/* What comes in ------------------------------------------------------------ */

/* Takes m; false: it is forgotten. */
static bool
enqueue(struct nlm_callback *c, const struct sockaddr *client,
	struct message_out *m)
{
	struct host *h = NULL;

	if (m == NULL)
		return false;
	pthread_mutex_lock(&c->lock);
	if (!c->ending && (m->id != 0 || c->answers < ANSWERS_MAX))
		h = host_get(c, client);
	if (h != NULL) {
		c->answers += m->id == 0;
		TAILQ_INSERT_TAIL(&h->messages, m, link);
		wake(c);
	}
	pthread_mutex_unlock(&c->lock);
	if (h == NULL)
		free(m);
	return h != NULL;
}

void
nlm_callback_answer(struct nlm_callback *c, const struct nlm_peer *to,
		    uint32_t proc, const void *args, uint32_t n)
{
	(void)enqueue(c, to->client, message_new(to, proc, args, n));
}

void
nlm_callback_grant(struct nlm_callback *c, const struct lock_grant *g)
{
	static struct log_limit limit;

	/* It has its lock, and is told so when it asks again. */
	if (!enqueue(c, (const struct sockaddr *)&g->host.client,
		     message_grant(c->server, g)))
		log_limited(&limit, LOG_NOTICE_,
			    "a client is not told that it has a lock");
}

void
nlm_callback_answered(struct nlm_callback *c, const struct sockaddr *client,
		      const struct nlm4_answer *a)
{
	struct message_out *m = NULL;
	struct host *h;
	uint64_t id;

	if (a->cookie.bytes != sizeof(id))
		return;
	memcpy(&id, a->cookie.data, sizeof(id));
	pthread_mutex_lock(&c->lock);
	h = host_find(c, client);
	if (h != NULL)
		TAILQ_FOREACH (m, &h->messages, link)
			if (m->id == id && m->proc == NLMPROC4_GRANTED_MSG)
				break;
	if (m != NULL) {
		m->answered = true;
		m->stat = a->stat;
		h->failures = 0; /* it lives */
		wake(c);
	}
	pthread_mutex_unlock(&c->lock);
}
