/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device that has no room while clients write: write-back fails. What was
 * acknowledged as stable is there after a power cut, whenever it comes; the
 * verifier of that export moves, and of no other; it is logged, and not with
 * every failure; with room again the same handles work.
 */
#include "client.h"
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS      4u
#define FRESH        8u /* records of a client that a cycle meets anew */
#define CYCLES       6u
#define TURNS        60u /* calls of each client, without and with room */
#define RECORD_BYTES 47008u
#define FILE_BYTES   (32u << 20)
#define LOG_LIMIT_S  10 /* one line in that time */

_Static_assert(CLIENTS *FRESH *CYCLES *RECORD_BYTES <= FILE_BYTES,
	       "the records fit");

struct world {
	struct harness *h;
	char other_line[400], other[300];
	struct client client[CLIENTS];
	struct client bystander; /* of another export */
	uint64_t random;
	unsigned cycle;
};

struct setting {
	const char *fs, *engine, *write_mode;
};

static unsigned
random_below(struct world *w, unsigned n)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(w->random >> 33) % n;
}

static struct world *
world_new(const struct setting *s)
{
	static struct world world;
	struct world *w = &world;
	unsigned k, i;

	memset(w, 0, sizeof(*w));
	w->random = 1;
	w->h = harness_new(NULL);
	if (!device_mount(w->h, s->fs, 320))
		skip();
	(void)snprintf(w->other, sizeof(w->other), "%s/other", w->h->dir);
	(void)snprintf(w->other_line, sizeof(w->other_line),
		       "%s/other *(rw,no_root_squash,insecure,fsid=9)",
		       w->h->dir);
	assert_int_equal(harness_sh("mkdir %s && mount -t tmpfs none %s",
				    w->other, w->other),
			 0);
	device_promise(w->h, "f", FILE_BYTES);
	harness_arg(w->h, "--export");
	harness_arg(w->h, w->other_line);
	harness_arg(w->h, "--engine");
	harness_arg(w->h, s->engine);
	harness_arg(w->h, "--write-mode");
	harness_arg(w->h, s->write_mode);
	harness_start(w->h);
	for (k = 0; k < CLIENTS; k++) {
		client_init(&w->client[k], w->h, "f", k);
		for (i = 0; i < FRESH * CYCLES; i++)
			client_add(&w->client[k],
				   (uint64_t)(i * CLIENTS + k) * RECORD_BYTES,
				   RECORD_BYTES);
	}
	client_init_at(&w->bystander, w->h, w->other, "g", CLIENTS);
	client_add(&w->bystander, 11, 100000);
	return w;
}

/* Mostly records whose blocks are new, and some of those before. */
static void
start_call(struct world *w, struct client *c)
{
	unsigned met = FRESH * (w->cycle + 1), what = random_below(w, 10);
	int doubtful = client_doubtful(c);
	unsigned i = met - 1 - random_below(w, FRESH);

	if (random_below(w, 4) == 0)
		i = random_below(w, met);
	if (what < 2)
		client_commit(c);
	else if (doubtful >= 0 && random_below(w, 2) == 0)
		client_write_again(c, (unsigned)doubtful,
				   what < 6 ? UNSTABLE : FILE_SYNC);
	else
		client_write(c, i, what < 6 ? UNSTABLE : FILE_SYNC);
}

/* All clients at once, one call each, many times. */
static void
take_turns(struct world *w)
{
	unsigned t, k;

	for (t = 0; t < TURNS; t++) {
		for (k = 0; k < CLIENTS; k++)
			start_call(w, &w->client[k]);
		client_write(&w->bystander, 0, UNSTABLE);
		for (k = 0; k < CLIENTS; k++)
			(void)client_finish(&w->client[k]);
		assert_int_equal(client_finish(&w->bystander), NFS3_OK);
	}
	client_commit(&w->bystander);
	assert_int_equal(client_finish(&w->bystander), NFS3_OK);
}

static void
check_power_cut(struct world *w)
{
	const char *path = device_power_cut(w->h, "f");
	unsigned k;

	for (k = 0; k < CLIENTS; k++)
		client_check_file(&w->client[k], path);
	device_power_back(w->h);
}

/* No room; some blocks are there, some are not. */
static void
fail_for_a_while(struct world *w)
{
	unsigned k;

	device_fill(w->h);
	take_turns(w);
	check_power_cut(w);
	for (k = 0; k < CLIENTS; k++) {
		const struct client *c = &w->client[k];

		if (c->refused > 0)
			assert_true(c->bad == NFS3ERR_IO ||
				    c->bad == NFS3ERR_NOSPC);
	}
	device_empty(w->h);
}

/* With room every client gets everything written, through the same handle. */
static void
recover(struct world *w)
{
	unsigned k, refused = 0, now = 0;

	for (k = 0; k < CLIENTS; k++)
		client_settle(&w->client[k]);
	for (k = 0; k < CLIENTS; k++)
		refused += w->client[k].refused;
	take_turns(w);
	for (k = 0; k < CLIENTS; k++) {
		client_settle(&w->client[k]);
		now += w->client[k].refused;
	}
	assert_int_equal(now, refused);
	check_power_cut(w);
}

static void
check_told(struct world *w, time_t seconds)
{
	uint64_t changes = harness_stat(w->h, "verifier_changes");
	unsigned k, refused = 0, lines;

	for (k = 0; k < CLIENTS; k++) {
		refused += w->client[k].refused;
		assert_true(w->client[k].moves > 0);
		assert_in_range(w->client[k].moves, 1, changes);
		assert_int_equal(w->client[k].ends, 0);
	}
	assert_true(refused > 0);
	assert_int_equal(w->bystander.moves, 0);
	assert_int_equal(w->bystander.refused, 0);
	lines = harness_log_count(w->h, "/export: .* failed: ");
	assert_in_range(lines, 1, 1 + seconds / LOG_LIMIT_S);
	assert_false(harness_logged(w->h, "/other: .* failed: "));
	print_message("%u calls refused, %lu verifiers, %u lines\n", refused,
		      (unsigned long)changes, lines);
}

static void
test_no_room(void **state)
{
	struct world *w = world_new(*state);
	time_t begun = time(NULL);
	unsigned k;

	for (w->cycle = 0; w->cycle < CYCLES; w->cycle++) {
		fail_for_a_while(w);
		recover(w);
	}
	w->cycle--;
	check_told(w, time(NULL) - begun);
	for (k = 0; k < CLIENTS; k++)
		client_fini(&w->client[k]);
	client_fini(&w->bystander);
	harness_stop(w->h);
	harness_remount(w->h);
	for (k = 0; k < CLIENTS; k++)
		client_check_file(&w->client[k], harness_path(w->h, "f"));
	harness_free(w->h);
}

int
main(void)
{
	static struct setting xfs = { "xfs", "uring", "direct" },
			      ext4 = { "ext4", "uring", "direct" },
			      threads = { "xfs", "threads", "direct" },
			      buffered = { "xfs", "uring", "buffered" };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_no_room, &xfs),
		cmocka_unit_test_prestate(test_no_room, &ext4),
		cmocka_unit_test_prestate(test_no_room, &threads),
		cmocka_unit_test_prestate(test_no_room, &buffered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
