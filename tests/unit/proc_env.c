/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/proc_env.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cmocka.h>

#define SKIP 77

static const char *const names[ENV_EXPORTS] = { "rw", "async", "other" };

static uint64_t
verifier(uint64_t export_id, void *arg)
{
	return export_id ^ 1;
}

static void
on_error(struct volume *v, const char *what, int error)
{
	print_error("volume: %s: %s\n", what, strerror(-error));
}

static int
worker_init(void *arg)
{
	return identity_worker_init();
}

/* A directory whose file system has handles: as it is, or a tmpfs on it. */
static int
place_make(struct env *e)
{
	const char *tmp = getenv("TMPDIR");
	struct fh fh;
	int fd, error;

	(void)snprintf(e->path, sizeof(e->path), "%s/nvnfsd-XXXXXX",
		       tmp == NULL ? "/tmp" : tmp);
	if (mkdtemp(e->path) == NULL)
		return SKIP;
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return SKIP;
	fd = open(e->path, O_RDONLY | O_DIRECTORY);
	error = fh_from_fd(&fh, fd, NULL);
	(void)close(fd);
	if (error && mount("tmpfs", e->path, "tmpfs", 0, NULL) < 0)
		return SKIP;
	return chmod(e->path, 0755);
}

static void
trees_make(struct env *e)
{
	char path[160];
	int i;

	for (i = 0; i < ENV_EXPORTS; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", e->path, names[i]);
		assert_int_equal(mkdir(path, 0777), 0);
		assert_int_equal(chmod(path, 0777), 0);
		e->dir[i] = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(e->dir[i] >= 0);
	}
}

static int
exports_load(struct env *e)
{
	struct export_load load = { .engine = e->server.engine,
				    .conf = &e->server.conf,
				    .verifier = verifier };
	struct conf_exports parsed = { 0 };
	struct conf_report report = { 0 };
	char text[1024];
	int n, error;

	n = snprintf(text, sizeof(text),
		     "%s/rw 127.0.0.1(rw,insecure,no_root_squash) "
		     "127.0.0.2(ro,insecure,no_root_squash)\n"
		     "%s/async 127.0.0.1(rw,async,insecure,no_root_squash)\n"
		     "%s/other 127.0.0.1(rw,insecure,no_root_squash)\n",
		     e->path, e->path, e->path);
	error = conf_exports_parse(&parsed, text, (size_t)n, "test", &report);
	if (!error)
		error = export_table_load(&e->exports, &parsed, NULL, &load,
					  &report);
	if (error && report.count > 0)
		print_error("%s\n", report.messages[0].text);
	if (error)
		conf_exports_fini(&parsed);
	conf_report_fini(&report);
	return error;
}

struct export *
env_export(struct env *e, enum env_export x)
{
	struct export *export;
	const char *rest;
	char path[160];

	(void)snprintf(path, sizeof(path), "%s/%s", e->path, names[x]);
	export = export_find_path(e->exports, path, &rest);
	assert_non_null(export);
	assert_string_equal(rest, "");
	return export;
}

static void
roots_find(struct env *e)
{
	const struct export *x;
	struct fh fh;
	int i;

	for (i = 0; i < ENV_EXPORTS; i++) {
		x = env_export(e, i);
		assert_int_equal(fh_from_fd(&fh, volume_root_fd(x->rw), NULL),
				 0);
		fh.export_id = x->id;
		fh_encode(e->server.fh_key, &fh, &e->root[i]);
	}
}

int
env_start(struct env *e)
{
	return env_start_on(e, NULL);
}

int
env_start_on(struct env *e, const char *sysfs)
{
	struct engine_config config = { .backend = IO_BACKEND_URING,
					.reactors = 1,
					.workers = 2,
					.io_workers = 2,
					.buffer_bytes = 16u << 20,
					.worker_init = worker_init,
					.on_error = on_error,
					.sysfs = sysfs };
	int r;

	memset(e, 0, sizeof(*e));
	if (geteuid() != 0)
		return SKIP;
	r = place_make(e);
	if (r)
		return r;
	assert_int_equal(identity_worker_init(), 0);
	trees_make(e);
	conf_init(&e->server.conf);
	memset(e->server.fh_key, 7, sizeof(e->server.fh_key));
	assert_int_equal(engine_new(&e->server.engine, &config), 0);
	assert_int_equal(exports_load(e), 0);
	roots_find(e);
	e->room = malloc(ENV_ROOM_BYTES);
	assert_non_null(e->room);
	env_caller(e, 0, 0);
	env_read_only(e, false);
	return 0;
}

