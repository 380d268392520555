/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identities: squashing, and manage-gids over a passwd and a group file of this
 * test's own.
 */
#include "nfsd/nfsd.h"
#include "tests/unit/child.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

/* squashing ----------------------------------------------------------- */

static struct rpc_cred
cred_of(uint32_t uid, uint32_t gid)
{
	return (struct rpc_cred){ .flavor = RPC_AUTH_SYS,
				  .uid = uid,
				  .gid = gid,
				  .gids = 3,
				  .gid_list = { 7, 0, UINT32_MAX } };
}

static const struct conf_export_options defaults = { .root_squash = true,
						     .anonuid = 65534,
						     .anongid = 65533 };

static void
root_is_squashed(void **state)
{
	struct rpc_cred c = cred_of(0, 0);
	struct identity id;

	assert_int_equal(identity_make(&id, &c, &defaults, false, false), 0);
	assert_int_equal(id.uid, 65534);
	assert_int_equal(id.gid, 65533);
	assert_int_equal(id.gids, 3);
	assert_int_equal(identity_gids(&id)[0], 7);
	assert_int_equal(identity_gids(&id)[1], 65533);
	assert_int_equal(identity_gids(&id)[2], 65533);
	identity_fini(&id);
}

static void
no_root_squash(void **state)
{
	struct conf_export_options o = defaults;
	struct rpc_cred c = cred_of(0, 0);
	struct identity id;

	o.root_squash = false;
	assert_int_equal(identity_make(&id, &c, &o, false, false), 0);
	assert_int_equal(id.uid, 0);
	assert_int_equal(id.gid, 0);
	assert_int_equal(identity_gids(&id)[1], 0);
	/* -1 is nobody's id, whatever the options */
	assert_int_equal(identity_gids(&id)[2], 65533);
	identity_fini(&id);
}

static void
others_pass(void **state)
{
	struct rpc_cred c = cred_of(4000, 4001);
	struct identity id;

	assert_int_equal(identity_make(&id, &c, &defaults, false, false), 0);
	assert_int_equal(id.uid, 4000);
	assert_int_equal(id.gid, 4001);
	assert_int_equal(id.gids, 3);
	identity_fini(&id);
	c = cred_of(UINT32_MAX, UINT32_MAX);
	assert_int_equal(identity_make(&id, &c, &defaults, false, false), 0);
	assert_int_equal(id.uid, 65534);
	assert_int_equal(id.gid, 65533);
	identity_fini(&id);
}

static void
all_are_squashed(void **state)
{
	struct conf_export_options o = defaults;
	struct rpc_cred c = cred_of(4000, 4001);
	struct identity id;

	o.all_squash = true;
	assert_int_equal(identity_make(&id, &c, &o, true, false), 0);
	assert_int_equal(id.uid, 65534);
	assert_int_equal(id.gid, 65533);
	assert_int_equal(id.gids, 0);
	identity_fini(&id);
	/* AUTH_NONE is the anonymous user without any squashing */
	o.all_squash = o.root_squash = false;
	c.flavor = RPC_AUTH_NONE;
	assert_int_equal(identity_make(&id, &c, &o, true, false), 0);
	assert_int_equal(id.uid, 65534);
	assert_int_equal(id.gid, 65533);
	assert_int_equal(id.gids, 0);
	/* and there must be one */
	o.anonuid = UINT32_MAX;
	assert_int_equal(identity_make(&id, &c, &o, true, false), -EPERM);
	identity_fini(&id);
}

static const struct identity user = {
	.uid = 4000, .gid = 4000, .gids = 2, .gid_inline = { 5000, 5001 }
};
static void
hash_tells_apart(void **state)
{
	struct identity a = user, b = user;

	assert_true(identity_hash(&a) == identity_hash(&b));
	b.gid_inline[1] = 1;
	assert_true(identity_hash(&a) != identity_hash(&b));
	b = user;
	b.gids = 1;
	assert_true(identity_hash(&a) != identity_hash(&b));
	b = user;
	b.uid++;
	assert_true(identity_hash(&a) != identity_hash(&b));
	b = user;
	b.gid++;
	assert_true(identity_hash(&a) != identity_hash(&b));
}

/* manage-gids, over a passwd and group of our own -------------------------- */

static void
put_file(const char *name, const char *format, ...)
{
	FILE *f = fopen(name, "w");
	va_list args;

	CHECK(f);
	va_start(args, format);
	CHECK(vfprintf(f, format, args) >= 0);
	va_end(args);
	CHECK(fclose(f) == 0);
}

