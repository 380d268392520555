/* SPDX-License-Identifier: Apache-2.0 */
/* NFSACL's bytes, written by hand, and the extended attributes of Linux. */
#include "nfsd/acl.h"
#include "nfsd/nfs3.h"

#include <errno.h>
#include <linux/posix_acl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BYTES_MAX 65536u
#define FH        "00000005 f1f2f3f4 f5000000 "
#define NO_ID     UINT32_MAX

/* Owner 1000, group 2000. */
#define USER_OBJ(p)  "00000001 000003e8 0000000" #p " "
#define GROUP_OBJ(p) "00000004 000007d0 0000000" #p " "
#define MASK(p)      "00000010 00000000 0000000" #p " "
#define OTHER(p)     "00000020 00000000 0000000" #p " "
#define USER_7(p)    "00000002 00000007 0000000" #p " "
#define GROUP_9(p)   "00000008 00000009 0000000" #p " "

static const struct acl_owner owner = { 1000, 2000 };

static uint32_t
from_hex(uint8_t *out, const char *hex)
{
	uint32_t n = 0;
	char pair[3] = "";

	for (; *hex; hex++) {
		if (*hex == ' ')
			continue;
		pair[0] = *hex++;
		pair[1] = *hex;
		assert_true(n < BYTES_MAX);
		out[n++] = (uint8_t)strtoul(pair, NULL, 16);
	}
	return n;
}

static int
taken(struct acl *a, const char *hex)
{
	static uint8_t bytes[BYTES_MAX];

	return acl_from_wire(a, bytes, from_hex(bytes, hex));
}

static void
puts_wire(const struct acl *a, bool entries, uint32_t flag, const char *hex)
{
	static uint8_t expect[BYTES_MAX], bytes[BYTES_MAX];
	uint32_t n = from_hex(expect, hex);
	XDR x;

	xdrmem_create(&x, (char *)bytes, n, XDR_ENCODE);
	assert_true(acl_put_wire(&x, a, entries, flag, &owner));
	assert_int_equal(XDR_GETPOS(&x), n);
	assert_memory_equal(bytes, expect, n);
	if (entries)
		assert_int_equal(acl_wire_bytes(a), n);
	xdrmem_create(&x, (char *)bytes, n - 4, XDR_ENCODE);
	assert_false(acl_put_wire(&x, a, entries, flag, &owner));
}

static void
is_entry(const struct acl *a, uint32_t i, unsigned tag, uint32_t id,
	 unsigned perm)
{
	assert_true(i < a->count);
	assert_int_equal(a->entry[i].tag, tag);
	assert_int_equal(a->entry[i].id, id);
	assert_int_equal(a->entry[i].perm, perm);
}

/* Arguments and results ------------------------------------------------------
 */

static bool
decodes(nfs3_decode_fn *fn, const char *hex, union nfs3_args *args)
{
	static uint8_t bytes[BYTES_MAX];
	uint32_t n = from_hex(bytes, hex);
	XDR x;

	xdrmem_create(&x, (char *)bytes, n, XDR_DECODE);
	return fn(&x, args);
}

static void
test_getacl_args(void **state)
{
	union nfs3_args a;

	assert_true(decodes(nfsacl_decode_getacl, FH "0000000f", &a));
	assert_int_equal(a.getacl.fh.bytes, 5);
	assert_int_equal(a.getacl.mask, 0xf);
	/* What the mask may be is the procedure's matter. */
	assert_true(decodes(nfsacl_decode_getacl, FH "80000000", &a));
	assert_false(decodes(nfsacl_decode_getacl, FH "0000", &a));
	assert_false(decodes(nfsacl_decode_getacl, FH "0000000f 00000000", &a));
}

static void
test_setacl_args(void **state)
{
	union nfs3_args a;

	assert_true(decodes(nfsacl_decode_setacl,
			    FH "00000005 00000001 00000001" USER_OBJ(7) //
			    "00000000 00000000",
			    &a));
	assert_int_equal(a.setacl.fh.bytes, 5);
	assert_int_equal(a.setacl.mask, 5);
	assert_int_equal(a.setacl.access.bytes, 12);
	assert_memory_equal(a.setacl.access.data, "\0\0\0\1\0\0\3\xe8", 8);
	assert_int_equal(a.setacl.default_.bytes, 0);
	/* counted, and not brought along */
	assert_true(decodes(nfsacl_decode_setacl,
			    FH "0000000a 00000004 00000000 00000005 00000000",
			    &a));
	assert_int_equal(a.setacl.access.bytes, 0);
	/* another number than is said */
	assert_false(decodes(nfsacl_decode_setacl,
			     FH "00000001 00000002 00000001" USER_OBJ(7) //
			     "00000000 00000000",
			     &a));
	/* bytes missing, bytes left over, too many, far too many */
	assert_false(decodes(nfsacl_decode_setacl,
			     FH "00000001 00000001 00000001 00000001 00000000",
			     &a));
	assert_false(decodes(nfsacl_decode_setacl,
			     FH "00000000 00000000 00000000 00000000 00000000"
				"00000000",
			     &a));
	assert_false(decodes(nfsacl_decode_setacl,
			     FH "00000001 00000401 00000401 00000000", &a));
	assert_false(decodes(nfsacl_decode_setacl,
			     FH "00000001 55555556 55555556 00000000 00000000",
			     &a));
}

