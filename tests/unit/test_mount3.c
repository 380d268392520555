/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MOUNT's procedures over an export table, handles and a server that stand
 * below as a few lines each, and a real directory tree.
 */
#include "nfsd/nfsd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* What mount3.c stands on ---------------------------------------------- */

static struct {
	struct export export[2];
	unsigned exports;
	int access_error;
	int root_fd;
	unsigned accesses; /* not yet put */
	struct mount_list *mounts;
} world;

struct export *
export_find_path(const struct export_table *t, const char *path,
		 const char **rest)
{
	for (unsigned i = 0; i < world.exports; i++) {
		const char *own = world.export[i].path;
		size_t n = strlen(own);

		if (strncmp(path, own, n) != 0 ||
		    (path[n] != '\0' && path[n] != '/'))
			continue;
		*rest = path[n] ? path + n + 1 : path + n;
		return &world.export[i];
	}
	return NULL;
}

int
export_access(struct export_table *t, struct export *e,
	      const struct sockaddr *client, bool may_block, struct access *ret)
{
	assert_true(may_block);
	if (world.access_error)
		return world.access_error;
	memset(ret, 0, sizeof(*ret));
	ret->export = e;
	world.accesses++;
	return 0;
}

void
access_put(struct access *a)
{
	world.accesses--;
}

unsigned
export_table_count(const struct export_table *t)
{
	return world.exports;
}

struct export *
export_table_at(const struct export_table *t, unsigned i)
{
	return &world.export[i];
}

uint64_t
io_size(dev_t dev, uint64_t ino, uint64_t size)
{
	return size;
}

uint64_t
io_size_resets(void)
{
	return 0;
}

int
volume_root_fd(const struct volume *v)
{
	return world.root_fd;
}

/* A handle that names its inode. */
int
fh_from_fd(struct fh *fh, int fd, const char *name)
{
	struct stat st;

	assert_null(name);
	assert_int_equal(fstat(fd, &st), 0);
	fh->bytes = sizeof(st.st_ino);
	memcpy(fh->data, &st.st_ino, sizeof(st.st_ino));
	return 0;
}

static const uint8_t key[FH_KEY_BYTES];

void
fh_encode(const uint8_t k[FH_KEY_BYTES], const struct fh *fh,
	  struct nfs_fh3 *wire)
{
	assert_ptr_equal(k, key);
	wire->bytes = 16;
	memcpy(wire->data, &fh->export_id, 8);
	memcpy(wire->data + 8, fh->data, 8);
}

const uint8_t *
server_fh_key(struct server *s)
{
	return key;
}

struct mount_list *
server_mounts(struct server *s)
{
	return world.mounts;
}

/* Calls ------------------------------------------------------------------ */

static struct sockaddr_storage
address(const char *text)
{
	struct sockaddr_storage a = { 0 };
	struct sockaddr_in *v4 = (struct sockaddr_in *)&a;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&a;

	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		a.ss_family = AF_INET;
		return a;
	}
	assert_int_equal(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
	a.ss_family = AF_INET6;
	return a;
}

static union nfs3_res
call_bytes(nfs3_run_fn *run, const char *client, const void *path, uint32_t n)
{
	struct sockaddr_storage from = address(client);
	struct request rq = { .client = (struct sockaddr *)&from };

	rq.args.mount.path = (struct nfs3_bytes){ path, n };
	(void)run(&rq);
	assert_int_equal(world.accesses, 0);
	return rq.res;
}

static union nfs3_res
call(nfs3_run_fn *run, const char *client, const char *path)
{
	return call_bytes(run, client, path, strlen(path));
}

/* MNT's status; with MNT3_OK the handle is that of dir. */
static uint32_t
mnt(const char *path, const char *dir)
{
	union nfs3_res res = call(mount3_mnt, "192.0.2.1", path);
	struct stat st;

	if (res.mnt.status != MNT3_OK)
		return res.mnt.status;
	assert_int_equal(fstatat(world.root_fd, dir, &st, 0), 0);
	assert_int_equal(res.mnt.fh.bytes, 16);
	assert_memory_equal(res.mnt.fh.data, &world.export[0].id, 8);
	assert_memory_equal(res.mnt.fh.data + 8, &st.st_ino, 8);
	return MNT3_OK;
}

/* DUMP as "host:path " each; and that the list is one whole mountlist. */
static const char *
dump(void)
{
	static char text[4096];
	union nfs3_res res = call(mount3_dump, "192.0.2.9", "");
	char *host, *path;
	uint32_t more;
	size_t n = 0;
	XDR x;

	xdrmem_create(&x, (char *)res.list.list, res.list.list_bytes,
		      XDR_DECODE);
	text[0] = '\0';
	while (xdr_u_int32_t(&x, &more) && more == 1) {
		host = path = NULL;
		assert_true(xdr_string(&x, &host, MNT3_NAMLEN) &&
			    xdr_string(&x, &path, MNT3_PATHLEN));
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s:%s ",
				      host, path);
		free(host);
		free(path);
	}
	assert_int_equal(more, 0);
	assert_int_equal(XDR_GETPOS(&x), res.list.list_bytes);
	free(res.list.list);
	return text;
}

