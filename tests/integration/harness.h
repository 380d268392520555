/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For integration tests: a server of the test's own (a child process on free
 * ports of 127.0.0.1, in a temporary directory), and a raw client that can send
 * any bytes, well-formed or not. Each function fails the running cmocka test
 * when something goes wrong, unless it says otherwise.
 */
#ifndef NVNFSD_TESTS_HARNESS_H
#define NVNFSD_TESTS_HARNESS_H

/* cmocka wants these before it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <sys/types.h>

#include <nfsc/libnfs-zdr.h>

#include <nfsc/libnfs-raw-mount.h>
#include <nfsc/libnfs-raw-nfs.h>
#include <nfsc/libnfs.h>

/* harness.c -----------------------------------------------------------------
 */

#define HARNESS_ARGS_MAX 40

/*
 * A running server. dir holds export/ (what is exported, owned by root, 0777),
 * state/, log (its stderr) and whatever the test puts there. Made by
 * harness_new, ended by harness_free.
 */
struct harness {
	char dir[256];
	char export[300];  /* dir/export, or where harness_mount put a device */
	char client[400];  /* CLIENT(options) of the export line */
	char exports[300]; /* a file of exports instead of that line, or "" */
	char conf[300];    /* harness_conf wrote it, or "" */
	const char *args[HARNESS_ARGS_MAX]; /* further ones, NULL-terminated */
	unsigned arg_count;
	const char *env[8]; /* NAME=VALUE for the server, NULL-terminated */
	unsigned env_count;
	pid_t pid; /* 0: not running */
	uint16_t port, mount_port;
	char loop[64]; /* loop device under export, "" if none */
	int loop_fd;   /* holds it where it is */
	unsigned sector;
	char image[300];
	struct harness *next; /* private to harness.c */
};

/* What most tests export with: records of 47,008 bytes are split. */
#define HARNESS_OPTIONS "rw,no_root_squash,insecure,direct-min=32k"
/* Make the directory; the server is not started yet. options: of the export
 * line; NULL: HARNESS_OPTIONS. */
struct harness *harness_new(const char *options);
void harness_arg(struct harness *h, const char *arg); /* kept by pointer */
/* Write the server's nvnfsd.conf, which it reads when it starts, or by SIGHUP.
 */
void harness_conf(struct harness *h, const char *text);
void harness_env(struct harness *h, const char *name_value);
/* A file system of mib MiB on a loop device under export; fs is "xfs", "ext4"
 * or "btrfs", sector 512 or 4096. False (and a printed reason) where this
 * machine can't: the test should then skip(). Before harness_start. image may
 * be set before, else it is dir/image. */
bool harness_mount(struct harness *h, const char *fs, unsigned sector,
		   unsigned mib);
/* Unmount and mount it again: nothing of it is in the page cache then. Only
 * while no server runs. */
void harness_remount(struct harness *h);
/* Likewise with dir/name in the image's place: as after a crash when that was
 * copied. */
void harness_exchange(struct harness *h, const char *name);
/* Run NVNFSD (environment variable) and wait for its ready line. */
void harness_start(struct harness *h);
/* As harness_start, but the server is expected to exit by itself; its status.
 */
int harness_run(struct harness *h);
/* SIGTERM; it must exit 0. Its log must hold no sanitizer report. */
void harness_stop(struct harness *h);
/* The same where its exit status is to be another one. */
void harness_end(struct harness *h, int want);
void harness_kill(struct harness *h); /* SIGKILL, and reap */
void harness_signal(struct harness *h, int sig);
/* Stop if running, unmount, detach, remove everything. What a failed test left
 * behind is freed when the process ends. */
void harness_free(struct harness *h);
/* Does the log hold this text (an ERE of grep -E)? */
bool harness_logged(const struct harness *h, const char *pattern);
/* A number of stats.json after SIGUSR1, by name (top level, or "writes.split").
 */
uint64_t harness_stat(struct harness *h, const char *name);
/* The same of what the server wrote when it ended. */
uint64_t harness_last_stat(const struct harness *h, const char *name);
/* How many lines of the log match? */
unsigned harness_log_count(const struct harness *h, const char *pattern);
/* Does the server under test have fault points (built with -Dfault=true)? */
bool harness_has_faults(void);
/* Device reads, 4 KiB units of them, writes, flushes since the device is there
 * (/sys/block/loopN/stat). Only after harness_mount. */
