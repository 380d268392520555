/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names over the wire: which are refused and with what, that every other byte
 * passes unchanged, and that "..", symbolic links and mount points lead nowhere
 * out of the export.
 */
#include "listing.h"
#include "site.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *engine = "uring";

/* Each procedure that takes a name, with this one, in dir. */
#define NAMED 12u
static void
named(struct question q[NAMED], struct site *s, const struct raw_fh *dir,
      const char *name, const struct raw_fh *file)
{
	q[0] = ask_lookup(dir, name);
	q[1] = ask_create(dir, name, UNCHECKED, ask_mode(0644));
	q[2] = ask_create(dir, name, GUARDED, ask_mode(0644));
	q[3] = ask_exclusive(dir, name, (const uint8_t *)"verifier");
	q[4] = ask_mkdir(dir, name, ask_mode(0755));
	q[5] = ask_symlink(dir, name, "x");
	q[6] = ask_mknod(dir, name, NF3FIFO, ask_mode(0644), 0, 0);
	q[7] = ask_remove(dir, name);
	q[8] = ask_rmdir(dir, name);
	q[9] = ask_rename(dir, name, &s->root, "moved");
	q[10] = ask_rename(&s->root, "file", dir, name);
	q[11] = ask_link(file, dir, name);
}

static void
expect_refused(struct site *s, const char *name, int status)
{
	struct raw_fh file = site_lookup(s, "file");
	struct question q[NAMED];
	unsigned i;

	named(q, s, &s->root, name, &file);
	for (i = 0; i < NAMED; i++)
		site_expect(s, q[i], status);
}

/* Refused -------------------------------------------------------------------
 */

static void
test_refused(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	char name[300000];

	site_file(s, "file", 0644, 0, 0, "x");
	assert_int_equal(mkdir(site_path(s, "dir"), 0755), 0);
	assert_int_equal(mkdir(site_path(s, "dir/sub"), 0755), 0);
	expect_refused(s, "", NFS3ERR_ACCES);
	expect_refused(s, "/", NFS3ERR_ACCES);
	expect_refused(s, "dir/sub", NFS3ERR_ACCES);
	expect_refused(s, "dir/", NFS3ERR_ACCES);
	expect_refused(s, "/dir", NFS3ERR_ACCES);
	expect_refused(s, "../file", NFS3ERR_ACCES);
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	expect_refused(s, name, NFS3ERR_NAMETOOLONG);
	name[256] = '\0';
	expect_refused(s, name, NFS3ERR_NAMETOOLONG);
	name[255] = '\0';
	site_expect(s, ask_lookup(&s->root, name), NFS3ERR_NOENT);
	site_expect(s, ask_create(&s->root, name, GUARDED, ask_mode(0644)),
		    NFS3_OK);
	site_expect(s, ask_lookup(&s->root, name), NFS3_OK);
	assert_int_equal(harness_sh("test $(ls %s | wc -l) = 3", s->h->export),
			 0);
	site_free(s);
}

/* The call of q, its name having an x where it goes out with a NUL. */
static int
ask_with_nul(struct site *s, const struct question *q, raw_zdr_fn *encode)
{
	struct answer a;
	uint32_t i, hits = 0;

	raw_build(s->r, 100003, 3, q->proc, encode, (void *)&q->u);
	for (i = 0; i + 5 <= s->r->out_bytes; i++) {
		if (memcmp(s->r->out + i, "na#me", 5) != 0)
			continue;
		s->r->out[i + 2] = '\0';
		hits++;
	}
	assert_int_equal(hits, 1);
	raw_send(s->r);
	assert_true(raw_receive(s->r));
	ask_take(s->r, q->proc, &a);
	return a.status;
}

