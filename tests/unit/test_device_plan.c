/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each fact of a device, and what it changes: one is changed at a time, in a
 * made sysfs, in what statx says, or in what an NVMe device says of itself, and
 * the plan must follow. The device that all start from is a plain NVMe disk.
 */
#include "io/device.h"
#include "io/volume.h"
#include "tests/unit/made_sysfs.h"

#include <linux/magic.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include <cmocka.h>

#define DEV  makedev(3259, 0)
#define PART makedev(3259, 1)

struct facts {
	uint32_t block_bytes;
	struct dio_facts dio;
	struct nvme_facts nvme;
	bool is_nvme;
	dev_t dev; /* 0: DEV */
};

static const struct facts plain = {
	.block_bytes = 4096,
	.dio = { .mem = 4, .offset = 4096, .read = 4096, .atomic_told = true },
};

static int
set_up(void **state)
{
	(void)state;
	sysfs_make();
	sysfs_disk("nvme0n1", DEV);
	sysfs_device("nvme0n1/nvme0n1p1", PART);
	sysfs_put("nvme0n1/nvme0n1p1", "partition", "1");
	sysfs_put("nvme0n1/nvme0n1p1", "start", "2048");
	sysfs_put("nvme0n1/nvme0n1p1", "alignment_offset", "0");
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	sysfs_remove();
	return 0;
}

static struct volume_facts
plan(const struct facts *f)
{
	struct volume_facts v = { 0 };
	struct device_chain chain;
	struct plan_ask ask = { .page_bytes = 4096,
				.block_bytes = f->block_bytes,
				.dio = f->dio,
				.chain = &chain,
				.nvme = f->is_nvme ? &f->nvme : NULL };

	device_chain_read(&chain, sysfs_root(), f->dev == 0 ? DEV : f->dev, -1);
	device_plan(&v, &ask);
	return v;
}

static void
put(const char *attribute, const char *text)
{
	sysfs_put("nvme0n1", attribute, text);
}

/* From here on, and back again. */
static struct volume_facts
plan_with(const char *attribute, const char *text, const char *again)
{
	struct volume_facts v;

	put(attribute, text);
	v = plan(&plain);
	put(attribute, again);
	return v;
}

static void
nothing_known(void **state)
{
	struct facts f = plain;
	struct volume_facts v;

	(void)state;
	f.dev = makedev(3000, 7);
	v = plan(&f);
	assert_int_equal(v.cut_bytes, 4096);
	assert_int_equal(v.piece_bytes_max, IO_TRANSFER_BYTES_MAX);
	assert_int_equal(v.piece_boundary, 0);
	assert_int_equal(v.slots, 0);
	assert_true(v.write_cache);
	assert_false(v.sync_by_fua);
	assert_string_equal(v.device, "");
	f.dio = (struct dio_facts){ 0 };
	v = plan(&f);
	assert_int_equal(v.cut_bytes, 0);
	assert_int_equal(v.write_mult_bytes, 4096);
	assert_non_null(v.atomic_why);
}

static void
cut_by_statx_and_block(void **state)
{
	struct facts f = plain;

	(void)state;
	assert_int_equal(plan(&f).cut_bytes, 4096);
	/* Never inside a page. */
	f.dio.offset = 512;
	assert_int_equal(plan(&f).cut_bytes, 4096);
	f.dio.offset = 8192;
	assert_int_equal(plan(&f).cut_bytes, 8192);
	f.dio.offset = 4096;
	f.block_bytes = 16384;
	assert_int_equal(plan(&f).cut_bytes, 16384);
	assert_int_equal(plan(&f).write_mult_bytes, 16384);
	f.dio.offset = 0;
	assert_int_equal(plan(&f).cut_bytes, 0);
}

/* Where statx does not tell: the logical block, or the file system's. */
static void
cut_by_logical_block(void **state)
{
	struct facts f = plain;
	struct device_chain c;

	(void)state;
	put("queue/logical_block_size", "8192");
	device_chain_read(&c, sysfs_root(), DEV, -1);
	device_plan_assume(&f.dio, XFS_MAGIC, 4096, &c);
	assert_int_equal(f.dio.offset, 8192);
	assert_int_equal(plan(&f).cut_bytes, 8192);
	assert_int_equal(plan(&f).logical_bytes, 8192);
	put("queue/logical_block_size", "512");
	device_chain_read(&c, sysfs_root(), DEV, -1);
	device_plan_assume(&f.dio, XFS_MAGIC, 4096, &c);
	assert_int_equal(f.dio.offset, 512);
	assert_int_equal(plan(&f).cut_bytes, 4096);
	put("queue/logical_block_size", "4096");
	device_plan_assume(&f.dio, BTRFS_SUPER_MAGIC, 16384, &c);
	assert_int_equal(f.dio.offset, 16384);
	device_plan_assume(&f.dio, TMPFS_MAGIC, 4096, &c);
	assert_int_equal(f.dio.offset, 0);
	c.count = 0;
	device_plan_assume(&f.dio, XFS_MAGIC, 4096, &c);
	assert_int_equal(f.dio.offset, 0);
}

