/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words of a text in exports(5) syntax: comments, continued lines, quotes and
 * octal escapes. A struct lex lives on its parser's stack; its one buffer is as
 * large as the text, so that no word needs an allocation or a limit. It does
 * not know what the words mean.
 */
#include "conf/parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
lex_init(struct lex *l, const char *text, size_t bytes, const char *name,
	 unsigned line, struct conf_report *report)
{
	memset(l, 0, sizeof(*l));
	l->word = malloc(bytes + 1);
	if (!l->word)
		return -ENOMEM;
	l->word[0] = '\0';
	l->text = text;
	l->bytes = bytes;
	l->name = name;
	l->line = line;
	l->report = report;
	return 0;
}

void
lex_fini(struct lex *l)
{
	free(l->word);
	l->word = NULL;
}

static bool
blank(int c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* Bytes of a continuation at the lexer's place (backslash, newline, and the
 * blanks that indent the next line), 0 where there is none. */
static size_t
continuation(const struct lex *l)
{
	const char *start = l->text + l->at, *end = l->text + l->bytes;
	const char *p = start;

	if (p == end || *p++ != '\\')
		return 0;
	if (p != end && *p == '\r')
		p++;
	if (p == end || *p++ != '\n')
		return 0;
	while (p != end && blank((unsigned char)*p))
		p++;
	return (size_t)(p - start);
}

int
lex_peek(const struct lex *l)
{
	if (l->at == l->bytes)
		return LEX_END;
	if (continuation(l))
		return ' ';
	return (unsigned char)l->text[l->at];
}

void
lex_take(struct lex *l)
{
	size_t joined = continuation(l);

	if (l->at == l->bytes)
		return;
	if (joined || l->text[l->at] == '\n')
		l->line++;
	l->at += joined ? joined : 1;
}

int
lex_skip_blanks(struct lex *l)
{
	int c;

	while (blank(c = lex_peek(l)))
		lex_take(l);
	if (c != '#')
		return c;
	/* As in exports(5): a comment, too, goes on behind a backslash. */
	while ((c = lex_peek(l)) != LEX_END && c != '\n')
		lex_take(l);
	return c;
}

void
lex_skip_line(struct lex *l)
{
	int c;

	do {
		c = lex_peek(l);
		lex_take(l);
	} while (c != LEX_END && c != '\n');
}

static bool
octal(char c)
{
	return c >= '0' && c <= '7';
}

/* At a backslash: three octal digits, up to \377. */
static int
lex_escape(struct lex *l)
{
	const char *p = l->text + l->at + 1;
	int c;

	if (l->bytes - l->at < 4 || !octal(p[0]) || !octal(p[1]) ||
	    !octal(p[2])) {
		conf_report_error(l->report, l->name, l->line,
				  "a backslash needs three octal digits "
				  "behind it (a blank is \\040, a backslash "
				  "\\134)");
		return -EINVAL;
	}
	c = (p[0] - '0') * 64 + (p[1] - '0') * 8 + (p[2] - '0');
	if (c == 0 || c > 0377) {
		conf_report_error(l->report, l->name, l->line,
				  "\\%.3s is not a byte of a name", p);
		return -EINVAL;
	}
	l->word[l->word_bytes++] = (char)c;
	l->at += 4;
	return 0;
}

static int
lex_word_error(struct lex *l, const char *reason)
{
	conf_report_error(l->report, l->name, l->line, "%s", reason);
	return -EINVAL;
}

int
lex_word(struct lex *l, const char *stops)
{
	bool inside = false; /* quotes */
	int c;

	l->word_bytes = 0;
	l->quoted = false;
	for (;;) {
		c = lex_peek(l);
		if (c == LEX_END || c == '\n')
			break;
		if (c == '\0')
			return lex_word_error(l, "a NUL byte");
		if (!inside && (blank(c) || strchr(stops, c)))
			break;
		if (c == '\\') {
			if (lex_escape(l))
				return -EINVAL;
			continue;
		}
		lex_take(l);
		if (c == '"') {
			inside = !inside;
			l->quoted = true;
			continue;
		}
		l->word[l->word_bytes++] = (char)c;
	}
	l->word[l->word_bytes] = '\0';
	return inside ? lex_word_error(l, "the quote is not closed") : 0;
}
