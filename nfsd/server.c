/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server: owns the engine, the shards, the table of exports, the duplicate
 * request cache and the state directory; starts them in an order in which each
 * finds what it needs, reloads, drains and stops. It runs on the main thread,
 * but for server_unexport and server_apply, which are the control thread's
 * (change makes them and a reload take turns), and server_exports_get, which
 * any thread may call.
 */
#include "nfsd/server.h"

#include "nfsd/ctl.h"
#include "nfsd/devices.h"
#include "nfsd/override.h"
#include "nfsd/udp.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DRC_ENTRIES_MAX    16384u
#define DRC_BYTES_MAX      (16u << 20)
#define STOP_TIMEOUT_S     20u
#define SYNC_NS            (180ull * 1000000000) /* a slow disk, much dirty */
#define EXPORTS_DIR_SUFFIX ".d"
#define PORT_TRIES         16u
#define UNEXPORT_NS        (10ull * 1000000000)

static_assert((int)CONF_LOG_ERR == (int)LOG_ERR_ &&
		      (int)CONF_LOG_WARNING == (int)LOG_WARNING_ &&
		      (int)CONF_LOG_NOTICE == (int)LOG_NOTICE_ &&
		      (int)CONF_LOG_INFO == (int)LOG_INFO_ &&
		      (int)CONF_LOG_DEBUG == (int)LOG_DEBUG_,
	      "conf and log.c name the same levels in the same order");

/* What procedures ask ------------------------------------------------------ */

struct engine *
server_engine(struct server *s)
{
	return s->engine;
}

const uint8_t *
server_fh_key(struct server *s)
{
	return s->fh_key;
}

struct mount_list *
server_mounts(struct server *s)
{
	return s->mounts;
}

bool
server_manage_gids(struct server *s)
{
	return s->manage_gids;
}

struct export_table *
server_exports_get(struct server *s)
{
	struct export_table *t;

	pthread_mutex_lock(&s->lock);
	t = s->exports;
	export_table_get(t);
	pthread_mutex_unlock(&s->lock);
	return t;
}

/* Exports ---------------------------------------------------------------------
 */

void
server_log_report(const struct conf_report *r)
{
	unsigned i;

	for (i = 0; i < r->count; i++)
		log_msg(r->messages[i].warning ? LOG_WARNING_ : LOG_ERR_, "%s",
			r->messages[i].text);
}

int
server_read_exports(struct conf_exports *ret, const struct server_options *o,
		    struct conf_report *r)
{
	char dir[4096];
	size_t n = o->exports != NULL ? strlen(o->exports) : 0;

	if (n + sizeof(EXPORTS_DIR_SUFFIX) > sizeof(dir))
		return -ENAMETOOLONG;
	if (n > 0) {
		memcpy(dir, o->exports, n);
		memcpy(dir + n, EXPORTS_DIR_SUFFIX, sizeof(EXPORTS_DIR_SUFFIX));
	}
	return conf_exports_read(ret, o->exports, n > 0 ? dir : NULL,
				 o->export_lines, o->export_count, r);
}

static struct export_load
export_load_make(struct server *s, const struct conf *conf)
{
	return (struct export_load){ .engine = s->engine,
				     .conf = conf,
				     .overrides = s->overrides,
				     .verifier = state_verifier,
				     .arg = s->state };
}

/* The table that the files and options describe now. */
static int
load_exports(struct server *s, const struct conf *conf,
	     const struct server_options *o, struct export_table *old,
	     struct export_table **ret)
{
	struct conf_exports parsed = { 0 };
	struct conf_report r = { 0 };
	struct export_load load = export_load_make(s, conf);
	int rc;

	rc = server_read_exports(&parsed, o, &r);
	if (rc == 0) {
		rc = export_table_load(ret, &parsed, old, &load, &r);
		if (rc < 0)
			conf_exports_fini(&parsed);
	}
	server_log_report(&r);
	conf_report_fini(&r);
	return rc;
}

static void
log_exports(struct engine *engine, const struct export_table *t)
{
	const struct volume_facts *f;
	const struct export *e;
	struct io_policy p;
	struct volume *v;
	unsigned i;

	for (i = 0; i < export_table_count(t); i++) {
		e = export_table_at(t, i);
		v = e->rw != NULL ? e->rw : e->ro;
		f = volume_facts(v);
		p = volume_policy(v);
		log_msg(LOG_INFO_,
			"export %s: device %s, blocks of %u bytes, cut at %u, "
			"read-mode=%s write-mode=%s edges=%s direct-min=%u",
			e->path, f->device[0] != '\0' ? f->device : "unknown",
			f->logical_bytes, f->cut_bytes,
			io_mode_name(p.read_mode), io_mode_name(p.write_mode),
			io_edges_name(p.edges), p.direct_min);
		devices_log(engine, e->path, v);
	}
	if (export_table_count(t) == 0)
		log_msg(LOG_WARNING_, "nothing is exported: see "
				      "nvnfsd-exports(5)");
}

