/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NFS version 3 and MOUNT version 3 on the wire (RFC 1813): types in RFC
 * spelling, and their XDR codecs over libtirpc's memory streams. Strings and
 * opaque data are decoded in place: they point into the record.
 */
#ifndef NVNFSD_NFS3_H
#define NVNFSD_NFS3_H

#include "nfsd/nlm.h"

#include <rpc/xdr.h>
#include <stdbool.h>
#include <stdint.h>

#define NFS3_PROGRAM        100003u
#define NFS3_VERSION        3u
#define NFS3_FHSIZE         64u
#define NFS3_COOKIEVERFSIZE 8u
#define NFS3_CREATEVERFSIZE 8u
#define NFS3_WRITEVERFSIZE  8u
#define MOUNT_PROGRAM       100005u
#define MOUNT_VERSION3      3u
#define MOUNT_VERSION2      2u
#define MOUNT_VERSION1      1u
#define NFSACL_PROGRAM      100227u
#define NFSACL_VERSION3     3u
#define RQUOTA_PROGRAM      100011u
#define RQUOTA_VERSION1     1u
#define RQUOTA_VERSION2     2u
#define MNT3_PATHLEN        1024u
#define MNT3_NAMLEN         255u

enum nfs3_proc {
	NFSPROC3_NULL,
	NFSPROC3_GETATTR,
	NFSPROC3_SETATTR,
	NFSPROC3_LOOKUP,
	NFSPROC3_ACCESS,
	NFSPROC3_READLINK,
	NFSPROC3_READ,
	NFSPROC3_WRITE,
	NFSPROC3_CREATE,
	NFSPROC3_MKDIR,
	NFSPROC3_SYMLINK,
	NFSPROC3_MKNOD,
	NFSPROC3_REMOVE,
	NFSPROC3_RMDIR,
	NFSPROC3_RENAME,
	NFSPROC3_LINK,
	NFSPROC3_READDIR,
	NFSPROC3_READDIRPLUS,
	NFSPROC3_FSSTAT,
	NFSPROC3_FSINFO,
	NFSPROC3_PATHCONF,
	NFSPROC3_COMMIT,
	NFSPROC3_COUNT
};

enum mount3_proc {
	MOUNTPROC3_NULL,
	MOUNTPROC3_MNT,
	MOUNTPROC3_DUMP,
	MOUNTPROC3_UMNT,
	MOUNTPROC3_UMNTALL,
	MOUNTPROC3_EXPORT,
	MOUNTPROC3_COUNT,
	MOUNTPROC1_EXPORTALL = MOUNTPROC3_COUNT,
	MOUNTPROC1_COUNT,
	MOUNTPROC2_PATHCONF = MOUNTPROC1_COUNT,
	MOUNTPROC2_COUNT
};

enum nfsacl3_proc {
	ACLPROC3_NULL,
	ACLPROC3_GETACL,
	ACLPROC3_SETACL,
	ACLPROC3_COUNT
};

enum rquota_proc {
	RQUOTAPROC_NULL,
	RQUOTAPROC_GETQUOTA,
	RQUOTAPROC_GETACTIVEQUOTA,
	RQUOTAPROC_COUNT
};

enum rquota_status { RQUOTA_OK = 1, RQUOTA_NOQUOTA = 2, RQUOTA_EPERM = 3 };
enum rquota_type { RQUOTA_USER, RQUOTA_GROUP };

