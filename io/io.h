/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's interface: reactors and their operations, worker pools,
 * aligned buffers, volumes, open files, and the three data calls
 * (io_write, io_read, io_commit). It knows no RPC and no NFS.
 *
 * Threads: a struct op, io_write, io_read or io_commit belongs to the reactor
 * thread that starts it, from start to done(). done() is called from the
 * reactor's loop, never from inside the function that started the operation.
 * Errors are negative errno values.
 */
#ifndef NVNFSD_IO_H
#define NVNFSD_IO_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define IO_SMALL_BYTES        4096u      /* a provided buffer for first bytes */
#define IO_HANDLE_BYTES_MAX   36u        /* kernel file handle inside ours */
#define IO_TRANSFER_BYTES_MAX (4u << 20) /* largest READ or WRITE payload */

struct reactor;
struct engine;
struct join_block;
struct volume;
struct file;

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
	bool async;
	bool nowait;
	bool tells;
	bool cancelled;
	int fd;
	uint32_t slot;
	uint32_t len;
	int flags; /* MSG_ or RWF_ flags */
	int res;
	uint64_t offset;
	void *buf;
	struct op *next;
	uint64_t since_ns; /* it waits for room or a small buffer */
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
 * kernel takes it; -EAGAIN is counted as a punt and retried on io-wq inside
 * ring.c, so the caller never sees it, unless a write tells: then it comes back
 * as -EAGAIN, for the caller to do it elsewhere. May be short. fd must not be
 * O_NONBLOCK: io-wq would not wait either, and -EAGAIN came back.
 */
void op_read(struct reactor *r, struct op *op, int fd, void *buf, uint32_t len,
	     uint64_t offset, int rwf);
void op_write(struct reactor *r, struct op *op, int fd, const void *buf,
	      uint32_t len, uint64_t offset, int rwf, bool tells);
/* Ask for an early end; done() still comes, with -ECANCELED or the result. */
void op_cancel(struct reactor *r, struct op *op);

/* reactor.c: the loop --------------------------------------------------- */

/* A message to a reactor, embedded in its sender's object. */
struct message {
	void (*run)(struct message *m);
	struct message *next;
};