static void
test_nul(void **state)
{
	static raw_zdr_fn *const encode[NAMED] = {
		(raw_zdr_fn *)zdr_LOOKUP3args, (raw_zdr_fn *)zdr_CREATE3args,
		(raw_zdr_fn *)zdr_CREATE3args, (raw_zdr_fn *)zdr_CREATE3args,
		(raw_zdr_fn *)zdr_MKDIR3args,  (raw_zdr_fn *)zdr_SYMLINK3args,
		(raw_zdr_fn *)zdr_MKNOD3args,  (raw_zdr_fn *)zdr_REMOVE3args,
		(raw_zdr_fn *)zdr_RMDIR3args,  (raw_zdr_fn *)zdr_RENAME3args,
		(raw_zdr_fn *)zdr_RENAME3args, (raw_zdr_fn *)zdr_LINK3args,
	};
	struct site *s = site_new(engine, NULL, NULL);
	struct question q[NAMED];
	struct raw_fh file;
	unsigned i;

	site_file(s, "file", 0644, 0, 0, "x");
	site_file(s, "na", 0644, 0, 0, "cut here");
	file = site_lookup(s, "file");
	named(q, s, &s->root, "na#me", &file);
	for (i = 0; i < NAMED; i++)
		assert_int_equal(ask_with_nul(s, &q[i], encode[i]),
				 NFS3ERR_ACCES);
	assert_int_equal(harness_sh("test \"$(ls %s | xargs)\" = 'file na'",
				    s->h->export),
			 0);
	site_free(s);
}

static void
test_dots(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	struct raw_fh dir, file, root = s->root;
	unsigned i;

	site_file(s, "file", 0644, 0, 0, "x");
	assert_int_equal(mkdir(site_path(s, "dir"), 0755), 0);
	assert_int_equal(mkdir(site_path(s, "dir/sub"), 0755), 0);
	dir = site_lookup(s, "dir");
	file = site_lookup(s, "file");
	for (i = 0; i < 2; i++) {
		const struct raw_fh *at = i == 0 ? &root : &dir;

		site_expect(s, ask_rmdir(at, "."), NFS3ERR_INVAL);
		site_expect(s, ask_rmdir(at, ".."), NFS3ERR_EXIST);
		site_expect(s, ask_remove(at, "."), NFS3ERR_ISDIR);
		site_expect(s, ask_remove(at, ".."), NFS3ERR_ISDIR);
		site_expect(s, ask_rename(at, ".", &root, "x"), NFS3ERR_INVAL);
		site_expect(s, ask_rename(at, "..", &root, "x"), NFS3ERR_INVAL);
		site_expect(s, ask_rename(&root, "file", at, "."),
			    NFS3ERR_INVAL);
		site_expect(s, ask_rename(&root, "file", at, ".."),
			    NFS3ERR_INVAL);
		site_expect(s, ask_link(&file, at, "."), NFS3ERR_INVAL);
		site_expect(s, ask_link(&file, at, ".."), NFS3ERR_INVAL);
		site_expect(s, ask_mkdir(at, "..", ask_mode(0755)),
			    NFS3ERR_EXIST);
		site_expect(s, ask_symlink(at, ".", "x"), NFS3ERR_EXIST);
	}
	assert_int_equal(harness_sh("test \"$(ls %s | xargs)\" = 'dir file'",
				    s->h->export),
			 0);
	site_free(s);
}

/* Never out ------------------------------------------------------------------
 */

static void
test_parent(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	struct raw_fh dir, sub, got, mounted;
	struct answer a;

	assert_int_equal(mkdir(site_path(s, "dir"), 0755), 0);
	assert_int_equal(mkdir(site_path(s, "dir/sub"), 0755), 0);
	dir = site_lookup(s, "dir");
	sub = site_lookup_in(s, &dir, "sub");
	got = site_lookup_in(s, &s->root, ".");
	site_expect_same(&got, &s->root);
	got = site_lookup_in(s, &dir, ".");
	site_expect_same(&got, &dir);
	got = site_lookup_in(s, &sub, "..");
	site_expect_same(&got, &dir);
	got = site_lookup_in(s, &dir, "..");
	site_expect_same(&got, &s->root);
	/* The root is its own parent, by LOOKUP and in both listings. */
	got = site_lookup_in(s, &s->root, "..");
	site_expect_same(&got, &s->root);
	assert_int_equal(ask(s->r, ask_lookup(&s->root, ".."), &a), NFS3_OK);
	assert_int_equal(a.attr.post_op_attr_u.attributes.fileid,
			 ask_attr(s->r, &s->root).fileid);
	/* Also for who has mounted further below: the export is one. */
	assert_int_equal(raw_mount(s->r, site_path(s, "dir/sub"), &mounted), 0);
	site_expect_same(&mounted, &sub);
	got = site_lookup_in(s, &mounted, "..");
	site_expect_same(&got, &dir);
	site_free(s);
}

