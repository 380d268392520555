/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls to the lock managers of clients, by libtirpc's client, which blocks: on
 * a few threads of their own, which are made when there is something to send.
 * One struct nlm_callback a server. What is to be sent waits at its host, which
 * has one thread at a time, so that one that does not answer holds up nobody
 * but itself; and it is left alone for longer the longer it does not.
 *
 * A GRANTED is sent until the client answers, or gives up the lock. Only where
 * no try can have reached him is it ended from here, after a while: the lock is
 * given back then, and he will ask again if he lives. But if one may have, he
 * may believe that he has the lock. For the same reason a refusal counts only
 * as the answer to a first try: a client that has taken the lock by an earlier
 * one, whose answer was lost, knows nothing any more of what he waited for.
 *
 * Its lock is a leaf; the lock manager is asked without it.
 *
 * It does not know what a lock is. The Open Group, XNFS, 10 and 14.
 */
#include "nfsd/nlm_callback.h"

#include "nfsd/locks.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#define THREADS_MAX      16u
#define ANSWERS_MAX      1024u /* that wait; grants have the manager's limit */
#define STEP_SECONDS     3u    /* to find its port, to connect, to answer */
#define AGAIN_NS         (1ull * 1000000000) /* doubles */
#define AGAIN_NS_MAX     (32ull * 1000000000)
#define AGAIN_DOUBLES    5u
#define GRACE_NS         (5ull * 1000000000)  /* the client's own */
#define RES_NS           (10ull * 1000000000) /* until GRANTED_RES comes */
#define GIVE_UP_NS       (60ull * 1000000000)
#define GRANT_ARGS_BYTES (2048u + MAXNETOBJ_SZ)

/* Something to be sent, at its host. */
struct message_out {
	TAILQ_ENTRY(message_out) link;
	struct sockaddr_storage local;
	bool datagram;
	uint32_t proc;
	uint64_t id; /* the grant; 0: an answer */
	uint64_t since_ns, due_ns;
	unsigned tries; /* that may have arrived */
	bool answered;  /* by GRANTED_RES */
	uint32_t stat;  /* and how */
	uint32_t bytes;
	uint8_t args[];
};

/* A client for whom something waits. */
struct host {
	TAILQ_ENTRY(host) link;
	TAILQ_HEAD(, message_out) messages;
	struct sockaddr_storage client;
	bool busy; /* has a thread */
	unsigned failures;
	uint64_t due_ns; /* not before */
};

struct nlm_callback {
	struct server *server;
	char name[LM_MAXSTRLEN + 1]; /* ours, as caller_name */
	pthread_mutex_t lock;        /* all below */
	pthread_cond_t changed;
	TAILQ_HEAD(, host) hosts;
	bool ending;
	unsigned answers, idle, threads;
	pthread_t thread[THREADS_MAX];
};

