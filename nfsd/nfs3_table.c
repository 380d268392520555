/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The procedures of NFS version 3, of NFSACL version 3, of RQUOTA versions 1
 * and 2 and of MOUNT versions 1 to 3, a row each (RFC 1813, 3.3 and 5.2); and
 * which programs there are, with NLM, whose rows are nlm_table.c's.
 * Constant. Bounds are sums of the encoder's parts, the status first; what
 * follows a header apart is the row's tail.
 *
 * Not idempotent is what does other than the first time when it runs again:
 * SETATTR too, since its guard then fails, or it cuts off what was written in
 * between. WRITE is idempotent at one offset.
 */
#include "nfsd/table.h"

#include "nfsd/latency.h"

#include <assert.h>

#define WORD_BYTES 4u
#define CREATE_BYTES                                                           \
	(NFS3_STATUS_BYTES + NFS3_POST_FH_BYTES + NFS3_POST_OP_BYTES +         \
	 NFS3_WCC_BYTES)
#define READDIR_BYTES                                                          \
	(NFS3_STATUS_BYTES + NFS3_POST_OP_BYTES + NFS3_COOKIEVERFSIZE)

static const struct nfs3_row nfs3_rows[NFSPROC3_COUNT] = {
	[NFSPROC3_NULL] = {
		.name = "NULL",
		.decode = nfs3_decode_void,
		.encode = nfs3_encode_void,
		.where = RUN_INLINE,
		.idempotent = true,
	},
	[NFSPROC3_GETATTR] = {
		.name = "GETATTR",
		.decode = nfs3_decode_fh,
		.run = nfs3_getattr,
		.encode = nfs3_encode_getattr,
		.where = RUN_WARM,
		.reply_bytes_max = NFS3_STATUS_BYTES + NFS3_FATTR_BYTES,
		.idempotent = true,
	},
	[NFSPROC3_SETATTR] = {
		.name = "SETATTR",
		.decode = nfs3_decode_setattr,
		.run = nfs3_setattr,
		.encode = nfs3_encode_wcc,
		.where = RUN_WORKER,
		.reply_bytes_max = NFS3_STATUS_BYTES + NFS3_WCC_BYTES,
	},
	[NFSPROC3_LOOKUP] = {
		.name = "LOOKUP",
		.decode = nfs3_decode_dirop,
		.run = nfs3_lookup,
		.encode = nfs3_encode_lookup,
		.where = RUN_WORKER,
		.reply_bytes_max = NFS3_STATUS_BYTES + NFS3_FH_BYTES +
				   2 * NFS3_POST_OP_BYTES,
		.idempotent = true,
	},
	[NFSPROC3_ACCESS] = {
		.name = "ACCESS",
		.decode = nfs3_decode_access,
		.run = nfs3_access,
		.encode = nfs3_encode_access,
		.where = RUN_WARM,
		.reply_bytes_max = NFS3_STATUS_BYTES + NFS3_POST_OP_BYTES +
				   WORD_BYTES,
		.idempotent = true,
	},
	[NFSPROC3_READLINK] = {
		.name = "READLINK",
		.decode = nfs3_decode_fh,
		.run = nfs3_readlink,
		.encode = nfs3_encode_readlink,
		.where = RUN_WORKER,
		.reply_bytes_max = NFS3_STATUS_BYTES + NFS3_POST_OP_BYTES +
				   NFS3_PATH_BYTES,
		.idempotent = true,
	},
	[NFSPROC3_READ] = {
		.name = "READ",
		.decode = nfs3_decode_read,
		.encode = nfs3_encode_read,
		.where = RUN_DATA,
		.tail = TAIL_DATA,
		/* count, eof, the opaque's length */
		.reply_bytes_max = NFS3_STATUS_BYTES + NFS3_POST_OP_BYTES +
				   3 * WORD_BYTES,
		.idempotent = true,
	},
	[NFSPROC3_WRITE] = {
		.name = "WRITE",
		.decode = nfs3_decode_write,
		.encode = nfs3_encode_write,
		.where = RUN_DATA,
		/* count, committed */
		.reply_bytes_max = NFS3_STATUS_BYTES + NFS3_WCC_BYTES +
				   2 * WORD_BYTES + NFS3_WRITEVERFSIZE,
		.idempotent = true,
	},
	[NFSPROC3_CREATE] = {
		.name = "CREATE",
		.decode = nfs3_decode_create,
		.run = nfs3_create,
		.encode = nfs3_encode_create,
		.where = RUN_WORKER,
		.reply_bytes_max = CREATE_BYTES,
	},
	[NFSPROC3_MKDIR] = {
		.name = "MKDIR",
		.decode = nfs3_decode_mkdir,
		.run = nfs3_mkdir,
		.encode = nfs3_encode_create,
		.where = RUN_WORKER,
		.reply_bytes_max = CREATE_BYTES,
	},
	[NFSPROC3_SYMLINK] = {
		.name = "SYMLINK",
		.decode = nfs3_decode_symlink,
		.run = nfs3_symlink,
		.encode = nfs3_encode_create,
		.where = RUN_WORKER,
		.reply_bytes_max = CREATE_BYTES,
	},
	[NFSPROC3_MKNOD] = {
		.name = "MKNOD",
		.decode = nfs3_decode_mknod,
		.run = nfs3_mknod,
		.encode = nfs3_encode_create,
		.where = RUN_WORKER,
		.reply_bytes_max = CREATE_BYTES,
	},
	[NFSPROC3_REMOVE] = {
		.name = "REMOVE",
		.decode = nfs3_decode_dirop,
		.run = nfs3_remove,
		.encode = nfs3_encode_wcc,
		.where = RUN_WORKER,
		.reply_bytes_max = NFS3_STATUS_BYTES + NFS3_WCC_BYTES,
	},
	[NFSPROC3_RMDIR] = {
		.name = "RMDIR",
		.decode = nfs3_decode_dirop,
		.run = nfs3_rmdir,
		.encode = nfs3_encode_wcc,
		.where = RUN_WORKER,
		.reply_bytes_max = NFS3_STATUS_BYTES + NFS3_WCC_BYTES,
	},
	[NFSPROC3_RENAME] = {
		.name = "RENAME",
		.decode = nfs3_decode_rename,
		.run = nfs3_rename,
		.encode = nfs3_encode_rename,
		.where = RUN_WORKER,
		.reply_bytes_max = NFS3_STATUS_BYTES + 2 * NFS3_WCC_BYTES,
	},
	[NFSPROC3_LINK] = {
		.name = "LINK",
		.decode = nfs3_decode_link,
		.run = nfs3_link,
		.encode = nfs3_encode_link,
		.where = RUN_WORKER,
		.reply_bytes_max = NFS3_STATUS_BYTES + NFS3_POST_OP_BYTES +
				   NFS3_WCC_BYTES,
	},
	[NFSPROC3_READDIR] = {
		.name = "READDIR",
		.decode = nfs3_decode_readdir,
		.run = nfs3_readdir,
		.encode = nfs3_encode_readdir,
		.where = RUN_WORKER,
		.tail = TAIL_ENTRIES,
		.reply_bytes_max = READDIR_BYTES,
		.idempotent = true,
	},
	[NFSPROC3_READDIRPLUS] = {
		.name = "READDIRPLUS",
		.decode = nfs3_decode_readdirplus,
		.run = nfs3_readdir,
		.encode = nfs3_encode_readdir,
		.where = RUN_WORKER,
		.tail = TAIL_ENTRIES,
		.reply_bytes_max = READDIR_BYTES,
		.idempotent = true,
	},
	[NFSPROC3_FSSTAT] = {
		.name = "FSSTAT",
		.decode = nfs3_decode_fh,
		.run = nfs3_fsstat,
		.encode = nfs3_encode_fsstat,
		.where = RUN_WORKER,
		.reply_bytes_max = NFS3_STATUS_BYTES + NFS3_POST_OP_BYTES +
				   NFS3_FSSTAT_BYTES,
		.idempotent = true,
	},
	[NFSPROC3_FSINFO] = {
		.name = "FSINFO",
		.decode = nfs3_decode_fh,
		.run = nfs3_fsinfo,
		.encode = nfs3_encode_fsinfo,
		.where = RUN_WORKER,
		.reply_bytes_max = NFS3_STATUS_BYTES + NFS3_POST_OP_BYTES +
				   NFS3_FSINFO_BYTES,
		.idempotent = true,
	},
	[NFSPROC3_PATHCONF] = {
		.name = "PATHCONF",
		.decode = nfs3_decode_fh,
		.run = nfs3_pathconf,
		.encode = nfs3_encode_pathconf,
		.where = RUN_WORKER,
		.reply_bytes_max = NFS3_STATUS_BYTES + NFS3_POST_OP_BYTES +
				   NFS3_PATHCONF_BYTES,
		.idempotent = true,
	},
	[NFSPROC3_COMMIT] = {
		.name = "COMMIT",
		.decode = nfs3_decode_commit,
		.encode = nfs3_encode_commit,
		.where = RUN_DATA,
		.reply_bytes_max = NFS3_STATUS_BYTES + NFS3_WCC_BYTES +
				   NFS3_WRITEVERFSIZE,
		.idempotent = true,
	},
};