enum nfsstat3 {
	NFS3_OK = 0,
	NFS3ERR_PERM = 1,
	NFS3ERR_NOENT = 2,
	NFS3ERR_IO = 5,
	NFS3ERR_NXIO = 6,
	NFS3ERR_ACCES = 13,
	NFS3ERR_EXIST = 17,
	NFS3ERR_XDEV = 18,
	NFS3ERR_NODEV = 19,
	NFS3ERR_NOTDIR = 20,
	NFS3ERR_ISDIR = 21,
	NFS3ERR_INVAL = 22,
	NFS3ERR_FBIG = 27,
	NFS3ERR_NOSPC = 28,
	NFS3ERR_ROFS = 30,
	NFS3ERR_MLINK = 31,
	NFS3ERR_NAMETOOLONG = 63,
	NFS3ERR_NOTEMPTY = 66,
	NFS3ERR_DQUOT = 69,
	NFS3ERR_STALE = 70,
	NFS3ERR_REMOTE = 71,
	NFS3ERR_BADHANDLE = 10001,
	NFS3ERR_NOT_SYNC = 10002,
	NFS3ERR_BAD_COOKIE = 10003,
	NFS3ERR_NOTSUPP = 10004,
	NFS3ERR_TOOSMALL = 10005,
	NFS3ERR_SERVERFAULT = 10006,
	NFS3ERR_BADTYPE = 10007,
	NFS3ERR_JUKEBOX = 10008
};

enum mountstat3 {
	MNT3_OK = 0,
	MNT3ERR_PERM = 1,
	MNT3ERR_NOENT = 2,
	MNT3ERR_IO = 5,
	MNT3ERR_ACCES = 13,
	MNT3ERR_NOTDIR = 20,
	MNT3ERR_INVAL = 22,
	MNT3ERR_NAMETOOLONG = 63,
	MNT3ERR_NOTSUPP = 10004,
	MNT3ERR_SERVERFAULT = 10006
};

enum ftype3 { NF3REG = 1, NF3DIR, NF3BLK, NF3CHR, NF3LNK, NF3SOCK, NF3FIFO };
enum stable_how { UNSTABLE, DATA_SYNC, FILE_SYNC };
enum createmode3 { UNCHECKED, GUARDED, EXCLUSIVE };
enum time_how { DONT_CHANGE, SET_TO_SERVER_TIME, SET_TO_CLIENT_TIME };

#define ACCESS3_READ         0x01u
#define ACCESS3_LOOKUP       0x02u
#define ACCESS3_MODIFY       0x04u
#define ACCESS3_EXTEND       0x08u
#define ACCESS3_DELETE       0x10u
#define ACCESS3_EXECUTE      0x20u
#define NFSACL_ACCESS        0x01u /* the ACL's entries */
#define NFSACL_ACCESS_COUNT  0x02u /* how many they are */
#define NFSACL_DEFAULT       0x04u
#define NFSACL_DEFAULT_COUNT 0x08u
#define NFSACL_MASK          0x0fu
#define FSF3_LINK            0x01u
#define FSF3_SYMLINK         0x02u
#define FSF3_HOMOGENEOUS     0x08u
#define FSF3_CANSETTIME      0x10u

struct nfs_fh3 {
	uint32_t bytes;
	uint8_t data[NFS3_FHSIZE];
};
struct nfstime3 {
	uint32_t seconds, nseconds;
};
struct specdata3 {
	uint32_t specdata1, specdata2;
};
struct fattr3 {
	enum ftype3 type;
	uint32_t mode, nlink, uid, gid;
	uint64_t size, used;
	struct specdata3 rdev;
	uint64_t fsid, fileid;
	struct nfstime3 atime, mtime, ctime;
};
struct post_op_attr {
	bool follows;
	struct fattr3 attr;
};
struct pre_op_attr {
	bool follows;
	uint64_t size;
	struct nfstime3 mtime, ctime;
};
struct wcc_data {
	struct pre_op_attr before;
	struct post_op_attr after;
};
struct post_op_fh3 {
	bool follows;
	struct nfs_fh3 fh;
};
struct sattr3 {
	bool set_mode, set_uid, set_gid, set_size;
	uint32_t mode, uid, gid;
	uint64_t size;
	enum time_how set_atime, set_mtime;
	struct nfstime3 atime, mtime;
};
/* A string or opaque in place, not terminated. */
struct nfs3_bytes {
	const uint8_t *data;
	uint32_t bytes;
};
struct diropargs3 {
	struct nfs_fh3 dir;
	struct nfs3_bytes name;
};

