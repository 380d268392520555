/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's command line, what it says when it cannot start, and where it
 * starts all the same: ports of its own for MOUNT, and no io_uring.
 */
#include "harness.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Exit status and output (both streams) of nvnfsd with these arguments. */
static int
run(const char *arguments, char *out, size_t n)
{
	char command[1200];
	size_t got = 0, k;
	FILE *f;
	int rc;

	snprintf(command, sizeof(command), "%s %s 2>&1", getenv("NVNFSD"),
		 arguments);
	f = popen(command, "r"); /* NOLINT(cert-env33-c) */
	assert_non_null(f);
	while ((k = fread(out + got, 1, n - 1 - got, f)) > 0)
		got += k;
	out[got] = '\0';
	rc = pclose(f);
	return WIFEXITED(rc) ? WEXITSTATUS(rc) : 128;
}

static void
test_options(void **state)
{
	char out[8192];

	assert_int_equal(run("--version", out, sizeof(out)), 0);
	assert_int_equal(strncmp(out, "nvnfsd 0", 8), 0);
	assert_int_equal(run("--help", out, sizeof(out)), 0);
	assert_non_null(strstr(out, "--export 'PATH CLIENT(options)'"));
	assert_int_equal(run("--bogus", out, sizeof(out)), 2);
	assert_int_equal(run("--port 70000", out, sizeof(out)), 2);
	assert_non_null(strstr(out, "--port"));
	assert_int_equal(run("--port -1", out, sizeof(out)), 2);
	assert_int_equal(run("--threads x", out, sizeof(out)), 2);
	assert_int_equal(run("--threads 257 --check", out, sizeof(out)), 2);
	assert_int_equal(run("--write-mode sideways", out, sizeof(out)), 2);
	assert_int_equal(run("--engine steam", out, sizeof(out)), 2);
	assert_int_equal(run("something", out, sizeof(out)), 2);
	assert_int_equal(run("--config /nonexistent --check", out, sizeof(out)),
			 1);
	assert_non_null(strstr(out, "/nonexistent"));
}

static void
write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* --check: the normal form, which reads back as itself; or where the mistake
 * is. */
static void
test_check(void **state)
{
	struct harness *h = harness_new(NULL);
	char conf[400], exports[400], arguments[900], once[8192], again[8192];
	char *cut;

	snprintf(conf, sizeof(conf), "%s/conf", h->dir);
	snprintf(exports, sizeof(exports), "%s/exports", h->dir);
	snprintf(arguments, sizeof(arguments),
		 "--config %s --exports %s --check", conf, exports);
	write_file(conf, "[nfsd]\nwrite-mode = dontcache\nthreads = 3\n");
	write_file(exports, "/srv/a *(rw,async) 10.0.0.0/8(ro)\n");
	assert_int_equal(run(arguments, once, sizeof(once)), 0);
	assert_non_null(strstr(once, "write-mode = dontcache"));
	assert_non_null(strstr(once, "10.0.0.0/8(ro"));
	cut = strstr(once, "# exports");
	assert_non_null(cut);
	write_file(exports, cut);
	*cut = '\0';
	write_file(conf, once);
	*cut = '#';
	assert_int_equal(run(arguments, again, sizeof(again)), 0);
	assert_string_equal(once, again);
	write_file(exports, "/srv/a *(rw)\n/srv/b *(rw,snyc)\n");
	assert_int_equal(run(arguments, again, sizeof(again)), 1);
	assert_non_null(strstr(again, "exports:2: "));
	assert_non_null(strstr(again, "sync"));
	write_file(exports, "/srv/a *(rw)\n");
	write_file(conf, "[nfsd]\n\nprot = 1\n");
	assert_int_equal(run(arguments, again, sizeof(again)), 1);
	assert_non_null(strstr(again, "conf:3: "));
	assert_non_null(strstr(again, "port"));
	harness_free(h);
}

