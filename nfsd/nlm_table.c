/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The procedures of NLM version 4, a row each (The Open Group, XNFS, 14), as
 * nfs3_table.c has those of the others. Constant.
 *
 * What takes or gives a lock is not idempotent: sent again while the first was
 * answered, and served late, a LOCK would bring back what its owner has given
 * up since, and an UNLOCK take what he has locked since. A LOCK that waits is
 * answered once, too; the lock manager sees to it that one which is asked for
 * again, as a new call, waits once.
 *
 * A call of the _MSG and _RES kinds has an empty reply, on which the callers
 * that are known (Linux, the BSDs) wait before they believe that it arrived.
 */
#include "nfsd/latency.h"
#include "nfsd/table.h"

#include <assert.h>

#define NLM_ROW(row_name, row_decode, row_run, row_encode, bytes, twice)       \
	{                                                                      \
		.name = (row_name), .decode = (row_decode), .run = (row_run),  \
		.encode = (row_encode), .where = RUN_WORKER,                   \
		.reply_bytes_max = (bytes), .idempotent = (twice)              \
	}
#define NLM_VOID_ROW(row_name, row_decode, row_run, twice)                     \
	NLM_ROW(row_name, row_decode, row_run, nfs3_encode_void, 0, twice)
#define NLM_RES_ROW(row_name, row_decode, row_run, twice)                      \
	NLM_ROW(row_name, row_decode, row_run, nlm4_encode_res,                \
		NLM4_RES_BYTES, twice)
#define NLM_SHARE_ROW(row_name, row_run)                                       \
	NLM_ROW(row_name, nlm4_decode_share, row_run, nlm4_encode_share,       \
		NLM4_RES_BYTES + 4u, false)

const struct nfs3_row nlm4_rows[NLMPROC4_COUNT] = {
	[NLMPROC4_NULL] = {
		.name = "NULL",
		.decode = nfs3_decode_void,
		.encode = nfs3_encode_void,
		.where = RUN_INLINE,
		.idempotent = true,
	},
	[NLMPROC4_TEST] = NLM_ROW("TEST", nlm4_decode_test, nlm4_test,
				  nlm4_encode_test,
				  NLM4_RES_BYTES + NLM4_HOLDER_BYTES, true),
	[NLMPROC4_LOCK] = NLM_RES_ROW("LOCK", nlm4_decode_lock, nlm4_lock,
				      false),
	[NLMPROC4_CANCEL] = NLM_RES_ROW("CANCEL", nlm4_decode_cancel,
					nlm4_cancel, false),
	[NLMPROC4_UNLOCK] = NLM_RES_ROW("UNLOCK", nlm4_decode_unlock,
					nlm4_unlock, false),
	[NLMPROC4_GRANTED] = NLM_RES_ROW("GRANTED", nlm4_decode_test,
					 nlm4_granted, true),
	[NLMPROC4_TEST_MSG] = NLM_VOID_ROW("TEST_MSG", nlm4_decode_test,
					   nlm4_test_msg, true),
	[NLMPROC4_LOCK_MSG] = NLM_VOID_ROW("LOCK_MSG", nlm4_decode_lock,
					   nlm4_lock_msg, false),
	[NLMPROC4_CANCEL_MSG] = NLM_VOID_ROW("CANCEL_MSG", nlm4_decode_cancel,
					     nlm4_cancel_msg, false),
	[NLMPROC4_UNLOCK_MSG] = NLM_VOID_ROW("UNLOCK_MSG", nlm4_decode_unlock,
					     nlm4_unlock_msg, false),
	[NLMPROC4_GRANTED_MSG] = NLM_VOID_ROW("GRANTED_MSG", nlm4_decode_test,
					      nlm4_granted_msg, true),
	[NLMPROC4_TEST_RES] = NLM_VOID_ROW("TEST_RES", nlm4_decode_test_res,
					   nlm4_ignore, true),
	[NLMPROC4_LOCK_RES] = NLM_VOID_ROW("LOCK_RES", nlm4_decode_res,
					   nlm4_ignore, true),
	[NLMPROC4_CANCEL_RES] = NLM_VOID_ROW("CANCEL_RES", nlm4_decode_res,
					     nlm4_ignore, true),
	[NLMPROC4_UNLOCK_RES] = NLM_VOID_ROW("UNLOCK_RES", nlm4_decode_res,
					     nlm4_ignore, true),
	[NLMPROC4_GRANTED_RES] = NLM_VOID_ROW("GRANTED_RES", nlm4_decode_res,
					      nlm4_granted_res, true),
	[NLMPROC4_SM_NOTIFY] = NLM_VOID_ROW("SM_NOTIFY", nlm4_decode_sm_notify,
					    nlm4_sm_notify, false),
	[NLMPROC4_SHARE] = NLM_SHARE_ROW("SHARE", nlm4_share),
	[NLMPROC4_UNSHARE] = NLM_SHARE_ROW("UNSHARE", nlm4_unshare),
	[NLMPROC4_NM_LOCK] = NLM_RES_ROW("NM_LOCK", nlm4_decode_lock,
					 nlm4_nm_lock, false),
	[NLMPROC4_FREE_ALL] = NLM_VOID_ROW("FREE_ALL", nlm4_decode_free_all,
					   nlm4_free_all, false),
};

const struct nfs3_row *
nlm4_served(unsigned i)
{
	assert(i < NLM4_SERVED);
	return &nlm4_rows[i > NLMPROC4_SM_NOTIFY ? i + NLM4_GAP : i];
}
