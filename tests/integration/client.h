/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For integration tests of failures: an NFS client as RFC 1813, 3.3.7 and
 * 3.3.21 want it. It writes records of one file, keeps what is not stable yet,
 * sends a call again on a new connection when the old one ended, and writes
 * again what a moved verifier says may be lost. Of every byte it knows what the
 * file may hold: a record's content follows from the number of its version.
 *
 * One call is in flight at a time, so that a thread can drive many clients:
 * client_write or another starts it, client_take receives its reply.
 */
#ifndef NVNFSD_TESTS_CLIENT_H
#define NVNFSD_TESTS_CLIENT_H

#include "harness.h"

#define CLIENT_RECORDS_MAX 1024u
/* Versions of a record beyond the stable one: more could not be told apart. */
#define CLIENT_AHEAD_MAX   200u

struct client_record {
	uint64_t offset;
	uint32_t bytes;
	uint32_t sent;   /* newest version that the server may have seen */
	uint32_t acked;  /* newest that a READ has to show at least */
	uint32_t stable; /* newest that must never be lost */
	uint32_t kept;   /* acknowledged UNSTABLE and not committed; 0: none */
	uint8_t verf[8]; /* of that reply */
	bool doubtful;   /* to be written again */
};

enum client_call { CLIENT_IDLE, CLIENT_WRITE, CLIENT_COMMIT, CLIENT_READ };

struct client {
	struct harness *h;
	struct raw *raw;
	struct raw_fh root, fh;
	uint32_t salt; /* clients' contents differ by it */
	struct client_record record[CLIENT_RECORDS_MAX];
	unsigned records;
	enum client_call call; /* in flight */
	unsigned at;           /* its record */
	uint32_t version;
	int stable;
	/* of the last reply */
	int status;
	uint32_t count;
	/* since the start */
	int bad;            /* the last status that was an error */
	unsigned ends;      /* connections */
	unsigned refused;   /* replies with an error status */
	unsigned shortened; /* WRITEs and READs cut short */
	unsigned resent;    /* records that were acknowledged and then lost */
	unsigned moves;     /* of the verifier */
	unsigned done;      /* replies */
	uint8_t verf[8];
	bool has_verf;
};

/* A connection to h, and the file name below its export's root, made if it is
 * not there (tried twice). salt tells clients apart. */
void client_init(struct client *c, struct harness *h, const char *name,
		 uint32_t salt);
/* The same below another export. */
void client_init_at(struct client *c, struct harness *h, const char *path,
		    const char *name, uint32_t salt);
void client_fini(struct client *c);
/* The call that raw_build made, sent again on new connections until there is a
 * reply, which must be an accepted one. */
void client_call(struct client *c, raw_zdr_fn *decode, void *result);
/* CREATE; the nfsstat3. fh may be NULL. */
int client_create(struct client *c, const char *name, createmode3 mode,
		  struct raw_fh *fh);
/* Another record; returns its number. */
unsigned client_add(struct client *c, uint64_t offset, uint32_t bytes);

/* Start a call. write: the next version of record i (again: the same one). */
void client_write(struct client *c, unsigned i, int stable);
void client_write_again(struct client *c, unsigned i, int stable);
void client_commit(struct client *c);
void client_read(struct client *c, unsigned i);
/* Receive the reply and account for it; what a READ shows is checked. False:
 * the connection ended; client_reconnect, and take again. */
bool client_take(struct client *c);
/* To h's port; sends the call in flight again. */
void client_reconnect(struct client *c);
/* Take, over any number of connections; the status. */
int client_finish(struct client *c);
/* A record that must be written again, or -1. */
int client_doubtful(const struct client *c);
/* Is anything acknowledged UNSTABLE and not committed? */
bool client_keeps(const struct client *c);
/* COMMIT and write again until everything is stable. */
void client_settle(struct client *c);

/* Every record's bytes as path holds them: none older than what is stable. */
void client_check_file(const struct client *c, const char *path);

#endif
