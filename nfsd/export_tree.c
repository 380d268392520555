/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees: private clones of an exported directory's mount, and the volumes on
 * them.
 *
 * A clone is a mount of its own that nobody else sees, not recursive, so that
 * what is mounted below the directory does not show in it; nosuid and nodev;
 * and read-only for the clients that have `ro`, so that the kernel refuses
 * their changes. It also keeps the file system from going away at a umount
 * until the export is withdrawn. A tree is made by a table's load, counted by
 * the tables that have it, and closed by whoever gives the last reference back.
 *
 * open_tree(2), mount_setattr(2).
 */
#include "nfsd/export.h"
#include "nfsd/override.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#define CLOSE_NS_MAX (30ull * 1000000000)
#define POLICIES     3u /* that go over one another */

static_assert((int)CONF_BUFFERED == (int)IO_BUFFERED &&
		      (int)CONF_DONTCACHE == (int)IO_DONTCACHE &&
		      (int)CONF_DIRECT == (int)IO_DIRECT &&
		      (int)CONF_AUTO == (int)IO_AUTO,
	      "modes");
static_assert((int)CONF_EDGES_DROP == (int)IO_EDGES_DROP &&
		      (int)CONF_EDGES_DONTCACHE == (int)IO_EDGES_DONTCACHE &&
		      (int)CONF_EDGES_BUFFERED == (int)IO_EDGES_BUFFERED &&
		      (int)CONF_EDGES_JOIN == (int)IO_EDGES_JOIN,
	      "edges");
static_assert((int)CONF_STABLE_NONE == (int)IO_UNSTABLE &&
		      (int)CONF_STABLE_DATA == (int)IO_DATA_SYNC &&
		      (int)CONF_STABLE_FILE == (int)IO_FILE_SYNC,
	      "stability");

/* trees --------------------------------------------------------------- */

static struct export_tree *
tree_new(struct engine *engine, const char *path)
{
	struct export_tree *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->path = strdup(path);
	if (!t->path) {
		free(t);
		return NULL;
	}
	atomic_init(&t->refs, 1);
	t->engine = engine;
	return t;
}

static struct export_tree *
tree_get(struct export_tree *t)
{
	atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
	return t;
}

static void
tree_free(struct export_tree *t)
{
	free(t->path);
	free(t);
}

static void
tree_put(struct export_tree *t)
{
	int r;

	if (!t ||
	    atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1)
		return;
	r = file_close_all(t->engine, t->volume, monotonic_ns() + CLOSE_NS_MAX);
	if (r == -EBUSY) {
		/* Files hold the volume, and a late error of theirs names this
		 * tree: both stay. */
		log_msg(LOG_WARNING_, "%s: still busy, not let go", t->path);
		return;
	}
	volume_put(t->volume);
	tree_free(t);
}

static const struct export_tree *
tree_of(const struct volume *v)
{
	return volume_user(v);
}

const char *
export_volume_path(const struct volume *v)
{
	return tree_of(v)->path;
}

void
export_close(struct export *e)
{
	tree_put(e->ro_tree);
	tree_put(e->rw_tree);
	e->ro_tree = e->rw_tree = NULL;
	e->ro = e->rw = NULL;
}

void
export_share(struct export *e, const struct export *from)
{
	*e = *from;
	if (e->ro_tree)
		tree_get(e->ro_tree);
	if (e->rw_tree)
		tree_get(e->rw_tree);
}

unsigned
export_holders(const struct export *e)
{
	unsigned ro = e->ro_tree ? atomic_load(&e->ro_tree->refs) : 0;
	unsigned rw = e->rw_tree ? atomic_load(&e->rw_tree->refs) : 0;

	return ro > rw ? ro : rw;
}

/* clones and volumes -------------------------------------------------- */

/* A plain descriptor of the clone's root (open_by_handle_at refuses the O_PATH
 * one that open_tree gives). */
static int
clone_open(int dir_fd, bool read_only)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
			    (read_only ? MOUNT_ATTR_RDONLY : 0),
	};
	int tree =
		open_tree(dir_fd, "",
			  AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	int fd = -1, r = 0;

	if (tree < 0)
		return -errno;
	if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		r = -errno;
	if (r == 0) {
		fd = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = fd < 0 ? -errno : fd;
	}
	close(tree);
	return r;
}

static int
root_open(struct export_loader *l, const struct export_place *p, bool read_only)
{
	int fd = clone_open(p->fd, read_only), r;

	if (fd >= 0)
		return fd;
	r = openat(p->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r < 0)
		return -errno;
	if (!l->warned_plain) {
		conf_report_warning(l->r, p->conf->file, p->conf->line,
				    "%s: no private clone of its mount (%s): "
				    "exported as it is mounted",
				    p->conf->path, strerror(-fd));
		l->warned_plain = true;
	}
	return r;
}

/* What was set at run time over the export line over nvnfsd.conf over defaults.
 */
