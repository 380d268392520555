/* SPDX-License-Identifier: Apache-2.0 */
/* MOUNT's six procedures on the wire, against libnfs and by hand. */
#include "nfsd/nfs3.h"
#include "tests/unit/zdr_peer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEEDS     200u
#define NODES     5u
#define BYTES_MAX (64u << 10)

static uint8_t ours[BYTES_MAX], theirs[BYTES_MAX];

static bool
decode_path(const uint8_t *bytes, uint32_t n, union nfs3_args *args)
{
	XDR x;

	xdrmem_create(&x, (char *)bytes, n, XDR_DECODE);
	return mount3_decode_path(&x, args);
}

/* MNT and UMNT */
static void
test_path(void **state)
{
	union nfs3_args args;
	struct sample s;
	uint32_t n;

	for (unsigned seed = 0; seed < SEEDS; seed++) {
		sample_random(&s, seed);
		n = peer_mount_path(&s, theirs, sizeof(theirs));
		assert_true(decode_path(theirs, n, &args));
		assert_int_equal(args.mount.path.bytes, strlen(s.path));
		assert_memory_equal(args.mount.path.data, s.path,
				    strlen(s.path));
		assert_false(decode_path(theirs, n + 1, &args));
		for (uint32_t cut = 0; cut < n; cut++)
			assert_false(decode_path(theirs, cut, &args));
	}
}

static void
test_path_by_hand(void **state)
{
	static const uint8_t bytes[] = { 0,   0,   0,   5, '/', 'a',
					 '/', 'b', 'c', 0, 0,   0 };
	static uint8_t longer[4 + 2000];
	union nfs3_args args;

	assert_true(decode_path(bytes, sizeof(bytes), &args));
	assert_int_equal(args.mount.path.bytes, 5);
	assert_ptr_equal(args.mount.path.data, bytes + 4);
	/* Longer than MNTPATHLEN is MNT3ERR_NAMETOOLONG's to say. */
	longer[2] = 2000 >> 8;
	longer[3] = 2000 & 0xff;
	assert_true(decode_path(longer, sizeof(longer), &args));
	assert_int_equal(args.mount.path.bytes, 2000);
}

static int
encode_mnt(nfs3_encode_fn *fn, const union nfs3_res *res, uint32_t room)
{
	XDR x;

	xdrmem_create(&x, (char *)ours, room, XDR_ENCODE);
	/* the status argument is not what counts */
	return fn(&x, NFS3ERR_IO, res) ? (int)XDR_GETPOS(&x) : -1;
}

static void
test_mnt(void **state)
{
	union nfs3_res res = { 0 };
	struct sample s;
	uint32_t n, status;

	for (unsigned seed = 0; seed < SEEDS; seed++) {
		sample_random(&s, seed);
		status = seed % 3 ? MNT3_OK : MNT3ERR_NAMETOOLONG;
		res.mnt.status = status;
		res.mnt.fh.bytes = s.fh.bytes;
		memcpy(res.mnt.fh.data, s.fh.data, s.fh.bytes);
		n = peer_mount_mnt(status, &s, theirs, sizeof(theirs));
		assert_int_equal(encode_mnt(mount3_encode_mnt, &res, n), n);
		assert_memory_equal(ours, theirs, n);
		for (uint32_t room = 0; room < n; room++)
			assert_int_equal(
				encode_mnt(mount3_encode_mnt, &res, room), -1);
	}
	sample_largest(&s);
	res.mnt.status = MNT3_OK;
	res.mnt.fh.bytes = NFS3_FHSIZE;
	assert_int_equal(encode_mnt(mount3_encode_mnt, &res, BYTES_MAX),
			 MOUNT3_MNT_BYTES);
}

