/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call to a client's lock manager. For nlm_callback.c, which sends it, and
 * again, until nothing is left to do.
 */
#ifndef NVNFSD_NLM_MESSAGE_H
#define NVNFSD_NLM_MESSAGE_H

#include "nfsd/nlm_callback.h"

#include <sys/queue.h>

struct message_out {
	TAILQ_ENTRY(message_out) link;
	struct sockaddr_storage local; /* leaves from there */
	bool datagram;
	uint32_t proc;
	uint64_t id; /* the grant's; 0: an answer */
	uint64_t since_ns, due_ns;
	unsigned tries; /* that may have arrived */
	bool answered;  /* by GRANTED_RES */
	uint32_t stat;  /* and how */
	uint32_t bytes;
	uint8_t args[];
};

/* What became of a try. */
enum message_sent {
	SENT_OVER,  /* nothing is left to do */
	SENT_WAITS, /* for GRANTED_RES, or for the client's grace to end */
	SENT_NOT,   /* as far as one knows: again, after a while */
	SENT_LOST   /* not, and it never will be */
};

void message_address(struct sockaddr_storage *to, const struct sockaddr *from);
/* NULL: no memory. free() it. */
struct message_out *message_new(const struct nlm_peer *to, uint32_t proc,
				const void *args, uint32_t n);
/* GRANTED or GRANTED_MSG: the lock as its client asked for it. */
struct message_out *message_grant(struct server *s, const struct lock_grant *g);
/* To the lock manager at this address. Blocks, for some seconds. gone: what was
 * sent to it last did not arrive. */
enum message_sent message_send(struct server *s, const struct sockaddr *client,
			       struct message_out *m, bool gone);
/* The client has answered a grant, to the latest try or one before it. */
enum message_sent message_judge(struct server *s, const struct message_out *m,
				uint32_t stat);

#endif
