/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server is for: interleaved records of 47,008 bytes into one file, 32
 * in flight over 4 connections, on XFS with 4096-byte blocks. Hardly a device
 * read, hardly a page left behind, few syncs, and every byte there after the
 * file system was mounted anew; split, and as they go where nobody sets
 * direct-min.
 */
#include "flow.h"
#include "shadow.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORD_BYTES 47008u
#define RECORDS      4096u
#define IN_FLIGHT    32u
#define CONNECTIONS  4u
#define QUIET_US     1000000 /* nothing changes for this long */

struct writer {
	struct flow_call call;
	struct run *run;
	unsigned index;
	uint32_t record;
};

struct run {
	struct harness *h;
	struct flow *flow;
	struct raw_fh fh;
	int stable;
	const char *counter; /* where the most of them are counted */
	struct writer writer[IN_FLIGHT];
	uint8_t verf[8];
	unsigned written;
	uint8_t *scratch;
};

static void
writer_send(struct writer *w)
{
	struct run *run = w->run;
	struct flow_write a = { .fh = &run->fh,
				.offset = (uint64_t)w->record * RECORD_BYTES,
				.data = run->scratch,
				.bytes = RECORD_BYTES,
				.stable = run->stable };

	shadow_fill(w->record + 1, a.offset, run->scratch, RECORD_BYTES);
	flow_write(run->flow, w->index, &w->call, &a);
}

static void
writer_done(struct flow_call *c, struct raw *r)
{
	struct writer *w = (struct writer *)c; /* its first member */
	struct run *run = w->run;
	WRITE3res res;

	memset(&res, 0, sizeof(res));
	raw_result(r, (raw_zdr_fn *)zdr_WRITE3res, &res);
	assert_int_equal(res.status, NFS3_OK);
	assert_int_equal(res.WRITE3res_u.resok.count, RECORD_BYTES);
	assert_true(res.WRITE3res_u.resok.committed >= (stable_how)run->stable);
	if (run->written++ == 0)
		memcpy(run->verf, res.WRITE3res_u.resok.verf, 8);
	assert_memory_equal(res.WRITE3res_u.resok.verf, run->verf, 8);
	w->record += IN_FLIGHT;
	if (w->record < RECORDS)
		writer_send(w);
}

static void
write_records(struct run *run)
{
	unsigned i;

	for (i = 0; i < IN_FLIGHT; i++) {
		run->writer[i] = (struct writer){ .call.done = writer_done,
						  .run = run,
						  .index = i,
						  .record = i };
		writer_send(&run->writer[i]);
	}
	flow_drain(run->flow);
	assert_int_equal(run->written, RECORDS);
}

static void
commit(struct run *run)
{
	COMMIT3res res;

	assert_int_equal(raw_commit(flow_raw(run->flow, 0), &run->fh, &res),
			 NFS3_OK);
	assert_memory_equal(res.COMMIT3res_u.resok.verf, run->verf, 8);
}

/* Pages are dropped after the reply: until there are few or nothing moves. */
static unsigned long
resident_when_quiet(struct run *run)
{
	unsigned long n = harness_resident(run->h, "f"), was = n;
	unsigned us = 0;

	while (n > RECORDS / 100 && us < QUIET_US) {
		usleep(10000);
		n = harness_resident(run->h, "f");
		us = n == was ? us + 10000 : 0;
		was = n;
	}
	return n;
}

static void
check_content(const struct run *run)
{
	int fd = open(harness_path(run->h, "f"), O_RDONLY | O_CLOEXEC);
	uint8_t *got = malloc(RECORD_BYTES);
	unsigned i;

	assert_true(fd >= 0 && got != NULL);
	for (i = 0; i < RECORDS; i++) {
		uint64_t at = (uint64_t)i * RECORD_BYTES;

		assert_int_equal(pread(fd, got, RECORD_BYTES, (off_t)at),
				 RECORD_BYTES);
		shadow_fill(i + 1, at, run->scratch, RECORD_BYTES);
		assert_memory_equal(got, run->scratch, RECORD_BYTES);
	}
	assert_int_equal(pread(fd, got, 1, (off_t)RECORDS * RECORD_BYTES), 0);
	free(got);
	close(fd);
}

