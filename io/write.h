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

/* Write so much of w from offset: write_go_on follows, from the loop. w->flying
 * counts it until then. */
void piece_start(struct io_write *w, struct io_piece *p, uint64_t offset,
		 uint32_t bytes, bool direct);
/* The same by the calling thread, which may block; it has ended on return. */
void piece_here(struct io_write *w, struct io_piece *p, uint64_t offset,
		uint32_t bytes, bool direct);
/* How much of the middle the next chunk takes: what the device takes at once,
 * cut where the device likes it. */
uint32_t write_chunk_bytes(const struct io_write *w);

/* write.c ------------------------------------------------------------------ */

/* A piece that was started has ended: what may go now? */
void write_go_on(struct io_write *w);

#endif
