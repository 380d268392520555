/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of metadata are durable before their reply where the export is
 * `sync`: a copy of the device's bytes, taken when the reply is there and
 * mounted apart, shows each of them. It takes no flush of a file's data to be
 * so, concurrent changes share what it takes, and `async` exports do without.
 */
#include "site.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BIG_MIB 256u

static const char *engine = "uring";

/* A crash now
 * ---------------------------------------------------------------------
 */

/* What stands on the device is copied and mounted, as after a crash; sh runs
 * there. Its exit status. */
static int
after_crash(const struct site *s, const char *fs, const char *sh)
{
	const char *options = strcmp(fs, "xfs") == 0 ? "nouuid" : "rw";
	const char *dir = s->h->dir;

	return harness_sh(
		"cd %s && cp --sparse=always image crash && mkdir -p crashed "
		"&& "
		"loop=$(losetup -b 4096 --show -f crash) && "
		"mount -o %s $loop crashed && { (cd crashed && %s); rc=$?; "
		"umount crashed; losetup -d $loop; rm crash; exit $rc; }",
		dir, options, sh);
}

static void
expect_crash(const struct site *s, const char *fs, const char *sh)
{
	if (after_crash(s, fs, sh) != 0)
		fail_msg("%s: after a crash this is not so: %s", fs, sh);
}

/* On ext4 no commit by the clock may lend a hand. (XFS's comes after 30 s.) */
static struct site *
site_slow(const char *fs, const char *options)
{
	struct site *s = site_prepare(engine, options, fs);

	if (strcmp(fs, "ext4") == 0)
		assert_int_equal(harness_sh("mount -o remount,commit=3000 %s",
					    s->h->export),
				 0);
	site_start(s);
	return s;
}

/* A local change that nobody has synced is not there after a crash: else these
 * tests could not tell. It may get there by chance, but not each time. */
static void
check_method(struct site *s, const char *fs)
{
	static unsigned serial;
	unsigned i, lost = 0;
	char name[32], sh[64];

	for (i = 0; i < 5 && lost == 0; i++) {
		(void)snprintf(name, sizeof(name), "local%u", ++serial);
		(void)snprintf(sh, sizeof(sh), "test ! -e %s", name);
		assert_int_equal(mkdir(site_path(s, name), 0755), 0);
		lost += after_crash(s, fs, sh) == 0;
	}
	assert_int_not_equal(lost, 0);
}

/* The call, its reply, a crash: sh is true there. And the device was told to
 * flush. */
static void
change(struct site *s, const char *fs, struct question q, const char *sh)
{
	uint64_t flushes = harness_device_stat(s->h).flushes;

	assert_int_equal(ask(s->r, q, NULL), NFS3_OK);
	assert_true(harness_device_stat(s->h).flushes > flushes);
	expect_crash(s, fs, sh);
}

static void
durable(const char *fs)
{
	struct site *s = site_slow(fs, NULL);
	struct raw_fh root = s->root, d, f;

	check_method(s, fs);
	change(s, fs, ask_mkdir(&root, "d", ask_mode(0750)),
	       "test -d d -a $(stat -c %a d) = 750");
	d = site_lookup(s, "d");
	change(s, fs, ask_create(&d, "f", GUARDED, ask_mode(0640)),
	       "test -f d/f -a $(stat -c %a d/f) = 640");
	assert_int_equal(raw_lookup(s->r, &d, "f", &f), NFS3_OK);
	change(s, fs, ask_setattr(&f, ask_mode(0604), NULL),
	       "test $(stat -c %a d/f) = 604");
	change(s, fs, ask_setattr(&f, ask_owner(12, 34), NULL),
	       "test $(stat -c %u:%g d/f) = 12:34");
	change(s, fs, ask_setattr(&f, ask_size(123456), NULL),
	       "test $(stat -c %s d/f) = 123456");
	change(s, fs, ask_link(&f, &root, "hard"),
	       "test hard -ef d/f -a $(stat -c %h hard) = 2");
	change(s, fs, ask_rename(&d, "f", &d, "g"), "test -f d/g -a ! -e d/f");
	change(s, fs, ask_rename(&d, "g", &root, "h"), "test -f h -a ! -e d/g");
	change(s, fs, ask_symlink(&root, "l", "to/somewhere"),
	       "test \"$(readlink l)\" = to/somewhere");
	change(s, fs, ask_mknod(&root, "p", NF3FIFO, ask_mode(0600), 0, 0),
	       "test -p p");
	change(s, fs, ask_create(&root, "h", UNCHECKED, ask_size(0)),
	       "test $(stat -c %s h) = 0");
	change(s, fs, ask_setattr(&d, ask_mode(0700), NULL),
	       "test $(stat -c %a d) = 700");
	change(s, fs, ask_remove(&root, "hard"), "test ! -e hard");
	change(s, fs, ask_rmdir(&root, "d"), "test ! -e d");
	change(s, fs, ask_remove(&root, "l"), "test ! -L l");
	check_method(s, fs);
	site_free(s);
}

