/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of open files, and the life of the cache that holds them. A file is
 * closed only after a checked sync, for close() itself tells nothing, and only
 * if nobody has found it again meanwhile: it can be found until its last
 * moment. A file without a name needs no sync. On worker threads (and, at the
 * end, the engine's own): closing blocks.
 */
#include "io/file.h"
#include "io/flusher.h"
#include "io/reactor.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define FILES_DEFAULT 4096u
#define FILE_FDS      3u    /* descriptors a file */
#define OTHER_FDS     1024u /* left for sockets and the rest */
#define IDLE_NS_MAX   (5 * NS_PER_S)
#define BUCKETS_MIN   256u
#define BUCKETS_MAX   (1u << 20)
#define END_NS_MAX    (60ull * NS_PER_S) /* then a reference was lost */

int
file_shut(struct file *f)
{
	struct file_cache *c = f->cache;
	bool gone;
	int r = 0;

	if (file_has_name(f))
		r = sync_last(f);
	pthread_mutex_lock(&c->mutex);
	f->closing = false;
	c->closing--;
	gone = f->uses == f->uses_closing;
	if (gone) {
		f->state = FILE_ENDED;
		c->ending++;
	}
	if (gone && !f->forgotten)
		LIST_REMOVE(f, in_bucket);
	if (!gone && f->refs == 0)
		cache_rest(f);
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->mutex);
	if (gone)
		file_end_counted(f);
	return r;
}

static void
expire_run(struct work *w)
{
	struct file_cache *c = container_of(w, struct file_cache, expire);
	struct file *f;

	pthread_mutex_lock(&c->mutex);
	for (;;) {
		uint64_t now = clock_ns();

		f = cache_take_idle(c, NULL,
				    now > IDLE_NS_MAX ? now - IDLE_NS_MAX : 0);
		if (f == NULL)
			break;
		pthread_mutex_unlock(&c->mutex);
		(void)file_shut(f); /* told by the ledger */
		pthread_mutex_lock(&c->mutex);
	}
	c->expiring = false;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->mutex);
}

void
file_expire(struct engine *e)
{
	struct file_cache *c = engine_files(e);
	const struct file *f;
	bool start;

	pthread_mutex_lock(&c->mutex);
	f = TAILQ_FIRST(&c->idle);
	start = f != NULL && clock_ns() - f->idle_since_ns >= IDLE_NS_MAX &&
		cache_want_expire(c);
	pthread_mutex_unlock(&c->mutex);
	if (start)
		work_submit(e, WORK_DATA, &c->expire);
	if (atomic_load(&c->learns) && !atomic_exchange(&c->looking, true))
		work_submit(e, WORK_META, &c->look_work);
	if (atomic_load(&c->join_bytes) > 0 &&
	    !atomic_exchange(&c->join_flushing, true))
		work_submit(e, WORK_META, &c->join_work);
}

static void
look_at_memory(struct file_cache *c)
{
	struct memory m;

	memory_look(&m);
	atomic_store(&c->memory_bytes, m.room);
	atomic_store(&c->memory_pressure, m.pressure);
}

/* The end of c waits for it. */
static void
work_over(struct file_cache *c, _Atomic bool *runs)
{
	pthread_mutex_lock(&c->mutex);
	atomic_store(runs, false);
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->mutex);
}

static void
look_run(struct work *w)
{
	struct file_cache *c = container_of(w, struct file_cache, look_work);

	look_at_memory(c);
	work_over(c, &c->looking);
}

/* Waits for pieces in flight: not on a thread of the data pool. */
static void
join_run(struct work *w)
{
	struct file_cache *c = container_of(w, struct file_cache, join_work);

	join_flush_old(c, false);
	work_over(c, &c->join_flushing);
}

/* f's inode has no name any more: nobody shall find it. */
static bool
forget(struct file *f)
{
	struct file_cache *c = f->cache;

	if (f->state != FILE_READY || f->forgotten || file_has_name(f))
		return false;
	LIST_REMOVE(f, in_bucket);
	f->forgotten = true;
	if (f->idle) {
		TAILQ_REMOVE(&c->idle, f, in_idle);
		f->idle = false;
		cache_rest(f);
		return true;
	}
	return false;
}

