/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LOCKs that wait: who gets what when it comes free, what becomes of it when
 * its client has changed its mind, and who must not wait at all.
 */
#include "tests/unit/locks_env.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SHARED    false
#define EXCLUSIVE true

static struct locks_env env;

static const struct asker a = { "192.0.2.1", 1 }, b = { "192.0.2.2", 1 },
			  c = { "2001:db8::3", 1 }, d = { "192.0.2.1", 2 };

static int
setup(void **state)
{
	locks_env_open(&env);
	*state = &env;
	return 0;
}

static int
teardown(void **state)
{
	locks_env_close(&env);
	return 0;
}

static struct locks_counters
counted(void)
{
	struct locks_counters n;

	locks_count(env.locks, &n);
	return n;
}

/* Grants ------------------------------------------------------------------- */

static void
test_wait(void **state)
{
	const struct locked *f = &env.file[0];
	const struct lock_grant *g = &env.grant[0];

	assert_int_equal(env_lock(&env, f, &a, 0, 10, EXCLUSIVE), NLM4_GRANTED);
	assert_int_equal(env_wait(&env, f, &b, 5, 10, EXCLUSIVE), NLM4_BLOCKED);
	assert_int_equal(env_wait(&env, f, &b, 5, 10, EXCLUSIVE), NLM4_BLOCKED);
	assert_int_equal(counted().waiting, 1);
	assert_int_equal(env_unlock(&env, f, &a, 0, 5), NLM4_GRANTED);
	assert_int_equal(env.grants, 0);
	assert_int_equal(env_unlock(&env, f, &a, 0, 0), NLM4_GRANTED);
	assert_int_equal(env.grants, 1);
	assert_int_equal(g->fh.export_id, f->object.fh.export_id);
	assert_int_equal(g->fh.bytes, f->object.fh.bytes);
	assert_memory_equal(g->fh.data, f->object.fh.data, g->fh.bytes);
	assert_true(g->exclusive);
	assert_int_equal(g->svid, 1);
	assert_int_equal(g->offset, 5);
	assert_int_equal(g->length, 10);
	assert_memory_equal(g->oh, "oh", 2);
	assert_string_equal(g->host.name, "name");
	assert_int_equal(g->host.client.ss_family, AF_INET);
	/* It is b's at once. */
	assert_true(locks_grant_waits(env.locks, g->id));
	assert_int_equal(counted().waiting, 0);
	assert_int_equal(env_lock(&env, f, &c, 5, 1, SHARED), NLM4_DENIED);
	locks_granted(env.locks, g->id, true);
	assert_false(locks_grant_waits(env.locks, g->id));
	assert_int_equal(env_lock(&env, f, &c, 5, 1, SHARED), NLM4_DENIED);
	/* Whatever is said of it now. */
	locks_granted(env.locks, g->id, false);
	assert_int_equal(env_lock(&env, f, &c, 5, 1, SHARED), NLM4_DENIED);
}

/* The client asked again, and knows: its answer to the callback is late. */
static void
test_asked_again_while_granted(void **state)
{
	const struct locked *f = &env.file[0];

	assert_int_equal(env_lock(&env, f, &a, 0, 0, EXCLUSIVE), NLM4_GRANTED);
	assert_int_equal(env_wait(&env, f, &b, 0, 0, EXCLUSIVE), NLM4_BLOCKED);
	assert_int_equal(env_unlock(&env, f, &a, 0, 0), NLM4_GRANTED);
	assert_int_equal(env_wait(&env, f, &b, 0, 0, EXCLUSIVE), NLM4_GRANTED);
	assert_false(locks_grant_waits(env.locks, env.grant[0].id));
	locks_granted(env.locks, env.grant[0].id, false);
	assert_int_equal(env_lock(&env, f, &a, 0, 0, EXCLUSIVE), NLM4_DENIED);
	assert_int_equal(env.grants, 1);
}

static void
test_first_come(void **state)
{
	const struct locked *f = &env.file[0];

	assert_int_equal(env_lock(&env, f, &a, 0, 0, EXCLUSIVE), NLM4_GRANTED);
	assert_int_equal(env_wait(&env, f, &b, 0, 10, EXCLUSIVE), NLM4_BLOCKED);
	assert_int_equal(env_wait(&env, f, &c, 0, 10, SHARED), NLM4_BLOCKED);
	assert_int_equal(env_wait(&env, f, &d, 5, 10, SHARED), NLM4_BLOCKED);
	assert_int_equal(env_unlock(&env, f, &a, 0, 0), NLM4_GRANTED);
	assert_int_equal(env.grants, 1);
	assert_true(env.grant[0].exclusive);
	/* Refused by its client: the next ones, both of them. */
	locks_granted(env.locks, env.grant[0].id, false);
	assert_int_equal(env.grants, 3);
	assert_int_equal(env.grant[1].host.client.ss_family, AF_INET6);
	assert_int_equal(env.grant[2].svid, 2);
	assert_int_equal(counted().callbacks_failed, 1);
	assert_int_equal(counted().held, 2);
}

