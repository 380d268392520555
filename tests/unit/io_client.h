/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: clients of the engine's data calls. A test's thread hands a WRITE,
 * READ or COMMIT to a reactor and waits for its end, as a connection would
 * have done; what is written is a pattern of offset and generation, so that
 * every byte can be checked.
 */
#ifndef NVNFSD_TESTS_IO_CLIENT_H
#define NVNFSD_TESTS_IO_CLIENT_H

#include "engine_harness.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u

static inline uint8_t
pattern(uint64_t offset, uint32_t gen)
{
	uint64_t x = (offset >> 3) * 0x9e3779b97f4a7c15ull ^
		     (uint64_t)gen * 0xd6e8feb86659fd93ull;

	return (uint8_t)((x ^ x >> 29) >> ((offset & 7) * 7));
}

static inline void
pattern_fill(uint8_t *p, uint64_t offset, size_t n, uint32_t gen)
{
	for (size_t i = 0; i < n; i++)
		p[i] = pattern(offset + i, gen);
}

/* Index of the first byte that is wrong, or n. */
static inline size_t
pattern_check(const uint8_t *p, uint64_t offset, size_t n, uint32_t gen)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != pattern(offset + i, gen))
			return i;
	return n;
}

/* WRITE -------------------------------------------------------------------- */

struct client_write {
	struct io_write io;
	struct buf buf;
	struct buf_waiter waiter;
	uint32_t gen;
	sem_t done;
};

static inline void
client_write_done(struct io_write *w)
{
	struct client_write *c = container_of(w, struct client_write, io);

	buf_give(reactor_pool(w->reactor), &c->buf);
	sem_post(&c->done);
}

static inline void
client_write_go(struct client_write *c)
{
	uint8_t *data = c->buf.base + c->io.offset % PAGE;

	pattern_fill(data, c->io.offset, c->io.bytes, c->gen);
	c->io.data = data;
	c->io.done = client_write_done;
	io_write_start(&c->io);
}

static inline void
client_write_ready(struct buf_waiter *w)
{
	client_write_go(container_of(w, struct client_write, waiter));
}

static inline void
client_write_visit(struct reactor *r, void *arg)
{
	struct client_write *c = arg;
	uint32_t need = c->io.bytes + (uint32_t)(c->io.offset % PAGE);
	int err = buf_take(reactor_pool(r), &c->buf, need);

	if (err == 0) {
		client_write_go(c);
		return;
	}
	assert(err == -EAGAIN);
	c->waiter = (struct buf_waiter){ .ready = client_write_ready,
					 .bytes = need,
					 .buf = &c->buf };
	buf_wait(reactor_pool(r), &c->waiter);
}

static inline void
client_write_start(struct client_write *c, struct reactor *r, struct file *f,
		   uint64_t offset, uint32_t bytes)
{
	c->io.reactor = r;
	c->io.file = f;
	c->io.offset = offset;
	c->io.bytes = bytes;
	c->buf = (struct buf){ 0 };
	sem_init(&c->done, 0, 0);
	visit(r, client_write_visit, c);
}

static inline void
client_write_wait(struct client_write *c)
{
	while (sem_wait(&c->done) < 0)
		;
	sem_destroy(&c->done);
}

/* c->gen and c->io.stable are set; the result is in c->io. */
static inline void
client_write(struct client_write *c, struct reactor *r, struct file *f,
	     uint64_t offset, uint32_t bytes)
{
	client_write_start(c, r, f, offset, bytes);
	client_write_wait(c);
}

/* The common case: all of it, well. */
static inline uint64_t
write_all(struct reactor *r, struct file *f, uint64_t offset, uint32_t bytes,
	  uint32_t gen, enum io_stable stable)
{
	struct client_write c = { .gen = gen };

	c.io.stable = stable;
	client_write(&c, r, f, offset, bytes);
	assert(c.io.error == 0 && c.io.written == bytes);
	assert(c.io.committed >= stable);
	return c.io.verifier;
}

/* READ --------------------------------------------------------------------- */

struct client_read {
	struct io_read io;
	uint8_t *to; /* room for bytes */
	sem_t done;
};

static inline void
client_read_done(struct io_read *r)
{
	struct client_read *c = container_of(r, struct client_read, io);

	if (r->error == 0 && r->got > 0)
		memcpy(c->to, r->data, r->got);
	if (r->buf.base != NULL)
		buf_give(reactor_pool(r->reactor), &r->buf);
	sem_post(&c->done);
}

