/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MOUNT over the wire: which paths are given out and which are refused with
 * what, the list of mounts over the server's end, the list of exports, and
 * version 1.
 */
#include "site.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *engine = "uring";

/* MNT of the export's path followed by more. */
static int
mount_more(struct site *s, const char *more, struct raw_fh *fh)
{
	char path[2000];

	(void)snprintf(path, sizeof(path), "%s%s", s->h->export, more);
	return raw_mount(s->r, path, fh);
}

static void
expect_mount(struct site *s, const char *more, const struct raw_fh *want)
{
	struct raw_fh fh;
	int status = mount_more(s, more, &fh);

	if (status != MNT3_OK)
		fail_msg("%s: %d", more, status);
	assert_int_equal(fh.bytes, want->bytes);
	assert_memory_equal(fh.data, want->data, fh.bytes);
}

static void
expect_refusal(struct site *s, const char *more, int status)
{
	struct raw_fh fh;
	int got = mount_more(s, more, &fh);

	if (got != status)
		fail_msg("%s: %d, not %d", more, got, status);
}

/* Paths
 * ------------------------------------------------------------------------
 */

static void
make_tree(struct site *s)
{
	assert_int_equal(mkdir(site_path(s, "dir"), 0700), 0);
	assert_int_equal(mkdir(site_path(s, "dir/sub"), 0700), 0);
	site_file(s, "file", 0644, 0, 0, "x");
	assert_int_equal(symlink("dir/sub", site_path(s, "in")), 0);
	assert_int_equal(symlink("file", site_path(s, "tofile")), 0);
	assert_int_equal(symlink("nowhere", site_path(s, "loose")), 0);
	assert_int_equal(symlink("loop", site_path(s, "loop")), 0);
	assert_int_equal(symlink("..", site_path(s, "up")), 0);
	assert_int_equal(symlink("../..", site_path(s, "dir/up2")), 0);
	assert_int_equal(symlink("/etc", site_path(s, "out")), 0);
	assert_int_equal(symlink("/proc/self/root", site_path(s, "magic")), 0);
	assert_int_equal(symlink(s->h->export, site_path(s, "round")), 0);
}

static void
test_paths(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	struct raw_fh dir, sub;

	make_tree(s);
	dir = site_lookup(s, "dir");
	assert_int_equal(raw_lookup(s->r, &dir, "sub", &sub), NFS3_OK);
	/* Who may mount is not a matter of the caller's ids. */
	ask_as(s->r, 4321, 4321);
	expect_mount(s, "", &s->root);
	expect_mount(s, "/", &s->root);
	expect_mount(s, "///", &s->root);
	expect_mount(s, "/.", &s->root);
	expect_mount(s, "/dir", &dir);
	expect_mount(s, "/dir/", &dir);
	expect_mount(s, "//dir/./sub/.//", &sub);
	expect_mount(s, "/dir/sub/..", &dir);
	expect_mount(s, "/dir/sub/../../dir", &dir);
	expect_mount(s, "/in", &sub);
	ask_as(s->r, 0, 0);
	site_free(s);
}

static void
test_refused(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	char more[1500];
	struct raw_fh fh;

	make_tree(s);
	expect_refusal(s, "/file", MNT3ERR_NOTDIR);
	expect_refusal(s, "/file/", MNT3ERR_NOTDIR);
	expect_refusal(s, "/file/x", MNT3ERR_NOTDIR);
	expect_refusal(s, "/tofile", MNT3ERR_NOTDIR);
	expect_refusal(s, "/none", MNT3ERR_NOENT);
	expect_refusal(s, "/dir/none/deep", MNT3ERR_NOENT);
	expect_refusal(s, "/loose", MNT3ERR_NOENT);
	expect_refusal(s, "/loop", MNT3ERR_ACCES);
	expect_refusal(s, "/..", MNT3ERR_ACCES);
	expect_refusal(s, "/../..", MNT3ERR_ACCES);
	expect_refusal(s, "/../../../etc", MNT3ERR_ACCES);
	expect_refusal(s, "/dir/../..", MNT3ERR_ACCES);
	expect_refusal(s, "/../state", MNT3ERR_ACCES);
	expect_refusal(s, "x", MNT3ERR_ACCES);
	expect_refusal(s, "/up", MNT3ERR_ACCES);
	expect_refusal(s, "/dir/up2", MNT3ERR_ACCES);
	expect_refusal(s, "/dir/up2/state", MNT3ERR_ACCES);
	expect_refusal(s, "/out", MNT3ERR_ACCES);
	expect_refusal(s, "/out/ssl", MNT3ERR_ACCES);
	expect_refusal(s, "/magic", MNT3ERR_ACCES);
	expect_refusal(s, "/round", MNT3ERR_ACCES);
	assert_int_equal(raw_mount(s->r, "/", &fh), MNT3ERR_ACCES);
	assert_int_equal(raw_mount(s->r, "", &fh), MNT3ERR_ACCES);
	assert_int_equal(raw_mount(s->r, s->h->export + 1, &fh), MNT3ERR_ACCES);
	assert_int_equal(raw_mount(s->r, s->h->dir, &fh), MNT3ERR_ACCES);
	memset(more, '/', sizeof(more));
	more[sizeof(more) - 1] = '\0';
	expect_refusal(s, more, MNT3ERR_NAMETOOLONG);
	more[900] = '\0';
	expect_mount(s, more, &s->root);
	/* One name over NAME_MAX. */
	memset(more + 1, 'n', 256);
	more[257] = '\0';
	expect_refusal(s, more, MNT3ERR_NAMETOOLONG);
	/* A refusal is told, with what was asked for. */
	assert_true(harness_logged(s->h, "127.0.0.1 may not mount"));
	site_free(s);
}

