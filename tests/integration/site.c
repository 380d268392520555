/* SPDX-License-Identifier: Apache-2.0 */
/* See site.h. */
#include "site.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEVICE_SECTOR 4096u
#define DEVICE_MIB    1024u

struct site *
site_prepare(const char *engine, const char *options, const char *fs)
{
	struct site *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->h = harness_new(options);
	harness_arg(s->h, "--engine");
	harness_arg(s->h, engine);
	if (fs != NULL && !harness_mount(s->h, fs, DEVICE_SECTOR, DEVICE_MIB)) {
		harness_free(s->h);
		free(s);
		skip(); /* does not return */
		return NULL;
	}
	return s;
}

void
site_start(struct site *s)
{
	harness_start(s->h);
	s->r = raw_connect(s->h->port);
	assert_int_equal(raw_mount(s->r, s->h->export, &s->root), 0);
}

void
site_mkfs(struct site *s, const char *command)
{
	const struct harness *h = s->h;

	assert_int_equal(harness_sh("umount %s && %s %s >%s/mkfs.log 2>&1 && "
				    "mount %s %s && chmod 777 %s",
				    h->export, command, h->loop, h->dir,
				    h->loop, h->export, h->export),
			 0);
}

struct site *
site_new(const char *engine, const char *options, const char *fs)
{
	struct site *s = site_prepare(engine, options, fs);

	site_start(s);
	return s;
}

void
site_restart(struct site *s)
{
	raw_close(s->r);
	harness_stop(s->h);
	harness_start(s->h);
	s->r = raw_connect(s->h->port);
}

void
site_free(struct site *s)
{
	raw_close(s->r);
	if (s->h->pid > 0)
		harness_stop(s->h);
	harness_free(s->h);
	free(s);
}

void
site_expect(struct site *s, struct question q, int status)
{
	int got = ask(s->r, q, NULL);

	if (got != status)
		fail_msg("procedure %u by %u: %d, not %d", q.proc, s->r->uid,
			 got, status);
}

struct raw *
site_connect_from(struct site *s, const char *address)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	struct raw *r = raw_connect(s->h->port);
	int one = 1;

	assert_int_equal(inet_pton(AF_INET, address, &a.sin_addr), 1);
	close(r->fd);
	r->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(r->fd, (struct sockaddr *)&a, sizeof(a)), 0);
	/* A record is written in two parts. */
	(void)setsockopt(r->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)inet_pton(AF_INET, "127.0.0.1", &a.sin_addr);
	a.sin_port = htons(s->h->port);
	assert_int_equal(connect(r->fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return r;
}

const char *
site_path(const struct site *s, const char *name)
{
	return harness_path(s->h, name);
}

struct raw_fh
site_lookup_in(struct site *s, const struct raw_fh *dir, const char *name)
{
	struct raw_fh fh;

	assert_int_equal(raw_lookup(s->r, dir, name, &fh), NFS3_OK);
	return fh;
}

struct raw_fh
site_lookup(struct site *s, const char *name)
{
	return site_lookup_in(s, &s->root, name);
}

void
site_expect_same(const struct raw_fh *a, const struct raw_fh *b)
{
	assert_int_equal(a->bytes, b->bytes);
	assert_memory_equal(a->data, b->data, a->bytes);
}

void
site_file(struct site *s, const char *name, unsigned mode, unsigned uid,
	  unsigned gid, const char *text)
{
	int fd = open(site_path(s, name), O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	if (geteuid() == 0)
		assert_int_equal(fchown(fd, uid, gid), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

struct raw_fh
site_write(struct site *s, const char *name, unsigned records,
	   uint32_t record_bytes, int stable)
{
	uint8_t *data = calloc(1, record_bytes);
	struct raw_fh fh;
	COMMIT3res commit;
	WRITE3res w;
	unsigned i;

	assert_non_null(data);
	raw_create(s->r, &s->root, name, 0644, &fh);
	for (i = 0; i < records; i++)
		assert_int_equal(raw_write(s->r, &fh,
					   (uint64_t)i * record_bytes, data,
					   record_bytes, stable, &w),
				 NFS3_OK);
	assert_int_equal(raw_commit(s->r, &fh, &commit), NFS3_OK);
	free(data);
	return fh;
}
