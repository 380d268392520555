/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which programs, versions and procedures there are: a search in the server's
 * constant table, in the order in which RFC 5531, section 9, tells what is
 * missing. A handful of rows, so no index.
 */
#include "rpc/rpc.h"

enum rpc_verdict
rpc_program_find(const struct rpc_program *table, unsigned rows,
		 struct rpc_call *c, unsigned *index)
{
	bool known = false;
	unsigned i;

	for (i = 0; i < rows; i++) {
		const struct rpc_program *p = &table[i];

		if (p->prog != c->prog)
			continue;
		if (p->vers == c->vers) {
			if (c->proc >= p->procs)
				return RPC_PROC_UNAVAIL;
			*index = i;
			return RPC_OK;
		}
		if (!known || p->vers < c->low)
			c->low = p->vers;
		if (!known || p->vers > c->high)
			c->high = p->vers;
		known = true;
	}
	return known ? RPC_PROG_MISMATCH : RPC_PROG_UNAVAIL;
}
