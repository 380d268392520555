/* SPDX-License-Identifier: Apache-2.0 */
/*
 * READDIR and READDIRPLUS (RFC 1813, 3.3.16, 3.3.17): a plain blocking
 * procedure, on a worker, that leaves nothing behind. Each call opens the
 * directory, goes to the cookie and encodes straight into the call's room.
 *
 * A cookie is the file system's own position, d_off, so that it outlives the
 * removal of entries and a restart. There is nothing to verify about it: the
 * cookie verifier is zero, and whatever a client sends back is taken.
 *
 * What bounds a reply, all in bytes of XDR: maxcount (READDIR's count) the
 * whole READDIR3resok, attributes, verifier and the list's end included;
 * dircount the file ids, names and cookies.
 */
#include "nfsd/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdalign.h>
#include <string.h>
#include <unistd.h>

#define LIST_END_BYTES 8u /* no more entries, eof */
#define RESOK_FIXED_BYTES                                                      \
	(NFS3_POST_OP_BYTES + NFS3_COOKIEVERFSIZE + LIST_END_BYTES)
#define GETDENTS_BYTES (16u << 10)

/* One reply in the making; on the stack of its call. */
struct listing {
	struct object *dir;
	int fd;
	bool plus, at_root;
	uint8_t *out;
	uint32_t room, used;         /* of the encoded entries */
	uint32_t dir_room, dir_used; /* dircount's share */
	bool full, eof;
};

/* Not more than asked, not more than there is room for. */
static enum nfsstat3
listing_init(struct listing *l, struct request *rq, struct object *dir)
{
	const struct nfs3_readdir_args *args = &rq->args.readdir;
	uint32_t room = rq->room_bytes - LIST_END_BYTES;

	if (args->maxcount < RESOK_FIXED_BYTES)
		return NFS3ERR_TOOSMALL;
	memset(l, 0, sizeof(*l));
	l->dir = dir;
	l->fd = -1;
	l->plus = args->plus;
	l->out = rq->room;
	l->room = args->maxcount - RESOK_FIXED_BYTES;
	if (l->room > room)
		l->room = room;
	l->dir_room = args->plus ? args->dircount : UINT32_MAX;
	return NFS3_OK;
}

/*
 * By the descriptor's name in /proc, so that reading takes the right to read
 * and not, as "." in it would, the right to search too.
 */
static enum nfsstat3
listing_open(struct listing *l, uint64_t cookie)
{
	char path[NAME_FD_PATH_BYTES];

	name_fd_path(path, l->dir->fd);
	l->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l->fd < 0)
		return nfs3_status(-errno);
	if (cookie == 0)
		return NFS3_OK;
	if (cookie > INT64_MAX)
		return NFS3ERR_BAD_COOKIE;
	if (lseek(l->fd, (off_t)cookie, SEEK_SET) < 0)
		return errno == EINVAL ? NFS3ERR_BAD_COOKIE
				       : nfs3_status(-errno);
	return NFS3_OK;
}

/* What READDIRPLUS tells beyond READDIR. */
struct plus {
	bool known;
	struct fattr3 attr;
	struct nfs_fh3 fh;
};

/*
 * Handle first, attributes second, and only where the inode is still the one
 * that the directory named: what was replaced between the two, what lies on
 * another device (a mount point), and what the caller may not search for is
 * listed by name alone.
 */
static void
plus_get(const struct listing *l, const struct dirent64 *d, uint64_t fileid,
	 struct plus *p)
{
	const struct statx *dir = &l->dir->st;
	const char *name = d->d_name;
	struct statx st;

	if (l->at_root && strcmp(name, "..") == 0)
		name = ".";
	p->known = false;
	if (object_handle(l->dir, l->fd, name, &p->fh))
		return;
	if (nfs3_statx_at(l->fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
			  &st) < 0)
		return;
	if (st.stx_ino != fileid || st.stx_dev_major != dir->stx_dev_major ||
	    st.stx_dev_minor != dir->stx_dev_minor)
		return;
	nfs3_attr_from_statx(&p->attr, &st, l->dir->access.export->fsid);
	p->known = true;
}

