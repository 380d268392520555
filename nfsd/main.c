/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvnfsd(8): options, configuration, start, signals, stop. Everything happens
 * on the main thread, which after the start only waits for signals: TERM and
 * INT stop, HUP reloads, USR1 writes the statistics.
 */
#include "nfsd/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#define CONFIG_DEFAULT  "/etc/nvnfsd/nvnfsd.conf"
#define EXPORTS_DEFAULT "/etc/nvnfsd/exports"
#define STATE_DEFAULT   "/var/lib/nvnfsd"
#define EXIT_USAGE      2
#ifdef NVNFSD_FAULT
#define FAULT_SUFFIX " +fault"
#else
#define FAULT_SUFFIX ""
#endif

static const char usage[] =
	"usage: nvnfsd [--config FILE] [--exports FILE]\n"
	"              [--export 'PATH CLIENT(options)']... [--listen ADDR]\n"
	"              [--port N] [--mount-port N] [--state-dir DIR]\n"
	"              [--no-rpcbind] [--threads N] [--read-mode M]\n"
	"              [--write-mode M] [--engine uring|threads]\n"
	"              [--check] [--version] [--help]\n"
	"Serves NFS version 3 in the foreground; see nvnfsd(8).\n";

/* The command line: what is set here goes over the configuration file. */
struct arguments {
	struct server_options o;
	bool config_named, exports_named, check;
	const char *listen[SERVER_LISTENERS_MAX];
	unsigned listens;
	bool has_port, has_mount_port, has_threads;
	uint16_t port, mount_port;
	unsigned threads;
	struct conf_policy policy;
};

enum {
	OPT_CONFIG = 256,
	OPT_EXPORTS,
	OPT_EXPORT,
	OPT_LISTEN,
	OPT_PORT,
	OPT_MOUNT_PORT,
	OPT_STATE_DIR,
	OPT_NO_RPCBIND,
	OPT_THREADS,
	OPT_READ_MODE,
	OPT_WRITE_MODE,
	OPT_ENGINE,
	OPT_CHECK,
	OPT_VERSION,
	OPT_HELP
};

static const struct option options[] = {
	{ "config", required_argument, NULL, OPT_CONFIG },
	{ "exports", required_argument, NULL, OPT_EXPORTS },
	{ "export", required_argument, NULL, OPT_EXPORT },
	{ "listen", required_argument, NULL, OPT_LISTEN },
	{ "port", required_argument, NULL, OPT_PORT },
	{ "mount-port", required_argument, NULL, OPT_MOUNT_PORT },
	{ "state-dir", required_argument, NULL, OPT_STATE_DIR },
	{ "no-rpcbind", no_argument, NULL, OPT_NO_RPCBIND },
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ "read-mode", required_argument, NULL, OPT_READ_MODE },
	{ "write-mode", required_argument, NULL, OPT_WRITE_MODE },
	{ "engine", required_argument, NULL, OPT_ENGINE },
	{ "check", no_argument, NULL, OPT_CHECK },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static int
bad_value(const char *option, const char *value)
{
	(void)fprintf(stderr, "nvnfsd: --%s: \"%s\" is not valid\n%s", option,
		      value, usage);
	return EXIT_USAGE;
}

static bool
parse_number(const char *text, unsigned long max, unsigned long *ret)
{
	char *end;

	errno = 0;
	*ret = strtoul(text, &end, 10);
	return errno == 0 && end != text && *end == '\0' && *text != '-' &&
	       *ret <= max;
}

static int
parse_port(const char *option, const char *text, bool *has, uint16_t *ret)
{
	unsigned long n;

	if (!parse_number(text, UINT16_MAX, &n))
		return bad_value(option, text);
	*has = true;
	*ret = (uint16_t)n;
	return 0;
}

static int
parse_threads(struct arguments *a, const char *text)
{
	unsigned long n;

	if (!parse_number(text, CONF_THREADS_MAX, &n))
		return bad_value("threads", text);
	a->has_threads = true;
	a->threads = (unsigned)n;
	return 0;
}

static int
parse_engine(struct arguments *a, const char *text)
{
	if (strcmp(text, "uring") == 0)
		a->o.backend = IO_BACKEND_URING;
	else if (strcmp(text, "threads") == 0)
		a->o.backend = IO_BACKEND_THREADS;
	else
		return bad_value("engine", text);
	return 0;
}

static int
parse_listen(struct arguments *a, const char *text)
{
	if (a->listens == SERVER_LISTENERS_MAX)
		return bad_value("listen", text);
	a->listen[a->listens++] = text;
	return 0;
}

