/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call headers against bytes that libtirpc's xdr_callmsg() and
 * xdr_authunix_parms() made, and against bytes by hand where libtirpc would not
 * make them; programs, versions and procedures.
 */
/* libtirpc gives one of its enumerators the name of one of our verdicts. */
#define RPC_MISMATCH TIRPC_MISMATCH
#include <rpc/types.h>

#include <rpc/auth.h>
#include <rpc/auth_unix.h>
#include <rpc/rpc_msg.h>
#undef RPC_MISMATCH

#include "rpc/rpc.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define XID 0x89abcdefu

struct bytes {
	uint8_t data[2048];
	uint32_t n;
};

static void
put(struct bytes *b, uint32_t v)
{
	v = htonl(v);
	memcpy(b->data + b->n, &v, 4);
	b->n += 4;
}

static void
put_opaque(struct bytes *b, const void *data, uint32_t n)
{
	static const uint8_t zeros[3];

	put(b, n);
	memcpy(b->data + b->n, data, n);
	b->n += n;
	memcpy(b->data + b->n, zeros, -n & 3);
	b->n += -n & 3;
}

/* An AUTH_SYS body by libtirpc. */
static void
sys_body(struct bytes *b, const char *machine, unsigned gids)
{
	gid_t list[NGRPS];
	struct authunix_parms parms = { .aup_time = 99,
					.aup_machname = (char *)machine,
					.aup_uid = 1000,
					.aup_gid = 4000000000u,
					.aup_len = gids,
					.aup_gids = list };
	unsigned i;
	XDR xdrs;

	for (i = 0; i < gids; i++)
		list[i] = 500 + i;
	xdrmem_create(&xdrs, (char *)b->data, sizeof(b->data), XDR_ENCODE);
	assert_true(xdr_authunix_parms(&xdrs, &parms));
	b->n = xdr_getpos(&xdrs);
	xdr_destroy(&xdrs);
}

/* A whole call header by libtirpc. */
static void
libtirpc_call(struct bytes *b, uint32_t flavor, const struct bytes *cred)
{
	struct rpc_msg msg = { .rm_xid = XID, .rm_direction = CALL };
	struct call_body *call = &msg.rm_call;
	XDR xdrs;

	call->cb_rpcvers = 2;
	call->cb_prog = 100003;
	call->cb_vers = 3;
	call->cb_proc = 21;
	call->cb_cred.oa_flavor = (enum_t)flavor;
	call->cb_cred.oa_base = (char *)cred->data;
	call->cb_cred.oa_length = cred->n;
	call->cb_verf = _null_auth;
	xdrmem_create(&xdrs, (char *)b->data, sizeof(b->data), XDR_ENCODE);
	assert_true(xdr_callmsg(&xdrs, &msg));
	b->n = xdr_getpos(&xdrs);
	xdr_destroy(&xdrs);
}

/* The same by hand, for what libtirpc refuses to encode. */
static void
hand_call(struct bytes *b, uint32_t flavor, const struct bytes *cred,
	  uint32_t verf_flavor, uint32_t verf_bytes)
{
	static const uint8_t verf[512];

	b->n = 0;
	put(b, XID);
	put(b, 0);
	put(b, 2);
	put(b, 100003);
	put(b, 3);
	put(b, 21);
	put(b, flavor);
	put_opaque(b, cred->data, cred->n);
	put(b, verf_flavor);
	put_opaque(b, verf, verf_bytes);
}

/* Decode bytes that end where they end: a read past them is seen by ASan. */
static enum rpc_verdict
decode(struct rpc_call *c, const struct bytes *b, uint32_t n, bool whole)
{
	uint8_t *exact = malloc(n ? n : 1);
	enum rpc_verdict v;

	assert_non_null(exact);
	memcpy(exact, b->data, n);
	v = rpc_call_decode(c, exact, n, whole);
	free(exact);
	return v;
}

static void
assert_fields(const struct rpc_call *c, const struct bytes *b)
{
	assert_int_equal(c->xid, XID);
	assert_int_equal(c->prog, 100003);
	assert_int_equal(c->vers, 3);
	assert_int_equal(c->proc, 21);
	assert_int_equal(c->header_bytes, b->n);
}

static void
auth_none(void **state)
{
	struct bytes none = { .n = 0 }, b = { .n = 0 };
	struct rpc_call c;

	libtirpc_call(&b, AUTH_NONE, &none);
	assert_int_equal(decode(&c, &b, b.n, true), RPC_OK);
	assert_fields(&c, &b);
	assert_int_equal(c.cred.flavor, RPC_AUTH_NONE);
	assert_int_equal(c.cred.gids, 0);
	/* Section 10.1 recommends an empty body, no more. */
	none.n = 5;
	hand_call(&b, RPC_AUTH_NONE, &none, RPC_AUTH_NONE, 7);
	assert_int_equal(decode(&c, &b, b.n, true), RPC_OK);
	assert_fields(&c, &b);
}

