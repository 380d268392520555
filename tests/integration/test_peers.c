/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers by the thousand, and more than the limits allow: each is served in its
 * turn, and none costs more than its share.
 */
#include "peers.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Many ----------------------------------------------------------------------
 */

#define MANY       1000u
#define MANY_BYTES 8192u

/* One call on each of many connections, all at once; raw is lent to each. */
static void
call_all(struct peers_world *w, struct raw *r, const int *fd, bool writes)
{
	int own = r->fd;
	unsigned i;

	for (i = 0; i < MANY; i++) {
		uint64_t offset = (uint64_t)i * MANY_BYTES;

		if (writes)
			peers_build_write(r, &w->fh, offset, MANY_BYTES);
		else
			peers_build_read(r, &w->fh, offset, MANY_BYTES);
		r->fd = fd[i];
		raw_send(r);
	}
	for (i = 0; i < MANY; i++) {
		r->fd = fd[i];
		assert_true(raw_receive(r));
		if (writes)
			peers_expect_written(r, MANY_BYTES);
		else
			peers_expect_read(r, (uint64_t)i * MANY_BYTES,
					  MANY_BYTES);
	}
	r->fd = own;
}

static void
test_thousand(void **state)
{
	struct peers_world *w = peers_world_new(*state, "");
	static int fd[MANY];
	unsigned i;

	for (i = 0; i < MANY; i++)
		fd[i] = peers_dial(w);
	call_all(w, w->good, fd, true);
	call_all(w, w->good, fd, false);
	assert_int_equal(harness_stat(w->h, "connections"), MANY + 1);
	for (i = 0; i < MANY; i++)
		close(fd[i]);
	while (harness_stat(w->h, "connections") > 1)
		peers_null_call(w->good);
	peers_world_free(w);
}

/* Limits --------------------------------------------------------------------
 */

#define BATCH 100u

static void
test_calls_limit(void **state)
{
	struct peers_world *w =
		peers_world_new(*state, "calls-per-connection = 4");
	unsigned i;

	for (i = 0; i < BATCH; i++) {
		peers_build_write(w->good, &w->fh, (uint64_t)i * 100, 100);
		raw_send(w->good);
	}
	for (i = 0; i < BATCH; i++) {
		assert_true(raw_receive(w->good));
		peers_expect_written(w->good, 100);
	}
	assert_true(harness_stat(w->h, "stalls_call") > 0);
	peers_world_free(w);
}

static void
test_connections_limit(void **state)
{
	struct peers_world *w = peers_world_new(*state, "connections = 3");
	struct raw *second = raw_connect(w->h->port);
	struct raw *third = raw_connect(w->h->port);
	struct raw *waits = raw_connect(w->h->port);
	struct pollfd p = { .fd = waits->fd, .events = POLLIN };

	peers_null_call(second);
	peers_null_call(third);
	raw_build(waits, 100003, 3, 0, NULL, NULL);
	raw_send(waits);
	peers_null_call(w->good);
	assert_int_equal(poll(&p, 1, 200), 0);
	assert_int_equal(harness_stat(w->h, "connections"), 3);
	raw_close(second);
	assert_true(raw_receive(waits));
	peers_null_call(third);
	peers_null_call(w->good);
	raw_close(third);
	raw_close(waits);
	peers_world_free(w);
}

static unsigned long
memory_kib(const struct peers_world *w, const char *what)
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
heavy_writes(struct peers_world *w, struct raw *r, const int *fd)
{
	unsigned i;

	for (i = 0; i < HEAVY * HEAVY_CALLS; i++) {
		r->fd = fd[i % HEAVY];
		peers_build_write(r, &w->fh, (uint64_t)i * MIB, MIB);
		raw_send(r);
	}
	for (i = 0; i < HEAVY * HEAVY_CALLS; i++) {
		r->fd = fd[i % HEAVY];
		assert_true(raw_receive(r));
		peers_expect_written(r, MIB);
	}
}

static void
heavy_reads(struct peers_world *w, struct raw *r, const int *fd)
{
	uint64_t reply_bytes;
	unsigned i;

	peers_build_read(r, &w->fh, MIB, MIB);
	raw_send(r);
	assert_true(raw_receive(r));
	peers_expect_read(r, MIB, MIB);
	reply_bytes = 4 + r->in_bytes;
	for (i = 0; i < HEAVY * HEAVY_CALLS; i++) {
		r->fd = fd[i % HEAVY];
		peers_build_read(r, &w->fh, (uint64_t)i * MIB, MIB);
		raw_send(r);
	}
	drain(fd, HEAVY, reply_bytes * HEAVY * HEAVY_CALLS);
}

/* WRITEs of 1 MiB on all connections, then READs, and no more memory than was
 * given. */
static void
test_memory_limit(void **state)
{
	struct peers_world *w = peers_world_new(*state, "buffer-memory = 64M");
	unsigned long kib;
	int fd[HEAVY], own = w->good->fd;
	unsigned i;

	for (i = 0; i < HEAVY; i++)
		fd[i] = peers_dial(w);
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
	peers_world_free(w);
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
	};

	raise_limit();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