static char tree[64];
static int first_free_fd; /* each test must leave it free */

static int
free_fd(void)
{
	int fd = open("/", O_PATH | O_CLOEXEC);

	close(fd);
	return fd;
}

/* /export is tree/export: a directory, a file and symlinks. */
static int
make_world(void **state)
{
	static const char *const dirs[] = { "outside", "export", "export/d",
					    "export/d/e" };

	memset(&world, 0, sizeof(world));
	strcpy(tree, "/tmp/nvnfsd-mount-XXXXXX");
	if (!mkdtemp(tree) || chdir(tree) < 0)
		return -1;
	for (unsigned i = 0; i < 4; i++)
		if (mkdir(dirs[i], 0700) < 0)
			return -1;
	if (symlink("d/e", "export/inside") < 0 ||
	    symlink("../outside", "export/up") < 0 ||
	    symlink("/tmp", "export/absolute") < 0 ||
	    symlink("d/../d", "export/round") < 0 ||
	    mknod("export/file", S_IFREG | 0600, 0) < 0)
		return -1;
	world.export[0].path = "/export";
	world.export[0].id = 0x1122334455667788u;
	world.exports = 1;
	world.root_fd = open("export", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	log_set_level(LOG_ERR_);
	first_free_fd = free_fd();
	return mount_list_new(&world.mounts, -1);
}

static int
end_world(void **state)
{
	char command[80];

	assert_int_equal(free_fd(), first_free_fd);
	mount_list_free(world.mounts);
	close(world.root_fd);
	(void)snprintf(command, sizeof(command), "rm -r %s", tree);
	return chdir("/") < 0 ||
	       system(command) != 0; /* NOLINT(cert-env33-c) */
}

/* MNT ---------------------------------------------------------------------- */

static void
test_mnt(void **state)
{
	assert_int_equal(mnt("/export", "."), MNT3_OK);
	assert_int_equal(mnt("/export/", "."), MNT3_OK);
	assert_int_equal(mnt("/x/../export/./d", "d"), MNT3_OK);
	assert_int_equal(mnt("/export/d/e", "d/e"), MNT3_OK);
	/* symbolic links that stay inside are the server's to follow */
	assert_int_equal(mnt("/export/inside", "d/e"), MNT3_OK);
	assert_int_equal(mnt("/export/round", "d"), MNT3_OK);
}

static void
test_mnt_refused(void **state)
{
	char longest[MNT3_PATHLEN + 2];

	assert_int_equal(mnt("/", ""), MNT3ERR_ACCES);
	assert_int_equal(mnt("/exporter", ""), MNT3ERR_ACCES);
	assert_int_equal(mnt("/export/..", ""), MNT3ERR_ACCES);
	assert_int_equal(mnt("/export/../..", ""), MNT3ERR_ACCES);
	assert_int_equal(mnt("/export/../outside", ""), MNT3ERR_ACCES);
	assert_int_equal(mnt("export", ""), MNT3ERR_ACCES);
	assert_int_equal(mnt("", ""), MNT3ERR_ACCES);
	assert_int_equal(mnt("/export/up", ""), MNT3ERR_ACCES);
	assert_int_equal(mnt("/export/absolute", ""), MNT3ERR_ACCES);
	assert_int_equal(mnt("/export/inside/../../up", ""), MNT3ERR_ACCES);
	assert_int_equal(mnt("/export/file", ""), MNT3ERR_NOTDIR);
	assert_int_equal(mnt("/export/file/x", ""), MNT3ERR_NOTDIR);
	assert_int_equal(mnt("/export/nothing", ""), MNT3ERR_NOENT);
	memset(longest, 'x', sizeof(longest));
	memcpy(longest, "/export/", 8);
	longest[MNT3_PATHLEN + 1] = '\0';
	assert_int_equal(mnt(longest, ""), MNT3ERR_NAMETOOLONG);
	longest[MNT3_PATHLEN] = '\0'; /* a name of over 255 bytes in it */
	assert_int_equal(mnt(longest, ""), MNT3ERR_NAMETOOLONG);
	assert_int_equal(call_bytes(mount3_mnt, "192.0.2.1", "/export\0/d", 10)
				 .mnt.status,
			 MNT3ERR_INVAL);
	assert_string_equal(dump(), "");
}

static void
test_mnt_client(void **state)
{
	world.access_error = -EACCES;
	assert_int_equal(mnt("/export", "."), MNT3ERR_ACCES);
	assert_int_equal(mnt("/export/nothing", "."), MNT3ERR_ACCES);
	world.access_error = -EPERM;
	assert_int_equal(mnt("/export", "."), MNT3ERR_ACCES);
	world.access_error = -ENOMEM;
	assert_int_equal(mnt("/export", "."), MNT3ERR_SERVERFAULT);
	assert_string_equal(dump(), "");
}

/* What is mounted below does not show, and magic links lead nowhere. */
static void
test_mnt_crossings(void **state)
{
	int export_fd = world.root_fd;

	world.root_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mnt("/export/proc", ""), MNT3ERR_ACCES);
	close(world.root_fd);
	world.root_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mnt("/export/cwd", ""), MNT3ERR_ACCES);
	close(world.root_fd);
	world.root_fd = export_fd;
}

