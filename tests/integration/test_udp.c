/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is served by UDP: MOUNT and RQUOTA always, NFS where the configuration
 * says so, cut to what a datagram holds; duplicate requests; what is no call,
 * or too long; and peers beyond the limit. From which address a reply leaves,
 * and rpcbind, are udp.sh's.
 */
#include "control.h"
#include "listing.h"
#include "site.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DATA_MAX     (32u << 10)
#define DATAGRAM_MAX (DATA_MAX + 1024u)
#define PEERS_MAX    512u

#define PROG_UNAVAIL 1u
#define GARBAGE_ARGS 4u
#define SYSTEM_ERR   5u

static const char engine[] = "uring";

/* The server, and root by UDP in the connection's place where NFS is served. */
static struct site *
site_with(const char *conf)
{
	struct site *s = site_prepare(engine, NULL, NULL);

	harness_conf(s->h, conf);
	site_start(s);
	return s;
}

static struct site *
site_by_udp(void)
{
	struct site *s = site_with("[nfsd]\nudp = yes\n");

	raw_close(s->r);
	s->r = raw_connect_udp(s->h->port);
	return s;
}

/* accept_stat of a call without arguments. */
static uint32_t
verdict(struct raw *r, uint32_t prog, uint32_t vers, uint32_t proc)
{
	raw_build(r, prog, vers, proc, NULL, NULL);
	raw_send(r);
	assert_true(raw_receive(r));
	assert_int_equal(r->reply_xid, r->xid - 1);
	assert_int_equal(r->reply_stat, 0);
	return r->accept_stat;
}

/* Nothing was answered, and nothing will be: the next reply is the next
 * call's. */
static void
expect_silence(struct raw *r)
{
	assert_int_equal(verdict(r, MOUNT_PROGRAM, 3, 0), 0);
}

/* Which programs ----------------------------------------------------------- */

static void
test_programs(void **state)
{
	static const uint32_t always[][2] = {
		{ 100005, 3 }, { 100005, 2 }, { 100005, 1 },
		{ 100011, 1 }, { 100011, 2 },
	};
	static const uint32_t nfs[][2] = { { 100003, 3 }, { 100227, 3 } };
	struct site *s = site_new(engine, NULL, NULL);
	struct raw *r = raw_connect_udp(s->h->port);
	unsigned i;

	for (i = 0; i < sizeof(always) / sizeof(*always); i++)
		assert_int_equal(verdict(r, always[i][0], always[i][1], 0), 0);
	for (i = 0; i < 2; i++)
		assert_int_equal(verdict(r, nfs[i][0], nfs[i][1], 0),
				 PROG_UNAVAIL);
	raw_close(r);
	site_free(s);
	s = site_by_udp();
	for (i = 0; i < 2; i++)
		assert_int_equal(verdict(s->r, nfs[i][0], nfs[i][1], 0), 0);
	site_free(s);
}

/* The reply of one is that of the other, but for the xid. */
static void
expect_same(struct raw *a, struct raw *b, uint32_t proc)
{
	assert_int_equal(verdict(a, MOUNT_PROGRAM, 3, proc), 0);
	assert_int_equal(verdict(b, MOUNT_PROGRAM, 3, proc), 0);
	assert_int_equal(a->in_bytes, b->in_bytes);
	assert_true(a->in_bytes > a->body + 4);
	assert_memory_equal(a->in + 4, b->in + 4, a->in_bytes - 4);
}

static void
test_mount(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	struct raw *r = raw_connect_udp(s->h->mount_port);
	struct raw_fh fh;

	assert_int_equal(raw_mount(r, s->h->export, &fh), 0);
	site_expect_same(&fh, &s->root);
	expect_same(r, s->r, MOUNT3_DUMP);
	expect_same(r, s->r, MOUNT3_EXPORT);
	assert_int_equal(raw_mount(r, "/none", &fh), MNT3ERR_ACCES);
	/* A quota there is not, but it is asked for. */
	raw_build(r, 100011, 1, 1, NULL, NULL);
	raw_put_opaque(r, s->h->export, (uint32_t)strlen(s->h->export));
	raw_put(r, 0);
	raw_send(r);
	assert_true(raw_receive(r));
	assert_int_equal(r->accept_stat, 0);
	assert_int_equal(raw_get(r, r->body), 2); /* Q_NOQUOTA */
	raw_close(r);
	site_free(s);
}

