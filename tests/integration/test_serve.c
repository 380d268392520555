/* SPDX-License-Identifier: Apache-2.0 */
/* The whole path once: a client's calls through a server and back, over a stop,
 * a start and a kill. */
#include "harness.h"

#include <stdio.h>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void
fill(uint8_t *p, size_t n, uint32_t seed)
{
	size_t i;

	for (i = 0; i < n; i++)
		p[i] = (uint8_t)((i * 2654435761u + seed) >> 13);
}

static void
test_null(void **state)
{
	struct harness *h = harness_new(NULL);
	struct raw *r;

	harness_start(h);
	r = raw_connect(h->port);
	raw_call(r, 100003, 3, 0, NULL, NULL, NULL, NULL);
	assert_int_equal(r->in_bytes, 24);
	raw_call(r, 100005, 3, 0, NULL, NULL, NULL, NULL);
	raw_call(r, 100005, 1, 0, NULL, NULL, NULL, NULL);
	raw_close(r);
	harness_stop(h);
	harness_free(h);
}

static void
test_libnfs(void **state)
{
	struct harness *h = harness_new(NULL);
	struct nfs_context *nfs;
	struct nfs_stat_64 st;
	struct nfsfh *f;
	size_t n = 3000001;
	uint8_t *a = malloc(n), *b = malloc(n);
	size_t done;
	int rc;

	fill(a, n, 1);
	harness_start(h);
	nfs = harness_nfs(h, 0, 0);
	assert_int_equal(nfs_mkdir(nfs, "/d"), 0);
	assert_int_equal(nfs_creat(nfs, "/d/f", 0644, &f), 0);
	for (done = 0; done < n; done += (size_t)rc) {
		rc = nfs_pwrite(nfs, f, done,
				n - done < 300000 ? n - done : 300000,
				a + done);
		assert_true(rc > 0);
	}
	assert_int_equal(nfs_fsync(nfs, f), 0);
	assert_int_equal(nfs_close(nfs, f), 0);
	assert_int_equal(nfs_stat64(nfs, "/d/f", &st), 0);
	assert_int_equal(st.nfs_size, n);
	assert_int_equal(nfs_open(nfs, "/d/f", O_RDONLY, &f), 0);
	for (done = 0; done < n; done += (size_t)rc) {
		rc = nfs_pread(nfs, f, done, n - done, b + done);
		assert_true(rc > 0);
	}
	assert_memory_equal(a, b, n);
	nfs_close(nfs, f);
	assert_int_equal(nfs_rename(nfs, "/d/f", "/d/g"), 0);
	assert_int_equal(nfs_unlink(nfs, "/d/g"), 0);
	assert_int_equal(nfs_rmdir(nfs, "/d"), 0);
	nfs_destroy_context(nfs);
	harness_stop(h);
	harness_free(h);
	free(a);
	free(b);
}

static void
check_read(struct raw *r, const struct raw_fh *fh, uint64_t offset,
	   const uint8_t *want, uint32_t n)
{
	READ3res res;

	assert_int_equal(raw_read(r, fh, offset, n, &res), NFS3_OK);
	assert_int_equal(res.READ3res_u.resok.count, n);
	assert_int_equal(res.READ3res_u.resok.data.data_len, n);
	assert_memory_equal(res.READ3res_u.resok.data.data_val, want, n);
}

static void
verf_of(struct raw *r, const struct raw_fh *fh, uint8_t verf[8])
{
	COMMIT3res res;

	assert_int_equal(raw_commit(r, fh, &res), NFS3_OK);
	memcpy(verf, res.COMMIT3res_u.resok.verf, 8);
}