struct nfs3_fh_args {
	struct nfs_fh3 fh;
}; /* GETATTR READLINK FS* PATHCONF */
struct nfs3_setattr_args {
	struct nfs_fh3 fh;
	struct sattr3 attr;
	bool guard;
	struct nfstime3 guard_ctime;
};
struct nfs3_access_args {
	struct nfs_fh3 fh;
	uint32_t access;
};
struct nfs3_read_args {
	struct nfs_fh3 fh;
	uint64_t offset;
	uint32_t count;
};
struct nfs3_write_args {
	struct nfs_fh3 fh;
	uint64_t offset;
	uint32_t count;
	enum stable_how stable;
	uint32_t data_bytes; /* the opaque's own length; its bytes follow */
};
struct nfs3_create_args {
	struct diropargs3 where;
	enum createmode3 mode;
	struct sattr3 attr;
	uint8_t verf[NFS3_CREATEVERFSIZE];
};
struct nfs3_mkdir_args {
	struct diropargs3 where;
	struct sattr3 attr;
};
struct nfs3_symlink_args {
	struct diropargs3 where;
	struct sattr3 attr;
	struct nfs3_bytes target;
};
struct nfs3_mknod_args {
	struct diropargs3 where;
	uint32_t type; /* as sent: a bad ftype3 is NFS3ERR_BADTYPE, not garbage
			*/
	struct sattr3 attr; /* CHR BLK SOCK FIFO */
	struct specdata3 spec;
};
struct nfs3_dirop_args {
	struct diropargs3 where;
}; /* LOOKUP REMOVE RMDIR */
struct nfs3_rename_args {
	struct diropargs3 from, to;
};
struct nfs3_link_args {
	struct nfs_fh3 fh;
	struct diropargs3 link;
};
struct nfs3_readdir_args { /* dircount 0 and plus false for READDIR */
	struct nfs_fh3 dir;
	uint64_t cookie;
	uint8_t cookieverf[NFS3_COOKIEVERFSIZE];
	uint32_t dircount, maxcount; /* READDIR's count is maxcount */
	bool plus;
};
struct nfs3_commit_args {
	struct nfs_fh3 fh;
	uint64_t offset;
	uint32_t count;
};
struct nfsacl_getacl_args {
	struct nfs_fh3 fh;
	uint32_t mask; /* of NFSACL_ */
};
struct nfsacl_setacl_args {
	struct nfs_fh3 fh;
	uint32_t mask;
	struct nfs3_bytes access, default_; /* entries in place, see acl.h */
};
struct rquota_args {
	struct nfs3_bytes path;
	uint32_t type; /* as sent; version 1 knows users only */
	uint32_t id;
};
struct mount3_path_args {
	struct nfs3_bytes path;
}; /* MNT UMNT */

union nfs3_args {
	struct nfs3_fh_args fh;
	struct nfs3_setattr_args setattr;
	struct nfs3_access_args access;
	struct nfs3_read_args read;
	struct nfs3_write_args write;
	struct nfs3_create_args create;
	struct nfs3_mkdir_args mkdir;
	struct nfs3_symlink_args symlink;
	struct nfs3_mknod_args mknod;
	struct nfs3_dirop_args dirop;
	struct nfs3_rename_args rename;
	struct nfs3_link_args link;
	struct nfs3_readdir_args readdir;
	struct nfs3_commit_args commit;
	struct nfsacl_getacl_args getacl;
	struct nfsacl_setacl_args setacl;
	struct rquota_args quota;
	struct mount3_path_args mount;
	union nlm4_args nlm;
};

/* Results: status is kept apart; each encoder writes the arm for OK or the arm
 * for failure. */
