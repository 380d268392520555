/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain of devices out of made sysfs trees: a plain disk, a partition, dm
 * over md over two NVMe partitions, a loop device on a file, what is shared,
 * what is too much, and what is not there.
 */
#include "io/device.h"
#include "tests/unit/made_sysfs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#define NVME0   makedev(3259, 0)
#define NVME0P2 makedev(3259, 2)
#define NVME1   makedev(3259, 5)
#define NVME1P1 makedev(3259, 6)
#define MD0     makedev(3009, 0)
#define DM3     makedev(3253, 3)
#define LOOP7   makedev(3007, 7)

static int
set_up(void **state)
{
	(void)state;
	sysfs_make();
	sysfs_disk("nvme0n1", NVME0);
	sysfs_device("nvme0n1/nvme0n1p2", NVME0P2);
	sysfs_put("nvme0n1/nvme0n1p2", "partition", "2");
	sysfs_put("nvme0n1/nvme0n1p2", "start", "2048");
	sysfs_put("nvme0n1/nvme0n1p2", "alignment_offset", "0");
	sysfs_disk("nvme1n1", NVME1);
	sysfs_device("nvme1n1/nvme1n1p1", NVME1P1);
	sysfs_put("nvme1n1/nvme1n1p1", "partition", "1");
	sysfs_disk("virtual/md0", MD0);
	sysfs_put("virtual/md0", "md/level", "raid1");
	sysfs_slave("virtual/md0", "nvme1n1/nvme1n1p1");
	sysfs_slave("virtual/md0", "nvme0n1/nvme0n1p2");
	sysfs_disk("virtual/dm-3", DM3);
	sysfs_put("virtual/dm-3", "dm/name", "vg-data");
	sysfs_slave("virtual/dm-3", "virtual/md0");
	sysfs_disk("virtual/loop7", LOOP7);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	sysfs_remove();
	return 0;
}

static void
read_chain(struct device_chain *c, dev_t dev)
{
	device_chain_read(c, sysfs_root(), dev, -1);
}

static void
check_node(const struct device_chain *c, unsigned i, const char *name,
	   enum device_kind kind, unsigned above)
{
	assert_true(i < c->count);
	assert_string_equal(c->node[i].name, name);
	assert_int_equal(c->node[i].kind, kind);
	assert_int_equal(c->node[i].above, above);
}

static void
plain_disk(void **state)
{
	struct device_chain c;
	const struct device_limits *l;

	(void)state;
	sysfs_put("nvme0n1", "queue/logical_block_size", "512");
	sysfs_put("nvme0n1", "queue/chunk_sectors", "256");
	sysfs_put("nvme0n1", "queue/optimal_io_size", "131072");
	sysfs_put("nvme0n1", "queue/atomic_write_unit_max_bytes", "16384");
	sysfs_put("nvme0n1", "queue/fua", "1");
	sysfs_queues("nvme0n1", 4);
	read_chain(&c, NVME0);
	assert_int_equal(c.count, 1);
	check_node(&c, 0, "nvme0n1", DEVICE_DISK, 0);
	assert_true(device_is_leaf(&c.node[0]));
	assert_true(c.node[0].dev == NVME0);
	l = &c.node[0].limits;
	assert_int_equal(l->logical_bytes, 512);
	assert_int_equal(l->physical_bytes, 4096);
	assert_int_equal(l->boundary_bytes, 128u << 10);
	assert_int_equal(l->optimal_bytes, 128u << 10);
	assert_int_equal(l->transfer_bytes_max, 2u << 20);
	assert_int_equal(l->request_bytes_max, 1280u << 10);
	assert_int_equal(l->virt_boundary_bytes, 4096);
	assert_int_equal(l->dma_align_bytes, 4);
	assert_int_equal(l->atomic_bytes_max, 16384);
	assert_int_equal(l->queues, 4);
	assert_int_equal(l->queue_requests, 128);
	assert_int_equal(device_requests(l), 512);
	assert_true(l->write_cache);
	assert_true(l->fua);
}

/* Its limits are its disk's. */
static void
partition(void **state)
{
	struct device_chain c;

	(void)state;
	read_chain(&c, NVME0P2);
	assert_int_equal(c.count, 2);
	check_node(&c, 0, "nvme0n1p2", DEVICE_PARTITION, 0);
	check_node(&c, 1, "nvme0n1", DEVICE_DISK, 0);
	assert_int_equal(c.node[0].start, 1u << 20);
	assert_true(c.node[0].aligned);
	assert_memory_equal(&c.node[0].limits, &c.node[1].limits,
			    sizeof(c.node[0].limits));
	assert_ptr_equal(device_chain_top(&c), &c.node[1]);
	sysfs_put("nvme0n1/nvme0n1p2", "alignment_offset", "512");
	read_chain(&c, NVME0P2);
	assert_false(c.node[0].aligned);
	sysfs_put("nvme0n1/nvme0n1p2", "alignment_offset", "0");
}

