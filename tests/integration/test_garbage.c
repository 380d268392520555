/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments that are none, over the wire: discriminants out of their range, and
 * each procedure's arguments a word too short and a word too long. They are
 * garbage (RFC 5531, section 9), nothing is done, and the connection lives on.
 */
#include "site.h"

#include <arpa/inet.h>
#include <string.h>

static const char *engine = "uring";

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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_discriminants),
		cmocka_unit_test(test_cut_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