static void
policy_make(struct io_policy *out, const struct export_load *load,
	    const struct conf_export *export, uint64_t fs_type)
{
	struct conf_policy set;
	const struct conf_policy *from[POLICIES] = {
		&load->conf->policy, &export->clients[0].options.policy, &set
	};
	/* btrfs takes O_DIRECT, punts it and often buffers all the same. */
	enum io_mode mode =
		fs_type == BTRFS_SUPER_MAGIC ? IO_BUFFERED : IO_DIRECT;

	overrides_policy(load->overrides, export->path, &set);
	*out = (struct io_policy){
		.read_mode = mode,
		.write_mode = mode,
		.edges = IO_EDGES_DROP,
		.direct_min = IO_DIRECT_MIN_BYTES,
		.stable_floor = IO_UNSTABLE,
	};
	for (unsigned i = 0; i < POLICIES; i++) {
		if (from[i]->has_read_mode)
			out->read_mode = (enum io_mode)from[i]->read_mode;
		if (from[i]->has_write_mode)
			out->write_mode = (enum io_mode)from[i]->write_mode;
		if (from[i]->has_edges)
			out->edges = (enum io_edges)from[i]->edges;
		if (from[i]->has_direct_min)
			out->direct_min = from[i]->direct_min;
		if (from[i]->has_stable_floor)
			out->stable_floor =
				(enum io_stable)from[i]->stable_floor;
		if (from[i]->has_torn_free)
			out->torn_free = from[i]->torn_free;
		if (from[i]->has_dirty_max)
			out->dirty_max = from[i]->dirty_max;
		if (from[i]->has_flush_share)
			out->flush_share = from[i]->flush_share;
	}
}

/* fsid= or a restored image can give another file system the old id. */
static bool
same_directory(const struct volume *v, const struct export_place *p)
{
	struct stat st;

	return fstat(volume_root_fd(v), &st) == 0 &&
	       st.st_dev == p->st.st_dev && st.st_ino == p->st.st_ino;
}

static struct export_tree *
tree_carry(const struct export_loader *l, const struct export_place *p,
	   uint64_t id, bool read_only)
{
	const struct export *old = l->old ? export_find(l->old, id) : NULL;
	struct export_tree *t;

	if (!old || strcmp(old->path, p->conf->path) != 0)
		return NULL;
	t = read_only ? old->ro_tree : old->rw_tree;
	return t && same_directory(t->volume, p) ? tree_get(t) : NULL;
}

static int
tree_make(struct export_loader *l, const struct export_place *p, uint64_t id,
	  bool read_only, struct export_tree **ret)
{
	const struct export_load *load = l->load;
	struct export_tree *t = tree_new(load->engine, p->conf->path);
	struct io_policy policy;
	int fd, r;

	if (!t)
		return -ENOMEM;
	fd = root_open(l, p, read_only);
	if (fd < 0) {
		tree_free(t);
		return fd;
	}
	policy_make(&policy, load, p->conf, p->fs_type);
	r = volume_new(&t->volume, load->engine, fd, read_only,
		       load->verifier(id, load->arg), &policy, t);
	if (r < 0) {
		close(fd);
		tree_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

static bool
wanted(const struct conf_export *conf, bool rw)
{
	for (unsigned i = 0; i < conf->client_count; i++) {
		if (conf->clients[i].options.rw == rw)
			return true;
	}
	return false;
}

static int
tree_open(struct export_loader *l, const struct export_place *p, uint64_t id,
	  bool read_only, struct export_tree **ret)
{
	if (!wanted(p->conf, !read_only))
		return 0;
	*ret = tree_carry(l, p, id, read_only);
	return *ret ? 0 : tree_make(l, p, id, read_only, ret);
}

/* What a policy promises and the place cannot keep is refused. */
static int
check_promises(struct export_loader *l, const struct conf_export *c,
	       const struct volume *v)
{
	struct io_policy policy;
	const char *why;

	if (!v)
		return 0;
	policy_make(&policy, l->load, c, volume_facts(v)->fs_type);
	why = volume_refuses(v, &policy);
	if (!why)
		return 0;
	conf_report_error(l->r, c->file, c->line,
			  "%s: torn-free is refused: %s", c->path, why);
	return -EOPNOTSUPP;
}

/* Both, where both are wanted; what is new shares what the other has counted
 * and its verifier. */
int
export_trees_open(struct export_loader *l, const struct export_place *p,
		  struct export *e)
{
	const struct conf_export *c = p->conf;
	bool ro_is_old;
	/* The writable one first: a kept verifier is given out once. */
	int r = tree_open(l, p, e->id, false, &e->rw_tree);

	if (r == 0)
		r = tree_open(l, p, e->id, true, &e->ro_tree);
	ro_is_old = e->ro_tree && atomic_load(&e->ro_tree->refs) > 1;
	if (r < 0)
		conf_report_error(l->r, c->file, c->line, "%s: %s", c->path,
				  strerror(-r));
	else
		r = check_promises(l, c,
				   e->rw_tree ? e->rw_tree->volume : NULL);
	if (r < 0) {
		export_close(e);
		return r;
	}
	e->ro = e->ro_tree ? e->ro_tree->volume : NULL;
	e->rw = e->rw_tree ? e->rw_tree->volume : NULL;
	if (e->ro && e->rw && !ro_is_old)
		volume_share(e->ro, e->rw);
	else if (e->ro && e->rw && atomic_load(&e->rw_tree->refs) == 1)
		volume_share(e->rw, e->ro);
	return 0;
}

static void
apply_one(struct export_loader *l, struct export *e, struct volume *v)
{
	const struct conf_export *c = &e->conf;
	struct io_policy policy;
	const char *fallback;

	if (!v)
		return;
	policy_make(&policy, l->load, c, volume_facts(v)->fs_type);
	fallback = volume_set_policy(v, &policy);
	if (fallback)
		conf_report_warning(l->r, c->file, c->line, "%s: %s", c->path,
				    fallback);
}

int
export_check(struct export_loader *l, const struct export *e)
{
	return check_promises(l, &e->conf, e->rw);
}

void
export_apply(struct export_loader *l, struct export *e)
{
	apply_one(l, e, e->rw);
	apply_one(l, e, e->ro);
}
