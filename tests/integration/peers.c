/* SPDX-License-Identifier: Apache-2.0 */
/* See peers.h. */
#include "peers.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct peers_world *
peers_world_new(const char *engine, const char *limits)
{
	static struct peers_world world;
	struct peers_world *w = &world;
	char conf[300];

	memset(w, 0, sizeof(*w));
	w->h = harness_new(NULL);
	(void)snprintf(conf, sizeof(conf), "[limits]\n%s\n", limits);
	harness_conf(w->h, conf);
	harness_arg(w->h, "--engine");
	harness_arg(w->h, engine);
	harness_arg(w->h, "--threads");
	harness_arg(w->h, "2");
	harness_start(w->h);
	w->good = raw_connect(w->h->port);
	assert_int_equal(raw_mount(w->good, w->h->export, &w->root), 0);
	raw_create(w->good, &w->root, "f", 0666, &w->fh);
	return w;
}

void
peers_world_free(struct peers_world *w)
{
	raw_close(w->good);
	harness_stop(w->h);
	harness_free(w->h);
}

void
peers_null_call(struct raw *r)
{
	raw_call(r, 100003, 3, 0, NULL, NULL, NULL, NULL);
}

int
peers_dial(const struct peers_world *w)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(w->h->port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

void
peers_push(int fd, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	ssize_t sent;

	for (; n > 0; p += sent, n -= (size_t)sent) {
		sent = send(fd, p, n, MSG_NOSIGNAL);
		if (sent <= 0)
			return;
	}
}

void
peers_push_mark(int fd, uint32_t mark)
{
	mark = htonl(mark);
	peers_push(fd, &mark, sizeof(mark));
}

void
peers_build_write(struct raw *r, const struct raw_fh *fh, uint64_t offset,
		  uint32_t n)
{
	static uint8_t data[4 * MIB];
	WRITE3args a;

	memset(&a, 0, sizeof(a));
	memset(data, (int)(offset / n % 251 + 1), n);
	a.file = raw_nfs_fh(fh);
	a.offset = offset;
	a.count = n;
	a.data.data_len = n;
	a.data.data_val = (char *)data;
	raw_build(r, 100003, 3, NFS3_WRITE, (raw_zdr_fn *)zdr_WRITE3args, &a);
}

void
peers_build_read(struct raw *r, const struct raw_fh *fh, uint64_t offset,
		 uint32_t n)
{
	READ3args a = { .file = raw_nfs_fh(fh), .offset = offset, .count = n };

	raw_build(r, 100003, 3, NFS3_READ, (raw_zdr_fn *)zdr_READ3args, &a);
}

void
peers_expect_written(struct raw *r, uint32_t n)
{
	WRITE3res res;

	memset(&res, 0, sizeof(res));
	raw_result(r, (raw_zdr_fn *)zdr_WRITE3res, &res);
	assert_int_equal(res.status, NFS3_OK);
	assert_int_equal(res.WRITE3res_u.resok.count, n);
	raw_forget(r);
}

void
peers_expect_read(struct raw *r, uint64_t offset, uint32_t n)
{
	READ3res res;

	memset(&res, 0, sizeof(res));
	raw_result(r, (raw_zdr_fn *)zdr_READ3res, &res);
	assert_int_equal(res.status, NFS3_OK);
	assert_int_equal(res.READ3res_u.resok.count, n);
	assert_int_equal((uint8_t)res.READ3res_u.resok.data.data_val[n / 2],
			 offset / n % 251 + 1);
	raw_forget(r);
}
