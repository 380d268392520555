/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One script of calls, in which the n-th operation of a kind fails, comes short
 * or is late, for n from 1 until the script runs through without meeting it.
 * Each time: what the replies said, whether the connection ended, the verifier,
 * the content, that the script went on, and that the server stopped with
 * nothing leaked. The server has to be built with -Dfault=true (io/fault.h).
 */
#include "client.h"
#include "site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct world {
	struct harness *h;
	char fault[200]; /* NVNFSD_FAULT=..., read by the next server */
	char name[32];
	bool strict;
	unsigned run;
	unsigned hits; /* of the last run */
};

/* What a point of this kind may do to the script. */
struct kind {
	const char *name, *what, *count;
	int status;  /* of one call, or 0 */
	bool ends;   /* the connection */
	bool moves;  /* the verifier */
	bool strict; /* every n; else n grows with itself */
};

static struct world *
world_new(const char *engine, const char *threads)
{
	static struct world world;
	struct world *w = &world;

	memset(w, 0, sizeof(*w));
	w->h = harness_new(NULL);
	if (!harness_mount(w->h, "xfs", 4096, 320))
		skip();
	/* As little as there can be: it is registered at each start. */
	harness_conf(w->h, "[limits]\nbuffer-memory = 32M\n");
	harness_arg(w->h, "--engine");
	harness_arg(w->h, engine);
	harness_arg(w->h, "--threads");
	harness_arg(w->h, threads);
	harness_env(w->h, w->fault);
	return w;
}

/* Of the export. */
static void
world_option(struct world *w, const char *option)
{
	char *end = strrchr(w->h->client, ')');

	assert_non_null(end);
	(void)snprintf(end, sizeof(w->h->client) - (size_t)(end - w->h->client),
		       ",%s)", option);
}

static void
world_free(struct world *w)
{
	harness_free(w->h);
}

/* A server with these points, and a client with a file of its own. */
static void
world_begin(struct world *w, const char *spec, struct client *c)
{
	(void)snprintf(w->fault, sizeof(w->fault), "NVNFSD_FAULT=%s", spec);
	(void)snprintf(w->name, sizeof(w->name), "f%u", ++w->run);
	harness_start(w->h);
	client_init(c, w->h, w->name, w->run % 16);
}

static void
world_end(struct world *w, struct client *c)
{
	client_fini(c);
	harness_stop(w->h);
	w->hits = (unsigned)harness_last_stat(w->h, "fault_hits");
	client_check_file(c, harness_path(w->h, w->name));
	harness_sh("rm %s", harness_path(w->h, w->name));
}

/* The script ----------------------------------------------------------------
 */

static void
write_one(struct client *c, unsigned i, int stable)
{
	client_write(c, i, stable);
	(void)client_finish(c);
}

static void
read_one(struct client *c, unsigned i)
{
	client_read(c, i);
	(void)client_finish(c);
}

static void
commit(struct client *c)
{
	client_commit(c);
	(void)client_finish(c);
}

/* Extending and overwriting, misaligned and aligned, split and whole, with
 * neighbours that share a page, and a hole. */
static void
script(struct client *c)
{
	unsigned a = client_add(c, 1001, 47008);
	unsigned b = client_add(c, 1001 + 47008, 47008);
	unsigned small = client_add(c, 1001 + 2 * 47008, 300);
	unsigned aligned = client_add(c, 131072, 65536);
	unsigned last = client_add(c, 200000, 100000);
	unsigned i;

	write_one(c, a, UNSTABLE);
	write_one(c, b, FILE_SYNC);
	write_one(c, small, UNSTABLE);
	write_one(c, aligned, FILE_SYNC);
	write_one(c, last, UNSTABLE);
	read_one(c, a);
	read_one(c, small);
	commit(c);
	write_one(c, a, FILE_SYNC);
	write_one(c, b, UNSTABLE);
	write_one(c, last, UNSTABLE);
	read_one(c, last);
	commit(c);
	client_settle(c);
	for (i = 0; i < c->records; i++) {
		assert_int_equal(c->record[i].acked, c->record[i].sent);
		assert_int_equal(c->record[i].stable, c->record[i].sent);
		read_one(c, i);
	}
}

/* Points --------------------------------------------------------------------
 */

