/* SPDX-License-Identifier: Apache-2.0 */
/* See flow.h: calls in flight, by poll(2). */
#include "flow.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define CONNECTIONS_MAX 64u
#define SILENCE_MS      60000 /* then it is told, and waited on */

struct flow_conn {
	struct raw *r;
	struct flow_call *out, **out_end; /* not sent as a whole */
	struct flow_call *in;             /* sent, no reply yet */
};

struct flow {
	struct flow_conn conn[CONNECTIONS_MAX];
	struct pollfd poll[CONNECTIONS_MAX];
	unsigned connections, in_flight;
};

struct flow *
flow_new(uint16_t port, unsigned connections)
{
	struct flow *f = calloc(1, sizeof(*f));
	unsigned i;

	assert_non_null(f);
	assert_in_range(connections, 1, CONNECTIONS_MAX);
	f->connections = connections;
	for (i = 0; i < connections; i++) {
		f->conn[i].r = raw_connect(port);
		f->conn[i].out_end = &f->conn[i].out;
		f->poll[i].fd = f->conn[i].r->fd;
	}
	return f;
}

void
flow_free(struct flow *f)
{
	unsigned i;

	if (f == NULL)
		return;
	assert_int_equal(f->in_flight, 0);
	for (i = 0; i < f->connections; i++)
		raw_close(f->conn[i].r);
	free(f);
}

struct raw *
flow_raw(struct flow *f, unsigned conn)
{
	struct flow_conn *c = &f->conn[conn % f->connections];

	assert_true(c->in == NULL && c->out == NULL);
	return c->r;
}

/* As much of what waits as the socket takes. */
static void
conn_send(struct flow_conn *c)
{
	struct flow_call *o;
	ssize_t n;

	while ((o = c->out) != NULL) {
		n = send(c->r->fd, o->record + o->sent, o->bytes - o->sent,
			 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0)
			fail_msg("send: %s", strerror(errno));
		o->sent += (size_t)n;
		if (o->sent < o->bytes)
			continue;
		free(o->record);
		o->record = NULL;
		c->out = o->next;
		if (c->out == NULL)
			c->out_end = &c->out;
		o->next = c->in;
		c->in = o;
	}
}

void
flow_call(struct flow *f, unsigned conn, struct flow_call *c, uint32_t proc,
	  raw_zdr_fn *encode, void *args)
{
	struct flow_conn *to = &f->conn[conn % f->connections];
	struct raw *r = to->r;
	uint32_t mark;

	c->xid = raw_build(r, 100003, 3, proc, encode, args);
	c->bytes = r->out_bytes + sizeof(mark);
	c->sent = 0;
	c->record = malloc(c->bytes);
	assert_non_null(c->record);
	mark = htonl(r->out_bytes | 0x80000000u);
	memcpy(c->record, &mark, sizeof(mark));
	memcpy(c->record + sizeof(mark), r->out, r->out_bytes);
	c->next = NULL;
	*to->out_end = c;
	to->out_end = &c->next;
	f->in_flight++;
	conn_send(to);
}

void
flow_write(struct flow *f, unsigned conn, struct flow_call *c,
	   const struct flow_write *w)
{
	WRITE3args args;

	memset(&args, 0, sizeof(args));
	args.file = raw_nfs_fh(w->fh);
	args.offset = w->offset;
	args.count = w->bytes;
	args.stable = (stable_how)w->stable;
	args.data.data_len = w->bytes;
	args.data.data_val = w->data;
	flow_nfs(f, conn, c, WRITE, &args);
}

void
flow_read(struct flow *f, unsigned conn, struct flow_call *c,
	  const struct raw_fh *fh, uint64_t offset, uint32_t bytes)
{
	READ3args args = { .file = raw_nfs_fh(fh),
			   .offset = offset,
			   .count = bytes };

	flow_nfs(f, conn, c, READ, &args);
}

void
flow_commit(struct flow *f, unsigned conn, struct flow_call *c,
	    const struct raw_fh *fh)
{
	COMMIT3args args = { .file = raw_nfs_fh(fh) };

	flow_nfs(f, conn, c, COMMIT, &args);
}

/* One reply. The rest of a record that has begun comes without our doing
 * anything for it, so waiting for it is safe. */
static void
conn_receive(struct flow *f, struct flow_conn *c)
{
	struct flow_call *o, **at;

	if (!raw_receive(c->r))
		fail_msg("the server closed a connection, or fell silent in "
			 "the middle of a reply");
	for (at = &c->in; (o = *at) != NULL; at = &o->next)
		if (o->xid == c->r->reply_xid)
			break;
	if (o == NULL) {
		fail_msg("a reply to no call: xid %#x", c->r->reply_xid);
		return;
	}
	*at = o->next;
	assert_int_equal(c->r->reply_stat, 0);
	assert_int_equal(c->r->accept_stat, 0);
	f->in_flight--;
	o->done(o, c->r);
}

static void
tell_silence(const struct flow *f)
{
	const struct flow_call *o;
	unsigned i;

	for (i = 0; i < f->connections; i++) {
		for (o = f->conn[i].in; o != NULL; o = o->next)
			print_message("still no reply to xid %#x of "
				      "connection %u (%zu bytes)\n",
				      o->xid, i, o->bytes);
		if (f->conn[i].out != NULL)
			print_message("connection %u takes no bytes\n", i);
	}
}

unsigned
flow_turn(struct flow *f)
{
	unsigned i;
	int n;

	if (f->in_flight == 0)
		return 0;
	for (i = 0; i < f->connections; i++)
		f->poll[i].events =
			f->conn[i].out != NULL ? POLLIN | POLLOUT : POLLIN;
	n = poll(f->poll, f->connections, SILENCE_MS);
	if (n == 0)
		tell_silence(f);
	for (i = 0; n > 0 && i < f->connections; i++) {
		if ((f->poll[i].revents & POLLOUT) != 0)
			conn_send(&f->conn[i]);
		if ((f->poll[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0)
			conn_receive(f, &f->conn[i]);
	}
	return f->in_flight;
}

void
flow_drain(struct flow *f)
{
	while (flow_turn(f) > 0)
		;
}
