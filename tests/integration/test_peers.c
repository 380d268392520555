/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers by the thousand, and peers that misbehave: that send garbage, stop in
 * mid-record, or never read their replies. Each is answered or ended, none
 * costs more than its share, and a good client beside them is served.
 */
#include "client.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define MIB         (1u << 20)
#define RECORD_LAST 0x80000000u

struct world {
	struct harness *h;
	char config[300];
	struct raw *good; /* a client that behaves */
	struct raw_fh root, fh;
	uint64_t random;
};

/* A server with these [limits], and a good client with a file. */
static struct world *
world_new(const char *engine, const char *limits)
{
	static struct world world;
	struct world *w = &world;

	memset(w, 0, sizeof(*w));
	w->random = 3;
	w->h = harness_new(NULL);
	(void)snprintf(w->config, sizeof(w->config), "%.200s/conf", w->h->dir);
	assert_int_equal(
		harness_sh("printf '[limits]\\n%s\\n' >%s", limits, w->config),
		0);
	harness_arg(w->h, "--config");
	harness_arg(w->h, w->config);
	harness_arg(w->h, "--engine");
	harness_arg(w->h, engine);
	harness_arg(w->h, "--threads");
	harness_arg(w->h, "2");
	harness_start(w->h);
	w->good = raw_connect(w->h->port);
	assert_int_equal(raw_mount(w->good, w->h->export, &w->root), 0);
	raw_create(w->good, &w->root, "f", 0666, &w->fh);
	return w;
}

static void
world_free(struct world *w)
{
	raw_close(w->good);
	harness_stop(w->h);
	harness_free(w->h);
}

static void
null_call(struct raw *r)
{
	raw_call(r, 100003, 3, 0, NULL, NULL, NULL, NULL);
}

static uint32_t
random_next(struct world *w)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(w->random >> 32);
}

