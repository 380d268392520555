/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values by device for the table of counters: slots for direct I/O, and health
 * by NVMe's SMART log as it was read last. It counts nothing itself.
 */
#include "nfsd/devices.h"

#include <errno.h>

#define DATA_UNIT_BYTES 512000u

enum value {
	SLOTS,
	SLOTS_USED,
	SLOT_WAITS,
	SLOT_WAIT_NS,
	/* and of NVMe devices that answered */
	CRITICAL_WARNING,
	TEMPERATURE,
	SPARE,
	USED,
	MEDIA_ERRORS,
	UNSAFE_SHUTDOWNS,
	READ_BYTES,
	WRITTEN_BYTES
};

static uint64_t
units(uint64_t n)
{
	return n > UINT64_MAX / DATA_UNIT_BYTES ? UINT64_MAX
						: n * DATA_UNIT_BYTES;
}

static uint64_t
value_of(const struct device_state *d, enum value v)
{
	const struct nvme_smart *s = &d->smart;
	int celsius = s->temperature_celsius;

	switch (v) {
	case SLOTS:
		return d->slots;
	case SLOTS_USED:
		return d->slots_used;
	case SLOT_WAITS:
		return d->slot_waits;
	case SLOT_WAIT_NS:
		return d->slot_wait_ns;
	case CRITICAL_WARNING:
		return s->critical_warning;
	case TEMPERATURE:
		return celsius > 0 ? (uint64_t)celsius : 0;
	case SPARE:
		return s->spare_percent;
	case USED:
		return s->used_percent;
	case MEDIA_ERRORS:
		return s->media_errors;
	case UNSAFE_SHUTDOWNS:
		return s->unsafe_shutdowns;
	case READ_BYTES:
		return units(s->data_units_read);
	case WRITTEN_BYTES:
		return units(s->data_units_written);
	}
	return 0;
}

/* Has it slots of its own, or such a log? */
static bool
tells(const struct device_state *d, enum value v)
{
	return v >= CRITICAL_WARNING ? d->smart_error == 0 : d->slots != 0;
}

static int
list(struct server *s, struct counter_sink *k, enum value v)
{
	struct device_state d[DEVICES_SHOWN_MAX];
	unsigned n = device_states(server_engine(s), d, DEVICES_SHOWN_MAX);
	int r = -ENODATA;

	for (unsigned i = 0; i < n && i < DEVICES_SHOWN_MAX; i++) {
		if (!tells(&d[i], v))
			continue;
		k->put(k, d[i].name, value_of(&d[i], v));
		r = 0;
	}
	return r;
}

int
devices_slots(struct server *s, struct counter_sink *k)
{
	return list(s, k, SLOTS);
}

int
devices_slots_used(struct server *s, struct counter_sink *k)
{
	return list(s, k, SLOTS_USED);
}

int
devices_slot_waits(struct server *s, struct counter_sink *k)
{
	return list(s, k, SLOT_WAITS);
}

int
devices_slot_wait_ns(struct server *s, struct counter_sink *k)
{
	return list(s, k, SLOT_WAIT_NS);
}

int
devices_critical_warning(struct server *s, struct counter_sink *k)
{
	return list(s, k, CRITICAL_WARNING);
}

int
devices_temperature(struct server *s, struct counter_sink *k)
{
	return list(s, k, TEMPERATURE);
}

int
devices_spare(struct server *s, struct counter_sink *k)
{
	return list(s, k, SPARE);
}

int
devices_used(struct server *s, struct counter_sink *k)
{
	return list(s, k, USED);
}

int
devices_media_errors(struct server *s, struct counter_sink *k)
{
	return list(s, k, MEDIA_ERRORS);
}

int
devices_unsafe_shutdowns(struct server *s, struct counter_sink *k)
{
	return list(s, k, UNSAFE_SHUTDOWNS);
}

int
devices_read_bytes(struct server *s, struct counter_sink *k)
{
	return list(s, k, READ_BYTES);
}

int
devices_written_bytes(struct server *s, struct counter_sink *k)
{
	return list(s, k, WRITTEN_BYTES);
}