/* Of a path with a NUL nothing counts, not even what stands before it. */
static void
test_nul(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	char path[400];
	uint32_t n, word;

	n = (uint32_t)snprintf(path, sizeof(path), "%s#/dir", s->h->export);
	path[strlen(s->h->export)] = '\0';
	raw_build(s->r, 100005, 3, MOUNT3_MNT, NULL, NULL);
	word = htonl(n);
	raw_append(s->r, &word, 4);
	raw_append(s->r, path, n);
	raw_append(s->r, "\0\0\0", -n & 3);
	raw_send(s->r);
	assert_true(raw_receive(s->r));
	assert_int_equal(s->r->accept_stat, 0);
	memcpy(&word, s->r->in + s->r->body, 4);
	assert_int_equal(ntohl(word), MNT3ERR_INVAL);
	site_free(s);
}

/* The directory that a mount covers, since only it is in the export. */
static void
test_mount_point(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	struct raw_fh dir;

	assert_int_equal(mkdir(site_path(s, "dir"), 0755), 0);
	dir = site_lookup(s, "dir");
	if (mount("none", site_path(s, "dir"), "tmpfs", 0, "") != 0) {
		assert_int_equal(errno, EPERM);
		site_free(s);
		print_message("skip: no right to mount here\n");
		skip();
	}
	assert_int_equal(mkdir(site_path(s, "dir/inside"), 0755), 0);
	expect_mount(s, "/dir", &dir);
	expect_refusal(s, "/dir/inside", MNT3ERR_NOENT);
	assert_int_equal(umount(site_path(s, "dir")), 0);
	site_free(s);
}

/* An export below another: the longest path counts, with its own options; what
 * is reached from above stays in the upper one. */
static void
test_nested(void **state)
{
	struct site *s = site_prepare(engine, NULL, NULL);
	struct raw_fh upper, lower, deep;
	char line[600];

	assert_int_equal(mkdir(site_path(s, "sub"), 0755), 0);
	assert_int_equal(mkdir(site_path(s, "sub/deep"), 0777), 0);
	assert_int_equal(mkdir(site_path(s, "subway"), 0777), 0);
	(void)snprintf(line, sizeof(line), "%s/sub *(ro,insecure)",
		       s->h->export);
	harness_arg(s->h, "--export");
	harness_arg(s->h, line);
	site_start(s);
	upper = site_lookup(s, "sub");
	assert_int_equal(mount_more(s, "/sub", &lower), 0);
	assert_true(upper.bytes != lower.bytes ||
		    memcmp(upper.data, lower.data, upper.bytes) != 0);
	assert_int_equal(mount_more(s, "/sub/deep", &deep), 0);
	assert_int_equal(ask(s->r, ask_mkdir(&deep, "d", ask_mode(0755)), NULL),
			 NFS3ERR_ROFS);
	assert_int_equal(
		ask(s->r, ask_mkdir(&upper, "d", ask_mode(0755)), NULL),
		NFS3_OK);
	assert_int_equal(mount_more(s, "/subway", &deep), 0);
	assert_int_equal(ask(s->r, ask_mkdir(&deep, "d", ask_mode(0755)), NULL),
			 NFS3_OK);
	/* Its root is a root. */
	assert_int_equal(raw_lookup(s->r, &lower, "..", &deep), NFS3_OK);
	assert_memory_equal(deep.data, lower.data, lower.bytes);
	site_free(s);
}