/* An upgrade that its client does not want any more leaves what it had. */
static void
test_upgrade_given_back(void **state)
{
	const struct locked *f = &env.file[0];
	int fd = local_open(f);

	assert_int_equal(env_lock(&env, f, &a, 0, 10, SHARED), NLM4_GRANTED);
	assert_int_equal(env_lock(&env, f, &b, 20, 10, SHARED), NLM4_GRANTED);
	assert_int_equal(env_wait(&env, f, &a, 5, 20, EXCLUSIVE), NLM4_BLOCKED);
	assert_int_equal(env_unlock(&env, f, &b, 0, 0), NLM4_GRANTED);
	assert_int_equal(env.grants, 1);
	assert_int_equal(local_sees(fd, 5, 20), F_WRLCK);
	assert_int_equal(env_wait(&env, f, &b, 12, 1, EXCLUSIVE), NLM4_BLOCKED);
	locks_granted(env.locks, env.grant[0].id, false);
	assert_int_equal(env.grants, 2);
	assert_int_equal(local_sees(fd, 0, 10), F_RDLCK);
	assert_int_equal(local_sees(fd, 10, 2), F_UNLCK);
	assert_int_equal(local_sees(fd, 12, 1), F_WRLCK);
	assert_int_equal(local_sees(fd, 13, 0), F_UNLCK);
	(void)close(fd);
}

/* A grant of a shared lock may free what was exclusive before. */
static void
test_grant_that_weakens(void **state)
{
	const struct locked *f = &env.file[0];

	assert_int_equal(env_lock(&env, f, &a, 0, 10, EXCLUSIVE), NLM4_GRANTED);
	assert_int_equal(env_lock(&env, f, &b, 10, 5, EXCLUSIVE), NLM4_GRANTED);
	assert_int_equal(env_wait(&env, f, &c, 0, 3, SHARED), NLM4_BLOCKED);
	assert_int_equal(env_wait(&env, f, &a, 0, 15, SHARED), NLM4_BLOCKED);
	assert_int_equal(env_unlock(&env, f, &b, 0, 0), NLM4_GRANTED);
	assert_int_equal(env.grants, 2);
}

static int
cancel(const struct locked *f, const struct asker *who, uint64_t offset,
       uint64_t length, bool exclusive)
{
	struct lock_request rq = env_request(f, who, offset, length);

	rq.object = NULL;
	rq.exclusive = exclusive;
	return locks_cancel(env.locks, &rq);
}

static void
test_cancel(void **state)
{
	const struct locked *f = &env.file[0];

	assert_int_equal(cancel(f, &b, 0, 0, SHARED), NLM4_DENIED);
	assert_int_equal(env_lock(&env, f, &a, 0, 0, EXCLUSIVE), NLM4_GRANTED);
	assert_int_equal(env_wait(&env, f, &b, 0, 0, SHARED), NLM4_BLOCKED);
	assert_int_equal(cancel(f, &b, 0, 0, EXCLUSIVE), NLM4_DENIED);
	assert_int_equal(cancel(f, &b, 0, 1, SHARED), NLM4_DENIED);
	assert_int_equal(cancel(f, &b, 0, 0, SHARED), NLM4_GRANTED);
	assert_int_equal(counted().waiting, 0);
	/* Granted meanwhile: it is given back. */
	assert_int_equal(env_wait(&env, f, &b, 0, 0, SHARED), NLM4_BLOCKED);
	assert_int_equal(env_unlock(&env, f, &a, 0, 0), NLM4_GRANTED);
	assert_int_equal(env.grants, 1);
	assert_int_equal(cancel(f, &b, 0, 0, SHARED), NLM4_GRANTED);
	assert_int_equal(counted().held, 0);
	assert_false(locks_grant_waits(env.locks, env.grant[0].id));
	/* What a client knows that it has is no matter for CANCEL. */
	assert_int_equal(env_lock(&env, f, &a, 0, 0, SHARED), NLM4_GRANTED);
	assert_int_equal(cancel(f, &a, 0, 0, SHARED), NLM4_DENIED);
	assert_int_equal(counted().held, 1);
}

/* Deadlock ----------------------------------------------------------------- */

