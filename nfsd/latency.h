/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long calls took, and how many bytes they moved: a cell for each client,
 * export and procedure that was seen, with a histogram. What shard.c (which
 * owns one struct latency a reactor), call_note.c (which notes calls) and those
 * who read them share.
 */
#ifndef NVNFSD_LATENCY_H
#define NVNFSD_LATENCY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Buckets: eight to an octave of time, so that a value is known to one part in
 * eight; from 256 ns, the unit, to 2^28 units (69 s), what is longer in the
 * last.
 */
#define LATENCY_UNIT_SHIFT 8
#define LATENCY_SUB_BITS   3
#define LATENCY_OCTAVES    28
#define LATENCY_BUCKETS                                                        \
	((LATENCY_OCTAVES - LATENCY_SUB_BITS + 1) << LATENCY_SUB_BITS)

/* NFS's procedures, then MOUNT's (of all versions), then NFSACL's, then
 * RQUOTA's, then those that NLM has. */
#define LATENCY_MOUNT  22u
#define LATENCY_ACL    30u
#define LATENCY_RQUOTA 33u
#define LATENCY_NLM    36u
#define LATENCY_PROCS  57u

/* Cells of a shard: beyond them what was not seen for long counts as client 0,
 * "others". */
#define LATENCY_CELLS 1024u

/* What a cell is for. client 0: others. export_id 0: none, or others. */
struct latency_key {
	uint64_t export_id;
	uint32_t client;
	uint32_t proc;
};

/* One call that has been replied to. */
struct latency_call {
	struct latency_key key;
	uint64_t ns;
	uint64_t bytes_in, bytes_out; /* payload of WRITE and READ */
	bool failed;
};

/* A cell as it was at one time; also sums of such. */
struct latency_sum {
	struct latency_key key;
	uint64_t calls, failed, bytes_in, bytes_out, ns;
	uint64_t bucket[LATENCY_BUCKETS];
};

struct latency;
/* NULL: no memory. */
struct latency *latency_new(void);
void latency_free(struct latency *l);
/* The owner's thread only. now_ns orders what was seen by age. */
void latency_note(struct latency *l, const struct latency_call *c,
		  uint64_t now_ns);
/* Any thread, while the owner notes. each is told every cell that counted
 * something; it may be told one twice, with again, when the table changed
 * meanwhile: then it is to forget what it was told. */
struct latency_reader {
	void (*each)(struct latency_reader *r, const struct latency_sum *s);
	void (*again)(struct latency_reader *r);
};
void latency_read(struct latency *l, struct latency_reader *r);

unsigned latency_bucket(uint64_t ns);
/* The first value of a bucket, also of the one after the last. */
uint64_t latency_bucket_ns(unsigned bucket);
void latency_add(struct latency_sum *to, const struct latency_sum *s);
/* to less what it was before, never below 0. */
void latency_subtract(struct latency_sum *to, const struct latency_sum *before);
/* q in thousandths (999: p99.9): the time below which so many were; 0 where
 * there is none. */
uint64_t latency_quantile(const struct latency_sum *s, unsigned q);

#endif
