/* SPDX-License-Identifier: Apache-2.0 */
/* Every procedure has a whole row, and each bound is what the encoder writes.
 */
#include "nfsd/latency.h"
#include "nfsd/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define ROOM_BYTES 8192u

static const struct {
	const char *name;
	enum call_where where;
	enum call_tail tail;
	bool idempotent;
} nfs_rows[NFSPROC3_COUNT] = {
	{ "NULL", RUN_INLINE, TAIL_NONE, true },
	{ "GETATTR", RUN_WARM, TAIL_NONE, true },
	{ "SETATTR", RUN_WORKER, TAIL_NONE, false },
	{ "LOOKUP", RUN_WORKER, TAIL_NONE, true },
	{ "ACCESS", RUN_WARM, TAIL_NONE, true },
	{ "READLINK", RUN_WORKER, TAIL_NONE, true },
	{ "READ", RUN_DATA, TAIL_DATA, true },
	{ "WRITE", RUN_DATA, TAIL_NONE, true },
	{ "CREATE", RUN_WORKER, TAIL_NONE, false },
	{ "MKDIR", RUN_WORKER, TAIL_NONE, false },
	{ "SYMLINK", RUN_WORKER, TAIL_NONE, false },
	{ "MKNOD", RUN_WORKER, TAIL_NONE, false },
	{ "REMOVE", RUN_WORKER, TAIL_NONE, false },
	{ "RMDIR", RUN_WORKER, TAIL_NONE, false },
	{ "RENAME", RUN_WORKER, TAIL_NONE, false },
	{ "LINK", RUN_WORKER, TAIL_NONE, false },
	{ "READDIR", RUN_WORKER, TAIL_ENTRIES, true },
	{ "READDIRPLUS", RUN_WORKER, TAIL_ENTRIES, true },
	{ "FSSTAT", RUN_WORKER, TAIL_NONE, true },
	{ "FSINFO", RUN_WORKER, TAIL_NONE, true },
	{ "PATHCONF", RUN_WORKER, TAIL_NONE, true },
	{ "COMMIT", RUN_DATA, TAIL_NONE, true },
};

static const char *const mount_names[MOUNTPROC2_COUNT] = {
	"NULL",    "MNT",    "DUMP",      "UMNT",
	"UMNTALL", "EXPORT", "EXPORTALL", "PATHCONF",
};

static void
test_programs(void **state)
{
	assert_int_equal(nfsd_programs[PROGRAM_NFS3].prog, 100003);
	assert_int_equal(nfsd_programs[PROGRAM_NFS3].vers, 3);
	assert_int_equal(nfsd_programs[PROGRAM_NFS3].procs, 22);
	assert_int_equal(nfsd_programs[PROGRAM_MOUNT3].prog, 100005);
	assert_int_equal(nfsd_programs[PROGRAM_MOUNT3].vers, 3);
	assert_int_equal(nfsd_programs[PROGRAM_MOUNT3].procs, 6);
	assert_int_equal(nfsd_programs[PROGRAM_MOUNT1].prog, 100005);
	assert_int_equal(nfsd_programs[PROGRAM_MOUNT1].vers, 1);
	assert_int_equal(nfsd_programs[PROGRAM_MOUNT1].procs, 7);
	assert_int_equal(nfsd_programs[PROGRAM_MOUNT2].prog, 100005);
	assert_int_equal(nfsd_programs[PROGRAM_MOUNT2].vers, 2);
	assert_int_equal(nfsd_programs[PROGRAM_MOUNT2].procs, 8);
	assert_int_equal(nfsd_programs[PROGRAM_ACL3].prog, 100227);
	assert_int_equal(nfsd_programs[PROGRAM_ACL3].vers, 3);
	assert_int_equal(nfsd_programs[PROGRAM_ACL3].procs, 3);
}

/* Of the numbers that a program's procedures have. */
static bool
is_gap(unsigned program, uint32_t proc)
{
	return program == PROGRAM_NLM4 && proc > 16 && proc < 20;
}

