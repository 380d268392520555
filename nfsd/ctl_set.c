/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvnfsctl set: modes of one export or of all, while it serves. What is set
 * goes over the files, also over what a reload reads later, until it is set to
 * "default" or the server ends. All keys of one command are taken, or none.
 * On the control thread.
 */
#include "nfsd/ctl.h"

#include "nfsd/override.h"
#include "nfsd/server.h"

#include <errno.h>
#include <string.h>

static bool
is_exported(const struct server *s, const char *path)
{
	const char *rest;
	const struct export *e = export_find_path(s->exports, path, &rest);

	return e != NULL && strcmp(e->path, path) == 0;
}

/* Into o, which the server has not taken yet. */
static int
set_all(struct overrides *o, const char *path, struct json_object *set,
	struct ctl_error *e)
{
	char why[CONF_REASON_BYTES];
	int rc;

	json_object_object_foreach(set, key, value)
	{
		if (!json_object_is_type(value, json_type_string))
			return ctl_fail(e, -EINVAL, "%s: no value", key);
		rc = override_set(o, path, key, json_object_get_string(value),
				  why);
		if (rc == -ENOENT)
			return ctl_fail(e, -EINVAL,
					"there is no mode \"%.64s\" to set",
					key);
		if (rc == -EINVAL)
			return ctl_fail(e, rc, "%s", why);
		if (rc < 0)
			return ctl_fail(e, rc, "%s", strerror(-rc));
	}
	return 0;
}

static struct json_object *
warnings_json(const struct conf_report *r)
{
	struct json_object *list = json_object_new_array();
	unsigned i;

	for (i = 0; i < r->count; i++)
		json_object_array_add(
			list, json_object_new_string(r->messages[i].text));
	return list;
}

/* With the lock change held. */
static int
set_locked(struct server *s, const char *path, struct json_object *set,
	   struct conf_report *r, struct ctl_error *e)
{
	struct overrides *fresh, *was = s->overrides;
	int rc;

	if (path != NULL && !is_exported(s, path))
		return ctl_fail(e, -ENOENT, "%s is not exported", path);
	fresh = overrides_copy(s->overrides);
	if (fresh == NULL)
		return ctl_fail(e, -ENOMEM, "no memory");
	rc = set_all(fresh, path, set, e);
	if (rc < 0) {
		overrides_free(fresh);
		return rc;
	}
	s->overrides = fresh;
	rc = server_apply(s, r);
	if (rc < 0) {
		s->overrides = was;
		overrides_free(fresh);
		return ctl_fail(e, rc, "%s",
				r->count > 0 ? r->messages[0].text
					     : strerror(-rc));
	}
	overrides_free(was);
	return 0;
}

int
ctl_set(struct server *s, struct json_object *args, struct json_object **ret,
	struct ctl_error *e)
{
	const char *path = ctl_arg(args, "export");
	struct conf_report r = { 0 };
	struct json_object *set, *o;
	int rc;

	if (args == NULL || !json_object_object_get_ex(args, "set", &set) ||
	    !json_object_is_type(set, json_type_object) ||
	    json_object_object_length(set) == 0)
		return ctl_fail(e, -EINVAL, "there is nothing to set");
	pthread_mutex_lock(&s->change);
	rc = set_locked(s, path, set, &r, e);
	pthread_mutex_unlock(&s->change);
	if (rc == 0) {
		log_msg(LOG_NOTICE_, "%s: set %s",
			path != NULL ? path : "all exports",
			json_object_to_json_string_ext(set,
						       JSON_C_TO_STRING_PLAIN));
		server_log_report(&r);
		o = json_object_new_object();
		json_object_object_add(o, "warnings", warnings_json(&r));
		*ret = o;
	}
	conf_report_fini(&r);
	return rc;
}
