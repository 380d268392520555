/* SPDX-License-Identifier: Apache-2.0 */
/* nvnfsctl: what it tells of a server that serves, and whom. */
#include "control.h"
#include "site.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RECORD 47008u
#define WRITES 20u

/* What is told ----------------------------------------------------------------
 */

static void
test_status(void **state)
{
	struct site *s = site_new("uring", NULL, NULL);
	struct json_object *o = control_json(s->h, "status"), *e;

	assert_int_equal(control_number(o, "pid"), s->h->pid);
	assert_int_equal(control_number(o, "exports"), 1);
	assert_int_equal(control_number(o, "connections"), 1);
	json_object_put(o);
	o = control_json(s->h, "exports");
	assert_int_equal(json_object_array_length(o), 1);
	e = json_object_array_get_idx(o, 0);
	assert_string_equal(json_object_get_string(control_part(e, "path")),
			    s->h->export);
	json_object_put(o);
	o = control_json(s->h, "devices");
	assert_true(json_object_array_length(o) > 0);
	json_object_put(o);
	control_says(s->h, "^engine: (uring|threads)$", "status");
	control_says(s->h, "modes: read-mode=", "exports");
	control_says(s->h, "export", "devices");
	control_says(s->h, "^127\\.0\\.0\\.1 +1 ", "clients");
	site_free(s);
}

/* Calls, bytes and percentiles by client, export and procedure. */
static void
check_counted(struct json_object *o, const char *export)
{
	struct json_object *w = control_latency(o, "WRITE");

	assert_non_null(w);
	assert_int_equal(control_number(w, "calls"), WRITES);
	assert_int_equal(control_number(w, "failed"), 0);
	assert_int_equal(control_number(w, "bytes_in"), WRITES * RECORD);
	assert_string_equal(json_object_get_string(control_part(w, "client")),
			    "127.0.0.1");
	assert_string_equal(json_object_get_string(control_part(w, "export")),
			    export);
	assert_true(control_number(w, "p50_ns") > 0);
	assert_true(control_number(w, "p50_ns") <= control_number(w, "p99_ns"));
	assert_true(control_number(w, "p99_ns") <=
		    control_number(w, "p999_ns"));
	assert_true(control_number(w, "ns") >= control_number(w, "p50_ns"));
	w = control_latency(o, "LOOKUP");
	assert_non_null(w);
	assert_int_equal(control_number(w, "calls"), 1);
	assert_int_equal(control_number(w, "failed"), 1);
	assert_int_equal(control_number(o, "nfs3.WRITE"), WRITES);
	assert_int_equal(control_number(o, "writes.split") +
				 control_number(o, "writes.small") +
				 control_number(o, "writes.mode") +
				 control_number(o, "writes.no-direct") +
				 control_number(o, "writes.cached") +
				 control_number(o, "writes.lone"),
			 WRITES);
}

/* A worker may send a reply on its own, and the reactor counts it when it
 * wakes: so ask until it has. */
static struct json_object *
stats_with(struct harness *h, const char *procedure, uint64_t calls)
{
	struct json_object *o = control_json(h, "stats"), *row;

	for (;;) {
		row = control_latency(o, procedure);
		if (row != NULL && control_number(row, "calls") >= calls)
			return o;
		json_object_put(o);
		usleep(10000);
		o = control_json(h, "stats");
	}
}

