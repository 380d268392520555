/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVMe's identify pages and SMART log as bytes, at the offsets of the
 * specification, and what is read out of them; then how a byte of them changes
 * the plan. Nothing here uses the library's structs: they are what is checked.
 */
#include "io/device.h"
#include "io/io.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include <cmocka.h>

/* Identify Controller */
#define MN     24
#define FR     64
#define MDTS   77
#define VWC    525
#define AWUN   526
#define AWUPF  528
/* Identify Namespace */
#define NSFEAT 24
#define FLBAS  26
#define NAWUN  34
#define NAWUPF 36
#define NOIOB  46
#define NPWG   64
#define NPWA   66
#define NOWS   72
#define LBAF   128 /* of 4 bytes each: metadata, data size as a power, ... */

static struct {
	uint8_t ctrl[NVME_PAGE_BYTES], ns[NVME_PAGE_BYTES];
} page;

static void
put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)value;
	at[1] = (uint8_t)(value >> 8);
}

static void
put_text(uint8_t *at, const char *text, size_t room)
{
	for (size_t i = 0, end = strlen(text); i < room; i++)
		at[i] = i < end ? (uint8_t)text[i] : ' ';
}

/* Format 2 of 4096 bytes, all else as a plain device has it. */
static void
fresh(void)
{
	memset(&page, 0, sizeof(page));
	put_text(page.ctrl + MN, "Storage 3000", 40);
	put_text(page.ctrl + FR, "1.2\x01", 8);
	page.ns[FLBAS] = 2;
	page.ns[LBAF + 2 * 4 + 2] = 12;
}

static struct nvme_facts
decode(void)
{
	struct nvme_facts f;

	nvme_decode(&f, 1, page.ctrl, page.ns);
	return f;
}

static void
names(void **state)
{
	struct nvme_facts f;

	(void)state;
	fresh();
	f = decode();
	assert_string_equal(f.model, "Storage 3000");
	assert_string_equal(f.firmware, "1.2?");
	assert_int_equal(f.nsid, 1);
	memset(page.ctrl + MN, 'm', 40); /* no blank at its end */
	assert_int_equal(strlen(decode().model), 40);
}

static void
format(void **state)
{
	(void)state;
	fresh();
	assert_int_equal(decode().format, 2);
	assert_int_equal(decode().block_bytes, 4096);
	assert_int_equal(decode().metadata_bytes, 0);
	page.ns[FLBAS] = 1;
	page.ns[LBAF + 4] = 8;
	page.ns[LBAF + 4 + 2] = 9;
	assert_int_equal(decode().block_bytes, 512);
	assert_int_equal(decode().metadata_bytes, 8);
	page.ns[FLBAS] = 0x21; /* bits 5 and 6 are above the lower four */
	page.ns[LBAF + 17 * 4 + 2] = 14;
	assert_int_equal(decode().format, 17);
	assert_int_equal(decode().block_bytes, 16384);
	page.ns[LBAF + 17 * 4 + 2] = 200;
	assert_int_equal(decode().block_bytes, 0);
}

static void
preferences(void **state)
{
	struct nvme_facts f;

	(void)state;
	fresh();
	put16(page.ns + NPWG, 3);
	put16(page.ns + NPWA, 1);
	put16(page.ns + NOWS, 63);
	put16(page.ns + NOIOB, 32);
	f = decode();
	assert_int_equal(f.noiob_bytes, 128u << 10);
	assert_int_equal(f.npwg_bytes, 0); /* not defined */
	page.ns[NSFEAT] = 0x10;
	f = decode();
	assert_int_equal(f.npwg_bytes, 16384);
	assert_int_equal(f.npwa_bytes, 8192);
	assert_int_equal(f.nows_bytes, 256u << 10);
}

static void
limits(void **state)
{
	(void)state;
	fresh();
	assert_int_equal(decode().mdts_bytes, 0);
	page.ctrl[MDTS] = 7;
	assert_int_equal(decode().mdts_bytes, 512u << 10);
	page.ctrl[MDTS] = 255;
	assert_int_equal(decode().mdts_bytes, 0);
	assert_false(decode().volatile_cache);
	page.ctrl[VWC] = 7;
	assert_true(decode().volatile_cache);
}

