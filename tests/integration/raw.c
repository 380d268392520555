/* SPDX-License-Identifier: Apache-2.0 */
/* See harness.h: calls built by hand on one TCP connection, or UDP socket. */
#include "harness.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SILENCE_MS 60000

/* What a decoder allocated, kept for whoever looks at the result. */
struct raw_memory {
	ZDR zdr;
	struct raw_memory *next;
};

void
raw_put(struct raw *r, uint32_t word)
{
	word = htonl(word);
	raw_append(r, &word, 4);
}

void
raw_put_opaque(struct raw *r, const void *bytes, uint32_t n)
{
	static const char pad[3];

	raw_put(r, n);
	raw_append(r, bytes, n);
	raw_append(r, pad, -n & 3);
}

uint32_t
raw_get(const struct raw *r, uint32_t at)
{
	uint32_t word = 0;

	assert_true(at + 4 <= r->in_bytes);
	memcpy(&word, r->in + at, 4);
	return ntohl(word);
}

static bool
connect_to(int fd, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(port) };
	int one = 1;

	/* Mark and payload go by two sends: the second must not wait for the
	 * first's acknowledgement. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
}

/* No two connections of a test use the same: the server would take a call that
 * another one has sent with it, and the same arguments, for a retransmission.
 */
static uint32_t
first_xid(void)
{
	static _Atomic uint32_t connections;

	return 0x10000u + (atomic_fetch_add(&connections, 1) << 20);
}

static struct raw *
raw_new(int fd, uint16_t port)
{
	struct raw *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->fd = fd;
	r->xid = first_xid();
	r->flavor = 1;
	r->out = malloc(RAW_RECORD_MAX);
	r->in = malloc(RAW_RECORD_MAX);
	assert_true(r->out != NULL && r->in != NULL && fd >= 0);
	assert_true(connect_to(fd, port));
	return r;
}

void
raw_reconnect(struct raw *r, uint16_t port)
{
	close(r->fd);
	r->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(r->fd >= 0);
	assert_true(connect_to(r->fd, port));
}

struct raw *
raw_connect(uint16_t port)
{
	return raw_new(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port);
}

int
raw_socket_udp(uint16_t port)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_true(connect_to(fd, port));
	return fd;
}

struct raw *
raw_connect_udp(uint16_t port)
{
	struct raw *r =
		raw_new(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), port);

	r->datagrams = true;
	return r;
}

struct raw *
raw_connect_reserved(uint16_t port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), p;
	struct sockaddr_in a = { .sin_family = AF_INET };

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (p = 1023; p > 512; p--) {
		a.sin_port = htons((uint16_t)p);
		if (bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
			return raw_new(fd, port);
	}
	fail_msg("no reserved port is free");
	return NULL;
}

void
raw_forget(struct raw *r)
{
	struct raw_memory *m;

	while ((m = r->memory) != NULL) {
		r->memory = m->next;
		libnfs_zdr_destroy(&m->zdr);
		free(m);
	}
}

void
raw_close(struct raw *r)
{
	if (r == NULL)
		return;
	raw_forget(r);
	close(r->fd);
	free(r->out);
	free(r->in);
	free(r);
}

void
raw_append(struct raw *r, const void *bytes, uint32_t n)
{
	assert_true(r->out_bytes + n <= RAW_RECORD_MAX);
	memcpy(r->out + r->out_bytes, bytes, n);
	r->out_bytes += n;
}

static void
put_cred(struct raw *r)
{
	uint32_t i;

	raw_put(r, r->flavor);
	if (r->flavor != 1) {
		raw_put(r, 0);
		return;
	}
	raw_put(r, 4 + 4 + 8 + 8 + 4 + 4 * r->gids);
	raw_put(r, 0); /* stamp */
	raw_put(r, 5);
	raw_append(r, "raw-c\0\0\0", 8);
	raw_put(r, r->uid);
	raw_put(r, r->gid);
	raw_put(r, r->gids);
	for (i = 0; i < r->gids; i++)
		raw_put(r, r->gid_list[i]);
}

uint32_t
raw_build(struct raw *r, uint32_t prog, uint32_t vers, uint32_t proc,
	  raw_zdr_fn *encode, void *args)
{
	ZDR zdr;

	r->out_bytes = 0;
	raw_put(r, r->xid);
	raw_put(r, 0);
	raw_put(r, 2);
	raw_put(r, prog);
	raw_put(r, vers);
	raw_put(r, proc);
	put_cred(r);
	raw_put(r, 0); /* verifier: AUTH_NONE */
	raw_put(r, 0);
	if (args != NULL) {
		libnfs_zdrmem_create(&zdr, (char *)r->out + r->out_bytes,
				     RAW_RECORD_MAX - r->out_bytes, ZDR_ENCODE);
		assert_true(encode(&zdr, args));
		r->out_bytes += libnfs_zdr_getpos(&zdr);
		libnfs_zdr_destroy(&zdr);
	}
	return r->xid++;
}

