/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WRITEs that race with what happens to their file's name: renamed to and fro
 * while it is written, truncated and read it is what it would be otherwise;
 * removed, or replaced by a RENAME, each WRITE is done or the handle is stale,
 * nothing hangs, and the room is there again. In each write-mode.
 */
#include "ask.h"
#include "mix.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Removed ------------------------------------------------------------------
 */

#define WRITES      24u
#define BEFORE      16u /* of them sent before the file goes */
#define WRITE_BYTES (1u << 20)
#define ROUNDS      24u
#define DEVICE_MIB  320u /* less than all rounds write */
#define CONNECTIONS 4u

_Static_assert((uint64_t)ROUNDS *BEFORE *WRITE_BYTES > DEVICE_MIB << 20,
	       "without the room of removed files it does not suffice");

struct call {
	struct flow_call flow;
	int status;
};

struct world {
	struct harness *h;
	struct flow *flow;
	struct raw_fh root;
	struct call write[WRITES], end;
	uint64_t random;
};

static void
call_done(struct flow_call *f, struct raw *r)
{
	struct call *c = (struct call *)f; /* its first member */

	c->status = (int)raw_get(r, r->body);
}

static struct world *
world_new(const char *write_mode)
{
	static struct world world;
	struct world *w = &world;

	memset(w, 0, sizeof(*w));
	w->random = 20261201;
	w->h = harness_new(NULL);
	if (!harness_mount(w->h, "xfs", 4096, DEVICE_MIB)) {
		harness_free(w->h);
		return NULL;
	}
	harness_arg(w->h, "--write-mode");
	harness_arg(w->h, write_mode);
	harness_start(w->h);
	w->flow = flow_new(w->h->port, CONNECTIONS);
	assert_int_equal(
		raw_mount(flow_raw(w->flow, 0), w->h->export, &w->root), 0);
	return w;
}

/* Of odd lengths at odd places, and aligned ones. */
static void
send_writes(struct world *w, const struct raw_fh *fh, unsigned from,
	    unsigned to)
{
	static uint8_t data[WRITE_BYTES];
	unsigned i;

	for (i = from; i < to; i++) {
		unsigned odd = i % 2 * 1001;
		const struct flow_write f = {
			.fh = fh,
			.offset = (uint64_t)i * WRITE_BYTES + odd,
			.data = data,
			.bytes = WRITE_BYTES - odd,
			.stable = (int)(i % 3), /* UNSTABLE to FILE_SYNC */
		};

		w->write[i].flow.done = call_done;
		flow_write(w->flow, i % CONNECTIONS, &w->write[i].flow, &f);
	}
}

/* The name f becomes nobody's, or another file's. */
static void
send_end(struct world *w, bool replace)
{
	struct question q = replace ? ask_rename(&w->root, "g", &w->root, "f")
				    : ask_remove(&w->root, "f");

	w->end.flow.done = call_done;
	if (replace)
		flow_nfs(w->flow, 0, &w->end.flow, RENAME, &q.u.rename);
	else
		flow_nfs(w->flow, 0, &w->end.flow, REMOVE, &q.u.remove);
}

static void
check_gone(struct world *w, const struct raw_fh *fh)
{
	const struct question all[] = {
		ask_write(fh, 5, "text", 4, UNSTABLE),
		ask_write(fh, 5, "text", 4, FILE_SYNC),
		ask_read(fh, 0, 4),
		ask_commit(fh),
		ask_getattr(fh),
	};
	unsigned i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		assert_int_equal(ask(flow_raw(w->flow, i), all[i], NULL),
				 NFS3ERR_STALE);
}

