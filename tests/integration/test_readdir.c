/* SPDX-License-Identifier: Apache-2.0 */
/*
 * READDIR and READDIRPLUS over the wire: a large directory whole and each entry
 * once, whatever the sizes asked for and whatever is removed or added
 * meanwhile; sizes kept to the byte; cookies that outlive the server; other
 * clients answered while one lists.
 */
#include "listing.h"
#include "site.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGE 100000u
#define SMALL 3000u

static const char *engine = "uring";

/* What READDIR3resok has beside its entries: attributes, verifier, the list's
 * end (RFC 1813, 3.3.16). */
#define FIXED_BYTES (4u + 84u + 8u + 8u)

/* Names of different lengths, all of them with their number in front. */
static void
name_of(char name[256], unsigned i)
{
	int n = snprintf(name, 256, "%06u", i);

	memset(name + n, 'x', i % 40);
	name[n + (int)(i % 40)] = '\0';
}

static void
make_files(struct site *s, const char *dir, unsigned from, unsigned to)
{
	char name[256];
	unsigned i;
	int fd, dir_fd = open(site_path(s, dir), O_RDONLY | O_DIRECTORY);

	assert_true(dir_fd >= 0);
	for (i = from; i < to; i++) {
		name_of(name, i);
		fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL, 0640);
		assert_true(fd >= 0);
		close(fd);
	}
	close(dir_fd);
}

static struct raw_fh
make_dir(struct site *s, unsigned files)
{
	assert_int_equal(mkdir(site_path(s, "dir"), 0755), 0);
	make_files(s, "dir", 0, files);
	return site_lookup(s, "dir");
}

/* What has been seen of a directory made by make_dir. */
struct seen {
	uint8_t times[LARGE + 10000];
	unsigned entries, dots;
	uint64_t cookie;
	bool eof;
};

static void
see(struct seen *seen, const struct listed *e)
{
	char name[256];
	unsigned long i;

	seen->cookie = e->cookie;
	if (strcmp(e->name, ".") == 0 || strcmp(e->name, "..") == 0) {
		seen->dots++;
		return;
	}
	i = strtoul(e->name, NULL, 10);
	assert_true(i < sizeof(seen->times));
	name_of(name, (unsigned)i);
	assert_string_equal(e->name, name);
	seen->times[i]++;
	seen->entries++;
}

/* Attributes and handle, where they are told, are the entry's. */
static void
check_plus(const struct listed *e)
{
	assert_true(e->has_attr && e->has_fh);
	assert_int_equal(e->attr.fileid, e->fileid);
	if (e->name[0] == '.')
		assert_int_equal(e->attr.type, NF3DIR);
	else
		assert_int_equal(e->attr.mode, 0640);
}

/* One call; the sizes that it is held to are checked. */
static void
list_some(struct site *s, struct question q, struct seen *seen)
{
	struct listing l;
	struct listed e;
	bool plus = q.proc == NFS3_READDIRPLUS;

	q.u.readdir.cookie = seen->cookie; /* of both at the same place */
	site_expect(s, q, NFS3_OK);
	listing_begin(&l, s->r, q.proc);
	while (listing_next(&l, &e)) {
		see(seen, &e);
		if (plus)
			check_plus(&e);
	}
	seen->eof = l.eof;
	assert_true(l.bytes <=
		    (plus ? q.u.readdirplus.maxcount : q.u.readdir.count));
	if (plus)
		assert_true(l.dirbytes <= q.u.readdirplus.dircount);
	raw_forget(s->r);
}

static void
check_once(const struct seen *seen, unsigned from, unsigned to)
{
	unsigned i;

	for (i = from; i < to; i++)
		if (seen->times[i] != 1)
			fail_msg("entry %u: %u times", i, seen->times[i]);
}

static struct seen *
list_all(struct site *s, struct question q)
{
	struct seen *seen = calloc(1, sizeof(*seen));

	assert_non_null(seen);
	while (!seen->eof)
		list_some(s, q, seen);
	assert_int_equal(seen->dots, 2);
	return seen;
}

/* Whole, and once -------------------------------------------------------------
 */

