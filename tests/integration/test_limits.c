/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file system over the wire: what FSINFO, FSSTAT and PATHCONF say of it is
 * true, its fsid is the export's, and full, over quota or read-only it is said
 * to be just that.
 */
#include "site.h"

#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

static const char *engine = "uring";

static void
set(struct site *s, const struct raw_fh *fh, const sattr3 *a, int status)
{
	site_expect(s, ask_setattr(fh, a, NULL), status);
}

static void
check_fsinfo(struct site *s, const struct raw_fh *fh, uint64_t size_max)
{
	struct answer a;

	assert_int_equal(ask(s->r, ask_fsinfo(fh), &a), NFS3_OK);
	assert_true(a.attr.attributes_follow);
	assert_true(a.u.fsinfo.rtmax >= 4u << 20);
	assert_true(a.u.fsinfo.wtmax >= 4u << 20);
	assert_int_equal(a.u.fsinfo.wtpref, 1u << 20);
	assert_int_equal(a.u.fsinfo.rtpref, 1u << 20);
	assert_int_equal(a.u.fsinfo.wtmult % 4096, 0);
	assert_true(a.u.fsinfo.dtpref >= 4096);
	assert_int_equal(a.u.fsinfo.maxfilesize, size_max);
	assert_int_equal(a.u.fsinfo.time_delta.seconds, 0);
	assert_int_equal(a.u.fsinfo.time_delta.nseconds, 1);
	assert_int_equal(a.u.fsinfo.properties, FSF3_LINK | FSF3_SYMLINK |
							FSF3_HOMOGENEOUS |
							FSF3_CANSETTIME);
}

/* As large as it is said to be, and not a byte larger. */
static void
check_size_max(struct site *s, uint64_t size_max)
{
	struct raw_fh fh;

	raw_create(s->r, &s->root, "huge", 0644, &fh);
	set(s, &fh, ask_size(size_max), NFS3_OK);
	assert_int_equal(ask_attr(s->r, &fh).size, size_max);
	set(s, &fh, ask_size(size_max + 1), NFS3ERR_FBIG);
	assert_int_equal(ask_attr(s->r, &fh).size, size_max);
	site_expect(s, ask_remove(&s->root, "huge"), NFS3_OK);
}

static void
check_fsstat(struct site *s)
{
	struct statvfs v;
	struct answer a;

	assert_int_equal(ask(s->r, ask_fsstat(&s->root), &a), NFS3_OK);
	assert_int_equal(statvfs(s->h->export, &v), 0);
	assert_true(a.attr.attributes_follow);
	assert_int_equal(a.u.fsstat.tbytes, v.f_blocks * v.f_frsize);
	/* Logs and delayed allocation move it meanwhile. */
	assert_in_range(a.u.fsstat.fbytes, v.f_bfree * v.f_frsize - (8u << 20),
			v.f_bfree * v.f_frsize + (8u << 20));
	assert_in_range(a.u.fsstat.abytes, v.f_bavail * v.f_frsize - (8u << 20),
			v.f_bavail * v.f_frsize + (8u << 20));
	assert_true(a.u.fsstat.tfiles <= v.f_files + 1000000);
	assert_true(a.u.fsstat.ffiles <= a.u.fsstat.tfiles);
}

static void
check_pathconf(struct site *s, uint32_t linkmax)
{
	struct answer a;

	assert_int_equal(ask(s->r, ask_pathconf(&s->root), &a), NFS3_OK);
	assert_true(a.attr.attributes_follow);
	assert_int_equal(a.u.pathconf.linkmax, linkmax);
	assert_int_equal(a.u.pathconf.name_max, 255);
	assert_true(a.u.pathconf.no_trunc);
	assert_true(a.u.pathconf.chown_restricted);
	assert_false(a.u.pathconf.case_insensitive);
	assert_true(a.u.pathconf.case_preserving);
}

static void
file_system(const char *fs, uint64_t size_max, uint32_t linkmax)
{
	struct site *s = site_new(engine, NULL, fs);
	struct raw_fh fh;

	raw_create(s->r, &s->root, "f", 0644, &fh);
	check_fsinfo(s, &s->root, size_max);
	check_fsinfo(s, &fh, size_max);
	check_size_max(s, size_max);
	check_fsstat(s);
	check_pathconf(s, linkmax);
	site_free(s);
}

static void
test_file_system(void **state)
{
	file_system("xfs", INT64_MAX, INT32_MAX);
	file_system("ext4", 0xffffffffull * 4096, 65000);
	file_system("btrfs", INT64_MAX, 65535);
}

/* The same number for all of an export, another for another. */
static void
test_fsid(void **state)
{
	struct site *s = site_prepare(engine,
				      "rw,no_root_squash,insecure,"
				      "fsid=77",
				      NULL);
	struct raw_fh fh, second;
	char line[500], dir[400];
	struct answer a;

	(void)snprintf(dir, sizeof(dir), "%s/second", s->h->dir);
	(void)snprintf(line, sizeof(line), "%s *(rw,no_root_squash,insecure)",
		       dir);
	assert_int_equal(mkdir(dir, 0777), 0);
	harness_arg(s->h, "--export");
	harness_arg(s->h, line);
	site_start(s);
	assert_int_equal(raw_mount(s->r, dir, &second), 0);
	assert_int_equal(ask(s->r,
			     ask_create(&s->root, "f", GUARDED, ask_mode(0644)),
			     &a),
			 NFS3_OK);
	fh = a.fh;
	assert_int_equal(ask_attr(s->r, &fh).fsid,
			 ask_attr(s->r, &s->root).fsid);
	assert_int_equal(a.attr.post_op_attr_u.attributes.fsid,
			 ask_attr(s->r, &s->root).fsid);
	assert_int_not_equal(ask_attr(s->r, &second).fsid,
			     ask_attr(s->r, &s->root).fsid);
	site_free(s);
}

