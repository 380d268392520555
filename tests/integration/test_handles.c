/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File handles over the wire: what they survive (renames, the server's end, a
 * new mount), what ends them (removal, a withdrawn export), and that no other
 * bytes are taken for one. A handle of a removed file never shows another file,
 * though its inode number is used again.
 */
#include "site.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *engine;

static void
expect_text(struct site *s, const struct raw_fh *fh, const char *text)
{
	READ3res res;

	assert_int_equal(raw_read(s->r, fh, 0, 100, &res), NFS3_OK);
	assert_int_equal(res.READ3res_u.resok.data.data_len, strlen(text));
	assert_memory_equal(res.READ3res_u.resok.data.data_val, text,
			    strlen(text));
}

/* What each procedure that takes a handle says to this one. */
static void
expect_everywhere(struct site *s, const struct raw_fh *fh, int status)
{
	const struct question all[] = {
		ask_getattr(fh),
		ask_setattr(fh, ask_mode(0600), NULL),
		ask_setattr(fh, ask_size(1), NULL),
		ask_lookup(fh, "x"),
		ask_access(fh, 63),
		ask_readlink(fh),
		ask_read(fh, 0, 100),
		ask_write(fh, 0, "x", 1, UNSTABLE),
		ask_write(fh, 0, "x", 1, FILE_SYNC),
		ask_create(fh, "x", UNCHECKED, ask_mode(0600)),
		ask_mkdir(fh, "x", ask_mode(0700)),
		ask_symlink(fh, "x", "y"),
		ask_mknod(fh, "x", NF3FIFO, ask_mode(0600), 0, 0),
		ask_remove(fh, "x"),
		ask_rmdir(fh, "x"),
		ask_rename(fh, "x", fh, "y"),
		ask_rename(&s->root, "kept", fh, "y"),
		ask_rename(fh, "x", &s->root, "y"),
		ask_link(fh, &s->root, "y"),
		ask_readdir(fh, 0, 4096),
		ask_readdirplus(fh, 0, 4096, 8192),
		ask_fsstat(fh),
		ask_fsinfo(fh),
		ask_pathconf(fh),
		ask_commit(fh),
	};
	unsigned i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (ask(s->r, all[i], NULL) != status)
			fail_msg("procedure %u (row %u): not %d", all[i].proc,
				 i, status);
}

/* Moves ----------------------------------------------------------------------
 */

static void
renames(const char *fs)
{
	struct site *s = site_new(engine, NULL, fs);
	struct raw_fh fh, dir, again;

	raw_create(s->r, &s->root, "f", 0644, &fh);
	site_file(s, "local", 0644, 0, 0, "x"); /* another inode */
	assert_int_equal(
		ask(s->r, ask_write(&fh, 0, "text", 4, FILE_SYNC), NULL),
		NFS3_OK);
	assert_int_equal(
		ask(s->r, ask_mkdir(&s->root, "d", ask_mode(0755)), NULL),
		NFS3_OK);
	dir = site_lookup(s, "d");
	assert_int_equal(
		ask(s->r, ask_rename(&s->root, "f", &s->root, "g"), NULL),
		NFS3_OK);
	expect_text(s, &fh, "text");
	assert_int_equal(ask(s->r, ask_rename(&s->root, "g", &dir, "h"), NULL),
			 NFS3_OK);
	expect_text(s, &fh, "text");
	assert_int_equal(rename(site_path(s, "d"), site_path(s, "e")), 0);
	expect_text(s, &fh, "text");
	assert_int_equal(raw_lookup(s->r, &dir, "h", &again), NFS3_OK);
	assert_int_equal(again.bytes, fh.bytes);
	assert_memory_equal(again.data, fh.data, fh.bytes);
	site_restart(s);
	expect_text(s, &fh, "text");
	assert_int_equal(raw_lookup(s->r, &dir, "h", &again), NFS3_OK);
	assert_memory_equal(again.data, fh.data, fh.bytes);
	raw_close(s->r);
	harness_kill(s->h);
	site_start(s);
	assert_memory_equal(site_lookup(s, "e").data, dir.data, dir.bytes);
	expect_text(s, &fh, "text");
	/* A second name keeps it when the first goes. */
	assert_int_equal(ask(s->r, ask_link(&fh, &s->root, "two"), NULL),
			 NFS3_OK);
	assert_int_equal(ask(s->r, ask_remove(&dir, "h"), NULL), NFS3_OK);
	expect_text(s, &fh, "text");
	site_free(s);
}

