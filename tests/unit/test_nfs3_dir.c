/* SPDX-License-Identifier: Apache-2.0 */
/* READDIR and READDIRPLUS: bounds to the byte, completeness, what is left out.
 */
#include "tests/unit/proc_env.h"

#include <endian.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define RESOK_BYTES                                                            \
	(88u + 8u + 8u) /* attributes, cookieverf, the list's end              \
			 */
#define MANY     3000u
#define LIST_MAX 4096u

static struct env env;

/* The reader's own XDR, not the server's. */
struct entry {
	uint64_t fileid, cookie;
	uint32_t name_bytes;
	char name[NAME_MAX + 1];
	bool has_attr, has_fh;
	uint64_t attr_fileid;
	uint32_t attr_type;
	struct nfs_fh3 fh;
	uint32_t bytes, dir_bytes; /* on the wire; what dircount counts */
};

struct list {
	struct entry entry[LIST_MAX];
	unsigned count;
	bool eof;
	uint32_t bytes,
		dir_bytes; /* of the whole resok; what dircount counts */
};

static struct list list;

static uint32_t
get_u32(const uint8_t **at)
{
	uint32_t v;

	memcpy(&v, *at, sizeof(v));
	*at += sizeof(v);
	return be32toh(v);
}

static uint64_t
get_u64(const uint8_t **at)
{
	uint64_t high = get_u32(at);

	return high << 32 | get_u32(at);
}

static void
get_plus(const uint8_t **at, struct entry *e)
{
	const uint8_t *attr;

	e->has_attr = get_u32(at);
	if (e->has_attr) {
		attr = *at;
		e->attr_type = get_u32(&attr);
		attr = *at + 52;
		e->attr_fileid = get_u64(&attr);
		*at += 84;
	}
	e->has_fh = get_u32(at);
	if (!e->has_fh)
		return;
	e->fh.bytes = get_u32(at);
	assert_true(e->fh.bytes <= NFS3_FHSIZE);
	memcpy(e->fh.data, *at, e->fh.bytes);
	*at += (e->fh.bytes + 3) & ~3u;
}

static void
parse(struct list *l, const struct nfs3_readdir_res *res, bool plus)
{
	const uint8_t *at = res->entries, *start = at;
	struct entry *e;

	l->count = 0;
	l->dir_bytes = 0;
	while (get_u32(&at)) {
		assert_true(l->count < LIST_MAX);
		e = &l->entry[l->count++];
		memset(e, 0, sizeof(*e));
		e->fileid = get_u64(&at);
		e->name_bytes = get_u32(&at);
		assert_true(e->name_bytes <= NAME_MAX);
		memcpy(e->name, at, e->name_bytes);
		at += (e->name_bytes + 3) & ~3u;
		e->cookie = get_u64(&at);
		if (plus)
			get_plus(&at, e);
		e->dir_bytes = 20 + ((e->name_bytes + 3) & ~3u);
		e->bytes = (uint32_t)(at - start);
		start = at;
		l->dir_bytes += e->dir_bytes;
	}
	l->eof = get_u32(&at);
	assert_int_equal(at - res->entries, res->entries_bytes);
	l->bytes = 88 + 8 + res->entries_bytes;
}

static enum nfsstat3
list_dir(const struct nfs_fh3 *dir, uint64_t cookie, uint32_t maxcount)
{
	struct nfs3_readdir_args *args = &env.rq.args.readdir;
	enum nfsstat3 status;

	memset(args, 0, sizeof(*args));
	args->dir = *dir;
	args->cookie = cookie;
	args->maxcount = maxcount;
	status = env_run(&env, nfs3_readdir);
	if (status == NFS3_OK)
		parse(&list, &env.rq.res.readdir, false);
	return status;
}

static enum nfsstat3
list_plus(const struct nfs_fh3 *dir, uint64_t cookie, uint32_t dircount,
	  uint32_t maxcount)
{
	struct nfs3_readdir_args *args = &env.rq.args.readdir;
	enum nfsstat3 status;

	memset(args, 0, sizeof(*args));
	args->dir = *dir;
	args->cookie = cookie;
	args->dircount = dircount;
	args->maxcount = maxcount;
	args->plus = true;
	status = env_run(&env, nfs3_readdir);
	if (status == NFS3_OK)
		parse(&list, &env.rq.res.readdir, true);
	return status;
}