static int
parse_export(struct arguments *a, char *text)
{
	char **grown = realloc(a->o.export_lines,
			       (a->o.export_count + 1) * sizeof(*grown));

	if (grown == NULL)
		return bad_value("export", text);
	a->o.export_lines = grown;
	a->o.export_lines[a->o.export_count++] = text;
	return 0;
}

static int
parse_mode(const char *option, const char *text, bool *has, enum conf_mode *ret)
{
	*has = true;
	return conf_mode_parse(text, ret) < 0 ? bad_value(option, text) : 0;
}

/* 0: go on; -1: end well; else the exit status. */
static int
parse_one(struct arguments *a, int opt)
{
	switch (opt) {
	case OPT_CONFIG:
		a->o.config = optarg;
		a->config_named = true;
		return 0;
	case OPT_EXPORTS:
		a->o.exports = optarg;
		a->exports_named = true;
		return 0;
	case OPT_EXPORT:
		return parse_export(a, optarg);
	case OPT_LISTEN:
		return parse_listen(a, optarg);
	case OPT_PORT:
		return parse_port("port", optarg, &a->has_port, &a->port);
	case OPT_MOUNT_PORT:
		return parse_port("mount-port", optarg, &a->has_mount_port,
				  &a->mount_port);
	case OPT_STATE_DIR:
		a->o.state_dir = optarg;
		return 0;
	case OPT_NO_RPCBIND:
		a->o.no_rpcbind = true;
		return 0;
	case OPT_THREADS:
		return parse_threads(a, optarg);
	case OPT_READ_MODE:
		return parse_mode("read-mode", optarg, &a->policy.has_read_mode,
				  &a->policy.read_mode);
	case OPT_WRITE_MODE:
		return parse_mode("write-mode", optarg,
				  &a->policy.has_write_mode,
				  &a->policy.write_mode);
	case OPT_ENGINE:
		return parse_engine(a, optarg);
	case OPT_CHECK:
		a->check = true;
		return 0;
	case OPT_VERSION:
		(void)puts("nvnfsd " NVNFSD_VERSION FAULT_SUFFIX);
		return -1;
	case OPT_HELP:
		(void)fputs(usage, stdout);
		return -1;
	default:
		(void)fputs(usage, stderr);
		return EXIT_USAGE;
	}
}

static int
parse_arguments(struct arguments *a, int argc, char **argv)
{
	int opt, rc;

	a->o.config = CONFIG_DEFAULT;
	a->o.exports = EXPORTS_DEFAULT;
	a->o.state_dir = STATE_DEFAULT;
	a->o.backend = IO_BACKEND_URING;
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		rc = parse_one(a, opt);
		if (rc != 0)
			return rc;
	}
	if (optind < argc) {
		(void)fprintf(stderr, "nvnfsd: unexpected argument \"%s\"\n%s",
			      argv[optind], usage);
		return EXIT_USAGE;
	}
	/* Exports given here stand alone, unless a file is named too. */
	if (a->o.export_count > 0 && !a->exports_named)
		a->o.exports = NULL;
	return 0;
}

/* The file, and over it the command line. 0 or -errno, logged. */
static int
read_conf(struct conf *c, const struct arguments *a)
{
	struct conf_report r = { 0 };
	int rc;

	conf_init(c);
	rc = conf_read(c, a->o.config, &r);
	server_log_report(&r);
	conf_report_fini(&r);
	if (rc == -ENOENT && !a->config_named)
		rc = 0;
	else if (rc == -ENOENT)
		log_msg(LOG_ERR_, "%s: %s", a->o.config, strerror(ENOENT));
	return rc;
}

static int
override_hosts(struct conf *c, const struct arguments *a)
{
	unsigned i;

	if (a->listens == 0)
		return 0;
	for (i = 0; i < c->host_count; i++)
		free(c->hosts[i]);
	free(c->hosts);
	c->host_count = 0;
	c->hosts = calloc(a->listens, sizeof(*c->hosts));
	if (c->hosts == NULL)
		return -ENOMEM;
	for (i = 0; i < a->listens; i++) {
		c->hosts[i] = strdup(a->listen[i]);
		if (c->hosts[i] == NULL)
			return -ENOMEM;
		c->host_count++;
	}
	return 0;
}

static int
override_conf(struct conf *c, const struct arguments *a)
{
	if (a->has_port)
		c->port = a->port;
	if (a->has_mount_port) {
		c->has_mount_port = true;
		c->mount_port = a->mount_port;
	}
	if (a->has_threads)
		c->threads = a->threads;
	if (a->policy.has_read_mode) {
		c->policy.has_read_mode = true;
		c->policy.read_mode = a->policy.read_mode;
	}
	if (a->policy.has_write_mode) {
		c->policy.has_write_mode = true;
		c->policy.write_mode = a->policy.write_mode;
	}
	return override_hosts(c, a);
}

