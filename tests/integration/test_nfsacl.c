/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NFSACL version 3 over the wire: what GETACL tells is what setfacl made here,
 * what SETACL sets is what getfacl shows here and what the server then obeys,
 * and whoever may not is refused.
 */
#include "nfsacl.h"
#include "site.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define OWNER 1000u
#define GROUP 2000u
#define OTHER 1004u

static const char engine[] = "uring";

/* What getfacl says here, in one line, numbers for names. */
static void
expect_facl(const struct site *s, const char *name, const char *want)
{
	char command[700], line[400] = "";
	FILE *f;

	(void)snprintf(command, sizeof(command),
		       "getfacl -ncEp %s | paste -sd ' '", site_path(s, name));
	f = popen(command, "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	assert_int_equal(pclose(f), 0);
	line[strcspn(line, "\n")] = '\0';
	while (line[0] != '\0' && line[strlen(line) - 1] == ' ')
		line[strlen(line) - 1] = '\0';
	assert_string_equal(line, want);
}

static void
expect_aces(const struct acl *a, const struct ace *want, uint32_t n)
{
	assert_int_equal(a->count, n);
	assert_int_equal(a->length, n);
	assert_memory_equal(a->ace, want, n * sizeof(*want));
}

static unsigned
mode_of(const struct site *s, const char *name)
{
	struct stat st;

	assert_int_equal(stat(site_path(s, name), &st), 0);
	return st.st_mode & 07777;
}

static const struct ace for_other[] = {
	{ 0x01, OWNER, 6 }, { 0x02, OTHER, 6 }, { 0x04, GROUP, 4 },
	{ 0x08, 3000, 1 },  { 0x10, 0, 7 },     { 0x20, 0, 0 },
};
#define FOR_OTHER 6u

static const char for_other_text[] = "user::rw- user:1004:rw- group::r-- "
				     "group:3000:--x mask::rwx other::---";

static const struct ace for_default[] = {
	{ 0x1001, OWNER, 7 }, { 0x1002, OTHER, 5 }, { 0x1004, GROUP, 5 },
	{ 0x1010, 0, 5 },     { 0x1020, 0, 0 },
};
#define FOR_DEFAULT 5u

/* Tests ----------------------------------------------------------------------
 */

static void
test_get(void **state)
{
	static const struct ace mode[] = { { 0x01, OWNER, 6 },
					   { 0x04, GROUP, 4 },
					   { 0x10, 0, 4 },
					   { 0x20, 0, 0 } };
	struct site *s = site_new(engine, NULL, NULL);
	struct acl access, deflt;
	struct raw_fh fh;

	site_file(s, "f", 0640, OWNER, GROUP, "text");
	fh = site_lookup(s, "f");
	assert_int_equal(nfsacl_get(s->r, &fh, ALL, &access, &deflt), NFS3_OK);
	expect_aces(&access, mode, 4);
	assert_int_equal(deflt.count + deflt.length, 0);
	assert_int_equal(harness_sh("setfacl -m u:1004:rw,g:3000:x,m::rwx %s",
				    site_path(s, "f")),
			 0);
	/* Anybody may ask. */
	ask_as(s->r, 4000, 4000);
	assert_int_equal(nfsacl_get(s->r, &fh, ACL | COUNT, &access, &deflt),
			 NFS3_OK);
	expect_aces(&access, for_other, FOR_OTHER);
	assert_int_equal(nfsacl_get(s->r, &fh, COUNT, &access, &deflt),
			 NFS3_OK);
	assert_int_equal(access.count, FOR_OTHER);
	assert_int_equal(access.length, 0);
	assert_int_equal(nfsacl_get(s->r, &fh, 0, &access, &deflt), NFS3_OK);
	assert_int_equal(access.count + access.length, 0);
	assert_int_equal(nfsacl_get(s->r, &fh, 16, &access, &deflt),
			 NFS3ERR_INVAL);
	assert_int_equal(harness_stat(s->h, "nfsacl.GETACL"), 5);
	site_free(s);
}

static void
test_get_directory(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	struct acl access, deflt;
	struct raw_fh fh;

	assert_int_equal(harness_sh("mkdir %s && chown 1000:2000 %s && "
				    "setfacl -m d:u::rwx,d:u:1004:rx,d:g::rx,"
				    "d:o::- %s",
				    site_path(s, "d"), site_path(s, "d"),
				    site_path(s, "d")),
			 0);
	fh = site_lookup(s, "d");
	assert_int_equal(nfsacl_get(s->r, &fh, ALL, &access, &deflt), NFS3_OK);
	assert_int_equal(access.count, 4);
	expect_aces(&deflt, for_default, FOR_DEFAULT);
	assert_int_equal(
		nfsacl_get(s->r, &fh, ACL | DEFAULT_COUNT, &access, &deflt),
		NFS3_OK);
	assert_int_equal(access.length, 4);
	assert_int_equal(deflt.count, FOR_DEFAULT);
	assert_int_equal(deflt.length, 0);
	site_free(s);
}

/* Set by the owner, shown here, obeyed at once, also by what is open. */
static void
test_set(void **state)
{
	static const struct ace minimal[] = {
		{ 0x20, 0, 0 }, { 0x10, 0, 4 }, { 0x04, 0, 4 }, { 0x01, 0, 6 }
	};
	struct site *s = site_new(engine, NULL, NULL);
	struct raw_fh fh;

	site_file(s, "f", 0640, OWNER, GROUP, "text");
	fh = site_lookup(s, "f");
	ask_as(s->r, OTHER, OTHER);
	site_expect(s, ask_read(&fh, 0, 4), NFS3ERR_ACCES);
	ask_as(s->r, OWNER, 1);
	assert_int_equal(nfsacl_set(s->r, &fh, ACL, for_other, FOR_OTHER),
			 NFS3_OK);
	expect_facl(s, "f", for_other_text);
	ask_as(s->r, OTHER, OTHER);
	site_expect(s, ask_read(&fh, 0, 4), NFS3_OK);
	site_expect(s, ask_write(&fh, 0, "T", 1, FILE_SYNC), NFS3_OK);
	/* One that says no more than a mode becomes one. */
	ask_as(s->r, OWNER, 1);
	assert_int_equal(nfsacl_set(s->r, &fh, ACL, minimal, 4), NFS3_OK);
	expect_facl(s, "f", "user::rw- group::r-- other::---");
	assert_int_equal(mode_of(s, "f"), 0640);
	assert_true(getxattr(site_path(s, "f"), "system.posix_acl_access", NULL,
			     0) < 0);
	ask_as(s->r, OTHER, OTHER);
	site_expect(s, ask_read(&fh, 0, 4), NFS3ERR_ACCES);
	assert_int_equal(harness_stat(s->h, "nfsacl.SETACL"), 2);
	site_free(s);
}

static void
test_default(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	struct raw_fh fh;
	struct answer a;

	assert_int_equal(harness_sh("mkdir %s && chown 1000:2000 %s",
				    site_path(s, "d"), site_path(s, "d")),
			 0);
	fh = site_lookup(s, "d");
	ask_as(s->r, OWNER, GROUP);
	assert_int_equal(
		nfsacl_set(s->r, &fh, DEFAULT, for_default, FOR_DEFAULT),
		NFS3_OK);
	/* What is made there has it. */
	assert_int_equal(
		ask(s->r, ask_create(&fh, "f", GUARDED, ask_mode(0666)), &a),
		NFS3_OK);
	expect_facl(s, "d/f",
		    "user::rw- user:1004:r-x group::r-x mask::r-- other::---");
	/* The access ACL stays when the default goes, and the reverse. */
	assert_int_equal(nfsacl_set(s->r, &fh, ACL, for_other, FOR_OTHER),
			 NFS3_OK);
	assert_int_equal(nfsacl_set(s->r, &fh, DEFAULT, NULL, 0), NFS3_OK);
	expect_facl(s, "d", for_other_text);
	assert_int_equal(nfsacl_set(s->r, &fh, DEFAULT, NULL, 0), NFS3_OK);
	assert_int_equal(
		nfsacl_set(s->r, &fh, DEFAULT, for_default, FOR_DEFAULT),
		NFS3_OK);
	assert_int_equal(nfsacl_set(s->r, &fh, ACL, NULL, 0), NFS3_OK);
	expect_facl(s, "d",
		    "user::rw- group::rwx other::--- default:user::rwx "
		    "default:user:1004:r-x default:group::r-x "
		    "default:mask::r-x default:other::---");
	site_free(s);
}

static void
test_refused(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	struct acl access, deflt;
	struct raw_fh fh, bad;
	struct ace twice[] = { for_other[0], for_other[0], for_other[2],
			       for_other[5] };

	site_file(s, "f", 0666, OWNER, GROUP, "text");
	fh = site_lookup(s, "f");
	ask_as(s->r, OTHER, GROUP);
	assert_int_equal(nfsacl_set(s->r, &fh, ACL, for_other, FOR_OTHER),
			 NFS3ERR_PERM);
	ask_as(s->r, OWNER, GROUP);
	assert_int_equal(
		nfsacl_set(s->r, &fh, DEFAULT, for_default, FOR_DEFAULT),
		NFS3ERR_ACCES);
	assert_int_equal(nfsacl_set(s->r, &fh, ACL, twice, 4), NFS3ERR_INVAL);
	assert_int_equal(nfsacl_set(s->r, &fh, ACL, for_other, 1),
			 NFS3ERR_INVAL);
	assert_int_equal(nfsacl_set(s->r, &fh, 16 | ACL, for_other, FOR_OTHER),
			 NFS3ERR_INVAL);
	/* Neither is set where one of the two is none. */
	nfsacl_build_set(s->r, &fh, ACL | DEFAULT, for_other, FOR_OTHER);
	raw_send(s->r);
	assert_int_equal(nfsacl_answered(s->r), NFS3ERR_ACCES);
	expect_facl(s, "f", "user::rw- group::rw- other::rw-");
	assert_int_equal(nfsacl_set(s->r, &fh, DEFAULT, NULL, 0), NFS3_OK);
	bad = fh;
	bad.data[bad.bytes - 1] ^= 1;
	assert_int_equal(nfsacl_set(s->r, &bad, ACL, for_other, FOR_OTHER),
			 NFS3ERR_BADHANDLE);
	assert_int_equal(nfsacl_get(s->r, &bad, ALL, &access, &deflt),
			 NFS3ERR_BADHANDLE);
	assert_int_equal(unlink(site_path(s, "f")), 0);
	assert_int_equal(nfsacl_get(s->r, &fh, ALL, &access, &deflt),
			 NFS3ERR_STALE);
	ask_as(s->r, 0, 0);
	assert_int_equal(symlink("nowhere", site_path(s, "l")), 0);
	fh = site_lookup(s, "l");
	assert_int_equal(nfsacl_set(s->r, &fh, ACL, for_other, FOR_OTHER),
			 NFS3ERR_NOTSUPP);
	assert_int_equal(nfsacl_get(s->r, &fh, ALL, &access, &deflt), NFS3_OK);
	assert_int_equal(access.count, 4);
	site_free(s);
}

/* As root, who may, and as whom squashing makes of him, who may not. */
static void
test_squash(void **state)
{
	struct site *s = site_new(engine, "rw,root_squash,insecure", NULL);
	struct raw_fh fh;

	site_file(s, "f", 0640, OWNER, GROUP, "text");
	fh = site_lookup(s, "f");
	ask_as(s->r, 0, 0);
	assert_int_equal(nfsacl_set(s->r, &fh, ACL, for_other, FOR_OTHER),
			 NFS3ERR_PERM);
	site_free(s);
	s = site_new(engine, NULL, NULL);
	site_file(s, "f", 0640, OWNER, GROUP, "text");
	fh = site_lookup(s, "f");
	assert_int_equal(nfsacl_set(s->r, &fh, ACL, for_other, FOR_OTHER),
			 NFS3_OK);
	expect_facl(s, "f", for_other_text);
	site_free(s);
}

static void
test_read_only(void **state)
{
	struct site *s = site_new(engine, "ro,no_root_squash,insecure", NULL);
	struct acl access, deflt;
	struct raw_fh fh;

	site_file(s, "f", 0640, OWNER, GROUP, "text");
	fh = site_lookup(s, "f");
	assert_int_equal(nfsacl_set(s->r, &fh, ACL, for_other, FOR_OTHER),
			 NFS3ERR_ROFS);
	assert_int_equal(nfsacl_get(s->r, &fh, ALL, &access, &deflt), NFS3_OK);
	site_free(s);
}

/* The mode, and nothing but; the ACL is obeyed all the same. */
static void
test_no_acl(void **state)
{
	struct site *s =
		site_new(engine, "rw,no_root_squash,insecure,no_acl", NULL);
	struct acl access, deflt;
	struct raw_fh fh;

	site_file(s, "f", 0640, OWNER, GROUP, "text");
	assert_int_equal(harness_sh("setfacl -m u:1004:rw,g:3000:x,m::rwx %s",
				    site_path(s, "f")),
			 0);
	fh = site_lookup(s, "f");
	assert_int_equal(nfsacl_get(s->r, &fh, ALL, &access, &deflt), NFS3_OK);
	assert_int_equal(access.count, 4);
	assert_int_equal(access.ace[1].perm, 7);
	assert_int_equal(deflt.count, 0);
	assert_int_equal(nfsacl_set(s->r, &fh, ACL, for_other, FOR_OTHER),
			 NFS3ERR_NOTSUPP);
	ask_as(s->r, OTHER, OTHER);
	site_expect(s, ask_read(&fh, 0, 4), NFS3_OK);
	site_free(s);
}

/* btrfs has an option for it. */
static void
test_without(void **state)
{
	struct site *s = site_prepare(engine, NULL, "btrfs");
	struct acl access, deflt;
	struct raw_fh fh;

	assert_int_equal(harness_sh("mount -o remount,noacl %s", s->h->export),
			 0);
	site_start(s);
	site_file(s, "f", 0640, OWNER, GROUP, "text");
	fh = site_lookup(s, "f");
	assert_int_equal(nfsacl_get(s->r, &fh, ALL, &access, &deflt), NFS3_OK);
	assert_int_equal(access.count, 4);
	assert_int_equal(nfsacl_set(s->r, &fh, ACL, for_other, FOR_OTHER),
			 NFS3ERR_NOTSUPP);
	site_free(s);
}

/* Is it on the device when the reply is there? A copy of the device's bytes,
 * mounted apart, shows it. */
static void
durable(const char *fs)
{
	struct site *s = site_prepare(engine, NULL, fs);
	const char *options = strcmp(fs, "xfs") == 0 ? "nouuid" : "rw";
	struct answer a;
	uint64_t flushes;

	/* No commit by the clock. */
	if (strcmp(fs, "ext4") == 0)
		assert_int_equal(harness_sh("mount -o remount,commit=3000 %s",
					    s->h->export),
				 0);
	site_start(s);
	assert_int_equal(ask(s->r,
			     ask_create(&s->root, "f", GUARDED, ask_mode(0640)),
			     &a),
			 NFS3_OK);
	flushes = harness_device_stat(s->h).flushes;
	assert_int_equal(nfsacl_set(s->r, &a.fh, ACL, for_other, FOR_OTHER),
			 NFS3_OK);
	assert_true(harness_device_stat(s->h).flushes > flushes);
	assert_int_equal(
		harness_sh("cd %s && cp --sparse=always image crash && "
			   "mkdir crashed && "
			   "loop=$(losetup -b 4096 --show -f crash) && "
			   "mount -o %s $loop crashed && "
			   "{ getfacl -ncEp crashed/f | grep -q user:1004:rw-; "
			   "rc=$?; umount crashed; losetup -d $loop; "
			   "exit $rc; }",
			   s->h->dir, options),
		0);
	site_free(s);
}

static void
test_durable(void **state)
{
	durable("xfs");
	durable("ext4");
	durable("btrfs");
}

/* A retry is answered as the first was, and sets nothing again. */
static void
test_retry(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	uint8_t first[256];
	uint32_t n;
	struct raw_fh fh;

	site_file(s, "f", 0640, OWNER, GROUP, "text");
	fh = site_lookup(s, "f");
	assert_int_equal(nfsacl_set(s->r, &fh, ACL, for_other, FOR_OTHER),
			 NFS3_OK);
	n = s->r->in_bytes;
	assert_true(n <= sizeof(first));
	memcpy(first, s->r->in, n);
	assert_int_equal(harness_sh("setfacl -b %s", site_path(s, "f")), 0);
	raw_send(s->r);
	assert_int_equal(nfsacl_answered(s->r), NFS3_OK);
	assert_int_equal(s->r->in_bytes, n);
	assert_memory_equal(s->r->in, first, n);
	assert_int_equal(harness_stat(s->h, "drc_hits"), 1);
	expect_facl(s, "f", "user::rw- group::r-- other::---");
	site_free(s);
}

/* As many entries as the wire has room for, in a record of many kilobytes; and
 * one more, which only setfacl can make. */
static void
test_longest(void **state)
{
	static struct ace ace[ACES_MAX];
	static struct acl access, deflt;
	struct site *s = site_new(engine, NULL, "xfs");
	struct raw_fh fh;
	uint32_t i;

	for (i = 0; i < ACES_MAX; i++)
		ace[i] = (struct ace){ 0x02, 5000 + i, i % 8 };
	ace[0] = (struct ace){ 0x01, OWNER, 6 };
	ace[ACES_MAX - 3] = (struct ace){ 0x04, GROUP, 4 };
	ace[ACES_MAX - 2] = (struct ace){ 0x10, 0, 5 };
	ace[ACES_MAX - 1] = (struct ace){ 0x20, 0, 0 };
	site_file(s, "f", 0640, OWNER, GROUP, "text");
	fh = site_lookup(s, "f");
	assert_int_equal(nfsacl_set(s->r, &fh, ACL, ace, ACES_MAX), NFS3_OK);
	assert_int_equal(nfsacl_get(s->r, &fh, ACL, &access, &deflt), NFS3_OK);
	expect_aces(&access, ace, ACES_MAX);
	assert_int_equal(
		harness_sh("setfacl -m u:4999:rw %s", site_path(s, "f")), 0);
	assert_int_equal(nfsacl_get(s->r, &fh, ACL, &access, &deflt),
			 NFS3ERR_INVAL);
	site_free(s);
}

/* Garbage is told so, and the connection goes on. */
static void
test_garbage(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);

	raw_call(s->r, 100227, 3, 0, NULL, NULL, NULL, NULL);
	raw_build(s->r, 100227, 3, PROC_SETACL, NULL, NULL);
	raw_put_opaque(s->r, s->root.data, s->root.bytes);
	raw_put(s->r, ACL);
	raw_put(s->r, 1025);
	raw_put(s->r, 1025);
	raw_send(s->r);
	assert_true(raw_receive(s->r));
	assert_int_equal(s->r->accept_stat, 4); /* GARBAGE_ARGS */
	raw_build(s->r, 100227, 2, 0, NULL, NULL);
	raw_send(s->r);
	assert_true(raw_receive(s->r));
	assert_int_equal(s->r->accept_stat, 2); /* PROG_MISMATCH */
	assert_int_equal(s->r->low, 3);
	assert_int_equal(s->r->high, 3);
	raw_build(s->r, 100227, 3, 3, NULL, NULL);
	raw_send(s->r);
	assert_true(raw_receive(s->r));
	assert_int_equal(s->r->accept_stat, 3); /* PROC_UNAVAIL */
	raw_call(s->r, 100227, 3, 0, NULL, NULL, NULL, NULL);
	site_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_get),
		cmocka_unit_test(test_get_directory),
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_default),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_squash),
		cmocka_unit_test(test_read_only),
		cmocka_unit_test(test_no_acl),
		cmocka_unit_test(test_without),
		cmocka_unit_test(test_durable),
		cmocka_unit_test(test_retry),
		cmocka_unit_test(test_longest),
		cmocka_unit_test(test_garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
