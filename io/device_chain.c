/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain from a file system to the devices that store its data: partitions
 * and their disks, what dm and md stand on, and what holds a loop device's
 * file. The object is struct device_chain, a list in which each node names the
 * one above it: filled once, when a volume opens, and constant after that. It
 * draws no conclusions: device_plan.c does.
 */
#include "io/device.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/btrfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define NONE DEVICE_NODES_MAX

/* One run over the tree. */
struct walk {
	struct device_chain *chain;
	const char *sys;
};

static struct device_node *
find(struct device_chain *c, dev_t dev)
{
	for (unsigned i = 0; i < c->count; i++)
		if (c->node[i].dev == dev)
			return &c->node[i];
	return NULL;
}

/* dir is below node above (NONE: under the file system itself). What two stand
 * on is there once. Its index, or NONE where there is no room. */
static unsigned
add(struct walk *w, unsigned above, int dir, bool backing)
{
	struct device_chain *c = w->chain;
	struct device_node *n = &c->node[c->count], *known;

	if (c->count == DEVICE_NODES_MAX) {
		c->cut_short = true;
		return NONE;
	}
	device_node_read(n, dir);
	if (above != NONE)
		c->node[above].below++;
	known = find(c, n->dev);
	if (known != NULL)
		return (unsigned)(known - c->node);
	n->above = above == NONE ? c->count : above;
	n->backing = backing || (above != NONE && c->node[above].backing);
	return c->count++;
}

static unsigned
add_path(struct walk *w, unsigned above, int at, const char *path)
{
	int dir = device_open_dir(at, path);
	unsigned i;

	if (dir < 0)
		return NONE;
	i = add(w, above, dir, false);
	close(dir);
	return i;
}

static int
by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int
not_hidden(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

/* All of the links in the directory path of dir, by name, so that the answer
 * does not change. */
static void
add_links(struct walk *w, unsigned above, int dir, const char *path)
{
	struct dirent **names = NULL;
	char link[PATH_MAX];
	int n = scandirat(dir, path, &names, not_hidden, by_name);

	for (int i = 0; i < n; i++) {
		(void)snprintf(link, sizeof(link), "%s/%s", path,
			       names[i]->d_name);
		(void)add_path(w, above, dir, link);
		free(names[i]);
	}
	free(names);
}

/* The device that holds a loop device's file, as far as its path can be
 * trusted: another root or a removed file leave the chain at the loop. */
static void
add_backing(struct walk *w, unsigned above)
{
	struct stat st;
	int dir;

	if (stat(w->chain->node[above].detail, &st) != 0)
		return;
	dir = device_open(w->sys, S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev);
	if (dir < 0)
		return;
	(void)add(w, above, dir, true);
	close(dir);
}

/* A partition is limited as its disk is. */
static void
add_disk(struct walk *w, unsigned above, int dir)
{
	struct device_chain *c = w->chain;
	unsigned disk = add_path(w, above, dir, "..");

	if (disk != NONE)
		c->node[above].limits = c->node[disk].limits;
}

/* What node i stands on. */
static void
expand(struct walk *w, unsigned i)
{
	struct device_node *n = &w->chain->node[i];
	int dir = device_open(w->sys, n->dev);

	if (dir < 0)
		return;
	if (n->kind == DEVICE_PARTITION)
		add_disk(w, i, dir);
	else if (n->kind == DEVICE_LOOP)
		add_backing(w, i);
	else
		add_links(w, i, dir, "slaves");
	close(dir);
}

/* Where sysfs keeps the devices of a btrfs. */
static bool
btrfs_path(char path[PATH_MAX], const char *sys, int root_fd)
{
	struct btrfs_ioctl_fs_info_args a = { 0 };
	int n;

	if (root_fd < 0 || ioctl(root_fd, BTRFS_IOC_FS_INFO, &a) != 0)
		return false;
	n = snprintf(path, PATH_MAX, "%s/fs/btrfs/", sys);
	for (unsigned i = 0; i < BTRFS_FSID_SIZE; i++)
		n += snprintf(path + n, PATH_MAX - (size_t)n, "%s%02x",
			      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
			      a.fsid[i]);
	(void)snprintf(path + n, PATH_MAX - (size_t)n, "/devices");
	return true;
}

static void
add_first(struct walk *w, dev_t dev, int root_fd)
{
	char path[PATH_MAX];
	int dir = device_open(w->sys, dev);

	if (dir >= 0) {
		(void)add(w, NONE, dir, false);
		close(dir);
	} else if (btrfs_path(path, w->sys, root_fd)) {
		add_links(w, NONE, AT_FDCWD, path);
	}
}

void
device_chain_read(struct device_chain *ret, const char *sys, dev_t dev,
		  int root_fd)
{
	struct walk w = { .chain = ret, .sys = sys };

	memset(ret, 0, sizeof(*ret));
	add_first(&w, dev, root_fd);
	for (unsigned i = 0; i < ret->count; i++)
		expand(&w, i);
}

const struct device_node *
device_chain_top(const struct device_chain *c)
{
	for (unsigned i = 0; i < c->count; i++)
		if (c->node[i].kind != DEVICE_PARTITION)
			return &c->node[i];
	return NULL;
}

bool
device_is_leaf(const struct device_node *n)
{
	return !n->backing && (n->below == 0 || n->kind == DEVICE_LOOP);
}

uint32_t
device_requests(const struct device_limits *l)
{
	uint64_t n = (uint64_t)l->queues * l->queue_requests;

	return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

const struct device_node *
device_chain_narrow(const struct device_chain *c)
{
	const struct device_node *narrow = NULL;

	for (unsigned i = 0; i < c->count; i++) {
		const struct device_node *n = &c->node[i];
		uint32_t requests = device_requests(&n->limits);

		if (n->kind == DEVICE_PARTITION || n->backing || requests == 0)
			continue;
		if (narrow == NULL ||
		    requests < device_requests(&narrow->limits))
			narrow = n;
	}
	return narrow;
}
