/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A raw connection of nvnfsd-load: RPC records made and taken apart by hand,
 * so that the client is not what a benchmark measures. All calls that are
 * queued go out in one sendmsg, a payload straight from where it lies; replies
 * are taken from one large buffer, as many as one receive brought. The
 * callbacks and results are libnfs's, so that its callers serve both.
 * Single-threaded; made and ended by conn.c. RFC 5531, RFC 1813.
 */
#ifndef NVNFSD_WIRE_H
#define NVNFSD_WIRE_H

#include "tests/bench/load.h"

struct wire;

/* The machine name in every credential; the limits (relay.c, sink.c) know the
 * length of a header by it. */
#define WIRE_MACHINE "bench"

/* Connects, blocking. calls: how many may be in flight; each has a number
 * below it. NULL with load->error set. */
struct wire *wire_new(struct load *l, unsigned calls);
/* Every call in flight gets its callback with RPC_STATUS_CANCEL. */
void wire_free(struct wire *w);
int wire_fd(const struct wire *w);
short wire_events(const struct wire *w);
/* Receive, call back, send what was queued. -1 when the connection is lost. */
int wire_service(struct wire *w, short revents);
const char *wire_error(const struct wire *w);

/* Queue a call under its number, which must be free. The payload of a WRITE
 * must stay as it is until its callback. */
void wire_null(struct wire *w, unsigned call, rpc_cb cb, void *private_data);
void wire_write(struct wire *w, unsigned call, const WRITE3args *args,
		rpc_cb cb, void *private_data);
void wire_read(struct wire *w, unsigned call, const READ3args *args, rpc_cb cb,
	       void *private_data);
void wire_commit(struct wire *w, unsigned call, const COMMIT3args *args,
		 rpc_cb cb, void *private_data);

#endif