static void
test_mnt_by_hand(void **state)
{
	static const uint8_t bytes[] = {
		0,    0,    0,    0,                            /* MNT3_OK */
		0,    0,    0,    5,                            /* handle */
		0xde, 0xad, 0xbe, 0xef, 1, 0, 0, 0, 0, 0, 0, 1, /* one flavor */
		0,    0,    0,    1,                            /* AUTH_SYS */
	};
	union nfs3_res res = {
		.mnt = { .status = MNT3_OK,
			 .fh = { 5, { 0xde, 0xad, 0xbe, 0xef, 1 } } }
	};

	assert_int_equal(encode_mnt(mount3_encode_mnt, &res, BYTES_MAX),
			 sizeof(bytes));
	assert_memory_equal(ours, bytes, sizeof(bytes));
}

static void
test_mnt_version_1(void **state)
{
	static const uint32_t status[][2] = {
		{ MNT3_OK, EINVAL },         { MNT3ERR_ACCES, EACCES },
		{ MNT3ERR_NOENT, ENOENT },   { MNT3ERR_NOTDIR, ENOTDIR },
		{ MNT3ERR_NOTSUPP, EINVAL }, { MNT3ERR_SERVERFAULT, EINVAL },
		{ MNT3ERR_NAMETOOLONG, 63 },
	};
	union nfs3_res res = { 0 };
	uint32_t got;

	for (unsigned i = 0; i < sizeof(status) / sizeof(*status); i++) {
		res.mnt.status = status[i][0];
		assert_int_equal(encode_mnt(mount1_encode_mnt, &res, 64), 4);
		assert_true(peer_mount1_mnt_reads(ours, 4, &got));
		assert_int_equal(got, status[i][1]);
	}
}

/* Ten words, by hand. */
static void
test_pathconf(void **state)
{
	static const uint8_t want[MOUNT2_PATHCONF_BYTES] = {
		0, 0, 0xfd, 0xe8, 0, 0, 0,    255, 0, 0, 0, 254, 0, 0, 0, 253,
		0, 0, 16,   0,    0, 0, 0x10, 1,   0, 0, 0, 7,   0, 0, 0, 0,
	};
	static union nfs3_res res;
	XDR x;

	res.mount_pathconf = (struct mount2_pathconf_res){
		.link_max = 65000,
		.max_canon = 255,
		.max_input = 254,
		.name_max = 253,
		.path_max = 4096,
		.pipe_buf = 4097,
		.vdisable = 7,
	};
	xdrmem_create(&x, (char *)ours, sizeof(want), XDR_ENCODE);
	assert_true(mount2_encode_pathconf(&x, NFS3_OK, &res));
	assert_int_equal(XDR_GETPOS(&x), sizeof(want));
	assert_memory_equal(ours, want, sizeof(want));
	res.mount_pathconf = (struct mount2_pathconf_res){ .failed = true };
	xdrmem_create(&x, (char *)ours, sizeof(want), XDR_ENCODE);
	assert_true(mount2_encode_pathconf(&x, NFS3ERR_NOENT, &res));
	assert_memory_equal(ours + 32, "\0\0\0\1\0\0\0\0", 8);
	xdrmem_create(&x, (char *)ours, sizeof(want) - 4, XDR_ENCODE);
	assert_false(mount2_encode_pathconf(&x, NFS3_OK, &res));
}

/* DUMP's list of n nodes into room, or -1. */
static int
encode_dump(const struct sample *s, unsigned n, uint32_t room)
{
	bool ok = true;
	XDR x;

	xdrmem_create(&x, (char *)ours, room, XDR_ENCODE);
	for (unsigned i = 0; i < n; i++)
		ok = ok && mount3_put_mount(&x, s->name, s->path);
	ok = ok && mount3_put_end(&x);
	return ok ? (int)XDR_GETPOS(&x) : -1;
}

static int
encode_export(const struct sample *s, unsigned n, uint32_t room)
{
	bool ok = true;
	XDR x;

	xdrmem_create(&x, (char *)ours, room, XDR_ENCODE);
	for (unsigned i = 0; i < n; i++) {
		ok = ok && mount3_put_export(&x, s->path);
		for (unsigned g = 0; g < i; g++)
			ok = ok && mount3_put_group(&x, s->name);
		ok = ok && mount3_put_end(&x);
	}
	ok = ok && mount3_put_end(&x);
	return ok ? (int)XDR_GETPOS(&x) : -1;
}