static bool
send_bytes(struct raw *r, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	ssize_t sent;

	while (n > 0) {
		sent = send(r->fd, p, n, MSG_NOSIGNAL);
		if (sent <= 0)
			return false;
		p += sent;
		n -= (size_t)sent;
	}
	return true;
}

void
raw_send_bytes(struct raw *r, const void *bytes, size_t n)
{
	assert_true(send_bytes(r, bytes, n));
}

bool
raw_try_send(struct raw *r)
{
	uint32_t mark = htonl(r->out_bytes | 0x80000000u);

	if (r->datagrams)
		return send_bytes(r, r->out, r->out_bytes);
	return send_bytes(r, &mark, 4) && send_bytes(r, r->out, r->out_bytes);
}

void
raw_send_fragments(struct raw *r, uint32_t n)
{
	uint32_t at = 0, part, mark;

	do {
		part = r->out_bytes - at < n ? r->out_bytes - at : n;
		mark = part;
		if (at + part == r->out_bytes)
			mark |= 0x80000000u;
		mark = htonl(mark);
		raw_send_bytes(r, &mark, 4);
		raw_send_bytes(r, r->out + at, part);
		at += part;
	} while (at < r->out_bytes);
}

void
raw_send(struct raw *r)
{
	if (r->datagrams)
		raw_send_bytes(r, r->out, r->out_bytes);
	else
		raw_send_fragments(r, r->out_bytes);
}

/* Exactly n bytes; false at the stream's end or after silence. */
static bool
receive_bytes(struct raw *r, void *out, size_t n)
{
	struct pollfd p = { .fd = r->fd, .events = POLLIN };
	uint8_t *to = out;
	ssize_t got;

	while (n > 0) {
		if (poll(&p, 1, SILENCE_MS) != 1)
			return false;
		got = recv(r->fd, to, n, 0);
		if (got <= 0)
			return false;
		to += got;
		n -= (size_t)got;
	}
	return true;
}

static void
take_header(struct raw *r)
{
	uint32_t verf;

	r->reply_xid = raw_get(r, 0);
	assert_int_equal(raw_get(r, 4), 1);
	r->reply_stat = raw_get(r, 8);
	if (r->reply_stat == 1) { /* denied: RPC_MISMATCH or AUTH_ERROR */
		r->accept_stat = raw_get(r, 12);
		r->low = raw_get(r, 16);
		r->high = r->accept_stat == 0 ? raw_get(r, 20) : 0;
		return;
	}
	assert_int_equal(r->reply_stat, 0);
	verf = (raw_get(r, 16) + 3) & ~3u;
	r->accept_stat = raw_get(r, 20 + verf);
	r->body = 24 + verf;
	if (r->accept_stat == 2) {
		r->low = raw_get(r, r->body);
		r->high = raw_get(r, r->body + 4);
	}
}

static bool
receive_datagram(struct raw *r)
{
	struct pollfd p = { .fd = r->fd, .events = POLLIN };
	ssize_t got;

	if (poll(&p, 1, SILENCE_MS) != 1)
		return false;
	got = recv(r->fd, r->in, RAW_RECORD_MAX, 0);
	if (got < 0)
		return false;
	r->in_bytes = (uint32_t)got;
	take_header(r);
	return true;
}

bool
raw_receive(struct raw *r)
{
	uint32_t mark = 0;

	r->in_bytes = 0;
	if (r->datagrams)
		return receive_datagram(r);
	do {
		if (!receive_bytes(r, &mark, 4))
			return false;
		mark = ntohl(mark);
		assert_true(r->in_bytes + (mark & 0x7fffffff) <=
			    RAW_RECORD_MAX);
		if (!receive_bytes(r, r->in + r->in_bytes, mark & 0x7fffffff))
			return false;
		r->in_bytes += mark & 0x7fffffff;
	} while ((mark & 0x80000000u) == 0);
	take_header(r);
	return true;
}

bool
raw_closed(struct raw *r)
{
	struct pollfd p = { .fd = r->fd, .events = POLLIN };
	char byte;

	if (poll(&p, 1, 3 * SILENCE_MS) != 1)
		return false;
	return recv(r->fd, &byte, 1, 0) <= 0;
}

void
raw_result(struct raw *r, raw_zdr_fn *decode, void *result)
{
	struct raw_memory *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	m->next = r->memory;
	r->memory = m;
	libnfs_zdrmem_create(&m->zdr, (char *)r->in + r->body,
			     r->in_bytes - r->body, ZDR_DECODE);
	if (!decode(&m->zdr, result))
		fail_msg("the reply's results cannot be decoded");
	/* Nothing may follow what the protocol describes. */
	assert_int_equal(libnfs_zdr_getpos(&m->zdr), r->in_bytes - r->body);
}

