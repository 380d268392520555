/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of tests that run in a process of their own, since they change what a
 * process has only one of.
 */
#ifndef NVNFSD_CHILD_H
#define NVNFSD_CHILD_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* In the child: cmocka's assertions would unwind into its copy of the parent.
 */
#define CHECK(what)                                                            \
	do {                                                                   \
		if (!(what))                                                   \
			check_failed(#what, __FILE__, __LINE__);               \
	} while (0)

static inline void
check_failed(const char *what, const char *file, int line)
{
	(void)fprintf(stderr, "%s:%d: %s (errno %d)\n", file, line, what,
		      errno);
	_exit(1);
}

/* The body ends the process, with 0. */
static inline void
run(void (*body)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		body();
		CHECK(!"the body ends the process");
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

#endif
