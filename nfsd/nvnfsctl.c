/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvnfsctl(8): shows and turns what a running server does. Options, then one
 * row of the table; each asks the server over its control socket and shows what
 * came. The status is 0, 1 after a failure, 2 for a wrong command line.
 */
#include "nfsd/nvnfsctl.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
	"usage: nvnfsctl [--state-dir DIR] [--json] COMMAND [ARGUMENT...]\n"
	"  status                          the server as a whole\n"
	"  exports                         what is exported, and its modes\n"
	"  unexport PATH                   withdraw it until the next reload\n"
	"  devices                         what is known of what lies below\n"
	"  clients                         who is connected\n"
	"  locks                           who has locked what\n"
	"  unlock CLIENT                   take all locks of a client\n"
	"  stats                           all counters\n"
	"  top [--once | --batch] [--times N] [--interval SECONDS]\n"
	"      [--by client|export|procedure|all]\n"
	"  slow                            the slowest recent calls\n"
	"  set [EXPORT] KEY=VALUE...       modes, until the server ends\n"
	"  why FILE                        how a file is read and written\n"
	"  drain [--resume | --no-wait]    end all connections and sync\n"
	"  reset-stats                     count from now on\n"
	"  report [-o FILE]                one archive for a bug report\n"
	"  --version, --help\n"
	"See nvnfsctl(8).\n";

/* argv[0] is the command's name. The exit status. */
typedef int command_fn(struct server_link *l, int argc, char **argv);

static int
usage_error(const char *command, const char *what)
{
	(void)fprintf(stderr, "nvnfsctl: %s: %s\n%s", command, what, usage);
	return EXIT_USAGE;
}

static void
print_json(struct json_object *o)
{
	(void)puts(json_object_to_json_string_ext(
		o, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
}

/* Ask and show. args is taken. */
static int
ask_and_show(struct server_link *l, const char *command,
	     struct json_object *args, void (*show)(struct json_object *o))
{
	struct json_object *ret = NULL;

	if (link_ask(l, command, args, &ret) < 0)
		return EXIT_FAILURE;
	if (l->json)
		print_json(ret);
	else if (show != NULL)
		show(ret);
	json_object_put(ret);
	return EXIT_SUCCESS;
}

static struct json_object *
one_arg(const char *name, const char *value)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, name, json_object_new_string(value));
	return o;
}

static void
show_all(struct json_object *o)
{
	show_any(o, 0);
}

static int
no_arguments(struct server_link *l, int argc, char **argv,
	     void (*show)(struct json_object *o))
{
	if (argc > 1)
		return usage_error(argv[0], "it takes no argument");
	return ask_and_show(l, argv[0], NULL, show);
}

static int
run_plain(struct server_link *l, int argc, char **argv)
{
	return no_arguments(l, argc, argv, show_all);
}

static int
run_exports(struct server_link *l, int argc, char **argv)
{
	return no_arguments(l, argc, argv, show_exports);
}

static int
run_devices(struct server_link *l, int argc, char **argv)
{
	return no_arguments(l, argc, argv, show_devices);
}

static int
run_clients(struct server_link *l, int argc, char **argv)
{
	return no_arguments(l, argc, argv, show_clients);
}

static int
run_slow(struct server_link *l, int argc, char **argv)
{
	return no_arguments(l, argc, argv, show_slow);
}

static int
run_locks(struct server_link *l, int argc, char **argv)
{
	return no_arguments(l, argc, argv, show_locks);
}

static int
run_unlock(struct server_link *l, int argc, char **argv)
{
	if (argc != 2)
		return usage_error(argv[0], "it takes a client, by address or "
					    "by the name that locks shows");
	return ask_and_show(l, argv[0], one_arg("client", argv[1]), NULL);
}

static int
run_reset(struct server_link *l, int argc, char **argv)
{
	return no_arguments(l, argc, argv, NULL);
}

static int
run_stats(struct server_link *l, int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--json") == 0) {
		l->json = true;
		argc--;
	}
	return no_arguments(l, argc, argv, show_stats);
}

static void
show_unexport(struct json_object *o)
{
	(void)printf("%s is withdrawn%s\n", get_text(o, "path"),
		     get_flag(o, "released")
			     ? ""
			     : "; calls in service still hold its file system");
}

