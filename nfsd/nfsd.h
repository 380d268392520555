/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server: what glues rpc/, io/ and conf/ together. Prototypes stand under
 * the file that defines them.
 */
#ifndef NVNFSD_NFSD_H
#define NVNFSD_NFSD_H

#include "conf/conf.h"
#include "io/io.h"
#include "nfsd/nfs3.h"
#include "rpc/rpc.h"

#include <netinet/in.h>
#include <sys/stat.h>
#include <time.h>

struct server;
struct export;
struct export_table;

/* CLOCK_MONOTONIC */
static inline uint64_t
monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* log.c: stderr, or the journal with its levels when stderr is the journal --
 */

enum log_level { LOG_ERR_, LOG_WARNING_, LOG_NOTICE_, LOG_INFO_, LOG_DEBUG_ };
void log_set_level(enum log_level level);
void log_msg(enum log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* At most once in 10 s for each place in the source (limit is its own static
 * memory); what was left out is counted and said with the next. */
struct log_limit {
	_Atomic uint64_t next_ns, suppressed;
};
void log_limited(struct log_limit *limit, enum log_level level,
		 const char *format, ...) __attribute__((format(printf, 3, 4)));

/* cred.c, groups.c, act.c: who acts ---------------------------------------- */

#define IDENTITY_GIDS_INLINE 16u

struct gid_list; /* counted list that manage-gids found */

/* A caller after squashing, for one export. */
struct identity {
	uint32_t uid, gid;
	uint32_t gids;
	uint32_t gid_inline[IDENTITY_GIDS_INLINE];
	struct gid_list *list; /* NULL: gid_inline holds them */
};

/*
 * Squash a call's credential by the export's options. manage_gids replaces the
 * caller's groups by the server's own list, cached; -EAGAIN when that needs a
 * look-up and may_block is false. AUTH_NONE is the anonymous user. 0 or
 * -errno. identity_fini afterwards.
 */
int identity_make(struct identity *id, const struct rpc_cred *cred,
		  const struct conf_export_options *options, bool manage_gids,
		  bool may_block);
void identity_fini(struct identity *id);
/* Forget what manage-gids looked up (a reload, the end). */
void identity_forget_groups(void);
const uint32_t *identity_gids(const struct identity *id);
bool identity_in_group(const struct identity *id, uint32_t gid);
uint64_t identity_hash(const struct identity *id);
/*
 * Make this thread act as id: groups (raw setgroups: this thread only), fsgid,
 * fsuid, umask 0, and for any uid but 0 no effective capability whatever the
 * way the daemon was started. Worker threads only. Asserts that it took.
 */
void identity_assume(const struct identity *id);
/* Back to the server's own ids and capabilities. */
void identity_drop(void);
/* Once on each thread at its start: workers learn what they restore to, give up
 * the server's supplementary groups and set the process's umask to 0 (-EPERM:
 * this process may not change its ids). As the server neither workers nor
 * reactors have CAP_FSETID and CAP_SYS_RESOURCE. 0 or -errno. */
int identity_worker_init(void);
int identity_reactor_init(void);

/* perm.c: mode and ACL of an inode against an identity --------------------- */

#define PERM_READ  4u
#define PERM_WRITE 2u
#define PERM_EXEC  1u
/* Which of PERM_ bits does mode and ACL (system.posix_acl_access of fd, which
 * may be O_PATH) grant? uid 0 has all (exec on a file needs one x bit). No
 * blocking beyond reading an xattr. 0 or -errno; *ret the granted bits. */
int perm_granted(const struct identity *id, int fd, const struct statx *st,
		 unsigned *ret);
/* READ and WRITE's rule: the owner may always, READ also with execute. */
int perm_data(const struct identity *id, int fd, const struct statx *st,
	      bool write);
/* As perm_granted and perm_data, remembered by file and identity until ctime,
 * mode, uid or gid change. One cache a reactor. */
struct perm_cache;
struct perm_cache *perm_cache_new(void);
void perm_cache_free(struct perm_cache *c);
int perm_cache_granted(struct perm_cache *c, const struct identity *id,
		       struct file *f, const struct statx *st, unsigned *ret);
int perm_cache_data(struct perm_cache *c, const struct identity *id,
		    struct file *f, const struct statx *st, bool write);

/* fh.c: file handles ----------------------------------------------------------
 */

/*
 * version 1, export id, the kernel's handle, 8 bytes of SipHash over all of it
 * with a key kept in the state directory: at most 56 bytes.
 */
struct fh {
	uint64_t export_id;
	int32_t type; /* the kernel's handle type */
	uint32_t bytes;
	uint8_t data[IO_HANDLE_BYTES_MAX];
};

#define FH_KEY_BYTES 16u
/* Read the key from dir_fd, or make it (O_EXCL, fsynced, 0600). 0, -errno. */
int fh_key_load(int dir_fd, uint8_t key[FH_KEY_BYTES]);
/* Pure: false when malformed or forged (NFS3ERR_BADHANDLE). */
bool fh_decode(const uint8_t key[FH_KEY_BYTES], const struct nfs_fh3 *wire,
	       struct fh *fh);
void fh_encode(const uint8_t key[FH_KEY_BYTES], const struct fh *fh,
	       struct nfs_fh3 *wire);
/* The kernel's handle of fd (O_PATH will do), or of name in directory fd (not
 * following a symlink; NULL: fd itself). fh->export_id is the caller's to set.
 * 0 or -errno (-EOPNOTSUPP: the file system has no handles). */
int fh_from_fd(struct fh *fh, int fd, const char *name);
/* open_by_handle_at with flags (O_PATH mostly), as the server. fd or -errno
 * (-ESTALE). */
int fh_open(const struct fh *fh, int mount_fd, int flags);

/* export.c and export_*.c: what is exported, to whom ---------------------- */

struct export_tree; /* a clone of a directory with its volume, counted */

/*
 * One exported directory of one table. Its trees are carried over into the next
 * table when path, id and directory stay, so that clients notice nothing.
 */
/* clang-format takes the struct's name for C++'s keyword. */
/* clang-format off */
struct export {
	uint64_t id;
	uint64_t fsid; /* as fattr3 tells it */
	const char *path;
	struct volume *rw, *ro; /* either may be NULL */
	struct conf_export conf; /* this table's clients */
	struct export_tree *rw_tree, *ro_tree; /* private: what holds them */
};
/* clang-format on */

/* What one client may do with one export. Holds a reference to the table. */
struct access {
	struct export_table *table;
	struct export *export;
	const struct conf_export_options *options; /* inside the table */
	struct volume *volume;                     /* rw or ro */
};

struct overrides; /* override.h */

struct export_load {
	struct engine *engine;
	const struct conf *conf;           /* for the policy's defaults */
	const struct overrides *overrides; /* go over all; NULL: none */
	uint64_t (*verifier)(uint64_t export_id, void *arg); /* first one */
	void *arg;
};

/*
 * Open everything in parsed (which it takes over, and zeroes, on success). old:
 * exports to carry over, or NULL. Blocks. On failure nothing changes, and each
 * export that cannot be opened is named in r with its file, line and reason. An
 * export whose mountpoint= is not mounted is left out with a warning, as
 * exports(5) has it. 0 or -errno.
 */
int export_table_load(struct export_table **ret, struct conf_exports *parsed,
		      struct export_table *old, const struct export_load *load,
		      struct conf_report *r);
/* Policies anew, as load says now; conf is not read again. What a file system
 * cannot do is a warning in r. 0; or -errno with nothing changed, where it
 * cannot do what is promised: an error in r. */
int export_table_apply(struct export_table *t, const struct export_load *load,
		       struct conf_report *r);
/* The same exports but gone, which is old's. 0 or -ENOMEM. */
int export_table_without(struct export_table **ret,
			 const struct export_table *old,
			 const struct export *gone);
/* How many tables hold what e has open. */
unsigned export_holders(const struct export *e);
void export_table_get(struct export_table *t);
/* How many references there are now: 1 when only the caller's is left. */
unsigned export_table_refs(const struct export_table *t);
/* The last reference closes what no newer table carried over: blocks, but on a
 * reactor's thread a worker does it. NULL is taken. */
void export_table_put(struct export_table *t);
unsigned export_table_count(const struct export_table *t);
struct export *export_table_at(const struct export_table *t, unsigned i);
/* NULL: none. */
struct export *export_find(const struct export_table *t, uint64_t id);
/* The export whose path is path or its longest prefix at a '/'; *rest the part
 * below it, without a leading slash. path is normalised (no dot names). */
struct export *export_find_path(const struct export_table *t, const char *path,
				const char **rest);
/* The exported path of a volume that export_table_load made (for on_error). */
const char *export_volume_path(const struct volume *v);
/*
 * What may this client do? First match in the export's client list. 0 with
 * *ret filled (access_put it), -EACCES: none of its clients, -EPERM: a port
 * over 1023 while `secure` (logged once a client and export with the option
 * that lets it in), -EAGAIN: names must be looked up and may_block is false
 * (answers are cached for a minute, positive and negative).
 */
int export_access(struct export_table *t, struct export *e,
		  const struct sockaddr *client, bool may_block,
		  struct access *ret);
/* The same, whatever the port: never -EPERM. */
int export_access_any_port(struct export_table *t, struct export *e,
			   const struct sockaddr *client, bool may_block,
			   struct access *ret);
void access_put(struct access *a);

/* object.c: a handle in a call, resolved -------------------------------------
 */

/* What READ, WRITE or READDIR carry in one datagram. */
#define DATAGRAM_DATA_MAX (32u << 10)

/* What a procedure sees of its call. Lives in the call's slot. */
struct request {
	struct server *server;
	struct export_table *exports; /* the call's own reference */
	uint64_t export_id;           /* of the last handle; 0: none yet */
	const struct sockaddr *client;
	const struct sockaddr *local; /* the server's address that it asked */
	bool datagram;                /* by UDP, and so is the reply */
	const struct rpc_cred *cred;
	bool quick;       /* the first look-up of names may not block */
	bool wants_names; /* so it was not made: run again, where it may */
	union nfs3_args args;
	union nfs3_res res; /* zeroed before run */
	/* READDIR, READLINK: room for the variable part, owned by the slot */
	uint8_t *room;
	uint32_t room_bytes;
};

/* A file handle of a call, checked: export, client, identity; fd is O_PATH. */
struct object {
	struct request *rq;
	struct access access;
	struct identity id;
	struct fh fh;
	int fd;          /* -1 until object_open */
	struct statx st; /* of the last object_stat */
};

/* Handle -> export, access and identity; opens nothing. May block only if
 * may_block (else -EAGAIN as above). 0, or -errno: -EBADF stands for
 * NFS3ERR_BADHANDLE, -ESTALE. object_fini is harmless after a failure. */
int object_resolve(struct object *o, struct request *rq,
		   const struct nfs_fh3 *wire, bool may_block);
/* May names be looked up now? False once after rq->quick was set: the first
 * thing that a procedure does, so that nothing has happened when it is told
 * -EAGAIN; then rq->wants_names is set. */
static inline bool
request_may_block(struct request *rq)
{
	bool quick = rq->quick;

	rq->quick = false;
	return !quick;
}

/* object_resolve, then O_PATH by handle, as the server, then statx. Workers
 * only. */
int object_open(struct object *o, struct request *rq,
		const struct nfs_fh3 *wire);
int object_stat(struct object *o);
/* Is this open object the export's own directory? 1, 0, or -errno. */
int object_is_root(const struct object *o);
void object_fini(struct object *o);
/* The wire handle of fd or of name in it, for the same export. */
int object_handle(struct object *o, int fd, const char *name,
		  struct nfs_fh3 *wire);
void object_file_key(const struct object *o, struct file_key *key);
/* attr from o->st; and freshly read. */
void object_attr(struct object *o, struct post_op_attr *out);
void object_attr_now(struct object *o, struct post_op_attr *out);

/* nfs3_query.c, nfs3_name.c, nfs3_dir.c: plain blocking procedures ------------
 */

typedef enum nfsstat3 nfs3_run_fn(struct request *rq);
nfs3_run_fn nfs3_getattr, nfs3_setattr, nfs3_lookup, nfs3_access, nfs3_readlink,
	nfs3_create, nfs3_mkdir, nfs3_symlink, nfs3_mknod, nfs3_remove,
	nfs3_rmdir, nfs3_rename, nfs3_link, nfs3_readdir, /* and plus */
	nfs3_fsstat, nfs3_fsinfo, nfs3_pathconf;

/* nfsacl.c: the ACL of an object, from and into its file system ------------ */

nfs3_run_fn nfsacl_getacl, nfsacl_setacl;

/* rquota.c: what quota the kernel keeps for the file system of an export ----
 */

nfs3_run_fn rquota_getquota;
/* What is told of q at the time now, in the smallest blocks that will do. */
struct if_dqblk;
void rquota_fill(struct rquota_res *r, const struct if_dqblk *q, int64_t now);

/* nlm.c: who locks which bytes; the status is in res.nlm ------------------ */

nfs3_run_fn nlm4_test, nlm4_lock, nlm4_cancel, nlm4_unlock, nlm4_granted,
	nlm4_test_msg, nlm4_lock_msg, nlm4_cancel_msg, nlm4_unlock_msg,
	nlm4_granted_msg, nlm4_ignore, /* a _RES to nothing of ours */
	nlm4_granted_res, nlm4_sm_notify, nlm4_share, nlm4_unshare,
	nlm4_nm_lock, nlm4_free_all;

/* mount3.c
 * ---------------------------------------------------------------------- */

/* The status is in res.mnt; DUMP's list of mounts is kept in memory and in the
 * state directory, as a hint only (RFC 1813, 5.2.2). */
nfs3_run_fn mount3_null, mount3_mnt, mount3_dump, mount3_umnt, mount3_umntall,
	mount3_export, mount1_mnt, mount2_pathconf;

/* mount_path.c: what MNT and UMNT name */

/*
 * The path as sent, n bytes, made absolute, without empty, "." and ".." names
 * (lexically: ".." of the root is the root), and terminated. 0; -ENAMETOOLONG
 * when it is longer than MNT3_PATHLEN as sent; -EINVAL when it holds a NUL;
 * -EACCES when it is not absolute.
 */
int mount_path_normalise(char out[MNT3_PATHLEN + 1], const uint8_t *path,
			 uint32_t n);

/* mount_list.c: who said that he has mounted what */

#define MOUNT_LIST_MAX 4096u

struct mount_list;
/* With what the last server left in state_fd's rmtab (what cannot be read there
 * is as if it was not). state_fd stays the caller's and open; -1: memory only.
 * 0 or -ENOMEM. */
int mount_list_new(struct mount_list **ret, int state_fd);
void mount_list_free(struct mount_list *l);
/* Any thread; blocks (rewrites rmtab). At MOUNT_LIST_MAX the oldest goes. */
void mount_list_add(struct mount_list *l, const char *host, const char *path);
/* path NULL: all of this host's. */
void mount_list_remove(struct mount_list *l, const char *host,
		       const char *path);
/* A whole mountlist (RFC 1813, 5.2.2), oldest first. false: no room. */
bool mount_list_encode(struct mount_list *l, XDR *x);

/* server.c: what procedures may ask of the server
 * ------------------------------- */

struct engine *server_engine(struct server *s);
const uint8_t *server_fh_key(struct server *s);
struct mount_list *server_mounts(struct server *s);
struct locks *server_locks(struct server *s);
struct nlm_callback *server_callbacks(struct server *s);
bool server_manage_gids(struct server *s);

#endif