static void
test_renames(void **state)
{
	renames(NULL);
}

static void
test_renames_xfs(void **state)
{
	renames("xfs");
}

static void
test_renames_ext4(void **state)
{
	renames("ext4");
}

static void
test_renames_btrfs(void **state)
{
	renames("btrfs");
}

/* Ends -----------------------------------------------------------------------
 */

/* A file that this server has just used, so that it may have it open. */
static struct raw_fh
warm_file(struct site *s, const char *name)
{
	struct raw_fh fh;
	WRITE3res w;
	READ3res res;

	raw_create(s->r, &s->root, name, 0666, &fh);
	assert_int_equal(raw_write(s->r, &fh, 0, "old", 3, UNSTABLE, &w),
			 NFS3_OK);
	assert_int_equal(raw_read(s->r, &fh, 0, 3, &res), NFS3_OK);
	return fh;
}

static void
removed(const char *fs)
{
	struct site *s = site_new(engine, NULL, fs);
	struct raw_fh fh[5], dir;

	site_file(s, "kept", 0644, 0, 0, "kept");
	fh[0] = warm_file(s, "remove");
	fh[1] = warm_file(s, "rename");
	fh[2] = warm_file(s, "unlink");
	fh[3] = warm_file(s, "replace");
	raw_create(s->r, &s->root, "cold", 0666, &fh[4]);
	assert_int_equal(
		ask(s->r, ask_mkdir(&s->root, "d", ask_mode(0755)), NULL),
		NFS3_OK);
	dir = site_lookup(s, "d");
	assert_int_equal(ask(s->r, ask_remove(&s->root, "remove"), NULL),
			 NFS3_OK);
	warm_file(s, "over");
	assert_int_equal(ask(s->r,
			     ask_rename(&s->root, "over", &s->root, "rename"),
			     NULL),
			 NFS3_OK);
	assert_int_equal(unlink(site_path(s, "unlink")), 0);
	site_file(s, "over", 0644, 0, 0, "other");
	assert_int_equal(rename(site_path(s, "over"), site_path(s, "replace")),
			 0);
	assert_int_equal(unlink(site_path(s, "cold")), 0);
	expect_everywhere(s, &fh[0], NFS3ERR_STALE);
	expect_everywhere(s, &fh[1], NFS3ERR_STALE);
	expect_everywhere(s, &fh[2], NFS3ERR_STALE);
	expect_everywhere(s, &fh[3], NFS3ERR_STALE);
	expect_everywhere(s, &fh[4], NFS3ERR_STALE);
	assert_int_equal(ask(s->r, ask_rmdir(&s->root, "d"), NULL), NFS3_OK);
	expect_everywhere(s, &dir, NFS3ERR_STALE);
	site_restart(s);
	expect_everywhere(s, &fh[0], NFS3ERR_STALE);
	expect_everywhere(s, &dir, NFS3ERR_STALE);
	site_free(s);
}

static void
test_removed(void **state)
{
	removed(NULL);
}

static void
test_removed_xfs(void **state)
{
	removed("xfs");
}

static void
test_removed_ext4(void **state)
{
	removed("ext4");
}

/* Files come and go until inode numbers come again. */
#define OLD 32u
#define NEW 400u

static unsigned
reuse_round(struct site *s, const struct raw_fh *old, const uint64_t *number)
{
	struct raw_fh fh;
	unsigned i, j, again = 0;
	uint64_t fileid;
	char name[32];

	for (i = 0; i < NEW; i++) {
		(void)snprintf(name, sizeof(name), "new%u", i);
		fh = warm_file(s, name);
		fileid = ask_attr(s->r, &fh).fileid;
		for (j = 0; j < OLD; j++)
			again += fileid == number[j];
	}
	for (j = 0; j < OLD; j++)
		expect_everywhere(s, &old[j], NFS3ERR_STALE);
	return again;
}

