/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modes by experience (write-mode=auto, read-mode=auto). The object is struct
 * learned, of an inode that is used in such a mode: what its READs and WRITEs
 * were like lately, and the mode that follows from it. Under the inode's mutex.
 *
 * The question is always whether the page cache would serve the same bytes more
 * than once before it has to let go of them. So some bytes of the file are
 * samples, at most SAMPLES of them and evenly spread: a READ or WRITE that
 * covers one looks whether it was read or written not long ago. The rest is
 * direct: for small and misaligned WRITEs direct mode has the page cache
 * anyway. How much may be kept follows from the memory that there is, which the
 * clock asks for.
 *
 * It knows no client: all users of a file are one.
 */
#include "io/file.h"
#include "io/flusher.h"
#include "io/reactor.h"

#include <stdlib.h>
#include <string.h>

#define SAMPLES       256u
#define SAMPLE_NS_MAX (20 * NS_PER_S) /* then it was too long ago */
#define JUDGE_NS      (500 * NS_PER_MS)
#define CALLS_MAX     2048u /* then all counts are halved */
#define SAMPLED_MIN   8u    /* less says nothing */
#define SMALL         (192u << 10)
#define TINY          (48u << 10)
#define PRESSURE_MAX  10u /* percent of the time, see psi */
#define KEEP_SHARE    4u  /* of the available memory, for one file */
#define OFTEN         2u  /* a file is rewritten once, a working set always */

struct learned {
	struct io_learned l;            /* what can be asked for */
	unsigned shift;                 /* samples are 2^shift bytes apart */
	uint64_t read_next;             /* where the last READ ended */
	uint64_t judged_ns, first, end; /* bytes used lately */
	enum io_mode read_next_mode, write_next_mode;
	/* when it was judged, and what was written since */
	uint64_t size, allocated, wrote, wrote_beyond;
	struct {
		uint64_t at;
		uint64_t read_ns, written_ns;
		unsigned times; /* written in a row, each not long after */
	} sample[SAMPLES];
};

/* samples ------------------------------------------------------------------ */

static void
choose_shift(struct learned *k, uint64_t size)
{
	unsigned shift = 12;

	while (size >> shift >= SAMPLES)
		shift++;
	if (shift == k->shift)
		return;
	k->shift = shift;
	memset(k->sample, 0, sizeof(k->sample));
}

static bool
recent(uint64_t then, uint64_t now)
{
	return then != 0 && now - then <= SAMPLE_NS_MAX;
}

struct seen {
	uint32_t samples, read, written, often;
};

/* The samples inside [start, end), each in the middle of its stretch. */
static struct seen
look(struct learned *k, uint64_t start, uint64_t end, bool write, uint64_t now)
{
	uint64_t half = 1ull << (k->shift - 1);
	uint64_t n = start <= half ? 0
				   : (start - half + (1ull << k->shift) - 1) >>
					     k->shift;
	struct seen s = { 0 };

	for (; (n << k->shift) + half < end; n++) {
		uint64_t at = (n << k->shift) + half;
		unsigned i = (unsigned)(n % SAMPLES);

		s.samples++;
		if (k->sample[i].at != at) {
			k->sample[i].at = at;
			k->sample[i].read_ns = k->sample[i].written_ns = 0;
		}
		if (!recent(k->sample[i].written_ns, now))
			k->sample[i].times = 0;
		s.read += recent(k->sample[i].read_ns, now);
		s.written += k->sample[i].times >= 1;
		s.often += k->sample[i].times >= OFTEN;
		if (write) {
			k->sample[i].written_ns = now;
			k->sample[i].times++;
		} else {
			k->sample[i].read_ns = now;
		}
	}
	return s;
}

/* judging ------------------------------------------------------------------ */

static uint64_t
keep_bytes(const struct inode *i)
{
	return atomic_load(&i->cache->memory_bytes) / KEEP_SHARE;
}

static bool
pressed(const struct inode *i)
{
	return atomic_load(&i->cache->memory_pressure) > PRESSURE_MAX;
}

