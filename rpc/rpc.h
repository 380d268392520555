/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ONC RPC version 2 (RFC 5531) as pure bytes: record marking, call and reply
 * headers, credentials, the duplicate request cache, and rpcbind registration.
 * It touches no file and no socket (rpcbind aside) and knows no NFS.
 */
#ifndef NVNFSD_RPC_H
#define NVNFSD_RPC_H

#include <netinet/in.h>
#include <rpc/xdr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define RPC_AUTH_BYTES_MAX        400u /* RFC 5531, section 8.2 */
#define RPC_AUTH_SYS_GIDS_MAX     16u
#define RPC_MACHINE_BYTES_MAX     255u
/* Call header with the largest credential and verifier. */
#define RPC_CALL_BYTES_MAX        (4u * 10 + 2 * RPC_AUTH_BYTES_MAX)
/* Record mark and the largest reply header that we send (AUTH_NONE verf). */
#define RPC_MARK_BYTES            4u
#define RPC_REPLY_BYTES           24u /* accepted, success: without the mark */
#define RPC_REPLY_ERROR_BYTES_MAX 32u

/* record.c: TCP record marking (RFC 5531, section 11) -------------------- */

/*
 * Where a byte stream stands in its sequence of records. Owned by one
 * connection. It buffers no payload: at most the bytes of a torn mark.
 */
struct record {
	uint32_t bytes_max;     /* limit of a whole record */
	uint32_t fragment_left; /* bytes of this fragment still to come */
	uint32_t bytes;         /* of this record, seen so far */
	uint8_t mark[4];
	uint8_t mark_bytes; /* of a torn mark */
	bool last;          /* this fragment ends the record */
	bool inside;        /* a record has begun (by a byte of its first mark)
			       and not ended */
	uint16_t empties;   /* empty fragments of this record */
};

struct record_span {
	const uint8_t *data; /* inside the input */
	uint32_t bytes;      /* may be 0, at a record's end */
	bool end;            /* the record ends after these bytes */
};

void record_init(struct record *r, uint32_t bytes_max);
/*
 * Take the next span of one record's payload out of in. Returns how many bytes
 * of in were used (marks included); the span is empty and not an end when only
 * mark bytes were there. Call again with the rest until all is used.
 * -EMSGSIZE: the record is over its limit (told as soon as a mark says so,
 * before its bytes arrive); -EBADMSG: a stream that cannot be a record, as an
 * endless row of empty fragments (more than 1024 in a record). Both end the
 * connection.
 */
int record_feed(struct record *r, const uint8_t *in, uint32_t n,
		struct record_span *span);
/* The caller received n payload bytes itself, straight into place: n is at
 * most fragment_left. Returns true when that ended the record. */
bool record_skip(struct record *r, uint32_t n);
/* The four bytes before a reply of n bytes sent as one fragment. */
void record_mark(uint8_t mark[4], uint32_t n);

/* auth.c: credentials (RFC 5531, section 8, appendix A) ------------------- */

enum rpc_flavor { RPC_AUTH_NONE = 0, RPC_AUTH_SYS = 1 };

/* auth_stat values that a server of these flavors sends. */
enum rpc_auth_stat {
	RPC_STAT_BADCRED = 1,
	RPC_STAT_REJECTEDCRED = 2,
	RPC_STAT_BADVERF = 3,
	RPC_STAT_TOOWEAK = 5
};

struct rpc_cred {
	uint32_t flavor;
	uint32_t uid, gid; /* AUTH_SYS; else 0 and not to be used */
	uint32_t gids;
	uint32_t gid_list[RPC_AUTH_SYS_GIDS_MAX];
	uint32_t machine_bytes;
	char machine[RPC_MACHINE_BYTES_MAX + 1];
};

/* A credential's body of n bytes. false: it is not what its flavor, AUTH_NONE
 * or AUTH_SYS, says; then *cred is not to be used. */
bool rpc_cred_decode(struct rpc_cred *cred, uint32_t flavor,
		     const uint8_t *body, uint32_t n);

/* call.c: the call header, or the reason to reject it --------------------- */

