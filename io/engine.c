/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: owns the reactors, the two worker pools and the cache of open
 * files. Made and ended by the server's main thread; what others read of it
 * does not change in between.
 *
 * Order: workers, file cache, reactors, for a reactor's start may want the
 * others. At the end the files go first, while every thread still runs; then
 * the workers, whose last results are messages to reactors; then the reactors.
 */
#include "io/compat.h"
#include "io/device.h"
#include "io/file.h"
#include "io/reactor.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define REACTOR_BUFFER_BYTES ((size_t)64 << 20)
#define TRANSFERS_MIN        8u /* largest transfers that a reactor can hold */
#define WORKERS_DEFAULT      16u
#define WORKERS_MAX          1024u
#define IO_WORKERS_DEFAULT   8u
#define NAME_WORKERS         8u
#define SQPOLL_IDLE_MS       50u

struct engine {
	struct engine_config config;
	struct engine_facts facts;
	struct crew *crew[WORK_POOLS];
	struct device_set *devices;
	struct file_cache *files;
	struct reactor *reactor[REACTORS_MAX];
};

const struct engine_config *
engine_config(const struct engine *e)
{
	return &e->config;
}

const struct engine_facts *
engine_facts(const struct engine *e)
{
	return &e->facts;
}

struct file_cache *
engine_files(struct engine *e)
{
	return e->files;
}

struct device_set *
engine_devices(struct engine *e)
{
	return e->devices;
}

unsigned
engine_io_workers(const struct engine *e)
{
	return e->config.io_workers;
}

struct reactor *
engine_reactor(struct engine *e, unsigned i)
{
	assert(i < e->facts.reactors);
	return e->reactor[i];
}

void
engine_error(struct engine *e, struct volume *v, const char *what, int error)
{
	if (e->config.on_error)
		e->config.on_error(v, what, error);
}

void
work_submit(struct engine *e, enum work_pool pool, struct work *w)
{
	crew_submit(e->crew[pool], w);
}

int
engine_thread(pthread_t *thread, char letter, unsigned n, void *(*run)(void *),
	      void *arg)
{
	char name[THREAD_NAME_MAX];
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		return -err;
	(void)snprintf(name, sizeof(name), "nvnfsd/%c%u", letter, n % 1000);
	pthread_setname_np(*thread, name);
	return 0;
}

void
engine_thread_flushes(void)
{
	/* Needs CAP_SYS_RESOURCE. Without it only a client that is mounted
	 * here and short of memory is at risk. */
	(void)prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
}

static unsigned
cores(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	return (unsigned)CPU_COUNT(&set);
}

static size_t
buffer_bytes_min(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return TRANSFERS_MIN * (IO_TRANSFER_BYTES_MAX + 2 * page);
}

static unsigned
or_default(unsigned value, unsigned otherwise)
{
	return value ? value : otherwise;
}

/* Zeros become what they stand for. */
static void
config_complete(struct engine_config *c)
{
	size_t each;

	c->reactors = or_default(c->reactors, cores());
	if (c->reactors > REACTORS_MAX)
		c->reactors = REACTORS_MAX;
	c->workers = or_default(c->workers, WORKERS_DEFAULT);
	if (c->workers > WORKERS_MAX)
		c->workers = WORKERS_MAX;
	c->io_workers = or_default(c->io_workers, IO_WORKERS_DEFAULT);
	if (c->io_workers > WORKERS_MAX)
		c->io_workers = WORKERS_MAX;
	c->sqpoll_idle_ms = or_default(c->sqpoll_idle_ms, SQPOLL_IDLE_MS);
	each = c->buffer_bytes ? c->buffer_bytes / c->reactors
			       : REACTOR_BUFFER_BYTES;
	if (each < buffer_bytes_min())
		each = buffer_bytes_min();
	c->buffer_bytes = each * c->reactors;
}

static void
reactors_close(struct engine *e)
{
	for (unsigned i = 0; i < e->config.reactors; i++) {
		reactor_close(e->reactor[i]);
		e->reactor[i] = NULL;
	}
}