struct nfs3_attr_res {
	struct post_op_attr attr;
}; /* also most failures */
struct nfs3_wcc_res {
	struct wcc_data wcc;
}; /* SETATTR REMOVE RMDIR */
struct nfs3_lookup_res {
	struct nfs_fh3 fh;
	struct post_op_attr attr, dir_attr;
};
struct nfs3_access_res {
	struct post_op_attr attr;
	uint32_t access;
};
struct nfs3_readlink_res {
	struct post_op_attr attr;
	uint32_t bytes;
	char data[4096];
};
struct nfs3_read_res { /* the payload is sent apart, after the header */
	struct post_op_attr attr;
	uint32_t count;
	bool eof;
};
struct nfs3_write_res {
	struct wcc_data wcc;
	uint32_t count;
	enum stable_how committed;
	uint8_t verf[NFS3_WRITEVERFSIZE];
};
struct nfs3_create_res { /* CREATE MKDIR SYMLINK MKNOD */
	struct post_op_fh3 fh;
	struct post_op_attr attr;
	struct wcc_data dir_wcc;
};
struct nfs3_rename_res {
	struct wcc_data from, to;
};
struct nfs3_link_res {
	struct post_op_attr attr;
	struct wcc_data dir_wcc;
};
struct nfs3_readdir_res {
	struct post_op_attr dir_attr;
	uint8_t cookieverf[NFS3_COOKIEVERFSIZE];
	/* The entry list, already encoded, with its closing FALSE and eof. */
	uint8_t *entries;
	uint32_t entries_bytes;
};
struct nfs3_fsstat_res {
	struct post_op_attr attr;
	uint64_t tbytes, fbytes, abytes, tfiles, ffiles, afiles;
	uint32_t invarsec;
};
struct nfs3_fsinfo_res {
	struct post_op_attr attr;
	uint32_t rtmax, rtpref, rtmult, wtmax, wtpref, wtmult, dtpref;
	uint64_t maxfilesize;
	struct nfstime3 time_delta;
	uint32_t properties;
};
struct nfs3_pathconf_res {
	struct post_op_attr attr;
	uint32_t linkmax, name_max;
	bool no_trunc, chown_restricted, case_insensitive, case_preserving;
};
struct nfs3_commit_res {
	struct wcc_data wcc;
	uint8_t verf[NFS3_WRITEVERFSIZE];
};
struct mount3_mnt_res {
	uint32_t status; /* mountstat3 */
	struct nfs_fh3 fh;
};
struct mount2_pathconf_res {
	bool failed;
	int32_t link_max;
	int16_t max_canon, max_input, name_max, path_max, pipe_buf;
	uint8_t vdisable;
};
struct mount3_list_res { /* DUMP, EXPORT: already encoded, malloc'd list */
	uint8_t *list;
	uint32_t list_bytes;
};
struct nfsacl_res {
	/* GETACL's mask and ACLs, likewise; NULL unless it succeeded */
	struct mount3_list_res list;
	struct post_op_attr attr;
};
struct rquota_res { /* the rest only with RQUOTA_OK */
	uint32_t status;
	uint32_t block_bytes; /* the unit of the next three */
	uint32_t blocks_hard, blocks_soft, blocks;
	uint32_t files_hard, files_soft, files;
	uint32_t blocks_seconds, files_seconds; /* of grace that are left */
};

union nfs3_res {
	struct nfs3_attr_res attr;
	struct nfs3_wcc_res wcc;
	struct nfs3_lookup_res lookup;
	struct nfs3_access_res access;
	struct nfs3_readlink_res readlink;
	struct nfs3_read_res read;
	struct nfs3_write_res write;
	struct nfs3_create_res create;
	struct nfs3_rename_res rename;
	struct nfs3_link_res link;
	struct nfs3_readdir_res readdir;
	struct nfs3_fsstat_res fsstat;
	struct nfs3_fsinfo_res fsinfo;
	struct nfs3_pathconf_res pathconf;
	struct nfs3_commit_res commit;
	struct mount3_mnt_res mnt;
	struct mount2_pathconf_res mount_pathconf;
	struct mount3_list_res list;
	struct nfsacl_res acl;
	struct rquota_res quota;
	struct nlm4_res nlm;
};

/* nfs3_xdr.c, nfs3_xdr_encode.c, mount3_xdr.c ------------------------- */

