/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening one exported directory: is it there and mounted, which file system
 * and which directory of it is it, and so what is its id. Runs where
 * export_table_load runs: on one thread at a time, and blocks.
 *
 * open_by_handle_at(2), exports(5).
 */
#include "nfsd/export.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sodium.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <unistd.h>

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

/* which file system --------------------------------------------------- */

/* Linux 6.9; the ioctl that every file system answers. */
struct fs_uuid2 {
	uint8_t len;
	uint8_t uuid[16];
};
#define GET_FS_UUID _IOR(0x15, 0, struct fs_uuid2)

/* XFS's own, long before: struct xfs_fsop_geom_v1. */
struct xfs_geometry {
	uint32_t blocks[8];
	uint64_t extents[4];
	uint8_t uuid[16];
	uint32_t rest[7];
};
#define XFS_GET_GEOMETRY _IOR('X', 100, struct xfs_geometry)
static_assert(sizeof(struct xfs_geometry) == 112, "struct xfs_fsop_geom_v1");

/* As ext4 and tmpfs make f_fsid of it, so that one export has one id whether or
 * not the kernel has GET_FS_UUID. */
static uint64_t
uuid_fold(const uint8_t uuid[16])
{
	uint64_t a, b;

	memcpy(&a, uuid, sizeof(a));
	memcpy(&b, uuid + 8, sizeof(b));
	return le64toh(a) ^ le64toh(b);
}

/*
 * 64 bits that name the file system, 0 for none. They must not change while its
 * data stays, or all handles become stale:
 *   ext2/3/4  f_fsid: its uuid folded, on every kernel
 *   btrfs     f_fsid: its uuid and the subvolume, on every kernel (and inode
 *             numbers are unique in a subvolume only)
 *   XFS       its uuid, by either ioctl (f_fsid is the device's number)
 *   others    their uuid where the kernel tells it (6.9); tmpfs has a new one
 *             at each mount, as its files are new; else f_fsid, which some
 * (f2fs) make of the device's number: fsid= is the remedy there
 */
static uint64_t
fs_identity(int fd, const struct statfs *fs)
{
	uint64_t f_fsid = (uint32_t)fs->f_fsid.__val[0] |
			  (uint64_t)(uint32_t)fs->f_fsid.__val[1] << 32;
	struct fs_uuid2 uuid = { 0 };
	struct xfs_geometry xfs;

	if (fs->f_type == EXT4_SUPER_MAGIC || fs->f_type == BTRFS_SUPER_MAGIC)
		return f_fsid;
	if (ioctl(fd, GET_FS_UUID, &uuid) == 0 && uuid.len == 16)
		return uuid_fold(uuid.uuid);
	if (fs->f_type == XFS_SUPER_MAGIC &&
	    ioctl(fd, XFS_GET_GEOMETRY, &xfs) == 0)
		return uuid_fold(xfs.uuid);
	return f_fsid;
}

/* The same directory has the same id for ever; which fsid= says it is, and
 * where its root is, make it. */
static uint64_t
export_id(const struct export_place *p, enum conf_fsid_kind kind, uint64_t fsid)
{
	static const char domain[16] = "nvnfsd export 1";
	uint8_t hash[crypto_generichash_BYTES_MIN];
	crypto_generichash_state state;
	uint32_t words[] = { htole32(kind), htole32((uint32_t)p->root.type) };
	uint64_t id;

	fsid = htole64(fsid);
	crypto_generichash_init(&state, NULL, 0, sizeof(hash));
	crypto_generichash_update(&state, (const uint8_t *)domain,
				  sizeof(domain));
	crypto_generichash_update(&state, (const uint8_t *)words,
				  sizeof(words));
	crypto_generichash_update(&state, (const uint8_t *)&fsid, sizeof(fsid));
	crypto_generichash_update(&state, p->root.data, p->root.bytes);
	crypto_generichash_final(&state, hash, sizeof(hash));
	memcpy(&id, hash, sizeof(id));
	return le64toh(id);
}

