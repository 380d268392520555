/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The buffer pool. Everything happens on the reactor's thread, one visit a
 * step, so that waiters are served in between.
 */
#include "tests/unit/engine_harness.h"

#include <errno.h>
#include <sched.h>

#define PAGE ((uint32_t)4096)

static struct engine *engine;
static struct reactor *r0;
static struct buf_pool *pool;

static int
setup(void **state)
{
	engine = engine_make(IO_BACKEND_THREADS, 1, 0);
	r0 = engine_reactor(engine, 0);
	pool = reactor_pool(r0);
	assert_int_equal(buf_pool_free_bytes(pool), buf_pool_bytes(pool));
	return 0;
}

static int
teardown(void **state)
{
	assert_int_equal(buf_pool_free_bytes(pool), buf_pool_bytes(pool));
	engine_free(engine);
	return 0;
}

/* A visit's body sees state here. */
struct step {
	struct buf *buf;
	uint32_t bytes;
	int res;
	struct buf_waiter *waiter;
	bool was_in;
};

static void
do_take(struct reactor *r, void *arg)
{
	struct step *s = arg;

	s->res = buf_take(reactor_pool(r), s->buf, s->bytes);
}

static int
take(struct buf *buf, uint32_t bytes)
{
	struct step s = { .buf = buf, .bytes = bytes };

	visit(r0, do_take, &s);
	return s.res;
}

static void
do_give(struct reactor *r, void *arg)
{
	buf_give(reactor_pool(r), arg);
}

static void
give(struct buf *buf)
{
	visit(r0, do_give, buf);
	assert_null(buf->base);
}

static void
do_wait(struct reactor *r, void *arg)
{
	struct buf_waiter *w = arg;

	buf_wait(reactor_pool(r), w);
	assert_null(w->buf->base); /* never from inside */
}

static void
do_unwait(struct reactor *r, void *arg)
{
	struct step *s = arg;

	s->was_in = buf_unwait(reactor_pool(r), s->waiter);
}

static bool
unwait(struct buf_waiter *w)
{
	struct step s = { .waiter = w };

	visit(r0, do_unwait, &s);
	return s.was_in;
}

static void
do_nothing(struct reactor *r, void *arg)
{
}

/* What the pool posted to its own loop has run after two more turns. */
static void
settle(void)
{
	visit(r0, do_nothing, NULL);
	visit(r0, do_nothing, NULL);
}

static void
one_buffer(void **state)
{
	struct buf b;
	int index = -1;

	assert_int_equal(take(&b, 1), 0);
	assert_int_equal((uintptr_t)b.base % PAGE, 0);
	assert_int_equal(b.bytes, PAGE);
	assert_int_equal(buf_pool_free_bytes(pool),
			 buf_pool_bytes(pool) - PAGE);
	assert_true(buf_pool_holds(pool, b.base, b.bytes, &index));
	assert_int_equal(index, 0);
	give(&b);
	assert_int_equal(take(&b, PAGE + 1), 0);
	assert_int_equal(b.bytes, 2 * PAGE);
	give(&b);
}

static void
holds_is_exact(void **state)
{
	size_t all = buf_pool_bytes(pool);
	struct buf b;
	uint8_t *first;
	int index;

	assert_int_equal(take(&b, (uint32_t)all), 0); /* hence all of it */
	first = b.base;
	assert_true(buf_pool_holds(pool, first, all, &index));
	assert_true(buf_pool_holds(pool, first + all - 1, 1, &index));
	assert_false(buf_pool_holds(pool, first + all - 1, 2, &index));
	assert_false(buf_pool_holds(pool, first + all, 1, &index));
	assert_false(buf_pool_holds(pool, first - 1, 1, &index));
	assert_false(buf_pool_holds(pool, first - 1, 2, &index));
	assert_false(buf_pool_holds(pool, first, all + 1, &index));
	assert_false(buf_pool_holds(pool, first, SIZE_MAX, &index));
	assert_false(buf_pool_holds(pool, &b, 1, &index));
	memset(first, 1, all);
	give(&b);
}

static void
limits(void **state)
{
	size_t all = buf_pool_bytes(pool);
	struct buf b, c = { 0 };

	assert_int_equal(take(&b, (uint32_t)all + 1), -EMSGSIZE);
	assert_int_equal(take(&b, (uint32_t)all), 0);
	assert_int_equal(take(&c, 1), -EAGAIN);
	give(&b);
	assert_int_equal(take(&c, 1), 0);
	give(&c);
}

#define HELD 64