enum rpc_verdict {
	RPC_OK,
	RPC_SHORT,        /* the bytes end inside the header */
	RPC_NOT_A_CALL,   /* a reply, or no RPC: drop it without an answer */
	RPC_MISMATCH,     /* MSG_DENIED, RPC_MISMATCH 2..2 */
	RPC_AUTH_BADCRED, /* MSG_DENIED, AUTH_ERROR AUTH_BADCRED */
	RPC_AUTH_BADVERF,
	RPC_AUTH_REJECTED, /* flavor not served: AUTH_TOOWEAK(5) or
			      AUTH_REJECTEDCRED(2), see auth_stat */
	RPC_PROG_UNAVAIL,
	RPC_PROG_MISMATCH, /* with low and high */
	RPC_PROC_UNAVAIL,
	RPC_GARBAGE_ARGS,
	RPC_SYSTEM_ERR
};

struct rpc_call {
	uint32_t xid, prog, vers, proc;
	struct rpc_cred cred;
	uint32_t header_bytes; /* where the arguments begin */
	uint32_t auth_stat;    /* for the RPC_AUTH_ verdicts */
	uint32_t low, high;    /* for RPC_PROG_MISMATCH */
};

/* Decode what stands at the start of a record. xid is set from RPC_MISMATCH
 * on (also with RPC_SHORT when 4 bytes were there). With whole false, RPC_SHORT
 * means that more bytes may complete it; with whole true, a header that ends
 * early is RPC_GARBAGE_ARGS when its xid and version could be read (else
 * RPC_NOT_A_CALL). */
enum rpc_verdict rpc_call_decode(struct rpc_call *c, const uint8_t *bytes,
				 uint32_t n, bool whole);

/* program.c: which programs, versions and procedures there are ------------ */

struct rpc_program {
	uint32_t prog, vers;
	uint32_t procs; /* 0 .. procs - 1 */
};
/* RPC_OK with *index the row, or PROG_UNAVAIL, PROG_MISMATCH (low and high set
 * over all rows of the program), PROC_UNAVAIL. */
enum rpc_verdict rpc_program_find(const struct rpc_program *table,
				  unsigned rows, struct rpc_call *c,
				  unsigned *index);

/* reply.c: reply headers -------------------------------------------------- */

/* Accepted and successful, RPC_REPLY_BYTES long. */
void rpc_reply_success(uint8_t *out, uint32_t xid);
/* The whole reply for any verdict from RPC_MISMATCH on: its length, at most
 * RPC_REPLY_ERROR_BYTES_MAX. c gives xid, auth_stat, low and high. */
uint32_t rpc_reply_error(uint8_t *out, const struct rpc_call *c,
			 enum rpc_verdict v);

/* drc.c: duplicate request cache ------------------------------------------- */

/*
 * Remembers the replies of calls that must not run twice. One a server, used
 * from every thread (its lock is a leaf). Keyed by xid, client address (without
 * the port: a client reconnects from another), program, version, procedure and
 * a checksum of the record's first 256 bytes.
 */
struct drc;
struct drc_entry;

struct drc_key {
	uint32_t xid, prog, vers, proc;
	struct sockaddr_storage addr; /* port ignored */
	uint64_t checksum;
};

enum drc_verdict {
	DRC_NEW,      /* run it, then drc_done */
	DRC_ATTACHED, /* the first is in service; waiter was kept for the reply
			 and replaces an earlier one (*ret_replaced) */
	DRC_REPLAY,   /* the reply was copied out */
	DRC_FULL      /* every entry is in service: run it uncached */
};

struct drc_counters {
	uint64_t hits, attached, misses, entries, bytes, evicted, full;
};

/* 0, -ENOMEM, or -EIO when the system gives no random bytes. entries_max is not
 * 0. bytes_max bounds the kept replies, reply_bytes_max a single one. */
int drc_new(struct drc **ret, uint32_t entries_max, size_t bytes_max,
	    uint32_t reply_bytes_max);
