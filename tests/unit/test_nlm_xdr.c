/* SPDX-License-Identifier: Apache-2.0 */
/* NLM's arguments and results on the wire, against libnfs and by hand. */
#include "nfsd/nfs3.h"
#include "tests/unit/zdr_peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define SEEDS     200u
#define BYTES_MAX 8192u

static uint8_t ours[BYTES_MAX], theirs[BYTES_MAX];

static bool
decode(nfs3_decode_fn *fn, const uint8_t *bytes, uint32_t n,
       union nfs3_args *args)
{
	XDR x;

	memset(args, 0xa5, sizeof(*args));
	xdrmem_create(&x, (char *)bytes, n, XDR_DECODE);
	return fn(&x, args);
}

/* All n bytes, and neither fewer nor more. */
static void
check_whole(nfs3_decode_fn *fn, uint32_t n, union nfs3_args *args)
{
	memset(theirs + n, 0, 4);
	assert_false(decode(fn, theirs, n + 4, args));
	for (uint32_t cut = 0; cut < n; cut++)
		assert_false(decode(fn, theirs, cut, args));
	assert_true(decode(fn, theirs, n, args));
}

static void
is_bytes(const struct nlm_netobj *o, const void *bytes, size_t n)
{
	assert_int_equal(o->bytes, n);
	assert_memory_equal(o->data, bytes, n);
}

static void
check_lock(const struct nlm4_lockargs *a, const struct sample *s)
{
	is_bytes(&a->cookie, s->verf, sizeof(s->verf));
	is_bytes(&a->alock.caller_name, s->name, strlen(s->name));
	is_bytes(&a->alock.fh, s->fh.data, s->fh.bytes);
	is_bytes(&a->alock.oh, s->name2, strlen(s->name2));
	assert_int_equal(a->alock.svid, s->u32[0]);
	assert_int_equal(a->alock.l_offset, s->u64[0]);
	assert_int_equal(a->alock.l_len, s->u64[1]);
}

static void
test_args(void **state)
{
	static nfs3_decode_fn *const fn[] = {
		[PEER_NLM_TEST] = nlm4_decode_test,
		[PEER_NLM_LOCK] = nlm4_decode_lock,
		[PEER_NLM_CANCEL] = nlm4_decode_cancel,
		[PEER_NLM_UNLOCK] = nlm4_decode_unlock,
	};
	const struct nlm4_lockargs *a;
	union nfs3_args args;
	struct sample s;
	bool block, reclaim;
	uint32_t n;

	for (unsigned i = 0; i < 4 * SEEDS; i++) {
		enum peer_nlm what = i % 4;

		sample_random(&s, i);
		n = peer_nlm_args(what, &s, theirs, sizeof(theirs) - 4);
		check_whole(fn[what], n, &args);
		a = &args.nlm.lock;
		check_lock(a, &s);
		/* What the arguments do not have is false or 0. */
		block = what == PEER_NLM_LOCK || what == PEER_NLM_CANCEL;
		reclaim = what == PEER_NLM_LOCK;
		assert_int_equal(a->exclusive,
				 what != PEER_NLM_UNLOCK && s.flag[0]);
		assert_int_equal(a->block, block && s.flag[1]);
		assert_int_equal(a->reclaim, reclaim && s.flag[2]);
		assert_int_equal(a->state, reclaim ? (int32_t)s.u32[1] : 0);
	}
}

static struct nlm_netobj
bytes_of(const void *data, uint32_t n)
{
	return (struct nlm_netobj){ .data = data, .bytes = n };
}

static uint32_t
encode(nfs3_encode_fn *fn, const union nfs3_res *res)
{
	uint32_t n;
	XDR x;

	xdrmem_create(&x, (char *)ours, sizeof(ours), XDR_ENCODE);
	/* Which status is passed does not count. */
	assert_true(fn(&x, NFS3ERR_IO, res));
	n = XDR_GETPOS(&x);
	while (n-- > 0) {
		xdrmem_create(&x, (char *)ours, n, XDR_ENCODE);
		assert_false(fn(&x, NFS3_OK, res));
	}
	xdrmem_create(&x, (char *)ours, sizeof(ours), XDR_ENCODE);
	assert_true(fn(&x, NFS3_OK, res));
	return XDR_GETPOS(&x);
}

