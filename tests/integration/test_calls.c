/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RPC as a server meets it: fragments of any size, many calls at once, calls
 * that are none, retries of calls that must not run twice.
 */
#include "harness.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct fixture {
	struct harness *h;
	struct raw *r;
	struct raw_fh root;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->h = harness_new(NULL);
	harness_start(f->h);
	f->r = raw_connect(f->h->port);
	assert_int_equal(raw_mount(f->r, f->h->export, &f->root), 0);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	raw_close(f->r);
	harness_stop(f->h);
	harness_free(f->h);
	free(f);
	return 0;
}

static void
build_write(struct raw *r, const struct raw_fh *fh, uint64_t offset,
	    const void *data, uint32_t n)
{
	WRITE3args a;

	memset(&a, 0, sizeof(a));
	a.file = raw_nfs_fh(fh);
	a.offset = offset;
	a.count = n;
	a.stable = FILE_SYNC;
	a.data.data_len = n;
	a.data.data_val = (char *)(uintptr_t)data;
	raw_build(r, 100003, 3, NFS3_WRITE, (raw_zdr_fn *)zdr_WRITE3args, &a);
}

static void
expect_ok(struct raw *r)
{
	assert_true(raw_receive(r));
	assert_int_equal(r->reply_stat, 0);
	assert_int_equal(r->accept_stat, 0);
}

/* A WRITE arrives whole whatever its fragments are. */
static void
test_fragments(void **state)
{
	static const uint32_t sizes[] = { 1, 3, 7, 40, 100, 511, 4096, 9999 };
	struct fixture *f = *state;
	uint8_t data[10001];
	WRITE3res w;
	READ3res rd;
	struct raw_fh fh;
	unsigned i, j;

	raw_create(f->r, &f->root, "f", 0644, &fh);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (j = 0; j < sizeof(data); j++)
			data[j] = (uint8_t)(j * 7 + i);
		build_write(f->r, &fh, 123, data, sizeof(data));
		raw_send_fragments(f->r, sizes[i]);
		expect_ok(f->r);
		memset(&w, 0, sizeof(w));
		raw_result(f->r, (raw_zdr_fn *)zdr_WRITE3res, &w);
		assert_int_equal(w.status, NFS3_OK);
		assert_int_equal(w.WRITE3res_u.resok.count, sizeof(data));
		assert_int_equal(raw_read(f->r, &fh, 123, sizeof(data), &rd),
				 NFS3_OK);
		assert_memory_equal(rd.READ3res_u.resok.data.data_val, data,
				    sizeof(data));
	}
}

/* Bytes of one call one by one, and empty fragments between its fragments. */
static void
test_bytes(void **state)
{
	struct fixture *f = *state;
	uint32_t mark, i;

	raw_build(f->r, 100003, 3, 0, NULL, NULL);
	mark = htonl(f->r->out_bytes | 0x80000000u);
	for (i = 0; i < 4; i++)
		raw_send_bytes(f->r, (uint8_t *)&mark + i, 1);
	for (i = 0; i < f->r->out_bytes; i++)
		raw_send_bytes(f->r, f->r->out + i, 1);
	expect_ok(f->r);

	raw_build(f->r, 100003, 3, 0, NULL, NULL);
	mark = 0;
	raw_send_bytes(f->r, &mark, 4);
	mark = htonl(f->r->out_bytes);
	raw_send_bytes(f->r, &mark, 4);
	raw_send_bytes(f->r, f->r->out, f->r->out_bytes);
	mark = 0;
	raw_send_bytes(f->r, &mark, 4);
	mark = htonl(0x80000000u);
	raw_send_bytes(f->r, &mark, 4);
	expect_ok(f->r);
}

/* Sixty calls in one send: each gets its reply, in whatever order. */
static void
test_many(void **state)
{
	struct fixture *f = *state;
	uint8_t *batch = malloc(1 << 20);
	uint32_t first = f->r->xid, n = 0, mark, i;
	uint64_t seen = 0;

	for (i = 0; i < 60; i++) {
		GETATTR3args a = { .object = raw_nfs_fh(&f->root) };

		raw_build(f->r, 100003, 3, i % 2 ? 0 : NFS3_GETATTR,
			  (raw_zdr_fn *)zdr_GETATTR3args, i % 2 ? NULL : &a);
		mark = htonl(f->r->out_bytes | 0x80000000u);
		memcpy(batch + n, &mark, 4);
		memcpy(batch + n + 4, f->r->out, f->r->out_bytes);
		n += 4 + f->r->out_bytes;
	}
	raw_send_bytes(f->r, batch, n);
	for (i = 0; i < 60; i++) {
		expect_ok(f->r);
		assert_in_range(f->r->reply_xid, first, first + 59);
		seen |= 1ull << (f->r->reply_xid - first);
	}
	assert_int_equal(seen, (1ull << 60) - 1);
	free(batch);
}

static void
send_word(struct raw *r, unsigned word, uint32_t value)
{
	value = htonl(value);
	memcpy(r->out + 4 * (size_t)word, &value, 4);
	raw_send(r);
	assert_true(raw_receive(r));
}

