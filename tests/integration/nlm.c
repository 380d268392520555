/* SPDX-License-Identifier: Apache-2.0 */
/* See nlm.h: calls of NLM version 4, by hand. */
#include "nlm.h"

#include <stdio.h>
#include <string.h>

#define PROGRAM 100021

static const char cookie[] = { 'c', 0, 'o', 1, 'k' };

static void
put_u64(struct raw *r, uint64_t v)
{
	raw_put(r, (uint32_t)(v >> 32));
	raw_put(r, (uint32_t)v);
}

static uint64_t
get_u64(const struct raw *r, uint32_t at)
{
	return (uint64_t)raw_get(r, at) << 32 | raw_get(r, at + 4);
}

static void
put_lock(struct raw *r, const struct lock *l)
{
	raw_put_opaque(r, NLM_CALLER, sizeof(NLM_CALLER) - 1);
	raw_put_opaque(r, l->fh->data, l->fh->bytes);
	raw_put_opaque(r, l->oh, (uint32_t)strlen(l->oh));
	raw_put(r, l->svid);
	put_u64(r, l->offset);
	put_u64(r, l->length);
}

/* The form of a call, whichever way its answer comes. */
static uint32_t
form_of(uint32_t proc)
{
	if (proc == NLM_NM_LOCK)
		return NLM_LOCK;
	return proc >= NLM_TEST_MSG ? proc - (NLM_TEST_MSG - NLM_TEST) : proc;
}

void
nlm_build(struct raw *r, uint32_t proc, const struct lock *l)
{
	uint32_t form = form_of(proc);

	raw_build(r, PROGRAM, 4, proc, NULL, NULL);
	raw_put_opaque(r, cookie, sizeof(cookie));
	if (form == NLM_LOCK || form == NLM_CANCEL)
		raw_put(r, l->block);
	if (form != NLM_UNLOCK)
		raw_put(r, l->exclusive);
	put_lock(r, l);
	if (form == NLM_LOCK) {
		raw_put(r, l->reclaim);
		raw_put(r, (uint32_t)l->state);
	}
}

static uint32_t
take_holder(const struct raw *r, uint32_t at, struct holder *holder)
{
	uint32_t n;

	memset(holder, 0, sizeof(*holder));
	holder->exclusive = raw_get(r, at) == 1;
	holder->svid = raw_get(r, at + 4);
	n = raw_get(r, at + 8);
	assert_true(n < sizeof(holder->oh));
	at += 12;
	memcpy(holder->oh, r->in + at, n);
	at += (n + 3) & ~3u;
	holder->offset = get_u64(r, at);
	holder->length = get_u64(r, at + 8);
	return at + 16;
}

int
nlm_result(struct raw *r, struct holder *holder)
{
	uint32_t at = r->body, stat;

	assert_int_equal(r->reply_stat, 0);
	assert_int_equal(r->accept_stat, 0);
	assert_int_equal(raw_get(r, at), sizeof(cookie));
	assert_memory_equal(r->in + at + 4, cookie, sizeof(cookie));
	at += 4 + ((sizeof(cookie) + 3) & ~3u);
	stat = raw_get(r, at);
	at += 4;
	if (holder != NULL && stat == LOCK_DENIED)
		at = take_holder(r, at, holder);
	assert_int_equal(at, r->in_bytes);
	return (int)stat;
}

static void
call(struct raw *r)
{
	raw_send(r);
	assert_true(raw_receive(r));
	assert_int_equal(r->reply_xid, r->xid - 1);
}

int
nlm_ask(struct raw *r, uint32_t proc, const struct lock *l)
{
	nlm_build(r, proc, l);
	call(r);
	return nlm_result(r, NULL);
}

int
nlm_test(struct raw *r, const struct lock *l, struct holder *holder)
{
	struct holder ignored;

	nlm_build(r, NLM_TEST, l);
	call(r);
	return nlm_result(r, holder != NULL ? holder : &ignored);
}

static void
call_void(struct raw *r)
{
	call(r);
	assert_int_equal(r->reply_stat, 0);
	assert_int_equal(r->accept_stat, 0);
	assert_int_equal(r->in_bytes, r->body);
}

void
nlm_tell(struct raw *r, uint32_t proc, const struct lock *l)
{
	nlm_build(r, proc, l);
	call_void(r);
}

void
nlm_reply(struct raw *r, uint32_t proc, const void *its_cookie, uint32_t n,
	  uint32_t stat)
{
	raw_build(r, PROGRAM, 4, proc, NULL, NULL);
	raw_put_opaque(r, its_cookie, n);
	raw_put(r, stat);
	call_void(r);
}

int
nlm_share(struct raw *r, uint32_t proc, const struct raw_fh *fh, const char *oh,
	  uint32_t mode, uint32_t access)
{
	uint32_t at;

	raw_build(r, PROGRAM, 4, proc, NULL, NULL);
	raw_put_opaque(r, cookie, sizeof(cookie));
	raw_put_opaque(r, NLM_CALLER, sizeof(NLM_CALLER) - 1);
	raw_put_opaque(r, fh->data, fh->bytes);
	raw_put_opaque(r, oh, (uint32_t)strlen(oh));
	raw_put(r, mode);
	raw_put(r, access);
	raw_put(r, 0); /* reclaim */
	call(r);
	assert_int_equal(r->accept_stat, 0);
	at = r->body + 4 + ((sizeof(cookie) + 3) & ~3u);
	assert_int_equal(r->in_bytes, at + 8); /* status and sequence */
	return (int)raw_get(r, at);
}

void
nlm_notify(struct raw *r, uint32_t proc, const char *name, int state,
	   const void *priv)
{
	raw_build(r, PROGRAM, 4, proc, NULL, NULL);
	raw_put_opaque(r, name, (uint32_t)strlen(name));
	raw_put(r, (uint32_t)state);
	if (priv != NULL)
		raw_append(r, priv, 16);
	call_void(r);
}
