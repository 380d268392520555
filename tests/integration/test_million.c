/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory of a million names, most of them hard links to one file, listed
 * while others add names to it and remove some, by calls of their own: what is
 * there all the time comes once, nothing comes twice, and whoever lists another
 * directory meanwhile does not wait for it.
 */
#include "listing.h"
#include "site.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAMES     1000000u
#define ADDED_MAX 1000000u
#define EACH      7u /* one of so many is one that may go */

static const char *engine = "uring";

/* n0 and so on, all of one file. */
static void
make_names(struct site *s)
{
	int dir;
	char name[16];
	unsigned i;

	assert_int_equal(mkdir(site_path(s, "dir"), 0755), 0);
	site_file(s, "f", 0644, 0, 0, "text");
	dir = open(site_path(s, "dir"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir >= 0);
	for (i = 0; i < NAMES; i++) {
		(void)snprintf(name, sizeof(name), "n%u", i);
		assert_int_equal(
			linkat(AT_FDCWD, site_path(s, "f"), dir, name, 0), 0);
	}
	close(dir);
}

/* A process ----------------------------------------------------------------
 */

struct other {
	pid_t pid;
	int stop;
};

static void
change_on(const struct site *s, const struct raw_fh *dir,
	  const struct raw_fh *file, int stop)
{
	struct pollfd p = { .fd = stop, .events = POLLIN };
	struct raw *r = raw_connect(s->h->port);
	char name[16];
	unsigned i;

	for (i = 0; i < ADDED_MAX && poll(&p, 1, 0) == 0; i++) {
		(void)snprintf(name, sizeof(name), "a%u", i);
		if (ask(r, ask_link(file, dir, name), NULL) != NFS3_OK)
			_exit(1);
		(void)snprintf(name, sizeof(name), "n%u", i * EACH);
		if (i * EACH < NAMES &&
		    ask(r, ask_remove(dir, name), NULL) != NFS3_OK)
			_exit(1);
		raw_forget(r);
	}
	_exit(i > 100 ? 0 : 2);
}

/* A small directory, whole, with each call. */
static void
list_on(const struct site *s, const struct raw_fh *dir, int stop)
{
	struct pollfd p = { .fd = stop, .events = POLLIN };
	struct raw *r = raw_connect(s->h->port);
	unsigned i, entries;
	struct listing l;
	struct listed e;

	for (i = 0; poll(&p, 1, 0) == 0; i++) {
		if (ask(r, ask_readdirplus(dir, 0, 65536, 65536), NULL) !=
		    NFS3_OK)
			_exit(1);
		listing_begin(&l, r, NFS3_READDIRPLUS);
		for (entries = 0; listing_next(&l, &e);)
			entries++;
		if (!l.eof || entries != 5)
			_exit(1);
		raw_forget(r);
	}
	_exit(i > 100 ? 0 : 2);
}

static struct other
other_start(const struct site *s, const struct raw_fh *dir,
	    const struct raw_fh *file)
{
	struct other o;
	int stop[2];

	assert_int_equal(pipe2(stop, O_CLOEXEC), 0);
	o.pid = fork();
	assert_true(o.pid >= 0);
	if (o.pid == 0) {
		close(stop[1]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (file != NULL)
			change_on(s, dir, file, stop[0]);
		else
			list_on(s, dir, stop[0]);
	}
	close(stop[0]);
	o.stop = stop[1];
	return o;
}

static void
other_end(struct other o)
{
	int status;

	assert_int_equal(write(o.stop, "", 1), 1);
	close(o.stop);
	assert_int_equal(waitpid(o.pid, &status, 0), o.pid);
	assert_int_equal(status, 0);
}

/* Listing --------------------------------------------------------------------
 */

struct seen {
	uint8_t there[NAMES], added[ADDED_MAX];
	uint64_t fileid; /* of them all */
	uint64_t cookie;
	bool eof;
};

static void
see(struct seen *seen, const struct listed *e)
{
	unsigned long i = strtoul(e->name + 1, NULL, 10);

	if (e->name[0] == '.')
		return;
	assert_true(e->name[0] == 'n' || e->name[0] == 'a');
	assert_true(i < NAMES);
	if ((e->name[0] == 'n' ? seen->there : seen->added)[i]++ > 0)
		fail_msg("%s twice", e->name);
	assert_int_equal(e->fileid, seen->fileid);
}

/* READDIR and READDIRPLUS in turns: their cookies are the same. */
static unsigned
list_all(struct site *s, const struct raw_fh *dir, struct seen *seen)
{
	struct listing l;
	struct listed e;
	unsigned calls;

	for (calls = 0; !seen->eof; calls++) {
		struct question q =
			calls % 4 == 0 ? ask_readdirplus(dir, seen->cookie,
							 UINT32_MAX, 262144)
				       : ask_readdir(dir, seen->cookie, 262144);

		site_expect(s, q, NFS3_OK);
		listing_begin(&l, s->r, q.proc);
		while (listing_next(&l, &e)) {
			see(seen, &e);
			seen->cookie = e.cookie;
		}
		seen->eof = l.eof;
		raw_forget(s->r);
	}
	return calls;
}

static void
test_listed(void **state)
{
	struct site *s = site_prepare(
		engine, "rw,async,no_root_squash,insecure,fsid=5", NULL);
	struct seen *seen = calloc(1, sizeof(*seen));
	struct raw_fh dir, file, small;
	struct other changes, lists;
	unsigned i, calls;

	assert_non_null(seen);
	if (harness_sh("mount -t tmpfs -o nr_inodes=0,size=1g none %s && "
		       "mkdir -m 755 %s/small && cd %s/small && touch 1 2 3",
		       s->h->export, s->h->export, s->h->export) != 0) {
		print_message("skip: no tmpfs can be mounted here\n");
		skip();
	}
	make_names(s);
	site_start(s);
	dir = site_lookup(s, "dir");
	small = site_lookup(s, "small");
	file = site_lookup(s, "f");
	seen->fileid = ask_attr(s->r, &file).fileid;
	changes = other_start(s, &dir, &file);
	lists = other_start(s, &small, NULL);
	calls = list_all(s, &dir, seen);
	other_end(changes);
	other_end(lists);
	for (i = 0; i < NAMES; i++)
		if (i % EACH != 0 && seen->there[i] != 1)
			fail_msg("n%u: not seen", i);
	print_message("%u calls\n", calls);
	free(seen);
	site_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
