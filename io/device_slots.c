/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots: how many requests of direct I/O one device has at a time. A device
 * takes only so many; what is sent beyond that waits inside the kernel, where
 * it holds up what came later for the same queue (logs, flushes, other files'
 * edges) and makes io_uring punt. So it waits here, in the order of its coming.
 * The object is struct device_slots, inside its device; any thread, under its
 * mutex, which is a leaf and held for moments.
 */
#include "io/device.h"

#include "io/io.h"
#include "io/reactor.h"

#include <assert.h>

void
device_slots_init(struct device_slots *s, uint32_t limit,
		  uint32_t request_bytes)
{
	assert(request_bytes > 0);
	*s = (struct device_slots){ .limit = limit,
				    .request_bytes = request_bytes };
	pthread_mutex_init(&s->mutex, NULL);
}

void
device_slots_fini(struct device_slots *s)
{
	assert(s->used == 0 && s->head == NULL);
	pthread_mutex_destroy(&s->mutex);
}

/* A transfer larger than all of them takes all of them. */
uint32_t
device_slots_of(const struct device_slots *s, uint32_t bytes)
{
	uint32_t n = (uint32_t)(((uint64_t)bytes + s->request_bytes - 1) /
				s->request_bytes);

	return s->limit != 0 && n > s->limit ? s->limit : n;
}

static bool
fits(const struct device_slots *s, uint32_t n)
{
	return s->limit == 0 || s->used + n <= s->limit;
}

bool
device_slots_take(struct device_slots *s, struct slot_waiter *w, uint32_t bytes)
{
	bool taken;

	w->slots = device_slots_of(s, bytes);
	pthread_mutex_lock(&s->mutex);
	taken = s->head == NULL && fits(s, w->slots);
	if (taken) {
		s->used += w->slots;
	} else {
		s->waits++;
		w->since_ns = clock_ns();
		w->next = NULL;
		if (s->head == NULL)
			s->head = w;
		else
			s->tail->next = w;
		s->tail = w;
	}
	pthread_mutex_unlock(&s->mutex);
	return taken;
}

uint32_t
device_slots_force(struct device_slots *s, uint32_t bytes)
{
	uint32_t n = device_slots_of(s, bytes);

	pthread_mutex_lock(&s->mutex);
	s->used += n;
	pthread_mutex_unlock(&s->mutex);
	return n;
}

static void
waiter_run(struct message *m)
{
	struct slot_waiter *w = container_of(m, struct slot_waiter, msg);

	w->ready(w);
}

/* Who may go now, oldest first; the mutex is held. */
static struct slot_waiter *
let_in(struct device_slots *s)
{
	struct slot_waiter *first = s->head, *last = NULL;
	uint64_t now = 0;

	while (s->head != NULL && fits(s, s->head->slots)) {
		last = s->head;
		s->used += last->slots;
		if (now == 0)
			now = clock_ns();
		s->wait_ns += now - last->since_ns;
		s->head = last->next;
	}
	if (last == NULL)
		return NULL;
	last->next = NULL;
	return first;
}

void
device_slots_give(struct device_slots *s, uint32_t slots)
{
	struct slot_waiter *w, *next;

	pthread_mutex_lock(&s->mutex);
	assert(s->used >= slots);
	s->used -= slots;
	w = let_in(s);
	pthread_mutex_unlock(&s->mutex);
	for (; w != NULL; w = next) {
		next = w->next; /* once posted, it is not ours */
		w->msg.run = waiter_run;
		reactor_post(w->reactor, &w->msg);
	}
}

void
device_slots_tell(struct device_slots *s, struct device_state *ret)
{
	pthread_mutex_lock(&s->mutex);
	ret->slots = s->limit;
	ret->slots_used = s->used;
	ret->slot_waits = s->waits;
	ret->slot_wait_ns = s->wait_ns;
	pthread_mutex_unlock(&s->mutex);
}