/* Handles outlive the server; the verifier outlives a clean stop only. */
static void
restart(const char *engine, const char *clients)
{
	struct harness *h = harness_new(NULL);
	uint8_t data[70000], v1[8], v2[8], v3[8];
	struct raw_fh root, fh;
	WRITE3res w;
	struct raw *r;

	if (clients != NULL)
		(void)snprintf(h->client, sizeof(h->client), "%s", clients);
	harness_arg(h, "--engine");
	harness_arg(h, engine);
	fill(data, sizeof(data), 7);
	harness_start(h);
	r = raw_connect(h->port);
	assert_int_equal(raw_mount(r, h->export, &root), 0);
	raw_create(r, &root, "f", 0644, &fh);
	assert_int_equal(
		raw_write(r, &fh, 1001, data, sizeof(data), UNSTABLE, &w),
		NFS3_OK);
	assert_int_equal(w.WRITE3res_u.resok.count, sizeof(data));
	verf_of(r, &fh, v1);
	assert_memory_equal(w.WRITE3res_u.resok.verf, v1, 8);
	raw_close(r);
	harness_stop(h);

	harness_start(h);
	r = raw_connect(h->port);
	check_read(r, &fh, 1001, data, sizeof(data));
	verf_of(r, &fh, v2);
	assert_memory_equal(v1, v2, 8);
	assert_int_equal(raw_write(r, &fh, 5, data, 100, FILE_SYNC, &w),
			 NFS3_OK);
	assert_int_equal(w.WRITE3res_u.resok.committed, FILE_SYNC);
	raw_close(r);
	harness_kill(h);

	harness_start(h);
	r = raw_connect(h->port);
	verf_of(r, &fh, v3);
	assert_memory_not_equal(v1, v3, 8);
	check_read(r, &fh, 5, data, 100);
	raw_close(r);
	harness_stop(h);
	harness_free(h);
}

static void
test_restart_uring(void **state)
{
	restart("uring", NULL);
	/* With a read-only mount beside the other. */
	restart("uring", "127.0.0.1(rw,no_root_squash,insecure) "
			 "127.0.0.2(ro,insecure)");
}

static void
test_restart_threads(void **state)
{
	restart("threads", NULL);
}

static void
test_no_rights(void **state)
{
	struct harness *h = harness_new("ro,insecure");
	struct raw_fh root, fh;
	WRITE3res w;
	struct raw *r;

	harness_sh("echo hello >%s/f; chmod 644 %s/f", h->export, h->export);
	harness_start(h);
	r = raw_connect(h->port);
	assert_int_equal(raw_mount(r, h->export, &root), 0);
	assert_int_equal(raw_lookup(r, &root, "f", &fh), NFS3_OK);
	check_read(r, &fh, 0, (const uint8_t *)"hello\n", 6);
	assert_int_equal(raw_write(r, &fh, 0, "x", 1, FILE_SYNC, &w),
			 NFS3ERR_ROFS);
	raw_close(r);
	harness_stop(h);
	harness_free(h);
}

/* A WRITE that crosses the file system's limit is refused whole; one that ends
 * at it is not. */
static void
test_too_far(void **state)
{
	const uint64_t limit = (uint64_t)UINT32_MAX * 4096; /* ext4's */
	struct harness *h = harness_new(NULL);
	struct raw_fh root, fh;
	uint8_t data[200] = { 1 };
	WRITE3res w;
	struct raw *r;

	if (!harness_mount(h, "ext4", 4096, 64)) {
		harness_free(h);
		skip();
	}
	harness_start(h);
	r = raw_connect(h->port);
	assert_int_equal(raw_mount(r, h->export, &root), 0);
	raw_create(r, &root, "f", 0644, &fh);
	assert_int_equal(
		raw_write(r, &fh, limit - 100, data, 200, FILE_SYNC, &w),
		NFS3ERR_FBIG);
	assert_int_equal(w.WRITE3res_u.resfail.file_wcc.after.post_op_attr_u
				 .attributes.size,
			 0);
	assert_int_equal(
		raw_write(r, &fh, limit - 200, data, 200, FILE_SYNC, &w),
		NFS3_OK);
	assert_int_equal(w.WRITE3res_u.resok.count, 200);
	assert_int_equal(
		raw_write(r, &fh, UINT64_MAX - 50, data, 200, FILE_SYNC, &w),
		NFS3ERR_FBIG);
	raw_close(r);
	harness_stop(h);
	harness_free(h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_null),
		cmocka_unit_test(test_libnfs),
		cmocka_unit_test(test_restart_uring),
		cmocka_unit_test(test_restart_threads),
		cmocka_unit_test(test_no_rights),
		cmocka_unit_test(test_too_far),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