static void
reused(const char *fs, bool local)
{
	struct site *s =
		site_new(engine, "rw,async,no_root_squash,insecure", fs);
	struct raw_fh old[OLD];
	uint64_t number[OLD];
	char name[32];
	unsigned i;

	site_file(s, "kept", 0644, 0, 0, "kept");
	for (i = 0; i < OLD; i++) {
		(void)snprintf(name, sizeof(name), "old%u", i);
		old[i] = warm_file(s, name);
		number[i] = ask_attr(s->r, &old[i]).fileid;
	}
	for (i = 0; i < OLD; i++) {
		(void)snprintf(name, sizeof(name), "old%u", i);
		if (local)
			assert_int_equal(unlink(site_path(s, name)), 0);
		else
			assert_int_equal(
				ask(s->r, ask_remove(&s->root, name), NULL),
				NFS3_OK);
	}
	/* What was removed behind the server's back it may hold open, and then
	 * its number is not free: here it learns of it. */
	for (i = 0; i < OLD; i++)
		assert_int_equal(ask(s->r, ask_read(&old[i], 0, 1), NULL),
				 NFS3ERR_STALE);
	assert_in_range(reuse_round(s, old, number), 1, OLD);
	site_restart(s);
	for (i = 0; i < OLD; i++)
		expect_everywhere(s, &old[i], NFS3ERR_STALE);
	site_free(s);
}

static void
test_reused_xfs(void **state)
{
	reused("xfs", false);
	reused("xfs", true);
}

static void
test_reused_ext4(void **state)
{
	reused("ext4", false);
	reused("ext4", true);
}

/* Bytes that are no handle ----------------------------------------------------
 */

static void
check_flips(struct site *s, const struct raw_fh *fh)
{
	struct raw_fh bad;
	unsigned bit;

	for (bit = 0; bit < 8 * fh->bytes; bit++) {
		bad = *fh;
		bad.data[bit / 8] = (char)(bad.data[bit / 8] ^ 1 << bit % 8);
		if (ask(s->r, ask_getattr(&bad), NULL) != NFS3ERR_BADHANDLE)
			fail_msg("bit %u: not BADHANDLE", bit);
		/* By the other way, too. */
		if (ask(s->r, ask_write(&bad, 0, "x", 1, 0), NULL) !=
		    NFS3ERR_BADHANDLE)
			fail_msg("WRITE, bit %u: not BADHANDLE", bit);
	}
}

static void
test_forged(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	struct raw_fh fh = warm_file(s, "f"), bad;
	uint32_t n;

	site_file(s, "kept", 0644, 0, 0, "kept");
	check_flips(s, &fh);
	check_flips(s, &s->root);
	for (n = 0; n <= sizeof(bad.data); n++) {
		bad = fh;
		bad.bytes = n;
		memset(bad.data + fh.bytes, 0, sizeof(bad.data) - fh.bytes);
		if (n != fh.bytes)
			assert_int_equal(ask(s->r, ask_getattr(&bad), NULL),
					 NFS3ERR_BADHANDLE);
	}
	bad = fh;
	bad.data[20] = (char)~bad.data[20];
	expect_everywhere(s, &bad, NFS3ERR_BADHANDLE);
	expect_text(s, &fh, "old");
	site_free(s);
}

/* Over 64 bytes it is no nfs_fh3. */
static void
test_too_long(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	const uint8_t args[4 + 68] = { 0, 0, 0, 68 };

	raw_build(s->r, 100003, 3, NFS3_GETATTR, NULL, NULL);
	raw_append(s->r, args, sizeof(args));
	raw_send(s->r);
	assert_true(raw_receive(s->r));
	assert_int_equal(s->r->accept_stat, 4); /* GARBAGE_ARGS */
	site_free(s);
}

/* Another key makes other handles: none of the old ones is taken. */
static void
test_other_key(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	struct raw_fh fh = warm_file(s, "f");
	char key[400];

	site_file(s, "kept", 0644, 0, 0, "kept");
	raw_close(s->r);
	harness_stop(s->h);
	(void)snprintf(key, sizeof(key), "%s/state/fh.key", s->h->dir);
	assert_int_equal(unlink(key), 0);
	site_start(s);
	expect_everywhere(s, &fh, NFS3ERR_BADHANDLE);
	site_free(s);
}