static uint64_t
listed_number(struct site *s, const struct raw_fh *dir, const char *name)
{
	struct listing l;
	struct listed e;

	site_expect(s, ask_readdir(dir, 0, 4096), NFS3_OK);
	listing_begin(&l, s->r, NFS3_READDIR);
	while (listing_next(&l, &e))
		if (strcmp(e.name, name) == 0)
			return e.fileid;
	fail_msg("%s is not listed", name);
	return 0;
}

static void
test_parent_listed(void **state)
{
	struct site *s = site_new(engine, NULL, "xfs");
	uint64_t root = ask_attr(s->r, &s->root).fileid;
	struct listing l;
	struct listed e;

	assert_int_equal(listed_number(s, &s->root, "."), root);
	assert_int_equal(listed_number(s, &s->root, ".."), root);
	site_expect(s, ask_readdirplus(&s->root, 0, 4096, 8192), NFS3_OK);
	listing_begin(&l, s->r, NFS3_READDIRPLUS);
	while (listing_next(&l, &e)) {
		assert_int_equal(e.fileid, root);
		if (e.has_fh)
			site_expect_same(&e.fh, &s->root);
	}
	assert_true(l.eof);
	site_free(s);
}

/* A directory that is moved out of the export locally, while a client holds it,
 * is still no way to what lies above. */
static void
test_moved_out(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	struct raw_fh dir, got;
	char out[400];

	assert_int_equal(mkdir(site_path(s, "dir"), 0755), 0);
	dir = site_lookup(s, "dir");
	(void)snprintf(out, sizeof(out), "%s/out", s->h->dir);
	assert_int_equal(rename(site_path(s, "dir"), out), 0);
	/* h->dir, which holds the server's own state. */
	assert_int_not_equal(raw_lookup(s->r, &dir, "..", &got), NFS3_OK);
	site_free(s);
}

static void
test_symlinks(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	struct raw_fh file, link, root = s->root;
	struct answer a;

	site_file(s, "file", 0644, 0, 0, "x");
	assert_int_equal(mkdir(site_path(s, "dir"), 0755), 0);
	assert_int_equal(symlink("dir", site_path(s, "in")), 0);
	assert_int_equal(symlink("/etc", site_path(s, "out")), 0);
	assert_int_equal(symlink("file", site_path(s, "link")), 0);
	/* Told as what it is, whatever it leads to. */
	assert_int_equal(ask(s->r, ask_lookup(&root, "out"), &a), NFS3_OK);
	assert_int_equal(a.attr.post_op_attr_u.attributes.type, NF3LNK);
	link = a.fh;
	site_expect(s, ask_lookup(&link, "passwd"), NFS3ERR_NOTDIR);
	site_expect(s, ask_create(&link, "x", GUARDED, ask_mode(0644)),
		    NFS3ERR_NOTDIR);
	site_expect(s, ask_readdir(&link, 0, 4096), NFS3ERR_NOTDIR);
	site_expect(s, ask_readdirplus(&link, 0, 4096, 8192), NFS3ERR_NOTDIR);
	site_expect(s, ask_rmdir(&root, "in"), NFS3ERR_NOTDIR);
	/* Attributes are the link's own: what it leads to stays as it was. */
	link = site_lookup(s, "link");
	file = site_lookup(s, "file");
	site_expect(s, ask_setattr(&link, ask_owner(77, 78), NULL), NFS3_OK);
	assert_int_equal(ask_attr(s->r, &link).uid, 77);
	assert_int_equal(ask_attr(s->r, &file).uid, 0);
	site_expect(s, ask_setattr(&link, ask_mode(0600), NULL), NFS3_OK);
	assert_int_equal(ask_attr(s->r, &file).mode, 0644);
	site_expect(s, ask_setattr(&link, ask_size(0), NULL), NFS3ERR_INVAL);
	assert_int_equal(ask_attr(s->r, &file).size, 1);
	site_expect(s, ask_link(&link, &root, "link2"), NFS3_OK);
	assert_int_equal(ask_attr(s->r, &link).nlink, 2);
	site_expect(s, ask_rename(&root, "file", &root, "link2"), NFS3_OK);
	site_expect(s, ask_remove(&root, "link"), NFS3_OK);
	assert_int_equal(ask_attr(s->r, &file).size, 1);
	site_free(s);
}