struct reactor_counters {
	_Atomic uint64_t punts;       /* went to io-wq or a worker */
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
	const char *sysfs;       /* NULL: /sys; tests bring their own */
	/* Called on each reactor's thread: before its loop (returns the
	 * pointer for reactor_user), each second, and after its loop. */
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
	WORK_DATA,  /* syncs, flushes, drops, writes that the ring would punt */
	WORK_NAMES, /* what may wait for a name server */
	WORK_POOLS
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

/* Listening TCP socket, SO_REUSEPORT and SO_REUSEADDR, IPV6_V6ONLY for v6.
 * addr's port 0 takes a free one, and addr is updated. -EADDRINUSE is found
 * although SO_REUSEPORT would share the port with a stranger: reuse is false
 * for the first socket of a port. */
int net_listen(struct sockaddr_storage *addr, bool reuse, int *ret_fd);
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

/* device.c, volume.c: facts and state of one exported tree ---------------- */

/* IO_AUTO: of a policy only, each file has one of the others. */
enum io_mode { IO_BUFFERED, IO_DONTCACHE, IO_DIRECT, IO_AUTO };
enum io_edges {
	IO_EDGES_DROP,
	IO_EDGES_DONTCACHE,
	IO_EDGES_BUFFERED,
	IO_EDGES_JOIN
};
enum io_stable { IO_UNSTABLE, IO_DATA_SYNC, IO_FILE_SYNC }; /* as stable_how */

const char *io_mode_name(enum io_mode m);
const char *io_edges_name(enum io_edges e);

/*
 * direct_min where nobody says otherwise. Measured with 32 WRITEs in flight,
 * XFS on loop devices over tmpfs, 2 cores (tests/bench/direct-min; the curve is
 * in RESULTS.md): below 32 KiB the whole WRITE through the page cache, written
 * back in long runs and dropped behind, is faster than the split, for less CPU;
 * from there on the two are even where a file is rewritten. Extending it, the
 * whole took less CPU up to 64 KiB.
 */
#define IO_DIRECT_MIN_BYTES 32768u

#define IO_DIRTY_BYTES_MAX     (64u << 20) /* dirty_max's default */
#define IO_DIRTY_BYTES_MIN     (1u << 20)
#define IO_FLUSH_SHARE_PERCENT 12u

struct io_policy {
	enum io_mode read_mode;
	enum io_mode write_mode;
	enum io_edges edges;
	uint32_t direct_min; /* bytes of middle below which no split */
	enum io_stable stable_floor;
	bool torn_free;       /* what can be written atomically is */
	uint64_t dirty_max;   /* bytes in the page cache that are not written
				 back; 0: a default */
	uint32_t flush_share; /* percent of it after which write-back starts */
};

/* device*.c, nvme.c: what lies under a file system ------------------------- */

#define DEVICE_NODES_MAX 32u
#define DEVICE_NAME_MAX  64u

enum device_kind {
	DEVICE_DISK,
	DEVICE_PARTITION,
	DEVICE_DM,
	DEVICE_MD,
	DEVICE_LOOP
};
const char *device_kind_name(enum device_kind k);

/* Of a request queue, as sysfs has it; 0: not told, or none. A stacked device
 * has what the kernel has made of the limits of those below it. */
struct device_limits {
	uint32_t logical_bytes, physical_bytes;
	uint32_t minimum_bytes, optimal_bytes; /* preferred sizes of I/O */
	uint32_t boundary_bytes;               /* chunk_sectors */
	uint32_t transfer_bytes_max;           /* of the hardware */
	uint32_t request_bytes_max; /* the kernel makes no larger ones */
	uint32_t virt_boundary_bytes, dma_align_bytes;
	uint32_t atomic_bytes_min, atomic_bytes_max, atomic_boundary_bytes;
	uint32_t queues, queue_requests;
	bool write_cache; /* volatile: a flush means something */
	bool fua;
	bool rotational;
};

/* One block device of a chain. */
struct device_node {
	enum device_kind kind;
	dev_t dev;
	unsigned above; /* which node stands on it; itself: none */
	unsigned below; /* how many it stands on; 0: a leaf */
	bool backing;   /* holds a loop device's file, or is under it */
	bool aligned;   /* its start suits its disk */
	uint64_t start; /* of a partition, in bytes of its disk */
	char name[DEVICE_NAME_MAX]; /* the kernel's: "nvme0n1p2" */
	char detail[256]; /* dm: its name; md: its level; loop: its file */
	struct device_limits limits; /* a partition has its disk's */
};

/* From what the file system lies on ([0]) down to the leaves. */
struct device_chain {
	unsigned count; /* 0: no block device is known */
	bool cut_short; /* there was more */
	struct device_node node[DEVICE_NODES_MAX];
};

/* What an NVMe controller and namespace say of themselves (NVMe base
 * specification, Identify); sizes in bytes, 0: not told, or no limit. */
struct nvme_facts {
	char model[41], firmware[9];
	uint32_t nsid;
	uint8_t format; /* index of the LBA format */
	uint32_t block_bytes, metadata_bytes;
	uint32_t npwg_bytes, npwa_bytes, nows_bytes, noiob_bytes;
	uint32_t awun_bytes, awupf_bytes, mdts_bytes;
	bool volatile_cache; /* VWC */
};

/* Its SMART / Health Information log. Data units are 512,000 bytes. */
struct nvme_smart {
	uint8_t critical_warning; /* bits */
	int temperature_celsius;
	uint8_t spare_percent, spare_threshold_percent, used_percent;
	uint64_t media_errors, unsafe_shutdowns;
	uint64_t data_units_read, data_units_written;
};

/* A device with a queue of its own, for whoever shows or counts. */
struct device_state {
	char name[DEVICE_NAME_MAX];
	dev_t dev;
	/* Direct I/O: requests in flight now, how many may be (0: any number),
	 * and who had to wait for that. */
	uint32_t slots, slots_used;
	uint64_t slot_waits, slot_wait_ns;
	int nvme_error; /* 0: nvme is told; -ENODEV: it is none; why not */
	struct nvme_facts nvme;
	int smart_error; /* 0: smart is told; else why not */
	uint64_t smart_age_ns;
	struct nvme_smart smart;
};

/* Fills at most max; returns how many there are. Any thread. */
unsigned device_states(struct engine *e, struct device_state *ret,
		       unsigned max);
/* The state of one that a volume stands on. False: none such. */
bool device_state_of(struct engine *e, dev_t dev, struct device_state *ret);
/* Each second from any thread: once a minute starts to read the SMART logs. */
void device_refresh(struct engine *e);

struct volume_facts {
	uint64_t fs_type;     /* statfs f_type */
	uint32_t block_bytes; /* file system block */
	uint32_t cut_bytes;   /* A: where a WRITE may be cut */
	uint32_t cut_floor;   /* of any file's cut */
	uint32_t dio_mem_align;
	uint32_t dio_offset_align; /* 0: no direct I/O */
	uint32_t logical_bytes;    /* of the device */
	uint32_t physical_bytes;
	uint32_t piece_bytes_max;  /* of a direct piece */
	uint32_t piece_boundary;   /* 0, or cut pieces at its multiples */
	uint32_t write_pref_bytes; /* FSINFO's wtpref and wtmult */
	uint32_t write_mult_bytes;
	uint32_t slots;         /* direct requests in flight, 0: any number */
	uint32_t request_bytes; /* that a slot stands for */
	uint32_t atomic_bytes_min, atomic_bytes_max; /* 0: no atomic writes */
	const char *atomic_why;                      /* then the reason */
	const char *direct_why; /* why no direct I/O although it would work */
	bool sync_by_fua;       /* RWF_DSYNC is cheaper than a sync */
	bool dontcache;         /* RWF_DONTCACHE works */
	bool nowait_buffered;   /* buffered writes do not punt */
	bool log_covers;        /* one log force covers earlier changes */
	bool write_cache;
	char device[DEVICE_NAME_MAX]; /* leaf device's name, or "" */
};

enum split_reason {
	SPLIT_YES,       /* cut into pieces, middle direct */
	SPLIT_ALIGNED,   /* direct as a whole, nothing to cut off */
	SPLIT_SMALL,     /* middle below direct_min */
	SPLIT_NO_DIRECT, /* the file has no direct I/O */
	SPLIT_MODE,      /* the export's mode says so */
	SPLIT_CACHED,    /* somebody else has it in the page cache */
	SPLIT_LONE,      /* stable, small, and nobody else writes there */
	SPLIT_ATOMIC,    /* direct as a whole, and never torn */
	SPLIT_REASONS
};
const char *split_reason_name(enum split_reason r);

/* Counters of a volume; relaxed atomics, read by anyone. */
struct volume_counters {
	_Atomic uint64_t writes[SPLIT_REASONS];
	_Atomic uint64_t direct_bytes, edge_bytes, buffered_bytes;
	_Atomic uint64_t read_direct_bytes, read_buffered_bytes;
	_Atomic uint64_t fallbacks;     /* direct refused, done buffered */
	_Atomic uint64_t syncs;         /* fsync calls */
	_Atomic uint64_t sync_requests; /* WRITEs and COMMITs they served */
	_Atomic uint64_t meta_syncs, meta_sync_requests;
	_Atomic uint64_t
		writes_tearable; /* though torn-free, see its man page */
	_Atomic uint64_t writes_through; /* stable without a sync */
	_Atomic uint64_t flushes; /* turns of write-back without a sync */
	_Atomic uint64_t pages_dropped;
	_Atomic uint64_t edge_spans;           /* waiting now */
	_Atomic uint64_t edge_pages;           /* likewise */
	_Atomic uint64_t edge_pages_completed; /* by both neighbours */
	_Atomic uint64_t edges_joined; /* blocks that waited in memory, whole */
	_Atomic uint64_t
		edges_unjoined; /* and through the page cache after all */
	_Atomic uint64_t range_waits;
	_Atomic uint64_t dirty_waits; /* WRITEs that dirty_max held back */
	_Atomic uint64_t verifier_changes;
};

/*
 * root_fd: a plain directory descriptor inside the export's own mount; the
 * volume takes it over on success. verifier: the one kept from a clean stop,
 * or a fresh one. Blocks (probes the file system with an unlinked temporary
 * file when it is writable). user is handed to on_error's owner.
 */
int volume_new(struct volume **ret, struct engine *e, int root_fd,
	       bool read_only, uint64_t verifier,
	       const struct io_policy *policy, void *user);
/* Drops the creator's reference; files hold their own. Close its files first
 * (file_close_all). */
void volume_put(struct volume *v);
void volume_get(struct volume *v);
int volume_root_fd(const struct volume *v);
bool volume_read_only(const struct volume *v);
void *volume_user(const struct volume *v);
const struct volume_facts *volume_facts(const struct volume *v);
const struct device_chain *volume_chain(const struct volume *v);
struct volume_counters *volume_counters(struct volume *v);
uint64_t volume_verifier(const struct volume *v);
/* The two clones (read-write, read-only) of one export share counters and
 * verifier: v takes those of with. Before v is used. */
void volume_share(struct volume *v, struct volume *with);
/* Any thread. The policy's modes fall back to what the file system can do;
 * returns a static text that says so, or NULL. */
const char *volume_set_policy(struct volume *v, const struct io_policy *policy);
struct io_policy volume_policy(const struct volume *v);
/* Why v cannot keep what this policy promises (a static text), NULL: it can. A
 * policy that is refused must not be set. */
const char *volume_refuses(const struct volume *v,
			   const struct io_policy *policy);
/*
 * Make every metadata change that returned before this call durable. fd: the
 * object that changed (any descriptor, also O_PATH), synced itself where the
 * file system's log does not cover all earlier changes. Blocks. Concurrent
 * callers share one log force. 0 or -errno.
 */
int volume_sync_metadata(struct volume *v, int fd);

/* file.c: open files, counted, kept open while in use -------------------- */

struct file_key {
	struct volume *volume;
	int32_t handle_type;
	uint32_t handle_bytes;
	uint8_t handle[IO_HANDLE_BYTES_MAX];
};

/* Never blocks: a reference to an already open file, or NULL. */
struct file *file_find(struct engine *e, const struct file_key *key);
/*
 * Blocks (worker threads): open or find it, as the server, for read and write
 * where the volume and the inode allow. -ESTALE: no such handle. -EISDIR for a
 * directory, -EINVAL for another non-regular file: then nothing was opened but
 * an O_PATH descriptor. -ENFILE at the limit with none idle.
 */
int file_open(struct engine *e, const struct file_key *key, struct file **ret);
void file_put(struct file *f);
int file_fd(const struct file *f); /* buffered descriptor, for fstat */
/* Of a regular file that stat gives size: with what waits in memory. Any
 * thread, does not block. What waited may have got into the file between the
 * stat and this: then io_size_resets has moved, and both are to be done again.
 */
uint64_t io_size(dev_t dev, uint64_t ino, uint64_t size);
uint64_t io_size_resets(void);
/*
 * auto.c: what an inode that is used in a mode auto was like lately (counts are
 * halved now and then), and the modes that follow. Samples are bytes that READs
 * and WRITEs covered; again and written: also in the last 20 s before that.
 */
struct io_learned {
	enum io_mode read_mode, write_mode;
	uint64_t reads, read_bytes, reads_in_order;
	uint64_t read_samples, read_again, read_written;
	uint64_t writes, write_bytes, writes_aligned, writes_stable;
	uint64_t written_samples, written_again;
	uint64_t span_bytes; /* from the first to the last byte used */
	uint64_t keep_bytes; /* how much of a file may be kept in memory */
	unsigned pressure; /* percent of the time that tasks wait for memory */
};
/* False: it is not open, or was not used in such a mode. Any thread. */
bool file_learned(struct engine *e, const struct volume *v, uint64_t ino,
		  struct io_learned *ret);
/* Blocks (worker threads): what waits in memory of this inode of v goes to the
 * file. */
void file_settle(struct engine *e, const struct volume *v, uint64_t ino);
bool file_writable(const struct file *f);
struct volume *file_volume(const struct file *f);
uint64_t file_id(const struct file *f); /* unique in this process */
/* Blocks until no piece is in flight and holds later ones back: for
 * truncation. Not from a reactor. */
void file_freeze(struct file *f);
void file_thaw(struct file *f);
/* The inode was removed (its last link gone): let go of it as soon as nobody
 * uses it, without a sync. By key, or by inode. */
void file_forget(struct engine *e, const struct volume *v, uint64_t ino);
/* Blocks: sync and close every idle file of v (NULL: of all); busy ones are
 * waited for until deadline_ns (CLOCK_MONOTONIC). 0, the first error, or
 * -EBUSY. */
int file_close_all(struct engine *e, struct volume *v, uint64_t deadline_ns);
/* Each second from any thread: starts closing what has been idle long. */
void file_expire(struct engine *e);
unsigned file_count(const struct engine *e);

/*
 * A call's bracket on a file, for wcc_data: begin, then fstat for pre_op; end
 * tells whether pre_op is true, that is, no other bracket overlapped. Any
 * thread, no blocking.
 */
struct file_bracket {
	uint64_t serial;
	bool overlapped;
};
void file_begin(struct file *f, struct file_bracket *b);
bool file_end(struct file *f, struct file_bracket *b);

/* split.c: a WRITE cut into pieces: arithmetic only ---------------------- */

struct segment {
	uint64_t offset;
	uint32_t bytes; /* 0: absent */
};

struct split {
	struct segment head, middle, tail; /* whole: only tail, when buffered */
	enum split_reason reason;
};

/* cut is a power of two, or 0: the file has no direct I/O. direct_min counts
 * bytes of middle. offset + bytes is at most 2^63 - 1. */
void split_write(struct split *s, uint64_t offset, uint32_t bytes, uint32_t cut,
		 uint32_t direct_min, enum io_mode mode);
/* A WRITE that a power failure must not tear: a power of two of bytes from min
 * to max (0: none), at a multiple of itself, is all middle. False: it is none,
 * and s is untouched. */
bool split_atomic(struct split *s, uint64_t offset, uint32_t bytes,
		  uint32_t min, uint32_t max);
/* Not cut at all: everything is tail. */
void split_whole(struct split *s, uint64_t offset, uint32_t bytes,
		 enum split_reason why);

/* range.c: pieces in flight ---------------------------------------------- */
/* (private to the engine: see io/file.h) */

/* write.c, read.c, sync.c: data calls ------------------------------------- */

struct range_lock {
	struct range_lock *next, *prev;
	struct range_lock *wake; /* of those granted together */
	struct {
		uint64_t start, end; /* page-rounded, end exclusive */
		uint8_t kind;
	} part[3];
	uint8_t parts;
	bool granted;
	struct reactor *reactor; /* NULL: a blocked thread waits */
	struct message msg;
	void (*ready)(struct range_lock *l);
};

/* Waits for room below dirty_max, on its reactor. */
struct flush_waiter {
	STAILQ_ENTRY(flush_waiter) next;
	int64_t bytes;
	struct reactor *reactor;
	struct message msg;
	void (*ready)(struct flush_waiter *w);
};

/* Waits for the next sync of a file, on its reactor. */
struct sync_waiter {
	struct sync_waiter *next;
	struct reactor *reactor;
	struct message msg;
	void (*done)(struct sync_waiter *s);
	struct file *file;
	bool thorough; /* only when the pages are gone as well */
	bool data;     /* times and the like may stay behind */
	bool whole;    /* they did not (a result) */
	bool anywhere; /* done() on whatever thread has synced */
	int error;
};

/* Waits for its turn at a device, on its reactor. */
struct slot_waiter {
	struct slot_waiter *next;
	struct reactor *reactor;
	struct message msg;
	void (*ready)(struct slot_waiter *w); /* w has its slots */
	uint32_t slots;                       /* 0: it wants and has none */
	uint64_t since_ns;
};

#define IO_PIECES_MAX 6 /* in flight: head, tail, and chunks of the middle */

/* One segment, or one chunk of the middle, until all its bytes are written. */
struct io_piece {
	struct op op;
	struct work work; /* where the ring would punt it */
	struct slot_waiter slot;
	struct io_write *write;
	const uint8_t *data;
	uint64_t offset;
	uint32_t bytes, done_bytes;
	int rwf;
	int res;
	uint8_t again; /* times that it was told -EAGAIN */
	bool direct;
	bool busy;
	bool blocks; /* the ring would have punted it */
};

/*
 * One WRITE. The caller fills the first block and calls io_write_start on the
 * reactor; done() comes with the second block filled. data must start at an
 * address congruent to offset modulo the page size (it is copied nowhere), and
 * lie in the reactor's pool. The file stays referenced by the caller.
 */
struct io_write {
	struct reactor *reactor;
	struct file *file;
	const uint8_t *data;
	uint64_t offset;
	uint32_t bytes;        /* > 0 */
	enum io_stable stable; /* as asked, stable_floor is applied inside */
	void (*done)(struct io_write *w);
	/* done() may run on any thread, and inside io_write_start, to save a
	 * change of thread. */
	bool anywhere;
	/* The reactor serves nobody else at this moment, and may block for as
	 * long as a quick sync takes. */
	bool may_block;

