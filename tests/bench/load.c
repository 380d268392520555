/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvnfsd-load: an NFSv3 client that measures and checks. It writes records of
 * one size into one file, as one stream or interleaved by many writers over
 * several connections, or reads them back and compares every byte. What fio's
 * nfs engine cannot do is what it is for: stable WRITEs, COMMIT with verifiers
 * compared, time to stable, records that end inside a page, reconnection.
 */
#include "tests/bench/load.h"

#include "conf/conf.h"

#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char usage_text[] =
	"usage: nvnfsd-load [OPTION...] write|read|null|commit|remove\n"
	"  --server ADDR        (127.0.0.1)\n"
	"  --port N             NFS port (default: ask rpcbind)\n"
	"  --mount-port N       MOUNT port (default: as --port)\n"
	"  --export PATH        (/export)\n"
	"  --file NAME          in the export's root (load)\n"
	"  --files N            NAME.0 and so on, the writers dealt to them "
	"(1)\n"
	"  --size SIZE          of the file, of each (1G)\n"
	"  --records SIZE       bytes a request (1M)\n"
	"  --writers N          interleaved streams (1)\n"
	"  --in-flight N        requests in flight of each (1)\n"
	"  --connections N      the streams are dealt to these (1)\n"
	"  --stable HOW         unstable, data or file; unstable ends with\n"
	"                       COMMIT (unstable)\n"
	"  --split HOW          each record as two WRITEs, cut at its last "
	"page\n"
	"                       boundary: after (each other) or together\n"
	"  --random             records in random order\n"
	"  --operations N       only the first N records of the order; of "
	"null,\n"
	"                       how many calls (1M)\n"
	"  --seconds N          for so long, from the first again where need "
	"be\n"
	"  --until-interrupt    from the first again until SIGINT, then to the "
	"end\n"
	"  --generation N       content: as written by this generation (1)\n"
	"  --seed N             of the random order (1)\n"
	"  --truncate           empty the file first\n"
	"  --no-verify          do not compare what is read\n"
	"  --reconnect          come back after a lost connection, send again\n"
	"  --hold N             keep the connections for N seconds at the "
	"end;\n"
	"                       a line on standard error says when that "
	"begins\n"
	"  --uid N --gid N      credentials (this process's own)\n"
	"  --raw                calls by this program's own code, not "
	"libnfs's:\n"
	"                       less CPU, many calls a send (wants --port)\n"
	"  --no-mount           use a handle of zeros (wants --raw)\n"
	"  --syncfs DIR         sync DIR's file system too before it counts "
	"as\n"
	"                       stable (the server's own, on this machine)\n"
	"The result is one JSON object on standard output; the status is 0 "
	"when\n"
	"every request succeeded and every byte was right.\n";

enum {
	OPT_SERVER = 256,
	OPT_PORT,
	OPT_MOUNT_PORT,
	OPT_EXPORT,
	OPT_FILE,
	OPT_SIZE,
	OPT_RECORDS,
	OPT_WRITERS,
	OPT_IN_FLIGHT,
	OPT_CONNECTIONS,
	OPT_STABLE,
	OPT_RANDOM,
	OPT_OPERATIONS,
	OPT_GENERATION,
	OPT_SEED,
	OPT_TRUNCATE,
	OPT_NO_VERIFY,
	OPT_RECONNECT,
	OPT_UID,
	OPT_GID,
	OPT_RAW,
	OPT_NO_MOUNT,
	OPT_SYNCFS,
	OPT_SECONDS,
	OPT_UNTIL_INTERRUPT,
	OPT_FILES,
	OPT_SPLIT,
	OPT_HOLD,
	OPT_HELP
};