struct device_stat {
	uint64_t reads, read_4k, writes, write_4k, flushes;
};
struct device_stat harness_device_stat(const struct harness *h);
/* Pages of export/name in the page cache. */
unsigned long harness_resident(const struct harness *h, const char *name);
/* A path below export, in a static buffer of four that rotate. */
const char *harness_path(const struct harness *h, const char *name);
/* sh -c of a formatted command; its exit status. */
int harness_sh(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A mounted libnfs context with the caller's ids (nfs_destroy_context it). */
struct nfs_context *harness_nfs(struct harness *h, int uid, int gid);

/* raw.c: one TCP connection, or one UDP socket, calls built by hand -----------
 */

#define RAW_RECORD_MAX (5u << 20)

struct raw {
	int fd;
	bool datagrams;
	uint32_t xid; /* of the next call */
	uint32_t uid, gid, gids;
	uint32_t gid_list[16];
	uint32_t flavor; /* 1: AUTH_SYS */
	uint8_t *out;    /* the record being built, without its mark */
	uint32_t out_bytes;
	uint8_t *in; /* the last reply's record */
	uint32_t in_bytes;
	/* of the last reply */
	uint32_t reply_xid, reply_stat, accept_stat; /* RFC 5531, section 9 */
	uint32_t low, high;                          /* of a mismatch */
	uint32_t body; /* where the results begin in in */
	struct raw_memory *memory;
};

struct raw *raw_connect(uint16_t port);
/* By UDP: what is sent and received is a datagram. */
struct raw *raw_connect_udp(uint16_t port);
int raw_socket_udp(uint16_t port);
/* From a source port below 1024 (root). */
struct raw *raw_connect_reserved(uint16_t port);
void raw_close(struct raw *r); /* and free */
/* Free what decoded results hold: of a connection that makes many calls. */
void raw_forget(struct raw *r);
/* A new connection in the old one's place; out stays, so that it can be sent
 * again. */
void raw_reconnect(struct raw *r, uint16_t port);
/* Build a call into out: header with a credential of flavor; args may be NULL.
 * encode is one of libnfs's zdr_X functions. Returns the xid. */
typedef uint32_t raw_zdr_fn(ZDR *zdr, void *object);
uint32_t raw_build(struct raw *r, uint32_t prog, uint32_t vers, uint32_t proc,
		   raw_zdr_fn *encode, void *args);
void raw_append(struct raw *r, const void *bytes, uint32_t n);
/* A word, and an opaque<> or string<>; the word at a place of the reply. */
void raw_put(struct raw *r, uint32_t word);
void raw_put_opaque(struct raw *r, const void *bytes, uint32_t n);
uint32_t raw_get(const struct raw *r, uint32_t at);
/* Send out as one fragment. */
void raw_send(struct raw *r);
/* Likewise; false when the connection has ended. */
bool raw_try_send(struct raw *r);
/* Send out in fragments of at most n payload bytes. */
void raw_send_fragments(struct raw *r, uint32_t n);
void raw_send_bytes(struct raw *r, const void *bytes, size_t n);
/* Receive one record and take its header apart. False at end of stream (or
 * after a minute of silence, which ends the wait and not a test's verdict). */
bool raw_receive(struct raw *r);
/* True when the peer closes without sending anything more. */
bool raw_closed(struct raw *r);
/* Decode the results of the last reply. What zdr allocates lives until
 * raw_close; opaque data (READ's payload, handles) points into in and lives
 * until the next raw_receive. */
void raw_result(struct raw *r, raw_zdr_fn *decode, void *result);
/* build, send, receive, accepted and successful, result. */
void raw_call(struct raw *r, uint32_t prog, uint32_t vers, uint32_t proc,
	      raw_zdr_fn *encode, void *args, raw_zdr_fn *decode, void *result);
/* NFSv3 shorthand: raw_nfs(r, WRITE, &args, &res). */
#define raw_nfs(r, NAME, args, res)                                            \
	raw_call((r), 100003, 3, NFS3_##NAME, (raw_zdr_fn *)zdr_##NAME##3args, \
		 (args), (raw_zdr_fn *)zdr_##NAME##3res, (res))
/* MNT of path; the handle is copied (static storage inside fh's owner). */
struct raw_fh {
	uint32_t bytes;
	char data[64];
};
/* The mountstat3. */
int raw_mount(struct raw *r, const char *path, struct raw_fh *fh);
nfs_fh3 raw_nfs_fh(const struct raw_fh *fh); /* points into fh */
void raw_keep_fh(struct raw_fh *to, const nfs_fh3 *from);
/* LOOKUP, the nfsstat3. */
int raw_lookup(struct raw *r, const struct raw_fh *dir, const char *name,
	       struct raw_fh *fh);
/* CREATE UNCHECKED with mode; must succeed. */
void raw_create(struct raw *r, const struct raw_fh *dir, const char *name,
		uint32_t mode, struct raw_fh *fh);
/* WRITE; the nfsstat3, *res filled. */
int raw_write(struct raw *r, const struct raw_fh *fh, uint64_t offset,
	      const void *data, uint32_t n, int stable, WRITE3res *res);
int raw_read(struct raw *r, const struct raw_fh *fh, uint64_t offset,
	     uint32_t n, READ3res *res);
int raw_commit(struct raw *r, const struct raw_fh *fh, COMMIT3res *res);

#endif