static void
check_sys(const char *machine, unsigned gids)
{
	struct bytes cred, b = { .n = 0 };
	struct rpc_call c;
	unsigned i;

	sys_body(&cred, machine, gids);
	libtirpc_call(&b, AUTH_SYS, &cred);
	assert_int_equal(decode(&c, &b, b.n, true), RPC_OK);
	assert_fields(&c, &b);
	assert_int_equal(c.cred.flavor, RPC_AUTH_SYS);
	assert_int_equal(c.cred.uid, 1000);
	assert_int_equal(c.cred.gid, 4000000000u);
	assert_int_equal(c.cred.gids, gids);
	for (i = 0; i < gids; i++)
		assert_int_equal(c.cred.gid_list[i], 500 + i);
	assert_int_equal(c.cred.machine_bytes, strlen(machine));
	assert_string_equal(c.cred.machine, machine);
	/* Arguments that follow are not the header's. */
	put(&b, 0xffffffff);
	assert_int_equal(decode(&c, &b, b.n, false), RPC_OK);
	assert_int_equal(c.header_bytes, b.n - 4);
}

static void
auth_sys(void **state)
{
	char machine[RPC_MACHINE_BYTES_MAX + 1];
	uint32_t n, gids;

	memset(machine, 'm', sizeof(machine));
	for (gids = 0; gids <= RPC_AUTH_SYS_GIDS_MAX; gids++)
		check_sys("client", gids);
	for (n = 0; n <= RPC_MACHINE_BYTES_MAX; n++) {
		machine[n] = '\0';
		check_sys(machine, 16);
		machine[n] = 'm';
	}
}

/* What is there of the header, byte by byte. */
static void
short_headers(void **state)
{
	struct bytes cred, b = { .n = 0 };
	struct rpc_call c;
	uint32_t n;

	sys_body(&cred, "abc", 2);
	libtirpc_call(&b, AUTH_SYS, &cred);
	for (n = 0; n < b.n; n++) {
		assert_int_equal(decode(&c, &b, n, false), RPC_SHORT);
		assert_int_equal(c.xid, n < 4 ? 0 : XID);
		assert_int_equal(decode(&c, &b, n, true),
				 n < 12 ? RPC_NOT_A_CALL : RPC_GARBAGE_ARGS);
		assert_int_equal(c.xid, n < 4 ? 0 : XID);
	}
	assert_int_equal(decode(&c, &b, b.n, false), RPC_OK);
}

static void
not_a_call(void **state)
{
	struct bytes b = { .n = 0 };
	struct rpc_call c;

	put(&b, XID);
	put(&b, 1); /* REPLY */
	assert_int_equal(decode(&c, &b, b.n, false), RPC_NOT_A_CALL);
	assert_int_equal(decode(&c, &b, b.n, true), RPC_NOT_A_CALL);
	put(&b, 2);
	assert_int_equal(decode(&c, &b, b.n, true), RPC_NOT_A_CALL);
}

static void
rpc_version(void **state)
{
	static const uint32_t versions[] = { 0, 1, 3, UINT32_MAX };
	struct rpc_call c;
	unsigned i;

	for (i = 0; i < 4; i++) {
		struct bytes b = { .n = 0 };

		put(&b, XID);
		put(&b, 0);
		put(&b, versions[i]);
		assert_int_equal(decode(&c, &b, b.n, false), RPC_MISMATCH);
		assert_int_equal(decode(&c, &b, b.n, true), RPC_MISMATCH);
		assert_int_equal(c.xid, XID);
	}
}

static void
assert_badcred(const struct bytes *cred, uint32_t flavor)
{
	struct bytes b;
	struct rpc_call c;

	hand_call(&b, flavor, cred, RPC_AUTH_NONE, 0);
	assert_int_equal(decode(&c, &b, b.n, true), RPC_AUTH_BADCRED);
	assert_int_equal(c.auth_stat, AUTH_BADCRED);
	assert_int_equal(c.xid, XID);
}

static void
bad_creds(void **state)
{
	struct bytes cred;
	uint32_t whole, n;

	/* A body that ends early, whole words and not. */
	sys_body(&cred, "abc", 3);
	whole = cred.n;
	for (n = 0; n < whole; n++) {
		cred.n = n;
		assert_badcred(&cred, RPC_AUTH_SYS);
	}
	/* 17 groups, all there. */
	cred.n = 0;
	put(&cred, 0);
	put_opaque(&cred, "abc", 3);
	put(&cred, 1);
	put(&cred, 1);
	put(&cred, 17);
	for (n = 0; n < 17; n++)
		put(&cred, n);
	assert_badcred(&cred, RPC_AUTH_SYS);
	/* A machine name of 256 bytes, and one of 2^32 - 1. */
	memset(&cred, 'x', sizeof(cred));
	cred.n = 4;
	put(&cred, 256);
	cred.n += 256;
	put(&cred, 1);
	put(&cred, 1);
	put(&cred, 0);
	assert_badcred(&cred, RPC_AUTH_SYS);
	cred.n = 4;
	put(&cred, UINT32_MAX);
	cred.n = 100;
	assert_badcred(&cred, RPC_AUTH_SYS);
	/* More than 400 bytes, of any flavor. */
	cred.n = 401;
	assert_badcred(&cred, RPC_AUTH_NONE);
	assert_badcred(&cred, RPC_AUTH_SYS);
	assert_badcred(&cred, 6);
}

