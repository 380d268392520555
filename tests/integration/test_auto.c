/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read-mode=auto and write-mode=auto: each file gets the mode that fits what
 * its clients do, nvnfsctl why says which and by what evidence, and whatever
 * the mode becomes, the bytes are right.
 */
#include "control.h"
#include "harness.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KIB 1024u
#define MIB (1024u * KIB)

static struct {
	struct harness *h;
	struct raw *r;
	struct raw_fh dir, fh;
} world;

static uint8_t block[MIB];

static bool
start(void)
{
	world.h = harness_new("rw,no_root_squash,insecure,read-mode=auto,"
			      "write-mode=auto");
	if (!harness_mount(world.h, "xfs", 4096, 512)) {
		harness_free(world.h);
		return false;
	}
	harness_start(world.h);
	world.r = raw_connect(world.h->port);
	assert_int_equal(raw_mount(world.r, world.h->export, &world.dir), 0);
	raw_create(world.r, &world.dir, "f", 0644, &world.fh);
	return true;
}

static void
finish(void)
{
	raw_close(world.r);
	harness_stop(world.h);
	harness_free(world.h);
}

static void
fill(uint8_t *p, uint32_t n, uint8_t version)
{
	for (uint32_t i = 0; i < n; i++)
		p[i] = (uint8_t)(i * 7 + i / 251 + version);
}

static void
write_at(uint64_t offset, uint32_t n, uint8_t version)
{
	WRITE3res res;

	fill(block, n, version);
	memset(&res, 0, sizeof(res));
	assert_int_equal(
		raw_write(world.r, &world.fh, offset, block, n, UNSTABLE, &res),
		NFS3_OK);
	assert_int_equal(res.WRITE3res_u.resok.count, n);
	raw_forget(world.r);
}

static void
read_at(uint64_t offset, uint32_t n)
{
	READ3res res;

	memset(&res, 0, sizeof(res));
	assert_int_equal(raw_read(world.r, &world.fh, offset, n, &res),
			 NFS3_OK);
	assert_int_equal(res.READ3res_u.resok.count, n);
	raw_forget(world.r);
}

static void
read_back(uint64_t offset, uint32_t n, uint8_t version)
{
	READ3res res;

	memset(&res, 0, sizeof(res));
	assert_int_equal(raw_read(world.r, &world.fh, offset, n, &res),
			 NFS3_OK);
	fill(block, n, version);
	assert_memory_equal(res.READ3res_u.resok.data.data_val, block, n);
	raw_forget(world.r);
}

/* Is what (read-mode, write-mode) so by now? */
static bool
is_mode(const char *what, const char *mode)
{
	struct json_object *o =
		control_json(world.h, "why %s", harness_path(world.h, "f"));
	struct json_object *value;
	bool is;

	assert_true(json_object_object_get_ex(o, what, &value));
	is = strcmp(json_object_get_string(value), mode) == 0;
	json_object_put(o);
	return is;
}

/* Written once: nothing to keep. */
static void
test_stream(void **state)
{
	if (!start()) {
		skip();
		return;
	}
	for (unsigned i = 0; i < 64; i++)
		write_at((uint64_t)i * MIB, MIB, (uint8_t)i);
	assert_true(is_mode("write-mode", "direct"));
	for (unsigned i = 0; i < 64; i++)
		read_back((uint64_t)i * MIB, MIB, (uint8_t)i);
	finish();
}

/* The same bytes over and over: they may as well stay. */
static void
test_written_again(void **state)
{
	uint8_t version = 0;

	if (!start()) {
		skip();
		return;
	}
	do {
		version++;
		for (unsigned i = 0; i < 16; i++)
			write_at((uint64_t)i * 64 * KIB, 64 * KIB,
				 (uint8_t)(version + i));
	} while (!is_mode("write-mode", "buffered"));
	version++;
	for (unsigned i = 0; i < 16; i++)
		write_at((uint64_t)i * 64 * KIB, 64 * KIB,
			 (uint8_t)(version + i));
	assert_true(harness_resident(world.h, "f") > 0);
	for (unsigned i = 0; i < 16; i++)
		read_back((uint64_t)i * 64 * KIB, 64 * KIB,
			  (uint8_t)(version + i));
	finish();
}

static void
test_read_again(void **state)
{
	if (!start()) {
		skip();
		return;
	}
	for (unsigned i = 0; i < 4; i++)
		write_at((uint64_t)i * MIB, MIB, 1);
	do
		for (unsigned i = 0; i < 4; i++)
			read_back((uint64_t)i * MIB, MIB, 1);
	while (!is_mode("read-mode", "buffered"));
	for (unsigned i = 0; i < 4; i++)
		read_back((uint64_t)i * MIB, MIB, 1);
	assert_int_equal(harness_resident(world.h, "f"), 4 * MIB / 4096);
	finish();
}

/* Small ones in order want readahead; large ones do not. */
static void
test_read_in_order(void **state)
{
	uint64_t at = 0;

	if (!start()) {
		skip();
		return;
	}
	assert_int_equal(
		truncate(harness_path(world.h, "f"), (off_t)(1ll << 40)), 0);
	do {
		read_at(at, 16 * KIB);
		at += 16 * KIB;
	} while (at % MIB != 0 || !is_mode("read-mode", "dontcache"));
	do {
		read_at(at, MIB);
		at += MIB;
	} while (!is_mode("read-mode", "direct"));
	finish();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_written_again),
		cmocka_unit_test(test_read_again),
		cmocka_unit_test(test_read_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