void
raw_call(struct raw *r, uint32_t prog, uint32_t vers, uint32_t proc,
	 raw_zdr_fn *encode, void *args, raw_zdr_fn *decode, void *result)
{
	uint32_t xid = raw_build(r, prog, vers, proc, encode, args);

	raw_send(r);
	assert_true(raw_receive(r));
	assert_int_equal(r->reply_xid, xid);
	assert_int_equal(r->reply_stat, 0);
	assert_int_equal(r->accept_stat, 0);
	if (decode != NULL)
		raw_result(r, decode, result);
}

/* Shorthands ----------------------------------------------------------------
 */

void
raw_keep_fh(struct raw_fh *to, const nfs_fh3 *from)
{
	assert_true(from->data.data_len <= sizeof(to->data));
	to->bytes = from->data.data_len;
	memcpy(to->data, from->data.data_val, to->bytes);
}

nfs_fh3
raw_nfs_fh(const struct raw_fh *fh)
{
	nfs_fh3 out;

	out.data.data_len = fh->bytes;
	out.data.data_val = (char *)(uintptr_t)fh->data;
	return out;
}

int
raw_mount(struct raw *r, const char *path, struct raw_fh *fh)
{
	char *arg = (char *)(uintptr_t)path;
	mountres3 res;
	nfs_fh3 got;

	memset(&res, 0, sizeof(res));
	raw_call(r, 100005, 3, MOUNT3_MNT, (raw_zdr_fn *)zdr_dirpath, &arg,
		 (raw_zdr_fn *)zdr_mountres3, &res);
	if (res.fhs_status != MNT3_OK)
		return (int)res.fhs_status;
	got.data.data_len = res.mountres3_u.mountinfo.fhandle.fhandle3_len;
	got.data.data_val = res.mountres3_u.mountinfo.fhandle.fhandle3_val;
	raw_keep_fh(fh, &got);
	return 0;
}

int
raw_lookup(struct raw *r, const struct raw_fh *dir, const char *name,
	   struct raw_fh *fh)
{
	LOOKUP3args args = { .what = { .dir = raw_nfs_fh(dir),
				       .name = (char *)(uintptr_t)name } };
	LOOKUP3res res;

	memset(&res, 0, sizeof(res));
	raw_nfs(r, LOOKUP, &args, &res);
	if (res.status == NFS3_OK)
		raw_keep_fh(fh, &res.LOOKUP3res_u.resok.object);
	return (int)res.status;
}

void
raw_create(struct raw *r, const struct raw_fh *dir, const char *name,
	   uint32_t mode, struct raw_fh *fh)
{
	CREATE3args args;
	CREATE3res res;

	memset(&args, 0, sizeof(args));
	memset(&res, 0, sizeof(res));
	args.where.dir = raw_nfs_fh(dir);
	args.where.name = (char *)(uintptr_t)name;
	args.how.mode = UNCHECKED;
	args.how.createhow3_u.obj_attributes.mode.set_it = 1;
	args.how.createhow3_u.obj_attributes.mode.set_mode3_u.mode = mode;
	raw_nfs(r, CREATE, &args, &res);
	assert_int_equal(res.status, NFS3_OK);
	assert_true(res.CREATE3res_u.resok.obj.handle_follows);
	raw_keep_fh(fh, &res.CREATE3res_u.resok.obj.post_op_fh3_u.handle);
}

int
raw_write(struct raw *r, const struct raw_fh *fh, uint64_t offset,
	  const void *data, uint32_t n, int stable, WRITE3res *res)
{
	WRITE3args args;

	memset(&args, 0, sizeof(args));
	memset(res, 0, sizeof(*res));
	args.file = raw_nfs_fh(fh);
	args.offset = offset;
	args.count = n;
	args.stable = (stable_how)stable;
	args.data.data_len = n;
	args.data.data_val = (char *)(uintptr_t)data;
	raw_nfs(r, WRITE, &args, res);
	return (int)res->status;
}

int
raw_read(struct raw *r, const struct raw_fh *fh, uint64_t offset, uint32_t n,
	 READ3res *res)
{
	READ3args args = { .file = raw_nfs_fh(fh),
			   .offset = offset,
			   .count = n };

	memset(res, 0, sizeof(*res));
	raw_nfs(r, READ, &args, res);
	return (int)res->status;
}

int
raw_commit(struct raw *r, const struct raw_fh *fh, COMMIT3res *res)
{
	COMMIT3args args = { .file = raw_nfs_fh(fh) };

	memset(res, 0, sizeof(*res));
	raw_nfs(r, COMMIT, &args, res);
	return (int)res->status;
}
