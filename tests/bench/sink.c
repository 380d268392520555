/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvnfsd-sink: the limit without a disk. It receives the calls of nvnfsd-load
 * --raw --no-mount, throws the data of WRITEs away, fills READs from one
 * buffer, and answers; all replies that one receive asked for go out in one
 * send. One thread a connection, each with its buffers, until the connection
 * ends.
 */
#include "tests/bench/limit.h"

#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>

#define IN_BYTES    (256u << 10)
#define READ_MAX    (1u << 20)
#define REPLIES_MAX 512u

struct sink {
	int fd;
	uint64_t skip; /* bytes of a payload still to come */
	size_t start, end;
	unsigned replies;
	struct iovec iov[2 * REPLIES_MAX];
	unsigned iovs;
	uint32_t reply[REPLIES_MAX][REPLY_BYTES_MAX / 4];
	char in[IN_BYTES];
};

static char zeros[READ_MAX + 4];

static int
replies_send(struct sink *s)
{
	struct iovec *v = s->iov;
	struct msghdr m = { 0 };

	while (s->iovs > 0) {
		ssize_t n;

		m.msg_iov = v;
		m.msg_iovlen = s->iovs;
		n = sendmsg(s->fd, &m, MSG_NOSIGNAL);
		if (n <= 0)
			return -1;
		while (s->iovs > 0 && (size_t)n >= v->iov_len) {
			n -= (ssize_t)v->iov_len;
			v++;
			s->iovs--;
		}
		if (s->iovs > 0) {
			v->iov_base = (char *)v->iov_base + n;
			v->iov_len -= (size_t)n;
		}
	}
	s->replies = 0;
	return 0;
}

static int
answer(struct sink *s, const char *call)
{
	uint32_t *reply = s->reply[s->replies++];
	uint32_t proc = limit_word(call, WORD_PROC);
	uint32_t n = limit_reply(call, reply, 0, 2);

	s->iov[s->iovs++] = (struct iovec){ .iov_base = reply, .iov_len = n };
	if (proc == LIMIT_READ) {
		uint32_t count = limit_word(call, WORD_COUNT);

		if (count > READ_MAX)
			return -1;
		s->iov[s->iovs++] =
			(struct iovec){ .iov_base = zeros,
					.iov_len = (count + 3) & ~3u };
	}
	return s->replies == REPLIES_MAX ? replies_send(s) : 0;
}

/* Every call whose head is here. A payload is passed over, in this buffer and
 * in the next. */
static int
calls_take(struct sink *s)
{
	for (;;) {
		size_t have = s->end - s->start, head = CALL_NULL_BYTES;
		const char *call = s->in + s->start;
		uint32_t proc;

		if (s->skip > 0) {
			size_t n = s->skip < have ? s->skip : have;

			s->skip -= n;
			s->start += n;
			if (s->skip > 0)
				return 0;
			continue;
		}
		if (have < head)
			return 0;
		proc = limit_word(call, WORD_PROC);
		if (proc == LIMIT_WRITE)
			head = CALL_WRITE_BYTES;
		else if (proc != LIMIT_NULL)
			head = CALL_PLACE_BYTES;
		if (have < head)
			return 0;
		s->start += head;
		s->skip = (limit_word(call, 0) & 0x7fffffffu) + 4 - head;
		if (answer(s, call) < 0)
			return -1;
	}
}

static void *
serve(void *arg)
{
	struct sink *s = arg;
	ssize_t n;

	for (;;) {
		memmove(s->in, s->in + s->start, s->end - s->start);
		s->end -= s->start;
		s->start = 0;
		n = recv(s->fd, s->in + s->end, IN_BYTES - s->end, 0);
		if (n <= 0)
			break;
		s->end += (size_t)n;
		if (calls_take(s) < 0 || replies_send(s) < 0)
			break;
	}
	(void)close(s->fd);
	free(s);
	return NULL;
}

int
main(void)
{
	int listener = limit_listen("nvnfsd-sink");

	for (;;) {
		struct sink *s = calloc(1, sizeof(*s));
		pthread_t t;

		if (s == NULL)
			return 1;
		s->fd = limit_accept(listener);
		if (s->fd < 0 || pthread_create(&t, NULL, serve, s) != 0) {
			free(s);
			return 1;
		}
		(void)pthread_detach(t);
	}
}