static void
test_durable_xfs(void **state)
{
	durable("xfs");
}

static void
test_durable_ext4(void **state)
{
	durable("ext4");
}

/* No one log for all of it: each object for itself. */
static void
test_durable_btrfs(void **state)
{
	struct site *s = site_slow("btrfs", NULL);
	struct raw_fh root = s->root, d, f;
	struct answer a;

	change(s, "btrfs", ask_mkdir(&root, "d", ask_mode(0750)),
	       "test $(stat -c %a d) = 750");
	d = site_lookup(s, "d");
	assert_int_equal(
		ask(s->r, ask_create(&d, "f", GUARDED, ask_mode(0640)), &a),
		NFS3_OK);
	f = a.fh;
	expect_crash(s, "btrfs", "test $(stat -c %a d/f) = 640");
	change(s, "btrfs", ask_setattr(&f, ask_mode(0604), NULL),
	       "test $(stat -c %a d/f) = 604");
	change(s, "btrfs", ask_rename(&d, "f", &root, "g"),
	       "test $(stat -c %a g) = 604 -a ! -e d/f");
	change(s, "btrfs", ask_symlink(&root, "l", "to"),
	       "test \"$(readlink l)\" = to");
	change(s, "btrfs", ask_remove(&root, "g"), "test ! -e g");
	change(s, "btrfs", ask_rmdir(&root, "d"), "test ! -e d");
	site_free(s);
}

/* A verifier that did not outlive a crash would make a retry fail: so it is
 * durable whatever the export says. */
static void
exclusive(const char *fs, const char *options)
{
	struct site *s = site_slow(fs, options);
	static const uint8_t verf[8] = { 0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4 };
	const char *dir = s->h->dir;
	struct raw_fh first;
	struct answer a;

	assert_int_equal(ask(s->r, ask_exclusive(&s->root, "x", verf), &a),
			 NFS3_OK);
	first = a.fh;
	/* A crash, and the server anew on what was on the device by then. */
	assert_int_equal(
		harness_sh("cp --sparse=always %s/image %s/copy", dir, dir), 0);
	raw_close(s->r);
	harness_kill(s->h);
	harness_exchange(s->h, "copy");
	assert_int_equal(access(site_path(s, "x"), F_OK), 0);
	site_start(s);
	assert_int_equal(ask(s->r, ask_exclusive(&s->root, "x", verf), &a),
			 NFS3_OK);
	/* It is that one, and not another by its name. */
	assert_memory_equal(a.fh.data, first.data, first.bytes);
	assert_int_equal(
		ask(s->r,
		    ask_exclusive(&s->root, "x", (const uint8_t *)"another!"),
		    NULL),
		NFS3ERR_EXIST);
	site_free(s);
}

static void
test_exclusive(void **state)
{
	exclusive("xfs", NULL);
	exclusive("xfs", "rw,async,no_root_squash,insecure");
	exclusive("ext4", "rw,async,no_root_squash,insecure");
}

/* What it costs
 * -------------------------------------------------------------------
 */

static void
write_big(struct site *s)
{
	static uint8_t mib[1u << 20];
	int fd = open(site_path(s, "big"), O_WRONLY | O_CREAT, 0644);
	unsigned i;

	assert_true(fd >= 0);
	memset(mib, 0x5a, sizeof(mib));
	for (i = 0; i < BIG_MIB; i++)
		assert_int_equal(write(fd, mib, sizeof(mib)), sizeof(mib));
	close(fd);
}

