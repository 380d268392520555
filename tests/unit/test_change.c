/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wcc_data under concurrency: however many calls change a directory at once,
 * each is told what was before it and after it, so that all of them together
 * make one chain.
 */
#include "tests/unit/proc_env.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define THREADS 4u
#define ROUNDS  200u
#define CHANGES (3 * ROUNDS) /* of each thread */

static struct env env;

struct link {
	struct nfstime3 before, after;
};

struct worker {
	pthread_t thread;
	struct env env; /* a request of its own, on the one server */
	unsigned index, failed, count;
	struct link link[CHANGES];
};

static struct worker workers[THREADS];

static void
note(struct worker *w, enum nfsstat3 status, const struct wcc_data *wcc)
{
	struct link *l = &w->link[w->count++];

	w->failed += status != NFS3_OK || !wcc->before.follows ||
		     !wcc->after.follows;
	l->before = wcc->before.ctime;
	l->after = wcc->after.attr.ctime;
}

static void *
work(void *arg)
{
	struct worker *w = arg;
	union nfs3_args *args = &w->env.rq.args;
	union nfs3_res *res = &w->env.rq.res;
	struct diropargs3 one, two;
	char name[2][32];
	unsigned i;

	w->failed += identity_worker_init() != 0;
	(void)snprintf(name[0], sizeof(name[0]), "a%u", w->index);
	(void)snprintf(name[1], sizeof(name[1]), "b%u", w->index);
	one = two = (struct diropargs3){ .dir = env.root[ENV_ASYNC] };
	one.name = env_bytes(name[0]);
	two.name = env_bytes(name[1]);
	for (i = 0; i < ROUNDS; i++) {
		memset(args, 0, sizeof(*args));
		args->create.where = one;
		args->create.mode = GUARDED;
		note(w, env_run(&w->env, nfs3_create), &res->create.dir_wcc);
		args->rename.from = one;
		args->rename.to = two;
		note(w, env_run(&w->env, nfs3_rename), &res->rename.to);
		args->dirop.where = two;
		note(w, env_run(&w->env, nfs3_remove), &res->wcc.wcc);
	}
	return NULL;
}

static int
compare(const void *a, const void *b)
{
	const struct nfstime3 *x = a, *y = b;

	if (x->seconds != y->seconds)
		return x->seconds < y->seconds ? -1 : 1;
	if (x->nseconds != y->nseconds)
		return x->nseconds < y->nseconds ? -1 : 1;
	return 0;
}

/* Sorted, each call's before is the after of the one that went ahead. */
static void
test_chain(void **state)
{
	static struct nfstime3 before[THREADS * CHANGES];
	static struct nfstime3 after[THREADS * CHANGES];
	struct statx first = env_stat(&env, ENV_ASYNC, "."), last;
	unsigned t, i, n = 0;

	for (t = 0; t < THREADS; t++) {
		workers[t].index = t;
		workers[t].env = env;
		assert_int_equal(pthread_create(&workers[t].thread, NULL, work,
						&workers[t]),
				 0);
	}
	for (t = 0; t < THREADS; t++) {
		assert_int_equal(pthread_join(workers[t].thread, NULL), 0);
		assert_int_equal(workers[t].failed, 0);
		for (i = 0; i < CHANGES; i++, n++) {
			before[n] = workers[t].link[i].before;
			after[n] = workers[t].link[i].after;
		}
	}
	last = env_stat(&env, ENV_ASYNC, ".");
	qsort(before, n, sizeof(*before), compare);
	qsort(after, n, sizeof(*after), compare);
	assert_int_equal(before[0].nseconds, first.stx_ctime.tv_nsec);
	for (i = 1; i < n; i++)
		assert_int_equal(compare(&before[i], &after[i - 1]), 0);
	assert_int_equal(after[n - 1].nseconds, last.stx_ctime.tv_nsec);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chain),
	};

	return env_test(&env, tests, sizeof(tests) / sizeof(tests[0]));
}
