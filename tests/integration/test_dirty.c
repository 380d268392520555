/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dirty-max holds: however much clients send at once, no more than that of an
 * export is dirty or under write-back in the page cache at any moment. Looked
 * at with cachestat(2), while WRITEs of all sizes go to several files, in the
 * modes that use the page cache, and small ones in direct mode; a file whose
 * removal throws dirty pages away gives its room back.
 */
#include "flow.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILES      4u
#define IN_FLIGHT  64u
#define DIRTY_MAX  (4ul << 20)
#define PAGE       4096ul
#define CACHESTAT  451
#define ROUNDS_MAX 100u

struct slot {
	struct flow_call call;
	struct world *world;
	unsigned index;
};

struct world {
	struct harness *h;
	struct flow *flow;
	struct raw_fh dir, fh[FILES];
	int fd[FILES];
	struct slot slot[IN_FLIGHT];
	uint8_t *data;
	uint32_t bytes; /* of a WRITE */
	uint64_t at[FILES];
	uint64_t left; /* WRITEs to send */
	unsigned done;
	uint64_t pages_max;
	bool looked;
};

static void
name_of(unsigned i, char name[16])
{
	(void)snprintf(name, 16, "f%u", i);
}

/* Dirty or under write-back, of all files. */
static void
look(struct world *w)
{
	uint64_t pages = 0;

	for (unsigned i = 0; i < FILES; i++) {
		const uint64_t range[2] = { 0, 0 };
		uint64_t stat[5];

		if (syscall(CACHESTAT, w->fd[i], range, stat, 0) != 0)
			return;
		pages += stat[1] + stat[2];
	}
	w->looked = true;
	if (pages > w->pages_max)
		w->pages_max = pages;
}

static void
next(struct slot *s)
{
	struct world *w = s->world;
	unsigned i = s->index % FILES;
	struct flow_write f = { .fh = &w->fh[i],
				.offset = w->at[i],
				.data = w->data,
				.bytes = w->bytes,
				.stable = UNSTABLE };

	if (w->left == 0)
		return;
	w->left--;
	w->at[i] += w->bytes;
	flow_write(w->flow, s->index, &s->call, &f);
}

static void
slot_done(struct flow_call *c, struct raw *r)
{
	struct slot *s = (struct slot *)c; /* its first member */
	WRITE3res res;

	memset(&res, 0, sizeof(res));
	raw_result(r, (raw_zdr_fn *)zdr_WRITE3res, &res);
	assert_int_equal(res.status, NFS3_OK);
	raw_forget(r);
	if (s->world->done++ % 8 == 0)
		look(s->world);
	next(s);
}

static struct world *
start(const char *mode)
{
	struct world *w = calloc(1, sizeof(*w));
	static char options[200];
	char name[16];

	assert_non_null(w);
	(void)snprintf(options, sizeof(options),
		       "rw,no_root_squash,insecure,write-mode=%s,dirty-max=4M",
		       mode);
	w->h = harness_new(options);
	if (!harness_mount(w->h, "xfs", 4096, 512)) {
		harness_free(w->h);
		free(w);
		return NULL;
	}
	harness_start(w->h);
	w->flow = flow_new(w->h->port, 4);
	assert_int_equal(raw_mount(flow_raw(w->flow, 0), w->h->export, &w->dir),
			 0);
	for (unsigned i = 0; i < FILES; i++) {
		name_of(i, name);
		raw_create(flow_raw(w->flow, 0), &w->dir, name, 0644,
			   &w->fh[i]);
		w->fd[i] = open(harness_path(w->h, name), O_RDONLY | O_CLOEXEC);
		assert_true(w->fd[i] >= 0);
	}
	w->data = calloc(1, 1u << 20);
	assert_non_null(w->data);
	return w;
}

static void
run(struct world *w, uint32_t bytes, uint64_t writes)
{
	w->bytes = bytes;
	w->left = writes;
	for (unsigned i = 0; i < IN_FLIGHT; i++) {
		w->slot[i].world = w;
		w->slot[i].index = i;
		w->slot[i].call.done = slot_done;
		next(&w->slot[i]);
	}
	flow_drain(w->flow);
}

static void
finish(struct world *w)
{
	if (w->looked)
		assert_in_range(w->pages_max, 1, DIRTY_MAX / PAGE);
	print_message("%lu of %lu pages\n", (unsigned long)w->pages_max,
		      DIRTY_MAX / PAGE);
	for (unsigned i = 0; i < FILES; i++)
		close(w->fd[i]);
	flow_free(w->flow);
	harness_stop(w->h);
	harness_free(w->h);
	free(w->data);
	free(w);
}

static void
test_bound(const char *mode, uint32_t largest)
{
	struct world *w = start(mode);
	unsigned rounds = 0;

	if (w == NULL) {
		skip();
		return;
	}
	for (uint32_t bytes = 6000; bytes <= largest; bytes *= 4)
		run(w, bytes, (12u << 20) / bytes);
	/* They did wait, or will: a slow server is written back as fast as it
	 * is written to. */
	while (harness_stat(w->h, "dirty_waits") == 0 && rounds++ < ROUNDS_MAX)
		run(w, largest, IN_FLIGHT);
	assert_true(harness_stat(w->h, "dirty_waits") > 0);
	assert_true(harness_stat(w->h, "dirty_wait_ns") > 0);
	finish(w);
}

static void
test_buffered(void **state)
{
	test_bound("buffered", 1u << 20);
}

static void
test_dontcache(void **state)
{
	test_bound("dontcache", 1u << 20);
}

/* What is small is whole, and in the page cache for a while. */
static void
test_direct(void **state)
{
	struct world *w = start("direct");

	if (w == NULL) {
		skip();
		return;
	}
	run(w, 6000, 4000);
	run(w, 24000, 1000);
	finish(w);
}

static void
remove_file(struct world *w, char *name)
{
	REMOVE3args args;
	REMOVE3res res;

	memset(&args, 0, sizeof(args));
	memset(&res, 0, sizeof(res));
	args.object.dir = raw_nfs_fh(&w->dir);
	args.object.name = name;
	raw_nfs(flow_raw(w->flow, 0), REMOVE, &args, &res);
	assert_int_equal(res.status, NFS3_OK);
}

/* Removed with dirty pages: their room is there again, or this never ends. */
static void
test_removed(void **state)
{
	struct world *w = start("buffered");
	char name[16];

	if (w == NULL) {
		skip();
		return;
	}
	for (unsigned round = 0; round < 8; round++) {
		run(w, 60000, 40); /* some of it is not flushed yet */
		for (unsigned i = 0; i < FILES; i++) {
			name_of(i, name);
			close(w->fd[i]);
			remove_file(w, name);
			raw_create(flow_raw(w->flow, 0), &w->dir, name, 0644,
				   &w->fh[i]);
			w->fd[i] = open(harness_path(w->h, name),
					O_RDONLY | O_CLOEXEC);
			assert_true(w->fd[i] >= 0);
			w->at[i] = 0;
		}
	}
	finish(w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buffered),
		cmocka_unit_test(test_dontcache),
		cmocka_unit_test(test_direct),
		cmocka_unit_test(test_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
