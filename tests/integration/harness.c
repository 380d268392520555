/* SPDX-License-Identifier: Apache-2.0 */
/* See harness.h: the server's process and what is under it. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int
harness_sh(const char *format, ...)
{
	char *command;
	va_list ap;
	int rc;

	va_start(ap, format);
	rc = vasprintf(&command, format, ap);
	va_end(ap);
	assert_true(rc >= 0);
	rc = system(command); /* NOLINT(cert-env33-c): a test's own text */
	free(command);
	assert_true(rc != -1);
	return WIFEXITED(rc) ? WEXITSTATUS(rc) : 128;
}

/* Those that a failed test left behind end with the process. */
static struct harness *live;

static void
free_live(void)
{
	while (live != NULL)
		harness_free(live);
}

/* Interrupted from outside (Ctrl-C, a timeout): what the test made goes too.
 * exit() is not for signal handlers, but nothing else would clean up. */
static void
end_test(int sig)
{
	exit(128 + sig); /* NOLINT(bugprone-signal-handler,cert-sig30-c) */
}

struct harness *
harness_new(const char *options)
{
	static bool registered;
	struct harness *h = calloc(1, sizeof(*h));

	assert_non_null(h);
	if (!registered) {
		assert_int_equal(atexit(free_live), 0);
		(void)signal(SIGINT, end_test);
		(void)signal(SIGTERM, end_test);
		(void)signal(SIGHUP, end_test);
	}
	registered = true;
	h->next = live;
	live = h;
	snprintf(h->dir, sizeof(h->dir), "%s/nvnfsd-test-XXXXXX",
		 getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(h->dir));
	assert_int_equal(chmod(h->dir, 0755), 0);
	snprintf(h->export, sizeof(h->export), "%s/export", h->dir);
	assert_int_equal(mkdir(h->export, 0777), 0);
	assert_int_equal(chmod(h->export, 0777), 0);
	snprintf(h->client, sizeof(h->client), "*(%s)",
		 options != NULL ? options : HARNESS_OPTIONS);
	return h;
}

