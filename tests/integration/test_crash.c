/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that write all the while, and a server that is killed, stopped and
 * started again, and told to read its exports anew. What was acknowledged as
 * stable is there, also after a power cut; a clean stop makes no client write
 * again; a reload touches nobody but whom it is about.
 */
#include "client.h"
#include "device.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLIENTS      6u
#define RECORDS      12u
#define RECORD_BYTES 47008u
#define ROUNDS       4u
#define REPLIES      150u /* of all clients, between two events */

struct world {
	struct harness *h;
	struct client client[CLIENTS];
	uint64_t random;
};

static unsigned
random_below(struct world *w, unsigned n)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(w->random >> 33) % n;
}

static struct world *
world_new(const char *engine)
{
	static struct world world;
	struct world *w = &world;

	memset(w, 0, sizeof(*w));
	w->random = 7;
	w->h = harness_new(NULL);
	if (!harness_mount(w->h, "xfs", 4096, 320))
		skip();
	harness_arg(w->h, "--engine");
	harness_arg(w->h, engine);
	return w;
}

/* Client k of export's file f. Records of all clients are interleaved. */
static void
add_client(struct world *w, unsigned k, const char *export)
{
	unsigned i;

	client_init_at(&w->client[k], w->h, export, "f", k);
	for (i = 0; i < RECORDS; i++)
		client_add(&w->client[k],
			   (uint64_t)(i * CLIENTS + k) * RECORD_BYTES,
			   RECORD_BYTES);
}

static void
add_clients(struct world *w)
{
	unsigned k;

	for (k = 0; k < CLIENTS; k++)
		add_client(w, k, w->h->export);
}

static void
world_end(struct world *w)
{
	unsigned k;

	for (k = 0; k < CLIENTS; k++)
		client_fini(&w->client[k]);
	harness_stop(w->h);
}

static void
world_free(struct world *w)
{
	harness_free(w->h);
}

/* Calls ---------------------------------------------------------------------
 */

static void
start_call(struct world *w, struct client *c)
{
	unsigned what = random_below(w, 12), i = random_below(w, RECORDS);
	int doubtful = client_doubtful(c);

	if (what == 0)
		client_commit(c);
	else if (what < 3)
		client_read(c, i);
	else if (doubtful >= 0)
		client_write_again(c, (unsigned)doubtful, UNSTABLE);
	else
		client_write(c, i, what < 9 ? UNSTABLE : FILE_SYNC);
}

/* Every client makes calls until so many replies have come. Ended connections
 * fail the test. */
static void
drive(struct world *w, unsigned replies)
{
	struct pollfd p[CLIENTS];
	unsigned k, done = 0;

	while (done < replies) {
		for (k = 0; k < CLIENTS; k++) {
			struct client *c = &w->client[k];

			if (c->call == CLIENT_IDLE)
				start_call(w, c);
			p[k].fd = c->raw->fd;
			p[k].events = POLLIN;
		}
		assert_true(poll(p, CLIENTS, -1) > 0);
		for (k = 0; k < CLIENTS; k++) {
			if (p[k].revents == 0)
				continue;
			assert_true(client_take(&w->client[k]));
			done++;
		}
	}
}

/* The server ends or has ended: replies that were under way still count. */
static void
take_rest(struct world *w)
{
	unsigned k;

	for (k = 0; k < CLIENTS; k++)
		while (w->client[k].call != CLIENT_IDLE &&
		       client_take(&w->client[k]))
			;
}

static void
restart(struct world *w)
{
	unsigned k;

	harness_start(w->h);
	for (k = 0; k < CLIENTS; k++)
		client_reconnect(&w->client[k]);
}

static void
check_file(struct world *w, const char *path)
{
	unsigned k;

	for (k = 0; k < CLIENTS; k++)
		client_check_file(&w->client[k], path);
}

static void
settle(struct world *w)
{
	unsigned k;

	for (k = 0; k < CLIENTS; k++) {
		if (w->client[k].call != CLIENT_IDLE)
			(void)client_finish(&w->client[k]);
		client_settle(&w->client[k]);
	}
}

/* Killed ------------------------------------------------------------------- */

static void
test_kill(void **state)
{
	struct world *w = world_new(*state);
	unsigned k, round;

	harness_start(w->h);
	add_clients(w);
	for (round = 0; round < ROUNDS; round++) {
		drive(w, REPLIES + random_below(w, REPLIES));
		harness_kill(w->h);
		take_rest(w);
		check_file(w, device_power_cut(w->h, "f"));
		device_power_back(w->h);
		restart(w);
	}
	drive(w, REPLIES);
	settle(w);
	for (k = 0; k < CLIENTS; k++) {
		assert_int_equal(w->client[k].refused, 0);
		assert_int_equal(w->client[k].moves, ROUNDS);
	}
	world_end(w);
	harness_remount(w->h);
	check_file(w, harness_path(w->h, "f"));
	world_free(w);
}

