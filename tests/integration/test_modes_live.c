/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modes that change while clients write: no byte is lost, no call fails, no
 * verifier moves. Two exports of one file system are used as mix.h does, with
 * truncations and local readers and writers, while a hundred times a second
 * some of the modes are set over the control socket, of one export or of all.
 * On XFS and ext4, by both engines. NVNFSD_TEST_SECONDS makes each run at least
 * that long.
 */
#include "mix.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define OPERATIONS_MIN 3000u
#define FILES          2u
#define CHANGES_MIN    100u
#define PAUSE_US       10000u

static const struct key {
	const char *name;
	const char *value[5];
	unsigned values;
} keys[] = {
	{ "read-mode", { "buffered", "dontcache", "direct" }, 3 },
	{ "write-mode", { "buffered", "dontcache", "direct", "direct" }, 4 },
	{ "edges", { "drop", "dontcache", "buffered", "join", "join" }, 5 },
	{ "direct-min", { "0", "4k", "32k", "64k", "1M" }, 5 },
	{ "stable-floor", { "none", "none", "none", "data", "file" }, 5 },
	{ "dirty-max", { "1M", "2M", "64M" }, 3 },
	{ "flush-share", { "1", "12", "100" }, 3 },
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))

struct world {
	struct harness *h;
	struct mix mix;
	struct mix_file file[FILES];
	char table[300];
	char dir[FILES][300];
	pthread_t changer;
	_Atomic bool enough;
	uint64_t seed;
	bool join; /* edges=join is among the modes, and nobody comes locally */
	/* the changer's, until it is joined */
	uint64_t changes;
	char trouble[300]; /* the first */
};

/* the changer: no assertion of cmocka's on this thread ----------------------
 */

static int
control_open(const struct world *w)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%.80s/state/ctl",
		       w->h->dir);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* "KEY": "VALUE" of one to three keys. */
static void
random_set(struct world *w, char *text, size_t bytes)
{
	unsigned first = (unsigned)(mix_random(&w->seed) % KEYS);
	unsigned n = 1 + (unsigned)(mix_random(&w->seed) % 3);
	size_t at = 0;

	for (unsigned i = 0; i < n; i++) {
		const struct key *k = &keys[(first + i) % KEYS];
		unsigned values = k->values;
		uint64_t v;

		if (strcmp(k->name, "edges") == 0 && !w->join)
			values -= 2;
		v = mix_random(&w->seed) % values;

		at += (size_t)snprintf(text + at, bytes - at, "%s\"%s\":\"%s\"",
				       i > 0 ? "," : "", k->name, k->value[v]);
	}
}

static void
random_request(struct world *w, char *text, size_t bytes)
{
	uint64_t which = mix_random(&w->seed) % (FILES + 1);
	char set[256], export[360] = "";

	random_set(w, set, sizeof(set));
	if (which < FILES)
		(void)snprintf(export, sizeof(export), "\"export\":\"%s\",",
			       w->dir[which]);
	(void)snprintf(text, bytes,
		       "{\"command\":\"set\",\"args\":{%s\"set\":{%s}}}\n",
		       export, set);
}

/* A line each way. */
static bool
ask(int fd, const char *text, char *reply, size_t bytes)
{
	size_t at = 0;
	ssize_t n;

	if (send(fd, text, strlen(text), MSG_NOSIGNAL) != (ssize_t)strlen(text))
		return false;
	do {
		n = read(fd, reply + at, bytes - 1 - at);
		if (n <= 0)
			return false;
		at += (size_t)n;
		reply[at] = '\0';
	} while (strchr(reply, '\n') == NULL && at < bytes - 1);
	return strstr(reply, "\"ok\":true") != NULL;
}

static void *
changer_main(void *arg)
{
	struct world *w = arg;
	char text[800], reply[4096] = "";
	int fd = control_open(w);

	while (fd >= 0 && !atomic_load(&w->enough)) {
		random_request(w, text, sizeof(text));
		if (!ask(fd, text, reply, sizeof(reply))) {
			(void)snprintf(w->trouble, sizeof(w->trouble),
				       "%.150s: %.140s", text, reply);
			break;
		}
		w->changes++;
		usleep(PAUSE_US);
	}
	if (fd < 0)
		(void)snprintf(w->trouble, sizeof(w->trouble), "no socket");
	else
		close(fd);
	return NULL;
}

