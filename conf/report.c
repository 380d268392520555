/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of one read. A conf_report is its caller's: zeroed before the
 * first read, filled by the parsers, printed by whoever logs, freed by
 * conf_report_fini. A file of garbage does not fill the memory: over
 * CONF_MESSAGES_MAX, errors are counted and no longer kept.
 */
#include "conf/parse.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void
conf_report_fini(struct conf_report *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < r->count; i++)
		free(r->messages[i].text);
	free(r->messages);
	memset(r, 0, sizeof(*r));
}

static char *
message_text(const char *file, unsigned line, const char *format, va_list args)
{
	char *reason = NULL, *text = NULL;
	int n;

	if (vasprintf(&reason, format, args) < 0)
		return NULL;
	if (line)
		n = asprintf(&text, "%s:%u: %s", file, line, reason);
	else
		n = asprintf(&text, "%s: %s", file, reason);
	free(reason);
	return n < 0 ? NULL : text;
}

/* Takes text over. */
static void
message_add(struct conf_report *r, bool warning, char *text)
{
	struct conf_message *messages;

	if (!text || r->count == CONF_MESSAGES_MAX)
		goto drop;
	if (r->count == CONF_MESSAGES_MAX - 1) {
		free(text);
		text = strdup("there is more that is not shown");
		if (!text)
			return;
	}
	messages = reallocarray(r->messages, r->count + 1, sizeof(*messages));
	if (!messages)
		goto drop;
	messages[r->count].warning = warning;
	messages[r->count].text = text;
	r->messages = messages;
	r->count++;
	return;
drop:
	free(text);
}

void
conf_report_error(struct conf_report *r, const char *file, unsigned line,
		  const char *format, ...)
{
	va_list args;

	va_start(args, format);
	message_add(r, false, message_text(file, line, format, args));
	va_end(args);
	r->errors++;
}

void
conf_report_warning(struct conf_report *r, const char *file, unsigned line,
		    const char *format, ...)
{
	va_list args;

	va_start(args, format);
	message_add(r, true, message_text(file, line, format, args));
	va_end(args);
}

const char *
conf_report_word(char out[REPORT_WORD_BYTES], const char *word)
{
	size_t n = strlen(word), room = REPORT_WORD_BYTES - 1;

	if (n > room) {
		n = room - 3;
		/* not through the middle of an UTF-8 character */
		while (n && ((unsigned char)word[n] & 0xc0) == 0x80)
			n--;
		memcpy(out + n, "...", 4);
	} else {
		out[n] = '\0';
	}
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)word[i];

		out[i] = (char)(c < 0x20 || c == 0x7f ? '?' : c);
	}
	return out;
}
