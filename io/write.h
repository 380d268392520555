/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to write.c, write_choose.c and piece.c: one WRITE as they share it.
 */
#ifndef NVNFSD_IO_WRITE_H
#define NVNFSD_IO_WRITE_H

#include "io/file.h"

static inline uint64_t
write_end(const struct io_write *w)
{
	return w->offset + w->bytes;
}

/* How stable it is to be, with the export's floor. */
static inline enum io_stable
write_wanted(const struct io_write *w)
{
	return w->stable > w->policy.stable_floor ? w->stable
						  : w->policy.stable_floor;
}

static inline struct volume_counters *
write_counters(const struct io_write *w)
{
	return volume_counters(w->file->volume);
}

/* write_choose.c ----------------------------------------------------------- */

/* Before anything is waited for: fills policy, split, atomic, drop, joins (with
 * the memory for it) and buffered_rwf, and counts it. */
void write_choose(struct io_write *w);
/* Does what waits in memory lie below it? That is older and goes first. */
bool write_meets_joined(const struct io_write *w);
bool write_extends(const struct io_write *w);
/* Do others have its middle in the page cache? */
bool write_is_cached(const struct io_write *w);
/* With its ranges: is its middle to be stable when it is written, without a
 * sync? */
bool write_goes_through(const struct io_write *w);
/* Likewise: is all of it, with its sync, best done by one thread? */
bool write_goes_solo(const struct io_write *w);

/* piece.c ------------------------------------------------------------------ */

void piece_init(struct io_write *w, struct io_piece *p, uint64_t offset,
		uint32_t bytes, bool direct);
int piece_fd(const struct io_piece *p);
/* A direct piece needs slots of its device. True: it may go; else p->slot.ready
 * comes, and then it may. */
bool piece_slot_take(struct io_piece *p);
/* The same where the caller blocks in its I/O. */
void piece_slot_force(struct io_piece *p);
void piece_slot_give(struct io_piece *p);
/* Blocks: write the rest, or what one call takes of it. The result. */
int piece_call(struct io_piece *p);
/* Take the result of a call: 1: issue what is left; 0: all is written;
 * -errno: no more will be. */
int piece_judge(struct io_piece *p, int res);
/* p has ended so (0 or -errno): what that means for its WRITE and its pages. */
void piece_note(struct io_piece *p, int error);
/* How much of the middle the next chunk takes: what the device takes at once,
 * cut where the device likes it. */
uint32_t write_chunk_bytes(const struct io_write *w);

#endif
