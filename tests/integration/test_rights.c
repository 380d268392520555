/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may do what to a file, over the wire, against what this machine's kernel
 * says of the same person: modes and ACLs, owner, group, members, others, root,
 * squashed and not, on a file that nobody has used and on one that another has
 * just used. And that a change of mode, ACL or owner counts at once.
 */
#include "oracle.h"
#include "site.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define OWNER 1000u
#define GROUP 2000u

#define ACL_XATTR "system.posix_acl_access"

static const char *engine;

/* A call as p. */
static int
ask_as_person(struct site *s, const struct person *p, struct question q,
	      struct answer *a)
{
	uint32_t i;

	ask_as(s->r, p->uid, p->gid);
	s->r->gids = p->gids;
	for (i = 0; i < p->gids; i++)
		s->r->gid_list[i] = p->gid_list[i];
	return ask(s->r, q, a);
}

static const struct person people[] = {
	{ .uid = OWNER, .gid = 1 },
	{ .uid = OWNER, .gid = GROUP, .gids = 1, .gid_list = { GROUP } },
	{ .uid = 1001, .gid = GROUP },
	{ .uid = 1002, .gid = 1, .gids = 2, .gid_list = { 7, GROUP } },
	{ .uid = 1003,
	  .gid = 1,
	  .gids = 16,
	  .gid_list = { 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
			GROUP } },
	{ .uid = 1004, .gid = 1004 }, /* ACLs name him */
	{ .uid = 1005, .gid = 3000 }, /* and his group */
	{ .uid = 1006, .gid = GROUP, .gids = 1, .gid_list = { 3000 } },
	{ .uid = 1007, .gid = 1007 },
	{ .uid = 65534, .gid = 65534 },
	{ .uid = 0, .gid = 0 },
};
#define PEOPLE (sizeof(people) / sizeof(people[0]))

/* Files ----------------------------------------------------------------------
 */

static const unsigned modes[] = { 0644, 0600, 0444, 0400, 0000, 0711, 0755,
				  0640, 0604, 0466, 0070, 0007, 0060, 0111 };
#define MODES (sizeof(modes) / sizeof(modes[0]))

/* Granting and denying, to users and groups, with and without a mask. */
static const char *const acls[] = {
	"",
	"u:1004:rw",
	"u:1004:r,g:3000:-",
	"u:1004:-,g:3000:rw",
	"u:1004:rwx,g:3000:rw,m::r",
	"g:2000:-,g:3000:rwx,m::rwx",
	"u:1006:x,o::-",
	"u:1000:-,u:0:-,u:65534:rw",
	"m::-,u:1004:rwx",
};
#define ACLS (sizeof(acls) / sizeof(acls[0]))

static void
make_file(struct site *s, const char *name, unsigned mode, const char *acl)
{
	site_file(s, name, mode, OWNER, GROUP, "text");
	if (acl[0] != '\0')
		assert_int_equal(
			harness_sh("setfacl -m %s %s", acl, site_path(s, name)),
			0);
}

/* Another with the same mode and ACL. */
static void
make_like(struct site *s, const char *name, const char *model)
{
	uint8_t acl[1000];
	struct stat st;
	ssize_t n;

	assert_int_equal(stat(site_path(s, model), &st), 0);
	site_file(s, name, st.st_mode & 07777, OWNER, GROUP, "text");
	n = getxattr(site_path(s, model), ACL_XATTR, acl, sizeof(acl));
	if (n > 0)
		assert_int_equal(setxattr(site_path(s, name), ACL_XATTR, acl,
					  (size_t)n, 0),
				 0);
}

/* One cell
 * ----------------------------------------------------------------------
 */

/* How the export's options change who comes. */
struct squash {
	const char *options;
	bool root, all;
};

static struct person
squashed(const struct squash *q, const struct person *p)
{
	struct person as = *p;
	uint32_t i;

	if (q->all) {
		as = (struct person){ .uid = OWNER, .gid = GROUP };
	} else if (q->root) {
		as.uid = p->uid == 0 ? 65534 : p->uid;
		as.gid = p->gid == 0 ? 65534 : p->gid;
		for (i = 0; i < as.gids; i++)
			if (as.gid_list[i] == 0)
				as.gid_list[i] = 65534;
	}
	return as;
}

static int
status_of(bool allowed)
{
	return allowed ? NFS3_OK : NFS3ERR_ACCES;
}

