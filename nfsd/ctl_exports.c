/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands about the server and its exports as a whole: status, exports. They
 * run on the control thread and read what any thread may.
 */
#include "nfsd/ctl.h"

#include "nfsd/server.h"

#include <inttypes.h>
#include <unistd.h>

static void
put(struct json_object *o, const char *name, uint64_t value)
{
	json_object_object_add(o, name, json_object_new_uint64(value));
}

static void
put_text(struct json_object *o, const char *name, const char *text)
{
	json_object_object_add(o, name, json_object_new_string(text));
}

int
ctl_status(struct server *s, struct json_object *args, struct json_object **ret,
	   struct ctl_error *error)
{
	struct export_table *t = server_exports_get(s);
	const struct engine_facts *f = engine_facts(s->engine);
	struct json_object *o = json_object_new_object();

	put_text(o, "version", NVNFSD_VERSION);
	put(o, "pid", (uint64_t)getpid());
	put_text(o, "engine",
		 f->backend == IO_BACKEND_URING ? "uring" : "threads");
	put(o, "reactors", f->reactors);
	put(o, "buffer_bytes", f->buffer_bytes);
	put(o, "exports", export_table_count(t));
	put(o, "open_files", file_count(s->engine));
	export_table_put(t);
	*ret = o;
	return 0;
}

static struct json_object *
policy_json(const struct io_policy *p)
{
	struct json_object *o = json_object_new_object();

	put_text(o, "read-mode", io_mode_name(p->read_mode));
	put_text(o, "write-mode", io_mode_name(p->write_mode));
	put_text(o, "edges", io_edges_name(p->edges));
	put(o, "direct-min", p->direct_min);
	put_text(o, "stable-floor",
		 conf_stable_name((enum conf_stable)p->stable_floor));
	put_text(o, "torn-free", p->torn_free ? "yes" : "no");
	return o;
}

static struct json_object *
clients_json(const struct conf_export *c)
{
	struct json_object *list = json_object_new_array(), *o;
	unsigned i;

	for (i = 0; i < c->client_count; i++) {
		o = json_object_new_object();
		put_text(o, "client", c->clients[i].match.text);
		put_text(o, "access", c->clients[i].options.rw ? "rw" : "ro");
		json_object_array_add(list, o);
	}
	return list;
}

int
ctl_exports(struct server *s, struct json_object *args,
	    struct json_object **ret, struct ctl_error *error)
{
	struct export_table *t = server_exports_get(s);
	struct json_object *list = json_object_new_array(), *o;
	const struct export *e;
	struct io_policy p;
	struct volume *v;
	char id[17];
	unsigned i;

	for (i = 0; i < export_table_count(t); i++) {
		e = export_table_at(t, i);
		v = e->rw != NULL ? e->rw : e->ro;
		p = volume_policy(v);
		o = json_object_new_object();
		put_text(o, "path", e->path);
		(void)snprintf(id, sizeof(id), "%016" PRIx64, e->id);
		put_text(o, "id", id);
		(void)snprintf(id, sizeof(id), "%016" PRIx64,
			       volume_verifier(v));
		put_text(o, "verifier", id);
		json_object_object_add(o, "clients", clients_json(&e->conf));
		json_object_object_add(o, "modes", policy_json(&p));
		json_object_array_add(list, o);
	}
	export_table_put(t);
	*ret = list;
	return 0;
}