/* A plain connection; what a raw costs in memory a thousand have not. */
static int
dial(const struct world *w)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(w->h->port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* Send what the peer takes; it may have gone. */
static void
push(int fd, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	ssize_t sent;

	for (; n > 0; p += sent, n -= (size_t)sent) {
		sent = send(fd, p, n, MSG_NOSIGNAL);
		if (sent <= 0)
			return;
	}
}

static void
push_mark(int fd, uint32_t mark)
{
	mark = htonl(mark);
	push(fd, &mark, sizeof(mark));
}

/* Has the server ended this connection, whatever is still to be read from it?
 * Waits for it at most so long (-1: for ever). */
static bool
is_ended(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	return poll(&p, 1, ms) == 1;
}

static void
build_write(struct raw *r, const struct raw_fh *fh, uint64_t offset, uint32_t n)
{
	static uint8_t data[4 * MIB];
	WRITE3args a;

	memset(&a, 0, sizeof(a));
	memset(data, (int)(offset / n % 251 + 1), n);
	a.file = raw_nfs_fh(fh);
	a.offset = offset;
	a.count = n;
	a.data.data_len = n;
	a.data.data_val = (char *)data;
	raw_build(r, 100003, 3, NFS3_WRITE, (raw_zdr_fn *)zdr_WRITE3args, &a);
}

static void
build_read(struct raw *r, const struct raw_fh *fh, uint64_t offset, uint32_t n)
{
	READ3args a = { .file = raw_nfs_fh(fh), .offset = offset, .count = n };

	raw_build(r, 100003, 3, NFS3_READ, (raw_zdr_fn *)zdr_READ3args, &a);
}

static void
expect_written(struct raw *r, uint32_t n)
{
	WRITE3res res;

	memset(&res, 0, sizeof(res));
	raw_result(r, (raw_zdr_fn *)zdr_WRITE3res, &res);
	assert_int_equal(res.status, NFS3_OK);
	assert_int_equal(res.WRITE3res_u.resok.count, n);
	raw_forget(r);
}

static void
expect_read(struct raw *r, uint64_t offset, uint32_t n)
{
	READ3res res;

	memset(&res, 0, sizeof(res));
	raw_result(r, (raw_zdr_fn *)zdr_READ3res, &res);
	assert_int_equal(res.status, NFS3_OK);
	assert_int_equal(res.READ3res_u.resok.count, n);
	assert_int_equal((uint8_t)res.READ3res_u.resok.data.data_val[n / 2],
			 offset / n % 251 + 1);
	raw_forget(r);
}

/* Many ----------------------------------------------------------------------
 */

#define MANY       1000u
#define MANY_BYTES 8192u

/* One call on each of many connections, all at once; raw is lent to each. */
static void
call_all(struct world *w, struct raw *r, const int *fd, bool writes)
{
	int own = r->fd;
	unsigned i;

	for (i = 0; i < MANY; i++) {
		uint64_t offset = (uint64_t)i * MANY_BYTES;

		if (writes)
			build_write(r, &w->fh, offset, MANY_BYTES);
		else
			build_read(r, &w->fh, offset, MANY_BYTES);
		r->fd = fd[i];
		raw_send(r);
	}
	for (i = 0; i < MANY; i++) {
		r->fd = fd[i];
		assert_true(raw_receive(r));
		if (writes)
			expect_written(r, MANY_BYTES);
		else
			expect_read(r, (uint64_t)i * MANY_BYTES, MANY_BYTES);
	}
	r->fd = own;
}

static void
test_thousand(void **state)
{
	struct world *w = world_new(*state, "");
	static int fd[MANY];
	unsigned i;

	for (i = 0; i < MANY; i++)
		fd[i] = dial(w);
	call_all(w, w->good, fd, true);
	call_all(w, w->good, fd, false);
	assert_int_equal(harness_stat(w->h, "connections"), MANY + 1);
	for (i = 0; i < MANY; i++)
		close(fd[i]);
	while (harness_stat(w->h, "connections") > 1)
		null_call(w->good);
	world_free(w);
}

/* Limits --------------------------------------------------------------------
 */

#define BATCH 100u

static void
test_calls_limit(void **state)
{
	struct world *w = world_new(*state, "calls-per-connection = 4");
	unsigned i;

	for (i = 0; i < BATCH; i++) {
		build_write(w->good, &w->fh, (uint64_t)i * 100, 100);
		raw_send(w->good);
	}
	for (i = 0; i < BATCH; i++) {
		assert_true(raw_receive(w->good));
		expect_written(w->good, 100);
	}
	assert_true(harness_stat(w->h, "stalls_call") > 0);
	world_free(w);
}

static void
test_connections_limit(void **state)
{
	struct world *w = world_new(*state, "connections = 3");
	struct raw *second = raw_connect(w->h->port);
	struct raw *third = raw_connect(w->h->port);
	struct raw *waits = raw_connect(w->h->port);
	struct pollfd p = { .fd = waits->fd, .events = POLLIN };

	null_call(second);
	null_call(third);
	raw_build(waits, 100003, 3, 0, NULL, NULL);
	raw_send(waits);
	null_call(w->good);
	assert_int_equal(poll(&p, 1, 200), 0);
	assert_int_equal(harness_stat(w->h, "connections"), 3);
	raw_close(second);
	assert_true(raw_receive(waits));
	null_call(third);
	null_call(w->good);
	raw_close(third);
	raw_close(waits);
	world_free(w);
}

static unsigned long
memory_kib(const struct world *w, const char *what)
{
	char path[64], line[128];
	unsigned long kib = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)w->h->pid);
	f = fopen(path, "r");
	assert_non_null(f);
	while (kib == 0 && fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, what, strlen(what)) == 0)
			kib = strtoul(line + strlen(what), NULL, 10);
	(void)fclose(f);
	assert_true(kib > 0);
	return kib;
}

