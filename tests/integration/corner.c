/* SPDX-License-Identifier: Apache-2.0 */
/* See corner.h. */
#include "corner.h"

#include "shadow.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool
corner_init(struct corner *c, const char *fs, unsigned sector, const char *mode)
{
	static char options[200];

	(void)snprintf(options, sizeof(options),
		       "rw,no_root_squash,insecure,read-mode=%s,write-mode=%s",
		       mode, mode);
	memset(c, 0, sizeof(*c));
	c->h = harness_new(options);
	if (!harness_mount(c->h, fs, sector, 512)) {
		harness_free(c->h);
		return false;
	}
	harness_start(c->h);
	c->r = raw_connect(c->h->port);
	assert_int_equal(raw_mount(c->r, c->h->export, &c->root), 0);
	return true;
}

void
corner_fini(struct corner *c)
{
	raw_close(c->r);
	harness_stop(c->h);
	harness_free(c->h);
}

void
corner_file(struct corner *c, const char *name, uint32_t bytes,
	    struct raw_fh *fh)
{
	int fd = open(harness_path(c->h, name),
		      O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	uint8_t *data = malloc(bytes + 1u);

	assert_true(fd >= 0 && data != NULL);
	shadow_fill(1, 0, data, bytes);
	assert_int_equal(write(fd, data, bytes), bytes);
	assert_int_equal(fsync(fd), 0);
	close(fd);
	free(data);
	assert_int_equal(raw_lookup(c->r, &c->root, name, fh), NFS3_OK);
}

uint64_t
corner_size(struct corner *c, const char *name)
{
	struct stat st;

	assert_int_equal(stat(harness_path(c->h, name), &st), 0);
	return (uint64_t)st.st_size;
}

void
corner_check_read(struct corner *c, const struct raw_fh *fh,
		  const struct corner_read *e)
{
	uint64_t left = e->offset < e->size ? e->size - e->offset : 0;
	uint32_t most = e->ask < TRANSFER_MAX ? e->ask : TRANSFER_MAX;
	uint32_t want = left < most ? (uint32_t)left : most;
	const READ3resok *ok;
	uint8_t *data;
	READ3res res;

	assert_int_equal(raw_read(c->r, fh, e->offset, e->ask, &res), NFS3_OK);
	ok = &res.READ3res_u.resok;
	assert_int_equal(ok->count, ok->data.data_len);
	if (ok->count != want || (ok->eof != 0) != (left <= want))
		fail_msg("READ of %u at %" PRIu64 " of %" PRIu64
			 ": %u bytes, eof %d",
			 e->ask, e->offset, e->size, ok->count, (int)ok->eof);
	assert_true(ok->file_attributes.attributes_follow);
	if (want == 0)
		return;
	data = malloc(want);
	assert_non_null(data);
	shadow_fill(1, e->offset, data, want);
	assert_memory_equal(ok->data.data_val, data, want);
	free(data);
}
