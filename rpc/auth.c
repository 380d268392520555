/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credentials (RFC 5531, section 8 and appendix A): AUTH_NONE and AUTH_SYS into
 * a struct rpc_cred, which lies in its call. It knows nothing of who may do
 * what: squashing and group lists are the server's.
 */
#include "rpc/cursor.h"
#include "rpc/rpc.h"

#include <string.h>

static bool
auth_sys_decode(struct rpc_cred *cred, const uint8_t *body, uint32_t n)
{
	struct cursor c = { .at = body, .left = n };
	const uint8_t *machine;
	uint32_t i;

	cursor_u32(&c); /* stamp: the client's own, means nothing here */
	cred->machine_bytes = cursor_u32(&c);
	if (cred->machine_bytes > RPC_MACHINE_BYTES_MAX)
		return false;
	machine = cursor_opaque(&c, cred->machine_bytes);
	cred->uid = cursor_u32(&c);
	cred->gid = cursor_u32(&c);
	cred->gids = cursor_u32(&c);
	if (c.failed || cred->gids > RPC_AUTH_SYS_GIDS_MAX)
		return false;
	memcpy(cred->machine, machine, cred->machine_bytes);
	for (i = 0; i < cred->gids; i++)
		cred->gid_list[i] = cursor_u32(&c);
	/* Bytes after the groups are let pass, as other servers do. */
	return !c.failed;
}

bool
rpc_cred_decode(struct rpc_cred *cred, uint32_t flavor, const uint8_t *body,
		uint32_t n)
{
	memset(cred, 0, sizeof(*cred));
	cred->flavor = flavor;
	if (n > RPC_AUTH_BYTES_MAX)
		return false;
	if (flavor == RPC_AUTH_SYS)
		return auth_sys_decode(cred, body, n);
	/* Section 10.1 only recommends that AUTH_NONE's body be empty. */
	return flavor == RPC_AUTH_NONE;
}
