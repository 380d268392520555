/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments and results of NLM version 4, decoded and encoded (The Open
 * Group, XNFS, 14; XDR: RFC 4506).
 *
 * Pure functions over libtirpc's memory streams, any thread. Names and netobjs
 * stay where they lie in the record. They know neither locks nor handles.
 */
#include "nfsd/nfs3.h"
#include "nfsd/xdr.h"

#include <assert.h>
#include <string.h>

static_assert(NLM4_HOLDER_BYTES == 8 + NLM4_NETOBJ_BYTES + 16,
	      "exclusive, svid, oh, l_offset, l_len");

/* Parts ------------------------------------------------------------------- */

static bool
get_limited(XDR *x, uint32_t max, struct nlm_netobj *ret)
{
	if (!get_enum(x, max, &ret->bytes))
		return false;
	ret->data = get_inline(x, ret->bytes);
	return ret->data != NULL;
}

static bool
get_netobj(XDR *x, struct nlm_netobj *ret)
{
	return get_limited(x, MAXNETOBJ_SZ, ret);
}

static bool
get_lock(XDR *x, struct nlm4_lock *l)
{
	return get_limited(x, LM_MAXSTRLEN, &l->caller_name) &&
	       get_netobj(x, &l->fh) && get_netobj(x, &l->oh) &&
	       get_u32(x, &l->svid) && get_u64(x, &l->l_offset) &&
	       get_u64(x, &l->l_len);
}

static bool
get_i32(XDR *x, int32_t *ret)
{
	uint32_t word;

	if (!get_u32(x, &word))
		return false;
	*ret = (int32_t)word;
	return true;
}

static bool
put_netobj(XDR *x, const struct nlm_netobj *o)
{
	assert(o->bytes <= MAXNETOBJ_SZ);
	return put_bytes(x, o->data, o->bytes);
}

/* Arguments, in the order of their procedures ------------------------------ */

bool
nlm4_decode_test(XDR *x, union nfs3_args *args)
{
	struct nlm4_lockargs *a = &args->nlm.lock;

	memset(a, 0, sizeof(*a));
	return get_netobj(x, &a->cookie) && get_bool(x, &a->exclusive) &&
	       get_lock(x, &a->alock) && at_end(x);
}

bool
nlm4_decode_lock(XDR *x, union nfs3_args *args)
{
	struct nlm4_lockargs *a = &args->nlm.lock;

	return get_netobj(x, &a->cookie) && get_bool(x, &a->block) &&
	       get_bool(x, &a->exclusive) && get_lock(x, &a->alock) &&
	       get_bool(x, &a->reclaim) && get_i32(x, &a->state) && at_end(x);
}

bool
nlm4_decode_cancel(XDR *x, union nfs3_args *args)
{
	struct nlm4_lockargs *a = &args->nlm.lock;

	memset(a, 0, sizeof(*a));
	return get_netobj(x, &a->cookie) && get_bool(x, &a->block) &&
	       get_bool(x, &a->exclusive) && get_lock(x, &a->alock) &&
	       at_end(x);
}

bool
nlm4_decode_unlock(XDR *x, union nfs3_args *args)
{
	struct nlm4_lockargs *a = &args->nlm.lock;

	memset(a, 0, sizeof(*a));
	return get_netobj(x, &a->cookie) && get_lock(x, &a->alock) && at_end(x);
}

/* Who holds what we never asked for does not matter, but that it is there. */
static bool
skip_holder(XDR *x)
{
	struct nlm_netobj oh;
	uint32_t svid;
	uint64_t word;
	bool exclusive;

	return get_bool(x, &exclusive) && get_u32(x, &svid) &&
	       get_netobj(x, &oh) && get_u64(x, &word) && get_u64(x, &word);
}

bool
nlm4_decode_test_res(XDR *x, union nfs3_args *args)
{
	struct nlm4_answer *a = &args->nlm.answer;

	return get_netobj(x, &a->cookie) && get_u32(x, &a->stat) &&
	       (a->stat != NLM4_DENIED || skip_holder(x)) && at_end(x);
}

bool
nlm4_decode_res(XDR *x, union nfs3_args *args)
{
	struct nlm4_answer *a = &args->nlm.answer;

	return get_netobj(x, &a->cookie) && get_u32(x, &a->stat) && at_end(x);
}

static bool
get_share(XDR *x, struct nlm4_shareargs *a)
{
	uint32_t mode, access;

	if (!get_limited(x, LM_MAXSTRLEN, &a->caller_name) ||
	    !get_netobj(x, &a->fh) || !get_netobj(x, &a->oh) ||
	    !get_enum(x, FSM_DRW, &mode) || !get_enum(x, FSA_RW, &access))
		return false;
	a->mode = (enum fsh4_mode)mode;
	a->access = (enum fsh4_access)access;
	return true;
}

bool
nlm4_decode_share(XDR *x, union nfs3_args *args)
{
	struct nlm4_shareargs *a = &args->nlm.share;

	return get_netobj(x, &a->cookie) && get_share(x, a) &&
	       get_bool(x, &a->reclaim) && at_end(x);
}

bool
nlm4_decode_free_all(XDR *x, union nfs3_args *args)
{
	struct nlm4_notify *a = &args->nlm.notify;

	memset(a->priv, 0, sizeof(a->priv));
	return get_limited(x, LM_MAXSTRLEN, &a->name) &&
	       get_i32(x, &a->state) && at_end(x);
}

bool
nlm4_decode_sm_notify(XDR *x, union nfs3_args *args)
{
	struct nlm4_notify *a = &args->nlm.notify;

	return get_limited(x, SM_MAXSTRLEN, &a->name) &&
	       get_i32(x, &a->state) &&
	       XDR_GETBYTES(x, (char *)a->priv, SM_PRIV_BYTES) && at_end(x);
}

static bool
put_lock(XDR *x, const struct nlm4_lock *l)
{
	return put_netobj(x, &l->caller_name) && put_netobj(x, &l->fh) &&
	       put_netobj(x, &l->oh) && put_u32(x, l->svid) &&
	       put_u64(x, l->l_offset) && put_u64(x, l->l_len);
}

bool
nlm4_encode_granted(XDR *x, const struct nlm4_lockargs *a)
{
	return put_netobj(x, &a->cookie) && put_u32(x, a->exclusive) &&
	       put_lock(x, &a->alock);
}

/* Results ------------------------------------------------------------------ */

bool
nlm4_encode_res(XDR *x, enum nfsstat3 status, const union nfs3_res *res)
{
	const struct nlm4_res *r = &res->nlm;

	return put_netobj(x, &r->cookie) && put_u32(x, r->stat);
}

bool
nlm4_encode_test(XDR *x, enum nfsstat3 status, const union nfs3_res *res)
{
	const struct nlm4_holder *h = &res->nlm.holder;

	if (!nlm4_encode_res(x, status, res))
		return false;
	if (res->nlm.stat != NLM4_DENIED)
		return true;
	assert(h->oh_bytes <= MAXNETOBJ_SZ);
	return put_u32(x, h->exclusive) && put_u32(x, h->svid) &&
	       put_bytes(x, h->oh, h->oh_bytes) && put_u64(x, h->l_offset) &&
	       put_u64(x, h->l_len);
}

bool
nlm4_encode_share(XDR *x, enum nfsstat3 status, const union nfs3_res *res)
{
	return nlm4_encode_res(x, status, res) &&
	       put_u32(x, (uint32_t)res->nlm.sequence);
}
