/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NLM's arguments. The first byte chooses the procedure, the rest is what a
 * client sent. Whatever is decoded lies inside the input and within the
 * protocol's limits, says the same wherever the stream begins, and is not
 * decoded from fewer bytes; GRANTED's is encoded to the same bytes again.
 */
#include "nfsd/nfs3.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static nfs3_decode_fn *const decoder[] = {
	nlm4_decode_test,      nlm4_decode_lock,  nlm4_decode_cancel,
	nlm4_decode_unlock,    nlm4_decode_res,   nlm4_decode_test_res,
	nlm4_decode_sm_notify, nlm4_decode_share, nlm4_decode_free_all,
};
#define DECODERS (sizeof(decoder) / sizeof(*decoder))

struct input {
	uint8_t *data;
	uint32_t bytes;
};

static void
check_object(const struct nlm_netobj *o, const struct input *in)
{
	uint32_t sum = 0;

	assert(o->bytes <= MAXNETOBJ_SZ);
	assert(o->data >= in->data &&
	       o->data + o->bytes <= in->data + in->bytes);
	for (uint32_t i = 0; i < o->bytes; i++)
		sum += o->data[i];
	/* read, so that a sanitizer looks at every byte */
	assert(sum <= 255 * o->bytes);
}

/* Filler may be anything; all else comes out as it came in. */
static void
check_granted(const struct nlm4_lockargs *a, const struct input *in)
{
	static uint8_t out[8192], again[8192];
	union nfs3_args args;
	uint32_t n;
	XDR x;

	xdrmem_create(&x, (char *)out, sizeof(out), XDR_ENCODE);
	assert(nlm4_encode_granted(&x, a));
	n = XDR_GETPOS(&x);
	assert(n == in->bytes);
	xdrmem_create(&x, (char *)out, n, XDR_DECODE);
	assert(nlm4_decode_test(&x, &args));
	xdrmem_create(&x, (char *)again, sizeof(again), XDR_ENCODE);
	assert(nlm4_encode_granted(&x, &args.nlm.lock));
	assert(XDR_GETPOS(&x) == n && memcmp(out, again, n) == 0);
}

static void
check(nfs3_decode_fn *fn, const union nlm4_args *a, const struct input *in)
{
	if (fn == nlm4_decode_res || fn == nlm4_decode_test_res) {
		check_object(&a->answer.cookie, in);
	} else if (fn == nlm4_decode_sm_notify || fn == nlm4_decode_free_all) {
		check_object(&a->notify.name, in);
	} else if (fn == nlm4_decode_share) {
		check_object(&a->share.cookie, in);
		check_object(&a->share.caller_name, in);
		check_object(&a->share.fh, in);
		check_object(&a->share.oh, in);
		assert(a->share.mode <= FSM_DRW && a->share.access <= FSA_RW);
	} else {
		check_object(&a->lock.cookie, in);
		check_object(&a->lock.alock.caller_name, in);
		check_object(&a->lock.alock.fh, in);
		check_object(&a->lock.alock.oh, in);
	}
	if (fn == nlm4_decode_test)
		check_granted(&a->lock, in);
}

static bool
decode(nfs3_decode_fn *fn, const struct input *in, union nfs3_args *args)
{
	XDR x;

	memset(args, 0, sizeof(*args));
	xdrmem_create(&x, (char *)in->data, in->bytes, XDR_DECODE);
	return fn(&x, args);
}

/* From a block of exactly their size, off bytes behind a word boundary. */
static bool
try_at(nfs3_decode_fn *fn, const uint8_t *data, uint32_t n, unsigned off)
{
	uint8_t *block = malloc(off + n + (off + n == 0));
	struct input in = { .data = block + off, .bytes = n };
	union nfs3_args args;
	bool ok;

	assert(block != NULL);
	if (n)
		memcpy(in.data, data, n);
	ok = decode(fn, &in, &args);
	if (ok)
		check(fn, &args.nlm, &in);
	free(block);
	return ok;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	nfs3_decode_fn *fn;
	bool ok;

	if (n == 0 || n > 1 << 20)
		return 0;
	fn = decoder[data[0] % DECODERS];
	ok = try_at(fn, data + 1, (uint32_t)n - 1, 0);
	for (unsigned off = 1; off < 4; off++)
		assert(try_at(fn, data + 1, (uint32_t)n - 1, off) == ok);
	if (ok)
		assert(!try_at(fn, data + 1, (uint32_t)n - 2, 0));
	return 0;
}
