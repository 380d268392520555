/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identities: a call's credential, squashed by an export's options. An identity
 * is plain data in its call's slot; only a list of more groups than fit inline
 * is counted memory (groups.c). Any thread. What a thread does with an identity
 * is act.c's.
 *
 * RFC 5531, appendix A (AUTH_SYS); exports(5), "User ID Mapping".
 */
#include "nfsd/cred.h"
#include "nfsd/nfsd.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <string.h>

static uint8_t hash_key[crypto_shorthash_KEYBYTES];

static void
hash_key_make(void)
{
	randombytes_buf(hash_key, sizeof(hash_key));
}

uint64_t
cred_hash(const void *bytes, size_t n)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uint64_t hash;

	static_assert(crypto_shorthash_BYTES == sizeof(hash), "SipHash-2-4");
	pthread_once(&once, hash_key_make);
	crypto_shorthash((uint8_t *)&hash, bytes, n, hash_key);
	return hash;
}

/* An id that this machine cannot act under counts as no id at all. */
static uint32_t
squash_uid(uint32_t uid, const struct conf_export_options *o)
{
	bool squash = !cred_uid_valid(uid) || (o->root_squash && uid == 0);

	return squash ? o->anonuid : uid;
}

static uint32_t
squash_gid(uint32_t gid, const struct conf_export_options *o)
{
	bool squash = !cred_gid_valid(gid) || (o->root_squash && gid == 0);

	return squash ? o->anongid : gid;
}

static void
take_sent_groups(struct identity *id, const struct rpc_cred *cred,
		 const struct conf_export_options *o)
{
	assert(cred->gids <= IDENTITY_GIDS_INLINE);
	for (uint32_t i = 0; i < cred->gids; i++)
		id->gid_inline[i] = squash_gid(cred->gid_list[i], o);
	id->gids = cred->gids;
}

/* Give up the reference to found, or keep it in id. */
static int
take_list(struct identity *id, struct gid_list *found,
	  const struct conf_export_options *o)
{
	struct gid_list *list = found;

	if (found->count <= IDENTITY_GIDS_INLINE) {
		for (uint32_t i = 0; i < found->count; i++)
			id->gid_inline[i] = squash_gid(found->gid[i], o);
		id->gids = found->count;
		gid_list_put(found);
		return 0;
	}
	/* Sorted: group 0 stands first or is not there. */
	if (squash_gid(found->gid[0], o) != found->gid[0]) {
		list = gid_list_swap_first(found, o->anongid);
		gid_list_put(found);
		if (!list)
			return -ENOMEM;
	}
	id->list = list;
	id->gids = list->count;
	return 0;
}

int
identity_make(struct identity *id, const struct rpc_cred *cred,
	      const struct conf_export_options *options, bool manage_gids,
	      bool may_block)
{
	bool anonymous = cred->flavor != RPC_AUTH_SYS || options->all_squash;
	struct gid_list *found;
	int r;

	memset(id, 0, sizeof(*id));
	id->uid = anonymous ? options->anonuid : squash_uid(cred->uid, options);
	id->gid = anonymous ? options->anongid : squash_gid(cred->gid, options);
	if (!cred_uid_valid(id->uid) || !cred_gid_valid(id->gid))
		return -EPERM;
	if (anonymous)
		return 0;
	if (!manage_gids) {
		take_sent_groups(id, cred, options);
		return 0;
	}
	/* A squashed caller's groups would be those of a user that it is not:
	 * with the server's word alone counting, it has none. */
	if (id->uid != cred->uid)
		return 0;
	r = groups_find(id->uid, may_block, &found);
	return r < 0 ? r : take_list(id, found, options);
}

void
identity_fini(struct identity *id)
{
	gid_list_put(id->list);
	memset(id, 0, sizeof(*id));
}

const uint32_t *
identity_gids(const struct identity *id)
{
	return id->list ? id->list->gid : id->gid_inline;
}

bool
identity_in_group(const struct identity *id, uint32_t gid)
{
	const uint32_t *gids = identity_gids(id);

	if (id->gid == gid)
		return true;
	if (id->list)
		return gid_list_has(id->list, gid);
	for (uint32_t i = 0; i < id->gids; i++) {
		if (gids[i] == gid)
			return true;
	}
	return false;
}

uint64_t
identity_hash(const struct identity *id)
{
	uint32_t words[2 + IDENTITY_GIDS_INLINE] = { id->uid, id->gid };
	uint32_t gids = id->gids;

	/* A list's hash was made once, with the list. */
	if (id->list) {
		memcpy(&words[2], &id->list->hash, sizeof(id->list->hash));
		gids = 2;
	} else {
		memcpy(&words[2], id->gid_inline, gids * sizeof(words[0]));
	}
	return cred_hash(words, (2 + gids) * sizeof(words[0]));
}
