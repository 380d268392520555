/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection: its states, its back-pressure, and the bytes in and out.
 *
 * A struct conn is made when a socket is accepted, is handed to one shard and
 * stays on that reactor. First bytes come by a one-shot receive into a small
 * buffer (the stage); the record marking takes spans out of it for the incoming
 * call; a WRITE's payload is then received straight into the call's buffer.
 * Replies are conn_send.c's.
 *
 * Only this file ends a connection: shut down, cancel, wait for the last
 * completion, close. It knows nothing of what a record means (call_recv.c,
 * call.c do).
 */
#include "nfsd/server.h"

#include <assert.h>
#include <errno.h>
#include <linux/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void conn_check(struct conn *c);

static struct conn *
conn_of_recv(struct op *op)
{
	return container_of(op, struct conn, recv_op);
}

/* Receiving --------------------------------------------------------------- */

static void
conn_unstage(struct conn *c)
{
	if (c->stage != NULL)
		small_give(c->shard->reactor, c->stage);
	c->stage = NULL;
	c->stage_at = c->stage_end = 0;
	c->has_span = false;
}

static void
recv_done(struct op *op, int res)
{
	struct conn *c = conn_of_recv(op);

	assert(c->magic == CONN_MAGIC && c->receiving);
	c->receiving = false;
	if (res > 0 && !c->receiving_body) {
		c->stage = op->small;
		c->stage_at = 0;
		c->stage_end = (uint32_t)res;
		if (c->state != CONN_OPEN)
			conn_unstage(c);
	} else if (res > 0 && c->state == CONN_OPEN) {
		c->span.bytes = 0;
		c->span.end = record_skip(&c->record, (uint32_t)res);
		c->has_span = c->span.end;
		call_placed(c->incoming, (uint32_t)res);
	} else if (res == 0 && c->state == CONN_OPEN) {
		conn_drain(c);
		return;
	} else if (res < 0 && res != -EINTR && res != -EAGAIN &&
		   c->state == CONN_OPEN) {
		conn_end(c);
		return;
	}
	conn_run(c);
}

static void
conn_receive(struct conn *c)
{
	uint8_t *at;
	uint32_t room;

	c->receiving = true;
	/* From here on he is late; what we made him wait is not his. */
	c->recv_ns = reactor_now_ns(c->shard->reactor);
	c->recv_op.done = recv_done;
	c->receiving_body = c->incoming != NULL &&
			    c->record.fragment_left > 0 &&
			    call_place(c->incoming, &at, &room);
	if (!c->receiving_body) {
		op_recv_small(c->shard->reactor, &c->recv_op, c->fd);
		return;
	}
	if (room > c->record.fragment_left)
		room = c->record.fragment_left;
	op_recv(c->shard->reactor, &c->recv_op, c->fd, at, room, MSG_WAITALL);
}

/* May a new record begin? The limits of server.h. */
static bool
conn_admit(struct conn *c)
{
	struct shard *s = c->shard;

	if (c->calls >= s->server->calls_per_conn) {
		stat_add(&s->stats.stalls_call, 1);
		return false;
	}
	if (c->held_bytes >= buf_pool_bytes(reactor_pool(s->reactor)) / 4) {
		stat_add(&s->stats.stalls_buffer, 1);
		return false;
	}
	c->incoming = call_new(s, c);
	if (c->incoming == NULL && !c->is_starved) {
		stat_add(&s->stats.stalls_slot, 1);
		c->is_starved = true;
		c->starved_ns = reactor_now_ns(s->reactor);
		TAILQ_INSERT_TAIL(&s->starved, c, starved_link);
	}
	return c->incoming != NULL;
}

/* Take the next span out of the stage. */
static void
conn_parse(struct conn *c)
{
	int n = record_feed(&c->record, c->stage + c->stage_at,
			    c->stage_end - c->stage_at, &c->span);

	if (n < 0) {
		stat_add(&c->shard->stats.records_refused, 1);
		conn_end(c);
		return;
	}
	c->stage_at += (uint32_t)n;
	c->has_span = c->span.bytes > 0 || c->span.end;
}

static void
conn_begin(struct conn *c)
{
	struct call *call = c->incoming;

	c->incoming = NULL;
	c->has_span = false;
	call_begin(call);
}

