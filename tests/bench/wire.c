/* SPDX-License-Identifier: Apache-2.0 */
/* See wire.h. Nothing here knows records, slots or workloads. */
#include "tests/bench/wire.h"
#include "tests/bench/wire_reply.h"

#include <arpa/inet.h>
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define HEAD_MAX       256u
#define IOV_MAX_ONCE   192u
#define MARK_LAST      0x80000000u
/* Of a reply beside its data. */
#define REPLY_HEAD_MAX 4096u

/* A call, from being queued to its reply. */
struct wire_call {
	rpc_cb cb;
	void *private_data;
	uint32_t xid, turn;
	unsigned proc;
	bool busy;
	uint32_t head_len, payload_len, pad_len;
	const char *payload;
	uint32_t head[HEAD_MAX / 4];
};

struct wire {
	struct load *load;
	int fd;
	unsigned index_bits;
	struct wire_call *calls;
	unsigned calls_max;
	/* Numbers of calls to be sent: a ring. sent: bytes of the first. */
	unsigned *queue, queue_first, queued;
	uint64_t sent;
	uint32_t prefix[32]; /* from program to verifier, without procedure */
	uint32_t cred_words;
	char *in;
	size_t in_size, in_start, in_end;
	char error[128];
};

static int
wire_fail(struct wire *w, const char *what)
{
	(void)snprintf(w->error, sizeof(w->error), "%s", what);
	return -1;
}

static int
socket_connect(struct load *l)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found, *a;
	char port[16];
	int fd = -1, one = 1, rc;

	(void)snprintf(port, sizeof(port), "%d", l->opt.port);
	rc = getaddrinfo(l->opt.server, port, &hints, &found);
	if (rc != 0) {
		load_fail(l, "%s: %s", l->opt.server, gai_strerror(rc));
		return -1;
	}
	for (a = found; a != NULL && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) < 0) {
			(void)close(fd);
			fd = -1;
		}
	}
	if (fd < 0)
		load_fail(l, "%s:%s: %s", l->opt.server, port, strerror(errno));
	else
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one,
				 sizeof(one));
	freeaddrinfo(found);
	return fd;
}

/* What is the same in every call: AUTH_SYS of one user without groups. */
static void
prefix_make(struct wire *w)
{
	const struct load_options *o = &w->load->opt;
	uint32_t name_words = (sizeof(WIRE_MACHINE) - 1 + 3) / 4, n = 0;
	uint32_t uid = o->set_ids ? (uint32_t)o->uid : getuid();
	uint32_t gid = o->set_ids ? (uint32_t)o->gid : getgid();

	w->prefix[n++] = htonl(1); /* AUTH_SYS */
	w->prefix[n++] = htonl((5 + name_words) * 4);
	w->prefix[n++] = htonl(0); /* stamp */
	w->prefix[n++] = htonl(sizeof(WIRE_MACHINE) - 1);
	memcpy(&w->prefix[n], WIRE_MACHINE, sizeof(WIRE_MACHINE) - 1);
	n += name_words;
	w->prefix[n++] = htonl(uid);
	w->prefix[n++] = htonl(gid);
	w->prefix[n++] = htonl(0); /* further groups */
	n += 2;                    /* AUTH_NONE, no bytes */
	w->cred_words = n;
}

struct wire *
wire_new(struct load *l, unsigned calls)
{
	struct wire *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	w->load = l;
	w->fd = socket_connect(l);
	w->calls_max = calls;
	while (1u << w->index_bits < calls)
		w->index_bits++;
	w->calls = calloc(calls, sizeof(*w->calls));
	w->queue = calloc(calls, sizeof(*w->queue));
	/* A few replies, so that what is left over is seldom moved. */
	w->in_size = l->opt.op == LOAD_READ ? 3ul * l->opt.record_bytes : 0;
	w->in_size += 16ul * REPLY_HEAD_MAX;
	w->in = malloc(w->in_size);
	if (w->fd < 0 || !w->calls || !w->queue || !w->in) {
		wire_free(w);
		return NULL;
	}
	prefix_make(w);
	return w;
}

void
wire_free(struct wire *w)
{
	if (w == NULL)
		return;
	if (w->fd >= 0)
		(void)close(w->fd);
	for (unsigned i = 0; w->calls != NULL && i < w->calls_max; i++) {
		struct wire_call *c = &w->calls[i];

		if (c->busy)
			c->cb(NULL, RPC_STATUS_CANCEL, NULL, c->private_data);
	}
	free(w->calls);
	free(w->queue);
	free(w->in);
	free(w);
}

