/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes things, over the wire: the three modes of CREATE (the verifier of
 * an EXCLUSIVE one in all its bits, over retries and restarts), MKDIR, SYMLINK,
 * MKNOD, and who owns what comes of them.
 */
#include "site.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define RANDOM_VERFS 60u

static const char *engine = "uring";

static struct raw_fh
made(struct site *s, struct question q)
{
	struct answer a;

	assert_int_equal(ask(s->r, q, &a), NFS3_OK);
	assert_true(a.has_fh);
	assert_true(a.attr.attributes_follow);
	return a.fh;
}

/* UNCHECKED and GUARDED -------------------------------------------------------
 */

static sattr3
all_attributes(void)
{
	sattr3 a;

	memset(&a, 0, sizeof(a));
	a.mode.set_it = 1;
	a.mode.set_mode3_u.mode = 0640;
	a.uid.set_it = 1;
	a.uid.set_uid3_u.uid = 1234;
	a.gid.set_it = 1;
	a.gid.set_gid3_u.gid = 2345;
	a.size.set_it = 1;
	a.size.set_size3_u.size = 70001;
	a.atime.set_it = SET_TO_CLIENT_TIME;
	a.atime.set_atime_u.atime.seconds = 1000000007;
	a.atime.set_atime_u.atime.nseconds = 123456789;
	a.mtime.set_it = SET_TO_CLIENT_TIME;
	a.mtime.set_mtime_u.mtime.seconds = 4000000000u; /* after 2038 */
	a.mtime.set_mtime_u.mtime.nseconds = 999999999;
	return a;
}

static void
check_all_attributes(const fattr3 *at, const sattr3 *want)
{
	assert_int_equal(at->mode, want->mode.set_mode3_u.mode);
	assert_int_equal(at->uid, want->uid.set_uid3_u.uid);
	assert_int_equal(at->gid, want->gid.set_gid3_u.gid);
	assert_true(ask_same_time(&at->atime, &want->atime.set_atime_u.atime));
	assert_true(ask_same_time(&at->mtime, &want->mtime.set_mtime_u.mtime));
}

static void
attributes(const char *fs)
{
	struct site *s = site_new(engine, NULL, fs);
	sattr3 want = all_attributes();
	struct answer a;
	struct raw_fh fh;
	fattr3 at;

	assert_int_equal(
		ask(s->r, ask_create(&s->root, "f", GUARDED, &want), &a),
		NFS3_OK);
	at = a.attr.post_op_attr_u.attributes;
	check_all_attributes(&at, &want);
	assert_int_equal(at.size, 70001);
	at = ask_attr(s->r, &a.fh);
	check_all_attributes(&at, &want);
	want.mode.set_mode3_u.mode = 06755; /* stays in spite of the owner */
	fh = made(s, ask_create(&s->root, "g", UNCHECKED, &want));
	at = ask_attr(s->r, &fh);
	check_all_attributes(&at, &want);
	want.mode.set_mode3_u.mode = 03775;
	fh = made(s, ask_mkdir(&s->root, "d", &want));
	at = ask_attr(s->r, &fh);
	check_all_attributes(&at, &want);
	/* Without a mode: the server's choice, and no more than that. */
	fh = made(s, ask_create(&s->root, "h", GUARDED, ask_nothing()));
	assert_int_equal(ask_attr(s->r, &fh).mode & ~0666u, 0);
	site_free(s);
}

static void
test_attributes(void **state)
{
	attributes(NULL);
	attributes("xfs");
	attributes("ext4");
}

