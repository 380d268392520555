/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a load gives the volumes (policies), and what the next load carries
 * over.
 */
#include "nfsd/override.h"
#include "tests/unit/export_world.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cmocka.h>

/* policies ------------------------------------------------------------ */

static void
policy_of_line_over_conf_over_default(void **state)
{
	struct world *w = *state;
	struct export_table *t;
	struct io_policy p;

	assert_int_equal(world_load(w, &t, NULL, "%s/a *(rw)\n"), 0);
	p = volume_policy(world_export(w, t, "a")->rw);
	assert_int_equal(p.read_mode, IO_DIRECT);
	assert_int_equal(p.write_mode, IO_DIRECT);
	assert_int_equal(p.edges, IO_EDGES_DROP);
	assert_int_equal(p.direct_min, IO_DIRECT_MIN_BYTES);
	assert_int_equal(p.stable_floor, IO_UNSTABLE);
	assert_false(p.torn_free);
	export_table_put(t);

	w->conf.policy = (struct conf_policy){ .has_read_mode = true,
					       .read_mode = CONF_BUFFERED,
					       .has_edges = true,
					       .edges = CONF_EDGES_BUFFERED,
					       .has_direct_min = true,
					       .direct_min = 4096 };
	assert_int_equal(world_load(w, &t, NULL,
				    "%s/a *(rw,edges=drop,direct-min=64k,"
				    "stable-floor=data)\n"),
			 0);
	p = volume_policy(world_export(w, t, "a")->rw);
	assert_int_equal(p.read_mode, IO_BUFFERED);
	assert_int_equal(p.write_mode, IO_DIRECT);
	assert_int_equal(p.edges, IO_EDGES_DROP);
	assert_int_equal(p.direct_min, 65536);
	assert_int_equal(p.stable_floor, IO_DATA_SYNC);
	export_table_put(t);
}

/* tmpfs takes O_DIRECT and ignores it. */
static void
fallback_is_told(void **state)
{
	struct world *w = *state;
	struct export_table *t;
	struct export *e;

	assert_int_equal(mount("t", "b", "tmpfs", 0, NULL), 0);
	assert_int_equal(world_load(w, &t, NULL, "%s/b *(rw)\n"), 0);
	e = world_export(w, t, "b");
	assert_int_equal(volume_facts(e->rw)->dio_offset_align, 0);
	assert_int_not_equal(volume_policy(e->rw).write_mode, IO_DIRECT);
	assert_int_equal(w->report.count, 1);
	assert_true(world_said(w, true, "exports:1: ", "instead"));
	export_table_put(t);
	assert_int_equal(umount("b"), 0);
}

/* A promise that cannot be kept is not made; where nobody writes it can. */
static void
torn_free_is_refused(void **state)
{
	struct world *w = *state;
	struct export_table *t;

	assert_int_equal(mount("t", "b", "tmpfs", 0, NULL), 0);
	assert_int_equal(world_load(w, &t, NULL, "%s/b *(rw,torn-free=yes)\n"),
			 -EOPNOTSUPP);
	assert_true(world_said(w, false,
			       "torn-free is refused: ", "no direct I/O"));
	assert_int_equal(world_load(w, &t, NULL, "%s/b *(ro,torn-free=yes)\n"),
			 0);
	export_table_put(t);
	assert_int_equal(umount("b"), 0);
}