/* Full: each call says so, and what was there stays. */
static void
test_full(void **state)
{
	struct site *s =
		site_prepare(engine, "rw,no_root_squash,insecure", "ext4");
	struct raw_fh fh;
	char name[16];
	unsigned i;
	int status;

	site_mkfs(s, "mkfs.ext4 -q -F -N 64");
	site_start(s);
	raw_create(s->r, &s->root, "f", 0644, &fh);
	for (i = 0;; i++) {
		(void)snprintf(name, sizeof(name), "n%u", i);
		status =
			ask(s->r,
			    ask_create(&s->root, name, GUARDED, ask_mode(0644)),
			    NULL);
		if (status != NFS3_OK)
			break;
	}
	assert_int_equal(status, NFS3ERR_NOSPC);
	assert_true(i > 10);
	site_expect(s, ask_mkdir(&s->root, "d", ask_mode(0755)), NFS3ERR_NOSPC);
	site_expect(s, ask_symlink(&s->root, "l", "x"), NFS3ERR_NOSPC);
	site_expect(s, ask_mknod(&s->root, "p", NF3FIFO, ask_mode(0644), 0, 0),
		    NFS3ERR_NOSPC);
	site_expect(s,
		    ask_exclusive(&s->root, "x", (const uint8_t *)"verifier"),
		    NFS3ERR_NOSPC);
	site_expect(s, ask_remove(&s->root, "n0"), NFS3_OK);
	site_expect(s,
		    ask_exclusive(&s->root, "x", (const uint8_t *)"verifier"),
		    NFS3_OK);
	site_free(s);
}

/* What the export may take up is used up. (Of file systems' quotas btrfs's is
 * the one that every kernel has that has the file system.) */
static void
test_quota(void **state)
{
	struct site *s = site_prepare(engine, NULL, "btrfs");
	static uint8_t data[300000];
	const char *dir = s->h->export;
	struct raw_fh fh;
	struct answer a;
	char name[16];
	unsigned i;
	int status;

	assert_int_equal(harness_sh("btrfs quota enable %s && "
				    "btrfs qgroup limit 200K %s",
				    dir, dir),
			 0);
	site_start(s);
	raw_create(s->r, &s->root, "f", 0644, &fh);
	for (i = 0;; i++) {
		(void)snprintf(name, sizeof(name), "n%u", i);
		status = ask(s->r, ask_mkdir(&s->root, name, ask_mode(0755)),
			     NULL);
		if (status != NFS3_OK)
			break;
	}
	assert_int_equal(status, NFS3ERR_DQUOT);
	site_expect(s, ask_symlink(&s->root, "l", "x"), NFS3ERR_DQUOT);
	/* Its first bytes may still have found room. */
	status =
		ask(s->r, ask_write(&fh, 0, data, sizeof(data), FILE_SYNC), &a);
	assert_false(status == NFS3_OK && a.u.write.count == sizeof(data));
	site_expect(s, ask_write(&fh, 1u << 20, data, sizeof(data), FILE_SYNC),
		    NFS3ERR_DQUOT);
	assert_int_equal(harness_sh("btrfs qgroup limit none %s", dir), 0);
	site_expect(s, ask_mkdir(&s->root, name, ask_mode(0755)), NFS3_OK);
	site_expect(s, ask_write(&fh, 0, data, sizeof(data), FILE_SYNC),
		    NFS3_OK);
	site_free(s);
}

static void
test_read_only(void **state)
{
	struct site *s =
		site_prepare(engine, "ro,no_root_squash,insecure", NULL);
	struct raw_fh fh, root;
	unsigned i;

	site_file(s, "f", 0666, 0, 0, "text");
	assert_int_equal(mkdir(site_path(s, "d"), 0777), 0);
	site_start(s);
	fh = site_lookup(s, "f");
	root = s->root;
	const struct question changes[] = {
		ask_setattr(&fh, ask_mode(0600), NULL),
		ask_setattr(&fh, ask_size(0), NULL),
		ask_setattr(&root, ask_owner(1, 1), NULL),
		ask_write(&fh, 0, "x", 1, UNSTABLE),
		ask_write(&fh, 0, "x", 1, FILE_SYNC),
		ask_commit(&fh),
		ask_create(&root, "x", UNCHECKED, ask_mode(0600)),
		ask_create(&root, "f", UNCHECKED, ask_size(0)),
		ask_exclusive(&root, "x", (const uint8_t *)"verifier"),
		ask_mkdir(&root, "x", ask_mode(0700)),
		ask_symlink(&root, "x", "y"),
		ask_mknod(&root, "x", NF3FIFO, ask_mode(0600), 0, 0),
		ask_remove(&root, "f"),
		ask_rmdir(&root, "d"),
		ask_rename(&root, "f", &root, "g"),
		ask_link(&fh, &root, "g"),
	};
	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		site_expect(s, changes[i], NFS3ERR_ROFS);
	site_expect(s, ask_read(&fh, 0, 4), NFS3_OK);
	site_expect(s, ask_readdir(&root, 0, 4096), NFS3_OK);
	assert_int_equal(harness_sh("test \"$(cd %s; echo *)$(cat %s/f)\" = "
				    "'d ftext'",
				    s->h->export, s->h->export),
			 0);
	site_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file_system),
		cmocka_unit_test(test_fsid),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_quota),
		cmocka_unit_test(test_read_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
