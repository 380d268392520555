/* SPDX-License-Identifier: Apache-2.0 */
/* The same by system calls: create, statx, readdir with statx, unlink. */
#include "tests/bench/meta.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int dir_fd = -1;

void
meta_local_open(const struct meta *m)
{
	int base = open(m->local, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (base < 0 || (mkdirat(base, m->dir, 0755) < 0 && errno != EEXIST))
		meta_fail(m->local, strerror(errno));
	dir_fd = openat(base, m->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		meta_fail(m->dir, strerror(errno));
	(void)close(base);
}

static void
name_do(enum meta_op op, const char *name)
{
	struct statx st;
	int rc;

	if (op == META_CREATE) {
		rc = openat(dir_fd, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
		if (rc >= 0)
			(void)close(rc);
	} else if (op == META_STAT) {
		rc = statx(dir_fd, name, 0, STATX_BASIC_STATS, &st);
	} else {
		rc = unlinkat(dir_fd, name, 0);
	}
	if (rc < 0)
		meta_fail(name, strerror(errno));
}

static void
list_do(struct meta *m)
{
	DIR *d = fdopendir(dir_fd);
	const struct dirent *e;
	struct statx st;

	if (d == NULL)
		meta_fail(m->dir, strerror(errno));
	while ((e = readdir(d)) != NULL) {
		if (statx(dir_fd, e->d_name, AT_SYMLINK_NOFOLLOW,
			  STATX_BASIC_STATS, &st) < 0)
			meta_fail(e->d_name, strerror(errno));
		m->listed += e->d_name[0] != '.';
		m->operations++;
	}
	(void)closedir(d);
}

void
meta_local_run(struct meta *m)
{
	char name[32];

	if (m->op == META_LIST) {
		list_do(m);
		return;
	}
	for (uint64_t i = 0; i < m->entries; i++) {
		meta_name(i, name, sizeof(name));
		name_do(m->op, name);
		m->operations++;
	}
}
