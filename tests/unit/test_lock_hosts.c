/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock manager and whole hosts: watching them, their reboots and ours,
 * SHARE, exports that go, what the operator sees and does.
 */
#include "tests/unit/locks_env.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SHARED    false
#define EXCLUSIVE true
#define HOUR_NS   (3600ull * 1000000000)

static struct locks_env env;

static const struct asker a = { "192.0.2.1", 1 }, b = { "192.0.2.2", 1 },
			  c = { "192.0.2.1", 2 }, d = { "192.0.2.4", 1 };

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

/* Watching ----------------------------------------------------------------- */

static void
test_watched(void **state)
{
	const struct locked *f = &env.file[0];
	struct lock_request rq = env_request(f, &a, 0, 0);

	rq.monitored = false;
	assert_int_equal(locks_lock(env.locks, &rq), NLM4_GRANTED);
	assert_int_equal(env.firsts, 0);
	rq = env_request(f, &a, 0, 0);
	rq.may_block = false;
	assert_int_equal(locks_lock(env.locks, &rq), -EAGAIN);
	assert_int_equal(env.firsts, 0);
	rq.may_block = true;
	assert_int_equal(locks_lock(env.locks, &rq), NLM4_GRANTED);
	assert_int_equal(env.firsts, 1);
	assert_string_equal(env.first.name, "name");
	assert_int_equal(env.first.client.ss_family, AF_INET);
	assert_int_equal(env.first.local.ss_family, AF_INET);
	/* From then on nobody has to wait for it. */
	rq.may_block = false;
	assert_int_equal(locks_lock(env.locks, &rq), NLM4_GRANTED);
	assert_int_equal(env.firsts, 1);
	/* Not while it has anything, nor at once when it has nothing. */
	tick(monotonic_ns() + HOUR_NS);
	assert_int_equal(env_unlock(&env, f, &a, 0, 0), NLM4_GRANTED);
	tick(monotonic_ns());
	assert_int_equal(env.lasts, 0);
	assert_int_equal(counted().hosts, 1);
	tick(monotonic_ns() + HOUR_NS);
	assert_int_equal(env.lasts, 1);
	assert_string_equal(env.last.name, "name");
	assert_int_equal(counted().hosts, 0);
	assert_int_equal(env_lock(&env, f, &a, 0, 0, SHARED), NLM4_GRANTED);
	assert_int_equal(env.firsts, 2);
}

static void
test_not_to_be_watched(void **state)
{
	const struct locked *f = &env.file[0];

	env.first_result = -ECONNREFUSED;
	assert_int_equal(env_lock(&env, f, &a, 0, 1, SHARED), NLM4_GRANTED);
	assert_int_equal(env_lock(&env, f, &a, 5, 1, SHARED), NLM4_GRANTED);
	/* Asked again, but not with each lock. */
	assert_int_equal(env.firsts, 1);
	assert_int_equal(env_unlock(&env, f, &a, 0, 0), NLM4_GRANTED);
	tick(monotonic_ns() + HOUR_NS);
	assert_int_equal(env.lasts, 1);
	assert_int_equal(env_lock(&env, f, &a, 0, 1, SHARED), NLM4_GRANTED);
	assert_int_equal(env.firsts, 2);
}

/* Reboots ------------------------------------------------------------------ */

static int
lock_in_state(const struct asker *who, const char *name, uint64_t offset,
	      int32_t state)
{
	struct lock_request rq = env_request(&env.file[0], who, offset, 1);

	rq.caller_name.data = (const uint8_t *)name;
	rq.caller_name.bytes = (uint32_t)strlen(name);
	rq.state = state;
	rq.exclusive = true;
	return locks_lock(env.locks, &rq);
}

static void
test_free_all(void **state)
{
	struct lock_request rq;

	assert_int_equal(env_lock(&env, &env.file[0], &a, 0, 0, EXCLUSIVE), 0);
	assert_int_equal(env_lock(&env, &env.file[1], &c, 0, 0, SHARED), 0);
	assert_int_equal(env_lock(&env, &env.file[1], &b, 0, 0, SHARED), 0);
	assert_int_equal(env_lock(&env, &env.file[3], &d, 0, 0, SHARED), 0);
	rq = env_request(&env.file[2], &a, 0, 0);
	rq.mode = FSM_DW;
	rq.access = FSA_R;
	assert_int_equal(locks_share(env.locks, &rq), 0);
	assert_int_equal(env_wait(&env, &env.file[0], &c, 0, 5, SHARED),
			 NLM4_BLOCKED);
	assert_int_equal(env_wait(&env, &env.file[0], &b, 0, 5, SHARED),
			 NLM4_BLOCKED);
	assert_int_equal(env_wait(&env, &env.file[3], &a, 0, 5, EXCLUSIVE),
			 NLM4_BLOCKED);
	rq = env_request(&env.file[2], &a, 0, 0);
	locks_free_all(env.locks, rq.client);
	/* What b has is left, and what it waited for is its own; not what c
	 * waited for. */
	assert_int_equal(env.grants, 1);
	assert_int_equal(counted().held, 3);
	assert_int_equal(counted().waiting, 0);
	assert_int_equal(counted().shares, 0);
	assert_int_equal(counted().files, 3);
}

