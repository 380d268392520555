/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of the devices under an export, in words: a line for each block
 * device from the file system down, what an NVMe device says of itself, and
 * what follows for I/O. It finds nothing out and decides nothing: io/device*.c
 * did, when the export was opened.
 */
#include "nfsd/devices.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#define LINE_BYTES 1024u
#define KIB        1024u

struct teller {
	devices_line_fn *line;
	void *arg;
};

static void say(const struct teller *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void
say(const struct teller *t, const char *format, ...)
{
	char text[LINE_BYTES];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	t->line(t->arg, text);
}

static const char *
yes_no(bool is)
{
	return is ? "yes" : "no";
}

const char *
devices_nvme_why(int error)
{
	switch (-error) {
	case ENODEV:
		return "it is no NVMe device";
	case ENOSYS:
		return "this nvnfsd was built without libnvme";
	case EACCES:
	case EPERM:
		return "no right to ask it (CAP_SYS_ADMIN)";
	case ENOENT:
		return "it is not in /dev";
	default:
		return strerror(-error);
	}
}

/* one device --------------------------------------------------------------- */

static void
tell_node(const struct teller *t, const struct device_chain *c, unsigned i)
{
	const struct device_node *n = &c->node[i];
	const struct device_limits *l = &n->limits;
	char under[DEVICE_NAME_MAX + 16] = "";

	if (n->above != i)
		(void)snprintf(under, sizeof(under), " under %s",
			       c->node[n->above].name);
	if (n->kind == DEVICE_PARTITION) {
		say(t, "%s: partition%s%s", n->name, under,
		    n->aligned ? "" : ", not aligned to its disk");
		return;
	}
	say(t,
	    "%s: %s%s%s%s: blocks of %u bytes (physical %u), I/O of at least "
	    "%u and best %u bytes, boundary %u, transfers up to %u KiB in "
	    "requests of %u, virtual boundary %u, memory aligned to %u, "
	    "atomic writes of %u to %u, queues %u of %u requests, write cache "
	    "%s, FUA %s",
	    n->name, device_kind_name(n->kind), n->detail[0] ? " " : "",
	    n->detail, under, l->logical_bytes, l->physical_bytes,
	    l->minimum_bytes, l->optimal_bytes, l->boundary_bytes,
	    l->transfer_bytes_max / KIB, l->request_bytes_max / KIB,
	    l->virt_boundary_bytes, l->dma_align_bytes, l->atomic_bytes_min,
	    l->atomic_bytes_max, l->queues, l->queue_requests,
	    yes_no(l->write_cache), yes_no(l->fua));
}

static void
tell_nvme(const struct teller *t, const struct device_state *d)
{
	const struct nvme_facts *f = &d->nvme;
	const struct nvme_smart *s = &d->smart;

	if (d->nvme_error != 0) {
		say(t, "%s: what sysfs says serves: %s", d->name,
		    devices_nvme_why(d->nvme_error));
		return;
	}
	say(t,
	    "%s: NVMe %s firmware %s namespace %u LBA format %u of %u+%u bytes "
	    "NPWG %u NPWA %u NOWS %u NOIOB %u AWUN %u AWUPF %u MDTS %u VWC %s",
	    d->name, f->model, f->firmware, f->nsid, f->format, f->block_bytes,
	    f->metadata_bytes, f->npwg_bytes, f->npwa_bytes, f->nows_bytes,
	    f->noiob_bytes, f->awun_bytes, f->awupf_bytes, f->mdts_bytes,
	    yes_no(f->volatile_cache));
	if (d->smart_error != 0) {
		say(t, "%s: SMART: %s", d->name,
		    devices_nvme_why(d->smart_error));
		return;
	}
	say(t,
	    "%s: SMART critical warning 0x%x temperature %d C spare %u %% "
	    "(threshold %u %%) used %u %% media errors %llu unsafe shutdowns "
	    "%llu data units read %llu written %llu",
	    d->name, s->critical_warning, s->temperature_celsius,
	    s->spare_percent, s->spare_threshold_percent, s->used_percent,
	    (unsigned long long)s->media_errors,
	    (unsigned long long)s->unsafe_shutdowns,
	    (unsigned long long)s->data_units_read,
	    (unsigned long long)s->data_units_written);
}

/* what follows ---------------------------------------------------------------
 */

static void
tell_direct(const struct teller *t, const struct volume_facts *f)
{
	if (f->cut_bytes == 0) {
		say(t, "no direct I/O%s%s", f->direct_why != NULL ? ": " : "",
		    f->direct_why != NULL ? f->direct_why : "");
		return;
	}
	say(t,
	    "direct I/O aligned to %u in the file and %u in memory: WRITEs cut "
	    "at %u, pieces up to %u KiB, cut at multiples of %u KiB, at most "
	    "%u "
	    "requests of %u KiB in flight",
	    f->dio_offset_align, f->dio_mem_align, f->cut_bytes,
	    f->piece_bytes_max / KIB, f->piece_boundary / KIB, f->slots,
	    f->request_bytes / KIB);
}

static void
tell_plan(const struct teller *t, const struct volume_facts *f)
{
	tell_direct(t, f);
	say(t, "clients are advised to write %u KiB at multiples of %u bytes",
	    f->write_pref_bytes / KIB, f->write_mult_bytes);
	say(t, "data is made stable by %s",
	    f->sync_by_fua ? "writing through (RWF_DSYNC) where a WRITE is "
			     "alone, else by a sync"
			   : "a sync for all who wait");
	if (f->polls)
		say(t, "the device can be polled (iopoll)");
	if (f->atomic_bytes_max != 0)
		say(t, "WRITEs of %u to %u bytes can be atomic",
		    f->atomic_bytes_min, f->atomic_bytes_max);
	else
		say(t, "no WRITE can be atomic: %s",
		    f->atomic_why != NULL ? f->atomic_why : "");
}

void
devices_tell(struct engine *e, const struct volume *v, devices_line_fn *line,
	     void *arg)
{
	const struct device_chain *c = volume_chain(v);
	const struct teller t = { .line = line, .arg = arg };
	struct device_state d;

	if (c->count == 0)
		say(&t, "no block device is known under it");
	for (unsigned i = 0; i < c->count; i++) {
		tell_node(&t, c, i);
		if (c->node[i].kind == DEVICE_DISK &&
		    device_state_of(e, c->node[i].dev, &d))
			tell_nvme(&t, &d);
	}
	if (c->cut_short)
		say(&t, "and more devices");
	tell_plan(&t, volume_facts(v));
}

static void
log_line(void *arg, const char *line)
{
	log_msg(LOG_INFO_, "export %s: %s", (const char *)arg, line);
}

void
devices_log(struct engine *e, const char *path, const struct volume *v)
{
	devices_tell(e, v, log_line, (void *)path); /* only read */
}
