/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modes that were set while the server runs. They go over the files, so that a
 * reload keeps them, and end with the server.
 */
#ifndef NVNFSD_OVERRIDE_H
#define NVNFSD_OVERRIDE_H

#include "conf/conf.h"

struct overrides;
struct overrides *overrides_new(void); /* NULL: no memory */
void overrides_free(struct overrides *o);
struct overrides *
overrides_copy(const struct overrides *o); /* NULL: as above */
/*
 * key is one of conf_policy_name's. path NULL: for all exports, and what was
 * set for single ones is forgotten. value "default" forgets: of a path its own,
 * so that what was set for all holds for it, where there is such; for all,
 * everything, so that what the files say holds again. 0; -ENOENT: no such key;
 * -EINVAL with the reason in why; -ENOMEM.
 */
int override_set(struct overrides *o, const char *path, const char *key,
		 const char *value, char why[CONF_REASON_BYTES]);
/* What is set for an export. o may be NULL. */
void overrides_policy(const struct overrides *o, const char *path,
		      struct conf_policy *ret);
/* Set number i, in the order in which they hold (path NULL: for all); false
 * behind the last. */
bool override_at(const struct overrides *o, unsigned i, const char **path,
		 const char **key, const char **value);

#endif
