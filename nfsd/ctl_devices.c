/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvnfsctl devices: what the server has found out about what lies under each
 * export, and what follows from it. Runs on the control thread; reads facts
 * that do not change while an export is open, and the newest state of its
 * devices.
 */
#include "nfsd/ctl.h"
#include "nfsd/devices.h"
#include "nfsd/server.h"

static void
put(struct json_object *o, const char *name, uint64_t value)
{
	json_object_object_add(o, name, json_object_new_uint64(value));
}

static void
put_bool(struct json_object *o, const char *name, bool value)
{
	json_object_object_add(o, name, json_object_new_boolean(value));
}

/* NULL: JSON's null. */
static void
put_text(struct json_object *o, const char *name, const char *text)
{
	json_object_object_add(
		o, name, text == NULL ? NULL : json_object_new_string(text));
}

/* what follows ---------------------------------------------------------------
 */

static struct json_object *
facts_json(const struct volume_facts *f)
{
	struct json_object *o = json_object_new_object();

	put_text(o, "device", f->device);
	put(o, "fs_type", f->fs_type);
	put(o, "block_bytes", f->block_bytes);
	put(o, "cut_bytes", f->cut_bytes);
	put(o, "dio_mem_align", f->dio_mem_align);
	put(o, "dio_offset_align", f->dio_offset_align);
	put_text(o, "no_direct_why", f->direct_why);
	put(o, "logical_bytes", f->logical_bytes);
	put(o, "physical_bytes", f->physical_bytes);
	put(o, "piece_bytes_max", f->piece_bytes_max);
	put(o, "piece_boundary", f->piece_boundary);
	put(o, "write_preferred_bytes", f->write_pref_bytes);
	put(o, "write_multiple_bytes", f->write_mult_bytes);
	put(o, "slots", f->slots);
	put(o, "slot_bytes", f->request_bytes);
	put_bool(o, "sync_by_fua", f->sync_by_fua);
	put(o, "atomic_bytes_min", f->atomic_bytes_min);
	put(o, "atomic_bytes_max", f->atomic_bytes_max);
	put_text(o, "no_atomic_why", f->atomic_why);
	put_bool(o, "dontcache", f->dontcache);
	put_bool(o, "nowait_buffered", f->nowait_buffered);
	put_bool(o, "write_cache", f->write_cache);
	return o;
}

/* one device ------------------------------------------------------------------
 */

static void
put_limits(struct json_object *o, const struct device_limits *l)
{
	put(o, "logical_bytes", l->logical_bytes);
	put(o, "physical_bytes", l->physical_bytes);
	put(o, "minimum_io_bytes", l->minimum_bytes);
	put(o, "optimal_io_bytes", l->optimal_bytes);
	put(o, "boundary_bytes", l->boundary_bytes);
	put(o, "transfer_bytes_max", l->transfer_bytes_max);
	put(o, "request_bytes_max", l->request_bytes_max);
	put(o, "virtual_boundary_bytes", l->virt_boundary_bytes);
	put(o, "dma_align_bytes", l->dma_align_bytes);
	put(o, "atomic_bytes_min", l->atomic_bytes_min);
	put(o, "atomic_bytes_max", l->atomic_bytes_max);
	put(o, "atomic_boundary_bytes", l->atomic_boundary_bytes);
	put(o, "queues", l->queues);
	put(o, "queue_requests", l->queue_requests);
	put_bool(o, "write_cache", l->write_cache);
	put_bool(o, "fua", l->fua);
	put_bool(o, "rotational", l->rotational);
}

