/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reactors as threads: messages from many sides, ticks, start and end, and
 * what happens where io_uring or locked memory is refused.
 */
#include "tests/unit/engine_harness.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static enum io_backend uring = IO_BACKEND_URING;
static enum io_backend plain = IO_BACKEND_THREADS;

static enum io_backend
backend_of(void **state)
{
	const enum io_backend *b = *state;

	return *b;
}

/* A storm: each sender posts to each reactor; a reactor answers by posting on
 * to the next. Order per sender is kept and nothing is lost. */
#define SENDERS  4u
#define REACTORS 3u
#define POSTS    20000u

struct letter {
	struct message m;
	unsigned sender, number, reactor;
	bool passed_on;
};

static struct engine *storm_engine;
static unsigned storm_next[REACTORS][SENDERS]; /* of its reactor's thread */
static _Atomic unsigned storm_arrived;

static void
letter_passed(struct message *m)
{
	struct letter *l = container_of(m, struct letter, m);

	assert_true(l->passed_on);
	free(l);
	atomic_fetch_add(&storm_arrived, 1);
}

static void
letter_read(struct message *m)
{
	struct letter *l = container_of(m, struct letter, m);
	struct reactor *r = engine_reactor(storm_engine, l->reactor);
	unsigned next = (l->reactor + 1) % REACTORS;

	assert_true(reactor_is_current(r));
	assert_int_equal(reactor_index(r), l->reactor);
	assert_int_equal(storm_next[l->reactor][l->sender], l->number);
	storm_next[l->reactor][l->sender]++;
	l->passed_on = true;
	m->run = letter_passed;
	reactor_post(engine_reactor(storm_engine, next), m);
}

static void *
storm_send(void *arg)
{
	unsigned sender = *(unsigned *)arg;

	for (unsigned i = 0; i < POSTS; i++) {
		for (unsigned r = 0; r < REACTORS; r++) {
			struct letter *l = calloc(1, sizeof(*l));

			l->m.run = letter_read;
			l->sender = sender;
			l->number = i;
			l->reactor = r;
			reactor_post(engine_reactor(storm_engine, r), &l->m);
		}
		if (i % 64 == 0)
			usleep(i % 7 * 10); /* let them fall asleep */
	}
	return NULL;
}

static void
posting_storm(void **state)
{
	pthread_t thread[SENDERS];
	unsigned number[SENDERS];

	memset(storm_next, 0, sizeof(storm_next));
	storm_arrived = 0;
	storm_engine = engine_make(backend_of(state), REACTORS, 0);
	for (unsigned i = 0; i < SENDERS; i++) {
		number[i] = i;
		assert_int_equal(pthread_create(&thread[i], NULL, storm_send,
						&number[i]),
				 0);
	}
	for (unsigned i = 0; i < SENDERS; i++)
		pthread_join(thread[i], NULL);
	while (atomic_load(&storm_arrived) < SENDERS * REACTORS * POSTS)
		sched_yield();
	engine_free(storm_engine);
}

static void
do_nothing(struct reactor *r, void *arg)
{
	(*(unsigned *)arg)++;
}

/* One message at a time, each sent when the reactor has gone to sleep or is
 * about to. It has no tick that could wake it: one that is lost is for ever. */
static void
no_wakeup_lost(void **state)
{
	struct engine *e = engine_make(backend_of(state), 1, 0);
	unsigned visits = 0;

	for (unsigned i = 0; i < 30000; i++) {
		visit(engine_reactor(e, 0), do_nothing, &visits);
		for (volatile unsigned spin = 0; spin < i % 500; spin++)
			;
	}
	assert_int_equal(visits, 30000);
	engine_free(e);
}

/* Threads of ours leave signals to the main one, and are marked as needed for
 * memory to be reclaimed, where that is allowed. */
