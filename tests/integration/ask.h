/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For integration tests: any procedure of NFSv3 as a question that can be kept,
 * listed and sent, and any reply as one kind of answer. Names and handles in a
 * question stay the caller's and must live until it is sent.
 */
#ifndef NVNFSD_TESTS_ASK_H
#define NVNFSD_TESTS_ASK_H

#include "harness.h"

struct question {
	uint32_t proc; /* NFS3_GETATTR ... NFS3_COMMIT */
	union {
		GETATTR3args getattr;
		SETATTR3args setattr;
		LOOKUP3args lookup;
		ACCESS3args access;
		READLINK3args readlink;
		READ3args read;
		WRITE3args write;
		CREATE3args create;
		MKDIR3args mkdir;
		SYMLINK3args symlink;
		MKNOD3args mknod;
		REMOVE3args remove;
		RMDIR3args rmdir;
		RENAME3args rename;
		LINK3args link;
		READDIR3args readdir;
		READDIRPLUS3args readdirplus;
		FSSTAT3args fsstat;
		FSINFO3args fsinfo;
		PATHCONF3args pathconf;
		COMMIT3args commit;
	} u;
};

/* What of it a procedure does not tell is left zero. */
struct answer {
	int status;
	post_op_attr attr; /* of the object; GETATTR's too */
	post_op_attr dir;  /* LOOKUP's directory */
	wcc_data wcc;      /* of the object or directory that changed */
	wcc_data wcc_to;   /* RENAME's target directory */
	bool has_fh;
	struct raw_fh fh;
	union { /* on success; lives as long as raw_result() has it */
		ACCESS3resok access;
		READLINK3resok readlink;
		READ3resok read;
		WRITE3resok write;
		READDIR3resok readdir;
		READDIRPLUS3resok readdirplus;
		FSSTAT3resok fsstat;
		FSINFO3resok fsinfo;
		PATHCONF3resok pathconf;
		COMMIT3resok commit;
	} u;
};

/* Build it, to be sent later; the xid. */
uint32_t ask_build(struct raw *r, const struct question *q);
/* Build and send; the xid. */
uint32_t ask_send(struct raw *r, const struct question *q);
/* The record of from's last call once more, by to; its xid is from's. */
void ask_again(struct raw *to, const struct raw *from);
/* The reply that raw_receive() has just taken in, to a question of proc. */
void ask_take(struct raw *r, uint32_t proc, struct answer *a);
/* Both, with the wait between them; the nfsstat3. a may be NULL. */
int ask(struct raw *r, struct question q, struct answer *a);

/* One a procedure. */
struct question ask_getattr(const struct raw_fh *fh);
struct question ask_setattr(const struct raw_fh *fh, const sattr3 *attr,
			    const nfstime3 *guard); /* NULL: none */
struct question ask_lookup(const struct raw_fh *dir, const char *name);
struct question ask_access(const struct raw_fh *fh, uint32_t bits);
struct question ask_readlink(const struct raw_fh *fh);
struct question ask_read(const struct raw_fh *fh, uint64_t offset,
			 uint32_t count);
struct question ask_write(const struct raw_fh *fh, uint64_t offset,
			  const void *data, uint32_t n, int stable);
struct question ask_create(const struct raw_fh *dir, const char *name,
			   createmode3 mode, const sattr3 *attr);
struct question ask_exclusive(const struct raw_fh *dir, const char *name,
			      const uint8_t verf[8]);
struct question ask_mkdir(const struct raw_fh *dir, const char *name,
			  const sattr3 *attr);
struct question ask_symlink(const struct raw_fh *dir, const char *name,
			    const char *target);
struct question ask_mknod(const struct raw_fh *dir, const char *name,
			  ftype3 type, const sattr3 *attr, uint32_t major,
			  uint32_t minor);
struct question ask_remove(const struct raw_fh *dir, const char *name);
struct question ask_rmdir(const struct raw_fh *dir, const char *name);
struct question ask_rename(const struct raw_fh *from, const char *name,
			   const struct raw_fh *to, const char *new_name);
struct question ask_link(const struct raw_fh *fh, const struct raw_fh *dir,
			 const char *name);
struct question ask_readdir(const struct raw_fh *dir, uint64_t cookie,
			    uint32_t count);
struct question ask_readdirplus(const struct raw_fh *dir, uint64_t cookie,
				uint32_t dircount, uint32_t maxcount);
struct question ask_fsstat(const struct raw_fh *fh);
struct question ask_fsinfo(const struct raw_fh *fh);
struct question ask_pathconf(const struct raw_fh *fh);
struct question ask_commit(const struct raw_fh *fh);

/* sattr3 of one thing; in a static buffer of eight that rotate. */
const sattr3 *ask_mode(uint32_t mode);
const sattr3 *ask_size(uint64_t size);
const sattr3 *ask_owner(int64_t uid, int64_t gid); /* -1: leave it */
const sattr3 *ask_nothing(void);
/* Attributes now, which must be had. */
fattr3 ask_attr(struct raw *r, const struct raw_fh *fh);
/* As this user, without further groups. */
void ask_as(struct raw *r, uint32_t uid, uint32_t gid);
bool ask_same_time(const nfstime3 *a, const nfstime3 *b);
/* In all but the atime, which any reader moves. */
bool ask_same_attr(const fattr3 *a, const fattr3 *b);

#endif