static int
run_unexport(struct server_link *l, int argc, char **argv)
{
	struct json_object *ret = NULL;
	bool released;

	if (argc != 2)
		return usage_error(argv[0], "it takes the path of an export");
	if (link_ask(l, argv[0], one_arg("path", argv[1]), &ret) < 0)
		return EXIT_FAILURE;
	released = get_flag(ret, "released");
	if (l->json)
		print_json(ret);
	else
		show_unexport(ret);
	json_object_put(ret);
	return released ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int
run_why(struct server_link *l, int argc, char **argv)
{
	char *path;
	int rc;

	if (argc != 2)
		return usage_error(argv[0], "it takes a file");
	path = realpath(argv[1], NULL);
	if (path == NULL) {
		(void)fprintf(stderr, "nvnfsctl: %s: %s\n", argv[1],
			      strerror(errno));
		return EXIT_FAILURE;
	}
	rc = ask_and_show(l, argv[0], one_arg("path", path), show_all);
	free(path);
	return rc;
}

/* Set ---------------------------------------------------------------------- */

static void
show_set(struct json_object *o)
{
	struct json_object *list = get_part(o, "warnings");
	size_t n = list != NULL ? json_object_array_length(list) : 0, i;

	for (i = 0; i < n; i++)
		(void)fprintf(stderr, "nvnfsctl: warning: %s\n",
			      json_object_get_string(
				      json_object_array_get_idx(list, i)));
}

static bool
is_setting(const char *word)
{
	return *word != '/' && strchr(word, '=') != NULL;
}

static int
run_set(struct server_link *l, int argc, char **argv)
{
	struct json_object *args = json_object_new_object();
	struct json_object *set = json_object_new_object();
	int i = 1;

	json_object_object_add(args, "set", set);
	if (i < argc && !is_setting(argv[i]))
		json_object_object_add(args, "export",
				       json_object_new_string(argv[i++]));
	if (i == argc || *argv[i] == '=')
		goto wrong;
	for (; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (value == NULL)
			goto wrong;
		*value++ = '\0';
		json_object_object_add(set, argv[i],
				       json_object_new_string(value));
	}
	return ask_and_show(l, argv[0], args, show_set);
wrong:
	json_object_put(args);
	return usage_error(argv[0], "it takes [EXPORT] KEY=VALUE...");
}

/* Drain -------------------------------------------------------------------- */

static bool
is_quiet(struct json_object *o)
{
	return get_flag(o, "synced");
}

static void
show_drain(struct json_object *o)
{
	if (!get_flag(o, "draining"))
		(void)puts("serving");
	else if (is_quiet(o))
		(void)puts("drained: no connections, everything is synced");
	else
		(void)printf("draining: %" PRIu64 " connections, %" PRIu64
			     " calls in service\n",
			     get_number(o, "connections"),
			     get_number(o, "calls"));
}

static struct json_object *
one_flag(const char *name)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, name, json_object_new_boolean(1));
	return o;
}

/* Until the server is quiet, or somebody lets it serve again. */
static int
drain_wait(struct server_link *l)
{
	const struct timespec pause = { .tv_nsec = 100000000 };
	struct json_object *ret = NULL;
	bool quiet;
	int rc = link_ask(l, "drain", NULL, &ret);

	while (rc == 0 && !is_quiet(ret) && get_flag(ret, "draining")) {
		(void)nanosleep(&pause, NULL);
		json_object_put(ret);
		ret = NULL;
		rc = link_ask(l, "drain", one_flag("ask"), &ret);
	}
	if (rc < 0)
		return EXIT_FAILURE;
	quiet = is_quiet(ret);
	if (l->json)
		print_json(ret);
	else
		show_drain(ret);
	json_object_put(ret);
	return quiet ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int
run_drain(struct server_link *l, int argc, char **argv)
{
	if (argc == 1)
		return drain_wait(l);
	if (argc == 2 && strcmp(argv[1], "--no-wait") == 0)
		return ask_and_show(l, argv[0], NULL, show_drain);
	if (argc != 2 || strcmp(argv[1], "--resume") != 0)
		return usage_error(argv[0], "it takes --resume or --no-wait");
	return ask_and_show(l, argv[0], one_flag("resume"), show_drain);
}

/* All of them -------------------------------------------------------------- */

static const struct {
	const char *name;
	command_fn *run;
} commands[] = {
	{ "status", run_plain },      { "exports", run_exports },
	{ "unexport", run_unexport }, { "devices", run_devices },
	{ "clients", run_clients },   { "stats", run_stats },
	{ "top", top_run },           { "slow", run_slow },
	{ "set", run_set },           { "why", run_why },
	{ "locks", run_locks },       { "unlock", run_unlock },
	{ "drain", run_drain },       { "reset-stats", run_reset },
	{ "report", report_run },
};

static int
run_command(struct server_link *l, int argc, char **argv)
{
	unsigned i;

	for (i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (strcmp(commands[i].name, argv[0]) == 0)
			return commands[i].run(l, argc, argv);
	return usage_error(argv[0], "there is no such command");
}

static const struct option options[] = {
	{ "state-dir", required_argument, NULL, 's' },
	{ "json", no_argument, NULL, 'j' },
	{ "version", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* -1: go on; else the exit status. */
static int
parse_options(struct server_link *l, int argc, char **argv)
{
	int c;

	/* "+": a command's own options are not ours. */
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (c) {
		case 's':
			l->state_dir = optarg;
			break;
		case 'j':
			l->json = true;
			break;
		case 'v':
			(void)puts("nvnfsctl " NVNFSD_VERSION);
			return EXIT_SUCCESS;
		case 'h':
			(void)fputs(usage, stdout);
			return EXIT_SUCCESS;
		default:
			(void)fputs(usage, stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc)
		return -1;
	(void)fputs(usage, stderr);
	return EXIT_USAGE;
}

int
main(int argc, char **argv)
{
	struct server_link l = { .state_dir = NVNFSCTL_STATE_DEFAULT,
				 .fd = -1 };
	int rc = parse_options(&l, argc, argv);

	if (rc < 0)
		rc = run_command(&l, argc - optind, argv + optind);
	link_close(&l);
	if (fflush(stdout) != 0 && rc == EXIT_SUCCESS)
		rc = EXIT_FAILURE;
	return rc;
}
