/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reactor's buffers: runs of pages in one region that is mapped at start and
 * registered with the ring. A bitmap says which pages are taken; the search
 * starts where the last one ended, so that neighbours in time become
 * neighbours in memory and come free together. The pool belongs to its
 * reactor's thread.
 *
 * Whoever finds none queues up. Waiters are served first come, first served,
 * also before a newcomer whose smaller wish could be met: so a large one gets
 * its run in the end. They are served by a message in the loop.
 */
#include "io/reactor.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define REGION_ALIGN ((size_t)2 << 20) /* a huge page */

struct buf_pool {
	struct reactor *reactor;
	uint8_t *base;
	size_t map_bytes; /* of the mapping that base lies in */
	void *map;
	uint32_t page_bytes;
	uint32_t pages;
	uint32_t pages_free;
	uint32_t search; /* where the next search starts */
	struct buf_waiter *first, *last;
	struct message serve;
	bool serve_posted;
	uint64_t taken[]; /* a bit a page */
};

static void
bits_flip(uint64_t *map, uint32_t from, uint32_t n)
{
	while (n > 0) {
		uint32_t at = from % 64;
		uint32_t run = 64 - at < n ? 64 - at : n;

		map[from / 64] ^= (~0ull >> (64 - run)) << at;
		from += run;
		n -= run;
	}
}

/* The first bit of that value in [from, end), or end. */
static uint32_t
bits_find(const uint64_t *map, uint32_t from, uint32_t end, bool value)
{
	while (from < end) {
		uint64_t word = value ? map[from / 64] : ~map[from / 64];

		word >>= from % 64;
		if (word) {
			from += (uint32_t)__builtin_ctzll(word);
			return from < end ? from : end;
		}
		from += 64 - from % 64;
	}
	return end;
}

/* A run of n free pages in [from, end); false: there is none. */
static bool
pool_find(const struct buf_pool *p, uint32_t from, uint32_t end, uint32_t n,
	  uint32_t *ret)
{
	while (end - from >= n) {
		uint32_t stop;

		from = bits_find(p->taken, from, end, false);
		if (end - from < n)
			break;
		stop = bits_find(p->taken, from, from + n, true);
		if (stop == from + n) {
			*ret = from;
			return true;
		}
		from = stop;
	}
	return false;
}

static uint32_t
pool_pages(const struct buf_pool *p, uint32_t bytes)
{
	return (uint32_t)(((uint64_t)bytes + p->page_bytes - 1) /
			  p->page_bytes);
}

static void
pool_count(const struct buf_pool *p)
{
	counter_set(&reactor_counters(p->reactor)->buf_bytes,
		    (uint64_t)(p->pages - p->pages_free) * p->page_bytes);
}

static int
pool_take(struct buf_pool *p, struct buf *buf, uint32_t bytes)
{
	uint32_t n = pool_pages(p, bytes);
	uint32_t wrap = p->search + n - 1; /* runs across search's start */
	uint32_t at;

	if (n > p->pages_free)
		return -EAGAIN;
	if (wrap > p->pages)
		wrap = p->pages;
	if (!pool_find(p, p->search, p->pages, n, &at) &&
	    !pool_find(p, 0, wrap, n, &at))
		return -EAGAIN;
	bits_flip(p->taken, at, n);
	p->pages_free -= n;
	pool_count(p);
	p->search = at + n < p->pages ? at + n : 0;
	buf->base = p->base + (size_t)at * p->page_bytes;
	buf->bytes = n * p->page_bytes;
	buf->page = at;
	return 0;
}

int
buf_take(struct buf_pool *p, struct buf *buf, uint32_t bytes)
{
	assert(reactor_is_current(p->reactor) && bytes > 0);
	if (pool_pages(p, bytes) > p->pages)
		return -EMSGSIZE;
	if (p->first)
		return -EAGAIN;
	return pool_take(p, buf, bytes);
}

static void
pool_serve(struct message *m)
{
	struct buf_pool *p = container_of(m, struct buf_pool, serve);
	struct buf_waiter *w;

	p->serve_posted = false;
	while ((w = p->first) != NULL) {
		if (pool_take(p, w->buf, w->bytes) < 0)
			break;
		p->first = w->next;
		w->next = NULL;
		reactor_hunger(p->reactor, -1);
		counter_add(&reactor_counters(p->reactor)->buf_wait_ns,
			    reactor_now_ns(p->reactor) - w->since_ns);
		w->ready(w);
	}
}

static void
pool_post_serve(struct buf_pool *p)
{
	if (p->serve_posted)
		return;
	p->serve_posted = true;
	p->serve.run = pool_serve;
	reactor_post(p->reactor, &p->serve);
}

