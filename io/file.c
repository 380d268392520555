/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files by handle. The object is the engine's file_cache: struct files,
 * counted, found by volume and handle, kept open while idle for some seconds
 * (a least-recently-used list), and never more of them than files_max. Here:
 * finding, counting and opening; close.c ends them. Any thread may find and
 * put; workers open, since that blocks. It knows no client and no permission.
 */
#include "io/file.h"
#include "io/flusher.h"
#include "io/reactor.h"

#include <stdlib.h>
#include <string.h>

/* tables ------------------------------------------------------------------- */

static uint64_t
hash_bytes(uint64_t h, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3ull; /* FNV-1a */
	return h ^ h >> 29;
}

static struct file_list *
bucket(struct file_cache *c, const struct file_key *k)
{
	uint64_t h =
		hash_bytes((uintptr_t)k->volume, k->handle, k->handle_bytes);

	return &c->files[h & c->mask];
}

struct inode_list *
cache_inodes(struct file_cache *c, uint64_t ino)
{
	return &c->inodes[hash_bytes(0, &ino, sizeof(ino)) & c->mask];
}

static bool
same_key(const struct file_key *a, const struct file_key *b)
{
	return a->volume == b->volume && a->handle_type == b->handle_type &&
	       a->handle_bytes == b->handle_bytes &&
	       memcmp(a->handle, b->handle, a->handle_bytes) == 0;
}

static struct file *
cache_find(struct file_cache *c, const struct file_key *k)
{
	struct file *f;

	LIST_FOREACH (f, &bucket(c, k)->head, in_bucket)
		if (same_key(&f->key, k))
			return f;
	return NULL;
}

static struct inode *
cache_find_inode(struct file_cache *c, dev_t dev, uint64_t ino)
{
	struct inode *i;

	LIST_FOREACH (i, &cache_inodes(c, ino)->head, in_cache)
		if (i->ino == ino && i->dev == dev)
			return i;
	return NULL;
}

/* references; the cache's mutex is held ------------------------------------ */

static void
use(struct file *f)
{
	assert(f->state == FILE_READY);
	if (f->idle) {
		TAILQ_REMOVE(&f->cache->idle, f, in_idle);
		f->idle = false;
	}
	f->refs++;
	f->uses++;
}

void
cache_rest(struct file *f)
{
	struct file_cache *c = f->cache;

	assert(!f->idle && f->refs == 0);
	f->idle = true;
	f->idle_since_ns = f->forgotten ? 0 : clock_ns();
	if (f->forgotten)
		TAILQ_INSERT_HEAD(&c->idle, f, in_idle);
	else
		TAILQ_INSERT_TAIL(&c->idle, f, in_idle);
}

bool
cache_want_expire(struct file_cache *c)
{
	if (c->expiring)
		return false;
	c->expiring = true;
	return true;
}

struct file *
cache_take_idle(struct file_cache *c, const struct volume *v, uint64_t until_ns)
{
	struct file *f;

	TAILQ_FOREACH (f, &c->idle, in_idle) {
		if (f->idle_since_ns > until_ns)
			break;
		if (v == NULL || f->volume == v)
			break;
	}
	if (f == NULL || f->idle_since_ns > until_ns)
		return NULL;
	TAILQ_REMOVE(&c->idle, f, in_idle);
	f->idle = false;
	f->closing = true;
	f->uses_closing = f->uses;
	c->closing++;
	return f;
}

void
file_get(struct file *f)
{
	pthread_mutex_lock(&f->cache->mutex);
	assert(f->refs > 0);
	f->refs++;
	f->uses++;
	pthread_mutex_unlock(&f->cache->mutex);
}

struct file *
file_find(struct engine *e, const struct file_key *key)
{
	struct file_cache *c = engine_files(e);
	struct file *f;

	pthread_mutex_lock(&c->mutex);
	f = cache_find(c, key);
	if (f != NULL && f->state != FILE_READY)
		f = NULL;
	if (f != NULL)
		use(f);
	pthread_mutex_unlock(&c->mutex);
	return f;
}

void
file_put(struct file *f)
{
	struct file_cache *c;
	bool expire = false;

	if (f == NULL)
		return;
	c = f->cache;
	pthread_mutex_lock(&c->mutex);
	assert(f->refs > 0);
	/* While a thread closes it, that thread looks after it. */
	if (--f->refs == 0 && !f->closing) {
		cache_rest(f);
		expire = f->forgotten && cache_want_expire(c);
		pthread_cond_broadcast(&c->changed);
	}
	pthread_mutex_unlock(&c->mutex);
	if (expire)
		work_submit(c->engine, WORK_DATA, &c->expire);
}

static struct file *
use_file_of(struct inode *i)
{
	struct file *f;

	LIST_FOREACH (f, &i->files, in_inode)
		if (f->state == FILE_READY)
			break;
	if (f != NULL)
		use(f);
	return f;
}

struct file *
cache_file_of(struct inode *i)
{
	struct file *f;

	pthread_mutex_lock(&i->cache->mutex);
	f = use_file_of(i);
	pthread_mutex_unlock(&i->cache->mutex);
	return f;
}

struct file *
cache_find_file(struct file_cache *c, dev_t dev, uint64_t ino)
{
	struct file *f = NULL;
	struct inode *i;

	pthread_mutex_lock(&c->mutex);
	i = cache_find_inode(c, dev, ino);
	if (i != NULL)
		f = use_file_of(i);
	pthread_mutex_unlock(&c->mutex);
	return f;
}

/* opening ------------------------------------------------------------------ */

