/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The procedures of NLM version 4 (The Open Group, XNFS, 10 and 14): from a
 * call's arguments to a question for the lock manager (locks.h), and from its
 * answer to the result. Blocking, on a worker; nothing is kept here.
 *
 * A _MSG is the same but for its reply, which is empty: the result goes to the
 * client's own lock manager as a _RES (nlm_callback.c). GRANTED is for clients,
 * and this server is none, so it asked for nothing that could be granted.
 */
#include "nfsd/locks.h"
#include "nfsd/nlm_callback.h"
#include "nfsd/nsm.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

static_assert(NSM_PRIV_BYTES == SM_PRIV_BYTES, "what SM_MON was given");

/* Questions --------------------------------------------------------------- */

/* What is asked of the lock manager; the object only where it is open. */
struct question {
	struct lock_request lock;
	struct fh fh;
	struct object object;
};

static void
question_init(struct question *q, struct request *rq)
{
	memset(&q->lock, 0, sizeof(q->lock));
	q->lock.client = rq->client;
	q->lock.local = rq->local;
	q->lock.transport = rq->datagram ? IPPROTO_UDP : IPPROTO_TCP;
	q->lock.may_block = !rq->quick;
	q->lock.monitored = true;
	q->object.rq = NULL; /* object_fini is harmless */
}

/* Of TEST, LOCK, CANCEL, UNLOCK. */
static void
question_take_lock(struct question *q, const struct nlm4_lockargs *a)
{
	q->lock.caller_name = a->alock.caller_name;
	q->lock.oh = a->alock.oh;
	q->lock.svid = a->alock.svid;
	q->lock.offset = a->alock.l_offset;
	q->lock.length = a->alock.l_len;
	q->lock.exclusive = a->exclusive;
	q->lock.block = a->block;
	q->lock.reclaim = a->reclaim;
	q->lock.state = a->state;
}

static void
question_take_share(struct question *q, const struct nlm4_shareargs *a)
{
	q->lock.caller_name = a->caller_name;
	q->lock.oh = a->oh;
	q->lock.mode = a->mode;
	q->lock.access = a->access;
	q->lock.reclaim = a->reclaim;
}

/* A netobj may be longer than any handle. */
static bool
wire_handle(const struct nlm_netobj *o, struct nfs_fh3 *ret)
{
	if (o->bytes > NFS3_FHSIZE)
		return false;
	memset(ret, 0, sizeof(*ret));
	ret->bytes = o->bytes;
	memcpy(ret->data, o->data, o->bytes);
	return true;
}

/* The file is not opened: it may be gone, or the client's right to it, and what
 * he has locked there is given back all the same. */
static int
question_name_file(struct question *q, struct request *rq,
		   const struct nlm_netobj *handle)
{
	struct nfs_fh3 wire;

	if (!wire_handle(handle, &wire) ||
	    !fh_decode(server_fh_key(rq->server), &wire, &q->fh))
		return NLM4_STALE_FH;
	q->lock.fh = &q->fh;
	rq->export_id = q->fh.export_id;
	return NLM4_GRANTED;
}

/* An nlm4_stats, or -EAGAIN. */
static int
question_open_file(struct question *q, struct request *rq,
		   const struct nlm_netobj *handle)
{
	struct nfs_fh3 wire;
	int r;

	if (!wire_handle(handle, &wire))
		return NLM4_STALE_FH;
	r = object_open(&q->object, rq, &wire);
	if (r == -EAGAIN)
		return r;
	if (r == -EBADF || r == -ESTALE)
		return NLM4_STALE_FH;
	if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		return NLM4_DENIED_NOLOCKS;
	if (r < 0)
		return NLM4_FAILED;
	q->lock.object = &q->object;
	q->lock.fh = &q->object.fh;
	return NLM4_GRANTED;
}

typedef int ask_fn(struct locks *l, const struct lock_request *rq);