/* Stopped and started -------------------------------------------------------
 */

static void
test_stop(void **state)
{
	struct world *w = world_new(*state);
	unsigned k, round, kept = 0;

	harness_start(w->h);
	add_clients(w);
	for (round = 0; round < ROUNDS; round++) {
		drive(w, REPLIES + random_below(w, REPLIES));
		harness_signal(w->h, SIGTERM);
		take_rest(w);
		harness_stop(w->h);
		for (k = 0; k < CLIENTS; k++)
			kept += client_keeps(&w->client[k]);
		check_file(w, device_power_cut(w->h, "f"));
		device_power_back(w->h);
		restart(w);
	}
	assert_true(kept > 0); /* else there was nothing to write again */
	settle(w);
	for (k = 0; k < CLIENTS; k++) {
		assert_int_equal(w->client[k].refused, 0);
		assert_int_equal(w->client[k].moves, 0);
		assert_int_equal(w->client[k].resent, 0);
	}
	world_end(w);
	world_free(w);
}

/* EXCLUSIVE creates over a kill ----------------------------------------------
 */

static void
build_exclusive(struct client *c, const char *name, const char verf[8])
{
	CREATE3args a;

	memset(&a, 0, sizeof(a));
	a.where.dir = raw_nfs_fh(&c->root);
	a.where.name = (char *)name;
	a.how.mode = EXCLUSIVE;
	memcpy(a.how.createhow3_u.verf, verf, 8);
	raw_build(c->raw, 100003, 3, NFS3_CREATE, (raw_zdr_fn *)zdr_CREATE3args,
		  &a);
}

/* Send what was built, over any number of connections; the status. */
static int
create_status(struct client *c, struct raw_fh *fh)
{
	CREATE3res res;

	memset(&res, 0, sizeof(res));
	client_call(c, (raw_zdr_fn *)zdr_CREATE3res, &res);
	if (res.status == NFS3_OK)
		raw_keep_fh(fh,
			    &res.CREATE3res_u.resok.obj.post_op_fh3_u.handle);
	return (int)res.status;
}

/* The client's verifier makes the file its own, whenever the server dies. */
static void
test_exclusive(void **state)
{
	struct world *w = world_new(*state);
	struct client *c = &w->client[0];
	struct raw_fh first, again;
	char name[32];
	unsigned i;

	harness_start(w->h);
	add_client(w, 0, w->h->export);
	for (i = 0; i < 3 * ROUNDS; i++) {
		bool answered = i % 3 == 0;

		memset(&first, 0, sizeof(first));
		memset(&again, 0, sizeof(again));
		(void)snprintf(name, sizeof(name), "exclusive%u", i);
		build_exclusive(c, name, "\x80hi\xff lo\0");
		if (answered) {
			assert_int_equal(create_status(c, &first), NFS3_OK);
		} else { /* killed at some moment of the call */
			(void)raw_try_send(c->raw);
			usleep(i % 3 == 1 ? 0 : 300 * i);
		}
		harness_kill(w->h);
		if (answered) {
			const char *cut = device_power_cut(w->h, name);

			assert_int_equal(access(cut, F_OK), 0);
			device_power_back(w->h);
		}
		harness_start(w->h);
		client_reconnect(c);
		assert_int_equal(create_status(c, &again), NFS3_OK);
		if (answered)
			assert_memory_equal(first.data, again.data,
					    again.bytes);
		build_exclusive(c, name, "\x80hi\xff lo\1");
		assert_int_equal(create_status(c, &again), NFS3ERR_EXIST);
	}
	client_fini(c);
	harness_stop(w->h);
	world_free(w);
}

/* Exports read anew ----------------------------------------------------------
 */

static void
write_exports(struct world *w, const char *a, const char *b)
{
	const char *dir = w->h->export;
	FILE *f = fopen(w->h->exports, "w");

	assert_non_null(f);
	(void)fprintf(f, "# two exports\n");
	if (a != NULL)
		(void)fprintf(f, "%s/a *(%s,no_root_squash,insecure)\n", dir,
			      a);
	if (b != NULL)
		(void)fprintf(f, "%s/b *(%s,no_root_squash,insecure)\n", dir,
			      b);
	assert_int_equal(fclose(f), 0);
}

/* SIGHUP, and calls until the log has said what came of it; nothing is in
 * flight then. */
static void
reload(struct world *w, const char *said)
{
	unsigned before = harness_log_count(w->h, said), k;

	harness_signal(w->h, SIGHUP);
	do
		drive(w, CLIENTS);
	while (harness_log_count(w->h, said) == before);
	for (k = 0; k < CLIENTS; k++)
		if (w->client[k].call != CLIENT_IDLE)
			(void)client_finish(&w->client[k]);
}

