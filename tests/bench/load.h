/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvnfsd-load: what its files share. One process, one thread, several
 * connections; every request is an asynchronous call of libnfs's raw layer.
 */
#ifndef NVNFSD_LOAD_H
#define NVNFSD_LOAD_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* In this order: libnfs.h defines what the other two use. */
#include <nfsc/libnfs.h>

#include <nfsc/libnfs-raw.h>

#include <nfsc/libnfs-raw-nfs.h>

#include "tests/bench/histogram.h"
#include "tests/bench/pattern.h"

enum load_op { LOAD_WRITE, LOAD_READ, LOAD_NULL, LOAD_COMMIT, LOAD_REMOVE };

/* A record as one request, or cut at its last page boundary into two. */
enum load_split { SPLIT_NONE, SPLIT_AFTER, SPLIT_TOGETHER };

struct load_options {
	const char *server, *export, *file;
	int port, mount_port; /* 0: ask rpcbind */
	enum load_op op;
	uint64_t file_bytes;
	uint64_t operations_max; /* 0: every record once */
	uint32_t record_bytes;
	unsigned writers, in_flight, connections, files;
	enum load_split split;
	stable_how stable;
	bool random, truncate, verify, reconnect;
	bool raw;           /* calls made by wire.c instead of libnfs */
	bool no_mount;      /* a handle of zeros: for relay and sink */
	const char *syncfs; /* a directory: synced before it counts as stable */
	uint64_t seconds;   /* 0: until the records are done */
	bool until_interrupt;  /* over and over until run_interrupted */
	uint64_t hold_seconds; /* all connections kept open, at the end */
	bool set_ids;
	int uid, gid;
	uint64_t generation, seed;
};

/* conn.c: connections -------------------------------------------------------
 */

struct load;
struct slot;
struct wire;

enum conn_state { CONN_DOWN, CONN_CONNECTING, CONN_READY };

struct conn {
	struct load *load;
	struct rpc_context *rpc; /* one of the two */
	struct wire *wire;
	enum conn_state state;
	bool lost; /* to be taken down by the loop, not by a callback */
	uint64_t retry_ns;
};

/* MOUNT, LOOKUP or CREATE: fills load->files. Blocks. 0, or -1 with
 * load->error set. */
int conn_open_files(struct load *l);
/* MOUNT and REMOVE, likewise. */
int conn_remove_files(struct load *l);
/* Start connecting all; they become ready inside conn_turn. */
int conn_start(struct load *l);
void conn_stop(struct load *l);
/* Wait for one round of events and serve them. Ready connections have
 * run_ready called. 0, or -1 when a connection is lost for good. */
int conn_turn(struct load *l);
uint64_t now_ns(void);
/* Keep the first reason, for the report. */
void load_fail(struct load *l, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* run.c: the records ----------------------------------------------------------
 */

enum record_state { RECORD_OPEN, RECORD_UNSTABLE, RECORD_STABLE };

struct record {
	uint64_t verf; /* of the WRITE's reply, for what is not stable yet */
	uint8_t state;
	bool begun; /* a piece of it was answered in this pass */
};

struct file {
	nfs_fh3 fh;
	uint64_t key;
};

/* One request in flight, or none. Records cut into two that go together have
 * two slots: the twin belongs to the lead. */
struct slot {
	struct load *load;
	unsigned writer;
	struct conn *conn;
	unsigned number; /* among those of its connection */
	struct slot *lead, *twin;
	const struct file *file;
	uint32_t record;
	uint64_t offset;
	uint32_t len, done; /* done: by replies that were short */
	uint32_t cut;       /* the first request ends here */
	uint64_t start_ns;
	bool busy;   /* has a record */
	bool queued; /* is with libnfs or wire.c */
	char *payload;
};

#define SECONDS_MAX 7200u
#define TICK_NS     100000000u
#define TICKS_MAX   (SECONDS_MAX * (1000000000u / TICK_NS))

struct load {
	struct load_options opt;
	nfs_fh3 root;
	struct file *files;
	struct conn *conns;
	struct slot *slots; /* after them as many twins, if there are any */
	unsigned slot_count, slots_all;
	unsigned conn_slots; /* of the connection that has the most */
	struct record *records;
	uint32_t record_count, file_records;
	uint32_t *order; /* records still to do, dealt to the writers in turn */
	uint32_t order_count;
	uint32_t *cursor;      /* one a writer */
	uint64_t *writer_done; /* records, likewise */
	unsigned in_service;
	bool stop;     /* after an error: no new requests */
	bool over;     /* its time has come */
	bool settling; /* the first pass is done: COMMIT, and what is lost */
	bool committing, committed;
	uint64_t commit_verf;

	struct histogram latency;
	uint64_t tick_bytes[TICKS_MAX]; /* answered in each tick */
	unsigned ticks;
	uint64_t start_ns, last_reply_ns, stable_ns;
	uint64_t bytes, operations, errors, mismatches, first_mismatch;
	uint64_t verifier_changes, resent, short_replies, reconnects, commits;
	char error[256];
};

/* Of the n-th file. */
void load_file_name(const struct load *l, unsigned n, char *name, size_t size);
/* 0, or -1 when memory is out. */
int run_init(struct load *l);
void run_fini(struct load *l);
/* The whole workload, COMMIT and what must be sent again included. True when
 * every byte was done as asked. */
bool run(struct load *l);
/* A signal handler sets it: that ends until_interrupt's going over the records.
 */
extern volatile sig_atomic_t run_interrupted;
/* From conn.c: c can take requests; or it went down, and what it had in flight
 * waits for its return. */
void run_ready(struct load *l, struct conn *c);

uint32_t record_len(const struct load *l, uint32_t record);

/* commit.c: until all is stable ---------------------------------------------
 */

bool any_unstable(const struct load *l);
/* A COMMIT for each file; l->order is then what they did not make stable. */
bool commit_all(struct load *l);
bool sync_file_system(struct load *l);

/* report.c: the result as JSON ----------------------------------------------
 */

int report(struct load *l, bool good, FILE *out);

#endif
