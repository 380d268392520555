/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reboots, ours and the clients' (The Open Group, XNFS, 11): which hosts have
 * locks, kept so that no crash forgets one; this machine's rpc.statd asked to
 * watch them; and, at a start, those of the last run told that they have to
 * claim their locks again.
 */
#ifndef NVNFSD_NSM_H
#define NVNFSD_NSM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define NSM_PRIV_BYTES 16u

struct lock_host;
struct nsm;

/*
 * Read what the last run left in the state directory, and take a new state
 * number there, both durably. What cannot be read there is as if it was not.
 * state_fd stays the caller's and open. 0 or -errno.
 */
int nsm_open(struct nsm **ret, int state_fd);
/* How many hosts had locks when the last run ended (some may be told still from
 * the one before it): with none there is no need for a grace period. */
unsigned nsm_left(const struct nsm *n);
/* This run's number: odd, and greater than any before. */
int32_t nsm_state(const struct nsm *n);
/* Tell them, on a thread of its own. 0 or -errno. */
int nsm_start(struct nsm *n);
/* Ends the thread, which may take a few seconds where a host does not answer;
 * who was not told is told by the next run. NULL is taken. */
void nsm_free(struct nsm *n);

/*
 * As struct locks_ops has them (locks.h): h is known to the next server, and
 * watched by rpc.statd, when it returns. Both block. 0; -errno where it is not
 * kept, or not watched: the reason is logged.
 */
int nsm_host_first(struct nsm *n, const struct lock_host *h);
void nsm_host_last(struct nsm *n, const struct lock_host *h);

/* Which host rpc.statd means when it calls back with what it was given. False:
 * it was not by us. To be believed only from a reserved port of loopback. */
bool nsm_host_of(const uint8_t priv[NSM_PRIV_BYTES],
		 struct sockaddr_storage *host);

#endif
