/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device facts out of made sysfs trees: a plain disk, a partition, dm over md
 * over two NVMe partitions, a loop device, and what is not there.
 */
#include "io/file.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cmocka.h>

static char root[] = "/tmp/test_device.XXXXXX";

static void
make_dirs(const char *path)
{
	char full[512];

	(void)snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *p = full + strlen(root) + 1; *p != '\0'; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		(void)mkdir(full, 0755);
		*p = '/';
	}
	(void)mkdir(full, 0755);
}

static void
put(const char *dir, const char *name, const char *text)
{
	char full[600];
	FILE *f;

	(void)snprintf(full, sizeof(full), "%s/%s/%s", root, dir, name);
	f = fopen(full, "w");
	assert_non_null(f);
	(void)fprintf(f, "%s\n", text);
	assert_int_equal(fclose(f), 0);
}

static void
link_to(const char *at, const char *target)
{
	char full[600];

	(void)snprintf(full, sizeof(full), "%s/%s", root, at);
	assert_int_equal(symlink(target, full), 0);
}

/* A disk with a queue; opt and chunk as sysfs writes them. */
static void
disk(const char *name, const char *logical, const char *max_kb,
     const char *optimal, const char *chunk, const char *cache)
{
	char dir[256], queue[300];

	(void)snprintf(dir, sizeof(dir), "devices/%s", name);
	make_dirs(dir);
	(void)snprintf(queue, sizeof(queue), "%s/queue", dir);
	make_dirs(queue);
	put(queue, "logical_block_size", logical);
	put(queue, "physical_block_size", "4096");
	put(queue, "max_hw_sectors_kb", max_kb);
	put(queue, "optimal_io_size", optimal);
	put(queue, "chunk_sectors", chunk);
	put(queue, "write_cache", cache);
	put(queue, "fua", "1");
	(void)snprintf(queue, sizeof(queue), "%s/slaves", dir);
	make_dirs(queue);
}

static int
set_up(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(root));
	make_dirs("dev/block");
	disk("nvme0n1", "512", "2048", "0", "256", "write back");
	make_dirs("devices/nvme0n1/nvme0n1p2");
	put("devices/nvme0n1/nvme0n1p2", "partition", "2");
	disk("nvme1n1", "4096", "512", "0", "0", "write through");
	make_dirs("devices/nvme1n1/nvme1n1p1");
	put("devices/nvme1n1/nvme1n1p1", "partition", "1");
	disk("virtual/md0", "4096", "128", "1048576", "0", "write back");
	link_to("devices/virtual/md0/slaves/nvme1n1p1",
		"../../../nvme1n1/nvme1n1p1");
	link_to("devices/virtual/md0/slaves/nvme0n1p2",
		"../../../nvme0n1/nvme0n1p2");
	disk("virtual/dm-3", "4096", "128", "1048576", "0", "write back");
	link_to("devices/virtual/dm-3/slaves/md0", "../../md0");
	disk("virtual/loop7", "4096", "1280", "4096", "0", "write back");
	link_to("dev/block/259:0", "../../devices/nvme0n1");
	link_to("dev/block/259:2", "../../devices/nvme0n1/nvme0n1p2");
	link_to("dev/block/253:3", "../../devices/virtual/dm-3");
	link_to("dev/block/7:7", "../../devices/virtual/loop7");
	return 0;
}

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *f)
{
	(void)st;
	(void)kind;
	(void)f;
	return remove(path);
}

static int
tear_down(void **state)
{
	(void)state;
	return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void
plain_disk(void **state)
{
	struct device_facts d;

	(void)state;
	assert_int_equal(device_read(&d, root, makedev(259, 0)), 0);
	assert_string_equal(d.name, "nvme0n1");
	assert_int_equal(d.logical_bytes, 512);
	assert_int_equal(d.physical_bytes, 4096);
	assert_int_equal(d.transfer_bytes_max, 2u << 20);
	assert_int_equal(d.boundary_bytes, 128u << 10);
	assert_true(d.write_cache);
	assert_true(d.fua);
}

static void
partition(void **state)
{
	struct device_facts disk_facts, d;

	(void)state;
	assert_int_equal(device_read(&disk_facts, root, makedev(259, 0)), 0);
	assert_int_equal(device_read(&d, root, makedev(259, 2)), 0);
	assert_memory_equal(&d, &disk_facts, sizeof(d));
}

/* Limits of the top, which the kernel stacks; the name of the first leaf. */
static void
dm_over_md_over_nvme(void **state)
{
	struct device_facts d;

	(void)state;
	assert_int_equal(device_read(&d, root, makedev(253, 3)), 0);
	assert_string_equal(d.name, "nvme0n1");
	assert_int_equal(d.logical_bytes, 4096);
	assert_int_equal(d.boundary_bytes, 1u << 20);
	/* The kernel splits smaller transfers itself. */
	assert_int_equal(d.transfer_bytes_max, 256u << 10);
}

static void
loop(void **state)
{
	struct device_facts d;

	(void)state;
	assert_int_equal(device_read(&d, root, makedev(7, 7)), 0);
	assert_string_equal(d.name, "loop7");
	assert_int_equal(d.boundary_bytes, 0); /* too fine to cut at */
	assert_int_equal(d.transfer_bytes_max, 1280u << 10);
}

static void
absent(void **state)
{
	struct device_facts d = { .logical_bytes = 77 };

	(void)state;
	assert_int_equal(device_read(&d, root, makedev(0, 42)), -ENOENT);
	assert_int_equal(d.logical_bytes, 77); /* untouched */
	assert_int_equal(device_read(&d, "/nonexistent", makedev(7, 7)),
			 -ENOENT);
}

/* This machine's own, whatever it is, must not be refused. */
static void
real_one(void **state)
{
	struct device_facts d;
	struct stat st;

	(void)state;
	assert_int_equal(stat("/", &st), 0);
	if (device_read(&d, "/sys", st.st_dev) != 0)
		skip();
	assert_true(d.name[0] != '\0');
	assert_true(power_of_two(d.logical_bytes));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_disk),
		cmocka_unit_test(partition),
		cmocka_unit_test(dm_over_md_over_nvme),
		cmocka_unit_test(loop),
		cmocka_unit_test(absent),
		cmocka_unit_test(real_one),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