/* Lists
 * ------------------------------------------------------------------------
 */

struct reader {
	const struct raw *r;
	uint32_t at;
};

static uint32_t
read_word(struct reader *d)
{
	uint32_t w;

	assert_true(d->at + 4 <= d->r->in_bytes);
	memcpy(&w, d->r->in + d->at, 4);
	d->at += 4;
	return ntohl(w);
}

static void
read_text(struct reader *d, char text[1025])
{
	uint32_t n = read_word(d);

	assert_true(n <= 1024 && d->at + n <= d->r->in_bytes);
	memcpy(text, d->r->in + d->at, n);
	text[n] = '\0';
	d->at += (n + 3) & ~3u;
}

static struct reader
list_of(struct site *s, uint32_t vers, uint32_t proc)
{
	raw_call(s->r, 100005, vers, proc, NULL, NULL, NULL, NULL);
	return (struct reader){ s->r, s->r->body };
}

/* Of versions 1 and 2, and of version 2. */
#define EXPORTALL 6u
#define PATHCONF  7u

#define TEXT_BYTES 8000u

/* A word more, separated by a space. */
static void
add_word(char text[TEXT_BYTES], const char *word)
{
	size_t n = strlen(text);

	(void)snprintf(text + n, TEXT_BYTES - n, "%s%s", n > 0 ? " " : "",
		       word);
}

/* DUMP, as "host path host path". */
static void
expect_dump(struct site *s, const char *want)
{
	struct reader d = list_of(s, 3, MOUNT3_DUMP);
	char got[TEXT_BYTES] = "", text[1025];
	unsigned i;

	while (read_word(&d) == 1) {
		for (i = 0; i < 2; i++) {
			read_text(&d, text);
			add_word(got, text);
		}
	}
	assert_int_equal(d.at, s->r->in_bytes);
	assert_string_equal(got, want);
}

static void
call_umnt(struct site *s, const char *path)
{
	char *arg = (char *)path;

	raw_call(s->r, 100005, 3, MOUNT3_UMNT, (raw_zdr_fn *)zdr_dirpath, &arg,
		 NULL, NULL);
	assert_int_equal(s->r->in_bytes, s->r->body);
}

static void
test_dump(void **state)
{
	struct site *s = site_prepare(engine, NULL, NULL);
	char one[400], both[900], dir[400];
	struct raw_fh fh;

	(void)snprintf(one, sizeof(one), "127.0.0.1 %s", s->h->export);
	(void)snprintf(dir, sizeof(dir), "%s/dir", s->h->export);
	(void)snprintf(both, sizeof(both), "%s 127.0.0.1 %s", one, dir);
	assert_int_equal(mkdir(dir, 0755), 0);
	harness_start(s->h);
	s->r = raw_connect(s->h->port);
	expect_dump(s, "");
	assert_int_equal(mount_more(s, "", &s->root), 0);
	expect_dump(s, one);
	/* Again is no second mount, a refused one none at all. */
	assert_int_equal(mount_more(s, "/.", &fh), 0);
	expect_refusal(s, "/none", MNT3ERR_NOENT);
	expect_dump(s, one);
	assert_int_equal(mount_more(s, "/dir/", &fh), 0);
	expect_dump(s, both);
	site_restart(s);
	expect_dump(s, both);
	raw_close(s->r);
	harness_kill(s->h);
	harness_start(s->h);
	s->r = raw_connect(s->h->port);
	expect_dump(s, both);
	call_umnt(s, dir);
	expect_dump(s, one);
	call_umnt(s, "/not/mounted");
	call_umnt(s, "");
	expect_dump(s, one);
	assert_int_equal(mount_more(s, "/dir", &fh), 0);
	raw_call(s->r, 100005, 3, MOUNT3_UMNTALL, NULL, NULL, NULL, NULL);
	assert_int_equal(s->r->in_bytes, s->r->body);
	expect_dump(s, "");
	/* UMNT takes no handle back: it is a hint and no more. */
	assert_int_equal(ask(s->r, ask_getattr(&fh), NULL), NFS3_OK);
	site_free(s);
}

/* EXPORT, as "path client client ; path client". */
static void
expect_exports(struct site *s, uint32_t vers, uint32_t proc, const char *want)
{
	struct reader d = list_of(s, vers, proc);
	char got[TEXT_BYTES] = "", text[1025];

	while (read_word(&d) == 1) {
		read_text(&d, text);
		if (got[0] != '\0')
			add_word(got, ";");
		add_word(got, text);
		while (read_word(&d) == 1) {
			read_text(&d, text);
			add_word(got, text);
		}
	}
	assert_int_equal(d.at, s->r->in_bytes);
	assert_string_equal(got, want);
}

