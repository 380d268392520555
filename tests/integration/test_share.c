/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection never holds more than its share of the buffers: a peer that
 * asks for much and reads nothing of it stands in nobody else's way. The other
 * peer's READ is answered while the first still waits; had it been answered
 * only because the first was given up, the server's count of timeouts would say
 * so.
 */
#include "harness.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB   (1u << 20)
#define READS 24u /* of 4 MiB, in one segment: three times the pool */
#define LISTS                                                                  \
	200u /* of 256 KiB: more than the pool, and the socket's buffers */
#define NAMES 900u

static struct harness *
start(const char *engine)
{
	struct harness *h = harness_new(NULL);

	/* The least that a thread can have. */
	harness_conf(h, "[nfsd]\nthreads = 1\n[limits]\n"
			"buffer-memory = 1M\n");
	harness_arg(h, "--engine");
	harness_arg(h, engine);
	return h;
}

static void
make_file(struct harness *h, const char *name, size_t bytes)
{
	int fd = open(harness_path(h, name), O_WRONLY | O_CREAT | O_CLOEXEC,
		      0644);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	close(fd);
}

/* The call in r->out, behind n bytes of other calls. */
static size_t
batch_add(uint8_t *batch, size_t n, const struct raw *r)
{
	uint32_t mark = htonl(0x80000000u | r->out_bytes);

	memcpy(batch + n, &mark, 4);
	memcpy(batch + n + 4, r->out, r->out_bytes);
	return n + 4 + r->out_bytes;
}

static void
other_peer_is_served(struct harness *h, const struct raw_fh *fh)
{
	struct raw *r = raw_connect(h->port);
	READ3res res;

	while (harness_stat(h, "stalls_buffer") == 0 &&
	       harness_stat(h, "buf_waits") == 0)
		; /* until the first is at a limit */
	for (int i = 0; i < 20; i++) {
		assert_int_equal(raw_read(r, fh, (uint64_t)i * 4096, MIB, &res),
				 NFS3_OK);
		assert_int_equal(res.READ3res_u.resok.count, MIB);
	}
	raw_close(r);
	assert_int_equal(harness_stat(h, "timeouts"), 0);
}

static void
reads(const char *engine)
{
	struct harness *h = start(engine);
	struct raw_fh root, big, small;
	static uint8_t batch[READS * 256];
	struct raw *r;
	size_t n = 0;

	make_file(h, "big", 4 * MIB);
	make_file(h, "small", 4 * MIB);
	harness_start(h);
	r = raw_connect(h->port);
	assert_int_equal(raw_mount(r, h->export, &root), 0);
	assert_int_equal(raw_lookup(r, &root, "big", &big), NFS3_OK);
	assert_int_equal(raw_lookup(r, &root, "small", &small), NFS3_OK);
	for (unsigned i = 0; i < READS; i++) {
		READ3args args = { .file = raw_nfs_fh(&big), .count = 4 * MIB };

		raw_build(r, 100003, 3, NFS3_READ, (raw_zdr_fn *)zdr_READ3args,
			  &args);
		n = batch_add(batch, n, r);
	}
	raw_send_bytes(r, batch, n);
	other_peer_is_served(h, &small);
	raw_close(r);
	harness_stop(h);
	harness_free(h);
}

static void
lists(const char *engine)
{
	struct harness *h = start(engine);
	struct raw_fh root, dir, small;
	char name[260];
	struct raw *r;

	assert_int_equal(mkdir(harness_path(h, "d"), 0755), 0);
	for (unsigned i = 0; i < NAMES; i++) {
		(void)snprintf(name, sizeof(name), "d/%0200u", i);
		make_file(h, name, 0);
	}
	make_file(h, "small", 4 * MIB);
	harness_start(h);
	r = raw_connect(h->port);
	assert_int_equal(raw_mount(r, h->export, &root), 0);
	assert_int_equal(raw_lookup(r, &root, "d", &dir), NFS3_OK);
	assert_int_equal(raw_lookup(r, &root, "small", &small), NFS3_OK);
	for (unsigned i = 0; i < LISTS; i++) {
		READDIRPLUS3args args = { .dir = raw_nfs_fh(&dir),
					  .dircount = 256u << 10,
					  .maxcount = 256u << 10 };

		raw_build(r, 100003, 3, NFS3_READDIRPLUS,
			  (raw_zdr_fn *)zdr_READDIRPLUS3args, &args);
		raw_send(r);
	}
	other_peer_is_served(h, &small);
	raw_close(r);
	harness_stop(h);
	harness_free(h);
}

static void
test_reads(void **state)
{
	reads("uring");
	reads("threads");
}

static void
test_lists(void **state)
{
	lists("uring");
	lists("threads");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
