/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call header (RFC 5531, section 9): what a record's first bytes ask for,
 * or the reason to reject them. A struct rpc_call is filled in one go and
 * points at nothing; the thread that received the record owns it. Programs and
 * procedures are program.c's, arguments the server's.
 *
 * The checks stand in the RFC's order: is it a call, RPC version, credential,
 * verifier; a header that is wrong early is rejected before its rest is there.
 */
#include "rpc/cursor.h"
#include "rpc/rpc.h"

#include <string.h>

#define MSG_CALL 0u
#define RPC_VERS 2u

static enum rpc_verdict
call_auth_error(struct rpc_call *c, enum rpc_verdict v, enum rpc_auth_stat stat)
{
	c->auth_stat = stat;
	return v;
}

/* The header ends before its end. */
static enum rpc_verdict
call_short(bool whole)
{
	return whole ? RPC_GARBAGE_ARGS : RPC_SHORT;
}

static enum rpc_verdict
call_decode_cred(struct rpc_call *c, struct cursor *cur, bool whole)
{
	uint32_t flavor = cursor_u32(cur);
	uint32_t n = cursor_u32(cur);
	const uint8_t *body;

	if (cur->failed)
		return call_short(whole);
	if (n > RPC_AUTH_BYTES_MAX)
		return call_auth_error(c, RPC_AUTH_BADCRED, RPC_STAT_BADCRED);
	if (flavor != RPC_AUTH_NONE && flavor != RPC_AUTH_SYS) {
		c->cred.flavor = flavor;
		return call_auth_error(c, RPC_AUTH_REJECTED,
				       RPC_STAT_REJECTEDCRED);
	}
	body = cursor_opaque(cur, n);
	if (body == NULL)
		return call_short(whole);
	if (!rpc_cred_decode(&c->cred, flavor, body, n))
		return call_auth_error(c, RPC_AUTH_BADCRED, RPC_STAT_BADCRED);
	return RPC_OK;
}

/* Both flavors go with an AUTH_NONE verifier (appendix A). */
static enum rpc_verdict
call_decode_verf(struct rpc_call *c, struct cursor *cur, bool whole)
{
	uint32_t flavor = cursor_u32(cur);
	uint32_t n = cursor_u32(cur);

	if (cur->failed)
		return call_short(whole);
	if (n > RPC_AUTH_BYTES_MAX || flavor != RPC_AUTH_NONE)
		return call_auth_error(c, RPC_AUTH_BADVERF, RPC_STAT_BADVERF);
	if (cursor_opaque(cur, n) == NULL)
		return call_short(whole);
	return RPC_OK;
}

enum rpc_verdict
rpc_call_decode(struct rpc_call *c, const uint8_t *bytes, uint32_t n,
		bool whole)
{
	struct cursor cur = { .at = bytes, .left = n };
	enum rpc_verdict v;
	uint32_t type, rpc_vers;

	memset(c, 0, sizeof(*c));
	c->xid = cursor_u32(&cur);
	type = cursor_u32(&cur);
	if (!cur.failed && type != MSG_CALL)
		return RPC_NOT_A_CALL;
	rpc_vers = cursor_u32(&cur);
	if (cur.failed)
		return whole ? RPC_NOT_A_CALL : RPC_SHORT;
	if (rpc_vers != RPC_VERS)
		return RPC_MISMATCH;
	c->prog = cursor_u32(&cur);
	c->vers = cursor_u32(&cur);
	c->proc = cursor_u32(&cur);
	v = call_decode_cred(c, &cur, whole);
	if (v == RPC_OK)
		v = call_decode_verf(c, &cur, whole);
	if (v == RPC_OK)
		c->header_bytes = n - cur.left;
	return v;
}
