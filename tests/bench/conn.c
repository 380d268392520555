/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections of nvnfsd-load: mount, find or make the file, connect, serve
 * events, come back after a loss. A connection is taken down only by the loop
 * (libnfs's callbacks run inside its own functions, where its context must not
 * be freed). RFC 1813: MNT (5.2.1), LOOKUP (3.3.3), CREATE (3.3.8).
 */
#include "tests/bench/load.h"
#include "tests/bench/wire.h"

#include <errno.h>
#include <nfsc/libnfs-raw-mount.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RETRY_NS 100000000u

uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void
load_fail(struct load *l, const char *format, ...)
{
	va_list ap;

	l->errors++;
	if (l->error[0] != '\0')
		return;
	va_start(ap, format);
	(void)vsnprintf(l->error, sizeof(l->error), format, ap);
	va_end(ap);
}

/* One blocking call: what its callback leaves. */
struct answer {
	struct load *load;
	const char *what;
	const char *name;
	nfs_fh3 *fh;
	bool done, good;
};

/* True when the call itself went well; otherwise the answer is final. */
static bool
answered(struct answer *a, int status, const void *data)
{
	a->done = true;
	if (status == RPC_STATUS_SUCCESS)
		return true;
	load_fail(a->load, "%s: %s", a->what,
		  status == RPC_STATUS_ERROR && data ? (const char *)data
						     : "cancelled");
	return false;
}

static int
drive(struct load *l, struct rpc_context *rpc, struct answer *a)
{
	while (!a->done) {
		struct pollfd p = { .fd = rpc_get_fd(rpc),
				    .events = (short)rpc_which_events(rpc) };

		if (poll(&p, 1, -1) < 0 && errno != EINTR) {
			load_fail(l, "poll: %s", strerror(errno));
			return -1;
		}
		if (rpc_service(rpc, p.revents) < 0 && !a->done) {
			load_fail(l, "%s: %s", a->what, rpc_get_error(rpc));
			return -1;
		}
	}
	return a->good ? 0 : -1;
}

static void
connected(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	struct answer *a = private_data;

	a->good = answered(a, status, data);
}

static struct rpc_context *
context_new(const struct load *l)
{
	struct rpc_context *rpc = rpc_init_context();

	if (rpc == NULL || !l->opt.set_ids)
		return rpc;
	rpc_set_uid(rpc, l->opt.uid);
	rpc_set_gid(rpc, l->opt.gid);
	return rpc;
}

static int
connect_start(struct load *l, struct rpc_context *rpc, bool mount, rpc_cb cb,
	      void *private_data)
{
	const struct load_options *o = &l->opt;
	int program = mount ? MOUNT_PROGRAM : NFS_PROGRAM;
	int version = 3; /* of both */
	int port = mount ? o->mount_port : o->port;

	if (port != 0)
		return rpc_connect_port_async(rpc, o->server, port, program,
					      version, cb, private_data);
	return rpc_connect_program_async(rpc, o->server, program, version, cb,
					 private_data);
}

static int
connect_now(struct load *l, struct rpc_context *rpc, bool mount)
{
	struct answer a = { .load = l,
			    .what = mount ? "mount service" : "nfs" };

	if (connect_start(l, rpc, mount, connected, &a) < 0) {
		load_fail(l, "%s: %s", a.what, rpc_get_error(rpc));
		return -1;
	}
	return drive(l, rpc, &a);
}

static bool
handle_copy(nfs_fh3 *fh, const char *val, unsigned len)
{
	char *copy = malloc(len > 0 ? len : 1);

	if (copy == NULL)
		return false;
	memcpy(copy, val, len);
	free(fh->data.data_val);
	fh->data.data_val = copy;
	fh->data.data_len = len;
	return true;
}

static void
mounted(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	struct answer *a = private_data;
	const mountres3 *res = data;

	if (!answered(a, status, data))
		return;
	if (res->fhs_status != MNT3_OK) {
		load_fail(a->load, "MNT %s: status %d", a->load->opt.export,
			  (int)res->fhs_status);
		return;
	}
	a->good = handle_copy(&a->load->root,
			      res->mountres3_u.mountinfo.fhandle.fhandle3_val,
			      res->mountres3_u.mountinfo.fhandle.fhandle3_len);
}