static const struct option long_options[] = {
	{ "server", required_argument, NULL, OPT_SERVER },
	{ "port", required_argument, NULL, OPT_PORT },
	{ "mount-port", required_argument, NULL, OPT_MOUNT_PORT },
	{ "export", required_argument, NULL, OPT_EXPORT },
	{ "file", required_argument, NULL, OPT_FILE },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "records", required_argument, NULL, OPT_RECORDS },
	{ "writers", required_argument, NULL, OPT_WRITERS },
	{ "in-flight", required_argument, NULL, OPT_IN_FLIGHT },
	{ "connections", required_argument, NULL, OPT_CONNECTIONS },
	{ "stable", required_argument, NULL, OPT_STABLE },
	{ "random", no_argument, NULL, OPT_RANDOM },
	{ "operations", required_argument, NULL, OPT_OPERATIONS },
	{ "generation", required_argument, NULL, OPT_GENERATION },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "truncate", no_argument, NULL, OPT_TRUNCATE },
	{ "no-verify", no_argument, NULL, OPT_NO_VERIFY },
	{ "reconnect", no_argument, NULL, OPT_RECONNECT },
	{ "uid", required_argument, NULL, OPT_UID },
	{ "gid", required_argument, NULL, OPT_GID },
	{ "raw", no_argument, NULL, OPT_RAW },
	{ "no-mount", no_argument, NULL, OPT_NO_MOUNT },
	{ "syncfs", required_argument, NULL, OPT_SYNCFS },
	{ "seconds", required_argument, NULL, OPT_SECONDS },
	{ "until-interrupt", no_argument, NULL, OPT_UNTIL_INTERRUPT },
	{ "files", required_argument, NULL, OPT_FILES },
	{ "split", required_argument, NULL, OPT_SPLIT },
	{ "hold", required_argument, NULL, OPT_HOLD },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 }
};

/* A number, with the suffixes of nvnfsd.conf, between low and high. */
static bool
number(const char *word, uint64_t low, uint64_t high, uint64_t *ret)
{
	uint64_t v;

	if (conf_size_parse(word, &v) < 0 || v < low || v > high) {
		(void)fprintf(stderr,
			      "nvnfsd-load: not a number in range: %s\n", word);
		return false;
	}
	*ret = v;
	return true;
}

static bool
count(const char *word, uint64_t low, unsigned *ret)
{
	uint64_t v;

	if (!number(word, low, 4096, &v))
		return false;
	*ret = (unsigned)v;
	return true;
}

static bool
id(const char *word, uint64_t high, int *ret)
{
	uint64_t v;

	if (!number(word, 0, high, &v))
		return false;
	*ret = (int)v;
	return true;
}

static bool
stability(const char *word, stable_how *ret)
{
	if (strcmp(word, "unstable") == 0)
		*ret = UNSTABLE;
	else if (strcmp(word, "data") == 0)
		*ret = DATA_SYNC;
	else if (strcmp(word, "file") == 0)
		*ret = FILE_SYNC;
	else
		return false;
	return true;
}

static bool
split(const char *word, enum load_split *ret)
{
	if (strcmp(word, "after") == 0)
		*ret = SPLIT_AFTER;
	else if (strcmp(word, "together") == 0)
		*ret = SPLIT_TOGETHER;
	else
		return false;
	return true;
}

static bool
option_size(struct load_options *o, int c, const char *arg)
{
	uint64_t v;

	switch (c) {
	case OPT_SIZE:
		return number(arg, 1, INT64_MAX, &o->file_bytes);
	case OPT_RECORDS:
		if (!number(arg, 1, 64u << 20, &v))
			return false;
		o->record_bytes = (uint32_t)v;
		return true;
	case OPT_WRITERS:
		return count(arg, 1, &o->writers);
	case OPT_IN_FLIGHT:
		return count(arg, 1, &o->in_flight);
	case OPT_CONNECTIONS:
		return count(arg, 1, &o->connections);
	case OPT_OPERATIONS:
		return number(arg, 1, UINT32_MAX, &o->operations_max);
	case OPT_GENERATION:
		return number(arg, 0, UINT64_MAX, &o->generation);
	case OPT_FILES:
		return count(arg, 1, &o->files);
	case OPT_HOLD:
		return number(arg, 1, SECONDS_MAX, &o->hold_seconds);
	case OPT_SECONDS:
		return number(arg, 1, SECONDS_MAX, &o->seconds);
	case OPT_SEED:
		return number(arg, 0, UINT32_MAX, &o->seed);
	default:
		return false;
	}
}

