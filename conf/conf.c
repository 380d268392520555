/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvnfsd.conf: the ini of nfs.conf(5), read by inih; keys.c knows the keys. A
 * struct conf is its caller's; a read fills a copy and hands it over only when
 * everything in the file was good. Any thread, one at a time for a struct conf.
 *
 * inih 55 as Debian builds it tells its handler no line numbers and reports
 * only the first bad line; so the reader that feeds it counts the lines, and
 * sees to what inih would take in silence.
 */
#include "conf/parse.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Feeds inih line by line; lives on conf_parse's stack. */
struct reader {
	struct conf *conf; /* what is being filled */
	const char *text, *name;
	size_t bytes, at;
	unsigned line;
	bool pending; /* the line should reach the handler and has not yet */
	unsigned seen[CONF_KEYS]; /* the line each key stood on first */
	struct conf_report *report;
	int error; /* -ENOMEM */
};

void
conf_init(struct conf *c)
{
	memset(c, 0, sizeof(*c));
	c->port = 2049;
	c->grace_s = CONF_GRACE_S;
	c->level = CONF_LOG_NOTICE;
}

void
conf_fini(struct conf *c)
{
	if (!c)
		return;
	conf_hosts_fini(c);
	conf_init(c);
}

static int
conf_copy(struct conf *to, const struct conf *from)
{
	int error = 0;

	*to = *from;
	to->hosts = NULL;
	to->host_count = 0;
	for (unsigned i = 0; !error && i < from->host_count; i++)
		error = conf_host_add(to, from->hosts[i],
				      strlen(from->hosts[i]));
	if (error)
		conf_hosts_fini(to);
	return error;
}

static bool
section_known(const char *section)
{
	const char *known;

	for (unsigned i = 0; conf_key_name(i, &known); i++)
		if (!strcasecmp(known, section))
			return true;
	return false;
}

static void
report_section(const struct reader *r, const char *section)
{
	struct conf_text_hint hint = { .word = section };
	char shown[REPORT_WORD_BYTES];
	const char *known;

	for (unsigned i = 0; conf_key_name(i, &known); i++)
		conf_text_hint_offer(&hint, known);
	conf_report_word(shown, section);
	if (hint.best)
		conf_report_error(r->report, r->name, r->line,
				  "unknown section [%s]: is it [%s]?", shown,
				  hint.best);
	else
		conf_report_error(r->report, r->name, r->line,
				  "unknown section [%s]", shown);
}

static void
report_key(const struct reader *r, const char *section, const char *name)
{
	struct conf_text_hint hint = { .word = name };
	const char *elsewhere = NULL, *known, *in;
	char shown[REPORT_WORD_BYTES];

	for (unsigned i = 0; (known = conf_key_name(i, &in)); i++) {
		if (!strcasecmp(in, section))
			conf_text_hint_offer(&hint, known);
		else if (!strcasecmp(known, name))
			elsewhere = in;
	}
	conf_report_word(shown, name);
	if (elsewhere)
		conf_report_error(r->report, r->name, r->line,
				  "unknown key %s in [%s]: it stands in [%s]",
				  shown, section, elsewhere);
	else if (hint.best)
		conf_report_error(r->report, r->name, r->line,
				  "unknown key %s in [%s]: is it %s?", shown,
				  section, hint.best);
	else
		conf_report_error(r->report, r->name, r->line,
				  "unknown key %s in [%s]", shown, section);
}

static void
key_apply(struct reader *r, unsigned i, const char *value)
{
	const char *section, *name = conf_key_name(i, &section);
	char why[CONF_REASON_BYTES];
	int error;

	if (r->seen[i] && !conf_key_repeats(i)) {
		conf_report_error(r->report, r->name, r->line,
				  "%s stands twice in [%s], first in line %u",
				  name, section, r->seen[i]);
		return;
	}
	/* The file's list replaces what was there; its own lines add up. */
	if (!r->seen[i] && conf_key_repeats(i))
		conf_hosts_fini(r->conf);
	r->seen[i] = r->line;
	if (!*value) {
		conf_report_error(r->report, r->name, r->line,
				  "%s has no value", name);
		return;
	}
	error = conf_key_set(r->conf, i, value, why);
	if (error == -EINVAL)
		conf_report_error(r->report, r->name, r->line, "%s", why);
	else if (error)
		r->error = error;
}