/* Exports that come and go ----------------------------------------------------
 */

struct two {
	struct site *s;
	char table[400], dir[400];
	unsigned reloads;
	struct raw_fh root, file;
};

static void
write_table(const struct two *t, const char *client)
{
	FILE *f = fopen(t->table, "we");

	assert_non_null(f);
	if (client != NULL)
		assert_true(fprintf(f, "%s %s\n", t->dir, client) > 0);
	assert_int_equal(fclose(f), 0);
}

static void
reload(struct two *t, const char *client)
{
	write_table(t, client);
	harness_signal(t->s->h, SIGHUP);
	t->reloads++;
	while (harness_sh("test $(grep -c ' reloaded$' %s/log) = %u",
			  t->s->h->dir, t->reloads) != 0)
		usleep(1000);
}

static void
two_begin(struct two *t)
{
	struct site *s = site_prepare(engine, NULL, NULL);

	memset(t, 0, sizeof(*t));
	t->s = s;
	(void)snprintf(t->table, sizeof(t->table), "%s/exports", s->h->dir);
	(void)snprintf(t->dir, sizeof(t->dir), "%s/second", s->h->dir);
	assert_int_equal(mkdir(t->dir, 0777), 0);
	write_table(t, "*(rw,no_root_squash,insecure)");
	harness_arg(s->h, "--exports");
	harness_arg(s->h, t->table);
	site_start(s);
	site_file(s, "kept", 0644, 0, 0, "kept");
	assert_int_equal(raw_mount(s->r, t->dir, &t->root), 0);
	raw_create(s->r, &t->root, "f", 0644, &t->file);
	assert_int_equal(
		ask(s->r, ask_write(&t->file, 0, "text", 4, UNSTABLE), NULL),
		NFS3_OK);
}

static void
test_withdrawn(void **state)
{
	struct raw_fh first;
	struct two t;

	two_begin(&t);
	first = warm_file(t.s, "f");
	reload(&t, NULL);
	expect_everywhere(t.s, &t.file, NFS3ERR_STALE);
	expect_everywhere(t.s, &t.root, NFS3ERR_STALE);
	assert_int_equal(raw_mount(t.s->r, t.dir, &t.root), MNT3ERR_ACCES);
	expect_text(t.s, &first, "old");
	/* There again, it is the same. */
	reload(&t, "*(rw,no_root_squash,insecure)");
	expect_text(t.s, &t.file, "text");
	site_free(t.s);
}

/* Not this client's: as if it were not there. */
static void
test_not_this_client(void **state)
{
	struct two t;

	two_begin(&t);
	reload(&t, "192.0.2.7(rw,no_root_squash,insecure)");
	expect_everywhere(t.s, &t.file, NFS3ERR_STALE);
	reload(&t, "192.0.2.7(rw) 127.0.0.0/8(ro,no_root_squash,insecure)");
	expect_text(t.s, &t.file, "text");
	assert_int_equal(
		ask(t.s->r, ask_write(&t.file, 0, "x", 1, FILE_SYNC), NULL),
		NFS3ERR_ROFS);
	reload(&t, "*(rw,no_root_squash,insecure)");
	assert_int_equal(
		ask(t.s->r, ask_write(&t.file, 0, "x", 1, FILE_SYNC), NULL),
		NFS3_OK);
	site_free(t.s);
}

static int
run(const char *name)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_renames),
		cmocka_unit_test(test_renames_xfs),
		cmocka_unit_test(test_renames_ext4),
		cmocka_unit_test(test_renames_btrfs),
		cmocka_unit_test(test_removed),
		cmocka_unit_test(test_removed_xfs),
		cmocka_unit_test(test_removed_ext4),
		cmocka_unit_test(test_reused_xfs),
		cmocka_unit_test(test_reused_ext4),
		cmocka_unit_test(test_forged),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_other_key),
		cmocka_unit_test(test_withdrawn),
		cmocka_unit_test(test_not_this_client),
	};

	engine = name;
	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int
main(void)
{
	return run("uring") + run("threads");
}
