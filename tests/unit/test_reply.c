/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reply headers against bytes that libtirpc's xdr_replymsg() encodes, and one
 * against words by hand, in case both sides share a mistake. Nothing is written
 * past a reply's end.
 */
/* libtirpc gives one of its enumerators the name of one of our verdicts. */
#define RPC_MISMATCH TIRPC_MISMATCH
#include <rpc/types.h>

#include <rpc/auth.h>
#include <rpc/rpc_msg.h>
#undef RPC_MISMATCH

#include "rpc/rpc.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define XID 0xfedcba98u

struct reply {
	uint8_t data[RPC_REPLY_ERROR_BYTES_MAX + 16];
	uint32_t n;
};

static bool_t
no_results(XDR *xdrs, ...)
{
	return TRUE;
}

/* msg's xid, direction and verifier are filled in here. */
static void
libtirpc_reply(struct reply *r, struct rpc_msg *msg)
{
	XDR xdrs;

	msg->rm_xid = XID;
	msg->rm_direction = REPLY;
	if (msg->rm_reply.rp_stat == MSG_ACCEPTED)
		msg->acpted_rply.ar_verf = _null_auth;
	xdrmem_create(&xdrs, (char *)r->data, sizeof(r->data), XDR_ENCODE);
	assert_true(xdr_replymsg(&xdrs, msg));
	r->n = xdr_getpos(&xdrs);
	xdr_destroy(&xdrs);
}

static void
our_error(struct reply *r, const struct rpc_call *c, enum rpc_verdict v)
{
	memset(r->data, 0xa5, sizeof(r->data));
	r->n = rpc_reply_error(r->data, c, v);
}

static void
assert_reply(const struct reply *got, const struct reply *want)
{
	uint32_t i;

	assert_int_equal(got->n, want->n);
	assert_memory_equal(got->data, want->data, want->n);
	for (i = got->n; i < sizeof(got->data); i++)
		assert_int_equal(got->data[i], 0xa5);
}

static void
success(void **state)
{
	struct rpc_msg msg = { .rm_reply = { .rp_stat = MSG_ACCEPTED } };
	struct reply want, got;

	msg.acpted_rply.ar_stat = SUCCESS;
	msg.acpted_rply.ar_results.proc = no_results;
	libtirpc_reply(&want, &msg);
	assert_int_equal(want.n, RPC_REPLY_BYTES);
	memset(got.data, 0xa5, sizeof(got.data));
	rpc_reply_success(got.data, XID);
	got.n = RPC_REPLY_BYTES;
	assert_reply(&got, &want);
}

static void
rpc_mismatch(void **state)
{
	struct rpc_msg msg = { .rm_reply = { .rp_stat = MSG_DENIED } };
	const struct rpc_call c = { .xid = XID, .low = 7, .high = 8 };
	struct reply want, got;

	msg.rjcted_rply.rj_stat = TIRPC_MISMATCH;
	msg.rjcted_rply.rj_vers.low = 2;
	msg.rjcted_rply.rj_vers.high = 2;
	libtirpc_reply(&want, &msg);
	our_error(&got, &c, RPC_MISMATCH);
	assert_reply(&got, &want);
}

static void
check_auth(enum rpc_verdict v, uint32_t auth_stat, enum auth_stat expected)
{
	struct rpc_msg msg = { .rm_reply = { .rp_stat = MSG_DENIED } };
	const struct rpc_call c = { .xid = XID, .auth_stat = auth_stat };
	struct reply want, got;

	msg.rjcted_rply.rj_stat = AUTH_ERROR;
	msg.rjcted_rply.rj_why = expected;
	libtirpc_reply(&want, &msg);
	our_error(&got, &c, v);
	assert_reply(&got, &want);
}

static void
auth_errors(void **state)
{
	check_auth(RPC_AUTH_BADCRED, 0, AUTH_BADCRED);
	check_auth(RPC_AUTH_BADVERF, 0, AUTH_BADVERF);
	check_auth(RPC_AUTH_REJECTED, RPC_STAT_REJECTEDCRED, AUTH_REJECTEDCRED);
	check_auth(RPC_AUTH_REJECTED, RPC_STAT_TOOWEAK, AUTH_TOOWEAK);
}

static void
check_accepted(enum rpc_verdict v, enum accept_stat stat)
{
	struct rpc_msg msg = { .rm_reply = { .rp_stat = MSG_ACCEPTED } };
	const struct rpc_call c = { .xid = XID, .low = 1, .high = 3 };
	struct reply want, got;

	msg.acpted_rply.ar_stat = stat;
	if (stat == PROG_MISMATCH) {
		msg.acpted_rply.ar_vers.low = 1;
		msg.acpted_rply.ar_vers.high = 3;
	}
	libtirpc_reply(&want, &msg);
	our_error(&got, &c, v);
	assert_reply(&got, &want);
}

static void
accepted_errors(void **state)
{
	check_accepted(RPC_PROG_UNAVAIL, PROG_UNAVAIL);
	check_accepted(RPC_PROG_MISMATCH, PROG_MISMATCH);
	check_accepted(RPC_PROC_UNAVAIL, PROC_UNAVAIL);
	check_accepted(RPC_GARBAGE_ARGS, GARBAGE_ARGS);
	check_accepted(RPC_SYSTEM_ERR, SYSTEM_ERR);
}

/* The numbers of the RFC, in case both sides share a mistake. */
static void
by_hand(void **state)
{
	const uint32_t want[8] = { htonl(XID), htonl(1), 0,        0,
				   0,          htonl(2), htonl(1), htonl(3) };
	const struct rpc_call c = { .xid = XID, .low = 1, .high = 3 };
	struct reply got;

	our_error(&got, &c, RPC_PROG_MISMATCH);
	assert_int_equal(got.n, RPC_REPLY_ERROR_BYTES_MAX);
	assert_memory_equal(got.data, want, sizeof(want));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(success),
		cmocka_unit_test(rpc_mismatch),
		cmocka_unit_test(auth_errors),
		cmocka_unit_test(accepted_errors),
		cmocka_unit_test(by_hand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