static int
place_identify(struct export_loader *l, const struct export_place *p,
	       const struct statfs *fs, struct export *e)
{
	const struct conf_export_options *o = &p->conf->clients[0].options;
	enum conf_fsid_kind kind = o->fsid_kind;

	e->fsid = 0;
	if (kind == CONF_FSID_ROOT)
		kind = CONF_FSID_NUMBER; /* root is another word for 0 */
	else if (kind == CONF_FSID_NUMBER)
		e->fsid = o->fsid_number;
	else if (kind == CONF_FSID_UUID)
		e->fsid = uuid_fold(o->fsid_uuid);
	else
		e->fsid = fs_identity(p->fd, fs);
	if (kind == CONF_FSID_NONE && e->fsid == 0) {
		conf_report_error(l->r, p->conf->file, p->conf->line,
				  "%s: its file system has no uuid: name it by "
				  "fsid=NUMBER",
				  p->conf->path);
		return -EINVAL;
	}
	e->id = export_id(p, kind, e->fsid);
	return 0;
}

/* the directory ------------------------------------------------------- */

static bool
is_mount_point(const char *path)
{
	struct statx st;

	return statx(AT_FDCWD, path, 0, STATX_TYPE, &st) == 0 &&
	       (st.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/* false: mountpoint= says to leave it out, and a warning was given. */
static bool
place_is_mounted(struct export_loader *l, const struct conf_export *conf)
{
	const struct conf_export_options *o = &conf->clients[0].options;
	const char *path = o->mountpoint ? o->mountpoint : conf->path;

	if (!o->has_mountpoint || is_mount_point(path))
		return true;
	conf_report_warning(l->r, conf->file, conf->line,
			    "%s: not exported: %s is not a mount point "
			    "(mountpoint=)",
			    conf->path, path);
	return false;
}

/* Handles must be had, and the right to open by them. */
static int
place_check_handles(struct export_loader *l, struct export_place *p)
{
	const struct conf_export *c = p->conf;
	int r = fh_from_fd(&p->root, p->fd, NULL), fd;

	if (r < 0) {
		conf_report_error(l->r, c->file, c->line,
				  "%s: its file system (type 0x%llx) gives no "
				  "file handles that can be used: %s",
				  c->path, (unsigned long long)p->fs_type,
				  strerror(-r));
		return r;
	}
	fd = fh_open(&p->root, p->fd, O_PATH);
	if (fd < 0) {
		conf_report_error(l->r, c->file, c->line,
				  "%s: cannot be opened by its file handle: "
				  "%s%s",
				  c->path, strerror(-fd),
				  fd == -EPERM ? " (CAP_DAC_READ_SEARCH)" : "");
		return fd;
	}
	close(fd);
	return 0;
}

static int
place_open(struct export_loader *l, struct export_place *p, struct statfs *fs)
{
	const struct conf_export *c = p->conf;
	int r;

	p->fd = open(c->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->fd < 0 || fstat(p->fd, &p->st) < 0 || fstatfs(p->fd, fs) < 0) {
		r = -errno;
		conf_report_error(l->r, c->file, c->line,
				  "%s: cannot be opened: %s", c->path,
				  strerror(-r));
		return r;
	}
	p->fs_type = (uint64_t)(unsigned long)fs->f_type;
	return place_check_handles(l, p);
}

int
export_open(struct export_loader *l, const struct conf_export *conf,
	    struct export *e)
{
	struct export_place p = { .conf = conf, .fd = -1 };
	struct statfs fs = { 0 };
	int r;

	assert(conf->client_count > 0);
	if (!place_is_mounted(l, conf))
		return 0;
	memset(e, 0, sizeof(*e));
	e->conf = *conf;
	e->path = conf->path;
	r = place_open(l, &p, &fs);
	if (r == 0)
		r = place_identify(l, &p, &fs, e);
	if (r == 0)
		r = export_trees_open(l, &p, e);
	if (p.fd >= 0)
		close(p.fd);
	return r < 0 ? r : 1;
}
