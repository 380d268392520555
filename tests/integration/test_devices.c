/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server says of the device under an export (a loop device), in its
 * log, by nvnfsctl and by FSINFO, against what the kernel says of it; that
 * DATA_SYNC is answered as such; and torn-free, kept or refused.
 */
#include "control.h"
#include "site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *engine = "uring";

/* With a log of all that it finds. */
static struct site *
site_told(const char *options)
{
	struct site *s = site_prepare(engine, options, "xfs");

	harness_conf(s->h, "[log]\nlevel = info\n");
	return s;
}

/* An attribute of the queue of the site's device. */
static uint64_t
queue(const struct site *s, const char *name)
{
	char path[200], text[64] = "";
	FILE *f;

	(void)snprintf(path, sizeof(path), "/sys/block/%.20s/queue/%s",
		       s->h->loop + strlen("/dev/"), name);
	f = fopen(path, "re");
	assert_non_null(f);
	if (fgets(text, sizeof(text), f) == NULL)
		text[0] = '\0';
	assert_int_equal(fclose(f), 0);
	return strtoull(text, NULL, 10);
}

/* What nvnfsctl devices says of the one export. */
static struct json_object *
devices(const struct site *s)
{
	struct json_object *list = control_json(s->h, "devices");

	assert_int_equal(json_object_array_length(list), 1);
	return list;
}

static void
test_told(void **state)
{
	struct site *s = site_told(NULL);
	struct json_object *list, *o, *node;
	struct answer a;

	(void)state;
	site_start(s);
	list = devices(s);
	o = json_object_array_get_idx(list, 0);
	assert_string_equal(json_object_get_string(control_part(o, "export")),
			    s->h->export);
	node = json_object_array_get_idx(control_part(o, "chain"), 0);
	assert_string_equal(json_object_get_string(control_part(node, "name")),
			    s->h->loop + strlen("/dev/"));
	assert_string_equal(json_object_get_string(control_part(node, "kind")),
			    "loop");
	assert_string_equal(
		json_object_get_string(control_part(node, "detail")),
		s->h->image);
	assert_int_equal(control_number(node, "logical_bytes"),
			 queue(s, "logical_block_size"));
	assert_int_equal(control_number(node, "physical_bytes"),
			 queue(s, "physical_block_size"));
	assert_int_equal(control_number(node, "request_bytes_max"),
			 queue(s, "max_sectors_kb") << 10);
	assert_int_equal(control_number(node, "queue_requests"),
			 queue(s, "nr_requests"));
	assert_int_equal(control_number(node, "slots"),
			 queue(s, "nr_requests") *
				 control_number(node, "queues") * 3 / 4);
	assert_int_equal(control_number(node, "slots_used"), 0);
	assert_non_null(control_part(node, "no_nvme_why"));
	assert_true(harness_logged(s->h, "export .*: loop[0-9]+: loop /.*: "
					 "blocks of 4096 bytes"));
	assert_true(harness_logged(s->h, "WRITEs cut at 4096"));
	assert_int_equal(ask(s->r, ask_fsinfo(&s->root), &a), NFS3_OK);
	assert_int_equal(a.u.fsinfo.wtmult,
			 control_number(o, "write_multiple_bytes"));
	assert_int_equal(a.u.fsinfo.wtpref,
			 control_number(o, "write_preferred_bytes"));
	json_object_put(list);
	site_free(s);
}

static void
write_as(struct site *s, const struct raw_fh *fh, int stable, int committed)
{
	static const uint8_t data[65536];
	struct answer a;

	assert_int_equal(
		ask(s->r, ask_write(fh, 0, data, sizeof(data), stable), &a),
		NFS3_OK);
	assert_int_equal(a.u.write.count, sizeof(data));
	assert_int_equal(a.u.write.committed, committed);
}

static void
test_data_sync(void **state)
{
	struct site *s = site_new(engine, NULL, "xfs");
	struct raw_fh fh;

	(void)state;
	site_file(s, "f", 0644, 0, 0, "");
	fh = site_lookup(s, "f");
	write_as(s, &fh, FILE_SYNC, FILE_SYNC);
	write_as(s, &fh, DATA_SYNC, DATA_SYNC);
	write_as(s, &fh, UNSTABLE, UNSTABLE);
	assert_int_equal(harness_stat(s->h, "sync_requests"), 2);
	site_free(s);
	s = site_new(engine, "rw,no_root_squash,insecure,stable-floor=data",
		     "xfs");
	site_file(s, "f", 0644, 0, 0, "");
	fh = site_lookup(s, "f");
	write_as(s, &fh, UNSTABLE, DATA_SYNC);
	write_as(s, &fh, FILE_SYNC, FILE_SYNC);
	site_free(s);
}

/* XFS with reflinks has atomic writes on any device from Linux 6.16 on. */
static void
test_torn_free(void **state)
{
	static const char options[] =
		"rw,no_root_squash,insecure,torn-free=yes";
	struct site *s = site_told(NULL);
	struct json_object *list;
	struct raw_fh fh;
	bool can;

	(void)state;
	site_start(s);
	list = devices(s);
	can = control_number(json_object_array_get_idx(list, 0),
			     "atomic_bytes_max") >= 65536;
	json_object_put(list);
	site_free(s);
	s = site_told(options);
	if (can) {
		site_start(s);
		site_file(s, "f", 0644, 0, 0, "");
		fh = site_lookup(s, "f");
		write_as(s, &fh, FILE_SYNC, FILE_SYNC);
		write_as(s, &fh, UNSTABLE, UNSTABLE);
		assert_int_equal(harness_stat(s->h, "writes.atomic"), 2);
		site_free(s);
		return;
	}
	assert_int_not_equal(harness_run(s->h), 0);
	assert_true(harness_logged(s->h, "torn-free is refused: the "));
	harness_free(s->h);
	free(s);
}

/* Nor can it be turned on where it cannot be kept; nothing of that command is
 * done then. */
static void
test_set_torn_free(void **state)
{
	struct site *s = site_new(engine, NULL, "ext4");
	struct json_object *list = devices(s);
	bool can = control_number(json_object_array_get_idx(list, 0),
				  "atomic_bytes_max") > 0;

	(void)state;
	json_object_put(list);
	if (can) {
		control_says(s->h, "", "set torn-free=yes edges=buffered");
	} else {
		control_fails(s->h, 1, "torn-free is refused: the device",
			      "set edges=buffered torn-free=yes");
		control_says(s->h, "edges=drop", "exports");
	}
	site_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_told),
		cmocka_unit_test(test_data_sync),
		cmocka_unit_test(test_torn_free),
		cmocka_unit_test(test_set_torn_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
