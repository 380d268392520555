/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages on their way out of the page cache: written back without a sync, and
 * dropped. The object is what edge_take has set aside in the inode's edge table
 * for one turn of its sync_job (sync.c), whose thread alone touches it until
 * writeback_put_out; or, for writeback_start, what is fresh. A result goes to
 * whoever asked: what it means is not known here.
 *
 * sync_file_range(2), posix_fadvise(2).
 */
#include "io/sync.h"

#include "io/compat.h"
#include "io/fault.h"
#include "io/trace.h"

#include <fcntl.h>

#define DROP_TRIES    20
#define DROP_PAUSE_US 1000

#define WRITE_AND_WAIT                                                         \
	(SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |                 \
	 SYNC_FILE_RANGE_WAIT_AFTER)

static int
flush_runs(struct file *f, const struct edge_run *run, unsigned runs,
	   unsigned flags)
{
	for (unsigned n = 0; n < runs; n++) {
		int r = fault_point(OP_FLUSH, NULL);

		if (r == 0 &&
		    sync_file_range(f->fd, (off64_t)run[n].start,
				    (off64_t)(run[n].end - run[n].start),
				    flags) != 0)
			r = -errno;
		if (r != 0)
			return r;
	}
	return 0;
}

static unsigned
fresh_runs(struct inode *i, struct edge_run *run)
{
	unsigned n;

	pthread_mutex_lock(&i->mutex);
	n = edge_runs(&i->edges, run, EDGE_RUNS_MAX);
	pthread_mutex_unlock(&i->mutex);
	return n;
}

/* What was taken belongs to this turn: nobody else touches it. Then, before the
 * turn drops pages, what has come in meanwhile is started, so that the device
 * has something to do. */
int
writeback_turn(struct sync_turn *t)
{
	const struct edge_table *e = &t->file->inode->edges;
	struct edge_run run[EDGE_RUNS_MAX];
	int r = 0;

	if (e->runs == 0)
		return 0;
	count_add(&volume_counters(t->file->volume)->flushes, 1);
	if (e->runs > 1)
		r = flush_runs(t->file, e->run, e->runs, SYNC_FILE_RANGE_WRITE);
	if (r == 0)
		r = flush_runs(t->file, e->run, e->runs, WRITE_AND_WAIT);
	if (r == 0)
		r = flush_runs(t->file, run, fresh_runs(t->file->inode, run),
			       SYNC_FILE_RANGE_WRITE);
	return r;
}

static bool
is_busy(struct inode *i)
{
	bool busy;

	pthread_mutex_lock(&i->mutex);
	busy = i->job.busy;
	pthread_mutex_unlock(&i->mutex);
	return busy;
}

uint64_t
writeback_start(struct file *f)
{
	struct edge_run run[EDGE_RUNS_MAX];
	/* Its turn writes by itself, or deals with a failure. */
	unsigned runs = is_busy(f->inode) ? 0 : fresh_runs(f->inode, run);
	uint64_t bytes = 0;
	int r = flush_runs(f, run, runs, SYNC_FILE_RANGE_WRITE);

	if (r != 0) {
		pthread_mutex_lock(&f->inode->mutex);
		f->inode->job.error = r; /* the next turn deals with it */
		pthread_mutex_unlock(&f->inode->mutex);
	}
	for (unsigned n = 0; n < runs; n++)
		bytes += run[n].end - run[n].start;
	return bytes;
}

void
writeback_put_out(struct inode *i)
{
	pthread_mutex_lock(&i->mutex);
	edge_put_out(&i->edges);
	pthread_mutex_unlock(&i->mutex);
}

void
writeback_drop(struct sync_turn *t)
{
	struct inode *i = t->file->inode;
	struct edge_table *e = &i->edges;
	uint64_t bytes = 0;

	for (unsigned n = 0; n < e->outs; n++) {
		uint64_t len = e->out[n].end - e->out[n].start;

		(void)posix_fadvise(t->file->fd, (off_t)e->out[n].start,
				    (off_t)len, POSIX_FADV_DONTNEED);
		trace_edge_drop(file_id(t->file), e->out[n].start,
				e->out[n].end, len / e->page);
		bytes += len;
	}
	count_add(&volume_counters(t->file->volume)->pages_dropped,
		  bytes / e->page);
	writeback_put_out(i);
}

/* Who looks at a page at that moment (the flusher, a local reader) keeps it
 * from being dropped; who has it mapped does for good. */
void
writeback_drop_all(struct file *f)
{
	for (unsigned n = 0; n < DROP_TRIES; n++) {
		(void)posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
		if (cached_pages(f->fd, 0, 0) == 0)
			return;
		usleep(DROP_PAUSE_US);
	}
}
