/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cred.c, groups.c and act.c share among themselves, and perm.c with
 * them.
 */
#ifndef NVNFSD_CRED_H
#define NVNFSD_CRED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GROUPS_MAX 65536u /* NGROUPS_MAX: what setgroups takes */

/* Sorted, without doubles, never changed once made. */
struct gid_list {
	atomic_uint refs;
	uint32_t count;
	uint64_t hash;
	uint32_t gid[];
};

/* cred.c: SipHash under a key of this process's own, so that no client can
 * choose two identities that collide. */
uint64_t cred_hash(const void *bytes, size_t n);

/* groups.c */

/* Takes a copy; sorts it and drops doubles. NULL: no memory. */
struct gid_list *gid_list_new(const uint32_t *gids, uint32_t count);
/* A copy with its first group replaced. NULL: no memory. */
struct gid_list *gid_list_swap_first(const struct gid_list *l, uint32_t gid);
bool gid_list_has(const struct gid_list *l, uint32_t gid);
struct gid_list *gid_list_get(struct gid_list *l);
void gid_list_put(struct gid_list *l); /* NULL is taken */
/* The groups that this machine gives uid (none where it knows no such user),
 * with a reference. 0; -EAGAIN: not cached and may_block is false; -ENOMEM. */
int groups_find(uint32_t uid, bool may_block, struct gid_list **ret);

/* act.c: ids that this user namespace has; -1 never is one. */
bool cred_uid_valid(uint32_t uid);
bool cred_gid_valid(uint32_t gid);

#endif
