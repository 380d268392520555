/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays inputs through a fuzz target without libFuzzer, so that the corpora
 * run as ordinary tests with any compiler. Arguments are files and directories
 * (taken with everything below them). A replay of nothing fails: an empty or
 * misnamed corpus must not look like a passed test.
 *
 * Each input gets a heap block of exactly its size, so that a read past its end
 * is seen by AddressSanitizer.
 */
#include "tests/fuzz/fuzz.h"

#include <err.h>
#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static void
replay_file(const char *path, size_t bytes)
{
	uint8_t *data = malloc(bytes ? bytes : 1);
	FILE *f = fopen(path, "rb");

	if (data == NULL || f == NULL)
		err(1, "%s", path);
	if (fread(data, 1, bytes, f) != bytes)
		errx(1, "%s: short read", path);
	(void)fclose(f);
	/* Named before it runs: the last line of a crash is its input. */
	printf("%s: %zu bytes\n", path, bytes);
	(void)fflush(stdout);
	LLVMFuzzerTestOneInput(data, bytes);
	free(data);
}

int
main(int argc, char **argv)
{
	unsigned replayed = 0;
	FTSENT *ent;
	FTS *fts;

	if (argc < 2)
		errx(2, "usage: %s FILE|DIRECTORY...", argv[0]);
	fts = fts_open(argv + 1, FTS_LOGICAL | FTS_NOCHDIR, NULL);
	if (fts == NULL)
		err(1, "fts_open");
	while ((ent = fts_read(fts)) != NULL) {
		if (ent->fts_info == FTS_ERR || ent->fts_info == FTS_DNR ||
		    ent->fts_info == FTS_NS || ent->fts_info == FTS_SLNONE) {
			errno = ent->fts_errno;
			err(1, "%s", ent->fts_path);
		}
		if (ent->fts_info != FTS_F)
			continue;
		replay_file(ent->fts_path, (size_t)ent->fts_statp->st_size);
		replayed++;
	}
	fts_close(fts);
	if (replayed == 0)
		errx(1, "%s: nothing to replay", argv[1]);
	printf("%u inputs replayed\n", replayed);
	return 0;
}