static int
reactors_open(struct engine *e, const struct backend *backend)
{
	unsigned n = e->config.reactors;
	int err;

	for (unsigned i = 0; i < n; i++) {
		err = reactor_open(&e->reactor[i], e, i, backend,
				   e->config.buffer_bytes / n);
		if (err) {
			reactors_close(e);
			return err;
		}
	}
	return 0;
}

/* io_uring where the kernel lets us (ENOSYS, EPERM by seccomp or by the sysctl
 * io_uring_disabled, EINVAL before Linux 6.1), threads where not. */
static int
reactors_open_any(struct engine *e)
{
	int err = 0;

	if (e->config.backend == IO_BACKEND_URING) {
		err = reactors_open(e, &backend_uring);
		if (!err) {
			e->facts.backend = IO_BACKEND_URING;
			return 0;
		}
		e->facts.backend_error = err;
	}
	e->facts.backend = IO_BACKEND_THREADS;
	return reactors_open(e, &backend_threads);
}

static void
facts_complete(struct engine *e)
{
	struct engine_facts *f = &e->facts;

	f->reactors = e->config.reactors;
	f->buffer_bytes = e->config.buffer_bytes;
	f->buffers_registered = true;
}

static int
first_error(int a, int b)
{
	return a != 0 ? a : b;
}

/* When all have settled: what one of them could not have. */
static void
facts_settle(struct engine *e)
{
	struct engine_facts *f = &e->facts;

	for (unsigned i = 0; i < f->reactors; i++) {
		const struct reactor *r = e->reactor[i];

		f->sqpoll_error = first_error(f->sqpoll_error, r->sqpoll_error);
		f->busy_poll_error =
			first_error(f->busy_poll_error, r->busy_poll_error);
		f->iopoll_error = first_error(f->iopoll_error, r->iopoll_error);
		if (!r->buffers_registered)
			f->buffers_registered = false;
	}
}

static void
reactors_end(struct engine *e)
{
	for (unsigned i = 0; i < e->config.reactors; i++)
		if (e->reactor[i])
			reactor_stop(e->reactor[i]);
	for (unsigned i = 0; i < e->config.reactors; i++)
		if (e->reactor[i])
			reactor_join(e->reactor[i]);
	reactors_close(e);
}

static int
engine_start(struct engine *e)
{
	int err;

	err = device_set_new(&e->devices, e);
	if (!err)
		err = crew_new(&e->crew[WORK_META], e, 'm', e->config.workers);
	if (!err)
		err = crew_new(&e->crew[WORK_DATA], e, 'd',
			       e->config.io_workers);
	if (!err)
		err = crew_new(&e->crew[WORK_FILES], e, 'f',
			       e->config.io_workers);
	if (!err)
		err = crew_new(&e->crew[WORK_NAMES], e, 'n', NAME_WORKERS);
	if (!err)
		err = file_cache_new(&e->files, e, e->config.files_max);
	if (!err)
		err = reactors_open_any(e);
	if (err)
		return err;
	facts_complete(e);
	for (unsigned i = 0; !err && i < e->config.reactors; i++)
		err = reactor_start(e->reactor[i]);
	for (unsigned i = 0; !err && i < e->config.reactors; i++)
		reactor_run(e->reactor[i]);
	if (!err)
		facts_settle(e);
	return err;
}

int
engine_new(struct engine **ret, const struct engine_config *config)
{
	struct engine *e = calloc(1, sizeof(*e));
	int err;

	if (!e)
		return -ENOMEM;
	e->config = *config;
	config_complete(&e->config);
	err = fault_init();
	if (!err)
		err = engine_start(e);
	if (err) {
		engine_free(e);
		return err;
	}
	*ret = e;
	return 0;
}

void
engine_free(struct engine *e)
{
	if (!e)
		return;
	file_cache_free(e->files);
	for (unsigned i = 0; i < WORK_POOLS; i++)
		crew_end(e->crew[i]);
	reactors_end(e);
	for (unsigned i = 0; i < WORK_POOLS; i++)
		crew_free(e->crew[i]);
	device_set_free(e->devices);
	free(e);
}
