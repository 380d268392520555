/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registration with rpcbind, on a thread of its own: a start must not wait for
 * an rpcbind that hangs or answers slowly (a minute and more was seen, with an
 * rpcbind that systemd could not start), and an rpcbind that comes up after us
 * shall know us too. struct registration is made once the sockets listen, and
 * ended before they close; its thread tries until it is registered.
 *
 * It does not know how rpcbind is spoken to (rpc/bind.c). RFC 1833.
 */
#include "nfsd/server.h"
#include "nfsd/udp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static_assert(PROGRAM_NLM4 == PROGRAMS - 1, "NLM is registered apart");

#define FIRST_NS (2ull * 1000000000) /* of the start, spent on it at most */
#define AGAIN_NS (5ull * 1000000000)
#define HELD_NS  (30ull * 1000000000)

struct registration {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool tried, ending; /* under lock */
	/* The thread's: all but NLM is registered; another one's NLM is. */
	bool has_most, locks_held;
	int outcome;
	struct bind_service services[PROGRAMS];
};

static void
take_address(struct bind_service *b, const struct listener *l, bool datagrams)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&l->addr;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&l->addr;
	bool is_v6 = l->addr.ss_family == AF_INET6;
	struct bind_port *p = &b->at[is_v6 ? BIND_TCP6 : BIND_TCP];

	if (datagrams)
		p = &b->at[is_v6 ? BIND_UDP6 : BIND_UDP];
	if (p->port != 0)
		return;
	p->port = ntohs(is_v6 ? v6->sin6_port : v4->sin_port);
	inet_ntop(l->addr.ss_family,
		  is_v6 ? (const void *)&v6->sin6_addr
			: (const void *)&v4->sin_addr,
		  p->addr, sizeof(p->addr));
}

/* Each program and version with its ports. */
static void
list_services(const struct server *s, struct bind_service out[PROGRAMS])
{
	const struct listener *l;
	unsigned i, n;

	for (i = 0; i < PROGRAMS; i++) {
		out[i].prog = nfsd_programs[i].prog;
		out[i].vers = nfsd_programs[i].vers;
		for (l = s->listener; l < s->listener + s->listeners; l++)
			if (listener_serves(l, i))
				take_address(&out[i], l, false);
		for (n = 0; n < udp_count(s->udp); n++)
			if (listener_serves(udp_socket(s->udp, n), i))
				take_address(&out[i], udp_socket(s->udp, n),
					     true);
	}
}

/* Until something changes or ns have passed. */
static void
wait_changed(struct registration *r, uint64_t ns)
{
	uint64_t until = monotonic_ns() + ns;
	struct timespec t = { .tv_sec = (time_t)(until / 1000000000),
			      .tv_nsec = (long)(until % 1000000000) };

	(void)pthread_cond_timedwait(&r->changed, &r->lock, &t);
}

/* What may be otherwise in a while: it is not there or does not answer. */
static bool
passes(int rc)
{
	return rc != -EPERM && rc != -EADDRINUSE;
}

static void
log_outcome(int rc, bool first)
{
	if (rc == 0 && !first)
		log_msg(LOG_NOTICE_, "registered with rpcbind");
	else if (rc < 0 && (first || !passes(rc)))
		log_msg(LOG_WARNING_,
			"not registered with rpcbind (%s): clients must mount "
			"with proto=tcp, port= and mountport=%s",
			strerror(-rc), passes(rc) ? " until it is" : "");
}

/*
 * NLM apart: where this machine mounts NFS itself, the kernel's own lock
 * manager has its place in rpcbind while it does.
 */
static int
register_all(struct registration *r)
{
	bool was_held = r->locks_held;
	int rc = r->has_most ? 0 : bind_register(r->services, PROGRAM_NLM4);

	r->has_most = rc == 0;
	if (rc == 0)
		rc = bind_register(&r->services[PROGRAM_NLM4], 1);
	r->locks_held = r->has_most && rc == -EADDRINUSE;
	if (!r->locks_held)
		return rc;
	if (!was_held)
		log_msg(LOG_WARNING_,
			"another lock manager, perhaps the kernel's for NFS "
			"that this machine mounts itself, is registered with "
			"rpcbind: until it goes, clients must mount with "
			"nolock");
	return 0;
}

static void *
registration_run(void *arg)
{
	struct registration *r = arg;
	int rc = -EAGAIN;
	bool held;

	pthread_mutex_lock(&r->lock);
	while (!r->ending && ((passes(rc) && rc < 0) || r->locks_held)) {
		if (r->tried)
			wait_changed(r, r->locks_held ? HELD_NS : AGAIN_NS);
		if (r->ending)
			break;
		pthread_mutex_unlock(&r->lock);
		held = r->locks_held;
		rc = register_all(r);
		pthread_mutex_lock(&r->lock);
		if (!held || !r->locks_held)
			log_outcome(rc, !r->tried);
		r->tried = true;
		r->outcome = rc;
		pthread_cond_broadcast(&r->changed);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

int
registration_start(struct registration **ret, const struct server *s)
{
	struct registration *r = calloc(1, sizeof(*r));
	uint64_t until = monotonic_ns() + FIRST_NS, now;
	pthread_condattr_t attr;
	int rc;

	if (r == NULL)
		return -ENOMEM;
	list_services(s, r->services);
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&r->changed, &attr);
	pthread_condattr_destroy(&attr);
	rc = pthread_create(&r->thread, NULL, registration_run, r);
	if (rc != 0) {
		pthread_mutex_destroy(&r->lock);
		pthread_cond_destroy(&r->changed);
		free(r);
		return -rc;
	}
	/* Mostly it takes a millisecond: then who is told that we are ready
	 * can mount without naming ports. */
	pthread_mutex_lock(&r->lock);
	while (!r->tried && (now = monotonic_ns()) < until)
		wait_changed(r, until - now);
	pthread_mutex_unlock(&r->lock);
	*ret = r;
	return 0;
}

void
registration_stop(struct registration *r)
{
	if (r == NULL)
		return;
	pthread_mutex_lock(&r->lock);
	r->ending = true;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	if (r->has_most || r->outcome == -ETIMEDOUT)
		bind_unregister(r->services, PROGRAMS);
	pthread_mutex_destroy(&r->lock);
	pthread_cond_destroy(&r->changed);
	free(r);
}