#define HEAVY          64u
/* The buffers, and what a server (with sanitizers, too) is besides: 33 MiB when
 * it starts, its program text among them, which it keeps in memory. All calls
 * at once would be four times as much. */
#define MEMORY_MAX_KIB ((64u + 56u) << 10)

#define HEAVY_CALLS 4u /* in flight on each */

/* Take replies as they come until so many bytes are there. */
static void
drain(const int *fd, unsigned n, uint64_t bytes)
{
	static uint8_t scratch[MIB];
	struct pollfd p[HEAVY];
	ssize_t got;
	unsigned i;

	while (bytes > 0) {
		for (i = 0; i < n; i++)
			p[i] = (struct pollfd){ .fd = fd[i], .events = POLLIN };
		assert_true(poll(p, n, -1) > 0);
		for (i = 0; i < n; i++) {
			if (p[i].revents == 0)
				continue;
			got = recv(fd[i], scratch, sizeof(scratch), 0);
			assert_true(got > 0 && (uint64_t)got <= bytes);
			bytes -= (uint64_t)got;
		}
	}
}

static void
heavy_writes(struct world *w, struct raw *r, const int *fd)
{
	unsigned i;

	for (i = 0; i < HEAVY * HEAVY_CALLS; i++) {
		r->fd = fd[i % HEAVY];
		build_write(r, &w->fh, (uint64_t)i * MIB, MIB);
		raw_send(r);
	}
	for (i = 0; i < HEAVY * HEAVY_CALLS; i++) {
		r->fd = fd[i % HEAVY];
		assert_true(raw_receive(r));
		expect_written(r, MIB);
	}
}

static void
heavy_reads(struct world *w, struct raw *r, const int *fd)
{
	uint64_t reply_bytes;
	unsigned i;

	build_read(r, &w->fh, MIB, MIB);
	raw_send(r);
	assert_true(raw_receive(r));
	expect_read(r, MIB, MIB);
	reply_bytes = 4 + r->in_bytes;
	for (i = 0; i < HEAVY * HEAVY_CALLS; i++) {
		r->fd = fd[i % HEAVY];
		build_read(r, &w->fh, (uint64_t)i * MIB, MIB);
		raw_send(r);
	}
	drain(fd, HEAVY, reply_bytes * HEAVY * HEAVY_CALLS);
}

/* WRITEs of 1 MiB on all connections, then READs, and no more memory than was
 * given. */
static void
test_memory_limit(void **state)
{
	struct world *w = world_new(*state, "buffer-memory = 64M");
	unsigned long kib;
	int fd[HEAVY], own = w->good->fd;
	unsigned i;

	for (i = 0; i < HEAVY; i++)
		fd[i] = dial(w);
	heavy_writes(w, w->good, fd);
	w->good->fd = own;
	heavy_reads(w, w->good, fd);
	w->good->fd = own;
	kib = memory_kib(w, "VmHWM:");
	print_message("%lu MiB at most\n", kib >> 10);
	assert_in_range(kib, 1, MEMORY_MAX_KIB);
	assert_true(harness_stat(w->h, "buf_waits") > 0);
	for (i = 0; i < HEAVY; i++)
		close(fd[i]);
	world_free(w);
}

/* Garbage -------------------------------------------------------------------
 */

#define GARBAGE_ROUNDS 300u
#define GARBAGE_MAX    6000u
#define EMPTIES        2000u /* fragments: more than a record may have */

/* Whatever it is, it is answered, waited for or ended, and nobody else sees
 * anything of it. */
static void
test_garbage(void **state)
{
	struct world *w = world_new(*state, "");
	uint8_t bytes[GARBAGE_MAX];
	unsigned i, k, n;
	int fd;

	for (i = 0; i < GARBAGE_ROUNDS; i++) {
		fd = dial(w);
		n = random_next(w) % GARBAGE_MAX;
		for (k = 0; k < n; k++)
			bytes[k] = (uint8_t)random_next(w);
		/* Half of them with marks that may be believed. */
		if (i % 2 == 0)
			push_mark(fd, RECORD_LAST | (n > 8 ? n - 4 : n));
		push(fd, bytes, n);
		if (i % 10 == 0)
			null_call(w->good);
		close(fd);
	}
	while (harness_stat(w->h, "connections") > 1)
		null_call(w->good);
	world_free(w);
}