int
wire_fd(const struct wire *w)
{
	return w->fd;
}

short
wire_events(const struct wire *w)
{
	return w->queued > 0 ? POLLIN | POLLOUT : POLLIN;
}

const char *
wire_error(const struct wire *w)
{
	return w->error;
}

/* Sending -------------------------------------------------------------------
 */

/* The head up to the procedure's arguments. The xid of a call never comes twice
 * in a row: servers may remember what they answered by it. */
static struct wire_call *
call_new(struct wire *w, unsigned call, unsigned proc, rpc_cb cb, void *p)
{
	struct wire_call *c = &w->calls[call];
	uint32_t n = 0;

	assert(call < w->calls_max && !c->busy);
	*c = (struct wire_call){ .cb = cb,
				 .private_data = p,
				 .turn = c->turn + 1,
				 .proc = proc,
				 .busy = true };
	c->xid = c->turn << w->index_bits | call;
	n++; /* the record mark */
	c->head[n++] = htonl(c->xid);
	c->head[n++] = htonl(0); /* CALL */
	c->head[n++] = htonl(2);
	c->head[n++] = htonl(NFS_PROGRAM);
	c->head[n++] = htonl(3);
	c->head[n++] = htonl(proc);
	memcpy(&c->head[n], w->prefix, w->cred_words * 4);
	c->head_len = (n + w->cred_words) * 4;
	return c;
}

static void
put_u32(struct wire_call *c, uint32_t v)
{
	c->head[c->head_len / 4] = htonl(v);
	c->head_len += 4;
}

static void
put_place(struct wire_call *c, const nfs_fh3 *fh, uint64_t offset,
	  uint32_t count)
{
	put_u32(c, fh->data.data_len);
	memcpy((char *)c->head + c->head_len, fh->data.data_val,
	       fh->data.data_len);
	c->head_len += (fh->data.data_len + 3) & ~3u;
	put_u32(c, (uint32_t)(offset >> 32));
	put_u32(c, (uint32_t)offset);
	put_u32(c, count);
}

static void
call_queue(struct wire *w, unsigned call)
{
	struct wire_call *c = &w->calls[call];
	uint32_t bytes = c->head_len - 4 + c->payload_len + c->pad_len;

	c->head[0] = htonl(MARK_LAST | bytes);
	w->queue[(w->queue_first + w->queued++) % w->calls_max] = call;
}

void
wire_null(struct wire *w, unsigned call, rpc_cb cb, void *private_data)
{
	(void)call_new(w, call, PROC_NULL, cb, private_data);
	call_queue(w, call);
}

void
wire_write(struct wire *w, unsigned call, const WRITE3args *args, rpc_cb cb,
	   void *private_data)
{
	struct wire_call *c = call_new(w, call, PROC_WRITE, cb, private_data);

	put_place(c, &args->file, args->offset, args->count);
	put_u32(c, args->stable);
	put_u32(c, args->data.data_len);
	c->payload = args->data.data_val;
	c->payload_len = args->data.data_len;
	c->pad_len = -c->payload_len & 3;
	call_queue(w, call);
}

void
wire_read(struct wire *w, unsigned call, const READ3args *args, rpc_cb cb,
	  void *private_data)
{
	struct wire_call *c = call_new(w, call, PROC_READ, cb, private_data);

	put_place(c, &args->file, args->offset, args->count);
	call_queue(w, call);
}

void
wire_commit(struct wire *w, unsigned call, const COMMIT3args *args, rpc_cb cb,
	    void *private_data)
{
	struct wire_call *c = call_new(w, call, PROC_COMMIT, cb, private_data);

	put_place(c, &args->file, args->offset, args->count);
	call_queue(w, call);
}

/* Adds what is left of n bytes at p when *skip are already sent. */
static unsigned
iov_add(struct iovec *iov, unsigned n, const void *p, size_t len,
	uint64_t *skip)
{
	if (*skip >= len) {
		*skip -= len;
		return n;
	}
	iov[n].iov_base = (char *)p + *skip;
	iov[n].iov_len = len - *skip;
	*skip = 0;
	return n + 1;
}

static unsigned
queue_iov(const struct wire *w, struct iovec *iov)
{
	static const char zeros[4];
	uint64_t skip = w->sent;
	unsigned n = 0;

	for (unsigned i = 0; i < w->queued && n + 3 <= IOV_MAX_ONCE; i++) {
		unsigned at = (w->queue_first + i) % w->calls_max;
		const struct wire_call *c = &w->calls[w->queue[at]];

		n = iov_add(iov, n, c->head, c->head_len, &skip);
		n = iov_add(iov, n, c->payload, c->payload_len, &skip);
		n = iov_add(iov, n, zeros, c->pad_len, &skip);
	}
	return n;
}