static void
check_sizes(struct site *s, const struct raw_fh *dir, unsigned files)
{
	const struct question sizes[] = {
		ask_readdir(dir, 0, 4096),
		ask_readdir(dir, 0, 65536),
		ask_readdir(dir, 0, UINT32_MAX),
		ask_readdirplus(dir, 0, 8192, 32768),
		ask_readdirplus(dir, 0, UINT32_MAX, UINT32_MAX),
	};
	struct seen *seen;
	unsigned i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		seen = list_all(s, sizes[i]);
		assert_int_equal(seen->entries, files);
		check_once(seen, 0, files);
		free(seen);
	}
}

static void
large(struct site *s)
{
	struct raw_fh dir = make_dir(s, LARGE);

	check_sizes(s, &dir, LARGE);
	site_free(s);
}

static void
test_large(void **state)
{
	large(site_new(engine, NULL, NULL));
}

static void
test_large_xfs(void **state)
{
	large(site_new(engine, NULL, "xfs"));
}

static void
test_large_ext4(void **state)
{
	struct site *s = site_prepare(engine, NULL, "ext4");

	site_mkfs(s, "mkfs.ext4 -q -F -N 150000");
	site_start(s);
	large(s);
}

/* One entry a call, or two. */
static void
test_least(void **state)
{
	struct site *s = site_new(engine, NULL, "xfs");
	struct raw_fh dir = make_dir(s, 300);
	struct seen *seen;

	seen = list_all(s,
			ask_readdir(&dir, 0, FIXED_BYTES + 4 + 8 + 4 + 48 + 8));
	check_once(seen, 0, 300);
	free(seen);
	seen = list_all(s, ask_readdirplus(&dir, 0, 8 + 4 + 48 + 8, 65536));
	check_once(seen, 0, 300);
	free(seen);
	site_free(s);
}

/* Sizes
 * ------------------------------------------------------------------------
 */

/* With every size from too small to all of it: as many entries as fit in it,
 * and not one less. */
static void
check_every_size(struct site *s, const struct raw_fh *dir, bool plus)
{
	struct listed entry[12] = { 0 }, e;
	uint32_t count, sum, whole;
	unsigned n = 0, fit, got, i;
	struct listing l;

	site_expect(s,
		    plus ? ask_readdirplus(dir, 0, UINT32_MAX, 65536)
			 : ask_readdir(dir, 0, 65536),
		    NFS3_OK);
	listing_begin(&l, s->r, plus ? NFS3_READDIRPLUS : NFS3_READDIR);
	while (listing_next(&l, &e)) {
		assert_true(n < 12);
		entry[n++] = e;
	}
	whole = l.bytes;
	assert_int_equal(n, 12);
	for (count = 0; count <= whole + 4; count++) {
		for (sum = FIXED_BYTES, fit = 0; fit < n; fit++) {
			sum += entry[fit].bytes;
			if (sum > count)
				break;
		}
		if (fit == 0) {
			site_expect(s,
				    plus ? ask_readdirplus(dir, 0, 65536, count)
					 : ask_readdir(dir, 0, count),
				    NFS3ERR_TOOSMALL);
			continue;
		}
		site_expect(s,
			    plus ? ask_readdirplus(dir, 0, 65536, count)
				 : ask_readdir(dir, 0, count),
			    NFS3_OK);
		listing_begin(&l, s->r, plus ? NFS3_READDIRPLUS : NFS3_READDIR);
		for (got = 0; listing_next(&l, &e); got++)
			assert_string_equal(e.name, entry[got].name);
		assert_int_equal(got, fit);
		assert_true(l.bytes <= count);
		/* The end is told with the last entry or by a call more. */
		assert_true(!l.eof || got == n);
		raw_forget(s->r);
	}
	/* Behind the last entry there is an end and nothing else. */
	i = n - 1;
	site_expect(
		s,
		plus ? ask_readdirplus(dir, entry[i].cookie, 65536, FIXED_BYTES)
		     : ask_readdir(dir, entry[i].cookie, FIXED_BYTES),
		NFS3_OK);
	listing_begin(&l, s->r, plus ? NFS3_READDIRPLUS : NFS3_READDIR);
	assert_false(listing_next(&l, &e));
	assert_true(l.eof);
}

