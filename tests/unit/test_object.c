/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A handle in a call: which error each wrong one gives, what a right one opens,
 * and that what failed holds nothing.
 */
#include "tests/unit/export_world.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* What object.c asks of the server. */
struct server {
	uint8_t key[FH_KEY_BYTES];
	bool manage_gids;
};

const uint8_t *
server_fh_key(struct server *s)
{
	return s->key;
}

bool
server_manage_gids(struct server *s)
{
	return s->manage_gids;
}

static struct server server = { .key = "0123456789abcde" };
static struct rpc_cred cred = { .flavor = RPC_AUTH_SYS, .uid = 0, .gid = 4 };

/* A request of this client, and the handle of name in the export a. */
static struct request
request_of(struct export_table *t, const char *client)
{
	return (struct request){ .server = &server,
				 .exports = t,
				 .client = world_client(client, 700),
				 .cred = &cred };
}

static struct nfs_fh3
handle_of(struct world *w, struct export_table *t, const char *name)
{
	const struct export *e = world_export(w, t, "a");
	struct nfs_fh3 wire;
	struct fh fh;

	assert_int_equal(fh_from_fd(&fh, volume_root_fd(e->rw), name), 0);
	fh.export_id = e->id;
	fh_encode(server.key, &fh, &wire);
	return wire;
}

static struct export_table *
load(struct world *w, const char *format)
{
	struct export_table *t;
	int fd = open("a/f", O_CREAT | O_RDWR, 0640);

	assert_true(fd >= 0);
	assert_int_equal(fchown(fd, 4000, 5000), 0);
	close(fd);
	assert_int_equal(world_load(w, &t, NULL, format), 0);
	return t;
}

static void
unload(struct export_table *t)
{
	assert_int_equal(export_table_refs(t), 1);
	export_table_put(t);
	unlink("a/f");
}

/* Nothing is held after a failure, and object_fini may still be called. */
static int
resolve_fails(struct request *rq, const struct nfs_fh3 *wire, bool may_block)
{
	struct object o;
	int r = object_resolve(&o, rq, wire, may_block);

	assert_true(r < 0);
	assert_int_equal(export_table_refs(rq->exports), 1);
	assert_int_equal(o.fd, -1);
	object_fini(&o);
	assert_int_equal(object_open(&o, rq, wire), r);
	object_fini(&o);
	return r;
}

static void
wrong_handles(void **state)
{
	struct world *w = *state;
	struct export_table *t = load(w, "%s/a 10.0.0.1(rw,insecure)\n");
	struct request rq = request_of(t, "10.0.0.1");
	struct nfs_fh3 wire = handle_of(w, t, "f"), other = wire;
	struct fh fh;

	other.data[5] ^= 1;
	assert_int_equal(resolve_fails(&rq, &other, false), -EBADF);
	other.bytes = 0;
	assert_int_equal(resolve_fails(&rq, &other, false), -EBADF);
	/* of our own making, for an export that is no more */
	assert_true(fh_decode(server.key, &wire, &fh));
	fh.export_id ^= 1;
	fh_encode(server.key, &fh, &other);
	assert_int_equal(resolve_fails(&rq, &other, false), -ESTALE);
	/* of an export that this client may not use */
	rq = request_of(t, "10.0.0.2");
	assert_int_equal(resolve_fails(&rq, &wire, false), -ESTALE);
	unload(t);
}

static void
wrong_port(void **state)
{
	struct world *w = *state;
	struct export_table *t = load(w, "%s/a 10.0.0.1(rw)\n");
	struct nfs_fh3 wire = handle_of(w, t, "f");
	struct request rq = request_of(t, "10.0.0.1");

	rq.client = world_client("10.0.0.1", 40000);
	assert_int_equal(resolve_fails(&rq, &wire, false), -EPERM);
	unload(t);
}

