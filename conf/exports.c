/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Export tables, exports(5): where the texts come from, and what must be right
 * about all of them together. A table is built aside and handed over whole, or
 * freed: its user never sees half a one. No path is opened here and no host
 * looked up. Any thread, one at a time for a table.
 */
#include "conf/parse.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void
conf_exports_fini(struct conf_exports *e)
{
	if (!e)
		return;
	for (unsigned i = 0; i < e->count; i++) {
		struct conf_export *x = &e->exports[i];

		for (unsigned j = 0; j < x->client_count; j++)
			conf_client_release(&x->clients[j]);
		free(x->clients);
		free(x->path);
	}
	free(e->exports);
	for (unsigned i = 0; i < e->file_count; i++)
		free(e->files[i]);
	free(e->files);
	memset(e, 0, sizeof(*e));
}

/* A missing file is an empty one. */
static int
table_read(struct table *t, const char *path)
{
	char *text;
	size_t n;
	int error = conf_text_read(path, &text, &n);

	if (error == -ENOENT)
		return 0;
	if (error) {
		conf_report_error(t->report, path, 0, "cannot be read: %s",
				  strerrordesc_np(-error));
		return error;
	}
	error = conf_table_text(t, text, n, path, 1);
	free(text);
	return error;
}

static int
exports_name(const struct dirent *d)
{
	const char *dot = strrchr(d->d_name, '.');

	return d->d_name[0] != '.' && dot && !strcmp(dot, ".exports");
}

/* alphasort would follow the locale. */
static int
by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int
table_read_dir(struct table *t, const char *dir)
{
	struct dirent **entries;
	int n = scandir(dir, &entries, exports_name, by_name), error = 0;
	char *path;

	if (n < 0 && errno == ENOENT)
		return 0;
	if (n < 0) {
		error = -errno;
		conf_report_error(t->report, dir, 0, "cannot be read: %s",
				  strerrordesc_np(-error));
		return error;
	}
	for (int i = 0; i < n; i++) {
		if (!error &&
		    asprintf(&path, "%s/%s", dir, entries[i]->d_name) < 0)
			error = -ENOMEM;
		else if (!error) {
			error = table_read(t, path);
			free(path);
		}
		free(entries[i]);
	}
	free(entries);
	return error;
}

/* Most specific first; else as they came. */
static void
sort_clients(struct conf_export *x)
{
	struct conf_client moved;

	for (unsigned i = 1; i < x->client_count; i++) {
		unsigned j = i;

		while (j && conf_client_compare(&x->clients[i].match,
						&x->clients[j - 1].match) < 0)
			j--;
		moved = x->clients[i];
		memmove(&x->clients[j + 1], &x->clients[j],
			(i - j) * sizeof(moved));
		x->clients[j] = moved;
	}
}

static void
check_twice(const struct table *t, const struct conf_export *x)
{
	for (unsigned i = 1; i < x->client_count; i++)
		for (unsigned j = 0; j < i; j++) {
			const struct conf_client *a = &x->clients[j],
						 *b = &x->clients[i];

			if (!conf_client_equal(&a->match, &b->match))
				continue;
			conf_report_error(t->report, b->file, b->line,
					  "%s is exported to %s twice, first "
					  "in %s:%u",
					  x->path, b->match.text, a->file,
					  a->line);
			break;
		}
}

/* What a path has once: give it to all clients. */
static int
unify_clients(const struct table *t, struct conf_export *x)
{
	const char *name;

	for (unsigned i = 1; i < x->client_count; i++) {
		struct conf_client *c = &x->clients[i];
		int error = conf_options_unify(&x->clients->options,
					       &c->options, &name);

		if (error == -ENOMEM)
			return error;
		if (!error)
			continue;
		conf_report_error(t->report, c->file, c->line,
				  "%s of %s is not the same for all clients: "
				  "it belongs to the directory",
				  name, x->path);
		return -EEXIST;
	}
	return 0;
}

/* Two directories under one number would be one to a client. The same UUID is
 * well: it names the file system, and the directory is told apart. */
static void
check_fsid(const struct table *t, unsigned at)
{
	const struct conf_export *x = &t->e.exports[at];
	const struct conf_export_options *o = &x->clients->options;

	if (o->fsid_kind != CONF_FSID_NUMBER && o->fsid_kind != CONF_FSID_ROOT)
		return;
	for (unsigned i = 0; i < at; i++) {
		const struct conf_export *y = &t->e.exports[i];

		if (y->clients->options.fsid_kind != o->fsid_kind ||
		    y->clients->options.fsid_number != o->fsid_number)
			continue;
		conf_report_error(t->report, x->file, x->line,
				  "fsid of %s is that of %s in %s:%u, too",
				  x->path, y->path, y->file, y->line);
		return;
	}
}

static int
by_path(const void *a, const void *b)
{
	const struct conf_export *x = a, *y = b;

	return strcmp(x->path, y->path);
}

/* Checks over the whole, once all texts are in and every line was good. */
static int
table_check(struct table *t)
{
	int error;

	for (unsigned i = 0; i < t->e.count; i++) {
		struct conf_export *x = &t->e.exports[i];

		check_twice(t, x);
		/* Again: what the last client says must reach all before it. */
		error = unify_clients(t, x);
		if (!error)
			error = unify_clients(t, x);
		if (error == -ENOMEM)
			return error;
		sort_clients(x);
	}
	for (unsigned i = 0; i < t->e.count; i++)
		check_fsid(t, i);
	if (t->e.count)
		qsort(t->e.exports, t->e.count, sizeof(*t->e.exports), by_path);
	return 0;
}

/* Hand the table over, or free it. errors: how many the report had before. */
static int
table_finish(struct table *t, struct conf_exports *ret, unsigned errors,
	     int error)
{
	if (!error && t->report->errors == errors)
		error = table_check(t);
	if (!error && t->report->errors != errors)
		error = -EINVAL;
	if (error == -ENOMEM)
		conf_report_error(t->report, "exports", 0, "out of memory");
	if (error)
		conf_exports_fini(&t->e);
	else
		*ret = t->e;
	return error;
}

int
conf_exports_parse(struct conf_exports *ret, const char *text, size_t n,
		   const char *name, struct conf_report *r)
{
	struct table t = { .report = r };
	unsigned errors = r->errors;

	return table_finish(&t, ret, errors,
			    conf_table_text(&t, text, n, name, 1));
}

int
conf_exports_read(struct conf_exports *ret, const char *path, const char *dir,
		  char *const *extra, unsigned extras, struct conf_report *r)
{
	struct table t = { .report = r };
	unsigned errors = r->errors;
	int error = path ? table_read(&t, path) : 0;

	if (!error && dir)
		error = table_read_dir(&t, dir);
	for (unsigned i = 0; !error && i < extras; i++)
		error = conf_table_text(&t, extra[i], strlen(extra[i]),
					"--export", i + 1);
	return table_finish(&t, ret, errors, error);
}

void
conf_exports_print(const struct conf_exports *e, FILE *out)
{
	for (unsigned i = 0; i < e->count; i++) {
		const struct conf_export *x = &e->exports[i];

		for (unsigned j = 0; j < x->client_count; j++) {
			conf_print_escaped(x->path, "(", out);
			(void)fputc(' ', out);
			conf_client_print(&x->clients[j].match, out);
			(void)fputc('(', out);
			conf_options_print(&x->clients[j].options, out);
			(void)fputs(")\n", out);
		}
	}
}