/* One step on what has been received. False: stalled until something comes
 * free. */
static bool
conn_step(struct conn *c)
{
	uint32_t n;

	if (c->incoming == NULL && !conn_admit(c))
		return false;
	if (c->incoming->want_bytes > 0)
		return call_get_buffer(c->incoming);
	if (!c->has_span) {
		conn_parse(c);
		return true;
	}
	if (c->span.bytes > 0) {
		n = call_take(c->incoming, c->span.data, c->span.bytes);
		c->span.data += n;
		c->span.bytes -= n;
		c->has_span = c->span.bytes > 0 || c->span.end;
		return true;
	}
	conn_begin(c);
	return true;
}

/* Is there something to do before more is received? */
static bool
conn_pending(const struct conn *c)
{
	return c->has_span ||
	       (c->stage != NULL && c->stage_at < c->stage_end) ||
	       (c->incoming != NULL && c->incoming->want_bytes > 0);
}

/* Does it wait for a call to end, so that even a quiet one's end is wanted? */
static void
conn_hunger(struct conn *c, bool hungry)
{
	if (hungry != c->hungry)
		reactor_hunger(c->shard->reactor, hungry ? 1 : -1);
	c->hungry = hungry;
}

void
conn_run(struct conn *c)
{
	bool stalled = false;

	assert(c->magic == CONN_MAGIC);
	if (c->running)
		return;
	c->running = true;
	while (c->state == CONN_OPEN && !c->receiving && !stalled) {
		if (conn_pending(c)) {
			stalled = !conn_step(c);
			continue;
		}
		conn_unstage(c);
		conn_receive(c);
	}
	c->running = false;
	conn_hunger(c, stalled);
	conn_flush(c);
	conn_check(c);
}

/* The end -------------------------------------------------------------------
 */

static void
conn_stop_reading(struct conn *c)
{
	struct call *call = c->incoming;

	if (c->receiving) {
		if (!c->cancelled)
			op_cancel(c->shard->reactor, &c->recv_op);
		c->cancelled = true;
		return; /* recv_done comes back here through conn_check */
	}
	c->incoming = NULL;
	conn_unstage(c);
	if (c->is_starved)
		TAILQ_REMOVE(&c->shard->starved, c, starved_link);
	c->is_starved = false;
	if (call != NULL)
		call_free(call);
}

void
conn_drain(struct conn *c)
{
	if (c->state != CONN_OPEN)
		return;
	c->state = CONN_DRAINING;
	conn_check(c);
}

void
conn_end(struct conn *c)
{
	struct call *call, *next;
	bool was_running = c->running;

	if (c->state == CONN_ENDING)
		return;
	c->state = CONN_ENDING;
	c->running = true; /* what is freed here must not free us */
	(void)shutdown(c->fd, SHUT_RDWR);
	if (c->sending)
		op_cancel(c->shard->reactor, &c->send_op);
	for (call = LIST_FIRST(&c->attached); call != NULL; call = next) {
		next = LIST_NEXT(call, attached_link);
		/* One that drc_done has already taken gets its message. */
		if (drc_detach(c->shard->server->drc, call))
			call_free(call);
	}
	c->running = was_running;
	conn_check(c);
}

static void
conn_free(struct conn *c)
{
	struct shard *s = c->shard;

	assert(STAILQ_EMPTY(&c->ready) && LIST_EMPTY(&c->attached));
	assert(c->incoming == NULL && c->stage == NULL && c->held_bytes == 0);
	conn_hunger(c, false);
	close(c->fd);
	if (c->linked)
		TAILQ_REMOVE(&s->conns, c, link);
	s->conn_count--;
	clients_leave(s->server->clients, c->client,
		      reactor_now_ns(s->reactor));
	s->server->conns_reserved -= c->reserved;
	s->server->conns_datagrams -= c->datagrams;
	c->magic = 0;
	free(c);
	shard_wake(s);
}

/* Let a connection that reads no more come to its end. */
static void
conn_check(struct conn *c)
{
	struct call *call;

	if (c->state == CONN_OPEN || c->running)
		return;
	c->running = true;
	conn_stop_reading(c);
	if (c->state == CONN_ENDING && !c->sending) {
		while ((call = STAILQ_FIRST(&c->ready)) != NULL) {
			STAILQ_REMOVE_HEAD(&c->ready, ready_link);
			call_free(call);
		}
	}
	c->running = false;
	conn_hunger(c, true);
	if (c->calls > 0 || c->receiving || c->sending)
		return;
	if (c->state == CONN_DRAINING)
		conn_end(c);
	else
		conn_free(c);
}