static void
opened(void **state)
{
	struct world *w = *state;
	struct export_table *t = load(w, "%s/a 10.0.0.1(rw) *(ro)\n");
	struct nfs_fh3 wire = handle_of(w, t, "f"), again;
	struct request rq = request_of(t, "10.0.0.1");
	struct export *e = world_export(w, t, "a");
	struct post_op_attr attr;
	struct file_key key;
	struct object o;

	assert_int_equal(object_open(&o, &rq, &wire), 0);
	assert_int_equal(export_table_refs(t), 2);
	assert_ptr_equal(o.access.volume, e->rw);
	assert_int_equal(o.id.uid, 65534); /* root, squashed */
	assert_int_equal(o.id.gid, 4);
	assert_true(fcntl(o.fd, F_GETFL) & O_PATH);
	assert_int_equal(o.st.stx_uid, 4000);
	object_attr(&o, &attr);
	assert_true(attr.follows);
	assert_int_equal(attr.attr.type, NF3REG);
	assert_int_equal(attr.attr.gid, 5000);
	assert_true(attr.attr.fsid == e->fsid);

	/* fresh attributes; object_attr's are of the last stat */
	assert_int_equal(chmod("a/f", 0600), 0);
	object_attr(&o, &attr);
	assert_int_equal(attr.attr.mode & 0777, 0640);
	object_attr_now(&o, &attr);
	assert_int_equal(attr.attr.mode & 0777, 0600);

	assert_int_equal(object_handle(&o, o.fd, NULL, &again), 0);
	assert_memory_equal(&again, &wire, 4 + wire.bytes);
	object_file_key(&o, &key);
	assert_ptr_equal(key.volume, e->rw);
	assert_int_equal(key.handle_bytes, o.fh.bytes);
	assert_memory_equal(key.handle, o.fh.data, sizeof(key.handle));
	object_fini(&o);
	assert_int_equal(export_table_refs(t), 1);

	rq = request_of(t, "10.0.0.2");
	assert_int_equal(object_open(&o, &rq, &wire), 0);
	assert_ptr_equal(o.access.volume, e->ro);
	object_fini(&o);
	unload(t);
}

static void
names_in_a_directory(void **state)
{
	struct world *w = *state;
	struct export_table *t = load(w, "%s/a *(rw)\n");
	struct nfs_fh3 root = handle_of(w, t, NULL), wire;
	struct nfs_fh3 expected = handle_of(w, t, "f");
	struct request rq = request_of(t, "10.0.0.1");
	struct object o;

	assert_int_equal(object_open(&o, &rq, &root), 0);
	assert_true(S_ISDIR(o.st.stx_mode));
	assert_int_equal(object_handle(&o, o.fd, "f", &wire), 0);
	assert_memory_equal(&wire, &expected, 4 + expected.bytes);
	assert_int_equal(object_handle(&o, o.fd, "none", &wire), -ENOENT);
	object_fini(&o);
	unload(t);
}

/* A removed file is stale, also while someone has it open. */
static void
removed(void **state)
{
	struct world *w = *state;
	struct export_table *t = load(w, "%s/a *(rw)\n");
	struct nfs_fh3 wire = handle_of(w, t, "f");
	struct request rq = request_of(t, "10.0.0.1");
	struct object o;
	int fd = open("a/f", O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(unlink("a/f"), 0);
	assert_int_equal(object_open(&o, &rq, &wire), -ESTALE);
	assert_int_equal(o.fd, -1);
	close(fd);
	assert_int_equal(object_open(&o, &rq, &wire), -ESTALE);
	/* and of no other file */
	assert_int_equal(close(open("a/f", O_CREAT | O_RDWR, 0600)), 0);
	assert_int_equal(object_open(&o, &rq, &wire), -ESTALE);
	unload(t);
}

static void
managed_groups_may_block(void **state)
{
	struct world *w = *state;
	struct export_table *t = load(w, "%s/a *(rw,no_root_squash)\n");
	struct nfs_fh3 wire = handle_of(w, t, "f");
	struct request rq = request_of(t, "10.0.0.1");
	struct object o;

	server.manage_gids = true;
	identity_forget_groups();
	assert_int_equal(object_resolve(&o, &rq, &wire, false), -EAGAIN);
	assert_int_equal(export_table_refs(t), 1);
	assert_int_equal(object_resolve(&o, &rq, &wire, true), 0);
	assert_int_equal(o.id.uid, 0);
	object_fini(&o);
	assert_int_equal(object_resolve(&o, &rq, &wire, false), 0);
	object_fini(&o);
	server.manage_gids = false;
	identity_forget_groups();
	unload(t);
}

#define TEST(name)                                                             \
	cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(wrong_handles), TEST(wrong_port),
		TEST(opened),        TEST(names_in_a_directory),
		TEST(removed),       TEST(managed_groups_may_block),
	};

	return cmocka_run_group_tests(tests, world_enter, world_leave);
}