static struct json_object *
nvme_json(const struct nvme_facts *f)
{
	struct json_object *o = json_object_new_object();

	put_text(o, "model", f->model);
	put_text(o, "firmware", f->firmware);
	put(o, "namespace", f->nsid);
	put(o, "lba_format", f->format);
	put(o, "lba_bytes", f->block_bytes);
	put(o, "metadata_bytes", f->metadata_bytes);
	put(o, "npwg_bytes", f->npwg_bytes);
	put(o, "npwa_bytes", f->npwa_bytes);
	put(o, "nows_bytes", f->nows_bytes);
	put(o, "noiob_bytes", f->noiob_bytes);
	put(o, "awun_bytes", f->awun_bytes);
	put(o, "awupf_bytes", f->awupf_bytes);
	put(o, "mdts_bytes", f->mdts_bytes);
	put_bool(o, "vwc", f->volatile_cache);
	return o;
}

static struct json_object *
smart_json(const struct device_state *d)
{
	struct json_object *o = json_object_new_object();
	const struct nvme_smart *s = &d->smart;

	put(o, "age_seconds", d->smart_age_ns / 1000000000u);
	put(o, "critical_warning", s->critical_warning);
	json_object_object_add(o, "temperature_celsius",
			       json_object_new_int(s->temperature_celsius));
	put(o, "spare_percent", s->spare_percent);
	put(o, "spare_threshold_percent", s->spare_threshold_percent);
	put(o, "used_percent", s->used_percent);
	put(o, "media_errors", s->media_errors);
	put(o, "unsafe_shutdowns", s->unsafe_shutdowns);
	put(o, "data_units_read", s->data_units_read);
	put(o, "data_units_written", s->data_units_written);
	return o;
}

static void
put_state(struct json_object *o, const struct device_state *d)
{
	put(o, "slots", d->slots);
	put(o, "slots_used", d->slots_used);
	put(o, "slot_waits", d->slot_waits);
	put(o, "slot_wait_ns", d->slot_wait_ns);
	if (d->nvme_error != 0) {
		put_text(o, "no_nvme_why", devices_nvme_why(d->nvme_error));
		return;
	}
	json_object_object_add(o, "nvme", nvme_json(&d->nvme));
	if (d->smart_error != 0)
		put_text(o, "no_smart_why", devices_nvme_why(d->smart_error));
	else
		json_object_object_add(o, "smart", smart_json(d));
}

static struct json_object *
node_json(struct engine *e, const struct device_chain *c, unsigned i)
{
	const struct device_node *n = &c->node[i];
	struct json_object *o = json_object_new_object();
	struct device_state d;

	put_text(o, "name", n->name);
	put_text(o, "kind", device_kind_name(n->kind));
	put_text(o, "detail", n->detail[0] != '\0' ? n->detail : NULL);
	put_text(o, "under", n->above != i ? c->node[n->above].name : NULL);
	put_bool(o, "leaf", n->below == 0);
	put_bool(o, "aligned", n->aligned);
	if (n->kind == DEVICE_PARTITION)
		put(o, "start_bytes", n->start);
	put_limits(o, &n->limits);
	if (n->kind != DEVICE_PARTITION && device_state_of(e, n->dev, &d))
		put_state(o, &d);
	return o;
}

static struct json_object *
chain_json(struct engine *e, const struct device_chain *c)
{
	struct json_object *list = json_object_new_array();
	unsigned i;

	for (i = 0; i < c->count; i++)
		json_object_array_add(list, node_json(e, c, i));
	return list;
}

/* the command -----------------------------------------------------------------
 */

int
ctl_devices(struct server *s, struct json_object *args,
	    struct json_object **ret, struct ctl_error *error)
{
	struct export_table *t = server_exports_get(s);
	struct json_object *list = json_object_new_array(), *o;
	const struct export *e;
	const struct volume *v;
	unsigned i;

	for (i = 0; i < export_table_count(t); i++) {
		e = export_table_at(t, i);
		v = e->rw != NULL ? e->rw : e->ro;
		o = facts_json(volume_facts(v));
		put_text(o, "export", e->path);
		json_object_object_add(o, "chain",
				       chain_json(s->engine, volume_chain(v)));
		json_object_array_add(list, o);
	}
	export_table_put(t);
	*ret = list;
	return 0;
}
