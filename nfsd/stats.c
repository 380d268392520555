/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters as one JSON object, from the table in counters.c: for nvnfsctl,
 * and written to the state directory on SIGUSR1 and at the end. What is counted
 * by export stands under "exports" by path, and its sum at the top. It only
 * reads; any thread.
 */
#include "nfsd/counters.h"
#include "nfsd/server.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define STATS     "stats.json"
#define STATS_NEW "stats.json.new"

static void
put(struct json_object *o, const char *name, uint64_t value)
{
	json_object_object_add(o, name, json_object_new_uint64(value));
}

/* Rows that are told by export --------------------------------------------- */

static struct json_object *
volume_value(const struct counter *c, const struct volume_counters *n)
{
	struct json_object *o;
	unsigned i;

	if (c->values == 0)
		return json_object_new_uint64(counter_of_volume(c, n, 0));
	o = json_object_new_object();
	for (i = 0; i < c->values; i++)
		put(o, c->value_name(i), counter_of_volume(c, n, i));
	return o;
}

static struct json_object *
volume_json(struct volume *v)
{
	const struct volume_counters *n = volume_counters(v);
	struct json_object *o = json_object_new_object();
	const struct counter *c;
	unsigned i;

	for (i = 0; (c = counter_row(i)) != NULL; i++)
		if (c->scope == IN_VOLUME)
			json_object_object_add(o, c->name, volume_value(c, n));
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

/* In the order of the table, and there also without any export. */
static void
put_sums(struct json_object *o, struct json_object *exports)
{
	const struct counter *c;
	unsigned i;

	for (i = 0; (c = counter_row(i)) != NULL; i++)
		if (c->scope == IN_VOLUME)
			json_object_object_add(
				o, c->name,
				c->values > 0 ? json_object_new_object()
					      : json_object_new_uint64(0));
	json_object_object_foreach(exports, path, one)
	{
		(void)path;
		sum_json(o, one);
	}
}

/* The others --------------------------------------------------------------- */

struct json_sink {
	struct counter_sink sink;
	struct json_object *o;
};

static void
put_label(struct counter_sink *k, const char *label, uint64_t value)
{
	struct json_sink *j = container_of(k, struct json_sink, sink);

	put(j->o, label, value);
}

/* NULL, which is JSON's null: not known. */
static struct json_object *
labels_json(const struct counter *c, struct server *s)
{
	struct json_sink j = { .sink.put = put_label,
			       .o = json_object_new_object() };

	if (c->list(s, &j.sink) == 0)
		return j.o;
	json_object_put(j.o);
	return NULL;
}

static struct json_object *
value_json(const struct counter *c, struct server *s)
{
	struct json_object *o;
	uint64_t value;
	unsigned i;

	if (c->scope == BY_LABEL)
		return labels_json(c, s);
	if (c->values == 0)
		return counter_read(c, s, 0, &value) == 0
			       ? json_object_new_uint64(value)
			       : NULL;
	o = json_object_new_object();
	for (i = 0; i < c->values; i++)
		if (counter_read(c, s, i, &value) == 0)
			put(o, c->value_name(i), value);
	return o;
}

struct json_object *
stats_json(struct server *s)
{
	struct json_object *o = json_object_new_object();
	struct json_object *exports = exports_json(s);
	const struct counter *c;
	unsigned i;

	put_sums(o, exports);
	for (i = 0; (c = counter_row(i)) != NULL; i++)
		if (c->scope != IN_VOLUME)
			json_object_object_add(o, c->name, value_json(c, s));
	json_object_object_add(
		o, "engine",
		json_object_new_string(engine_facts(s->engine)->backend ==
						       IO_BACKEND_URING
					       ? "uring"
					       : "threads"));
	json_object_object_add(o, "exports", exports);
	return o;
}

/* What a counter has grown by --------------------------------------------- */

static struct json_object *
less_json(struct json_object *now, struct json_object *before)
{
	struct json_object *o, *b;
	uint64_t n, was;

	if (json_object_is_type(now, json_type_object)) {
		o = json_object_new_object();
		json_object_object_foreach(now, name, value)
		{
			b = json_object_object_get(before, name);
			json_object_object_add(o, name, less_json(value, b));
		}
		return o;
	}
	if (!json_object_is_type(now, json_type_int))
		return json_object_get(now);
	n = json_object_get_uint64(now);
	was = json_object_get_uint64(before); /* 0 of NULL */
	/* An export that was withdrawn and came back begins anew. */
	return json_object_new_uint64(n >= was ? n - was : n);
}

static void
less_counters(struct json_object *now, struct json_object *before)
{
	struct json_object *value, *was;
	const struct counter *c;
	unsigned i;

	for (i = 0; (c = counter_row(i)) != NULL; i++) {
		if (c->type != COUNTER ||
		    !json_object_object_get_ex(now, c->name, &value) ||
		    !json_object_object_get_ex(before, c->name, &was))
			continue;
		json_object_object_add(now, c->name, less_json(value, was));
	}
}

void
stats_subtract(struct json_object *now, struct json_object *before)
{
	struct json_object *exports = json_object_object_get(now, "exports");
	struct json_object *was = json_object_object_get(before, "exports"), *b;

	less_counters(now, before);
	json_object_object_foreach(exports, path, one)
	{
		if (json_object_object_get_ex(was, path, &b))
			less_counters(one, b);
	}
	/* Not the sums of then from the sums of now: what was withdrawn since
	 * is in the former only. */
	put_sums(now, exports);
}

/* The file ----------------------------------------------------------------- */

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
	struct json_object *o = stats_json(s);
	const char *text =
		json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY);
	int rc, fd = openat(dir_fd, STATS_NEW,
			    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	rc = fd < 0 ? -errno : write_all(fd, text, strlen(text));
	if (fd >= 0)
		close(fd);
	if (rc == 0 && renameat(dir_fd, STATS_NEW, dir_fd, STATS) < 0)
		rc = -errno;
	json_object_put(o);
	return rc;
}
