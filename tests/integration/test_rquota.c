/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RQUOTA over the wire: who is told anything, and what where there is no quota.
 * A quota needs a kernel that keeps them: the guest's does (tests/vm).
 */
#include "site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USER  0u
#define GROUP 1u

#define Q_OK      1u
#define Q_NOQUOTA 2u
#define Q_EPERM   3u

static const char engine[] = "uring";

static uint32_t
word_of(const struct raw *r, unsigned i)
{
	return raw_get(r, r->body + 4 * i);
}

/* The status; the rest stays in r. */
static uint32_t
getquota(struct raw *r, uint32_t vers, uint32_t proc, const char *path,
	 uint32_t type, uint32_t id)
{
	uint32_t status;

	raw_build(r, 100011, vers, proc, NULL, NULL);
	raw_put_opaque(r, path, (uint32_t)strlen(path));
	if (vers == 2)
		raw_put(r, type);
	raw_put(r, id);
	raw_send(r);
	assert_true(raw_receive(r));
	assert_int_equal(r->accept_stat, 0);
	status = word_of(r, 0);
	assert_int_equal(r->in_bytes - r->body, status == Q_OK ? 44 : 4);
	return status;
}

static void
test_none(void **state)
{
	struct site *s = site_new(engine, NULL, "xfs");
	const char *path = s->h->export;

	raw_call(s->r, 100011, 1, 0, NULL, NULL, NULL, NULL);
	raw_call(s->r, 100011, 2, 0, NULL, NULL, NULL, NULL);
	assert_int_equal(getquota(s->r, 1, 1, path, USER, 1000), Q_NOQUOTA);
	assert_int_equal(getquota(s->r, 2, 2, path, USER, 1000), Q_NOQUOTA);
	assert_int_equal(getquota(s->r, 2, 1, path, GROUP, 1000), Q_NOQUOTA);
	assert_int_equal(getquota(s->r, 2, 1, path, 2, 1000), Q_NOQUOTA);
	assert_int_equal(getquota(s->r, 1, 1, "/none", USER, 0), Q_NOQUOTA);
	assert_int_equal(getquota(s->r, 1, 1, "none", USER, 0), Q_NOQUOTA);
	raw_build(s->r, 100011, 1, 3, NULL, NULL);
	raw_send(s->r);
	assert_true(raw_receive(s->r));
	assert_int_equal(s->r->accept_stat, 3); /* SETQUOTA: PROC_UNAVAIL */
	assert_int_equal(harness_stat(s->h, "rquota.GETQUOTA"), 5);
	assert_int_equal(harness_stat(s->h, "rquota.GETACTIVEQUOTA"), 1);
	site_free(s);
}

/* Each for himself and his groups, root for all; squashed he is not root. */
static void
test_permission(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	const char *path = s->h->export;

	ask_as(s->r, 1000, 2000);
	s->r->gids = 1;
	s->r->gid_list[0] = 3000;
	assert_int_equal(getquota(s->r, 1, 1, path, USER, 1001), Q_EPERM);
	assert_int_equal(getquota(s->r, 1, 1, path, USER, 0), Q_EPERM);
	assert_int_equal(getquota(s->r, 1, 1, path, USER, 1000), Q_NOQUOTA);
	assert_int_equal(getquota(s->r, 2, 1, path, GROUP, 2000), Q_NOQUOTA);
	assert_int_equal(getquota(s->r, 2, 1, path, GROUP, 3000), Q_NOQUOTA);
	assert_int_equal(getquota(s->r, 2, 1, path, GROUP, 1000), Q_EPERM);
	site_free(s);
	s = site_prepare(engine, "rw,secure", NULL);
	harness_start(s->h);
	s->r = raw_connect(s->h->port);
	ask_as(s->r, 1000, 2000);
	assert_int_equal(getquota(s->r, 1, 1, s->h->export, USER, 1000),
			 Q_NOQUOTA);
	assert_int_equal(getquota(s->r, 1, 1, s->h->export, USER, 1001),
			 Q_EPERM);
	site_free(s);
	s = site_new(engine, "rw,root_squash,insecure", NULL);
	path = s->h->export;
	ask_as(s->r, 0, 0);
	assert_int_equal(getquota(s->r, 1, 1, path, USER, 1000), Q_EPERM);
	assert_int_equal(getquota(s->r, 1, 1, path, USER, 65534), Q_NOQUOTA);
	site_free(s);
	s = site_prepare(engine, NULL, NULL);
	(void)snprintf(s->h->client, sizeof(s->h->client), "192.0.2.1(rw)");
	harness_start(s->h);
	s->r = raw_connect(s->h->port);
	assert_int_equal(getquota(s->r, 1, 1, s->h->export, USER, 0), Q_EPERM);
	site_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_permission),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