/* Start
 * ----------------------------------------------------------------------------
 */

static void
on_error(struct volume *v, const char *what, int error)
{
	static struct log_limit limit;

	log_limited(&limit, LOG_ERR_,
		    "%s: %s failed: %s; clients will write again what was not "
		    "yet stable",
		    export_volume_path(v), what,
		    strerror(error < 0 ? -error : error));
}

static int
worker_init(void *arg)
{
	return identity_worker_init();
}

static int
start_engine(struct server *s, const struct server_options *o)
{
	struct engine_config c = {
		.backend = o->backend,
		.reactors = s->conf.threads,
		.sqpoll = s->conf.sqpoll,
		.sqpoll_idle_ms = s->conf.sqpoll_idle_ms,
		.busy_poll_us = s->conf.busy_poll_us,
		.iopoll = s->conf.iopoll,
		.buffer_bytes = s->conf.buffer_memory,
		.files_max = s->conf.open_files,
		.reactor_init = shard_init,
		.reactor_tick = shard_tick,
		.reactor_fini = shard_fini,
		.worker_init = worker_init,
		.on_error = on_error,
		.arg = s,
	};
	const struct engine_facts *f;
	int rc;

	/* How many there will be, one a core or fewer, the engine says. */
	s->shard = calloc(CONF_THREADS_MAX, sizeof(struct shard *));
	if (s->shard == NULL)
		return -ENOMEM;
	rc = engine_new(&s->engine, &c);
	if (rc < 0) {
		log_msg(LOG_ERR_, "cannot start the engine: %s", strerror(-rc));
		return rc;
	}
	f = engine_facts(s->engine);
	s->shards = f->reactors;
	if (f->backend_error != 0)
		log_msg(LOG_WARNING_,
			"io_uring is refused here (%s): the threads engine "
			"serves, slower",
			strerror(f->backend_error < 0 ? -f->backend_error
						      : f->backend_error));
	if (f->backend == IO_BACKEND_URING && !f->buffers_registered)
		log_msg(LOG_NOTICE_,
			"buffers are not registered with io_uring: raise "
			"LimitMEMLOCK");
	polling_log(&s->conf, f);
	return 0;
}

static int
start_state(struct server *s, const char *dir)
{
	int rc = state_open(&s->state, dir);

	if (rc == 0)
		rc = fh_key_load(state_fd(s->state), s->fh_key);
	if (rc == 0)
		rc = mount_list_new(&s->mounts, state_fd(s->state));
	if (rc == -EBUSY)
		log_msg(LOG_ERR_,
			"the state directory %s is in use by another "
			"nvnfsd: choose another with --state-dir",
			dir);
	else if (rc < 0)
		log_msg(LOG_ERR_, "cannot use the state directory %s: %s", dir,
			strerror(-rc));
	return rc;
}

static void
listen_message(struct message *m)
{
	struct server *s = container_of(m, struct server, listening);

	listen_start(s);
}

static void
server_free(struct server *s)
{
	lockd_free(s);
	if (s->exports != NULL)
		export_table_put(s->exports);
	udp_free(s->udp);
	if (s->engine != NULL)
		engine_free(s->engine);
	listen_close(s); /* a cancelled accept may have ended just now */
	if (s->drc != NULL)
		drc_free(s->drc);
	if (s->mounts != NULL)
		mount_list_free(s->mounts);
	clients_free(s->clients);
	identity_forget_groups();
	state_close(s->state);
	conf_fini(&s->conf);
	overrides_free(s->overrides);
	pthread_mutex_destroy(&s->change);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->drained);
	free(s->shard);
	free(s);
}

static unsigned
conns_max(const struct conf *c)
{
	return c->connections > 0 ? c->connections : CONNS_DEFAULT;
}

static unsigned
calls_per_conn(const struct conf *c)
{
	return c->calls_per_connection > 0 ? c->calls_per_connection
					   : CALLS_PER_CONN_DEFAULT;
}

/* A free port that is taken is to be one of TCP's and of UDP's. */
static int
open_sockets(struct server *s)
{
	const struct conf *c = &s->conf;
	bool any = c->port == 0 || (c->has_mount_port && c->mount_port == 0);
	unsigned tries = any ? PORT_TRIES : 1;
	int rc = -EADDRINUSE;

	while (rc == -EADDRINUSE && tries-- > 0) {
		listen_close(s);
		rc = listen_open(s);
		if (rc < 0)
			return rc;
		rc = udp_open(&s->udp, s, tries > 0);
	}
	return rc;
}

