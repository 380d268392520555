/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes over the wire: SETATTR with each of its fields, its guard, sizes
 * up and down with zeros behind them, and what it refuses; arguments out of
 * their range; FSINFO, FSSTAT and PATHCONF against the file system; the errors
 * of a file system that is full, and of one that is read-only.
 */
#include "site.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const char *engine = "uring";

static void
expect(struct site *s, struct question q, int status)
{
	int got = ask(s->r, q, NULL);

	if (got != status)
		fail_msg("procedure %u: %d, not %d", q.proc, got, status);
}

static void
set(struct site *s, const struct raw_fh *fh, const sattr3 *a, int status)
{
	expect(s, ask_setattr(fh, a, NULL), status);
}

/* Fields
 * -----------------------------------------------------------------------
 */

static const sattr3 *
times(time_how atime, time_how mtime, uint32_t seconds, uint32_t nseconds)
{
	static sattr3 a;

	memset(&a, 0, sizeof(a));
	a.atime.set_it = atime;
	a.atime.set_atime_u.atime.seconds = seconds;
	a.atime.set_atime_u.atime.nseconds = nseconds;
	a.mtime.set_it = mtime;
	a.mtime.set_mtime_u.mtime.seconds = seconds + 1;
	a.mtime.set_mtime_u.mtime.nseconds = nseconds;
	return &a;
}

/* Everything but what has been set, the ctime and what follows from the size is
 * as it was. */
static void
expect_rest(const fattr3 *was, const fattr3 *is)
{
	assert_int_equal(was->type, is->type);
	assert_int_equal(was->nlink, is->nlink);
	assert_int_equal(was->fsid, is->fsid);
	assert_int_equal(was->fileid, is->fileid);
	assert_true(is->ctime.seconds >= was->ctime.seconds);
}

static void
fields(const char *fs)
{
	struct site *s = site_new(engine, NULL, fs);
	struct raw_fh fh;
	fattr3 was, is;
	time_t now;

	raw_create(s->r, &s->root, "f", 0644, &fh);
	was = ask_attr(s->r, &fh);
	set(s, &fh, ask_mode(07751), NFS3_OK);
	is = ask_attr(s->r, &fh);
	assert_int_equal(is.mode, 07751);
	expect_rest(&was, &is);
	assert_true(ask_same_time(&was.mtime, &is.mtime));
	set(s, &fh, ask_mode(0644 | 0xffff0000u), NFS3_OK);
	assert_int_equal(ask_attr(s->r, &fh).mode, 0644);
	set(s, &fh, ask_owner(123, -1), NFS3_OK);
	set(s, &fh, ask_owner(-1, 456), NFS3_OK);
	is = ask_attr(s->r, &fh);
	assert_true(is.uid == 123 && is.gid == 456);
	set(s, &fh, ask_owner(0x7fffffff, 0x80000001u), NFS3_OK);
	is = ask_attr(s->r, &fh);
	assert_true(is.uid == 0x7fffffff && is.gid == 0x80000001u);
	set(s, &fh, times(SET_TO_CLIENT_TIME, DONT_CHANGE, 1700000000, 7),
	    NFS3_OK);
	is = ask_attr(s->r, &fh);
	assert_true(is.atime.seconds == 1700000000 && is.atime.nseconds == 7);
	assert_true(ask_same_time(&was.mtime, &is.mtime));
	set(s, &fh, times(DONT_CHANGE, SET_TO_CLIENT_TIME, 1700000000, 8),
	    NFS3_OK);
	is = ask_attr(s->r, &fh);
	assert_true(is.atime.seconds == 1700000000 && is.atime.nseconds == 7);
	assert_true(is.mtime.seconds == 1700000001 && is.mtime.nseconds == 8);
	now = time(NULL);
	set(s, &fh, times(SET_TO_SERVER_TIME, DONT_CHANGE, 0, 0), NFS3_OK);
	is = ask_attr(s->r, &fh);
	assert_in_range(is.atime.seconds, now - 1, now + 600);
	assert_int_equal(is.mtime.seconds, 1700000001);
	set(s, &fh, times(DONT_CHANGE, SET_TO_SERVER_TIME, 0, 0), NFS3_OK);
	assert_in_range(ask_attr(s->r, &fh).mtime.seconds, now - 1, now + 600);
	/* Nothing is nothing. */
	was = ask_attr(s->r, &fh);
	set(s, &fh, ask_nothing(), NFS3_OK);
	is = ask_attr(s->r, &fh);
	assert_true(ask_same_attr(&was, &is));
	site_free(s);
}