static void
test_whole(void **state)
{
	const struct nfs3_row *row;
	unsigned program;
	uint32_t proc;

	for (program = 0; program < PROGRAMS; program++)
		for (proc = 0; proc < nfsd_programs[program].procs; proc++) {
			row = nfsd_row(program, proc);
			if (is_gap(program, proc)) {
				assert_null(row->decode);
				continue;
			}
			assert_non_null(row->name);
			assert_non_null(row->decode);
			assert_non_null(row->encode);
			assert_int_equal(row->run != NULL,
					 row->where == RUN_WORKER ||
						 row->where == RUN_WARM);
			assert_true(row->reply_bytes_max <=
				    NFS3_REPLY_BYTES_MAX);
			assert_int_equal(row->where == RUN_INLINE, proc == 0);
		}
}

static void
test_nfs(void **state)
{
	const struct nfs3_row *row;
	uint32_t proc;

	for (proc = 0; proc < NFSPROC3_COUNT; proc++) {
		row = nfsd_row(PROGRAM_NFS3, proc);
		assert_string_equal(row->name, nfs_rows[proc].name);
		assert_int_equal(row->where, nfs_rows[proc].where);
		assert_int_equal(row->tail, nfs_rows[proc].tail);
		assert_int_equal(row->idempotent, nfs_rows[proc].idempotent);
	}
}

static void
test_mount(void **state)
{
	const struct nfs3_row *v3, *v1;
	uint32_t proc;

	for (proc = 0; proc < MOUNTPROC3_COUNT; proc++) {
		v3 = nfsd_row(PROGRAM_MOUNT3, proc);
		v1 = nfsd_row(PROGRAM_MOUNT1, proc);
		assert_string_equal(v3->name, mount_names[proc]);
		assert_string_equal(v1->name, mount_names[proc]);
		assert_ptr_equal(nfsd_row(PROGRAM_MOUNT2, proc), v1);
		if (proc != MOUNTPROC3_MNT)
			assert_ptr_equal(v3->run, v1->run);
		assert_ptr_equal(v3->decode, v1->decode);
		assert_true(v3->idempotent && v1->idempotent);
		assert_int_equal(v3->tail == TAIL_LIST,
				 proc == MOUNTPROC3_DUMP ||
					 proc == MOUNTPROC3_EXPORT);
		assert_int_equal(v1->tail, v3->tail);
	}
	for (proc = MOUNTPROC3_COUNT; proc < MOUNTPROC2_COUNT; proc++)
		assert_string_equal(nfsd_row(PROGRAM_MOUNT2, proc)->name,
				    mount_names[proc]);
	assert_ptr_equal(nfsd_row(PROGRAM_MOUNT1, MOUNTPROC1_EXPORTALL)->run,
			 mount3_export);
	assert_ptr_equal(nfsd_row(PROGRAM_MOUNT2, MOUNTPROC2_PATHCONF)->run,
			 mount2_pathconf);
	assert_ptr_equal(nfsd_row(PROGRAM_MOUNT3, MOUNTPROC3_MNT)->encode,
			 mount3_encode_mnt);
	assert_ptr_equal(nfsd_row(PROGRAM_MOUNT3, MOUNTPROC3_MNT)->run,
			 mount3_mnt);
	assert_ptr_equal(nfsd_row(PROGRAM_MOUNT1, MOUNTPROC3_MNT)->encode,
			 mount1_encode_mnt);
	assert_ptr_equal(nfsd_row(PROGRAM_MOUNT1, MOUNTPROC3_MNT)->run,
			 mount1_mnt);
}

static void
test_acl(void **state)
{
	const struct nfs3_row *get = nfsd_row(PROGRAM_ACL3, ACLPROC3_GETACL);
	const struct nfs3_row *set = nfsd_row(PROGRAM_ACL3, ACLPROC3_SETACL);

	assert_string_equal(get->name, "GETACL");
	assert_ptr_equal(get->run, nfsacl_getacl);
	assert_int_equal(get->tail, TAIL_LIST);
	assert_true(get->idempotent);
	assert_string_equal(set->name, "SETACL");
	assert_ptr_equal(set->run, nfsacl_setacl);
	assert_int_equal(set->tail, TAIL_NONE);
	assert_false(set->idempotent);
}