static void
thread_is_ours(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct data[2];
	sigset_t blocked;

	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	assert_true(sigismember(&blocked, SIGTERM));
	assert_true(sigismember(&blocked, SIGHUP));
	assert_int_equal(syscall(SYS_capget, &header, data), 0);
	if (data[0].effective & 1u << CAP_SYS_RESOURCE)
		assert_int_equal(prctl(PR_GET_IO_FLUSHER, 0, 0, 0, 0), 1);
}

/* The life of a reactor as its owner sees it. */
struct life {
	_Atomic unsigned inits, ticks, finis, workers;
	int worker_error;
};

static void *
life_init(struct reactor *r, void *arg)
{
	struct life *l = arg;

	assert_true(reactor_is_current(r));
	assert_true(reactor_index(r) < 2);
	thread_is_ours();
	atomic_fetch_add(&l->inits, 1);
	return l;
}

static void
life_tick(struct reactor *r)
{
	struct life *l = reactor_user(r);

	assert_true(reactor_is_current(r));
	assert_true(reactor_now_ns(r) > 0);
	atomic_fetch_add(&l->ticks, 1);
}

static void
life_fini(struct reactor *r)
{
	struct life *l = reactor_user(r);

	assert_true(reactor_is_current(r));
	atomic_fetch_add(&l->finis, 1);
}

static int
life_worker(void *arg)
{
	struct life *l = arg;

	thread_is_ours();
	/* The last one fails, where one is to. */
	if (atomic_fetch_add(&l->workers, 1) == 4)
		return l->worker_error;
	return 0;
}

static void
start_tick_end(void **state)
{
	struct life life = { 0 };
	struct engine_config config = { .backend = backend_of(state),
					.reactors = 2,
					.workers = 3,
					.io_workers = 2,
					.reactor_init = life_init,
					.reactor_tick = life_tick,
					.reactor_fini = life_fini,
					.worker_init = life_worker,
					.arg = &life };
	struct engine *e;

	assert_int_equal(engine_new(&e, &config), 0);
	assert_int_equal(life.inits, 2);
	/* Two for single reads and writes, 8 wait for names. */
	assert_int_equal(life.workers, 3 + 2 + 2 + 8);
	assert_int_equal(engine_facts(e)->reactors, 2);
	while (atomic_load(&life.ticks) < 3)
		usleep(1000);
	assert_int_equal(life.finis, 0);
	engine_free(e);
	assert_int_equal(life.finis, 2);
	life = (struct life){ .worker_error = -EPERM };
	assert_int_equal(engine_new(&e, &config), -EPERM);
	assert_int_equal(life.inits, 0);
	assert_int_equal(life.workers, 5);
}

/* Zeros stand for defaults, and too little is made enough. */
static void
defaults(void **state)
{
	struct engine_config config = { .backend = backend_of(state) };
	const struct engine_facts *facts;
	struct engine *e;
	size_t least = 8 * (size_t)IO_TRANSFER_BYTES_MAX;

	assert_int_equal(engine_new(&e, &config), 0);
	facts = engine_facts(e);
	assert_true(facts->reactors >= 1);
	assert_int_equal(facts->buffer_bytes,
			 facts->reactors * ((size_t)64 << 20));
	engine_free(e);
	config.reactors = 1;
	config.buffer_bytes = 1;
	assert_int_equal(engine_new(&e, &config), 0);
	facts = engine_facts(e);
	assert_true(facts->buffer_bytes >= least);
	assert_int_equal(buf_pool_bytes(reactor_pool(engine_reactor(e, 0))),
			 facts->buffer_bytes);
	engine_free(e);
}

/* In a child, io_uring_setup is refused as a container does it. */
static void
refuse_io_uring(int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = sizeof(code) / sizeof(code[0]),
				   .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0)
		_exit(2);
}

