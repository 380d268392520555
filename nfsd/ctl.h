/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket: what ctl.c, the files with its commands and their unit
 * tests share. nvnfsctl(8) is at the other end.
 *
 * A request is a line {"command": NAME, "args": {...}}, its reply a line
 * {"ok": true, "result": ...} or {"ok": false, "error": TEXT, "errno": NAME}.
 */
#ifndef NVNFSD_CTL_H
#define NVNFSD_CTL_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct server;

#define CTL_SOCKET     "ctl"    /* in the state directory */
#define CTL_GROUP      "nvnfsd" /* its members may use it */
#define CTL_LINE_BYTES 65536u   /* the longest request */

/* Why a command failed: text is for the operator. */
struct ctl_error {
	int error; /* -errno */
	char text[512];
};

/*
 * A command. Runs on the control thread, one at a time, and may block for some
 * seconds; nobody else is served meanwhile. args is an object, NULL where none
 * came. 0 with *ret, which the caller puts (NULL: nothing to say); or what
 * ctl_fail returned, with *ret untouched.
 */
typedef int ctl_run_fn(struct server *s, struct json_object *args,
		       struct json_object **ret, struct ctl_error *e);

struct ctl_command {
	const char *name;
	ctl_run_fn *run;
};

/* ctl_parse.c: requests and replies; no socket, no server --------------------
 */

int ctl_fail(struct ctl_error *e, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A string among args; NULL where there is none. Valid as long as args. */
const char *ctl_arg(struct json_object *args, const char *name);
bool ctl_arg_bool(struct json_object *args, const char *name);
/* Parts of a result. */
void ctl_put(struct json_object *o, const char *name, uint64_t value);
void ctl_put_text(struct json_object *o, const char *name, const char *text);
void ctl_put_bool(struct json_object *o, const char *name, bool value);
/*
 * Run one request of n bytes (no newline) by the table, which ends with a NULL
 * name. The reply, which is never NULL: the caller puts it.
 */
struct json_object *ctl_answer(const struct ctl_command *table,
			       struct server *s, const char *line, size_t n);

/* ctl.c: the thread and its sockets ------------------------------------------
 */

struct ctl;
/* Open the socket in the state directory and start the thread. 0 or -errno,
 * logged but for -ENOMEM. */
int ctl_start(struct ctl **ret, struct server *s);
/* accept(2) has failed: do not try again at once where that would be in vain.
 */
void ctl_accept_failed(int error);
/* Ends the command in service first. NULL is taken. */
void ctl_stop(struct ctl *c);

/* ctl_table.c: all commands -------------------------------------------------
 */

extern const struct ctl_command ctl_commands[];

/* ctl_exports.c. unexport has "path"; drain may have "resume": true. */
ctl_run_fn ctl_status, ctl_exports, ctl_unexport, ctl_drain;
/* ctl_stats.c. stats may have "buckets": true. */
ctl_run_fn ctl_stats, ctl_clients, ctl_slow, ctl_reset_stats;
/* At the end: give back what reset-stats keeps. */
void ctl_forget(struct server *s);
/* ctl_locks.c: who has locked what; and FREE_ALL for "client". */
ctl_run_fn ctl_locks, ctl_unlock;
/* ctl_devices.c: what is known of the exports' devices, and what it changes */
ctl_run_fn ctl_devices;
/* ctl_why.c: how a file is read and written, and why. "path" (absolute). */
ctl_run_fn ctl_why;
/* ctl_set.c: modes while it runs. "export" (or all), "set": {KEY: VALUE}. */
ctl_run_fn ctl_set;

#endif
