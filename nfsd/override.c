/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modes set at run time. The object is struct overrides, the server's: changed
 * and read under the lock of those who change what is served. A list of words,
 * which conf's own parser understands, so that every key it has can be set.
 */
#include "nfsd/override.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define DEFAULT_WORD "default"

struct override {
	TAILQ_ENTRY(override) link;
	char *path; /* NULL: all */
	char *key, *value;
};

struct overrides {
	TAILQ_HEAD(, override) list; /* those for all come first */
};

struct overrides *
overrides_new(void)
{
	struct overrides *o = calloc(1, sizeof(*o));

	if (o != NULL)
		TAILQ_INIT(&o->list);
	return o;
}

static void
override_free(struct override *v)
{
	if (v == NULL)
		return;
	free(v->path);
	free(v->key);
	free(v->value);
	free(v);
}

static void
override_drop(struct overrides *o, struct override *v)
{
	TAILQ_REMOVE(&o->list, v, link);
	override_free(v);
}

void
overrides_free(struct overrides *o)
{
	struct override *v, *next;

	if (o == NULL)
		return;
	for (v = TAILQ_FIRST(&o->list); v != NULL; v = next) {
		next = TAILQ_NEXT(v, link);
		override_free(v);
	}
	free(o);
}

static struct override *
override_new(const char *path, const char *key, const char *value)
{
	struct override *v = calloc(1, sizeof(*v));

	if (v == NULL)
		return NULL;
	v->path = path != NULL ? strdup(path) : NULL;
	v->key = strdup(key);
	v->value = strdup(value);
	if ((path != NULL && v->path == NULL) || v->key == NULL ||
	    v->value == NULL) {
		override_free(v);
		return NULL;
	}
	return v;
}

struct overrides *
overrides_copy(const struct overrides *o)
{
	struct overrides *copy = overrides_new();
	const struct override *v;
	struct override *n;

	if (copy == NULL)
		return NULL;
	TAILQ_FOREACH (v, &o->list, link) {
		n = override_new(v->path, v->key, v->value);
		if (n == NULL) {
			overrides_free(copy);
			return NULL;
		}
		TAILQ_INSERT_TAIL(&copy->list, n, link);
	}
	return copy;
}

static bool
is_key(const char *key)
{
	const char *known;
	unsigned i;

	for (i = 0; (known = conf_policy_name(i)) != NULL; i++)
		if (strcmp(known, key) == 0)
			return true;
	return false;
}

/* What a new set for path replaces: for all, everything. */
static void
forget(struct overrides *o, const char *path, const char *key)
{
	struct override *v, *next;

	for (v = TAILQ_FIRST(&o->list); v != NULL; v = next) {
		next = TAILQ_NEXT(v, link);
		if (strcmp(v->key, key) != 0)
			continue;
		if (path == NULL ||
		    (v->path != NULL && strcmp(v->path, path) == 0))
			override_drop(o, v);
	}
}

int
override_set(struct overrides *o, const char *path, const char *key,
	     const char *value, char why[CONF_REASON_BYTES])
{
	struct conf_policy scratch = { 0 };
	bool restore = strcmp(value, DEFAULT_WORD) == 0;
	struct override *v = NULL;
	int rc = 0;

	if (!is_key(key))
		return -ENOENT;
	if (!restore)
		rc = conf_policy_set(&scratch, key, value, why);
	if (rc < 0)
		return rc;
	if (!restore) {
		v = override_new(path, key, value);
		if (v == NULL)
			return -ENOMEM;
	}
	forget(o, path, key);
	if (v != NULL && path == NULL)
		TAILQ_INSERT_HEAD(&o->list, v, link);
	else if (v != NULL)
		TAILQ_INSERT_TAIL(&o->list, v, link);
	return 0;
}

void
overrides_policy(const struct overrides *o, const char *path,
		 struct conf_policy *ret)
{
	char why[CONF_REASON_BYTES];
	const struct override *v;

	memset(ret, 0, sizeof(*ret));
	if (o == NULL)
		return;
	TAILQ_FOREACH (v, &o->list, link)
		if (v->path == NULL || strcmp(v->path, path) == 0)
			(void)conf_policy_set(ret, v->key, v->value, why);
}

bool
override_at(const struct overrides *o, unsigned i, const char **path,
	    const char **key, const char **value)
{
	const struct override *v = TAILQ_FIRST(&o->list);

	for (; v != NULL && i > 0; i--)
		v = TAILQ_NEXT(v, link);
	if (v == NULL)
		return false;
	*path = v->path;
	*key = v->key;
	*value = v->value;
	return true;
}