static const struct nfs3_row acl3_rows[ACLPROC3_COUNT] = {
	[ACLPROC3_NULL] = {
		.name = "NULL",
		.decode = nfs3_decode_void,
		.encode = nfs3_encode_void,
		.where = RUN_INLINE,
		.idempotent = true,
	},
	[ACLPROC3_GETACL] = {
		.name = "GETACL",
		.decode = nfsacl_decode_getacl,
		.run = nfsacl_getacl,
		.encode = nfsacl_encode_res,
		.where = RUN_WORKER,
		.tail = TAIL_LIST,
		.reply_bytes_max = NFS3_STATUS_BYTES + NFS3_POST_OP_BYTES,
		.idempotent = true,
	},
	[ACLPROC3_SETACL] = {
		.name = "SETACL",
		.decode = nfsacl_decode_setacl,
		.run = nfsacl_setacl,
		.encode = nfsacl_encode_res,
		.where = RUN_WORKER,
		.reply_bytes_max = NFS3_STATUS_BYTES + NFS3_POST_OP_BYTES,
	},
};

/* The versions differ in their arguments, the two procedures in nothing: what
 * is not active has no quota. */
#define RQUOTA_ROW(row_name, row_decode)                                       \
	{                                                                      \
		.name = (row_name), .decode = (row_decode),                    \
		.run = rquota_getquota, .encode = rquota_encode,               \
		.where = RUN_WORKER, .reply_bytes_max = RQUOTA_BYTES,          \
		.idempotent = true                                             \
	}