/* The object's file is opened, or only named; then asked. */
static int
ask_open(struct question *q, struct request *rq,
	 const struct nlm_netobj *handle, ask_fn *ask)
{
	int r = question_open_file(q, rq, handle);

	if (r == NLM4_GRANTED)
		r = ask(server_locks(rq->server), &q->lock);
	object_fini(&q->object);
	return r;
}

static int
ask_named(struct question *q, struct request *rq,
	  const struct nlm_netobj *handle, ask_fn *ask)
{
	int r = question_name_file(q, rq, handle);

	return r == NLM4_GRANTED ? ask(server_locks(rq->server), &q->lock) : r;
}

/* Answers ------------------------------------------------------------------ */

/* What the call counts as. */
static enum nfsstat3
status_of(enum nlm4_stats stat)
{
	switch (stat) {
	case NLM4_STALE_FH:
		return NFS3ERR_STALE;
	case NLM4_ROFS:
		return NFS3ERR_ROFS;
	case NLM4_FBIG:
		return NFS3ERR_FBIG;
	case NLM4_DENIED_GRACE_PERIOD:
		return NFS3ERR_JUKEBOX;
	case NLM4_DENIED_NOLOCKS:
		return NFS3ERR_NOSPC;
	case NLM4_FAILED:
		return NFS3ERR_ACCES;
	default: /* DENIED is what many ask to be told */
		return NFS3_OK;
	}
}

static enum nfsstat3
answer(struct request *rq, const struct nlm_netobj *cookie, int r)
{
	struct nlm4_res *res = &rq->res.nlm;

	if (r == -EAGAIN) {
		rq->wants_names = true;
		return NFS3_OK; /* it is run again */
	}
	res->cookie = *cookie;
	res->stat = (enum nlm4_stats)r;
	return status_of(res->stat);
}

/* The result of a _MSG, which has been run. */
static void
send_result(struct request *rq, uint32_t proc, nfs3_encode_fn *encode)
{
	uint8_t bytes[NLM4_RES_BYTES + NLM4_HOLDER_BYTES];
	const struct nlm_peer to = { .client = rq->client,
				     .local = rq->local,
				     .datagram = rq->datagram };
	bool ok;
	XDR x;

	if (rq->wants_names)
		return;
	xdrmem_create(&x, (char *)bytes, sizeof(bytes), XDR_ENCODE);
	ok = encode(&x, NFS3_OK, &rq->res);
	assert(ok);
	nlm_callback_answer(server_callbacks(rq->server), &to, proc, bytes,
			    xdr_getpos(&x));
	xdr_destroy(&x);
}

/* Procedures, in the order of their numbers -------------------------------- */

enum nfsstat3
nlm4_test(struct request *rq)
{
	const struct nlm4_lockargs *a = &rq->args.nlm.lock;
	struct question q;
	int r;

	question_init(&q, rq);
	question_take_lock(&q, a);
	r = question_open_file(&q, rq, &a->alock.fh);
	if (r == NLM4_GRANTED)
		r = locks_test(server_locks(rq->server), &q.lock,
			       &rq->res.nlm.holder);
	object_fini(&q.object);
	return answer(rq, &a->cookie, r);
}

static enum nfsstat3
take_lock(struct request *rq, bool message, bool monitored)
{
	const struct nlm4_lockargs *a = &rq->args.nlm.lock;
	struct question q;

	question_init(&q, rq);
	question_take_lock(&q, a);
	q.lock.message = message;
	q.lock.monitored = monitored;
	return answer(rq, &a->cookie,
		      ask_open(&q, rq, &a->alock.fh, locks_lock));
}

enum nfsstat3
nlm4_lock(struct request *rq)
{
	return take_lock(rq, false, true);
}

/* Asked of a lock that is there, or was. */
static enum nfsstat3
give_up(struct request *rq, ask_fn *ask)
{
	const struct nlm4_lockargs *a = &rq->args.nlm.lock;
	struct question q;

	question_init(&q, rq);
	question_take_lock(&q, a);
	return answer(rq, &a->cookie, ask_named(&q, rq, &a->alock.fh, ask));
}

enum nfsstat3
nlm4_cancel(struct request *rq)
{
	return give_up(rq, locks_cancel);
}

