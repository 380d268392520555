/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts that have locks, and the state number, as they outlive the process.
 */
#ifndef NVNFSD_NSM_LIST_H
#define NVNFSD_NSM_LIST_H

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* An address as text names the host: with the name of its link where it is one
 * link's. */
#define NSM_NAME_BYTES NI_MAXHOST

/* The name of an address (an IPv4-mapped one is IPv4's). False: it has none. */
bool nsm_name(char name[NSM_NAME_BYTES], const struct sockaddr *addr);
/* And back, with the port 0. */
bool nsm_address(const char *name, struct sockaddr_storage *ret);

struct nsm_list;

/*
 * In the state directory, which stays the caller's and open. A new state number
 * is taken, and who had locks when the last run ended is to be told from now
 * on: both are durable when this returns. What is there and is not ours is left
 * alone. 0 or -errno.
 */
int nsm_list_open(struct nsm_list **ret, int state_fd);
void nsm_list_close(struct nsm_list *l); /* NULL is taken */
/* Odd, and greater than the last run's; 1 after the greatest there is. */
int32_t nsm_list_state(const struct nsm_list *l);

/* It has locks, and asked for them at local (of AF_UNSPEC: unknown); durable
 * when this returns. 0 or -errno. Any thread, but one at a time for a host. */
int nsm_list_add(struct nsm_list *l, const char *host,
		 const struct sockaddr *local);
/* It has none any more: the disk may learn that later. */
void nsm_list_remove(struct nsm_list *l, const char *host);
bool nsm_list_has(const struct nsm_list *l, const char *host);

/* Calls each for every host that is to be told. 0 or -errno. */
typedef void nsm_list_fn(void *arg, const char *host,
			 const struct sockaddr_storage *local);
int nsm_list_untold(const struct nsm_list *l, nsm_list_fn *each, void *arg);
/* It is to be told no more. */
void nsm_list_told(struct nsm_list *l, const char *host);

#endif