static void
atomic(void **state)
{
	(void)state;
	fresh();
	assert_int_equal(decode().awun_bytes, 4096);
	assert_int_equal(decode().awupf_bytes, 4096);
	put16(page.ctrl + AWUN, 0xffff);
	put16(page.ctrl + AWUPF, 7);
	assert_int_equal(decode().awun_bytes, 65536u * 4096);
	assert_int_equal(decode().awupf_bytes, 32768);
	put16(page.ns + NAWUPF, 15);
	put16(page.ns + NAWUN, 31);
	assert_int_equal(decode().awupf_bytes, 32768); /* not defined */
	page.ns[NSFEAT] = 0x02;
	assert_int_equal(decode().awupf_bytes, 65536);
	assert_int_equal(decode().awun_bytes, 131072);
	put16(page.ns + NAWUPF, 0);
	assert_int_equal(decode().awupf_bytes, 32768);
}

static void
smart(void **state)
{
	uint8_t log[NVME_SMART_LOG_BYTES] = { 0 };
	struct nvme_smart s;

	(void)state;
	log[0] = 0x05;
	put16(log + 1, 273 + 41);
	log[3] = 97;
	log[4] = 10;
	log[5] = 3;
	put16(log + 32, 0x1234); /* data units read */
	log[34] = 1;
	put16(log + 48, 77); /* written */
	put16(log + 144, 5); /* unsafe shutdowns */
	put16(log + 160, 6); /* media errors */
	nvme_decode_smart(&s, log);
	assert_int_equal(s.critical_warning, 5);
	assert_int_equal(s.temperature_celsius, 41);
	assert_int_equal(s.spare_percent, 97);
	assert_int_equal(s.spare_threshold_percent, 10);
	assert_int_equal(s.used_percent, 3);
	assert_int_equal(s.data_units_read, 0x11234);
	assert_int_equal(s.data_units_written, 77);
	assert_int_equal(s.unsafe_shutdowns, 5);
	assert_int_equal(s.media_errors, 6);
	log[160 + 8] = 1; /* more than 64 bits */
	nvme_decode_smart(&s, log);
	assert_true(s.media_errors == UINT64_MAX);
}

static struct volume_facts
plan(void)
{
	struct volume_facts v = { 0 };
	struct device_chain c = { .count = 1 };
	struct nvme_facts f = decode();
	struct plan_ask ask = { .page_bytes = 4096,
				.block_bytes = 4096,
				.dio = { 4, 4096, 4096, false, 0, 0 },
				.chain = &c,
				.nvme = &f };

	c.node[0].aligned = true;
	device_plan(&v, &ask);
	return v;
}

/* What sysfs did not tell. */
static void
changes_the_plan(void **state)
{
	(void)state;
	fresh();
	page.ns[NSFEAT] = 0x10;
	assert_int_equal(plan().cut_bytes, 4096);
	assert_int_equal(plan().piece_bytes_max, IO_TRANSFER_BYTES_MAX);
	assert_int_equal(plan().piece_boundary, 0);
	put16(page.ns + NPWG, 3);
	assert_int_equal(plan().cut_bytes, 16384);
	assert_int_equal(plan().write_mult_bytes, 16384);
	page.ctrl[MDTS] = 6;
	assert_int_equal(plan().piece_bytes_max, 256u << 10);
	put16(page.ns + NOWS, 95);
	assert_int_equal(plan().piece_boundary, 384u << 10);
	assert_int_equal(plan().write_pref_bytes, 768u << 10);
	put16(page.ns + NOIOB, 32);
	assert_int_equal(plan().piece_boundary, 128u << 10);
	assert_int_equal(plan().write_pref_bytes, 1u << 20);
}

static void
not_asked(void **state)
{
	struct nvme_facts f = { .nsid = 77 };
	struct nvme_smart s;

	(void)state;
	assert_int_equal(nvme_ask(&f, "sda", makedev(8, 0)), -ENODEV);
	assert_int_equal(nvme_ask(&f, "nvme99n99", makedev(3259, 0)), -ENOENT);
	assert_int_equal(nvme_ask_smart(&s, "loop0", makedev(7, 0)), -ENODEV);
	assert_int_equal(f.nsid, 77); /* untouched */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(format),
		cmocka_unit_test(preferences),
		cmocka_unit_test(limits),
		cmocka_unit_test(atomic),
		cmocka_unit_test(smart),
		cmocka_unit_test(changes_the_plan),
		cmocka_unit_test(not_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
