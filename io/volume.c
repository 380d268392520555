/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One exported tree as the engine sees it. The object is struct volume: made
 * by nfsd when it opens an export, counted (its open files hold it), used from
 * every thread. What is asked once is asked at its making, of a file without a
 * name in the tree's root: alignment of direct I/O (statx(2), STATX_DIOALIGN),
 * RWF_DONTCACHE and RWF_NOWAIT (pwritev2(2)), and the device's limits. That
 * file stays: making its inode durable makes every earlier change of metadata
 * durable where the file system has one log (XFS, ext4), see meta_sync.
 *
 * Counters and verifier live apart, so that two clones of one export (one
 * read-only) share them. It knows nothing of handles or clients.
 */
#include "io/compat.h"
#include "io/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sysmacros.h>

#define VOLUME_MAGIC 0x766f6c75u
#define XFS_MAGIC    0x58465342u
#define BTRFS_MAGIC  0x9123683eu
#define BEYOND       (1ll << 60) /* past the end of any file */
#define PROBE_NAMES  256         /* entries looked at for a regular file */

struct volume_shared {
	_Atomic unsigned refs;
	_Atomic uint64_t verifier;
	_Atomic uint64_t failure; /* the last that changed it */
	struct volume_counters counters;
};

/* Who waits for which turn of the log. */
struct meta_group {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	uint64_t begun, done, failed; /* turns */
	int error;                    /* of turn failed */
	bool busy;
};

struct volume {
	uint32_t magic;
	_Atomic unsigned refs;
	unsigned files;
	struct engine *engine;
	int root_fd;
	int meta_fd; /* the nameless file, or -1 */
	bool read_only;
	dev_t dev;
	void *user;
	struct volume_facts facts;
	_Atomic uint64_t policy; /* see policy_pack */
	struct volume_shared *shared;
	struct meta_group meta;
};

const char *
io_mode_name(enum io_mode m)
{
	static const char *const names[] = { [IO_BUFFERED] = "buffered",
					     [IO_DONTCACHE] = "dontcache",
					     [IO_DIRECT] = "direct" };

	assert(m <= IO_DIRECT);
	return names[m];
}

const char *
io_edges_name(enum io_edges e)
{
	static const char *const names[] = {
		[IO_EDGES_DROP] = "drop",
		[IO_EDGES_DONTCACHE] = "dontcache",
		[IO_EDGES_BUFFERED] = "buffered",
	};

	assert(e <= IO_EDGES_BUFFERED);
	return names[e];
}

/* policy: one word, so that every WRITE reads it without a lock ------------ */

static uint64_t
policy_pack(const struct io_policy *p)
{
	return (uint64_t)p->direct_min << 32 | (uint64_t)p->read_mode << 12 |
	       (uint64_t)p->write_mode << 8 | (uint64_t)p->edges << 4 |
	       (uint64_t)p->stable_floor;
}

struct io_policy
volume_policy(const struct volume *v)
{
	uint64_t w = atomic_load_explicit(&v->policy, memory_order_relaxed);

	return (struct io_policy){
		.direct_min = (uint32_t)(w >> 32),
		.read_mode = (enum io_mode)(w >> 12 & 0xf),
		.write_mode = (enum io_mode)(w >> 8 & 0xf),
		.edges = (enum io_edges)(w >> 4 & 0xf),
		.stable_floor = (enum io_stable)(w & 0xf),
	};
}

/* The mode nearest to m that the file system has. */
static enum io_mode
nearest_mode(const struct volume_facts *f, enum io_mode m)
{
	/* btrfs takes O_DIRECT and then often buffers, or sends the write to a
	 * thread; plainly buffered is better there. */
	if (m == IO_DIRECT && f->fs_type == BTRFS_MAGIC)
		return IO_BUFFERED;
	if (m == IO_DIRECT && f->dio_offset_align == 0)
		m = IO_DONTCACHE;
	if (m == IO_DONTCACHE && !f->dontcache)
		m = IO_BUFFERED;
	return m;
}

