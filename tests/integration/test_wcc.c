/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wcc_data and post_op_attr (RFC 1813, 2.6): told by every procedure, where it
 * succeeds and where it fails, and true where nothing else goes on.
 */
#include "site.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *engine;

static bool
same_wcc(const pre_op_attr *before, const fattr3 *at)
{
	const wcc_attr *b = &before->pre_op_attr_u.attributes;

	return b->size == at->size && ask_same_time(&b->mtime, &at->mtime) &&
	       ask_same_time(&b->ctime, &at->ctime);
}

static void
expect_now(struct site *s, const post_op_attr *told, const struct raw_fh *fh)
{
	fattr3 now = ask_attr(s->r, fh);

	assert_true(told->attributes_follow);
	assert_true(ask_same_attr(&told->post_op_attr_u.attributes, &now));
}

/* One at a time
 * -------------------------------------------------------------------
 */

/* What a reply tells of the objects that it is about. */
enum tells {
	TELLS_ATTR = 1, /* of the object */
	TELLS_DIR = 2,  /* LOOKUP, of the directory */
	TELLS_WCC = 4,  /* before and after */
	TELLS_AFTER = 8 /* after alone: it was refused too soon for more */
};

struct row {
	struct question q;
	int status;
	unsigned tells;
	const struct raw_fh *object, *changed;
};

static void
check_row(struct site *s, const struct row *row)
{
	fattr3 was = { 0 };
	struct answer a;

	if (row->changed != NULL)
		was = ask_attr(s->r, row->changed);
	ask(s->r, row->q, &a);
	if (a.status != row->status)
		fail_msg("procedure %u: %d, not %d", row->q.proc, a.status,
			 row->status);
	if (row->tells & TELLS_ATTR)
		expect_now(s, &a.attr, row->object);
	if (row->tells & TELLS_DIR)
		expect_now(s, &a.dir, row->changed);
	if (row->tells & (TELLS_WCC | TELLS_AFTER))
		expect_now(s, &a.wcc.after, row->changed);
	if (row->tells & TELLS_WCC)
		assert_true(a.wcc.before.attributes_follow);
	if (a.wcc.before.attributes_follow)
		assert_true(same_wcc(&a.wcc.before, &was));
	if (row->q.proc == NFS3_RENAME) {
		expect_now(s, &a.wcc_to.after, row->changed);
		if (row->tells & TELLS_WCC)
			assert_true(same_wcc(&a.wcc_to.before, &was));
	}
}

static void
check_rows(struct site *s, const struct row *row, unsigned n)
{
	for (; n > 0; n--, row++)
		check_row(s, row);
}

static void
succeed(struct site *s, const struct raw_fh *f, const struct raw_fh *l)
{
	const struct raw_fh *r = &s->root;
	const struct row rows[] = {
		{ ask_setattr(f, ask_mode(0600), NULL), 0, TELLS_WCC, f, f },
		{ ask_setattr(f, ask_size(9), NULL), 0, TELLS_WCC, f, f },
		{ ask_setattr(r, ask_owner(3, 4), NULL), 0, TELLS_WCC, r, r },
		{ ask_lookup(r, "f"), 0, TELLS_ATTR | TELLS_DIR, f, r },
		{ ask_lookup(r, "."), 0, TELLS_ATTR | TELLS_DIR, r, r },
		{ ask_access(f, 63), 0, TELLS_ATTR, f, NULL },
		{ ask_readlink(l), 0, TELLS_ATTR, l, NULL },
		{ ask_read(f, 0, 99), 0, TELLS_ATTR, f, NULL },
		{ ask_read(f, 0, 0), 0, TELLS_ATTR, f, NULL },
		{ ask_write(f, 5, "x", 1, UNSTABLE), 0, TELLS_WCC, f, f },
		{ ask_write(f, 7, "xyz", 3, FILE_SYNC), 0, TELLS_WCC, f, f },
		{ ask_write(f, 0, "", 0, DATA_SYNC), 0, TELLS_WCC, f, f },
		{ ask_create(r, "g", GUARDED, ask_mode(0644)), 0, TELLS_WCC, r,
		  r },
		{ ask_create(r, "g", UNCHECKED, ask_mode(0644)), 0, TELLS_WCC,
		  r, r },
		{ ask_exclusive(r, "h", (const uint8_t *)"verifier"), 0,
		  TELLS_WCC, r, r },
		{ ask_mkdir(r, "d", ask_mode(0755)), 0, TELLS_WCC, r, r },
		{ ask_symlink(r, "s", "x"), 0, TELLS_WCC, r, r },
		{ ask_mknod(r, "p", NF3FIFO, ask_mode(0644), 0, 0), 0,
		  TELLS_WCC, r, r },
		{ ask_link(f, r, "f2"), 0, TELLS_ATTR | TELLS_WCC, f, r },
		{ ask_rename(r, "g", r, "h"), 0, TELLS_WCC, r, r },
		{ ask_rename(r, "f", r, "f2"), 0, TELLS_WCC, r, r },
		{ ask_remove(r, "h"), 0, TELLS_WCC, r, r },
		{ ask_rmdir(r, "d"), 0, TELLS_WCC, r, r },
		{ ask_readdir(r, 0, 4096), 0, TELLS_ATTR, r, NULL },
		{ ask_readdirplus(r, 0, 4096, 8192), 0, TELLS_ATTR, r, NULL },
		{ ask_fsstat(f), 0, TELLS_ATTR, f, NULL },
		{ ask_fsinfo(f), 0, TELLS_ATTR, f, NULL },
		{ ask_pathconf(f), 0, TELLS_ATTR, f, NULL },
		{ ask_commit(f), 0, TELLS_WCC, f, f },
	};

	check_rows(s, rows, sizeof(rows) / sizeof(rows[0]));
}

