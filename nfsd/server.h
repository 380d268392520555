/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What conn.c, call.c, nfs3_data.c and server.c share: the server, a shard for
 * each reactor, connections and call slots.
 *
 * Limits and back-pressure, in one place: a connection reads on only while it
 * has fewer than calls_per_connection calls in service and holds less than a
 * quarter of its reactor's buffer pool; while a call slot is free in its shard;
 * and while a buffer is to be had for a WRITE's payload. Where one of these
 * fails the connection stops reading (TCP then holds the peer) and goes on when
 * it is met again. Nothing is ever dropped for want of room; but a peer that
 * makes no progress gives back what others wait for (CONN_IDLE_WANTED_NS).
 */
#ifndef NVNFSD_SERVER_H
#define NVNFSD_SERVER_H

#include "nfsd/clients.h"
#include "nfsd/latency.h"
#include "nfsd/nfsd.h"
#include "nfsd/table.h"

#include <assert.h>
#include <json-c/json.h>
#include <sys/queue.h>
#include <sys/uio.h>

#define CALL_HEAD_BYTES  4096u
#define CALL_PLACE_BYTES 1024u /* a WRITE's header ends before this */
#define CALL_REPLY_BYTES                                                       \
	(RPC_MARK_BYTES + RPC_REPLY_BYTES + NFS3_REPLY_BYTES_MAX)
#define CALL_ROOM_BYTES_MAX    (256u << 10) /* READDIR's list */
#define SHARD_CALLS            2048u
#define SHARD_CALLS_PRESENT    256u /* of them, in memory from the start */
#define CALLS_PER_CONN_DEFAULT 256u
#define CONNS_DEFAULT          4096u
#define CALL_IOV               3u /* parts of a reply */
#define CONN_IOV               ((size_t)64 * CALL_IOV)
/* No progress for so long is the end of a connection; sooner where others wait
 * for what it holds. */
#define CONN_IDLE_NS           (30ull * 1000000000)
#define CONN_IDLE_WANTED_NS    (5ull * 1000000000)
#define CONNS_RESERVED_MAX     4u /* clients mounted on this machine */
#define SERVER_LISTENERS_MAX   32u
#define RECORD_BYTES_MAX       (IO_TRANSFER_BYTES_MAX + CALL_PLACE_BYTES)
/* A datagram, in or out. */
#define DATAGRAM_BYTES_MAX     (DATAGRAM_DATA_MAX + CALL_PLACE_BYTES)

static_assert(CALL_PLACE_BYTES >=
		      RPC_CALL_BYTES_MAX + NFS3_WRITE_ARGS_BYTES_MAX,
	      "the longest header of a WRITE must fit");

#define SHARD_MAGIC 0x53484152u
#define CONN_MAGIC  0x434f4e4eu
#define CALL_MAGIC  0x43414c4cu

struct conn;
struct call;
struct ctl;
struct nsm;
struct server_options;
struct shard;

/* A listening socket; lives on reactor 0 from start to stop. */
struct listener {
	struct op op;
	struct shard *shard;
	struct sockaddr_storage addr;
	int fd;
	uint32_t programs; /* bit i: row i of nfsd_programs */
	bool accepting;
};

static inline bool
listener_serves(const struct listener *l, unsigned program)
{
	return (l->programs >> program & 1) != 0;
}

/* Counters of a shard: its thread counts, any thread reads (counters.c). */
struct stats {
	_Atomic uint64_t calls[LATENCY_PROCS];
	_Atomic uint64_t rejected; /* denied, unavailable, garbage */
	_Atomic uint64_t connections_total, calls_in_service;
	_Atomic uint64_t records_refused; /* ended their connection */
	_Atomic uint64_t stalls_call, stalls_buffer, stalls_slot;
	_Atomic uint64_t stall_slot_ns;
	_Atomic uint64_t timeouts;
};