/* 0 when the engine ran on threads and said why. */
static int
child_refused(int error)
{
	struct engine_config config = { .backend = IO_BACKEND_URING,
					.reactors = 2 };
	struct engine *e;
	unsigned visits = 0;

	refuse_io_uring(error);
	if (engine_new(&e, &config) != 0)
		return 3;
	if (engine_facts(e)->backend != IO_BACKEND_THREADS ||
	    engine_facts(e)->backend_error != -error)
		return 4;
	visit(engine_reactor(e, 1), do_nothing, &visits);
	engine_free(e);
	return visits == 1 ? 0 : 5;
}

static void
falls_back(void **state)
{
	static const int errors[] = { EPERM, ENOSYS };

	for (size_t i = 0; i < 2; i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0)
			_exit(child_refused(errors[i]));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

static void
drop_memory_rights(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct data[2];
	struct rlimit limit = { 65536, 65536 };

	if (syscall(SYS_capget, &header, data) < 0)
		_exit(2);
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	data[0].permitted &= ~(1u << CAP_IPC_LOCK);
	if (syscall(SYS_capset, &header, data) < 0 ||
	    setrlimit(RLIMIT_MEMLOCK, &limit) < 0)
		_exit(2);
}

/* Threads run out while the reactors start: an error, and nothing is left. */
static int
child_too_few_threads(enum io_backend backend)
{
	struct life life = { 0 };
	struct engine_config config = { .backend = backend,
					.reactors = 8,
					.workers = 1,
					.io_workers = 1,
					.reactor_init = life_init,
					.arg = &life };
	struct rlimit limit = { 5, 5 };
	struct engine *e = NULL;

	/* Threads count against a user; root's limit is none. */
	if (setrlimit(RLIMIT_NPROC, &limit) < 0 ||
	    setresuid(65500, 65500, 65500) < 0)
		return 2;
	if (engine_new(&e, &config) != -EAGAIN)
		return 3;
	return life.inits == 0 ? 0 : 4;
}

static void
too_few_threads(void **state)
{
	pid_t pid;
	int status;

	if (geteuid() != 0) {
		print_message("skip: not root\n");
		skip();
	}
	pid = fork();
	if (pid == 0)
		_exit(child_too_few_threads(backend_of(state)));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void
take_page(struct reactor *r, void *arg)
{
	assert_int_equal(buf_take(reactor_pool(r), arg, 4096), 0);
}

static void
give_page(struct reactor *r, void *arg)
{
	buf_give(reactor_pool(r), arg);
}

/* Memory limits: the buffers are not registered, the facts say so, and a
 * transfer through the pool works. */
static int
child_unregistered(void)
{
	struct engine_config config = { .backend = IO_BACKEND_URING,
					.reactors = 1 };
	struct task t = { .kind = OP_READ, .len = 4096 };
	struct engine *e;
	struct buf buf;

	drop_memory_rights();
	if (engine_new(&e, &config) != 0)
		return 3;
	if (engine_facts(e)->backend != IO_BACKEND_URING)
		return 0; /* refused altogether: falls_back's case */
	if (engine_facts(e)->buffers_registered)
		return 4;
	t.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	visit(engine_reactor(e, 0), take_page, &buf);
	t.buf = buf.base;
	if (task_run(engine_reactor(e, 0), &t) != 4096 ||
	    memcmp(buf.base, "\177ELF", 4) != 0)
		return 5;
	visit(engine_reactor(e, 0), give_page, &buf);
	close(t.fd);
	engine_free(e);
	return 0;
}

static void
memory_limits(void **state)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(child_unregistered());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define BOTH(test)                                                             \
	{ #test " (io_uring)", test, NULL, NULL, &uring },                     \
	{                                                                      \
#test " (threads)", test, NULL, NULL, &plain                   \
	}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		/* first: they fork before threads were seen */
		cmocka_unit_test(falls_back),
		cmocka_unit_test(memory_limits),
		BOTH(too_few_threads),
		BOTH(posting_storm),
		BOTH(no_wakeup_lost),
		BOTH(start_tick_end),
		BOTH(defaults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
