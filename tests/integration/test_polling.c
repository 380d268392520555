/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that polls in every way: the log says of each whether it is in use,
 * and WRITEs, READs, COMMITs and truncations of files on XFS, many in flight,
 * are what they are without. Where there is no io_uring, it says that.
 */
#include "mix.h"

#include <stdio.h>
#include <unistd.h>

#define OPERATIONS_MIN 500u
#define FILES          2u

static void
polling_start(struct harness *h, const char *engine)
{
	harness_conf(h, "[nfsd]\nthreads = 2\nsqpoll = yes\n"
			"sqpoll-idle = 10\nbusy-poll = 20\niopoll = yes\n");
	harness_arg(h, "--engine");
	harness_arg(h, engine);
	harness_start(h);
}

static void
serve(struct harness *h)
{
	struct mix_file file[FILES];
	struct mix m = { .operations_min = OPERATIONS_MIN, .seed = 20261201 };
	const char *name[FILES] = { "a", "b" };
	struct raw_fh root;
	struct raw *r;

	mix_setup(&m, h, file, FILES);
	r = flow_raw(m.flow, 0);
	assert_int_equal(raw_mount(r, h->export, &root), 0);
	for (unsigned i = 0; i < FILES; i++)
		mix_file_init(&file[i], r, &root, harness_path(h, name[i]),
			      name[i]);
	mix_run(&m);
	assert_true(harness_stat(h, "writes.split") > 0);
	mix_end(&m, h);
}

static void
in_every_way(void **state)
{
	struct harness *h = harness_new(NULL);

	if (!harness_mount(h, "xfs", 4096, 512)) {
		harness_free(h);
		skip();
	}
	polling_start(h, "uring");
	assert_true(harness_logged(h, "sqpoll is in use"));
	assert_true(harness_logged(h, "iopoll is in use"));
	/* Linux 6.9. */
	assert_true(harness_logged(h, "busy-poll is (in use|refused)"));
	serve(h);
}

static void
in_none(void **state)
{
	struct harness *h = harness_new(NULL);

	polling_start(h, "threads");
	assert_int_equal(harness_log_count(h, "not to be had without io_uring"),
			 3);
	harness_free(h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_every_way),
		cmocka_unit_test(in_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
