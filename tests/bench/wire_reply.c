/* SPDX-License-Identifier: Apache-2.0 */
/* See wire_reply.h. */
#include "tests/bench/wire_reply.h"

#include <arpa/inet.h>
#include <string.h>

#define ATTRIBUTES_BYTES     84u
#define WCC_ATTRIBUTES_BYTES 24u

const char *
cursor_skip(struct cursor *c, size_t n)
{
	const char *at = c->at;

	if (n > c->left) {
		c->bad = true;
		c->left = 0;
		return NULL;
	}
	c->at += n;
	c->left -= n;
	return at;
}

uint32_t
cursor_u32(struct cursor *c)
{
	const char *at = cursor_skip(c, 4);
	uint32_t v;

	if (at == NULL)
		return 0;
	memcpy(&v, at, 4);
	return ntohl(v);
}

static void
skip_post_op(struct cursor *c)
{
	if (cursor_u32(c) != 0)
		(void)cursor_skip(c, ATTRIBUTES_BYTES);
}

static void
skip_wcc(struct cursor *c)
{
	if (cursor_u32(c) != 0)
		(void)cursor_skip(c, WCC_ATTRIBUTES_BYTES);
	skip_post_op(c);
}

static void
take_verf(struct cursor *c, char *verf)
{
	const char *at = cursor_skip(c, NFS3_WRITEVERFSIZE);

	if (at != NULL)
		memcpy(verf, at, NFS3_WRITEVERFSIZE);
}

static void
take_write(struct cursor *c, WRITE3res *res)
{
	WRITE3resok *ok = &res->WRITE3res_u.resok;

	res->status = (nfsstat3)cursor_u32(c);
	skip_wcc(c);
	if (res->status != NFS3_OK)
		return;
	ok->count = cursor_u32(c);
	ok->committed = (stable_how)cursor_u32(c);
	take_verf(c, ok->verf);
}

static void
take_read(struct cursor *c, READ3res *res)
{
	READ3resok *ok = &res->READ3res_u.resok;

	res->status = (nfsstat3)cursor_u32(c);
	skip_post_op(c);
	if (res->status != NFS3_OK)
		return;
	ok->count = cursor_u32(c);
	ok->eof = (int)cursor_u32(c);
	ok->data.data_len = cursor_u32(c);
	ok->data.data_val = (char *)cursor_skip(c, ok->data.data_len);
}

static void
take_commit(struct cursor *c, COMMIT3res *res)
{
	res->status = (nfsstat3)cursor_u32(c);
	skip_wcc(c);
	if (res->status == NFS3_OK)
		take_verf(c, res->COMMIT3res_u.resok.verf);
}

void
result_take(struct cursor *c, unsigned proc, union result *res)
{
	if (proc == PROC_WRITE)
		take_write(c, &res->write);
	else if (proc == PROC_READ)
		take_read(c, &res->read);
	else if (proc == PROC_COMMIT)
		take_commit(c, &res->commit);
}
