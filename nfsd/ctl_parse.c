/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests on the control socket and their replies, as text. No object of its
 * own and no thread: ctl.c calls it. It knows no socket and no command.
 */
#include "nfsd/ctl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 8 /* of a request */

int
ctl_fail(struct ctl_error *e, int error, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(e->text, sizeof(e->text), format, ap);
	va_end(ap);
	e->error = error;
	return error;
}

const char *
ctl_arg(struct json_object *args, const char *name)
{
	struct json_object *v;

	if (args == NULL || !json_object_object_get_ex(args, name, &v) ||
	    !json_object_is_type(v, json_type_string))
		return NULL;
	return json_object_get_string(v);
}

bool
ctl_arg_bool(struct json_object *args, const char *name)
{
	struct json_object *v;

	return args != NULL && json_object_object_get_ex(args, name, &v) &&
	       json_object_is_type(v, json_type_boolean) &&
	       json_object_get_boolean(v);
}

void
ctl_put(struct json_object *o, const char *name, uint64_t value)
{
	json_object_object_add(o, name, json_object_new_uint64(value));
}

void
ctl_put_text(struct json_object *o, const char *name, const char *text)
{
	json_object_object_add(o, name, json_object_new_string(text));
}

void
ctl_put_bool(struct json_object *o, const char *name, bool value)
{
	json_object_object_add(o, name, json_object_new_boolean(value));
}

/* An object from the whole line, or NULL. */
static struct json_object *
parse(const char *line, size_t n)
{
	struct json_tokener *t = json_tokener_new_ex(DEPTH_MAX);
	struct json_object *o = NULL;

	if (t == NULL || n == 0 || n > CTL_LINE_BYTES)
		goto out;
	json_tokener_set_flags(t, JSON_TOKENER_STRICT |
					  JSON_TOKENER_VALIDATE_UTF8);
	o = json_tokener_parse_ex(t, line, (int)n);
	if (o != NULL && (json_tokener_get_parse_end(t) != n ||
			  !json_object_is_type(o, json_type_object))) {
		json_object_put(o);
		o = NULL;
	}
out:
	if (t != NULL)
		json_tokener_free(t);
	return o;
}

static int
run(const struct ctl_command *table, struct server *s, struct json_object *rq,
    struct json_object **ret, struct ctl_error *e)
{
	struct json_object *args = NULL;
	const char *name;

	if (rq == NULL)
		return ctl_fail(e, -EBADMSG, "the request is no JSON object");
	name = ctl_arg(rq, "command");
	if (name == NULL)
		return ctl_fail(e, -EBADMSG, "the request names no command");
	if (json_object_object_get_ex(rq, "args", &args) &&
	    !json_object_is_type(args, json_type_object))
		return ctl_fail(e, -EBADMSG, "args is no object");
	for (; table->name != NULL; table++)
		if (strcmp(table->name, name) == 0)
			return table->run(s, args, ret, e);
	return ctl_fail(e, -ENOSYS, "the server knows no command \"%.64s\"",
			name);
}

struct json_object *
ctl_answer(const struct ctl_command *table, struct server *s, const char *line,
	   size_t n)
{
	struct json_object *reply = json_object_new_object(), *result = NULL;
	struct json_object *rq = parse(line, n);
	struct ctl_error e = { 0 };
	const char *name;
	int rc = run(table, s, rq, &result, &e);

	json_object_object_add(reply, "ok", json_object_new_boolean(rc == 0));
	if (rc == 0) {
		json_object_object_add(reply, "result", result);
	} else {
		name = strerrorname_np(-rc);
		json_object_object_add(reply, "error",
				       json_object_new_string(e.text));
		json_object_object_add(
			reply, "errno",
			json_object_new_string(name != NULL ? name : "EIO"));
	}
	json_object_put(rq);
	return reply;
}