void
file_forget(struct engine *e, const struct volume *v, uint64_t ino)
{
	struct file_cache *c = engine_files(e);
	bool expire = false;
	struct inode *i;

	pthread_mutex_lock(&c->mutex);
	LIST_FOREACH (i, &cache_inodes(c, ino)->head, in_cache) {
		struct file *f;

		if (i->ino != ino)
			continue;
		LIST_FOREACH (f, &i->files, in_inode)
			if (forget(f))
				expire = true;
	}
	expire = expire && cache_want_expire(c);
	pthread_mutex_unlock(&c->mutex);
	if (expire)
		work_submit(e, WORK_DATA, &c->expire);
}

static struct timespec
timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S),
				  .tv_nsec = (long)(ns % NS_PER_S) };
}

/* Files of v (NULL: all). */
static int
close_all(struct file_cache *c, struct volume *v, uint64_t deadline_ns)
{
	struct timespec until = timespec_of(deadline_ns);
	int first = 0, r = 0;

	if (atomic_load(&c->join_bytes) > 0)
		join_flush_old(c, true);
	pthread_mutex_lock(&c->mutex);
	while ((v == NULL ? c->count : *volume_files(v)) > 0) {
		struct file *f = cache_take_idle(c, v, UINT64_MAX);

		if (f != NULL) {
			pthread_mutex_unlock(&c->mutex);
			r = file_shut(f);
			if (first == 0)
				first = r;
			pthread_mutex_lock(&c->mutex);
			continue;
		}
		r = pthread_cond_timedwait(&c->changed, &c->mutex, &until);
		if (r == ETIMEDOUT) {
			first = first == 0 ? -EBUSY : first;
			break;
		}
	}
	pthread_mutex_unlock(&c->mutex);
	return first;
}

int
file_close_all(struct engine *e, struct volume *v, uint64_t deadline_ns)
{
	return close_all(engine_files(e), v, deadline_ns);
}

/* life --------------------------------------------------------------------- */

static unsigned
default_files(void)
{
	struct rlimit l;
	rlim_t room;

	if (getrlimit(RLIMIT_NOFILE, &l) != 0 || l.rlim_cur == RLIM_INFINITY)
		return FILES_DEFAULT;
	room = l.rlim_cur > 2ull * OTHER_FDS ? l.rlim_cur - OTHER_FDS
					     : l.rlim_cur / 2;
	room /= FILE_FDS;
	if (room < 1)
		return 1;
	return room > FILES_DEFAULT ? FILES_DEFAULT : (unsigned)room;
}

int
file_cache_new(struct file_cache **ret, struct engine *e, unsigned files_max)
{
	struct file_cache *c = calloc(1, sizeof(*c));
	pthread_condattr_t attr;
	unsigned buckets = BUCKETS_MIN;

	if (c == NULL)
		return -ENOMEM;
	c->engine = e;
	c->files_max = files_max != 0 ? files_max : default_files();
	while (buckets < c->files_max && buckets < BUCKETS_MAX)
		buckets *= 2;
	c->mask = buckets - 1;
	c->files = calloc(buckets, sizeof(*c->files));
	c->inodes = calloc(buckets, sizeof(*c->inodes));
	if (c->files == NULL || c->inodes == NULL) {
		free(c->files);
		free(c->inodes);
		free(c);
		return -ENOMEM;
	}
	TAILQ_INIT(&c->idle);
	LIST_INIT(&c->flushers);
	pthread_mutex_init(&c->flushers_mutex, NULL);
	c->expire.run = expire_run;
	c->join_work.run = join_run;
	c->look_work.run = look_run;
	look_at_memory(c);
	pthread_mutex_init(&c->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->changed, &attr);
	pthread_condattr_destroy(&attr);
	*ret = c;
	return 0;
}

void
file_cache_free(struct file_cache *c)
{
	if (c == NULL)
		return;
	/* Syncs that have told their callers may still be dropping pages. */
	(void)close_all(c, NULL, clock_ns() + END_NS_MAX);
	flushers_end(c);
	pthread_mutex_lock(&c->mutex);
	while (c->expiring || atomic_load(&c->looking) ||
	       atomic_load(&c->join_flushing))
		pthread_cond_wait(&c->changed, &c->mutex);
	assert(c->count == 0 && c->closing == 0 && c->ending == 0);
	assert(c->edge_spans == 0 && c->edge_inodes == 0);
	pthread_mutex_unlock(&c->mutex);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->flushers_mutex);
	pthread_mutex_destroy(&c->mutex);
	free(c->files);
	free(c->inodes);
	free(c);
}
