/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File handles: what was encoded comes back, nothing else is taken (every bit
 * turned, every length), real handles open what they name, and the key is made
 * once and never replaced.
 */
#include "nfsd/nfsd.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const uint8_t key[FH_KEY_BYTES] = "0123456789abcde";

static struct fh
sample(uint32_t bytes)
{
	struct fh fh = { .export_id = 0x0123456789abcdefu,
			 .type = 0x81,
			 .bytes = bytes };

	for (uint32_t i = 0; i < bytes; i++)
		fh.data[i] = (uint8_t)(0xa0 + i);
	return fh;
}

static void
round_trip(void **state)
{
	for (uint32_t n = 1; n <= IO_HANDLE_BYTES_MAX; n++) {
		struct fh in = sample(n), out;
		struct nfs_fh3 wire;

		fh_encode(key, &in, &wire);
		assert_int_equal(wire.bytes, 12 + n + 8);
		assert_true(wire.bytes <= 56);
		assert_true(fh_decode(key, &wire, &out));
		assert_int_equal(out.type, in.type);
		assert_int_equal(out.bytes, in.bytes);
		assert_true(out.export_id == in.export_id);
		assert_memory_equal(out.data, in.data, sizeof(in.data));
	}
}

/* The layout is a promise: clients keep handles over an upgrade. The hash is
 * OpenSSL's (openssl mac -macopt size:8 SIPHASH), not libsodium's. */
static void
layout(void **state)
{
	static const uint8_t expected[] = {
		0x01, 0x04, 0x00, 0x81, 0x01, 0x23, 0x45, 0x67,
		0x89, 0xab, 0xcd, 0xef, 0xa0, 0xa1, 0xa2, 0xa3,
	};
	static const uint8_t mac[] = { 0x94, 0x8b, 0xb2, 0xae,
				       0xe2, 0x80, 0xea, 0x12 };
	struct fh in = sample(4);
	struct nfs_fh3 wire;

	fh_encode(key, &in, &wire);
	assert_int_equal(wire.bytes, sizeof(expected) + sizeof(mac));
	assert_memory_equal(wire.data, expected, sizeof(expected));
	assert_memory_equal(wire.data + sizeof(expected), mac, sizeof(mac));
}

