/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File handles. On the wire (RFC 1813, 2.3.3: opaque, at most 64 bytes):
 *
 *	0	1	version, 1
 *	1	1	n, bytes of the kernel's handle, 1..36
 *	2	2	the kernel's handle type, big-endian
 *	4	8	export id, big-endian
 *	12	n	the kernel's handle, as it is
 *	12+n	8	SipHash-2-4 of all that stands before it
 *
 * The hash's key is kept in the state directory: handles survive a restart of
 * the server and cannot be made by a client. The mount id of
 * name_to_handle_at(2) is left out: it changes with every mount.
 *
 * No object, any thread.
 */
#include "nfsd/nfsd.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define VERSION    1u
#define HEAD_BYTES 12u
#define MAC_BYTES  8u
#define KEY_NAME   "fh.key"
#define KEY_TMP    "fh.key.new"

static_assert(HEAD_BYTES + IO_HANDLE_BYTES_MAX + MAC_BYTES <= 56,
	      "the longest handle is 56 bytes");
static_assert(56 <= NFS3_FHSIZE, "and fits");
static_assert(MAC_BYTES == crypto_shorthash_BYTES, "SipHash-2-4");
static_assert(FH_KEY_BYTES == crypto_shorthash_KEYBYTES, "SipHash-2-4");
static_assert(sizeof(((struct nfs_fh3 *)0)->data) == NFS3_FHSIZE, "wire");

/* wire ---------------------------------------------------------------- */

void
fh_encode(const uint8_t key[FH_KEY_BYTES], const struct fh *fh,
	  struct nfs_fh3 *wire)
{
	uint16_t type = htobe16((uint16_t)fh->type);
	uint64_t id = htobe64(fh->export_id);
	uint32_t n = HEAD_BYTES + fh->bytes;

	assert(fh->bytes >= 1 && fh->bytes <= IO_HANDLE_BYTES_MAX);
	assert(fh->type >= 0 && fh->type <= UINT16_MAX);
	wire->data[0] = VERSION;
	wire->data[1] = (uint8_t)fh->bytes;
	memcpy(wire->data + 2, &type, sizeof(type));
	memcpy(wire->data + 4, &id, sizeof(id));
	memcpy(wire->data + HEAD_BYTES, fh->data, fh->bytes);
	crypto_shorthash(wire->data + n, wire->data, n, key);
	wire->bytes = n + MAC_BYTES;
}

static bool
wire_is_ours(const uint8_t key[FH_KEY_BYTES], const struct nfs_fh3 *wire)
{
	uint32_t n = wire->bytes - MAC_BYTES;
	uint8_t mac[MAC_BYTES];

	if (wire->bytes <= HEAD_BYTES + MAC_BYTES || wire->bytes > NFS3_FHSIZE)
		return false;
	if (wire->data[0] != VERSION || wire->data[1] != n - HEAD_BYTES ||
	    wire->data[1] > IO_HANDLE_BYTES_MAX)
		return false;
	crypto_shorthash(mac, wire->data, n, key);
	return sodium_memcmp(mac, wire->data + n, MAC_BYTES) == 0;
}

bool
fh_decode(const uint8_t key[FH_KEY_BYTES], const struct nfs_fh3 *wire,
	  struct fh *fh)
{
	uint16_t type;
	uint64_t id;

	if (!wire_is_ours(key, wire))
		return false;
	memset(fh, 0, sizeof(*fh));
	memcpy(&type, wire->data + 2, sizeof(type));
	memcpy(&id, wire->data + 4, sizeof(id));
	fh->type = be16toh(type);
	fh->export_id = be64toh(id);
	fh->bytes = wire->data[1];
	memcpy(fh->data, wire->data + HEAD_BYTES, fh->bytes);
	return true;
}

/* the kernel's -------------------------------------------------------- */

/* struct file_handle ends in a flexible array. */
union kernel_handle {
	struct file_handle h;
	uint8_t room[sizeof(struct file_handle) + IO_HANDLE_BYTES_MAX];
};

int
fh_from_fd(struct fh *fh, int fd, const char *name)
{
	union kernel_handle k = { .h.handle_bytes = IO_HANDLE_BYTES_MAX };
	int mount_id;

	if (name_to_handle_at(fd, name ? name : "", &k.h, &mount_id,
			      name ? 0 : AT_EMPTY_PATH) < 0)
		return errno == EOVERFLOW ? -EOPNOTSUPP : -errno;
	if (k.h.handle_bytes < 1 || k.h.handle_bytes > IO_HANDLE_BYTES_MAX ||
	    k.h.handle_type < 0 || k.h.handle_type > UINT16_MAX)
		return -EOPNOTSUPP;
	fh->type = k.h.handle_type;
	fh->bytes = k.h.handle_bytes;
	memset(fh->data, 0, sizeof(fh->data));
	memcpy(fh->data, k.h.f_handle, fh->bytes);
	return 0;
}

int
fh_open(const struct fh *fh, int mount_fd, int flags)
{
	union kernel_handle k = { .h.handle_bytes = fh->bytes,
				  .h.handle_type = fh->type };
	int fd;

	assert(fh->bytes <= IO_HANDLE_BYTES_MAX);
	memcpy(k.room + sizeof(k.h), fh->data, fh->bytes);
	fd = open_by_handle_at(mount_fd, &k.h, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* the key ------------------------------------------------------------- */

/* -ENOENT: there is none. A file that is no key is not replaced: with it go all
 * handles that clients hold, so that is for the operator to say. */
static int
key_read(int dir_fd, uint8_t key[FH_KEY_BYTES])
{
	uint8_t bytes[FH_KEY_BYTES + 1];
	int fd = openat(dir_fd, KEY_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, bytes, sizeof(bytes));
	if (n < 0)
		n = -errno;
	close(fd);
	if (n < 0)
		return (int)n;
	if (n != FH_KEY_BYTES)
		return -EBADMSG;
	memcpy(key, bytes, FH_KEY_BYTES);
	return 0;
}

static int
key_write_tmp(int dir_fd, const uint8_t key[FH_KEY_BYTES])
{
	int fd, r = 0;
	ssize_t n;

	/* Left by a crash; the directory is the server's alone. */
	(void)unlinkat(dir_fd, KEY_TMP, 0);
	fd = openat(dir_fd, KEY_TMP,
		    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	n = write(fd, key, FH_KEY_BYTES);
	if (n < 0 || fsync(fd) < 0)
		r = -errno;
	else if (n != FH_KEY_BYTES)
		r = -EIO;
	close(fd);
	return r;
}

/* Under its name only when whole and durable. */
static int
key_make(int dir_fd)
{
	uint8_t key[FH_KEY_BYTES];
	int r;

	if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key))
		return -EIO;
	r = key_write_tmp(dir_fd, key);
	if (r == 0 &&
	    renameat2(dir_fd, KEY_TMP, dir_fd, KEY_NAME, RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir_fd, KEY_TMP, 0);
	if (r == 0 && fsync(dir_fd) < 0)
		r = -errno;
	return r == -EEXIST ? 0 : r;
}

int
fh_key_load(int dir_fd, uint8_t key[FH_KEY_BYTES])
{
	int r = key_read(dir_fd, key);

	if (r != -ENOENT)
		return r;
	r = key_make(dir_fd);
	return r < 0 ? r : key_read(dir_fd, key);
}