/* Even clients on export a, odd ones on b. */
static struct world *
world_of_two(const char *engine)
{
	struct world *w = world_new(engine);
	char path[400];
	unsigned k;

	assert_int_equal(harness_sh("mkdir -m 777 %s/a %s/b", w->h->export,
				    w->h->export),
			 0);
	(void)snprintf(w->h->exports, sizeof(w->h->exports), "%.200s/exports",
		       w->h->dir);
	write_exports(w, "rw", "rw");
	harness_start(w->h);
	for (k = 0; k < CLIENTS; k++) {
		(void)snprintf(path, sizeof(path), "%s/%s", w->h->export,
			       k % 2 == 0 ? "a" : "b");
		add_client(w, k, path);
	}
	drive(w, REPLIES);
	return w;
}

static unsigned
refused(const struct world *w, unsigned first)
{
	unsigned k, n = 0;

	for (k = first; k < CLIENTS; k += 2)
		n += w->client[k].refused;
	return n;
}

/* What each call of these clients is told now. */
static void
expect(struct world *w, unsigned first, int written, int read)
{
	unsigned k;

	for (k = first; k < CLIENTS; k += 2) {
		struct client *c = &w->client[k];

		client_write(c, 1, UNSTABLE);
		assert_int_equal(client_finish(c), written);
		client_write(c, 2, FILE_SYNC);
		assert_int_equal(client_finish(c), written);
		client_read(c, 0);
		assert_int_equal(client_finish(c), read);
		client_commit(c);
		assert_int_equal(client_finish(c), written);
	}
}

/* All is well again, and is what the clients wrote. */
static void
end_of_two(struct world *w)
{
	unsigned k;

	drive(w, REPLIES);
	settle(w);
	world_end(w);
	harness_remount(w->h);
	for (k = 0; k < CLIENTS; k++)
		client_check_file(
			&w->client[k],
			harness_path(w->h, k % 2 == 0 ? "a/f" : "b/f"));
	world_free(w);
}

static void
test_bad_exports(void **state)
{
	struct world *w = world_of_two(*state);
	unsigned k;

	write_exports(w, "rw,no_such_option", NULL);
	reload(w, "reload failed");
	assert_true(harness_logged(w->h, "/exports:2: .*no_such_option"));
	expect(w, 0, NFS3_OK, NFS3_OK);
	expect(w, 1, NFS3_OK, NFS3_OK);
	write_exports(w, "rw", "rw");
	reload(w, "reloaded");
	expect(w, 0, NFS3_OK, NFS3_OK);
	expect(w, 1, NFS3_OK, NFS3_OK);
	for (k = 0; k < CLIENTS; k++)
		assert_int_equal(w->client[k].moves, 0);
	assert_int_equal(refused(w, 0) + refused(w, 1), 0);
	end_of_two(w);
}

static void
test_withdrawn(void **state)
{
	struct world *w = world_of_two(*state);

	write_exports(w, "rw", NULL);
	reload(w, "reloaded");
	expect(w, 0, NFS3_OK, NFS3_OK);
	expect(w, 1, NFS3ERR_STALE, NFS3ERR_STALE);
	drive(w, REPLIES);
	write_exports(w, "rw", "rw");
	reload(w, "reloaded");
	expect(w, 1, NFS3_OK, NFS3_OK);
	assert_int_equal(refused(w, 0), 0);
	end_of_two(w);
}

static void
test_shrunk(void **state)
{
	struct world *w = world_of_two(*state);

	write_exports(w, "ro", "rw");
	reload(w, "reloaded");
	expect(w, 0, NFS3ERR_ROFS, NFS3_OK);
	expect(w, 1, NFS3_OK, NFS3_OK);
	drive(w, REPLIES);
	write_exports(w, "rw", "rw");
	reload(w, "reloaded");
	expect(w, 0, NFS3_OK, NFS3_OK);
	assert_int_equal(refused(w, 1), 0);
	end_of_two(w);
}

int
main(void)
{
	static char uring[] = "uring", threads[] = "threads";
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_kill, uring),
		cmocka_unit_test_prestate(test_kill, threads),
		cmocka_unit_test_prestate(test_stop, uring),
		cmocka_unit_test_prestate(test_stop, threads),
		cmocka_unit_test_prestate(test_exclusive, uring),
		cmocka_unit_test_prestate(test_bad_exports, uring),
		cmocka_unit_test_prestate(test_withdrawn, uring),
		cmocka_unit_test_prestate(test_withdrawn, threads),
		cmocka_unit_test_prestate(test_shrunk, uring),
		cmocka_unit_test_prestate(test_shrunk, threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