/* What the script saw must be what the kind may do, no less and no more. */
static void
judge(const struct world *w, const struct kind *k, const struct client *c,
      int guarded)
{
	unsigned refused = c->refused + (guarded != NFS3_OK);
	unsigned once = w->hits > 0 && k->status != 0 ? 1 : 0;

	if (k->ends)
		assert_in_range(c->ends, 0, w->hits);
	else
		assert_int_equal(c->ends, 0);
	/* What had begun well is cut short instead. */
	assert_int_equal(refused + c->shortened, once);
	if (k->moves)
		assert_int_equal(c->shortened, 0);
	if (guarded != NFS3_OK)
		assert_int_equal(guarded, k->status);
	else if (refused > 0)
		assert_int_equal(c->bad, k->status);
	assert_int_equal(c->moves, w->hits > 0 && k->moves);
	assert_int_equal(harness_last_stat(w->h, "verifier_changes"),
			 w->hits > 0 && k->moves);
	assert_int_equal(harness_log_count(w->h, "failed: .*will write again"),
			 w->hits > 0 && k->moves);
}

/* One run; how many operations met the point. */
static unsigned
run_once(struct world *w, const struct kind *k, unsigned n)
{
	static struct client c;
	char spec[100];
	int guarded;

	(void)snprintf(
		spec, sizeof(spec), "%s:%u%s%s%s%s", k->name, n,
		k->what != NULL ? ":" : "", k->what != NULL ? k->what : "",
		k->count != NULL ? ":" : "", k->count != NULL ? k->count : "");
	harness_sh("rm -f %s/log %s", w->h->dir, harness_path(w->h, "guard"));
	world_begin(w, spec, &c);
	/* Sent again after a lost reply it must not find its own file. */
	guarded = client_create(&c, "guard", GUARDED, NULL);
	script(&c);
	world_end(w, &c);
	judge(w, k, &c, guarded);
	return w->hits;
}

static void
run_kind(struct world *w, const struct kind *k)
{
	unsigned n, runs = 0, hits;

	for (n = 1;; n += k->strict && w->strict ? 1 : 1 + n / 4) {
		hits = run_once(w, k, n);
		if (hits == 0)
			break;
		runs++;
	}
	assert_true(runs > 0);
	print_message("%s %s: %u runs\n", k->name,
		      k->what != NULL ? k->what : "", runs);
}

static const struct kind sockets[] = {
	{ "accept", "EMFILE", .strict = true },
	{ "accept", "EAGAIN", .strict = true },
	{ "recv_small", "EIO", .ends = true, .strict = true },
	{ "recv_small", "EAGAIN" },
	{ "recv_small", "short" },
	{ "recv", "EIO", .ends = true, .strict = true },
	{ "recv", "EAGAIN" },
	{ "recv", "short" },
	{ "sendmsg", "EIO", .ends = true, .strict = true },
	{ "sendmsg", "EAGAIN" },
	{ "sendmsg", "short" },
};

static const struct kind files[] = {
	{ "read", "EIO", .status = NFS3ERR_IO, .strict = true },
	{ "read", "EAGAIN" },
	{ "read", "short" },
	{ "write", "EIO", .status = NFS3ERR_IO, .strict = true },
	{ "write", "ENOSPC", .status = NFS3ERR_NOSPC },
	{ "write", "EAGAIN" },
	{ "write", "short" },
	{ "fsync", "EIO", .status = NFS3ERR_IO, .moves = true, .strict = true },
	{ "fsync", "ENOSPC", .status = NFS3ERR_NOSPC, .moves = true },
	{ "metasync", "EIO", .status = NFS3ERR_IO, .strict = true },
	{ "metasync", "ENOSPC", .strict = true },
};

static const struct kind loop[] = {
	{ "sqfull", .count = "2" },
	{ "eintr" },
};

/* The whole script under it. */
static const struct kind always[] = {
	{ "recv_small", "short", "*" },   { "recv", "short", "*" },
	{ "sendmsg", "short", "*" },      { "read", "short", "*" },
	{ "write", "short", "*" },        { "read", "EAGAIN", "*" },
	{ "write", "EAGAIN", "5" },       { "write", "delay=3", "*" },
	{ "write", "late=3", "*" },       { "read", "delay=3", "*" },
	{ "sendmsg", "delay=3", "*" },    { "recv_small", "late=3", "*" },
	{ "fsync", "delay=3", "*" },      { "eintr", NULL, "7" },
	{ "recv_small", "EAGAIN", "50" }, { "sendmsg", "EAGAIN", "20" },
};