int
server_start(struct server **ret, struct conf *conf,
	     const struct server_options *o)
{
	struct server *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;
	int rc;

	if (s == NULL)
		return -ENOMEM;
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->change, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->drained, &attr);
	pthread_condattr_destroy(&attr);
	s->conf = *conf;
	s->conns_max = conns_max(conf);
	s->calls_per_conn = calls_per_conn(conf);
	s->manage_gids = conf->manage_gids;
	s->options = o;
	s->started_ns = monotonic_ns();
	s->clients = clients_new();
	s->overrides = overrides_new();
	rc = s->clients == NULL || s->overrides == NULL ? -ENOMEM
							: open_sockets(s);
	if (rc == 0)
		rc = start_state(s, o->state_dir);
	if (rc == 0)
		rc = drc_new(&s->drc, DRC_ENTRIES_MAX, DRC_BYTES_MAX,
			     CALL_REPLY_BYTES - RPC_MARK_BYTES);
	if (rc == 0)
		rc = start_engine(s, o);
	if (rc == 0)
		rc = load_exports(s, &s->conf, o, NULL, &s->exports);
	if (rc == 0)
		rc = lockd_new(s);
	if (rc == 0)
		rc = ctl_start(&s->ctl, s);
	if (rc < 0) {
		conf_init(&s->conf); /* conf stays the caller's */
		server_free(s);
		return rc;
	}
	log_exports(s->engine, s->exports);
	s->listening.run = listen_message;
	reactor_post(engine_reactor(s->engine, 0), &s->listening);
	rc = udp_start(s->udp);
	if (rc < 0)
		log_msg(LOG_ERR_, "nothing is served by UDP: %s",
			strerror(-rc));
	if (!o->no_rpcbind && registration_start(&s->registration, s) < 0)
		log_msg(LOG_WARNING_, "no memory to register with rpcbind");
	lockd_start(s);
	*ret = s;
	return 0;
}

/* Reload
 * ------------------------------------------------------------------------------
 */

static bool
same_hosts(const struct conf *a, const struct conf *b)
{
	unsigned i;

	for (i = 0; i < a->host_count && i < b->host_count; i++)
		if (strcmp(a->hosts[i], b->hosts[i]) != 0)
			return false;
	return a->host_count == b->host_count;
}

/* What needs a restart, said once a reload. */
static void
log_fixed(const struct conf *is, const struct conf *wants)
{
	if (!same_hosts(is, wants) || is->port != wants->port ||
	    is->udp != wants->udp || is->threads != wants->threads ||
	    !polling_same(is, wants) ||
	    is->has_mount_port != wants->has_mount_port ||
	    is->mount_port != wants->mount_port ||
	    is->has_lockd_port != wants->has_lockd_port ||
	    is->lockd_port != wants->lockd_port ||
	    is->buffer_memory != wants->buffer_memory ||
	    is->has_metrics != wants->has_metrics ||
	    is->metrics_port != wants->metrics_port ||
	    strcmp(is->metrics_host, wants->metrics_host) != 0 ||
	    is->open_files != wants->open_files)
		log_msg(LOG_NOTICE_, "hosts, ports, udp, threads, polling, "
				     "buffer-memory, open-files and the "
				     "metrics' address change with a restart");
}

static void
take_conf(struct server *s, const struct conf *conf)
{
	log_fixed(&s->conf, conf);
	s->conf.policy = conf->policy;
	s->conf.stop_timeout_s = conf->stop_timeout_s;
	s->manage_gids = conf->manage_gids;
	s->conns_max = conns_max(conf);
	s->calls_per_conn = calls_per_conn(conf);
	log_set_level((enum log_level)conf->level);
}

/* With the lock change held. Returns the old table, and its reference. */
static struct export_table *
swap_exports(struct server *s, struct export_table *fresh)
{
	struct export_table *old = s->exports;

	pthread_mutex_lock(&s->lock);
	s->exports = fresh;
	pthread_mutex_unlock(&s->lock);
	return old;
}

int
server_reload(struct server *s, struct conf *conf,
	      const struct server_options *o)
{
	struct export_table *fresh = NULL, *old;
	int rc;

	pthread_mutex_lock(&s->change);
	rc = load_exports(s, conf, o, s->exports, &fresh);
	if (rc < 0) {
		pthread_mutex_unlock(&s->change);
		log_msg(LOG_ERR_, "reload failed: the running exports stay");
		return rc;
	}
	old = swap_exports(s, fresh);
	lockd_exports(s);
	take_conf(s, conf);
	log_exports(s->engine, fresh);
	pthread_mutex_unlock(&s->change);
	export_table_put(old);
	identity_forget_groups();
	return 0;
}

