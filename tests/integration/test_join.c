/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edges that wait in the server's memory (edges=join): what an NFS client sees
 * of them is what it would see without, and what is left over of them is
 * nothing: no reads, no pages. Everyone who wants the file as a whole gets it:
 * READ, truncation, RENAME, COMMIT, the clock, and the end of the server.
 */
#include "ask.h"
#include "client.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD  47008u
#define RECORDS 200u
#define MANY    80u

static struct client client;

static struct harness *
start(const char *engine, const char *fs)
{
	struct harness *h = harness_new(
		"rw,no_root_squash,insecure,edges=join,direct-min=4k");

	if (!harness_mount(h, fs, 4096, 320)) {
		harness_free(h);
		return NULL;
	}
	harness_arg(h, "--engine");
	harness_arg(h, engine);
	harness_start(h);
	client_init(&client, h, "f", 1);
	return h;
}

static void
write_record(unsigned i, int stable)
{
	client_write(&client, i, stable);
	assert_int_equal(client_finish(&client), NFS3_OK);
}

static void
write_records(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		client_add(&client, (uint64_t)RECORD * i, RECORD);
		write_record(i, UNSTABLE);
	}
}

static uint64_t
size_now(void)
{
	return ask_attr(client.raw, &client.fh).size;
}

static uint64_t
local_size(const struct harness *h, const char *name)
{
	struct stat st;

	assert_int_equal(stat(harness_path(h, name), &st), 0);
	return (uint64_t)st.st_size;
}

static void
end(struct harness *h)
{
	client_settle(&client);
	client_fini(&client);
	harness_stop(h);
	harness_remount(h);
	client_check_file(&client, harness_path(h, "f"));
	harness_free(h);
}

/* Neighbours meet: whole blocks go to the device. */
static void
neighbours(void **state, const char *fs)
{
	struct harness *h = start(*state, fs);
	struct device_stat was, now;

	if (h == NULL) {
		skip();
		return;
	}
	was = harness_device_stat(h);
	write_records(RECORDS);
	assert_int_equal(size_now(), (uint64_t)RECORD * RECORDS);
	client_commit(&client);
	assert_int_equal(client_finish(&client), NFS3_OK);
	now = harness_device_stat(h);
	/* All but the few at which the clock found the ends apart. */
	assert_true(harness_stat(h, "edges_joined") > RECORDS / 2);
	assert_true(now.read_4k - was.read_4k < RECORDS / 10);
	assert_true(harness_resident(h, "f") <= RECORDS / 100);
	assert_int_equal(local_size(h, "f"), (uint64_t)RECORD * RECORDS);
	end(h);
}

static void
test_neighbours_xfs(void **state)
{
	neighbours(state, "xfs");
}

static void
test_neighbours_ext4(void **state)
{
	neighbours(state, "ext4");
}

/* The tail is in nobody's file yet; its client sees it. */
static void
test_seen(void **state)
{
	struct harness *h = start(*state, "xfs");

	if (h == NULL) {
		skip();
		return;
	}
	write_records(1);
	assert_int_equal(size_now(), RECORD);
	client_read(&client, 0);
	assert_int_equal(client_finish(&client), NFS3_OK);
	assert_int_equal(client.count, RECORD);
	assert_int_equal(local_size(h, "f"), RECORD);
	assert_int_equal(harness_stat(h, "edges_unjoined"), 1);
	/* The other end comes by another way. */
	client_add(&client, RECORD, RECORD);
	write_record(1, FILE_SYNC);
	write_record(0, UNSTABLE);
	write_record(1, UNSTABLE);
	write_record(0, FILE_SYNC);
	assert_int_equal(size_now(), 2 * RECORD);
	end(h);
}

static void
set_size(uint64_t size)
{
	SETATTR3args args;
	SETATTR3res res;

	memset(&args, 0, sizeof(args));
	memset(&res, 0, sizeof(res));
	args.object = raw_nfs_fh(&client.fh);
	args.new_attributes.size.set_it = 1;
	args.new_attributes.size.set_size3_u.size = size;
	raw_nfs(client.raw, SETATTR, &args, &res);
	assert_int_equal(res.status, NFS3_OK);
}

/* What was cut off does not come back, and what is cut through stays. */
static void
test_truncated(void **state)
{
	struct harness *h = start(*state, "xfs");
	uint8_t byte = 1;
	int fd;

	if (h == NULL) {
		skip();
		return;
	}
	write_records(2);
	set_size(2 * RECORD - 10);
	assert_int_equal(size_now(), 2 * RECORD - 10);
	set_size(2 * RECORD + 10);
	client_commit(&client);
	assert_int_equal(client_finish(&client), NFS3_OK);
	assert_int_equal(local_size(h, "f"), 2 * RECORD + 10);
	fd = open(harness_path(h, "f"), O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, 2 * RECORD - 5), 1);
	assert_int_equal(byte, 0);
	close(fd);
	write_record(1, UNSTABLE);
	set_size(2 * RECORD);
	end(h);
}