static bool
option_set(struct load_options *o, int c, char *arg)
{
	switch (c) {
	case OPT_SERVER:
		o->server = arg;
		return true;
	case OPT_PORT:
		return id(arg, UINT16_MAX, &o->port);
	case OPT_MOUNT_PORT:
		return id(arg, UINT16_MAX, &o->mount_port);
	case OPT_EXPORT:
		o->export = arg;
		return true;
	case OPT_FILE:
		o->file = arg;
		return true;
	case OPT_STABLE:
		return stability(arg, &o->stable);
	case OPT_SPLIT:
		return split(arg, &o->split);
	case OPT_RANDOM:
		return o->random = true;
	case OPT_UNTIL_INTERRUPT:
		return o->until_interrupt = true;
	case OPT_TRUNCATE:
		return o->truncate = true;
	case OPT_NO_VERIFY:
		o->verify = false;
		return true;
	case OPT_RECONNECT:
		return o->reconnect = true;
	case OPT_RAW:
		return o->raw = true;
	case OPT_NO_MOUNT:
		return o->no_mount = true;
	case OPT_SYNCFS:
		o->syncfs = arg;
		return true;
	case OPT_UID:
		o->set_ids = true;
		return id(arg, INT_MAX, &o->uid);
	case OPT_GID:
		o->set_ids = true;
		return id(arg, INT_MAX, &o->gid);
	default:
		return option_size(o, c, arg);
	}
}

static bool
operation(struct load_options *o, const char *word)
{
	if (strcmp(word, "write") == 0)
		o->op = LOAD_WRITE;
	else if (strcmp(word, "read") == 0)
		o->op = LOAD_READ;
	else if (strcmp(word, "null") == 0)
		o->op = LOAD_NULL;
	else if (strcmp(word, "commit") == 0)
		o->op = LOAD_COMMIT;
	else if (strcmp(word, "remove") == 0)
		o->op = LOAD_REMOVE;
	else
		return false;
	return true;
}

static bool
options_check(struct load_options *o)
{
	if (o->op == LOAD_NULL) {
		o->record_bytes = 1; /* an empty record a call */
		o->file_bytes =
			o->operations_max ? o->operations_max : 1u << 20;
	}
	if (o->mount_port == 0)
		o->mount_port = o->port;
	if (o->connections > o->writers)
		o->connections = o->writers;
	if (o->raw ? o->port == 0 : o->no_mount || o->op == LOAD_NULL) {
		(void)fprintf(stderr,
			      "nvnfsd-load: --raw wants --port; --no-mount and "
			      "null want --raw\n");
		return false;
	}
	/* libnfs takes no larger reply (the header comes on top). */
	if (!o->raw && o->op == LOAD_READ && o->record_bytes > 1u << 20) {
		(void)fprintf(stderr,
			      "nvnfsd-load: libnfs reads at most 1 MiB\n");
		return false;
	}
	return o->file_bytes / o->record_bytes < UINT32_MAX / o->files;
}

/* As many as there may be: one a connection. */
static void
descriptors_raise(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return;
	r.rlim_cur = r.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &r);
}

static void
interrupt(int sig)
{
	(void)sig;
	run_interrupted = 1;
}

int
main(int argc, char **argv)
{
	static struct load l = { .opt = { .server = "127.0.0.1",
					  .export = "/export",
					  .file = "load",
					  .file_bytes = 1u << 30,
					  .record_bytes = 1u << 20,
					  .writers = 1,
					  .in_flight = 1,
					  .connections = 1,
					  .files = 1,
					  .verify = true,
					  .generation = 1,
					  .seed = 1 } };
	bool good = false;
	int c;

	while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (c == OPT_HELP)
			return fputs(usage_text, stdout) < 0;
		if (!option_set(&l.opt, c, optarg))
			goto usage;
	}
	if (l.opt.until_interrupt)
		(void)signal(SIGINT, interrupt);
	if (optind != argc - 1 || !operation(&l.opt, argv[optind]) ||
	    !options_check(&l.opt))
		goto usage;
	(void)signal(SIGPIPE, SIG_IGN);
	descriptors_raise();
	if (run_init(&l) < 0) {
		(void)fputs("nvnfsd-load: out of memory\n", stderr);
		return 1;
	}
	if (l.opt.op == LOAD_REMOVE)
		good = conn_remove_files(&l) == 0;
	else if (conn_open_files(&l) == 0 && conn_start(&l) == 0)
		good = run(&l);
	if (good && l.opt.hold_seconds > 0) {
		(void)fputs("nvnfsd-load: holding\n", stderr);
		(void)sleep((unsigned)l.opt.hold_seconds);
	}
	l.stop = true;
	conn_stop(&l);
	if (report(&l, good, stdout) < 0)
		good = false;
	run_fini(&l);
	return !good;
usage:
	(void)fputs(usage_text, stderr);
	return 2;
}
