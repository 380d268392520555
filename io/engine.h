/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's lower half: reactors and their operations, worker pools, aligned
 * buffers, sockets. It knows no volumes and no open files (io/io.h does), no
 * RPC and no NFS.
 *
 * A reactor is a thread with a loop and a ring; engine_new starts them all,
 * engine_free ends them. A struct op belongs to the reactor thread that starts
 * it, from start to done(). done() is called from the reactor's loop, never
 * from inside the function that started the operation. Errors are negative
 * errno values.
 */
#ifndef NVNFSD_IO_ENGINE_H
#define NVNFSD_IO_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define IO_SMALL_BYTES 4096u /* a provided buffer for first bytes */

struct reactor;
struct engine;
struct volume;

/* op.c over ring.c or ring_threads.c: operations of a reactor ------------- */

enum io_backend { IO_BACKEND_URING, IO_BACKEND_THREADS };

enum op_kind {
	OP_ACCEPT,
	OP_RECV,
	OP_RECV_SMALL,
	OP_SENDMSG,
	OP_READ,
	OP_WRITE,
	/* never in the ring: kinds that fault points name */
	OP_FSYNC,
	OP_FLUSH,
	OP_METASYNC,
	OP_KINDS
};

#ifndef container_of
/* NOLINTNEXTLINE(readability-identifier-naming): its name everywhere */
#define container_of(ptr, type, member)                                        \
	((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#endif

/* A message to a reactor, embedded in its sender's object. */
struct message {
	void (*run)(struct message *m);
	struct message *next;
};

/* run on a worker, then done on the reactor (done may be NULL: fire and
 * forget, and then run may free the work). */
struct work {
	void (*run)(struct work *w);
	void (*done)(struct work *w);
	struct reactor *reactor; /* where done runs */
	bool quiet; /* run may set it: done as by reactor_post_quiet */
	/* private */
	struct work *next;
	struct message msg;
};

/*
 * One operation in flight, embedded in whatever owns it and reachable through
 * container_of. Zero it once, set done, then pass it to an op_ function. It
 * must not be touched or freed before done() ran; every started operation gets
 * exactly one done(). res is the system call's result or -errno.
 */
struct op {
	void (*done)(struct op *op, int res);
	void *small; /* OP_RECV_SMALL, res > 0: the bytes; return it with
			small_give() */
	/* private to op.c and the backends */
	enum op_kind kind;
	uint8_t place; /* enum op_place */
	bool busy;
	bool blocks; /* for op_work() */
	bool nowait;
	bool tells;
	bool cancelled;
	bool polled; /* in the ring of polled devices, or just out of it */
	int fd;
	uint32_t slot;
	uint32_t len;
	int flags; /* MSG_ or RWF_ flags */
	int res;
	uint64_t offset;
	void *buf;
	struct op *next;
	uint64_t since_ns; /* it waits for room or a small buffer */
	struct work work;  /* a file operation that would block */
};

/* Accept one connection: res is its descriptor (O_CLOEXEC, non-blocking off
 * for the ring). The caller re-arms. */
void op_accept(struct reactor *r, struct op *op, int listen_fd);
/* Receive into buf; flags may hold MSG_WAITALL, and the result may be short
 * all the same. */
void op_recv(struct reactor *r, struct op *op, int fd, void *buf, uint32_t len,
	     int flags);
/* Receive at most IO_SMALL_BYTES into a buffer of the reactor's that is chosen
 * when bytes arrive, so that an idle connection holds none. */
void op_recv_small(struct reactor *r, struct op *op, int fd);
void small_give(struct reactor *r, void *small);
/* Send; msg and what it points at stay valid until done. May be short. One send
 * of a socket at a time: a second would get between the parts of the first
 * where the socket's buffer fills. The same holds for receives. */
void op_sendmsg(struct reactor *r, struct op *op, int fd,
		const struct msghdr *msg);
/*
 * Read or write a file at offset. rwf are RWF_ flags. A buf inside the
 * reactor's pool goes as a fixed buffer. First tried with RWF_NOWAIT where the
 * kernel takes it; -EAGAIN is counted as a punt and retried by a worker of
 * WORK_FILES, so the caller never sees it, unless a write tells: then it comes
 * back as -EAGAIN, for the caller to do it elsewhere. May be short. RWF_HIPRI
 * where the device can be polled: it is, with iopoll.
 */
void op_read(struct reactor *r, struct op *op, int fd, void *buf, uint32_t len,
	     uint64_t offset, int rwf);
void op_write(struct reactor *r, struct op *op, int fd, const void *buf,
	      uint32_t len, uint64_t offset, int rwf, bool tells);
/* Ask for an early end; done() still comes, with -ECANCELED or the result. */
void op_cancel(struct reactor *r, struct op *op);

/* reactor.c: the loop --------------------------------------------------- */

struct reactor_counters {
	_Atomic uint64_t punts;       /* went to a worker */
	_Atomic uint64_t polled;      /* went to a device that is polled */
	_Atomic uint64_t sqe_waits;   /* submission queue was full */
	_Atomic uint64_t op_waits;    /* no room for an operation */
	_Atomic uint64_t op_wait_ns;  /* until there was */
	_Atomic uint64_t small_waits; /* no small buffer left */
	_Atomic uint64_t small_wait_ns;
	_Atomic uint64_t buf_waits; /* no pool buffer left */
	_Atomic uint64_t buf_wait_ns;
	_Atomic uint64_t buf_bytes; /* of the pool, taken now */
	_Atomic uint64_t file_ops;  /* reads and writes in flight now */
};

/* Any thread. m->run runs on r's thread, in the order of posting per sender. */
void reactor_post(struct reactor *r, struct message *m);
/* The same, but it can wait until r wakes for another reason, a second at most,
 * unless somebody hungers. */
void reactor_post_quiet(struct reactor *r, struct message *m);
/* On r's thread: n (may be negative) more wait for something that a quiet
 * message may bring. */
void reactor_hunger(struct reactor *r, int n);
/* True on r's own thread. */
bool reactor_is_current(const struct reactor *r);
unsigned reactor_index(const struct reactor *r);
struct engine *reactor_engine(const struct reactor *r);
struct buf_pool *reactor_pool(struct reactor *r);
struct reactor_counters *reactor_counters(struct reactor *r);
void *reactor_user(const struct reactor *r);
/* CLOCK_MONOTONIC, in ns, as of this turn of the loop: refreshed at its start
 * and when it has slept. */
uint64_t reactor_now_ns(const struct reactor *r);

/* engine.c: reactors and pools together -------------------------------- */

struct engine_config {
	enum io_backend backend; /* falls back to THREADS when refused */
	unsigned reactors;       /* 0: one a core */
	unsigned workers;        /* threads of the metadata pool, 0: default */
	unsigned io_workers;     /* threads of the data pool, 0: default */
	size_t buffer_bytes;     /* of all reactors together, 0: default */
	unsigned files_max;      /* open files, 0: default */
	/* Of io_uring, where the kernel has it; engine_facts tells. */
	bool sqpoll;             /* threads of the kernel submit */
	unsigned sqpoll_idle_ms; /* until such a one sleeps, 0: a default */
	unsigned busy_poll_us;   /* of network devices, 0: not */
	bool iopoll;             /* ask devices with poll queues */
	const char *sysfs;       /* NULL: /sys; tests bring their own */
	/* Called on each reactor's thread: before its loop (returns the
	 * pointer for reactor_user, and starts no operation), each second, and
	 * after its loop. */
	void *(*reactor_init)(struct reactor *r, void *arg);
	void (*reactor_tick)(struct reactor *r);
	void (*reactor_fini)(struct reactor *r);
	/* Called on each worker thread of both pools at its start; anything
	 * but 0 makes engine_new fail with it. */
	int (*worker_init)(void *arg);
	/* Any thread, once per failed sync, flush or close of a file. */
	void (*on_error)(struct volume *v, const char *what, int error);
	void *arg;
};

struct engine_facts {
	enum io_backend backend;
	int backend_error;       /* why io_uring was refused, 0 if it was not */
	bool buffers_registered; /* else memory limits refused it */
	/* Why what was wished for is not so, 0: it is. -EOPNOTSUPP without
	 * io_uring. */
	int sqpoll_error, busy_poll_error, iopoll_error;
	unsigned reactors;
	size_t buffer_bytes;
};

/* 0 or -errno. Starts all threads; they run until engine_free. */
int engine_new(struct engine **ret, const struct engine_config *config);
/* Every file must be put and every operation done. Joins all threads. Asserts
 * that every buffer, op slot and file is home. */
void engine_free(struct engine *e);
const struct engine_facts *engine_facts(const struct engine *e);
struct reactor *engine_reactor(struct engine *e, unsigned i);

/* work.c: threads for calls that block ---------------------------------- */

enum work_pool {
	WORK_META,  /* procedures, opens */
	WORK_DATA,  /* syncs, flushes, drops, writes one after the other */
	WORK_FILES, /* single reads and writes that would block */
	WORK_NAMES, /* what may wait for a name server */
	WORK_POOLS
};

void work_submit(struct engine *e, enum work_pool pool, struct work *w);

/* buf.c: page-aligned memory, registered with the ring ------------------- */

struct buf_pool;

struct buf {
	uint8_t *base; /* page-aligned */
	uint32_t bytes;
	/* private */
	uint32_t page;
};

struct buf_waiter {
	void (*ready)(struct buf_waiter *w); /* w->buf has been filled */
	uint32_t bytes;
	struct buf *buf;
	/* private */
	struct buf_waiter *next;
	uint64_t since_ns;
};

/* Owner reactor's thread only. 0; or -EAGAIN when none is free or others wait
 * (first come, first served); -EMSGSIZE when larger than the pool. Contents
 * are undefined. */
int buf_take(struct buf_pool *p, struct buf *buf, uint32_t bytes);
/* Queue for a buffer; ready() is called from the loop, never from here. */
void buf_wait(struct buf_pool *p, struct buf_waiter *w);
/* Leave the queue; false when it was not in it. */
bool buf_unwait(struct buf_pool *p, struct buf_waiter *w);
void buf_give(struct buf_pool *p, struct buf *buf); /* zeroes *buf */
size_t buf_pool_bytes(const struct buf_pool *p);
size_t buf_pool_free_bytes(const struct buf_pool *p);
/* Does anyone wait for a buffer? */
bool buf_pool_wanted(const struct buf_pool *p);
/* Is [p, p + n) inside the pool? Then *index is the fixed buffer. */
bool buf_pool_holds(const struct buf_pool *p, const void *addr, size_t n,
		    int *index);

/* net.c: sockets --------------------------------------------------------- */

/* Listening TCP socket, SO_REUSEADDR, IPV6_V6ONLY for v6. addr's port 0 takes a
 * free one, and addr is updated. The port is shared with nobody. */
int net_listen(struct sockaddr_storage *addr, int *ret_fd);
/* TCP_NODELAY, keepalive, and what a storage connection wants. */
int net_tune(int fd);
/* Where a connection's peer is this machine: set memory aside for what it
 * sends, so that it goes on when the memory control group that we are in is
 * full of what only we can write back. Costs NET_RESERVE_BYTES of the group. 0,
 * -EREMOTE where the two ends differ, else -errno: -EOPNOTSUPP in no group. */
int net_reserve(int fd);
/* Let its close throw away what is not sent. */
void net_abort(int fd);
/* Who listens on this TCP port, for a message: "PID NAME", "the kernel's
 * NFS server", or "an unknown process". */
void net_port_holder(const struct sockaddr_storage *addr, char *text,
		     size_t text_bytes);

/* datagram.c: UDP sockets -------------------------------------------------- */

/* Where a datagram came from, and the address of ours that it was sent to: the
 * reply goes the same way back. */
struct datagram_ends {
	struct sockaddr_storage peer, local;
};

/* A bound UDP socket, IPV6_V6ONLY for v6. addr's port 0 takes a free one, and
 * addr is updated. */
int datagram_open(struct sockaddr_storage *addr, int *ret_fd);
/* Does not block. How many bytes; -EMSGSIZE: one of more than bytes, which is
 * gone; -EAGAIN: there is none. local has the port 0. */
ssize_t datagram_receive(int fd, void *buf, size_t bytes,
			 struct datagram_ends *ends);
/* Does not block: 0 or -errno. */
int datagram_send(int fd, const void *buf, size_t bytes,
		  const struct datagram_ends *ends);

#endif
