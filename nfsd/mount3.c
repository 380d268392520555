/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The six procedures of MOUNT version 3, which serve versions 1 and 2 too, and
 * PATHCONF, which version 2 has besides (RFC 1813, 5.2). MNT gives out the root
 * handle of an export, or of any directory below one (automounters and
 * provisioners ask for those).
 *
 * Plain blocking functions on a worker, with the server's rights, as a mount
 * daemon has them: who may mount is the export's client list alone, not the
 * caller's ids, and what he may do then is checked at each call. They keep
 * nothing but the list of mounts. Handles come from fh.c, exports from
 * export.c.
 */
#include "nfsd/nfsd.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LIST_BYTES_FIRST 4096u
#define LIST_BYTES_MAX   (16u << 20)
#define OPEN_TRIES       16

/* Clients ------------------------------------------------------------- */

/* The client's address as text: IPv4 also where it came mapped into IPv6. */
static void
client_host(const struct sockaddr *client, char host[INET6_ADDRSTRLEN])
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)client;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)client;
	const char *text;

	if (client->sa_family == AF_INET)
		text = inet_ntop(AF_INET, &v4->sin_addr, host,
				 INET6_ADDRSTRLEN);
	else if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
		text = inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], host,
				 INET6_ADDRSTRLEN);
	else
		text = inet_ntop(AF_INET6, &v6->sin6_addr, host,
				 INET6_ADDRSTRLEN);
	assert(text != NULL);
}

/* MNT ----------------------------------------------------------------- */

/* The directory below root as an O_PATH descriptor, or -errno: -EXDEV or -ELOOP
 * where a symbolic link leads out. */
static int
open_beneath(int root_fd, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV |
			   RESOLVE_NO_MAGICLINKS,
	};
	long fd;
	int tries = 0;

	/* EAGAIN: a rename elsewhere made the kernel unsure of a "..". */
	do
		fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	while (fd < 0 && errno == EAGAIN && ++tries < OPEN_TRIES);
	return fd < 0 ? -errno : (int)fd;
}

/* What is done with the directory, an O_PATH descriptor; 0 or -errno. */
typedef int mount_use_fn(struct request *rq, const struct access *a, int fd);

static int
mount_handle(struct request *rq, const struct access *a, int fd)
{
	struct fh fh = { 0 };
	int error = fh_from_fd(&fh, fd, NULL);

	if (error < 0)
		return error;
	fh.export_id = a->export->id;
	fh_encode(server_fh_key(rq->server), &fh, &rq->res.mnt.fh);
	return 0;
}

static int
mount_open(struct request *rq, const struct access *a, const char *rest,
	   mount_use_fn *use)
{
	int fd = open_beneath(volume_root_fd(a->volume), *rest ? rest : ".");
	int error;

	if (fd < 0)
		return fd;
	error = use(rq, a, fd);
	close(fd);
	return error;
}

static int
mount_path(struct request *rq, const char *path, mount_use_fn *use)
{
	const char *rest;
	struct export *e = export_find_path(rq->exports, path, &rest);
	struct access a;
	int error;

	/* Not exported is not told from not allowed or not there. */
	if (!e)
		return -EACCES;
	error = export_access(rq->exports, e, rq->client, request_may_block(rq),
			      &a);
	if (error == -EAGAIN)
		rq->wants_names = true;
	if (error < 0)
		return error;
	error = mount_open(rq, &a, rest, use);
	access_put(&a);
	return error;
}

/* export_access has told of a port that `secure` refuses, with the cure. */
static void
log_refusal(const char *host, const char *path, int error)
{
	static struct log_limit limit;

	if (error != -EPERM && error != -EAGAIN)
		log_limited(&limit, LOG_NOTICE_, "%s may not mount %s: %s",
			    host, path,
			    error == -EXDEV ? "it leads out of the export"
					    : strerror(-error));
}

/* 0, or why there is no answer; *path is what was asked for. */
static int
mount_answer(struct request *rq, const char *host, char path[MNT3_PATHLEN + 1],
	     mount_use_fn *use)
{
	const struct nfs3_bytes *sent = &rq->args.mount.path;
	int error = mount_path_normalise(path, sent->data, sent->bytes);

	if (error < 0) {
		log_refusal(host, "what is no absolute path", error);
		return error;
	}
	error = mount_path(rq, path, use);
	if (error < 0)
		log_refusal(host, path, error);
	return error;
}

/* MOUNT's statuses are NFS's by number. */
static enum nfsstat3
mount_status(struct request *rq, int error)
{
	rq->res.mnt.status = mount3_status(error);
	return (enum nfsstat3)rq->res.mnt.status;
}

enum nfsstat3
mount3_mnt(struct request *rq)
{
	char path[MNT3_PATHLEN + 1], host[INET6_ADDRSTRLEN];
	int error;

	client_host(rq->client, host);
	error = mount_answer(rq, host, path, mount_handle);
	if (!error)
		mount_list_add(server_mounts(rq->server), host, path);
	return mount_status(rq, error);
}

/* Versions 1 and 2 give out handles of NFS version 2, which is not served, and
 * which ours do not fit into. */