static void
test_rquota(void **state)
{
	static const char *const name[RQUOTAPROC_COUNT] = { "NULL", "GETQUOTA",
							    "GETACTIVEQUOTA" };
	const struct nfs3_row *v1, *v2;
	uint32_t proc;

	assert_int_equal(nfsd_programs[PROGRAM_RQUOTA1].prog, 100011);
	assert_int_equal(nfsd_programs[PROGRAM_RQUOTA1].vers, 1);
	assert_int_equal(nfsd_programs[PROGRAM_RQUOTA2].prog, 100011);
	assert_int_equal(nfsd_programs[PROGRAM_RQUOTA2].vers, 2);
	for (proc = 0; proc < RQUOTAPROC_COUNT; proc++) {
		v1 = nfsd_row(PROGRAM_RQUOTA1, proc);
		v2 = nfsd_row(PROGRAM_RQUOTA2, proc);
		assert_string_equal(v1->name, name[proc]);
		assert_string_equal(v2->name, name[proc]);
		assert_ptr_equal(v1->run, v2->run);
		assert_int_equal(v1->decode == v2->decode,
				 proc == RQUOTAPROC_NULL);
		assert_true(v1->idempotent && v2->idempotent);
	}
}

/* Those whose second run does other than the first are not idempotent. */
static void
test_nlm(void **state)
{
	static const bool once[NLMPROC4_COUNT] = {
		[2] = true,  [3] = true,  [4] = true,  [7] = true,
		[8] = true,  [9] = true,  [16] = true, [20] = true,
		[21] = true, [22] = true, [23] = true,
	};
	const struct nfs3_row *row;
	uint32_t proc, served = 0;

	assert_int_equal(nfsd_programs[PROGRAM_NLM4].prog, 100021);
	assert_int_equal(nfsd_programs[PROGRAM_NLM4].vers, 4);
	assert_int_equal(nfsd_programs[PROGRAM_NLM4].procs, 24);
	for (proc = 0; proc < NLMPROC4_COUNT; proc++) {
		if (is_gap(PROGRAM_NLM4, proc))
			continue;
		row = nfsd_row(PROGRAM_NLM4, proc);
		assert_int_equal(row->idempotent, !once[proc]);
		assert_ptr_equal(row, nlm4_served(served));
		served++;
	}
	assert_int_equal(served, NLM4_SERVED);
	/* What a _MSG has not, its namesake's _RES has. */
	assert_int_equal(nfsd_row(PROGRAM_NLM4, 7)->reply_bytes_max, 0);
	assert_ptr_equal(nfsd_row(PROGRAM_NLM4, 10)->encode, nfs3_encode_void);
	assert_ptr_equal(nfsd_row(PROGRAM_NLM4, 15)->encode, nfs3_encode_void);
}

/* Each its own, but the versions of a program have the same. */
static void
test_numbers(void **state)
{
	bool seen[LATENCY_PROCS] = { false };
	unsigned program;
	uint32_t proc, number;

	for (program = 0; program < PROGRAMS; program++)
		for (proc = 0; proc < nfsd_programs[program].procs; proc++) {
			if (is_gap(program, proc))
				continue;
			number = nfsd_proc_number(program, proc);
			assert_true(number < LATENCY_PROCS);
			assert_true(!seen[number] ||
				    program == PROGRAM_RQUOTA2 ||
				    program == PROGRAM_MOUNT2 ||
				    program == PROGRAM_MOUNT1);
			seen[number] = true;
		}
	for (number = 0; number < LATENCY_PROCS; number++)
		assert_true(seen[number]);
}

static uint32_t
encoded(const struct nfs3_row *row, enum nfsstat3 status,
	const union nfs3_res *res)
{
	uint8_t out[ROOM_BYTES];
	uint32_t n;
	XDR x;

	xdrmem_create(&x, (char *)out, sizeof(out), XDR_ENCODE);
	assert_true(row->encode(&x, status, res));
	n = xdr_getpos(&x);
	xdr_destroy(&x);
	return n;
}

static void
fill_post(struct post_op_attr *a)
{
	a->follows = true;
	a->attr.type = NF3REG;
}

static void
fill_wcc(struct wcc_data *w)
{
	w->before.follows = true;
	fill_post(&w->after);
}