static void
test_fields(void **state)
{
	fields(NULL);
	fields("xfs");
	fields("ext4");
}

static void
test_refused(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	struct raw_fh fh, dir, fifo;
	sattr3 two;
	fattr3 was, is;

	raw_create(s->r, &s->root, "f", 0644, &fh);
	assert_int_equal(mkdir(site_path(s, "dir"), 0755), 0);
	assert_int_equal(mkfifo(site_path(s, "fifo"), 0644), 0);
	dir = site_lookup(s, "dir");
	fifo = site_lookup(s, "fifo");
	was = ask_attr(s->r, &fh);
	set(s, &dir, ask_size(0), NFS3ERR_ISDIR);
	set(s, &fifo, ask_size(0), NFS3ERR_INVAL);
	set(s, &fh, times(SET_TO_CLIENT_TIME, DONT_CHANGE, 1, 1000000000),
	    NFS3ERR_INVAL);
	/* Not UTIME_NOW and UTIME_OMIT by the back door. */
	set(s, &fh, times(DONT_CHANGE, SET_TO_CLIENT_TIME, 1, 0x3fffffff),
	    NFS3ERR_INVAL);
	set(s, &fh, times(DONT_CHANGE, SET_TO_CLIENT_TIME, 1, 0x3ffffffe),
	    NFS3ERR_INVAL);
	set(s, &fh, ask_size(1ull << 63), NFS3ERR_FBIG);
	set(s, &fh, ask_size(UINT64_MAX), NFS3ERR_FBIG);
	/* A refusal of one field changes none of the others. */
	two = *times(DONT_CHANGE, SET_TO_CLIENT_TIME, 1, 1000000000);
	two.mode = ask_mode(0)->mode;
	two.size = ask_size(77)->size;
	set(s, &fh, &two, NFS3ERR_INVAL);
	ask_as(s->r, 1000, 1000);
	set(s, &fh, ask_mode(0777), NFS3ERR_PERM);
	set(s, &fh, ask_owner(1000, -1), NFS3ERR_PERM);
	set(s, &fh, ask_size(0), NFS3ERR_ACCES);
	set(s, &fh, times(SET_TO_CLIENT_TIME, DONT_CHANGE, 1, 1), NFS3ERR_PERM);
	set(s, &fh, times(SET_TO_SERVER_TIME, SET_TO_SERVER_TIME, 0, 0),
	    NFS3ERR_ACCES);
	ask_as(s->r, 0, 0);
	is = ask_attr(s->r, &fh);
	assert_true(ask_same_attr(&was, &is));
	site_free(s);
}

static void
test_guard(void **state)
{
	struct site *s = site_new(engine, NULL, "xfs");
	struct raw_fh fh;
	struct answer a;
	fattr3 was, is;
	nfstime3 guard;

	raw_create(s->r, &s->root, "f", 0644, &fh);
	expect(s, ask_write(&fh, 0, "text", 4, UNSTABLE), NFS3_OK);
	was = ask_attr(s->r, &fh);
	guard = was.ctime;
	guard.nseconds ^= 1;
	expect(s, ask_setattr(&fh, ask_mode(0600), &guard), NFS3ERR_NOT_SYNC);
	guard = was.ctime;
	guard.seconds--;
	assert_int_equal(ask(s->r, ask_setattr(&fh, ask_size(0), &guard), &a),
			 NFS3ERR_NOT_SYNC);
	assert_true(a.wcc.after.attributes_follow);
	is = ask_attr(s->r, &fh);
	assert_true(ask_same_attr(&was, &is));
	guard = was.ctime;
	expect(s, ask_setattr(&fh, ask_mode(0600), &guard), NFS3_OK);
	/* It was true once. */
	expect(s, ask_setattr(&fh, ask_mode(0644), &guard), NFS3ERR_NOT_SYNC);
	guard = ask_attr(s->r, &fh).ctime;
	expect(s, ask_setattr(&fh, ask_size(2), &guard), NFS3_OK);
	assert_int_equal(ask_attr(s->r, &fh).size, 2);
	site_free(s);
}