static void
test_result(void **state)
{
	uint8_t bytes[256];
	union nfs3_res res;
	XDR x;

	memset(&res, 0, sizeof(res));
	xdrmem_create(&x, (char *)bytes, sizeof(bytes), XDR_ENCODE);
	assert_true(nfsacl_encode_res(&x, NFS3ERR_STALE, &res));
	assert_int_equal(XDR_GETPOS(&x), 8);
	assert_memory_equal(bytes, "\0\0\0\x46\0\0\0\0", 8);
	res.acl.attr.follows = true;
	res.acl.attr.attr.type = NF3DIR;
	xdrmem_create(&x, (char *)bytes, sizeof(bytes), XDR_ENCODE);
	assert_true(nfsacl_encode_res(&x, NFS3_OK, &res));
	assert_int_equal(XDR_GETPOS(&x),
			 NFS3_STATUS_BYTES + NFS3_POST_OP_BYTES);
	assert_memory_equal(bytes, "\0\0\0\0\0\0\0\1\0\0\0\2", 12);
}

/* ACLs ----------------------------------------------------------------------
 */

static void
test_mode(void **state)
{
	struct acl a;

	acl_from_mode(&a, 0100641);
	assert_int_equal(a.count, 3);
	is_entry(&a, 0, ACL_USER_OBJ, NO_ID, 6);
	is_entry(&a, 1, ACL_GROUP_OBJ, NO_ID, 4);
	is_entry(&a, 2, ACL_OTHER, NO_ID, 1);
	puts_wire(&a, true, 0,
		  "00000004 00000004" USER_OBJ(6) GROUP_OBJ(4) //
		  MASK(4) OTHER(1));
	puts_wire(&a, false, 0, "00000004 00000000");
	a.count = 0;
	puts_wire(&a, true, 0, "00000000 00000000");
}

static void
test_minimal(void **state)
{
	struct acl a;

	assert_int_equal(taken(&a, OTHER(1) MASK(4) GROUP_OBJ(4) USER_OBJ(6)),
			 0);
	assert_int_equal(a.count, 3);
	is_entry(&a, 0, ACL_USER_OBJ, NO_ID, 6);
	is_entry(&a, 1, ACL_GROUP_OBJ, NO_ID, 4);
	is_entry(&a, 2, ACL_OTHER, NO_ID, 1);
	assert_int_equal(taken(&a, USER_OBJ(6) GROUP_OBJ(4) OTHER(1)), 0);
	assert_int_equal(a.count, 3);
	/* A mask that says something stays. */
	assert_int_equal(taken(&a, USER_OBJ(6) GROUP_OBJ(6) MASK(4) OTHER(1)),
			 0);
	assert_int_equal(a.count, 4);
	is_entry(&a, 2, ACL_MASK, NO_ID, 4);
	assert_int_equal(taken(&a, ""), 0);
	assert_int_equal(a.count, 0);
}

static void
test_extended(void **state)
{
	struct acl a;

	assert_int_equal(taken(&a, GROUP_9(3) USER_OBJ(7) OTHER(0) USER_7(
					   6) "00001002 00000003 00000001" //
			       GROUP_OBJ(5) "00000010 0000ffff 0000fff5"),
			 0);
	assert_int_equal(a.count, 7);
	is_entry(&a, 0, ACL_USER_OBJ, NO_ID, 7);
	is_entry(&a, 1, ACL_USER, 3, 1);
	is_entry(&a, 2, ACL_USER, 7, 6);
	is_entry(&a, 3, ACL_GROUP_OBJ, NO_ID, 5);
	is_entry(&a, 4, ACL_GROUP, 9, 3);
	is_entry(&a, 5, ACL_MASK, NO_ID, 5);
	is_entry(&a, 6, ACL_OTHER, NO_ID, 0);
	puts_wire(&a, true, 0,
		  "00000007 00000007" USER_OBJ(
			  7) "00000002 00000003 00000001" USER_7(6) GROUP_OBJ(5)
			  GROUP_9(3) MASK(5) OTHER(0));
	assert_int_equal(
		taken(&a, USER_OBJ(6) USER_7(4) GROUP_OBJ(4) MASK(4) OTHER(0)),
		0);
	puts_wire(&a, true, ACL_WIRE_DEFAULT,
		  "00000005 00000005 00001001 000003e8 00000006"
		  "00001002 00000007 00000004 00001004 000007d0 00000004"
		  "00001010 00000000 00000004 00001020 00000000 00000000");
}