/* Every DRC_NEW entry has been finished. */
void drc_free(struct drc *d);
/* SipHash over the first 256 bytes of a record, keyed per cache. */
uint64_t drc_checksum(const struct drc *d, const uint8_t *bytes, uint32_t n);
/*
 * DRC_NEW: *ret_entry is to be finished. DRC_REPLAY: the stored reply is copied
 * to reply (room for reply_bytes_max), *reply_bytes set. DRC_ATTACHED: waiter
 * is an opaque pointer, not NULL, that drc_done gives back; *ret_replaced is
 * the waiter that it took the place of, or NULL.
 */
enum drc_verdict drc_begin(struct drc *d, const struct drc_key *key,
			   void *waiter, struct drc_entry **ret_entry,
			   uint8_t *reply, uint32_t *reply_bytes,
			   void **ret_replaced);
/* The call ended with this reply (without its record mark); the waiter that was
 * attached meanwhile, or NULL: the reply goes to it then. A reply over
 * reply_bytes_max is not kept. */
void *drc_done(struct drc *d, struct drc_entry *e, const uint8_t *reply,
	       uint32_t reply_bytes);
/* A waiter goes away (its connection ended): true when it was attached and no
 * longer is. */
bool drc_detach(struct drc *d, void *waiter);
void drc_stats(struct drc *d, struct drc_counters *out);

/* bind.c: rpcbind (RFC 1833) by libtirpc ---------------------------------- */

#define BIND_SERVICES_MAX 16u

enum bind_netid { BIND_TCP, BIND_TCP6, BIND_UDP, BIND_UDP6, BIND_NETIDS };

struct bind_service {
	uint32_t prog, vers;
	struct bind_port {
		uint16_t port; /* 0: not on this protocol */
		char addr[INET6_ADDRSTRLEN];
	} at[BIND_NETIDS];
};

/*
 * Blocks: 3 s where rpcbind does not answer, some 15 s where it is slow (then
 * -ETIMEDOUT too, with some of them made). Replaces registrations that a dead
 * server left. 0; -ECONNREFUSED when there is no rpcbind; -EPERM when it
 * refused; -EADDRINUSE when another server holds one of them and answers.
 * Nothing stays registered after another error. The services listen already, at
 * most BIND_SERVICES_MAX of them, and SIGPIPE is ignored.
 */
int bind_register(const struct bind_service *services, unsigned n);
/* Withdraw those of ours that still name our ports. Blocks. */
void bind_unregister(const struct bind_service *services, unsigned n);

/* peer.c: programs of other hosts, by libtirpc ----------------------------- */

/* How to get there: ports of the addresses are not looked at. */
struct rpc_peer_where {
	const struct sockaddr *host;  /* AF_INET or AF_INET6 */
	const struct sockaddr *local; /* ours to leave from, NULL: any. From a
					 reserved port where we may. */
	bool datagram;    /* UDP, and so is its rpcbind asked; else TCP */
	bool once;        /* its datagram is sent once, rather than each second
			     until there is an answer */
	unsigned seconds; /* that each step may take: connecting, and a call */
};

struct rpc_peer_io {
	xdrproc_t encode, decode; /* NULL: nothing to encode, to decode */
	void *args, *res;
};

struct rpc_peer;
/*
 * The program at host, where its rpcbind says that it is. Each of these blocks.
 * 0; -ENOENT: rpcbind does not know it; -ECONNREFUSED or -ETIMEDOUT: there is
 * no rpcbind, or no host; another -errno of socket(2), bind(2) or connect(2).
 */
int rpc_peer_open(struct rpc_peer **ret, const struct rpc_peer_where *w,
		  uint32_t prog, uint32_t vers);
/* 0; -ETIMEDOUT: no answer; -ECONNREFUSED; -EPERM: it will not have us by our
 * credential; -EPROTONOSUPPORT: it has no such procedure; -EIO: other failures,
 * such as a connection that ended or a result that cannot be decoded. */
int rpc_peer_call(struct rpc_peer *p, uint32_t proc,
		  const struct rpc_peer_io *io);
void rpc_peer_close(struct rpc_peer *p); /* NULL is taken */

#endif