static const char *
fallback_text(const struct volume_facts *f, const struct io_policy *asked,
	      const struct io_policy *got)
{
	bool direct = (asked->read_mode == IO_DIRECT &&
		       got->read_mode != IO_DIRECT) ||
		      (asked->write_mode == IO_DIRECT &&
		       got->write_mode != IO_DIRECT);

	if (direct && f->fs_type == BTRFS_MAGIC)
		return "direct I/O does not pay on btrfs: buffered instead";
	if (direct && f->dontcache)
		return "the file system has no direct I/O: "
		       "dontcache instead";
	if (direct)
		return "the file system has neither direct nor uncached I/O: "
		       "buffered instead";
	if (asked->read_mode != got->read_mode ||
	    asked->write_mode != got->write_mode)
		return "the file system has no uncached I/O: buffered instead";
	if (asked->edges != got->edges)
		return "the file system has no uncached I/O: "
		       "edges are dropped instead";
	return NULL;
}

const char *
volume_set_policy(struct volume *v, const struct io_policy *policy)
{
	struct io_policy p = *policy;

	p.read_mode = nearest_mode(&v->facts, p.read_mode);
	p.write_mode = nearest_mode(&v->facts, p.write_mode);
	if (p.edges == IO_EDGES_DONTCACHE && !v->facts.dontcache)
		p.edges = IO_EDGES_DROP;
	atomic_store_explicit(&v->policy, policy_pack(&p),
			      memory_order_relaxed);
	return fallback_text(&v->facts, policy, &p);
}

/* probing --------------------------------------------------------------------
 */

/* Both kinds of I/O take the flag, or neither; the kernel looks at it before
 * it looks at the offset, so a read of nothing tells. */
static bool
takes_dontcache(int fd)
{
	char byte;
	struct iovec iov = { &byte, 1 };

	return preadv2(fd, &iov, 1, BEYOND, RWF_DONTCACHE) >= 0;
}

static bool
takes_nowait_write(int fd)
{
	char byte = 0;
	struct iovec iov = { &byte, 1 };

	if (pwrite(fd, &byte, 1, 0) != 1)
		return false;
	/* EAGAIN only says: not this one, now. btrfs says it every time. */
	for (int i = 0; i < 3; i++)
		if (pwritev2(fd, &iov, 1, 0, RWF_NOWAIT) == 1)
			return true;
	return false;
}

struct dio_facts {
	uint32_t mem, offset, read; /* 0: no direct I/O */
};

static void
dio_read(struct dio_facts *ret, int fd)
{
	struct statx st = { 0 };
	uint64_t page = page_bytes();

	*ret = (struct dio_facts){ 0 };
	if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN | STATX_DIO_READ_ALIGN,
		  &st) != 0 ||
	    (st.stx_mask & STATX_DIOALIGN) == 0)
		return;
	ret->mem = statx_u32(&st, STATX_AT_DIO_MEM_ALIGN);
	ret->offset = statx_u32(&st, STATX_AT_DIO_OFFSET_ALIGN);
	ret->read = ret->offset;
	if ((st.stx_mask & STATX_DIO_READ_ALIGN) != 0)
		ret->read = statx_u32(&st, STATX_AT_DIO_READ_OFFSET_ALIGN);
	/* Buffers are page-aligned, and cuts want powers of two. */
	if (!power_of_two(ret->offset) || !power_of_two(ret->read) ||
	    !power_of_two(ret->mem) || ret->mem > page)
		*ret = (struct dio_facts){ 0 };
}

static uint32_t
cut_bytes(const struct volume *v, uint32_t offset_align)
{
	uint32_t cut = (uint32_t)page_bytes();

	if (offset_align == 0)
		return 0;
	if (v->facts.block_bytes > cut)
		cut = v->facts.block_bytes;
	return offset_align > cut ? offset_align : cut;
}

void
volume_file_facts(const struct volume *v, int fd, struct file_facts *ret)
{
	struct dio_facts dio;

	dio_read(&dio, fd);
	ret->cut = cut_bytes(v, dio.offset);
	ret->read_align = dio.read;
	ret->dontcache = takes_dontcache(fd);
}

/* Some regular file of the root, read-only: a tree that we may not write to
 * tells its alignment by it. */
