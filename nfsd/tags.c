/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many requests wait for a tag of a block device, from what the kernel
 * shows in debugfs (block/DEVICE/hctxN/tags and sched_tags: ws_active). No
 * state. Where debugfs is not mounted, not readable, or a device is not there
 * (one that is no multi-queue device), nothing is known, which is not 0.
 */
#include "nfsd/counters.h"
#include "nfsd/server.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEBUG_BLOCK   "/sys/kernel/debug/block"
#define DEVICES_MAX   64u
#define QUEUE_PREFIX  "hctx"
#define WAITING_FIELD "ws_active="

/* One file of a hardware queue; false where it has no such field. */
static bool
read_waiting(int queue_fd, const char *name, uint64_t *sum)
{
	const size_t n = sizeof(WAITING_FIELD) - 1;
	bool found = false;
	char line[256];
	FILE *f;
	int fd = openat(queue_fd, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	f = fdopen(fd, "r");
	if (f == NULL) {
		close(fd);
		return false;
	}
	while (!found && fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, WAITING_FIELD, n) != 0)
			continue;
		*sum += strtoull(line + n, NULL, 10);
		found = true;
	}
	(void)fclose(f);
	return found;
}

static bool
read_queue(int device_fd, const char *queue, uint64_t *sum)
{
	int fd = openat(device_fd, queue, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool found;

	if (fd < 0)
		return false;
	found = read_waiting(fd, "tags", sum);
	/* Where there is a scheduler. */
	(void)read_waiting(fd, "sched_tags", sum);
	close(fd);
	return found;
}

int
tags_waiting(int block_fd, const char *device, uint64_t *ret)
{
	int fd = openat(block_fd, device, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct dirent *e;
	unsigned queues = 0;
	uint64_t sum = 0;
	DIR *d;

	if (fd < 0)
		return -ENODATA;
	d = fdopendir(fd);
	if (d == NULL) {
		close(fd);
		return -ENODATA;
	}
	while ((e = readdir(d)) != NULL)
		if (strncmp(e->d_name, QUEUE_PREFIX,
			    sizeof(QUEUE_PREFIX) - 1) == 0)
			queues += read_queue(dirfd(d), e->d_name, &sum);
	closedir(d);
	if (queues == 0)
		return -ENODATA;
	*ret = sum;
	return 0;
}

/* The devices under all exports, each once; how many. */
static unsigned
list_devices(const struct export_table *t, const char *out[DEVICES_MAX])
{
	const struct export *e;
	const char *name;
	unsigned n = 0, i, j;

	for (i = 0; i < export_table_count(t); i++) {
		e = export_table_at(t, i);
		name = volume_facts(e->rw != NULL ? e->rw : e->ro)->device;
		for (j = 0; j < n && strcmp(out[j], name) != 0; j++)
			;
		if (j == n && n < DEVICES_MAX && *name != '\0')
			out[n++] = name;
	}
	return n;
}

int
tags_list(struct server *s, struct counter_sink *k)
{
	struct export_table *t = server_exports_get(s);
	const char *device[DEVICES_MAX];
	unsigned n = list_devices(t, device), i, told = 0;
	uint64_t waiting;
	int fd = open(DEBUG_BLOCK, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (i = 0; fd >= 0 && i < n; i++) {
		if (tags_waiting(fd, device[i], &waiting) < 0)
			continue;
		k->put(k, device[i], waiting);
		told++;
	}
	if (fd >= 0)
		close(fd);
	export_table_put(t);
	return told > 0 ? 0 : -ENODATA;
}
