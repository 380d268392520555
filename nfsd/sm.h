/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of the network status monitor's protocol. Each blocks, for some seconds
 * where nobody answers. Host names are as nsm_name() gives them.
 */
#ifndef NVNFSD_SM_H
#define NVNFSD_SM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* SM_MON at this machine's rpc.statd, for my_name: it calls the lock manager
 * back when host has rebooted. 0; -ECONNREFUSED or -ENOENT: there is no statd;
 * -EINVAL: it will not; another -errno of rpc_peer_call. */
int sm_watch(const char *my_name, const char *host);
/* SM_UNMON. */
void sm_unwatch(const char *my_name, const char *host);

/* How a host's statd is told that we have rebooted. */
struct sm_notify_to {
	struct sockaddr_storage addr;
	struct sockaddr_storage local; /* whence, if we still have it */
	bool datagram;                 /* by UDP, else by TCP */
	unsigned seconds;              /* for each step */
};
/* SM_NOTIFY, of my_name and of what stands before its first dot. 0 or -errno.
 */
int sm_notify(const char *my_name, int32_t state,
	      const struct sm_notify_to *to);

#endif