static void
expect_end(struct world *w, int fd)
{
	assert_true(is_ended(fd, -1));
	close(fd);
	null_call(w->good);
}

static void
test_marks(void **state)
{
	static const uint32_t marks[] = { 0xffffffff, 0x7fffffff,
					  RECORD_LAST | (5 * MIB), 5 * MIB };
	struct world *w = world_new(*state, "");
	static uint8_t zeros[MIB];
	uint64_t ended = 0;
	unsigned i;
	int fd;

	for (i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		fd = dial(w);
		push_mark(fd, marks[i]);
		expect_end(w, fd);
		ended++;
	}
	fd = dial(w);
	for (i = 0; i < EMPTIES; i++)
		push_mark(fd, 0);
	expect_end(w, fd);
	ended++;
	/* Over the limit by fragments that are each well below. It begins as a
	 * call, else it would be dropped. */
	fd = dial(w);
	raw_build(w->good, 100003, 3, 0, NULL, NULL);
	push_mark(fd, w->good->out_bytes);
	push(fd, w->good->out, w->good->out_bytes);
	for (i = 0; i < 5; i++) {
		push_mark(fd, MIB);
		push(fd, zeros, sizeof(zeros));
	}
	expect_end(w, fd);
	ended++;
	assert_int_equal(harness_stat(w->h, "records_refused"), ended);
	world_free(w);
}

/* Peers that stop -----------------------------------------------------------
 */

#define STOPPED    10u /* of each kind: twice what the buffers are for */
#define GOOD       4u
#define GOOD_CALLS 40u

struct stage {
	struct world *w;
	int stopped[6 * STOPPED]; /* peers that make no progress */
	unsigned count;
	int patient;      /* stopped like the rest, and holds no buffer */
	struct raw *slow; /* makes progress, a byte a second */
	struct raw *idle; /* between records, for as long as it likes */
	unsigned slow_at;
};

static int
stop_peer(struct stage *s)
{
	int fd = dial(s->w);

	assert_true(s->count < sizeof(s->stopped) / sizeof(s->stopped[0]));
	s->stopped[s->count++] = fd;
	return fd;
}

/* At each point of a record, some with a buffer of the largest kind. */
static void
stop_in_record(struct stage *s)
{
	struct raw *r = s->w->good;
	uint32_t mark;
	unsigned i, n;
	int fd;

	for (i = 0; i < STOPPED; i++) {
		fd = stop_peer(s);
		push(fd, "\x80", 1); /* in the mark */
		raw_build(r, 100003, 3, 0, NULL, NULL);
		fd = stop_peer(s);
		push_mark(fd, RECORD_LAST | r->out_bytes); /* after it */
		fd = stop_peer(s);
		push_mark(fd, RECORD_LAST | r->out_bytes); /* in the header */
		push(fd, r->out, r->out_bytes / 2);
		build_write(r, &s->w->fh, 5, 4 * MIB);
		for (n = 0; n < 2; n++) {
			fd = stop_peer(s);
			mark = RECORD_LAST | r->out_bytes;
			push_mark(fd, mark); /* in the payload */
			push(fd, r->out, n == 0 ? 300 : MIB);
		}
	}
}

/* Asks for much and takes nothing. */
static void
never_read(struct stage *s)
{
	struct raw *r = s->w->good;
	unsigned i, k;
	int fd;

	for (i = 0; i < STOPPED; i++) {
		fd = stop_peer(s);
		for (k = 0; k < 16; k++) {
			uint32_t mark;

			build_read(r, &s->w->fh, 0, MIB);
			mark = htonl(RECORD_LAST | r->out_bytes);
			push(fd, &mark, 4);
			push(fd, r->out, r->out_bytes);
		}
	}
}

