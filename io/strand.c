/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A strand: work of one inode that the kernel would do one after the other
 * anyway, since it takes the inode's lock alone: buffered writes, and direct
 * ones that extend the file. On threads of their own they would only wait for
 * each other there, at two changes of thread each; so one thread of the data
 * pool does all that has come, in the order of its coming, and then tells the
 * reactors. The object is struct strand, inside its inode; any thread, under
 * its mutex, which is a leaf.
 *
 * It does not know what the work is.
 */
#include "io/file.h"
#include "io/reactor.h"

#define STRAND_TURN    32u /* then other inodes get one */
#define STRAND_TELL_NS (100ull * 1000)

void
strand_init(struct strand *s)
{
	pthread_mutex_init(&s->mutex, NULL);
}

void
strand_fini(struct strand *s)
{
	assert(!s->busy && s->first == NULL);
	pthread_mutex_destroy(&s->mutex);
}

/* At most STRAND_TURN of them. */
static struct work *
strand_take(struct strand *s)
{
	struct work *first, *w;

	pthread_mutex_lock(&s->mutex);
	first = w = s->first;
	for (unsigned n = 1; n < STRAND_TURN && w != NULL; n++)
		w = w->next;
	s->first = NULL;
	if (w != NULL) {
		s->first = w->next;
		w->next = NULL;
	}
	pthread_mutex_unlock(&s->mutex);
	return first;
}

/* True: there is more. */
static bool
strand_leave(struct strand *s)
{
	bool more;

	pthread_mutex_lock(&s->mutex);
	more = s->first != NULL;
	s->busy = more;
	pthread_mutex_unlock(&s->mutex);
	return more;
}

/* From w up to end. Some at a time, so that each wakes its reactor once. */
static void
strand_tell(struct work *w, const struct work *end)
{
	struct work *next;

	for (; w != end; w = next) {
		next = w->next; /* once told, it is not ours */
		work_tell(w);
	}
}

static void
strand_run(struct work *work)
{
	struct strand *s = container_of(work, struct strand, work);
	struct file *f = s->file;
	struct work *w = strand_take(s), *oldest = w, *next;
	uint64_t since = clock_ns();

	for (; w != NULL; w = next) {
		next = w->next;
		w->run(w);
		if (next == NULL || clock_ns() - since >= STRAND_TELL_NS) {
			strand_tell(oldest, next);
			oldest = next;
			since = clock_ns();
		}
	}
	if (strand_leave(s))
		work_submit(f->cache->engine, WORK_DATA, &s->work);
	else
		file_put(f);
}

void
strand_submit(struct file *f, struct work *w)
{
	struct strand *s = &f->inode->strand;
	bool start;

	assert(w->run != NULL && w->done != NULL);
	w->next = NULL;
	pthread_mutex_lock(&s->mutex);
	if (s->first != NULL)
		s->last->next = w;
	else
		s->first = w;
	s->last = w;
	start = !s->busy;
	s->busy = true;
	if (start)
		s->file = f;
	pthread_mutex_unlock(&s->mutex);
	if (!start)
		return;
	file_get(f);
	s->work = (struct work){ .run = strand_run };
	work_submit(f->cache->engine, WORK_DATA, &s->work);
}

bool
strand_busy(struct file *f)
{
	struct strand *s = &f->inode->strand;
	bool busy;

	pthread_mutex_lock(&s->mutex);
	busy = s->busy;
	pthread_mutex_unlock(&s->mutex);
	return busy;
}
