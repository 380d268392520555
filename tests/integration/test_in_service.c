/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each call that may not run twice, sent again while it is in service, on its
 * own and on a new connection, and again when it was answered: it runs once,
 * the newest retry gets the reply, and those that come later get the same
 * bytes. (What else may happen to retries is in test_drc.c.) Once an engine.
 */
#include "frozen.h"
#include "nfsacl.h"

#include <stdlib.h>
#include <string.h>

static const char *engine;

/* A reply to the record that r, or who r sent it for, holds in out. */
static void
receive_ok(struct raw *r)
{
	assert_true(raw_receive(r));
	assert_int_equal(r->accept_stat, 0);
	assert_int_equal(raw_get(r, r->body), NFS3_OK);
}

static void
expect_same(const struct raw *a, const struct raw *b)
{
	assert_int_equal(a->in_bytes, b->in_bytes);
	assert_memory_equal(a->in, b->in, a->in_bytes);
}

/* s->r holds the call, and has not sent it. */
static void
check_built(struct site *s, const char *counter)
{
	uint64_t before = harness_stat(s->h, counter);
	uint64_t attached = harness_stat(s->h, "drc_attached");
	struct raw *newest, *later = raw_connect(s->h->port);

	frozen_freeze(s);
	raw_send(s->r);
	frozen_await(s, counter, before + 1);
	raw_send(s->r);
	frozen_await(s, "drc_attached", attached + 1);
	newest = frozen_attach(s);
	frozen_thaw();
	receive_ok(newest);
	raw_send(s->r);
	receive_ok(s->r);
	expect_same(s->r, newest);
	ask_again(later, s->r);
	receive_ok(later);
	expect_same(later, newest);
	if (harness_stat(s->h, counter) != before + 1)
		fail_msg("%s: not once", counter);
	/* There is no other reply under way. */
	raw_call(s->r, 100003, 3, 0, NULL, NULL, NULL, NULL);
	raw_close(newest);
	raw_close(later);
}

static void
check(struct site *s, const char *counter, struct question q)
{
	(void)ask_build(s->r, &q);
	check_built(s, counter);
}

static void
test_each(void **state)
{
	static const struct ace acl[] = { { 0x01, 0, 6 },
					  { 0x04, 0, 4 },
					  { 0x20, 0, 0 } };
	struct site *s = site_new(engine, NULL, "xfs");
	struct raw_fh file;

	raw_create(s->r, &s->root, "file", 0644, &file);
	check(s, "nfs3.CREATE",
	      ask_create(&s->root, "g", GUARDED, ask_mode(0644)));
	check(s, "nfs3.CREATE",
	      ask_exclusive(&s->root, "x", (const uint8_t *)"verifier"));
	check(s, "nfs3.MKDIR", ask_mkdir(&s->root, "d", ask_mode(0755)));
	check(s, "nfs3.SYMLINK", ask_symlink(&s->root, "l", "target"));
	check(s, "nfs3.MKNOD",
	      ask_mknod(&s->root, "p", NF3FIFO, ask_mode(0644), 0, 0));
	check(s, "nfs3.LINK", ask_link(&file, &s->root, "hard"));
	check(s, "nfs3.RENAME", ask_rename(&s->root, "g", &s->root, "h"));
	check(s, "nfs3.REMOVE", ask_remove(&s->root, "h"));
	check(s, "nfs3.RMDIR", ask_rmdir(&s->root, "d"));
	check(s, "nfs3.SETATTR", ask_setattr(&file, ask_mode(0600), NULL));
	check(s, "nfs3.SETATTR", ask_setattr(&file, ask_size(100), NULL));
	nfsacl_build_set(s->r, &file, ACL, acl, 3);
	check_built(s, "nfsacl.SETACL");
	site_free(s);
}

/* While changes of a directory stay in service, whoever reads it or another is
 * answered. */
static void
test_reads_go_on(void **state)
{
	struct site *s = site_new(engine, NULL, "xfs");
	struct raw *r = raw_connect(s->h->port);
	struct raw_fh busy, other, file;
	struct question q;
	unsigned i;

	site_expect(s, ask_mkdir(&s->root, "busy", ask_mode(0755)), NFS3_OK);
	site_expect(s, ask_mkdir(&s->root, "other", ask_mode(0755)), NFS3_OK);
	busy = site_lookup(s, "busy");
	other = site_lookup(s, "other");
	raw_create(s->r, &busy, "file", 0644, &file);
	frozen_freeze(s);
	q = ask_mkdir(&busy, "d", ask_mode(0755));
	(void)ask_send(s->r, &q);
	q = ask_remove(&busy, "file");
	(void)ask_send(s->r, &q);
	frozen_await(s, "nfs3.REMOVE", 1);
	const struct question reads[] = {
		ask_readdir(&other, 0, 4096),
		ask_readdirplus(&other, 0, 4096, 8192),
		ask_readdir(&busy, 0, 4096),
		ask_readdirplus(&busy, 0, 4096, 8192),
		ask_lookup(&busy, "file"),
		ask_getattr(&busy),
		ask_access(&busy, 63),
		ask_read(&file, 0, 4),
		ask_fsstat(&other),
	};
	for (i = 0; i < sizeof(reads) / sizeof(reads[0]); i++)
		assert_int_equal(ask(r, reads[i], NULL), NFS3_OK);
	frozen_thaw();
	for (i = 0; i < 2; i++) {
		assert_true(raw_receive(s->r));
		assert_int_equal(raw_get(s->r, s->r->body), NFS3_OK);
	}
	raw_close(r);
	site_free(s);
}

static int
run(const char *name)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each),
		cmocka_unit_test(test_reads_go_on),
	};

	engine = name;
	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int
main(void)
{
	return run("uring") + run("threads");
}