static void
test_rebooted(void **state)
{
	struct lock_request rq = env_request(&env.file[0], &a, 0, 0);

	assert_int_equal(lock_in_state(&a, "name", 0, 3), NLM4_GRANTED);
	assert_int_equal(lock_in_state(&c, "name", 1, 5), NLM4_GRANTED);
	/* The LOCK of a later state has told already; statd's word for it
	 * comes later and takes nothing of the new ones. */
	assert_int_equal(counted().held, 1);
	locks_host_rebooted(env.locks, rq.client, 5);
	assert_int_equal(counted().held, 1);
	/* One of an earlier state, late: nothing goes for it. */
	assert_int_equal(lock_in_state(&a, "name", 0, 3), NLM4_GRANTED);
	assert_int_equal(counted().held, 2);
	locks_host_rebooted(env.locks, rq.client, 7);
	assert_int_equal(counted().held, 0);
	/* Its very owner, again. */
	assert_int_equal(lock_in_state(&a, "name", 0, 7), NLM4_GRANTED);
	assert_int_equal(lock_in_state(&a, "name", 5, 9), NLM4_GRANTED);
	assert_int_equal(counted().held, 1);
	assert_int_equal(lock_in_state(&b, "name", 0, 1), NLM4_GRANTED);
	/* Numbers wrap. */
	assert_int_equal(lock_in_state(&b, "name", 1, INT32_MAX), NLM4_GRANTED);
	assert_int_equal(counted().held, 2);
	assert_int_equal(lock_in_state(&b, "name", 2, INT32_MIN + 1),
			 NLM4_GRANTED);
	assert_int_equal(counted().held, 2);
}

/* Two clients behind one address, which have states of their own. */
static void
test_rebooted_by_name(void **state)
{
	assert_int_equal(lock_in_state(&a, "one", 0, 3), NLM4_GRANTED);
	assert_int_equal(lock_in_state(&c, "two", 1, 9), NLM4_GRANTED);
	assert_int_equal(lock_in_state(&a, "one", 2, 3), NLM4_GRANTED);
	assert_int_equal(counted().held, 3);
}

static void
test_grace(void **state)
{
	struct lock_request rq = env_request(&env.file[0], &a, 0, 0);
	struct nlm4_holder h;

	locks_grace(env.locks, HOUR_NS);
	assert_true(locks_in_grace(env.locks));
	assert_int_equal(locks_lock(env.locks, &rq), NLM4_DENIED_GRACE_PERIOD);
	assert_int_equal(locks_test(env.locks, &rq, &h),
			 NLM4_DENIED_GRACE_PERIOD);
	assert_int_equal(locks_share(env.locks, &rq), NLM4_DENIED_GRACE_PERIOD);
	assert_int_equal(env.firsts, 0);
	rq.reclaim = true;
	rq.exclusive = true;
	assert_int_equal(locks_lock(env.locks, &rq), NLM4_GRANTED);
	assert_int_equal(env.firsts, 1);
	assert_int_equal(counted().reclaimed, 1);
	locks_grace(env.locks, 0);
	assert_false(locks_in_grace(env.locks));
	/* Too late: another may have had it meanwhile. */
	assert_int_equal(locks_lock(env.locks, &rq), NLM4_DENIED_GRACE_PERIOD);
	assert_int_equal(env_lock(&env, &env.file[0], &b, 0, 0, SHARED),
			 NLM4_DENIED);
	/* It ends by itself. */
	locks_grace(env.locks, 1);
	assert_int_equal(env_lock(&env, &env.file[0], &a, 0, 0, SHARED),
			 NLM4_GRANTED);
}

/* SHARE -------------------------------------------------------------------- */

