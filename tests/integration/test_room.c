/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream that fills its file system up: the WRITE that finds no room says so
 * (or is cut short before), what was acknowledged is there, nobody else's
 * verifier moves; and with room again the same handle is written on. By two
 * clients at once, in each write-mode.
 */
#include "site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define RECORD      470080u /* no multiple of a block */
#define CLIENTS     2u
#define RECORDS_MAX 2000u
#define BALLAST_MIB 40u
#define DEVICE_MIB  320u

struct stream {
	struct raw_fh fh;
	unsigned records; /* acknowledged as a whole */
	uint32_t rest;    /* of the next one: what a short WRITE has taken */
};

struct place {
	const char *name, *fs, *write_mode;
	int stable;
};

static uint8_t record[RECORD];

static void
fill_record(unsigned client, unsigned i)
{
	uint32_t word = client << 24 | i, at;

	for (at = 0; at + 4 <= RECORD; at += 4)
		memcpy(record + at, &word, 4);
}

/* The next record, or what is left of it; the status. */
static int
write_next(struct site *s, struct stream *t, unsigned client, int stable)
{
	uint64_t at = (uint64_t)t->records * RECORD + t->rest;
	WRITE3res res;
	int status;

	fill_record(client, t->records);
	status = raw_write(s->r, &t->fh, at, record + t->rest, RECORD - t->rest,
			   stable, &res);
	if (status != NFS3_OK)
		return status;
	t->rest += res.WRITE3res_u.resok.count;
	assert_true(t->rest <= RECORD);
	if (t->rest == RECORD) {
		t->records++;
		t->rest = 0;
	}
	return status;
}

static void
check(struct site *s, const struct stream *t, unsigned client)
{
	READ3res res;
	unsigned i;

	for (i = 0; i < t->records; i++) {
		fill_record(client, i);
		assert_int_equal(raw_read(s->r, &t->fh, (uint64_t)i * RECORD,
					  RECORD, &res),
				 NFS3_OK);
		assert_int_equal(res.READ3res_u.resok.data.data_len, RECORD);
		assert_memory_equal(res.READ3res_u.resok.data.data_val, record,
				    RECORD);
		raw_forget(s->r);
	}
}

static void
commit(struct site *s, const struct stream *t)
{
	COMMIT3res res;

	assert_int_equal(raw_commit(s->r, &t->fh, &res), NFS3_OK);
}

/* In turns, until neither finds room. */
static void
fill_up(struct site *s, struct stream *t, int stable)
{
	unsigned full = 0, i, n;
	int status;

	for (n = 0; full != (1u << CLIENTS) - 1; n++) {
		assert_true(n < RECORDS_MAX);
		i = n % CLIENTS;
		status = write_next(s, &t[i], i, stable);
		if (status != NFS3_OK) {
			assert_int_equal(status, NFS3ERR_NOSPC);
			full |= 1u << i;
		}
	}
}

static void
test(void **state)
{
	const struct place *p = *state;
	struct site *s = calloc(1, sizeof(*s));
	struct stream t[CLIENTS] = { 0 };
	unsigned i, before[CLIENTS];

	assert_non_null(s);
	s->h = harness_new(NULL);
	if (!harness_mount(s->h, p->fs, 4096, DEVICE_MIB)) {
		harness_free(s->h);
		free(s);
		skip(); /* does not return */
		return;
	}
	harness_arg(s->h, "--write-mode");
	harness_arg(s->h, p->write_mode);
	site_start(s);
	assert_int_equal(harness_sh("head -c %uM /dev/zero >%s", BALLAST_MIB,
				    site_path(s, "ballast")),
			 0);
	raw_create(s->r, &s->root, "a", 0644, &t[0].fh);
	raw_create(s->r, &s->root, "b", 0644, &t[1].fh);
	fill_up(s, t, p->stable);
	for (i = 0; i < CLIENTS; i++) {
		assert_true(t[i].records > 50);
		before[i] = t[i].records;
		commit(s, &t[i]);
		check(s, &t[i], i);
	}
	/* Files that are full can be read, truncated, and removed. */
	site_expect(s, ask_remove(&s->root, "ballast"), NFS3_OK);
	for (i = 0; i < 60; i++)
		assert_int_equal(
			write_next(s, &t[i % CLIENTS], i % CLIENTS, p->stable),
			NFS3_OK);
	for (i = 0; i < CLIENTS; i++) {
		assert_true(t[i].records >= before[i] + 28);
		commit(s, &t[i]);
		check(s, &t[i], i);
	}
	assert_int_equal(harness_stat(s->h, "verifier_changes"), 0);
	site_free(s);
}

int
main(void)
{
	static struct place places[] = {
		{ "xfs, direct", "xfs", "direct", UNSTABLE },
		{ "xfs, direct, stable", "xfs", "direct", FILE_SYNC },
		{ "xfs, buffered", "xfs", "buffered", UNSTABLE },
		{ "ext4, direct", "ext4", "direct", UNSTABLE },
		{ "ext4, buffered", "ext4", "buffered", UNSTABLE },
	};
	struct CMUnitTest tests[sizeof(places) / sizeof(places[0])];
	unsigned i;

	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		tests[i] = (struct CMUnitTest){ .name = places[i].name,
						.test_func = test,
						.initial_state = &places[i] };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
