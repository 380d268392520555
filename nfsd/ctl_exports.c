/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands about the server and its exports as a whole: status, exports,
 * unexport, drain. They run on the control thread.
 */
#include "nfsd/ctl.h"

#include "nfsd/override.h"
#include "nfsd/server.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define SYNC_NS (5ull * 1000000000) /* then it is asked again */

/* Those of the command line. */
static struct json_object *
export_lines_json(const struct server_options *o)
{
	struct json_object *list = json_object_new_array();
	unsigned i;

	for (i = 0; i < o->export_count; i++)
		json_object_array_add(
			list, json_object_new_string(o->export_lines[i]));
	return list;
}

int
ctl_status(struct server *s, struct json_object *args, struct json_object **ret,
	   struct ctl_error *error)
{
	struct export_table *t = server_exports_get(s);
	const struct engine_facts *f = engine_facts(s->engine);
	struct json_object *o = json_object_new_object();

	ctl_put_text(o, "version", NVNFSD_VERSION);
	ctl_put_text(o, "config", s->options->config);
	if (s->options->exports != NULL)
		ctl_put_text(o, "exports_file", s->options->exports);
	if (s->options->export_count > 0)
		json_object_object_add(o, "export_lines",
				       export_lines_json(s->options));
	ctl_put(o, "pid", (uint64_t)getpid());
	ctl_put_text(o, "engine",
		     f->backend == IO_BACKEND_URING ? "uring" : "threads");
	ctl_put(o, "reactors", f->reactors);
	ctl_put(o, "buffer_bytes", f->buffer_bytes);
	ctl_put(o, "exports", export_table_count(t));
	ctl_put(o, "open_files", file_count(s->engine));
	export_table_put(t);
	ctl_put(o, "uptime_ns", monotonic_ns() - s->started_ns);
	ctl_put(o, "connections", drain_left(s));
	ctl_put_bool(o, "draining", s->draining);
	*ret = o;
	return 0;
}

static struct json_object *
policy_json(const struct io_policy *p)
{
	struct json_object *o = json_object_new_object();

	ctl_put_text(o, "read-mode", io_mode_name(p->read_mode));
	ctl_put_text(o, "write-mode", io_mode_name(p->write_mode));
	ctl_put_text(o, "edges", io_edges_name(p->edges));
	ctl_put(o, "direct-min", p->direct_min);
	ctl_put_text(o, "stable-floor",
		     conf_stable_name((enum conf_stable)p->stable_floor));
	ctl_put_text(o, "torn-free", p->torn_free ? "yes" : "no");
	ctl_put(o, "dirty-max", p->dirty_max);
	ctl_put(o, "flush-share", p->flush_share);
	return o;
}

static struct json_object *
clients_json(const struct conf_export *c)
{
	struct json_object *list = json_object_new_array(), *o;
	unsigned i;

	for (i = 0; i < c->client_count; i++) {
		o = json_object_new_object();
		ctl_put_text(o, "client", c->clients[i].match.text);
		ctl_put_text(o, "access",
			     c->clients[i].options.rw ? "rw" : "ro");
		json_object_array_add(list, o);
	}
	return list;
}

/* What set has changed for this one; NULL: nothing. */
static struct json_object *
set_json(struct server *s, const char *path)
{
	struct json_object *o = NULL;
	const char *of, *key, *value;
	unsigned i;

	pthread_mutex_lock(&s->change);
	for (i = 0; override_at(s->overrides, i, &of, &key, &value); i++) {
		if (of != NULL && strcmp(of, path) != 0)
			continue;
		if (o == NULL)
			o = json_object_new_object();
		ctl_put_text(o, key, value);
	}
	pthread_mutex_unlock(&s->change);
	return o;
}

int
ctl_exports(struct server *s, struct json_object *args,
	    struct json_object **ret, struct ctl_error *error)
{
	struct export_table *t = server_exports_get(s);
	struct json_object *list = json_object_new_array(), *o, *set;
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
		ctl_put_text(o, "path", e->path);
		ctl_put_text(o, "device", volume_facts(v)->device);
		(void)snprintf(id, sizeof(id), "%016" PRIx64, e->id);
		ctl_put_text(o, "id", id);
		(void)snprintf(id, sizeof(id), "%016" PRIx64,
			       volume_verifier(v));
		ctl_put_text(o, "verifier", id);
		json_object_object_add(o, "clients", clients_json(&e->conf));
		json_object_object_add(o, "modes", policy_json(&p));
		set = set_json(s, e->path);
		if (set != NULL)
			json_object_object_add(o, "set", set);
		json_object_array_add(list, o);
	}
	export_table_put(t);
	*ret = list;
	return 0;
}

int
ctl_unexport(struct server *s, struct json_object *args,
	     struct json_object **ret, struct ctl_error *error)
{
	const char *path = ctl_arg(args, "path");
	struct json_object *o;
	int rc;

	if (path == NULL)
		return ctl_fail(error, -EINVAL, "no export is named");
	rc = server_unexport(s, path);
	if (rc == -ENOENT)
		return ctl_fail(error, rc, "%s is not exported", path);
	if (rc < 0)
		return ctl_fail(error, rc, "%s: %s", path, strerror(-rc));
	o = json_object_new_object();
	ctl_put_text(o, "path", path);
	ctl_put_bool(o, "released", rc == 0);
	*ret = o;
	return 0;
}

/* Drain -------------------------------------------------------------------- */

static uint64_t
calls_left(const struct server *s)
{
	uint64_t n = 0;
	unsigned i;

	for (i = 0; i < s->shards; i++)
		n += s->shard[i]->stats.calls_in_service;
	return n;
}

/* What is still to be done; when no connection is left, the sync. It may be
 * asked again and again (with ask it begins nothing, for another may have said
 * resume): the sync of what is clean is short. */
int
ctl_drain(struct server *s, struct json_object *args, struct json_object **ret,
	  struct ctl_error *error)
{
	bool resume = ctl_arg_bool(args, "resume"), quiet;
	bool ask = ctl_arg_bool(args, "ask");
	struct json_object *o;
	int rc = -EBUSY;

	if (resume && s->draining) {
		drain_end(s);
		log_msg(LOG_NOTICE_, "serving again");
	} else if (!resume && !ask && !s->draining) {
		drain_begin(s);
		log_msg(LOG_NOTICE_, "draining: no new connections, and those "
				     "that are there end");
	}
	quiet = s->draining && drain_left(s) == 0;
	if (quiet)
		rc = file_close_all(s->engine, NULL, monotonic_ns() + SYNC_NS);
	if (quiet && rc < 0 && rc != -EBUSY)
		return ctl_fail(error, rc, "not everything could be synced: %s",
				strerror(-rc));
	o = json_object_new_object();
	ctl_put_bool(o, "draining", s->draining);
	ctl_put(o, "connections", drain_left(s));
	ctl_put(o, "calls", calls_left(s));
	ctl_put_bool(o, "synced", quiet && rc == 0);
	*ret = o;
	return 0;
}
