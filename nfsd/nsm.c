/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which hosts have locks, and are therefore kept on disk (nsm_list.c) and
 * watched by this machine's rpc.statd, which tells by a callback of the lock
 * manager's program that one has rebooted; and which are to be told that we
 * have (sm.c), so that they claim their locks again. The Open Group, XNFS, 11.
 *
 * A struct nsm is opened at start; its threads, a few while there is anybody to
 * tell, each see to one host at a time, so that those who do not answer hold up
 * none of the others.
 */
#include "nfsd/nsm.h"

#include "nfsd/locks.h"
#include "nfsd/nsm_list.h"
#include "nfsd/sm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#define FIRST_SECONDS 1u /* of a first round, which finds those that live */
#define AGAIN_SECONDS 3u
#define AGAIN_NS      (1ull * 1000000000) /* doubles */
#define AGAIN_NS_MAX  (30ull * 1000000000)
#define GIVE_UP_NS    (900ull * 1000000000)
#define THREADS_MAX   16u

/* A host that is to be told. */
struct untold {
	TAILQ_ENTRY(untold) link;
	struct sockaddr_storage addr, local;
	uint64_t due_ns, wait_ns;
	bool busy;  /* a thread is at it */
	bool moot;  /* it has locks again: it is told no more */
	bool tried; /* once at least */
	char name[];
};

struct nsm {
	struct nsm_list *list;
	char name[LM_MAXSTRLEN + 1]; /* ours */
	unsigned left;
	uint64_t since_ns; /* the threads were started */
	pthread_t thread[THREADS_MAX];
	unsigned threads;
	pthread_mutex_t lock; /* all below; a leaf */
	pthread_cond_t changed;
	TAILQ_HEAD(, untold) untold;
	bool ending;
};

/* Hosts that have locks ------------------------------------------------------
 */

/* It claims its locks, or has taken new ones: to be told of our reboot would
 * make it claim what it has. */
static void
forget_untold(struct nsm *n, const char *host)
{
	struct untold *u;

	pthread_mutex_lock(&n->lock);
	TAILQ_FOREACH (u, &n->untold, link)
		if (strcmp(u->name, host) == 0)
			u->moot = true;
	pthread_cond_signal(&n->changed);
	pthread_mutex_unlock(&n->lock);
}

static void
log_unwatched(const char *host, int rc)
{
	static struct log_limit limit;
	bool none = rc == -ENOENT || rc == -ECONNREFUSED;

	log_limited(&limit, LOG_WARNING_,
		    "%s has locks, and nobody will tell when it reboots: %s; "
		    "nvnfsctl unlock frees what it leaves behind",
		    host,
		    none            ? "no rpc.statd runs here"
		    : rc == -EINVAL ? "rpc.statd does not watch it"
				    : strerror(-rc));
}

int
nsm_host_first(struct nsm *n, const struct lock_host *h)
{
	static struct log_limit limit;
	char host[NSM_NAME_BYTES];
	int kept, watched;

	if (!nsm_name(host, (const struct sockaddr *)&h->client))
		return -EAFNOSUPPORT;
	kept = nsm_list_add(n->list, host, (const struct sockaddr *)&h->local);
	if (kept < 0)
		log_limited(&limit, LOG_ERR_,
			    "cannot keep that %s has locks: %s; it will not be "
			    "told to claim them after a restart",
			    host, strerror(-kept));
	else
		forget_untold(n, host);
	/* Its own reboot concerns what it locks now. */
	watched = sm_watch(n->name, host);
	if (watched < 0)
		log_unwatched(host, watched);
	return kept < 0 ? kept : watched;
}

void
nsm_host_last(struct nsm *n, const struct lock_host *h)
{
	char host[NSM_NAME_BYTES];

	if (!nsm_name(host, (const struct sockaddr *)&h->client))
		return;
	sm_unwatch(n->name, host);
	nsm_list_remove(n->list, host);
}

/* Hosts to be told ---------------------------------------------------------
 */

/* A first round is by UDP only, and short. */
static int
notify(struct nsm *n, const struct untold *u)
{
	struct sm_notify_to to = { .addr = u->addr,
				   .local = u->local,
				   .datagram = true,
				   .seconds = u->tried ? AGAIN_SECONDS
						       : FIRST_SECONDS };
	int rc = sm_notify(n->name, nsm_state(n), &to);

	to.datagram = false;
	if (rc < 0 && u->tried)
		rc = sm_notify(n->name, nsm_state(n), &to);
	return rc;
}

/* Nobody is told any more, and nobody is watched for it, but where it has come
 * back meanwhile. */
static void
untold_end(struct nsm *n, struct untold *u)
{
	nsm_list_told(n->list, u->name);
	if (nsm_list_has(n->list, u->name))
		return;
	sm_unwatch(n->name, u->name);
	if (nsm_list_has(n->list, u->name))
		(void)sm_watch(n->name, u->name);
}

