/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NFSACL version 3 over the wire: what GETACL tells is what setfacl made here,
 * what SETACL sets is what getfacl shows here and what the server then obeys,
 * and whoever may not is refused.
 */
#include "site.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define OWNER 1000u
#define GROUP 2000u
#define OTHER 1004u

#define ACL           1u
#define COUNT         2u
#define DEFAULT       4u
#define DEFAULT_COUNT 8u
#define ALL           15u

#define PROC_GETACL 1u
#define PROC_SETACL 2u
#define ACES_MAX    1024u

/* As on the wire. */
struct ace {
	uint32_t tag, id, perm;
};

struct acl {
	uint32_t count, length; /* as told, as brought along */
	struct ace ace[ACES_MAX];
};

static const char engine[] = "uring";

/* Bytes ----------------------------------------------------------------------
 */

static void
put(struct raw *r, uint32_t word)
{
	word = htonl(word);
	raw_append(r, &word, 4);
}

static uint32_t
get(const struct raw *r, uint32_t *at)
{
	uint32_t word;

	assert_true(*at + 4 <= r->in_bytes);
	memcpy(&word, r->in + *at, 4);
	*at += 4;
	return ntohl(word);
}

static void
put_fh(struct raw *r, const struct raw_fh *fh)
{
	static const char pad[3];

	put(r, fh->bytes);
	raw_append(r, fh->data, fh->bytes);
	raw_append(r, pad, -fh->bytes & 3);
}

static void
put_acl(struct raw *r, const struct ace *ace, uint32_t n)
{
	uint32_t i;

	put(r, n);
	put(r, n);
	for (i = 0; i < n; i++) {
		put(r, ace[i].tag);
		put(r, ace[i].id);
		put(r, ace[i].perm);
	}
}

/* Status, and attributes, which must be there where there is an object. */
static int
take_status(const struct raw *r, uint32_t *at)
{
	uint32_t status;

	assert_int_equal(r->accept_stat, 0);
	*at = r->body;
	status = get(r, at);
	if (get(r, at))
		*at += 84;
	else
		assert_true(status != NFS3_OK);
	return (int)status;
}

static void
take_acl(const struct raw *r, uint32_t *at, struct acl *a)
{
	uint32_t i;

	a->count = get(r, at);
	a->length = get(r, at);
	assert_true(a->length <= ACES_MAX);
	for (i = 0; i < a->length; i++) {
		a->ace[i].tag = get(r, at);
		a->ace[i].id = get(r, at);
		a->ace[i].perm = get(r, at);
	}
}

/* Calls ----------------------------------------------------------------------
 */

static int
getacl(struct raw *r, const struct raw_fh *fh, uint32_t mask,
       struct acl *access, struct acl *deflt)
{
	uint32_t at;
	int status;

	raw_build(r, 100227, 3, PROC_GETACL, NULL, NULL);
	put_fh(r, fh);
	put(r, mask);
	raw_send(r);
	assert_true(raw_receive(r));
	status = take_status(r, &at);
	if (status == NFS3_OK) {
		assert_int_equal(get(r, &at), mask);
		take_acl(r, &at, access);
		take_acl(r, &at, deflt);
	}
	assert_int_equal(at, r->in_bytes);
	return status;
}

/* One ACL; the other's place is empty, and not named by the mask. */
static void
build_setacl(struct raw *r, const struct raw_fh *fh, uint32_t mask,
	     const struct ace *ace, uint32_t n)
{
	raw_build(r, 100227, 3, PROC_SETACL, NULL, NULL);
	put_fh(r, fh);
	put(r, mask);
	put_acl(r, ace, mask & ACL ? n : 0);
	put_acl(r, ace, mask & DEFAULT ? n : 0);
}

static int
answered(struct raw *r)
{
	uint32_t at;
	int status;

	assert_true(raw_receive(r));
	status = take_status(r, &at);
	assert_int_equal(at, r->in_bytes);
	return status;
}

