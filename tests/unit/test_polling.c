/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways to poll that an engine may be given: a kernel thread that submits, a
 * ring whose devices are asked, network devices that are asked; and what
 * becomes of it where the kernel refuses. That operations do with sqpoll what
 * they do without is test_ring's.
 */
#include "tests/unit/engine_harness.h"

#include "io/compat.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES 65536u

static const struct engine_config polling = { .backend = IO_BACKEND_URING,
					      .reactors = 1,
					      .workers = 1,
					      .io_workers = 2,
					      .sqpoll = true,
					      .sqpoll_idle_ms = 5,
					      .busy_poll_us = 10,
					      .iopoll = true };

static int
temp_file(int flags)
{
	const char *dir = getenv("TMPDIR");

	return open(dir ? dir : "/var/tmp",
		    O_TMPFILE | O_RDWR | O_CLOEXEC | flags, 0600);
}

static void
take(struct reactor *r, void *arg)
{
	assert_int_equal(buf_take(reactor_pool(r), arg, BYTES), 0);
}

static void
give(struct reactor *r, void *arg)
{
	buf_give(reactor_pool(r), arg);
}

/* What is written to fd, in rounds, is what is read, as if nobody polled. */
static void
write_and_read(struct engine *e, int fd)
{
	struct reactor *r = engine_reactor(e, 0);
	struct buf out, in;
	struct task t = { .fd = fd, .len = BYTES, .flags = RWF_HIPRI };

	visit(r, take, &out);
	visit(r, take, &in);
	for (unsigned pass = 0; pass < 20; pass++) {
		memset(out.base, (int)pass + 1, BYTES);
		memset(in.base, 0, BYTES);
		t.offset = (uint64_t)(pass % 10) * BYTES;
		t.kind = OP_WRITE;
		t.buf = out.base;
		assert_int_equal(task_run(r, &t), (int)BYTES);
		t.kind = OP_READ;
		t.buf = in.base;
		assert_int_equal(task_run(r, &t), (int)BYTES);
		assert_memory_equal(in.base, out.base, BYTES);
	}
	t.offset = 10ull * BYTES;
	assert_int_equal(task_run(r, &t), 0);
	visit(r, give, &in);
	visit(r, give, &out);
}

static uint64_t
polled(struct engine *e)
{
	return atomic_load(&reactor_counters(engine_reactor(e, 0))->polled);
}

/* Direct I/O goes through the ring of polled devices and comes back, also where
 * no device below is polled, and where the file cannot be. */
static void
asks_devices(void **state)
{
	struct engine *e;
	int direct = temp_file(O_DIRECT), buffered = temp_file(0);

	assert_true(buffered >= 0);
	assert_int_equal(engine_new(&e, &polling), 0);
	assert_int_equal(engine_facts(e)->iopoll_error, 0);
	write_and_read(e, buffered);
	if (direct >= 0)
		write_and_read(e, direct);
	assert_true(polled(e) >= 40);
	engine_free(e);
	close(buffered);
	close(direct);
}

/* The effective capabilities of the kernel's thread, which is one of this
 * process's; 0: it is not there. */
static uint64_t
kernel_thread_rights(void)
{
	char command[96], line[64];
	uint64_t rights = 0;
	FILE *f;

	(void)snprintf(command, sizeof(command),
		       "grep -h -A 60 iou-sqp /proc/%d/task/*/status",
		       getpid());
	f = popen(command, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, "CapEff:", 7) == 0)
			rights = strtoull(line + 7, NULL, 16);
	(void)pclose(f);
	return rights;
}

/* Its thread is there, sleeps, and is woken again. */
static void
kernel_submits(void **state)
{
	struct engine_config c = polling;
	int fd = temp_file(0);
	struct engine *e;

	c.iopoll = false;
	assert_int_equal(engine_new(&e, &c), 0);
	assert_int_equal(engine_facts(e)->sqpoll_error, 0);
	assert_true(engine_facts(e)->buffers_registered);
	for (unsigned i = 0; i < 5; i++) {
		write_and_read(e, fd);
		usleep(20000); /* longer than it stays awake */
	}
	if (geteuid() == 0)
		assert_true(kernel_thread_rights() & 1u << CAP_FSETID);
	assert_int_equal(polled(e), 0);
	engine_free(e);
	close(fd);
}