#define RQUOTA_ROWS(row_decode)                                                \
	[RQUOTAPROC_NULL] = { .name = "NULL",                                  \
			      .decode = nfs3_decode_void,                      \
			      .encode = nfs3_encode_void,                      \
			      .where = RUN_INLINE,                             \
			      .idempotent = true },                            \
	[RQUOTAPROC_GETQUOTA] = RQUOTA_ROW("GETQUOTA", row_decode),            \
	[RQUOTAPROC_GETACTIVEQUOTA] = RQUOTA_ROW("GETACTIVEQUOTA", row_decode)

static const struct nfs3_row rquota1_rows[RQUOTAPROC_COUNT] = { RQUOTA_ROWS(
	rquota_decode) };
static const struct nfs3_row rquota2_rows[RQUOTAPROC_COUNT] = { RQUOTA_ROWS(
	rquota2_decode) };

/* The versions of MOUNT differ in MNT, and in what comes after EXPORT. */
#define MOUNT_ROWS(mnt_run, mnt_encode, mnt_bytes)                             \
	[MOUNTPROC3_NULL] = { .name = "NULL",                                  \
			      .decode = nfs3_decode_void,                      \
			      .encode = nfs3_encode_void,                      \
			      .where = RUN_INLINE,                             \
			      .idempotent = true },                            \
	[MOUNTPROC3_MNT] = { .name = "MNT",                                    \
			     .decode = mount3_decode_path,                     \
			     .run = (mnt_run),                                 \
			     .encode = (mnt_encode),                           \
			     .where = RUN_WORKER,                              \
			     .reply_bytes_max = (mnt_bytes),                   \
			     .idempotent = true },                             \
	[MOUNTPROC3_DUMP] = { .name = "DUMP",                                  \
			      .decode = nfs3_decode_void,                      \
			      .run = mount3_dump,                              \
			      .encode = mount3_encode_list,                    \
			      .where = RUN_WORKER,                             \
			      .tail = TAIL_LIST,                               \
			      .idempotent = true },                            \
	[MOUNTPROC3_UMNT] = { .name = "UMNT",                                  \
			      .decode = mount3_decode_path,                    \
			      .run = mount3_umnt,                              \
			      .encode = nfs3_encode_void,                      \
			      .where = RUN_WORKER,                             \
			      .idempotent = true },                            \
	[MOUNTPROC3_UMNTALL] = { .name = "UMNTALL",                            \
				 .decode = nfs3_decode_void,                   \
				 .run = mount3_umntall,                        \
				 .encode = nfs3_encode_void,                   \
				 .where = RUN_WORKER,                          \
				 .idempotent = true },                         \
	[MOUNTPROC3_EXPORT] = { .name = "EXPORT",                              \
				.decode = nfs3_decode_void,                    \
				.run = mount3_export,                          \
				.encode = mount3_encode_list,                  \
				.where = RUN_WORKER,                           \
				.tail = TAIL_LIST,                             \
				.idempotent = true }

