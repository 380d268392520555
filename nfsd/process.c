/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the process as a whole asks of the kernel before any thread starts:
 * descriptors, and memory that stays in memory.
 *
 * A client that is mounted on the server itself can fill memory, or the memory
 * control group of both, with pages that nobody but this server can write back.
 * From then on the server gets no page but by its own work, so what that work
 * touches has to be there. Measured with both in a group of 256 MiB: without
 * this the server was killed when its own program text, which the kernel had
 * reclaimed, was to be read again. The rest of it: PR_SET_IO_FLUSHER on every
 * thread (io/engine.c), SO_RESERVE_MEM (io/net.c), buffers and call slots that
 * are touched at the start (io/op.c, shard.c).
 *
 * It does not know what is served. mlockall(2), getrlimit(2).
 */
#include "nfsd/server.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

static void
raise_limit(int resource)
{
	struct rlimit l;

	if (getrlimit(resource, &l) == 0 && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max;
		(void)setrlimit(resource, &l);
	}
}

static int
hold_memory(void)
{
	struct rlimit l = { RLIM_INFINITY, RLIM_INFINITY };

	if (setrlimit(RLIMIT_MEMLOCK, &l) < 0)
		raise_limit(RLIMIT_MEMLOCK);
	/* All of the program and its libraries. */
	if (mlockall(MCL_CURRENT) < 0)
		return -errno;
	/* Of what comes later, stacks of threads among it, what is touched. Not
	 * under a finite limit, by which an mmap could then fail: a worker that
	 * acts for a caller has not the capability that lifts it. Without, this
	 * memory may be swapped, no more. */
	if (getrlimit(RLIMIT_MEMLOCK, &l) < 0 || l.rlim_cur != RLIM_INFINITY)
		return 0;
	return mlockall(MCL_FUTURE | MCL_ONFAULT) < 0 ? -errno : 0;
}

void
process_prepare(void)
{
	int rc;

	raise_limit(RLIMIT_NOFILE);
	rc = hold_memory();
	if (rc < 0)
		log_msg(LOG_INFO_,
			"memory is not locked (%s): with a client mounted on "
			"this machine raise LimitMEMLOCK",
			strerror(-rc));
}
