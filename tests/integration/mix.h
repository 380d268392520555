/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For integration tests: random WRITEs, READs and COMMITs (and, where asked,
 * truncations and local readers and writers) of some files, many in flight,
 * each byte that is read judged by the files' shadows. Failed WRITEs and
 * COMMITs and verifiers that change fail the test.
 */
#ifndef NVNFSD_TESTS_MIX_H
#define NVNFSD_TESTS_MIX_H

#include "flow.h"
#include "shadow.h"

#define MIX_WAYS_MAX 3u

struct mix_file {
	char name[64];
	char path[900]; /* for who comes by the local file system */
	/* The same file by several exports, or one. */
	struct raw_fh fh[MIX_WAYS_MAX];
	uint8_t verf[MIX_WAYS_MAX][8];
	bool has_verf[MIX_WAYS_MAX];
	unsigned ways;
	bool remote; /* nobody uses it locally: some of it waits in memory */
	struct shadow *shadow;
	/* private */
	int fd, direct_fd; /* a local process's; direct_fd -1: none */
};

struct mix {
	/* set by the test */
	struct flow *flow;
	struct mix_file *file;
	unsigned files;
	unsigned in_flight;
	uint64_t file_bytes; /* no WRITE reaches beyond */
	uint32_t bytes_max;  /* of one WRITE or READ */
	bool truncate, local;
	uint64_t seed; /* not 0 */
	/* Until this many operations or, where it is later, this long. */
	uint64_t operations_min;
	unsigned seconds;
	/* results */
	uint64_t writes, reads, commits, truncates, locals, bytes;
	/* private */
	uint64_t operations, until_ns;
	struct mix_slot *slot;
	void *scratch;
};

/* name below dir (a handle, by r) and path; further ways by mix_file_way. */
void mix_file_init(struct mix_file *f, struct raw *r, const struct raw_fh *dir,
		   const char *path, const char *name);
void mix_file_way(struct mix_file *f, struct raw *r, const struct raw_fh *dir,
		  const char *name);
void mix_file_fini(struct mix_file *f);
/* Its descriptors: before the file system is unmounted. */
void mix_file_close(struct mix_file *f);
/* For much of everything on small files: connections, and all that a test sets,
 * but how long, and its seed where it has one. h runs. */
void mix_setup(struct mix *m, struct harness *h, struct mix_file *file,
	       unsigned files);
/* Run, drain, COMMIT all files. */
void mix_run(struct mix *m);
/* The end: every byte, by NFS and locally, and no verifier has moved; h's
 * server is stopped, and every byte locally once the file system was mounted
 * anew. Files and h are freed. */
void mix_end(struct mix *m, struct harness *h);
uint64_t mix_random(uint64_t *state);
/* NVNFSD_TEST_SECONDS, or what stands here. */
unsigned mix_seconds(unsigned otherwise);

/* Where the same test runs; its prestate. */
struct mix_place {
	const char *name, *fs;
	unsigned sector; /* of its device */
	const char *engine;
};
/* main's result: the test at each place. */
int mix_at_places(CMUnitTestFunction test, const struct mix_place *place,
		  unsigned places);

#endif
