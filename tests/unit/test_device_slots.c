/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots of a device by themselves: a piece takes as many as the kernel makes
 * requests of it, who waits goes in the order of his coming, also a large one
 * before small ones, and what blocks in its I/O goes beyond the limit.
 */
#include "io/device.h"

#include "engine_harness.h"

#include <unistd.h>

#define KIB 1024u

static struct engine *engine;
static struct device_slots slots;

/* A piece that wants to go; went is its place in the order. */
struct piece {
	struct slot_waiter waiter;
	uint32_t bytes;
	bool at_once;
	_Atomic unsigned went;
};

static _Atomic unsigned went;

static void
ready(struct slot_waiter *w)
{
	struct piece *p = container_of(w, struct piece, waiter);

	assert_true(reactor_is_current(w->reactor));
	p->went = ++went;
}

static void
take(struct piece *p, uint32_t bytes)
{
	*p = (struct piece){ .bytes = bytes };
	p->waiter.reactor = engine_reactor(engine, 0);
	p->waiter.ready = ready;
	p->at_once = device_slots_take(&slots, &p->waiter, bytes);
	if (p->at_once)
		p->went = ++went;
}

static void
give(struct piece *p)
{
	while (p->went == 0)
		usleep(100);
	device_slots_give(&slots, p->waiter.slots);
}

static struct device_state
told(void)
{
	struct device_state d = { 0 };

	device_slots_tell(&slots, &d);
	return d;
}

static void
start(uint32_t limit)
{
	went = 0;
	device_slots_init(&slots, limit, 256 * KIB);
}

static void
by_requests(void **state)
{
	(void)state;
	start(8);
	assert_int_equal(device_slots_of(&slots, 1), 1);
	assert_int_equal(device_slots_of(&slots, 256 * KIB), 1);
	assert_int_equal(device_slots_of(&slots, 256 * KIB + 1), 2);
	assert_int_equal(device_slots_of(&slots, 1024 * KIB), 4);
	/* More than there are: all of them. */
	assert_int_equal(device_slots_of(&slots, 4096 * KIB), 8);
	device_slots_fini(&slots);
}

static void
in_order(void **state)
{
	struct piece large, small[4];

	(void)state;
	start(4);
	take(&small[0], 256 * KIB);
	take(&small[1], 256 * KIB);
	assert_true(small[0].at_once && small[1].at_once);
	take(&large, 1024 * KIB);
	take(&small[2], 256 * KIB); /* would fit, but came later */
	take(&small[3], 256 * KIB);
	assert_false(large.at_once || small[2].at_once || small[3].at_once);
	assert_int_equal(told().slot_waits, 3);
	give(&small[0]);
	assert_int_equal(told().slots_used, 1);
	give(&small[1]);
	while (large.went == 0)
		usleep(100);
	assert_int_equal(large.went, 3);
	assert_int_equal(small[2].went, 0);
	assert_int_equal(told().slots_used, 4);
	give(&large);
	give(&small[2]);
	give(&small[3]);
	assert_true(small[2].went == 4 && small[3].went == 5);
	assert_int_equal(told().slots_used, 0);
	assert_true(told().slot_wait_ns > 0);
	device_slots_fini(&slots);
}

static void
forced(void **state)
{
	struct piece p;
	uint32_t n;

	(void)state;
	start(2);
	n = device_slots_force(&slots, 512 * KIB);
	assert_int_equal(n, 2);
	assert_int_equal(device_slots_force(&slots, 256 * KIB), 1);
	assert_int_equal(told().slots_used, 3);
	take(&p, 256 * KIB);
	assert_false(p.at_once);
	device_slots_give(&slots, 1);
	assert_int_equal(p.went, 0);
	device_slots_give(&slots, n);
	give(&p);
	assert_int_equal(told().slots_used, 0);
	device_slots_fini(&slots);
}

static void
no_limit(void **state)
{
	struct piece p[64];

	(void)state;
	start(0);
	for (unsigned i = 0; i < 64; i++) {
		take(&p[i], 4096 * KIB);
		assert_true(p[i].at_once);
	}
	assert_int_equal(told().slots_used, 64 * 16);
	for (unsigned i = 0; i < 64; i++)
		give(&p[i]);
	assert_int_equal(told().slot_waits, 0);
	device_slots_fini(&slots);
}

static int
set_up(void **state)
{
	(void)state;
	engine = engine_make(IO_BACKEND_URING, 1, 16u << 20);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	engine_free(engine);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_requests),
		cmocka_unit_test(in_order),
		cmocka_unit_test(forced),
		cmocka_unit_test(no_limit),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
