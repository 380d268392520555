/* SPDX-License-Identifier: Apache-2.0 */
/* NLM's bytes by libnfs: see zdr_peer.h. */
#include "tests/unit/zdr_peer.h"

#include <nfsc/libnfs-zdr.h>

#include <nfsc/libnfs-raw-nlm.h>
#include <stdlib.h>
#include <string.h>

static void
must(bool ok)
{
	if (!ok)
		abort();
}

static nlm_cookie
make_cookie(const struct sample *s)
{
	nlm_cookie c;

	c.data.data_len = sizeof(s->verf);
	c.data.data_val = (char *)s->verf;
	return c;
}

static nlm4_lock
make_lock(const struct sample *s)
{
	nlm4_lock l;

	memset(&l, 0, sizeof(l));
	l.caller_name = (char *)s->name;
	l.fh.data.data_len = s->fh.bytes;
	l.fh.data.data_val = (char *)s->fh.data;
	l.oh = (char *)s->name2;
	l.svid = s->u32[0];
	l.l_offset = s->u64[0];
	l.l_len = s->u64[1];
	return l;
}

uint32_t
peer_nlm_args(enum peer_nlm what, const struct sample *s, uint8_t *out,
	      uint32_t room)
{
	NLM4_TESTargs test = { make_cookie(s), s->flag[0], make_lock(s) };
	NLM4_LOCKargs lock = { make_cookie(s), s->flag[1], s->flag[0],
			       make_lock(s),   s->flag[2], (int)s->u32[1] };
	NLM4_CANCargs cancel = { make_cookie(s), s->flag[1], s->flag[0],
				 make_lock(s) };
	NLM4_UNLOCKargs unlock = { make_cookie(s), make_lock(s) };
	ZDR z;

	zdrmem_create(&z, (char *)out, room, ZDR_ENCODE);
	if (what == PEER_NLM_TEST)
		must(zdr_NLM4_TESTargs(&z, &test));
	else if (what == PEER_NLM_LOCK)
		must(zdr_NLM4_LOCKargs(&z, &lock));
	else if (what == PEER_NLM_CANCEL)
		must(zdr_NLM4_CANCargs(&z, &cancel));
	else
		must(zdr_NLM4_UNLOCKargs(&z, &unlock));
	return zdr_getpos(&z);
}

uint32_t
peer_nlm_res(uint32_t stat, const struct sample *s, uint8_t *out, uint32_t room)
{
	NLM4_LOCKres r = { make_cookie(s), (nlmstat4)stat };
	ZDR z;

	zdrmem_create(&z, (char *)out, room, ZDR_ENCODE);
	must(zdr_NLM4_LOCKres(&z, &r));
	return zdr_getpos(&z);
}

uint32_t
peer_nlm_test_res(uint32_t stat, const struct sample *s, uint8_t *out,
		  uint32_t room)
{
	NLM4_TESTres r;
	nlm4_holder *h = &r.reply.nlm4_testreply_u.lock.holder;
	ZDR z;

	memset(&r, 0, sizeof(r));
	r.cookie = make_cookie(s);
	r.reply.status = (nlmstat4)stat;
	h->exclusive = s->flag[0];
	h->svid = s->u32[0];
	h->oh = (char *)s->name2;
	h->l_offset = s->u64[0];
	h->l_len = s->u64[1];
	zdrmem_create(&z, (char *)out, room, ZDR_ENCODE);
	must(zdr_NLM4_TESTres(&z, &r));
	return zdr_getpos(&z);
}