static bool
fits(const struct inode *i, const struct io_learned *l)
{
	return !pressed(i) && l->span_bytes <= keep_bytes(i);
}

/* a of n, in percent; 0 where there are too few to tell. */
static unsigned
percent(uint64_t a, uint64_t n)
{
	return n < SAMPLED_MIN ? 0 : (unsigned)(100 * a / n);
}

/*
 * What the page cache has for a WRITE of small portions that are not in use
 * (RESULTS.md): direct I/O that allocates, or is stable, waits for the device
 * once for each, where the flusher and one sync write them in long runs. Whole
 * blocks over whole blocks have nothing to wait for.
 */
static bool
goes_better_cached(const struct io_learned *l)
{
	uint64_t mean;

	if (l->writes < SAMPLED_MIN)
		return false;
	mean = l->write_bytes / l->writes;
	if (mean >= SMALL)
		return false;
	return mean < TINY || l->growth >= 25 ||
	       percent(l->writes_aligned, l->writes) < 75 ||
	       percent(l->writes_stable, l->writes) >= 25;
}

static enum io_mode
judge_write(const struct inode *i, const struct io_learned *l)
{
	int64_t share = atomic_load(&volume_account(i->volume)->share);

	/* Written again before it is written back. */
	if (percent(l->written_again, l->written_samples) >= 50 &&
	    l->span_bytes <= (uint64_t)share)
		return IO_BUFFERED;
	/* A page that two records share, dropped, is read for the next. */
	if (percent(l->written_often, l->written_samples) >= 50 &&
	    percent(l->writes_aligned, l->writes) < 75 && fits(i, l))
		return IO_BUFFERED;
	if (percent(l->read_written, l->read_samples) >= 50 && fits(i, l))
		return IO_BUFFERED;
	return goes_better_cached(l) ? IO_DONTCACHE : IO_DIRECT;
}

static enum io_mode
judge_read(const struct inode *i, const struct io_learned *l)
{
	if (percent(l->read_again + l->read_written, l->read_samples) >= 30 &&
	    fits(i, l))
		return IO_BUFFERED;
	/* Readahead is for streams of small READs. */
	if (l->reads >= SAMPLED_MIN && l->read_bytes / l->reads < SMALL &&
	    percent(l->reads_in_order, l->reads) >= 75)
		return IO_DONTCACHE;
	return IO_DIRECT;
}

/* What was found twice in a row holds, and so does what is found first. */
static void
settle(enum io_mode *mode, enum io_mode *next, enum io_mode found, bool first)
{
	if (first || *next == found)
		*mode = found;
	*next = found;
}

static void
forget_half(struct learned *k)
{
	struct io_learned *l = &k->l;

	if (l->reads + l->writes < CALLS_MAX)
		return;
	l->reads /= 2;
	l->read_bytes /= 2;
	l->reads_in_order /= 2;
	l->read_samples /= 2;
	l->read_again /= 2;
	l->read_written /= 2;
	l->writes /= 2;
	l->write_bytes /= 2;
	l->writes_aligned /= 2;
	l->writes_stable /= 2;
	l->written_samples /= 2;
	l->written_again /= 2;
	l->written_often /= 2;
	k->first = k->end = 0;
}

static uint64_t
more(uint64_t now, uint64_t then)
{
	return now > then ? now - then : 0;
}

/* Did what was written since the last judgement make the file larger, or fill
 * its holes? What is still on its way is seen by where it goes; blocks may have
 * been there before the file ended so far. */
static void
learn_growth(struct learned *k, const struct auto_use *u)
{
	uint64_t size = more(u->size, k->size);
	uint64_t grown = more(u->allocated, k->allocated);

	if (!u->writes || k->wrote == 0)
		return;
	if (grown < size)
		grown = size;
	if (grown < k->wrote_beyond)
		grown = k->wrote_beyond;
	k->l.growth =
		grown >= k->wrote ? 100 : (unsigned)(100 * grown / k->wrote);
	k->size = u->size;
	k->allocated = u->allocated;
	k->wrote = k->wrote_beyond = 0;
}