/* Our memory is aligned to pages, and our cuts are powers of two. */
static void
alignments_that_suit(void **state)
{
	struct dio_facts d = plain.dio;

	(void)state;
	assert_true(device_plan_suits(&d, 4096));
	d.mem = 4096;
	assert_true(device_plan_suits(&d, 4096));
	d.mem = 8192;
	assert_false(device_plan_suits(&d, 4096));
	d = plain.dio;
	d.offset = 12288;
	assert_false(device_plan_suits(&d, 4096));
	d.offset = 0;
	assert_false(device_plan_suits(&d, 4096));
}

static void
cut_by_physical_block(void **state)
{
	struct facts f = plain;
	struct volume_facts v;

	(void)state;
	v = plan_with("queue/physical_block_size", "16384", "4096");
	assert_int_equal(v.physical_bytes, 16384);
	assert_int_equal(v.cut_bytes, 16384);
	assert_int_equal(device_plan_cut(&v, 512), 16384);
	assert_int_equal(device_plan_cut(&v, 32768), 32768);
	assert_int_equal(device_plan_cut(&v, 0), 0);
	/* A tape's block is not for cutting. */
	v = plan_with("queue/physical_block_size", "262144", "4096");
	assert_int_equal(v.cut_bytes, 4096);
	/* A partition that begins off it has none to gain. */
	f.dev = PART;
	put("queue/physical_block_size", "16384");
	assert_int_equal(plan(&f).cut_bytes, 16384);
	sysfs_put("nvme0n1/nvme0n1p1", "start", "2056");
	assert_int_equal(plan(&f).cut_bytes, 4096);
	sysfs_put("nvme0n1/nvme0n1p1", "start", "2048");
	put("queue/physical_block_size", "4096");
}

static void
cut_by_npwg_and_npwa(void **state)
{
	struct facts f = plain;

	(void)state;
	f.is_nvme = true;
	f.nvme.npwg_bytes = 16384;
	assert_int_equal(plan(&f).cut_bytes, 16384);
	f.nvme.npwa_bytes = 32768;
	assert_int_equal(plan(&f).cut_bytes, 32768);
	f.nvme.npwg_bytes = f.nvme.npwa_bytes = 12288; /* no power of two */
	assert_int_equal(plan(&f).cut_bytes, 4096);
}

static void
virtual_boundary(void **state)
{
	struct volume_facts v =
		plan_with("queue/virt_boundary_mask", "65535", "4095");

	(void)state;
	assert_int_equal(v.cut_bytes, 0);
	assert_int_equal(v.dio_offset_align, 0);
	assert_non_null(v.direct_why);
	assert_int_equal(device_plan_cut(&v, 4096), 0);
	v = plan_with("queue/virt_boundary_mask", "0", "4095");
	assert_int_equal(v.cut_bytes, 4096);
	assert_null(v.direct_why);
}

static void
piece_size(void **state)
{
	struct facts f = plain;

	(void)state;
	assert_int_equal(plan(&f).piece_bytes_max, 2u << 20);
	assert_int_equal(plan_with("queue/max_hw_sectors_kb", "512", "2048")
				 .piece_bytes_max,
			 512u << 10);
	/* The kernel cuts as cheaply; and no WRITE is larger. */
	assert_int_equal(plan_with("queue/max_hw_sectors_kb", "64", "2048")
				 .piece_bytes_max,
			 256u << 10);
	assert_int_equal(plan_with("queue/max_hw_sectors_kb", "65536", "2048")
				 .piece_bytes_max,
			 IO_TRANSFER_BYTES_MAX);
	/* 500 KiB is no number of blocks of 16 KiB. */
	f.block_bytes = 16384;
	put("queue/max_hw_sectors_kb", "500");
	assert_int_equal(plan(&f).piece_bytes_max, 496u << 10);
	put("queue/max_hw_sectors_kb", "2048");
	f = plain;
	f.is_nvme = true;
	f.nvme.mdts_bytes = 1u << 20;
	assert_int_equal(plan(&f).piece_bytes_max, 1u << 20);
}

static void
piece_boundary(void **state)
{
	struct facts f = plain;

	(void)state;
	assert_int_equal(plan(&f).piece_boundary, 0);
	assert_int_equal(
		plan_with("queue/chunk_sectors", "256", "0").piece_boundary,
		128u << 10);
	assert_int_equal(
		plan_with("queue/chunk_sectors", "8", "0").piece_boundary, 0);
	assert_int_equal(plan_with("queue/optimal_io_size", "1572864", "0")
				 .piece_boundary,
			 1536u << 10);
	/* Not a number of cuts. */
	assert_int_equal(
		plan_with("queue/optimal_io_size", "70000", "0").piece_boundary,
		0);
	f.is_nvme = true;
	f.nvme.nows_bytes = 256u << 10;
	assert_int_equal(plan(&f).piece_boundary, 256u << 10);
	f.nvme.noiob_bytes = 128u << 10;
	assert_int_equal(plan(&f).piece_boundary, 128u << 10);
	/* sysfs comes first: it holds for all that is between. */
	put("queue/chunk_sectors", "2048");
	assert_int_equal(plan(&f).piece_boundary, 1u << 20);
	put("queue/chunk_sectors", "0");
}