/* MOUNT has a port of its own: its UDP is there too, and what is left at the
 * other is RQUOTA. */
static void
test_ports(void **state)
{
	struct site *s = site_prepare(engine, NULL, NULL);
	struct raw *nfs, *mount;

	harness_arg(s->h, "--mount-port");
	harness_arg(s->h, "0");
	harness_start(s->h);
	s->r = raw_connect(s->h->port);
	assert_true(s->h->port != s->h->mount_port);
	nfs = raw_connect_udp(s->h->port);
	mount = raw_connect_udp(s->h->mount_port);
	assert_int_equal(verdict(nfs, 100011, 2, 0), 0);
	assert_int_equal(verdict(nfs, MOUNT_PROGRAM, 3, 0), PROG_UNAVAIL);
	assert_int_equal(verdict(mount, MOUNT_PROGRAM, 3, 0), 0);
	assert_int_equal(verdict(mount, 100011, 2, 0), PROG_UNAVAIL);
	raw_close(nfs);
	raw_close(mount);
	site_free(s);
}

/* A list that no datagram holds is an error, and not silence. */
static void
test_long_list(void **state)
{
	struct site *s = site_prepare(engine, NULL, NULL);
	struct raw *r;
	FILE *f;
	unsigned i;

	(void)snprintf(s->h->exports, sizeof(s->h->exports), "%s/exports",
		       s->h->dir);
	f = fopen(s->h->exports, "we");
	assert_non_null(f);
	for (i = 0; i < 2000; i++)
		(void)fprintf(f, "%s 10.%u.%u.0/24(ro)\n", s->h->export,
			      i / 250, i % 250);
	(void)fprintf(f, "%s 127.0.0.1(rw,insecure)\n", s->h->export);
	assert_int_equal(fclose(f), 0);
	site_start(s);
	r = raw_connect_udp(s->h->port);
	assert_int_equal(verdict(s->r, MOUNT_PROGRAM, 3, MOUNT3_EXPORT), 0);
	assert_true(s->r->in_bytes > DATAGRAM_MAX);
	assert_int_equal(verdict(r, MOUNT_PROGRAM, 3, MOUNT3_EXPORT),
			 SYSTEM_ERR);
	assert_int_equal(verdict(r, MOUNT_PROGRAM, 3, MOUNT3_DUMP), 0);
	raw_close(r);
	site_free(s);
}

/* NFS ----------------------------------------------------------------------
 */

static void
test_sizes(void **state)
{
	struct site *s = site_by_udp();
	struct raw *tcp = raw_connect(s->h->port);
	struct answer a;

	assert_int_equal(ask(s->r, ask_fsinfo(&s->root), &a), NFS3_OK);
	assert_int_equal(a.u.fsinfo.rtmax, DATA_MAX);
	assert_int_equal(a.u.fsinfo.wtmax, DATA_MAX);
	assert_true(a.u.fsinfo.rtpref <= DATA_MAX);
	assert_true(a.u.fsinfo.wtpref <= DATA_MAX);
	assert_true(a.u.fsinfo.rtmult <= DATA_MAX);
	assert_true(a.u.fsinfo.wtmult <= DATA_MAX);
	assert_true(a.u.fsinfo.dtpref <= DATA_MAX);
	assert_int_equal(ask(tcp, ask_fsinfo(&s->root), &a), NFS3_OK);
	assert_true(a.u.fsinfo.rtmax > DATA_MAX);
	assert_true(a.u.fsinfo.wtmax > DATA_MAX);
	raw_close(tcp);
	site_free(s);
}