/* Each refused by what the procedure is about, not for its handle. */
static void
fail_about(struct site *s, const struct raw_fh *f, const struct raw_fh *l)
{
	const struct raw_fh *r = &s->root;
	const nfstime3 never = { 1, 1 };
	const struct row rows[] = {
		{ ask_setattr(r, ask_size(1), NULL), NFS3ERR_ISDIR, TELLS_AFTER,
		  r, r },
		{ ask_setattr(f, ask_mode(0), &never), NFS3ERR_NOT_SYNC,
		  TELLS_WCC, f, f },
		{ ask_lookup(r, "none"), NFS3ERR_NOENT, TELLS_DIR, NULL, r },
		{ ask_lookup(r, ""), NFS3ERR_ACCES, TELLS_DIR, NULL, r },
		{ ask_lookup(f, "x"), NFS3ERR_NOTDIR, TELLS_DIR, NULL, f },
		{ ask_readlink(f), NFS3ERR_INVAL, TELLS_ATTR, f, NULL },
		{ ask_read(r, 0, 9), NFS3ERR_ISDIR, TELLS_ATTR, r, NULL },
		{ ask_read(l, 0, 9), NFS3ERR_INVAL, TELLS_ATTR, l, NULL },
		{ ask_write(r, 0, "x", 1, UNSTABLE), NFS3ERR_ISDIR, TELLS_AFTER,
		  NULL, r },
		{ ask_write(f, INT64_MAX, "xy", 2, UNSTABLE), NFS3ERR_FBIG,
		  TELLS_AFTER, NULL, f },
		{ ask_commit(r), NFS3ERR_ISDIR, TELLS_AFTER, NULL, r },
		{ ask_create(r, "f", GUARDED, ask_mode(0)), NFS3ERR_EXIST,
		  TELLS_WCC, NULL, r },
		{ ask_create(r, "l", UNCHECKED, ask_mode(0)), NFS3ERR_EXIST,
		  TELLS_WCC, NULL, r },
		{ ask_create(r, "", GUARDED, ask_mode(0)), NFS3ERR_ACCES,
		  TELLS_AFTER, NULL, r },
		{ ask_create(f, "x", GUARDED, ask_mode(0)), NFS3ERR_NOTDIR,
		  TELLS_AFTER, NULL, f },
		{ ask_exclusive(r, "f", (const uint8_t *)"verifier"),
		  NFS3ERR_EXIST, TELLS_WCC, NULL, r },
		{ ask_mkdir(r, "f", ask_mode(0)), NFS3ERR_EXIST, TELLS_WCC,
		  NULL, r },
		{ ask_symlink(r, "f", "x"), NFS3ERR_EXIST, TELLS_WCC, NULL, r },
		{ ask_symlink(r, "x", ""), NFS3ERR_INVAL, TELLS_AFTER, NULL,
		  r },
		{ ask_mknod(r, "f", NF3FIFO, ask_mode(0), 0, 0), NFS3ERR_EXIST,
		  TELLS_WCC, NULL, r },
		{ ask_remove(r, "none"), NFS3ERR_NOENT, TELLS_WCC, NULL, r },
		{ ask_remove(r, "."), NFS3ERR_ISDIR, TELLS_AFTER, NULL, r },
		{ ask_rmdir(r, "f"), NFS3ERR_NOTDIR, TELLS_WCC, NULL, r },
		{ ask_rmdir(r, ".."), NFS3ERR_EXIST, TELLS_AFTER, NULL, r },
		{ ask_rename(r, "none", r, "x"), NFS3ERR_NOENT, TELLS_WCC, NULL,
		  r },
		{ ask_rename(r, "", r, "x"), NFS3ERR_ACCES, TELLS_AFTER, NULL,
		  r },
		{ ask_link(f, r, "l"), NFS3ERR_EXIST, TELLS_ATTR | TELLS_WCC, f,
		  r },
		{ ask_link(f, r, ""), NFS3ERR_ACCES, TELLS_ATTR | TELLS_AFTER,
		  f, r },
		{ ask_link(r, r, "x"), NFS3ERR_ISDIR, TELLS_ATTR | TELLS_AFTER,
		  r, r },
		{ ask_readdir(f, 0, 4096), NFS3ERR_NOTDIR, TELLS_ATTR, f,
		  NULL },
		{ ask_readdir(r, 0, 10), NFS3ERR_TOOSMALL, TELLS_ATTR, r,
		  NULL },
		{ ask_readdirplus(f, 0, 4096, 8192), NFS3ERR_NOTDIR, TELLS_ATTR,
		  f, NULL },
	};

	check_rows(s, rows, sizeof(rows) / sizeof(rows[0]));
}