/* Everything optional is there, everything variable at its longest. */
static void
fill(uint32_t proc, union nfs3_res *res)
{
	memset(res, 0, sizeof(*res));
	switch (proc) {
	case NFSPROC3_SETATTR:
	case NFSPROC3_REMOVE:
	case NFSPROC3_RMDIR:
	case NFSPROC3_WRITE:
	case NFSPROC3_COMMIT:
		fill_wcc(&res->wcc.wcc); /* the first member of all of them */
		break;
	case NFSPROC3_LOOKUP:
		res->lookup.fh.bytes = NFS3_FHSIZE;
		fill_post(&res->lookup.attr);
		fill_post(&res->lookup.dir_attr);
		break;
	case NFSPROC3_CREATE:
	case NFSPROC3_MKDIR:
	case NFSPROC3_SYMLINK:
	case NFSPROC3_MKNOD:
		res->create.fh.follows = true;
		res->create.fh.fh.bytes = NFS3_FHSIZE;
		fill_post(&res->create.attr);
		fill_wcc(&res->create.dir_wcc);
		break;
	case NFSPROC3_RENAME:
		fill_wcc(&res->rename.from);
		fill_wcc(&res->rename.to);
		break;
	case NFSPROC3_LINK:
		fill_post(&res->link.attr);
		fill_wcc(&res->link.dir_wcc);
		break;
	case NFSPROC3_READLINK:
		fill_post(&res->readlink.attr);
		res->readlink.bytes = sizeof(res->readlink.data);
		break;
	default:
		fill_post(&res->attr.attr); /* as above */
	}
}

static void
test_bounds(void **state)
{
	const struct nfs3_row *row;
	union nfs3_res res;
	uint32_t proc;

	for (proc = 0; proc < NFSPROC3_COUNT; proc++) {
		row = nfsd_row(PROGRAM_NFS3, proc);
		fill(proc, &res);
		assert_int_equal(encoded(row, NFS3_OK, &res),
				 row->reply_bytes_max);
		assert_true(encoded(row, NFS3ERR_IO, &res) <=
			    row->reply_bytes_max);
	}
}

static void
test_acl_bounds(void **state)
{
	const struct nfs3_row *row;
	union nfs3_res res;
	uint32_t proc;

	memset(&res, 0, sizeof(res));
	fill_post(&res.acl.attr);
	for (proc = ACLPROC3_GETACL; proc < ACLPROC3_COUNT; proc++) {
		row = nfsd_row(PROGRAM_ACL3, proc);
		assert_int_equal(encoded(row, NFS3_OK, &res),
				 row->reply_bytes_max);
		assert_int_equal(encoded(row, NFS3ERR_IO, &res),
				 row->reply_bytes_max);
	}
}

static void
test_mount_bounds(void **state)
{
	const struct nfs3_row *row;
	union nfs3_res res;
	unsigned program;
	uint32_t proc;

	memset(&res, 0, sizeof(res));
	res.mnt.fh.bytes = NFS3_FHSIZE;
	for (program = PROGRAM_MOUNT3; program <= PROGRAM_MOUNT1; program++)
		for (proc = 0; proc < nfsd_programs[program].procs; proc++) {
			row = nfsd_row(program, proc);
			assert_true(encoded(row, NFS3_OK, &res) <=
				    row->reply_bytes_max);
		}
}

/* With the longest netobjs there are. */
static void
test_nlm_bounds(void **state)
{
	static const uint8_t bytes[MAXNETOBJ_SZ];
	const struct nfs3_row *row;
	union nfs3_res res;
	unsigned i;

	memset(&res, 0, sizeof(res));
	res.nlm.cookie.data = bytes;
	res.nlm.cookie.bytes = sizeof(bytes);
	res.nlm.stat = NLM4_DENIED;
	res.nlm.holder.oh_bytes = MAXNETOBJ_SZ;
	for (i = 0; i < NLM4_SERVED; i++) {
		row = nlm4_served(i);
		assert_int_equal(encoded(row, NFS3_OK, &res),
				 row->reply_bytes_max);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_nfs),
		cmocka_unit_test(test_mount),
		cmocka_unit_test(test_acl),
		cmocka_unit_test(test_rquota),
		cmocka_unit_test(test_nlm),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_acl_bounds),
		cmocka_unit_test(test_mount_bounds),
		cmocka_unit_test(test_nlm_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
