/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For integration tests: nvnfsctl (environment variable NVNFSCTL) against a
 * harness's server, and what it says as JSON.
 */
#ifndef NVNFSD_TESTS_CONTROL_H
#define NVNFSD_TESTS_CONTROL_H

#include "harness.h"

#include <json-c/json.h>

/* Run it with these arguments; its status. What it printed, on both outputs, is
 * in *ret (free it), NULL: not wanted. */
int control_run(struct harness *h, char **ret, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* It must succeed. Put the result; what json_tokener_parse made of it. */
struct json_object *control_json(struct harness *h, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* It must succeed and say something that the ERE matches. */
void control_says(struct harness *h, const char *pattern, const char *args);
/* It must fail with this status, and say so. */
void control_fails(struct harness *h, int status, const char *pattern,
		   const char *args);
/* A part of an object by a path of names, as "nfs3.WRITE"; the test fails where
 * there is none. */
struct json_object *control_part(struct json_object *o, const char *path);
uint64_t control_number(struct json_object *o, const char *path);
/* The row of stats' latency for a procedure, NULL: none. */
struct json_object *control_latency(struct json_object *stats,
				    const char *procedure);

/* A connection to the control socket itself. */
int control_dial(const struct harness *h);
/* A request as it stands there; its result, to be put. It must succeed. */
struct json_object *control_ask(const struct harness *h, const char *line);

#endif