static void
every_bit_counts(void **state)
{
	struct fh in = sample(20), out;
	struct nfs_fh3 wire;

	fh_encode(key, &in, &wire);
	for (uint32_t bit = 0; bit < wire.bytes * 8; bit++) {
		wire.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_false(fh_decode(key, &wire, &out));
		wire.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_true(fh_decode(key, &wire, &out));
}

static void
every_length_counts(void **state)
{
	for (uint32_t n = 1; n <= IO_HANDLE_BYTES_MAX; n++) {
		struct fh in = sample(n), out;
		struct nfs_fh3 wire = { 0 };
		uint32_t bytes;

		fh_encode(key, &in, &wire);
		bytes = wire.bytes;
		for (uint32_t other = 0; other <= NFS3_FHSIZE + 1; other++) {
			wire.bytes = other;
			assert_int_equal(fh_decode(key, &wire, &out),
					 other == bytes);
		}
		wire.bytes = UINT32_MAX;
		assert_false(fh_decode(key, &wire, &out));
	}
}

static void
another_key(void **state)
{
	uint8_t other[FH_KEY_BYTES];
	struct fh in = sample(8), out;
	struct nfs_fh3 wire;

	memcpy(other, key, sizeof(other));
	other[15] ^= 1;
	fh_encode(other, &in, &wire);
	assert_false(fh_decode(key, &wire, &out));
}

/* In a directory of its own -------------------------------------------- */

struct place {
	char path[32];
	int fd;
};

static int
place_setup(void **state)
{
	static struct place p;

	strcpy(p.path, "/var/tmp/test_fh.XXXXXX");
	if (!mkdtemp(p.path))
		return -1;
	p.fd = open(p.path, O_RDONLY | O_DIRECTORY);
	*state = &p;
	return p.fd < 0 ? -1 : 0;
}

static int
place_teardown(void **state)
{
	struct place *p = *state;

	unlinkat(p->fd, "fh.key", 0);
	unlinkat(p->fd, "file", 0);
	unlinkat(p->fd, "link", 0);
	close(p->fd);
	return rmdir(p->path);
}

static void
kernel_handles(void **state)
{
	struct place *p = *state;
	int fd = openat(p->fd, "file", O_CREAT | O_EXCL | O_RDWR, 0600), path;
	struct fh by_fd = { 0 }, by_name = { 0 }, by_path = { 0 }, link;
	struct stat a, b;

	assert_true(fd >= 0);
	path = openat(p->fd, "file", O_PATH);
	assert_int_equal(fh_from_fd(&by_fd, fd, NULL), 0);
	assert_int_equal(fh_from_fd(&by_path, path, NULL), 0);
	assert_int_equal(fh_from_fd(&by_name, p->fd, "file"), 0);
	assert_memory_equal(&by_fd, &by_name, sizeof(by_fd));
	assert_memory_equal(&by_fd, &by_path, sizeof(by_fd));
	assert_int_equal(fh_from_fd(&by_name, p->fd, "none"), -ENOENT);
	close(path);

	path = fh_open(&by_fd, p->fd, O_PATH);
	assert_true(path >= 0);
	assert_int_equal(fstat(fd, &a), 0);
	assert_int_equal(fstat(path, &b), 0);
	assert_true(a.st_ino == b.st_ino && a.st_dev == b.st_dev);
	assert_int_equal(fcntl(path, F_GETFD), FD_CLOEXEC);
	close(path);

	/* a symlink's own handle, not its target's */
	assert_int_equal(symlinkat("file", p->fd, "link"), 0);
	assert_int_equal(fh_from_fd(&link, p->fd, "link"), 0);
	path = fh_open(&link, p->fd, O_PATH);
	assert_true(path >= 0);
	assert_int_equal(fstat(path, &b), 0);
	assert_true(S_ISLNK(b.st_mode));
	close(path);

	/* gone, and nobody holds it */
	assert_int_equal(unlinkat(p->fd, "file", 0), 0);
	close(fd);
	assert_int_equal(fh_open(&by_fd, p->fd, O_PATH), -ESTALE);
}

static void
no_handles(void **state)
{
	int fd = open("/proc/self", O_PATH);
	struct fh fh;

	assert_true(fd >= 0);
	assert_int_equal(fh_from_fd(&fh, fd, NULL), -EOPNOTSUPP);
	close(fd);
}

static void
key_is_made_once(void **state)
{
	static const uint8_t zero[FH_KEY_BYTES];
	struct place *p = *state;
	uint8_t first[FH_KEY_BYTES], again[FH_KEY_BYTES];
	struct stat st;
	mode_t mask = umask(0);

	assert_int_equal(fh_key_load(p->fd, first), 0);
	umask(mask);
	assert_int_equal(fstatat(p->fd, "fh.key", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, FH_KEY_BYTES);
	assert_memory_not_equal(first, zero, sizeof(first));
	assert_int_equal(fh_key_load(p->fd, again), 0);
	assert_memory_equal(first, again, sizeof(first));
	assert_int_equal(faccessat(p->fd, "fh.key.new", F_OK, 0), -1);

	/* another one, elsewhere */
	assert_int_equal(unlinkat(p->fd, "fh.key", 0), 0);
	assert_int_equal(fh_key_load(p->fd, again), 0);
	assert_memory_not_equal(first, again, sizeof(first));
}

static void
key_that_is_none(void **state)
{
	struct place *p = *state;
	uint8_t k[FH_KEY_BYTES];
	int fd;

	for (unsigned n = 0; n <= FH_KEY_BYTES + 1; n++) {
		fd = openat(p->fd, "fh.key", O_CREAT | O_TRUNC | O_WRONLY,
			    0600);
		assert_true(fd >= 0);
		assert_int_equal(write(fd, "0123456789abcdefg", n), n);
		close(fd);
		assert_int_equal(fh_key_load(p->fd, k),
				 n == FH_KEY_BYTES ? 0 : -EBADMSG);
	}
	assert_int_equal(unlinkat(p->fd, "fh.key", 0), 0);
	assert_int_equal(symlinkat("/etc/hostname", p->fd, "fh.key"), 0);
	assert_int_equal(fh_key_load(p->fd, k), -ELOOP);
	assert_int_equal(unlinkat(p->fd, "fh.key", 0), 0);
}

/* A crash while the key was written leaves a part under another name. */
static void
key_after_a_crash(void **state)
{
	struct place *p = *state;
	uint8_t k[FH_KEY_BYTES];
	int fd = openat(p->fd, "fh.key.new", O_CREAT | O_WRONLY, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "0123", 4), 4);
	close(fd);
	assert_int_equal(fh_key_load(p->fd, k), 0);
	assert_int_equal(faccessat(p->fd, "fh.key.new", F_OK, 0), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(layout),
		cmocka_unit_test(every_bit_counts),
		cmocka_unit_test(every_length_counts),
		cmocka_unit_test(another_key),
		cmocka_unit_test_setup_teardown(kernel_handles, place_setup,
						place_teardown),
		cmocka_unit_test(no_handles),
		cmocka_unit_test_setup_teardown(key_is_made_once, place_setup,
						place_teardown),
		cmocka_unit_test_setup_teardown(key_that_is_none, place_setup,
						place_teardown),
		cmocka_unit_test_setup_teardown(key_after_a_crash, place_setup,
						place_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
