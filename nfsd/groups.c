/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manage-gids: the groups that this machine, and not the client, gives a user.
 * AUTH_SYS carries at most 16, and a client can claim any. Answers are lists,
 * counted and immutable, kept in a table of fixed size for ten minutes, also
 * the answer that there is no such user. Any thread; the look-up itself (NSS:
 * files, LDAP, ...) blocks and holds no lock.
 */
#include "nfsd/cred.h"
#include "nfsd/nfsd.h"

#include <assert.h>
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SETS                256u
#define WAYS                4u
#define KEPT_NS             (600ull * 1000000000)
#define KEPT_AFTER_ERROR_NS (10ull * 1000000000)
#define PASSWD_BYTES_MAX    (1u << 20)

struct entry {
	uint32_t uid;
	struct gid_list *list; /* NULL: unused */
	uint64_t until_ns;
};

/* The lock is a leaf: nothing is called under it but gid_list_put. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry cache[SETS][WAYS];

static int
gid_compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static struct gid_list *
list_new(uint32_t count)
{
	struct gid_list *l = malloc(sizeof(*l) + count * sizeof(l->gid[0]));

	if (l) {
		atomic_init(&l->refs, 1);
		l->count = count;
	}
	return l;
}

static void
list_finish(struct gid_list *l)
{
	uint32_t n = 0;

	qsort(l->gid, l->count, sizeof(l->gid[0]), gid_compare);
	for (uint32_t i = 0; i < l->count; i++) {
		if (n == 0 || l->gid[n - 1] != l->gid[i])
			l->gid[n++] = l->gid[i];
	}
	l->count = n;
	l->hash = cred_hash(l->gid, n * sizeof(l->gid[0]));
}

struct gid_list *
gid_list_new(const uint32_t *gids, uint32_t count)
{
	struct gid_list *l = list_new(count);

	if (!l)
		return NULL;
	if (count > 0)
		memcpy(l->gid, gids, count * sizeof(l->gid[0]));
	list_finish(l);
	return l;
}

struct gid_list *
gid_list_swap_first(const struct gid_list *l, uint32_t gid)
{
	struct gid_list *copy = list_new(l->count);

	if (!copy)
		return NULL;
	memcpy(copy->gid, l->gid, l->count * sizeof(l->gid[0]));
	copy->gid[0] = gid;
	list_finish(copy);
	return copy;
}

bool
gid_list_has(const struct gid_list *l, uint32_t gid)
{
	return bsearch(&gid, l->gid, l->count, sizeof(gid), gid_compare);
}

struct gid_list *
gid_list_get(struct gid_list *l)
{
	atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
	return l;
}

void
gid_list_put(struct gid_list *l)
{
	if (l &&
	    atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) == 1)
		free(l);
}

/* All groups of a user, primary one included. *ret is malloc'd. */
static int
groups_of(const struct passwd *pw, uint32_t **ret, uint32_t *ret_count)
{
	int room = 64, n;
	gid_t *gids = NULL, *grown;

	static_assert(sizeof(gid_t) == sizeof(uint32_t), "gid_t has 32 bits");
	for (;;) {
		grown = reallocarray(gids, (size_t)room, sizeof(gids[0]));
		if (!grown) {
			free(gids);
			return -ENOMEM;
		}
		gids = grown;
		n = room;
		if (getgrouplist(pw->pw_name, pw->pw_gid, gids, &n) >= 0 ||
		    room >= (int)GROUPS_MAX)
			break;
		room = n > room && n < (int)GROUPS_MAX ? n : (int)GROUPS_MAX;
	}
	*ret = gids;
	*ret_count = (uint32_t)(n < room ? n : room);
	return 0;
}

/* Ask NSS. A user that it does not know has no groups; *failed tells that it
 * could not answer, which counts as the same for a short while. */
static int
look_up(uint32_t uid, struct gid_list **ret, bool *failed)
{
	size_t room = 4096;
	struct passwd pw, *found = NULL;
	uint32_t *gids = NULL, count = 0;
	char *text = NULL, *grown;
	int r;

	do {
		room *= 2;
		grown = realloc(text, room);
		if (!grown) {
			free(text);
			return -ENOMEM;
		}
		text = grown;
		r = getpwuid_r(uid, &pw, text, room, &found);
	} while (r == ERANGE && room < PASSWD_BYTES_MAX);
	*failed = r != 0;
	r = r == 0 && found ? groups_of(found, &gids, &count) : 0;
	if (r == 0) {
		*ret = gid_list_new(gids, count);
		r = *ret ? 0 : -ENOMEM;
	}
	free(gids);
	free(text);
	return r;
}

static struct entry *
set_of(uint32_t uid)
{
	return cache[cred_hash(&uid, sizeof(uid)) % SETS];
}

static struct gid_list *
cached(uint32_t uid)
{
	struct entry *set = set_of(uid);
	uint64_t now = monotonic_ns();
	struct gid_list *found = NULL;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < WAYS; i++) {
		if (set[i].list && set[i].uid == uid && now < set[i].until_ns)
			found = gid_list_get(set[i].list);
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* Into this user's old place, else the one that ends first (0: unused). */
static void
remember(uint32_t uid, struct gid_list *list, uint64_t until_ns)
{
	struct entry *set = set_of(uid), *e = set;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < WAYS; i++) {
		if (set[i].list && set[i].uid == uid) {
			e = &set[i];
			break;
		}
		if (set[i].until_ns < e->until_ns)
			e = &set[i];
	}
	gid_list_put(e->list);
	e->uid = uid;
	e->list = gid_list_get(list);
	e->until_ns = until_ns;
	pthread_mutex_unlock(&lock);
}

int
groups_find(uint32_t uid, bool may_block, struct gid_list **ret)
{
	struct gid_list *list = cached(uid);
	bool failed;
	int r;

	if (list) {
		*ret = list;
		return 0;
	}
	if (!may_block)
		return -EAGAIN;
	r = look_up(uid, &list, &failed);
	if (r < 0)
		return r;
	remember(uid, list,
		 monotonic_ns() + (failed ? KEPT_AFTER_ERROR_NS : KEPT_NS));
	*ret = list;
	return 0;
}

void
identity_forget_groups(void)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < SETS * WAYS; i++) {
		struct entry *e = &cache[i / WAYS][i % WAYS];

		gid_list_put(e->list);
		memset(e, 0, sizeof(*e));
	}
	pthread_mutex_unlock(&lock);
}
