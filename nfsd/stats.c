/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's counters as one JSON object, written to the state directory on
 * SIGUSR1 and at the end. It only reads relaxed counters; the sums over exports
 * and reactors are made here.
 */
#include "io/fault.h"
#include "nfsd/server.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <string.h>
#include <unistd.h>

#define STATS     "stats.json"
#define STATS_NEW "stats.json.new"

static void
put(struct json_object *o, const char *name, uint64_t value)
{
	json_object_object_add(o, name, json_object_new_uint64(value));
}

static struct json_object *
volume_json(struct volume *v)
{
	struct volume_counters *n = volume_counters(v);
	struct json_object *o = json_object_new_object();
	struct json_object *w = json_object_new_object();
	unsigned i;

	for (i = 0; i < SPLIT_REASONS; i++)
		put(w, split_reason_name((enum split_reason)i), n->writes[i]);
	json_object_object_add(o, "writes", w);
	put(o, "direct_bytes", n->direct_bytes);
	put(o, "edge_bytes", n->edge_bytes);
	put(o, "buffered_bytes", n->buffered_bytes);
	put(o, "read_direct_bytes", n->read_direct_bytes);
	put(o, "read_buffered_bytes", n->read_buffered_bytes);
	put(o, "fallbacks", n->fallbacks);
	put(o, "syncs", n->syncs);
	put(o, "sync_requests", n->sync_requests);
	put(o, "meta_syncs", n->meta_syncs);
	put(o, "meta_sync_requests", n->meta_sync_requests);
	put(o, "flushes", n->flushes);
	put(o, "pages_dropped", n->pages_dropped);
	put(o, "edge_spans", n->edge_spans);
	put(o, "range_waits", n->range_waits);
	put(o, "verifier_changes", n->verifier_changes);
	return o;
}

static struct json_object *
exports_json(struct server *s)
{
	struct export_table *t = server_exports_get(s);
	struct json_object *o = json_object_new_object();
	const struct export *e;
	unsigned i;

	for (i = 0; i < export_table_count(t); i++) {
		e = export_table_at(t, i);
		json_object_object_add(
			o, e->path, volume_json(e->rw != NULL ? e->rw : e->ro));
	}
	export_table_put(t);
	return o;
}

/* Add up src into dst, object by object. */
static void
sum_json(struct json_object *dst, struct json_object *src)
{
	struct json_object *had, *inner;

	json_object_object_foreach(src, name, value)
	{
		had = json_object_object_get(dst, name);
		if (json_object_is_type(value, json_type_object)) {
			inner = had != NULL ? had : json_object_new_object();
			if (had == NULL)
				json_object_object_add(dst, name, inner);
			sum_json(inner, value);
			continue;
		}
		put(dst, name,
		    (had != NULL ? json_object_get_uint64(had) : 0) +
			    json_object_get_uint64(value));
	}
}

static void
reactors_json(struct server *s, struct json_object *o)
{
	uint64_t punts = 0, sqe = 0, small = 0, buf = 0;
	struct reactor_counters *n;
	unsigned i;

	for (i = 0; i < s->shards; i++) {
		n = reactor_counters(s->shard[i]->reactor);
		punts += n->punts;
		sqe += n->sqe_waits;
		small += n->small_waits;
		buf += n->buf_waits;
	}
	put(o, "punts", punts);
	put(o, "sqe_waits", sqe);
	put(o, "small_waits", small);
	put(o, "buf_waits", buf);
	put(o, "reactors", s->shards);
	put(o, "buffer_bytes", engine_facts(s->engine)->buffer_bytes);
}

static void
calls_json(struct server *s, struct json_object *o)
{
	struct json_object *nfs = json_object_new_object();
	struct json_object *mount = json_object_new_object();
	unsigned i;

	for (i = 0; i < NFSPROC3_COUNT; i++)
		put(nfs, nfsd_row(PROGRAM_NFS3, i)->name,
		    s->stats.nfs_calls[i]);
	for (i = 0; i < MOUNTPROC3_COUNT; i++)
		put(mount, nfsd_row(PROGRAM_MOUNT3, i)->name,
		    s->stats.mount_calls[i]);
	json_object_object_add(o, "nfs3", nfs);
	json_object_object_add(o, "mount", mount);
}

static void
server_json(struct server *s, struct json_object *o)
{
	struct drc_counters drc;

	drc_stats(s->drc, &drc);
	put(o, "drc_hits", drc.hits);
	put(o, "drc_attached", drc.attached);
	put(o, "drc_misses", drc.misses);
	put(o, "drc_entries", drc.entries);
	put(o, "drc_bytes", drc.bytes);
	put(o, "connections", s->stats.connections);
	put(o, "connections_total", s->stats.connections_total);
	put(o, "rejected", s->stats.rejected);
	put(o, "records_refused", s->stats.records_refused);
	put(o, "stalls_call", s->stats.stalls_call);
	put(o, "stalls_buffer", s->stats.stalls_buffer);
	put(o, "stalls_slot", s->stats.stalls_slot);
	put(o, "timeouts", s->stats.timeouts);
	put(o, "open_files", file_count(s->engine));
#ifdef NVNFSD_FAULT
	put(o, "fault_hits", fault_hits());
#endif
	json_object_object_add(
		o, "engine",
		json_object_new_string(engine_facts(s->engine)->backend ==
						       IO_BACKEND_URING
					       ? "uring"
					       : "threads"));
}

static int
write_all(int fd, const char *text, size_t n)
{
	ssize_t w;

	while (n > 0) {
		w = write(fd, text, n);
		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -errno;
		text += w;
		n -= (size_t)w;
	}
	return 0;
}

int
stats_write(struct server *s, int dir_fd)
{
	struct json_object *o = json_object_new_object();
	struct json_object *exports = exports_json(s);
	const char *text;
	int fd, rc;

	json_object_object_foreach(exports, path, one)
	{
		(void)path;
		sum_json(o, one);
	}
	reactors_json(s, o);
	server_json(s, o);
	calls_json(s, o);
	json_object_object_add(o, "exports", exports);
	text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY);
	fd = openat(dir_fd, STATS_NEW, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
		    0644);
	rc = fd < 0 ? -errno : write_all(fd, text, strlen(text));
	if (fd >= 0)
		close(fd);
	if (rc == 0 && renameat(dir_fd, STATS_NEW, dir_fd, STATS) < 0)
		rc = -errno;
	json_object_put(o);
	return rc;
}