void
conn_unref(struct conn *c)
{
	assert(c->calls > 0);
	c->calls--;
	if (!c->running)
		conn_run(c);
}

/* Beginning, and time ---------------------------------------------------------
 */

static void
conn_arrive(struct message *m)
{
	struct conn *c = container_of(m, struct conn, arrival);
	struct shard *s = c->shard;

	TAILQ_INSERT_TAIL(&s->conns, c, link);
	c->linked = true;
	stat_add(&s->stats.connections_total, 1);
	c->recv_ns = c->send_ns = reactor_now_ns(s->reactor);
	if (s->stopping || s->server->draining)
		conn_drain(c);
	else
		conn_run(c);
}

static void
conn_hand_over(struct conn *c, struct shard *s, struct listener *l, int fd)
{
	c->magic = CONN_MAGIC;
	c->state = CONN_OPEN;
	c->shard = s;
	c->listener = l;
	c->fd = fd;
	record_init(&c->record,
		    c->datagrams ? DATAGRAM_BYTES_MAX : RECORD_BYTES_MAX);
	STAILQ_INIT(&c->ready);
	LIST_INIT(&c->attached);
	s->conn_count++;
	c->client = clients_enter(s->server->clients,
				  (struct sockaddr *)&c->peer, monotonic_ns());
	c->arrival.run = conn_arrive;
	reactor_post(s->reactor, &c->arrival);
}

void
conn_start(struct shard *s, struct listener *l, int fd)
{
	struct conn *c = calloc(1, sizeof(*c));
	socklen_t n = sizeof(c->peer), m = sizeof(c->local);

	if (c == NULL || getpeername(fd, (struct sockaddr *)&c->peer, &n) < 0 ||
	    getsockname(fd, (struct sockaddr *)&c->local, &m) < 0) {
		free(c);
		close(fd);
		return;
	}
	c->reserved = listen_tune(s->server, fd);
	conn_hand_over(c, s, l, fd);
}

void
conn_start_datagrams(struct shard *s, struct listener *l, int fd,
		     const struct datagram_ends *ends)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		close(fd);
		return;
	}
	c->peer = ends->peer;
	c->local = ends->local;
	c->datagrams = true;
	s->server->conns_datagrams++;
	conn_hand_over(c, s, l, fd);
}

/*
 * Bytes that TCP has taken in or seen acknowledged: a long receive or send in
 * the ring shows its progress nowhere else.
 */
static void
conn_progress(struct conn *c, uint64_t now)
{
	struct tcp_info info;
	socklen_t n = sizeof(info);

	memset(&info, 0, sizeof(info));
	if (getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &n) < 0)
		return;
	if (info.tcpi_bytes_received != c->recv_seen)
		c->recv_ns = now;
	if (info.tcpi_bytes_acked != c->send_seen)
		c->send_ns = now;
	c->recv_seen = info.tcpi_bytes_received;
	c->send_seen = info.tcpi_bytes_acked;
}

/* How long may this peer make no progress? */
static uint64_t
conn_patience(const struct conn *c)
{
	struct shard *s = c->shard;

	if (c->held_bytes > 0 && buf_pool_wanted(reactor_pool(s->reactor)))
		return CONN_IDLE_WANTED_NS;
	return shard_starving(s) ? CONN_IDLE_WANTED_NS : CONN_IDLE_NS;
}

void
conn_tick(struct conn *c)
{
	uint64_t now = reactor_now_ns(c->shard->reactor), patience;
	bool mid_record = c->receiving && c->record.inside;

	if (c->state == CONN_ENDING || (!mid_record && !c->sending))
		return;
	conn_progress(c, now);
	patience = conn_patience(c);
	if ((mid_record && now - c->recv_ns > patience) ||
	    (c->sending && now - c->send_ns > patience)) {
		/* Else what it does not take stays in the kernel. */
		net_abort(c->fd);
		stat_add(&c->shard->stats.timeouts, 1);
		conn_end(c);
	}
}
