/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock manager between clients and on real files: what is granted, denied
 * and waited for, and what a local process sees of it.
 */
#include "tests/unit/locks_env.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
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

/* Among clients ------------------------------------------------------------ */

static void
test_among_clients(void **state)
{
	const struct locked *f = &env.file[0];

	assert_int_equal(env_lock(&env, f, &a, 0, 10, EXCLUSIVE), NLM4_GRANTED);
	assert_int_equal(env_lock(&env, f, &b, 9, 1, SHARED), NLM4_DENIED);
	assert_int_equal(env_lock(&env, f, &b, 10, 5, EXCLUSIVE), NLM4_GRANTED);
	/* The same host is not the same owner, nor is another file this one. */
	assert_int_equal(env_lock(&env, f, &d, 0, 1, SHARED), NLM4_DENIED);
	assert_int_equal(env_lock(&env, &env.file[1], &d, 0, 0, EXCLUSIVE),
			 NLM4_GRANTED);
	/* To the end. */
	assert_int_equal(env_lock(&env, f, &c, 15, 0, SHARED), NLM4_GRANTED);
	assert_int_equal(env_lock(&env, f, &a, 1u << 30, 1, EXCLUSIVE),
			 NLM4_DENIED);
	assert_int_equal(env_lock(&env, f, &a, 1u << 30, UINT64_MAX, SHARED),
			 NLM4_GRANTED);
	/* Downgraded, others may share it; upgraded only alone. */
	assert_int_equal(env_lock(&env, f, &a, 0, 10, SHARED), NLM4_GRANTED);
	assert_int_equal(env_lock(&env, f, &b, 0, 5, SHARED), NLM4_GRANTED);
	assert_int_equal(env_lock(&env, f, &a, 0, 10, EXCLUSIVE), NLM4_DENIED);
	assert_int_equal(env_lock(&env, f, &a, 5, 5, EXCLUSIVE), NLM4_GRANTED);
	/* A part is given back. */
	assert_int_equal(env_unlock(&env, f, &a, 6, 2), NLM4_GRANTED);
	assert_int_equal(env_lock(&env, f, &c, 6, 2, EXCLUSIVE), NLM4_GRANTED);
	assert_int_equal(env_lock(&env, f, &c, 5, 1, SHARED), NLM4_DENIED);
	/* What is not locked may be unlocked. */
	assert_int_equal(env_unlock(&env, &env.file[3], &c, 0, 0),
			 NLM4_GRANTED);
	assert_int_equal(counted().files, 2);
	assert_int_equal(counted().hosts, 3);
}

static void
test_one_client_by_two_families(void **state)
{
	const struct asker mapped = { "::ffff:192.0.2.1", 1 };

	assert_int_equal(env_lock(&env, &env.file[0], &a, 0, 0, EXCLUSIVE),
			 NLM4_GRANTED);
	assert_int_equal(env_lock(&env, &env.file[0], &mapped, 0, 0, EXCLUSIVE),
			 NLM4_GRANTED);
	assert_int_equal(env_unlock(&env, &env.file[0], &mapped, 0, 0),
			 NLM4_GRANTED);
	assert_int_equal(counted().held, 0);
	assert_int_equal(counted().hosts, 1);
}

static int
ask_test(const struct locked *f, const struct asker *who, uint64_t offset,
	 bool exclusive, struct nlm4_holder *h)
{
	struct lock_request rq = env_request(f, who, offset, 4);

	rq.exclusive = exclusive;
	memset(h, 0x55, sizeof(*h));
	return locks_test(env.locks, &rq, h);
}