/* inih's handler: 1 is fine. What is not has been reported here. */
static int
handle(void *user, const char *section, const char *name, const char *value)
{
	struct reader *r = user;
	const char *known, *in;
	char shown[REPORT_WORD_BYTES];

	r->pending = false;
	if (!*name) {
		conf_report_error(r->report, r->name, r->line,
				  "the key is missing");
		return 1;
	}
	if (!*section) {
		conf_report_error(r->report, r->name, r->line,
				  "%s stands before the first [section]",
				  conf_report_word(shown, name));
		return 1;
	}
	if (!section_known(section)) /* reported at its own line */
		return 1;
	for (unsigned i = 0; (known = conf_key_name(i, &in)); i++)
		if (!strcasecmp(in, section) && !strcasecmp(known, name)) {
			key_apply(r, i, value);
			return 1;
		}
	report_key(r, section, name);
	return 1;
}

static void
report_pending(struct reader *r)
{
	if (r->pending)
		conf_report_error(r->report, r->name, r->line,
				  "neither key = value, nor [section], nor a "
				  "comment");
	r->pending = false;
}

/* "[name]" with at most a comment behind it; inih would pass over more. line is
 * ours and is changed. */
static void
check_section(struct reader *r, char *line)
{
	char *close = strchr(line, ']'), *rest, *name;

	if (!close) {
		conf_report_error(r->report, r->name, r->line,
				  "the ] is missing");
		return;
	}
	rest = close + 1 + strspn(close + 1, " \t\r\n");
	if (*rest && *rest != ';' && *rest != '#')
		conf_report_error(r->report, r->name, r->line,
				  "something follows the ]");
	*close = '\0';
	name = line + 1;
	if (!section_known(name))
		report_section(r, name);
}

/* The next line without its indentation (which inih would take for a
 * continuation), as fgets gives it. A line that is no good is reported and
 * becomes an empty one, so that inih's count stays right. */
static char *
next_line(char *out, int room, void *stream)
{
	struct reader *r = stream;
	const char *line = r->text + r->at, *end;
	char section[256];
	size_t n;

	report_pending(r);
	if (r->at == r->bytes)
		return NULL;
	end = memchr(line, '\n', r->bytes - r->at);
	n = end ? (size_t)(end - line) : r->bytes - r->at;
	r->at += n + (end != NULL);
	r->line++;
	for (; n && (*line == ' ' || *line == '\t'); n--)
		line++;
	if (n && *line != '#' && *line != ';' &&
	    (memchr(line, '\0', n) || n + 3 > (size_t)room)) {
		conf_report_error(r->report, r->name, r->line,
				  n + 3 > (size_t)room ? "the line is too long"
						       : "a NUL byte");
		n = 0;
	}
	if (n && (*line == '#' || *line == ';'))
		n = 0;
	r->pending = n && *line != '[' && *line != '\r';
	if (n && *line == '[') {
		(void)snprintf(section, sizeof(section), "%.*s", (int)n, line);
		check_section(r, section);
	}
	memcpy(out, line, n);
	memcpy(out + n, "\n", 2);
	return out;
}

/* 0 or -ENOMEM; the rest is in the report. */
static int
reader_run(struct reader *r)
{
	unsigned errors = r->report->errors;
	int line;

	/* inih passes over a byte order mark at the start, too. */
	if (r->bytes >= 3 && !memcmp(r->text, "\xef\xbb\xbf", 3))
		r->at = 3;
	line = ini_parse_stream(next_line, r, handle, r);
	report_pending(r);
	/* What inih finds fault with and the reader did not see. */
	if (line > 0 && r->report->errors == errors)
		conf_report_error(r->report, r->name, (unsigned)line,
				  "not in ini syntax");
	return line < 0 ? -ENOMEM : r->error;
}