static void
test_unchecked(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	struct raw_fh fh, same;
	sattr3 size = *ask_mode(0777);

	fh = made(s, ask_create(&s->root, "f", UNCHECKED, ask_mode(0600)));
	site_expect(s, ask_write(&fh, 0, "0123456789", 10, FILE_SYNC), NFS3_OK);
	/* There: nothing of it changes... */
	same = made(s, ask_create(&s->root, "f", UNCHECKED, ask_mode(0777)));
	assert_memory_equal(same.data, fh.data, fh.bytes);
	assert_int_equal(ask_attr(s->r, &fh).mode, 0600);
	assert_int_equal(ask_attr(s->r, &fh).size, 10);
	/* ...but the size, where it is given. */
	size.size.set_it = 1;
	size.size.set_size3_u.size = 4;
	site_expect(s, ask_create(&s->root, "f", UNCHECKED, &size), NFS3_OK);
	assert_int_equal(ask_attr(s->r, &fh).size, 4);
	size.size.set_size3_u.size = 0;
	site_expect(s, ask_create(&s->root, "f", UNCHECKED, &size), NFS3_OK);
	assert_int_equal(ask_attr(s->r, &fh).size, 0);
	assert_int_equal(ask_attr(s->r, &fh).mode, 0600);
	/* Not by who may not write; to be opened it need not be his. */
	site_expect(s, ask_write(&fh, 0, "0123456789", 10, FILE_SYNC), NFS3_OK);
	ask_as(s->r, 1000, 1000);
	site_expect(s, ask_create(&s->root, "f", UNCHECKED, &size),
		    NFS3ERR_ACCES);
	site_expect(s, ask_create(&s->root, "f", UNCHECKED, ask_mode(0777)),
		    NFS3_OK);
	ask_as(s->r, 0, 0);
	assert_int_equal(ask_attr(s->r, &fh).size, 10);
	site_expect(s, ask_create(&s->root, "f", GUARDED, ask_mode(0777)),
		    NFS3ERR_EXIST);
	assert_int_equal(ask_attr(s->r, &fh).size, 10);
	site_free(s);
}

/* Something else is there: it is neither opened nor followed. */
static void
test_other_kinds(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	static const uint8_t verf[8] = { 1 };
	static const char *const names[] = { "dir", "link", "fifo", "." };
	sattr3 size = *ask_size(0);
	unsigned i;

	assert_int_equal(mkdir(site_path(s, "dir"), 0777), 0);
	site_file(s, "target", 0666, 0, 0, "kept");
	assert_int_equal(symlink("target", site_path(s, "link")), 0);
	assert_int_equal(symlink("nowhere", site_path(s, "loose")), 0);
	assert_int_equal(mkfifo(site_path(s, "fifo"), 0666), 0);
	for (i = 0; i < 4; i++) {
		site_expect(s, ask_create(&s->root, names[i], UNCHECKED, &size),
			    NFS3ERR_EXIST);
		site_expect(s, ask_create(&s->root, names[i], GUARDED, &size),
			    NFS3ERR_EXIST);
		site_expect(s, ask_exclusive(&s->root, names[i], verf),
			    NFS3ERR_EXIST);
		site_expect(s, ask_mkdir(&s->root, names[i], ask_mode(0755)),
			    NFS3ERR_EXIST);
		site_expect(s, ask_symlink(&s->root, names[i], "x"),
			    NFS3ERR_EXIST);
		site_expect(s,
			    ask_mknod(&s->root, names[i], NF3FIFO,
				      ask_mode(0644), 0, 0),
			    NFS3ERR_EXIST);
	}
	site_expect(s, ask_create(&s->root, "loose", UNCHECKED, &size),
		    NFS3ERR_EXIST);
	assert_int_equal(access(site_path(s, "nowhere"), F_OK), -1);
	assert_int_equal(
		harness_sh("test \"$(cat %s)\" = kept", site_path(s, "target")),
		0);
	site_free(s);
}

/* EXCLUSIVE ------------------------------------------------------------------
 */

struct verf {
	uint8_t bytes[8];
};

/* All zeros, all ones, halves, and what the timestamps of Linux are made of. */
static const struct verf verf_corners[] = {
	{ { 0, 0, 0, 0, 0, 0, 0, 0 } },
	{ { 255, 255, 255, 255, 255, 255, 255, 255 } },
	{ { 255, 255, 255, 255, 0, 0, 0, 0 } },
	{ { 0, 0, 0, 0, 255, 255, 255, 255 } },
	{ { 0x80, 0, 0, 0, 0x80, 0, 0, 0 } },
	{ { 0, 0, 0, 0x80, 0, 0, 0, 0x80 } },
	{ { 0x3b, 0x9a, 0xc9, 0xff, 0x3b, 0x9a, 0xca, 0 } },
	{ { 0xff, 0xc9, 0x9a, 0x3b, 0, 0xca, 0x9a, 0x3b } },
	{ { 0x3f, 0xff, 0xff, 0xff, 0x3f, 0xff, 0xff, 0xfe } },
};
#define CORNERS (sizeof(verf_corners) / sizeof(verf_corners[0]))
#define VERFS   (CORNERS + RANDOM_VERFS)