static int
share(const struct asker *who, const char *oh, enum fsh4_mode mode,
      enum fsh4_access access)
{
	struct lock_request rq = env_request(&env.file[0], who, 0, 0);

	rq.oh.data = (const uint8_t *)oh;
	rq.oh.bytes = (uint32_t)strlen(oh);
	rq.mode = mode;
	rq.access = access;
	return locks_share(env.locks, &rq);
}

static void
test_share(void **state)
{
	struct lock_request rq;

	assert_int_equal(share(&a, "one", FSM_DW, FSA_R), NLM4_GRANTED);
	assert_int_equal(share(&b, "one", FSM_DN, FSA_RW), NLM4_DENIED);
	assert_int_equal(share(&b, "one", FSM_DR, FSA_R), NLM4_DENIED);
	assert_int_equal(share(&b, "one", FSM_DW, FSA_R), NLM4_GRANTED);
	assert_int_equal(share(&a, "two", FSM_DN, FSA_W), NLM4_DENIED);
	/* Of one owner, whatever its svid, the latest counts. */
	assert_int_equal(share(&c, "one", FSM_DN, FSA_R), NLM4_GRANTED);
	assert_int_equal(share(&b, "one", FSM_DN, FSA_R), NLM4_GRANTED);
	assert_int_equal(share(&a, "two", FSM_DN, FSA_W), NLM4_GRANTED);
	assert_int_equal(counted().shares, 3);
	/* It has nothing to do with ranges. */
	assert_int_equal(env_lock(&env, &env.file[0], &b, 0, 0, EXCLUSIVE),
			 NLM4_GRANTED);
	rq = env_request(&env.file[0], &a, 0, 0);
	rq.object = NULL;
	rq.oh.data = (const uint8_t *)"two";
	rq.oh.bytes = 3;
	assert_int_equal(locks_unshare(env.locks, &rq), NLM4_GRANTED);
	assert_int_equal(locks_unshare(env.locks, &rq), NLM4_GRANTED);
	assert_int_equal(counted().shares, 2);
	assert_int_equal(share(&a, "three", FSM_DRW, FSA_NONE), NLM4_DENIED);
}

/* Exports that go ---------------------------------------------------------- */

static bool
is_open(const char *path)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	char link[300], to[300];
	bool found = false;
	ssize_t n;

	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL) {
		(void)snprintf(link, sizeof(link), "/proc/self/fd/%s",
			       entry->d_name);
		n = readlink(link, to, sizeof(to) - 1);
		if (n < 0)
			continue;
		to[n] = '\0';
		/* In the export's own mount the path begins there. */
		found = found || strcmp(to, path) == 0;
	}
	(void)closedir(dir);
	return found;
}

static void
test_withdrawn(void **state)
{
	const struct locked *f = &env.file[0];
	struct export_table *t;
	int fd = local_open(f);

	locked_close(&env.file[0]); /* it is open as well */
	assert_false(is_open("/f0"));
	locked_open(&env, &env.file[0], "f0");
	assert_int_equal(env_lock(&env, f, &a, 0, 0, EXCLUSIVE), NLM4_GRANTED);
	assert_int_equal(env_wait(&env, f, &b, 0, 0, SHARED), NLM4_BLOCKED);
	assert_int_equal(export_table_without(&t, env.env.exports,
					      env_export(&env.env, ENV_RW)),
			 0);
	locks_exports(env.locks, t);
	assert_int_equal(local_sees(fd, 0, 0), F_UNLCK);
	assert_int_equal(counted().files, 0);
	assert_int_equal(counted().held, 0);
	assert_int_equal(counted().waiting, 0);
	assert_int_equal(env.grants, 0);
	/* A call that began before. */
	assert_int_equal(env_lock(&env, f, &a, 0, 0, SHARED), NLM4_STALE_FH);
	assert_int_equal(env_unlock(&env, f, &a, 0, 0), NLM4_GRANTED);
	locked_close(&env.file[0]);
	assert_false(is_open("/f0"));
	locks_exports(env.locks, env.env.exports);
	export_table_put(t);
	locked_open(&env, &env.file[0], "f0");
	assert_int_equal(env_lock(&env, f, &a, 0, 0, SHARED), NLM4_GRANTED);
	(void)close(fd);
}

/* The last link goes while it is locked: the client can still unlock it. */
static void
test_removed(void **state)
{
	const struct locked *f = &env.file[1];

	assert_int_equal(env_lock(&env, f, &a, 0, 0, EXCLUSIVE), NLM4_GRANTED);
	assert_int_equal(unlink(f->path), 0);
	assert_int_equal(env_unlock(&env, f, &a, 0, 0), NLM4_GRANTED);
	assert_int_equal(counted().files, 0);
}