int
server_apply(struct server *s, struct conf_report *r)
{
	struct export_load load = export_load_make(s, &s->conf);

	return export_table_apply(s->exports, &load, r);
}

/* Wait until nobody else holds the table any more. */
static bool
wait_for_calls(const struct export_table *t, uint64_t deadline_ns)
{
	const struct timespec pause = { .tv_nsec = 2000000 };

	while (export_table_refs(t) > 1) {
		if (monotonic_ns() > deadline_ns)
			return false;
		(void)nanosleep(&pause, NULL);
	}
	return true;
}

/* Nobody uses it any more: sync and close what is open of it. */
static bool
close_files(struct server *s, const struct export *e)
{
	uint64_t until_ns = monotonic_ns() + UNEXPORT_NS;
	int r = 0;

	if (e->rw != NULL)
		r = file_close_all(s->engine, e->rw, until_ns);
	if (r != -EBUSY && e->ro != NULL)
		r = file_close_all(s->engine, e->ro, until_ns);
	return r != -EBUSY;
}

int
server_unexport(struct server *s, const char *path)
{
	struct export_table *fresh = NULL, *old;
	struct export *gone;
	const char *rest;
	bool let_go;
	int rc;

	pthread_mutex_lock(&s->change);
	gone = export_find_path(s->exports, path, &rest);
	if (gone == NULL || strcmp(gone->path, path) != 0)
		rc = -ENOENT;
	else
		rc = export_table_without(&fresh, s->exports, gone);
	if (rc < 0) {
		pthread_mutex_unlock(&s->change);
		return rc;
	}
	old = swap_exports(s, fresh);
	lockd_exports(s);
	pthread_mutex_unlock(&s->change);
	log_msg(LOG_NOTICE_, "%s: withdrawn", path);
	let_go = wait_for_calls(old, monotonic_ns() + UNEXPORT_NS) &&
		 export_holders(gone) == 1 && close_files(s, gone);
	export_table_put(old);
	return let_go ? 0 : 1;
}

/* Stop
 * ----------------------------------------------------------------------------------
 */

/* Until all shards are, or for as long as the configuration says. */
static bool
wait_drained(struct server *s)
{
	unsigned seconds = s->conf.stop_timeout_s > 0 ? s->conf.stop_timeout_s
						      : STOP_TIMEOUT_S;
	uint64_t deadline_ns = monotonic_ns() + seconds * 1000000000ull;
	struct timespec t = { .tv_sec = (time_t)(deadline_ns / 1000000000),
			      .tv_nsec = (long)(deadline_ns % 1000000000) };
	bool all;

	pthread_mutex_lock(&s->lock);
	while (s->shards_drained < s->shards &&
	       pthread_cond_timedwait(&s->drained, &s->lock, &t) != ETIMEDOUT)
		;
	all = s->shards_drained == s->shards;
	pthread_mutex_unlock(&s->lock);
	return all;
}

static int
stop_shards(struct server *s)
{
	unsigned i;

	reactor_post(s->shard[0]->reactor, &s->shard[0]->stop);
	if (wait_drained(s))
		return 0;
	log_msg(LOG_WARNING_, "calls are still in service: their connections "
			      "are closed");
	for (i = 0; i < s->shards; i++)
		reactor_post(s->shard[i]->reactor, &s->shard[i]->force);
	return wait_drained(s) ? 0 : -EBUSY;
}

int
server_stop(struct server *s)
{
	int rc, kept;

	ctl_stop(s->ctl);
	ctl_forget(s);
	registration_stop(s->registration);
	udp_stop_receiving(s->udp);
	rc = stop_shards(s);
	if (rc < 0) {
		log_msg(LOG_ERR_, "the device does not answer: ending without "
				  "a clean stop");
		return rc; /* threads hang in it; nothing can be freed */
	}
	rc = file_close_all(s->engine, NULL, monotonic_ns() + SYNC_NS);
	if (rc == -EBUSY) {
		log_msg(LOG_ERR_, "a sync does not end: ending without a clean "
				  "stop");
		return rc; /* as above */
	}
	if (rc < 0)
		log_msg(LOG_ERR_, "not everything could be synced: %s",
			strerror(-rc));
	kept = rc < 0 ? rc : state_keep(s->state, s->exports);
	if (rc == 0 && kept < 0)
		log_msg(LOG_WARNING_, "cannot keep the verifiers: %s",
			strerror(-kept));
	if (stats_write(s, state_fd(s->state)) < 0)
		log_msg(LOG_WARNING_, "cannot write the statistics");
	server_free(s);
	return rc;
}
