/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration as plain structs: nvnfsd.conf (ini, as nfs.conf(5)) and the
 * export tables (exports(5) syntax). Only reads files and parses text: it
 * resolves no host, opens no export and logs nothing. What is wrong comes back
 * as "file:line: reason". It includes nothing of rpc/, io/ or nfsd/.
 */
#ifndef NVNFSD_CONF_H
#define NVNFSD_CONF_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* report.c: errors and warnings of one read ------------------------------ */

struct conf_message {
	bool warning;
	char *text; /* "file:line: reason" */
};
struct conf_report {
	struct conf_message *messages; /* the first CONF_MESSAGES_MAX */
	unsigned count, errors;
};
#define CONF_MESSAGES_MAX 100u
/* Frees what it holds; NULL is taken. */
void conf_report_fini(struct conf_report *r);
/* line 0 leaves the line out. A message that finds no memory is still counted
 * as an error. */
void conf_report_error(struct conf_report *r, const char *file, unsigned line,
		       const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void conf_report_warning(struct conf_report *r, const char *file, unsigned line,
			 const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* The words for modes; conf knows them as text positions only. Their order is
 * that of the engine's enums (a test of nfsd/ checks it). */
enum conf_mode { CONF_BUFFERED, CONF_DONTCACHE, CONF_DIRECT, CONF_AUTO };
enum conf_edges {
	CONF_EDGES_DROP,
	CONF_EDGES_DONTCACHE,
	CONF_EDGES_BUFFERED,
	CONF_EDGES_JOIN
};
enum conf_stable { CONF_STABLE_NONE, CONF_STABLE_DATA, CONF_STABLE_FILE };

/* -errno style: 0, or -EINVAL when the word is none of them. */
int conf_mode_parse(const char *word, enum conf_mode *ret);
int conf_edges_parse(const char *word, enum conf_edges *ret);
int conf_stable_parse(const char *word, enum conf_stable *ret);
const char *conf_mode_name(enum conf_mode m);
const char *conf_edges_name(enum conf_edges e);
const char *conf_stable_name(enum conf_stable s);
/* "64k", "4M", "1GiB", "4096": bytes. -EINVAL, -ERANGE. */
int conf_size_parse(const char *word, uint64_t *ret);

/* conf.c: nvnfsd.conf -------------------------------------------------------
 */

enum conf_log_level {
	CONF_LOG_ERR,
	CONF_LOG_WARNING,
	CONF_LOG_NOTICE,
	CONF_LOG_INFO,
	CONF_LOG_DEBUG
};

/* A policy where each part may be unset. */
struct conf_policy {
	bool has_read_mode, has_write_mode, has_edges, has_direct_min,
		has_stable_floor, has_torn_free, has_dirty_max, has_flush_share;
	enum conf_mode read_mode, write_mode;
	enum conf_edges edges;
	uint32_t direct_min;
	enum conf_stable stable_floor;
	bool torn_free;
	uint64_t dirty_max;   /* bytes */
	uint32_t flush_share; /* percent */
};

#define CONF_HOST_BYTES 256u

struct conf {
	/* [nfsd] */
	char **hosts; /* listen addresses (host=, repeated or comma list) */
	unsigned host_count;
	uint16_t port;    /* 2049; 0 takes a free one */
	bool udp;         /* NFS too, not only what always is */
	unsigned threads; /* reactors; 0: one a core */
	bool sqpoll, iopoll;
	unsigned sqpoll_idle_ms; /* 0: default */
	unsigned busy_poll_us;   /* 0: none */
	unsigned stop_timeout_s; /* 0: default */
	struct conf_policy policy;
	/* [mountd] */
	bool has_mount_port;
	uint16_t mount_port;
	bool manage_gids;
	/* [lockd] */
	bool has_lockd_port;
	uint16_t lockd_port;
	unsigned grace_s;
	/* [limits] */
	unsigned connections;          /* 0: default */
	unsigned calls_per_connection; /* 0: default */
	uint64_t buffer_memory;        /* bytes, 0: default */
	unsigned open_files;           /* 0: default */
	/* [metrics] */
	bool has_metrics;
	char metrics_host[CONF_HOST_BYTES]; /* "": any */
	uint16_t metrics_port;
	/* [log] */
	enum conf_log_level level;
};

#define CONF_THREADS_MAX 256u
#define CONF_GRACE_S     45u /* default */

/*
 * words.c: set the part of p that is called name (read-mode, write-mode, edges,
 * direct-min, stable-floor...). -ENOENT: no such part; -EINVAL: why holds the
 * reason.
 */
#define CONF_REASON_BYTES 256
int conf_policy_set(struct conf_policy *p, const char *name, const char *value,
		    char why[CONF_REASON_BYTES]);
/* The name of part i, NULL behind the last. */
const char *conf_policy_name(unsigned i);

void conf_init(struct conf *c); /* defaults */
/* 0; -EINVAL with the reasons in r (c is then untouched); -errno when the file
 * cannot be read (also in r). A missing file is -ENOENT and no message. */
int conf_read(struct conf *c, const char *path, struct conf_report *r);
/* Same, from memory; name stands in the messages. */
int conf_parse(struct conf *c, const char *text, size_t n, const char *name,
	       struct conf_report *r);
void conf_fini(struct conf *c);
/* Normal form: a file that reads back as the same. */
void conf_print(const struct conf *c, FILE *out);

/* exports.c: exports(5) ------------------------------------------------------
 */

enum conf_client_kind {
	CONF_CLIENT_ANY,      /* * or none given */
	CONF_CLIENT_HOST,     /* name, or one address */
	CONF_CLIENT_NETWORK,  /* address/prefix or address/netmask */
	CONF_CLIENT_WILDCARD, /* *.example.org, with ? and [] */
	CONF_CLIENT_NETGROUP  /* @name */
};

struct conf_client_match {
	enum conf_client_kind kind;
	char *text;       /* as written */
	int family;       /* AF_INET, AF_INET6 for addresses; else 0 */
	uint8_t addr[16]; /* network order; masked for networks */
	unsigned prefix;  /* bits */
};

enum conf_fsid_kind {
	CONF_FSID_NONE,
	CONF_FSID_NUMBER,
	CONF_FSID_ROOT,
	CONF_FSID_UUID
};

struct conf_export_options {
	bool rw;                      /* default false, as exports(5) */
	bool sync;                    /* default true */
	bool root_squash, all_squash; /* default true, false */
	bool secure;                  /* default true */
	bool subtree_check;           /* accepted, warned, not enforced */
	bool acl;                     /* no_acl clears it */
	bool auth_nlm;                /* default true; no_auth_nlm */
	uint32_t anonuid, anongid;    /* default 65534 */
	enum conf_fsid_kind fsid_kind;
	uint32_t fsid_number;
	uint8_t fsid_uuid[16];
	bool has_mountpoint;
	char *mountpoint; /* NULL: the export's own path */
	struct conf_policy policy;
};

struct conf_client {
	struct conf_client_match match;
	struct conf_export_options options;
	const char *file; /* owned by the table */
	unsigned line;
};

/* One path; lines that repeat a path are joined. What belongs to the directory
 * and not to a client (fsid, mountpoint, policy) is the same in all clients of
 * a path: said by one it holds for all, said differently by two it is an error.
 */
struct conf_export {
	char *path; /* absolute, unescaped, no trailing slash (but "/") */
	struct conf_client *clients; /* most specific kind first: host, network
					by longer prefix, wildcard, netgroup,
					any; else in order */
	unsigned client_count;
	const char *file; /* where it was first named; owned by the table */
	unsigned line;
};

struct conf_exports {
	struct conf_export *exports; /* sorted by path */
	unsigned count;
	char **files; /* names for the messages */
	unsigned file_count;
};

/* Read path, then dir/\*.exports in sorted order (dir NULL: none; a missing dir
 * or file is empty), then the lines of extra (the --export arguments, named
 * "--export" in messages). 0, or -EINVAL/-errno with the reasons in r and *ret
 * untouched; warnings may be in r with 0 too. */
int conf_exports_read(struct conf_exports *ret, const char *path,
		      const char *dir, char *const *extra, unsigned extras,
		      struct conf_report *r);
int conf_exports_parse(struct conf_exports *ret, const char *text, size_t n,
		       const char *name, struct conf_report *r);
void conf_exports_fini(struct conf_exports *e);
void conf_exports_print(const struct conf_exports *e, FILE *out);

/* match.c: does a client match?
 * ------------------------------------------------ */

/* addr is AF_INET or AF_INET6 (an IPv4-mapped one counts as IPv4). For ANY,
 * NETWORK and HOST given as an address: 1 or 0, without a look-up. -EAGAIN: a
 * name is needed, see conf_match_names. */
int conf_match_addr(const struct conf_client_match *m,
		    const struct sockaddr *addr);
/* Blocks (resolver, netgroups): the whole answer, 1 or 0. */
int conf_match_names(const struct conf_client_match *m,
		     const struct sockaddr *addr);

#endif
