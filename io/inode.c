/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all open files of one inode share: its ranges in flight, edges, errors
 * and sync. The object is struct inode, made when the first file of it is
 * opened and freed with the last; any thread uses it, under its mutex, which is
 * held for moments. Here: its life, the waiting for ranges, the holding back of
 * writers for a truncation, and the brackets for wcc_data (RFC 1813, 2.6).
 */
#include "io/compat.h"
#include "io/file.h"
#include "io/reactor.h"

#include <stdlib.h>
#include <string.h>

struct inode *
inode_new(struct file *first, const struct stat *st)
{
	struct inode *i = calloc(1, sizeof(*i));

	if (i == NULL)
		return NULL;
	i->cache = first->cache;
	i->volume = first->volume;
	volume_get(i->volume);
	i->dev = st->st_dev;
	i->ino = st->st_ino;
	LIST_INIT(&i->files);
	pthread_mutex_init(&i->mutex, NULL);
	pthread_cond_init(&i->cond, NULL);
	edge_init(&i->edges, page_bytes());
	strand_init(&i->strand);
	group_init(&i->job.group);
	return i;
}

void
inode_free(struct inode *i)
{
	if (i == NULL)
		return;
	assert(i->ranges.head == NULL && !i->job.busy && !i->frozen);
	assert(i->job.waiting == NULL && i->job.held == NULL);
	edge_fini(&i->edges);
	free(i->learned);
	strand_fini(&i->strand);
	group_fini(&i->job.group);
	volume_put(i->volume);
	pthread_cond_destroy(&i->cond);
	pthread_mutex_destroy(&i->mutex);
	free(i);
}

/* ranges ------------------------------------------------------------------- */

static void
lock_ready(struct message *m)
{
	struct range_lock *l = container_of(m, struct range_lock, msg);

	l->ready(l);
}

bool
inode_lock(struct inode *i, struct range_lock *l)
{
	bool granted;

	l->msg.run = lock_ready;
	pthread_mutex_lock(&i->mutex);
	granted = range_enter(&i->ranges, l);
	if (!granted)
		l->since_ns = clock_ns();
	pthread_mutex_unlock(&i->mutex);
	return granted;
}

void
inode_unlock(struct inode *i, struct range_lock *l)
{
	struct range_lock *w, *next;

	pthread_mutex_lock(&i->mutex);
	w = range_leave(&i->ranges, l);
	/* A thread looks at granted itself, under the mutex; its lock is not to
	 * be touched after that. */
	for (struct range_lock **p = &w; *p != NULL;) {
		if ((*p)->reactor == NULL) {
			pthread_cond_broadcast(&i->cond);
			*p = (*p)->wake;
		} else {
			p = &(*p)->wake;
		}
	}
	pthread_mutex_unlock(&i->mutex);
	for (; w != NULL; w = next) {
		next = w->wake; /* once posted, it is not ours */
		reactor_post(w->reactor, &w->msg);
	}
}

bool
inode_cached(struct file *f, uint64_t offset, uint64_t bytes)
{
	struct inode *i = f->inode;
	uint64_t all = cached_pages(f->fd, offset, bytes), own;

	if (all == 0)
		return false;
	pthread_mutex_lock(&i->mutex);
	own = edge_pages_in(&i->edges, offset, offset + bytes);
	pthread_mutex_unlock(&i->mutex);
	return all > own;
}

void
file_freeze(struct file *f)
{
	struct inode *i = f->inode;

	pthread_mutex_lock(&i->mutex);
	while (i->frozen)
		pthread_cond_wait(&i->cond, &i->mutex);
	i->frozen = true;
	memset(&i->freeze, 0, sizeof(i->freeze));
	range_add(&i->freeze, RANGE_EXCLUSIVE, 0, UINT64_MAX);
	(void)range_enter(&i->ranges, &i->freeze);
	while (!i->freeze.granted)
		pthread_cond_wait(&i->cond, &i->mutex);
	pthread_mutex_unlock(&i->mutex);
	join_write_out(i);
}

void
file_thaw(struct file *f)
{
	struct inode *i = f->inode;

	/* A new size leaves a part-zeroed page behind. */
	ledger_dirty(f);
	inode_unlock(i, &i->freeze);
	pthread_mutex_lock(&i->mutex);
	assert(i->frozen);
	i->frozen = false;
	pthread_cond_broadcast(&i->cond);
	pthread_mutex_unlock(&i->mutex);
}

/* brackets ----------------------------------------------------------------- */

void
file_begin(struct file *f, struct file_bracket *b)
{
	struct inode *i = f->inode;

	pthread_mutex_lock(&i->mutex);
	b->serial = ++i->brackets_begun;
	b->overlapped = i->brackets_open++ > 0;
	pthread_mutex_unlock(&i->mutex);
}

bool
file_end(struct file *f, struct file_bracket *b)
{
	struct inode *i = f->inode;
	bool alone;

	pthread_mutex_lock(&i->mutex);
	assert(i->brackets_open > 0);
	i->brackets_open--;
	alone = !b->overlapped && b->serial == i->brackets_begun;
	pthread_mutex_unlock(&i->mutex);
	return alone;
}