/* The list ------------------------------------------------------------------
 */

static void
test_dump(void **state)
{
	assert_string_equal(dump(), "");
	call(mount3_mnt, "192.0.2.1", "/export");
	call(mount3_mnt, "2001:db8::1", "/export/d/");
	call(mount3_mnt, "::ffff:192.0.2.2", "/export");
	call(mount3_mnt, "192.0.2.1", "/export/./");   /* there already */
	call(mount3_mnt, "192.0.2.1", "/export/file"); /* refused */
	call(mount3_mnt, "192.0.2.1", "/export/d");
	assert_string_equal(dump(), "192.0.2.1:/export 2001:db8::1:/export/d "
				    "192.0.2.2:/export 192.0.2.1:/export/d ");
	call(mount3_umnt, "192.0.2.1", "/export/");
	call(mount3_umnt, "192.0.2.2", "/export/d"); /* had it not */
	call(mount3_umnt, "192.0.2.2", "no path");
	assert_string_equal(dump(), "2001:db8::1:/export/d 192.0.2.2:/export "
				    "192.0.2.1:/export/d ");
	call(mount3_mnt, "192.0.2.1", "/export");
	call(mount3_umntall, "192.0.2.1", "");
	assert_string_equal(dump(), "2001:db8::1:/export/d 192.0.2.2:/export ");
	assert_int_equal(mount3_null(NULL), NFS3_OK);
}

/* EXPORT --------------------------------------------------------------------
 */

static void
test_export(void **state)
{
	static const uint8_t expect[] = {
		0,   0,   0,   1,   0, 0, 0, 7, '/', 'e', 'x', 'p', 'o', 'r',
		't', 0,   0,   0,   0, 1, 0, 0, 0,   8,   '1', '0', '.', '0',
		'.', '0', '/', '8', 0, 0, 0, 1, 0,   0,   0,   1,   '*', 0,
		0,   0,   0,   0,   0, 0, 0, 0, 0,   1,   0,   0,   0,   2,
		'/', 'b', 0,   0,   0, 0, 0, 0, 0,   0,   0,   0,
	};
	char network[] = "10.0.0/8";
	struct conf_client clients[2] = {
		{ .match = { .kind = CONF_CLIENT_NETWORK, .text = network } },
		{ .match = { .kind = CONF_CLIENT_ANY } },
	};
	union nfs3_res res;

	world.export[0].conf.clients = clients;
	world.export[0].conf.client_count = 2;
	world.export[1].path = "/b";
	world.exports = 2;
	res = call(mount3_export, "192.0.2.1", "");
	assert_int_equal(res.list.list_bytes, sizeof(expect));
	assert_memory_equal(res.list.list, expect, sizeof(expect));
	free(res.list.list);
	world.exports = 0;
	res = call(mount3_export, "192.0.2.1", "");
	assert_int_equal(res.list.list_bytes, 4);
	assert_memory_equal(res.list.list, "\0\0\0\0", 4);
	free(res.list.list);
}

/* Longer than the first room; what does not fit the protocol is left out. */
static void
test_export_large(void **state)
{
	struct conf_client clients[300];
	char name[256], too_long[257];
	union nfs3_res res;

	memset(name, 'n', 255);
	name[255] = '\0';
	memset(too_long, 't', 256);
	too_long[256] = '\0';
	memset(clients, 0, sizeof(clients));
	for (unsigned i = 0; i < 300; i++) {
		clients[i].match.kind = CONF_CLIENT_HOST;
		clients[i].match.text = i % 3 ? name : too_long;
	}
	world.export[0].conf.clients = clients;
	world.export[0].conf.client_count = 300;
	res = call(mount3_export, "192.0.2.1", "");
	assert_int_equal(res.list.list_bytes, 16 + 200 * (8 + 256) + 4 + 4);
	free(res.list.list);
}

int
main(void)
{
#define MOUNT_TEST(f) cmocka_unit_test_setup_teardown(f, make_world, end_world)
	const struct CMUnitTest tests[] = {
		MOUNT_TEST(test_mnt),          MOUNT_TEST(test_mnt_refused),
		MOUNT_TEST(test_mnt_client),   MOUNT_TEST(test_mnt_crossings),
		MOUNT_TEST(test_dump),         MOUNT_TEST(test_export),
		MOUNT_TEST(test_export_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
