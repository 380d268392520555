/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SETATTR over the wire: each of its fields, its guard, sizes up and down with
 * zeros behind them, and what it refuses.
 */
#include "site.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *engine = "uring";

static void
set(struct site *s, const struct raw_fh *fh, const sattr3 *a, int status)
{
	site_expect(s, ask_setattr(fh, a, NULL), status);
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
	site_expect(s, ask_write(&fh, 0, "text", 4, UNSTABLE), NFS3_OK);
	was = ask_attr(s->r, &fh);
	guard = was.ctime;
	guard.nseconds ^= 1;
	site_expect(s, ask_setattr(&fh, ask_mode(0600), &guard),
		    NFS3ERR_NOT_SYNC);
	guard = was.ctime;
	guard.seconds--;
	assert_int_equal(ask(s->r, ask_setattr(&fh, ask_size(0), &guard), &a),
			 NFS3ERR_NOT_SYNC);
	assert_true(a.wcc.after.attributes_follow);
	is = ask_attr(s->r, &fh);
	assert_true(ask_same_attr(&was, &is));
	guard = was.ctime;
	site_expect(s, ask_setattr(&fh, ask_mode(0600), &guard), NFS3_OK);
	/* It was true once. */
	site_expect(s, ask_setattr(&fh, ask_mode(0644), &guard),
		    NFS3ERR_NOT_SYNC);
	guard = ask_attr(s->r, &fh).ctime;
	site_expect(s, ask_setattr(&fh, ask_size(2), &guard), NFS3_OK);
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

		site_expect(s, ask_write(&fh, 0, data, SIZES_BYTES, stable),
			    NFS3_OK);
		set(s, &fh, ask_size(cut), NFS3_OK);
		check_content(s, &fh, data, cut, cut);
		set(s, &fh, ask_size(cut + 3), NFS3_OK);
		check_content(s, &fh, data, cut, cut + 3);
		set(s, &fh, ask_size(SIZES_BYTES), NFS3_OK);
		check_content(s, &fh, data, cut, SIZES_BYTES);
		site_expect(s, ask_commit(&fh), NFS3_OK);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_guard),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_size_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
