/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of all that a host has: it has rebooted, says so itself (FREE_ALL),
 * or the operator has lost patience; and the grace period, in which those that
 * had locks before this server began come first.
 *
 * The owners concerned are marked, then all files are gone through: it happens
 * seldom, and no list of an owner's ranges has to be kept for it.
 */
#include "nfsd/lock_manager.h"

#include <arpa/inet.h>
#include <string.h>

/* Marked owners ------------------------------------------------------------ */

static void
forget_doomed(struct locks *l, struct lock_file *f, void *arg)
{
	f->pins++;
	lock_file_forget(l, f, false);
}

static void
let_others_in(struct locks *l, struct lock_file *f, void *arg)
{
	lock_waits_try(l, f, NULL);
	lock_file_put(l, f);
}

/* All that doomed owners have. Nobody is let in before the last of it is gone:
 * it might be one of them. */
static void
forget(struct locks *l)
{
	lock_files_each(l, forget_doomed, NULL);
	lock_files_each(l, let_others_in, NULL);
}

/* Those whose state is another than state are doomed (0: all of them). */
static unsigned
doom(struct lock_peer *p, int32_t state)
{
	struct lock_owner *o;
	unsigned n = 0;

	for (o = p->owners; o; o = o->hh.next) {
		o->doomed = state == 0 || o->state != state;
		n += o->doomed;
	}
	return n;
}

/* Reboots ------------------------------------------------------------------ */

/* Did a come before b? States wrap, as all numbers do that only grow. */
static bool
state_before(int32_t a, int32_t b)
{
	return (int32_t)((uint32_t)a - (uint32_t)b) < 0;
}

void
lock_peer_outlives(struct locks *l, struct lock_peer *p, const char *name,
		   int32_t state)
{
	struct lock_owner *o;
	unsigned n = 0;

	for (o = p->owners; o; o = o->hh.next) {
		o->doomed = o->state != 0 && state_before(o->state, state) &&
			    strcmp(o->name, name) == 0;
		n += o->doomed;
	}
	if (n == 0)
		return;
	/* Who asks is one of them, perhaps, and stays. */
	forget(l);
	for (o = p->owners; o; o = o->hh.next)
		o->doomed = false;
}

void
locks_host_rebooted(struct locks *l, const struct sockaddr *client,
		    int32_t state)
{
	struct lock_peer *p;

	locks_enter(l);
	p = lock_peer_find(l, client);
	if (p) {
		p->state = state;
		if (doom(p, state) > 0)
			forget(l);
	}
	locks_leave(l);
}

void
locks_free_all(struct locks *l, const struct sockaddr *client)
{
	locks_host_rebooted(l, client, 0);
}

/* The operator ------------------------------------------------------------- */

void
lock_address_text(char text[LOCK_ADDRESS_TEXT_BYTES],
		  const struct lock_peer_key *key)
{
	const struct in6_addr *a = (const struct in6_addr *)key->address;

	if (IN6_IS_ADDR_V4MAPPED(a))
		(void)inet_ntop(AF_INET, key->address + 12, text,
				LOCK_ADDRESS_TEXT_BYTES);
	else
		(void)inet_ntop(AF_INET6, a, text, LOCK_ADDRESS_TEXT_BYTES);
}

static bool
peer_is(const struct lock_peer *p, const char *client)
{
	char text[LOCK_ADDRESS_TEXT_BYTES];

	lock_address_text(text, &p->key);
	return strcmp(text, client) == 0 || strcmp(p->host.name, client) == 0;
}

unsigned
locks_release(struct locks *l, const char *client)
{
	struct lock_peer *p;
	unsigned n = 0;

	locks_enter(l);
	for (p = l->peers; p; p = p->hh.next)
		if (peer_is(p, client) && doom(p, 0) > 0)
			n++;
	if (n > 0)
		forget(l);
	locks_leave(l);
	return n;
}

/* Grace -------------------------------------------------------------------- */

bool
lock_grace_holds(const struct locks *l)
{
	return monotonic_ns() < l->grace_until_ns;
}

void
locks_grace(struct locks *l, uint64_t ns)
{
	locks_enter(l);
	l->grace_until_ns = ns > 0 ? monotonic_ns() + ns : 0;
	locks_leave(l);
}

bool
locks_in_grace(struct locks *l)
{
	bool holds;

	locks_enter(l);
	holds = lock_grace_holds(l);
	locks_leave(l);
	return holds;
}