static void
test_deadlock(void **state)
{
	const struct locked *f = env.file;

	assert_int_equal(env_lock(&env, &f[0], &a, 0, 0, EXCLUSIVE), 0);
	assert_int_equal(env_lock(&env, &f[1], &b, 0, 0, EXCLUSIVE), 0);
	assert_int_equal(env_lock(&env, &f[2], &c, 0, 0, SHARED), 0);
	assert_int_equal(env_wait(&env, &f[1], &a, 0, 0, SHARED), NLM4_BLOCKED);
	assert_int_equal(env_wait(&env, &f[2], &b, 0, 9, EXCLUSIVE),
			 NLM4_BLOCKED);
	assert_int_equal(env_wait(&env, &f[0], &c, 0, 1, SHARED), NLM4_DEADLCK);
	/* Without waiting there is none; nor with another owner there. */
	assert_int_equal(env_lock(&env, &f[0], &c, 0, 1, SHARED), NLM4_DENIED);
	assert_int_equal(env_wait(&env, &f[0], &d, 0, 1, SHARED), NLM4_BLOCKED);
	assert_int_equal(counted().deadlocks, 1);
	assert_int_equal(counted().waiting, 3);
	/* Two who share and both want it alone. */
	assert_int_equal(env_lock(&env, &f[3], &a, 0, 5, SHARED), 0);
	assert_int_equal(env_lock(&env, &f[3], &d, 0, 5, SHARED), 0);
	assert_int_equal(env_wait(&env, &f[3], &d, 0, 5, EXCLUSIVE),
			 NLM4_BLOCKED);
	assert_int_equal(env_wait(&env, &f[3], &a, 0, 5, EXCLUSIVE),
			 NLM4_DEADLCK);
}

/* What a local process is in the way of is tried again and again, also where
 * another client was in the way first. */
static void
test_behind_a_local_process(void **state)
{
	const struct locked *f = &env.file[0];
	int fd = local_open(f);

	assert_int_equal(env_lock(&env, f, &a, 0, 1, EXCLUSIVE), NLM4_GRANTED);
	assert_int_equal(local_set(fd, F_WRLCK, 1, 1), 0);
	assert_int_equal(env_wait(&env, f, &b, 0, 2, EXCLUSIVE), NLM4_BLOCKED);
	assert_int_equal(env_wait(&env, f, &c, 1, 1, EXCLUSIVE), NLM4_BLOCKED);
	assert_int_equal(env_unlock(&env, f, &a, 0, 0), NLM4_GRANTED);
	assert_int_equal(env.grants, 0);
	assert_int_equal(local_set(fd, F_UNLCK, 1, 1), 0);
	env_await_grants(&env, 1);
	assert_int_equal(env.grant[0].host.client.ss_family, AF_INET);
	/* Nobody but b is in c's way now. */
	assert_int_equal(env_unlock(&env, f, &b, 0, 0), NLM4_GRANTED);
	assert_int_equal(env.grants, 2);
	(void)close(fd);
}

/* A host that cannot be reached waits for nothing any more, but for what it has
 * asked for since. */
static void
test_unreachable(void **state)
{
	const struct locked *f = &env.file[0], *f1 = &env.file[1];

	assert_int_equal(env_lock(&env, f, &b, 0, 0, EXCLUSIVE), NLM4_GRANTED);
	assert_int_equal(env_lock(&env, f1, &b, 0, 1, EXCLUSIVE), NLM4_GRANTED);
	assert_int_equal(env_wait(&env, f, &a, 0, 10, EXCLUSIVE), NLM4_BLOCKED);
	assert_int_equal(env_wait(&env, f, &d, 0, 10, EXCLUSIVE), NLM4_BLOCKED);
	assert_int_equal(env_wait(&env, f, &d, 5, 1, EXCLUSIVE), NLM4_BLOCKED);
	assert_int_equal(env_wait(&env, f1, &a, 0, 1, SHARED), NLM4_BLOCKED);
	assert_int_equal(env_wait(&env, f, &c, 0, 10, EXCLUSIVE), NLM4_BLOCKED);
	assert_int_equal(env_unlock(&env, f, &b, 0, 0), NLM4_GRANTED);
	assert_int_equal(env.grants, 1);
	assert_int_equal(env.grant[0].svid, a.svid);
	assert_int_equal(env_wait(&env, f1, &a, 0, 1, SHARED), NLM4_BLOCKED);
	locks_unreachable(env.locks, env.grant[0].id);
	assert_int_equal(env.grants, 2);
	assert_int_equal(env.grant[1].host.client.ss_family, AF_INET6);
	assert_int_equal(counted().waiting, 1);
	assert_int_equal(counted().callbacks_failed, 1);
	assert_int_equal(env_unlock(&env, f1, &b, 0, 0), NLM4_GRANTED);
	assert_int_equal(env.grants, 3);
	/* It is over. */
	locks_unreachable(env.locks, env.grant[0].id);
	assert_int_equal(counted().callbacks_failed, 1);
}

#define LOCKED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		LOCKED(test_wait),
		LOCKED(test_asked_again_while_granted),
		LOCKED(test_first_come),
		LOCKED(test_upgrade_given_back),
		LOCKED(test_grant_that_weakens),
		LOCKED(test_cancel),
		LOCKED(test_deadlock),
		LOCKED(test_behind_a_local_process),
		LOCKED(test_unreachable),
	};
	int r = locks_env_start(&env);

	if (r)
		return r;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	locks_env_stop(&env);
	return r;
}
