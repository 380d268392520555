/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The export table: made whole by export_table_load, never changed afterwards,
 * replaced by the next one. The server holds a reference to the current table,
 * each call one to the table it began with, so that a reload changes nothing
 * under a call. Any thread reads it without a lock.
 *
 * How a directory is opened is export_open.c's, who may use it
 * export_access.c's.
 */
#include "nfsd/export.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void
parsed_put(struct export_parsed *p)
{
	if (!p ||
	    atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
		return;
	conf_exports_fini(&p->e);
	free(p);
}

static void
table_free(struct export_table *t)
{
	for (unsigned i = 0; i < t->count; i++)
		export_close(&t->exports[i]);
	export_answers_free(t->answers);
	parsed_put(t->parsed);
	free(t->exports);
	free(t->by_id);
	free(t);
}

static struct export_table *
table_new(unsigned room, struct engine *engine)
{
	struct export_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	atomic_init(&t->refs, 1);
	t->engine = engine;
	t->exports = calloc(room + 1u, sizeof(*t->exports));
	t->by_id = calloc(room + 1u, sizeof(struct export *));
	t->answers = export_answers_new();
	if (t->exports && t->by_id && t->answers)
		return t;
	table_free(t);
	return NULL;
}

static int
compare_id(const void *a, const void *b)
{
	const struct export *x = *(struct export *const *)a;
	const struct export *y = *(struct export *const *)b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return strcmp(x->path, y->path);
}

/* A handle must lead to one export. */
static int
table_index(struct export_table *t, struct conf_report *r)
{
	int error = 0;

	for (unsigned i = 0; i < t->count; i++)
		t->by_id[i] = &t->exports[i];
	qsort(t->by_id, t->count, sizeof(struct export *), compare_id);
	for (unsigned i = 1; i < t->count; i++) {
		const struct export *a = t->by_id[i - 1], *b = t->by_id[i];

		if (a->id != b->id)
			continue;
		conf_report_error(r, b->conf.file, b->conf.line,
				  "%s and %s (%s:%u) are one directory, or two "
				  "file systems with one fsid=",
				  b->path, a->path, a->conf.file, a->conf.line);
		error = -EEXIST;
	}
	return error;
}

/* All are tried, so that all that is wrong is told at once. */
static int
table_open(struct export_table *t, struct export_loader *l,
	   const struct conf_exports *parsed)
{
	int error = 0, r;

	for (unsigned i = 0; i < parsed->count; i++) {
		r = export_open(l, &parsed->exports[i], &t->exports[t->count]);
		if (r > 0)
			t->count++;
		else if (r < 0 && error == 0)
			error = r;
	}
	r = table_index(t, l->r);
	return error < 0 ? error : r;
}

int
export_table_load(struct export_table **ret, struct conf_exports *parsed,
		  struct export_table *old, const struct export_load *load,
		  struct conf_report *r)
{
	struct export_loader l = { .load = load, .old = old, .r = r };
	struct export_table *t = table_new(parsed->count, load->engine);
	int error;

	if (!t)
		return -ENOMEM;
	t->parsed = calloc(1, sizeof(*t->parsed));
	if (!t->parsed) {
		table_free(t);
		return -ENOMEM;
	}
	atomic_init(&t->parsed->refs, 1);
	error = table_open(t, &l, parsed);
	if (error < 0) {
		table_free(t);
		return error;
	}
	for (unsigned i = 0; i < t->count; i++)
		export_apply(&l, &t->exports[i]);
	t->parsed->e = *parsed;
	memset(parsed, 0, sizeof(*parsed));
	*ret = t;
	return 0;
}

int
export_table_apply(struct export_table *t, const struct export_load *load,
		   struct conf_report *r)
{
	struct export_loader l = { .load = load, .r = r };
	int error = 0;

	for (unsigned i = 0; i < t->count && !error; i++)
		error = export_check(&l, &t->exports[i]);
	for (unsigned i = 0; i < t->count && !error; i++)
		export_apply(&l, &t->exports[i]);
	return error;
}

int
export_table_without(struct export_table **ret, const struct export_table *old,
		     const struct export *gone)
{
	struct export_table *t = table_new(old->count, old->engine);
	struct conf_report r = { 0 };

	if (!t)
		return -ENOMEM;
	for (unsigned i = 0; i < old->count; i++) {
		if (&old->exports[i] != gone)
			export_share(&t->exports[t->count++], &old->exports[i]);
	}
	t->parsed = old->parsed;
	atomic_fetch_add_explicit(&t->parsed->refs, 1, memory_order_relaxed);
	(void)table_index(t, &r); /* what was unique is so still */
	conf_report_fini(&r);
	*ret = t;
	return 0;
}

void
export_table_get(struct export_table *t)
{
	atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
}

unsigned
export_table_refs(const struct export_table *t)
{
	return atomic_load_explicit(&t->refs, memory_order_acquire);
}

static bool
on_a_reactor(struct engine *e)
{
	unsigned n = engine_facts(e)->reactors;

	for (unsigned i = 0; i < n; i++) {
		if (reactor_is_current(engine_reactor(e, i)))
			return true;
	}
	return false;
}

static void
table_close(struct work *w)
{
	table_free(container_of(w, struct export_table, closing));
}

void
export_table_put(struct export_table *t)
{
	if (!t ||
	    atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (!on_a_reactor(t->engine)) {
		table_free(t);
		return;
	}
	t->closing.run = table_close;
	t->closing.done = NULL;
	work_submit(t->engine, WORK_META, &t->closing);
}

unsigned
export_table_count(const struct export_table *t)
{
	return t->count;
}

struct export *
export_table_at(const struct export_table *t, unsigned i)
{
	assert(i < t->count);
	return &t->exports[i];
}

static int
compare_key_id(const void *key, const void *element)
{
	uint64_t id = *(const uint64_t *)key;
	const struct export *e = *(struct export *const *)element;

	return id < e->id ? -1 : id > e->id;
}

struct export *
export_find(const struct export_table *t, uint64_t id)
{
	struct export **found =
		bsearch(&id, t->by_id, t->count, sizeof(struct export *),
			compare_key_id);

	return found ? *found : NULL;
}

/* The first bytes of a path. */
struct prefix {
	const char *path;
	size_t bytes;
};

static int
compare_prefix(const void *key, const void *element)
{
	const struct prefix *p = key;
	const struct export *e = element;
	int r = strncmp(p->path, e->path, p->bytes);

	if (r == 0 && e->path[p->bytes] != '\0')
		return -1;
	return r;
}

struct export *
export_find_path(const struct export_table *t, const char *path,
		 const char **rest)
{
	struct prefix p = { path, strlen(path) };
	struct export *e = NULL;

	if (path[0] != '/')
		return NULL;
	while (!e && p.bytes > 1) {
		e = bsearch(&p, t->exports, t->count, sizeof(*e),
			    compare_prefix);
		while (!e && path[--p.bytes] != '/')
			;
	}
	if (!e) {
		p.bytes = 1;
		e = bsearch(&p, t->exports, t->count, sizeof(*e),
			    compare_prefix);
	}
	if (e) {
		path += strlen(e->path);
		*rest = *path == '/' ? path + 1 : path;
	}
	return e;
}