/* A chmod of a file whose data lies unwritten in the page cache writes the log
 * and not the data. */
static void
big(const char *fs)
{
	struct site *s = site_slow(fs, NULL);
	uint64_t begun = harness_device_stat(s->h).write_4k, before, after;
	uint64_t dirty = (uint64_t)BIG_MIB * 256;
	struct raw_fh fh;

	write_big(s);
	fh = site_lookup(s, "big");
	before = harness_device_stat(s->h).write_4k;
	if (before - begun > dirty / 2) {
		print_message("skip: the kernel writes back too soon here\n");
		site_free(s);
		skip();
	}
	dirty -= before - begun;
	assert_int_equal(
		ask(s->r, ask_setattr(&fh, ask_mode(0600), NULL), NULL),
		NFS3_OK);
	assert_int_equal(ask(s->r, ask_link(&fh, &s->root, "hard"), NULL),
			 NFS3_OK);
	assert_int_equal(
		ask(s->r, ask_rename(&s->root, "hard", &s->root, "x"), NULL),
		NFS3_OK);
	after = harness_device_stat(s->h).write_4k;
	if (after - before > dirty / 4)
		fail_msg("%s: %llu pages of %llu were written for a chmod", fs,
			 (unsigned long long)(after - before),
			 (unsigned long long)dirty);
	expect_crash(s, fs, "test $(stat -c %a x) = 600 -a x -ef big");
	site_free(s);
}

static void
test_big(void **state)
{
	big("xfs");
	big("ext4");
}

/* Many at once, in flight on four connections. */
static void
send_many(struct site *s, unsigned n)
{
	struct raw *r[4];
	struct answer a;
	char name[32];
	unsigned i;

	for (i = 0; i < 4; i++) {
		r[i] = raw_connect(s->h->port);
		r[i]->xid = (i + 1) << 20;
	}
	for (i = 0; i < n; i++) {
		struct question q;

		(void)snprintf(name, sizeof(name), "many%u", i);
		q = ask_create(&s->root, name, GUARDED, ask_mode(0644));
		(void)ask_send(r[i % 4], &q);
	}
	for (i = 0; i < n; i++) {
		assert_true(raw_receive(r[i % 4]));
		ask_take(r[i % 4], NFS3_CREATE, &a);
		assert_int_equal(a.status, NFS3_OK);
	}
	for (i = 0; i < 4; i++)
		raw_close(r[i]);
}

static void
shared(const char *fs)
{
	struct site *s = site_slow(fs, NULL);
	uint64_t requests;

	send_many(s, 200);
	expect_crash(s, fs, "test $(ls -d many* | wc -l) = 200");
	requests = harness_stat(s->h, "meta_sync_requests");
	assert_true(requests >= 200);
	assert_in_range(harness_stat(s->h, "meta_syncs"), 1, requests / 2);
	site_free(s);
}

static void
test_shared(void **state)
{
	shared("xfs");
	shared("ext4");
}

/* `async`: no change waits for the device. What COMMIT says is true all the
 * same. */
static void
test_async(void **state)
{
	struct site *s = site_slow("xfs", "rw,async,no_root_squash,insecure");
	uint64_t flushes = harness_device_stat(s->h).flushes;
	struct raw_fh fh;
	struct answer a;

	send_many(s, 100);
	assert_int_equal(harness_stat(s->h, "meta_syncs"), 0);
	assert_int_equal(harness_device_stat(s->h).flushes, flushes);
	fh = site_lookup(s, "many7");
	assert_int_equal(ask(s->r, ask_write(&fh, 0, "text", 4, FILE_SYNC), &a),
			 NFS3_OK);
	assert_int_equal(a.u.write.committed, FILE_SYNC);
	expect_crash(s, "xfs", "test \"$(cat many7)\" = text");
	site_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_durable_xfs),
		cmocka_unit_test(test_durable_ext4),
		cmocka_unit_test(test_durable_btrfs),
		cmocka_unit_test(test_exclusive),
		cmocka_unit_test(test_big),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_async),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