/* What became of a try. */
enum sent {
	SENT_OVER,  /* nothing is left to do */
	SENT_WAITS, /* for GRANTED_RES, or for the client's grace to end */
	SENT_NOT    /* as far as one knows: again, after a while */
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

static void
copy_address(struct sockaddr_storage *to, const struct sockaddr *from)
{
	memset(to, 0, sizeof(*to));
	memcpy(to, from,
	       from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in));
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
	copy_address(&h->client, client);
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

/* A host that no thread has yet, and a message of its that is due. */
static struct host *
next_due(const struct nlm_callback *c, struct message_out **ret,
	 uint64_t *until)
{
	uint64_t now = monotonic_ns();
	struct host *h;

	*until = now + AGAIN_NS_MAX;
	TAILQ_FOREACH (h, &c->hosts, link) {
		if (h->busy)
			continue;
		*ret = host_due(h, now, until);
		if (*ret != NULL)
			return h;
	}
	return NULL;
}

/* Sending ------------------------------------------------------------------ */

static bool_t
xdr_message(XDR *x, struct message_out *m)
{
	return XDR_PUTBYTES(x, (const char *)m->args, m->bytes);
}

struct granted_res {
	netobj cookie;
	u_int32_t stat;
};

static bool_t
xdr_granted_res(XDR *x, struct granted_res *r)
{
	return xdr_netobj(x, &r->cookie) && xdr_u_int32_t(x, &r->stat);
}

static void
log_failure(const struct host *h, const struct message_out *m, int error)
{
	const struct sockaddr_in *v4 = (const void *)&h->client;
	const struct sockaddr_in6 *v6 = (const void *)&h->client;
	char text[INET6_ADDRSTRLEN] = "";
	static struct log_limit limit;

	inet_ntop(h->client.ss_family,
		  h->client.ss_family == AF_INET ? (const void *)&v4->sin_addr
						 : (const void *)&v6->sin6_addr,
		  text, sizeof(text));
	log_limited(&limit, LOG_WARNING_, "cannot tell %s %s: %s", text,
		    m->id != 0 ? "that it has the lock that it waits for"
			       : "what became of its request for a lock",
		    error == -ENOENT ? "its lock manager is not registered"
				     : strerror(-error));
}

/* The client has answered to the latest try, or to one before it. */
static enum sent
judge(struct nlm_callback *c, const struct message_out *m, uint32_t stat)
{
	if (stat == NLM4_DENIED_GRACE_PERIOD)
		return SENT_WAITS;
	locks_granted(server_locks(c->server), m->id,
		      stat == NLM4_GRANTED || m->tries > 1);
	return SENT_OVER;
}

/* A step on the way to its lock manager has failed: this try did nothing. */
static enum sent
not_reached(struct nlm_callback *c, const struct message_out *m)
{
	if (m->id == 0)
		return SENT_OVER;
	if (m->tries > 0 || monotonic_ns() - m->since_ns < GIVE_UP_NS)
		return SENT_NOT;
	locks_granted(server_locks(c->server), m->id, false);
	return SENT_OVER;
}

static bool
may_have_arrived(int rc)
{
	return rc == 0 || rc == -ETIMEDOUT || rc == -EIO;
}

static enum sent
send_granted(struct nlm_callback *c, struct rpc_peer *p, struct message_out *m)
{
	struct granted_res res = { 0 };
	const struct rpc_peer_io io = { .encode = (xdrproc_t)xdr_message,
					.args = m,
					.decode = (xdrproc_t)xdr_granted_res,
					.res = &res };
	int rc;

	m->tries++;
	rc = rpc_peer_call(p, m->proc, &io);
	if (rc == 0) {
		free(res.cookie.n_bytes);
		return judge(c, m, res.stat);
	}
	if (may_have_arrived(rc))
		return SENT_NOT;
	m->tries--;
	return not_reached(c, m);
}

/* What counts is the GRANTED_RES; that it is taken at all some do not say. */
static enum sent
send_message(struct nlm_callback *c, struct rpc_peer *p, struct message_out *m)
{
	const struct rpc_peer_io io = { .encode = (xdrproc_t)xdr_message,
					.args = m };

	m->tries++;
	if (may_have_arrived(rpc_peer_call(p, m->proc, &io)))
		return m->id == 0 ? SENT_OVER : SENT_WAITS;
	m->tries--;
	return not_reached(c, m);
}

static int
open_peer(struct rpc_peer **ret, const struct host *h,
	  const struct message_out *m)
{
	struct rpc_peer_where where = {
		.host = (const struct sockaddr *)&h->client,
		.local = (const struct sockaddr *)&m->local,
		.datagram = m->datagram,
		.once = true,
		.seconds = STEP_SECONDS,
	};
	int rc = rpc_peer_open(ret, &where, NLM_PROGRAM, NLM_VERSION4);

	/* A client may serve the other transport only. */
	if (rc != -ENOENT)
		return rc;
	where.datagram = !where.datagram;
	return rpc_peer_open(ret, &where, NLM_PROGRAM, NLM_VERSION4);
}

/* Without the lock: h and m are this thread's. */
static enum sent
send_out(struct nlm_callback *c, const struct host *h, struct message_out *m)
{
	struct rpc_peer *p;
	enum sent sent;
	int rc;

	if (m->id != 0 && !locks_grant_waits(server_locks(c->server), m->id))
		return SENT_OVER;
	rc = open_peer(&p, h, m);
	if (rc < 0) {
		log_failure(h, m, rc);
		return not_reached(c, m);
	}
	sent = m->proc == NLMPROC4_GRANTED ? send_granted(c, p, m)
					   : send_message(c, p, m);
	rpc_peer_close(p);
	return sent;
}

/* With the lock. */
static void
note_sent(struct nlm_callback *c, struct host *h, struct message_out *m,
	  enum sent sent)
{
	uint64_t now = monotonic_ns(), wait = AGAIN_NS;

