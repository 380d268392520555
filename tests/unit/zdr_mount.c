/* SPDX-License-Identifier: Apache-2.0 */
/* MOUNT's bytes by libnfs: see zdr_peer.h. */
#include "tests/unit/zdr_peer.h"

#include <nfsc/libnfs-raw-mount.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX 16u

static void
must(bool ok)
{
	if (!ok)
		abort();
}

uint32_t
peer_mount_path(const struct sample *s, uint8_t *out, uint32_t room)
{
	dirpath path = (char *)s->path;
	ZDR z;

	zdrmem_create(&z, (char *)out, room, ZDR_ENCODE);
	must(zdr_dirpath(&z, &path));
	return zdr_getpos(&z);
}

uint32_t
peer_mount_mnt(uint32_t status, const struct sample *s, uint8_t *out,
	       uint32_t room)
{
	mountres3 r = { .fhs_status = status };
	int flavor = AUTH_UNIX;
	ZDR z;

	r.mountres3_u.mountinfo.fhandle.fhandle3_len = s->fh.bytes;
	r.mountres3_u.mountinfo.fhandle.fhandle3_val = (char *)s->fh.data;
	r.mountres3_u.mountinfo.auth_flavors.auth_flavors_len = 1;
	r.mountres3_u.mountinfo.auth_flavors.auth_flavors_val = &flavor;
	zdrmem_create(&z, (char *)out, room, ZDR_ENCODE);
	must(zdr_mountres3(&z, &r));
	return zdr_getpos(&z);
}

uint32_t
peer_mount_dump(const struct sample *s, unsigned n, uint8_t *out, uint32_t room)
{
	mountbody node[NODES_MAX];
	mountlist list = n ? node : NULL;
	ZDR z;

	must(n <= NODES_MAX);
	for (unsigned i = 0; i < n; i++) {
		node[i].ml_hostname = (char *)s->name;
		node[i].ml_directory = (char *)s->path;
		node[i].ml_next = i + 1 < n ? &node[i + 1] : NULL;
	}
	zdrmem_create(&z, (char *)out, room, ZDR_ENCODE);
	must(zdr_mountlist(&z, &list));
	return zdr_getpos(&z);
}

uint32_t
peer_mount_export(const struct sample *s, unsigned n, uint8_t *out,
		  uint32_t room)
{
	groupnode group[NODES_MAX];
	exportnode node[NODES_MAX];
	exports list = n ? node : NULL;
	ZDR z;

	must(n <= NODES_MAX);
	for (unsigned i = 0; i < NODES_MAX; i++) {
		group[i].gr_name = (char *)s->name;
		group[i].gr_next = i ? &group[i - 1] : NULL;
	}
	for (unsigned i = 0; i < n; i++) {
		node[i].ex_dir = (char *)s->path;
		node[i].ex_groups = i ? &group[i - 1] : NULL;
		node[i].ex_next = i + 1 < n ? &node[i + 1] : NULL;
	}
	zdrmem_create(&z, (char *)out, room, ZDR_ENCODE);
	must(zdr_exports(&z, &list));
	return zdr_getpos(&z);
}

bool
peer_mount1_mnt_reads(const uint8_t *in, uint32_t n, uint32_t *status)
{
	mountres1 r = { 0 };
	bool ok;
	ZDR z;

	zdrmem_create(&z, (char *)in, n, ZDR_DECODE);
	ok = zdr_mountres1(&z, &r) && zdr_getpos(&z) == n;
	*status = r.fhs_status;
	zdr_destroy(&z);
	return ok;
}

bool
peer_mount_dump_reads(const uint8_t *in, uint32_t n)
{
	mountlist list = NULL;
	bool ok;
	ZDR z;

	zdrmem_create(&z, (char *)in, n, ZDR_DECODE);
	ok = zdr_mountlist(&z, &list) && zdr_getpos(&z) == n;
	zdr_destroy(&z);
	return ok;
}

bool
peer_mount_export_reads(const uint8_t *in, uint32_t n)
{
	exports list = NULL;
	bool ok;
	ZDR z;

	zdrmem_create(&z, (char *)in, n, ZDR_DECODE);
	ok = zdr_exports(&z, &list) && zdr_getpos(&z) == n;
	zdr_destroy(&z);
	return ok;
}
