/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers that misbehave: that send garbage, stop in mid-record, or never read
 * their replies. Each is answered or ended, and a good client beside them is
 * served.
 */
#include "peers.h"

#include <arpa/inet.h>
#include <poll.h>
#include <unistd.h>

static uint32_t
random_next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 32);
}

/* Has the server ended this connection, whatever is still to be read from it?
 * Waits for it at most so long (-1: for ever). */
static bool
is_ended(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	return poll(&p, 1, ms) == 1;
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
	struct peers_world *w = peers_world_new(*state, "");
	uint8_t bytes[GARBAGE_MAX];
	uint64_t seed = 3;
	unsigned i, k, n;
	int fd;

	for (i = 0; i < GARBAGE_ROUNDS; i++) {
		fd = peers_dial(w);
		n = random_next(&seed) % GARBAGE_MAX;
		for (k = 0; k < n; k++)
			bytes[k] = (uint8_t)random_next(&seed);
		/* Half of them with marks that may be believed. */
		if (i % 2 == 0)
			peers_push_mark(fd, RECORD_LAST | (n > 8 ? n - 4 : n));
		peers_push(fd, bytes, n);
		if (i % 10 == 0)
			peers_null_call(w->good);
		close(fd);
	}
	while (harness_stat(w->h, "connections") > 1)
		peers_null_call(w->good);
	peers_world_free(w);
}

static void
expect_end(struct peers_world *w, int fd)
{
	assert_true(is_ended(fd, -1));
	close(fd);
	peers_null_call(w->good);
}

static void
test_marks(void **state)
{
	static const uint32_t marks[] = { 0xffffffff, 0x7fffffff,
					  RECORD_LAST | (5 * MIB), 5 * MIB };
	struct peers_world *w = peers_world_new(*state, "");
	static uint8_t zeros[MIB];
	uint64_t ended = 0;
	unsigned i;
	int fd;

	for (i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		fd = peers_dial(w);
		peers_push_mark(fd, marks[i]);
		expect_end(w, fd);
		ended++;
	}
	fd = peers_dial(w);
	for (i = 0; i < EMPTIES; i++)
		peers_push_mark(fd, 0);
	expect_end(w, fd);
	ended++;
	/* Over the limit by fragments that are each well below. It begins as a
	 * call, else it would be dropped. */
	fd = peers_dial(w);
	raw_build(w->good, 100003, 3, 0, NULL, NULL);
	peers_push_mark(fd, w->good->out_bytes);
	peers_push(fd, w->good->out, w->good->out_bytes);
	for (i = 0; i < 5; i++) {
		peers_push_mark(fd, MIB);
		peers_push(fd, zeros, sizeof(zeros));
	}
	expect_end(w, fd);
	ended++;
	assert_int_equal(harness_stat(w->h, "records_refused"), ended);
	peers_world_free(w);
}

/* Peers that stop -----------------------------------------------------------
 */

#define STOPPED    10u /* of each kind: twice what the buffers are for */
#define GOOD       4u
#define GOOD_CALLS 40u

struct stage {
	struct peers_world *w;
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
	int fd = peers_dial(s->w);

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
		peers_push(fd, "\x80", 1); /* in the mark */
		raw_build(r, 100003, 3, 0, NULL, NULL);
		fd = stop_peer(s);
		peers_push_mark(fd, RECORD_LAST | r->out_bytes); /* after it */
		fd = stop_peer(s);
		peers_push_mark(fd,
				RECORD_LAST | r->out_bytes); /* in the header */
		peers_push(fd, r->out, r->out_bytes / 2);
		peers_build_write(r, &s->w->fh, 5, 4 * MIB);
		for (n = 0; n < 2; n++) {
			fd = stop_peer(s);
			mark = RECORD_LAST | r->out_bytes;
			peers_push_mark(fd, mark); /* in the payload */
			peers_push(fd, r->out, n == 0 ? 300 : MIB);
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

			peers_build_read(r, &s->w->fh, 0, MIB);
			mark = htonl(RECORD_LAST | r->out_bytes);
			peers_push(fd, &mark, 4);
			peers_push(fd, r->out, r->out_bytes);
		}
	}
}

/* One more byte of its record. */
static void
go_slowly(struct stage *s)
{
	const struct raw *r = s->slow;

	if (s->slow_at < r->out_bytes - 1)
		peers_push(r->fd, r->out + s->slow_at++, 1);
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
			peers_build_write(r[i], &s->w->fh, (uint64_t)k * MIB,
					  MIB);
			raw_send(r[i]);
			assert_true(raw_receive(r[i]));
			peers_expect_written(r[i], MIB);
			peers_build_read(r[i], &s->w->fh, (uint64_t)k * MIB,
					 MIB);
			raw_send(r[i]);
			assert_true(raw_receive(r[i]));
			peers_expect_read(r[i], (uint64_t)k * MIB, MIB);
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
	struct peers_world *w = peers_world_new(*state, "");
	struct stage s = { .w = w };
	unsigned i;

	peers_build_write(w->good, &w->fh, 0, MIB);
	raw_send(w->good);
	assert_true(raw_receive(w->good));
	peers_expect_written(w->good, MIB);
	s.idle = raw_connect(w->h->port);
	peers_null_call(s.idle);
	s.slow = raw_connect(w->h->port);
	raw_build(s.slow, 100003, 3, 0, NULL, NULL);
	peers_push_mark(s.slow->fd, RECORD_LAST | s.slow->out_bytes);
	s.patient = peers_dial(w);
	peers_push(s.patient, "\x80", 1);
	stop_in_record(&s);
	never_read(&s);
	serve_beside(&s);
	while (count_ended(&s) < s.count || !is_ended(s.patient, 0)) {
		sleep(1);
		go_slowly(&s);
		peers_null_call(w->good);
	}
	assert_int_equal(harness_stat(w->h, "timeouts"), s.count + 1);
	/* Who made progress or had nothing to do is still served. */
	peers_push(s.slow->fd, s.slow->out + s.slow_at,
		   s.slow->out_bytes - s.slow_at);
	assert_true(raw_receive(s.slow));
	peers_null_call(s.idle);
	for (i = 0; i < s.count; i++)
		close(s.stopped[i]);
	close(s.patient);
	raw_close(s.slow);
	raw_close(s.idle);
	peers_world_free(w);
}

int
main(void)
{
	static char uring[] = "uring", threads[] = "threads";
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_garbage, uring),
		cmocka_unit_test_prestate(test_garbage, threads),
		cmocka_unit_test_prestate(test_marks, uring),
		cmocka_unit_test_prestate(test_stopped, uring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