void
env_stop(struct env *e)
{
	char path[160];
	int i;

	env_clean(e);
	export_table_put(e->exports);
	engine_free(e->server.engine);
	conf_fini(&e->server.conf);
	free(e->room);
	for (i = 0; i < ENV_EXPORTS; i++) {
		assert_int_equal(close(e->dir[i]), 0);
		(void)snprintf(path, sizeof(path), "%s/%s", e->path, names[i]);
		assert_int_equal(rmdir(path), 0);
	}
	(void)umount(e->path);
	assert_int_equal(rmdir(e->path), 0);
}

void
env_caller(struct env *e, uint32_t uid, uint32_t gid)
{
	memset(&e->cred, 0, sizeof(e->cred));
	e->cred.flavor = RPC_AUTH_SYS;
	e->cred.uid = uid;
	e->cred.gid = gid;
}

void
env_read_only(struct env *e, bool read_only)
{
	e->client.sin_family = AF_INET;
	e->client.sin_port = htons(1000);
	e->client.sin_addr.s_addr =
		htonl(read_only ? INADDR_LOOPBACK + 1 : INADDR_LOOPBACK);
}

enum nfsstat3
env_run(struct env *e, nfs3_run_fn *run)
{
	e->rq.server = &e->server;
	e->rq.exports = e->exports;
	e->rq.client = (const struct sockaddr *)&e->client;
	e->rq.cred = &e->cred;
	e->rq.room = e->room;
	if (e->rq.room_bytes == 0)
		e->rq.room_bytes = ENV_ROOM_BYTES;
	memset(&e->rq.res, 0, sizeof(e->rq.res));
	return run(&e->rq);
}

struct nfs3_bytes
env_bytes(const char *text)
{
	return (struct nfs3_bytes){ (const uint8_t *)text,
				    (uint32_t)strlen(text) };
}

struct nfs_fh3
env_lookup(struct env *e, enum env_export x, const char *name)
{
	const struct rpc_cred cred = e->cred;
	const union nfs3_args args = e->rq.args;
	const union nfs3_res res = e->rq.res;
	struct nfs_fh3 fh;

	env_caller(e, 0, 0);
	e->rq.args.dirop.where.dir = e->root[x];
	e->rq.args.dirop.where.name = env_bytes(name);
	assert_int_equal(env_run(e, nfs3_lookup), NFS3_OK);
	fh = e->rq.res.lookup.fh;
	e->cred = cred;
	e->rq.args = args;
	e->rq.res = res;
	return fh;
}

struct statx
env_stat(struct env *e, enum env_export x, const char *name)
{
	struct statx st;

	assert_int_equal(statx(e->dir[x], name, AT_SYMLINK_NOFOLLOW,
			       NFS3_STATX_MASK, &st),
			 0);
	return st;
}

void
env_file(struct env *e, enum env_export x, const char *name, const char *text,
	 mode_t mode, uint32_t uid)
{
	int fd = openat(e->dir[x], name, O_CREAT | O_EXCL | O_WRONLY, 0600);
	size_t n = strlen(text);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), n);
	assert_int_equal(fchown(fd, uid, uid), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(close(fd), 0);
}

static void
tree_clean(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY), sub;
	DIR *d = fdopendir(fd);
	const struct dirent *entry;

	assert_non_null(d);
	while ((entry = readdir(d)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 ||
		    strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(dir_fd, entry->d_name, 0) == 0)
			continue;
		sub = openat(dir_fd, entry->d_name, O_RDONLY | O_DIRECTORY);
		assert_true(sub >= 0);
		tree_clean(sub);
		assert_int_equal(close(sub), 0);
		assert_int_equal(unlinkat(dir_fd, entry->d_name, AT_REMOVEDIR),
				 0);
	}
	assert_int_equal(closedir(d), 0);
}

void
env_clean(struct env *e)
{
	int i;

	for (i = 0; i < ENV_EXPORTS; i++)
		tree_clean(e->dir[i]);
}

void
env_reset(struct env *e)
{
	env_caller(e, 0, 0);
	env_read_only(e, false);
	e->rq.room_bytes = 0;
	env_clean(e);
}

int
env_test(struct env *e, const struct CMUnitTest *tests, size_t count)
{
	int r = env_start(e);

	if (r)
		return r;
	r = _cmocka_run_group_tests("tests", tests, count, NULL, NULL);
	env_stop(e);
	return r;
}