static void
verfs_make(struct verf verf[VERFS])
{
	unsigned i, j;

	memcpy(verf, verf_corners, sizeof(verf_corners));
	srandom(20);
	for (i = CORNERS; i < VERFS; i++)
		for (j = 0; j < 8; j++)
			verf[i].bytes[j] = (uint8_t)(random() >> 8);
}

/* Only this verifier, and not one that differs in any one bit. */
static void
check_verf(struct site *s, const char *name, const struct raw_fh *fh,
	   const struct verf *v)
{
	struct verf other;
	struct raw_fh same;
	unsigned bit;

	same = made(s, ask_exclusive(&s->root, name, v->bytes));
	assert_int_equal(same.bytes, fh->bytes);
	assert_memory_equal(same.data, fh->data, fh->bytes);
	for (bit = 0; bit < 64; bit++) {
		other = *v;
		other.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		site_expect(s, ask_exclusive(&s->root, name, other.bytes),
			    NFS3ERR_EXIST);
	}
}

static void
exclusive(struct site *s)
{
	struct verf verf[VERFS];
	struct raw_fh fh[VERFS];
	char name[24];
	unsigned i, round;

	verfs_make(verf);
	for (i = 0; i < VERFS; i++) {
		(void)snprintf(name, sizeof(name), "x%u", i);
		fh[i] = made(s, ask_exclusive(&s->root, name, verf[i].bytes));
	}
	for (round = 0; round < 2; round++) {
		for (i = 0; i < VERFS; i++) {
			(void)snprintf(name, sizeof(name), "x%u", i);
			check_verf(s, name, &fh[i], &verf[i]);
		}
		raw_close(s->r);
		harness_kill(s->h);
		site_start(s);
	}
	/* The others than the modes that know no verifier. */
	site_expect(s, ask_create(&s->root, "x0", GUARDED, ask_mode(0644)),
		    NFS3ERR_EXIST);
	site_expect(s, ask_create(&s->root, "x0", UNCHECKED, ask_mode(0644)),
		    NFS3_OK);
	site_free(s);
}

static void
test_exclusive(void **state)
{
	exclusive(site_new(engine, NULL, NULL));
}

static void
test_exclusive_xfs(void **state)
{
	exclusive(site_new(engine, NULL, "xfs"));
}

static void
test_exclusive_ext4(void **state)
{
	exclusive(site_new(engine, "rw,async,no_root_squash,insecure", "ext4"));
}

static void
test_exclusive_btrfs(void **state)
{
	exclusive(site_new(engine, NULL, "btrfs"));
}

/* Inodes without room for more than the seconds of a time. */
static void
test_exclusive_rounded(void **state)
{
	struct site *s = site_prepare(engine, NULL, "ext4");

	site_mkfs(s, "mkfs.ext4 -q -F -I 128");
	site_start(s);
	exclusive(s);
}

/* The SETATTR that a client sends next puts it right: times now, mode, owner.
 * Then the file is one like any other, and a late retry finds it there. */
static void
exclusive_then(const char *fs, time_how how)
{
	struct site *s = site_new(engine, NULL, fs);
	static const uint8_t verf[8] = { 8, 7, 6, 5, 4, 3, 2, 1 };
	sattr3 set = *ask_mode(0640);
	struct raw_fh fh;
	struct timespec now;
	fattr3 at;

	set.atime.set_it = how;
	set.mtime.set_it = how;
	set.atime.set_atime_u.atime.seconds = 1500000000;
	set.mtime.set_mtime_u.mtime.seconds = 1600000000;
	set.mtime.set_mtime_u.mtime.nseconds = 5;
	ask_as(s->r, 1000, 1000);
	fh = made(s, ask_exclusive(&s->root, "x", verf));
	/* Its maker may write, whatever its mode is until then. */
	site_expect(s, ask_write(&fh, 0, "x", 1, FILE_SYNC), NFS3_OK);
	fh = made(s, ask_exclusive(&s->root, "y", verf));
	assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
	site_expect(s, ask_setattr(&fh, &set, NULL), NFS3_OK);
	at = ask_attr(s->r, &fh);
	assert_int_equal(at.mode, 0640);
	assert_int_equal(at.uid, 1000);
	assert_int_equal(at.size, 0);
	if (how == SET_TO_CLIENT_TIME) {
		assert_int_equal(at.atime.seconds, 1500000000);
		assert_int_equal(at.mtime.seconds, 1600000000);
		assert_int_equal(at.mtime.nseconds, 5);
	} else {
		assert_in_range(at.atime.seconds, now.tv_sec - 1,
				now.tv_sec + 600);
		assert_in_range(at.mtime.seconds, now.tv_sec - 1,
				now.tv_sec + 600);
	}
	site_expect(s, ask_exclusive(&s->root, "y", verf), NFS3ERR_EXIST);
	site_free(s);
}

