/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to sync.c, ledger.c and writeback.c: a turn of an inode's sync_job.
 */
#ifndef NVNFSD_IO_SYNC_H
#define NVNFSD_IO_SYNC_H

#include "io/file.h"

/* ledger.c ----------------------------------------------------------------- */

/* With the inode's mutex held: */
/* A buffered piece has landed. True: enough waits for a flush to be due. */
bool ledger_add(struct inode *i, uint64_t start, uint64_t end, bool drop);
/* A turn begins: what it will have written back (all: everything; sync: by its
 * sync) is set aside in the edge table. How many bytes that were fresh, to be
 * released at its end. */
int64_t ledger_take(struct inode *i, bool all, bool sync);

/* writeback.c -------------------------------------------------------------- */

/* Blocks: write back what the turn has taken, and then start what has come in
 * meanwhile. 0 or -errno. */
int writeback_turn(struct sync_turn *t);
/* Drop the pages that the turn has found complete, and put them out. */
void writeback_drop(struct sync_turn *t);
/* What was set aside for a turn is so no more. */
void writeback_put_out(struct inode *i);
/* Blocks: drop all clean pages of the file. */
void writeback_drop_all(struct file *f);

#endif
