/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock manager at its limits, and with several threads at once.
 */
#include "tests/unit/locks_env.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#define SHARED    false
#define EXCLUSIVE true
#define HOUR_NS   (3600ull * 1000000000)

static struct locks_env env;

static const struct asker a = { "192.0.2.1", 1 }, b = { "192.0.2.2", 1 },
			  c = { "192.0.2.1", 2 };

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

/* As the manager's thread does it, at a time of the test's choice. */
static void
tick(uint64_t now_ns)
{
	locks_enter(env.locks);
	locks_tick(env.locks, now_ns);
	locks_leave(env.locks);
}

/* Limits ------------------------------------------------------------------- */

static void
test_limit_of_a_host(void **state)
{
	const unsigned max = LOCKS_RANGES_MAX / LOCKS_HOST_PART, files = 32;
	struct locked *f = calloc(files, sizeof(*f));
	char name[16];
	unsigned i;

	assert_non_null(f);
	for (i = 0; i < files; i++) {
		(void)snprintf(name, sizeof(name), "many%u", i);
		env_file(&env.env, ENV_RW, name, "", 0644, 0);
		locked_open(&env, &f[i], name);
	}
	for (i = 0; i < max; i++)
		assert_int_equal(env_lock(&env, &f[i % files], &a,
					  2ull * (i / files), 1, EXCLUSIVE),
				 NLM4_GRANTED);
	assert_int_equal(env_lock(&env, &f[0], &c, 1u << 30, 1, SHARED),
			 NLM4_DENIED_NOLOCKS);
	/* Others are not concerned; and it may give some back. */
	assert_int_equal(env_lock(&env, &f[0], &b, 1u << 30, 1, SHARED),
			 NLM4_GRANTED);
	assert_int_equal(env_unlock(&env, &f[0], &a, 0, 1), NLM4_GRANTED);
	assert_int_equal(env_lock(&env, &f[0], &c, 1u << 30, 1, SHARED),
			 NLM4_GRANTED);
	for (i = 0; i < files; i++)
		locked_close(&f[i]);
	free(f);
}

/* One lock in a file that nobody else has; the limit on descriptors is high. */
static int
lock_new_file(const struct asker *who, unsigned number)
{
	struct locked f;
	char name[16];
	int r;

	(void)snprintf(name, sizeof(name), "file%u", number);
	env_file(&env.env, ENV_RW, name, "", 0644, 0);
	locked_open(&env, &f, name);
	r = env_lock(&env, &f, who, 0, 1, SHARED);
	locked_close(&f);
	return r;
}

static void
test_limit_of_files(void **state)
{
	const unsigned half = LOCKS_FILES_MAX / 2;
	struct rlimit was, more;
	unsigned i;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	more = was;
	more.rlim_cur = more.rlim_max;
	assert_true(more.rlim_cur > half + 1000);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &more), 0);
	for (i = 0; i < half; i++)
		assert_int_equal(lock_new_file(&a, i), NLM4_GRANTED);
	assert_int_equal(lock_new_file(&a, i), NLM4_DENIED_NOLOCKS);
	/* In one that is open it may. */
	assert_int_equal(env_lock(&env, &env.file[0], &b, 0, 1, SHARED),
			 NLM4_GRANTED);
	assert_int_equal(env_lock(&env, &env.file[0], &a, 0, 1, SHARED),
			 NLM4_GRANTED);
	assert_int_equal(lock_new_file(&b, i + 1), NLM4_GRANTED);
	locks_free_all(env.locks, env_request(&env.file[0], &a, 0, 0).client);
	assert_int_equal(counted().files, 2);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
}

static void
test_limit_of_waiters(void **state)
{
	const unsigned max = LOCKS_WAITERS_MAX / LOCKS_HOST_PART;
	const struct locked *f = &env.file[0];
	struct lock_request rq = env_request(f, &a, 0, 0);
	unsigned i;

	assert_int_equal(env_lock(&env, f, &b, 0, 0, EXCLUSIVE), NLM4_GRANTED);
	for (i = 0; i < max; i++)
		assert_int_equal(env_wait(&env, f, &a, i, 1, SHARED),
				 NLM4_BLOCKED);
	assert_int_equal(env_wait(&env, f, &c, 0, 1, SHARED),
			 NLM4_DENIED_NOLOCKS);
	locks_free_all(env.locks, rq.client);
	assert_int_equal(counted().waiting, 0);
}