/* For the first time when there is something to tell by. */
static void
judge(struct inode *i, struct learned *k, const struct auto_use *u)
{
	uint64_t now = u->now_ns;
	bool first = k->judged_ns == 0;

	if (first ? k->l.reads + k->l.writes < SAMPLED_MIN
		  : now - k->judged_ns < JUDGE_NS)
		return;
	k->judged_ns = now;
	learn_growth(k, u);
	k->l.keep_bytes = keep_bytes(i);
	k->l.pressure = atomic_load(&i->cache->memory_pressure);
	settle(&k->l.write_mode, &k->write_next_mode, judge_write(i, &k->l),
	       first);
	settle(&k->l.read_mode, &k->read_next_mode, judge_read(i, &k->l),
	       first);
	forget_half(k);
}

/* learning ----------------------------------------------------------------- */

static struct learned *
of_inode(struct inode *i)
{
	if (i->learned == NULL) {
		i->learned = calloc(1, sizeof(*i->learned));
		if (i->learned == NULL)
			return NULL;
		i->learned->l.read_mode = i->learned->l.write_mode = IO_DIRECT;
		i->learned->read_next_mode = i->learned->write_next_mode =
			IO_DIRECT;
		atomic_store(&i->cache->learns, true);
	}
	return i->learned;
}

static void
widen(struct learned *k, uint64_t start, uint64_t end)
{
	if (k->end == 0 || start < k->first)
		k->first = start;
	if (end > k->end)
		k->end = end;
	k->l.span_bytes = k->end - k->first;
	if (end >> k->shift >= SAMPLES || k->shift == 0)
		choose_shift(k, end);
}

static void
note_write(struct learned *k, const struct auto_use *u, const struct seen *s,
	   uint32_t cut)
{
	if (k->l.writes == 0) {
		k->size = u->size;
		k->allocated = u->allocated;
	}
	k->wrote += u->bytes;
	if (u->offset + u->bytes > u->size)
		k->wrote_beyond += u->bytes;
	k->l.writes++;
	k->l.write_bytes += u->bytes;
	k->l.writes_aligned +=
		cut != 0 && u->offset % cut == 0 && u->bytes % cut == 0;
	k->l.writes_stable += u->stable;
	k->l.written_samples += s->samples;
	k->l.written_again += s->written;
	k->l.written_often += s->often;
}

static void
note_read(struct learned *k, const struct auto_use *u, const struct seen *s)
{
	k->l.reads++;
	k->l.read_bytes += u->bytes;
	k->l.reads_in_order += u->offset == k->read_next;
	k->read_next = u->offset + u->bytes;
	k->l.read_samples += s->samples;
	k->l.read_again += s->read;
	k->l.read_written += s->written;
}

enum io_mode
auto_mode(struct file *f, const struct auto_use *u)
{
	struct inode *i = f->inode;
	enum io_mode mode = IO_DIRECT;
	struct learned *k;
	struct seen s;

	pthread_mutex_lock(&i->mutex);
	k = of_inode(i);
	if (k != NULL) {
		widen(k, u->offset, u->offset + u->bytes);
		s = look(k, u->offset, u->offset + u->bytes, u->writes,
			 u->now_ns);
		if (u->writes)
			note_write(k, u, &s, f->facts.cut);
		else
			note_read(k, u, &s);
		judge(i, k, u);
		mode = u->writes ? k->l.write_mode : k->l.read_mode;
	}
	pthread_mutex_unlock(&i->mutex);
	return volume_nearest_mode(f->volume, mode);
}

bool
file_learned(struct engine *e, const struct volume *v, uint64_t ino,
	     struct io_learned *ret)
{
	struct file *f = cache_find_file(engine_files(e), volume_dev(v), ino);
	bool is;

	if (f == NULL)
		return false;
	pthread_mutex_lock(&f->inode->mutex);
	is = f->inode->learned != NULL;
	if (is)
		*ret = f->inode->learned->l;
	pthread_mutex_unlock(&f->inode->mutex);
	file_put(f);
	return is;
}
