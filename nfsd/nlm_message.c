/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call to a client's lock manager: what it says, how it is made by
 * libtirpc's client, and what is to be made of the outcome.
 *
 * A GRANTED is sent until the client answers, or gives up the lock. Only where
 * no try can have reached him is it ended from here, after a while: the lock is
 * given back then, and he will ask again if he lives. But if one may have, he
 * may believe that he has the lock. For the same reason a refusal counts only
 * as the answer to a single try: a client that has taken the lock by an earlier
 * one, whose answer was lost, knows nothing any more of what he waited for.
 *
 * A struct message_out belongs to nlm_callback.c, and while it is sent to the
 * thread that does it. The Open Group, XNFS, 10 and 14.
 */
#include "nfsd/nlm_message.h"

#include "nfsd/locks.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STEP_SECONDS     3u /* to find its port, to connect, to answer */
#define GIVE_UP_NS       (60ull * 1000000000)
#define GRANT_ARGS_BYTES (2048u + MAXNETOBJ_SZ)

/* Making ------------------------------------------------------------------ */

void
message_address(struct sockaddr_storage *to, const struct sockaddr *from)
{
	memset(to, 0, sizeof(*to));
	memcpy(to, from,
	       from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in));
}

struct message_out *
message_new(const struct nlm_peer *to, uint32_t proc, const void *args,
	    uint32_t n)
{
	struct message_out *m = calloc(1, sizeof(*m) + n);

	if (m == NULL)
		return NULL;
	message_address(&m->local, to->local);
	m->datagram = to->datagram;
	m->proc = proc;
	m->since_ns = monotonic_ns();
	m->bytes = n;
	memcpy(m->args, args, n);
	return m;
}

/* The cookie of a grant is its id. */
static uint32_t
encode_grant(struct server *s, const struct lock_grant *g,
	     uint8_t out[GRANT_ARGS_BYTES])
{
	struct nlm4_lockargs a = { .exclusive = g->exclusive };
	struct nfs_fh3 fh;
	uint32_t n;
	bool ok;
	XDR x;

	fh_encode(server_fh_key(s), &g->fh, &fh);
	a.cookie.data = (const uint8_t *)&g->id;
	a.cookie.bytes = sizeof(g->id);
	a.alock.caller_name.data = (const uint8_t *)g->host.name;
	a.alock.caller_name.bytes = (uint32_t)strlen(g->host.name);
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

struct message_out *
message_grant(struct server *s, const struct lock_grant *g)
{
	const struct nlm_peer to = {
		.local = (const struct sockaddr *)&g->host.local,
		.datagram = g->transport == IPPROTO_UDP,
	};
	uint8_t args[GRANT_ARGS_BYTES];
	uint32_t n = encode_grant(s, g, args);
	struct message_out *m;

	m = message_new(&to,
			g->message ? NLMPROC4_GRANTED_MSG : NLMPROC4_GRANTED,
			args, n);
	if (m != NULL)
		m->id = g->id;
	return m;
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
log_failure(const struct sockaddr *client, const struct message_out *m,
	    int error)
{
	const struct sockaddr_in *v4 = (const void *)client;
	const struct sockaddr_in6 *v6 = (const void *)client;
	char text[INET6_ADDRSTRLEN] = "";
	static struct log_limit limit;

	inet_ntop(client->sa_family,
		  client->sa_family == AF_INET ? (const void *)&v4->sin_addr
					       : (const void *)&v6->sin6_addr,
		  text, sizeof(text));
	log_limited(&limit, LOG_WARNING_, "cannot tell %s %s: %s", text,
		    m->id != 0 ? "that it has the lock that it waits for"
			       : "what became of its request for a lock",
		    error == -ENOENT ? "its lock manager is not registered"
				     : strerror(-error));
}

enum message_sent
message_judge(struct server *s, const struct message_out *m, uint32_t stat)
{
	if (stat == NLM4_DENIED_GRACE_PERIOD)
		return SENT_WAITS;
	locks_granted(server_locks(s), m->id,
		      stat == NLM4_GRANTED || m->tries > 1);
	return SENT_OVER;
}

static bool
has_waited_enough(const struct message_out *m)
{
	return m->tries == 0 && monotonic_ns() - m->since_ns >= GIVE_UP_NS;
}

/* A step on the way to its lock manager has failed: this try did nothing. */
static enum message_sent
not_reached(struct server *s, const struct message_out *m)
{
	if (m->id == 0)
		return SENT_LOST;
	if (!has_waited_enough(m))
		return SENT_NOT;
	locks_unreachable(server_locks(s), m->id);
	return SENT_LOST;
}

static bool
may_have_arrived(int rc)
{
	return rc == 0 || rc == -ETIMEDOUT || rc == -EIO;
}

static enum message_sent
send_granted(struct server *s, struct rpc_peer *p, struct message_out *m)
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
		return message_judge(s, m, res.stat);
	}
	if (may_have_arrived(rc))
		return SENT_NOT;
	m->tries--;
	return not_reached(s, m);
}

/* What counts is the GRANTED_RES; that it is taken at all some do not say. */
static enum message_sent
send_message(struct server *s, struct rpc_peer *p, struct message_out *m)
{
	const struct rpc_peer_io io = { .encode = (xdrproc_t)xdr_message,
					.args = m };

	m->tries++;
	if (may_have_arrived(rpc_peer_call(p, m->proc, &io)))
		return m->id == 0 ? SENT_OVER : SENT_WAITS;
	m->tries--;
	return not_reached(s, m);
}

static int
open_peer(struct rpc_peer **ret, const struct sockaddr *client,
	  const struct message_out *m)
{
	struct rpc_peer_where where = {
		.host = client,
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

enum message_sent
message_send(struct server *s, const struct sockaddr *client,
	     struct message_out *m, bool gone)
{
	struct rpc_peer *p;
	enum message_sent sent;
	int rc;

	if (m->id != 0 && !locks_grant_waits(server_locks(s), m->id))
		return SENT_OVER;
	/* Of thousands not each is tried a last time. */
	if (gone && m->id != 0 && has_waited_enough(m))
		return not_reached(s, m);
	rc = open_peer(&p, client, m);
	if (rc < 0) {
		log_failure(client, m, rc);
		return not_reached(s, m);
	}
	sent = m->proc == NLMPROC4_GRANTED ? send_granted(s, p, m)
					   : send_message(s, p, m);
	rpc_peer_close(p);
	return sent;
}