/* With the lock, which is let go of meanwhile. */
static void
untold_serve(struct nsm *n, struct untold *u)
{
	bool moot = u->moot, over;
	int rc = 0;

	u->busy = true;
	pthread_mutex_unlock(&n->lock);
	if (!moot)
		rc = notify(n, u);
	over = rc == 0 || monotonic_ns() - n->since_ns > GIVE_UP_NS;
	if (over && rc < 0)
		log_msg(LOG_WARNING_,
			"%s had locks before the restart and could not be "
			"told to claim them: %s",
			u->name, strerror(-rc));
	if (over)
		untold_end(n, u);
	pthread_mutex_lock(&n->lock);
	u->busy = false;
	u->due_ns = monotonic_ns() + u->wait_ns;
	if (u->tried && u->wait_ns < AGAIN_NS_MAX)
		u->wait_ns *= 2;
	u->tried = true;
	if (over) {
		TAILQ_REMOVE(&n->untold, u, link);
		free(u);
		pthread_cond_broadcast(&n->changed);
	}
}

/* One that is due, or when the first will be. */
static struct untold *
untold_due(const struct nsm *n, uint64_t *until)
{
	uint64_t now = monotonic_ns();
	struct untold *u;

	*until = now + AGAIN_NS_MAX;
	TAILQ_FOREACH (u, &n->untold, link) {
		if (u->busy)
			continue;
		if (u->moot || u->due_ns <= now)
			return u;
		if (u->due_ns < *until)
			*until = u->due_ns;
	}
	return NULL;
}

static void
wait_until(struct nsm *n, uint64_t until)
{
	struct timespec t = { .tv_sec = (time_t)(until / 1000000000),
			      .tv_nsec = (long)(until % 1000000000) };

	(void)pthread_cond_timedwait(&n->changed, &n->lock, &t);
}

static void *
notify_run(void *arg)
{
	struct nsm *n = arg;
	struct untold *u;
	uint64_t until;

	pthread_mutex_lock(&n->lock);
	while (!n->ending && !TAILQ_EMPTY(&n->untold)) {
		u = untold_due(n, &until);
		if (u != NULL)
			untold_serve(n, u);
		else
			wait_until(n, until);
	}
	pthread_mutex_unlock(&n->lock);
	return NULL;
}

/* Start and end ------------------------------------------------------------
 */

static void
untold_new(void *arg, const char *host, const struct sockaddr_storage *local)
{
	struct nsm *n = arg;
	size_t bytes = strlen(host) + 1;
	struct untold *u = calloc(1, sizeof(*u) + bytes);

	if (u == NULL || !nsm_address(host, &u->addr)) {
		free(u); /* the next run will see */
		return;
	}
	memcpy(u->name, host, bytes);
	u->local = *local;
	u->wait_ns = AGAIN_NS;
	TAILQ_INSERT_TAIL(&n->untold, u, link);
	n->left++;
}

int
nsm_open(struct nsm **ret, int state_fd)
{
	struct nsm *n = calloc(1, sizeof(*n));
	pthread_condattr_t attr;
	int rc;

	if (n == NULL)
		return -ENOMEM;
	TAILQ_INIT(&n->untold);
	(void)gethostname(n->name, sizeof(n->name) - 1);
	pthread_mutex_init(&n->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&n->changed, &attr);
	pthread_condattr_destroy(&attr);
	rc = nsm_list_open(&n->list, state_fd);
	if (rc == 0)
		rc = nsm_list_untold(n->list, untold_new, n);
	if (rc < 0) {
		nsm_free(n);
		return rc;
	}
	*ret = n;
	return 0;
}

unsigned
nsm_left(const struct nsm *n)
{
	return n->left;
}

int32_t
nsm_state(const struct nsm *n)
{
	return nsm_list_state(n->list);
}

int
nsm_start(struct nsm *n)
{
	int rc = 0;

	n->since_ns = monotonic_ns();
	while (rc == 0 && n->threads < THREADS_MAX && n->threads < n->left) {
		rc = -pthread_create(&n->thread[n->threads], NULL, notify_run,
				     n);
		if (rc == 0)
			n->threads++;
	}
	return n->threads > 0 ? 0 : rc;
}

void
nsm_free(struct nsm *n)
{
	struct untold *u;
	unsigned i;

	if (n == NULL)
		return;
	pthread_mutex_lock(&n->lock);
	n->ending = true;
	pthread_cond_broadcast(&n->changed);
	pthread_mutex_unlock(&n->lock);
	for (i = 0; i < n->threads; i++)
		pthread_join(n->thread[i], NULL);
	while ((u = TAILQ_FIRST(&n->untold)) != NULL) {
		TAILQ_REMOVE(&n->untold, u, link);
		free(u);
	}
	nsm_list_close(n->list);
	pthread_mutex_destroy(&n->lock);
	pthread_cond_destroy(&n->changed);
	free(n);
}