static void
test_data(void **state)
{
	static char data[DATA_MAX];
	struct site *s = site_by_udp();
	struct raw_fh fh;
	WRITE3res w;
	READ3res r;
	unsigned i;

	for (i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7 + i / 256);
	raw_create(s->r, &s->root, "file", 0644, &fh);
	for (i = 0; i < 4; i++) {
		assert_int_equal(raw_write(s->r, &fh, i * DATA_MAX, data,
					   DATA_MAX, UNSTABLE, &w),
				 NFS3_OK);
		assert_int_equal(w.WRITE3res_u.resok.count, DATA_MAX);
	}
	assert_int_equal(
		raw_write(s->r, &fh, 4 * DATA_MAX, data, 13, FILE_SYNC, &w),
		NFS3_OK);
	/* However much is asked for. */
	assert_int_equal(raw_read(s->r, &fh, DATA_MAX, 1 << 20, &r), NFS3_OK);
	assert_int_equal(r.READ3res_u.resok.count, DATA_MAX);
	assert_false(r.READ3res_u.resok.eof);
	assert_memory_equal(r.READ3res_u.resok.data.data_val, data, DATA_MAX);
	assert_int_equal(raw_read(s->r, &fh, 4 * DATA_MAX, DATA_MAX, &r),
			 NFS3_OK);
	assert_int_equal(r.READ3res_u.resok.count, 13);
	assert_true(r.READ3res_u.resok.eof);
	site_free(s);
}

/* All names, by replies that fit; how many of those it took. */
static unsigned
list_all(struct site *s, bool plus, unsigned names)
{
	struct listing l;
	struct listed e = { 0 };
	unsigned seen = 0, replies = 0;
	uint64_t cookie = 0;

	do {
		assert_int_equal(
			ask(s->r,
			    plus ? ask_readdirplus(&s->root, cookie, 1 << 20,
						   1 << 20)
				 : ask_readdir(&s->root, cookie, 1 << 20),
			    NULL),
			NFS3_OK);
		assert_true(s->r->in_bytes <= DATAGRAM_MAX);
		listing_begin(&l, s->r, plus ? NFS3_READDIRPLUS : NFS3_READDIR);
		while (listing_next(&l, &e)) {
			cookie = e.cookie;
			seen++;
		}
		replies++;
	} while (!l.eof);
	assert_int_equal(seen, names + 2); /* "." and ".." */
	return replies;
}

static void
test_lists(void **state)
{
	struct site *s = site_by_udp();

	assert_int_equal(
		harness_sh("cd %s && seq -f 'a-name-of-some-length-%%g'"
			   " 1500 | xargs touch",
			   s->h->export),
		0);
	assert_true(list_all(s, false, 1500) > 1);
	assert_true(list_all(s, true, 1500) > 1);
	site_free(s);
}

/* Duplicate requests ---------------------------------------------------------
 */

/* The reply to the MKDIR whose xid this is; others are left behind. */
static void
take_mkdir(struct raw *r, uint32_t xid, struct raw_fh *fh)
{
	struct answer a;

	do
		assert_true(raw_receive(r));
	while (r->reply_xid != xid);
	ask_take(r, NFS3_MKDIR, &a);
	assert_int_equal(a.status, NFS3_OK);
	assert_true(a.has_fh);
	*fh = a.fh;
}

static void
test_again(void **state)
{
	struct site *s = site_by_udp();
	struct raw *other = raw_connect_udp(s->h->port);
	struct question q = ask_mkdir(&s->root, "d", ask_mode(0755));
	struct raw_fh first, again;
	uint32_t xid = ask_send(s->r, &q);

	take_mkdir(s->r, xid, &first);
	raw_send(s->r);
	take_mkdir(s->r, xid, &again);
	site_expect_same(&first, &again);
	/* From another port, as a client that was restarted. */
	ask_again(other, s->r);
	take_mkdir(other, xid, &again);
	site_expect_same(&first, &again);
	assert_int_equal(harness_stat(s->h, "drc_hits"), 2);
	assert_int_equal(harness_stat(s->h, "nfs3.MKDIR"), 1);
	/* Another call is another one. */
	site_expect(s, q, NFS3ERR_EXIST);
	raw_close(other);
	site_free(s);
}

