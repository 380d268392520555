/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server says to its operator: lines on stderr, with the journal's
 * level prefix (sd-daemon(3)) when stderr goes to the journal.
 *
 * No object but the level. Any thread; a line is one write(2), so lines of
 * different threads do not mix. It opens nothing and knows no configuration.
 */
#include "nfsd/nfsd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES_MAX    1024u
#define LIMITED_PERIOD_NS 10000000000u

static _Atomic int level_max = LOG_NOTICE_;

void
log_set_level(enum log_level level)
{
	level_max = level;
}

/* JOURNAL_STREAM names the stream that systemd connected; stderr may have been
 * redirected since (systemd.exec(5)). */
static bool
stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	uint64_t dev, ino;
	struct stat st;
	char *end;

	if (!stream || fstat(STDERR_FILENO, &st) < 0)
		return false;
	dev = strtoull(stream, &end, 10);
	if (end == stream || *end != ':')
		return false;
	stream = end + 1;
	ino = strtoull(stream, &end, 10);
	return end != stream && *end == '\0' && st.st_dev == dev &&
	       st.st_ino == ino;
}

static int
syslog_priority(enum log_level level)
{
	static const int priority[] = {
		[LOG_ERR_] = 3,  [LOG_WARNING_] = 4, [LOG_NOTICE_] = 5,
		[LOG_INFO_] = 6, [LOG_DEBUG_] = 7,
	};

	return priority[level];
}

/* A peer's bytes may be part of the text: they must not make lines of their own
 * or steer a terminal. */
static void
defuse(char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			text[i] = '?';
}

static size_t
clamp(int printed, size_t room)
{
	if (printed < 0)
		return 0;
	return (size_t)printed < room ? (size_t)printed : room - 1;
}

static void __attribute__((format(printf, 3, 0)))
write_line(enum log_level level, uint64_t left_out, const char *format,
	   va_list args)
{
	char line[LINE_BYTES_MAX], note[64] = "";
	size_t n, text, room, note_bytes;
	ssize_t ignored;

	if (left_out)
		(void)snprintf(note, sizeof(note),
			       " (%" PRIu64 " like it left out)", left_out);
	note_bytes = strlen(note);
	if (stderr_is_journal())
		n = clamp(snprintf(line, sizeof(line), "<%d>",
				   syslog_priority(level)),
			  sizeof(line));
	else
		n = clamp(snprintf(line, sizeof(line), "nvnfsd: "),
			  sizeof(line));
	text = n;
	room = sizeof(line) - n - note_bytes - 1;
	n += clamp(vsnprintf(line + n, room, format, args), room);
	memcpy(line + n, note, note_bytes);
	n += note_bytes;
	defuse(line + text, n - text);
	line[n++] = '\n';
	/* Where stderr is gone there is nobody left to tell. */
	ignored = write(STDERR_FILENO, line, n);
	(void)ignored;
}

void
log_msg(enum log_level level, const char *format, ...)
{
	int saved = errno;
	va_list args;

	if ((int)level > level_max)
		return;
	va_start(args, format);
	write_line(level, 0, format, args);
	va_end(args);
	errno = saved;
}

void
log_limited(struct log_limit *limit, enum log_level level, const char *format,
	    ...)
{
	uint64_t now, next;
	int saved = errno;
	va_list args;

	if ((int)level > level_max)
		return;
	now = monotonic_ns();
	next = limit->next_ns;
	/* Of those that come together at the end of a period one speaks. */
	if (now < next ||
	    !atomic_compare_exchange_strong(&limit->next_ns, &next,
					    now + LIMITED_PERIOD_NS)) {
		limit->suppressed++;
		return;
	}
	va_start(args, format);
	write_line(level, atomic_exchange(&limit->suppressed, 0), format, args);
	va_end(args);
	errno = saved;
}