static void
test_holder(void **state)
{
	const struct locked *f = &env.file[0];
	struct nlm4_holder h;

	assert_int_equal(ask_test(f, &a, 0, EXCLUSIVE, &h), NLM4_GRANTED);
	assert_int_equal(env_lock(&env, f, &d, 2, 7, SHARED), NLM4_GRANTED);
	assert_int_equal(ask_test(f, &a, 0, SHARED, &h), NLM4_GRANTED);
	assert_int_equal(ask_test(f, &d, 0, EXCLUSIVE, &h), NLM4_GRANTED);
	assert_int_equal(ask_test(f, &a, 0, EXCLUSIVE, &h), NLM4_DENIED);
	assert_false(h.exclusive);
	assert_int_equal(h.svid, 2);
	assert_int_equal(h.oh_bytes, 2);
	assert_memory_equal(h.oh, "oh", 2);
	assert_int_equal(h.l_offset, 2);
	assert_int_equal(h.l_len, 7);
	assert_int_equal(env_lock(&env, f, &d, 2, 0, EXCLUSIVE), NLM4_GRANTED);
	assert_int_equal(ask_test(f, &a, 100, SHARED, &h), NLM4_DENIED);
	assert_true(h.exclusive);
	assert_int_equal(h.l_len, 0);
	/* Whoever only asks leaves nothing behind. */
	assert_int_equal(ask_test(&env.file[1], &c, 0, SHARED, &h),
			 NLM4_GRANTED);
	assert_int_equal(counted().files, 1);
	assert_int_equal(counted().hosts, 1);
}

/* Local processes ---------------------------------------------------------- */

static void
test_seen_locally(void **state)
{
	const struct locked *f = &env.file[0];
	int fd = local_open(f);

	assert_int_equal(env_lock(&env, f, &a, 10, 20, EXCLUSIVE),
			 NLM4_GRANTED);
	assert_int_equal(local_sees(fd, 0, 10), F_UNLCK);
	assert_int_equal(local_sees(fd, 29, 1), F_WRLCK);
	assert_int_equal(local_sees(fd, 30, 0), F_UNLCK);
	assert_int_equal(local_set(fd, F_RDLCK, 10, 1), -EAGAIN);
	/* Downgraded in part: local readers come in there. */
	assert_int_equal(env_lock(&env, f, &a, 10, 5, SHARED), NLM4_GRANTED);
	assert_int_equal(local_set(fd, F_RDLCK, 10, 5), 0);
	assert_int_equal(local_set(fd, F_RDLCK, 10, 6), -EAGAIN);
	/* And keep it from being upgraded. */
	assert_int_equal(env_lock(&env, f, &a, 10, 1, EXCLUSIVE), NLM4_DENIED);
	assert_int_equal(local_set(fd, F_UNLCK, 0, 0), 0);
	assert_int_equal(env_lock(&env, f, &a, 10, 1, EXCLUSIVE), NLM4_GRANTED);
	/* Split. */
	assert_int_equal(env_unlock(&env, f, &a, 15, 5), NLM4_GRANTED);
	assert_int_equal(local_sees(fd, 15, 5), F_UNLCK);
	assert_int_equal(local_sees(fd, 11, 4), F_RDLCK);
	assert_int_equal(local_sees(fd, 20, 10), F_WRLCK);
	/* It is shared for as long as one of them has it. */
	assert_int_equal(env_lock(&env, f, &b, 0, 15, SHARED), NLM4_DENIED);
	assert_int_equal(env_lock(&env, f, &b, 11, 30 - 21, SHARED),
			 NLM4_GRANTED);
	assert_int_equal(env_unlock(&env, f, &a, 0, 0), NLM4_GRANTED);
	assert_int_equal(local_sees(fd, 11, 9), F_RDLCK);
	assert_int_equal(local_sees(fd, 20, 0), F_UNLCK);
	assert_int_equal(env_unlock(&env, f, &b, 0, 0), NLM4_GRANTED);
	assert_int_equal(local_sees(fd, 0, 0), F_UNLCK);
	assert_int_equal(counted().files, 0);
	(void)close(fd);
}

static void
test_local_holder(void **state)
{
	const struct locked *f = &env.file[0];
	struct nlm4_holder h;
	int fd = local_open(f);

	assert_int_equal(local_set(fd, F_WRLCK, 100, 10), 0);
	assert_int_equal(env_lock(&env, f, &a, 0, 0, SHARED), NLM4_DENIED);
	assert_int_equal(env_lock(&env, f, &a, 0, 100, EXCLUSIVE),
			 NLM4_GRANTED);
	assert_int_equal(ask_test(f, &a, 105, SHARED, &h), NLM4_DENIED);
	assert_true(h.exclusive);
	assert_int_equal(h.svid, UINT32_MAX); /* of an open file: nobody's */
	assert_int_equal(h.oh_bytes, 0);
	assert_int_equal(h.l_offset, 100);
	assert_int_equal(h.l_len, 10);
	assert_int_equal(counted().local_conflicts, 1);
	/* What was asked for in vain is not taken in part. */
	assert_int_equal(local_set(fd, F_WRLCK, 110, 0), 0);
	(void)close(fd);
	assert_int_equal(env_lock(&env, f, &a, 0, 0, EXCLUSIVE), NLM4_GRANTED);
}