static void
start(struct run *run, const char *engine)
{
	struct raw_fh root;
	WRITE3res res;
	struct raw *r;

	harness_arg(run->h, "--engine");
	harness_arg(run->h, engine);
	harness_start(run->h);
	run->flow = flow_new(run->h->port, CONNECTIONS);
	run->scratch = malloc(RECORD_BYTES);
	assert_non_null(run->scratch);
	r = flow_raw(run->flow, 0);
	assert_int_equal(raw_mount(r, run->h->export, &root), 0);
	/* What a mount reads for its first allocations is read here. */
	raw_create(r, &root, "before", 0644, &run->fh);
	assert_int_equal(raw_write(r, &run->fh, 0, "x", 1, FILE_SYNC, &res),
			 NFS3_OK);
	raw_create(r, &root, "f", 0644, &run->fh);
}

static void
measure(struct run *run)
{
	struct device_stat before = harness_device_stat(run->h), after;
	uint64_t syncs = harness_stat(run->h, "syncs");
	uint64_t asked = harness_stat(run->h, "sync_requests");
	unsigned long resident;

	write_records(run);
	if (run->stable == UNSTABLE) {
		commit(run);
		/* COMMIT's reply comes after the pages are dropped. */
		resident = harness_resident(run->h, "f");
	} else {
		resident = resident_when_quiet(run);
	}
	after = harness_device_stat(run->h);
	syncs = harness_stat(run->h, "syncs") - syncs;
	asked = harness_stat(run->h, "sync_requests") - asked;
	print_message("a WRITE: %.4f device reads (4 KiB), %.4f pages left, "
		      "%.3f syncs\n",
		      (double)(after.read_4k - before.read_4k) / RECORDS,
		      (double)resident / RECORDS, (double)syncs / RECORDS);
	assert_true(after.read_4k - before.read_4k <= RECORDS / 100);
	assert_true(after.reads - before.reads <= RECORDS / 100);
	assert_true(resident <= RECORDS / 100);
	assert_true(syncs >= 1 && syncs <= RECORDS / 4);
	assert_int_equal(asked, run->stable == UNSTABLE ? 1 : RECORDS);
	assert_true(harness_stat(run->h, run->counter) >= RECORDS * 9 / 10);
	assert_int_equal(harness_stat(run->h, "writes.cached"), 0);
	assert_int_equal(harness_stat(run->h, "verifier_changes"), 0);
}

static void
records(const char *engine, int stable, const char *options,
	const char *counter)
{
	struct run run = { .h = harness_new(options),
			   .stable = stable,
			   .counter = counter };

	if (!harness_mount(run.h, "xfs", 4096, 512)) {
		harness_free(run.h);
		skip();
	}
	start(&run, engine);
	measure(&run);
	flow_free(run.flow);
	harness_stop(run.h);
	harness_remount(run.h);
	check_content(&run);
	free(run.scratch);
	harness_free(run.h);
}

static void
test_file_sync(void **state)
{
	records("uring", FILE_SYNC, NULL, "writes.split");
}

static void
test_unstable(void **state)
{
	records("uring", UNSTABLE, NULL, "writes.split");
}

static void
test_file_sync_threads(void **state)
{
	records("threads", FILE_SYNC, NULL, "writes.split");
}

static void
test_unstable_threads(void **state)
{
	records("threads", UNSTABLE, NULL, "writes.split");
}

static void
test_file_sync_default(void **state)
{
	records("uring", FILE_SYNC, "rw,no_root_squash,insecure",
		"writes.small");
}

static void
test_unstable_default(void **state)
{
	records("uring", UNSTABLE, "rw,no_root_squash,insecure",
		"writes.small");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file_sync),
		cmocka_unit_test(test_unstable),
		cmocka_unit_test(test_file_sync_default),
		cmocka_unit_test(test_unstable_default),
		cmocka_unit_test(test_file_sync_threads),
		cmocka_unit_test(test_unstable_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