/* dircount bounds names, ids and cookies alone. */
static void
check_dircount(struct site *s, const struct raw_fh *dir)
{
	uint32_t dircount, before = 0;
	struct listing l;
	struct listed e;
	unsigned n;

	for (dircount = 0; dircount < 400; dircount++) {
		int status = ask(s->r, ask_readdirplus(dir, 0, dircount, 65536),
				 NULL);

		if (status == NFS3ERR_TOOSMALL) {
			assert_int_equal(before, 0);
			continue;
		}
		assert_int_equal(status, NFS3_OK);
		listing_begin(&l, s->r, NFS3_READDIRPLUS);
		for (n = 0; listing_next(&l, &e); n++)
			;
		assert_true(l.dirbytes <= dircount);
		assert_in_range(n, before, before + 1);
		before = n;
	}
	assert_true(before > 5);
}

static void
test_sizes(void **state)
{
	struct site *s = site_new(engine, NULL, "xfs");
	struct raw_fh dir = make_dir(s, 10);

	check_every_size(s, &dir, false);
	check_every_size(s, &dir, true);
	check_dircount(s, &dir);
	site_free(s);
}

/* Cookies
 * ------------------------------------------------------------------------
 */

static void
remove_file(struct site *s, unsigned i)
{
	char name[256], path[300];

	name_of(name, i);
	(void)snprintf(path, sizeof(path), "dir/%s", name);
	assert_int_equal(unlink(site_path(s, path)), 0);
}

/* All that has been seen is removed before the next call, the entry whose
 * cookie is used too: the others all come. */
static void
removal(const char *fs, struct question q)
{
	struct site *s = site_new(engine, NULL, fs);
	struct raw_fh dir = make_dir(s, SMALL);
	struct seen *seen = calloc(1, sizeof(*seen));
	uint8_t gone[SMALL] = { 0 };
	unsigned i;

	assert_non_null(seen);
	q.u.readdir.dir = raw_nfs_fh(&dir);
	while (!seen->eof) {
		list_some(s, q, seen);
		for (i = 0; i < SMALL; i++) {
			if (seen->times[i] == 0 || gone[i])
				continue;
			remove_file(s, i);
			gone[i] = 1;
		}
	}
	check_once(seen, 0, SMALL);
	site_expect(s, ask_rmdir(&s->root, "dir"), NFS3_OK);
	free(seen);
	site_free(s);
}

static void
test_removal(void **state)
{
	struct raw_fh later = { 0 };

	removal("xfs", ask_readdir(&later, 0, 4096));
	removal("ext4", ask_readdirplus(&later, 0, 4096, 8192));
	removal("btrfs", ask_readdir(&later, 0, 4096));
}

/* What is there all the time comes once, whatever else is added; what is added
 * may come or not. */
static void
adding(const char *fs)
{
	struct site *s = site_new(engine, NULL, fs);
	struct raw_fh dir = make_dir(s, SMALL);
	struct seen *seen = calloc(1, sizeof(*seen));
	unsigned next = SMALL;

	assert_non_null(seen);
	while (!seen->eof) {
		list_some(s, ask_readdir(&dir, 0, 4096), seen);
		if (next < SMALL + 4000)
			make_files(s, "dir", next, next + 100);
		next += 100;
	}
	check_once(seen, 0, SMALL);
	free(seen);
	site_free(s);
}

static void
test_adding(void **state)
{
	adding("xfs");
	adding("ext4");
}

static void
restart(const char *fs, bool clean)
{
	struct site *s = site_new(engine, NULL, fs);
	struct raw_fh dir = make_dir(s, SMALL);
	struct seen *seen = calloc(1, sizeof(*seen));
	unsigned calls = 0;

	assert_non_null(seen);
	while (!seen->eof) {
		list_some(s, ask_readdir(&dir, 0, 8192), seen);
		if (++calls % 4 != 0)
			continue;
		if (clean) {
			site_restart(s);
			continue;
		}
		raw_close(s->r);
		harness_kill(s->h);
		site_start(s);
	}
	assert_true(calls > 8);
	check_once(seen, 0, SMALL);
	free(seen);
	site_free(s);
}

static void
test_restart(void **state)
{
	restart("xfs", true);
	restart("ext4", false);
}