static void
run_table(void **state, const struct kind *table, size_t rows)
{
	struct world *w = world_new(*state, "1");
	size_t i;

	/* What is strict is above what the two engines are: once will do. */
	w->strict = strcmp(*state, "uring") == 0;

	for (i = 0; i < rows; i++)
		run_kind(w, &table[i]);
	world_free(w);
}

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static void
test_sockets(void **state)
{
	run_table(state, sockets, ROWS(sockets));
}

static void
test_files(void **state)
{
	run_table(state, files, ROWS(files));
}

static void
test_loop(void **state)
{
	/* Only a ring has a queue that can be full. */
	bool ring = strcmp(*state, "uring") == 0;

	run_table(state, ring ? loop : loop + 1, ring ? 2 : 1);
}

static void
test_always(void **state)
{
	struct world *w = world_new(*state, "2");
	size_t i;

	for (i = 0; i < ROWS(always); i++)
		assert_true(run_once(w, &always[i], 1) > 0);
	world_free(w);
}

/* Neighbours ----------------------------------------------------------------
 */

#define PAIR_OPS 6u /* two WRITEs: head, middle, tail */
#define PAIRS    4u

/* Two WRITEs that share a page, at once, the second first where swapped. */
static void
pair(struct client *c[2], unsigned i, int stable, bool swapped)
{
	unsigned k;

	for (k = 0; k < 2; k++)
		client_write(c[k ^ swapped], i, stable);
	for (k = 0; k < 2; k++)
		assert_int_equal(client_finish(c[k]), NFS3_OK);
	for (k = 0; k < 2; k++) {
		client_read(c[k], i);
		assert_int_equal(client_finish(c[k]), NFS3_OK);
	}
}

/* In each of four pairs, the n-th piece takes its time. */
static void
delayed_pairs(struct world *w, const char *what, unsigned n)
{
	static struct client a, b;
	struct client *c[2] = { &a, &b };
	char spec[150];
	unsigned i;

	(void)snprintf(spec, sizeof(spec),
		       "write:%u:%s;write:%u:%s;write:%u:%s;write:%u:%s", n,
		       what, n + PAIR_OPS, what, n + 2 * PAIR_OPS, what,
		       n + 3 * PAIR_OPS, what);
	world_begin(w, spec, &a);
	client_init(&b, w->h, "none", a.salt + 1);
	b.fh = a.fh;
	for (i = 0; i < PAIRS; i++) {
		uint64_t at = 1001 + i * 1000003ull;

		client_add(&a, at, 47008);
		client_add(&b, at + 47008, 47008);
		pair(c, i, i < PAIRS / 2 ? UNSTABLE : FILE_SYNC, i % 2 != 0);
	}
	client_settle(&a);
	client_settle(&b);
	client_check_file(&b, harness_path(w->h, w->name));
	client_fini(&b);
	world_end(w, &a);
	assert_in_range(w->hits, 1, PAIRS);
}

static void
test_delays(void **state)
{
	struct world *w = world_new(*state, "2");
	unsigned n;

	for (n = 1; n <= PAIR_OPS; n++) {
		delayed_pairs(w, "delay=25", n);
		delayed_pairs(w, "late=25", n);
	}
	world_free(w);
}

/* Syncs that nobody waits for -------------------------------------------------
 */

/* A flush that makes pages clean, so that they can be dropped, fails: what was
 * acknowledged may be lost, and the next COMMIT has to tell. */
static void
test_flush(void **state)
{
	struct world *w = world_new(*state, "2");
	static struct client c;
	unsigned i;

	/* Else what lies scattered waits for more than this test writes. */
	world_option(w, "dirty-max=1M");
	world_begin(w, "flush:1:EIO", &c);
	/* Too small to be split: all pages of it wait in the cache. */
	for (i = 0; i < CLIENT_RECORDS_MAX; i++) {
		client_add(&c, 100 + 32768ull * i, 28000);
		client_write(&c, i, UNSTABLE);
		assert_int_equal(client_finish(&c), NFS3_OK);
		if (i % 64 == 63 && harness_stat(w->h, "fault_hits") > 0)
			break;
	}
	client_commit(&c);
	(void)client_finish(&c);
	/* All or, where the COMMIT came before it, the newer ones. */
	assert_true(c.resent > 0);
	client_settle(&c);
	assert_int_equal(c.moves, 1);
	assert_int_equal(harness_stat(w->h, "verifier_changes"), 1);
	world_end(w, &c);
	assert_int_equal(w->hits, 1);
	world_free(w);
}

/* Edges in memory -------------------------------------------------------------
 */

#define JOINED 8u

