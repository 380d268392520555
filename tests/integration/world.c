/* SPDX-License-Identifier: Apache-2.0 */
/* See called.h: namespaces in which rpcbind, and who is registered there, are
 * the test's own. */
#include "called.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PMAP_PORT 111

static bool
lo_up(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ok = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &lo) == 0;

	close(fd);
	return ok;
}

static bool
rpcbind_answers(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(PMAP_PORT) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool ok;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ok = connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
	close(fd);
	return ok;
}

/* Until the test's end, however it comes, closes the pipe: rpcbind becomes
 * another user, and so would not be told of its parent's death. */
static void
rpcbind_run(int until)
{
	pid_t pid = fork();
	char byte;

	if (pid == 0) {
		execl("/usr/sbin/rpcbind", "rpcbind", "-w", "-f", NULL);
		execl("/sbin/rpcbind", "rpcbind", "-w", "-f", NULL);
		_exit(127);
	}
	(void)!read(until, &byte, 1);
	kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	_exit(0);
}

static bool
rpcbind_start(void)
{
	const struct passwd *who = getpwnam("_rpc");
	int until[2];

	if (access("/usr/sbin/rpcbind", X_OK) < 0 &&
	    access("/sbin/rpcbind", X_OK) < 0)
		return false;
	(void)mkdir("/run/rpcbind", 0755);
	if (who != NULL)
		(void)!chown("/run/rpcbind", who->pw_uid, who->pw_gid);
	if (pipe2(until, O_CLOEXEC) < 0)
		return false;
	if (fork() == 0) {
		close(until[1]);
		rpcbind_run(until[0]);
	}
	close(until[0]);
	while (!rpcbind_answers())
		usleep(20000);
	return true;
}

static const char *
try_to_enter(void)
{
	if (unshare(CLONE_NEWNET | CLONE_NEWNS) < 0)
		return "no right to make namespaces (needs root)";
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", "/run", "tmpfs", 0, "mode=755") < 0)
		return "no /run of its own can be had";
	if (!lo_up())
		return "no loopback of its own can be had";
	return rpcbind_start() ? NULL : "no rpcbind here";
}

bool
world_enter(void)
{
	const char *why = try_to_enter();

	if (why != NULL)
		print_message("skip: %s\n", why);
	return why == NULL;
}
