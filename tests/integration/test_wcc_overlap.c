/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wcc_data (RFC 1813, 2.6) where calls overlap, by several connections and two
 * exports: a pre_op that is told never contradicts what others tell of the same
 * file, and what is told of a directory forms one chain. Once an engine.
 */
#include "site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *engine;

/* A change as it was told: from one state of the attributes to another. */
struct told {
	bool has_before;
	uint64_t before_ns, after_ns; /* ctime */
	uint64_t before_size, after_size;
};

struct tale {
	struct told *told;
	unsigned n, room, with_before;
};

static uint64_t
ns_of(const nfstime3 *t)
{
	return (uint64_t)t->seconds * 1000000000u + t->nseconds;
}

static void
tell(struct tale *tale, const wcc_data *w)
{
	const wcc_attr *before = &w->before.pre_op_attr_u.attributes;
	const fattr3 *after = &w->after.post_op_attr_u.attributes;
	struct told *t = &tale->told[tale->n++];

	assert_true(tale->n <= tale->room);
	assert_true(w->after.attributes_follow);
	memset(t, 0, sizeof(*t));
	t->has_before = w->before.attributes_follow;
	t->after_ns = ns_of(&after->ctime);
	t->after_size = after->size;
	if (!t->has_before)
		return;
	t->before_ns = ns_of(&before->ctime);
	t->before_size = before->size;
	tale->with_before++;
	assert_true(t->before_ns <= t->after_ns);
}

static int
compare_told(const void *x, const void *y)
{
	const struct told *a = x, *b = y;

	if (a->after_ns != b->after_ns)
		return a->after_ns < b->after_ns ? -1 : 1;
	if (a->before_ns != b->before_ns)
		return a->before_ns < b->before_ns ? -1 : 1;
	return 0;
}

/* While one of them was under way, none of the others is to have told a state
 * between its two: its pre_op would hide that one's change. */
static void
check_tale(struct tale *tale)
{
	unsigned i, j;

	qsort(tale->told, tale->n, sizeof(*tale->told), compare_told);
	for (i = 0; i < tale->n; i++) {
		const struct told *t = &tale->told[i];

		if (!t->has_before)
			continue;
		for (j = i; j-- > 0 && tale->told[j].after_ns > t->before_ns;)
			if (tale->told[j].after_ns < t->after_ns)
				fail_msg("a pre_op hides another's change");
	}
}

/* Every change of a directory is one step, so the states form one chain. */
static void
check_chain(struct tale *tale, uint64_t first_ns)
{
	uint64_t at_ns = first_ns;
	unsigned i;

	qsort(tale->told, tale->n, sizeof(*tale->told), compare_told);
	for (i = 0; i < tale->n; i++) {
		assert_true(tale->told[i].has_before);
		if (tale->told[i].before_ns != at_ns)
			fail_msg("step %u of %u does not begin where the "
				 "last one ended",
				 i, tale->n);
		at_ns = tale->told[i].after_ns;
	}
}

#define CONNS     4u
#define DEPTH_MAX 4u /* calls in flight on each */

struct hammer {
	struct site *s;
	struct raw_fh fh[2]; /* the same by two exports */
	unsigned rounds, round, serial;
	/* The i-th question of connection c in this round. */
	struct question (*next)(struct hammer *h, unsigned c, unsigned i);
	struct tale tale;
	struct raw *r[CONNS];
	uint32_t first_xid[CONNS], proc[CONNS][DEPTH_MAX];
};

/* The path of "sub", or what is in it, by the export and by one of its own. */
static void
hammer_init(struct hammer *h, const char *fs)
{
	static char line[600];
	struct site *s = site_prepare(engine, NULL, fs);
	unsigned c;

	memset(h, 0, sizeof(*h));
	h->s = s;
	h->tale.room = 100000;
	h->tale.told = calloc(h->tale.room, sizeof(*h->tale.told));
	assert_non_null(h->tale.told);
	assert_int_equal(mkdir(site_path(s, "sub"), 0777), 0);
	(void)snprintf(line, sizeof(line),
		       "%s/sub *(rw,no_root_squash,insecure)", s->h->export);
	harness_arg(s->h, "--export");
	harness_arg(s->h, line);
	site_start(s);
	h->fh[0] = site_lookup(s, "sub");
	(void)snprintf(line, sizeof(line), "%s/sub", s->h->export);
	assert_int_equal(raw_mount(s->r, line, &h->fh[1]), 0);
	for (c = 0; c < CONNS; c++)
		h->r[c] = raw_connect(s->h->port);
}

static void
hammer_fini(struct hammer *h)
{
	unsigned c;

	for (c = 0; c < CONNS; c++)
		raw_close(h->r[c]);
	free(h->tale.told);
	site_free(h->s);
}

static void
hammer_send(struct hammer *h, unsigned conns, unsigned depth)
{
	unsigned c, i;

	for (c = 0; c < conns; c++) {
		h->r[c]->xid = (h->round * CONNS + c + 1) * DEPTH_MAX;
		h->first_xid[c] = h->r[c]->xid;
	}
	for (i = 0; i < depth; i++) {
		for (c = 0; c < conns; c++) {
			struct question q = h->next(h, c, i);

			h->proc[c][i] = q.proc;
			(void)ask_send(h->r[c], &q);
		}
	}
}

