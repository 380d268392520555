/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client owes unstable data: COMMIT at the end, the verifiers compared,
 * and the order of what a restarted or failed server may have lost, for run.c
 * to send it again. RFC 1813, 3.3.7 and 3.3.21.
 */
#include "tests/bench/load.h"
#include "tests/bench/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void
commit_done(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	struct load *l = private_data;
	const COMMIT3res *res = data;

	l->committing = false;
	if (status != RPC_STATUS_SUCCESS) {
		l->conns[0].lost = true;
		return;
	}
	if (res->status != NFS3_OK) {
		load_fail(l, "COMMIT: %s", nfsstat3_to_str((int)res->status));
		l->stop = true;
		return;
	}
	l->commits++;
	l->committed = true;
	memcpy(&l->commit_verf, res->COMMIT3res_u.resok.verf,
	       sizeof(l->commit_verf));
}

static bool
commit(struct load *l, const struct file *f)
{
	COMMIT3args args = { .file = f->fh };

	l->committed = false;
	while (!l->committed) {
		struct conn *c = &l->conns[0];

		if (!l->committing && c->state == CONN_READY && !c->lost) {
			if (l->opt.raw)
				wire_commit(c->wire, l->conn_slots, &args,
					    commit_done, l);
			else if (rpc_nfs3_commit_async(c->rpc, commit_done,
						       &args, l) < 0)
				return false;
			l->committing = true;
		}
		if (conn_turn(l) < 0 || l->stop)
			return false;
	}
	return true;
}

/* What the COMMIT of this file made stable; what it did not goes to l->order.
 */
static void
settle(struct load *l, unsigned file)
{
	uint32_t first = file * l->file_records;

	for (uint32_t i = first; i < first + l->file_records; i++) {
		struct record *r = &l->records[i];

		if (r->state != RECORD_UNSTABLE)
			continue;
		if (r->verf == l->commit_verf) {
			r->state = RECORD_STABLE;
			continue;
		}
		l->order[l->order_count++] = i;
		l->bytes -= record_len(l, i); /* counted when sent again */
	}
}

bool
commit_all(struct load *l)
{
	l->order_count = 0;
	for (unsigned i = 0; i < l->opt.files; i++) {
		if (!commit(l, &l->files[i]))
			return false;
		settle(l, i);
	}
	if (l->order_count > 0)
		l->verifier_changes++;
	l->resent += l->order_count;
	return true;
}

bool
any_unstable(const struct load *l)
{
	for (uint32_t i = 0; i < l->record_count; i++)
		if (l->records[i].state == RECORD_UNSTABLE)
			return true;
	return false;
}

/* What the server has answered for may still hang on the file system's own log;
 * a server that answered early pays here. */
bool
sync_file_system(struct load *l)
{
	int fd = open(l->opt.syncfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool good = fd >= 0 && syncfs(fd) == 0;

	if (!good)
		load_fail(l, "syncfs %s: %s", l->opt.syncfs, strerror(errno));
	if (fd >= 0)
		(void)close(fd);
	l->stable_ns = now_ns();
	return good;
}
