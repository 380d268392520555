/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One exported tree as the engine sees it. The object is struct volume: made
 * by nfsd when it opens an export, counted (its open files hold it), used from
 * every thread. Here: its life, its policy, and the verifier. Counters and
 * verifier live apart, so that two clones of one export (one read-only) share
 * them. It knows nothing of handles or clients. RFC 1813, 3.3.7 (writeverf3).
 */
#include "io/volume.h"

#include "io/reactor.h"

#include <stdlib.h>
#include <sys/random.h>

#define DIRTY_PART 8 /* of the memory that we may use, at most */

const char *
io_mode_name(enum io_mode m)
{
	static const char *const names[] = { [IO_BUFFERED] = "buffered",
					     [IO_DONTCACHE] = "dontcache",
					     [IO_DIRECT] = "direct",
					     [IO_AUTO] = "auto" };

	assert(m <= IO_AUTO);
	return names[m];
}

const char *
io_edges_name(enum io_edges e)
{
	static const char *const names[] = {
		[IO_EDGES_DROP] = "drop",
		[IO_EDGES_DONTCACHE] = "dontcache",
		[IO_EDGES_BUFFERED] = "buffered",
		[IO_EDGES_JOIN] = "join",
	};

	assert(e <= IO_EDGES_JOIN);
	return names[e];
}

/* policy: one word, so that every WRITE reads it without a lock ------------ */

static uint64_t
policy_pack(const struct io_policy *p)
{
	return (uint64_t)p->direct_min << 32 | (uint64_t)p->torn_free << 16 |
	       (uint64_t)p->read_mode << 12 | (uint64_t)p->write_mode << 8 |
	       (uint64_t)p->edges << 4 | (uint64_t)p->stable_floor;
}

struct io_policy
volume_policy(const struct volume *v)
{
	uint64_t w = atomic_load_explicit(&v->policy, memory_order_relaxed);

	return (struct io_policy){
		.direct_min = (uint32_t)(w >> 32),
		.read_mode = (enum io_mode)(w >> 12 & 0xf),
		.write_mode = (enum io_mode)(w >> 8 & 0xf),
		.edges = (enum io_edges)(w >> 4 & 0xf),
		.stable_floor = (enum io_stable)(w & 0xf),
		.torn_free = (w >> 16 & 1) != 0,
		.dirty_max = atomic_load_explicit(&v->dirty_max,
						  memory_order_relaxed),
		.flush_share = atomic_load_explicit(&v->flush_share,
						    memory_order_relaxed),
	};
}

/* The mode nearest to m that the file system has. */
static enum io_mode
nearest_mode(const struct volume_facts *f, enum io_mode m)
{
	if (m == IO_DIRECT && f->dio_offset_align == 0)
		m = IO_DONTCACHE;
	if (m == IO_DONTCACHE && !f->dontcache)
		m = IO_BUFFERED;
	return m;
}

enum io_mode
volume_nearest_mode(const struct volume *v, enum io_mode m)
{
	return nearest_mode(&v->facts, m);
}

static const char *
fallback_text(const struct volume_facts *f, const struct io_policy *asked,
	      const struct io_policy *got)
{
	bool direct = (asked->read_mode == IO_DIRECT &&
		       got->read_mode != IO_DIRECT) ||
		      (asked->write_mode == IO_DIRECT &&
		       got->write_mode != IO_DIRECT);

	if (direct && f->direct_why != NULL)
		return f->direct_why;
	if (direct && f->dontcache)
		return "the file system has no direct I/O: "
		       "dontcache instead";
	if (direct)
		return "the file system has neither direct nor uncached I/O: "
		       "buffered instead";
	if (asked->read_mode != got->read_mode ||
	    asked->write_mode != got->write_mode)
		return "the file system has no uncached I/O: buffered instead";
	if (asked->edges != got->edges)
		return "the file system has no uncached I/O: "
		       "edges are dropped instead";
	return NULL;
}

/* A control group that is full of dirty pages stops everybody in it. */
static uint64_t
dirty_default(void)
{
	struct memory m;
	uint64_t part;

	memory_look(&m);
	part = m.max / DIRTY_PART;
	return part < IO_DIRTY_BYTES_MAX ? part : IO_DIRTY_BYTES_MAX;
}

static void
set_limits(struct volume *v, const struct io_policy *p)
{
	uint64_t max = p->dirty_max;
	uint32_t share = p->flush_share;

	if (max == 0)
		max = dirty_default();
	if (max < IO_DIRTY_BYTES_MIN)
		max = IO_DIRTY_BYTES_MIN;
	if (share == 0 || share > 100)
		share = IO_FLUSH_SHARE_PERCENT;
	atomic_store(&v->dirty_max, max);
	atomic_store(&v->flush_share, share);
	account_limit(&v->shared->account, max, share);
}

const char *
volume_refuses(const struct volume *v, const struct io_policy *policy)
{
	/* Nothing is written where nothing can be. */
	return policy->torn_free && !v->read_only ? v->facts.atomic_why : NULL;
}