/* Neighbours whose edges meet in memory, with a READ that wants some of them,
 * twice over the same bytes. */
static void
joined_script(struct client *c)
{
	for (unsigned i = 0; i < JOINED; i++)
		client_add(c, 1001 + 47008ull * i, 47008);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < JOINED; i++)
			write_one(c, round == 0 ? i : JOINED - 1 - i, UNSTABLE);
		read_one(c, JOINED - 1);
		read_one(c, 0);
		commit(c);
	}
	client_settle(c);
}

/* A block that was acknowledged from memory is not lost with the first write of
 * it that fails. */
static void
test_joined(void **state)
{
	static const char *const what[] = { "EIO", "short", "EAGAIN" };
	struct world *w = world_new(*state, "2");

	world_option(w, "edges=join");
	for (unsigned k = 0; k < 3; k++)
		for (unsigned n = 1;; n++) {
			static struct client c;
			char spec[64];
			uint64_t joined;

			(void)snprintf(spec, sizeof(spec), "write:%u:%s", n,
				       what[k]);
			world_begin(w, spec, &c);
			joined_script(&c);
			joined = harness_stat(w->h, "edges_joined");
			world_end(w, &c);
			assert_true(joined > 0);
			assert_int_equal(c.moves, 0);
			if (w->hits == 0)
				break;
		}
	world_free(w);
}

/* The last sync fails: the server must not end as if all were well, and the
 * next one has another verifier. */
static void
test_last_sync(void **state)
{
	struct world *w = world_new(*state, "2");
	static struct client c;

	world_begin(w, "fsync:1:EIO", &c);
	client_add(&c, 5, 100000);
	client_write(&c, 0, UNSTABLE);
	assert_int_equal(client_finish(&c), NFS3_OK);
	harness_end(w->h, 1);
	assert_true(harness_logged(w->h, "not everything could be synced"));
	(void)snprintf(w->fault, sizeof(w->fault), "NVNFSD_FAULT=");
	harness_start(w->h);
	client_reconnect(&c);
	client_settle(&c);
	assert_int_equal(c.resent, 1);
	world_end(w, &c);
	world_free(w);
}

/* A file system that found itself in error writes nothing back any more, so
 * that no direct READ can be had of it; through the cache it can. */
static void
test_no_write_back(void **state)
{
	struct site *s = site_prepare(*state, NULL, "xfs");
	static uint8_t data[8192];
	struct raw_fh fh;
	READ3res r;

	harness_env(s->h, "NVNFSD_FAULT=read:1:EROFS");
	site_start(s);
	memset(data, 'd', sizeof(data));
	raw_create(s->r, &s->root, "file", 0644, &fh);
	site_expect(s, ask_write(&fh, 0, data, sizeof(data), FILE_SYNC),
		    NFS3_OK);
	assert_int_equal(raw_read(s->r, &fh, 4096, 4096, &r), NFS3_OK);
	assert_int_equal(r.READ3res_u.resok.count, 4096);
	assert_memory_equal(r.READ3res_u.resok.data.data_val, data, 4096);
	assert_int_equal(harness_stat(s->h, "fallbacks"), 1);
	site_free(s);
}

int
main(void)
{
	static char uring[] = "uring", threads[] = "threads";
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_sockets, uring),
		cmocka_unit_test_prestate(test_sockets, threads),
		cmocka_unit_test_prestate(test_files, uring),
		cmocka_unit_test_prestate(test_files, threads),
		cmocka_unit_test_prestate(test_loop, uring),
		cmocka_unit_test_prestate(test_loop, threads),
		cmocka_unit_test_prestate(test_always, uring),
		cmocka_unit_test_prestate(test_always, threads),
		cmocka_unit_test_prestate(test_delays, uring),
		cmocka_unit_test_prestate(test_delays, threads),
		cmocka_unit_test_prestate(test_flush, uring),
		cmocka_unit_test_prestate(test_flush, threads),
		cmocka_unit_test_prestate(test_joined, uring),
		cmocka_unit_test_prestate(test_joined, threads),
		cmocka_unit_test_prestate(test_last_sync, uring),
		cmocka_unit_test_prestate(test_no_write_back, uring),
		cmocka_unit_test_prestate(test_no_write_back, threads),
	};

	if (!harness_has_faults()) {
		puts("skip: this server was built without -Dfault=true");
		return 77;
	}
	/* Hundreds of servers, each with its syncs. */
	if (access("/dev/shm", W_OK) == 0)
		(void)setenv("TMPDIR", "/dev/shm", 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
