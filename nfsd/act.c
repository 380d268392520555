/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread acts under an identity. File system ids, groups and capabilities
 * belong to a thread in Linux, though POSIX and glibc's setgroups say process:
 * hence raw system calls. What a worker restores to is kept per thread.
 *
 * Only the change of the file system uid from 0 to another takes the file
 * capabilities away by itself. A daemon started as another user with ambient or
 * file capabilities keeps them, and would open a stranger's files; so they are
 * always cleared explicitly.
 *
 * setfsuid(2), setfsgid(2), capabilities(7), user_namespaces(7).
 */
#include "nfsd/cred.h"
#include "nfsd/nfsd.h"

#include <assert.h>
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CAP_BIT(cap)  (UINT64_C(1) << (cap))
#define ID_RANGES_MAX 340u /* user_namespaces(7) */

#ifdef SYS_setgroups32
#define SETGROUPS SYS_setgroups32
#else
#define SETGROUPS SYS_setgroups
#endif

struct caps {
	uint64_t effective, permitted, inheritable;
};

/* The server's own, as this thread had it at its start. base: what it acts with
 * as the server. groups: those that the thread has now, where they are few. */
static _Thread_local struct {
	bool ready, acting;
	uint32_t uid, gid;
	struct caps caps;
	uint64_t base;
	uint32_t groups;
	uint32_t group[IDENTITY_GIDS_INLINE];
} own;

#define GROUPS_UNKNOWN UINT32_MAX

/* With CAP_FSETID a WRITE leaves setuid and setgid bits; with CAP_SYS_RESOURCE
 * neither quotas nor reserved blocks hold. */
static const uint64_t never_as_server =
	CAP_BIT(CAP_FSETID) | CAP_BIT(CAP_SYS_RESOURCE);

/* ids of this user namespace ------------------------------------------ */

struct id_map {
	unsigned ranges;
	struct {
		uint32_t first, count;
	} range[ID_RANGES_MAX];
};

static struct id_map uid_map, gid_map;

/* Lines of: first id inside, first id outside, how many. */
static void
id_map_read(struct id_map *m, const char *path)
{
	FILE *f = fopen(path, "re");
	char line[128], *end;

	while (f && m->ranges < ID_RANGES_MAX && fgets(line, 128, f)) {
		m->range[m->ranges].first = (uint32_t)strtoul(line, &end, 10);
		(void)strtoul(end, &end, 10);
		m->range[m->ranges++].count = (uint32_t)strtoul(end, NULL, 10);
	}
	/* No /proc, so nothing to know better by: all but -1. */
	if (m->ranges == 0) {
		m->range[0].count = UINT32_MAX;
		m->ranges = 1;
	}
	if (f)
		(void)fclose(f);
}

static void
id_maps_read(void)
{
	id_map_read(&uid_map, "/proc/self/uid_map");
	id_map_read(&gid_map, "/proc/self/gid_map");
}

static bool
id_map_has(const struct id_map *m, uint32_t id)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, id_maps_read);
	if (id == UINT32_MAX)
		return false;
	for (unsigned i = 0; i < m->ranges; i++) {
		if (id >= m->range[i].first &&
		    id - m->range[i].first < m->range[i].count)
			return true;
	}
	return false;
}

bool
cred_uid_valid(uint32_t uid)
{
	return id_map_has(&uid_map, uid);
}

bool
cred_gid_valid(uint32_t gid)
{
	return id_map_has(&gid_map, gid);
}

/* capabilities -------------------------------------------------------- */

static int
caps_get(struct caps *c)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[2];

	if (syscall(SYS_capget, &h, d) < 0)
		return -errno;
	c->effective = d[0].effective | (uint64_t)d[1].effective << 32;
	c->permitted = d[0].permitted | (uint64_t)d[1].permitted << 32;
	c->inheritable = d[0].inheritable | (uint64_t)d[1].inheritable << 32;
	return 0;
}

static int
caps_set(const struct caps *c)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[2] = {
		{ (uint32_t)c->effective, (uint32_t)c->permitted,
		  (uint32_t)c->inheritable },
		{ (uint32_t)(c->effective >> 32),
		  (uint32_t)(c->permitted >> 32),
		  (uint32_t)(c->inheritable >> 32) },
	};

	return syscall(SYS_capset, &h, d) < 0 ? -errno : 0;
}

/* Permitted ones stay: that is how identity_drop gets back. */
static void
caps_act_with(uint64_t effective)
{
	struct caps c = own.caps;
	int r;

	c.effective = effective;
	r = caps_set(&c);
	assert(r == 0);
}

/* acting -------------------------------------------------------------- */

/* Neither call tells whether it took; asking with -1 does. */
static void
fs_ids_set(uint32_t uid, uint32_t gid)
{
	setfsgid(gid);
	setfsuid(uid);
	assert((uint32_t)setfsgid((gid_t)-1) == gid);
	assert((uint32_t)setfsuid((uid_t)-1) == uid);
}

/* Every change of credentials costs 1.6 us and this one twice that, and the
 * next caller is often the same. */
static void
groups_set(const struct identity *id)
{
	size_t bytes = id->gids * sizeof(own.group[0]);
	long r;

	if (own.groups == id->gids &&
	    memcmp(own.group, identity_gids(id), bytes) == 0)
		return;
	r = syscall(SETGROUPS, id->gids, identity_gids(id));
	assert(r == 0);
	own.groups = GROUPS_UNKNOWN;
	if (id->gids <= IDENTITY_GIDS_INLINE) {
		memcpy(own.group, identity_gids(id), bytes);
		own.groups = id->gids;
	}
}

void
identity_assume(const struct identity *id)
{
	assert(own.ready && !own.acting);
	groups_set(id);
	fs_ids_set(id->uid, id->gid);
	/* Quotas and reserved blocks hold for root too. */
	caps_act_with(id->uid == 0
			      ? own.caps.effective & ~CAP_BIT(CAP_SYS_RESOURCE)
			      : 0);
	own.acting = true;
}

void
identity_drop(void)
{
	assert(own.ready && own.acting);
	/* Back to its own ids a process may always go, without a capability.
	 * Where they are 0 that raises every file capability: so these come
	 * last. The groups stay, see identity_worker_init. */
	fs_ids_set(own.uid, own.gid);
	caps_act_with(own.base);
	own.acting = false;
}

int
identity_worker_init(void)
{
	int r = caps_get(&own.caps);

	if (r < 0)
		return r;
	/* As the server, a worker acts by capabilities and never by groups, so
	 * that it need not change them after each caller. */
	if (syscall(SETGROUPS, 0, NULL) < 0)
		return -errno;
	if (!(own.caps.effective & CAP_BIT(CAP_SETUID)))
		return -EPERM;
	own.base = own.caps.effective & ~never_as_server;
	caps_act_with(own.base);
	own.uid = (uint32_t)setfsuid((uid_t)-1);
	own.gid = (uint32_t)setfsgid((gid_t)-1);
	/* The whole process shares one umask. Clients' modes come complete, and
	 * the server's own files are made with explicit modes. */
	umask(0);
	own.groups = 0;
	own.ready = true;
	own.acting = false;
	return 0;
}

int
identity_reactor_init(void)
{
	struct caps c = { 0 };
	int r = caps_get(&c);

	if (r < 0)
		return r;
	c.effective &= ~never_as_server;
	c.permitted &= ~never_as_server;
	c.inheritable &= ~never_as_server;
	return caps_set(&c);
}