/* Sizes
 * ------------------------------------------------------------------------
 */

#define SIZES_BYTES 300000u

/* The whole file is: data up to kept, zeros up to size. */
static void
check_content(struct site *s, const struct raw_fh *fh, const uint8_t *data,
	      uint32_t kept, uint32_t size)
{
	READ3res res;
	uint32_t i;
	const uint8_t *got;

	assert_int_equal(raw_read(s->r, fh, 0, SIZES_BYTES + 10000, &res),
			 NFS3_OK);
	got = (const uint8_t *)res.READ3res_u.resok.data.data_val;
	assert_int_equal(res.READ3res_u.resok.count, size);
	assert_true(res.READ3res_u.resok.eof);
	assert_memory_equal(got, data, kept);
	for (i = kept; i < size; i++)
		if (got[i] != 0)
			fail_msg("byte %u is not zero behind %u", i, kept);
}

/* What was cut off never comes back, on whatever boundary it was cut. */
static void
sizes(const char *fs, const char *name, int stable)
{
	static const uint32_t cuts[] = { 0,     1,      511,    512,   513,
					 4095,  4096,   4097,   65535, 65536,
					 99999, 262144, 262145, 299999 };
	struct site *s = site_new(name, NULL, fs);
	uint8_t *data = malloc(SIZES_BYTES);
	struct raw_fh fh;
	unsigned i;

	assert_non_null(data);
	memset(data, 0xa5, SIZES_BYTES);
	raw_create(s->r, &s->root, "f", 0644, &fh);
	for (i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		uint32_t cut = cuts[i];

		expect(s, ask_write(&fh, 0, data, SIZES_BYTES, stable),
		       NFS3_OK);
		set(s, &fh, ask_size(cut), NFS3_OK);
		check_content(s, &fh, data, cut, cut);
		set(s, &fh, ask_size(cut + 3), NFS3_OK);
		check_content(s, &fh, data, cut, cut + 3);
		set(s, &fh, ask_size(SIZES_BYTES), NFS3_OK);
		check_content(s, &fh, data, cut, SIZES_BYTES);
		expect(s, ask_commit(&fh), NFS3_OK);
		check_content(s, &fh, data, cut, SIZES_BYTES);
	}
	free(data);
	site_free(s);
}

static void
test_sizes(void **state)
{
	sizes("xfs", "uring", UNSTABLE);
	sizes("xfs", "threads", FILE_SYNC);
	sizes("ext4", "threads", UNSTABLE);
	sizes("ext4", "uring", FILE_SYNC);
	sizes("btrfs", "uring", UNSTABLE);
}

/* A change of the size is a change: mtime and ctime move, also where the size
 * stays. */
static void
test_size_times(void **state)
{
	struct site *s = site_new(engine, NULL, "xfs");
	struct raw_fh fh;
	fattr3 was, is;

	raw_create(s->r, &s->root, "f", 0644, &fh);
	set(s, &fh, times(SET_TO_CLIENT_TIME, SET_TO_CLIENT_TIME, 5, 5),
	    NFS3_OK);
	was = ask_attr(s->r, &fh);
	set(s, &fh, ask_size(10), NFS3_OK);
	is = ask_attr(s->r, &fh);
	assert_true(is.mtime.seconds > was.mtime.seconds);
	assert_int_equal(is.size, 10);
	set(s, &fh, times(SET_TO_CLIENT_TIME, SET_TO_CLIENT_TIME, 5, 5),
	    NFS3_OK);
	set(s, &fh, ask_size(10), NFS3_OK);
	assert_true(ask_attr(s->r, &fh).mtime.seconds > 6);
	site_free(s);
}

/* Out of range
 * -------------------------------------------------------------------
 */

/* The call in out, with the word that stands back bytes before its end changed,
 * is garbage; the connection lives on. */
