/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the plain blocking procedures share. Only they include it. Prototypes
 * stand under the file that defines them.
 */
#ifndef NVNFSD_PROC_H
#define NVNFSD_PROC_H

#include "nfsd/nfsd.h"

#include <limits.h>

/* name.c: one component of a path, as a client sent it -------------------- */

struct name {
	char text[NAME_MAX + 1];
};

/* Copy and terminate: NFS3ERR_ACCES for an empty name and one with a '/' or a
 * NUL in it, NFS3ERR_NAMETOOLONG over NAME_MAX, else NFS3_OK. */
enum nfsstat3 name_take(struct name *n, const struct nfs3_bytes *wire);
bool name_is_dot(const struct name *n);
bool name_is_dotdot(const struct name *n);
bool name_is_dots(const struct name *n); /* either */
/* O_PATH of name in dir_fd, following nothing and crossing no mount point; not
 * for "..". fd or -errno (-EXDEV: a mount point). */
int name_open(int dir_fd, const struct name *n);
/* The path by which this process reaches what fd (O_PATH too) refers to. */
#define NAME_FD_PATH_BYTES 32u
void name_fd_path(char path[NAME_FD_PATH_BYTES], int fd);

/* nfs3_query.c ------------------------------------------------------------- */

/* The ACCESS3_ bits that these PERM_ bits give on o, whose st is filled. */
uint32_t nfs3_access_bits(const struct object *o, unsigned perm);

/* dirlock.c: one change of a directory at a time -----------------------------
 */

/*
 * Held around {stat, change, stat}, so that wcc_data tells of this change and
 * no other. Inodes share stripes, so never take one while holding one: give
 * both inodes at once. b may be NULL. Blocks; workers only.
 */
struct dirlock {
	unsigned low, high; /* stripes; equal when there is one */
};
void dirlock_take(struct dirlock *l, const struct statx *a,
		  const struct statx *b);
void dirlock_drop(struct dirlock *l);

/* change.c: a directory about to change
 * ---------------------------------------- */

struct change {
	struct object dir;
	struct name name;
	struct wcc_data *wcc;
};

/* Resolve the directory and judge the name. wcc->after is filled as soon as
 * there is a directory. change_close in any case. */
enum nfsstat3 change_open(struct change *c, struct request *rq,
			  const struct diropargs3 *where, struct wcc_data *wcc);
void change_close(struct change *c);
/* Fill wcc->before and wcc->after; the directory is locked meanwhile. */
void change_begin(struct change *c);
void change_end(struct change *c);
/*
 * What returned from the kernel before this call is durable, where the export
 * is `sync` (always: in any case). other_fd: a second inode that changed, or
 * -1. NFS3_OK or NFS3ERR_IO. Call it without the lock, so that others share it.
 */
enum nfsstat3 change_sync(const struct object *o, int other_fd);
enum nfsstat3 change_sync_always(const struct object *o, int other_fd);
/* A link to victim_fd (O_PATH; -1: none) went away: where it was the last, the
 * open-file cache lets go of it. Closes victim_fd. */
void change_forget(struct object *o, int victim_fd);
/* Its name has a file of a new place: nothing of that shall wait in memory. */
void change_settle(struct change *c);

/* sattr.c: a sattr3 put on an inode
 * ---------------------------------------------- */

/* What no file system could take: -EINVAL or -EFBIG; else 0. */
int sattr_check(const struct sattr3 *a);
/* May the caller do all of it? Asked first, so that a refusal changes nothing.
 * 0, -EPERM or -EACCES. */
int sattr_permitted(struct object *o, const struct sattr3 *a);
/* Owner, mode and times, in this order, as the caller and (what Linux asks more
 * for than RFC 1813) as the server. 0 or -errno. Not under identity_assume. */
int sattr_apply(const struct object *o, const struct sattr3 *a);
/* The same for an inode that the caller has just made; fd may be O_PATH. As the
 * caller: under identity_assume. */
int sattr_apply_new(const struct identity *id, int fd, const struct sattr3 *a);
/* Is there anything in it that the call which makes an inode does not take? */
bool sattr_dresses(const struct sattr3 *a);
int sattr_chmod(int fd, unsigned mode);

/* nfs3_setattr.c
 * ------------------------------------------------------------------- */

/* SETATTR's way for any sattr: guard may be NULL. o is open. */
enum nfsstat3 setattr_object(struct object *o, const struct sattr3 *a,
			     const struct nfstime3 *guard,
			     struct wcc_data *wcc);

/* exclusive.c: the verifier of an EXCLUSIVE CREATE
 * ----------------------------------- */

/* Keep all of verf in the new file (a writable descriptor), as the server. 0 or
 * -errno (-EOPNOTSUPP: nowhere to keep it). */
int exclusive_keep(int fd, const uint8_t verf[NFS3_CREATEVERFSIZE]);
/* SETATTR has set the times of this file, which were st's: the verifier is no
 * more. fd may be O_PATH. As the server. */
void exclusive_end(int fd, const struct statx *st);
/* Was this file (fd may be O_PATH) made with verf? */
bool exclusive_same(int fd, const struct statx *st,
		    const uint8_t verf[NFS3_CREATEVERFSIZE]);

/* fslimits.c: what statfs does not tell
 * --------------------------------------------- */

struct fslimits {
	uint64_t file_bytes_max;
	uint32_t time_grain_ns;
	uint32_t link_max;
	bool case_insensitive;
};
/* Blocks; remembered by file system. */
void fslimits_get(const struct object *o, struct fslimits *ret);

#endif
