/* SPDX-License-Identifier: Apache-2.0 */
/* The values that both sides of the codec tests are given. */
#include "tests/unit/zdr_peer.h"

#include <string.h>

struct dice {
	uint64_t state;
};

/* splitmix64: the same numbers on every machine. */
static uint64_t
roll(struct dice *d)
{
	uint64_t z = d->state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static uint32_t
below(struct dice *d, uint32_t n)
{
	return roll(d) % n;
}

static void
random_bytes(struct dice *d, void *out, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		((uint8_t *)out)[i] = (uint8_t)roll(d);
}

static void
random_text(struct dice *d, char *out, uint32_t bytes_max)
{
	uint32_t n = below(d, bytes_max + 1);

	for (uint32_t i = 0; i < n; i++)
		out[i] = (char)(1 + below(d, 255));
	out[n] = '\0';
}

static void
random_time(struct dice *d, struct sample_time *t)
{
	t->s = roll(d);
	t->ns = roll(d);
}

static void
random_attr(struct dice *d, struct sample_attr *a)
{
	random_bytes(d, a, sizeof(*a));
	a->follows = below(d, 2);
	a->type = 1 + below(d, 7);
}

static void
random_wcc(struct dice *d, struct sample_wcc *w)
{
	random_bytes(d, &w->before, sizeof(w->before));
	w->before.follows = below(d, 2);
	random_attr(d, &w->after);
}

static void
random_fh(struct dice *d, struct sample_fh *f)
{
	memset(f, 0, sizeof(*f));
	f->follows = below(d, 2);
	f->bytes = below(d, 65);
	random_bytes(d, f->data, f->bytes);
}

static void
random_sattr(struct dice *d, struct sample_sattr *a)
{
	a->set_mode = below(d, 2);
	a->set_uid = below(d, 2);
	a->set_gid = below(d, 2);
	a->set_size = below(d, 2);
	a->mode = roll(d);
	a->uid = roll(d);
	a->gid = roll(d);
	a->size = roll(d);
	a->atime_how = below(d, 3);
	a->mtime_how = below(d, 3);
	random_time(d, &a->atime);
	random_time(d, &a->mtime);
}

void
sample_random(struct sample *s, unsigned seed)
{
	struct dice d = { seed };

	random_bytes(&d, s, sizeof(*s));
	random_fh(&d, &s->fh);
	random_fh(&d, &s->fh2);
	random_text(&d, s->name, sizeof(s->name) - 1);
	random_text(&d, s->name2, sizeof(s->name2) - 1);
	random_text(&d, s->path, sizeof(s->path) - 1);
	random_sattr(&d, &s->sattr);
	random_attr(&d, &s->attr);
	random_attr(&d, &s->attr2);
	random_wcc(&d, &s->wcc);
	random_wcc(&d, &s->wcc2);
	for (unsigned i = 0; i < 4; i++)
		s->flag[i] = below(&d, 2);
	s->stable = below(&d, 3);
	s->createmode = below(&d, 3);
	s->mktype = 3 + below(&d, 5);
	s->data_bytes = below(&d, sizeof(s->data) + 1);
}

static void
longest_text(char *out, uint32_t n)
{
	memset(out, 'x', n - 1);
	out[n - 1] = '\0';
}

void
sample_largest(struct sample *s)
{
	memset(s, 0xff, sizeof(*s));
	s->fh.follows = s->fh2.follows = true;
	s->fh.bytes = s->fh2.bytes = 64;
	longest_text(s->name, sizeof(s->name));
	longest_text(s->name2, sizeof(s->name2));
	longest_text(s->path, sizeof(s->path));
	s->sattr.set_mode = s->sattr.set_uid = s->sattr.set_gid = true;
	s->sattr.set_size = true;
	s->sattr.atime_how = s->sattr.mtime_how = 2;
	s->attr.follows = s->attr2.follows = true;
	s->attr.type = s->attr2.type = 7;
	s->wcc.before.follows = s->wcc.after.follows = true;
	s->wcc2.before.follows = s->wcc2.after.follows = true;
	s->wcc.after.type = s->wcc2.after.type = 7;
	for (unsigned i = 0; i < 4; i++)
		s->flag[i] = true;
	s->stable = 2;
	s->createmode = 0;
	s->mktype = 4;
	s->data_bytes = sizeof(s->data);
}