void
harness_conf(struct harness *h, const char *text)
{
	FILE *f;

	snprintf(h->conf, sizeof(h->conf), "%s/conf", h->dir);
	f = fopen(h->conf, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

void
harness_arg(struct harness *h, const char *arg)
{
	assert_true(h->arg_count + 1 < HARNESS_ARGS_MAX);
	h->args[h->arg_count++] = arg;
}

void
harness_env(struct harness *h, const char *name_value)
{
	assert_true(h->env_count + 1 < 8);
	h->env[h->env_count++] = name_value;
}

static bool
read_word(const char *command, char *out, size_t n)
{
	FILE *f = popen(command, "r"); /* NOLINT(cert-env33-c) */
	bool ok;

	assert_non_null(f);
	ok = fgets(out, (int)n, f) != NULL;
	out[ok ? strcspn(out, "\n") : 0] = '\0';
	return pclose(f) == 0 && ok;
}

/* A loop device over the image, and held open: detached while in use, it goes
 * with its last user, so that of a test that was killed umount leaves nothing.
 */
static bool
attach(struct harness *h)
{
	char command[900];

	snprintf(command, sizeof(command),
		 "losetup -b %u --show -f %s 2>/dev/null", h->sector, h->image);
	if (!read_word(command, h->loop, sizeof(h->loop))) {
		h->loop[0] = '\0';
		return false;
	}
	h->loop_fd = open(h->loop, O_RDONLY | O_CLOEXEC);
	assert_true(h->loop_fd >= 0);
	assert_int_equal(harness_sh("losetup -d %s", h->loop), 0);
	return true;
}

static void
detach(struct harness *h)
{
	if (h->loop[0] != '\0')
		assert_int_equal(close(h->loop_fd), 0);
	h->loop[0] = '\0';
}

bool
harness_mount(struct harness *h, const char *fs, unsigned sector, unsigned mib)
{
	const char *force = strcmp(fs, "ext4") == 0 ? "-F" : "-f";

	if (h->image[0] == '\0')
		snprintf(h->image, sizeof(h->image), "%s/image", h->dir);
	assert_int_equal(harness_sh("truncate -s %uM %s", mib, h->image), 0);
	h->sector = sector;
	if (geteuid() != 0 || !attach(h)) {
		print_message("skip: no loop device can be had here\n");
		return false;
	}
	if (harness_sh("mkfs.%s -q %s %s >%s/mkfs.log 2>&1 && mount %s %s", fs,
		       force, h->loop, h->dir, h->loop, h->export) != 0) {
		print_message("skip: no %s can be made or mounted here\n", fs);
		return false;
	}
	assert_int_equal(chmod(h->export, 0777), 0);
	return true;
}

void
harness_remount(struct harness *h)
{
	assert_int_equal(h->pid, 0);
	assert_int_equal(harness_sh("umount %s && mount %s %s", h->export,
				    h->loop, h->export),
			 0);
}

void
harness_exchange(struct harness *h, const char *name)
{
	assert_int_equal(h->pid, 0);
	assert_int_equal(harness_sh("umount %s", h->export), 0);
	detach(h);
	assert_int_equal(harness_sh("mv %s/%s %s", h->dir, name, h->image), 0);
	assert_true(attach(h));
	assert_int_equal(harness_sh("mount %s %s", h->loop, h->export), 0);
}

static void
child(struct harness *h, int out)
{
	const char *argv[HARNESS_ARGS_MAX + 16];
	char line[800], state[300], log[300];
	const char *binary = getenv("NVNFSD");
	unsigned n = 0, i;
	int fd;

	snprintf(line, sizeof(line), "%s %s", h->export, h->client);
	snprintf(state, sizeof(state), "%s/state", h->dir);
	snprintf(log, sizeof(log), "%s/log", h->dir);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
	if (fd < 0 || dup2(fd, 2) < 0 || dup2(out, 1) < 0)
		_exit(99);
	argv[n++] = binary;
	argv[n++] = "--no-rpcbind";
	argv[n++] = "--listen";
	argv[n++] = "127.0.0.1";
	argv[n++] = "--port";
	argv[n++] = "0";
	argv[n++] = "--state-dir";
	argv[n++] = state;
	argv[n++] = "--config";
	argv[n++] = h->conf[0] != '\0' ? h->conf : "/dev/null";
	argv[n++] = h->exports[0] != '\0' ? "--exports" : "--export";
	argv[n++] = h->exports[0] != '\0' ? h->exports : line;
	for (i = 0; i < h->arg_count; i++)
		argv[n++] = h->args[i];
	argv[n] = NULL;
	for (i = 0; i < h->env_count; i++)
		putenv((char *)(uintptr_t)h->env[i]);
	execv(binary, (char *const *)(uintptr_t)argv);
	_exit(98);
}

static int
spawn(struct harness *h)
{
	int fds[2];

	assert_non_null(getenv("NVNFSD"));
	assert_int_equal(h->pid, 0);
	assert_int_equal(pipe(fds), 0);
	h->pid = fork();
	assert_true(h->pid >= 0);
	if (h->pid == 0) {
		close(fds[0]);
		child(h, fds[1]);
	}
	close(fds[1]);
	return fds[0];
}

static void
print_log(const struct harness *h)
{
	harness_sh("sed 's/^/server: /' %s/log >&2", h->dir);
}

void
harness_start(struct harness *h)
{
	unsigned port = 0, mount_port = 0, exports = 0;
	char line[256] = "";
	FILE *f = fdopen(spawn(h), "r");

	assert_non_null(f);
	if (fgets(line, sizeof(line), f) == NULL ||
	    sscanf(line,
		   "nvnfsd: ready nfs=127.0.0.1:%u mount=127.0.0.1:%u "
		   "exports=%u",
		   &port, &mount_port, &exports) != 3) {
		print_log(h);
		fail_msg("no ready line: %s", line);
	}
	h->port = (uint16_t)port;
	h->mount_port = (uint16_t)mount_port;
	fclose(f);
}

int
harness_run(struct harness *h)
{
	char buffer[4096];
	int fd = spawn(h), status;

	while (read(fd, buffer, sizeof(buffer)) > 0)
		;
	close(fd);
	assert_int_equal(waitpid(h->pid, &status, 0), h->pid);
	h->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

void
harness_signal(struct harness *h, int sig)
{
	assert_true(h->pid > 0);
	assert_int_equal(kill(h->pid, sig), 0);
}

void
harness_end(struct harness *h, int want)
{
	int status;

	harness_signal(h, SIGTERM);
	assert_int_equal(waitpid(h->pid, &status, 0), h->pid);
	h->pid = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != want ||
	    harness_logged(h, "Sanitizer|runtime error")) {
		print_log(h);
		fail_msg("the server ended with status 0x%x", (unsigned)status);
	}
}

void
harness_stop(struct harness *h)
{
	harness_end(h, 0);
}

void
harness_kill(struct harness *h)
{
	harness_signal(h, SIGKILL);
	assert_int_equal(waitpid(h->pid, NULL, 0), h->pid);
	h->pid = 0;
}

/* Newest first. how: "" leaves what is in use, "-l" lets it go with its last
 * user (a loop device is detached in its own time). */
static void
unmount_below(const struct harness *h, const char *how)
{
	harness_sh("awk -v dir=%s/ 'index($2, dir) == 1 { print $2 }' "
		   "/proc/mounts | tac | xargs -r -n 1 umount %s 2>/dev/null",
		   h->dir, how);
}

void
harness_free(struct harness *h)
{
	struct harness **at = &live;

	if (h == NULL)
		return;
	while (*at != h)
		at = &(*at)->next;
	*at = h->next;
	if (h->pid > 0) {
		kill(h->pid, SIGKILL);
		waitpid(h->pid, NULL, 0);
	}
	unmount_below(h, "");
	/* Whoever is next has the limit of requests that a test has set. */
	if (h->loop[0] != '\0')
		harness_sh("cd /sys/block/%s/queue && "
			   "cat max_hw_sectors_kb >max_sectors_kb",
			   h->loop + 5);
	detach(h);
	unmount_below(h, "-l");
	harness_sh("rm -rf --one-file-system %s", h->dir);
	free(h);
}

bool
harness_logged(const struct harness *h, const char *pattern)
{
	return harness_sh("grep -qE '%s' %s/log", pattern, h->dir) == 0;
}

unsigned
harness_log_count(const struct harness *h, const char *pattern)
{
	char command[700], line[32];

	snprintf(command, sizeof(command), "grep -cE '%s' %s/log", pattern,
		 h->dir);
	(void)read_word(command, line, sizeof(line)); /* 1: no line */
	return (unsigned)strtoul(line, NULL, 10);
}

bool
harness_has_faults(void)
{
	return harness_sh("%s --version | grep -q fault", getenv("NVNFSD")) ==
	       0;
}

uint64_t
harness_last_stat(const struct harness *h, const char *name)
{
	char path[300], part[64];
	struct json_object *root, *o;
	const char *dot;
	uint64_t value;

	snprintf(path, sizeof(path), "%s/state/stats.json", h->dir);
	root = o = json_object_from_file(path);
	assert_non_null(root);
	for (; (dot = strchr(name, '.')) != NULL; name = dot + 1) {
		snprintf(part, sizeof(part), "%.*s", (int)(dot - name), name);
		assert_true(json_object_object_get_ex(o, part, &o));
	}
	if (!json_object_object_get_ex(o, name, &o))
		fail_msg("no counter %s", name);
	value = json_object_get_uint64(o);
	json_object_put(root);
	return value;
}

/* By itself: it stays to be reaped. */
static bool
has_ended(const struct harness *h)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)h->pid, &info,
		      WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid != 0;
}