const char *
volume_set_policy(struct volume *v, const struct io_policy *policy)
{
	struct io_policy p = *policy;

	if (p.read_mode != IO_AUTO)
		p.read_mode = nearest_mode(&v->facts, p.read_mode);
	if (p.write_mode != IO_AUTO)
		p.write_mode = nearest_mode(&v->facts, p.write_mode);
	if (p.edges == IO_EDGES_DONTCACHE && !v->facts.dontcache)
		p.edges = IO_EDGES_DROP;
	atomic_store_explicit(&v->policy, policy_pack(&p),
			      memory_order_relaxed);
	set_limits(v, &p);
	return fallback_text(&v->facts, policy, &p);
}

/* life --------------------------------------------------------------------- */

static void
shared_put(struct volume_shared *s)
{
	if (s == NULL || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	account_fini(&s->account);
	free(s);
}

/* What volume_probe has taken. */
static void
volume_release(struct volume *v)
{
	for (unsigned i = 0; i < DEVICE_NODES_MAX; i++)
		device_put(v->device[i]);
	if (v->meta_fd >= 0)
		close(v->meta_fd);
}

/* NOLINTBEGIN(readability-function-size): seven facts, one caller */
int
volume_new(struct volume **ret, struct engine *e, int root_fd, bool read_only,
	   uint64_t verifier, const struct io_policy *policy, void *user)
{
	struct volume *v = calloc(1, sizeof(*v));
	struct volume_shared *s = calloc(1, sizeof(*s));
	struct flusher *flusher;
	int r = -ENOMEM;

	if (v != NULL)
		v->meta_fd = -1;
	if (v == NULL || s == NULL)
		goto fail;
	v->magic = VOLUME_MAGIC;
	v->refs = 1;
	v->engine = e;
	v->root_fd = root_fd;
	v->read_only = read_only;
	v->user = user;
	r = volume_probe(v);
	if (r == 0)
		r = flusher_of(&flusher, engine_files(e), v->dev);
	if (r != 0)
		goto fail;
	account_init(&s->account, flusher);
	s->refs = 1;
	s->verifier = verifier;
	v->shared = s;
	meta_group_init(&v->meta);
	(void)volume_set_policy(v, policy);
	*ret = v;
	return 0;
fail:
	if (v != NULL)
		volume_release(v);
	free(s);
	free(v);
	return r;
}
/* NOLINTEND(readability-function-size) */

void
volume_get(struct volume *v)
{
	assert(v->magic == VOLUME_MAGIC);
	atomic_fetch_add(&v->refs, 1);
}

void
volume_put(struct volume *v)
{
	if (v == NULL)
		return;
	assert(v->magic == VOLUME_MAGIC);
	if (atomic_fetch_sub(&v->refs, 1) != 1)
		return;
	volume_release(v);
	close(v->root_fd);
	shared_put(v->shared);
	meta_group_fini(&v->meta);
	v->magic = 0;
	free(v);
}

void
volume_share(struct volume *v, struct volume *with)
{
	struct volume_shared *was = v->shared;

	atomic_fetch_add(&with->shared->refs, 1);
	v->shared = with->shared;
	shared_put(was);
}

int
volume_root_fd(const struct volume *v)
{
	return v->root_fd;
}

bool
volume_read_only(const struct volume *v)
{
	return v->read_only;
}

void *
volume_user(const struct volume *v)
{
	return v->user;
}

struct device_slots *
volume_slots(const struct volume *v)
{
	return v->slots;
}

const struct device_chain *
volume_chain(const struct volume *v)
{
	return &v->chain;
}

unsigned *
volume_files(struct volume *v)
{
	return &v->files;
}

const struct volume_facts *
volume_facts(const struct volume *v)
{
	return &v->facts;
}

dev_t
volume_dev(const struct volume *v)
{
	return v->dev;
}

struct flush_account *
volume_account(struct volume *v)
{
	return &v->shared->account;
}

struct volume_counters *
volume_counters(struct volume *v)
{
	return &v->shared->counters;
}

/* verifier ----------------------------------------------------------------- */

uint64_t
volume_verifier(const struct volume *v)
{
	return atomic_load(&v->shared->verifier);
}

/* Never one that was there before: a client could take lost data for safe. */
static uint64_t
fresh_verifier(uint64_t was)
{
	uint64_t n = 0;

	if (getrandom(&n, sizeof(n), GRND_NONBLOCK) != (ssize_t)sizeof(n) ||
	    n == was)
		return was + 1;
	return n;
}

void
volume_fail(struct volume *v, uint64_t failure)
{
	struct volume_shared *s = v->shared;

	if (atomic_exchange(&s->failure, failure) == failure)
		return;
	atomic_store(&s->verifier, fresh_verifier(atomic_load(&s->verifier)));
	count_add(&s->counters.verifier_changes, 1);
}
