/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel of today has and Debian 12's headers (Linux 6.1) lack. The
 * numbers are the kernel's ABI: include/uapi/linux/fs.h and stat.h, statx(2),
 * pwritev2(2), cachestat(2). Whether the running kernel takes a flag is found
 * by trying.
 */
#ifndef NVNFSD_IO_COMPAT_H
#define NVNFSD_IO_COMPAT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef RWF_ATOMIC
#define RWF_ATOMIC 0x40
#endif
#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE 0x80
#endif

/* Busy polling of network devices by a ring (Linux 6.9): the number and the
 * struct of io_uring_register(2)'s IORING_REGISTER_NAPI. */
#define NAPI_REGISTER 27
struct napi_register {
	uint32_t busy_poll_us;
	uint8_t prefer;
	uint8_t zero[11];
};
static_assert(sizeof(struct napi_register) == 16, "struct io_uring_napi");

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

#define CACHESTAT_CALL 451

#ifndef STATX_DIOALIGN
#define STATX_DIOALIGN 0x2000u
#endif
#ifndef STATX_WRITE_ATOMIC
#define STATX_WRITE_ATOMIC 0x10000u
#endif
#ifndef STATX_DIO_READ_ALIGN
#define STATX_DIO_READ_ALIGN 0x20000u
#endif

/* How many pages of [offset, offset + bytes) are in the page cache; 0 also
 * where the kernel (before Linux 6.5) does not say. Does not block. */
static inline uint64_t
cached_pages(int fd, uint64_t offset, uint64_t bytes)
{
	const uint64_t range[2] = { offset, bytes };
	uint64_t stat[5]; /* cached, dirty, under write-back, evicted twice */

	return syscall(CACHESTAT_CALL, fd, range, stat, 0) == 0 ? stat[0] : 0;
}

/* Where the kernel puts what an older struct statx calls spare. */
enum statx_at {
	STATX_AT_DIO_MEM_ALIGN = 0x98,
	STATX_AT_DIO_OFFSET_ALIGN = 0x9c,
	STATX_AT_ATOMIC_UNIT_MIN = 0xa8,
	STATX_AT_ATOMIC_UNIT_MAX = 0xac,
	STATX_AT_ATOMIC_SEGMENTS_MAX = 0xb0,
	STATX_AT_DIO_READ_OFFSET_ALIGN = 0xb4
};

static_assert(sizeof(struct statx) == 0x100, "struct statx is ABI");
static_assert(offsetof(struct statx, stx_mnt_id) == 0x90, "struct statx ABI");

/* A 32-bit field of st; true only where the mask bit that covers it is set. */
static inline uint32_t
statx_u32(const struct statx *st, enum statx_at at)
{
	uint32_t v;

	memcpy(&v, (const char *)st + at, sizeof(v));
	return v;
}

#endif