static void
many_name(char name[NAME_MAX + 1], unsigned i)
{
	int n = snprintf(name, NAME_MAX + 1, "%06u", i);

	/* Every length from 6 to 255. */
	memset(name + n, 'a' + (int)(i % 26), i % 250);
	name[n + (int)(i % 250)] = '\0';
}

static struct nfs_fh3
many_make(void)
{
	char name[NAME_MAX + 1];
	unsigned i;
	int fd;

	assert_int_equal(mkdirat(env.dir[ENV_ASYNC], "many", 0755), 0);
	fd = openat(env.dir[ENV_ASYNC], "many", O_RDONLY | O_DIRECTORY);
	for (i = 0; i < MANY; i++) {
		many_name(name, i);
		assert_int_equal(mknodat(fd, name, S_IFREG | 0644, 0), 0);
	}
	assert_int_equal(close(fd), 0);
	return env_lookup(&env, ENV_ASYNC, "many");
}

/* Which of the many were listed. */
static void
tick(bool seen[MANY], unsigned *others)
{
	char name[NAME_MAX + 1];
	unsigned i, k;

	for (i = 0; i < list.count; i++) {
		const char *text = list.entry[i].name;

		if (strcmp(text, ".") == 0 || strcmp(text, "..") == 0) {
			(*others)++;
			continue;
		}
		k = (unsigned)strtoul(text, NULL, 10);
		assert_true(k < MANY);
		many_name(name, k);
		assert_string_equal(text, name);
		assert_false(seen[k]);
		seen[k] = true;
	}
}

static void
list_whole(const struct nfs_fh3 *dir, uint32_t count, bool plus)
{
	bool seen[MANY] = { false };
	unsigned i, others = 0;
	uint64_t cookie = 0;

	do {
		if (plus)
			assert_int_equal(list_plus(dir, cookie, count, count),
					 NFS3_OK);
		else
			assert_int_equal(list_dir(dir, cookie, count), NFS3_OK);
		assert_true(list.bytes <= count);
		assert_true(list.count > 0 || list.eof);
		tick(seen, &others);
		if (list.count > 0)
			cookie = list.entry[list.count - 1].cookie;
	} while (!list.eof);
	assert_int_equal(others, 2);
	for (i = 0; i < MANY; i++)
		assert_true(seen[i]);
}

static void
test_whole(void **state)
{
	static const uint32_t counts[] = { 640,   1024,     4096,      4099,
					   32768, 1u << 20, UINT32_MAX };
	struct nfs_fh3 dir = many_make();
	size_t i;

	for (i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		list_whole(&dir, counts[i], false);
		list_whole(&dir, counts[i], true);
	}
}

/* The longest list that fits is given, and one byte less is one entry less. */
static void
test_maxcount(void **state)
{
	struct nfs_fh3 dir = many_make();
	uint32_t want, bytes, first;
	unsigned count;
	int plus;

	for (plus = 0; plus < 2; plus++)
		for (want = 600; want < 6000; want += 571) {
			assert_int_equal(
				plus ? list_plus(&dir, 0, UINT32_MAX, want)
				     : list_dir(&dir, 0, want),
				NFS3_OK);
			bytes = list.bytes;
			count = list.count;
			first = list.entry[0].bytes;
			assert_true(bytes <= want);
			assert_int_equal(
				plus ? list_plus(&dir, 0, UINT32_MAX, bytes)
				     : list_dir(&dir, 0, bytes),
				NFS3_OK);
			assert_int_equal(list.count, count);
			assert_int_equal(list.bytes, bytes);
			assert_int_equal(
				plus ? list_plus(&dir, 0, UINT32_MAX, bytes - 1)
				     : list_dir(&dir, 0, bytes - 1),
				NFS3_OK);
			assert_int_equal(list.count, count - 1);
		}
	first += RESOK_BYTES;
	assert_int_equal(list_plus(&dir, 0, UINT32_MAX, first), NFS3_OK);
	assert_int_equal(list.count, 1);
	assert_int_equal(list_plus(&dir, 0, UINT32_MAX, first - 1),
			 NFS3ERR_TOOSMALL);
	assert_true(env.rq.res.readdir.dir_attr.follows);
	assert_int_equal(list_dir(&dir, 0, RESOK_BYTES - 1), NFS3ERR_TOOSMALL);
	assert_int_equal(list_dir(&dir, 0, 0), NFS3ERR_TOOSMALL);
}

