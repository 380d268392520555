/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock service of a server: the lock manager, the calls to its clients, and
 * the watch over hosts, made in an order in which each finds what it needs,
 * tied together, and ended. On the main thread, but for what the lock manager
 * calls, on its callers' threads.
 */
#include "nfsd/locks.h"
#include "nfsd/nlm_callback.h"
#include "nfsd/nsm.h"
#include "nfsd/server.h"

#include <string.h>

struct locks *
server_locks(struct server *s)
{
	return s->locks;
}

struct nlm_callback *
server_callbacks(struct server *s)
{
	return s->callbacks;
}

static void
grant(void *arg, const struct lock_grant *g)
{
	struct server *s = arg;

	nlm_callback_grant(s->callbacks, g);
}

static int
host_first(void *arg, const struct lock_host *h)
{
	struct server *s = arg;

	return nsm_host_first(s->nsm, h);
}

static void
host_last(void *arg, const struct lock_host *h)
{
	struct server *s = arg;

	nsm_host_last(s->nsm, h);
}

/* Whoever had locks may claim them before others take them. */
static void
begin_grace(struct server *s)
{
	unsigned left = nsm_left(s->nsm);

	if (left == 0 || s->conf.grace_s == 0)
		return;
	locks_grace(s->locks, s->conf.grace_s * 1000000000ull);
	log_msg(LOG_NOTICE_,
		"%u client%s had locks: for %u seconds these may be claimed, "
		"and nobody gets another",
		left, left == 1 ? "" : "s", s->conf.grace_s);
}

int
lockd_new(struct server *s)
{
	static const struct locks_ops ops = { .grant = grant,
					      .host_first = host_first,
					      .host_last = host_last };
	int rc = nsm_open(&s->nsm, state_fd(s->state));

	if (rc == 0)
		rc = nlm_callback_new(&s->callbacks, s);
	if (rc == 0)
		rc = locks_new(&s->locks, &ops, s);
	if (rc < 0) {
		log_msg(LOG_ERR_, "cannot serve locks: %s", strerror(-rc));
		return rc;
	}
	locks_exports(s->locks, s->exports);
	begin_grace(s);
	return 0;
}

void
lockd_start(struct server *s)
{
	int rc = nsm_start(s->nsm);

	if (rc < 0)
		log_msg(LOG_WARNING_,
			"cannot tell clients that they have to claim their "
			"locks again: %s",
			strerror(-rc));
}

void
lockd_exports(struct server *s)
{
	locks_exports(s->locks, s->exports);
}

void
lockd_free(struct server *s)
{
	if (s->callbacks != NULL)
		nlm_callback_stop(s->callbacks);
	/* It grants no more, and calls nsm no more, when it is gone. */
	locks_free(s->locks);
	nlm_callback_free(s->callbacks);
	nsm_free(s->nsm);
}
