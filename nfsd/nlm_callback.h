/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that the server makes to the lock managers of its clients: GRANTED and
 * GRANTED_MSG, and the _RES that answers a _MSG.
 */
#ifndef NVNFSD_NLM_CALLBACK_H
#define NVNFSD_NLM_CALLBACK_H

#include "nfsd/nlm.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct lock_grant;
struct nlm_callback;
struct server;

/* Grants are reported to s's lock manager. No thread runs before there is
 * something to send. 0 or -ENOMEM. */
int nlm_callback_new(struct nlm_callback **ret, struct server *s);
/* Sends nothing more, and ends the threads: blocks, for some seconds where a
 * client does not answer. What is handed over later is forgotten. */
void nlm_callback_stop(struct nlm_callback *c);
/* After nlm_callback_stop. NULL is taken. */
void nlm_callback_free(struct nlm_callback *c);

/* As struct locks_ops has it: any thread, does not block. */
void nlm_callback_grant(struct nlm_callback *c, const struct lock_grant *g);
/* The client's GRANTED_RES. Any thread. */
void nlm_callback_answered(struct nlm_callback *c,
			   const struct sockaddr *client,
			   const struct nlm4_answer *a);

/* Whom a message is for: where its call came from, the address of ours that it
 * was sent to, and how. */
struct nlm_peer {
	const struct sockaddr *client, *local;
	bool datagram;
};
/* Call proc, a _RES, with n bytes of arguments. A message may get lost, and
 * this one does where too many wait. Any thread, does not block. */
void nlm_callback_answer(struct nlm_callback *c, const struct nlm_peer *to,
			 uint32_t proc, const void *args, uint32_t n);

#endif