static void
expect_garbage(struct site *s, uint32_t back, uint32_t value)
{
	uint32_t at = s->r->out_bytes - back, was;

	memcpy(&was, s->r->out + at, 4);
	value = htonl(value);
	memcpy(s->r->out + at, &value, 4);
	raw_send(s->r);
	assert_true(raw_receive(s->r));
	assert_int_equal(s->r->reply_stat, 0);
	if (s->r->accept_stat != 4)
		fail_msg("the word %u before the end: %u", back,
			 s->r->accept_stat);
	memcpy(s->r->out + at, &was, 4);
}

static void
build(struct site *s, struct question q, raw_zdr_fn *encode)
{
	raw_build(s->r, 100003, 3, q.proc, encode, &q.u);
}

static void
test_discriminants(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	static const uint8_t verf[8] = { 0 };
	struct raw_fh fh;
	fattr3 was, is;
	uint32_t back;

	raw_create(s->r, &s->root, "f", 0644, &fh);
	was = ask_attr(s->r, &fh);
	/* Of a SETATTR of nothing: guard, mtime, atime, size, gid, uid, mode.
	 */
	build(s, ask_setattr(&fh, ask_nothing(), NULL),
	      (raw_zdr_fn *)zdr_SETATTR3args);
	for (back = 4; back <= 28; back += 4) {
		bool is_time = back == 8 || back == 12;

		expect_garbage(s, back, is_time ? 3 : 2);
		expect_garbage(s, back, UINT32_MAX);
		if (!is_time)
			expect_garbage(s, back, 1); /* and nothing to set */
	}
	build(s, ask_mkdir(&s->root, "d", ask_nothing()),
	      (raw_zdr_fn *)zdr_MKDIR3args);
	for (back = 4; back <= 24; back += 4)
		expect_garbage(s, back, 3);
	build(s, ask_exclusive(&s->root, "x", verf),
	      (raw_zdr_fn *)zdr_CREATE3args);
	expect_garbage(s, 12, 3);
	expect_garbage(s, 12, UINT32_MAX);
	build(s, ask_write(&fh, 0, "", 0, UNSTABLE),
	      (raw_zdr_fn *)zdr_WRITE3args);
	expect_garbage(s, 8, 3);
	expect_garbage(s, 4, 1); /* data that is not there */
	expect_garbage(s, 4, UINT32_MAX);
	is = ask_attr(s->r, &fh);
	assert_true(ask_same_attr(&was, &is));
	assert_int_equal(harness_sh("test \"$(ls %s)\" = f", s->h->export), 0);
	site_free(s);
}