static inline void
client_read_visit(struct reactor *r, void *arg)
{
	struct client_read *c = arg;

	(void)r;
	c->io.done = client_read_done;
	io_read_start(&c->io);
}

static inline void
client_read(struct client_read *c, struct reactor *r, struct file *f,
	    uint64_t offset, uint32_t bytes, uint8_t *to)
{
	c->io.reactor = r;
	c->io.file = f;
	c->io.offset = offset;
	c->io.bytes = bytes;
	c->to = to;
	sem_init(&c->done, 0, 0);
	visit(r, client_read_visit, c);
	while (sem_wait(&c->done) < 0)
		;
	sem_destroy(&c->done);
}

/* COMMIT ------------------------------------------------------------------- */

struct client_commit {
	struct io_commit io;
	sem_t done;
};

static inline void
client_commit_done(struct io_commit *c)
{
	sem_post(&container_of(c, struct client_commit, io)->done);
}

static inline void
client_commit_visit(struct reactor *r, void *arg)
{
	struct client_commit *c = arg;

	(void)r;
	c->io.done = client_commit_done;
	io_commit_start(&c->io);
}

/* 0 or -errno; *verifier may be NULL. */
static inline int
client_commit(struct reactor *r, struct file *f, uint64_t *verifier)
{
	struct client_commit c = { .io = { .reactor = r, .file = f } };

	sem_init(&c.done, 0, 0);
	visit(r, client_commit_visit, &c);
	while (sem_wait(&c.done) < 0)
		;
	sem_destroy(&c.done);
	if (verifier != NULL)
		*verifier = c.io.verifier;
	return c.io.error;
}

/* files and volumes -------------------------------------------------------- */

static const struct io_policy direct_policy = {
	.read_mode = IO_DIRECT,
	.write_mode = IO_DIRECT,
	.edges = IO_EDGES_DROP,
	.direct_min = 16384,
	.stable_floor = IO_UNSTABLE,
};

static inline struct volume *
volume_at(struct engine *e, const char *dir, const struct io_policy *policy)
{
	struct volume *v = NULL;
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(volume_new(&v, e, fd, false, 0x1234, policy, NULL), 0);
	return v;
}

static inline void
key_of(struct file_key *key, struct volume *v, const char *name)
{
	union {
		struct file_handle h;
		char room[sizeof(struct file_handle) + IO_HANDLE_BYTES_MAX];
	} u = { .h = { .handle_bytes = IO_HANDLE_BYTES_MAX } };
	int mount_id;

	assert_int_equal(
		name_to_handle_at(volume_root_fd(v), name, &u.h, &mount_id, 0),
		0);
	memset(key, 0, sizeof(*key));
	key->volume = v;
	key->handle_type = u.h.handle_type;
	key->handle_bytes = u.h.handle_bytes;
	memcpy(key->handle, u.h.f_handle, u.h.handle_bytes);
}

static inline struct file *
open_named(struct engine *e, struct volume *v, const char *name)
{
	struct file_key key;
	struct file *f = NULL;

	key_of(&key, v, name);
	assert_int_equal(file_open(e, &key, &f), 0);
	return f;
}

static inline struct file *
create_named(struct engine *e, struct volume *v, const char *name)
{
	int fd = openat(volume_root_fd(v), name,
			O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	close(fd);
	return open_named(e, v, name);
}

static inline uint64_t
counted(const _Atomic uint64_t *c)
{
	return atomic_load(c);
}

/* Pages of the file in the page cache. */
static inline size_t
resident_pages(int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);
	size_t pages = ((size_t)size + PAGE - 1) / PAGE, n = 0;
	unsigned char *vec = calloc(1, pages + 1);
	void *p;

	assert_non_null(vec);
	if (pages == 0) {
		free(vec);
		return 0;
	}
	p = mmap(NULL, pages * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(p != MAP_FAILED);
	assert_int_equal(mincore(p, pages * PAGE, vec), 0);
	for (size_t i = 0; i < pages; i++)
		n += vec[i] & 1;
	munmap(p, pages * PAGE);
	free(vec);
	return n;
}

/* Deadline for calls that take one. */
static inline uint64_t
in_seconds(unsigned s)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return ((uint64_t)t.tv_sec + s) * 1000000000ull + (uint64_t)t.tv_nsec;
}

#endif
