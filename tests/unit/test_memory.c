/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory there is, from made files as /proc and cgroup v2 have them:
 * the machine's, the group's, and what a group above leaves.
 */
#include "engine_harness.h"

#include "io/flusher.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define MIB (1ull << 20)

static char root[64], proc[80], cgroups[80];

static void
put(const char *name, const char *text)
{
	char path[200];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", root, name);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void
make(const char *name)
{
	char path[200];

	(void)snprintf(path, sizeof(path), "%s/%s", root, name);
	assert_int_equal(mkdir(path, 0755), 0);
}

static struct memory
look(void)
{
	struct memory m = { 0 };

	memory_look_at(&m, proc, cgroups);
	return m;
}

static int
set_up(void **state)
{
	(void)state;
	(void)snprintf(root, sizeof(root), "/tmp/memory.XXXXXX");
	if (mkdtemp(root) == NULL)
		return -1;
	(void)snprintf(proc, sizeof(proc), "%s/proc", root);
	(void)snprintf(cgroups, sizeof(cgroups), "%s/cgroup", root);
	make("proc");
	make("proc/self");
	make("proc/pressure");
	make("cgroup");
	make("cgroup/slice");
	make("cgroup/slice/nvnfsd.service");
	put("proc/meminfo", "MemTotal:        4194304 kB\n"
			    "MemFree:          100000 kB\n"
			    "MemAvailable:    2097152 kB\n");
	put("proc/self/cgroup", "1:name=systemd:/other\n"
				"0::/slice/nvnfsd.service\n");
	put("proc/pressure/memory",
	    "some avg10=3.50 avg60=0.00 avg300=0.00 total=1\n"
	    "full avg10=9.00 avg60=0.00 avg300=0.00 total=1\n");
	return 0;
}

static int
tear_down(void **state)
{
	char command[100];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

static void
machine_only(void **state)
{
	struct memory m = look();

	(void)state;
	assert_true(m.max == UINT64_MAX);
	assert_int_equal(m.room, 2048 * MIB);
	assert_int_equal(m.pressure, 3);
	put("cgroup/slice/nvnfsd.service/memory.max", "max\n");
	assert_true(look().max == UINT64_MAX);
}

/* Both lists of its files can be had back; "inactive_file" holds the name of
 * the other. */
static void
own_limit(void **state)
{
	struct memory m;

	(void)state;
	put("cgroup/slice/nvnfsd.service/memory.max", "1073741824\n");
	put("cgroup/slice/nvnfsd.service/memory.current", "943718400\n");
	put("cgroup/slice/nvnfsd.service/memory.stat",
	    "anon 1\nfile 2\ninactive_file 104857600\n"
	    "active_file 209715200\nunevictable 3\n");
	put("cgroup/slice/nvnfsd.service/memory.pressure",
	    "some avg10=41.07 avg60=0.00 avg300=0.00 total=1\n");
	m = look();
	assert_int_equal(m.max, 1024 * MIB);
	assert_int_equal(m.room, (1024 - 900 + 100 + 200) * MIB);
	assert_int_equal(m.pressure, 41);
}

static void
limit_above(void **state)
{
	struct memory m;

	(void)state;
	put("cgroup/slice/memory.max", "536870912\n");
	put("cgroup/slice/memory.current", "500000000000\n");
	put("cgroup/slice/memory.stat", "inactive_file 0\nactive_file 0\n");
	m = look();
	assert_int_equal(m.max, 512 * MIB);
	assert_int_equal(m.room, 0);
	/* The machine has less than both. */
	put("cgroup/slice/memory.current", "0\n");
	put("proc/meminfo", "MemAvailable:    1024 kB\n");
	assert_int_equal(look().room, MIB);
}

static void
without_groups(void **state)
{
	(void)state;
	put("proc/self/cgroup", "4:memory:/v1\n");
	assert_true(look().max == UINT64_MAX);
	assert_int_equal(look().pressure, 3);
	put("proc/self/cgroup", "0::/\n");
	assert_true(look().max == UINT64_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(machine_only),
		cmocka_unit_test(own_limit),
		cmocka_unit_test(limit_above),
		cmocka_unit_test(without_groups),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
