/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call headers. Input: the first bytes of a record. Every prefix must be short
 * until the verdict is known and give that verdict ever after; what we accept,
 * libtirpc reads the same way; what we reject has a reply.
 */
/* libtirpc gives one of its enumerators the name of one of our verdicts. */
#define RPC_MISMATCH TIRPC_MISMATCH
#include <rpc/types.h>

#include <rpc/rpc_msg.h>
#undef RPC_MISMATCH

#include "rpc/rpc.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>

static void
check_prefixes(const uint8_t *data, uint32_t n, enum rpc_verdict v)
{
	bool known = false;
	struct rpc_call c;
	uint32_t i;

	for (i = 0; i <= n; i++) {
		enum rpc_verdict p = rpc_call_decode(&c, data, i, false);

		assert(p == v || (p == RPC_SHORT && !known));
		known = known || p != RPC_SHORT;
	}
}

static void
check_accepted(const struct rpc_call *c, const uint8_t *data, uint32_t n)
{
	struct rpc_msg msg = { 0 };
	XDR xdrs;

	assert(c->header_bytes >= 40 && c->header_bytes <= RPC_CALL_BYTES_MAX);
	assert(c->header_bytes <= n && c->header_bytes % 4 == 0);
	assert(c->cred.gids <= RPC_AUTH_SYS_GIDS_MAX);
	assert(c->cred.machine_bytes <= RPC_MACHINE_BYTES_MAX);
	xdrmem_create(&xdrs, (char *)data, n, XDR_DECODE);
	assert(xdr_callmsg(&xdrs, &msg));
	assert(xdr_getpos(&xdrs) == c->header_bytes);
	assert(msg.rm_xid == c->xid && msg.rm_call.cb_prog == c->prog &&
	       msg.rm_call.cb_vers == c->vers &&
	       msg.rm_call.cb_proc == c->proc);
	xdr_destroy(&xdrs);
	xdrs.x_op = XDR_FREE;
	xdr_callmsg(&xdrs, &msg);
}

static void
check_program(struct rpc_call *c)
{
	static const struct rpc_program table[] = { { 100003, 3, 22 },
						    { 100005, 3, 6 },
						    { 100005, 1, 6 } };
	uint8_t reply[RPC_REPLY_ERROR_BYTES_MAX];
	unsigned row = 3;
	enum rpc_verdict v = rpc_program_find(table, 3, c, &row);

	if (v == RPC_OK)
		assert(row < 3 && c->proc < table[row].procs);
	else
		rpc_reply_error(reply, c, v);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uint8_t reply[RPC_REPLY_ERROR_BYTES_MAX];
	enum rpc_verdict part, whole;
	struct rpc_call c;

	if (n > 2048)
		return 0;
	part = rpc_call_decode(&c, data, (uint32_t)n, false);
	check_prefixes(data, (uint32_t)n, part);
	whole = rpc_call_decode(&c, data, (uint32_t)n, true);
	if (part == RPC_SHORT)
		assert(whole == RPC_NOT_A_CALL || whole == RPC_GARBAGE_ARGS);
	else
		assert(whole == part);
	if (whole == RPC_OK) {
		check_accepted(&c, data, (uint32_t)n);
		check_program(&c);
	} else if (whole >= RPC_MISMATCH) {
		rpc_reply_error(reply, &c, whole);
	}
	return 0;
}