int
conf_parse(struct conf *c, const char *text, size_t n, const char *name,
	   struct conf_report *r)
{
	struct conf filled;
	struct reader reader = { .conf = &filled,
				 .text = text,
				 .name = name,
				 .bytes = n,
				 .report = r };
	unsigned errors = r->errors;
	int error = conf_copy(&filled, c);

	if (!error) {
		error = reader_run(&reader);
		if (!error && r->errors != errors)
			error = -EINVAL;
		if (error)
			conf_hosts_fini(&filled);
	}
	if (error == -ENOMEM)
		conf_report_error(r, name, 0, "out of memory");
	if (error)
		return error;
	conf_hosts_fini(c);
	*c = filled;
	return 0;
}

int
conf_read(struct conf *c, const char *path, struct conf_report *r)
{
	char *text;
	size_t n;
	int error = conf_text_read(path, &text, &n);

	if (error && error != -ENOENT)
		conf_report_error(r, path, 0, "cannot be read: %s",
				  strerrordesc_np(-error));
	if (error)
		return error;
	error = conf_parse(c, text, n, path, r);
	free(text);
	return error;
}

/* Nothing where all is off. */
static void
print_polling(const struct conf *c, FILE *out)
{
	if (c->sqpoll)
		(void)fputs("sqpoll = yes\n", out);
	if (c->sqpoll_idle_ms)
		(void)fprintf(out, "sqpoll-idle = %u\n", c->sqpoll_idle_ms);
	if (c->busy_poll_us)
		(void)fprintf(out, "busy-poll = %u\n", c->busy_poll_us);
	if (c->iopoll)
		(void)fputs("iopoll = yes\n", out);
}

/* Nothing where all is as it would be without. */
static void
print_lockd(const struct conf *c, FILE *out)
{
	if (!c->has_lockd_port && c->grace_s == CONF_GRACE_S)
		return;
	(void)fputs("\n[lockd]\n", out);
	if (c->has_lockd_port)
		(void)fprintf(out, "port = %u\n", c->lockd_port);
	(void)fprintf(out, "grace = %u\n", c->grace_s);
}

void
conf_print(const struct conf *c, FILE *out)
{
	(void)fputs("[nfsd]\n", out);
	for (unsigned i = 0; i < c->host_count; i++)
		(void)fprintf(out, "host = %s\n", c->hosts[i]);
	(void)fprintf(out, "port = %u\n", c->port);
	if (c->udp)
		(void)fputs("udp = yes\n", out);
	(void)fprintf(out, "threads = %u\n", c->threads);
	print_polling(c, out);
	if (c->stop_timeout_s)
		(void)fprintf(out, "stop-timeout = %u\n", c->stop_timeout_s);
	for (unsigned i = 0; conf_policy_name(i); i++) {
		if (!conf_policy_has(&c->policy, i))
			continue;
		(void)fprintf(out, "%s = ", conf_policy_name(i));
		conf_policy_print_value(&c->policy, i, out);
		(void)fputc('\n', out);
	}
	(void)fputs("\n[mountd]\n", out);
	if (c->has_mount_port)
		(void)fprintf(out, "port = %u\n", c->mount_port);
	(void)fprintf(out, "manage-gids = %s\n", c->manage_gids ? "yes" : "no");
	print_lockd(c, out);
	(void)fprintf(
		out,
		"\n[limits]\nconnections = %u\ncalls-per-connection = %u\n"
		"buffer-memory = %" PRIu64 "\nopen-files = %u\n",
		c->connections, c->calls_per_connection, c->buffer_memory,
		c->open_files);
	if (c->has_metrics)
		(void)fprintf(out, "\n[metrics]\nlisten = %s%s%s:%u\n",
			      strchr(c->metrics_host, ':') ? "[" : "",
			      c->metrics_host,
			      strchr(c->metrics_host, ':') ? "]" : "",
			      c->metrics_port);
	(void)fprintf(out, "\n[log]\nlevel = %s\n", conf_level_name(c->level));
}
