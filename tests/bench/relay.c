/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvnfsd-relay FILE: the limit with a disk. It receives the calls of
 * nvnfsd-load
 * --raw --no-mount and does with each what cannot be left out: the data of a
 * WRITE goes from the socket into an aligned, registered buffer and from there
 * into FILE with O_DIRECT; a READ the other way; COMMIT and stable WRITEs sync.
 * No files, no rights, no attributes, no ranges. One ring, one thread; a slot
 * is one call, from its first byte to the last of its reply. A connection reads
 * on as soon as a call's data is in, and sends one reply at a time.
 */
#include "tests/bench/limit.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <sys/queue.h>
#include <sys/uio.h>
#include <unistd.h>

#define SLOTS      64u
#define DATA_MAX   (1u << 20)
#define CONNS_MAX  64u
#define RING_SIZE  512u
#define BLOCK      4096u
#define FILE_INDEX 0
#define FILE_SYNC  2u

enum step {
	STEP_ACCEPT,
	STEP_HEAD,
	STEP_DATA,
	STEP_DISK,
	STEP_SYNC,
	STEP_SEND
};

struct slot {
	struct conn *conn;
	STAILQ_ENTRY(slot) next;
	char *data;
	unsigned index;
	uint32_t count, reply_len;
	uint32_t reply[REPLY_BYTES_MAX / 4];
	struct iovec iov[2];
	struct msghdr msg;
	char call[CALL_WRITE_BYTES];
};

STAILQ_HEAD(slots, slot);

struct conn {
	int fd;
	struct slot *in;  /* being received into */
	struct slots out; /* replies; the first is being sent */
	bool waits;       /* for a free slot */
};

static struct io_uring ring;
static struct slot all[SLOTS];
static struct slots free_slots = STAILQ_HEAD_INITIALIZER(free_slots);
static struct conn conns[CONNS_MAX];
static unsigned conns_used;

static void
die(const char *what, int err)
{
	(void)fprintf(stderr, "nvnfsd-relay: %s: %s\n", what, strerror(err));
	exit(1);
}

static struct io_uring_sqe *
sqe_get(void)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	if (sqe == NULL) {
		(void)io_uring_submit(&ring);
		sqe = io_uring_get_sqe(&ring);
	}
	if (sqe == NULL)
		die("ring", EBUSY);
	return sqe;
}

static void
mark(struct io_uring_sqe *sqe, enum step step, const void *object)
{
	io_uring_sqe_set_data64(sqe, (uint64_t)(uintptr_t)object << 3 | step);
}

static void
head_receive(struct conn *c)
{
	struct io_uring_sqe *sqe;

	c->in = STAILQ_FIRST(&free_slots);
	c->waits = c->in == NULL;
	if (c->waits)
		return;
	STAILQ_REMOVE_HEAD(&free_slots, next);
	c->in->conn = c;
	sqe = sqe_get();
	io_uring_prep_recv(sqe, c->fd, c->in->call, CALL_PLACE_BYTES,
			   MSG_WAITALL);
	mark(sqe, STEP_HEAD, c->in);
}

static void
slot_free(struct slot *s)
{
	STAILQ_INSERT_HEAD(&free_slots, s, next);
	for (unsigned i = 0; i < conns_used; i++)
		if (conns[i].waits) {
			head_receive(&conns[i]);
			return;
		}
}

static void
reply_send(struct conn *c)
{
	struct slot *s = STAILQ_FIRST(&c->out);
	struct io_uring_sqe *sqe;

	if (s == NULL)
		return;
	sqe = sqe_get();
	io_uring_prep_sendmsg(sqe, c->fd, &s->msg, MSG_NOSIGNAL | MSG_WAITALL);
	mark(sqe, STEP_SEND, s);
}

static void
reply_queue(struct slot *s, uint32_t status)
{
	struct conn *c = s->conn;
	bool idle = STAILQ_EMPTY(&c->out);
	bool read = limit_word(s->call, WORD_PROC) == LIMIT_READ;
	uint32_t n = limit_reply(s->call, s->reply, status, FILE_SYNC);

	/* What was asked for: never more than was done. */
	if (limit_word(s->call, WORD_PROC) == LIMIT_WRITE)
		memcpy(&s->reply[11], s->call + CALL_PLACE_BYTES, 4);
	s->iov[0] = (struct iovec){ .iov_base = s->reply, .iov_len = n };
	s->iov[1] = (struct iovec){ .iov_base = s->data, .iov_len = s->count };
	s->msg = (struct msghdr){ .msg_iov = s->iov,
				  .msg_iovlen = read && status == 0 ? 2 : 1 };
	STAILQ_INSERT_TAIL(&c->out, s, next);
	if (idle)
		reply_send(c);
}

static void
file_sync(struct slot *s)
{
	struct io_uring_sqe *sqe = sqe_get();

	io_uring_prep_fsync(sqe, FILE_INDEX, 0);
	sqe->flags |= IOSQE_FIXED_FILE;
	mark(sqe, STEP_SYNC, s);
}

static void
disk_start(struct slot *s, bool write)
{
	struct io_uring_sqe *sqe = sqe_get();
	uint64_t offset = limit_offset(s->call);

	if (write)
		io_uring_prep_write_fixed(sqe, FILE_INDEX, s->data, s->count,
					  offset, (int)s->index);
	else
		io_uring_prep_read_fixed(sqe, FILE_INDEX, s->data, s->count,
					 offset, (int)s->index);
	sqe->flags |= IOSQE_FIXED_FILE;
	mark(sqe, STEP_DISK, s);
}

