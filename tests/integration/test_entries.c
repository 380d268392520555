/* SPDX-License-Identifier: Apache-2.0 */
/*
 * REMOVE, RMDIR, RENAME and LINK over the wire: what they do, what they refuse
 * and with which status.
 */
#include "site.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *engine = "uring";

static void
test_remove(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	struct raw_fh root = s->root, file;

	site_file(s, "file", 0644, 0, 0, "x");
	assert_int_equal(mkdir(site_path(s, "dir"), 0755), 0);
	site_file(s, "dir/in", 0644, 0, 0, "x");
	file = site_lookup(s, "file");
	site_expect(s, ask_remove(&root, "none"), NFS3ERR_NOENT);
	site_expect(s, ask_rmdir(&root, "none"), NFS3ERR_NOENT);
	site_expect(s, ask_remove(&root, "dir"), NFS3ERR_ISDIR);
	site_expect(s, ask_rmdir(&root, "file"), NFS3ERR_NOTDIR);
	site_expect(s, ask_rmdir(&root, "dir"), NFS3ERR_NOTEMPTY);
	site_expect(s, ask_remove(&file, "x"), NFS3ERR_NOTDIR);
	site_expect(s, ask_rmdir(&file, "x"), NFS3ERR_NOTDIR);
	site_expect(s, ask_mkdir(&file, "x", ask_mode(0755)), NFS3ERR_NOTDIR);
	ask_as(s->r, 1000, 1000);
	assert_int_equal(chmod(s->h->export, 0755), 0);
	site_expect(s, ask_remove(&root, "file"), NFS3ERR_ACCES);
	site_expect(s, ask_rmdir(&root, "dir"), NFS3ERR_ACCES);
	site_expect(s, ask_rename(&root, "file", &root, "x"), NFS3ERR_ACCES);
	/* In a sticky directory only the owner's. */
	assert_int_equal(chmod(s->h->export, 01777), 0);
	site_expect(s, ask_remove(&root, "file"), NFS3ERR_PERM);
	site_expect(s, ask_rename(&root, "file", &root, "x"), NFS3ERR_PERM);
	site_expect(s, ask_create(&root, "his", GUARDED, ask_mode(0644)),
		    NFS3_OK);
	site_expect(s, ask_rename(&root, "his", &root, "hers"), NFS3_OK);
	site_expect(s, ask_remove(&root, "hers"), NFS3_OK);
	ask_as(s->r, 0, 0);
	site_expect(s, ask_remove(&root, "file"), NFS3_OK);
	site_free(s);
}

static void
test_rename(void **state)
{
	struct site *s = site_new(engine, NULL, "ext4");
	struct raw_fh root = s->root, a, b, d, e, got;

	raw_create(s->r, &root, "a", 0644, &a);
	raw_create(s->r, &root, "b", 0644, &b);
	site_expect(s, ask_mkdir(&root, "d", ask_mode(0755)), NFS3_OK);
	site_expect(s, ask_mkdir(&root, "e", ask_mode(0755)), NFS3_OK);
	d = site_lookup(s, "d");
	e = site_lookup(s, "e");
	site_expect(s, ask_rename(&root, "none", &root, "x"), NFS3ERR_NOENT);
	/* Onto itself, and onto another name of the same: nothing. */
	site_expect(s, ask_rename(&root, "a", &root, "a"), NFS3_OK);
	site_expect(s, ask_link(&a, &d, "a2"), NFS3_OK);
	site_expect(s, ask_rename(&root, "a", &d, "a2"), NFS3_OK);
	got = site_lookup(s, "a");
	site_expect_same(&got, &a);
	assert_int_equal(ask_attr(s->r, &a).nlink, 2);
	/* Over another, across directories. */
	site_expect(s, ask_rename(&root, "a", &root, "b"), NFS3_OK);
	got = site_lookup(s, "b");
	site_expect_same(&got, &a);
	site_expect(s, ask_getattr(&b), NFS3ERR_STALE);
	site_expect(s, ask_rename(&root, "b", &d, "b"), NFS3_OK);
	got = site_lookup_in(s, &d, "b");
	site_expect_same(&got, &a);
	/* Of kinds that do not go together. */
	site_expect(s, ask_rename(&root, "e", &d, "b"), NFS3ERR_NOTDIR);
	site_expect(s, ask_rename(&d, "b", &root, "e"), NFS3ERR_ISDIR);
	site_expect(s, ask_rename(&root, "e", &root, "d"), NFS3ERR_NOTEMPTY);
	site_expect(s, ask_rename(&root, "d", &d, "in"), NFS3ERR_INVAL);
	site_expect(s, ask_rename(&root, "d", &root, "e"), NFS3_OK);
	site_expect(s, ask_getattr(&e), NFS3ERR_STALE);
	got = site_lookup_in(s, &d, "..");
	site_expect_same(&got, &root);
	/* From or to what is no directory. */
	site_expect(s, ask_rename(&a, "x", &root, "y"), NFS3ERR_NOTDIR);
	site_expect(s, ask_rename(&root, "e", &a, "y"), NFS3ERR_NOTDIR);
	site_free(s);
}

