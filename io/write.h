/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to write.c and piece.c.
 */
#ifndef NVNFSD_IO_WRITE_H
#define NVNFSD_IO_WRITE_H

#include "io/file.h"

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