static void
test_port_in_use(void **state)
{
	struct harness *h = harness_new(NULL), *second = harness_new(NULL);
	char port[16], pattern[128];

	harness_start(h);
	snprintf(port, sizeof(port), "%u", h->port);
	harness_arg(second, "--port");
	harness_arg(second, port);
	assert_int_equal(harness_run(second), 1);
	snprintf(pattern, sizeof(pattern),
		 "port %u is in use by %d .*nvnfsd.*--port", h->port,
		 (int)h->pid);
	assert_true(harness_logged(second, pattern));
	harness_stop(h);
	harness_start(second); /* it was only that */
	harness_stop(second);
	harness_free(second);
	harness_free(h);
}

static void
test_state_in_use(void **state)
{
	struct harness *h = harness_new(NULL), *second = harness_new(NULL);
	char dir[300];

	harness_start(h);
	snprintf(dir, sizeof(dir), "%s/state", h->dir);
	harness_arg(second, "--state-dir");
	harness_arg(second, dir);
	assert_int_equal(harness_run(second), 1);
	assert_true(harness_logged(second, "in use by another"));
	harness_free(second);
	harness_stop(h);
	harness_free(h);
}

static void
test_bad_exports(void **state)
{
	struct harness *h = harness_new(NULL);

	harness_arg(h, "--export");
	harness_arg(h, "/nonexistent/dir *(rw)");
	assert_int_equal(harness_run(h), 1);
	assert_true(harness_logged(h, "export:2: /nonexistent/dir: .*No such"));
	harness_free(h);
	h = harness_new(NULL);
	harness_arg(h, "--export");
	harness_arg(h, "/proc *(ro)");
	assert_int_equal(harness_run(h), 1);
	assert_true(harness_logged(h, "export:2: /proc: .*handle"));
	harness_free(h);
	h = harness_new("rw,crossmnt");
	assert_int_equal(harness_run(h), 1);
	assert_true(harness_logged(h, "crossmnt"));
	harness_free(h);
}

/* Two ports: each serves its own programs only. */
static void
test_mount_port(void **state)
{
	struct harness *h = harness_new(NULL);
	struct raw_fh root;
	struct raw *r;

	harness_arg(h, "--mount-port");
	harness_arg(h, "0");
	harness_start(h);
	assert_int_not_equal(h->port, h->mount_port);
	r = raw_connect(h->mount_port);
	assert_int_equal(raw_mount(r, h->export, &root), 0);
	raw_build(r, 100003, 3, 0, NULL, NULL);
	raw_send(r);
	assert_true(raw_receive(r));
	assert_int_equal(r->accept_stat, 1); /* PROG_UNAVAIL */
	raw_close(r);
	r = raw_connect(h->port);
	raw_call(r, 100003, 3, 0, NULL, NULL, NULL, NULL);
	raw_build(r, 100005, 3, 0, NULL, NULL);
	raw_send(r);
	assert_true(raw_receive(r));
	assert_int_equal(r->accept_stat, 1);
	raw_close(r);
	harness_stop(h);
	harness_free(h);
}

/* As a container's seccomp profile refuses it; for what this process starts
 * from now on. */
static void
refuse_io_uring(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 4, .filter = code };

	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program),
			 0);
}

static void
test_no_io_uring(void **state)
{
	struct harness *h = harness_new(NULL);
	uint8_t data[50000];
	struct raw_fh root, fh;
	READ3res rd;
	WRITE3res w;
	struct raw *r;

	memset(data, 'u', sizeof(data));
	refuse_io_uring();
	harness_start(h);
	assert_true(harness_logged(h, "io_uring is refused .*threads engine"));
	r = raw_connect(h->port);
	assert_int_equal(raw_mount(r, h->export, &root), 0);
	raw_create(r, &root, "f", 0644, &fh);
	assert_int_equal(
		raw_write(r, &fh, 99, data, sizeof(data), FILE_SYNC, &w),
		NFS3_OK);
	assert_int_equal(raw_read(r, &fh, 99, sizeof(data), &rd), NFS3_OK);
	assert_int_equal(rd.READ3res_u.resok.count, sizeof(data));
	assert_memory_equal(rd.READ3res_u.resok.data.data_val, data,
			    sizeof(data));
	raw_close(r);
	harness_stop(h);
	harness_free(h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_port_in_use),
		cmocka_unit_test(test_state_in_use),
		cmocka_unit_test(test_bad_exports),
		cmocka_unit_test(test_mount_port),
		cmocka_unit_test(test_no_io_uring), /* the last: it stays */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