/* How many WRITEs were done. */
static unsigned
removed_round(struct world *w, bool replace)
{
	unsigned i, turns = (unsigned)(mix_random(&w->random) % BEFORE);
	unsigned done = 0;
	struct raw_fh fh, other;

	raw_create(flow_raw(w->flow, 0), &w->root, "f", 0644, &fh);
	if (replace)
		raw_create(flow_raw(w->flow, 1), &w->root, "g", 0644, &other);
	send_writes(w, &fh, 0, BEFORE);
	for (i = 0; i < turns; i++)
		(void)flow_turn(w->flow);
	send_end(w, replace);
	send_writes(w, &fh, BEFORE, WRITES);
	flow_drain(w->flow);
	assert_int_equal(w->end.status, NFS3_OK);
	for (i = 0; i < WRITES; i++) {
		done += w->write[i].status == NFS3_OK;
		if (w->write[i].status != NFS3_OK &&
		    w->write[i].status != NFS3ERR_STALE)
			fail_msg("WRITE %u: status %d", i, w->write[i].status);
	}
	check_gone(w, &fh);
	if (replace)
		assert_int_equal(ask(flow_raw(w->flow, 0),
				     ask_write(&other, 0, "x", 1, FILE_SYNC),
				     NULL),
				 NFS3_OK);
	return done;
}

static void
test_removed(void **state)
{
	struct world *w = world_new(*state);
	unsigned round, done = 0;

	if (w == NULL)
		skip();
	for (round = 0; round < ROUNDS; round++)
		done += removed_round(w, round % 2 == 1);
	print_message("%u of %u WRITEs were done\n", done, ROUNDS * WRITES);
	assert_int_equal(harness_stat(w->h, "verifier_changes"), 0);
	flow_free(w->flow);
	harness_stop(w->h);
	harness_free(w->h);
}

/* Renamed --------------------------------------------------------------------
 */

#define FILES 2u

/* A process: until stop can be read, f0 and f1 go elsewhere and come back. */
static void
rename_on(const struct harness *h, const struct raw_fh *root, int stop)
{
	struct pollfd p = { .fd = stop, .events = POLLIN };
	struct raw *r = raw_connect(h->port);
	unsigned i;

	for (i = 0; poll(&p, 1, 0) == 0; i++) {
		const char *name = i % FILES == 0 ? "f0" : "f1";

		if (ask(r, ask_rename(root, name, root, "away"), NULL) !=
			    NFS3_OK ||
		    ask(r, ask_rename(root, "away", root, name), NULL) !=
			    NFS3_OK)
			_exit(1);
	}
	_exit(i > 10 ? 0 : 2);
}

static pid_t
renamer_start(const struct harness *h, const struct raw_fh *root,
	      const int stop[2])
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(stop[1]); /* or it would never be told */
		rename_on(h, root, stop[0]);
	}
	return pid;
}

static void
test_renamed(void **state)
{
	struct harness *h = harness_new(NULL);
	struct mix_file file[FILES];
	struct mix m = { .operations_min = 1500, .seed = 20261201 };
	const char *name[FILES] = { "f0", "f1" };
	struct raw_fh root;
	int stop[2], status;
	pid_t renamer;
	struct raw *r;

	if (!harness_mount(h, "xfs", 4096, DEVICE_MIB)) {
		harness_free(h);
		skip();
	}
	harness_arg(h, "--write-mode");
	harness_arg(h, *state);
	harness_start(h);
	mix_setup(&m, h, file, FILES);
	r = flow_raw(m.flow, 0);
	assert_int_equal(raw_mount(r, h->export, &root), 0);
	for (unsigned i = 0; i < FILES; i++)
		mix_file_init(&file[i], r, &root, harness_path(h, name[i]),
			      name[i]);
	assert_int_equal(pipe(stop), 0);
	renamer = renamer_start(h, &root, stop);
	mix_run(&m);
	close(stop[1]);
	assert_int_equal(waitpid(renamer, &status, 0), renamer);
	assert_int_equal(status, 0);
	close(stop[0]);
	mix_end(&m, h);
}

int
main(void)
{
	static char direct[] = "direct", buffered[] = "buffered",
		    dontcache[] = "dontcache";
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_removed, direct),
		cmocka_unit_test_prestate(test_removed, buffered),
		cmocka_unit_test_prestate(test_removed, dontcache),
		cmocka_unit_test_prestate(test_renamed, direct),
		cmocka_unit_test_prestate(test_renamed, buffered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
