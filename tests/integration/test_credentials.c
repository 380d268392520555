/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credentials as they come over the wire (RFC 5531, sections 8 and 9, and
 * appendix A): machine names and group lists of every length there may be, one
 * more of each, other flavors, ids above 2^31, and the id that is none.
 */
#include "site.h"

#include <errno.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#define MACHINE_MAX 255u
#define GIDS_MAX    16u
#define NOBODY      65534u

#define BADCRED      1u /* auth_stat */
#define REJECTEDCRED 2u
#define TOOWEAK      5u

static const char *engine = "uring";

/* A GETATTR of the root by uid 0 with such a credential; then false and
 * auth_stat in *why, or the status must be OK. */
static bool
taken(struct site *s, uint32_t machine, uint32_t gids, uint32_t *why)
{
	static const char name[MACHINE_MAX + 1] = { 0 };
	struct raw *r = s->r;
	uint32_t i;

	r->out_bytes = 0;
	raw_put(r, r->xid++);
	raw_put(r, 0); /* call */
	raw_put(r, 2);
	raw_put(r, 100003);
	raw_put(r, 3);
	raw_put(r, NFS3_GETATTR);
	raw_put(r, 1); /* AUTH_SYS */
	raw_put(r, 4 + 4 + (machine + 3) / 4 * 4 + 4 + 4 + 4 + 4 * gids);
	raw_put(r, 20261201); /* stamp */
	raw_put_opaque(r, name, machine);
	raw_put(r, 0);
	raw_put(r, 0);
	raw_put(r, gids);
	for (i = 0; i < gids; i++)
		raw_put(r, UINT32_MAX - 1 - i);
	raw_put(r, 0);
	raw_put(r, 0);
	raw_put_opaque(r, s->root.data, s->root.bytes);
	raw_send(r);
	assert_true(raw_receive(r));
	if (r->reply_stat == 0) {
		assert_int_equal(r->accept_stat, 0);
		assert_int_equal(raw_get(r, r->body), NFS3_OK);
		return true;
	}
	assert_int_equal(raw_get(r, 12), 1); /* AUTH_ERROR */
	*why = raw_get(r, 16);
	return false;
}

static void
test_lengths(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	uint32_t n, why = 0;

	for (n = 0; n <= MACHINE_MAX; n++)
		assert_true(taken(s, n, n % (GIDS_MAX + 1), &why));
	assert_true(taken(s, MACHINE_MAX, GIDS_MAX, &why));
	assert_false(taken(s, MACHINE_MAX + 1, 0, &why));
	assert_int_equal(why, BADCRED);
	assert_false(taken(s, 5, GIDS_MAX + 1, &why));
	assert_int_equal(why, BADCRED);
	/* The connection lives on. */
	assert_true(taken(s, MACHINE_MAX, 0, &why));
	site_free(s);
}

/* Other flavors are refused as such, but for NULL, which asks for nobody. */
static void
test_flavors(void **state)
{
	static const uint32_t flavors[] = { 2, 3, 6, 7, 300001, UINT32_MAX };
	struct site *s = site_new(engine, NULL, NULL);
	struct question q = ask_getattr(&s->root);
	unsigned i;

	for (i = 0; i < sizeof(flavors) / sizeof(flavors[0]); i++) {
		uint32_t why;

		s->r->flavor = flavors[i];
		(void)ask_send(s->r, &q);
		assert_true(raw_receive(s->r));
		assert_int_equal(s->r->reply_stat, 1);
		assert_int_equal(raw_get(s->r, 12), 1);
		why = raw_get(s->r, 16);
		assert_true(why == BADCRED || why == REJECTEDCRED ||
			    why == TOOWEAK);
	}
	s->r->flavor = 0;
	raw_call(s->r, 100003, 3, 0, NULL, NULL, NULL, NULL);
	assert_int_equal(ask(s->r, ask_getattr(&s->root), NULL), NFS3_OK);
	site_free(s);
}

/* In a user namespace there may be no such ids. */
static bool
have_id(uint32_t id)
{
	bool had;

	(void)setfsuid(id);
	had = (uint32_t)setfsuid(0) == id;
	return had;
}

static void
test_large_ids(void **state)
{
	const uint32_t uid = 0xfffffffe, gid = 0x80000001, other = 0xfffffff0;
	struct site *s = site_new(engine, NULL, "xfs");
	struct raw_fh fh, shared;
	struct stat st;

	if (geteuid() != 0 || !have_id(uid)) {
		print_message("skip: no ids above 2^31 here\n");
		skip();
	}
	ask_as(s->r, uid, gid);
	raw_create(s->r, &s->root, "his", 0600, &fh);
	assert_int_equal(stat(site_path(s, "his"), &st), 0);
	assert_int_equal(st.st_uid, uid);
	assert_int_equal(st.st_gid, gid);
	assert_int_equal(ask_attr(s->r, &fh).uid, uid);
	assert_int_equal(ask_attr(s->r, &fh).gid, gid);
	site_expect(s, ask_write(&fh, 0, "text", 4, FILE_SYNC), NFS3_OK);
	/* One less is another; so is the one that 32 signed bits make of it. */
	ask_as(s->r, uid - 1, gid);
	site_expect(s, ask_read(&fh, 0, 4), NFS3ERR_ACCES);
	ask_as(s->r, uid & 0x7fffffff, gid);
	site_expect(s, ask_read(&fh, 0, 4), NFS3ERR_ACCES);
	/* By a further group. */
	site_file(s, "shared", 0640, 0, other, "text");
	shared = site_lookup(s, "shared");
	ask_as(s->r, 1000, 1000);
	site_expect(s, ask_read(&shared, 0, 4), NFS3ERR_ACCES);
	s->r->gids = 1;
	s->r->gid_list[0] = other;
	site_expect(s, ask_read(&shared, 0, 4), NFS3_OK);
	/* Given away and taken back. */
	ask_as(s->r, 0, 0);
	site_expect(s, ask_setattr(&fh, ask_owner(other, uid), NULL), NFS3_OK);
	assert_int_equal(ask_attr(s->r, &fh).uid, other);
	assert_int_equal(ask_attr(s->r, &fh).gid, uid);
	site_free(s);
}

/* (uid_t)-1 is no id: system calls take it for "leave it", and so the caller
 * would be whoever was served before. */
static void
test_no_id(void **state)
{
	struct site *s = site_new(engine, NULL, "xfs");
	struct raw_fh fh, made;
	unsigned round;

	site_file(s, "root", 0600, 0, 0, "text");
	fh = site_lookup(s, "root");
	for (round = 0; round < 8; round++) {
		char name[8] = { 'f', (char)('0' + round) };

		ask_as(s->r, 0, 0);
		site_expect(s, ask_read(&fh, 0, 4), NFS3_OK);
		ask_as(s->r, UINT32_MAX, UINT32_MAX);
		s->r->gids = round % 2;
		s->r->gid_list[0] = UINT32_MAX;
		site_expect(s, ask_read(&fh, 0, 4), NFS3ERR_ACCES);
		site_expect(s, ask_write(&fh, 0, "T", 1, UNSTABLE),
			    NFS3ERR_ACCES);
		site_expect(s, ask_setattr(&fh, ask_mode(0666), NULL),
			    NFS3ERR_PERM);
		raw_create(s->r, &s->root, name, 0600, &made);
		assert_int_equal(ask_attr(s->r, &made).uid, NOBODY);
		assert_int_equal(ask_attr(s->r, &made).gid, NOBODY);
	}
	ask_as(s->r, 0, 0);
	site_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_flavors),
		cmocka_unit_test(test_large_ids),
		cmocka_unit_test(test_no_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