/*
 * Decoders: x is an XDR_DECODE memory stream at the arguments. They return
 * false for anything that is not what RFC 1813 describes (garbage args):
 * lengths over the limit, discriminants and enums out of range, bytes missing
 * or left over (WRITE: see below). A name's length is not limited here beyond
 * the record: NFS3ERR_NAMETOOLONG is the procedure's to say. The filler bytes
 * of opaque data are not looked at. The stream may begin at any address (a
 * record behind a malformed one may lie off a word boundary). After false, args
 * is undefined.
 */
typedef bool nfs3_decode_fn(XDR *x, union nfs3_args *args);
nfs3_decode_fn nfs3_decode_void, nfs3_decode_fh, nfs3_decode_setattr,
	nfs3_decode_dirop, nfs3_decode_access, nfs3_decode_read,
	nfs3_decode_create, nfs3_decode_mkdir, nfs3_decode_symlink,
	nfs3_decode_mknod, nfs3_decode_rename, nfs3_decode_link,
	nfs3_decode_readdir, nfs3_decode_readdirplus, nfs3_decode_commit,
	mount3_decode_path, nfsacl_decode_getacl, nfsacl_decode_setacl,
	rquota_decode, rquota2_decode;
/* Up to the payload: stops behind the opaque's length, leaves the bytes alone
 * and does not ask for the stream's end. */
nfs3_decode_fn nfs3_decode_write;

/* Encoders: x is an XDR_ENCODE memory stream; they begin with the status.
 * false: it did not fit (a mistake of ours: the table's bound is too low). */
typedef bool nfs3_encode_fn(XDR *x, enum nfsstat3 status,
			    const union nfs3_res *res);
nfs3_encode_fn nfs3_encode_void, /* NULL: nothing at all */
	nfs3_encode_getattr, nfs3_encode_wcc, nfs3_encode_lookup,
	nfs3_encode_access, nfs3_encode_readlink,
	nfs3_encode_read, /* up to and with the opaque's length */
	nfs3_encode_write, nfs3_encode_create, nfs3_encode_rename,
	nfs3_encode_link,
	nfs3_encode_readdir, /* up to and with cookieverf; entries sent apart */
	nfs3_encode_fsstat, nfs3_encode_fsinfo, nfs3_encode_pathconf,
	nfs3_encode_commit,
	nfsacl_encode_res, /* of GETACL the rest is sent apart */
	rquota_encode;     /* the status is res.quota's */
/* MOUNT's status is that of res.mnt, its status argument is not looked at.
 * The handle of versions 1 and 2, of 32 bytes, cannot hold ours:
 * mount1_encode_mnt writes an error always (MNT3_OK becomes EINVAL). */
nfs3_encode_fn mount3_encode_mnt, mount1_encode_mnt, mount2_encode_pathconf,
	mount3_encode_list; /* nothing: the list is sent apart */
/*
 * Pieces of DUMP's mountlist and EXPORT's exports (RFC 1813, 5.2.2, 5.2.5), for
 * the procedures that build res.list: one node, with the TRUE before it, and
 * the FALSE that ends a list. mount3_put_export opens an exportnode: its groups
 * follow, then mount3_put_end for them.
 */
bool mount3_put_mount(XDR *x, const char *host, const char *dir);
bool mount3_put_export(XDR *x, const char *dir);
bool mount3_put_group(XDR *x, const char *name);
bool mount3_put_end(XDR *x);

/*
 * nlm_xdr.c: NLM's arguments are garbage where a string or netobj is longer
 * than the protocol has it; a handle that none of ours can be is not.
 * A status argument is not looked at: it is res.nlm's.
 */
nfs3_decode_fn nlm4_decode_test, /* also GRANTED */
	nlm4_decode_lock, nlm4_decode_cancel, nlm4_decode_unlock,
	nlm4_decode_test_res, nlm4_decode_res, nlm4_decode_share,
	nlm4_decode_free_all, nlm4_decode_sm_notify;
