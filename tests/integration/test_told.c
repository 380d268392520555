/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A failure of the device is told to every writer concerned, and once: to whose
 * call met it by its status, to all others of the export with data that is not
 * stable by a verifier that has moved, to those of another export not at all;
 * and then service goes on. The server has to be built with -Dfault=true.
 */
#include "client.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define WRITERS 4u
enum { MEETS, SAME_FILE, SAME_EXPORT, OTHER_EXPORT };

struct world {
	struct harness *h;
	struct client client[WRITERS];
};

static struct world *
world_new(const char *engine, const char *fault)
{
	static struct world world;
	static char other[400], line[600];
	struct world *w = &world;
	unsigned i;

	memset(w, 0, sizeof(*w));
	w->h = harness_new(NULL);
	if (!harness_mount(w->h, "xfs", 4096, 320)) {
		harness_free(w->h);
		return NULL;
	}
	(void)snprintf(other, sizeof(other), "%s/other", w->h->export);
	(void)snprintf(line, sizeof(line), "%s *(rw,no_root_squash,insecure)",
		       other);
	assert_int_equal(mkdir(other, 0777), 0);
	harness_arg(w->h, "--export");
	harness_arg(w->h, line);
	harness_arg(w->h, "--engine");
	harness_arg(w->h, engine);
	harness_env(w->h, fault);
	harness_start(w->h);
	client_init(&w->client[MEETS], w->h, "f", 1);
	client_init(&w->client[SAME_FILE], w->h, "f", 2);
	client_init(&w->client[SAME_EXPORT], w->h, "g", 3);
	client_init_at(&w->client[OTHER_EXPORT], w->h, other, "h", 4);
	for (i = 0; i < WRITERS; i++)
		client_add(&w->client[i], 1001 + i * 100000ull, 60000);
	return w;
}

static void
write_all(struct world *w, unsigned from)
{
	for (unsigned i = from; i < WRITERS; i++) {
		client_write(&w->client[i], 0, UNSTABLE);
		assert_int_equal(client_finish(&w->client[i]), NFS3_OK);
	}
}

static void
world_end(struct world *w)
{
	static const char *const name[] = { "f", "f", "g", "other/h" };
	unsigned i;

	/* Once more, without any trouble. */
	write_all(w, 0);
	for (i = 0; i < WRITERS; i++) {
		client_commit(&w->client[i]);
		assert_int_equal(client_finish(&w->client[i]), NFS3_OK);
		assert_false(client_keeps(&w->client[i]));
	}
	for (i = 0; i < WRITERS; i++)
		client_fini(&w->client[i]);
	harness_stop(w->h);
	harness_remount(w->h);
	for (i = 0; i < WRITERS; i++)
		client_check_file(&w->client[i], harness_path(w->h, name[i]));
	harness_free(w->h);
}

/* What was told since the start. */
static void
expect_told(const struct world *w, unsigned i, unsigned refused, unsigned moves)
{
	const struct client *c = &w->client[i];

	if (c->refused != refused || c->moves != moves || c->ends != 0)
		fail_msg("writer %u: %u errors, %u verifiers", i, c->refused,
			 c->moves);
}

/* The sync fails that a COMMIT asks for. */
static void
test_commit(void **state)
{
	struct world *w = world_new(*state, "NVNFSD_FAULT=fsync:1:EIO");
	unsigned i;

	if (w == NULL)
		skip();
	write_all(w, 0);
	client_commit(&w->client[MEETS]);
	assert_int_equal(client_finish(&w->client[MEETS]), NFS3ERR_IO);
	for (i = 0; i < WRITERS; i++)
		client_settle(&w->client[i]);
	expect_told(w, MEETS, 1, 1);
	/* His bytes were part of it: by the status or by the verifier. */
	expect_told(w, SAME_FILE, w->client[SAME_FILE].refused, 1);
	assert_in_range(w->client[SAME_FILE].refused, 0, 1);
	expect_told(w, SAME_EXPORT, 0, 1);
	for (i = 0; i < OTHER_EXPORT; i++)
		assert_int_equal(w->client[i].resent, 1);
	expect_told(w, OTHER_EXPORT, 0, 0);
	assert_int_equal(w->client[OTHER_EXPORT].resent, 0);
	assert_int_equal(harness_stat(w->h, "verifier_changes"), 1);
	world_end(w);
}

/* The sync of a stable WRITE, which brings others' bytes along. */
static void
test_stable_write(void **state)
{
	struct world *w = world_new(*state, "NVNFSD_FAULT=fsync:1:EIO");
	unsigned i;

	if (w == NULL)
		skip();
	write_all(w, SAME_FILE);
	client_write(&w->client[MEETS], 0, FILE_SYNC);
	assert_int_equal(client_finish(&w->client[MEETS]), NFS3ERR_IO);
	client_write_again(&w->client[MEETS], 0, FILE_SYNC);
	assert_int_equal(client_finish(&w->client[MEETS]), NFS3_OK);
	for (i = SAME_FILE; i < WRITERS; i++)
		client_settle(&w->client[i]);
	assert_int_equal(w->client[MEETS].refused, 1);
	expect_told(w, SAME_FILE, w->client[SAME_FILE].refused, 1);
	assert_in_range(w->client[SAME_FILE].refused, 0, 1);
	expect_told(w, SAME_EXPORT, 0, 1);
	assert_int_equal(w->client[SAME_FILE].resent, 1);
	assert_int_equal(w->client[SAME_EXPORT].resent, 1);
	expect_told(w, OTHER_EXPORT, 0, 0);
	assert_int_equal(harness_stat(w->h, "verifier_changes"), 1);
	world_end(w);
}

/* A WRITE that fails itself is its writer's matter alone. */
static void
test_write(void **state)
{
	struct world *w = world_new(*state, "NVNFSD_FAULT=write:1:EIO");
	unsigned i;

	if (w == NULL)
		skip();
	client_write(&w->client[MEETS], 0, UNSTABLE);
	assert_int_equal(client_finish(&w->client[MEETS]), NFS3ERR_IO);
	write_all(w, SAME_FILE);
	for (i = SAME_FILE; i < WRITERS; i++) {
		client_settle(&w->client[i]);
		expect_told(w, i, 0, 0);
		assert_int_equal(w->client[i].resent, 0);
	}
	assert_int_equal(harness_stat(w->h, "verifier_changes"), 0);
	world_end(w);
}

int
main(void)
{
	static char uring[] = "uring", threads[] = "threads";
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_commit, uring),
		cmocka_unit_test_prestate(test_commit, threads),
		cmocka_unit_test_prestate(test_stable_write, uring),
		cmocka_unit_test_prestate(test_stable_write, threads),
		cmocka_unit_test_prestate(test_write, uring),
		cmocka_unit_test_prestate(test_write, threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
