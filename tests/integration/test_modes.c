/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is read is what was written, in every mode: a file in each combination
 * of read-mode, write-mode and edges (exports of their own below one file
 * system), all used at once, with truncations by SETATTR and by a local
 * process, local readers and writers among the calls; one more file is used
 * through three exports of different modes at the same time. On XFS and ext4
 * with 4096- and 512-byte blocks and on btrfs, by both engines.
 * Where edges wait in the server's memory nobody else comes by.
 * NVNFSD_TEST_SECONDS makes each run at least that long.
 */
#include "mix.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define OPERATIONS_MIN 6000u /* of each file system, by all files together */

static const struct mode {
	const char *read, *write, *edges;
} modes[] = {
	{ "direct", "direct", "drop" },
	{ "dontcache", "direct", "drop" },
	{ "buffered", "direct", "drop" },
	{ "direct", "direct", "dontcache" },
	{ "dontcache", "direct", "dontcache" },
	{ "buffered", "direct", "dontcache" },
	{ "direct", "direct", "buffered" },
	{ "dontcache", "direct", "buffered" },
	{ "buffered", "direct", "buffered" },
	{ "direct", "direct", "join" },
	{ "dontcache", "direct", "join" },
	{ "buffered", "direct", "join" },
	{ "direct", "dontcache", "drop" },
	{ "dontcache", "dontcache", "drop" },
	{ "buffered", "dontcache", "drop" },
	{ "direct", "buffered", "drop" },
	{ "dontcache", "buffered", "drop" },
	{ "buffered", "buffered", "drop" },
};

#define MODES (sizeof(modes) / sizeof(modes[0]))

/* Exports inside one another: a file in the innermost has three handles. */
static const char *const nested[] = { "n", "n/n", "n/n/n" };
static const struct mode nested_modes[] = {
	{ "direct", "direct", "drop" },
	{ "buffered", "buffered", "drop" },
	{ "dontcache", "direct", "dontcache" },
};

#define NESTED (sizeof(nested) / sizeof(nested[0]))
#define FILES  (MODES + 1)

struct world {
	struct harness *h;
	struct mix mix;
	struct mix_file file[FILES];
	char table[300];
	bool cut_small; /* so that even short middles go direct */
};

static void
export_line(struct world *w, FILE *f, const char *dir, const struct mode *m)
{
	assert_int_equal(mkdir(harness_path(w->h, dir), 0777), 0);
	assert_true(fprintf(f,
			    "%s *(rw,no_root_squash,insecure,read-mode=%s,"
			    "write-mode=%s,edges=%s%s)\n",
			    harness_path(w->h, dir), m->read, m->write,
			    m->edges,
			    w->cut_small ? ",direct-min=4k" : "") > 0);
}

static void
write_table(struct world *w)
{
	char dir[16];
	unsigned i;
	FILE *f;

	(void)snprintf(w->table, sizeof(w->table), "%s/table", w->h->dir);
	f = fopen(w->table, "w");
	assert_non_null(f);
	for (i = 0; i < MODES; i++) {
		(void)snprintf(dir, sizeof(dir), "m%u", i);
		export_line(w, f, dir, &modes[i]);
	}
	for (i = 0; i < NESTED; i++)
		export_line(w, f, nested[i], &nested_modes[i]);
	assert_int_equal(fclose(f), 0);
}

static void
mount_dir(struct world *w, const char *dir, struct raw_fh *fh)
{
	assert_int_equal(raw_mount(flow_raw(w->mix.flow, 0),
				   harness_path(w->h, dir), fh),
			 0);
}

static void
make_files(struct world *w)
{
	struct raw *r = flow_raw(w->mix.flow, 0);
	struct raw_fh dir;
	char name[40];
	unsigned i;

	for (i = 0; i < MODES; i++) {
		(void)snprintf(name, sizeof(name), "m%u", i);
		mount_dir(w, name, &dir);
		(void)snprintf(name, sizeof(name), "m%u/f", i);
		mix_file_init(&w->file[i], r, &dir, harness_path(w->h, name),
			      "f");
		w->file[i].remote = strcmp(modes[i].edges, "join") == 0;
	}
	for (i = NESTED; i-- > 0;) {
		mount_dir(w, nested[i], &dir);
		/* By way of "n" below "n" in the outer ones. */
		for (unsigned k = i; k + 1 < NESTED; k++)
			assert_int_equal(raw_lookup(r, &dir, "n", &dir),
					 NFS3_OK);
		if (i == NESTED - 1)
			mix_file_init(&w->file[MODES], r, &dir,
				      harness_path(w->h, "n/n/n/f"), "f");
		else
			mix_file_way(&w->file[MODES], r, &dir, "f");
	}
}

static void
start(struct world *w, const char *engine)
{
	write_table(w);
	harness_arg(w->h, "--exports");
	harness_arg(w->h, w->table);
	harness_arg(w->h, "--engine");
	harness_arg(w->h, engine);
	harness_start(w->h);
	mix_setup(&w->mix, w->h, w->file, FILES);
	w->mix.operations_min = OPERATIONS_MIN;
	w->mix.seconds = mix_seconds(0);
	make_files(w);
}

static void
run(void **state)
{
	const struct mix_place *p = *state;
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->h = harness_new(NULL);
	if (!harness_mount(w->h, p->fs, p->sector, 512)) {
		harness_free(w->h);
		free(w);
		skip();
		return;
	}
	w->cut_small = p->sector == 512;
	w->mix.seed = 0x9e3779b97f4a7c15u ^ p->sector;
	start(w, p->engine);
	mix_run(&w->mix);
	print_message("%s/%u %s: %" PRIu64 " WRITEs, %" PRIu64
		      " READs, %" PRIu64 " COMMITs, %" PRIu64
		      " truncations, %" PRIu64 " local operations\n",
		      p->fs, p->sector, p->engine, w->mix.writes, w->mix.reads,
		      w->mix.commits, w->mix.truncates, w->mix.locals);
	mix_end(&w->mix, w->h);
	free(w);
}

int
main(void)
{
	static const struct mix_place places[] = {
		{ "xfs, 4096, uring", "xfs", 4096, "uring" },
		{ "xfs, 512, uring", "xfs", 512, "uring" },
		{ "ext4, 4096, uring", "ext4", 4096, "uring" },
		{ "ext4, 512, uring", "ext4", 512, "uring" },
		{ "btrfs, uring", "btrfs", 4096, "uring" },
		{ "xfs, 4096, threads", "xfs", 4096, "threads" },
		{ "xfs, 512, threads", "xfs", 512, "threads" },
		{ "ext4, 4096, threads", "ext4", 4096, "threads" },
		{ "ext4, 512, threads", "ext4", 512, "threads" },
		{ "btrfs, threads", "btrfs", 4096, "threads" },
	};

	return mix_at_places(run, places, sizeof(places) / sizeof(places[0]));
}
