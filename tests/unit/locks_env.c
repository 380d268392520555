/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/locks_env.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* What the manager calls --------------------------------------------------- */

static void
note_grant(void *arg, const struct lock_grant *g)
{
	struct locks_env *e = arg;

	pthread_mutex_lock(&e->lock);
	if (e->grants < ENV_GRANTS)
		e->grant[e->grants] = *g;
	e->grants++;
	pthread_cond_broadcast(&e->called);
	pthread_mutex_unlock(&e->lock);
}

static int
note_first(void *arg, const struct lock_host *h)
{
	struct locks_env *e = arg;
	int r;

	pthread_mutex_lock(&e->lock);
	e->firsts++;
	e->first = *h;
	r = e->first_result;
	pthread_mutex_unlock(&e->lock);
	return r;
}

static void
note_last(void *arg, const struct lock_host *h)
{
	struct locks_env *e = arg;

	pthread_mutex_lock(&e->lock);
	e->lasts++;
	e->last = *h;
	pthread_mutex_unlock(&e->lock);
}

void
env_await_grants(struct locks_env *e, unsigned n)
{
	pthread_mutex_lock(&e->lock);
	while (e->grants < n)
		pthread_cond_wait(&e->called, &e->lock);
	pthread_mutex_unlock(&e->lock);
}

/* Start and end ------------------------------------------------------------ */

int
locks_env_start(struct locks_env *e)
{
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->called, NULL);
	return env_start(&e->env);
}

void
locks_env_stop(struct locks_env *e)
{
	env_stop(&e->env);
}

void
locked_open(struct locks_env *e, struct locked *f, const char *name)
{
	struct request *rq = &e->env.rq;
	struct nfs_fh3 fh = env_lookup(&e->env, ENV_RW, name);

	(void)snprintf(f->path, sizeof(f->path), "%s/rw/%s", e->env.path, name);
	rq->server = &e->env.server;
	rq->exports = e->env.exports;
	rq->client = (const struct sockaddr *)&e->env.client;
	rq->cred = &e->env.cred;
	assert_int_equal(object_open(&f->object, rq, &fh), 0);
}

void
locked_close(struct locked *f)
{
	object_fini(&f->object);
}

void
locks_env_open(struct locks_env *e)
{
	static const struct locks_ops ops = { .grant = note_grant,
					      .host_first = note_first,
					      .host_last = note_last };
	char name[8];
	unsigned i;

	e->grants = e->firsts = e->lasts = 0;
	e->first_result = 0;
	for (i = 0; i < ENV_FILES; i++) {
		(void)snprintf(name, sizeof(name), "f%u", i);
		env_file(&e->env, ENV_RW, name, "", 0666, 0);
		locked_open(e, &e->file[i], name);
	}
	assert_int_equal(locks_new(&e->locks, &ops, e), 0);
	locks_exports(e->locks, e->env.exports);
}

void
locks_env_close(struct locks_env *e)
{
	unsigned i;

	locks_free(e->locks);
	for (i = 0; i < ENV_FILES; i++)
		locked_close(&e->file[i]);
	env_reset(&e->env);
}

/* Asking ------------------------------------------------------------------- */

static void
address(struct sockaddr_storage *a, const char *text)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)a;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)a;

	memset(a, 0, sizeof(*a));
	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(700);
	} else {
		assert_int_equal(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
		v6->sin6_family = AF_INET6;
	}
}

struct lock_request
env_request(const struct locked *f, const struct asker *who, uint64_t offset,
	    uint64_t length)
{
	static _Thread_local struct sockaddr_storage client, local;

	address(&client, who->host);
	address(&local, "127.0.0.1");
	return (struct lock_request){
		.client = (const struct sockaddr *)&client,
		.local = (const struct sockaddr *)&local,
		.transport = IPPROTO_TCP,
		.caller_name = { (const uint8_t *)"name", 4 },
		.oh = { (const uint8_t *)"oh", 2 },
		.svid = who->svid,
		.fh = &f->object.fh,
		.object = &f->object,
		.monitored = true,
		.may_block = true,
		.offset = offset,
		.length = length,
	};
}

static int
ask_lock(struct locks_env *e, const struct locked *f, const struct asker *who,
	 uint64_t offset, uint64_t length, int how)
{
	struct lock_request rq = env_request(f, who, offset, length);

	rq.exclusive = how & 1;
	rq.block = how & 2;
	return locks_lock(e->locks, &rq);
}

int
env_lock(struct locks_env *e, const struct locked *f, const struct asker *who,
	 uint64_t offset, uint64_t length, bool exclusive)
{
	return ask_lock(e, f, who, offset, length, exclusive);
}

int
env_wait(struct locks_env *e, const struct locked *f, const struct asker *who,
	 uint64_t offset, uint64_t length, bool exclusive)
{
	return ask_lock(e, f, who, offset, length, 2 | exclusive);
}

int
env_unlock(struct locks_env *e, const struct locked *f, const struct asker *who,
	   uint64_t offset, uint64_t length)
{
	struct lock_request rq = env_request(f, who, offset, length);

	rq.object = NULL;
	return locks_unlock(e->locks, &rq);
}

/* Local processes ---------------------------------------------------------- */

int
local_open(const struct locked *f)
{
	int fd = open(f->path, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

int
local_sees(int fd, uint64_t offset, uint64_t length)
{
	struct flock k = { .l_type = F_WRLCK,
			   .l_whence = SEEK_SET,
			   .l_start = (off_t)offset,
			   .l_len = (off_t)length };

	assert_int_equal(fcntl(fd, F_OFD_GETLK, &k), 0);
	return k.l_type;
}

int
local_set(int fd, int type, uint64_t offset, uint64_t length)
{
	struct flock k = { .l_type = (short)type,
			   .l_whence = SEEK_SET,
			   .l_start = (off_t)offset,
			   .l_len = (off_t)length };

	return fcntl(fd, F_OFD_SETLK, &k) < 0 ? -errno : 0;
}
