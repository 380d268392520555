/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network lock manager's protocol, version 4, on the wire (The Open Group,
 * XNFS, 10 and 14): types in its spelling. Strings and netobjs of arguments
 * point into the record. Codecs are declared in nfs3.h, as all are.
 */
#ifndef NVNFSD_NLM_H
#define NVNFSD_NLM_H

#include <stdbool.h>
#include <stdint.h>

#define NLM_PROGRAM  100021u
#define NLM_VERSION4 4u

#define MAXNETOBJ_SZ  1024u
#define LM_MAXSTRLEN  1024u
#define SM_MAXSTRLEN  1024u
#define SM_PRIV_BYTES 16u

enum nlm4_proc {
	NLMPROC4_NULL,
	NLMPROC4_TEST,
	NLMPROC4_LOCK,
	NLMPROC4_CANCEL,
	NLMPROC4_UNLOCK,
	NLMPROC4_GRANTED,
	NLMPROC4_TEST_MSG,
	NLMPROC4_LOCK_MSG,
	NLMPROC4_CANCEL_MSG,
	NLMPROC4_UNLOCK_MSG,
	NLMPROC4_GRANTED_MSG,
	NLMPROC4_TEST_RES,
	NLMPROC4_LOCK_RES,
	NLMPROC4_CANCEL_RES,
	NLMPROC4_UNLOCK_RES,
	NLMPROC4_GRANTED_RES,
	/* Not the standard's: what rpc.statd of this machine calls when a
	 * client that it watches has rebooted. */
	NLMPROC4_SM_NOTIFY,
	/* 17 to 19 are nobody's. */
	NLMPROC4_SHARE = 20,
	NLMPROC4_UNSHARE,
	NLMPROC4_NM_LOCK,
	NLMPROC4_FREE_ALL,
	NLMPROC4_COUNT
};

enum nlm4_stats {
	NLM4_GRANTED = 0,
	NLM4_DENIED = 1,
	NLM4_DENIED_NOLOCKS = 2,
	NLM4_BLOCKED = 3,
	NLM4_DENIED_GRACE_PERIOD = 4,
	NLM4_DEADLCK = 5,
	NLM4_ROFS = 6,
	NLM4_STALE_FH = 7,
	NLM4_FBIG = 8,
	NLM4_FAILED = 9
};

/* Deny modes and access modes of SHARE: bits. */
enum fsh4_mode { FSM_DN, FSM_DR, FSM_DW, FSM_DRW };
enum fsh4_access { FSA_NONE, FSA_R, FSA_W, FSA_RW };

/* In place, not terminated; XDR's own netobj is of another shape. */
struct nlm_netobj {
	const uint8_t *data;
	uint32_t bytes;
};

struct nlm4_lock {
	struct nlm_netobj caller_name;
	struct nlm_netobj fh; /* as sent: may be no handle of ours at all */
	struct nlm_netobj oh;
	uint32_t svid;
	uint64_t l_offset;
	uint64_t l_len; /* 0: to the end, wherever that will be */
};

/* Of TEST, LOCK, CANCEL, UNLOCK, GRANTED and NM_LOCK; what the procedure's own
 * arguments lack is false or 0. */
struct nlm4_lockargs {
	struct nlm_netobj cookie;
	bool block;
	bool exclusive;
	struct nlm4_lock alock;
	bool reclaim;
	int32_t state;
};

struct nlm4_shareargs {
	struct nlm_netobj cookie;
	struct nlm_netobj caller_name, fh, oh;
	enum fsh4_mode mode;
	enum fsh4_access access;
	bool reclaim;
};

/* FREE_ALL; with priv: SM_NOTIFY, whose name is the host's that SM_MON named */
struct nlm4_notify {
	struct nlm_netobj name;
	int32_t state;
	uint8_t priv[SM_PRIV_BYTES];
};

/* What a _RES brings. */
struct nlm4_answer {
	struct nlm_netobj cookie;
	uint32_t stat; /* as sent */
};

union nlm4_args {
	struct nlm4_lockargs lock;
	struct nlm4_shareargs share;
	struct nlm4_notify notify;
	struct nlm4_answer answer;
};

/* Who has the lock that is in the way. */
struct nlm4_holder {
	bool exclusive;
	uint32_t svid;
	uint32_t oh_bytes;
	uint8_t oh[MAXNETOBJ_SZ];
	uint64_t l_offset, l_len;
};

/* Of all that have a result. */
struct nlm4_res {
	struct nlm_netobj cookie; /* the caller's, in its record */
	enum nlm4_stats stat;
	int32_t sequence;          /* SHARE, UNSHARE */
	struct nlm4_holder holder; /* TEST, with NLM4_DENIED */
};

/* Bounds of what the encoders write. */
#define NLM4_NETOBJ_BYTES (4u + MAXNETOBJ_SZ)
#define NLM4_RES_BYTES    (NLM4_NETOBJ_BYTES + 4u)
#define NLM4_HOLDER_BYTES (4u + 4u + NLM4_NETOBJ_BYTES + 8u + 8u)

#endif
