/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvnfsctl report: one archive for a bug report: what the server says of
 * itself, its configuration, the end of its log, and what it runs on. Nothing
 * is read from the state directory, so the key of the handles cannot get in;
 * clients' addresses and paths of exports are in it. What cannot be had is left
 * out and named in MISSING.
 */
#include "nfsd/nvnfsctl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAME_BYTES   256
#define LOG_LINES    "2000"
#define BUFFER_BYTES 65536

struct report {
	struct server_link *link;
	char dir[NAME_BYTES];  /* a temporary one: holds what is packed */
	char name[NAME_BYTES]; /* the directory's, inside it and the archive */
	FILE *missing;
};

static void
note_missing(struct report *r, const char *what, const char *why)
{
	(void)fprintf(r->missing, "%s: %s\n", what, why);
}

static FILE *
create(const struct report *r, const char *file)
{
	char path[2 * NAME_BYTES + NAME_MAX + 64];

	(void)snprintf(path, sizeof(path), "%s/%s/%s", r->dir, r->name, file);
	return fopen(path, "we");
}

static void
create_dir(struct report *r, const char *name)
{
	char path[2 * NAME_BYTES + 64];

	(void)snprintf(path, sizeof(path), "%s/%s/%s", r->dir, r->name, name);
	if (mkdir(path, 0700) < 0)
		note_missing(r, name, strerror(errno));
}

/* What the server says ----------------------------------------------------- */

static struct json_object *
ask(struct report *r, const char *command)
{
	struct json_object *args = NULL, *ret = NULL;
	char file[64];
	FILE *f;

	if (strcmp(command, "stats") == 0) {
		args = json_object_new_object();
		json_object_object_add(args, "buckets",
				       json_object_new_boolean(1));
	}
	if (link_ask(r->link, command, args, &ret) < 0) {
		note_missing(r, command, "the server does not tell");
		return NULL;
	}
	(void)snprintf(file, sizeof(file), "%s.json", command);
	f = create(r, file);
	if (f != NULL) {
		(void)fputs(json_object_to_json_string_ext(
				    ret, JSON_C_TO_STRING_PRETTY),
			    f);
		(void)fclose(f);
	}
	return ret;
}

/* Files and commands ------------------------------------------------------- */

static void
copy_file(struct report *r, const char *from, const char *to)
{
	char buffer[BUFFER_BYTES];
	FILE *in = fopen(from, "re"), *out;
	size_t n;

	if (in == NULL) {
		note_missing(r, from, strerror(errno));
		return;
	}
	out = create(r, to);
	while (out != NULL && (n = fread(buffer, 1, sizeof(buffer), in)) > 0)
		if (fwrite(buffer, 1, n, out) != n)
			break;
	if (out != NULL)
		(void)fclose(out);
	(void)fclose(in);
}

/* In the child: its output to fd. */
static void
child(int fd, const char *const argv[])
{
	if (dup2(fd, STDOUT_FILENO) >= 0 && dup2(fd, STDERR_FILENO) >= 0)
		(void)execvp(argv[0], (char *const *)argv); /* only read */
	_exit(127);
}

/* Run it, output to fd. Its status, or -1. */
static int
run(int fd, const char *const argv[])
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return -1;
	if (pid == 0)
		child(fd, argv);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void
run_into(struct report *r, const char *to, const char *const argv[])
{
	FILE *out = create(r, to);
	int status;

	if (out == NULL)
		return;
	status = run(fileno(out), argv);
	(void)fclose(out);
	if (status != 0)
		note_missing(r, argv[0],
			     status == 127 ? "not installed" : "it failed");
}

static void
gather_process(struct report *r, uint64_t pid)
{
	static const char *const files[] = { "limits", "status", "io",
					     "cgroup" };
	char from[64], to[64];
	unsigned i;

	for (i = 0; i < sizeof(files) / sizeof(*files); i++) {
		(void)snprintf(from, sizeof(from), "/proc/%llu/%s",
			       (unsigned long long)pid, files[i]);
		(void)snprintf(to, sizeof(to), "process-%s", files[i]);
		copy_file(r, from, to);
	}
}

static void
gather_system(struct report *r)
{
	const char *const uname[] = { "uname", "-a", NULL };
	const char *const lsblk[] = { "lsblk", "-O", "-J", NULL };
	const char *const journal[] = {
		"journalctl", "-q", "--no-pager", "-u",
		"nvnfsd",     "-n", LOG_LINES,    NULL
	};
	const char *const kernel[] = { "journalctl", "-q", "--no-pager",
				       "-k",         "-n", LOG_LINES,
				       NULL };

	run_into(r, "uname", uname);
	run_into(r, "lsblk.json", lsblk);
	run_into(r, "log", journal);
	run_into(r, "kernel-log", kernel);
	copy_file(r, "/etc/os-release", "os-release");
	copy_file(r, "/proc/meminfo", "meminfo");
	copy_file(r, "/proc/cpuinfo", "cpuinfo");
	copy_file(r, "/proc/self/mountinfo", "mountinfo");
	copy_file(r, "/proc/vmstat", "vmstat");
	copy_file(r, "/proc/diskstats", "diskstats");
}