static void
test_dircount(void **state)
{
	struct nfs_fh3 dir = many_make();
	uint32_t want, dir_bytes;
	unsigned count;

	for (want = 300; want < 5000; want += 433) {
		assert_int_equal(list_plus(&dir, 0, want, UINT32_MAX), NFS3_OK);
		dir_bytes = list.dir_bytes;
		count = list.count;
		assert_true(count > 0 && dir_bytes <= want);
		assert_int_equal(list_plus(&dir, 0, dir_bytes, UINT32_MAX),
				 NFS3_OK);
		assert_int_equal(list.count, count);
		assert_int_equal(list_plus(&dir, 0, dir_bytes - 1, UINT32_MAX),
				 NFS3_OK);
		assert_int_equal(list.count, count - 1);
	}
	dir_bytes = list.entry[0].dir_bytes;
	assert_int_equal(list_plus(&dir, 0, dir_bytes, UINT32_MAX), NFS3_OK);
	assert_int_equal(list.count, 1);
	assert_int_equal(list_plus(&dir, 0, dir_bytes - 1, UINT32_MAX),
			 NFS3ERR_TOOSMALL);
}

/* The room that the call was given bounds the reply too. */
static void
test_room(void **state)
{
	struct nfs_fh3 dir = many_make();

	env.rq.room_bytes = 4096;
	memset(env.room, 0xa5, 8192);
	assert_int_equal(list_dir(&dir, 0, UINT32_MAX), NFS3_OK);
	assert_true(env.rq.res.readdir.entries_bytes <= 4096);
	assert_true(env.rq.res.readdir.entries_bytes > 4096 - 300);
	assert_int_equal(env.room[4096], 0xa5);
	env.rq.room_bytes = 0;
}

/* What was listed is removed before the next call: rm -r. */
static void
test_removal(void **state)
{
	struct nfs_fh3 dir = many_make();
	bool seen[MANY] = { false };
	unsigned i, others = 0;
	uint64_t cookie = 0;
	int fd = openat(env.dir[ENV_ASYNC], "many", O_RDONLY | O_DIRECTORY);

	do {
		assert_int_equal(list_dir(&dir, cookie, 4096), NFS3_OK);
		tick(seen, &others);
		for (i = 0; i < list.count; i++) {
			cookie = list.entry[i].cookie;
			if (list.entry[i].name[0] != '.')
				assert_int_equal(
					unlinkat(fd, list.entry[i].name, 0), 0);
		}
	} while (!list.eof);
	assert_int_equal(others, 2);
	for (i = 0; i < MANY; i++)
		assert_true(seen[i]);
	/* A cookie of an entry that is gone still has a place. */
	assert_int_equal(list_dir(&dir, cookie, 4096), NFS3_OK);
	assert_true(list.eof);
	assert_int_equal(list.count, 0);
	assert_int_equal(close(fd), 0);
}

static void
test_cookies(void **state)
{
	struct nfs_fh3 dir = many_make();
	struct entry third;

	assert_int_equal(list_dir(&dir, 0, 8192), NFS3_OK);
	assert_true(list.count > 4);
	third = list.entry[3];
	assert_int_equal(list_dir(&dir, list.entry[2].cookie, 8192), NFS3_OK);
	assert_string_equal(list.entry[0].name, third.name);
	assert_int_equal(list.entry[0].cookie, third.cookie);
	assert_int_equal(list_dir(&dir, 1ull << 63, 8192), NFS3ERR_BAD_COOKIE);
	assert_int_equal(list_dir(&dir, UINT64_MAX, 8192), NFS3ERR_BAD_COOKIE);
	assert_true(env.rq.res.readdir.dir_attr.follows);
}

static const struct entry *
find(const char *name)
{
	unsigned i;

	for (i = 0; i < list.count; i++)
		if (strcmp(list.entry[i].name, name) == 0)
			return &list.entry[i];
	return NULL;
}

/* Nothing above the export shows, not even its number. */
static void
test_root(void **state)
{
	uint64_t ino = env_stat(&env, ENV_RW, ".").stx_ino;
	const struct nfs_fh3 *root = &env.root[ENV_RW];
	const char *name;
	int i;

	assert_int_equal(list_plus(root, 0, 8192, 8192), NFS3_OK);
	for (i = 0; i < 2; i++) {
		name = i == 0 ? "." : "..";
		assert_non_null(find(name));
		assert_int_equal(find(name)->fileid, ino);
		assert_true(find(name)->has_attr && find(name)->has_fh);
		assert_int_equal(find(name)->attr_fileid, ino);
		assert_memory_equal(find(name)->fh.data, root->data,
				    root->bytes);
	}
	assert_int_equal(list_dir(root, 0, 8192), NFS3_OK);
	assert_int_equal(find("..")->fileid, ino);
}