static void
test_stats(void **state)
{
	struct site *s = site_new("uring", NULL, NULL);
	struct json_object *o;
	struct raw_fh fh;

	assert_int_equal(raw_lookup(s->r, &s->root, "none", &fh),
			 NFS3ERR_NOENT);
	(void)site_write(s, "f", WRITES, RECORD, UNSTABLE);
	json_object_put(stats_with(s->h, "LOOKUP", 1));
	o = stats_with(s->h, "WRITE", WRITES);
	check_counted(o, s->h->export);
	json_object_put(o);
	control_says(s->h, "^requests per sync +1\\.00$", "stats");
	control_says(s->h, " WRITE +20 ", "stats");
	control_says(s->h, "^\\{", "stats --json");

	/* From now on; stats.json counts from the start. */
	json_object_put(stats_with(s->h, "COMMIT", 1));
	assert_int_equal(control_run(s->h, NULL, "reset-stats"), 0);
	o = control_json(s->h, "stats");
	assert_null(control_latency(o, "WRITE"));
	assert_int_equal(control_number(o, "nfs3.WRITE"), 0);
	assert_int_equal(control_number(o, "direct_bytes"), 0);
	assert_int_equal(control_number(o, "connections"), 1);
	json_object_put(o);
	assert_int_equal(harness_stat(s->h, "nfs3.WRITE"), WRITES);
	(void)site_write(s, "g", WRITES, RECORD, UNSTABLE);
	o = stats_with(s->h, "WRITE", WRITES);
	assert_int_equal(control_number(o, "nfs3.WRITE"), WRITES);
	json_object_put(o);
	assert_int_equal(harness_stat(s->h, "nfs3.WRITE"), 2 * WRITES);
	site_free(s);
}

/* The stages of a call add up to it. */
static void
check_stages(struct json_object *c)
{
	uint64_t sum = 0;

	json_object_object_foreach(control_part(c, "stages_ns"), stage, ns)
	{
		(void)stage;
		sum += json_object_get_uint64(ns);
	}
	assert_true(sum >= control_number(c, "ns"));
	/* Two threads' clocks may lie a little apart. */
	assert_true(sum < control_number(c, "ns") + 1000000);
}

static void
test_slow(void **state)
{
	struct site *s = site_new("uring", NULL, "xfs");
	struct json_object *o, *c;
	unsigned writes = 0, synced = 0;
	uint64_t last = UINT64_MAX;
	size_t i;

	(void)site_write(s, "f", WRITES, RECORD, FILE_SYNC);
	json_object_put(stats_with(s->h, "WRITE", WRITES));
	o = control_json(s->h, "slow");
	for (i = 0; i < json_object_array_length(o); i++) {
		c = json_object_array_get_idx(o, i);
		assert_true(control_number(c, "ns") <= last);
		last = control_number(c, "ns");
		check_stages(c);
		if (strcmp(json_object_get_string(control_part(c, "procedure")),
			   "WRITE") != 0)
			continue;
		writes++;
		assert_int_equal(control_number(c, "bytes"), RECORD);
		assert_string_equal(
			json_object_get_string(control_part(c, "stable")),
			"FILE_SYNC");
		assert_true(control_number(c, "stages_ns.io") > 0);
		synced += control_number(c, "stages_ns.sync") > 0;
	}
	assert_true(writes > 0 && synced > 0);
	json_object_put(o);
	control_says(s->h, "WRITE of 127\\.0\\.0\\.1 in .*FILE_SYNC", "slow");
	site_free(s);
}

