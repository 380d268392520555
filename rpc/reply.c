/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reply headers (RFC 5531, section 9), written straight into the caller's
 * buffer. Our verifier is always AUTH_NONE. What follows a successful header
 * is the server's.
 */
#include "rpc/rpc.h"

#include <assert.h>

enum msg_type { MSG_REPLY = 1 };
enum reply_stat { MSG_ACCEPTED = 0, MSG_DENIED = 1 };
enum reject_stat { DENIED_MISMATCH = 0, DENIED_AUTH_ERROR = 1 };
enum accept_stat {
	ACCEPT_SUCCESS = 0,
	ACCEPT_PROG_UNAVAIL = 1,
	ACCEPT_PROG_MISMATCH = 2,
	ACCEPT_PROC_UNAVAIL = 3,
	ACCEPT_GARBAGE_ARGS = 4,
	ACCEPT_SYSTEM_ERR = 5
};

#define RPC_VERS 2u

static uint8_t *
put_u32(uint8_t *out, uint32_t v)
{
	out[0] = (uint8_t)(v >> 24);
	out[1] = (uint8_t)(v >> 16);
	out[2] = (uint8_t)(v >> 8);
	out[3] = (uint8_t)v;
	return out + 4;
}

static uint8_t *
put_accepted(uint8_t *out, uint32_t xid, enum accept_stat stat)
{
	out = put_u32(out, xid);
	out = put_u32(out, MSG_REPLY);
	out = put_u32(out, MSG_ACCEPTED);
	out = put_u32(out, RPC_AUTH_NONE);
	out = put_u32(out, 0);
	return put_u32(out, stat);
}

static uint8_t *
put_denied(uint8_t *out, uint32_t xid, enum reject_stat stat)
{
	out = put_u32(out, xid);
	out = put_u32(out, MSG_REPLY);
	out = put_u32(out, MSG_DENIED);
	return put_u32(out, stat);
}

static uint8_t *
put_auth_error(uint8_t *out, uint32_t xid, uint32_t stat)
{
	out = put_denied(out, xid, DENIED_AUTH_ERROR);
	return put_u32(out, stat);
}

void
rpc_reply_success(uint8_t *out, uint32_t xid)
{
	const uint8_t *end = put_accepted(out, xid, ACCEPT_SUCCESS);

	assert(end - out == RPC_REPLY_BYTES);
}

static uint8_t *
put_error(uint8_t *out, const struct rpc_call *c, enum rpc_verdict v)
{
	switch (v) {
	case RPC_MISMATCH:
		out = put_denied(out, c->xid, DENIED_MISMATCH);
		out = put_u32(out, RPC_VERS);
		return put_u32(out, RPC_VERS);
	case RPC_AUTH_BADCRED:
		return put_auth_error(out, c->xid, RPC_STAT_BADCRED);
	case RPC_AUTH_BADVERF:
		return put_auth_error(out, c->xid, RPC_STAT_BADVERF);
	case RPC_AUTH_REJECTED:
		return put_auth_error(out, c->xid, c->auth_stat);
	case RPC_PROG_UNAVAIL:
		return put_accepted(out, c->xid, ACCEPT_PROG_UNAVAIL);
	case RPC_PROG_MISMATCH:
		out = put_accepted(out, c->xid, ACCEPT_PROG_MISMATCH);
		out = put_u32(out, c->low);
		return put_u32(out, c->high);
	case RPC_PROC_UNAVAIL:
		return put_accepted(out, c->xid, ACCEPT_PROC_UNAVAIL);
	case RPC_GARBAGE_ARGS:
		return put_accepted(out, c->xid, ACCEPT_GARBAGE_ARGS);
	case RPC_SYSTEM_ERR:
		return put_accepted(out, c->xid, ACCEPT_SYSTEM_ERR);
	case RPC_OK:
	case RPC_SHORT:
	case RPC_NOT_A_CALL:
		break;
	}
	assert(!"a verdict without a reply");
	return out;
}

uint32_t
rpc_reply_error(uint8_t *out, const struct rpc_call *c, enum rpc_verdict v)
{
	uint32_t bytes = (uint32_t)(put_error(out, c, v) - out);

	assert(bytes <= RPC_REPLY_ERROR_BYTES_MAX);
	return bytes;
}