static void
test_exports(void **state)
{
	struct site *s = site_prepare(engine, NULL, NULL);
	char line[800], want[1200], dir[400];

	(void)snprintf(dir, sizeof(dir), "%s/second", s->h->dir);
	assert_int_equal(mkdir(dir, 0755), 0);
	(void)snprintf(line, sizeof(line),
		       "%s 192.0.2.0/24(rw) *.example.org(ro) "
		       "127.0.0.1(ro,insecure)",
		       dir);
	harness_arg(s->h, "--export");
	harness_arg(s->h, line);
	site_start(s);
	(void)snprintf(want, sizeof(want),
		       "%s * ; %s 127.0.0.1 192.0.2.0/24 *.example.org",
		       s->h->export, dir);
	expect_exports(s, 3, MOUNT3_EXPORT, want);
	expect_exports(s, 2, MOUNT1_EXPORT, want);
	expect_exports(s, 1, MOUNT1_EXPORT, want);
	expect_exports(s, 2, EXPORTALL, want);
	expect_exports(s, 1, EXPORTALL, want);
	site_free(s);
}

/* Of the old versions only what needs no NFSv2 handle. */
static void
expect_version(struct site *s, uint32_t vers)
{
	char *arg = s->h->export;
	uint32_t status;

	raw_call(s->r, 100005, vers, MOUNT1_UMNTALL, NULL, NULL, NULL, NULL);
	raw_call(s->r, 100005, vers, MOUNT1_MNT, (raw_zdr_fn *)zdr_dirpath,
		 &arg, NULL, NULL);
	assert_int_equal(s->r->in_bytes, s->r->body + 4);
	memcpy(&status, s->r->in + s->r->body, 4);
	assert_int_not_equal(status, 0);
	expect_dump(s, "");
	assert_int_equal(raw_mount(s->r, arg, &s->root), 0);
	raw_call(s->r, 100005, vers, MOUNT1_UMNT, (raw_zdr_fn *)zdr_dirpath,
		 &arg, NULL, NULL);
	expect_dump(s, "");
}

static void
test_old_versions(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);

	expect_version(s, 1);
	expect_version(s, 2);
	raw_build(s->r, 100005, 1, PATHCONF, NULL, NULL);
	raw_send(s->r);
	assert_true(raw_receive(s->r));
	assert_int_equal(s->r->accept_stat, 3); /* PROC_UNAVAIL */
	assert_int_equal(harness_stat(s->h, "mount.EXPORTALL"), 0);
	site_free(s);
}

/* PATHCONF of path: the words that follow each other. */
static struct reader
pathconf_of(struct site *s, const char *path)
{
	char *arg = (char *)path;

	raw_call(s->r, 100005, 2, PATHCONF, (raw_zdr_fn *)zdr_dirpath, &arg,
		 NULL, NULL);
	assert_int_equal(s->r->in_bytes, s->r->body + 40);
	return (struct reader){ s->r, s->r->body };
}

/* What pathconf(3) says here of the same directory. */
static void
test_pathconf(void **state)
{
	static const int name[] = { _PC_LINK_MAX, _PC_MAX_CANON, _PC_MAX_INPUT,
				    _PC_NAME_MAX, _PC_PATH_MAX,  _PC_PIPE_BUF };
	struct site *s = site_new(engine, NULL, "ext4");
	struct reader d = pathconf_of(s, s->h->export);
	char none[400];
	unsigned i;

	for (i = 0; i < sizeof(name) / sizeof(*name); i++)
		assert_int_equal(read_word(&d),
				 pathconf(s->h->export, name[i]));
	for (; i < 10; i++)
		assert_int_equal(read_word(&d), 0);
	(void)snprintf(none, sizeof(none), "%s/none", s->h->export);
	d = pathconf_of(s, none);
	for (i = 0; i < 8; i++)
		assert_int_equal(read_word(&d), 0);
	assert_int_equal(read_word(&d), 1);
	assert_int_equal(harness_stat(s->h, "mount.PATHCONF"), 2);
	site_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_nul),
		cmocka_unit_test(test_mount_point),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_dump),
		cmocka_unit_test(test_exports),
		cmocka_unit_test(test_old_versions),
		cmocka_unit_test(test_pathconf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