/* Sent twice before there is an answer: run once, answered once or twice. */
static void
test_at_once(void **state)
{
	struct site *s = site_by_udp();
	struct raw_fh fh;
	char name[32];
	unsigned i;

	for (i = 0; i < 50; i++) {
		(void)snprintf(name, sizeof(name), "d%u", i);
		struct question q = ask_mkdir(&s->root, name, ask_mode(0755));
		uint32_t xid = ask_send(s->r, &q);

		raw_send(s->r);
		raw_send(s->r);
		take_mkdir(s->r, xid, &fh);
	}
	assert_int_equal(harness_stat(s->h, "nfs3.MKDIR"), 50);
	site_free(s);
}

/* More than the server or the network takes at once: what is dropped is sent
 * again, until all is answered; and all is there. */
static void
test_flood(void **state)
{
	enum { CALLS = 96 };
	static char data[DATA_MAX];
	struct site *s = site_by_udp();
	struct pollfd p = { .fd = s->r->fd, .events = POLLIN };
	bool answered[CALLS] = { false };
	unsigned left = CALLS, i;
	struct raw_fh fh;
	uint32_t base;
	READ3res r;

	raw_create(s->r, &s->root, "file", 0644, &fh);
	base = s->r->xid;
	while (left > 0) {
		for (i = 0; i < CALLS; i++) {
			struct question q = ask_write(&fh, i * DATA_MAX, data,
						      DATA_MAX, UNSTABLE);

			memset(data, (int)i + 1, sizeof(data));
			s->r->xid = base + i;
			ask_build(s->r, &q);
			if (!answered[i])
				raw_send(s->r);
		}
		while (poll(&p, 1, 500) == 1) {
			assert_true(raw_receive(s->r));
			i = s->r->reply_xid - base;
			assert_true(i < CALLS);
			left -= !answered[i];
			answered[i] = true;
		}
	}
	s->r->xid = base + CALLS;
	for (i = 0; i < CALLS; i++) {
		assert_int_equal(
			raw_read(s->r, &fh, i * DATA_MAX, DATA_MAX, &r),
			NFS3_OK);
		assert_int_equal(r.READ3res_u.resok.count, DATA_MAX);
		memset(data, (int)i + 1, sizeof(data));
		assert_memory_equal(r.READ3res_u.resok.data.data_val, data,
				    DATA_MAX);
	}
	site_free(s);
}

/* What is no call
 * --------------------------------------------------------------
 */

static void
send_datagram(struct raw *r, const void *bytes, size_t n)
{
	assert_int_equal(send(r->fd, bytes, n, 0), n);
}

static void
test_garbage(void **state)
{
	static uint8_t bytes[65507];
	struct site *s = site_new(engine, NULL, NULL);
	struct raw *r = raw_connect_udp(s->h->port);
	unsigned i, n;

	for (n = 0; n < 12; n++) /* no xid, no version */
		send_datagram(r, bytes, n);
	bytes[7] = 1; /* a reply */
	for (n = 12; n < 100; n++)
		send_datagram(r, bytes, n);
	expect_silence(r);
	assert_int_equal(harness_stat(s->h, "udp_garbage"), 100);
	srand(4711);
	for (i = 0; i < 300; i++) {
		for (n = 0; n < 1400; n++)
			bytes[n] = (uint8_t)rand();
		bytes[4] |= 1; /* no call */
		send_datagram(r, bytes, (size_t)rand() % 1400);
		if (i % 50 == 0)
			expect_silence(r);
	}
	expect_silence(r);
	for (i = 0; i < 3; i++) {
		static const unsigned lengths[] = { DATAGRAM_MAX + 1, 40000,
						    sizeof(bytes) };

		send_datagram(r, bytes, lengths[i]);
		expect_silence(r);
	}
	assert_int_equal(harness_stat(s->h, "udp_too_long"), 3);
	raw_close(r);
	site_free(s);
}

