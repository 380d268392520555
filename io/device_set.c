/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices that volumes stand on, each once however many volumes do: its
 * slots for direct I/O, and what NVMe says of it, of which the SMART log is
 * read again once a minute. The object is struct device, counted: made when a
 * volume opens, gone with the last one. The set belongs to the engine. Facts
 * are asked for on the thread that opens the volume, health on a worker, and
 * anybody may read both: under the set's mutex, which is a leaf.
 */
#include "io/device.h"

#include "io/reactor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REFRESH_NS (60 * NS_PER_S)

struct device_set {
	pthread_mutex_t mutex;
	LIST_HEAD(, device) devices;
	struct engine *engine;
	struct work refresh;
	uint64_t refresh_ns; /* when the last one began */
	bool refreshing;
};

/* one device -----------------------------------------------------------------
 */

static struct device *
find(struct device_set *s, dev_t dev)
{
	struct device *d;

	LIST_FOREACH (d, &s->devices, link)
		if (d->dev == dev)
			return d;
	return NULL;
}

static struct device *
device_new(struct device_set *s, const struct device_node *n)
{
	struct device *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return NULL;
	d->set = s;
	d->refs = 1;
	d->dev = n->dev;
	memcpy(d->name, n->name, sizeof(d->name));
	device_slots_init(&d->slots, device_slots_limit(&n->limits),
			  device_request_bytes(&n->limits));
	d->nvme_error = nvme_ask(&d->nvme, d->name, d->dev);
	d->smart_error = d->nvme_error;
	if (d->nvme_error == 0)
		d->smart_error = nvme_ask_smart(&d->smart, d->name, d->dev);
	d->smart_ns = clock_ns();
	return d;
}

static void
device_free(struct device *d)
{
	if (d == NULL)
		return;
	device_slots_fini(&d->slots);
	free(d);
}

/* The mutex is held; found gets a reference. */
static struct device *
get(struct device_set *s, dev_t dev)
{
	struct device *d = find(s, dev);

	if (d != NULL)
		d->refs++;
	return d;
}

struct device *
device_get(struct device_set *s, const struct device_node *n)
{
	struct device *d, *own = NULL;

	pthread_mutex_lock(&s->mutex);
	d = get(s, n->dev);
	if (d == NULL) {
		pthread_mutex_unlock(&s->mutex);
		own = device_new(s, n);
		pthread_mutex_lock(&s->mutex);
		d = get(s, n->dev);
	}
	if (d == NULL && own != NULL) {
		LIST_INSERT_HEAD(&s->devices, own, link);
		d = own;
		own = NULL;
	}
	pthread_mutex_unlock(&s->mutex);
	device_free(own);
	return d;
}

void
device_put(struct device *d)
{
	struct device_set *s;
	bool last;

	if (d == NULL)
		return;
	s = d->set;
	pthread_mutex_lock(&s->mutex);
	last = --d->refs == 0;
	if (last)
		LIST_REMOVE(d, link);
	pthread_mutex_unlock(&s->mutex);
	if (last)
		device_free(d);
}

/* health ---------------------------------------------------------------------
 */

/* The next whose log is older than this round; a reference. */
static struct device *
next_stale(struct device_set *s)
{
	struct device *d;

	LIST_FOREACH (d, &s->devices, link)
		if (d->nvme_error == 0 && d->smart_ns < s->refresh_ns)
			break;
	if (d != NULL)
		d->refs++;
	return d;
}

static void
refresh_run(struct work *w)
{
	struct device_set *s = container_of(w, struct device_set, refresh);
	struct nvme_smart smart;
	struct device *d;
	int r;

	pthread_mutex_lock(&s->mutex);
	while ((d = next_stale(s)) != NULL) {
		pthread_mutex_unlock(&s->mutex);
		r = nvme_ask_smart(&smart, d->name, d->dev);
		pthread_mutex_lock(&s->mutex);
		d->smart_error = r;
		d->smart_ns = clock_ns();
		if (r == 0)
			d->smart = smart;
		pthread_mutex_unlock(&s->mutex);
		device_put(d);
		pthread_mutex_lock(&s->mutex);
	}
	s->refreshing = false;
	pthread_mutex_unlock(&s->mutex);
}

void
device_refresh(struct engine *e)
{
	struct device_set *s = engine_devices(e);
	uint64_t now = clock_ns();
	bool start;

	pthread_mutex_lock(&s->mutex);
	start = !s->refreshing && now - s->refresh_ns >= REFRESH_NS;
	if (start) {
		s->refreshing = true;
		s->refresh_ns = now;
	}
	pthread_mutex_unlock(&s->mutex);
	if (start)
		work_submit(e, WORK_META, &s->refresh);
}

/* for whoever shows it
 * --------------------------------------------------------- */

static void
tell(struct device_state *ret, struct device *d, uint64_t now)
{
	*ret = (struct device_state){ .dev = d->dev,
				      .nvme_error = d->nvme_error,
				      .nvme = d->nvme,
				      .smart_error = d->smart_error,
				      .smart_age_ns = now - d->smart_ns,
				      .smart = d->smart };
	memcpy(ret->name, d->name, sizeof(ret->name));
	device_slots_tell(&d->slots, ret);
}

unsigned
device_states(struct engine *e, struct device_state *ret, unsigned max)
{
	struct device_set *s = engine_devices(e);
	uint64_t now = clock_ns();
	struct device *d;
	unsigned n = 0;

	pthread_mutex_lock(&s->mutex);
	LIST_FOREACH (d, &s->devices, link)
		if (n++ < max)
			tell(&ret[n - 1], d, now);
	pthread_mutex_unlock(&s->mutex);
	return n;
}

bool
device_state_of(struct engine *e, dev_t dev, struct device_state *ret)
{
	struct device_set *s = engine_devices(e);
	struct device *d;

	pthread_mutex_lock(&s->mutex);
	d = find(s, dev);
	if (d != NULL)
		tell(ret, d, clock_ns());
	pthread_mutex_unlock(&s->mutex);
	return d != NULL;
}

/* life
 * ------------------------------------------------------------------------- */

int
device_set_new(struct device_set **ret, struct engine *e)
{
	struct device_set *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	pthread_mutex_init(&s->mutex, NULL);
	LIST_INIT(&s->devices);
	s->engine = e;
	s->refresh.run = refresh_run;
	s->refresh_ns = clock_ns();
	*ret = s;
	return 0;
}

void
device_set_free(struct device_set *s)
{
	struct device *d, *next;

	if (s == NULL)
		return;
	/* An export that could not be let go of may have left some. */
	for (d = LIST_FIRST(&s->devices); d != NULL; d = next) {
		next = LIST_NEXT(d, link);
		free(d);
	}
	pthread_mutex_destroy(&s->mutex);
	free(s);
}
