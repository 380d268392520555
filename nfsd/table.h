/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row a procedure: how to decode it, where it runs, how to encode its
 * reply, how long that can be, and whether it may run twice.
 */
#ifndef NVNFSD_TABLE_H
#define NVNFSD_TABLE_H

#include "nfsd/nfsd.h"

enum call_where {
	RUN_INLINE, /* on the reactor: it cannot block */
	RUN_WORKER, /* a plain blocking function on a worker */
	RUN_WARM,   /* on the reactor where the file is open, else likewise */
	RUN_DATA    /* READ, WRITE, COMMIT: asynchronous, nfs3_data.c */
};

/* What follows the encoded header in a reply, sent from where it lies. */
enum call_tail {
	TAIL_NONE,
	TAIL_DATA,    /* READ's payload, padded */
	TAIL_ENTRIES, /* READDIR's and READDIRPLUS's list, inside rq->room */
	TAIL_LIST     /* MOUNT's lists, GETACL's: malloc'd, freed when sent */
};

struct nfs3_row {
	const char *name;
	nfs3_decode_fn *decode;
	nfs3_run_fn *run; /* NULL for RUN_DATA and NULL procedures */
	nfs3_encode_fn *encode;
	enum call_where where;
	enum call_tail tail;
	uint32_t reply_bytes_max; /* of the encoded header, without RPC's */
	bool idempotent;          /* else its reply goes to the DRC */
};

/* nfs3_table.c */

/* The largest reply_bytes_max of all rows. */
#define NFS3_REPLY_BYTES_MAX 4608u

/* Order of the programs in the table, as rpc_program_find's index. */
enum {
	PROGRAM_NFS3,
	PROGRAM_ACL3,
	PROGRAM_RQUOTA1,
	PROGRAM_RQUOTA2,
	PROGRAM_MOUNT3,
	PROGRAM_MOUNT2,
	PROGRAM_MOUNT1,
	PROGRAM_NLM4,
	PROGRAMS
};
/* As a port may serve them. */
#define PROGRAMS_MOUNT                                                         \
	(1u << PROGRAM_MOUNT3 | 1u << PROGRAM_MOUNT2 | 1u << PROGRAM_MOUNT1)
#define PROGRAMS_LOCK (1u << PROGRAM_NLM4)
#define PROGRAMS_NFS  ((1u << PROGRAMS) - 1 - PROGRAMS_MOUNT - PROGRAMS_LOCK)
extern const struct rpc_program nfsd_programs[PROGRAMS];
/* NULL never: proc was checked by rpc_program_find. But where a program's
 * numbers have gaps, the row of one is all zeros. */
const struct nfs3_row *nfsd_row(unsigned program, uint32_t proc);
/* Its number among all, as latency.h has them. */
uint32_t nfsd_proc_number(unsigned program, uint32_t proc);

/* nlm_table.c */
extern const struct nfs3_row nlm4_rows[NLMPROC4_COUNT];
/* NLM's procedures that there are, in order, without the gap. */
#define NLM4_GAP    (NLMPROC4_SHARE - NLMPROC4_SM_NOTIFY - 1)
#define NLM4_SERVED (NLMPROC4_COUNT - NLM4_GAP)
const struct nfs3_row *nlm4_served(unsigned i);

#endif
