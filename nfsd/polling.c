/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the configuration wants of polling (sqpoll, busy-poll, iopoll): what
 * became of it at the start, told in the log, and whether a reload wants it
 * otherwise. Main thread. How it is done is the engine's (io/ring_setup.c).
 */
#include "nfsd/server.h"

#include <errno.h>
#include <string.h>

static void
log_way(const char *what, int error)
{
	if (error == -EOPNOTSUPP)
		log_msg(LOG_WARNING_, "%s is not to be had without io_uring",
			what);
	else if (error != 0)
		log_msg(LOG_WARNING_,
			"%s is refused by the kernel (%s): served without it",
			what, strerror(-error));
	else
		log_msg(LOG_NOTICE_, "%s is in use", what);
}

void
polling_log(const struct conf *c, const struct engine_facts *f)
{
	if (c->sqpoll)
		log_way("sqpoll", f->sqpoll_error);
	if (c->busy_poll_us > 0)
		log_way("busy-poll", f->busy_poll_error);
	if (c->iopoll)
		log_way("iopoll", f->iopoll_error);
}

bool
polling_same(const struct conf *a, const struct conf *b)
{
	return a->sqpoll == b->sqpoll && a->iopoll == b->iopoll &&
	       a->sqpoll_idle_ms == b->sqpoll_idle_ms &&
	       a->busy_poll_us == b->busy_poll_us;
}