/* What is mounted below an export does not show, nor does what it hides. */
static void
test_mount_point(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	struct raw_fh under, fh;

	assert_int_equal(mkdir(site_path(s, "on"), 0755), 0);
	site_file(s, "on/hidden", 0644, 0, 0, "x");
	under = site_lookup(s, "on");
	if (mount("none", site_path(s, "on"), "tmpfs", 0, "") != 0) {
		assert_int_equal(errno, EPERM);
		site_free(s);
		print_message("skip: no right to mount here\n");
		skip();
	}
	site_file(s, "on/inside", 0644, 0, 0, "x");
	/* The clone that is exported has none of it. */
	assert_int_equal(raw_lookup(s->r, &under, "inside", &fh),
			 NFS3ERR_NOENT);
	assert_int_equal(raw_lookup(s->r, &under, "hidden", &fh), NFS3_OK);
	fh = site_lookup(s, "on");
	site_expect_same(&fh, &under);
	assert_int_equal(umount(site_path(s, "on")), 0);
	site_free(s);
}

/* Bytes ----------------------------------------------------------------------
 */

/* Is this name there, locally, as these very bytes? */
static bool
is_listed(struct site *s, const char *name)
{
	DIR *d = opendir(s->h->export);
	struct dirent *e;
	bool found = false;

	assert_non_null(d);
	while ((e = readdir(d)) != NULL)
		found = found || strcmp(e->d_name, name) == 0;
	closedir(d);
	return found;
}

static void
check_name(struct site *s, const char *name)
{
	struct raw_fh fh, got;

	raw_create(s->r, &s->root, name, 0644, &fh);
	assert_true(is_listed(s, name));
	got = site_lookup(s, name);
	site_expect_same(&got, &fh);
	assert_int_equal(listed_number(s, &s->root, name),
			 ask_attr(s->r, &fh).fileid);
	site_expect(s, ask_rename(&s->root, name, &s->root, "other"), NFS3_OK);
	site_expect(s, ask_rename(&s->root, "other", &s->root, name), NFS3_OK);
	assert_true(is_listed(s, name));
	site_expect(s, ask_remove(&s->root, name), NFS3_OK);
	assert_false(is_listed(s, name));
}

static void
test_bytes(void **state)
{
	struct site *s =
		site_new(engine, "rw,async,no_root_squash,insecure", "xfs");
	char name[256];
	unsigned i, j;

	for (i = 1; i < 256; i++) {
		if (i == '/')
			continue;
		(void)snprintf(name, sizeof(name), "%c", (char)i);
		if (i != '.')
			check_name(s, name);
		(void)snprintf(name, sizeof(name), "a%c%cz", (char)i, (char)i);
		check_name(s, name);
	}
	for (i = 1, j = 0; i < 256; i++)
		if (i != '/')
			name[j++] = (char)i;
	name[j] = '\0';
	check_name(s, name);
	check_name(s, "...");
	check_name(s, "..a");
	check_name(s, "\xc3\xa9"); /* composed and not: two names */
	check_name(s, "e\xcc\x81");
	check_name(s, "\xed\xa0\x80\xff\xfe");
	check_name(s, " ");
	check_name(s, "*?[a]\\\n\t");
	site_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_nul),
		cmocka_unit_test(test_dots),
		cmocka_unit_test(test_parent),
		cmocka_unit_test(test_parent_listed),
		cmocka_unit_test(test_moved_out),
		cmocka_unit_test(test_symlinks),
		cmocka_unit_test(test_mount_point),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