static void
found(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	struct answer *a = private_data;
	const LOOKUP3res *res = data;

	if (!answered(a, status, data))
		return;
	if (res->status != NFS3_OK) {
		load_fail(a->load, "LOOKUP %s: %s", a->name,
			  nfsstat3_to_str((int)res->status));
		return;
	}
	a->good =
		handle_copy(a->fh, res->LOOKUP3res_u.resok.object.data.data_val,
			    res->LOOKUP3res_u.resok.object.data.data_len);
}

static void
created(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	struct answer *a = private_data;
	const CREATE3res *res = data;

	if (!answered(a, status, data))
		return;
	if (res->status != NFS3_OK)
		load_fail(a->load, "CREATE %s: %s", a->name,
			  nfsstat3_to_str((int)res->status));
	a->good = res->status == NFS3_OK;
}

/* Make the file, or take it as it is; truncated when asked to. */
static int
create(struct load *l, struct rpc_context *rpc, const char *name)
{
	struct answer a = { .load = l, .what = "CREATE", .name = name };
	CREATE3args args = { .where = { .dir = l->root,
					.name = (char *)name } };
	sattr3 *attr = &args.how.createhow3_u.obj_attributes;

	args.how.mode = UNCHECKED;
	attr->mode.set_it = 1;
	attr->mode.set_mode3_u.mode = 0644;
	attr->size.set_it = l->opt.truncate;
	if (rpc_nfs3_create_async(rpc, created, &args, &a) < 0)
		return -1;
	return drive(l, rpc, &a);
}

static void
removed(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	struct answer *a = private_data;
	const REMOVE3res *res = data;

	if (!answered(a, status, data))
		return;
	if (res->status != NFS3_OK)
		load_fail(a->load, "REMOVE %s: %s", a->name,
			  nfsstat3_to_str((int)res->status));
	a->good = res->status == NFS3_OK;
}

static int
mount_export(struct load *l)
{
	struct answer a = { .load = l, .what = "MNT" };
	struct rpc_context *rpc = context_new(l);
	int rc = -1;

	if (rpc == NULL)
		return -1;
	if (connect_now(l, rpc, true) == 0 &&
	    rpc_mount3_mnt_async(rpc, mounted, (char *)l->opt.export, &a) == 0)
		rc = drive(l, rpc, &a);
	rpc_destroy_context(rpc);
	return rc;
}

static int
open_file(struct load *l, struct rpc_context *rpc, const char *name,
	  struct file *f)
{
	struct answer a = {
		.load = l, .what = "LOOKUP", .name = name, .fh = &f->fh
	};
	LOOKUP3args args = { .what = { .dir = l->root, .name = (char *)name } };

	if (l->opt.op == LOAD_WRITE && create(l, rpc, name) < 0)
		return -1;
	if (rpc_nfs3_lookup_async(rpc, found, &args, &a) < 0)
		return -1;
	return drive(l, rpc, &a);
}

static int
remove_file(struct load *l, struct rpc_context *rpc, const char *name,
	    struct file *f)
{
	struct answer a = { .load = l, .what = "REMOVE", .name = name };
	REMOVE3args args = { .object = { .dir = l->root,
					 .name = (char *)name } };

	if (rpc_nfs3_remove_async(rpc, removed, &args, &a) < 0)
		return -1;
	return drive(l, rpc, &a);
}

/* What, for each file, over one connection. */
static int
each_file(struct load *l, int (*what)(struct load *, struct rpc_context *,
				      const char *, struct file *))
{
	struct rpc_context *rpc;
	char name[256];
	int rc;

	if (mount_export(l) < 0)
		return -1;
	rpc = context_new(l);
	if (rpc == NULL)
		return -1;
	rc = connect_now(l, rpc, false);
	for (unsigned i = 0; i < l->opt.files && rc == 0; i++) {
		load_file_name(l, i, name, sizeof(name));
		rc = what(l, rpc, name, &l->files[i]);
	}
	rpc_destroy_context(rpc);
	return rc;
}

int
conn_open_files(struct load *l)
{
	static const char zeros[32];

	if (l->opt.op == LOAD_NULL)
		return 0;
	if (!l->opt.no_mount)
		return each_file(l, open_file);
	for (unsigned i = 0; i < l->opt.files; i++)
		if (!handle_copy(&l->files[i].fh, zeros, sizeof(zeros)))
			return -1;
	return 0;
}

int
conn_remove_files(struct load *l)
{
	return each_file(l, remove_file);
}