/* One writer, so no locked instruction. */
static inline void
stat_add(_Atomic uint64_t *c, uint64_t n)
{
	atomic_store_explicit(c,
			      atomic_load_explicit(c, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

struct server {
	struct conf conf;
	struct engine *engine;
	pthread_mutex_t lock; /* exports; shards' drained count */
	pthread_cond_t drained;
	struct export_table *exports;
	struct drc *drc;
	struct mount_list *mounts;
	struct nsm *nsm;
	struct nlm_callback *callbacks;
	struct locks *locks;
	struct state *state;
	const struct server_options *options;
	struct ctl *ctl;
	struct snapshot *counted_from; /* reset-stats: the control thread's */
	/* A reload, a set, an unexport: one after the other. */
	pthread_mutex_t change;
	struct overrides *overrides; /* under change */
	_Atomic bool draining;
	struct clients *clients;
	uint64_t started_ns;
	uint8_t fh_key[FH_KEY_BYTES];
	unsigned shards, shards_drained;
	struct shard **shard;
	struct listener listener[SERVER_LISTENERS_MAX];
	unsigned listeners;
	_Atomic unsigned conns_max, calls_per_conn; /* a reload sets them */
	_Atomic bool manage_gids;
	_Atomic unsigned conns_reserved;
	_Atomic unsigned conns_datagrams; /* count for no limit but udp.c's */
	struct udp *udp;
	struct registration *registration; /* NULL: --no-rpcbind */
	struct message listening;
};

/* One a reactor, touched by its thread only (conn_count by all). */
struct shard {
	unsigned magic;
	struct server *server;
	struct reactor *reactor;
	struct perm_cache *perms;
	struct latency *latency;
	struct slow *slow;
	struct stats stats;
	struct call *calls;
	uint16_t *free_calls; /* a stack of indices */
	unsigned free_count;
	TAILQ_HEAD(, conn) conns;
	TAILQ_HEAD(, conn) starved; /* wait for a call slot */
	_Atomic unsigned conn_count;
	_Atomic bool blocked; /* in a WRITE's sync, see shard_serves_one */
	struct message wake, stop, force, drain;
	bool waking, stopping, drained;
	_Atomic bool draining_posted;
};

/* Who may send on a connection now. */
enum conn_sender {
	SENDER_NONE,
	SENDER_REACTOR,
	SENDER_WORKER,
	SENDER_WANTED /* a worker, and the reactor waits for it */
};

/* How much of a reply a worker has sent. */
enum conn_sent {
	CONN_SENT_NOTHING,
	CONN_SENT_SOME,
	CONN_SENT_ALL,
	CONN_SENT_FLUSH /* all, and others became ready meanwhile */
};

enum conn_state {
	CONN_OPEN,
	CONN_DRAINING, /* reads no more; replies still go out */
	CONN_ENDING    /* shut down; waits for its last completions */
};

/*
 * One TCP connection, on one reactor for ever, or what a peer's datagrams make
 * look like one (udp.c): each is a record, and so is each reply. Freed when it
 * is ending, no operation of its is in flight and no call refers to it.
 */
struct conn {
	unsigned magic;
	enum conn_state state;
	struct shard *shard;
	struct listener *listener;
	struct sockaddr_storage peer, local; /* local: that the peer asked */
	bool datagrams;
	int fd;
	struct op recv_op, send_op;
	_Atomic unsigned char sender;
	bool receiving, receiving_body, sending, running, is_starved, linked,
		cancelled, reserved, hungry;
	struct record record;
	uint8_t *stage; /* a small buffer with bytes not yet parsed */
	uint32_t stage_at, stage_end;
	struct record_span span; /* of stage, not yet delivered */
	bool has_span;
	struct call *incoming;
	unsigned calls; /* slots that refer to this connection */
	size_t held_bytes;
	uint64_t recv_ns, send_ns; /* last progress */
	uint64_t starved_ns;       /* since when it waits for a slot */
	uint32_t client;           /* as clients.c counts them */
	uint64_t recv_seen, send_seen;
	STAILQ_HEAD(, call) ready;
	LIST_HEAD(, call) attached;
	struct msghdr msg;
	struct iovec iov[CONN_IOV];
	struct message arrival;
	TAILQ_ENTRY(conn) link, starved_link;
};

/* When something was over, in the order of time; 0: it did not happen. */
enum call_stamp {
	CALL_FIRST,  /* its first bytes are there */
	CALL_WHOLE,  /* its record is whole */
	CALL_TAKEN,  /* a thread has taken it up, or its file is open */
	CALL_RANGED, /* it holds its ranges */
	CALL_LANDED, /* all pieces have landed */
	CALL_DONE,   /* what the reply says is known */
	CALL_STAMPS
};

enum call_phase { CALL_HEAD, CALL_BODY, CALL_LINEAR, CALL_SERVICE };

/*
 * A call's preallocated home, from the first byte of its record to the last of
 * its reply. call_free is the only way back. What is large, and filled before
 * it is read, stands last: call_new clears only what is before it.
 */
struct call { /* NOLINT(clang-analyzer-optin.performance.Padding): to read */
	unsigned magic;
	enum call_phase phase;
	struct shard *shard;
	struct conn *conn;
	struct rpc_call rpc;
	unsigned program;
	const struct nfs3_row *row;
	uint64_t at_ns[CALL_STAMPS];
	uint64_t sent_ns; /* a worker has sent its reply */
	/* the record: CALL_HEAD, CALL_BODY, CALL_LINEAR */
	uint32_t head_bytes;
	bool examined;       /* head holds no WRITE with a payload to come */
	bool waiting;        /* in the pool's queue, with body_waiter */
	uint32_t payload_at; /* in head */
	uint32_t payload_bytes, body_need, body_have, page_offset;
	uint32_t want_bytes; /* a buffer is needed before going on; 0: no */
	enum call_phase want_phase;
	uint8_t *payload;
	struct buf body;
	struct buf_waiter body_waiter;
	/* service */
	enum nfsstat3 status;
	struct work work;
	struct object object;
	bool resolved; /* object is to be given back */
	struct file *file;
	struct file_bracket bracket;
	bool bracketed;
	struct pre_op_attr before;
	int error;
	struct buf room;
	size_t held_bytes; /* of its connection's share of the pool */
	union {
		struct io_write write;
		struct io_read read;
		struct io_commit commit;
	} io;
	/* duplicate requests */
	struct drc_entry *drc;
	bool attached, abandoned;
	/* its reply was made on a worker */
	bool alone; /* the only one of its connection in service */
	bool kept;  /* it is this call that is answered */
	enum conn_sent sent;
	struct message msg;
	LIST_ENTRY(call) attached_link;
	/* the reply */
	uint32_t reply_bytes; /* mark included */
	uint32_t tail_bytes, pad_bytes, sent_bytes;
	const uint8_t *tail;
	STAILQ_ENTRY(call) ready_link;
	/* not cleared */
	struct request rq; /* but for res */
	uint8_t head[CALL_HEAD_BYTES];
	uint8_t reply[CALL_REPLY_BYTES];
};

/* conn.c ------------------------------------------------------------------ */

/* On reactor 0: hand a fresh socket to a shard. Takes fd. */
void conn_start(struct shard *s, struct listener *l, int fd);
/* Any thread, while no shard stops: the same for fd, a stream of the datagrams
 * between the two ends as records. Takes fd. */
void conn_start_datagrams(struct shard *s, struct listener *l, int fd,
			  const struct datagram_ends *ends);
/* Go on parsing and receiving as far as limits allow. */
void conn_run(struct conn *c);
/* Stop reading; end when the last reply is out. */
void conn_drain(struct conn *c);
/* End now; calls in service finish into nothing. */
void conn_end(struct conn *c);
/* A call let go of its connection. */
void conn_unref(struct conn *c);
/* Each second. */
void conn_tick(struct conn *c);

/* conn_send.c -------------------------------------------------------------- */

/* Queue a finished reply and send what is ready. */
void conn_send(struct conn *c, struct call *call);
/* Send what is ready, where nothing is on its way. */
void conn_flush(struct conn *c);

/* On the worker that has call, whose reply is encoded: send it, without
 * blocking. The result goes to conn_sent, at once unless it is CONN_SENT_ALL.
 */
enum conn_sent conn_send_here(struct conn *c, struct call *call);
/* On the reactor: see to the rest, and free call when it is sent. */
void conn_sent(struct conn *c, struct call *call, enum conn_sent how);

/* call_recv.c ----------------------------------------------------------------
 */

/* Take bytes of the record; returns how many (> 0). want_bytes may be set
 * afterwards: get the buffer before the next call. */
uint32_t call_take(struct call *c, const uint8_t *data, uint32_t n);
/* Get the buffer that want_bytes asks for; false: it waits, and conn_run is
 * called when there is one. */
bool call_get_buffer(struct call *c);
/* Where the next bytes of the record may be received straight into place;
 * false where they must come through call_take. */
bool call_place(struct call *c, uint8_t **at, uint32_t *room);
void call_placed(struct call *c, uint32_t n);

/* call.c
 * ------------------------------------------------------------------------ */

/* A slot, or NULL when none is free. */
struct call *call_new(struct shard *s, struct conn *conn);
void call_free(struct call *c);
/* So much of the pool is c's, or soon will be: it counts for its connection's
 * share from now on, so that what is admitted next knows of it. */
void call_hold(struct call *c, size_t bytes);
/* The record is whole: judge it, run it, reply. */
void call_begin(struct call *c);
/* Encode c->status and c->rq.res, then reply. Reactor only. */
void call_reply(struct call *c);
/* The same on any thread; c is not to be touched afterwards. */
void call_reply_anywhere(struct call *c);

/* call_note.c
 * ---------------------------------------------------------------------- */

/* The time, on whichever thread c is. */
uint64_t call_clock_ns(const struct call *c);
void call_stamp(struct call *c, enum call_stamp what);
/* Its reply is out: count it. Reactor only, before call_free. */
void call_note(struct call *c);
/* Tell tracers that it is whole. */
void call_trace(const struct call *c);

/* nfs3_data.c
 * ---------------------------------------------------------------------- */

void data_begin(struct call *c);
/* Give back what a data call holds; from call_free. */
void data_fini(struct call *c);

/* nfs3_warm.c
 * ---------------------------------------------------------------------- */

/* A RUN_WARM procedure: make its status and results; false where a worker has
 * to. */
bool warm_run(struct call *c);

/* drain.c
 * ----------------------------------------------------------------------------
 */

void drain_init(struct shard *s);
/* Any thread. */
void drain_begin(struct server *s);
void drain_end(struct server *s);
/* Connections that are left. */
unsigned drain_left(const struct server *s);

/* shard.c
 * ----------------------------------------------------------------------------
 */

void *shard_init(struct reactor *r, void *server);
void shard_tick(struct reactor *r);
void shard_fini(struct reactor *r);
/* A call slot or a connection came free: let waiting ones go on, later. */
void shard_wake(struct shard *s);
bool shard_starving(const struct shard *s);
/* Is there only one connection, and nothing that others need at once? */
bool shard_serves_one(const struct shard *s);
/* Nothing is accepted any more: stop the others, to which reactor 0 has handed
 * its last connection. */
void shard_stop_rest(struct server *s);

/* listen.c
 * ----------------------------------------------------------------------------
 */

/* Open the listening sockets that the configuration asks for. 0, or -errno
 * with the reason logged. */
int listen_open(struct server *s);
/* On reactor 0. */
void listen_start(struct server *s);
void listen_resume(struct server *s);
/* Which shard is to have the next connection. Any thread. */
struct shard *listen_shard(const struct server *s);
/* Tune an accepted socket; true where it is one of the CONNS_RESERVED_MAX that
 * have memory set aside: conns_reserved is to be lowered when it closes. */
bool listen_tune(struct server *s, int fd);
void listen_stop(struct server *s);
/* On reactor 0: accept nothing while s->draining. */
void listen_pause(struct server *s);
/* No thread runs any more. */
void listen_close(struct server *s);
/* The address that the ready line names; port of host order. */
const struct listener *listen_first(const struct server *s, unsigned program);

/* lockd.c ------------------------------------------------------------------ */

/* With s->state and s->exports, before anything is served. 0; or -errno,
 * logged: lockd_free all the same. */
int lockd_new(struct server *s);
/* It is served: tell the clients that had locks. */
void lockd_start(struct server *s);
/* s->exports are others now. With the lock change held. */
void lockd_exports(struct server *s);
/* Nothing is served any more. Blocks, for some seconds where a client does not
 * answer. */
void lockd_free(struct server *s);

/* state.c: what outlives the process
 * ------------------------------------------------ */

struct state;
/* Open (and make) the state directory; read the verifiers of a clean stop and
 * forget them on disk, so that a crash cannot bring them back. */
int state_open(struct state **ret, const char *dir);
void state_close(struct state *s);
int state_fd(const struct state *s);
/* The kept verifier of an export, or a fresh random one. */
uint64_t state_verifier(uint64_t export_id, void *state);
/* Keep the verifiers of all exports: only after everything was synced. */
int state_keep(struct state *s, const struct export_table *t);

/* polling.c
 * ----------------------------------------------------------------------------
 */

/* Tell what became of what c wants of polling. */
void polling_log(const struct conf *c, const struct engine_facts *f);
/* Do both want the same? */
bool polling_same(const struct conf *a, const struct conf *b);

/* process.c
 * -------------------------------------------------------------------------
 */

/* Raise limits and lock memory, as far as allowed; before any thread starts. */
void process_prepare(void);

/* registration.c
 * -------------------------------------------------------------------------
 */

struct registration;

/* Register what s listens on with rpcbind, now or as soon as it can be done.
 * Blocks for 2 s at most. 0 or -errno. */
int registration_start(struct registration **ret, const struct server *s);
/* Withdraw it. Blocks, for seconds where rpcbind does not answer. NULL is
 * taken. */
void registration_stop(struct registration *r);

/* stats.c
 * ---------------------------------------------------------------------------
 */

/* All counters as one JSON object, which the caller puts. */
struct json_object *stats_json(struct server *s);
/* Of two such: from now take away, where it is a counter that only grows, what
 * it was before. */
void stats_subtract(struct json_object *now, struct json_object *before);
/* The same to DIR/stats.json, replaced atomically. */
int stats_write(struct server *s, int dir_fd);

/* server.c
 * -------------------------------------------------------------------------- */

struct server_options {
	const char *config, *exports, *state_dir;
	char **export_lines;
	unsigned export_count;
	bool no_rpcbind;
	enum io_backend backend;
};

/* conf is taken over on success, o outlives the server. 0 or -errno, reasons
 * logged but for -ENOMEM. */
int server_start(struct server **ret, struct conf *conf,
		 const struct server_options *o);
/* Stop accepting, finish calls, sync, keep the verifiers when all was well. 0,
 * or -errno when something could not be synced. Blocks. */
int server_stop(struct server *s);
/* Read the exports again and take what of conf can change while running (the
 * modes, manage-gids, limits of connections, the log's level); conf stays the
 * caller's. A bad file changes nothing. Blocks. 0 or -errno, logged. */
int server_reload(struct server *s, struct conf *conf,
		  const struct server_options *o);
struct export_table *server_exports_get(struct server *s);
/* What set has changed holds from now on. With the lock change held; what a
 * file system cannot do is in r. 0; or -errno as export_table_apply. */
int server_apply(struct server *s, struct conf_report *r);
/*
 * Withdraw the export of that path until the next reload: its handles become
 * stale, and its file system is let go of when the calls in service there have
 * ended, which is waited for a while. 0; 1 when they have not; -ENOENT: there
 * is none; -ENOMEM. Not on a reactor.
 */
int server_unexport(struct server *s, const char *path);
/* Read both files as the options say. 0 or -errno; r has the reasons. */
int server_read_exports(struct conf_exports *ret,
			const struct server_options *o, struct conf_report *r);
void server_log_report(const struct conf_report *r);

#endif
