/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvnfsctl top: what the server does, again and again: on the terminal
 * (ncurses), or as plain text for files and tests (--batch, --once). It asks
 * for all that was counted and shows the difference; the server does nothing
 * for it in between.
 */
#include "nfsd/nvnfsctl.h"

#include <getopt.h>
#include <inttypes.h>
#include <ncurses.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define INTERVAL_DEFAULT 1.0
#define INTERVAL_MAX     3600.0
#define LINE_BYTES       512

struct top {
	struct server_link *link;
	double interval_s;
	enum rate_group by;
	bool batch;
	long times; /* of batch; 0: for ever */
	struct json_object *before;
};

/* Where a line goes: the screen's next, or standard output. */
struct page {
	bool screen;
	int line;
};

static void __attribute__((format(printf, 2, 3)))
page_line(struct page *p, const char *format, ...)
{
	char text[LINE_BYTES];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (p->screen)
		(void)mvaddnstr(p->line, 0, text, COLS);
	else
		(void)puts(text);
	p->line++;
}

static void
page_head(struct page *p, const struct rates *r)
{
	char bytes[SHOW_BYTES];

	page_line(p,
		  "%.0f calls/s, %.1f MiB/s written, %.1f MiB/s read; "
		  "%" PRIu64 " connections",
		  r->calls, r->mib_in, r->mib_out, r->connections);
	page_line(p,
		  "queue depth: %" PRIu64 " calls in service, %" PRIu64
		  " file operations; %s in flight",
		  r->calls_in_service, r->file_ops,
		  show_size(bytes, (double)r->bytes_in_flight));
	page_line(p, "%s", "");
	page_line(p, "%-22s %-22s %-12s %9s %9s %9s %9s %9s", "CLIENT",
		  "EXPORT", "PROCEDURE", "CALLS/S", "MIB/S", "P50", "P99",
		  "P99.9");
}

static void
page_row(struct page *p, const struct rate_row *r)
{
	char p50[SHOW_BYTES], p99[SHOW_BYTES], p999[SHOW_BYTES];

	page_line(p, "%-22.22s %-22.22s %-12s %9.0f %9.1f %9s %9s %9s",
		  r->client, r->export, r->procedure, r->calls, r->mib,
		  show_time(p50, (double)r->p50_ns),
		  show_time(p99, (double)r->p99_ns),
		  show_time(p999, (double)r->p999_ns));
}

static void
page_show(struct page *p, const struct rates *r)
{
	size_t i;

	page_head(p, r);
	for (i = 0; i < r->rows; i++) {
		if (p->screen && p->line >= LINES - 1)
			break;
		page_row(p, &r->row[i]);
	}
}

static struct json_object *
ask(const struct top *t)
{
	struct json_object *args = json_object_new_object(), *ret = NULL;

	json_object_object_add(args, "buckets", json_object_new_boolean(1));
	return link_ask(t->link, "stats", args, &ret) == 0 ? ret : NULL;
}

/* One more look: what happened since the last. */
static int
look(struct top *t, struct page *p)
{
	struct json_object *now = ask(t);
	struct rates r;

	if (now == NULL)
		return -1;
	if (rates_make(&r, t->before, now, t->by) == 0) {
		page_show(p, &r);
		rates_free(&r);
	}
	json_object_put(t->before);
	t->before = now;
	return 0;
}

static void
pause_for(double seconds)
{
	struct timespec ts = { .tv_sec = (time_t)seconds };

	ts.tv_nsec = (long)((seconds - (double)ts.tv_sec) * 1e9);
	(void)nanosleep(&ts, NULL);
}

static int
run_batch(struct top *t)
{
	struct page p = { 0 };
	long i;

	for (i = 0; t->times == 0 || i < t->times; i++) {
		if (i > 0)
			(void)putchar('\n');
		pause_for(t->interval_s);
		if (look(t, &p) < 0)
			return EXIT_FAILURE;
		(void)fflush(stdout);
	}
	return EXIT_SUCCESS;
}