enum nfsstat3
mount1_mnt(struct request *rq)
{
	char path[MNT3_PATHLEN + 1], host[INET6_ADDRSTRLEN];
	int error;

	client_host(rq->client, host);
	error = mount_answer(rq, host, path, mount_handle);
	return mount_status(rq, error < 0 ? error : -EOPNOTSUPP);
}

/* PATHCONF ------------------------------------------------------------ */

/* -1, which stands for no limit, becomes the largest. */
static int16_t
limit_of(int fd, int name)
{
	long value = fpathconf(fd, name);

	if (value < 0 || value > INT16_MAX)
		return INT16_MAX;
	return (int16_t)value;
}

static int
fill_pathconf(struct request *rq, const struct access *a, int fd)
{
	struct mount2_pathconf_res *r = &rq->res.mount_pathconf;
	long links = fpathconf(fd, _PC_LINK_MAX);

	(void)a;
	r->link_max =
		links < 0 || links > INT32_MAX ? INT32_MAX : (int32_t)links;
	r->max_canon = limit_of(fd, _PC_MAX_CANON);
	r->max_input = limit_of(fd, _PC_MAX_INPUT);
	r->name_max = limit_of(fd, _PC_NAME_MAX);
	r->path_max = limit_of(fd, _PC_PATH_MAX);
	r->pipe_buf = limit_of(fd, _PC_PIPE_BUF);
	r->vdisable = (uint8_t)fpathconf(fd, _PC_VDISABLE);
	return 0;
}

enum nfsstat3
mount2_pathconf(struct request *rq)
{
	char path[MNT3_PATHLEN + 1], host[INET6_ADDRSTRLEN];
	int error;

	client_host(rq->client, host);
	error = mount_answer(rq, host, path, fill_pathconf);
	rq->res.mount_pathconf.failed = error < 0;
	return (enum nfsstat3)mount3_status(error);
}

/* UMNT, UMNTALL: nothing is answered, whatever becomes of it */

enum nfsstat3
mount3_umnt(struct request *rq)
{
	const struct nfs3_bytes *sent = &rq->args.mount.path;
	char path[MNT3_PATHLEN + 1], host[INET6_ADDRSTRLEN];

	client_host(rq->client, host);
	if (mount_path_normalise(path, sent->data, sent->bytes) == 0)
		mount_list_remove(server_mounts(rq->server), host, path);
	return NFS3_OK;
}

enum nfsstat3
mount3_umntall(struct request *rq)
{
	char host[INET6_ADDRSTRLEN];

	client_host(rq->client, host);
	mount_list_remove(server_mounts(rq->server), host, NULL);
	return NFS3_OK;
}

enum nfsstat3
mount3_null(struct request *rq)
{
	return NFS3_OK;
}

/* DUMP, EXPORT -------------------------------------------------------- */

typedef bool list_fn(const struct request *rq, XDR *x);

/* Room is doubled until the list fits. Where there is no memory for it, the
 * list is empty: these results have no status to say so with. */
static enum nfsstat3
list_result(struct request *rq, list_fn *encode)
{
	struct mount3_list_res *res = &rq->res.list;
	uint32_t room = LIST_BYTES_FIRST;
	uint8_t *list = NULL;
	XDR x;

	for (; room <= LIST_BYTES_MAX; room *= 2) {
		free(list);
		list = malloc(room);
		if (!list)
			break;
		xdrmem_create(&x, (char *)list, room, XDR_ENCODE);
		if (!encode(rq, &x))
			continue;
		res->list = list;
		res->list_bytes = XDR_GETPOS(&x);
		return NFS3_OK;
	}
	free(list);
	res->list = calloc(1, BYTES_PER_XDR_UNIT);
	res->list_bytes = res->list ? BYTES_PER_XDR_UNIT : 0;
	return NFS3ERR_SERVERFAULT;
}

static bool
encode_mounts(const struct request *rq, XDR *x)
{
	return mount_list_encode(server_mounts(rq->server), x);
}

/* An export with its clients as exports(5) has them. What the protocol has no
 * room for is left out. */
static bool
encode_export(const struct export *e, XDR *x)
{
	if (strlen(e->path) > MNT3_PATHLEN)
		return true;
	if (!mount3_put_export(x, e->path))
		return false;
	for (unsigned i = 0; i < e->conf.client_count; i++) {
		const struct conf_client_match *m = &e->conf.clients[i].match;
		const char *name = m->kind == CONF_CLIENT_ANY ? "*" : m->text;

		if (strlen(name) <= MNT3_NAMLEN && !mount3_put_group(x, name))
			return false;
	}
	return mount3_put_end(x);
}

static bool
encode_exports(const struct request *rq, XDR *x)
{
	unsigned n = export_table_count(rq->exports);

	for (unsigned i = 0; i < n; i++)
		if (!encode_export(export_table_at(rq->exports, i), x))
			return false;
	return mount3_put_end(x);
}

enum nfsstat3
mount3_dump(struct request *rq)
{
	return list_result(rq, encode_mounts);
}

enum nfsstat3
mount3_export(struct request *rq)
{
	return list_result(rq, encode_exports);
}
