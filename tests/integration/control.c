/* SPDX-License-Identifier: Apache-2.0 */
#include "control.h"

#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

/* All that command prints; its status. */
static int
capture(const char *command, char **ret)
{
	FILE *p = popen(command, "r"); /* NOLINT(cert-env33-c) */
	size_t room = 1 << 16, n = 0, got;
	char *text = malloc(room);
	int rc;

	assert_non_null(p);
	assert_non_null(text);
	while ((got = fread(text + n, 1, room - n - 1, p)) > 0) {
		n += got;
		if (n + 1 == room) {
			room *= 2;
			text = realloc(text, room);
			assert_non_null(text);
		}
	}
	text[n] = '\0';
	rc = pclose(p);
	*ret = text;
	return WIFEXITED(rc) ? WEXITSTATUS(rc) : 128;
}

static int
run(struct harness *h, const char *options, const char *redirect, char **ret,
    const char *args)
{
	const char *program = getenv("NVNFSCTL");
	char *command, *text;
	int rc;

	assert_non_null(program);
	assert_true(asprintf(&command, "%s --state-dir %s/state %s %s %s",
			     program, h->dir, options, args, redirect) > 0);
	rc = capture(command, &text);
	free(command);
	if (ret != NULL)
		*ret = text;
	else
		free(text);
	return rc;
}

int
control_run(struct harness *h, char **ret, const char *format, ...)
{
	char *args;
	va_list ap;
	int rc;

	va_start(ap, format);
	assert_true(vasprintf(&args, format, ap) >= 0);
	va_end(ap);
	rc = run(h, "", "2>&1", ret, args);
	free(args);
	return rc;
}

struct json_object *
control_json(struct harness *h, const char *format, ...)
{
	struct json_object *o;
	char *args, *text;
	va_list ap;
	int rc;

	va_start(ap, format);
	assert_true(vasprintf(&args, format, ap) >= 0);
	va_end(ap);
	rc = run(h, "--json", "", &text, args);
	if (rc != 0)
		fail_msg("nvnfsctl %s: status %d", args, rc);
	o = json_tokener_parse(text);
	assert_non_null(o);
	free(args);
	free(text);
	return o;
}

static void
expect(int rc, int status, const char *text, const char *pattern,
       const char *args)
{
	regex_t re;

	if (rc != status)
		fail_msg("nvnfsctl %s: status %d: %s", args, rc, text);
	assert_int_equal(regcomp(&re, pattern, REG_EXTENDED | REG_NEWLINE), 0);
	if (regexec(&re, text, 0, NULL, 0) != 0)
		fail_msg("nvnfsctl %s: no \"%s\" in: %s", args, pattern, text);
	regfree(&re);
}

void
control_says(struct harness *h, const char *pattern, const char *args)
{
	control_fails(h, 0, pattern, args);
}

void
control_fails(struct harness *h, int status, const char *pattern,
	      const char *args)
{
	char *text;
	int rc = run(h, "", "2>&1", &text, args);

	expect(rc, status, text, pattern, args);
	free(text);
}

struct json_object *
control_part(struct json_object *o, const char *path)
{
	char *names = strdup(path), *next = names, *name;

	assert_non_null(names);
	while ((name = strsep(&next, ".")) != NULL)
		if (!json_object_object_get_ex(o, name, &o))
			fail_msg("no %s in the result", path);
	free(names);
	return o;
}

uint64_t
control_number(struct json_object *o, const char *path)
{
	return json_object_get_uint64(control_part(o, path));
}

struct json_object *
control_latency(struct json_object *stats, const char *procedure)
{
	struct json_object *list = control_part(stats, "latency"), *o;
	size_t n = json_object_array_length(list), i;

	for (i = 0; i < n; i++) {
		o = json_object_array_get_idx(list, i);
		if (strcmp(json_object_get_string(control_part(o, "procedure")),
			   procedure) == 0)
			return o;
	}
	return NULL;
}

int
control_dial(const struct harness *h)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%.90s/state/ctl",
		       h->dir);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

struct json_object *
control_ask(const struct harness *h, const char *line)
{
	struct json_object *reply, *result;
	FILE *f = fdopen(control_dial(h), "r+");
	char *text = NULL;
	size_t room = 0;

	assert_non_null(f);
	assert_true(fprintf(f, "%s\n", line) > 0 && fflush(f) == 0);
	assert_true(getline(&text, &room, f) > 0);
	(void)fclose(f);
	reply = json_tokener_parse(text);
	free(text);
	assert_non_null(reply);
	result = json_object_get(control_part(reply, "result"));
	json_object_put(reply);
	return result;
}