	int error;                /* 0 or -errno; 0 means written > 0 */
	uint32_t written;         /* contiguous from offset */
	enum io_stable committed; /* what is really so */
	uint64_t verifier;        /* sampled before the first piece */
	/* CLOCK_MONOTONIC: it had its ranges; its last piece had landed */
	uint64_t ranged_ns, landed_ns;

	/* private */
	struct flush_waiter room;
	struct join_block *join[2]; /* for its edges */
	struct range_lock lock;
	struct sync_waiter waiter;
	struct message msg;
	struct work work; /* all of it, on a worker */
	struct io_policy policy;
	struct split split;
	struct io_piece piece[IO_PIECES_MAX];
	uint64_t middle_next; /* first byte of the middle not yet issued */
	uint64_t fail_at;     /* first byte known not to be written */
	uint64_t error_seq;
	int buffered_rwf;
	bool atomic;  /* all middle, in one I/O, or not at all */
	bool through; /* its middle is stable when it is written */
	bool drop;    /* its buffered pages are to leave the page cache */
	bool joins;   /* its edges wait in memory */
	bool cached;  /* others have its middle in the page cache by now */
	bool extending;
	bool tail_issued;
	uint8_t flying; /* pieces in flight */
};
void io_write_start(struct io_write *w);

/* One READ. buf is taken from the reactor's pool inside (waiting for one where
 * there is none) and belongs to the caller afterwards, also on error when
 * buf.base is set: give it back with buf_give. */
struct io_read {
	struct reactor *reactor;
	struct file *file;
	uint64_t offset;
	uint32_t bytes;
	void (*done)(struct io_read *r);

	int error;
	struct buf buf;
	uint8_t *data;      /* inside buf */
	uint32_t got;       /* short only at end of file */
	bool eof;           /* the read reached the end of the file */
	uint64_t ranged_ns; /* CLOCK_MONOTONIC: it had buffer and range */

	/* private */
	struct op op;
	struct range_lock lock;
	struct buf_waiter waiter;
	struct slot_waiter slot;
	struct message msg;
	struct work work; /* edges that wait in memory */
	struct io_policy policy;
	uint64_t aligned; /* where the I/O starts */
	uint32_t need;    /* bytes of I/O from there */
	uint32_t have;
	uint32_t want; /* bytes of the caller's that can exist */
	int rwf;
	uint8_t again; /* times that it was told -EAGAIN */
	bool direct;
	bool ahead; /* with readahead */
};
void io_read_start(struct io_read *r);

/* One COMMIT: a group sync of the whole file. */
struct io_commit {
	struct reactor *reactor;
	struct file *file;
	void (*done)(struct io_commit *c);

	int error;
	uint64_t verifier; /* read after the sync */

	/* private */
	uint64_t error_seq;
	struct work work; /* edges that wait in memory */
	struct sync_waiter waiter;
};
void io_commit_start(struct io_commit *c);

#endif