/* Random sizes: what is handed out never overlaps, and all comes back. */
static void
never_twice(void **state)
{
	struct buf held[HELD] = { 0 };
	unsigned seed = 1, refused = 0;

	for (unsigned i = 0; i < 20000; i++) {
		struct buf *b = &held[(unsigned)rand_r(&seed) % HELD];
		uint32_t bytes = 1 + (uint32_t)rand_r(&seed) % (3u << 20);

		if (b->base) {
			assert_int_equal(b->base[0], b - held);
			assert_int_equal(b->base[b->bytes - 1], b - held);
			give(b);
			continue;
		}
		if (take(b, bytes) < 0) {
			refused++;
			assert_null(b->base);
			continue;
		}
		assert_true(b->bytes >= bytes && b->bytes - bytes < PAGE);
		for (unsigned k = 0; k < HELD; k++)
			assert_true(&held[k] == b || !held[k].base ||
				    held[k].base + held[k].bytes <= b->base ||
				    b->base + b->bytes <= held[k].base);
		b->base[0] = b->base[b->bytes - 1] = (uint8_t)(b - held);
	}
	assert_true(refused > 0);
	for (unsigned k = 0; k < HELD; k++)
		if (held[k].base)
			give(&held[k]);
}

/* Every page can be had alone, and a hole of two takes two. */
static void
no_page_lost(void **state)
{
	uint32_t n = (uint32_t)(buf_pool_bytes(pool) / PAGE);
	struct buf *b = calloc(n, sizeof(*b)), two = { 0 };

	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(take(&b[i], PAGE), 0);
	assert_int_equal(take(&two, PAGE), -EAGAIN);
	for (uint32_t i = 0; i < n; i += 2)
		give(&b[i]);
	assert_int_equal(take(&two, 2 * PAGE), -EAGAIN);
	give(&b[101]);
	assert_int_equal(take(&two, 4 * PAGE), -EAGAIN);
	assert_int_equal(take(&two, 3 * PAGE), 0);
	give(&two);
	for (uint32_t i = 1; i < n; i += 2)
		if (b[i].base)
			give(&b[i]);
	free(b);
}

struct waiting {
	struct buf_waiter w;
	struct buf buf;
	unsigned served; /* 0: not yet, else its place */
};

static unsigned served;

static void
waiting_ready(struct buf_waiter *w)
{
	struct waiting *x = container_of(w, struct waiting, w);

	assert_non_null(x->buf.base);
	x->served = ++served;
}

static void
wait_for(struct waiting *x, uint32_t bytes)
{
	*x = (struct waiting){ .w = { .ready = waiting_ready,
				      .bytes = bytes } };
	x->w.buf = &x->buf;
	visit(r0, do_wait, &x->w);
	settle();
}

/* A large wish is not overtaken by small ones that could be met. */
static void
first_come_first_served(void **state)
{
	uint32_t all = (uint32_t)buf_pool_bytes(pool), part = all / 4;
	struct buf q[4], b = { 0 };
	struct waiting x[3];

	served = 0;
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(take(&q[i], part), 0);
	wait_for(&x[0], 2 * part);
	wait_for(&x[1], PAGE);
	wait_for(&x[2], PAGE);
	give(&q[0]);
	settle();
	assert_int_equal(served, 0);
	assert_int_equal(take(&b, PAGE), -EAGAIN); /* others wait */
	give(&q[1]);
	settle();
	assert_int_equal(x[0].served, 1);
	assert_int_equal(served, 1);
	give(&q[2]);
	settle();
	assert_int_equal(x[1].served, 2);
	assert_int_equal(x[2].served, 3);
	assert_int_equal(atomic_load(&reactor_counters(r0)->buf_waits), 3);
	assert_true(atomic_load(&reactor_counters(r0)->buf_bytes) > 0);
	for (unsigned i = 0; i < 3; i++)
		give(&x[i].buf);
	give(&q[3]);
	assert_int_equal(atomic_load(&reactor_counters(r0)->buf_bytes), 0);
}

static void
wait_without_need(void **state)
{
	struct waiting x;

	served = 0;
	wait_for(&x, PAGE);
	assert_int_equal(x.served, 1);
	assert_false(unwait(&x.w));
	give(&x.buf);
}

/* One that leaves the queue is not served, and those behind it are. */
static void
leave_the_queue(void **state)
{
	uint32_t all = (uint32_t)buf_pool_bytes(pool);
	struct waiting x[3];
	struct buf b, c;

	served = 0;
	assert_int_equal(take(&b, all - PAGE), 0);
	assert_int_equal(take(&c, PAGE), 0);
	wait_for(&x[0], all);
	wait_for(&x[1], PAGE);
	wait_for(&x[2], all);
	assert_true(unwait(&x[2].w));
	assert_false(unwait(&x[2].w));
	give(&c);
	settle();
	assert_int_equal(served, 0);
	assert_true(unwait(&x[0].w));
	settle();
	assert_int_equal(x[1].served, 1);
	assert_int_equal(served, 1);
	give(&x[1].buf);
	wait_for(&x[0], PAGE);
	assert_int_equal(served, 2); /* the queue's end was right */
	give(&x[0].buf);
	give(&b);
}

#define POOL_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		POOL_TEST(one_buffer),      POOL_TEST(holds_is_exact),
		POOL_TEST(limits),          POOL_TEST(never_twice),
		POOL_TEST(no_page_lost),    POOL_TEST(first_come_first_served),
		POOL_TEST(leave_the_queue), POOL_TEST(wait_without_need),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