static void
test_plus(void **state)
{
	const struct entry *e;
	struct nfs_fh3 fh;

	env_file(&env, ENV_RW, "file", "text", 0600, 1000);
	assert_int_equal(symlinkat("/etc/passwd", env.dir[ENV_RW], "link"), 0);
	assert_int_equal(mkfifoat(env.dir[ENV_RW], "fifo", 0600), 0);
	assert_int_equal(mkdirat(env.dir[ENV_RW], "sub", 0700), 0);
	assert_int_equal(list_plus(&env.root[ENV_RW], 0, 8192, 8192), NFS3_OK);
	assert_true(list.eof);
	assert_int_equal(list.count, 6);
	e = find("file");
	assert_true(e->has_attr && e->has_fh);
	assert_int_equal(e->attr_type, NF3REG);
	assert_int_equal(e->fileid, e->attr_fileid);
	fh = env_lookup(&env, ENV_RW, "file");
	assert_int_equal(e->fh.bytes, fh.bytes);
	assert_memory_equal(e->fh.data, fh.data, fh.bytes);
	assert_int_equal(find("link")->attr_type, NF3LNK);
	assert_int_equal(find("fifo")->attr_type, NF3FIFO);
	assert_int_equal(find("sub")->attr_type, NF3DIR);
}

/* Reading takes r; attributes of entries take x, and are left out without. */
static void
test_permission(void **state)
{
	struct nfs_fh3 dir;
	const struct entry *e;

	assert_int_equal(mkdirat(env.dir[ENV_RW], "sub", 0755), 0);
	env_file(&env, ENV_RW, "sub/file", "text", 0644, 0);
	dir = env_lookup(&env, ENV_RW, "sub");
	env_caller(&env, 1000, 1000);
	assert_int_equal(list_plus(&dir, 0, 8192, 8192), NFS3_OK);
	assert_true(find("file")->has_attr && find("file")->has_fh);
	assert_int_equal(fchmodat(env.dir[ENV_RW], "sub", 0744, 0), 0);
	assert_int_equal(list_plus(&dir, 0, 8192, 8192), NFS3_OK);
	e = find("file");
	assert_non_null(e);
	assert_false(e->has_attr || e->has_fh);
	assert_int_equal(e->fileid, env_stat(&env, ENV_RW, "sub/file").stx_ino);
	assert_int_equal(list_dir(&dir, 0, 8192), NFS3_OK);
	assert_int_equal(list.count, 3);
	assert_int_equal(fchmodat(env.dir[ENV_RW], "sub", 0711, 0), 0);
	assert_int_equal(list_dir(&dir, 0, 8192), NFS3ERR_ACCES);
	assert_int_equal(list_plus(&dir, 0, 8192, 8192), NFS3ERR_ACCES);
	assert_true(env.rq.res.readdir.dir_attr.follows);
	env_caller(&env, 0, 0);
}

static void
test_not_a_directory(void **state)
{
	struct nfs_fh3 fh;

	env_file(&env, ENV_RW, "file", "text", 0644, 0);
	fh = env_lookup(&env, ENV_RW, "file");
	assert_int_equal(list_dir(&fh, 0, 8192), NFS3ERR_NOTDIR);
	assert_true(env.rq.res.readdir.dir_attr.follows);
	fh.data[fh.bytes - 1] ^= 1;
	assert_int_equal(list_dir(&fh, 0, 8192), NFS3ERR_BADHANDLE);
	assert_false(env.rq.res.readdir.dir_attr.follows);
}

static int
clean(void **state)
{
	env_reset(&env);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_whole, clean),
		cmocka_unit_test_teardown(test_maxcount, clean),
		cmocka_unit_test_teardown(test_dircount, clean),
		cmocka_unit_test_teardown(test_room, clean),
		cmocka_unit_test_teardown(test_removal, clean),
		cmocka_unit_test_teardown(test_cookies, clean),
		cmocka_unit_test_teardown(test_root, clean),
		cmocka_unit_test_teardown(test_plus, clean),
		cmocka_unit_test_teardown(test_permission, clean),
		cmocka_unit_test_teardown(test_not_a_directory, clean),
	};

	return env_test(&env, tests, sizeof(tests) / sizeof(tests[0]));
}
