/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sattr3 (RFC 1813, 2.6) put on an inode: what is refused before anything is
 * touched, then owner, mode and times, in this order, since a change of owner
 * takes the setuid and setgid bits away and the mode asked for is to stand. The
 * size is nfs3_setattr.c's and nfs3_create.c's matter. Stateless, on workers.
 *
 * As with Linux, the mode of a symlink is left alone without an error.
 */
#include "nfsd/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FCHMODAT2_CALL 452 /* newer than this system's headers */

#define NSEC_MAX 999999999u
#define ID_NONE  UINT32_MAX /* what chown(2) takes for "leave it" */

static bool
time_sane(enum time_how how, const struct nfstime3 *t)
{
	/* Also keeps UTIME_NOW and UTIME_OMIT from coming off the wire. */
	return how != SET_TO_CLIENT_TIME || t->nseconds <= NSEC_MAX;
}

int
sattr_check(const struct sattr3 *a)
{
	if (!time_sane(a->set_atime, &a->atime) ||
	    !time_sane(a->set_mtime, &a->mtime))
		return -EINVAL;
	if (a->set_size && a->size > INT64_MAX)
		return -EFBIG;
	return 0;
}

static bool
sets_uid(const struct sattr3 *a)
{
	return a->set_uid && a->uid != ID_NONE;
}

static bool
sets_gid(const struct sattr3 *a)
{
	return a->set_gid && a->gid != ID_NONE;
}

static bool
sets_times(const struct sattr3 *a)
{
	return a->set_atime != DONT_CHANGE || a->set_mtime != DONT_CHANGE;
}

/* Things that only the owner may do. */
static int
permitted_owner(const struct object *o, const struct sattr3 *a)
{
	if (o->id.uid == 0)
		return 0;
	if (o->id.uid != o->st.stx_uid)
		return -EPERM;
	if (sets_uid(a) && a->uid != o->st.stx_uid)
		return -EPERM;
	if (sets_gid(a) && a->gid != o->st.stx_gid &&
	    !identity_in_group(&o->id, a->gid))
		return -EPERM;
	return 0;
}

int
sattr_permitted(struct object *o, const struct sattr3 *a)
{
	int error = 0;

	if ((a->set_mode && !S_ISLNK(o->st.stx_mode)) || sets_uid(a) ||
	    sets_gid(a) || a->set_atime == SET_TO_CLIENT_TIME ||
	    a->set_mtime == SET_TO_CLIENT_TIME)
		error = permitted_owner(o, a);
	if (!error && (a->set_size || sets_times(a)))
		error = perm_data(&o->id, o->fd, &o->st, true);
	return error;
}

static int
sattr_chown(int fd, const struct sattr3 *a)
{
	uid_t uid = sets_uid(a) ? a->uid : ID_NONE;
	gid_t gid = sets_gid(a) ? a->gid : ID_NONE;

	if (uid == ID_NONE && gid == ID_NONE)
		return 0;
	return fchownat(fd, "", uid, gid, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

/* Linux 6.6 has the call; asked with a descriptor that cannot be, so that a
 * filter which answers for it with any other error counts as its absence. */
static bool
has_fchmodat2(void)
{
	static _Atomic int known; /* 0: not asked, 1: yes, -1: no */

	if (known == 0)
		known = syscall(FCHMODAT2_CALL, -1, "", 0, AT_EMPTY_PATH) < 0 &&
					errno == EBADF
				? 1
				: -1;
	return known > 0;
}

int
sattr_chmod(int fd, unsigned mode)
{
	char path[NAME_FD_PATH_BYTES];
	long r;

	mode &= 07777u;
	if (has_fchmodat2()) {
		r = syscall(FCHMODAT2_CALL, fd, "", mode, AT_EMPTY_PATH);
	} else {
		name_fd_path(path, fd);
		r = chmod(path, mode);
	}
	return r < 0 ? -errno : 0;
}

static void
time_make(struct timespec *out, enum time_how how, const struct nfstime3 *t)
{
	out->tv_sec = t->seconds;
	out->tv_nsec = t->nseconds;
	if (how == SET_TO_CLIENT_TIME)
		return;
	out->tv_sec = 0;
	out->tv_nsec = how == SET_TO_SERVER_TIME ? UTIME_NOW : UTIME_OMIT;
}

static int
sattr_times(int fd, const struct sattr3 *a)
{
	struct timespec times[2];

	if (!sets_times(a))
		return 0;
	time_make(&times[0], a->set_atime, &a->atime);
	time_make(&times[1], a->set_mtime, &a->mtime);
	return utimensat(fd, "", times, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

/*
 * Who may write may set one time to the server's clock (a client's truncation
 * asks for the size and the mtime at once), but utimensat(2) wants the owner
 * unless it is both. sattr_permitted has judged the caller.
 */
static bool
times_need_server(const struct object *o, const struct sattr3 *a)
{
	if (o->id.uid == 0 || o->id.uid == o->st.stx_uid)
		return false;
	return (a->set_atime == DONT_CHANGE) != (a->set_mtime == DONT_CHANGE);
}

int
sattr_apply(const struct object *o, const struct sattr3 *a)
{
	bool as_server = times_need_server(o, a);
	int error;

	identity_assume(&o->id);
	error = sattr_chown(o->fd, a);
	if (!error && a->set_mode && !S_ISLNK(o->st.stx_mode))
		error = sattr_chmod(o->fd, a->mode);
	if (!error && !as_server)
		error = sattr_times(o->fd, a);
	identity_drop();
	if (!error && as_server)
		error = sattr_times(o->fd, a);
	return error;
}

bool
sattr_dresses(const struct sattr3 *a)
{
	return sets_uid(a) || sets_gid(a) || sets_times(a) ||
	       (a->set_mode && a->mode & (S_ISUID | S_ISGID));
}

/*
 * The kernel made it with mode, owner and group as the directory's setgid bit
 * and default ACL have it. Others than root cannot give it away, and clients
 * that send their own ids along regardless are not refused for it.
 */
int
sattr_apply_new(const struct identity *id, int fd, const struct sattr3 *a)
{
	unsigned bits = a->set_mode ? a->mode & (S_ISUID | S_ISGID) : 0;
	struct statx st;
	int error = 0;

	if (id->uid == 0)
		error = sattr_chown(fd, a);
	/* mkdir(2) does not take these bits, and chown(2) clears them. */
	if (!error && bits != 0)
		error = nfs3_statx(fd, &st);
	if (!error && bits != 0 && !S_ISLNK(st.stx_mode) &&
	    (st.stx_mode & bits) != bits)
		error = sattr_chmod(fd, st.stx_mode | bits);
	if (!error)
		error = sattr_times(fd, a);
	return error;
}