static void
set_at_run_time(void **state)
{
	char why[CONF_REASON_BYTES], path[64];
	struct overrides *o = overrides_new();
	struct world *w = *state;
	struct export_load load = { .engine = w->engine,
				    .conf = &w->conf,
				    .overrides = o };
	struct export_table *t;
	struct volume *a, *b;

	(void)snprintf(path, sizeof(path), "%s/a", w->dir);
	assert_int_equal(mount("t", "b", "tmpfs", 0, NULL), 0);
	assert_int_equal(world_load(w, &t, NULL,
				    "%s/a *(rw,edges=buffered)\n"
				    "%s/b *(rw)\n"),
			 0);
	a = world_export(w, t, "a")->rw;
	b = world_export(w, t, "b")->rw;
	assert_int_equal(override_set(o, NULL, "edges", "drop", why), 0);
	assert_int_equal(override_set(o, path, "direct-min", "8k", why), 0);
	assert_int_equal(export_table_apply(t, &load, &w->report), 0);
	assert_int_equal(volume_policy(a).edges, IO_EDGES_DROP);
	assert_int_equal(volume_policy(a).direct_min, 8192);
	assert_int_equal(volume_policy(b).direct_min, IO_DIRECT_MIN_BYTES);
	/* One cannot keep it: none gets it. */
	assert_int_equal(override_set(o, NULL, "torn-free", "yes", why), 0);
	assert_int_equal(override_set(o, NULL, "edges", "dontcache", why), 0);
	assert_int_equal(export_table_apply(t, &load, &w->report), -EOPNOTSUPP);
	assert_false(volume_policy(b).torn_free);
	assert_int_equal(volume_policy(a).edges, IO_EDGES_DROP);
	export_table_put(t);
	overrides_free(o);
	assert_int_equal(umount("b"), 0);
}

/* reload -------------------------------------------------------------- */

static bool
is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* One goes, the other stays as it is. */
static void
withdrawn(void **state)
{
	struct world *w = *state;
	struct export_table *old, *t;
	struct volume *v;
	int fd, gone_fd;

	assert_int_equal(world_load(w, &old, NULL,
				    "%s/a *(rw) 10.0.0.1(ro)\n%s/b *(rw)\n"),
			 0);
	v = world_export(w, old, "a")->rw;
	fd = volume_root_fd(v);
	gone_fd = volume_root_fd(world_export(w, old, "b")->rw);
	assert_int_equal(
		export_table_without(&t, old, world_export(w, old, "b")), 0);
	assert_int_equal(export_table_count(t), 1);
	assert_ptr_equal(world_export(w, t, "a")->rw, v);
	assert_ptr_equal(export_find(t, world_export(w, t, "a")->id),
			 world_export(w, t, "a"));
	assert_null(export_find(t, world_export(w, old, "b")->id));
	assert_int_equal(export_holders(world_export(w, old, "b")), 1);
	assert_int_equal(export_holders(world_export(w, old, "a")), 2);
	export_table_put(old);
	assert_true(is_open(fd));
	assert_false(is_open(gone_fd));
	/* What its clients are was read by the old one. */
	assert_int_equal(world_export(w, t, "a")->conf.client_count, 2);
	/* A load brings it back, and carries over the other. */
	assert_int_equal(world_load(w, &old, t, "%s/a *(rw)\n%s/b *(rw)\n"), 0);
	export_table_put(t);
	assert_ptr_equal(world_export(w, old, "a")->rw, v);
	assert_non_null(world_export(w, old, "b")->rw);
	export_table_put(old);
	assert_false(is_open(fd));
}

static void
carried_over(void **state)
{
	struct world *w = *state;
	struct export_table *old, *t;
	struct volume *v, *gone;
	uint64_t verifier;
	int fd, gone_fd;

	assert_int_equal(world_load(w, &old, NULL, "%s/a *(rw)\n%s/b *(rw)\n"),
			 0);
	v = world_export(w, old, "a")->rw;
	gone = world_export(w, old, "b")->rw;
	fd = volume_root_fd(v);
	gone_fd = volume_root_fd(gone);
	verifier = volume_verifier(v);
	assert_int_equal(world_load(w, &t, old,
				    "%s/a 10.0.0.1(rw,write-mode=buffered) "
				    "*(ro)\n"),
			 0);
	/* one volume in both tables, with the new policy, and a read-only one
	 * that joins it */
	assert_ptr_equal(world_export(w, t, "a")->rw, v);
	assert_int_equal(volume_policy(v).write_mode, IO_BUFFERED);
	assert_int_equal(volume_verifier(v), verifier);
	assert_ptr_equal(volume_counters(world_export(w, t, "a")->ro),
			 volume_counters(v));
	assert_int_equal(volume_verifier(world_export(w, t, "a")->ro),
			 verifier);
	assert_true(is_open(gone_fd));
	export_table_put(old);
	assert_true(is_open(fd));
	assert_false(is_open(gone_fd));
	assert_string_equal(export_volume_path(v),
			    world_export(w, t, "a")->path);
	export_table_put(t);
	assert_false(is_open(fd));
}

