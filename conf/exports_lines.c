/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of export tables: PATH [-OPTIONS] CLIENT(OPTIONS)... A table
 * belongs to exports.c, which starts and ends it; here it only grows. What is
 * wrong with a line is reported, and the next line is read.
 */
#include "conf/parse.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

void
conf_client_release(struct conf_client *c)
{
	conf_client_fini(&c->match);
	conf_options_fini(&c->options);
}

/* Room for one more at the end of a list: doubled at the powers of two. */
static int
list_grow(void **list, unsigned count, size_t item_bytes)
{
	void *larger;

	if (count & (count - 1)) /* not full: not a power of two */
		return 0;
	larger = reallocarray(*list, count ? 2 * (size_t)count : 1, item_bytes);
	if (!larger)
		return -ENOMEM;
	*list = larger;
	return 0;
}

static const char *
table_file(struct table *t, const char *name)
{
	void *files = t->e.files;
	char *copy = strdup(name);

	if (!copy ||
	    list_grow(&files, t->e.file_count, sizeof(*t->e.files)) != 0) {
		free(copy);
		return NULL;
	}
	t->e.files = files;
	t->e.files[t->e.file_count++] = copy;
	return copy;
}

/* Find the export of path, or make it. Takes path over. */
static struct conf_export *
table_export(struct table *t, char *path, const char *file, unsigned line)
{
	void *exports = t->e.exports;
	struct conf_export *x;

	for (unsigned i = 0; i < t->e.count; i++)
		if (!strcmp(t->e.exports[i].path, path)) {
			free(path);
			return &t->e.exports[i];
		}
	if (list_grow(&exports, t->e.count, sizeof(*x)) != 0) {
		free(path);
		return NULL;
	}
	t->e.exports = exports;
	x = &t->e.exports[t->e.count++];
	memset(x, 0, sizeof(*x));
	x->path = path;
	x->file = file;
	x->line = line;
	return x;
}

/* Takes c's contents over, also when it fails. */
static int
export_add(struct conf_export *x, struct conf_client *c)
{
	void *clients = x->clients;

	if (list_grow(&clients, x->client_count, sizeof(*c)) != 0) {
		conf_client_release(c);
		return -ENOMEM;
	}
	x->clients = clients;
	x->clients[x->client_count++] = *c;
	return 0;
}

static int
path_refuse(char why[CONF_REASON_BYTES], const char *text, const char *reason)
{
	char shown[REPORT_WORD_BYTES];

	(void)snprintf(why, CONF_REASON_BYTES, "%s %s",
		       conf_report_word(shown, text), reason);
	return -EINVAL;
}

int
conf_path_parse(const char *text, char **ret, char why[CONF_REASON_BYTES])
{
	size_t n = 0, length;
	char *path;

	if (!text[0])
		return path_refuse(why, "the path", "is missing");
	if (text[0] != '/')
		return path_refuse(why, text, "is not an absolute path");
	if (strlen(text) >= PATH_MAX)
		return path_refuse(why, text, "is longer than a path can be");
	path = malloc(strlen(text) + 2);
	if (!path)
		return -ENOMEM;
	for (const char *p = text; *p; p += length) {
		p += strspn(p, "/");
		length = strcspn(p, "/");
		if (!length || (length == 1 && p[0] == '.'))
			continue;
		if (length == 2 && p[0] == '.' && p[1] == '.') {
			free(path);
			return path_refuse(why, text, "goes through ..");
		}
		path[n++] = '/';
		memcpy(path + n, p, length);
		n += length;
	}
	if (!n)
		path[n++] = '/';
	path[n] = '\0';
	*ret = path;
	return 0;
}

/* The export that a line begins with. 0 with *ret, -EINVAL (reported), or
 * -ENOMEM. */
static int
line_path(struct table *t, struct lex *l, const char *file,
	  struct conf_export **ret)
{
	char why[CONF_REASON_BYTES], *path;
	unsigned line = l->line;
	int error;

	if (lex_word(l, "("))
		return -EINVAL;
	error = conf_path_parse(l->word, &path, why);
	if (error == -EINVAL)
		conf_report_error(t->report, l->name, line, "%s", why);
	if (error)
		return error;
	if (lex_peek(l) == '(') {
		conf_report_error(t->report, l->name, line,
				  "the client is missing between the path and "
				  "( (a path's own ( is written \\050)");
		free(path);
		return -EINVAL;
	}
	*ret = table_export(t, path, file, line);
	return *ret ? 0 : -ENOMEM;
}

