/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands about locks: locks shows who has and who waits for what, unlock
 * takes all of one client. They run on the control thread.
 */
#include "nfsd/ctl.h"

#include "nfsd/locks.h"
#include "nfsd/server.h"

#include <errno.h>

int
ctl_locks(struct server *s, struct json_object *args, struct json_object **ret,
	  struct ctl_error *error)
{
	*ret = locks_json(s->locks);
	return 0;
}

int
ctl_unlock(struct server *s, struct json_object *args, struct json_object **ret,
	   struct ctl_error *error)
{
	const char *client = ctl_arg(args, "client");
	struct json_object *o;
	unsigned hosts;

	if (client == NULL)
		return ctl_fail(error, -EINVAL, "no client is named");
	hosts = locks_release(s->locks, client);
	if (hosts == 0)
		return ctl_fail(error, -ENOENT, "%s has no locks", client);
	log_msg(LOG_NOTICE_, "all locks of %s were taken by the operator",
		client);
	o = json_object_new_object();
	ctl_put_text(o, "client", client);
	ctl_put(o, "hosts", hosts);
	*ret = o;
	return 0;
}