/* While somebody writes, top has a row for it. */
static void
test_top(void **state)
{
	static uint8_t data[RECORD];
	struct site *s = site_new("uring", NULL, NULL);
	struct raw_fh fh;
	WRITE3res w;
	char *text;
	pid_t pid;
	int status;

	raw_create(s->r, &s->root, "f", 0644, &fh);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		for (;;) /* until it is killed */
			if (raw_write(s->r, &fh, 0, data, RECORD, UNSTABLE,
				      &w) != NFS3_OK)
				_exit(1);
	assert_int_equal(control_run(s->h, &text, "top --once --interval 0.5"),
			 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_non_null(strstr(text, "calls in service"));
	assert_non_null(strstr(text, " WRITE "));
	assert_non_null(strstr(text, "127.0.0.1"));
	free(text);
	control_says(s->h, "^CLIENT +EXPORT +PROCEDURE",
		     "top --times 2 --interval 0.05 --by procedure");
	control_fails(s->h, 2, "interval.*not valid", "top --interval no");
	control_fails(s->h, 2, "by.*not valid", "top --by colour");
	raw_reconnect(s->r, s->h->port);
	site_free(s);
}

/* A server that has its exports from everywhere, and one report of it. */
static struct site *
site_to_report(void)
{
	struct site *s = site_prepare("uring", NULL, NULL);
	static char line[500];

	assert_int_equal(
		harness_sh("cd %s && mkdir -m 777 a b && mkdir exports.d && "
			   "echo '%s/a *(ro)' >exports && "
			   "echo '%s/b *(ro)' >exports.d/b.exports && "
			   "echo nonsense >exports.d/b.exports~",
			   s->h->dir, s->h->dir, s->h->dir),
		0);
	(void)snprintf(line, sizeof(line), "%s *(rw,no_root_squash,insecure)",
		       s->h->export);
	(void)snprintf(s->h->exports, sizeof(s->h->exports), "%s/exports",
		       s->h->dir);
	harness_arg(s->h, "--export");
	harness_arg(s->h, line);
	site_start(s);
	return s;
}

/* A report has what is known, and not the key. */
static void
test_report(void **state)
{
	struct site *s = site_to_report();

	(void)site_write(s, "f", WRITES, RECORD, UNSTABLE);
	assert_int_equal(control_run(s->h, NULL, "report -o %s/report.tar.gz",
				     s->h->dir),
			 0);
	assert_int_equal(harness_sh("cd %s && mkdir report && tar -C report "
				    "--strip-components 1 -xzf report.tar.gz",
				    s->h->dir),
			 0);
	assert_int_equal(harness_sh("cd %s/report && test -s status.json -a "
				    "-s stats.json -a -s exports.json -a "
				    "-s devices.json -a -s meminfo && "
				    "grep -q WRITE stats.json",
				    s->h->dir),
			 0);
	assert_int_equal(
		harness_sh("cd %s/report && cmp exports ../exports && "
			   "cmp exports.d/b.exports ../exports.d/b.exports && "
			   "test $(ls exports.d | wc -l) = 1 && "
			   "grep -q 'export .*insecure' status.json",
			   s->h->dir),
		0);
	/* Not as it is, nor in hexadecimal. */
	assert_int_equal(
		harness_sh("cd %s && test -s state/fh.key && "
			   "find report -type f -exec cat {} + >all && "
			   "k=$(od -An -v -tx1 state/fh.key | tr -d ' \\n') && "
			   "! grep -qi $k all && "
			   "! od -An -v -tx1 all | tr -d ' \\n' | grep -q $k",
			   s->h->dir),
		0);
	control_fails(s->h, 2, "unexpected", "report x");
	site_free(s);
}

/* Who may ---------------------------------------------------------------------
 */

/* Neither without a right to the directory, nor where the modes would let him:
 * the kernel says who asks. */
static void
test_strangers(void **state)
{
	struct site *s = site_new("uring", NULL, NULL);
	const char *program = getenv("NVNFSCTL");
	struct stat st;
	char path[300];

	(void)snprintf(path, sizeof(path), "%s/state/ctl", s->h->dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	/* A copy that anybody may run. */
	assert_int_equal(harness_sh("chmod 755 %s && cp %s %s/ctl && "
				    "chmod 755 %s/ctl",
				    s->h->dir, program, s->h->dir, s->h->dir),
			 0);
	assert_int_equal(
		harness_sh("setpriv --reuid 65534 --regid 65534 --clear-groups "
			   "%s/ctl --state-dir %s/state status 2>/dev/null",
			   s->h->dir, s->h->dir),
		1);
	assert_int_equal(harness_sh("chmod 777 %s/state %s/state/ctl",
				    s->h->dir, s->h->dir),
			 0);
	assert_int_equal(
		harness_sh("setpriv --reuid 65534 --regid 65534 --clear-groups "
			   "%s/ctl --state-dir %s/state status 2>&1 | "
			   "grep -q 'may this user'",
			   s->h->dir, s->h->dir),
		0);
	assert_true(harness_logged(s->h, "control connection was refused"));
	site_free(s);
}

/* status as this user and group. */
static int
status_as(const struct harness *h, const char *who)
{
	return harness_sh("setpriv --reuid 65534 %s %s/ctl --state-dir "
			  "%s/state status >%s/status 2>&1",
			  who, h->dir, h->dir, h->dir);
}

/* Members of the group may, by their first group or another; and they see
 * nothing else of the state. The server runs where the group is known. */
static void
test_group(void **state)
{
	struct site *s = site_prepare("uring", NULL, NULL);
	char *real = strdup(getenv("NVNFSD")), wrapper[300];
	struct harness *h = s->h;

	(void)snprintf(wrapper, sizeof(wrapper), "%s/nvnfsd", h->dir);
	assert_int_equal(
		harness_sh("cd %s && chmod 755 . && cp %s ctl && "
			   "cp /etc/group group && "
			   "echo nvnfsd:x:64123: >>group && "
			   "printf '#!/bin/sh\nexec unshare -m sh -c '\\''"
			   "mount --bind %s/group /etc/group && "
			   "exec %s \"$@\"'\\'' sh \"$@\"\n' >nvnfsd && "
			   "chmod 755 ctl nvnfsd",
			   h->dir, getenv("NVNFSCTL"), h->dir, real),
		0);
	setenv("NVNFSD", wrapper, 1);
	site_start(s);
	setenv("NVNFSD", real, 1);
	free(real);
	assert_int_equal(status_as(h, "--regid 64123 --clear-groups"), 0);
	assert_int_equal(harness_sh("grep -q '^exports: 1' %s/status", h->dir),
			 0);
	assert_int_equal(status_as(h, "--regid 65534 --groups 64123"), 0);
	assert_int_equal(status_as(h, "--regid 65534 --clear-groups"), 1);
	assert_int_not_equal(
		harness_sh("setpriv --reuid 65534 --regid 64123 --clear-groups "
			   "cat %s/state/fh.key >%s/all 2>/dev/null",
			   h->dir, h->dir),
		0);
	assert_int_not_equal(
		harness_sh("setpriv --reuid 65534 --regid 64123 --clear-groups "
			   "ls %s/state >%s/all 2>/dev/null",
			   h->dir, h->dir),
		0);
	site_free(s);
}

/* Bytes that are no request get an answer or an end, many connections are no
 * trouble, and the server goes on. */
static void
test_garbage(void **state)
{
	struct site *s = site_new("uring", NULL, NULL);
	static char bytes[200000];
	int fd[40], i;
	char c;

	memset(bytes, 'x', sizeof(bytes));
	fd[0] = control_dial(s->h);
	assert_int_equal(send(fd[0], "{}\n[\n\n", 6, 0), 6);
	for (i = 0; i < 3;) { /* three lines come back */
		assert_int_equal(read(fd[0], &c, 1), 1);
		i += c == '\n';
	}
	close(fd[0]);
	fd[0] = control_dial(s->h);
	(void)send(fd[0], bytes, sizeof(bytes), MSG_NOSIGNAL);
	assert_int_equal(read(fd[0], &c, 1), 1);
	close(fd[0]);
	for (i = 0; i < 40; i++)
		fd[i] = control_dial(s->h);
	assert_int_equal(control_run(s->h, NULL, "status"), 0);
	for (i = 0; i < 40; i++)
		close(fd[i]);
	site_free(s);
}

/* A path longer than a socket's address may be. */
static void
test_long_path(void **state)
{
	struct harness *h = harness_new(NULL);
	char dir[700], *text;

	(void)snprintf(dir, sizeof(dir), "%s/%0150d/%0150d", h->dir, 1, 2);
	harness_arg(h, "--state-dir");
	harness_arg(h, dir);
	harness_start(h);
	assert_int_equal(control_run(h, &text, "--state-dir %s status", dir),
			 0);
	assert_non_null(strstr(text, "exports: 1"));
	free(text);
	harness_stop(h);
	assert_int_equal(control_run(h, &text, "--state-dir %s status", dir),
			 1);
	assert_non_null(strstr(text, "is the server running?"));
	free(text);
	harness_free(h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_stats),
		cmocka_unit_test(test_slow),
		cmocka_unit_test(test_top),
		cmocka_unit_test(test_report),
		cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_group),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_long_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