/* A process, not an open file, that holds a lock until go is closed. */
static pid_t
local_process(const struct locked *f, int *go)
{
	struct flock k = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int ready[2], wait[2];
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(wait), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)close(wait[1]);
		if (fcntl(local_open(f), F_SETLK, &k) < 0 ||
		    write(ready[1], &byte, 1) != 1)
			_exit(1);
		(void)!read(wait[0], &byte, 1);
		_exit(0);
	}
	(void)close(ready[1]);
	(void)close(wait[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	*go = wait[1];
	return pid;
}

static void
test_wait_for_local_process(void **state)
{
	const struct locked *f = &env.file[0];
	struct nlm4_holder h;
	int go, status;
	pid_t pid = local_process(f, &go);

	assert_int_equal(ask_test(f, &a, 7, SHARED, &h), NLM4_DENIED);
	assert_int_equal(h.svid, pid);
	assert_int_equal(env_wait(&env, f, &a, 7, 1, SHARED), NLM4_BLOCKED);
	assert_int_equal(env_wait(&env, f, &b, 0, 0, EXCLUSIVE), NLM4_BLOCKED);
	assert_int_equal(counted().waiting, 2);
	assert_int_equal(env.grants, 0);
	(void)close(go);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* Nobody tells the manager: it sees for itself. */
	env_await_grants(&env, 1);
	assert_int_equal(env.grant[0].svid, 1);
	assert_false(env.grant[0].exclusive);
	assert_int_equal(counted().waiting, 1);
}

/* A long series of what clients may do: for every byte a local process meets
 * the strongest that any of them has. */
static void
test_mirror_beside_model(void **state)
{
	enum { BYTES = 20, WHO = 3, ROUNDS = 3000 };
	const struct asker *const who[WHO] = { &a, &b, &d };
	int has[WHO][BYTES] = { 0 }; /* 0, 1 shared, 2 exclusive */
	const struct locked *f = &env.file[0];
	int fd = local_open(f);
	unsigned seed = 7;

	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned w = (unsigned)rand_r(&seed) % WHO;
		unsigned from = (unsigned)rand_r(&seed) % BYTES;
		unsigned n = 1 + (unsigned)rand_r(&seed) % (BYTES - from);
		int kind = rand_r(&seed) % 3, strongest;
		bool ok = true;

		for (unsigned o = 0; o < WHO; o++)
			for (unsigned x = from; o != w && x < from + n; x++)
				ok = ok && kind + has[o][x] < 3;
		if (kind == 0)
			assert_int_equal(env_unlock(&env, f, who[w], from, n),
					 NLM4_GRANTED);
		else
			assert_int_equal(
				env_lock(&env, f, who[w], from, n, kind == 2),
				ok ? NLM4_GRANTED : NLM4_DENIED);
		for (unsigned x = from; (kind == 0 || ok) && x < from + n; x++)
			has[w][x] = kind;
		for (unsigned x = 0; x < BYTES; x++) {
			strongest = 0;
			for (unsigned o = 0; o < WHO; o++)
				if (has[o][x] > strongest)
					strongest = has[o][x];
			assert_int_equal(local_sees(fd, x, 1),
					 strongest == 0   ? F_UNLCK
					 : strongest == 1 ? F_RDLCK
							  : F_WRLCK);
		}
	}
	(void)close(fd);
}

/* What may not be locked at all -------------------------------------------- */