/* As sent and as received. */
static void
test_res(void **state)
{
	union nfs3_args args;
	union nfs3_res res;
	struct sample s;
	uint32_t stat, n;

	memset(&res, 0, sizeof(res));
	for (unsigned seed = 0; seed < SEEDS; seed++) {
		stat = seed % (NLM4_FAILED + 1);
		sample_random(&s, seed);
		n = peer_nlm_res(stat, &s, theirs, sizeof(theirs) - 4);
		res.nlm.cookie = bytes_of(s.verf, sizeof(s.verf));
		res.nlm.stat = stat;
		assert_int_equal(encode(nlm4_encode_res, &res), n);
		assert_memory_equal(ours, theirs, n);
		check_whole(nlm4_decode_res, n, &args);
		is_bytes(&args.nlm.answer.cookie, s.verf, sizeof(s.verf));
		assert_int_equal(args.nlm.answer.stat, stat);
	}
}

/* With a holder where it is denied. */
static void
test_test_res(void **state)
{
	struct nlm4_holder *h;
	union nfs3_args args;
	union nfs3_res res;
	struct sample s;
	uint32_t stat, n;

	memset(&res, 0, sizeof(res));
	h = &res.nlm.holder;
	for (unsigned seed = 0; seed < SEEDS; seed++) {
		stat = seed % 2 ? NLM4_DENIED : seed % (NLM4_FAILED + 1);
		sample_random(&s, seed);
		n = peer_nlm_test_res(stat, &s, theirs, sizeof(theirs) - 4);
		res.nlm.cookie = bytes_of(s.verf, sizeof(s.verf));
		res.nlm.stat = stat;
		h->exclusive = s.flag[0];
		h->svid = s.u32[0];
		h->oh_bytes = (uint32_t)strlen(s.name2);
		memcpy(h->oh, s.name2, h->oh_bytes);
		h->l_offset = s.u64[0];
		h->l_len = s.u64[1];
		assert_int_equal(encode(nlm4_encode_test, &res), n);
		assert_memory_equal(ours, theirs, n);
		check_whole(nlm4_decode_test_res, n, &args);
		is_bytes(&args.nlm.answer.cookie, s.verf, sizeof(s.verf));
		assert_int_equal(args.nlm.answer.stat, stat);
	}
}

/* What the server sends itself. */
static void
test_granted(void **state)
{
	struct nlm4_lockargs a;
	struct sample s;
	uint32_t n;
	XDR x;

	for (unsigned seed = 0; seed < SEEDS; seed++) {
		sample_random(&s, seed);
		n = peer_nlm_args(PEER_NLM_TEST, &s, theirs, sizeof(theirs));
		memset(&a, 0, sizeof(a));
		a.cookie = bytes_of(s.verf, sizeof(s.verf));
		a.exclusive = s.flag[0];
		a.alock.caller_name = bytes_of(s.name, strlen(s.name));
		a.alock.fh = bytes_of(s.fh.data, s.fh.bytes);
		a.alock.oh = bytes_of(s.name2, strlen(s.name2));
		a.alock.svid = s.u32[0];
		a.alock.l_offset = s.u64[0];
		a.alock.l_len = s.u64[1];
		xdrmem_create(&x, (char *)ours, sizeof(ours), XDR_ENCODE);
		assert_true(nlm4_encode_granted(&x, &a));
		assert_int_equal(XDR_GETPOS(&x), n);
		assert_memory_equal(ours, theirs, n);
	}
}

/* libnfs has no SHARE: X/Open's description in bytes. */
static const uint8_t share_bytes[] = {
	0, 0, 0, 3, 'c', 'o', 'o', 0,   /* cookie */
	0, 0, 0, 4, 'h', 'o', 's', 't', /* caller_name */
	0, 0, 0, 5, 1,   2,   3,   4,   /* fh */
	5, 0, 0, 0,                     /* and its filler */
	0, 0, 0, 2, 'o', 'h', 0,   0,   /* oh */
	0, 0, 0, 2,                     /* fsh4_mode: deny writing */
	0, 0, 0, 1,                     /* fsh4_access: to read */
	0, 0, 0, 1,                     /* reclaim */
};

