/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvnfsctl(8): what its files share. One process, one thread; errors are
 * printed where they are found, and the status says the rest.
 */
#ifndef NVNFSD_NVNFSCTL_H
#define NVNFSD_NVNFSCTL_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define NVNFSCTL_STATE_DEFAULT "/var/lib/nvnfsd"
#define EXIT_USAGE             2

/* The server at the other end of its socket. */
struct server_link {
	const char *state_dir;
	int fd; /* -1: not connected */
	FILE *in;
	bool json; /* show results as they came */
};

/* nvnfsctl_ask.c */

/* Connect, where that has not been done. 0 or -1, printed. */
int link_open(struct server_link *l);
void link_close(struct server_link *l);
/*
 * One command. args is taken (NULL: none). 0 with *ret, which the caller puts
 * (NULL for a result of null); -1 with the reason printed.
 */
int link_ask(struct server_link *l, const char *command,
	     struct json_object *args, struct json_object **ret);

/* nvnfsctl_show.c: results as text */

uint64_t get_number(struct json_object *o, const char *name);  /* 0: none */
const char *get_text(struct json_object *o, const char *name); /* "-": none */
struct json_object *get_part(struct json_object *o, const char *name);
bool get_flag(struct json_object *o, const char *name); /* false: not there */
#define SHOW_BYTES 32
/* "1.5 GiB"; "12.3 ms". Return out. */
const char *show_size(char out[SHOW_BYTES], double bytes);
const char *show_time(char out[SHOW_BYTES], double ns);
/* Any object or list, a line a value, indented. */
void show_any(struct json_object *o, int depth);
void show_exports(struct json_object *list);
void show_clients(struct json_object *list);
void show_slow(struct json_object *list);
void show_locks(struct json_object *o);
void show_stats(struct json_object *o);

/* nvnfsctl_devices.c */
void show_devices(struct json_object *list);

/* nvnfsctl_top.c. The exit status. */
int top_run(struct server_link *l, int argc, char **argv);

/* nvnfsctl_rates.c: two results of stats made into rates */

struct rate_row {
	char client[64], export[256], procedure[24];
	double calls, mib; /* a second */
	uint64_t p50_ns, p99_ns, p999_ns;
};

struct rates {
	double seconds, calls, mib_in, mib_out;
	uint64_t connections, calls_in_service, file_ops, bytes_in_flight;
	struct rate_row *row; /* by calls, most first */
	size_t rows;
};

enum rate_group {
	GROUP_ALL, /* client, export and procedure, each its own row */
	GROUP_CLIENT,
	GROUP_EXPORT,
	GROUP_PROCEDURE
};

/* 0 or -ENOMEM. */
int rates_make(struct rates *r, struct json_object *before,
	       struct json_object *now, enum rate_group by);
void rates_free(struct rates *r);

/* nvnfsctl_report.c. The exit status. */
int report_run(struct server_link *l, int argc, char **argv);

#endif