static uint32_t
access_bits(unsigned granted)
{
	uint32_t bits = 0;

	if (granted & ORACLE_READ)
		bits |= ACCESS3_READ;
	if (granted & ORACLE_WRITE)
		bits |= ACCESS3_MODIFY | ACCESS3_EXTEND;
	if (granted & ORACLE_EXEC)
		bits |= ACCESS3_EXECUTE;
	return bits;
}

static void
expect_cell(struct site *s, const struct person *p, struct question q,
	    int status, const char *what)
{
	int got = ask_as_person(s, p, q, NULL);

	if (got != status)
		fail_msg("%s by %u:%u: %d, not %d (procedure %u)", what, p->uid,
			 p->gid, got, status, q.proc);
}

/* What p may do to the file, as the kernel has it, with the protocol's two
 * exceptions: the owner reads and writes whatever the mode (he may have opened
 * it before), and who may execute may read. */
static void
check_cell(struct site *s, const struct person *p, bool owner, unsigned granted,
	   const struct raw_fh *fh, const char *name)
{
	bool reads = owner || granted & (ORACLE_READ | ORACLE_EXEC);
	bool writes = owner || granted & ORACLE_WRITE;
	struct answer a;

	assert_int_equal(ask_as_person(s, p, ask_access(fh, 63), &a), NFS3_OK);
	if (a.u.access.access != access_bits(granted))
		fail_msg("%s: ACCESS by %u tells %x, not %x", name, p->uid,
			 a.u.access.access, access_bits(granted));
	expect_cell(s, p, ask_read(fh, 0, 9), status_of(reads), name);
	expect_cell(s, p, ask_write(fh, 0, "t", 1, UNSTABLE), status_of(writes),
		    name);
	expect_cell(s, p, ask_commit(fh), status_of(writes), name);
	expect_cell(s, p, ask_setattr(fh, ask_size(4), NULL), status_of(writes),
		    name);
}

/* The owner has just had it read and written. */
static void
warm(struct site *s, const struct raw_fh *fh)
{
	expect_cell(s, &people[0], ask_read(fh, 0, 9), NFS3_OK, "warm");
	expect_cell(s, &people[0], ask_write(fh, 0, "t", 1, UNSTABLE), NFS3_OK,
		    "warm");
}

static void
check_file(struct site *s, const struct squash *q, unsigned mode,
	   const char *acl)
{
	struct raw_fh fh;
	char name[32];
	unsigned i, granted;

	make_file(s, "model", mode, acl);
	for (i = 0; i < PEOPLE; i++) {
		struct person as = squashed(q, &people[i]);
		bool owner = as.uid == OWNER;

		/* Nobody has used this one; then somebody has. */
		(void)snprintf(name, sizeof(name), "f%u", i);
		make_like(s, name, "model");
		fh = site_lookup(s, name);
		granted = oracle_access(&as, site_path(s, name));
		check_cell(s, &people[i], owner, granted, &fh, name);
		warm(s, &fh);
		check_cell(s, &people[i], owner, granted, &fh, name);
		assert_int_equal(unlink(site_path(s, name)), 0);
	}
	assert_int_equal(unlink(site_path(s, "model")), 0);
}

static void
matrix(const struct squash *q)
{
	struct site *s;
	size_t i, j;

	if (!oracle_there())
		skip();
	s = site_new(engine, q->options, "xfs");
	for (i = 0; i < MODES; i++)
		check_file(s, q, modes[i], "");
	for (i = 1; i < ACLS; i++)
		for (j = 0; j < 4; j++)
			check_file(s, q, modes[j * 4], acls[i]);
	site_free(s);
}

static void
test_not_squashed(void **state)
{
	static const struct squash q = { "rw,insecure,no_root_squash", false,
					 false };

	matrix(&q);
}

static void
test_root_squashed(void **state)
{
	static const struct squash q = { "rw,insecure", true, false };

	matrix(&q);
}

static void
test_all_squashed(void **state)
{
	static const struct squash q = {
		"rw,insecure,all_squash,anonuid=1000,anongid=2000", true, true
	};

	matrix(&q);
}