static void
test_exclusive_then(void **state)
{
	exclusive_then(NULL, SET_TO_SERVER_TIME);
	exclusive_then(NULL, SET_TO_CLIENT_TIME);
	exclusive_then("ext4", SET_TO_SERVER_TIME);
	exclusive_then("xfs", SET_TO_CLIENT_TIME);
}

/* A local file is never taken for one that was made with a verifier. */
static void
test_exclusive_local(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	unsigned i;

	site_file(s, "local", 0666, 0, 0, "");
	for (i = 0; i < CORNERS; i++)
		site_expect(
			s,
			ask_exclusive(&s->root, "local", verf_corners[i].bytes),
			NFS3ERR_EXIST);
	site_free(s);
}

/* SYMLINK, MKNOD --------------------------------------------------------------
 */

static void
check_link(struct site *s, const char *name, const char *target)
{
	struct raw_fh fh = made(s, ask_symlink(&s->root, name, target));
	char local[5000];
	ssize_t n = readlink(site_path(s, name), local, sizeof(local));
	struct answer a;

	assert_int_equal(n, strlen(target));
	assert_memory_equal(local, target, (size_t)n);
	assert_int_equal(ask(s->r, ask_readlink(&fh), &a), NFS3_OK);
	assert_string_equal(a.u.readlink.data, target);
	assert_true(a.attr.attributes_follow);
	assert_int_equal(a.attr.post_op_attr_u.attributes.type, NF3LNK);
	assert_int_equal(a.attr.post_op_attr_u.attributes.size, n);
}

static void
test_symlink(void **state)
{
	struct site *s = site_new(engine, NULL, "xfs");
	struct raw_fh root = s->root, file;
	char target[4200], bytes[256];
	unsigned i;

	check_link(s, "plain", "a/b/../c");
	check_link(s, "out", "/etc/../../etc/passwd");
	for (i = 1; i < sizeof(bytes); i++)
		bytes[i - 1] = (char)i;
	bytes[255] = '\0';
	check_link(s, "bytes", bytes);
	memset(target, 'x', sizeof(target));
	target[1023] = '\0'; /* XFS's limit */
	check_link(s, "long", target);
	target[1023] = 'x';
	target[4200 - 1] = '\0';
	site_expect(s, ask_symlink(&root, "l1", target), NFS3ERR_NAMETOOLONG);
	target[4096] = '\0';
	site_expect(s, ask_symlink(&root, "l2", target), NFS3ERR_NAMETOOLONG);
	site_expect(s, ask_symlink(&root, "l3", ""), NFS3ERR_INVAL);
	file = made(s, ask_create(&root, "f", GUARDED, ask_mode(0644)));
	site_expect(s, ask_readlink(&file), NFS3ERR_INVAL);
	site_expect(s, ask_readlink(&root), NFS3ERR_INVAL);
	site_free(s);
}

/* On ext4 a target may have all of a path's bytes. */
static void
test_symlink_longest(void **state)
{
	struct site *s = site_new(engine, NULL, "ext4");
	char target[4096];

	memset(target, 'y', sizeof(target));
	target[4095] = '\0';
	check_link(s, "long", target);
	site_free(s);
}

/* libnfs can send no NUL in a target. */
static void
test_symlink_nul(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	static const uint8_t target[] = { 0,   0,   0,   5, 'a', 0,
					  'b', 'c', 'd', 0, 0,   0 };
	struct question q = ask_symlink(&s->root, "nul", "");
	struct answer a;

	raw_build(s->r, 100003, 3, NFS3_SYMLINK, (raw_zdr_fn *)zdr_SYMLINK3args,
		  &q.u);
	s->r->out_bytes -= 4; /* the empty target's length */
	raw_append(s->r, target, sizeof(target));
	raw_send(s->r);
	assert_true(raw_receive(s->r));
	ask_take(s->r, NFS3_SYMLINK, &a);
	assert_int_equal(a.status, NFS3ERR_INVAL);
	assert_int_equal(readlink(site_path(s, "nul"), (char[8]){ 0 }, 8), -1);
	site_free(s);
}