static void
test_lists(void **state)
{
	struct sample s;
	uint32_t n;

	for (unsigned seed = 0; seed < SEEDS; seed++) {
		sample_random(&s, seed);
		for (unsigned nodes = 0; nodes <= NODES; nodes++) {
			n = peer_mount_dump(&s, nodes, theirs, BYTES_MAX);
			assert_int_equal(encode_dump(&s, nodes, n), n);
			assert_memory_equal(ours, theirs, n);
			assert_true(peer_mount_dump_reads(ours, n));
			assert_int_equal(encode_dump(&s, nodes, n - 1), -1);

			n = peer_mount_export(&s, nodes, theirs, BYTES_MAX);
			assert_int_equal(encode_export(&s, nodes, n), n);
			assert_memory_equal(ours, theirs, n);
			assert_true(peer_mount_export_reads(ours, n));
			assert_int_equal(encode_export(&s, nodes, n - 1), -1);
		}
	}
}

static void
test_lists_by_hand(void **state)
{
	static const uint8_t dump[] = {
		0, 0, 0, 1, 0,   0,   0,   2, 'h', '1', 0, 0, /* host */
		0, 0, 0, 3, '/', 'e', 'x', 0,                 /* directory */
		0, 0, 0, 0,                                   /* end */
	};
	static const uint8_t export[] = {
		0, 0, 0, 1, 0, 0, 0, 3, '/', 'e', 'x', 0, /* directory */
		0, 0, 0, 1, 0, 0, 0, 1, '*', 0,   0,   0, /* group */
		0, 0, 0, 0,                               /* end of groups */
		0, 0, 0, 0,                               /* end */
	};
	XDR x;

	xdrmem_create(&x, (char *)ours, BYTES_MAX, XDR_ENCODE);
	assert_true(mount3_put_mount(&x, "h1", "/ex") && mount3_put_end(&x));
	assert_int_equal(XDR_GETPOS(&x), sizeof(dump));
	assert_memory_equal(ours, dump, sizeof(dump));
	xdrmem_create(&x, (char *)ours, BYTES_MAX, XDR_ENCODE);
	assert_true(mount3_put_export(&x, "/ex") && mount3_put_group(&x, "*") &&
		    mount3_put_end(&x) && mount3_put_end(&x));
	assert_int_equal(XDR_GETPOS(&x), sizeof(export));
	assert_memory_equal(ours, export, sizeof(export));
}

/* NULL, DUMP, UMNTALL, EXPORT take nothing; NULL, UMNT, UMNTALL give nothing,
 * and lists are sent apart. */
static void
test_void(void **state)
{
	static const uint8_t bytes[4];
	union nfs3_args args;
	union nfs3_res res = { 0 };
	XDR x;

	xdrmem_create(&x, (char *)bytes, 0, XDR_DECODE);
	assert_true(nfs3_decode_void(&x, &args));
	xdrmem_create(&x, (char *)bytes, 1, XDR_DECODE);
	assert_false(nfs3_decode_void(&x, &args));
	xdrmem_create(&x, (char *)ours, 0, XDR_ENCODE);
	assert_true(nfs3_encode_void(&x, NFS3_OK, &res));
	assert_true(mount3_encode_list(&x, NFS3_OK, &res));
	assert_int_equal(XDR_GETPOS(&x), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_path),
		cmocka_unit_test(test_path_by_hand),
		cmocka_unit_test(test_mnt),
		cmocka_unit_test(test_mnt_by_hand),
		cmocka_unit_test(test_mnt_version_1),
		cmocka_unit_test(test_pathconf),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_lists_by_hand),
		cmocka_unit_test(test_void),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