enum nfsstat3
nlm4_unlock(struct request *rq)
{
	return give_up(rq, locks_unlock);
}

enum nfsstat3
nlm4_granted(struct request *rq)
{
	return answer(rq, &rq->args.nlm.lock.cookie, NLM4_DENIED);
}

enum nfsstat3
nlm4_test_msg(struct request *rq)
{
	enum nfsstat3 status = nlm4_test(rq);

	send_result(rq, NLMPROC4_TEST_RES, nlm4_encode_test);
	return status;
}

enum nfsstat3
nlm4_lock_msg(struct request *rq)
{
	enum nfsstat3 status = take_lock(rq, true, true);

	send_result(rq, NLMPROC4_LOCK_RES, nlm4_encode_res);
	return status;
}

enum nfsstat3
nlm4_cancel_msg(struct request *rq)
{
	enum nfsstat3 status = nlm4_cancel(rq);

	send_result(rq, NLMPROC4_CANCEL_RES, nlm4_encode_res);
	return status;
}

enum nfsstat3
nlm4_unlock_msg(struct request *rq)
{
	enum nfsstat3 status = nlm4_unlock(rq);

	send_result(rq, NLMPROC4_UNLOCK_RES, nlm4_encode_res);
	return status;
}

enum nfsstat3
nlm4_granted_msg(struct request *rq)
{
	enum nfsstat3 status = nlm4_granted(rq);

	send_result(rq, NLMPROC4_GRANTED_RES, nlm4_encode_res);
	return status;
}

enum nfsstat3
nlm4_ignore(struct request *rq)
{
	return NFS3_OK;
}

enum nfsstat3
nlm4_granted_res(struct request *rq)
{
	nlm_callback_answered(server_callbacks(rq->server), rq->client,
			      &rq->args.nlm.answer);
	return NFS3_OK;
}

/* A process of this machine that root has started. */
static bool
is_trusted(const struct sockaddr *a)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)a;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a;

	if (a->sa_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET &&
		       ntohs(v4->sin_port) < IPPORT_RESERVED;
	return a->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) &&
	       ntohs(v6->sin6_port) < IPPORT_RESERVED;
}

enum nfsstat3
nlm4_sm_notify(struct request *rq)
{
	const struct nlm4_notify *a = &rq->args.nlm.notify;
	static struct log_limit limit;
	struct sockaddr_storage host;

	if (!is_trusted(rq->client) || !nsm_host_of(a->priv, &host)) {
		log_limited(&limit, LOG_WARNING_,
			    "news of a client's reboot that are not rpc.statd's"
			    " are ignored");
		return NFS3ERR_PERM;
	}
	locks_host_rebooted(server_locks(rq->server),
			    (const struct sockaddr *)&host, a->state);
	return NFS3_OK;
}

static enum nfsstat3
answer_share(struct request *rq, int r)
{
	/* The standard gives the number no meaning. */
	rq->res.nlm.sequence = 0;
	return answer(rq, &rq->args.nlm.share.cookie, r);
}

enum nfsstat3
nlm4_share(struct request *rq)
{
	const struct nlm4_shareargs *a = &rq->args.nlm.share;
	struct question q;

	question_init(&q, rq);
	question_take_share(&q, a);
	return answer_share(rq, ask_open(&q, rq, &a->fh, locks_share));
}

enum nfsstat3
nlm4_unshare(struct request *rq)
{
	const struct nlm4_shareargs *a = &rq->args.nlm.share;
	struct question q;

	question_init(&q, rq);
	question_take_share(&q, a);
	return answer_share(rq, ask_named(&q, rq, &a->fh, locks_unshare));
}

/* By a client whose reboot nobody watches for; it gives all back itself. */
enum nfsstat3
nlm4_nm_lock(struct request *rq)
{
	return take_lock(rq, false, false);
}

/* The name is not looked at: nobody frees but what is his own. */
enum nfsstat3
nlm4_free_all(struct request *rq)
{
	locks_free_all(server_locks(rq->server), rq->client);
	return NFS3_OK;
}