/* One more byte of its record. */
static void
go_slowly(struct stage *s)
{
	const struct raw *r = s->slow;

	if (s->slow_at < r->out_bytes - 1)
		push(r->fd, r->out + s->slow_at++, 1);
}

static unsigned
count_ended(const struct stage *s)
{
	unsigned i, n = 0;

	for (i = 0; i < s->count; i++)
		n += is_ended(s->stopped[i], 0);
	return n;
}

/* Good clients beside them: each gets its turn. */
static void
serve_beside(struct stage *s)
{
	struct raw *r[GOOD];
	unsigned i, k;

	for (i = 0; i < GOOD; i++)
		r[i] = raw_connect(s->w->h->port);
	for (k = 0; k < GOOD_CALLS; k++) {
		for (i = 0; i < GOOD; i++) {
			build_write(r[i], &s->w->fh, (uint64_t)k * MIB, MIB);
			raw_send(r[i]);
			assert_true(raw_receive(r[i]));
			expect_written(r[i], MIB);
			build_read(r[i], &s->w->fh, (uint64_t)k * MIB, MIB);
			raw_send(r[i]);
			assert_true(raw_receive(r[i]));
			expect_read(r[i], (uint64_t)k * MIB, MIB);
		}
		go_slowly(s);
	}
	for (i = 0; i < GOOD; i++)
		raw_close(r[i]);
}

/* The slow test: 30 s without progress end a connection. */
static void
test_stopped(void **state)
{
	struct world *w = world_new(*state, "");
	struct stage s = { .w = w };
	unsigned i;

	build_write(w->good, &w->fh, 0, MIB);
	raw_send(w->good);
	assert_true(raw_receive(w->good));
	expect_written(w->good, MIB);
	s.idle = raw_connect(w->h->port);
	null_call(s.idle);
	s.slow = raw_connect(w->h->port);
	raw_build(s.slow, 100003, 3, 0, NULL, NULL);
	push_mark(s.slow->fd, RECORD_LAST | s.slow->out_bytes);
	s.patient = dial(w);
	push(s.patient, "\x80", 1);
	stop_in_record(&s);
	never_read(&s);
	serve_beside(&s);
	while (count_ended(&s) < s.count || !is_ended(s.patient, 0)) {
		sleep(1);
		go_slowly(&s);
		null_call(w->good);
	}
	assert_int_equal(harness_stat(w->h, "timeouts"), s.count + 1);
	/* Who made progress or had nothing to do is still served. */
	push(s.slow->fd, s.slow->out + s.slow_at,
	     s.slow->out_bytes - s.slow_at);
	assert_true(raw_receive(s.slow));
	null_call(s.idle);
	for (i = 0; i < s.count; i++)
		close(s.stopped[i]);
	close(s.patient);
	raw_close(s.slow);
	raw_close(s.idle);
	world_free(w);
}

static void
raise_limit(void)
{
	struct rlimit l;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &l), 0);
	l.rlim_cur = l.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &l), 0);
}

int
main(void)
{
	static char uring[] = "uring", threads[] = "threads";
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_thousand, uring),
		cmocka_unit_test_prestate(test_thousand, threads),
		cmocka_unit_test_prestate(test_calls_limit, uring),
		cmocka_unit_test_prestate(test_connections_limit, uring),
		cmocka_unit_test_prestate(test_connections_limit, threads),
		cmocka_unit_test_prestate(test_memory_limit, uring),
		cmocka_unit_test_prestate(test_memory_limit, threads),
		cmocka_unit_test_prestate(test_garbage, uring),
		cmocka_unit_test_prestate(test_garbage, threads),
		cmocka_unit_test_prestate(test_marks, uring),
		cmocka_unit_test_prestate(test_stopped, uring),
	};

	raise_limit();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