static int
check(const struct arguments *a, struct conf *c)
{
	struct conf_exports e = { 0 };
	struct conf_report r = { 0 };
	int rc = server_read_exports(&e, &a->o, &r);

	server_log_report(&r);
	conf_report_fini(&r);
	if (rc < 0)
		return EXIT_FAILURE;
	(void)printf("# nvnfsd.conf\n");
	conf_print(c, stdout);
	(void)printf("# exports\n");
	conf_exports_print(&e, stdout);
	conf_exports_fini(&e);
	return EXIT_SUCCESS;
}

/* Serving -------------------------------------------------------------------
 */

static void
print_address(const struct listener *l, char *out, size_t n)
{
	char host[INET6_ADDRSTRLEN];
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&l->addr;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&l->addr;

	if (l->addr.ss_family == AF_INET) {
		inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
		(void)snprintf(out, n, "%s:%u", host, ntohs(v4->sin_port));
	} else {
		inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
		(void)snprintf(out, n, "[%s]:%u", host, ntohs(v6->sin6_port));
	}
}

/* Tell systemd what is served, now and after each reload. */
static void
notify_ready(struct server *s)
{
	struct export_table *t = server_exports_get(s);
	char nfs[80];

	print_address(listen_first(s, PROGRAM_NFS3), nfs, sizeof(nfs));
	sd_notifyf(0, "READY=1\nSTATUS=Serving %u exports on %s",
		   export_table_count(t), nfs);
	export_table_put(t);
}

static void
say_ready(struct server *s)
{
	struct export_table *t = server_exports_get(s);
	char nfs[80], mount[80];

	print_address(listen_first(s, PROGRAM_NFS3), nfs, sizeof(nfs));
	print_address(listen_first(s, PROGRAM_MOUNT3), mount, sizeof(mount));
	(void)printf("nvnfsd: ready nfs=%s mount=%s exports=%u\n", nfs, mount,
		     export_table_count(t));
	(void)fflush(stdout);
	export_table_put(t);
	notify_ready(s);
}

/* SIGHUP: first everything is read, then all of it is taken. */
static void
reload(struct server *s, const struct arguments *a)
{
	struct timespec t;
	struct conf c;
	int rc;

	clock_gettime(CLOCK_MONOTONIC, &t);
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		   (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000);
	rc = read_conf(&c, a);
	if (rc == 0)
		rc = override_conf(&c, a);
	if (rc == 0)
		rc = server_reload(s, &c, &a->o);
	else
		log_msg(LOG_ERR_, "reload failed: the running configuration "
				  "stays");
	conf_fini(&c);
	if (rc == 0)
		log_msg(LOG_NOTICE_, "reloaded");
	notify_ready(s);
}

static int
serve(struct server *s, const struct arguments *a, const sigset_t *signals)
{
	int sig;

	say_ready(s);
	for (;;) {
		if (sigwait(signals, &sig) != 0)
			continue;
		if (sig == SIGHUP)
			reload(s, a);
		else if (sig == SIGUSR1)
			(void)stats_write(s, state_fd(s->state));
		else
			break;
	}
	sd_notify(0, "STOPPING=1\nSTATUS=Finishing calls and syncing");
	return server_stop(s) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int
main(int argc, char **argv)
{
	struct arguments a = { 0 };
	struct server *s = NULL;
	struct conf c;
	sigset_t signals;
	int rc;

	rc = parse_arguments(&a, argc, argv);
	if (rc != 0) {
		free(a.o.export_lines);
		return rc < 0 ? EXIT_SUCCESS : rc;
	}
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	/* A file size limit is an EFBIG, a closed peer an EPIPE. */
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	rc = read_conf(&c, &a);
	if (rc == 0)
		rc = override_conf(&c, &a);
	if (rc == 0 && a.check) {
		rc = check(&a, &c);
		conf_fini(&c);
		free(a.o.export_lines);
		return rc;
	}
	log_set_level((enum log_level)c.level);
	process_prepare();
	if (rc == 0)
		rc = server_start(&s, &c, &a.o);
	if (rc != 0) {
		if (rc == -ENOMEM)
			log_msg(LOG_ERR_, "cannot start: no memory");
		conf_fini(&c);
		free(a.o.export_lines);
		return EXIT_FAILURE;
	}
	rc = serve(s, &a, &signals);
	free(a.o.export_lines);
	return rc;
}
