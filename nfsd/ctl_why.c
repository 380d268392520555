/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvnfsctl why FILE: how the server reads and writes a file, why, and what it
 * has seen of it. Runs on the control thread. The file is named by its path on
 * the server.
 */
#include "nfsd/ctl.h"
#include "nfsd/server.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static unsigned
percent(uint64_t a, uint64_t n)
{
	return n == 0 ? 0 : (unsigned)(100 * a / n);
}

/* What a file was used for lately. */
static struct json_object *
evidence_json(const struct io_learned *l)
{
	struct json_object *o = json_object_new_object();

	ctl_put(o, "reads", l->reads);
	ctl_put(o, "read_bytes_mean",
		l->reads == 0 ? 0 : l->read_bytes / l->reads);
	ctl_put(o, "reads_in_order_percent",
		percent(l->reads_in_order, l->reads));
	ctl_put(o, "read_again_percent",
		percent(l->read_again, l->read_samples));
	ctl_put(o, "read_after_write_percent",
		percent(l->read_written, l->read_samples));
	ctl_put(o, "writes", l->writes);
	ctl_put(o, "write_bytes_mean",
		l->writes == 0 ? 0 : l->write_bytes / l->writes);
	ctl_put(o, "writes_aligned_percent",
		percent(l->writes_aligned, l->writes));
	ctl_put(o, "writes_stable_percent",
		percent(l->writes_stable, l->writes));
	ctl_put(o, "written_again_percent",
		percent(l->written_again, l->written_samples));
	ctl_put(o, "written_often_percent",
		percent(l->written_often, l->written_samples));
	ctl_put(o, "growth_percent", l->growth);
	ctl_put(o, "span_bytes", l->span_bytes);
	ctl_put(o, "keep_bytes_max", l->keep_bytes);
	ctl_put(o, "memory_pressure_percent", l->pressure);
	return o;
}

/* Why mode auto has come to each. */
static const char *const read_reasons[] = {
	[IO_BUFFERED] = "what is read was used before, and fits into memory",
	[IO_DONTCACHE] = "small READs in order profit from readahead",
	[IO_DIRECT] = "nothing that the page cache would be good for",
};
static const char *const write_reasons[] = {
	[IO_BUFFERED] = ("what is written is written again, or read, soon, and "
			 "fits into memory"),
	[IO_DONTCACHE] = ("small portions, which the flusher and a sync write "
			  "in longer runs"),
	[IO_DIRECT] = "nothing that the page cache would be good for",
};

/* The mode, and why it is this one. */
static void
put_mode(struct json_object *o, const char *mode_key, const char *why_key,
	 enum io_mode set, enum io_mode found, const char *const *reasons)
{
	ctl_put_text(o, mode_key, io_mode_name(set == IO_AUTO ? found : set));
	ctl_put_text(o, why_key,
		     set == IO_AUTO ? reasons[found] : "the export says so");
}

/* learned is NULL where nothing was. */
static struct json_object *
why_json(const struct export *e, const struct io_policy *p,
	 const struct io_learned *learned)
{
	struct json_object *o = json_object_new_object();
	struct io_learned l = { .read_mode = IO_DIRECT,
				.write_mode = IO_DIRECT };

	if (learned != NULL)
		l = *learned;
	ctl_put_text(o, "export", e->path);
	put_mode(o, "read-mode", "read-why", p->read_mode, l.read_mode,
		 read_reasons);
	put_mode(o, "write-mode", "write-why", p->write_mode, l.write_mode,
		 write_reasons);
	ctl_put_text(o, "edges", io_edges_name(p->edges));
	if (learned != NULL)
		json_object_object_add(o, "evidence", evidence_json(learned));
	return o;
}

static int
why_of(struct server *s, const struct export *e, const char *path,
       struct json_object **ret, struct ctl_error *error)
{
	struct volume *v = e->rw != NULL ? e->rw : e->ro;
	struct io_policy p = volume_policy(v);
	struct io_learned l;
	struct stat st, root;
	bool learned;

	if (stat(path, &st) != 0 || fstat(volume_root_fd(v), &root) != 0)
		return ctl_fail(error, -errno, "%s: %s", path, strerror(errno));
	if (st.st_dev != root.st_dev)
		return ctl_fail(error, -ENOENT,
				"%s lies in no export: it is on a file system "
				"that is mounted below %s",
				path, e->path);
	learned = S_ISREG(st.st_mode) &&
		  file_learned(s->engine, v, st.st_ino, &l);
	*ret = why_json(e, &p, learned ? &l : NULL);
	return 0;
}

int
ctl_why(struct server *s, struct json_object *args, struct json_object **ret,
	struct ctl_error *error)
{
	const char *path = ctl_arg(args, "path"), *rest;
	struct export_table *t;
	struct export *e;
	int rc;

	if (path == NULL)
		return ctl_fail(error, -EINVAL, "no file is named");
	t = server_exports_get(s);
	e = export_find_path(t, path, &rest);
	rc = e == NULL ? ctl_fail(error, -ENOENT, "%s lies in no export", path)
		       : why_of(s, e, path, ret, error);
	export_table_put(t);
	return rc;
}