/* AUTH_NONE is the anonymous user, whatever the export says of root. */
static void
test_auth_none(void **state)
{
	struct site *s = site_new(engine,
				  "rw,insecure,no_root_squash,anonuid=1007,"
				  "anongid=1007",
				  NULL);
	struct raw_fh his, other;

	site_file(s, "his", 0600, 1007, 1007, "text");
	site_file(s, "other", 0600, 0, 0, "text");
	his = site_lookup(s, "his");
	other = site_lookup(s, "other");
	s->r->flavor = 0;
	assert_int_equal(ask(s->r, ask_read(&his, 0, 4), NULL), NFS3_OK);
	assert_int_equal(ask(s->r, ask_read(&other, 0, 4), NULL),
			 NFS3ERR_ACCES);
	site_free(s);
}

/* Directories
 * -------------------------------------------------------------------
 */

static uint32_t
dir_bits(unsigned granted)
{
	uint32_t bits = 0;

	if (granted & ORACLE_READ)
		bits |= ACCESS3_READ;
	if (granted & ORACLE_EXEC)
		bits |= ACCESS3_LOOKUP;
	if ((granted & (ORACLE_WRITE | ORACLE_EXEC)) ==
	    (ORACLE_WRITE | ORACLE_EXEC))
		bits |= ACCESS3_MODIFY | ACCESS3_EXTEND | ACCESS3_DELETE;
	return bits;
}

static void
check_dir(struct site *s, const struct person *p, const struct raw_fh *fh)
{
	unsigned granted = oracle_access(p, site_path(s, "dir"));
	bool searches = granted & ORACLE_EXEC;
	bool writes = searches && granted & ORACLE_WRITE;
	struct answer a;
	int denied;

	assert_int_equal(ask_as_person(s, p, ask_access(fh, 63), &a), NFS3_OK);
	assert_int_equal(a.u.access.access, dir_bits(granted));
	expect_cell(s, p, ask_lookup(fh, "in"), status_of(searches), "dir");
	expect_cell(s, p, ask_readdir(fh, 0, 4096),
		    status_of(granted & ORACLE_READ), "dir");
	expect_cell(s, p, ask_create(fh, "n", GUARDED, ask_mode(0600)),
		    status_of(writes), "dir");
	/* Who may search is told that it is not there. */
	denied = searches ? NFS3ERR_NOENT : NFS3ERR_ACCES;
	expect_cell(s, p, ask_rename(fh, "n", fh, "m"),
		    writes ? NFS3_OK : denied, "dir");
	expect_cell(s, p, ask_remove(fh, "m"), writes ? NFS3_OK : denied,
		    "dir");
}

static void
test_directories(void **state)
{
	struct site *s;
	struct raw_fh fh;
	unsigned i, j, k;

	if (!oracle_there())
		skip();
	s = site_new(engine, NULL, "xfs");
	for (i = 0; i < MODES + ACLS - 1; i++) {
		assert_int_equal(mkdir(site_path(s, "dir"), 0700), 0);
		site_file(s, "dir/in", 0600, 0, 0, "x");
		assert_int_equal(chown(site_path(s, "dir"), OWNER, GROUP), 0);
		k = i < MODES ? 0 : i - MODES + 1;
		j = i < MODES ? i : 0;
		assert_int_equal(chmod(site_path(s, "dir"), modes[j]), 0);
		if (k > 0)
			assert_int_equal(harness_sh("setfacl -m %s %s", acls[k],
						    site_path(s, "dir")),
					 0);
		fh = site_lookup(s, "dir");
		for (j = 0; j < PEOPLE; j++)
			check_dir(s, &people[j], &fh);
		assert_int_equal(unlink(site_path(s, "dir/in")), 0);
		assert_int_equal(rmdir(site_path(s, "dir")), 0);
	}
	site_free(s);
}

/* At once
 * -------------------------------------------------------------------------
 */

struct change {
	struct site *s;
	struct raw_fh fh;
	struct person him;
};

static void
expect_both(struct change *c, bool allowed)
{
	expect_cell(c->s, &c->him, ask_read(&c->fh, 0, 9), status_of(allowed),
		    "changed");
	expect_cell(c->s, &c->him, ask_write(&c->fh, 0, "t", 1, UNSTABLE),
		    status_of(allowed), "changed");
}

/* Changed to and fro: without a pause, and after what was found has settled. */
static void
flip(struct change *c, const char *grant, const char *deny, unsigned rounds)
{
	const char *path = site_path(c->s, "f");
	unsigned i;

	for (i = 0; i < rounds; i++) {
		assert_int_equal(harness_sh("%s %s", grant, path), 0);
		expect_both(c, true);
		if (i % 2 != 0) {
			usleep(60000);
			expect_both(c, true);
		}
		assert_int_equal(harness_sh("%s %s", deny, path), 0);
		expect_both(c, false);
		if (i % 4 >= 2) {
			usleep(60000);
			expect_both(c, false);
		}
	}
}