static void
conn_up(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	struct conn *c = private_data;

	if (c->state != CONN_CONNECTING)
		return;
	if (status != RPC_STATUS_SUCCESS) {
		c->lost = true;
		return;
	}
	c->state = CONN_READY;
}

/* One call more than there are slots: the COMMIT. */
static int
conn_connect_raw(struct conn *c)
{
	struct load *l = c->load;

	c->wire = wire_new(l, l->conn_slots + 1);
	if (c->wire == NULL) {
		c->lost = true;
		return l->opt.reconnect ? 0 : -1;
	}
	c->state = CONN_READY;
	run_ready(l, c);
	return 0;
}

static int
conn_connect(struct conn *c)
{
	c->lost = false;
	if (c->load->opt.raw)
		return conn_connect_raw(c);
	c->rpc = context_new(c->load);
	if (c->rpc == NULL)
		return -1;
	c->state = CONN_CONNECTING;
	if (connect_start(c->load, c->rpc, false, conn_up, c) < 0)
		c->lost = true;
	return 0;
}

/* The callbacks of what was in flight run in here, as cancelled. */
static void
conn_down(struct conn *c)
{
	struct rpc_context *rpc = c->rpc;
	struct wire *wire = c->wire;

	c->state = CONN_DOWN;
	c->rpc = NULL;
	c->wire = NULL;
	wire_free(wire);
	c->retry_ns = now_ns() + RETRY_NS;
	if (rpc != NULL)
		rpc_destroy_context(rpc);
}

int
conn_start(struct load *l)
{
	l->conns = calloc(l->opt.connections, sizeof(*l->conns));
	if (l->conns == NULL)
		return -1;
	for (unsigned i = 0; i < l->opt.connections; i++) {
		l->conns[i].load = l;
		if (conn_connect(&l->conns[i]) < 0)
			return -1;
	}
	return 0;
}

void
conn_stop(struct load *l)
{
	for (unsigned i = 0; l->conns != NULL && i < l->opt.connections; i++)
		conn_down(&l->conns[i]);
	free(l->conns);
	l->conns = NULL;
}

/* Take down what is lost and connect again when its time has come. */
static int
conn_mend(struct conn *c)
{
	struct load *l = c->load;

	if (c->lost && (c->state != CONN_DOWN || c->wire != NULL)) {
		if (!l->opt.reconnect) {
			load_fail(l, "connection lost: %s",
				  c->wire ? wire_error(c->wire)
					  : rpc_get_error(c->rpc));
			return -1;
		}
		l->reconnects += c->state == CONN_READY;
		conn_down(c);
	}
	if (c->state == CONN_DOWN && now_ns() >= c->retry_ns)
		return conn_connect(c);
	return 0;
}

static void
conn_serve(struct conn *c, short revents)
{
	bool was_ready = c->state == CONN_READY;

	/* What was queued since the last turn goes out whatever poll said. */
	if (c->wire != NULL) {
		if (wire_service(c->wire, revents) < 0)
			c->lost = true;
		return;
	}
	if (revents != 0 && rpc_service(c->rpc, revents) < 0)
		c->lost = true;
	if (c->state == CONN_READY && !c->lost && !was_ready)
		run_ready(c->load, c);
}

int
conn_turn(struct load *l)
{
	unsigned n = l->opt.connections;
	struct pollfd p[n];
	int wait_ms = -1;

	for (unsigned i = 0; i < n; i++) {
		struct conn *c = &l->conns[i];

		if (conn_mend(c) < 0)
			return -1;
		p[i] = (struct pollfd){ .fd = -1 };
		if (c->state == CONN_DOWN || c->lost) {
			wait_ms = RETRY_NS / 1000000;
			continue;
		}
		if (c->wire != NULL) {
			p[i].fd = wire_fd(c->wire);
			p[i].events = wire_events(c->wire);
			continue;
		}
		p[i].fd = rpc_get_fd(c->rpc);
		p[i].events = (short)rpc_which_events(c->rpc);
	}
	if (poll(p, n, wait_ms) < 0 && errno != EINTR) {
		load_fail(l, "poll: %s", strerror(errno));
		return -1;
	}
	for (unsigned i = 0; i < n; i++)
		if (p[i].fd >= 0)
			conn_serve(&l->conns[i], p[i].revents);
	return 0;
}