static int
setacl(struct raw *r, const struct raw_fh *fh, uint32_t mask,
       const struct ace *ace, uint32_t n)
{
	build_setacl(r, fh, mask, ace, n);
	raw_send(r);
	return answered(r);
}

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
	assert_int_equal(getacl(s->r, &fh, ALL, &access, &deflt), NFS3_OK);
	expect_aces(&access, mode, 4);
	assert_int_equal(deflt.count + deflt.length, 0);
	assert_int_equal(harness_sh("setfacl -m u:1004:rw,g:3000:x,m::rwx %s",
				    site_path(s, "f")),
			 0);
	/* Anybody may ask. */
	ask_as(s->r, 4000, 4000);
	assert_int_equal(getacl(s->r, &fh, ACL | COUNT, &access, &deflt),
			 NFS3_OK);
	expect_aces(&access, for_other, FOR_OTHER);
	assert_int_equal(getacl(s->r, &fh, COUNT, &access, &deflt), NFS3_OK);
	assert_int_equal(access.count, FOR_OTHER);
	assert_int_equal(access.length, 0);
	assert_int_equal(getacl(s->r, &fh, 0, &access, &deflt), NFS3_OK);
	assert_int_equal(access.count + access.length, 0);
	assert_int_equal(getacl(s->r, &fh, 16, &access, &deflt), NFS3ERR_INVAL);
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
	assert_int_equal(getacl(s->r, &fh, ALL, &access, &deflt), NFS3_OK);
	assert_int_equal(access.count, 4);
	expect_aces(&deflt, for_default, FOR_DEFAULT);
	assert_int_equal(
		getacl(s->r, &fh, ACL | DEFAULT_COUNT, &access, &deflt),
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
	assert_int_equal(setacl(s->r, &fh, ACL, for_other, FOR_OTHER), NFS3_OK);
	expect_facl(s, "f", for_other_text);
	ask_as(s->r, OTHER, OTHER);
	site_expect(s, ask_read(&fh, 0, 4), NFS3_OK);
	site_expect(s, ask_write(&fh, 0, "T", 1, FILE_SYNC), NFS3_OK);
	/* One that says no more than a mode becomes one. */
	ask_as(s->r, OWNER, 1);
	assert_int_equal(setacl(s->r, &fh, ACL, minimal, 4), NFS3_OK);
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
	assert_int_equal(setacl(s->r, &fh, DEFAULT, for_default, FOR_DEFAULT),
			 NFS3_OK);
	/* What is made there has it. */
	assert_int_equal(
		ask(s->r, ask_create(&fh, "f", GUARDED, ask_mode(0666)), &a),
		NFS3_OK);
	expect_facl(s, "d/f",
		    "user::rw- user:1004:r-x group::r-x mask::r-- other::---");
	/* The access ACL stays when the default goes, and the reverse. */
	assert_int_equal(setacl(s->r, &fh, ACL, for_other, FOR_OTHER), NFS3_OK);
	assert_int_equal(setacl(s->r, &fh, DEFAULT, NULL, 0), NFS3_OK);
	expect_facl(s, "d", for_other_text);
	assert_int_equal(setacl(s->r, &fh, DEFAULT, NULL, 0), NFS3_OK);
	assert_int_equal(setacl(s->r, &fh, DEFAULT, for_default, FOR_DEFAULT),
			 NFS3_OK);
	assert_int_equal(setacl(s->r, &fh, ACL, NULL, 0), NFS3_OK);
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
	assert_int_equal(setacl(s->r, &fh, ACL, for_other, FOR_OTHER),
			 NFS3ERR_PERM);
	ask_as(s->r, OWNER, GROUP);
	assert_int_equal(setacl(s->r, &fh, DEFAULT, for_default, FOR_DEFAULT),
			 NFS3ERR_ACCES);
	assert_int_equal(setacl(s->r, &fh, ACL, twice, 4), NFS3ERR_INVAL);
	assert_int_equal(setacl(s->r, &fh, ACL, for_other, 1), NFS3ERR_INVAL);
	assert_int_equal(setacl(s->r, &fh, 16 | ACL, for_other, FOR_OTHER),
			 NFS3ERR_INVAL);
	/* Neither is set where one of the two is none. */
	build_setacl(s->r, &fh, ACL | DEFAULT, for_other, FOR_OTHER);
	raw_send(s->r);
	assert_int_equal(answered(s->r), NFS3ERR_ACCES);
	expect_facl(s, "f", "user::rw- group::rw- other::rw-");
	assert_int_equal(setacl(s->r, &fh, DEFAULT, NULL, 0), NFS3_OK);
	bad = fh;
	bad.data[bad.bytes - 1] ^= 1;
	assert_int_equal(setacl(s->r, &bad, ACL, for_other, FOR_OTHER),
			 NFS3ERR_BADHANDLE);
	assert_int_equal(getacl(s->r, &bad, ALL, &access, &deflt),
			 NFS3ERR_BADHANDLE);
	assert_int_equal(unlink(site_path(s, "f")), 0);
	assert_int_equal(getacl(s->r, &fh, ALL, &access, &deflt),
			 NFS3ERR_STALE);
	ask_as(s->r, 0, 0);
	assert_int_equal(symlink("nowhere", site_path(s, "l")), 0);
	fh = site_lookup(s, "l");
	assert_int_equal(setacl(s->r, &fh, ACL, for_other, FOR_OTHER),
			 NFS3ERR_NOTSUPP);
	assert_int_equal(getacl(s->r, &fh, ALL, &access, &deflt), NFS3_OK);
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
	assert_int_equal(setacl(s->r, &fh, ACL, for_other, FOR_OTHER),
			 NFS3ERR_PERM);
	site_free(s);
	s = site_new(engine, NULL, NULL);
	site_file(s, "f", 0640, OWNER, GROUP, "text");
	fh = site_lookup(s, "f");
	assert_int_equal(setacl(s->r, &fh, ACL, for_other, FOR_OTHER), NFS3_OK);
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
	assert_int_equal(setacl(s->r, &fh, ACL, for_other, FOR_OTHER),
			 NFS3ERR_ROFS);
	assert_int_equal(getacl(s->r, &fh, ALL, &access, &deflt), NFS3_OK);
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
	assert_int_equal(getacl(s->r, &fh, ALL, &access, &deflt), NFS3_OK);
	assert_int_equal(access.count, 4);
	assert_int_equal(access.ace[1].perm, 7);
	assert_int_equal(deflt.count, 0);
	assert_int_equal(setacl(s->r, &fh, ACL, for_other, FOR_OTHER),
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
	assert_int_equal(getacl(s->r, &fh, ALL, &access, &deflt), NFS3_OK);
	assert_int_equal(access.count, 4);
	assert_int_equal(setacl(s->r, &fh, ACL, for_other, FOR_OTHER),
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
	assert_int_equal(setacl(s->r, &a.fh, ACL, for_other, FOR_OTHER),
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
	assert_int_equal(setacl(s->r, &fh, ACL, for_other, FOR_OTHER), NFS3_OK);
	n = s->r->in_bytes;
	assert_true(n <= sizeof(first));
	memcpy(first, s->r->in, n);
	assert_int_equal(harness_sh("setfacl -b %s", site_path(s, "f")), 0);
	raw_send(s->r);
	assert_int_equal(answered(s->r), NFS3_OK);
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
	assert_int_equal(setacl(s->r, &fh, ACL, ace, ACES_MAX), NFS3_OK);
	assert_int_equal(getacl(s->r, &fh, ACL, &access, &deflt), NFS3_OK);
	expect_aces(&access, ace, ACES_MAX);
	assert_int_equal(
		harness_sh("setfacl -m u:4999:rw %s", site_path(s, "f")), 0);
	assert_int_equal(getacl(s->r, &fh, ACL, &access, &deflt),
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
	put_fh(s->r, &s->root);
	put(s->r, ACL);
	put(s->r, 1025);
	put(s->r, 1025);
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