nfs3_encode_fn nlm4_encode_test, nlm4_encode_res, nlm4_encode_share;
/* GRANTED's arguments, which the server sends. */
bool nlm4_encode_granted(XDR *x, const struct nlm4_lockargs *a);

/* Bounds of what the encoders write, as named parts to be summed up
 * (nfs3_xdr_encode.c and mount3_xdr.c assert them). */
#define NFS3_FATTR_BYTES      84u
#define NFS3_POST_OP_BYTES    (4u + NFS3_FATTR_BYTES)
#define NFS3_PRE_OP_BYTES     (4u + 24u)
#define NFS3_WCC_BYTES        (NFS3_PRE_OP_BYTES + NFS3_POST_OP_BYTES)
#define NFS3_FH_BYTES         (4u + NFS3_FHSIZE)
#define NFS3_POST_FH_BYTES    (4u + NFS3_FH_BYTES)
#define NFS3_STATUS_BYTES     4u
#define NFS3_VERF_BYTES       8u           /* cookieverf3, writeverf3 */
#define NFS3_PATH_BYTES       (4u + 4096u) /* READLINK's target */
#define NFS3_FSSTAT_BYTES     52u /* FSSTAT3resok behind its attributes */
#define NFS3_FSINFO_BYTES     48u /* FSINFO3resok, likewise */
#define NFS3_PATHCONF_BYTES   24u /* PATHCONF3resok, likewise */
#define RQUOTA_BYTES          44u
#define MOUNT2_PATHCONF_BYTES 40u
#define MOUNT3_MNT_BYTES      (NFS3_STATUS_BYTES + NFS3_FH_BYTES + 8u)
/* One entry3 with a name of n bytes; entryplus3 with all that it may have. */
#define NFS3_ENTRY_BYTES(n)   (4u + 8u + 4u + (((n) + 3u) & ~3u) + 8u)
#define NFS3_ENTRYPLUS_BYTES(n)                                                \
	(NFS3_ENTRY_BYTES(n) + NFS3_POST_OP_BYTES + NFS3_POST_FH_BYTES)
/* What WRITE's arguments take before the payload, at most. */
#define NFS3_WRITE_ARGS_BYTES_MAX (NFS3_FH_BYTES + 8u + 4u + 4u + 4u)

/*
 * One entry3 or entryplus3 (with its leading TRUE) into out; returns its length
 * or 0 when it does not fit in room. attr, fh: NULL to leave them out (plus).
 */
uint32_t nfs3_encode_entry(uint8_t *out, uint32_t room, uint64_t fileid,
			   const char *name, uint32_t name_bytes,
			   uint64_t cookie);
uint32_t nfs3_encode_entryplus(uint8_t *out, uint32_t room, uint64_t fileid,
			       const char *name, uint32_t name_bytes,
			       uint64_t cookie, const struct fattr3 *attr,
			       const struct nfs_fh3 *fh);

/* nfs3_attr.c --------------------------------------------------------- */

struct statx;
/* The one map from -errno (or errno) to a status; what it does not know is
 * NFS3ERR_IO. -ECANCELED never comes here (asserted). */
enum nfsstat3 nfs3_status(int error);
enum mountstat3 mount3_status(int error);
/* fsid: the export's, as GETATTR tells it. */
void nfs3_attr_from_statx(struct fattr3 *out, const struct statx *st,
			  uint64_t fsid);
void nfs3_pre_op_from_statx(struct pre_op_attr *out, const struct statx *st);
/* statx mask that fattr3 needs. */
#define NFS3_STATX_MASK 0x07ffu /* STATX_BASIC_STATS */
/* statx of an open descriptor (O_PATH too), AT_EMPTY_PATH. 0 or -errno. */
int nfs3_statx(int fd, struct statx *st);
/* Of name in it. Both tell the size with what the kernel does not know yet (see
 * io_size). */
int nfs3_statx_at(int fd, const char *name, int flags, struct statx *st);

#endif