static void
dm_over_md_over_nvme(void **state)
{
	struct device_chain c;

	(void)state;
	sysfs_put("nvme1n1", "queue/nr_requests", "64");
	read_chain(&c, DM3);
	assert_int_equal(c.count, 6);
	check_node(&c, 0, "dm-3", DEVICE_DM, 0);
	assert_string_equal(c.node[0].detail, "vg-data");
	check_node(&c, 1, "md0", DEVICE_MD, 0);
	assert_string_equal(c.node[1].detail, "raid1");
	assert_int_equal(c.node[1].below, 2);
	check_node(&c, 2, "nvme0n1p2", DEVICE_PARTITION, 1);
	check_node(&c, 3, "nvme1n1p1", DEVICE_PARTITION, 1);
	check_node(&c, 4, "nvme0n1", DEVICE_DISK, 2);
	check_node(&c, 5, "nvme1n1", DEVICE_DISK, 3);
	for (unsigned i = 0; i < c.count; i++)
		assert_int_equal(device_is_leaf(&c.node[i]), i >= 4);
	assert_ptr_equal(device_chain_top(&c), &c.node[0]);
	/* 64 in one queue there. */
	assert_ptr_equal(device_chain_narrow(&c), &c.node[5]);
}

/* Both halves of a mirror on one disk. */
static void
shared_below(void **state)
{
	struct device_chain c;

	(void)state;
	sysfs_device("nvme0n1/nvme0n1p3", makedev(3259, 3));
	sysfs_put("nvme0n1/nvme0n1p3", "partition", "3");
	sysfs_disk("virtual/md1", makedev(3009, 1));
	sysfs_put("virtual/md1", "md/level", "raid0");
	sysfs_slave("virtual/md1", "nvme0n1/nvme0n1p3");
	sysfs_slave("virtual/md1", "nvme0n1/nvme0n1p2");
	read_chain(&c, makedev(3009, 1));
	assert_int_equal(c.count, 4);
	check_node(&c, 3, "nvme0n1", DEVICE_DISK, 1);
}

/* Down to what holds the file, whose queue is not ours to fill. */
static void
loop(void **state)
{
	char file[64];
	struct device_chain c;
	struct stat st;

	(void)state;
	(void)snprintf(file, sizeof(file), "%s/image", sysfs_root());
	sysfs_put("virtual/loop7", "loop/backing_file", file);
	read_chain(&c, LOOP7);
	assert_int_equal(c.count, 1);
	check_node(&c, 0, "loop7", DEVICE_LOOP, 0);
	assert_string_equal(c.node[0].detail, file);
	assert_int_equal(mknod(file, S_IFREG | 0600, 0), 0);
	assert_int_equal(stat(file, &st), 0);
	sysfs_disk("sdz", st.st_dev);
	sysfs_put("sdz", "queue/nr_requests", "2");
	read_chain(&c, LOOP7);
	assert_int_equal(c.count, 2);
	check_node(&c, 1, "sdz", DEVICE_DISK, 0);
	assert_true(c.node[1].backing);
	assert_true(device_is_leaf(&c.node[0]));
	assert_false(device_is_leaf(&c.node[1]));
	assert_ptr_equal(device_chain_narrow(&c), &c.node[0]);
}

/* More than a chain can hold is said, not overrun. */
static void
too_many(void **state)
{
	struct device_chain c;
	char name[32];

	(void)state;
	sysfs_disk("virtual/md9", makedev(3009, 9));
	sysfs_put("virtual/md9", "md/level", "raid6");
	for (unsigned i = 0; i < 2 * DEVICE_NODES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "sd%02u", i);
		sysfs_disk(name, makedev(3008, i));
		sysfs_slave("virtual/md9", name);
	}
	read_chain(&c, makedev(3009, 9));
	assert_int_equal(c.count, DEVICE_NODES_MAX);
	assert_true(c.cut_short);
}

static void
absent(void **state)
{
	struct device_chain c;

	(void)state;
	read_chain(&c, makedev(0, 42));
	assert_int_equal(c.count, 0);
	assert_null(device_chain_top(&c));
	assert_null(device_chain_narrow(&c));
	device_chain_read(&c, "/nonexistent", NVME0, -1);
	assert_int_equal(c.count, 0);
}

/* A queue that tells little, or nonsense. */
static void
half_told(void **state)
{
	struct device_chain c;

	(void)state;
	sysfs_device("odd", makedev(3008, 200));
	sysfs_put("odd", "queue/max_hw_sectors_kb", "2147483647");
	sysfs_put("odd", "queue/virt_boundary_mask", "18446744073709551615");
	sysfs_put("odd", "queue/write_cache", "write through");
	read_chain(&c, makedev(3008, 200));
	assert_int_equal(c.count, 1);
	assert_int_equal(c.node[0].limits.transfer_bytes_max, 0);
	assert_int_equal(c.node[0].limits.virt_boundary_bytes, 0);
	assert_int_equal(c.node[0].limits.queues, 0);
	assert_false(c.node[0].limits.write_cache);
	assert_null(device_chain_narrow(&c));
}

/* This machine's own, whatever it is, must not be refused. */
static void
real_one(void **state)
{
	struct device_chain c;
	struct stat st;

	(void)state;
	assert_int_equal(stat("/", &st), 0);
	device_chain_read(&c, "/sys", st.st_dev, -1);
	if (c.count == 0) {
		print_message("skip: / is on no block device\n");
		skip();
	}
	assert_true(c.node[0].name[0] != '\0');
	assert_non_null(device_chain_top(&c));
	assert_true(device_chain_top(&c)->limits.logical_bytes >= 512);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_disk),
		cmocka_unit_test(partition),
		cmocka_unit_test(dm_over_md_over_nvme),
		cmocka_unit_test(shared_below),
		cmocka_unit_test(loop),
		cmocka_unit_test(too_many),
		cmocka_unit_test(absent),
		cmocka_unit_test(half_told),
		cmocka_unit_test(real_one),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
