/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making changes of metadata durable without writing anybody's data. The object
 * is the meta_group of a volume: threads that changed something wait for a turn
 * that begins after their change, and one of them forces the log for all. Used
 * by worker threads only: it blocks.
 *
 * XFS and ext4 have one log, written in order: syncing an inode whose change is
 * among the newest makes all earlier changes durable, whatever they were. The
 * nameless file that probed the volume is such an inode. An fsync of the
 * changed file would do as well, but write its dirty data first. Elsewhere
 * (btrfs logs each file apart) the object itself is synced.
 */
#include "io/fault.h"
#include "io/volume.h"

#include <fcntl.h>
#include <stdio.h>

void
meta_group_init(struct meta_group *g)
{
	pthread_mutex_init(&g->mutex, NULL);
	pthread_cond_init(&g->cond, NULL);
}

void
meta_group_fini(struct meta_group *g)
{
	pthread_cond_destroy(&g->cond);
	pthread_mutex_destroy(&g->mutex);
}

static int
sync_by_path(int fd)
{
	char path[64];
	int again, r = 0;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (again < 0)
		return -errno;
	if (fsync(again) != 0)
		r = -errno;
	close(again);
	return r;
}

/* The object alone; where it cannot be opened (a symlink, a device, no right
 * to read it) the whole file system. */
static int
sync_object(struct volume *v, int fd)
{
	struct stat st;
	int r = -EINVAL;

	if (fstat(fd, &st) != 0)
		return -errno;
	if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) {
		r = fsync(fd) == 0 ? 0 : -errno;
		if (r == -EBADF) /* O_PATH */
			r = sync_by_path(fd);
	}
	if (r == -EIO || r == -ENOSPC || r == -EDQUOT || r == 0)
		return r;
	return syncfs(v->root_fd) == 0 ? 0 : -errno;
}

/*
 * One log force. The nameless inode is changed, so that it is part of the
 * newest transactions, and synced: the log is written in order, so all that
 * changed before is durable with it, and no other file's data is written. The
 * times are "now" because that needs no more than the right to write to it,
 * whoever this thread acts as.
 */
static int
force_log(struct volume *v)
{
	int r = fault_point(OP_METASYNC, NULL);

	count_add(&v->shared->counters.meta_syncs, 1);
	if (r != 0)
		return r;
	if (futimens(v->meta_fd, NULL) != 0 || fsync(v->meta_fd) != 0)
		return -errno;
	return 0;
}

/* Wait for a turn that begins after now. */
static int
meta_sync(struct volume *v)
{
	struct meta_group *g = &v->meta;
	uint64_t mine;
	int r;

	pthread_mutex_lock(&g->mutex);
	mine = g->begun + 1;
	while (g->done < mine) {
		if (g->busy) {
			pthread_cond_wait(&g->cond, &g->mutex);
			continue;
		}
		g->busy = true;
		g->begun++;
		pthread_mutex_unlock(&g->mutex);
		r = force_log(v);
		pthread_mutex_lock(&g->mutex);
		g->busy = false;
		g->done = g->begun;
		if (r != 0) {
			g->failed = g->done;
			g->error = r;
		}
		pthread_cond_broadcast(&g->cond);
	}
	/* A later turn's failure counts as well: it cannot be told apart. */
	r = g->failed >= mine ? g->error : 0;
	pthread_mutex_unlock(&g->mutex);
	return r;
}

int
volume_sync_metadata(struct volume *v, int fd)
{
	int r;

	count_add(&v->shared->counters.meta_sync_requests, 1);
	if (v->meta_fd < 0)
		return sync_object(v, fd);
	r = meta_sync(v);
	/* Changed rights or a frozen quota are no reason to promise less. */
	return r == 0 || r == -EIO ? r : sync_object(v, fd);
}