static void
private_users(bool with_late)
{
	FILE *f = fopen("group", "w");

	put_file("passwd",
		 "root:x:0:0::/:/bin/sh\n"
		 "few:x:7001:7001::/:/bin/sh\n"
		 "many:x:7002:7002::/:/bin/sh\n%s",
		 with_late ? "late:x:7003:7003::/:/bin/sh\n" : "");
	CHECK(f);
	CHECK(fprintf(f, "root:x:0:many\nfew:x:7001:\ng:x:8000:few,many\n") >
	      0);
	for (int i = 100; i < 140; i++)
		CHECK(fprintf(f, "g%d:x:%d:many\n", i, 8100 + i) > 0);
	CHECK(fclose(f) == 0);
}

static struct identity
managed(uint32_t uid, const struct conf_export_options *o, bool may_block,
	int expected)
{
	struct rpc_cred c = cred_of(uid, 4001);
	struct identity id;

	CHECK(identity_make(&id, &c, o, true, may_block) == expected);
	return id;
}

static void
check_many(struct identity *id, uint32_t first)
{
	CHECK(id->uid == 7002 && id->gid == 4001);
	CHECK(id->list && id->gids == 43);
	for (uint32_t i = 1; i < id->gids; i++)
		CHECK(identity_gids(id)[i - 1] < identity_gids(id)[i]);
	CHECK(identity_gids(id)[0] == first);
}

static void
check_act_with_many(const struct identity *id)
{
	gid_t groups[64];

	CHECK(identity_worker_init() == 0);
	identity_assume(id);
	CHECK(getgroups(64, groups) == 43 && groups[5] == 8203);
	identity_drop();
}

static void
manage_few(void)
{
	struct identity id;

	managed(7001, &defaults, false, -EAGAIN);
	id = managed(7001, &defaults, true, 0);
	CHECK(id.gids == 2 && id.gid == 4001);
	CHECK(identity_gids(&id)[0] == 7001 && identity_gids(&id)[1] == 8000);
	identity_fini(&id);
	id = managed(7001, &defaults, false, 0);
	CHECK(id.gids == 2);
	identity_fini(&id);
}

/* More than fit inline, group 0 among them. */
static void
manage_many(void)
{
	struct conf_export_options o = defaults;
	struct identity id, again;

	managed(7002, &o, false, -EAGAIN);
	id = managed(7002, &o, true, 0);
	check_many(&id, 7002);
	CHECK(identity_gids(&id)[42] == 65533);
	again = managed(7002, &o, false, 0);
	CHECK(identity_hash(&id) == identity_hash(&again));
	check_act_with_many(&id);
	identity_fini(&again);
	o.root_squash = false;
	again = managed(7002, &o, false, 0);
	check_many(&again, 0);
	CHECK(identity_hash(&id) != identity_hash(&again));
	identity_fini(&again);
	identity_fini(&id);
}

/* No groups, and no look-up. */
static void
manage_squashed(void)
{
	struct identity id = managed(0, &defaults, false, 0);

	CHECK(id.uid == 65534 && id.gids == 0);
	identity_fini(&id);
}

/* No groups, and that is remembered too. */
static void
manage_unknown(void)
{
	struct identity id;

	managed(7003, &defaults, false, -EAGAIN);
	id = managed(7003, &defaults, true, 0);
	CHECK(id.gids == 0);
	private_users(true);
	id = managed(7003, &defaults, true, 0);
	CHECK(id.gids == 0);
	identity_forget_groups();
	managed(7003, &defaults, false, -EAGAIN);
	id = managed(7003, &defaults, true, 0);
	CHECK(id.gids == 1 && identity_gids(&id)[0] == 7003);
	identity_fini(&id);
}

static void
manage(void)
{
	CHECK(unshare(CLONE_NEWNS) == 0);
	CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	private_users(false);
	CHECK(mount("passwd", "/etc/passwd", NULL, MS_BIND, NULL) == 0);
	CHECK(mount("group", "/etc/group", NULL, MS_BIND, NULL) == 0);
	manage_few();
	manage_many();
	manage_squashed();
	manage_unknown();
	identity_forget_groups();
	exit(0); /* so that leaks are looked for */
}

static void
managed_groups(void **state)
{
	run(manage);
}

static char dir_path[] = "/var/tmp/test_cred.XXXXXX";

static int
group_setup(void **state)
{
	if (geteuid() != 0) {
		(void)fprintf(stderr, "test_cred needs root\n");
		exit(77);
	}
	return !mkdtemp(dir_path) || chdir(dir_path) < 0 ? -1 : 0;
}

static int
group_teardown(void **state)
{
	unlink("passwd");
	unlink("group");
	return rmdir(dir_path);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(root_is_squashed),
		cmocka_unit_test(no_root_squash),
		cmocka_unit_test(others_pass),
		cmocka_unit_test(all_are_squashed),
		cmocka_unit_test(hash_tells_apart),
		cmocka_unit_test(managed_groups),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