void
buf_wait(struct buf_pool *p, struct buf_waiter *w)
{
	assert(reactor_is_current(p->reactor));
	assert(w->ready && w->buf && w->bytes > 0);
	assert(pool_pages(p, w->bytes) <= p->pages);
	counter_add(&reactor_counters(p->reactor)->buf_waits, 1);
	w->since_ns = reactor_now_ns(p->reactor);
	w->next = NULL;
	if (p->first)
		p->last->next = w;
	else
		p->first = w;
	p->last = w;
	reactor_hunger(p->reactor, 1);
	pool_post_serve(p);
}

bool
buf_pool_wanted(const struct buf_pool *p)
{
	return p->first != NULL;
}

bool
buf_unwait(struct buf_pool *p, struct buf_waiter *w)
{
	struct buf_waiter *before = NULL, *o = p->first;

	assert(reactor_is_current(p->reactor));
	while (o && o != w) {
		before = o;
		o = o->next;
	}
	if (!o)
		return false;
	if (before)
		before->next = w->next;
	else
		p->first = w->next;
	if (p->last == w)
		p->last = before;
	w->next = NULL;
	reactor_hunger(p->reactor, -1);
	if (p->first)
		pool_post_serve(p); /* the next may want less */
	return true;
}

void
buf_give(struct buf_pool *p, struct buf *buf)
{
	uint32_t n = buf->bytes / p->page_bytes;

	assert(reactor_is_current(p->reactor));
	assert(buf->base == p->base + (size_t)buf->page * p->page_bytes);
	assert(n > 0 && buf->page + n <= p->pages);
	assert(bits_find(p->taken, buf->page, buf->page + n, false) ==
	       buf->page + n);
	bits_flip(p->taken, buf->page, n);
	p->pages_free += n;
	pool_count(p);
	*buf = (struct buf){ 0 };
	if (p->first)
		pool_post_serve(p);
}

size_t
buf_pool_bytes(const struct buf_pool *p)
{
	return (size_t)p->pages * p->page_bytes;
}

size_t
buf_pool_free_bytes(const struct buf_pool *p)
{
	return (size_t)p->pages_free * p->page_bytes;
}

bool
buf_pool_holds(const struct buf_pool *p, const void *addr, size_t n, int *index)
{
	uintptr_t at = (uintptr_t)addr - (uintptr_t)p->base;
	size_t bytes = buf_pool_bytes(p);

	if ((uintptr_t)addr < (uintptr_t)p->base || n == 0 || n > bytes ||
	    at > bytes - n)
		return false;
	if (at >> BUF_FIXED_SHIFT != (at + n - 1) >> BUF_FIXED_SHIFT)
		return false; /* across two registered ones */
	*index = (int)(at >> BUF_FIXED_SHIFT);
	return true;
}

unsigned
buf_pool_iovecs(const struct buf_pool *p, struct iovec *iov, unsigned max)
{
	size_t left = buf_pool_bytes(p), most = (size_t)1 << BUF_FIXED_SHIFT;
	uint8_t *at = p->base;
	unsigned n;

	for (n = 0; left > 0 && n < max; n++) {
		iov[n].iov_base = at;
		iov[n].iov_len = left < most ? left : most;
		at += iov[n].iov_len;
		left -= iov[n].iov_len;
	}
	return n;
}

void
buf_pool_lock(struct buf_pool *p)
{
	/* Refused by limits: then these pages may be swapped, no more. */
	(void)mlock(p->base, buf_pool_bytes(p));
}

int
buf_pool_new(struct buf_pool **ret, struct reactor *r, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t pages = (bytes + page - 1) / page;
	size_t words = (pages + 63) / 64;
	struct buf_pool *p;

	if (pages == 0 || pages > UINT32_MAX / 2)
		return -EINVAL;
	p = calloc(1, sizeof(*p) + words * sizeof(p->taken[0]));
	if (!p)
		return -ENOMEM;
	p->reactor = r;
	p->page_bytes = (uint32_t)page;
	p->pages = p->pages_free = (uint32_t)pages;
	p->map_bytes = pages * page + REGION_ALIGN;
	p->map = mmap(NULL, p->map_bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p->map == MAP_FAILED) {
		free(p);
		return -ENOMEM;
	}
	p->base = p->map;
	p->base += -(uintptr_t)p->map & (REGION_ALIGN - 1);
	/* Fewer, larger segments a request; and a child of ours (there is none
	 * but a test's) must not make copies of pinned pages. */
	(void)madvise(p->base, pages * page, MADV_HUGEPAGE);
	(void)madvise(p->base, pages * page, MADV_DONTFORK);
	*ret = p;
	return 0;
}

void
buf_pool_free(struct buf_pool *p)
{
	if (!p)
		return;
	assert(!p->first && p->pages_free == p->pages);
	munmap(p->map, p->map_bytes);
	free(p);
}
