/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files in which something is locked, each with a descriptor that keeps
 * local processes out. A struct lock_file is made when a call needs it, opened
 * with the server's rights, and closed when the last thing of it is gone.
 *
 * The descriptor holds, for every byte, the strongest of the locks that clients
 * have there, so that a local process meets what another client would. Its
 * locks go with it: after a crash the kernel lets local processes in at once.
 * Where it cannot be open for writing, because the file is immutable or being
 * executed, exclusive locks are shared ones to local processes.
 *
 * fcntl(2), "Open file description locks".
 */
#include "nfsd/lock_manager.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static_assert(sizeof(struct fh) == sizeof(uint64_t) + 2 * sizeof(uint32_t) +
					   IO_HANDLE_BYTES_MAX +
					   IO_HANDLE_BYTES_MAX % 8,
	      "only the end of a struct fh may be padding");

#define HOST_FILES_MAX (LOCKS_FILES_MAX / LOCKS_HOST_PART)

/* The table of files ---------------------------------------------------------
 */

/* What is behind the last byte is of no meaning, but is hashed. */
static void
key_make(struct fh *key, const struct fh *fh)
{
	memset(key, 0, sizeof(*key));
	key->export_id = fh->export_id;
	key->type = fh->type;
	key->bytes = fh->bytes;
	memcpy(key->data, fh->data, fh->bytes);
}

/* NOLINTBEGIN: uthash's macros */
static struct lock_file *
file_of(struct locks *l, const struct fh *key)
{
	struct lock_file *f;

	HASH_FIND(hh, l->files, key, sizeof(*key), f);
	return f;
}

static bool
file_add(struct locks *l, struct lock_file *f)
{
	HASH_ADD(hh, l->files, fh, sizeof(f->fh), f);
	return f->hh.tbl != NULL;
}

static void
file_remove(struct locks *l, struct lock_file *f)
{
	HASH_DEL(l->files, f);
}

unsigned
lock_files_count(const struct locks *l)
{
	return HASH_COUNT(l->files);
}

void
lock_files_each(struct locks *l,
		void (*visit)(struct locks *l, struct lock_file *f, void *arg),
		void *arg)
{
	struct lock_file *f, *next;

	HASH_ITER(hh, l->files, f, next)
	visit(l, f, arg);
}
/* NOLINTEND */

struct lock_file *
lock_file_find(struct locks *l, const struct fh *fh)
{
	struct lock_file *f;
	struct fh key;

	key_make(&key, fh);
	f = file_of(l, &key);
	if (f)
		f->pins++;
	return f;
}

static bool
file_is_idle(const struct lock_file *f)
{
	return f->pins == 0 && f->table.count == 0 && TAILQ_EMPTY(&f->waits) &&
	       TAILQ_EMPTY(&f->grants) && LIST_EMPTY(&f->shares);
}

void
lock_file_put(struct locks *l, struct lock_file *f)
{
	static const struct lock_span all = { 0, LOCK_LAST_MAX };

	f->pins--;
	if (!file_is_idle(f))
		return;
	if (!f->gone)
		file_remove(l, f);
	/* Until it is closed nothing of it shall be in the way of another
	 * descriptor of the same file. */
	lock_file_release(f, &all);
	SLIST_INSERT_HEAD(&l->dead, f, dead_link);
}

/* Opening ------------------------------------------------------------------ */

static bool
may_do_for_reading(int error)
{
	return error == -EACCES || error == -EPERM || error == -EROFS ||
	       error == -ETXTBSY;
}

/* As the server, whoever asks: 0 with fd, or -errno. */
static int
open_as_server(struct lock_file *f, const struct export *e)
{
	int root = volume_root_fd(e->rw ? e->rw : e->ro);
	int fd = e->rw ? fh_open(&f->fh, root, O_RDWR) : -EROFS;

	f->writable = fd >= 0;
	f->read_only = fd == -EROFS;
	if (may_do_for_reading(fd))
		fd = fh_open(&f->fh, root, O_RDONLY);
	f->fd = fd;
	return fd < 0 ? fd : 0;
}