/* Each procedure's arguments cut short by a word, and a word too long. */
static void
test_cut_short(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	struct raw_fh fh, root = s->root;
	unsigned i;

	raw_create(s->r, &s->root, "f", 0644, &fh);
	const struct {
		struct question q;
		raw_zdr_fn *encode;
	} rows[] = {
		{ ask_getattr(&fh), (raw_zdr_fn *)zdr_GETATTR3args },
		{ ask_setattr(&fh, ask_mode(0), NULL),
		  (raw_zdr_fn *)zdr_SETATTR3args },
		{ ask_lookup(&root, "f"), (raw_zdr_fn *)zdr_LOOKUP3args },
		{ ask_access(&fh, 1), (raw_zdr_fn *)zdr_ACCESS3args },
		{ ask_readlink(&fh), (raw_zdr_fn *)zdr_READLINK3args },
		{ ask_read(&fh, 0, 1), (raw_zdr_fn *)zdr_READ3args },
		{ ask_write(&fh, 0, "x", 1, 0), (raw_zdr_fn *)zdr_WRITE3args },
		{ ask_create(&root, "x", GUARDED, ask_mode(0)),
		  (raw_zdr_fn *)zdr_CREATE3args },
		{ ask_mkdir(&root, "x", ask_mode(0)),
		  (raw_zdr_fn *)zdr_MKDIR3args },
		{ ask_symlink(&root, "x", "y"),
		  (raw_zdr_fn *)zdr_SYMLINK3args },
		{ ask_mknod(&root, "x", NF3FIFO, ask_mode(0), 0, 0),
		  (raw_zdr_fn *)zdr_MKNOD3args },
		{ ask_remove(&root, "f"), (raw_zdr_fn *)zdr_REMOVE3args },
		{ ask_rmdir(&root, "f"), (raw_zdr_fn *)zdr_RMDIR3args },
		{ ask_rename(&root, "f", &root, "g"),
		  (raw_zdr_fn *)zdr_RENAME3args },
		{ ask_link(&fh, &root, "g"), (raw_zdr_fn *)zdr_LINK3args },
		{ ask_readdir(&root, 0, 4096), (raw_zdr_fn *)zdr_READDIR3args },
		{ ask_readdirplus(&root, 0, 4096, 4096),
		  (raw_zdr_fn *)zdr_READDIRPLUS3args },
		{ ask_fsstat(&root), (raw_zdr_fn *)zdr_FSSTAT3args },
		{ ask_fsinfo(&root), (raw_zdr_fn *)zdr_FSINFO3args },
		{ ask_pathconf(&root), (raw_zdr_fn *)zdr_PATHCONF3args },
		{ ask_commit(&fh), (raw_zdr_fn *)zdr_COMMIT3args },
	};
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		build(s, rows[i].q, rows[i].encode);
		s->r->out_bytes -= 4;
		raw_send(s->r);
		assert_true(raw_receive(s->r));
		if (s->r->accept_stat != 4)
			fail_msg("procedure %u, cut short: %u", rows[i].q.proc,
				 s->r->accept_stat);
		build(s, rows[i].q, rows[i].encode);
		raw_append(s->r, "\0\0\0", 4);
		raw_send(s->r);
		assert_true(raw_receive(s->r));
		if (s->r->accept_stat != 4)
			fail_msg("procedure %u, too long: %u", rows[i].q.proc,
				 s->r->accept_stat);
	}
	assert_int_equal(harness_sh("test \"$(ls %s)\" = f", s->h->export), 0);
	assert_int_equal(ask_attr(s->r, &fh).mode, 0644);
	site_free(s);
}

/* The file system
 * ----------------------------------------------------------------
 */

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
	expect(s, ask_remove(&s->root, "huge"), NFS3_OK);
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
	expect(s, ask_mkdir(&s->root, "d", ask_mode(0755)), NFS3ERR_NOSPC);
	expect(s, ask_symlink(&s->root, "l", "x"), NFS3ERR_NOSPC);
	expect(s, ask_mknod(&s->root, "p", NF3FIFO, ask_mode(0644), 0, 0),
	       NFS3ERR_NOSPC);
	expect(s, ask_exclusive(&s->root, "x", (const uint8_t *)"verifier"),
	       NFS3ERR_NOSPC);
	expect(s, ask_remove(&s->root, "n0"), NFS3_OK);
	expect(s, ask_exclusive(&s->root, "x", (const uint8_t *)"verifier"),
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
	expect(s, ask_symlink(&s->root, "l", "x"), NFS3ERR_DQUOT);
	/* Its first bytes may still have found room. */
	status =
		ask(s->r, ask_write(&fh, 0, data, sizeof(data), FILE_SYNC), &a);
	assert_false(status == NFS3_OK && a.u.write.count == sizeof(data));
	expect(s, ask_write(&fh, 1u << 20, data, sizeof(data), FILE_SYNC),
	       NFS3ERR_DQUOT);
	assert_int_equal(harness_sh("btrfs qgroup limit none %s", dir), 0);
	expect(s, ask_mkdir(&s->root, name, ask_mode(0755)), NFS3_OK);
	expect(s, ask_write(&fh, 0, data, sizeof(data), FILE_SYNC), NFS3_OK);
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
		expect(s, changes[i], NFS3ERR_ROFS);
	expect(s, ask_read(&fh, 0, 4), NFS3_OK);
	expect(s, ask_readdir(&root, 0, 4096), NFS3_OK);
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
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_guard),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_size_times),
		cmocka_unit_test(test_discriminants),
		cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_file_system),
		cmocka_unit_test(test_fsid),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_quota),
		cmocka_unit_test(test_read_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