static void *
lose_fsetid(struct reactor *r, void *arg)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct data[2];

	assert_int_equal(syscall(SYS_capget, &header, data), 0);
	data[0].effective &= ~(1u << CAP_FSETID);
	assert_int_equal(syscall(SYS_capset, &header, data), 0);
	return NULL;
}

/* The kernel's thread does all I/O, with the rights that the reactor's init has
 * left the reactor. */
static void
kernel_has_our_rights(void **state)
{
	struct engine_config c = polling;
	int fd = temp_file(0);
	struct engine *e;

	if (geteuid() != 0)
		skip();
	c.reactor_init = lose_fsetid;
	assert_int_equal(engine_new(&e, &c), 0);
	assert_int_equal(engine_facts(e)->sqpoll_error, 0);
	write_and_read(e, fd); /* it has its name once it has run */
	assert_true(kernel_thread_rights() & 1u << CAP_CHOWN);
	assert_false(kernel_thread_rights() & 1u << CAP_FSETID);
	engine_free(e);
	close(fd);
}

/* On the reactor's thread: from now on the kernel refuses what polling needs:
 * rings, and operation 27 of io_uring_register. */
static void *
refuse(struct reactor *r, void *arg)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_register, 0,
			 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NAPI_REGISTER, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = sizeof(code) / sizeof(code[0]),
				   .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0)
		abort();
	return NULL;
}

/* All of it refused: the facts say so, and all else works. */
static void
does_without(void **state)
{
	struct engine_config c = polling;
	int fd = temp_file(0);
	const struct engine_facts *f;
	struct engine *e;

	c.reactor_init = refuse;
	assert_int_equal(engine_new(&e, &c), 0);
	f = engine_facts(e);
	assert_int_equal(f->backend, IO_BACKEND_URING);
	assert_int_equal(f->sqpoll_error, -EPERM);
	assert_int_equal(f->busy_poll_error, -EPERM);
	assert_int_equal(f->iopoll_error, -EPERM);
	assert_true(f->buffers_registered);
	write_and_read(e, fd);
	assert_int_equal(polled(e), 0);
	engine_free(e);
	close(fd);
}

/* Nor can threads do any of it. */
static void
threads_do_without(void **state)
{
	struct engine_config c = polling;
	int fd = temp_file(0);
	const struct engine_facts *f;
	struct engine *e;

	c.backend = IO_BACKEND_THREADS;
	assert_int_equal(engine_new(&e, &c), 0);
	f = engine_facts(e);
	assert_int_equal(f->sqpoll_error, -EOPNOTSUPP);
	assert_int_equal(f->busy_poll_error, -EOPNOTSUPP);
	assert_int_equal(f->iopoll_error, -EOPNOTSUPP);
	write_and_read(e, fd);
	engine_free(e);
	close(fd);
}

/* A kernel from 6.9 on takes busy polling; an older one says why not. */
static void
asks_network(void **state)
{
	struct engine_config c = { .backend = IO_BACKEND_URING,
				   .reactors = 2,
				   .busy_poll_us = 10 };
	struct engine *e;
	int error;

	assert_int_equal(engine_new(&e, &c), 0);
	error = engine_facts(e)->busy_poll_error;
	assert_true(error == 0 || error == -EINVAL);
	assert_int_equal(engine_facts(e)->sqpoll_error, 0);
	engine_free(e);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asks_devices),
		cmocka_unit_test(kernel_submits),
		cmocka_unit_test(kernel_has_our_rights),
		cmocka_unit_test(does_without),
		cmocka_unit_test(threads_do_without),
		cmocka_unit_test(asks_network),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