/* Calls that are wrong are told so. */
static void
test_wrong_calls(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	struct raw *r = raw_connect_udp(s->h->port);
	uint32_t n;

	raw_build(r, MOUNT_PROGRAM, 3, 0, NULL, NULL);
	r->out[11] = 3; /* of RPC */
	raw_send(r);
	assert_true(raw_receive(r));
	assert_int_equal(r->reply_stat, 1);
	assert_int_equal(r->accept_stat, 0); /* RPC_MISMATCH */
	raw_build(r, MOUNT_PROGRAM, 3, 0, NULL, NULL);
	n = r->out_bytes;
	for (r->out_bytes = 12; r->out_bytes < n; r->out_bytes += 4) {
		raw_send(r);
		assert_true(raw_receive(r));
		assert_int_equal(r->reply_stat, 0);
		assert_int_equal(r->accept_stat, GARBAGE_ARGS);
	}
	/* As long as may be, and nothing of it means anything. */
	raw_build(r, MOUNT_PROGRAM, 3, MOUNT3_MNT, NULL, NULL);
	memset(r->out + r->out_bytes, 0xff, DATAGRAM_MAX - r->out_bytes);
	r->out_bytes = DATAGRAM_MAX;
	raw_send(r);
	assert_true(raw_receive(r));
	assert_int_equal(r->accept_stat, GARBAGE_ARGS);
	raw_close(r);
	site_free(s);
}

/* Peers
 * ------------------------------------------------------------------------
 */

/* From one socket of many: a struct raw each would be gigabytes. */
static void
call_from(struct raw *r, int fd)
{
	int own = r->fd;

	r->fd = fd;
	expect_silence(r);
	r->fd = own;
}

static void
test_peers(void **state)
{
	enum { PEERS = PEERS_MAX + 88 };
	struct site *s = site_new(engine, NULL, NULL);
	struct raw *r = raw_connect_udp(s->h->port);
	int fd[PEERS];
	unsigned i;

	expect_silence(r);
	for (i = 1; i < PEERS; i++) {
		fd[i] = raw_socket_udp(s->h->port);
		call_from(r, fd[i]);
		/* One that goes on calling stays. */
		expect_silence(r);
	}
	assert_int_equal(harness_stat(s->h, "udp_peers"), PEERS_MAX);
	assert_int_equal(harness_stat(s->h, "udp_peers_evicted"),
			 PEERS - PEERS_MAX);
	expect_silence(r);
	call_from(r, fd[PEERS - 1]);
	assert_int_equal(harness_stat(s->h, "udp_peers_evicted"),
			 PEERS - PEERS_MAX);
	/* Who had to go comes again. */
	call_from(r, fd[1]);
	assert_int_equal(harness_stat(s->h, "udp_peers_evicted"),
			 PEERS - PEERS_MAX + 1);
	/* They are none of the connections that have a limit. */
	assert_int_equal(harness_stat(s->h, "udp_dropped"), 0);
	for (i = 1; i < PEERS; i++)
		close(fd[i]);
	raw_close(r);
	site_free(s);
}

/* They leave the limit of connections to TCP. */
static void
test_limit(void **state)
{
	struct site *s = site_with("[limits]\nconnections = 2\n");
	struct raw *r[8], *second;
	unsigned i;

	for (i = 0; i < 8; i++) {
		r[i] = raw_connect_udp(s->h->port);
		expect_silence(r[i]);
	}
	second = raw_connect(s->h->port);
	expect_silence(second);
	raw_close(second);
	for (i = 0; i < 8; i++)
		raw_close(r[i]);
	site_free(s);
}

/* Drained, it answers nobody; resumed, whoever asks again. */
static void
test_drain(void **state)
{
	struct site *s = site_new(engine, NULL, NULL);
	struct raw *r = raw_connect_udp(s->h->port);
	uint64_t dropped;

	expect_silence(r);
	assert_int_equal(control_run(s->h, NULL, "drain"), 0);
	raw_build(r, MOUNT_PROGRAM, 3, 0, NULL, NULL);
	raw_send(r);
	do
		dropped = harness_stat(s->h, "udp_dropped");
	while (dropped == 0);
	assert_int_equal(dropped, 1);
	assert_int_equal(control_run(s->h, NULL, "drain --resume"), 0);
	raw_send(r);
	assert_true(raw_receive(r));
	assert_int_equal(r->reply_xid, r->xid - 1);
	raw_close(r);
	site_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_mount),
		cmocka_unit_test(test_ports),
		cmocka_unit_test(test_long_list),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_data),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_at_once),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_wrong_calls),
		cmocka_unit_test(test_peers),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_drain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