static bool
is_table(const char *name)
{
	const char *dot = strrchr(name, '.');

	return name[0] != '.' && dot != NULL && strcmp(dot, ".exports") == 0;
}

/* The tables that lie beside the file of exports, as nvnfsd-exports(5) has it;
 * it is no fault if there is no such directory. */
static void
gather_tables(struct report *r, const char *exports)
{
	char dir[PATH_MAX], from[PATH_MAX + NAME_MAX + 2], to[NAME_MAX + 16];
	const struct dirent *e;
	DIR *d;

	(void)snprintf(dir, sizeof(dir), "%s.d", exports);
	d = opendir(dir);
	if (d == NULL && errno != ENOENT)
		note_missing(r, dir, strerror(errno));
	if (d == NULL)
		return;
	create_dir(r, "exports.d");
	while ((e = readdir(d)) != NULL) {
		if (!is_table(e->d_name))
			continue;
		(void)snprintf(from, sizeof(from), "%s/%s", dir, e->d_name);
		(void)snprintf(to, sizeof(to), "exports.d/%s", e->d_name);
		copy_file(r, from, to);
	}
	closedir(d);
}

/* The configuration where the server says it lies; "-": none. What the command
 * line exports is in status. */
static void
gather_conf(struct report *r, struct json_object *status)
{
	static const char *const part[] = { "config", "exports_file" };
	static const char *const to[] = { "nvnfsd.conf", "exports" };
	unsigned i;

	for (i = 0; i < sizeof(part) / sizeof(*part); i++)
		if (get_part(status, part[i]) != NULL)
			copy_file(r, get_text(status, part[i]), to[i]);
	if (get_part(status, "exports_file") != NULL)
		gather_tables(r, get_text(status, "exports_file"));
}

static int
gather(struct report *r)
{
	static const char *const commands[] = { "exports", "devices", "clients",
						"stats", "slow" };
	struct json_object *status = ask(r, "status");
	unsigned i;

	if (status == NULL)
		return -1;
	for (i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		json_object_put(ask(r, commands[i]));
	gather_conf(r, status);
	gather_process(r, get_number(status, "pid"));
	gather_system(r);
	json_object_put(status);
	return 0;
}

/* The archive -------------------------------------------------------------- */

static int
prepare(struct report *r)
{
	char host[64] = "host", date[32], path[2 * NAME_BYTES + 2];
	const char *tmp = getenv("TMPDIR");
	time_t now = time(NULL);
	struct tm tm;

	(void)gethostname(host, sizeof(host) - 1);
	(void)strftime(date, sizeof(date), "%Y%m%d-%H%M%S",
		       localtime_r(&now, &tm));
	(void)snprintf(r->name, sizeof(r->name), "nvnfsd-report-%s-%s", host,
		       date);
	(void)snprintf(r->dir, sizeof(r->dir), "%s/nvnfsctl.XXXXXX",
		       tmp != NULL ? tmp : "/tmp");
	if (mkdtemp(r->dir) == NULL)
		return -errno;
	(void)snprintf(path, sizeof(path), "%s/%s", r->dir, r->name);
	if (mkdir(path, 0700) < 0)
		return -errno;
	r->missing = create(r, "MISSING");
	return r->missing == NULL ? -errno : 0;
}

static int
pack(struct report *r, const char *out)
{
	const char *const tar[] = { "tar", "-C",    r->dir, "-czf",
				    out,   r->name, NULL };
	int fd = dup(STDERR_FILENO), status;

	if (r->missing != NULL)
		(void)fclose(r->missing);
	r->missing = NULL;
	status = run(fd, tar);
	close(fd);
	return status;
}

static void
clean_up(struct report *r)
{
	const char *const rm[] = { "rm", "-rf", "--", r->dir, NULL };

	if (r->missing != NULL)
		(void)fclose(r->missing);
	if (r->dir[0] != '\0')
		(void)run(STDERR_FILENO, rm);
}

static const struct option options[] = {
	{ "output", required_argument, NULL, 'o' },
	{ NULL, 0, NULL, 0 },
};

int
report_run(struct server_link *l, int argc, char **argv)
{
	struct report r = { .link = l };
	char file[NAME_BYTES + 16];
	const char *out = NULL;
	int c, rc;

	optind = 0; /* main has used it */
	while ((c = getopt_long(argc, argv, "o:", options, NULL)) != -1) {
		if (c != 'o')
			return EXIT_USAGE;
		out = optarg;
	}
	if (optind < argc) {
		(void)fprintf(stderr,
			      "nvnfsctl: report: unexpected argument \"%s\"\n",
			      argv[optind]);
		return EXIT_USAGE;
	}
	(void)umask(077);
	rc = prepare(&r);
	if (rc < 0)
		(void)fprintf(stderr, "nvnfsctl: report: %s\n", strerror(-rc));
	if (rc == 0)
		rc = gather(&r);
	(void)snprintf(file, sizeof(file), "%s.tar.gz", r.name);
	if (out == NULL)
		out = file;
	if (rc == 0)
		rc = pack(&r, out);
	clean_up(&r);
	if (rc == 0)
		(void)printf("%s\n", out);
	return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