static int
open_status(int error)
{
	if (error == -ESTALE)
		return NLM4_STALE_FH;
	if (error == -EMFILE || error == -ENFILE || error == -ENOMEM)
		return NLM4_DENIED_NOLOCKS;
	return NLM4_FAILED;
}

/* Without the lock, since it may wait for a disk. */
static int
open_without(struct locks *l, struct lock_file *f)
{
	struct export_table *t = l->exports;
	const struct export *e = export_find(t, f->fh.export_id);
	int r;

	if (!e)
		return NLM4_STALE_FH;
	export_table_get(t);
	pthread_mutex_unlock(&l->lock);
	r = open_as_server(f, e);
	export_table_put(t);
	pthread_mutex_lock(&l->lock);
	if (r < 0)
		return open_status(r);
	/* It may have been withdrawn meanwhile. */
	return export_find(l->exports, f->fh.export_id) ? NLM4_GRANTED
							: NLM4_STALE_FH;
}

static struct lock_file *
file_new(const struct fh *fh)
{
	struct lock_file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	key_make(&f->fh, fh);
	f->fd = -1;
	f->pins = 1;
	f->gone = true;
	lock_table_init(&f->table);
	TAILQ_INIT(&f->waits);
	TAILQ_INIT(&f->grants);
	LIST_INIT(&f->shares);
	return f;
}

/* In half of all there may be a host may have more than its part. It has no
 * more files than it has things there. */
static bool
may_open(const struct locks *l, const struct lock_peer *p)
{
	unsigned n = lock_files_count(l);

	if (n < LOCKS_FILES_MAX / 2 || p == NULL)
		return n < LOCKS_FILES_MAX;
	return n < LOCKS_FILES_MAX &&
	       p->ranges + p->waits + p->shares < HOST_FILES_MAX;
}

int
lock_file_get(struct locks *l, const struct fh *fh, const struct lock_peer *p,
	      struct lock_file **ret)
{
	struct lock_file *f = lock_file_find(l, fh), *other;
	int r;

	if (f) {
		*ret = f;
		return NLM4_GRANTED;
	}
	if (!may_open(l, p))
		return NLM4_DENIED_NOLOCKS;
	f = file_new(fh);
	if (!f)
		return NLM4_DENIED_NOLOCKS;
	r = open_without(l, f);
	other = r == NLM4_GRANTED ? lock_file_find(l, fh) : NULL;
	if (r == NLM4_GRANTED && !other) {
		f->gone = !file_add(l, f);
		if (!f->gone) {
			*ret = f;
			return NLM4_GRANTED;
		}
		r = NLM4_DENIED_NOLOCKS;
	}
	lock_file_put(l, f);
	*ret = other;
	return r;
}

/* On the file itself ------------------------------------------------------- */

static int
ofd_set(const struct lock_file *f, const struct lock_span *span, short type)
{
	struct flock k = { .l_type = type,
			   .l_whence = SEEK_SET,
			   .l_start = (off_t)span->first };

	/* 0: to the end. */
	if (span->last < LOCK_LAST_MAX)
		k.l_len = (off_t)(span->last - span->first + 1);
	return fcntl(f->fd, F_OFD_SETLK, &k) < 0 ? -errno : 0;
}

int
lock_file_take(struct lock_file *f, const struct lock_span *span,
	       bool exclusive)
{
	int r = ofd_set(f, span, exclusive && f->writable ? F_WRLCK : F_RDLCK);

	return r == -EACCES ? -EAGAIN : r;
}

static void
release_gap(const struct lock_span *gap, void *arg)
{
	const struct lock_file *f = arg;

	/* To cut a range in two the kernel may want memory that it has not.
	 * Then more stays locked than need be, until the file is closed. */
	(void)ofd_set(f, gap, F_UNLCK);
}