static void
test_refused(void **state)
{
	static const char *const hex[] = {
		/* one of the three is missing */
		USER_OBJ(6) GROUP_OBJ(4),
		USER_OBJ(6) OTHER(4),
		GROUP_OBJ(6) OTHER(4),
		MASK(7),
		/* twice */
		USER_OBJ(6) USER_OBJ(6) GROUP_OBJ(4) OTHER(4),
		USER_OBJ(6) GROUP_OBJ(4) MASK(4) MASK(6) OTHER(4),
		USER_OBJ(6) GROUP_OBJ(4) OTHER(4) OTHER(4),
		USER_OBJ(6) USER_7(1) USER_7(2) GROUP_OBJ(4) MASK(4) OTHER(4),
		/* names, and no mask */
		USER_OBJ(6) USER_7(1) GROUP_OBJ(4) OTHER(4),
		USER_OBJ(6) GROUP_9(1) GROUP_OBJ(4) OTHER(4),
		/* no such permissions, id, tag */
		USER_OBJ(8) GROUP_OBJ(4) OTHER(4),
		"00000001 00000000 00010007" GROUP_OBJ(4) OTHER(4),
		USER_OBJ(6) "00000002 ffffffff 00000004" GROUP_OBJ(4) MASK(4)
			OTHER(4),
		USER_OBJ(6) "00000040 00000000 00000004" GROUP_OBJ(4) OTHER(4),
		USER_OBJ(6) "00010001 00000000 00000004" GROUP_OBJ(4) OTHER(4),
		USER_OBJ(6) "00000000 00000000 00000004" GROUP_OBJ(4) OTHER(4),
	};
	struct acl a;
	unsigned i;

	for (i = 0; i < sizeof(hex) / sizeof(*hex); i++)
		assert_int_equal(taken(&a, hex[i]), -EINVAL);
}

static void
test_xattr(void **state)
{
	static const char hex[] =
		"02000000 01000600 ffffffff 02000400 07000000"
		"04000400 ffffffff 10000400 ffffffff 20000000 ffffffff";
	uint8_t expect[64], bytes[ACL_XATTR_BYTES_MAX];
	uint32_t n = from_hex(expect, hex);
	struct acl a;

	assert_int_equal(
		taken(&a, USER_OBJ(6) USER_7(4) GROUP_OBJ(4) MASK(4) OTHER(0)),
		0);
	assert_int_equal(acl_to_xattr(bytes, &a), n);
	assert_memory_equal(bytes, expect, n);
	memset(&a, 0x5a, sizeof(a));
	assert_int_equal(acl_from_xattr(&a, expect, n), 0);
	assert_int_equal(a.count, 5);
	is_entry(&a, 0, ACL_USER_OBJ, NO_ID, 6);
	is_entry(&a, 1, ACL_USER, 7, 4);
	is_entry(&a, 4, ACL_OTHER, NO_ID, 0);
	assert_int_equal(acl_from_xattr(&a, expect, n - 1), -EIO);
	assert_int_equal(acl_from_xattr(&a, expect, 3), -EIO);
	expect[0] = 1; /* the version */
	assert_int_equal(acl_from_xattr(&a, expect, n), -EIO);
}

/* What is no valid ACL on the disk is told as it is, and told whole. */
static void
test_broken(void **state)
{
	struct acl a;

	acl_from_mode(&a, 0640);
	a.count = 2;
	puts_wire(&a, true, 0, "00000002 00000002" USER_OBJ(6) GROUP_OBJ(4));
	acl_from_mode(&a, 0640);
	a.entry[1].tag = ACL_MASK;
	puts_wire(&a, true, 0,
		  "00000003 00000003" USER_OBJ(6) MASK(4) OTHER(0));
}

/* The longest fits, one more does not. */
static void
test_longest(void **state)
{
	static uint8_t bytes[ACL_XATTR_BYTES_MAX + 8];
	static uint8_t wire[ACL_ENTRIES_MAX * ACL_WIRE_BYTES + 8];
	struct acl a;
	XDR x;

	bytes[0] = 2;
	assert_int_equal(acl_from_xattr(&a, bytes, ACL_XATTR_BYTES_MAX), 0);
	assert_int_equal(a.count, ACL_ENTRIES_MAX);
	assert_int_equal(acl_wire_bytes(&a), sizeof(wire));
	xdrmem_create(&x, (char *)wire, sizeof(wire), XDR_ENCODE);
	assert_true(acl_put_wire(&x, &a, true, 0, &owner));
	assert_int_equal(acl_to_xattr(bytes, &a), ACL_XATTR_BYTES_MAX);
	assert_int_equal(acl_from_xattr(&a, bytes, sizeof(bytes)), -EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_getacl_args),
		cmocka_unit_test(test_setacl_args),
		cmocka_unit_test(test_result),
		cmocka_unit_test(test_mode),
		cmocka_unit_test(test_minimal),
		cmocka_unit_test(test_extended),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_xattr),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_longest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
