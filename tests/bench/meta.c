/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvnfsd-meta: names in one directory, made, looked up, listed with their
 * attributes, removed: over NFS with several calls in flight (libnfs's raw
 * layer), or by the same system calls here (meta_local.c), for comparison. The
 * result is JSON in the form of nvnfsd-load's.
 */
#include "tests/bench/meta.h"

#include <getopt.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conf/conf.h"

/* In this order: libnfs.h defines what the other two use. */
#include <nfsc/libnfs.h>

#include <nfsc/libnfs-raw.h>

#include <nfsc/libnfs-raw-mount.h>
#include <nfsc/libnfs-raw-nfs.h>

#define DIR_BYTES (1u << 20)

static struct meta m = { .entries = 1000, .in_flight = 16 };
static struct {
	const char *server, *export;
	int port, mount_port;
	struct rpc_context *rpc;
	nfs_fh3 dir;
	uint64_t next, in_service;
	uint64_t cookie, cookieverf;
	bool listed, done;
} c = { .server = "127.0.0.1", .export = "/export" };

uint64_t
meta_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void
meta_name(uint64_t n, char *name, size_t size)
{
	(void)snprintf(name, size, "entry-%08llu", (unsigned long long)n);
}

void
meta_fail(const char *what, const char *why)
{
	(void)fprintf(stderr, "nvnfsd-meta: %s: %s\n", what, why);
	exit(1);
}

static void
drive(void)
{
	struct pollfd p = { .fd = rpc_get_fd(c.rpc),
			    .events = (short)rpc_which_events(c.rpc) };

	if (poll(&p, 1, -1) > 0 && rpc_service(c.rpc, p.revents) < 0)
		meta_fail("connection", rpc_get_error(c.rpc));
}

static const void *
result(int status, const void *data)
{
	if (status != RPC_STATUS_SUCCESS)
		meta_fail("call", status == RPC_STATUS_ERROR && data
					  ? (const char *)data
					  : "cancelled");
	return data;
}

static void
connected(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	(void)result(status, data);
	c.done = true;
}

static void
fh_take(const char *val, unsigned len)
{
	c.dir.data.data_val = malloc(len);
	if (c.dir.data.data_val == NULL)
		meta_fail("memory", "none");
	memcpy(c.dir.data.data_val, val, len);
	c.dir.data.data_len = len;
}

static void
mounted(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	const mountres3 *res = result(status, data);

	if (res->fhs_status != MNT3_OK)
		meta_fail("MNT", c.export);
	fh_take(res->mountres3_u.mountinfo.fhandle.fhandle3_val,
		res->mountres3_u.mountinfo.fhandle.fhandle3_len);
	c.done = true;
}

static void
looked_up_dir(struct rpc_context *rpc, int status, void *data,
	      void *private_data)
{
	const LOOKUP3res *res = result(status, data);

	if (res->status != NFS3_OK)
		meta_fail("LOOKUP", m.dir);
	fh_take(res->LOOKUP3res_u.resok.object.data.data_val,
		res->LOOKUP3res_u.resok.object.data.data_len);
	c.done = true;
}

static void
made_dir(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	const MKDIR3res *res = result(status, data);

	if (res->status != NFS3_OK && res->status != NFS3ERR_EXIST)
		meta_fail("MKDIR", nfsstat3_to_str((int)res->status));
	c.done = true;
}

static void
wait_done(int rc)
{
	if (rc < 0)
		meta_fail("queue", rpc_get_error(c.rpc));
	while (!c.done)
		drive();
	c.done = false;
}

static void
connect_to(int program, int port)
{
	if (c.rpc != NULL)
		rpc_destroy_context(c.rpc);
	c.rpc = rpc_init_context();
	wait_done(rpc_connect_port_async(c.rpc, c.server, port, program, 3,
					 connected, NULL));
}

/* The directory is made where it is missing. */
static void
open_dir(void)
{
	MKDIR3args make = { .where = { .name = (char *)m.dir } };
	LOOKUP3args look = { .what = { .name = (char *)m.dir } };

	connect_to(MOUNT_PROGRAM, c.mount_port);
	wait_done(rpc_mount3_mnt_async(c.rpc, mounted, (char *)c.export, NULL));
	connect_to(NFS_PROGRAM, c.port);
	make.where.dir = look.what.dir = c.dir;
	make.attributes.mode.set_it = 1;
	make.attributes.mode.set_mode3_u.mode = 0755;
	wait_done(rpc_nfs3_mkdir_async(c.rpc, made_dir, &make, NULL));
	wait_done(rpc_nfs3_lookup_async(c.rpc, looked_up_dir, &look, NULL));
}

static void
answered(nfsstat3 status, const char *what)
{
	if (status != NFS3_OK)
		meta_fail(what, nfsstat3_to_str((int)status));
	c.in_service--;
	m.operations++;
}

static void
created(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	answered(((const CREATE3res *)result(status, data))->status, "CREATE");
}

static void
looked_up(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	answered(((const LOOKUP3res *)result(status, data))->status, "LOOKUP");
}

static void
removed(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	answered(((const REMOVE3res *)result(status, data))->status, "REMOVE");
}