/* host (rw) exports to host with the defaults, and to the world with rw. */
static void
warn_lone_options(const struct lex *l, const struct conf_client *before)
{
	if (before)
		conf_report_warning(l->report, l->name, l->line,
				    "options behind a blank are everybody's, "
				    "not those of %s: write %s(...)",
				    before->match.text, before->match.text);
	else
		conf_report_warning(l->report, l->name, l->line,
				    "options without a client are "
				    "everybody's: write *(...) to say so");
}

static void
warn_option_as_host(const struct lex *l, const struct conf_client *c)
{
	const char *name;
	bool served;

	if (c->match.kind != CONF_CLIENT_HOST)
		return;
	for (unsigned i = 0; (name = conf_options_name(i, &served)); i++)
		if (!strcmp(name, c->match.text))
			conf_report_warning(l->report, l->name, c->line,
					    "%s is taken for a host: options "
					    "stand in parentheses, as *(%s)",
					    name, name);
}

/* Options behind a client, or none. */
static int
client_options(struct conf_client *c, struct lex *l)
{
	int behind, error;

	if (lex_peek(l) != '(') {
		warn_option_as_host(l, c);
		return 0;
	}
	lex_take(l);
	error = conf_options_parse(&c->options, l, ')');
	if (error)
		return error;
	behind = lex_peek(l);
	if (behind == LEX_END || behind == '\n' || behind == '#' ||
	    strchr(" \t\r", behind))
		return 0;
	conf_report_error(l->report, l->name, l->line,
			  "a blank is missing behind )");
	return -EINVAL;
}

/* One client and its options. 0, -EINVAL (reported), or -ENOMEM. */
static int
line_client(struct table *t, struct lex *l, const char *file,
	    const struct conf_export_options *defaults, struct conf_export *x,
	    bool first)
{
	struct conf_client c = { .file = file, .line = l->line };
	char why[CONF_REASON_BYTES];
	int error;

	if (lex_word(l, "("))
		return -EINVAL;
	if (!l->word_bytes && lex_peek(l) == '(')
		warn_lone_options(l, first ? NULL
					   : &x->clients[x->client_count - 1]);
	error = conf_client_parse(&c.match, l->word, why);
	if (error == -EINVAL)
		conf_report_error(t->report, l->name, c.line, "%s", why);
	if (error)
		return error;
	error = conf_options_copy(&c.options, defaults);
	if (!error)
		error = client_options(&c, l);
	if (error) {
		conf_client_release(&c);
		return error;
	}
	return export_add(x, &c);
}

/* Everything behind the path. */
static int
line_clients(struct table *t, struct lex *l, const char *file,
	     struct conf_export *x, struct conf_export_options *defaults)
{
	struct conf_client any = { .file = file, .line = l->line };
	char why[CONF_REASON_BYTES];
	unsigned had = x->client_count;
	int c, error = 0;

	while (!error && (c = lex_skip_blanks(l)) != LEX_END && c != '\n') {
		if (c == '-') {
			lex_take(l);
			error = conf_options_parse(defaults, l, 0);
			continue;
		}
		error = line_client(t, l, file, defaults, x,
				    x->client_count == had);
	}
	if (error || x->client_count > had)
		return error;
	conf_report_warning(l->report, l->name, any.line,
			    "%s names no client and goes to everybody: "
			    "write * to say so",
			    x->path);
	error = conf_client_parse(&any.match, "*", why);
	if (!error)
		error = conf_options_copy(&any.options, defaults);
	if (error) {
		conf_client_release(&any);
		return error;
	}
	return export_add(x, &any);
}

/* Bad lines are reported and passed over. 0 or -ENOMEM. */
static int
table_line(struct table *t, struct lex *l, const char *file)
{
	struct conf_export_options defaults;
	struct conf_export *x;
	int error = line_path(t, l, file, &x);

	if (!error) {
		conf_options_init(&defaults);
		error = line_clients(t, l, file, x, &defaults);
		conf_options_fini(&defaults);
	}
	lex_skip_line(l);
	return error == -ENOMEM ? error : 0;
}

int
conf_table_text(struct table *t, const char *text, size_t n, const char *name,
		unsigned first_line)
{
	const char *file = table_file(t, name);
	struct lex l;
	int c, error;

	if (!file)
		return -ENOMEM;
	error = lex_init(&l, text, n, file, first_line, t->report);
	while (!error && (c = lex_skip_blanks(&l)) != LEX_END) {
		if (c == '\n')
			lex_take(&l);
		else
			error = table_line(t, &l, file);
	}
	lex_fini(&l);
	return error;
}
