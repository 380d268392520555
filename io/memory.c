/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory there is for this process: the machine's, and that of its
 * control group and of all groups above it, whose limits hold as well. It knows
 * no file and no mode. proc_meminfo(5), cgroups(7), Linux's cgroup-v2 for the
 * names of its files.
 */
#include "io/flusher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 400

/* The number behind word at the start of a line, or otherwise. */
static uint64_t
number_in(const char *path, const char *word, uint64_t otherwise)
{
	FILE *f = fopen(path, "re");
	char line[160];
	uint64_t n = otherwise;

	if (f == NULL)
		return otherwise;
	while (fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, word, strlen(word)) != 0)
			continue;
		n = strtoull(line + strlen(word), NULL, 10);
		break;
	}
	(void)fclose(f);
	return n;
}

static uint64_t
number_of(const char *dir, const char *name, const char *word,
	  uint64_t otherwise)
{
	char path[PATH_BYTES + 20];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return number_in(path, word, otherwise);
}

/* "0::/system.slice/x.service" in /proc/self/cgroup, below the mount. */
static bool
own_group(const char *proc, const char *cgroups, char path[PATH_BYTES])
{
	char name[PATH_BYTES], line[PATH_BYTES];
	bool found = false;
	FILE *f;

	(void)snprintf(name, sizeof(name), "%.300s/self/cgroup", proc);
	f = fopen(name, "re");
	if (f == NULL)
		return false;
	while (!found && fgets(line, sizeof(line), f) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		found = strncmp(line, "0::/", 4) == 0;
	}
	(void)fclose(f);
	if (found)
		(void)snprintf(path, PATH_BYTES, "%.150s%.240s", cgroups,
			       line + 3);
	return found;
}

/* What one group leaves: files in the page cache can be had back. */
static void
look_at_group(struct memory *m, const char *group)
{
	/* "max", and no such file, are both 0: no limit. */
	uint64_t max = number_of(group, "memory.max", "", 0), used, cache;

	if (max == 0)
		return;
	used = number_of(group, "memory.current", "", 0);
	cache = number_of(group, "memory.stat", "inactive_file ", 0) +
		number_of(group, "memory.stat", "active_file ", 0);
	used = used > cache ? used - cache : 0;
	if (max < m->max)
		m->max = max;
	if (used > max)
		used = max;
	if (max - used < m->room)
		m->room = max - used;
}

void
memory_look_at(struct memory *m, const char *proc, const char *cgroups)
{
	char group[PATH_BYTES], *end;

	m->max = UINT64_MAX;
	m->room = number_of(proc, "meminfo", "MemAvailable:", 0) << 10;
	m->pressure =
		(unsigned)number_of(proc, "pressure/memory", "some avg10=", 0);
	if (!own_group(proc, cgroups, group))
		return;
	m->pressure = (unsigned)number_of(group, "memory.pressure",
					  "some avg10=", m->pressure);
	/* The root has no limit of its own. */
	while (strlen(group) > strlen(cgroups) + 1) {
		look_at_group(m, group);
		end = strrchr(group, '/');
		*end = '\0';
	}
}

void
memory_look(struct memory *m)
{
	memory_look_at(m, "/proc", "/sys/fs/cgroup");
}