/* false: the end. */
static bool
key(struct top *t, int c)
{
	switch (c) {
	case 'a':
		t->by = GROUP_ALL;
		break;
	case 'c':
		t->by = GROUP_CLIENT;
		break;
	case 'e':
		t->by = GROUP_EXPORT;
		break;
	case 'p':
		t->by = GROUP_PROCEDURE;
		break;
	case 'q':
		return false;
	default:
		break;
	}
	return true;
}

static int
run_screen(struct top *t)
{
	int rc = EXIT_SUCCESS, c = ERR;

	if (initscr() == NULL)
		return EXIT_FAILURE;
	(void)cbreak();
	(void)noecho();
	(void)curs_set(0);
	timeout((int)(t->interval_s * 1000));
	while (key(t, c)) {
		struct page p = { .screen = true };

		c = getch(); /* waits for the interval, or a key */
		if (c != ERR)
			continue;
		(void)erase();
		if (look(t, &p) < 0) {
			rc = EXIT_FAILURE;
			break;
		}
		(void)mvprintw(LINES - 1, 0,
			       "by: [c]lient [e]xport [p]rocedure [a]ll; "
			       "[q]uit");
		(void)refresh();
	}
	(void)endwin();
	return rc;
}

static const struct option options[] = {
	{ "batch", no_argument, NULL, 'b' },
	{ "once", no_argument, NULL, 'o' },
	{ "times", required_argument, NULL, 'n' },
	{ "interval", required_argument, NULL, 'd' },
	{ "by", required_argument, NULL, 'g' },
	{ NULL, 0, NULL, 0 },
};

static int
bad(const char *what, const char *value)
{
	(void)fprintf(stderr, "nvnfsctl: top: --%s: \"%s\" is not valid\n",
		      what, value);
	return EXIT_USAGE;
}

static int
parse_by(struct top *t, const char *text)
{
	if (strlen(text) == 0 ||
	    (strcmp(text, "all") != 0 && strcmp(text, "client") != 0 &&
	     strcmp(text, "export") != 0 && strcmp(text, "procedure") != 0))
		return bad("by", text);
	(void)key(t, text[0]);
	return 0;
}

static int
parse_number(const char *what, const char *text, double max, double *ret)
{
	char *end;

	*ret = strtod(text, &end);
	if (end == text || *end != '\0' || !(*ret > 0) || *ret > max)
		return bad(what, text);
	return 0;
}

static int
parse_one(struct top *t, int c)
{
	double n;
	int rc;

	switch (c) {
	case 'o':
		t->times = 1;
		t->batch = true;
		return 0;
	case 'b':
		t->batch = true;
		return 0;
	case 'n':
		rc = parse_number("times", optarg, 1e9, &n);
		t->times = rc == 0 ? (long)n : 0;
		t->batch = true;
		return rc == 0 && t->times == 0 ? bad("times", optarg) : rc;
	case 'd':
		return parse_number("interval", optarg, INTERVAL_MAX,
				    &t->interval_s);
	case 'g':
		return parse_by(t, optarg);
	default:
		return EXIT_USAGE; /* getopt_long has said it */
	}
}

int
top_run(struct server_link *l, int argc, char **argv)
{
	struct top t = { .link = l, .interval_s = INTERVAL_DEFAULT };
	int c, rc;

	optind = 0; /* main has used it */
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		rc = parse_one(&t, c);
		if (rc != 0)
			return rc;
	}
	if (optind < argc) {
		(void)fprintf(stderr,
			      "nvnfsctl: top: unexpected argument \"%s\"\n",
			      argv[optind]);
		return EXIT_USAGE;
	}
	t.before = ask(&t);
	if (t.before == NULL)
		return EXIT_FAILURE;
	rc = t.batch || !isatty(STDOUT_FILENO) ? run_batch(&t) : run_screen(&t);
	json_object_put(t.before);
	return rc;
}
