/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's interface: volumes, open files, and the three data calls
 * (io_write, io_read, io_commit), with what they stand on: reactors, operations
 * and buffers (io/engine.h), and what is known of devices (io/facts.h). It
 * knows no RPC and no NFS.
 *
 * Threads: an io_write, io_read or io_commit belongs to the reactor thread that
 * starts it, from start to done(). done() is called from the reactor's loop,
 * never from inside the function that started the operation, but where the
 * caller allows it. Errors are negative errno values.
 */
#ifndef NVNFSD_IO_H
#define NVNFSD_IO_H

#include "io/engine.h"
#include "io/facts.h"

#include <sys/queue.h>

#define IO_HANDLE_BYTES_MAX   36u        /* kernel file handle inside ours */
#define IO_TRANSFER_BYTES_MAX (4u << 20) /* largest READ or WRITE payload */

struct join_block;
struct file;

/* volume.c: one exported tree, its policy and its state ------------------- */

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
 * in RESULTS.md): below 64 KiB the whole WRITE through the page cache, written
 * back in long runs and dropped behind, is faster than the split, for less CPU,
 * up to twice as fast for half of it where the file is extended.
 */
#define IO_DIRECT_MIN_BYTES 65536u

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
	_Atomic uint64_t range_waits, range_wait_ns;
	_Atomic uint64_t dirty_waits; /* WRITEs that dirty_max held back */
	_Atomic uint64_t dirty_wait_ns;
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
	uint64_t written_samples, written_again, written_often;
	unsigned growth;     /* of the file, in percent of what was written */
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
	uint64_t since_ns;       /* it waits */
	struct reactor *reactor; /* NULL: a blocked thread waits */
	struct message msg;
	void (*ready)(struct range_lock *l);
};

/* Waits for room below dirty_max, on its reactor. */
struct flush_waiter {
	STAILQ_ENTRY(flush_waiter) next;
	int64_t bytes;
	uint64_t since_ns; /* it waits */
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
