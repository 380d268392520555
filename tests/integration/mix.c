/* SPDX-License-Identifier: Apache-2.0 */
/* See mix.h: operations by chance. */
#include "mix.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PAGE         4096ul
#define RECORD_BYTES 47008u
#define NS_PER_S     1000000000ull
#define TURN         200u /* operations */
#define PLACES_MAX   16u

enum mix_kind { MIX_WRITE, MIX_READ, MIX_COMMIT, MIX_TRUNCATE };

struct mix_slot {
	struct flow_call call;
	struct mix *mix;
	struct mix_file *file;
	unsigned index, way;
	enum mix_kind kind;
	bool busy;
	uint32_t id; /* of the shadow's */
	uint64_t offset;
	uint32_t bytes;
	struct shadow_read *read;
};

static void slot_next(struct mix_slot *s);

uint64_t
mix_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state >> 11;
}

static uint64_t
below(struct mix *m, uint64_t limit)
{
	return mix_random(&m->seed) % limit;
}

unsigned
mix_seconds(unsigned otherwise)
{
	const char *text = getenv("NVNFSD_TEST_SECONDS");

	return text != NULL ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* files -----------------------------------------------------------------------
 */

void
mix_file_init(struct mix_file *f, struct raw *r, const struct raw_fh *dir,
	      const char *path, const char *name)
{
	memset(f, 0, sizeof(*f));
	(void)snprintf(f->name, sizeof(f->name), "%s", name);
	(void)snprintf(f->path, sizeof(f->path), "%s", path);
	raw_create(r, dir, name, 0644, &f->fh[0]);
	f->ways = 1;
	f->shadow = shadow_new(f->path);
	f->fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(f->fd >= 0);
	f->direct_fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
}

void
mix_file_way(struct mix_file *f, struct raw *r, const struct raw_fh *dir,
	     const char *name)
{
	assert_true(f->ways < MIX_WAYS_MAX);
	assert_int_equal(raw_lookup(r, dir, name, &f->fh[f->ways]), NFS3_OK);
	f->ways++;
}

void
mix_file_close(struct mix_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	if (f->direct_fd >= 0)
		close(f->direct_fd);
	f->fd = f->direct_fd = -1;
}

void
mix_file_fini(struct mix_file *f)
{
	mix_file_close(f);
	shadow_free(f->shadow);
}

/* where and how much ----------------------------------------------------------
 */

static uint32_t
random_bytes(struct mix *m)
{
	switch (below(m, 4)) {
	case 0:
		return 1 + (uint32_t)below(m, 2 * PAGE);
	case 1:
		return (uint32_t)(PAGE * (1 + below(m, m->bytes_max / PAGE)));
	case 2:
		return m->bytes_max < RECORD_BYTES ? m->bytes_max
						   : RECORD_BYTES;
	default:
		return 1 + (uint32_t)below(m, m->bytes_max);
	}
}

/* Anywhere, at a page, or where a row of records would have it, so that
 * neighbours share pages. */
static void
choose(struct mix_slot *s)
{
	struct mix *m = s->mix;

	/* Two files at a time, so that their calls meet. */
	s->file = &m->file[(m->operations / TURN + below(m, 2)) % m->files];
	s->way = (unsigned)below(m, s->file->ways);
	s->bytes = random_bytes(m);
	s->offset = below(m, m->file_bytes - s->bytes + 1);
	if (s->bytes == RECORD_BYTES)
		s->offset -= s->offset % RECORD_BYTES;
	else if (s->bytes % PAGE == 0 || below(m, 8) == 0)
		s->offset -= s->offset % PAGE;
}

static int
random_stable(struct mix *m)
{
	uint64_t n = below(m, 10);

	return n < 5 ? UNSTABLE : n < 6 ? DATA_SYNC : FILE_SYNC;
}

/* calls
 * -------------------------------------------------------------------------
 */

static void
keep_verf(struct mix_slot *s, const char *verf)
{
	struct mix_file *f = s->file;

	if (!f->has_verf[s->way])
		memcpy(f->verf[s->way], verf, 8);
	f->has_verf[s->way] = true;
	if (memcmp(f->verf[s->way], verf, 8) != 0)
		fail_msg("%s: the verifier changed", f->path);
}

static void
written(struct mix_slot *s, struct raw *r)
{
	WRITE3res res;

	memset(&res, 0, sizeof(res));
	raw_result(r, (raw_zdr_fn *)zdr_WRITE3res, &res);
	if (res.status != NFS3_OK)
		fail_msg("%s: WRITE of %u at %" PRIu64 ": status %d",
			 s->file->path, s->bytes, s->offset, (int)res.status);
	assert_int_equal(res.WRITE3res_u.resok.count, s->bytes);
	keep_verf(s, res.WRITE3res_u.resok.verf);
	shadow_end(s->file->shadow, s->id);
	s->mix->writes++;
	s->mix->bytes += s->bytes;
}

static void
was_read(struct mix_slot *s, struct raw *r)
{
	const READ3resok *ok;
	READ3res res;

	memset(&res, 0, sizeof(res));
	raw_result(r, (raw_zdr_fn *)zdr_READ3res, &res);
	if (res.status != NFS3_OK)
		fail_msg("%s: READ of %u at %" PRIu64 ": status %d",
			 s->file->path, s->bytes, s->offset, (int)res.status);
	ok = &res.READ3res_u.resok;
	assert_int_equal(ok->count, ok->data.data_len);
	/* Short before the end: the file has grown meanwhile. */
	if (ok->count == 0 && !ok->eof)
		fail_msg("%s: READ of %u at %" PRIu64 ": nothing, and no end",
			 s->file->path, s->bytes, s->offset);
	shadow_read_end(s->file->shadow, s->read,
			(const uint8_t *)ok->data.data_val, ok->count, ok->eof);
	s->mix->reads++;
}

static void
committed(struct mix_slot *s, struct raw *r)
{
	COMMIT3res res;

	memset(&res, 0, sizeof(res));
	raw_result(r, (raw_zdr_fn *)zdr_COMMIT3res, &res);
	if (res.status != NFS3_OK)
		fail_msg("%s: COMMIT: status %d", s->file->path,
			 (int)res.status);
	keep_verf(s, res.COMMIT3res_u.resok.verf);
	s->mix->commits++;
}

static void
truncated(struct mix_slot *s, struct raw *r)
{
	SETATTR3res res;

	memset(&res, 0, sizeof(res));
	raw_result(r, (raw_zdr_fn *)zdr_SETATTR3res, &res);
	assert_int_equal(res.status, NFS3_OK);
	shadow_end(s->file->shadow, s->id);
	s->mix->truncates++;
}

static void
slot_done(struct flow_call *c, struct raw *r)
{
	struct mix_slot *s = (struct mix_slot *)c; /* its first member */

	switch (s->kind) {
	case MIX_WRITE:
		written(s, r);
		break;
	case MIX_READ:
		was_read(s, r);
		break;
	case MIX_COMMIT:
		committed(s, r);
		break;
	case MIX_TRUNCATE:
		truncated(s, r);
		break;
	}
	s->busy = false;
	slot_next(s);
}

static void
send_write(struct mix_slot *s)
{
	struct flow_write w = { .fh = &s->file->fh[s->way],
				.offset = s->offset,
				.data = s->mix->scratch,
				.bytes = s->bytes,
				.stable = random_stable(s->mix) };

	s->id = shadow_begin(s->file->shadow, s->offset, s->bytes);
	shadow_fill(s->id, s->offset, s->mix->scratch, s->bytes);
	flow_write(s->mix->flow, s->index, &s->call, &w);
}

static void
send_read(struct mix_slot *s)
{
	s->read = shadow_read_begin(s->file->shadow, s->offset, s->bytes);
	flow_read(s->mix->flow, s->index, &s->call, &s->file->fh[s->way],
		  s->offset, s->bytes);
}

static void
send_truncate(struct mix_slot *s)
{
	SETATTR3args args;

	memset(&args, 0, sizeof(args));
	args.object = raw_nfs_fh(&s->file->fh[s->way]);
	args.new_attributes.size.set_it = 1;
	args.new_attributes.size.set_size3_u.size = s->offset;
	s->id = shadow_truncate(s->file->shadow, s->offset);
	flow_nfs(s->mix->flow, s->index, &s->call, SETATTR, &args);
}

static void
send_commit(struct mix_slot *s)
{
	flow_commit(s->mix->flow, s->index, &s->call, &s->file->fh[s->way]);
}

/* local
 * ----------------------------------------------------------------------------
 */

/* Does a WRITE in flight touch one of these pages? Who writes the same bytes
 * here and there at once has no order to rely on, and O_DIRECT makes it worse
 * (open(2)): that is not what is tested. */
static bool
is_written(const struct mix *m, const struct mix_slot *by)
{
	uint64_t start = by->offset - by->offset % PAGE;
	uint64_t end = by->offset + by->bytes + PAGE;
	unsigned i;

	for (i = 0; i < m->in_flight; i++) {
		const struct mix_slot *s = &m->slot[i];

		if (s->busy && s->kind == MIX_WRITE && s->file == by->file &&
		    s->offset < end && s->offset + s->bytes + PAGE > start)
			return true;
	}
	return false;
}

static void
local_write(struct mix_slot *s)
{
	struct mix *m = s->mix;

	if (is_written(m, s))
		return;
	s->id = shadow_begin(s->file->shadow, s->offset, s->bytes);
	shadow_fill(s->id, s->offset, m->scratch, s->bytes);
	assert_int_equal(
		pwrite(s->file->fd, m->scratch, s->bytes, (off_t)s->offset),
		s->bytes);
	shadow_end(s->file->shadow, s->id);
}

static void
local_read(struct mix_slot *s, int fd)
{
	struct shadow_read *r;
	ssize_t n;

	r = shadow_read_begin(s->file->shadow, s->offset, s->bytes);
	n = pread(fd, s->mix->scratch, s->bytes, (off_t)s->offset);
	assert_true(n >= 0);
	shadow_read_end(s->file->shadow, r, s->mix->scratch, (uint32_t)n, true);
}

static void
local_direct_read(struct mix_slot *s)
{
	if (s->file->direct_fd < 0)
		return;
	s->offset -= s->offset % PAGE;
	s->bytes = (uint32_t)((s->bytes + PAGE - 1) / PAGE * PAGE);
	local_read(s, s->file->direct_fd);
}

static void
local_truncate(struct mix_slot *s)
{
	s->id = shadow_truncate(s->file->shadow, s->offset);
	assert_int_equal(ftruncate(s->file->fd, (off_t)s->offset), 0);
	shadow_end(s->file->shadow, s->id);
}

/* A local process does something, while calls are in flight. */
static void
local_something(struct mix_slot *s)
{
	uint64_t n = below(s->mix, 16);

	choose(s);
	if (s->file->remote)
		return;
	if (n == 0 && s->mix->truncate)
		local_truncate(s);
	else if (n < 6)
		local_write(s);
	else if (n < 8)
		local_direct_read(s);
	else
		local_read(s, s->file->fd);
	s->mix->locals++;
}

/* the run
 * ----------------------------------------------------------------------------
 */

static bool
goes_on(struct mix *m)
{
	return m->operations++ < m->operations_min || now_ns() < m->until_ns;
}

static void
slot_next(struct mix_slot *s)
{
	struct mix *m = s->mix;
	uint64_t n = below(m, 100);

	if (!goes_on(m))
		return;
	if (m->local && below(m, 8) == 0)
		local_something(s);
	choose(s);
	s->busy = true;
	s->kind = n < 60                  ? MIX_WRITE
		  : n < 63 && m->truncate ? MIX_TRUNCATE
		  : n < 68                ? MIX_COMMIT
					  : MIX_READ;
	if (s->kind == MIX_WRITE)
		send_write(s);
	else if (s->kind == MIX_TRUNCATE)
		send_truncate(s);
	else if (s->kind == MIX_COMMIT)
		send_commit(s);
	else
		send_read(s);
}

static void
commit_all(struct mix *m)
{
	unsigned i, way;
	COMMIT3res res;

	for (i = 0; i < m->files; i++)
		for (way = 0; way < m->file[i].ways; way++)
			assert_int_equal(raw_commit(flow_raw(m->flow, 0),
						    &m->file[i].fh[way], &res),
					 NFS3_OK);
}

void
mix_setup(struct mix *m, struct harness *h, struct mix_file *file,
	  unsigned files)
{
	m->flow = flow_new(h->port, 6);
	m->file = file;
	m->files = files;
	m->in_flight = 32;
	m->file_bytes = 3u << 20;
	m->bytes_max = 300u << 10;
	m->truncate = true;
	m->local = true;
}

void
mix_run(struct mix *m)
{
	unsigned i;

	m->slot = calloc(m->in_flight, sizeof(*m->slot));
	m->scratch = aligned_alloc(PAGE, m->bytes_max + 2 * PAGE);
	assert_true(m->slot != NULL && m->scratch != NULL);
	assert_true(m->bytes_max + PAGE < m->file_bytes);
	m->until_ns = now_ns() + m->seconds * NS_PER_S;
	m->operations = 0;
	for (i = 0; i < m->in_flight; i++) {
		m->slot[i].mix = m;
		m->slot[i].index = i;
		m->slot[i].call.done = slot_done;
		slot_next(&m->slot[i]);
	}
	flow_drain(m->flow);
	commit_all(m);
	free(m->slot);
	free(m->scratch);
	m->slot = NULL;
	m->scratch = NULL;
}

static void
check_by_nfs(struct mix *m, struct mix_file *f, unsigned way)
{
	struct raw *r = flow_raw(m->flow, way);
	uint32_t n = 1000003; /* no multiple of anything */
	struct shadow_read *s;
	const READ3resok *ok;
	uint64_t at;
	READ3res res;

	for (at = 0; at < m->file_bytes; at += n) {
		s = shadow_read_begin(f->shadow, at, n);
		assert_int_equal(raw_read(r, &f->fh[way], at, n, &res),
				 NFS3_OK);
		ok = &res.READ3res_u.resok;
		assert_true(ok->count == n || ok->eof);
		shadow_read_end(f->shadow, s, (uint8_t *)ok->data.data_val,
				ok->count, true);
	}
}

static void
check_all(struct mix *m)
{
	unsigned i, way;

	for (i = 0; i < m->files; i++) {
		shadow_check_file(m->file[i].shadow, m->file[i].path,
				  m->file_bytes);
		for (way = 0; way < m->file[i].ways; way++)
			check_by_nfs(m, &m->file[i], way);
	}
}

static void
check_cold(struct mix *m)
{
	unsigned i;

	for (i = 0; i < m->files; i++)
		shadow_check_file(m->file[i].shadow, m->file[i].path,
				  m->file_bytes);
}

int
mix_at_places(CMUnitTestFunction test, const struct mix_place *place,
	      unsigned places)
{
	struct CMUnitTest tests[PLACES_MAX];
	unsigned i;

	assert(places <= PLACES_MAX);
	for (i = 0; i < places; i++)
		tests[i] = (struct CMUnitTest){
			.name = place[i].name,
			.test_func = test,
			.initial_state = (void *)&place[i],
		};
	return _cmocka_run_group_tests("places", tests, places, NULL, NULL);
}

void
mix_end(struct mix *m, struct harness *h)
{
	unsigned i;

	check_all(m);
	assert_int_equal(harness_stat(h, "verifier_changes"), 0);
	flow_free(m->flow);
	for (i = 0; i < m->files; i++)
		mix_file_close(&m->file[i]);
	harness_stop(h);
	harness_remount(h);
	check_cold(m);
	for (i = 0; i < m->files; i++)
		mix_file_fini(&m->file[i]);
	harness_free(h);
}