/* The other way: read-write joins a read-only one that is in use. */
static void
carried_ro_gets_rw(void **state)
{
	struct world *w = *state;
	struct export_table *old, *t;
	struct volume *v;

	assert_int_equal(world_load(w, &old, NULL, "%s/a *(ro)\n"), 0);
	v = world_export(w, old, "a")->ro;
	assert_int_equal(world_load(w, &t, old, "%s/a 10.0.0.1(rw) *(ro)\n"),
			 0);
	assert_ptr_equal(world_export(w, t, "a")->ro, v);
	assert_int_equal(volume_verifier(v), 1000);
	assert_int_equal(volume_verifier(world_export(w, t, "a")->rw), 1000);
	export_table_put(old);
	export_table_put(t);
}

static void
failure_changes_nothing(void **state)
{
	struct world *w = *state;
	struct export_table *old, *t = NULL;
	struct volume *v;

	assert_int_equal(world_load(w, &old, NULL, "%s/a *(rw)\n"), 0);
	v = world_export(w, old, "a")->rw;
	assert_true(world_load(w, &t, old,
			       "%s/a *(rw,write-mode=buffered)\n%s/b *(rw)\n"
			       "%s/none *(rw)\n") < 0);
	assert_null(t);
	assert_int_equal(export_table_refs(old), 1);
	assert_int_equal(volume_policy(v).write_mode, IO_DIRECT);
	assert_true(is_open(volume_root_fd(v)));
	export_table_put(old);
}

/* One path and one fsid=, but another file system under it now. */
static void
not_carried_to_another_file_system(void **state)
{
	struct world *w = *state;
	struct export_table *old, *t;
	struct volume *v;

	assert_int_equal(mount("t", "b", "tmpfs", 0, NULL), 0);
	assert_int_equal(world_load(w, &old, NULL, "%s/b *(rw,fsid=1)\n"), 0);
	v = world_export(w, old, "b")->rw;
	assert_int_equal(world_load(w, &t, old, "%s/b *(rw,fsid=1)\n"), 0);
	assert_ptr_equal(world_export(w, t, "b")->rw, v);
	export_table_put(t);
	assert_int_equal(umount("b"), 0);
	assert_int_equal(mount("t", "b", "tmpfs", 0, NULL), 0);
	assert_int_equal(world_load(w, &t, old, "%s/b *(rw,fsid=1)\n"), 0);
	assert_ptr_not_equal(world_export(w, t, "b")->rw, v);
	export_table_put(t);
	export_table_put(old);
	assert_int_equal(umount("b"), 0);
}

struct put_message {
	struct message m;
	struct export_table *table;
	atomic_bool ran;
};

static void
put_on_reactor(struct message *m)
{
	struct put_message *p = container_of(m, struct put_message, m);

	export_table_put(p->table);
	atomic_store(&p->ran, true);
}

/* A reactor's last reference is closed by a worker. */
static void
last_put_on_a_reactor(void **state)
{
	struct world *w = *state;
	struct put_message p = { .m.run = put_on_reactor };
	int fd;

	assert_int_equal(world_load(w, &p.table, NULL, "%s/a *(rw)\n"), 0);
	fd = volume_root_fd(world_export(w, p.table, "a")->rw);
	reactor_post(engine_reactor(w->engine, 0), &p.m);
	while (!atomic_load(&p.ran) || is_open(fd))
		usleep(1000);
}

#define TEST(name)                                                             \
	cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(policy_of_line_over_conf_over_default),
		TEST(fallback_is_told),
		TEST(torn_free_is_refused),
		TEST(set_at_run_time),
		TEST(withdrawn),
		TEST(carried_over),
		TEST(carried_ro_gets_rw),
		TEST(failure_changes_nothing),
		TEST(not_carried_to_another_file_system),
		TEST(last_put_on_a_reactor),
	};

	return cmocka_run_group_tests(tests, world_enter, world_leave);
}