	h->busy = false;
	if (sent == SENT_NOT) {
		if (h->failures < AGAIN_DOUBLES)
			h->failures++;
		wait <<= h->failures;
		h->due_ns = now + (wait < AGAIN_NS_MAX ? wait : AGAIN_NS_MAX);
	} else {
		h->failures = 0;
	}
	if (sent == SENT_OVER) {
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
	enum sent sent;
	uint64_t until;

	h->busy = true;
	m->answered = false;
	/* This may take long: let another thread see to what else is due. */
	if (next_due(c, &next, &until) != NULL)
		wake(c);
	pthread_mutex_unlock(&c->lock);
	sent = answered ? judge(c, m, stat) : send_out(c, h, m);
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
	(void)gethostname(c->name, sizeof(c->name) - 1);
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

void
nlm_callback_free(struct nlm_callback *c)
{
	struct host *h;

	if (c == NULL)
		return;
	while ((h = TAILQ_FIRST(&c->hosts)) != NULL) {
		while (!TAILQ_EMPTY(&h->messages))
			message_free(c, h, TAILQ_FIRST(&h->messages));
		host_settle(c, h);
	}
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->changed);
	free(c);
}

/* What comes in ------------------------------------------------------------ */

static struct message_out *
message_new(const struct nlm_peer *to, uint32_t proc, const void *args,
	    uint32_t n)
{
	struct message_out *m = calloc(1, sizeof(*m) + n);

	if (m == NULL)
		return NULL;
	copy_address(&m->local, to->local);
	m->datagram = to->datagram;
	m->proc = proc;
	m->since_ns = monotonic_ns();
	m->bytes = n;
	memcpy(m->args, args, n);
	return m;
}

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

/* The cookie of a grant is its id. */
static uint32_t
encode_grant(const struct nlm_callback *c, const struct lock_grant *g,
	     uint8_t out[GRANT_ARGS_BYTES])
{
	struct nlm4_lockargs a = { .exclusive = g->exclusive };
	struct nfs_fh3 fh;
	uint32_t n;
	bool ok;
	XDR x;

	fh_encode(server_fh_key(c->server), &g->fh, &fh);
	a.cookie.data = (const uint8_t *)&g->id;
	a.cookie.bytes = sizeof(g->id);
	a.alock.caller_name.data = (const uint8_t *)c->name;
	a.alock.caller_name.bytes = (uint32_t)strlen(c->name);
	a.alock.fh.data = fh.data;
	a.alock.fh.bytes = fh.bytes;
	a.alock.oh.data = g->oh;
	a.alock.oh.bytes = g->oh_bytes;
	a.alock.svid = g->svid;
	a.alock.l_offset = g->offset;
	a.alock.l_len = g->length;
	xdrmem_create(&x, (char *)out, GRANT_ARGS_BYTES, XDR_ENCODE);
	ok = nlm4_encode_granted(&x, &a);
	assert(ok);
	n = xdr_getpos(&x);
	xdr_destroy(&x);
	return n;
}

void
nlm_callback_grant(struct nlm_callback *c, const struct lock_grant *g)
{
	const struct nlm_peer to = {
		.client = (const struct sockaddr *)&g->host.client,
		.local = (const struct sockaddr *)&g->host.local,
		.datagram = g->transport == IPPROTO_UDP,
	};
	uint8_t args[GRANT_ARGS_BYTES];
	static struct log_limit limit;
	struct message_out *m;

	m = message_new(&to,
			g->message ? NLMPROC4_GRANTED_MSG : NLMPROC4_GRANTED,
			args, encode_grant(c, g, args));
	if (m != NULL)
		m->id = g->id;
	/* It has its lock, and is told so when it asks again. */
	if (!enqueue(c, to.client, m))
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
		wake(c);
	}
	pthread_mutex_unlock(&c->lock);
}