static void
preferred_write(void **state)
{
	struct facts f = plain;

	(void)state;
	assert_int_equal(plan(&f).write_pref_bytes, 1u << 20);
	f.is_nvme = true;
	f.nvme.nows_bytes = 384u << 10;
	assert_int_equal(plan(&f).write_pref_bytes, 768u << 10);
	f.nvme.nows_bytes = 3u << 20;
	assert_int_equal(plan(&f).write_pref_bytes, 3u << 20);
}

static void
depth(void **state)
{
	(void)state;
	assert_int_equal(plan(&plain).slots, 96);
	assert_int_equal(plan(&plain).request_bytes, 1280u << 10);
	assert_int_equal(plan_with("queue/nr_requests", "1023", "128").slots,
			 767);
	assert_int_equal(plan_with("queue/nr_requests", "1", "128").slots, 1);
	assert_int_equal(
		plan_with("queue/max_sectors_kb", "512", "1280").request_bytes,
		512u << 10);
	sysfs_queues("nvme0n1", 8);
	assert_int_equal(plan(&plain).slots, 768);
}

static void
stable_writes(void **state)
{
	struct facts f = plain;

	(void)state;
	/* VWC */
	f.is_nvme = true;
	f.nvme.volatile_cache = true;
	assert_false(plan(&f).sync_by_fua);
	f.nvme.volatile_cache = false;
	assert_false(plan(&f).write_cache);
	assert_true(plan(&f).sync_by_fua);
	assert_true(
		plan_with("queue/write_cache", "", "write back").write_cache);
	assert_true(plan(&plain).write_cache);
	assert_false(plan(&plain).sync_by_fua);
	assert_true(plan_with("queue/fua", "1", "0").sync_by_fua);
	assert_true(
		plan_with("queue/write_cache", "write through", "write back")
			.sync_by_fua);
	assert_false(
		plan_with("queue/write_cache", "write through", "write back")
			.write_cache);
}

/* A device is polled for direct I/O where it has queues for that. */
static void
polls(void **state)
{
	struct facts f = plain;

	(void)state;
	assert_false(plan(&f).polls);
	f.dio.offset = 0;
	assert_false(plan(&f).polls);
	assert_true(plan_with("queue/io_poll", "1", "0").polls);
}

static void
torn_free(void **state)
{
	struct facts f = plain;
	struct volume_facts v;

	(void)state;
	assert_non_null(strstr(plan(&f).atomic_why, "nothing atomically"));
	put("queue/atomic_write_unit_max_bytes", "65536");
	assert_non_null(strstr(plan(&f).atomic_why, "uses none"));
	f.dio.atomic_min = 4096;
	f.dio.atomic_max = 16384;
	v = plan(&f);
	assert_null(v.atomic_why);
	assert_int_equal(v.atomic_bytes_min, 4096);
	assert_int_equal(v.atomic_bytes_max, 16384);
	/* Below a cut a WRITE is not written directly at all. */
	f.dio.atomic_min = 512;
	assert_int_equal(plan(&f).atomic_bytes_min, 4096);
	f.dio.atomic_max = 2048;
	assert_non_null(strstr(plan(&f).atomic_why, "less than a block"));
	/* A kernel that knows none, on a device that says AWUPF. */
	put("queue/atomic_write_unit_max_bytes", "0");
	f = plain;
	f.dio.atomic_told = false;
	assert_non_null(strstr(plan(&f).atomic_why, "nor has the device"));
	f.is_nvme = true;
	f.nvme.awupf_bytes = 65536;
	assert_non_null(strstr(plan(&f).atomic_why, "the device has atomic"));
	/* The file system alone will do. */
	f = plain;
	f.dio.atomic_min = 4096;
	f.dio.atomic_max = 1u << 20;
	assert_null(plan(&f).atomic_why);
	f.dio.offset = 0;
	assert_non_null(strstr(plan(&f).atomic_why, "no direct I/O"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_known),
		cmocka_unit_test(cut_by_statx_and_block),
		cmocka_unit_test(cut_by_logical_block),
		cmocka_unit_test(alignments_that_suit),
		cmocka_unit_test(cut_by_physical_block),
		cmocka_unit_test(cut_by_npwg_and_npwa),
		cmocka_unit_test(virtual_boundary),
		cmocka_unit_test(piece_size),
		cmocka_unit_test(piece_boundary),
		cmocka_unit_test(preferred_write),
		cmocka_unit_test(depth),
		cmocka_unit_test(stable_writes),
		cmocka_unit_test(polls),
		cmocka_unit_test(torn_free),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
