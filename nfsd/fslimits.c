/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of a file system that statfs(2) does not tell, for FSINFO and PATHCONF
 * (RFC 1813, 3.3.19, 3.3.20): the largest file, the grain of its times, links
 * to a file.
 *
 * The first two are asked of the file system itself, with an unlinked temporary
 * file: lseek(2) goes exactly as far as a file may, and a time that was set
 * reads back rounded. Where none can be made (read-only, full), and for links,
 * a table by type serves. What was asked is remembered for the life of the
 * process by device, type and block size, so that a client that repeats FSINFO
 * makes no more files. Workers only.
 */
#include "nfsd/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <unistd.h>

#define SECOND_NS           1000000000u
#define XFS_TYPE            0x58465342u
#define F2FS_TYPE           0xF2F52010u
#define EXFAT_TYPE          0x2011BAB0u
#define EXT4_LINK_MAX       65000u /* ext2 and ext3 are served by it too */
#define BTRFS_LINK_MAX      65535u
#define LINK_MAX_UNKNOWN    127u /* LINUX_LINK_MAX */
#define FSLIMITS_REMEMBERED 32u

struct probed {
	uint32_t dev_major, dev_minor;
	uint64_t fs_type;
	uint32_t block_bytes;
	uint64_t file_bytes_max;
	uint32_t time_grain_ns;
};

/* A ring: the oldest is forgotten. Guarded by its lock, which is a leaf. */
static struct {
	pthread_mutex_t lock;
	struct probed entry[FSLIMITS_REMEMBERED];
	unsigned next;
} memory = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool
same_fs(const struct probed *a, const struct probed *b)
{
	return a->dev_major == b->dev_major && a->dev_minor == b->dev_minor &&
	       a->fs_type == b->fs_type && a->block_bytes == b->block_bytes;
}

static bool
memory_recall(struct probed *p)
{
	bool found = false;
	unsigned i;

	(void)pthread_mutex_lock(&memory.lock);
	for (i = 0; i < FSLIMITS_REMEMBERED && !found; i++) {
		found = same_fs(&memory.entry[i], p);
		if (found)
			*p = memory.entry[i];
	}
	(void)pthread_mutex_unlock(&memory.lock);
	return found;
}

static void
memory_keep(const struct probed *p)
{
	(void)pthread_mutex_lock(&memory.lock);
	memory.entry[memory.next] = *p;
	memory.next = (memory.next + 1) % FSLIMITS_REMEMBERED;
	(void)pthread_mutex_unlock(&memory.lock);
}

/* The largest offset that lseek takes is the largest size. */
static uint64_t
probe_file_bytes(int fd)
{
	uint64_t low = 0, high = INT64_MAX, mid;

	if (lseek(fd, INT64_MAX, SEEK_SET) == INT64_MAX)
		return INT64_MAX;
	while (high - low > 1) {
		mid = low + (high - low) / 2;
		if (lseek(fd, (off_t)mid, SEEK_SET) < 0)
			high = mid;
		else
			low = mid;
	}
	return low;
}

/* The last ns of a second, rounded down to a multiple of the grain. */
static uint32_t
probe_time_grain(int fd)
{
	const struct timespec last = { .tv_sec = 2, .tv_nsec = SECOND_NS - 1 };
	const struct timespec times[2] = { last, last };
	struct statx st;

	if (futimens(fd, times) < 0 || nfs3_statx(fd, &st))
		return 1;
	return SECOND_NS - st.stx_mtime.tv_nsec;
}

static bool
probe(const struct object *o, struct probed *p)
{
	int fd = openat(volume_root_fd(o->access.volume), ".",
			O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	if (fd < 0)
		return false;
	p->file_bytes_max = probe_file_bytes(fd);
	p->time_grain_ns = probe_time_grain(fd);
	(void)close(fd);
	return true;
}

static uint64_t
table_file_bytes(const struct volume_facts *facts)
{
	switch (facts->fs_type) {
	case EXT4_SUPER_MAGIC: /* 32-bit block numbers in extents */
		return (uint64_t)UINT32_MAX * facts->block_bytes;
	case F2FS_TYPE: /* direct, indirect and doubly indirect nodes */
		return 3ull << 40;
	default: /* XFS, btrfs, tmpfs: as far as off_t goes */
		return INT64_MAX;
	}
}

static uint32_t
table_link_max(uint64_t fs_type, int fd)
{
	long n;

	switch (fs_type) {
	case EXT4_SUPER_MAGIC:
		return EXT4_LINK_MAX;
	case XFS_TYPE:
		return INT32_MAX;
	case BTRFS_SUPER_MAGIC:
		return BTRFS_LINK_MAX;
	case F2FS_TYPE:
	case TMPFS_MAGIC:
		return UINT32_MAX;
	default:
		n = fpathconf(fd, _PC_LINK_MAX);
		return n > 0 && n <= UINT32_MAX ? (uint32_t)n
						: LINK_MAX_UNKNOWN;
	}
}

void
fslimits_get(const struct object *o, struct fslimits *ret)
{
	const struct volume_facts *facts = volume_facts(o->access.volume);
	struct probed p = { .dev_major = o->st.stx_dev_major,
			    .dev_minor = o->st.stx_dev_minor,
			    .fs_type = facts->fs_type,
			    .block_bytes = facts->block_bytes };

	if (!memory_recall(&p)) {
		if (!volume_read_only(o->access.volume) && probe(o, &p)) {
			memory_keep(&p);
		} else {
			p.file_bytes_max = table_file_bytes(facts);
			p.time_grain_ns = 1;
		}
	}
	ret->file_bytes_max = p.file_bytes_max;
	ret->time_grain_ns = p.time_grain_ns;
	ret->link_max = table_link_max(facts->fs_type, o->fd);
	ret->case_insensitive = facts->fs_type == MSDOS_SUPER_MAGIC ||
				facts->fs_type == EXFAT_TYPE;
}