static void
head_done(struct slot *s, int res)
{
	struct conn *c = s->conn;
	uint32_t proc;

	if (res != CALL_PLACE_BYTES) {
		c->in = NULL;
		slot_free(s);
		return;
	}
	proc = limit_word(s->call, WORD_PROC);
	s->count = limit_word(s->call, WORD_COUNT);
	if (s->count > DATA_MAX ||
	    (proc != LIMIT_COMMIT && s->count % BLOCK != 0))
		die("call", EINVAL);
	if (proc == LIMIT_WRITE) {
		struct io_uring_sqe *sqe = sqe_get();

		s->iov[0] =
			(struct iovec){ .iov_base = s->call + CALL_PLACE_BYTES,
					.iov_len = CALL_WRITE_BYTES -
						   CALL_PLACE_BYTES };
		s->iov[1] = (struct iovec){ .iov_base = s->data,
					    .iov_len = s->count };
		s->msg = (struct msghdr){ .msg_iov = s->iov, .msg_iovlen = 2 };
		io_uring_prep_recvmsg(sqe, c->fd, &s->msg, MSG_WAITALL);
		mark(sqe, STEP_DATA, s);
		return;
	}
	if (proc == LIMIT_READ)
		disk_start(s, false);
	else
		file_sync(s);
	head_receive(c);
}

static void
data_done(struct slot *s, int res)
{
	if (res < (int)(CALL_WRITE_BYTES - CALL_PLACE_BYTES + s->count)) {
		slot_free(s);
		return;
	}
	disk_start(s, true);
	head_receive(s->conn);
}

static void
disk_done(struct slot *s, int res)
{
	bool write = limit_word(s->call, WORD_PROC) == LIMIT_WRITE;

	if (res != (int)s->count)
		die("file", res < 0 ? -res : EIO);
	/* The word after the place of a WRITE is how stable it has to be. */
	if (write && limit_word(s->call, CALL_PLACE_BYTES / 4) != 0)
		file_sync(s);
	else
		reply_queue(s, 0);
}

static void
send_done(struct slot *s, int res)
{
	struct conn *c = s->conn;

	STAILQ_REMOVE_HEAD(&c->out, next);
	slot_free(s);
	if (res >= 0)
		reply_send(c);
}

static void
accept_start(int listener)
{
	struct io_uring_sqe *sqe = sqe_get();

	io_uring_prep_accept(sqe, listener, NULL, NULL, SOCK_CLOEXEC);
	mark(sqe, STEP_ACCEPT, NULL);
}

static void
accepted(int fd)
{
	struct conn *c;
	int one = 1;

	if (fd < 0 || conns_used == CONNS_MAX)
		die("accept", fd < 0 ? -fd : EMFILE);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	c = &conns[conns_used++];
	c->fd = fd;
	STAILQ_INIT(&c->out);
	head_receive(c);
}

static void
step_done(uint64_t user_data, int res, int listener)
{
	struct slot *s = (struct slot *)(uintptr_t)(user_data >> 3);

	switch ((enum step)(user_data & 7)) {
	case STEP_ACCEPT:
		accepted(res);
		accept_start(listener);
		break;
	case STEP_HEAD:
		head_done(s, res);
		break;
	case STEP_DATA:
		data_done(s, res);
		break;
	case STEP_DISK:
		disk_done(s, res);
		break;
	case STEP_SYNC:
		if (res < 0)
			die("fsync", -res);
		reply_queue(s, 0);
		break;
	case STEP_SEND:
		send_done(s, res);
		break;
	}
}

static void
start(const char *path)
{
	struct iovec iov[SLOTS];
	int fd, rc;

	for (unsigned i = 0; i < SLOTS; i++) {
		all[i].index = i;
		all[i].data = aligned_alloc(BLOCK, DATA_MAX);
		if (all[i].data == NULL)
			die("memory", ENOMEM);
		memset(all[i].data, 0, DATA_MAX);
		iov[i] = (struct iovec){ .iov_base = all[i].data,
					 .iov_len = DATA_MAX };
		STAILQ_INSERT_TAIL(&free_slots, &all[i], next);
	}
	fd = open(path, O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0644);
	if (fd < 0)
		die(path, errno);
	rc = io_uring_queue_init(RING_SIZE, &ring,
				 IORING_SETUP_SINGLE_ISSUER |
					 IORING_SETUP_DEFER_TASKRUN);
	if (rc == 0)
		rc = io_uring_register_buffers(&ring, iov, SLOTS);
	if (rc == 0)
		rc = io_uring_register_files(&ring, &fd, 1);
	if (rc < 0)
		die("ring", -rc);
}

int
main(int argc, char **argv)
{
	int listener;

	if (argc != 2) {
		(void)fprintf(stderr, "usage: nvnfsd-relay FILE\n");
		return 2;
	}
	start(argv[1]);
	listener = limit_listen("nvnfsd-relay");
	accept_start(listener);
	for (;;) {
		struct io_uring_cqe *cqe;
		unsigned head, n = 0;
		int rc = io_uring_submit_and_wait(&ring, 1);

		if (rc < 0 && rc != -EINTR)
			die("ring", -rc);
		io_uring_for_each_cqe (&ring, head, cqe) {
			step_done(cqe->user_data, cqe->res, listener);
			n++;
		}
		io_uring_cq_advance(&ring, n);
	}
}