static int
open_some_file(int root_fd)
{
	int copy = openat(root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *e;
	int fd = -1;

	if (d == NULL) {
		if (copy >= 0)
			close(copy);
		return -1;
	}
	for (int i = 0; i < PROBE_NAMES && fd < 0; i++) {
		e = readdir(d);
		if (e == NULL)
			break;
		if (e->d_type == DT_REG)
			fd = openat(root_fd, e->d_name,
				    O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
					    O_CLOEXEC);
	}
	closedir(d);
	return fd;
}

/* Nothing to ask: what these file systems are known to do; each file is asked
 * again when it is opened. */
static void
assume_facts(struct volume *v, const struct device_facts *d)
{
	struct volume_facts *f = &v->facts;

	if (f->fs_type != XFS_MAGIC && f->fs_type != EXT4_SUPER_MAGIC)
		return;
	f->dio_mem_align = d->logical_bytes;
	f->dio_offset_align = d->logical_bytes;
	f->dontcache = true;
}

static void
probe_file(struct volume *v, int fd, bool writable)
{
	struct volume_facts *f = &v->facts;
	struct dio_facts dio;

	dio_read(&dio, fd);
	f->dio_mem_align = dio.mem;
	f->dio_offset_align = dio.offset;
	f->dontcache = takes_dontcache(fd);
	if (writable) {
		f->nowait_buffered = takes_nowait_write(fd);
		if (ftruncate(fd, 0) != 0)
			f->nowait_buffered = false;
	}
}

/* ext4 without a journal has nothing that one fsync could force. */
static bool
has_journal(const struct volume *v)
{
	char link[64], path[PATH_MAX], text[32] = "";
	const char *base;
	ssize_t n;
	FILE *file;

	(void)snprintf(link, sizeof(link), "/sys/dev/block/%u:%u",
		       major(v->dev), minor(v->dev));
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	base = strrchr(path, '/');
	if (base == NULL)
		return false;
	memmove(path, base + 1, strlen(base + 1) + 1);
	(void)snprintf(link, sizeof(link), "/sys/fs/ext4/%.32s/journal_task",
		       path);
	file = fopen(link, "re");
	if (file == NULL)
		return false;
	if (fgets(text, sizeof(text), file) == NULL)
		text[0] = '\0';
	(void)fclose(file);
	return text[0] >= '0' && text[0] <= '9';
}

static bool
log_covers(const struct volume *v)
{
	return v->facts.fs_type == XFS_MAGIC ||
	       (v->facts.fs_type == EXT4_SUPER_MAGIC && has_journal(v));
}

static void
device_facts(struct volume_facts *f, const struct device_facts *d)
{
	uint32_t most = d->transfer_bytes_max;

	f->logical_bytes = d->logical_bytes;
	f->physical_bytes = d->physical_bytes;
	f->write_cache = d->write_cache;
	memcpy(f->device, d->name, sizeof(f->device));
	if (most == 0 || most > IO_TRANSFER_BYTES_MAX)
		most = IO_TRANSFER_BYTES_MAX;
	if (f->cut_bytes != 0) {
		most = (uint32_t)round_down(most, f->cut_bytes);
		if (most == 0)
			most = f->cut_bytes;
		if (d->boundary_bytes % f->cut_bytes == 0)
			f->piece_boundary = d->boundary_bytes;
	}
	f->piece_bytes_max = most;
}

static void
probe(struct volume *v)
{
	/* A missing device (btrfs, tmpfs) leaves zeros. */
	struct device_facts d = { .write_cache = true };
	int fd = -1;

	(void)device_read(&d, "/sys", v->dev);
	if (!v->read_only)
		fd = openat(v->root_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC,
			    0600);
	if (fd >= 0) {
		probe_file(v, fd, true);
		v->facts.log_covers = log_covers(v) && fchmod(fd, 0666) == 0;
		if (v->facts.log_covers)
			v->meta_fd = fd;
		else
			close(fd);
	} else {
		fd = open_some_file(v->root_fd);
		if (fd >= 0) {
			probe_file(v, fd, false);
			close(fd);
		} else {
			assume_facts(v, &d);
		}
	}
	v->facts.cut_bytes = cut_bytes(v, v->facts.dio_offset_align);
	device_facts(&v->facts, &d);
}

/* life ------------------------------------------------------------------------
 */

static void
shared_put(struct volume_shared *s)
{
	if (s != NULL && atomic_fetch_sub(&s->refs, 1) == 1)
		free(s);
}

static int
identify(struct volume *v)
{
	struct statfs fs;
	struct stat st;

	if (fstat(v->root_fd, &st) != 0 || fstatfs(v->root_fd, &fs) != 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	v->dev = st.st_dev;
	v->facts.fs_type = (uint64_t)(unsigned long)fs.f_type;
	if (power_of_two((uint64_t)fs.f_bsize) &&
	    fs.f_bsize <= IO_TRANSFER_BYTES_MAX)
		v->facts.block_bytes = (uint32_t)fs.f_bsize;
	return 0;
}

int
volume_new(struct volume **ret, struct engine *e, int root_fd, bool read_only,
	   uint64_t verifier, const struct io_policy *policy, void *user)
{
	struct volume *v = calloc(1, sizeof(*v));
	struct volume_shared *s = calloc(1, sizeof(*s));
	int r = -ENOMEM;

	if (v == NULL || s == NULL)
		goto fail;
	v->magic = VOLUME_MAGIC;
	v->refs = 1;
	v->engine = e;
	v->root_fd = root_fd;
	v->meta_fd = -1;
	v->read_only = read_only;
	v->user = user;
	r = identify(v);
	if (r != 0)
		goto fail;
	s->refs = 1;
	s->verifier = verifier;
	v->shared = s;
	pthread_mutex_init(&v->meta.mutex, NULL);
	pthread_cond_init(&v->meta.cond, NULL);
	probe(v);
	(void)volume_set_policy(v, policy);
	*ret = v;
	return 0;
fail:
	free(s);
	free(v);
	return r;
}

void
volume_get(struct volume *v)
{
	assert(v->magic == VOLUME_MAGIC);
	atomic_fetch_add(&v->refs, 1);
}

void
volume_put(struct volume *v)
{
	if (v == NULL)
		return;
	assert(v->magic == VOLUME_MAGIC);
	if (atomic_fetch_sub(&v->refs, 1) != 1)
		return;
	if (v->meta_fd >= 0)
		close(v->meta_fd);
	close(v->root_fd);
	shared_put(v->shared);
	pthread_cond_destroy(&v->meta.cond);
	pthread_mutex_destroy(&v->meta.mutex);
	v->magic = 0;
	free(v);
}

void
volume_share(struct volume *v, struct volume *with)
{
	struct volume_shared *was = v->shared;

	atomic_fetch_add(&with->shared->refs, 1);
	v->shared = with->shared;
	shared_put(was);
}

struct engine *
volume_engine(const struct volume *v)
{
	return v->engine;
}

int
volume_root_fd(const struct volume *v)
{
	return v->root_fd;
}

bool
volume_read_only(const struct volume *v)
{
	return v->read_only;
}

void *
volume_user(const struct volume *v)
{
	return v->user;
}

dev_t
volume_dev(const struct volume *v)
{
	return v->dev;
}

unsigned *
volume_files(struct volume *v)
{
	return &v->files;
}

const struct volume_facts *
volume_facts(const struct volume *v)
{
	return &v->facts;
}

struct volume_counters *
volume_counters(struct volume *v)
{
	return &v->shared->counters;
}

/* verifier
 * ---------------------------------------------------------------------- */

uint64_t
volume_verifier(const struct volume *v)
{
	return atomic_load(&v->shared->verifier);
}

/* Never one that was there before: a client could take lost data for safe. */
static uint64_t
fresh_verifier(uint64_t was)
{
	uint64_t n = 0;

	if (getrandom(&n, sizeof(n), GRND_NONBLOCK) != (ssize_t)sizeof(n) ||
	    n == was)
		return was + 1;
	return n;
}

void
volume_fail(struct volume *v, uint64_t failure)
{
	struct volume_shared *s = v->shared;

	if (atomic_exchange(&s->failure, failure) == failure)
		return;
	atomic_store(&s->verifier, fresh_verifier(atomic_load(&s->verifier)));
	count_add(&s->counters.verifier_changes, 1);
}

/* metadata
 * ------------------------------------------------------------------------ */

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
	count_add(&v->shared->counters.meta_syncs, 1);
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
