/* SPDX-License-Identifier: Apache-2.0 */
/* See oracle.h. */
#include "oracle.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAILED 100

bool
oracle_there(void)
{
	if (geteuid() == 0)
		return true;
	print_message("skip: only root can be somebody else\n");
	return false;
}

static bool
become(const struct person *p)
{
	return setgroups(p->gids, p->gid_list) == 0 &&
	       setresgid(p->gid, p->gid, p->gid) == 0 &&
	       setresuid(p->uid, p->uid, p->uid) == 0;
}

static int
wait_for(pid_t pid)
{
	int status;

	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_not_equal(WEXITSTATUS(status), FAILED);
	return WEXITSTATUS(status);
}

unsigned
oracle_access(const struct person *p, const char *path)
{
	pid_t pid = fork();
	int bits = 0;

	if (pid == 0) {
		if (!become(p))
			_exit(FAILED);
		bits |= access(path, R_OK) == 0 ? ORACLE_READ : 0;
		bits |= access(path, W_OK) == 0 ? ORACLE_WRITE : 0;
		bits |= access(path, X_OK) == 0 ? ORACLE_EXEC : 0;
		_exit(bits);
	}
	return (unsigned)wait_for(pid);
}

void
oracle_make(const struct person *p, const char *path, unsigned mode)
{
	pid_t pid = fork();

	if (pid == 0) {
		umask(0);
		if (!become(p))
			_exit(FAILED);
		if (S_ISDIR(mode))
			_exit(mkdir(path, mode & 07777) == 0 ? 0 : FAILED);
		_exit(open(path, O_WRONLY | O_CREAT | O_EXCL, mode & 07777) >= 0
			      ? 0
			      : FAILED);
	}
	(void)wait_for(pid);
}