static void
test_renamed(void **state)
{
	struct harness *h = start(*state, "xfs");
	RENAME3args args;
	RENAME3res res;

	if (h == NULL) {
		skip();
		return;
	}
	write_records(1);
	memset(&args, 0, sizeof(args));
	memset(&res, 0, sizeof(res));
	args.from.dir = args.to.dir = raw_nfs_fh(&client.root);
	args.from.name = strdup("f");
	args.to.name = strdup("g");
	raw_nfs(client.raw, RENAME, &args, &res);
	assert_int_equal(res.status, NFS3_OK);
	assert_int_equal(local_size(h, "g"), RECORD);
	args.from.name[0] = 'g';
	args.to.name[0] = 'f';
	raw_nfs(client.raw, RENAME, &args, &res);
	assert_int_equal(res.status, NFS3_OK);
	free(args.from.name);
	free(args.to.name);
	end(h);
}

/* Nobody comes for it: the clock does. */
static void
test_left_alone(void **state)
{
	struct harness *h = start(*state, "xfs");

	if (h == NULL) {
		skip();
		return;
	}
	write_records(1);
	while (local_size(h, "f") != RECORD)
		usleep(10000);
	/* And at the end of the server, which is asked at once. */
	client_add(&client, RECORD, RECORD);
	write_record(1, UNSTABLE);
	harness_stop(h);
	assert_int_equal(local_size(h, "f"), 2 * RECORD);
	harness_start(h);
	client_reconnect(&client);
	end(h);
}

/* More files than are looked at together. */
static void
test_many(void **state)
{
	struct harness *h = start(*state, "xfs");
	static uint8_t data[RECORD];
	char name[16];

	if (h == NULL) {
		skip();
		return;
	}
	for (unsigned i = 0; i < MANY; i++) {
		struct raw_fh fh;
		WRITE3res res;

		(void)snprintf(name, sizeof(name), "m%u", i);
		raw_create(client.raw, &client.root, name, 0644, &fh);
		memset(&res, 0, sizeof(res));
		assert_int_equal(raw_write(client.raw, &fh, 0, data, RECORD,
					   UNSTABLE, &res),
				 NFS3_OK);
	}
	harness_stop(h);
	for (unsigned i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof(name), "m%u", i);
		assert_int_equal(local_size(h, name), RECORD);
	}
	harness_start(h);
	client_reconnect(&client);
	end(h);
}

/* A server that is killed loses what it may, and says so. */
static void
test_killed(void **state)
{
	struct harness *h = start(*state, "xfs");

	if (h == NULL) {
		skip();
		return;
	}
	write_records(5);
	client_commit(&client);
	assert_int_equal(client_finish(&client), NFS3_OK);
	for (unsigned i = 5; i < 8; i++) {
		client_add(&client, (uint64_t)RECORD * i, RECORD);
		write_record(i, UNSTABLE);
	}
	harness_kill(h);
	harness_start(h);
	client_reconnect(&client);
	client_commit(&client);
	(void)client_finish(&client);
	client_settle(&client);
	assert_true(client.resent > 0);
	assert_int_equal(size_now(), (uint64_t)RECORD * 8);
	end(h);
}

/* A time that a client sets stays, whatever is written out later of what came
 * before. */
static void
test_times(void **state)
{
	struct harness *h = start(*state, "xfs");
	sattr3 a;

	if (h == NULL) {
		skip();
		return;
	}
	write_records(1);
	memset(&a, 0, sizeof(a));
	a.mtime.set_it = SET_TO_CLIENT_TIME;
	a.mtime.set_mtime_u.mtime.seconds = 12345;
	assert_int_equal(
		ask(client.raw, ask_setattr(&client.fh, &a, NULL), NULL),
		NFS3_OK);
	client_commit(&client);
	assert_int_equal(client_finish(&client), NFS3_OK);
	assert_int_equal(ask_attr(client.raw, &client.fh).mtime.seconds, 12345);
	end(h);
}

#define BOTH(test)                                                             \
	cmocka_unit_test_prestate(test, uring),                                \
		cmocka_unit_test_prestate(test, threads)

int
main(void)
{
	static char uring[] = "uring", threads[] = "threads";
	const struct CMUnitTest tests[] = {
		BOTH(test_neighbours_xfs), BOTH(test_neighbours_ext4),
		BOTH(test_seen),           BOTH(test_truncated),
		BOTH(test_renamed),        BOTH(test_left_alone),
		BOTH(test_many),           BOTH(test_killed),
		BOTH(test_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
