/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GETATTR and ACCESS of a file that the server has open, which it answers from
 * that: what is changed behind its back shows at once, and a file that is gone
 * is stale.
 */
#include "site.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALL    (ACCESS3_READ | ACCESS3_MODIFY | ACCESS3_EXTEND | ACCESS3_EXECUTE)
#define WRITES (ACCESS3_MODIFY | ACCESS3_EXTEND)

static uint32_t
granted(struct site *s, const struct raw_fh *fh, uint32_t uid)
{
	struct answer a;

	ask_as(s->r, uid, uid);
	assert_int_equal(ask(s->r, ask_access(fh, ALL), &a), NFS3_OK);
	assert_true(a.attr.attributes_follow);
	return a.u.access.access;
}

/* Open at the server from here on. */
static struct raw_fh
warm(struct site *s, const char *name)
{
	struct raw_fh fh = site_lookup(s, name);

	ask_as(s->r, 0, 0);
	site_expect(s, ask_read(&fh, 0, 10), NFS3_OK);
	return fh;
}

static void
rights(const char *engine)
{
	struct site *s = site_new(engine, NULL, "xfs");
	struct raw_fh fh;

	site_file(s, "f", 0640, 1000, 1000, "some text");
	fh = warm(s, "f");
	for (unsigned i = 0; i < 2; i++) { /* found, then remembered */
		assert_int_equal(granted(s, &fh, 2000), 0);
		assert_int_equal(granted(s, &fh, 1000), ACCESS3_READ | WRITES);
	}
	assert_int_equal(chmod(site_path(s, "f"), 0646), 0);
	assert_int_equal(granted(s, &fh, 2000), ACCESS3_READ | WRITES);
	assert_int_equal(ask_attr(s->r, &fh).mode & 07777, 0646);
	assert_int_equal(chmod(site_path(s, "f"), 0700), 0);
	assert_int_equal(granted(s, &fh, 2000), 0);
	assert_int_equal(chown(site_path(s, "f"), 2000, 2000), 0);
	assert_int_equal(granted(s, &fh, 2000), ALL);
	assert_int_equal(granted(s, &fh, 1000), 0);
	assert_int_equal(
		harness_sh("setfacl -m u:3000:r '%s'", site_path(s, "f")), 0);
	assert_int_equal(granted(s, &fh, 3000), ACCESS3_READ);
	assert_int_equal(harness_sh("setfacl -b '%s'", site_path(s, "f")), 0);
	assert_int_equal(granted(s, &fh, 3000), 0);
	site_free(s);
}

static void
attributes(const char *engine)
{
	struct site *s = site_new(engine, NULL, "xfs");
	struct raw_fh fh, cold;
	fattr3 own, other;

	site_file(s, "f", 0644, 1000, 1000, "some text");
	cold = site_lookup(s, ".");
	fh = warm(s, "f");
	assert_int_equal(truncate(site_path(s, "f"), 123456), 0);
	own = ask_attr(s->r, &fh);
	assert_int_equal(own.size, 123456);
	assert_int_equal(own.fileid, ask_attr(s->r, &fh).fileid);
	assert_int_equal(own.fsid, ask_attr(s->r, &cold).fsid);
	/* The same as a server that has it not open says. */
	site_restart(s);
	other = ask_attr(s->r, &fh);
	assert_true(ask_same_attr(&own, &other));
	fh = warm(s, "f");
	assert_int_equal(unlink(site_path(s, "f")), 0);
	site_expect(s, ask_getattr(&fh), NFS3ERR_STALE);
	site_expect(s, ask_access(&fh, ALL), NFS3ERR_STALE);
	site_free(s);
}

static void
test_rights(void **state)
{
	(void)state;
	rights("uring");
	rights("threads");
}

static void
test_attributes(void **state)
{
	(void)state;
	attributes("uring");
	attributes("threads");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rights),
		cmocka_unit_test(test_attributes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