/* 400 bytes are allowed; what follows the groups is let pass. */
static void
largest_cred(void **state)
{
	struct bytes cred, b;
	struct rpc_call c;

	sys_body(&cred, "abc", 16);
	memset(cred.data + cred.n, 0, RPC_AUTH_BYTES_MAX - cred.n);
	cred.n = RPC_AUTH_BYTES_MAX;
	hand_call(&b, RPC_AUTH_SYS, &cred, RPC_AUTH_NONE, RPC_AUTH_BYTES_MAX);
	assert_int_equal(b.n, RPC_CALL_BYTES_MAX);
	assert_int_equal(decode(&c, &b, b.n, true), RPC_OK);
	assert_fields(&c, &b);
	assert_int_equal(c.cred.gids, 16);
}

/* AUTH_SHORT, AUTH_DH, RPCSEC_GSS, AUTH_TLS and nonsense, before the body of
 * the credential has arrived. */
static void
other_flavors(void **state)
{
	static const uint32_t flavors[] = { 2, 3, 6, 7, 390003, UINT32_MAX };
	struct bytes cred = { .n = 20 }, b;
	struct rpc_call c;
	unsigned i;

	for (i = 0; i < 6; i++) {
		hand_call(&b, flavors[i], &cred, RPC_AUTH_NONE, 0);
		assert_int_equal(decode(&c, &b, 32, false), RPC_AUTH_REJECTED);
		assert_int_equal(decode(&c, &b, b.n, true), RPC_AUTH_REJECTED);
		assert_int_equal(c.auth_stat, AUTH_REJECTEDCRED);
		assert_int_equal(c.cred.flavor, flavors[i]);
		assert_int_equal(c.xid, XID);
	}
}

static void
bad_verfs(void **state)
{
	struct bytes cred, b;
	struct rpc_call c;

	sys_body(&cred, "abc", 1);
	hand_call(&b, RPC_AUTH_SYS, &cred, RPC_AUTH_SYS, 0);
	assert_int_equal(decode(&c, &b, b.n, true), RPC_AUTH_BADVERF);
	assert_int_equal(c.auth_stat, AUTH_BADVERF);
	hand_call(&b, RPC_AUTH_SYS, &cred, RPC_AUTH_NONE, 401);
	assert_int_equal(decode(&c, &b, b.n, true), RPC_AUTH_BADVERF);
}

static const struct rpc_program programs[] = {
	{ .prog = 100005, .vers = 3, .procs = 6 },
	{ .prog = 100003, .vers = 3, .procs = 22 },
	{ .prog = 100005, .vers = 1, .procs = 6 },
	{ .prog = 200000, .vers = 0, .procs = 1 },
};

static enum rpc_verdict
find(struct rpc_call *c, uint32_t prog, uint32_t vers, uint32_t proc,
     unsigned *index)
{
	memset(c, 0, sizeof(*c));
	c->prog = prog;
	c->vers = vers;
	c->proc = proc;
	*index = 77;
	return rpc_program_find(programs, 4, c, index);
}

static void
program_found(void **state)
{
	struct rpc_call c;
	unsigned i;

	assert_int_equal(find(&c, 100005, 3, 5, &i), RPC_OK);
	assert_int_equal(i, 0);
	assert_int_equal(find(&c, 100005, 1, 0, &i), RPC_OK);
	assert_int_equal(i, 2);
	assert_int_equal(find(&c, 100003, 3, 21, &i), RPC_OK);
	assert_int_equal(i, 1);
}

static void
program_not_found(void **state)
{
	struct rpc_call c;
	unsigned i;

	assert_int_equal(find(&c, 100004, 3, 0, &i), RPC_PROG_UNAVAIL);
	assert_int_equal(find(&c, 100003, 3, 22, &i), RPC_PROC_UNAVAIL);
	assert_int_equal(find(&c, 100003, 3, UINT32_MAX, &i), RPC_PROC_UNAVAIL);
	assert_int_equal(find(&c, 100003, 4, 99, &i), RPC_PROG_MISMATCH);
	assert_int_equal(c.low, 3);
	assert_int_equal(c.high, 3);
	assert_int_equal(find(&c, 100005, 2, 0, &i), RPC_PROG_MISMATCH);
	assert_int_equal(c.low, 1);
	assert_int_equal(c.high, 3);
	assert_int_equal(find(&c, 200000, 1, 0, &i), RPC_PROG_MISMATCH);
	assert_int_equal(c.low, 0);
	assert_int_equal(c.high, 0);
	assert_int_equal(i, 77);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(auth_none),
		cmocka_unit_test(auth_sys),
		cmocka_unit_test(short_headers),
		cmocka_unit_test(not_a_call),
		cmocka_unit_test(rpc_version),
		cmocka_unit_test(bad_creds),
		cmocka_unit_test(largest_cred),
		cmocka_unit_test(other_flavors),
		cmocka_unit_test(bad_verfs),
		cmocka_unit_test(program_found),
		cmocka_unit_test(program_not_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