/* the run ------------------------------------------------------------------ */

static void
write_table(struct world *w)
{
	FILE *f;

	(void)snprintf(w->table, sizeof(w->table), "%s/table", w->h->dir);
	f = fopen(w->table, "w");
	assert_non_null(f);
	for (unsigned i = 0; i < FILES; i++) {
		char name[8];

		(void)snprintf(name, sizeof(name), "m%u", i);
		(void)snprintf(w->dir[i], sizeof(w->dir[i]), "%s",
			       harness_path(w->h, name));
		assert_int_equal(mkdir(w->dir[i], 0777), 0);
		assert_true(fprintf(f, "%s *(rw,no_root_squash,insecure)\n",
				    w->dir[i]) > 0);
	}
	assert_int_equal(fclose(f), 0);
}

static void
make_files(struct world *w)
{
	struct raw *r = flow_raw(w->mix.flow, 0);

	for (unsigned i = 0; i < FILES; i++) {
		struct raw_fh dir;
		char path[400];

		assert_int_equal(raw_mount(r, w->dir[i], &dir), 0);
		(void)snprintf(path, sizeof(path), "%s/f", w->dir[i]);
		mix_file_init(&w->file[i], r, &dir, path, "f");
		w->file[i].remote = w->join;
	}
}

static void
start(struct world *w, const char *engine)
{
	write_table(w);
	harness_arg(w->h, "--exports");
	harness_arg(w->h, w->table);
	harness_arg(w->h, "--engine");
	harness_arg(w->h, engine);
	harness_start(w->h);
	mix_setup(&w->mix, w->h, w->file, FILES);
	w->mix.operations_min = OPERATIONS_MIN;
	w->mix.seconds = mix_seconds(3);
	make_files(w);
	assert_int_equal(pthread_create(&w->changer, NULL, changer_main, w), 0);
}

static void
finish(struct world *w)
{
	atomic_store(&w->enough, true);
	pthread_join(w->changer, NULL);
	if (w->trouble[0] != '\0')
		fail_msg("%s", w->trouble);
	assert_true(w->changes >= CHANGES_MIN);
}

static void
run(const char *fs, unsigned sector, const char *engine, bool join)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->h = harness_new(NULL);
	if (!harness_mount(w->h, fs, sector, 512)) {
		harness_free(w->h);
		free(w);
		skip();
		return;
	}
	w->join = join;
	w->seed = w->mix.seed = 0x2545f4914f6cdd1du ^ sector;
	start(w, engine);
	mix_run(&w->mix);
	finish(w);
	print_message("%s/%u %s%s: %" PRIu64 " changes, %" PRIu64
		      " WRITEs, %" PRIu64 " READs, %" PRIu64 " COMMITs\n",
		      fs, sector, engine, join ? " join" : "", w->changes,
		      w->mix.writes, w->mix.reads, w->mix.commits);
	mix_end(&w->mix, w->h);
	free(w);
}

static void
test_xfs_4096(void **state)
{
	run("xfs", 4096, "uring", false);
}

static void
test_xfs_4096_join(void **state)
{
	run("xfs", 4096, "uring", true);
}

static void
test_ext4_4096_join(void **state)
{
	run("ext4", 4096, "uring", true);
}

static void
test_xfs_512_threads_join(void **state)
{
	run("xfs", 512, "threads", true);
}

static void
test_xfs_512(void **state)
{
	run("xfs", 512, "uring", false);
}

static void
test_ext4_4096(void **state)
{
	run("ext4", 4096, "uring", false);
}

static void
test_xfs_4096_threads(void **state)
{
	run("xfs", 4096, "threads", false);
}

static void
test_ext4_512_threads(void **state)
{
	run("ext4", 512, "threads", false);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_xfs_4096),
		cmocka_unit_test(test_xfs_512),
		cmocka_unit_test(test_xfs_4096_join),
		cmocka_unit_test(test_ext4_4096_join),
		cmocka_unit_test(test_xfs_512_threads_join),
		cmocka_unit_test(test_ext4_4096),
		cmocka_unit_test(test_xfs_4096_threads),
		cmocka_unit_test(test_ext4_512_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
