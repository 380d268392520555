/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NFSv3, MOUNT and NLM bytes made by libnfs's generated codecs, to hold ours
 * against. Its headers and ours give the same names to the same protocol, so
 * the two sides meet in a struct sample that belongs to neither: it holds every
 * value that a call or a reply may carry. zdr_peer.c, zdr_mount.c and
 * zdr_nlm.c know libnfs; the tests know nfsd/nfs3.h.
 */
#ifndef NVNFSD_ZDR_PEER_H
#define NVNFSD_ZDR_PEER_H

#include <stdbool.h>
#include <stdint.h>

struct sample_time {
	uint32_t s, ns;
};
struct sample_attr {
	bool follows;
	uint32_t type, mode, nlink, uid, gid, major, minor;
	uint64_t size, used, fsid, fileid;
	struct sample_time atime, mtime, ctime;
};
struct sample_pre {
	bool follows;
	uint64_t size;
	struct sample_time mtime, ctime;
};
struct sample_wcc {
	struct sample_pre before;
	struct sample_attr after;
};
struct sample_sattr {
	bool set_mode, set_uid, set_gid, set_size;
	uint32_t mode, uid, gid;
	uint64_t size;
	uint32_t atime_how, mtime_how;
	struct sample_time atime, mtime;
};
struct sample_fh {
	bool follows;
	uint32_t bytes;
	uint8_t data[64];
};

struct sample {
	struct sample_fh fh, fh2;
	char name[256], name2[256], path[1025]; /* strings, without NUL */
	struct sample_sattr sattr;
	struct sample_attr attr, attr2;
	struct sample_wcc wcc, wcc2;
	struct sample_time time;
	bool flag[4];
	uint32_t u32[8];
	uint64_t u64[6];
	uint8_t verf[8];
	uint32_t stable, createmode, mktype;
	uint32_t data_bytes; /* of data */
	uint8_t data[32];
};

/* Everything random; and everything there is at its longest. */
void sample_random(struct sample *s, unsigned seed);
void sample_largest(struct sample *s);

/* Arguments or results of NFS procedure proc (0 to 21), as libnfs encodes them:
 * their length. Aborts when libnfs cannot. */
uint32_t peer_args(unsigned proc, const struct sample *s, uint8_t *out,
		   uint32_t room);
uint32_t peer_res(unsigned proc, uint32_t status, const struct sample *s,
		  uint8_t *out, uint32_t room);
/* libnfs decodes all n bytes as results of proc and encodes them again to the
 * same. */
bool peer_res_reads(unsigned proc, const uint8_t *in, uint32_t n);

/* MOUNT: dirpath; mountres3; a mountlist and an exports list of n nodes each
 * made from s (in EXPORT, node i has i groups). */
uint32_t peer_mount_path(const struct sample *s, uint8_t *out, uint32_t room);
uint32_t peer_mount_mnt(uint32_t status, const struct sample *s, uint8_t *out,
			uint32_t room);
uint32_t peer_mount_dump(const struct sample *s, unsigned n, uint8_t *out,
			 uint32_t room);
uint32_t peer_mount_export(const struct sample *s, unsigned n, uint8_t *out,
			   uint32_t room);
/* libnfs's decoder takes them all: mountres1, mountlist, exports. */
bool peer_mount1_mnt_reads(const uint8_t *in, uint32_t n, uint32_t *status);
bool peer_mount_dump_reads(const uint8_t *in, uint32_t n);
bool peer_mount_export_reads(const uint8_t *in, uint32_t n);

/* NLM: cookie is verf, exclusive, block and reclaim are flag[0] to [2], the
 * caller is name, oh name2, svid and state u32[0] and [1], offset and length
 * u64[0] and [1]. */
enum peer_nlm {
	PEER_NLM_TEST, /* and GRANTED */
	PEER_NLM_LOCK,
	PEER_NLM_CANCEL,
	PEER_NLM_UNLOCK
};
uint32_t peer_nlm_args(enum peer_nlm what, const struct sample *s, uint8_t *out,
		       uint32_t room);
uint32_t peer_nlm_res(uint32_t stat, const struct sample *s, uint8_t *out,
		      uint32_t room);
uint32_t peer_nlm_test_res(uint32_t stat, const struct sample *s, uint8_t *out,
			   uint32_t room);

#endif
