/* SPDX-License-Identifier: Apache-2.0 */
/* See nlm_scene.h. */
#include "nlm_scene.h"

#include <unistd.h>

static void
scene_connect(struct scene *v)
{
	v->a = site_connect_from(v->s, A_HOST);
	v->b = site_connect_from(v->s, B_HOST);
	v->c = site_connect_from(v->s, C_HOST);
}

void
scene_start(struct scene *v, struct site *s)
{
	v->s = s;
	v->p = nlm_peer_new();
	site_file(s, "file", 0666, 0, 0, "text");
	v->fh = site_lookup(s, "file");
	scene_connect(v);
}

void
scene_restart(struct scene *v, const char *conf)
{
	raw_close(v->a);
	raw_close(v->b);
	raw_close(v->c);
	harness_kill(v->s->h);
	harness_conf(v->s->h, conf);
	harness_start(v->s->h);
	scene_connect(v);
}

void
scene_end(struct scene *v)
{
	assert_int_equal(nlm_peer_left(v->p), 0);
	raw_close(v->a);
	raw_close(v->b);
	raw_close(v->c);
	site_free(v->s);
	nlm_peer_free(v->p);
}

struct lock
scene_lock(const struct scene *v, uint32_t svid, uint64_t offset,
	   uint64_t length)
{
	return (struct lock){ .fh = &v->fh,
			      .oh = "owner",
			      .svid = svid,
			      .offset = offset,
			      .length = length,
			      .exclusive = true,
			      .block = true };
}

void
scene_until_free(struct raw *r, const struct lock *l)
{
	while (nlm_test(r, l, NULL) != LOCK_GRANTED)
		usleep(10000);
}

struct nlm_news
scene_expect_res(struct scene *v, uint32_t proc, uint32_t stat)
{
	struct nlm_news news = nlm_peer_expect(v->p, proc, B_HOST);

	assert_int_equal(news.stat, stat);
	assert_int_equal(news.cookie_bytes, 5);
	assert_memory_equal(news.cookie, "c\0o\1k", 5);
	return news;
}