/* The operator ------------------------------------------------------------- */

static const char *
text_at(struct json_object *o, const char *name)
{
	struct json_object *value = NULL;

	assert_true(json_object_object_get_ex(o, name, &value));
	return json_object_get_string(value);
}

static void
test_shown(void **state)
{
	struct json_object *o, *list = NULL, *row;

	assert_int_equal(env_lock(&env, &env.file[0], &a, 5, 10, EXCLUSIVE), 0);
	assert_int_equal(env_wait(&env, &env.file[0], &b, 9, 0, SHARED),
			 NLM4_BLOCKED);
	assert_int_equal(share(&b, "x", FSM_DW, FSA_R), NLM4_GRANTED);
	o = locks_json(env.locks);
	assert_true(json_object_object_get_ex(o, "locks", &list));
	assert_int_equal(json_object_array_length(list), 3);
	row = json_object_array_get_idx(list, 0);
	assert_string_equal(text_at(row, "client"), "192.0.2.1");
	assert_string_equal(text_at(row, "name"), "name");
	assert_string_equal(text_at(row, "path"), "/f0");
	assert_string_equal(text_at(row, "state"), "held");
	assert_string_equal(text_at(row, "kind"), "exclusive");
	assert_string_equal(text_at(row, "offset"), "5");
	assert_string_equal(text_at(row, "length"), "10");
	row = json_object_array_get_idx(list, 1);
	assert_string_equal(text_at(row, "client"), "192.0.2.2");
	assert_string_equal(text_at(row, "state"), "waiting");
	assert_string_equal(text_at(row, "length"), "0");
	row = json_object_array_get_idx(list, 2);
	assert_string_equal(text_at(row, "state"), "share");
	assert_string_equal(text_at(row, "access"), "read");
	assert_string_equal(text_at(row, "denies"), "write");
	json_object_put(o);
}

static void
test_released_by_operator(void **state)
{
	assert_int_equal(env_lock(&env, &env.file[0], &a, 0, 0, EXCLUSIVE), 0);
	assert_int_equal(env_lock(&env, &env.file[1], &b, 0, 0, EXCLUSIVE), 0);
	assert_int_equal(locks_release(env.locks, "192.0.2.9"), 0);
	assert_int_equal(locks_release(env.locks, "192.0.2.1"), 1);
	assert_int_equal(counted().held, 1);
	assert_int_equal(locks_release(env.locks, "name"), 1);
	assert_int_equal(counted().held, 0);
}

/* It is taken while a call of its owner's is in service: what the owner locks
 * after that is not taken with the next host's. */
static void
test_freed_in_service(void **state)
{
	const struct locked *f = &env.file[0];
	struct lock_request rq = env_request(f, &a, 0, 1);
	struct lock_owner *o;

	assert_int_equal(env_lock(&env, f, &a, 0, 1, EXCLUSIVE), NLM4_GRANTED);
	locks_enter(env.locks);
	o = lock_owner_find(lock_peer_find(env.locks, rq.client), &rq, false);
	locks_leave(env.locks);
	assert_non_null(o);
	locks_free_all(env.locks, rq.client);
	assert_int_equal(env_lock(&env, f, &a, 0, 1, EXCLUSIVE), NLM4_GRANTED);
	assert_int_equal(env_lock(&env, f, &b, 1, 1, EXCLUSIVE), NLM4_GRANTED);
	locks_enter(env.locks);
	lock_owner_unpin(o);
	locks_leave(env.locks);
	rq = env_request(f, &b, 0, 1);
	locks_free_all(env.locks, rq.client);
	assert_int_equal(env_lock(&env, f, &b, 0, 1, SHARED), NLM4_DENIED);
	assert_int_equal(counted().held, 1);
}

#define LOCKED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		LOCKED(test_watched),
		LOCKED(test_freed_in_service),
		LOCKED(test_not_to_be_watched),
		LOCKED(test_free_all),
		LOCKED(test_rebooted),
		LOCKED(test_rebooted_by_name),
		LOCKED(test_grace),
		LOCKED(test_share),
		LOCKED(test_withdrawn),
		LOCKED(test_removed),
		LOCKED(test_shown),
		LOCKED(test_released_by_operator),
	};
	int r = locks_env_start(&env);

	if (r)
		return r;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	locks_env_stop(&env);
	return r;
}
