/* SPDX-License-Identifier: Apache-2.0 */
/* See nfsacl.h. */
#include "nfsacl.h"

static uint32_t
take(const struct raw *r, uint32_t *at)
{
	*at += 4;
	return raw_get(r, *at - 4);
}

static void
put_acl(struct raw *r, const struct ace *ace, uint32_t n)
{
	uint32_t i;

	raw_put(r, n);
	raw_put(r, n);
	for (i = 0; i < n; i++) {
		raw_put(r, ace[i].tag);
		raw_put(r, ace[i].id);
		raw_put(r, ace[i].perm);
	}
}

/* Status, and attributes, which must be there where there is an object. */
static int
take_status(const struct raw *r, uint32_t *at)
{
	uint32_t status;

	assert_int_equal(r->accept_stat, 0);
	*at = r->body;
	status = take(r, at);
	if (take(r, at))
		*at += 84;
	else
		assert_true(status != NFS3_OK);
	return (int)status;
}

static void
take_acl(const struct raw *r, uint32_t *at, struct acl *a)
{
	uint32_t i;

	a->count = take(r, at);
	a->length = take(r, at);
	assert_true(a->length <= ACES_MAX);
	for (i = 0; i < a->length; i++) {
		a->ace[i].tag = take(r, at);
		a->ace[i].id = take(r, at);
		a->ace[i].perm = take(r, at);
	}
}

/* Calls ----------------------------------------------------------------------
 */

int
nfsacl_get(struct raw *r, const struct raw_fh *fh, uint32_t mask,
	   struct acl *access, struct acl *deflt)
{
	uint32_t at;
	int status;

	raw_build(r, 100227, 3, PROC_GETACL, NULL, NULL);
	raw_put_opaque(r, fh->data, fh->bytes);
	raw_put(r, mask);
	raw_send(r);
	assert_true(raw_receive(r));
	status = take_status(r, &at);
	if (status == NFS3_OK) {
		assert_int_equal(take(r, &at), mask);
		take_acl(r, &at, access);
		take_acl(r, &at, deflt);
	}
	assert_int_equal(at, r->in_bytes);
	return status;
}

void
nfsacl_build_set(struct raw *r, const struct raw_fh *fh, uint32_t mask,
		 const struct ace *ace, uint32_t n)
{
	raw_build(r, 100227, 3, PROC_SETACL, NULL, NULL);
	raw_put_opaque(r, fh->data, fh->bytes);
	raw_put(r, mask);
	put_acl(r, ace, mask & ACL ? n : 0);
	put_acl(r, ace, mask & DEFAULT ? n : 0);
}

int
nfsacl_answered(struct raw *r)
{
	uint32_t at;
	int status;

	assert_true(raw_receive(r));
	status = take_status(r, &at);
	assert_int_equal(at, r->in_bytes);
	return status;
}

int
nfsacl_set(struct raw *r, const struct raw_fh *fh, uint32_t mask,
	   const struct ace *ace, uint32_t n)
{
	nfsacl_build_set(r, fh, mask, ace, n);
	raw_send(r);
	return nfsacl_answered(r);
}
