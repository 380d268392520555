/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvnfsctl why FILE: how the server reads and writes a file, and why. Runs on
 * the control thread. The file is named by its path on the server.
 */
#include "nfsd/ctl.h"
#include "nfsd/server.h"

#include <errno.h>

int
ctl_why(struct server *s, struct json_object *args, struct json_object **ret,
	struct ctl_error *error)
{
	const char *path = ctl_arg(args, "path"), *rest;
	struct export_table *t;
	struct json_object *o;
	struct io_policy p;
	struct export *e;

	if (path == NULL)
		return ctl_fail(error, -EINVAL, "no file is named");
	t = server_exports_get(s);
	e = export_find_path(t, path, &rest);
	if (e == NULL) {
		export_table_put(t);
		return ctl_fail(error, -ENOENT, "%s lies in no export", path);
	}
	p = volume_policy(e->rw != NULL ? e->rw : e->ro);
	o = json_object_new_object();
	json_object_object_add(o, "export", json_object_new_string(e->path));
	json_object_object_add(
		o, "read-mode",
		json_object_new_string(io_mode_name(p.read_mode)));
	json_object_object_add(
		o, "write-mode",
		json_object_new_string(io_mode_name(p.write_mode)));
	json_object_object_add(o, "edges",
			       json_object_new_string(io_edges_name(p.edges)));
	export_table_put(t);
	*ret = o;
	return 0;
}