void
lock_file_release(struct lock_file *f, const struct lock_span *span)
{
	if (f->fd >= 0)
		lock_table_gaps(&f->table, span, release_gap, f);
}

bool
lock_file_local(struct lock_file *f, const struct lock_span *span,
		bool exclusive, struct nlm4_holder *holder)
{
	struct flock k = { .l_type = exclusive ? F_WRLCK : F_RDLCK,
			   .l_whence = SEEK_SET,
			   .l_start = (off_t)span->first };

	if (span->last < LOCK_LAST_MAX)
		k.l_len = (off_t)(span->last - span->first + 1);
	if (fcntl(f->fd, F_OFD_GETLK, &k) < 0 || k.l_type == F_UNLCK)
		return false;
	holder->exclusive = k.l_type == F_WRLCK;
	holder->svid = (uint32_t)k.l_pid;
	holder->oh_bytes = 0;
	holder->l_offset = (uint64_t)k.l_start;
	holder->l_len = (uint64_t)k.l_len;
	return true;
}

/* Changes ------------------------------------------------------------------ */

/* after - before ranges of this owner came or went. */
static void
count_ranges(struct locks *l, struct lock_owner *o, unsigned before,
	     unsigned after)
{
	o->ranges += after - before;
	o->peer->ranges += after - before;
	l->ranges += after - before;
}

void
lock_file_set(struct locks *l, struct lock_file *f, struct lock_owner *owner,
	      const struct lock_span *span, bool exclusive,
	      struct lock_spare *s)
{
	unsigned before = f->table.count;

	lock_table_set(&f->table, owner, span, exclusive, monotonic_ns(), s);
	count_ranges(l, owner, before, f->table.count);
}

void
lock_file_clear(struct locks *l, struct lock_file *f, struct lock_owner *owner,
		const struct lock_span *span, struct lock_spare *s)
{
	unsigned before = f->table.count;

	lock_table_clear(&f->table, owner, span, s);
	count_ranges(l, owner, before, f->table.count);
	lock_file_release(f, span);
}

static void
forget_ranges(struct locks *l, struct lock_file *f, bool all)
{
	struct lock_span cleared = { UINT64_MAX, 0 };
	struct lock_range *r, *next;

	for (r = TAILQ_FIRST(&f->table.ranges); r; r = next) {
		next = TAILQ_NEXT(r, link);
		if (!all && !r->owner->doomed)
			continue;
		if (r->span.first < cleared.first)
			cleared.first = r->span.first;
		if (r->span.last > cleared.last)
			cleared.last = r->span.last;
		count_ranges(l, r->owner, 1, 0);
		lock_owner_settle(r->owner);
		lock_table_remove(&f->table, r);
	}
	if (cleared.first <= cleared.last)
		lock_file_release(f, &cleared);
}

static void
forget_waits(struct locks *l, struct lock_waits *list, bool all)
{
	struct lock_wait *w, *next;
	struct lock_owner *o;

	for (w = TAILQ_FIRST(list); w; w = next) {
		next = TAILQ_NEXT(w, file_link);
		o = w->owner;
		if (!all && !o->doomed)
			continue;
		lock_wait_free(l, w);
		lock_owner_settle(o);
	}
}

static void
forget_shares(struct locks *l, struct lock_file *f, bool all)
{
	struct lock_share *s, *next;

	for (s = LIST_FIRST(&f->shares); s; s = next) {
		next = LIST_NEXT(s, link);
		if (all || s->owner->doomed)
			lock_share_free(l, s);
	}
}

void
lock_file_forget(struct locks *l, struct lock_file *f, bool all)
{
	forget_waits(l, &f->waits, all);
	forget_waits(l, &f->grants, all);
	forget_shares(l, f, all);
	forget_ranges(l, f, all);
}

void
lock_file_drop(struct locks *l, struct lock_file *f)
{
	f->pins++;
	lock_file_forget(l, f, true);
	file_remove(l, f);
	f->gone = true;
	lock_file_put(l, f);
}
