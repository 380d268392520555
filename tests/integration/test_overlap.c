/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random misaligned WRITEs of 1 byte to 300 KiB from many writers, overlapping
 * ones among them, with direct and buffered READs between them: no WRITE and no
 * COMMIT fails, no byte is stale. On XFS and ext4 with 4096- and 512-byte
 * blocks, and on btrfs, for NVNFSD_TEST_SECONDS (5) each.
 */
#include "mix.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_BYTES (6u << 20) /* small, so that much overlaps */
#define WRITERS    32u

/* The file by two exports, one of which reads through the page cache. */
static void
start(struct harness *h, struct mix *m, struct mix_file *file)
{
	static char line[600];
	struct raw_fh root, sub;
	struct raw *r;

	assert_int_equal(mkdir(harness_path(h, "sub"), 0777), 0);
	(void)snprintf(line, sizeof(line),
		       "%s/sub *(rw,no_root_squash,insecure,"
		       "read-mode=buffered)",
		       h->export);
	harness_arg(h, "--export");
	harness_arg(h, line);
	harness_start(h);
	m->flow = flow_new(h->port, 8);
	r = flow_raw(m->flow, 0);
	assert_int_equal(raw_mount(r, h->export, &root), 0);
	assert_int_equal(raw_lookup(r, &root, "sub", &sub), NFS3_OK);
	mix_file_init(file, r, &sub, harness_path(h, "sub/f"), "f");
	assert_int_equal(raw_mount(r, harness_path(h, "sub"), &sub), 0);
	mix_file_way(file, r, &sub, "f");
}

static void
run(void **state)
{
	const struct mix_place *p = *state;
	struct harness *h = harness_new(NULL);
	struct mix_file file;
	struct mix m = { .file = &file,
			 .files = 1,
			 .in_flight = WRITERS,
			 .file_bytes = FILE_BYTES,
			 .bytes_max = 300u << 10,
			 .seed = 88172645463325252u + p->sector,
			 .seconds = mix_seconds(5) };

	if (!harness_mount(h, p->fs, p->sector, 512)) {
		harness_free(h);
		skip();
	}
	if (strcmp(p->fs, "btrfs") == 0) { /* which is not the default there */
		harness_arg(h, "--write-mode");
		harness_arg(h, "direct");
		harness_arg(h, "--read-mode");
		harness_arg(h, "direct");
	}
	harness_arg(h, "--engine");
	harness_arg(h, p->engine);
	start(h, &m, &file);
	mix_run(&m);
	print_message("%s/%u %s: %" PRIu64 " WRITEs (%" PRIu64 " MiB), %" PRIu64
		      " READs, %" PRIu64 " COMMITs\n",
		      p->fs, p->sector, p->engine, m.writes, m.bytes >> 20,
		      m.reads, m.commits);
	/* Most of them large enough to be cut, and not there for nothing. */
	assert_true(harness_stat(h, "writes.split") > m.writes / 4);
	/* Whoever waited did so for some time. */
	assert_int_equal(harness_stat(h, "range_waits") > 0,
			 harness_stat(h, "range_wait_ns") > 0);
	mix_end(&m, h);
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
		{ "xfs, threads", "xfs", 4096, "threads" },
		{ "ext4, threads", "ext4", 512, "threads" },
	};

	return mix_at_places(run, places, sizeof(places) / sizeof(places[0]));
}