static int
name_send(const char *name)
{
	CREATE3args create = { .where = { c.dir, (char *)name } };
	LOOKUP3args look = { { c.dir, (char *)name } };
	REMOVE3args rm = { { c.dir, (char *)name } };
	set_mode3 *mode;

	if (m.op == META_CREATE) {
		create.how.mode = UNCHECKED;
		mode = &create.how.createhow3_u.obj_attributes.mode;
		mode->set_it = 1;
		mode->set_mode3_u.mode = 0644;
		return rpc_nfs3_create_async(c.rpc, created, &create, NULL);
	}
	if (m.op == META_STAT)
		return rpc_nfs3_lookup_async(c.rpc, looked_up, &look, NULL);
	return rpc_nfs3_remove_async(c.rpc, removed, &rm, NULL);
}

static void
names_run(void)
{
	char name[32];

	while (c.next < m.entries || c.in_service > 0) {
		while (c.next < m.entries && c.in_service < m.in_flight) {
			meta_name(c.next++, name, sizeof(name));
			if (name_send(name) < 0)
				meta_fail("queue", rpc_get_error(c.rpc));
			c.in_service++;
		}
		drive();
	}
}

/* Entries without attributes would have to be asked for one by one. */
static void
listed(struct rpc_context *rpc, int status, void *data, void *private_data)
{
	const READDIRPLUS3res *res = result(status, data);
	const READDIRPLUS3resok *ok = &res->READDIRPLUS3res_u.resok;

	if (res->status != NFS3_OK)
		meta_fail("READDIRPLUS", nfsstat3_to_str((int)res->status));
	for (const entryplus3 *e = ok->reply.entries; e; e = e->nextentry) {
		m.listed += e->name[0] != '.';
		m.without_attributes += !e->name_attributes.attributes_follow;
		c.cookie = e->cookie;
	}
	memcpy(&c.cookieverf, ok->cookieverf, sizeof(c.cookieverf));
	c.listed = ok->reply.eof != 0;
	m.operations++;
	c.done = true;
}

static void
list_run(void)
{
	while (!c.listed) {
		READDIRPLUS3args args = { .dir = c.dir,
					  .cookie = c.cookie,
					  .dircount = DIR_BYTES,
					  .maxcount = DIR_BYTES };

		memcpy(args.cookieverf, &c.cookieverf, sizeof(c.cookieverf));
		wait_done(
			rpc_nfs3_readdirplus_async(c.rpc, listed, &args, NULL));
	}
}

static void
print_result(uint64_t ns)
{
	double seconds = (double)ns / 1e9;
	bool good = m.op != META_LIST ||
		    (m.listed == m.entries && m.without_attributes == 0);

	printf("{ \"op\": \"meta\", \"good\": %s, \"bytes\": 0,\n"
	       "  \"operations\": %llu, \"entries\": %llu, \"listed\": %llu,\n"
	       "  \"without_attributes\": %llu,\n"
	       "  \"seconds\": %.6f, \"seconds_to_stable\": %.6f,\n"
	       "  \"calls_s\": %.6g, \"entries_s\": %.6g }\n",
	       good ? "true" : "false", (unsigned long long)m.operations,
	       (unsigned long long)m.entries, (unsigned long long)m.listed,
	       (unsigned long long)m.without_attributes, seconds, seconds,
	       (double)m.operations / seconds, (double)m.entries / seconds);
	exit(!good);
}

static bool
option(int o, char *arg)
{
	uint64_t v = 0;

	if (strchr("pmni", o) != NULL && conf_size_parse(arg, &v) < 0)
		return false;
	switch (o) {
	case 's':
		c.server = arg;
		return true;
	case 'e':
		c.export = arg;
		return true;
	case 'p':
		c.port = (int)v;
		return v <= UINT16_MAX;
	case 'm':
		c.mount_port = (int)v;
		return v <= UINT16_MAX;
	case 'd':
		m.dir = arg;
		return true;
	case 'n':
		m.entries = v;
		return v > 0;
	case 'i':
		m.in_flight = v;
		return v > 0;
	case 'l':
		m.local = arg;
		return true;
	default:
		return false;
	}
}

static bool
operation(const char *word)
{
	static const char *const words[] = { "create", "stat", "list",
					     "remove" };

	for (unsigned i = 0; i < 4; i++)
		if (strcmp(word, words[i]) == 0) {
			m.op = (enum meta_op)i;
			return true;
		}
	return false;
}

static const struct option options[] = {
	{ "server", required_argument, NULL, 's' },
	{ "export", required_argument, NULL, 'e' },
	{ "port", required_argument, NULL, 'p' },
	{ "mount-port", required_argument, NULL, 'm' },
	{ "dir", required_argument, NULL, 'd' },
	{ "entries", required_argument, NULL, 'n' },
	{ "in-flight", required_argument, NULL, 'i' },
	{ "local", required_argument, NULL, 'l' },
	{ NULL, 0, NULL, 0 }
};

int
main(int argc, char **argv)
{
	uint64_t start;
	int o;

	m.dir = "meta";
	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!option(o, optarg))
			goto usage;
	if (optind != argc - 1 || !operation(argv[optind]))
		goto usage;
	if (m.local != NULL) {
		meta_local_open(&m);
		start = meta_now_ns();
		meta_local_run(&m);
	} else {
		open_dir();
		start = meta_now_ns();
		if (m.op == META_LIST)
			list_run();
		else
			names_run();
	}
	print_result(meta_now_ns() - start);
usage:
	(void)fputs("usage: nvnfsd-meta [--server A] [--port N] "
		    "[--mount-port N] [--export P]\n"
		    "       [--local PATH] [--dir NAME] [--entries N] "
		    "[--in-flight N]\n"
		    "       create|stat|list|remove\n",
		    stderr);
	return 2;
}