/* Refused for who asks. */
static void
fail_rights(struct site *s, const struct raw_fh *f)
{
	const struct raw_fh *r = &s->root;
	const struct row rows[] = {
		{ ask_setattr(f, ask_mode(0), NULL), NFS3ERR_PERM, TELLS_AFTER,
		  f, f },
		{ ask_read(f, 0, 9), NFS3ERR_ACCES, TELLS_ATTR, f, NULL },
		{ ask_write(f, 0, "x", 1, UNSTABLE), NFS3ERR_ACCES, TELLS_AFTER,
		  NULL, f },
		{ ask_commit(f), NFS3ERR_ACCES, TELLS_AFTER, NULL, f },
		{ ask_create(r, "x", GUARDED, ask_mode(0)), NFS3ERR_ACCES,
		  TELLS_WCC, NULL, r },
		{ ask_mkdir(r, "x", ask_mode(0)), NFS3ERR_ACCES, TELLS_WCC,
		  NULL, r },
		{ ask_remove(r, "f"), NFS3ERR_ACCES, TELLS_WCC, NULL, r },
		{ ask_rename(r, "f", r, "x"), NFS3ERR_ACCES, TELLS_WCC, NULL,
		  r },
	};

	assert_int_equal(chmod(s->h->export, 0755), 0);
	ask_as(s->r, 1000, 1000);
	check_rows(s, rows, sizeof(rows) / sizeof(rows[0]));
	ask_as(s->r, 0, 0);
}

static void
one_at_a_time(const char *fs)
{
	struct site *s = site_new(engine, NULL, fs);
	struct raw_fh f, l;

	raw_create(s->r, &s->root, "f", 0600, &f);
	assert_int_equal(symlink("f", site_path(s, "l")), 0);
	l = site_lookup(s, "l");
	fail_about(s, &f, &l);
	fail_rights(s, &f);
	succeed(s, &f, &l);
	site_free(s);
}

static void
test_one_at_a_time(void **state)
{
	one_at_a_time(NULL);
	one_at_a_time("xfs");
	one_at_a_time("ext4");
}

/* Two directories: each one's own. */
static void
test_rename_across(void **state)
{
	struct site *s = site_new(engine, NULL, "xfs");
	struct raw_fh f, d, e;
	fattr3 was_d, was_e;
	struct answer a;

	assert_int_equal(mkdir(site_path(s, "d"), 0755), 0);
	assert_int_equal(mkdir(site_path(s, "e"), 0755), 0);
	d = site_lookup(s, "d");
	e = site_lookup(s, "e");
	raw_create(s->r, &d, "f", 0600, &f);
	was_d = ask_attr(s->r, &d);
	was_e = ask_attr(s->r, &e);
	assert_int_equal(ask(s->r, ask_rename(&d, "f", &e, "g"), &a), NFS3_OK);
	assert_true(same_wcc(&a.wcc.before, &was_d));
	assert_true(same_wcc(&a.wcc_to.before, &was_e));
	expect_now(s, &a.wcc.after, &d);
	expect_now(s, &a.wcc_to.after, &e);
	site_free(s);
}

static int
run(const char *name)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_at_a_time),
		cmocka_unit_test(test_rename_across),
	};

	engine = name;
	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int
main(void)
{
	return run("uring") + run("threads");
}