static const struct nfs3_row mount3_rows[MOUNTPROC3_COUNT] = {
	MOUNT_ROWS(mount3_mnt, mount3_encode_mnt, MOUNT3_MNT_BYTES),
};

/* Version 2's; version 1 has them up to EXPORTALL, which is EXPORT once more
 * (RFC 1094, appendix A). */
static const struct nfs3_row mount2_rows[MOUNTPROC2_COUNT] = {
	MOUNT_ROWS(mount1_mnt, mount1_encode_mnt, NFS3_STATUS_BYTES),
	[MOUNTPROC1_EXPORTALL] = {
		.name = "EXPORTALL",
		.decode = nfs3_decode_void,
		.run = mount3_export,
		.encode = mount3_encode_list,
		.where = RUN_WORKER,
		.tail = TAIL_LIST,
		.idempotent = true,
	},
	[MOUNTPROC2_PATHCONF] = {
		.name = "PATHCONF",
		.decode = mount3_decode_path,
		.run = mount2_pathconf,
		.encode = mount2_encode_pathconf,
		.where = RUN_WORKER,
		.reply_bytes_max = MOUNT2_PATHCONF_BYTES,
		.idempotent = true,
	},
};

static_assert(NFS3_STATUS_BYTES + NFS3_POST_OP_BYTES + NFS3_PATH_BYTES <=
		      NFS3_REPLY_BYTES_MAX,
	      "the longest reply, READLINK's, must fit");

const struct rpc_program nfsd_programs[PROGRAMS] = {
	[PROGRAM_NFS3] = { NFS3_PROGRAM, NFS3_VERSION, NFSPROC3_COUNT },
	[PROGRAM_ACL3] = { NFSACL_PROGRAM, NFSACL_VERSION3, ACLPROC3_COUNT },
	[PROGRAM_RQUOTA1] = { RQUOTA_PROGRAM, RQUOTA_VERSION1,
			      RQUOTAPROC_COUNT },
	[PROGRAM_RQUOTA2] = { RQUOTA_PROGRAM, RQUOTA_VERSION2,
			      RQUOTAPROC_COUNT },
	[PROGRAM_MOUNT3] = { MOUNT_PROGRAM, MOUNT_VERSION3, MOUNTPROC3_COUNT },
	[PROGRAM_MOUNT2] = { MOUNT_PROGRAM, MOUNT_VERSION2, MOUNTPROC2_COUNT },
	[PROGRAM_MOUNT1] = { MOUNT_PROGRAM, MOUNT_VERSION1, MOUNTPROC1_COUNT },
	[PROGRAM_NLM4] = { NLM_PROGRAM, NLM_VERSION4, NLMPROC4_COUNT },
};

static const struct {
	const struct nfs3_row *row;
	uint32_t number; /* of its first procedure */
} tables[PROGRAMS] = {
	[PROGRAM_NFS3] = { nfs3_rows, 0 },
	[PROGRAM_ACL3] = { acl3_rows, LATENCY_ACL },
	[PROGRAM_RQUOTA1] = { rquota1_rows, LATENCY_RQUOTA },
	[PROGRAM_RQUOTA2] = { rquota2_rows, LATENCY_RQUOTA },
	[PROGRAM_MOUNT3] = { mount3_rows, LATENCY_MOUNT },
	[PROGRAM_MOUNT2] = { mount2_rows, LATENCY_MOUNT },
	[PROGRAM_MOUNT1] = { mount2_rows, LATENCY_MOUNT },
	[PROGRAM_NLM4] = { nlm4_rows, LATENCY_NLM },
};

static_assert(NFSPROC3_COUNT == LATENCY_MOUNT &&
		      LATENCY_MOUNT + MOUNTPROC2_COUNT == LATENCY_ACL &&
		      LATENCY_ACL + ACLPROC3_COUNT == LATENCY_RQUOTA &&
		      LATENCY_RQUOTA + RQUOTAPROC_COUNT == LATENCY_NLM &&
		      LATENCY_NLM + NLM4_SERVED == LATENCY_PROCS,
	      "each procedure has its number");

const struct nfs3_row *
nfsd_row(unsigned program, uint32_t proc)
{
	assert(program < PROGRAMS && proc < nfsd_programs[program].procs);
	return &tables[program].row[proc];
}

uint32_t
nfsd_proc_number(unsigned program, uint32_t proc)
{
	assert(nfsd_row(program, proc)->decode != NULL);
	if (program == PROGRAM_NLM4 && proc > NLMPROC4_SM_NOTIFY)
		proc -= NLM4_GAP;
	return tables[program].number + proc;
}