static void
test_at_once(void **state)
{
	struct change c = { .him = { .uid = 1007, .gid = 1007 } };

	if (!oracle_there())
		skip();
	c.s = site_new(engine, NULL, "xfs");
	make_file(c.s, "f", 0600, "");
	c.fh = site_lookup(c.s, "f");
	flip(&c, "chmod 0606", "chmod 0600", 12);
	flip(&c, "setfacl -m u:1007:rw", "setfacl -x u:1007", 12);
	flip(&c, "setfacl -m u:1007:rw", "setfacl -m u:1007:-", 12);
	flip(&c, "setfacl -m u:1007:rw,m::rw", "setfacl -m m::-", 12);
	assert_int_equal(harness_sh("setfacl -b %s && chmod 0600 %s",
				    site_path(c.s, "f"), site_path(c.s, "f")),
			 0);
	flip(&c, "chown 1007", "chown 1000", 12);
	assert_int_equal(chmod(site_path(c.s, "f"), 0660), 0);
	c.him = (struct person){
		.uid = 1007, .gid = 1, .gids = 1, .gid_list = { 4321 }
	};
	flip(&c, "chgrp 4321", "chgrp 2000", 12);
	site_free(c.s);
}

/* The same by SETATTR, and without a process between the two. */
static void
test_at_once_by_call(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	const struct person *owner = &people[0], *other = &people[8];
	struct raw_fh fh;
	unsigned i;

	make_file(s, "f", 0600, "");
	fh = site_lookup(s, "f");
	for (i = 0; i < 300; i++) {
		unsigned mode = i % 2 == 0 ? 0606 : 0600;

		expect_cell(s, owner, ask_setattr(&fh, ask_mode(mode), NULL),
			    NFS3_OK, "f");
		expect_cell(s, other, ask_read(&fh, 0, 9),
			    status_of(mode == 0606), "f");
		expect_cell(s, other, ask_write(&fh, 0, "t", 1, UNSTABLE),
			    status_of(mode == 0606), "f");
		assert_int_equal(chmod(site_path(s, "f"), mode ^ 6), 0);
		expect_cell(s, other, ask_read(&fh, 0, 9),
			    status_of(mode != 0606), "f");
	}
	site_free(s);
}

/* A 0444 file that its maker has still to fill, as tar does. */
static void
test_owner_fills(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	const struct person *owner = &people[0];
	struct answer a;
	struct raw_fh fh;

	assert_int_equal(ask_as_person(s, owner,
				       ask_create(&s->root, "f", GUARDED,
						  ask_mode(0444)),
				       &a),
			 NFS3_OK);
	fh = a.fh;
	expect_cell(s, owner, ask_write(&fh, 0, "text", 4, UNSTABLE), NFS3_OK,
		    "f");
	expect_cell(s, owner, ask_setattr(&fh, ask_size(3), NULL), NFS3_OK,
		    "f");
	expect_cell(s, owner, ask_commit(&fh), NFS3_OK, "f");
	expect_cell(s, &people[8], ask_write(&fh, 0, "x", 1, UNSTABLE),
		    NFS3ERR_ACCES, "f");
	expect_cell(s, &people[8], ask_read(&fh, 0, 9), NFS3_OK, "f");
	site_free(s);
}

static int
run_all(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_squashed),
		cmocka_unit_test(test_root_squashed),
		cmocka_unit_test(test_all_squashed),
		cmocka_unit_test(test_auth_none),
		cmocka_unit_test(test_directories),
		cmocka_unit_test(test_at_once),
		cmocka_unit_test(test_at_once_by_call),
		cmocka_unit_test(test_owner_fills),
	};

	engine = "uring";
	return cmocka_run_group_tests_name(engine, tests, NULL, NULL);
}

/* What the engine has a part in. */
static int
run_threads(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_squashed),
		cmocka_unit_test(test_at_once),
		cmocka_unit_test(test_at_once_by_call),
	};

	engine = "threads";
	return cmocka_run_group_tests_name(engine, tests, NULL, NULL);
}

int
main(void)
{
	return run_all() + run_threads();
}