/* Each refusal of RFC 5531, and the connection lives on. */
static void
test_refusals(void **state)
{
	struct fixture *f = *state;
	struct raw *r = f->r;

	raw_build(r, 100003, 3, 0, NULL, NULL);
	send_word(r, 2, 3); /* RPC version 3 */
	assert_int_equal(r->reply_stat, 1);
	assert_int_equal(r->accept_stat, 0);
	assert_true(r->low == 2 && r->high == 2);
	raw_build(r, 100003, 3, 0, NULL, NULL);
	send_word(r, 3, 100099);
	assert_int_equal(r->accept_stat, 1); /* PROG_UNAVAIL */
	raw_build(r, 100003, 3, 0, NULL, NULL);
	send_word(r, 4, 4);
	assert_int_equal(r->accept_stat, 2); /* PROG_MISMATCH */
	assert_true(r->low == 3 && r->high == 3);
	raw_build(r, 100005, 3, 0, NULL, NULL);
	send_word(r, 4, 4);
	assert_int_equal(r->accept_stat, 2);
	assert_true(r->low == 1 && r->high == 3);
	raw_build(r, 100003, 3, 0, NULL, NULL);
	send_word(r, 5, 22);
	assert_int_equal(r->accept_stat, 3); /* PROC_UNAVAIL */
	raw_build(r, 100003, 3, NFS3_GETATTR, NULL, NULL);
	raw_send(r);
	assert_true(raw_receive(r));
	assert_int_equal(r->accept_stat, 4); /* GARBAGE_ARGS */
	raw_build(r, 100003, 3, 0, NULL, NULL);
	send_word(r, 6, 6); /* RPCSEC_GSS is not served */
	assert_int_equal(r->reply_stat, 1);
	assert_int_equal(r->accept_stat, 1);
	raw_build(r, 100003, 3, 0, NULL, NULL);
	send_word(r, 7, 1000); /* a credential over 400 bytes */
	assert_int_equal(r->reply_stat, 1);
	assert_int_equal(r->accept_stat, 1);
	assert_int_equal(r->low, 1); /* AUTH_BADCRED */
	raw_call(r, 100003, 3, 0, NULL, NULL, NULL, NULL);
}

/* A name as long as a record may be is answered, not cut and not dropped. */
static void
test_long_name(void **state)
{
	struct fixture *f = *state;
	char *name = malloc(300001);
	struct raw_fh fh;

	memset(name, 'n', 300000);
	name[300000] = '\0';
	assert_int_equal(raw_lookup(f->r, &f->root, name, &fh),
			 NFS3ERR_NAMETOOLONG);
	name[256] = '\0';
	assert_int_equal(raw_lookup(f->r, &f->root, name, &fh),
			 NFS3ERR_NAMETOOLONG);
	name[255] = '\0';
	assert_int_equal(raw_lookup(f->r, &f->root, name, &fh), NFS3ERR_NOENT);
	free(name);
}

static void
test_too_long(void **state)
{
	struct fixture *f = *state;
	struct raw *r = raw_connect(f->h->port);
	uint32_t mark = htonl(0x80000000u | (4u << 20) | 4096);

	raw_send_bytes(r, &mark, 4);
	assert_true(raw_closed(r));
	raw_close(r);
	/* The others are not touched. */
	raw_call(f->r, 100003, 3, 0, NULL, NULL, NULL, NULL);
}

static void
build_guarded(struct fixture *f, struct raw *r, const char *name)
{
	CREATE3args a;

	memset(&a, 0, sizeof(a));
	a.where.dir = raw_nfs_fh(&f->root);
	a.where.name = (char *)(uintptr_t)name;
	a.how.mode = GUARDED;
	raw_build(r, 100003, 3, NFS3_CREATE, (raw_zdr_fn *)zdr_CREATE3args, &a);
}

static int
create_status(struct raw *r)
{
	CREATE3res res;

	expect_ok(r);
	memset(&res, 0, sizeof(res));
	raw_result(r, (raw_zdr_fn *)zdr_CREATE3res, &res);
	return (int)res.status;
}

/* The same call again, here and on a new connection: the first reply. */
static void
test_retry(void **state)
{
	struct fixture *f = *state;
	struct raw *again = raw_connect(f->h->port);

	build_guarded(f, f->r, "once");
	raw_send(f->r);
	assert_int_equal(create_status(f->r), NFS3_OK);
	raw_send(f->r);
	assert_int_equal(create_status(f->r), NFS3_OK);
	again->xid = f->r->xid - 1;
	build_guarded(f, again, "once");
	raw_send(again);
	assert_int_equal(create_status(again), NFS3_OK);
	/* Another xid is another call. */
	build_guarded(f, again, "once");
	raw_send(again);
	assert_int_equal(create_status(again), NFS3ERR_EXIST);
	assert_true(harness_stat(f->h, "drc_hits") >= 2);
	raw_close(again);
}

/* Peers that go away at every point of a WRITE leave nothing behind (the
 * harness's stop is a leak test). */
static void
test_gone(void **state)
{
	struct fixture *f = *state;
	uint8_t data[20000] = { 1 };
	struct raw_fh fh;
	uint32_t mark, n;

	raw_create(f->r, &f->root, "g", 0644, &fh);
	for (n = 0; n < 20100; n += n < 300 ? 13 : 1711) {
		struct raw *r = raw_connect(f->h->port);

		build_write(r, &fh, 77, data, sizeof(data));
		mark = htonl(r->out_bytes | 0x80000000u);
		raw_send_bytes(r, &mark, n < 4 ? n : 4);
		if (n > 4)
			raw_send_bytes(r, r->out, n - 4);
		raw_close(r);
	}
	raw_call(f->r, 100003, 3, 0, NULL, NULL, NULL, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_fragments, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_name, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_too_long, setup, teardown),
		cmocka_unit_test_setup_teardown(test_retry, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
