/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvnfsctl devices: what the server has found out about what lies under each
 * export. Runs on the control thread; reads facts that do not change while an
 * export is open.
 */
#include "nfsd/ctl.h"
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

static struct json_object *
facts_json(const struct volume_facts *f)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "device", json_object_new_string(f->device));
	put(o, "fs_type", f->fs_type);
	put(o, "block_bytes", f->block_bytes);
	put(o, "cut_bytes", f->cut_bytes);
	put(o, "dio_mem_align", f->dio_mem_align);
	put(o, "dio_offset_align", f->dio_offset_align);
	put(o, "logical_bytes", f->logical_bytes);
	put(o, "physical_bytes", f->physical_bytes);
	put(o, "piece_bytes_max", f->piece_bytes_max);
	put(o, "piece_boundary", f->piece_boundary);
	put_bool(o, "dontcache", f->dontcache);
	put_bool(o, "nowait_buffered", f->nowait_buffered);
	put_bool(o, "write_cache", f->write_cache);
	return o;
}

int
ctl_devices(struct server *s, struct json_object *args,
	    struct json_object **ret, struct ctl_error *error)
{
	struct export_table *t = server_exports_get(s);
	struct json_object *list = json_object_new_array(), *o;
	const struct export *e;
	unsigned i;

	for (i = 0; i < export_table_count(t); i++) {
		e = export_table_at(t, i);
		o = facts_json(volume_facts(e->rw != NULL ? e->rw : e->ro));
		json_object_object_add(o, "export",
				       json_object_new_string(e->path));
		json_object_array_add(list, o);
	}
	export_table_put(t);
	*ret = list;
	return 0;
}
