/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/made_sysfs.h"

#include <assert.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static char root[32];

/* Said aloud: without it every test would test nothing. */
static void
must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	abort();
}

static void
make_dirs(const char *path)
{
	char full[sizeof(root) + PATH_MAX + 2];

	(void)snprintf(full, sizeof(full), "%s/%s/", root, path);
	for (char *p = full + strlen(root) + 1; *p != '\0'; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		(void)mkdir(full, 0755);
		*p = '/';
	}
	must(access(full, F_OK) == 0, full);
}

void
sysfs_make(void)
{
	(void)snprintf(root, sizeof(root), "/tmp/made_sysfs.XXXXXX");
	must(mkdtemp(root) != NULL, root);
	make_dirs("dev/block");
}

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *f)
{
	return remove(path);
}

void
sysfs_remove(void)
{
	must(nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0, root);
}

const char *
sysfs_root(void)
{
	return root;
}

void
sysfs_put(const char *path, const char *attribute, const char *text)
{
	char full[PATH_MAX], *base;
	FILE *f;

	(void)snprintf(full, sizeof(full), "devices/%s/%s", path, attribute);
	base = strrchr(full, '/');
	*base = '\0';
	make_dirs(full);
	(void)snprintf(full, sizeof(full), "%s/devices/%s/%s", root, path,
		       attribute);
	f = fopen(full, "w");
	must(f != NULL, full);
	(void)fprintf(f, "%s\n", text);
	must(fclose(f) == 0, full);
}

void
sysfs_device(const char *path, dev_t dev)
{
	char text[64], full[PATH_MAX], target[PATH_MAX];

	(void)snprintf(text, sizeof(text), "%u:%u", major(dev), minor(dev));
	sysfs_put(path, "dev", text);
	(void)snprintf(full, sizeof(full), "%s/dev/block/%s", root, text);
	(void)snprintf(target, sizeof(target), "../../devices/%s", path);
	must(symlink(target, full) == 0, full);
}

void
sysfs_disk(const char *path, dev_t dev)
{
	static const char *const queue[][2] = {
		{ "logical_block_size", "4096" },
		{ "physical_block_size", "4096" },
		{ "minimum_io_size", "4096" },
		{ "optimal_io_size", "0" },
		{ "chunk_sectors", "0" },
		{ "max_hw_sectors_kb", "2048" },
		{ "max_sectors_kb", "1280" },
		{ "virt_boundary_mask", "4095" },
		{ "dma_alignment", "3" },
		{ "atomic_write_unit_min_bytes", "0" },
		{ "atomic_write_unit_max_bytes", "0" },
		{ "nr_requests", "128" },
		{ "write_cache", "write back" },
		{ "fua", "0" },
		{ "rotational", "0" },
	};
	char name[64];

	sysfs_device(path, dev);
	for (unsigned i = 0; i < sizeof(queue) / sizeof(*queue); i++) {
		(void)snprintf(name, sizeof(name), "queue/%s", queue[i][0]);
		sysfs_put(path, name, queue[i][1]);
	}
	sysfs_put(path, "alignment_offset", "0");
	sysfs_queues(path, 1);
}

void
sysfs_queues(const char *path, unsigned n)
{
	char name[PATH_MAX];

	for (unsigned i = 0; i < n; i++) {
		(void)snprintf(name, sizeof(name), "devices/%s/mq/%u", path, i);
		make_dirs(name);
	}
}

void
sysfs_slave(const char *upper, const char *lower)
{
	const char *base = strrchr(lower, '/');
	char full[PATH_MAX], target[PATH_MAX];

	(void)snprintf(full, sizeof(full), "devices/%s/slaves", upper);
	make_dirs(full);
	(void)snprintf(full, sizeof(full), "%s/devices/%s/slaves/%s", root,
		       upper, base == NULL ? lower : base + 1);
	(void)snprintf(target, sizeof(target), "%s/devices/%s", root, lower);
	must(symlink(target, full) == 0, full);
}