uint64_t
harness_stat(struct harness *h, const char *name)
{
	char path[300];
	struct stat st;

	snprintf(path, sizeof(path), "%s/state/stats.json", h->dir);
	unlink(path);
	harness_signal(h, SIGUSR1);
	/* Replaced atomically: whole once it is there. */
	while (stat(path, &st) < 0) {
		if (has_ended(h)) {
			print_log(h);
			fail_msg("the server has ended by itself");
		}
		usleep(2000);
	}
	return harness_last_stat(h, name);
}

struct device_stat
harness_device_stat(const struct harness *h)
{
	struct device_stat d = { 0 };
	unsigned long long v[17] = { 0 };
	char path[128];
	FILE *f;
	int i;

	assert_true(h->loop[0] != '\0');
	snprintf(path, sizeof(path), "/sys/block/%s/stat",
		 strrchr(h->loop, '/') + 1);
	f = fopen(path, "r");
	assert_non_null(f);
	for (i = 0; i < 17; i++)
		if (fscanf(f, "%llu", &v[i]) != 1)
			break;
	fclose(f);
	assert_true(i >= 16);
	d.reads = v[0];
	d.read_4k = v[2] / 8;
	d.writes = v[4];
	d.write_4k = v[6] / 8;
	d.flushes = v[15];
	return d;
}

const char *
harness_path(const struct harness *h, const char *name)
{
	static char path[4][900];
	static unsigned next;
	char *p = path[next++ % 4];

	snprintf(p, sizeof(path[0]), "%s/%s", h->export, name);
	return p;
}

unsigned long
harness_resident(const struct harness *h, const char *name)
{
	int fd = open(harness_path(h, name), O_RDONLY);
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages, i;
	unsigned long n = 0;
	unsigned char *vec;
	struct stat st;
	void *map;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	pages = ((size_t)st.st_size + page - 1) / page;
	if (pages > 0) {
		map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd,
			   0);
		vec = malloc(pages);
		assert_true(map != MAP_FAILED && vec != NULL);
		assert_int_equal(mincore(map, (size_t)st.st_size, vec), 0);
		for (i = 0; i < pages; i++)
			n += vec[i] & 1;
		munmap(map, (size_t)st.st_size);
		free(vec);
	}
	close(fd);
	return n;
}

struct nfs_context *
harness_nfs(struct harness *h, int uid, int gid)
{
	struct nfs_context *nfs = nfs_init_context();
	struct nfs_url *url;
	char text[512];

	assert_non_null(nfs);
	snprintf(text, sizeof(text),
		 "nfs://127.0.0.1%s?uid=%d&gid=%d&nfsport=%u&mountport=%u",
		 h->export, uid, gid, h->port, h->mount_port);
	url = nfs_parse_url_dir(nfs, text);
	assert_non_null(url);
	if (nfs_mount(nfs, url->server, url->path) != 0)
		fail_msg("mount: %s", nfs_get_error(nfs));
	nfs_destroy_url(url);
	return nfs;
}