/* A directory that goes to another parent has its ".." with it. */
static void
test_rename_parent(void **state)
{
	struct site *s = site_new(engine, NULL, "xfs");
	struct raw_fh root = s->root, d, sub, got;

	site_expect(s, ask_mkdir(&root, "d", ask_mode(0755)), NFS3_OK);
	site_expect(s, ask_mkdir(&root, "sub", ask_mode(0755)), NFS3_OK);
	d = site_lookup(s, "d");
	sub = site_lookup(s, "sub");
	assert_int_equal(ask_attr(s->r, &root).nlink, 4);
	site_expect(s, ask_rename(&root, "sub", &d, "sub"), NFS3_OK);
	got = site_lookup_in(s, &sub, "..");
	site_expect_same(&got, &d);
	assert_int_equal(ask_attr(s->r, &root).nlink, 3);
	assert_int_equal(ask_attr(s->r, &d).nlink, 3);
	site_free(s);
}

static void
test_link(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	struct raw_fh root = s->root, file, dir, got;
	struct answer a;

	raw_create(s->r, &root, "f", 0644, &file);
	site_expect(s, ask_mkdir(&root, "d", ask_mode(0755)), NFS3_OK);
	dir = site_lookup(s, "d");
	assert_int_equal(ask(s->r, ask_link(&file, &dir, "g"), &a), NFS3_OK);
	assert_true(a.attr.attributes_follow);
	assert_int_equal(a.attr.post_op_attr_u.attributes.nlink, 2);
	got = site_lookup_in(s, &dir, "g");
	site_expect_same(&got, &file);
	site_expect(s, ask_link(&file, &dir, "g"), NFS3ERR_EXIST);
	site_expect(s, ask_link(&file, &file, "g"), NFS3ERR_NOTDIR);
	site_expect(s, ask_link(&dir, &root, "g"), NFS3ERR_ISDIR);
	site_expect(s, ask_remove(&root, "f"), NFS3_OK);
	assert_int_equal(ask_attr(s->r, &file).nlink, 1);
	site_free(s);
}

/* As many as the file system has, and its word for one more. */
static void
test_link_limit(void **state)
{
	struct site *s =
		site_new(engine, "rw,async,no_root_squash,insecure", "ext4");
	struct raw_fh file;
	struct answer a;
	char name[32];
	unsigned i;

	raw_create(s->r, &s->root, "f", 0644, &file);
	assert_int_equal(ask(s->r, ask_pathconf(&file), &a), NFS3_OK);
	assert_int_equal(a.u.pathconf.linkmax, 65000);
	assert_int_equal(chdir(s->h->export), 0);
	for (i = 1; i < a.u.pathconf.linkmax - 1; i++) {
		(void)snprintf(name, sizeof(name), "l%u", i);
		assert_int_equal(link("f", name), 0);
	}
	assert_int_equal(chdir("/"), 0);
	site_expect(s, ask_link(&file, &s->root, "last"), NFS3_OK);
	site_expect(s, ask_link(&file, &s->root, "over"), NFS3ERR_MLINK);
	assert_int_equal(ask_attr(s->r, &file).nlink, 65000);
	site_free(s);
}

/* Between two exports nothing moves and nothing is linked, though they may lie
 * on one file system. */
static void
test_two_exports(void **state)
{
	struct site *s = site_prepare(engine, NULL, NULL);
	struct raw_fh second, file;
	char line[500], dir[400];

	(void)snprintf(dir, sizeof(dir), "%s/second", s->h->dir);
	(void)snprintf(line, sizeof(line), "%s *(rw,no_root_squash,insecure)",
		       dir);
	assert_int_equal(mkdir(dir, 0777), 0);
	harness_arg(s->h, "--export");
	harness_arg(s->h, line);
	site_start(s);
	assert_int_equal(raw_mount(s->r, dir, &second), 0);
	raw_create(s->r, &s->root, "f", 0644, &file);
	site_expect(s, ask_rename(&s->root, "f", &second, "f"), NFS3ERR_XDEV);
	site_expect(s, ask_link(&file, &second, "f"), NFS3ERR_XDEV);
	site_expect(s, ask_rename(&s->root, "f", &s->root, "g"), NFS3_OK);
	site_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_remove),
		cmocka_unit_test(test_rename),
		cmocka_unit_test(test_rename_parent),
		cmocka_unit_test(test_link),
		cmocka_unit_test(test_link_limit),
		cmocka_unit_test(test_two_exports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