/* Join f to the inode that other files of it share, or to fresh. */
static void
attach(struct file *f, struct inode *fresh)
{
	struct file_cache *c = f->cache;
	struct inode *i;

	pthread_mutex_lock(&c->mutex);
	i = cache_find_inode(c, fresh->dev, fresh->ino);
	if (i == NULL) {
		i = fresh;
		LIST_INSERT_HEAD(&cache_inodes(c, i->ino)->head, i, in_cache);
		fresh = NULL;
	}
	i->refs++;
	f->inode = i;
	LIST_INSERT_HEAD(&i->files, f, in_inode);
	pthread_mutex_unlock(&c->mutex);
	inode_free(fresh);
}

static void
detach(struct file *f)
{
	struct file_cache *c = f->cache;
	struct inode *i = f->inode;
	bool last;

	if (i == NULL)
		return;
	pthread_mutex_lock(&c->mutex);
	LIST_REMOVE(f, in_inode);
	last = --i->refs == 0;
	if (last)
		LIST_REMOVE(i, in_cache);
	pthread_mutex_unlock(&c->mutex);
	f->inode = NULL;
	if (last) {
		ledger_forget(i);
		flush_forget(i);
		inode_free(i);
	}
}

static void
file_free(struct file *f)
{
	detach(f);
	file_close_fds(f);
	volume_put(f->volume);
	free(f);
}

void
file_end_counted(struct file *f)
{
	struct file_cache *c = f->cache;

	detach(f);
	file_close_fds(f);
	f->fd = f->direct_fd = f->read_fd = -1;
	pthread_mutex_lock(&c->mutex);
	c->count--;
	c->ending--;
	(*volume_files(f->volume))--;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->mutex);
	file_free(f);
}

static int
file_fill(struct file *f)
{
	struct inode *fresh;
	struct stat st;
	int r = file_open_fds(f, &st);

	if (r != 0)
		return r;
	fresh = inode_new(f, &st);
	if (fresh == NULL)
		return -ENOMEM;
	attach(f, fresh);
	return 0;
}

static struct file *
file_new(struct file_cache *c, const struct file_key *key)
{
	struct file *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return NULL;
	f->cache = c;
	f->key = *key;
	f->volume = key->volume;
	volume_get(f->volume);
	f->state = FILE_OPENING;
	f->refs = f->uses = 1;
	f->fd = f->direct_fd = f->read_fd = -1;
	return f;
}

/* With the mutex held, which it may give up meanwhile: is there room for one
 * more? 1: yes; 0: things changed, look again; -ENFILE. */
static int
make_room(struct file_cache *c)
{
	struct file *f;

	if (c->count < c->files_max)
		return 1;
	f = cache_take_idle(c, NULL, UINT64_MAX);
	if (f != NULL) {
		pthread_mutex_unlock(&c->mutex);
		(void)file_shut(f); /* told by the ledger */
		pthread_mutex_lock(&c->mutex);
		return 0;
	}
	if (c->closing + c->ending == 0)
		return -ENFILE;
	pthread_cond_wait(&c->changed, &c->mutex);
	return 0;
}

/* Find it, or reserve its place for this thread to open. */
static int
find_or_reserve(struct file_cache *c, const struct file_key *key,
		struct file *fresh, struct file **ret)
{
	struct file *f;
	int r = 0;

	pthread_mutex_lock(&c->mutex);
	for (;;) {
		f = cache_find(c, key);
		if (f != NULL && f->state == FILE_READY) {
			use(f);
			break;
		}
		if (f != NULL) { /* another thread opens it */
			pthread_cond_wait(&c->changed, &c->mutex);
			continue;
		}
		r = make_room(c);
		if (r < 0)
			break;
		if (r == 0)
			continue;
		r = 0;
		f = fresh;
		f->id = ++c->next_id;
		LIST_INSERT_HEAD(&bucket(c, key)->head, f, in_bucket);
		c->count++;
		(*volume_files(key->volume))++;
		break;
	}
	pthread_mutex_unlock(&c->mutex);
	if (r == 0)
		*ret = f;
	return r;
}

int
file_open(struct engine *e, const struct file_key *key, struct file **ret)
{
	struct file_cache *c = engine_files(e);
	struct file *fresh, *f;
	int r;

	if (key->handle_bytes > IO_HANDLE_BYTES_MAX)
		return -ESTALE;
	fresh = file_new(c, key);
	if (fresh == NULL)
		return -ENOMEM;
	r = find_or_reserve(c, key, fresh, &f);
	if (r != 0 || f != fresh) {
		file_free(fresh);
		if (r == 0)
			*ret = f;
		return r;
	}
	r = file_fill(f);
	pthread_mutex_lock(&c->mutex);
	if (r == 0) {
		f->state = FILE_READY;
	} else {
		LIST_REMOVE(f, in_bucket);
		c->ending++;
	}
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->mutex);
	if (r != 0)
		file_end_counted(f);
	else
		*ret = f;
	return r;
}

/* what callers ask --------------------------------------------------------- */

int
file_fd(const struct file *f)
{
	return f->fd;
}

bool
file_writable(const struct file *f)
{
	return f->write_error == 0;
}

struct volume *
file_volume(const struct file *f)
{
	return f->volume;
}

uint64_t
file_id(const struct file *f)
{
	return f->id;
}

unsigned
file_count(const struct engine *e)
{
	struct file_cache *c = engine_files((struct engine *)e);
	unsigned n;

	pthread_mutex_lock(&c->mutex);
	n = c->count;
	pthread_mutex_unlock(&c->mutex);
	return n;
}
