/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: a fresh file system on a loop device over a tmpfs of a given size,
 * in a mount namespace of the test's own. All of it is gone when the process
 * is: the loop device clears itself with its last user, and the namespace takes
 * the mounts along. Needs root; where something is refused it says why.
 */
#ifndef NVNFSD_TESTS_LOOP_FS_H
#define NVNFSD_TESTS_LOOP_FS_H

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct loop_fs {
	char base[64]; /* tmpfs: holds img and mnt */
	char image[96];
	char mount[96];  /* the file system */
	char device[32]; /* /dev/loopN */
	const char *kind;
	int keep; /* descriptor of the device, or -1 */
};

static inline int
run_quietly(const char *const argv[])
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		(void)dup2(null, 1);
		(void)dup2(null, 2);
		execvp(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline const char *
own_mounts(void)
{
	static bool done;

	if (done)
		return NULL;
	if (unshare(CLONE_NEWNS) != 0)
		return "no mount namespace of its own (not root?)";
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return "mounts cannot be made private";
	done = true;
	return NULL;
}

static inline const char *
loop_attach(struct loop_fs *fs, uint32_t block_bytes)
{
	struct loop_config c = { .block_size = block_bytes };
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int image = open(fs->image, O_RDWR | O_CLOEXEC);
	const char *why = NULL;
	int loop = -1;

	if (control < 0)
		why = "no /dev/loop-control";
	for (int tries = 0; why == NULL && loop < 0; tries++) {
		int n = ioctl(control, LOOP_CTL_GET_FREE);

		(void)snprintf(fs->device, sizeof(fs->device), "/dev/loop%d",
			       n);
		loop = n < 0 ? -1 : open(fs->device, O_RDWR | O_CLOEXEC);
		if (loop < 0) {
			why = "no free loop device";
			break;
		}
		c.fd = (uint32_t)image;
		c.info.lo_flags = LO_FLAGS_AUTOCLEAR;
		if (ioctl(loop, LOOP_CONFIGURE, &c) == 0)
			break;
		close(loop); /* another process took it */
		loop = -1;
		if (errno != EBUSY || tries == 50)
			why = "the loop device cannot be set up";
	}
	if (control >= 0)
		close(control);
	if (image >= 0)
		close(image);
	fs->keep = loop; /* unmounted, it would clear itself */
	return why;
}

/* The largest request, in KiB, "" for what it was made with. */
static inline bool
loop_request_kb(const struct loop_fs *fs, const char *kb)
{
	char path[80], most[32] = "";
	FILE *f;
	bool done;

	(void)snprintf(path, sizeof(path),
		       "/sys/block/%.16s/queue/max_hw_sectors_kb",
		       fs->device + 5);
	f = kb[0] == '\0' ? fopen(path, "re") : NULL;
	if (f != NULL) {
		if (fgets(most, sizeof(most), f) != NULL)
			kb = most;
		(void)fclose(f);
	}
	(void)snprintf(path, sizeof(path),
		       "/sys/block/%.16s/queue/max_sectors_kb", fs->device + 5);
	f = fopen(path, "we");
	if (f == NULL)
		return false;
	done = fputs(kb, f) >= 0;
	return fclose(f) == 0 && done;
}

/* No request is larger than a page. The loop driver takes a write that its
 * backing file system cut short for a good one; such a write cannot be. */
static inline bool
loop_one_page_at_a_time(const struct loop_fs *fs)
{
	return loop_request_kb(fs, "4");
}

/* The limit of its requests would stay with the device, whoever is next. */
static inline void
loop_release(struct loop_fs *fs)
{
	if (fs->keep >= 0) {
		(void)loop_request_kb(fs, "");
		close(fs->keep);
	}
	fs->keep = -1;
}

static inline const char *
loop_mkfs(const struct loop_fs *fs)
{
	const char *xfs[] = { "mkfs.xfs", "-q", "-f", fs->device, NULL };
	const char *ext4[] = { "mkfs.ext4", "-q", "-F", fs->device, NULL };
	const char *btrfs[] = { "mkfs.btrfs", "-q", "-f", fs->device, NULL };
	const char *const *argv = fs->kind[0] == 'x'   ? xfs
				  : fs->kind[0] == 'e' ? ext4
						       : btrfs;

	return run_quietly(argv) == 0 ? NULL : "mkfs failed";
}

static inline const char *
loop_fs_mount(const struct loop_fs *fs)
{
	return mount(fs->device, fs->mount, fs->kind, 0, NULL) == 0
		       ? NULL
		       : "the file system cannot be mounted";
}

/* NULL, or why not. image_bytes is what the device claims to have, tmpfs_bytes
 * what there really is. */
static inline const char *
loop_fs_make(struct loop_fs *fs, const char *kind, uint32_t block_bytes,
	     uint64_t image_bytes, uint64_t tmpfs_bytes)
{
	const char *why = own_mounts();
	char options[64];
	int fd;

	*fs = (struct loop_fs){ .kind = kind, .keep = -1 };
	if (why != NULL)
		return why;
	strcpy(fs->base, "/tmp/nvtest.XXXXXX");
	if (mkdtemp(fs->base) == NULL)
		return "no directory in /tmp";
	(void)snprintf(options, sizeof(options), "size=%llu",
		       (unsigned long long)tmpfs_bytes);
	if (mount("none", fs->base, "tmpfs", 0, options) != 0)
		return "no tmpfs";
	(void)snprintf(fs->image, sizeof(fs->image), "%s/img", fs->base);
	(void)snprintf(fs->mount, sizeof(fs->mount), "%s/mnt", fs->base);
	fd = open(fs->image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)image_bytes) != 0 ||
	    mkdir(fs->mount, 0755) != 0)
		return "no image";
	close(fd);
	why = loop_attach(fs, block_bytes);
	if (why == NULL)
		why = loop_mkfs(fs);
	if (why == NULL)
		why = loop_fs_mount(fs);
	return why;
}

static inline void
loop_fs_remove(struct loop_fs *fs)
{
	if (fs->mount[0] != '\0')
		(void)umount2(fs->mount, MNT_DETACH);
	loop_release(fs);
	if (fs->base[0] != '\0') {
		(void)umount2(fs->base, MNT_DETACH);
		(void)rmdir(fs->base);
	}
	*fs = (struct loop_fs){ .keep = -1 };
}

enum loop_count { LOOP_SECTORS_READ = 2, LOOP_SECTORS_WRITTEN = 6 };

/* A column of the device's stat file (Documentation/block/stat.rst). */
static inline uint64_t
loop_count(const struct loop_fs *fs, enum loop_count column)
{
	unsigned long long n = 0;
	char path[64];
	FILE *f;

	(void)snprintf(path, sizeof(path), "/sys/block/%.16s/stat",
		       fs->device + 5);
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	for (int i = 0; i <= (int)column; i++)
		if (fscanf(f, "%llu", &n) != 1)
			n = 0;
	(void)fclose(f);
	return n;
}

#endif