static void
test_refused(void **state)
{
	struct site *s = site_new(engine, NULL, "ext4");
	struct raw_fh dir = make_dir(s, 5), file;
	struct answer a;

	raw_create(s->r, &s->root, "f", 0644, &file);
	assert_int_equal(ask(s->r, ask_readdir(&file, 0, 4096), &a),
			 NFS3ERR_NOTDIR);
	assert_true(a.attr.attributes_follow);
	assert_int_equal(ask(s->r, ask_readdirplus(&file, 0, 4096, 8192), &a),
			 NFS3ERR_NOTDIR);
	assert_true(a.attr.attributes_follow);
	assert_int_equal(ask(s->r, ask_readdir(&dir, UINT64_MAX, 4096), &a),
			 NFS3ERR_BAD_COOKIE);
	assert_true(a.attr.attributes_follow);
	assert_int_equal(chmod(site_path(s, "dir"), 0711), 0);
	ask_as(s->r, 1000, 1000);
	site_expect(s, ask_readdir(&dir, 0, 4096), NFS3ERR_ACCES);
	site_expect(s, ask_readdirplus(&dir, 0, 4096, 8192), NFS3ERR_ACCES);
	ask_as(s->r, 0, 0);
	site_expect(s, ask_rmdir(&s->root, "dir"), NFS3ERR_NOTEMPTY);
	site_free(s);
}

/* To read a directory is enough for its names, and not for what they are. */
static void
test_read_only_right(void **state)
{
	struct site *s = site_new(engine, NULL, "xfs");
	struct raw_fh dir = make_dir(s, 50);
	struct listing l;
	struct listed e;
	unsigned n = 0;

	assert_int_equal(chmod(site_path(s, "dir"), 0744), 0);
	ask_as(s->r, 1000, 1000);
	site_expect(s, ask_readdirplus(&dir, 0, 65536, 65536), NFS3_OK);
	listing_begin(&l, s->r, NFS3_READDIRPLUS);
	while (listing_next(&l, &e)) {
		n++;
		if (e.name[0] != '.')
			assert_false(e.has_attr || e.has_fh);
	}
	assert_int_equal(n, 52);
	ask_as(s->r, 0, 0);
	site_free(s);
}

/* Others
 * ------------------------------------------------------------------------
 */

/* With more listings asked for than there are workers, by one who does not take
 * his replies, another client is answered all the same. */
static void
peer_that_lists(const char *name)
{
	struct site *s = site_new(name, NULL, "xfs");
	struct raw_fh dir = make_dir(s, 20000), file;
	struct raw *other = raw_connect(s->h->port);
	struct question q = ask_readdirplus(&dir, 0, UINT32_MAX, UINT32_MAX);
	unsigned i, listings = 100;
	struct answer a;

	raw_create(s->r, &s->root, "f", 0644, &file);
	for (i = 0; i < listings; i++)
		(void)ask_send(s->r, &q);
	for (i = 0; i < 50; i++)
		assert_int_equal(ask(other, ask_getattr(&file), &a), NFS3_OK);
	for (i = 0; i < listings; i++) {
		assert_true(raw_receive(s->r));
		ask_take(s->r, NFS3_READDIRPLUS, &a);
		assert_int_equal(a.status, NFS3_OK);
		raw_forget(s->r);
	}
	raw_close(other);
	site_free(s);
}

static bool
has_reply(struct raw *r)
{
	struct pollfd p = { .fd = r->fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* A listing does not hold up what comes after it: mostly, a GETATTR that was
 * sent later is answered sooner. */
static void
overtaking(const char *name)
{
	struct site *s = site_new(name, NULL, "xfs");
	struct raw_fh dir = make_dir(s, 20000), file;
	struct raw *other = raw_connect(s->h->port);
	struct question q = ask_readdirplus(&dir, 0, UINT32_MAX, UINT32_MAX);
	unsigned i, sooner = 0;
	struct answer a;

	raw_create(s->r, &s->root, "f", 0644, &file);
	for (i = 0; i < 60; i++) {
		(void)ask_send(s->r, &q);
		assert_int_equal(ask(other, ask_getattr(&file), &a), NFS3_OK);
		sooner += !has_reply(s->r);
		assert_true(raw_receive(s->r));
		raw_forget(other);
	}
	print_message("%u of 60 overtook a listing\n", sooner);
	assert_true(sooner >= 15);
	raw_close(other);
	site_free(s);
}

static void
test_others(void **state)
{
	peer_that_lists("uring");
	peer_that_lists("threads");
	overtaking("uring");
	overtaking("threads");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_large_xfs),
		cmocka_unit_test(test_large_ext4),
		cmocka_unit_test(test_least),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_removal),
		cmocka_unit_test(test_adding),
		cmocka_unit_test(test_restart),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_read_only_right),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