static void
test_share(void **state)
{
	static const uint8_t result[] = { 0, 0, 0, 3, 'c', 'o', 'o', 0,
					  0, 0, 0, 1, 0,   0,   1,   2 };
	const struct nlm4_shareargs *a;
	union nfs3_args args;
	union nfs3_res res;
	uint32_t n = sizeof(share_bytes);

	memcpy(theirs, share_bytes, n);
	check_whole(nlm4_decode_share, n, &args);
	a = &args.nlm.share;
	is_bytes(&a->cookie, "coo", 3);
	is_bytes(&a->caller_name, "host", 4);
	is_bytes(&a->fh, "\1\2\3\4\5", 5);
	is_bytes(&a->oh, "oh", 2);
	assert_int_equal(a->mode, FSM_DW);
	assert_int_equal(a->access, FSA_R);
	assert_true(a->reclaim);
	theirs[n - 9] = 4; /* no such mode */
	assert_false(decode(nlm4_decode_share, theirs, n, &args));
	theirs[n - 9] = 3;
	theirs[n - 5] = 4; /* no such access */
	assert_false(decode(nlm4_decode_share, theirs, n, &args));
	theirs[n - 5] = 0;
	theirs[n - 1] = 2; /* no boolean */
	assert_false(decode(nlm4_decode_share, theirs, n, &args));
	theirs[n - 1] = 0;
	assert_true(decode(nlm4_decode_share, theirs, n, &args));
	assert_int_equal(a->mode, FSM_DRW);
	assert_int_equal(a->access, FSA_NONE);
	memset(&res, 0, sizeof(res));
	res.nlm.cookie = bytes_of("coo", 3);
	res.nlm.stat = NLM4_DENIED;
	res.nlm.sequence = 258;
	assert_int_equal(encode(nlm4_encode_share, &res), sizeof(result));
	assert_memory_equal(ours, result, sizeof(result));
}

static void
test_notify(void **state)
{
	static const uint8_t bytes[] = { 0,   0,   0,   4,   'h', 'o', 's',
					 't', 0,   0,   0,   7,   '1', '2',
					 '3', '4', '5', '6', '7', '8', '9',
					 'a', 'b', 'c', 'd', 'e', 'f', 'g' };
	const struct nlm4_notify *a;
	union nfs3_args args;

	a = &args.nlm.notify;
	memcpy(theirs, bytes, sizeof(bytes));
	check_whole(nlm4_decode_sm_notify, sizeof(bytes), &args);
	is_bytes(&a->name, "host", 4);
	assert_int_equal(a->state, 7);
	assert_memory_equal(a->priv, "123456789abcdefg", SM_PRIV_BYTES);
	check_whole(nlm4_decode_free_all, 12, &args);
	is_bytes(&a->name, "host", 4);
	assert_int_equal(a->state, 7);
}

static void
put_word(uint32_t at, uint32_t word)
{
	theirs[at] = (uint8_t)(word >> 24);
	theirs[at + 1] = (uint8_t)(word >> 16);
	theirs[at + 2] = (uint8_t)(word >> 8);
	theirs[at + 3] = (uint8_t)word;
}

/* An UNLOCK whose four lengths are these. */
static bool
unlock_of(uint32_t cookie, uint32_t caller, uint32_t fh, uint32_t oh)
{
	const uint32_t length[] = { cookie, caller, fh, oh };
	union nfs3_args args;
	uint32_t at = 0;

	memset(theirs, 0, sizeof(theirs));
	for (unsigned i = 0; i < 4; i++) {
		put_word(at, length[i]);
		at += 4 + ((length[i] + 3) & ~3u);
	}
	at += 4 + 8 + 8;
	return decode(nlm4_decode_unlock, theirs, at, &args);
}

/* The standard's limits; of a handle, not ours. */
static void
test_limits(void **state)
{
	assert_true(unlock_of(0, 0, 0, 0));
	assert_true(unlock_of(1024, 1024, 1024, 1024));
	assert_false(unlock_of(1025, 0, 0, 0));
	assert_false(unlock_of(0, 1025, 0, 0));
	assert_false(unlock_of(0, 0, 1025, 0));
	assert_false(unlock_of(0, 0, 0, 1025));
	assert_false(unlock_of(0, 0, 0, UINT32_MAX));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_args),     cmocka_unit_test(test_res),
		cmocka_unit_test(test_test_res), cmocka_unit_test(test_granted),
		cmocka_unit_test(test_share),    cmocka_unit_test(test_notify),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