static uint32_t
entry_encode(const struct listing *l, const struct dirent64 *d, uint64_t fileid,
	     uint32_t name_bytes)
{
	uint8_t *out = l->out + l->used;
	uint32_t room = l->room - l->used;
	struct plus p;

	if (!l->plus)
		return nfs3_encode_entry(out, room, fileid, d->d_name,
					 name_bytes, (uint64_t)d->d_off);
	plus_get(l, d, fileid, &p);
	return nfs3_encode_entryplus(
		out, room, fileid, d->d_name, name_bytes, (uint64_t)d->d_off,
		p.known ? &p.attr : NULL, p.known ? &p.fh : NULL);
}

/* False: it did not fit, and the list ends before it. */
static bool
listing_add(struct listing *l, const struct dirent64 *d)
{
	uint32_t name_bytes = (uint32_t)strlen(d->d_name);
	/* fileid, length and padded bytes of the name, cookie */
	uint32_t dir_bytes = 8 + 4 + ((name_bytes + 3) & ~3u) + 8;
	uint64_t fileid = d->d_ino;
	uint32_t n;

	if (dir_bytes > l->dir_room - l->dir_used)
		return false;
	if (l->at_root && strcmp(d->d_name, "..") == 0)
		fileid = l->dir->st.stx_ino;
	n = entry_encode(l, d, fileid, name_bytes);
	if (n == 0)
		return false;
	l->used += n;
	l->dir_used += dir_bytes;
	return true;
}

static int
listing_fill(struct listing *l)
{
	alignas(struct dirent64) char buf[GETDENTS_BYTES];
	const struct dirent64 *d;
	ssize_t n, at;

	while (!l->full && !l->eof) {
		n = getdents64(l->fd, buf, sizeof(buf));
		if (n < 0)
			return -errno;
		l->eof = n == 0;
		for (at = 0; at < n && !l->full; at += d->d_reclen) {
			d = (const struct dirent64 *)(buf + at);
			l->full = !listing_add(l, d);
		}
	}
	return 0;
}

static void
listing_end(struct listing *l, struct nfs3_readdir_res *res)
{
	memset(l->out + l->used, 0, LIST_END_BYTES);
	l->out[l->used + LIST_END_BYTES - 1] = l->eof;
	res->entries = l->out;
	res->entries_bytes = l->used + LIST_END_BYTES;
}

/* As the caller. */
static enum nfsstat3
listing_run(struct listing *l, uint64_t cookie)
{
	enum nfsstat3 status = listing_open(l, cookie);
	int error;

	if (status != NFS3_OK)
		return status;
	error = listing_fill(l);
	if (l->used > 0) /* what there is; the next call meets the error */
		return NFS3_OK;
	if (error == -EINVAL && cookie != 0)
		return NFS3ERR_BAD_COOKIE;
	if (error == -ENOENT) /* the directory itself was removed */
		return NFS3ERR_STALE;
	if (error)
		return nfs3_status(error);
	return l->full ? NFS3ERR_TOOSMALL : NFS3_OK;
}

static enum nfsstat3
readdir_list(struct request *rq, struct object *dir)
{
	enum nfsstat3 status;
	struct listing l;

	if (!S_ISDIR(dir->st.stx_mode))
		return NFS3ERR_NOTDIR;
	status = listing_init(&l, rq, dir);
	if (status != NFS3_OK)
		return status;
	l.at_root = object_is_root(dir) != 0; /* where in doubt, no way up */
	identity_assume(&dir->id);
	status = listing_run(&l, rq->args.readdir.cookie);
	identity_drop();
	if (status == NFS3_OK)
		listing_end(&l, &rq->res.readdir);
	if (l.fd >= 0)
		(void)close(l.fd);
	return status;
}

enum nfsstat3
nfs3_readdir(struct request *rq)
{
	enum nfsstat3 status;
	struct object dir;

	status = nfs3_status(object_open(&dir, rq, &rq->args.readdir.dir));
	if (status == NFS3_OK) {
		status = readdir_list(rq, &dir);
		object_attr_now(&dir, &rq->res.readdir.dir_attr);
	}
	object_fini(&dir);
	return status;
}