static void
queue_sent(struct wire *w, uint64_t bytes)
{
	w->sent += bytes;
	while (w->queued > 0) {
		const struct wire_call *c = &w->calls[w->queue[w->queue_first]];
		uint64_t whole = (uint64_t)c->head_len + c->payload_len;

		whole += c->pad_len;
		if (w->sent < whole)
			return;
		w->sent -= whole;
		w->queue_first = (w->queue_first + 1) % w->calls_max;
		w->queued--;
	}
}

static int
queue_flush(struct wire *w)
{
	struct iovec iov[IOV_MAX_ONCE];
	struct msghdr m = { .msg_iov = iov };

	while (w->queued > 0) {
		ssize_t n;

		m.msg_iovlen = queue_iov(w, iov);
		n = sendmsg(w->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n < 0)
			return wire_fail(w, strerror(errno));
		queue_sent(w, (uint64_t)n);
	}
	return 0;
}

/* Receiving -----------------------------------------------------------------
 */

static int
reply_take(struct wire *w, struct cursor *c)
{
	uint32_t xid = cursor_u32(c), index = xid & ((1u << w->index_bits) - 1);
	struct wire_call *call = &w->calls[index];
	union result res = { 0 };
	uint32_t direction, outcome;

	if (index >= w->calls_max || !call->busy || call->xid != xid)
		return wire_fail(w, "a reply to no call");
	direction = cursor_u32(c);
	outcome = cursor_u32(c);
	(void)cursor_u32(c); /* the verifier's flavor */
	(void)cursor_skip(c, (cursor_u32(c) + 3) & ~3u);
	if (direction != 1 || outcome != 0 || cursor_u32(c) != 0)
		return wire_fail(w, "the server refused a call");
	result_take(c, call->proc, &res);
	if (c->bad)
		return wire_fail(w, "a reply ends early");
	call->busy = false;
	call->cb(NULL, RPC_STATUS_SUCCESS, &res, call->private_data);
	return 0;
}

/* The next record, its fragments joined where it has several. 1: taken, 0: not
 * all of it is here yet. */
static int
record_take(struct wire *w, struct cursor *ret)
{
	size_t at = w->in_start, bytes = 0;
	char *body = w->in + at + 4;
	uint32_t mark = 0;

	while (!(mark & MARK_LAST)) {
		if (w->in_end - at < 4)
			return 0;
		memcpy(&mark, w->in + at, 4);
		mark = ntohl(mark);
		if ((mark & ~MARK_LAST) > w->in_size - REPLY_HEAD_MAX)
			return wire_fail(w, "a reply is too long");
		at += 4 + (mark & ~MARK_LAST);
		bytes += mark & ~MARK_LAST;
		if (at > w->in_end)
			return 0;
	}
	for (size_t from = w->in_start, to = 0; to < bytes;) {
		size_t n;

		memcpy(&mark, w->in + from, 4);
		n = ntohl(mark) & ~MARK_LAST;
		if (to != 0)
			memmove(body + to, w->in + from + 4, n);
		from += 4 + n;
		to += n;
	}
	w->in_start = at;
	*ret = (struct cursor){ .at = body, .left = bytes };
	return 1;
}

static int
receive(struct wire *w)
{
	ssize_t n;

	if (w->in_start == w->in_end) {
		w->in_start = w->in_end = 0;
	} else if (w->in_size - w->in_end < w->in_size / 3) {
		memmove(w->in, w->in + w->in_start, w->in_end - w->in_start);
		w->in_end -= w->in_start;
		w->in_start = 0;
	}
	n = recv(w->fd, w->in + w->in_end, w->in_size - w->in_end,
		 MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return wire_fail(w,
				 n < 0 ? strerror(errno) : "connection closed");
	w->in_end += (size_t)n;
	return 0;
}

int
wire_service(struct wire *w, short revents)
{
	struct cursor c;
	int rc = 1;

	if ((revents & ~POLLOUT) != 0 && receive(w) < 0)
		return -1;
	while (rc > 0) {
		rc = record_take(w, &c);
		if (rc > 0 && reply_take(w, &c) < 0)
			return -1;
	}
	if (rc < 0)
		return -1;
	return queue_flush(w);
}