static void
hammer_receive(struct hammer *h, unsigned conns, unsigned depth)
{
	struct answer a;
	unsigned c, i;
	uint32_t proc;

	for (i = 0; i < conns * depth; i++) {
		c = i % conns;
		assert_true(raw_receive(h->r[c]));
		proc = h->proc[c][h->r[c]->reply_xid - h->first_xid[c]];
		ask_take(h->r[c], proc, &a);
		if (a.status != NFS3_OK)
			fail_msg("procedure %u: %d", proc, a.status);
		tell(&h->tale, &a.wcc);
		raw_forget(h->r[c]);
	}
}

/* In each round some calls on some connections, and all their replies; in some
 * rounds one alone. */
static void
hammer_run(struct hammer *h)
{
	for (h->round = 0; h->round < h->rounds; h->round++) {
		unsigned conns = 1 + h->round % CONNS;
		unsigned depth = 1 + h->round / CONNS % DEPTH_MAX;

		hammer_send(h, conns, depth);
		hammer_receive(h, conns, depth);
	}
}

static unsigned
chance(unsigned below)
{
	static uint32_t x = 2463534242u;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x % below;
}

static struct question
next_of_file(struct hammer *h, unsigned c, unsigned i)
{
	static const uint8_t data[50000] = { 1, 2, 3 };
	const struct raw_fh *fh = &h->fh[c % 2];

	switch (chance(12)) {
	case 0:
		return ask_setattr(fh, ask_mode(0600 + chance(8)), NULL);
	case 1:
		return ask_setattr(fh, ask_size(chance(300000)), NULL);
	case 2:
		return ask_commit(fh);
	case 3:
		return ask_write(fh, chance(200000), data, 1 + chance(49999),
				 FILE_SYNC);
	default:
		return ask_write(fh, chance(200000), data, 1 + chance(49999),
				 UNSTABLE);
	}
}

static void
file_told(const char *fs)
{
	struct raw_fh dir[2];
	struct hammer h;

	hammer_init(&h, fs);
	dir[0] = h.fh[0];
	dir[1] = h.fh[1];
	raw_create(h.s->r, &dir[0], "f", 0600, &h.fh[0]);
	assert_int_equal(raw_lookup(h.s->r, &dir[1], "f", &h.fh[1]), NFS3_OK);
	h.next = next_of_file;
	h.rounds = 400;
	hammer_run(&h);
	check_tale(&h.tale);
	/* Where one was alone it said what was before it. */
	assert_true(h.tale.with_before >= h.rounds / (CONNS * DEPTH_MAX));
	hammer_fini(&h);
}

static void
test_file(void **state)
{
	file_told("xfs");
	file_told("ext4");
}

/* Each call has a name of its own, so that none depends on another: new ones to
 * be made, and old ones to be renamed and removed. */
static struct question
next_of_dir(struct hammer *h, unsigned c, unsigned i)
{
	static char name[CONNS][DEPTH_MAX][2][32];
	const struct raw_fh *dir = &h->fh[c % 2];
	char *fresh = name[c][i][0], *old = name[c][i][1];

	(void)snprintf(fresh, 32, "new%u", h->serial);
	(void)snprintf(old, 32, "old%u", h->serial);
	h->serial++;
	switch (chance(8)) {
	case 0:
		return ask_mkdir(dir, fresh, ask_mode(0755));
	case 1:
		return ask_symlink(dir, fresh, "x");
	case 2:
		return ask_mknod(dir, fresh, NF3FIFO, ask_mode(0644), 0, 0);
	case 3:
		return ask_exclusive(dir, fresh, (const uint8_t *)"verifier");
	case 4:
		return ask_rename(dir, old, dir, fresh);
	case 5:
		return ask_remove(dir, old);
	case 6:
		return ask_setattr(dir, ask_mode(0770 + chance(8)), NULL);
	default:
		return ask_create(dir, fresh, GUARDED, ask_mode(0644));
	}
}

static void
dir_told(const char *fs)
{
	nfstime3 first;
	struct hammer h;
	unsigned i, calls;
	char name[32];

	hammer_init(&h, fs);
	h.next = next_of_dir;
	h.rounds = 300;
	calls = h.rounds * CONNS * DEPTH_MAX;
	for (i = 0; i < calls; i++) {
		(void)snprintf(name, sizeof(name), "sub/old%u", i);
		assert_int_equal(mknod(site_path(h.s, name), S_IFREG | 0644, 0),
				 0);
	}
	first = ask_attr(h.s->r, &h.fh[0]).ctime;
	hammer_run(&h);
	check_chain(&h.tale, ns_of(&first));
	hammer_fini(&h);
}

static void
test_dir(void **state)
{
	dir_told("xfs");
	dir_told("ext4");
}

static int
run(const char *name)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_dir),
	};

	engine = name;
	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int
main(void)
{
	return run("uring") + run("threads");
}