static void
check_node(struct site *s, const char *name, ftype3 type, mode_t format,
	   dev_t dev)
{
	struct raw_fh fh;
	struct stat st;
	fattr3 at;

	fh = made(s, ask_mknod(&s->root, name, type, ask_mode(0640), major(dev),
			       minor(dev)));
	at = ask_attr(s->r, &fh);
	assert_int_equal(at.type, type);
	assert_int_equal(at.mode, 0640);
	assert_int_equal(at.rdev.specdata1, major(dev));
	assert_int_equal(at.rdev.specdata2, minor(dev));
	assert_int_equal(lstat(site_path(s, name), &st), 0);
	assert_int_equal(st.st_mode, format | 0640);
	assert_int_equal(st.st_rdev, dev);
}

static void
test_mknod(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	static const ftype3 bad[] = { 0, NF3REG, NF3DIR, NF3LNK, 8, 77 };
	const sattr3 *mode = ask_mode(0640);
	unsigned i;

	check_node(s, "fifo", NF3FIFO, S_IFIFO, 0);
	check_node(s, "sock", NF3SOCK, S_IFSOCK, 0);
	check_node(s, "chr", NF3CHR, S_IFCHR, makedev(1, 3));
	check_node(s, "blk", NF3BLK, S_IFBLK, makedev(0xfff, 0xfffff));
	site_expect(s, ask_mknod(&s->root, "x", NF3CHR, mode, 0x1000, 0),
		    NFS3ERR_INVAL);
	site_expect(s, ask_mknod(&s->root, "x", NF3CHR, mode, 1, 0x100000),
		    NFS3ERR_INVAL);
	/* Not for everyone; a FIFO is. */
	ask_as(s->r, 1000, 1000);
	site_expect(s, ask_mknod(&s->root, "x", NF3CHR, mode, 1, 3),
		    NFS3ERR_PERM);
	site_expect(s, ask_mknod(&s->root, "x", NF3BLK, mode, 0, 0),
		    NFS3ERR_PERM);
	check_node(s, "his", NF3FIFO, S_IFIFO, 0);
	ask_as(s->r, 0, 0);
	/* By hand, since the rest of their arguments is void. */
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const uint8_t type[4] = { 0, 0, 0, (uint8_t)bad[i] };
		struct question q = ask_lookup(&s->root, "x");
		struct answer a;

		raw_build(s->r, 100003, 3, NFS3_MKNOD,
			  (raw_zdr_fn *)zdr_LOOKUP3args, &q.u);
		raw_append(s->r, type, 4);
		raw_send(s->r);
		assert_true(raw_receive(s->r));
		ask_take(s->r, NFS3_MKNOD, &a);
		assert_int_equal(a.status, NFS3ERR_BADTYPE);
		assert_true(a.wcc.after.attributes_follow);
	}
	assert_int_equal(access(site_path(s, "x"), F_OK), -1);
	site_free(s);
}

/* Root squashed is nobody, who makes no device. */
static void
test_squashed(void **state)
{
	struct site *s = site_new(engine, "rw,insecure", NULL);
	struct raw_fh fh;

	site_expect(s, ask_mknod(&s->root, "x", NF3CHR, ask_mode(0644), 1, 3),
		    NFS3ERR_PERM);
	fh = made(s, ask_create(&s->root, "f", GUARDED, ask_mode(0644)));
	assert_int_equal(ask_attr(s->r, &fh).uid, 65534);
	assert_int_equal(ask_attr(s->r, &fh).gid, 65534);
	fh = made(s, ask_mkdir(&s->root, "d", ask_mode(0755)));
	assert_int_equal(ask_attr(s->r, &fh).uid, 65534);
	site_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attributes),
		cmocka_unit_test(test_unchecked),
		cmocka_unit_test(test_other_kinds),
		cmocka_unit_test(test_exclusive),
		cmocka_unit_test(test_exclusive_xfs),
		cmocka_unit_test(test_exclusive_ext4),
		cmocka_unit_test(test_exclusive_btrfs),
		cmocka_unit_test(test_exclusive_rounded),
		cmocka_unit_test(test_exclusive_then),
		cmocka_unit_test(test_exclusive_local),
		cmocka_unit_test(test_symlink),
		cmocka_unit_test(test_symlink_longest),
		cmocka_unit_test(test_symlink_nul),
		cmocka_unit_test(test_mknod),
		cmocka_unit_test(test_squashed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
