/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The duplicate request cache over the wire, once a call was answered: a retry
 * gets the first reply, byte for byte, here and on another connection; what
 * only looks like one is another call. Once an engine.
 */
#include "site.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *engine;

/* Retries of a call that was answered, here and on a new connection: the first
 * reply, byte for byte. */
static void
check_replay(struct site *s, struct question q)
{
	struct raw *r = raw_connect(s->h->port);
	uint8_t *first;
	uint32_t n;

	if (ask(s->r, q, NULL) != NFS3_OK)
		fail_msg("procedure %u: not OK", q.proc);
	n = s->r->in_bytes;
	first = malloc(n);
	assert_non_null(first);
	memcpy(first, s->r->in, n);
	raw_send(s->r);
	assert_true(raw_receive(s->r));
	assert_int_equal(s->r->in_bytes, n);
	assert_memory_equal(s->r->in, first, n);
	ask_again(r, s->r);
	assert_true(raw_receive(r));
	assert_int_equal(r->in_bytes, n);
	assert_memory_equal(r->in, first, n);
	free(first);
	raw_close(r);
}

/* Each procedure that is not idempotent. */
static void
test_replay(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	struct raw_fh file;
	nfstime3 ctime;

	raw_create(s->r, &s->root, "file", 0644, &file);
	check_replay(s, ask_create(&s->root, "g", GUARDED, ask_mode(0644)));
	check_replay(s, ask_mkdir(&s->root, "d", ask_mode(0755)));
	check_replay(s, ask_symlink(&s->root, "l", "target"));
	check_replay(s,
		     ask_mknod(&s->root, "p", NF3FIFO, ask_mode(0644), 0, 0));
	check_replay(s, ask_link(&file, &s->root, "hard"));
	check_replay(s, ask_rename(&s->root, "g", &s->root, "h"));
	check_replay(s, ask_remove(&s->root, "h"));
	check_replay(s, ask_rmdir(&s->root, "d"));
	ctime = ask_attr(s->r, &file).ctime;
	check_replay(s, ask_setattr(&file, ask_mode(0600), &ctime));
	assert_int_equal(harness_stat(s->h, "drc_hits"), 18);
	/* A refusal is a reply like any other. */
	assert_int_equal(ask(s->r, ask_rmdir(&s->root, "d"), NULL),
			 NFS3ERR_NOENT);
	assert_int_equal(mkdir(site_path(s, "d"), 0755), 0);
	s->r->xid--;
	assert_int_equal(ask(s->r, ask_rmdir(&s->root, "d"), NULL),
			 NFS3ERR_NOENT);
	site_free(s);
}

/* Another client, other bytes, another procedure: another call. */
static void
test_others(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	struct raw *r = site_connect_from(s, "127.0.0.2");
	struct question q = ask_create(&s->root, "f", GUARDED, ask_mode(0644));
	uint32_t xid = s->r->xid;

	assert_int_equal(ask(s->r, q, NULL), NFS3_OK);
	r->xid = xid;
	assert_int_equal(ask(r, q, NULL), NFS3ERR_EXIST);
	r->xid = xid;
	assert_int_equal(ask(r, q, NULL), NFS3ERR_EXIST);
	s->r->xid = xid;
	assert_int_equal(ask(s->r, ask_remove(&s->root, "f"), NULL), NFS3_OK);
	s->r->xid = xid;
	q = ask_create(&s->root, "g", GUARDED, ask_mode(0644));
	assert_int_equal(ask(s->r, q, NULL), NFS3_OK);
	s->r->xid = xid;
	q = ask_create(&s->root, "f", GUARDED, ask_mode(0644));
	assert_int_equal(ask(s->r, q, NULL), NFS3_OK);
	/* That was the first call's reply: there is no such file. */
	assert_int_equal(access(site_path(s, "f"), F_OK), -1);
	assert_int_equal(harness_stat(s->h, "drc_hits"), 2);
	raw_close(r);
	site_free(s);
}

/* What is idempotent runs each time and takes no room; two WRITEs that differ
 * only behind their first 256 bytes are two. */
static void
test_not_kept(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	uint8_t data[4096] = { 0 }, back[4096];
	struct raw_fh fh;
	uint64_t entries;
	struct answer a;
	uint32_t xid;

	raw_create(s->r, &s->root, "f", 0644, &fh);
	entries = harness_stat(s->h, "drc_entries");
	assert_int_equal(entries, 1);
	xid = s->r->xid;
	ask(s->r, ask_write(&fh, 0, data, sizeof(data), FILE_SYNC), &a);
	assert_int_equal(a.status, NFS3_OK);
	s->r->xid = xid;
	data[4000] = 1;
	ask(s->r, ask_write(&fh, 0, data, sizeof(data), FILE_SYNC), &a);
	assert_int_equal(a.status, NFS3_OK);
	ask(s->r, ask_read(&fh, 0, sizeof(back)), &a);
	assert_int_equal(a.status, NFS3_OK);
	assert_memory_equal(a.u.read.data.data_val, data, sizeof(data));
	ask(s->r, ask_getattr(&fh), &a);
	ask(s->r, ask_lookup(&s->root, "f"), &a);
	ask(s->r, ask_access(&fh, 63), &a);
	ask(s->r, ask_readdir(&s->root, 0, 4096), &a);
	ask(s->r, ask_commit(&fh), &a);
	assert_int_equal(harness_stat(s->h, "drc_entries"), entries);
	assert_int_equal(harness_stat(s->h, "drc_hits"), 0);
	site_free(s);
}

static int
run(const char *name)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replay),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_not_kept),
	};

	engine = name;
	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int
main(void)
{
	return run("uring") + run("threads");
}