static void
test_ranges_of_no_file(void **state)
{
	const struct locked *f = &env.file[0];
	const uint64_t end = INT64_MAX;

	assert_int_equal(env_lock(&env, f, &a, end + 1, 1, SHARED), NLM4_FBIG);
	assert_int_equal(env_lock(&env, f, &a, end, 2, SHARED), NLM4_FBIG);
	assert_int_equal(env_lock(&env, f, &a, 1, end + 1, SHARED), NLM4_FBIG);
	assert_int_equal(env_unlock(&env, f, &a, end + 1, 0), NLM4_FBIG);
	assert_int_equal(env_lock(&env, f, &a, end, 1, EXCLUSIVE),
			 NLM4_GRANTED);
	assert_int_equal(env_lock(&env, f, &b, 0, end, EXCLUSIVE),
			 NLM4_GRANTED);
	assert_int_equal(env_lock(&env, f, &b, 0, 0, SHARED), NLM4_DENIED);
	assert_int_equal(env_lock(&env, f, &a, end, UINT64_MAX, SHARED),
			 NLM4_GRANTED);
	assert_int_equal(env_lock(&env, f, &b, 0, 0, SHARED), NLM4_GRANTED);
	assert_int_equal(env_unlock(&env, f, &a, 0, UINT64_MAX), NLM4_GRANTED);
	assert_int_equal(counted().held, 1);
}

static void
test_rights(void **state)
{
	struct conf_export_options options;
	struct locked f, dir;

	env_file(&env.env, ENV_RW, "mine", "", 0600, 1000);
	env_file(&env.env, ENV_RW, "read", "", 0604, 0);
	env_file(&env.env, ENV_RW, "write", "", 0602, 0);
	assert_int_equal(mkdirat(env.env.dir[ENV_RW], "dir", 0777), 0);
	env_caller(&env.env, 1000, 1000);
	locked_open(&env, &f, "mine");
	assert_int_equal(env_lock(&env, &f, &a, 0, 0, EXCLUSIVE), NLM4_GRANTED);
	locked_close(&f);
	env_caller(&env.env, 1001, 1001);
	locked_open(&env, &f, "mine");
	assert_int_equal(env_lock(&env, &f, &b, 0, 1, SHARED), NLM4_FAILED);
	options = *f.object.access.options;
	options.auth_nlm = false;
	f.object.access.options = &options;
	assert_int_equal(env_lock(&env, &f, &b, 0, 1, SHARED), NLM4_DENIED);
	locked_close(&f);
	locked_open(&env, &f, "read");
	assert_int_equal(env_lock(&env, &f, &a, 0, 0, EXCLUSIVE), NLM4_GRANTED);
	locked_close(&f);
	locked_open(&env, &f, "write");
	assert_int_equal(env_lock(&env, &f, &a, 0, 0, EXCLUSIVE), NLM4_GRANTED);
	locked_close(&f);
	locked_open(&env, &dir, "dir");
	assert_int_equal(env_lock(&env, &dir, &a, 0, 0, SHARED), NLM4_FAILED);
	locked_close(&dir);
}

static void
test_read_only(void **state)
{
	struct nlm4_holder h;
	struct locked f;

	env_read_only(&env.env, true);
	locked_open(&env, &f, "f0");
	assert_int_equal(env_lock(&env, &f, &a, 0, 0, EXCLUSIVE), NLM4_ROFS);
	assert_int_equal(ask_test(&f, &a, 0, EXCLUSIVE, &h), NLM4_GRANTED);
	assert_int_equal(env_lock(&env, &f, &a, 0, 0, SHARED), NLM4_GRANTED);
	/* For others it is the same file. */
	assert_int_equal(env_lock(&env, &env.file[0], &b, 0, 0, EXCLUSIVE),
			 NLM4_DENIED);
	assert_int_equal(env_unlock(&env, &f, &a, 0, 5), NLM4_GRANTED);
	assert_int_equal(env_lock(&env, &env.file[0], &b, 0, 5, EXCLUSIVE),
			 NLM4_GRANTED);
	locked_close(&f);
}

#define LOCKED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		LOCKED(test_among_clients),
		LOCKED(test_one_client_by_two_families),
		LOCKED(test_holder),
		LOCKED(test_seen_locally),
		LOCKED(test_local_holder),
		LOCKED(test_wait_for_local_process),
		LOCKED(test_mirror_beside_model),
		LOCKED(test_ranges_of_no_file),
		LOCKED(test_rights),
		LOCKED(test_read_only),
	};
	int r = locks_env_start(&env);

	if (r)
		return r;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	locks_env_stop(&env);
	return r;
}