static void
test_limit_of_hosts(void **state)
{
	const struct locked *f = &env.file[0];
	struct asker who = { NULL, 1 };
	char host[32];
	unsigned i;

	for (i = 0; i <= LOCKS_HOSTS_MAX; i++) {
		(void)snprintf(host, sizeof(host), "10.0.%u.%u", i / 256,
			       i % 256);
		who.host = host;
		assert_int_equal(env_lock(&env, f, &who, i, 1, SHARED),
				 i < LOCKS_HOSTS_MAX ? NLM4_GRANTED
						     : NLM4_DENIED_NOLOCKS);
	}
	/* One that has nothing makes room. */
	who.host = "10.0.0.7";
	assert_int_equal(env_unlock(&env, f, &who, 0, 0), NLM4_GRANTED);
	tick(monotonic_ns() + 2 * LOCKS_TICK_NS);
	assert_int_equal(env.lasts, 1);
	assert_int_equal(env_lock(&env, f, &a, 0, 1, SHARED), NLM4_GRANTED);
}

/* No descriptor is to be had. */
static void
test_limit_of_descriptors(void **state)
{
	struct rlimit was, none;
	int fd = dup(0);

	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = (rlim_t)fd;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(env_lock(&env, &env.file[0], &a, 0, 1, SHARED),
			 NLM4_DENIED_NOLOCKS);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(env_lock(&env, &env.file[0], &a, 0, 1, SHARED),
			 NLM4_GRANTED);
}

/* Threads ------------------------------------------------------------------ */

#define THREADS 3
#define ROUNDS  20000

/* Or it would have proved nothing, where threads run one after the other. */
static bool
have_met(void)
{
	struct locks_counters n = counted();

	return n.denied > 100 && n.blocked > 100 && n.callbacks > 100 &&
	       n.deadlocks > 10;
}

/* Some owner's every wish; whatever comes, it must end with nothing held. */
static void *
hammer(void *arg)
{
	static const char *const hosts[THREADS] = { "192.0.2.1", "192.0.2.2",
						    "2001:db8::3" };
	unsigned seed = *(const unsigned *)arg, i;
	struct asker who = { hosts[seed % THREADS], seed };
	struct lock_request rq;
	struct nlm4_holder h;

	for (i = 0; i < ROUNDS || !have_met(); i++) {
		const struct locked *f = &env.file[rand_r(&seed) % ENV_FILES];

		rq = env_request(f, &who, (uint64_t)rand_r(&seed) % 8,
				 (uint64_t)rand_r(&seed) % 8);
		rq.exclusive = rand_r(&seed) % 2;
		rq.block = rand_r(&seed) % 2;
		switch (rand_r(&seed) % 8) {
		case 0:
			(void)locks_unlock(env.locks, &rq);
			break;
		case 1:
			(void)locks_test(env.locks, &rq, &h);
			break;
		case 2:
			(void)locks_cancel(env.locks, &rq);
			break;
		case 3:
			locks_granted(env.locks,
				      1 + (uint64_t)rand_r(&seed) % ROUNDS,
				      rand_r(&seed) % 2);
			break;
		case 4:
			if (i % 64 == 0)
				locks_free_all(env.locks, rq.client);
			break;
		default:
			(void)locks_lock(env.locks, &rq);
		}
	}
	rq = env_request(&env.file[0], &who, 0, 0);
	locks_free_all(env.locks, rq.client);
	return NULL;
}

static void
test_threads(void **state)
{
	static unsigned number[THREADS] = { 0, 1, 2 };
	pthread_t thread[THREADS];
	unsigned i;
	int fd;

	for (i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&thread[i], NULL, hammer, &number[i]),
			0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	assert_int_equal(counted().held, 0);
	assert_int_equal(counted().waiting, 0);
	assert_int_equal(counted().files, 0);
	for (i = 0; i < ENV_FILES; i++) {
		fd = local_open(&env.file[i]);
		assert_int_equal(local_sees(fd, 0, 0), F_UNLCK);
		(void)close(fd);
	}
}

#define LOCKED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		LOCKED(test_limit_of_a_host),      LOCKED(test_limit_of_files),
		LOCKED(test_limit_of_waiters),     LOCKED(test_limit_of_hosts),
		LOCKED(test_limit_of_descriptors), LOCKED(test_threads),
	};
	int r = locks_env_start(&env);

	if (r)
		return r;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	locks_env_stop(&env);
	return r;
}
