/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For integration tests in a world of their own (called.h): a status monitor
 * that tells what it was asked. It is the one of the server's host and that of
 * all clients, which are addresses of 127.0.0.0/8.
 */
#ifndef NVNFSD_TESTS_STATD_H
#define NVNFSD_TESTS_STATD_H

#include "harness.h"

enum { STATD_MON = 2, STATD_UNMON = 3, STATD_NOTIFY = 6 };

/* One call that the server made. */
struct statd_news {
	uint32_t proc;
	bool datagram;
	char from[16], to[16];
	uint16_t from_port;
	char mon_name[256], my_name[256];
	uint32_t prog, vers, callback; /* of MON, UNMON */
	uint8_t priv[16];              /* of MON */
	uint32_t state;                /* of NOTIFY */
};

struct statd;
/* Serve by these, and be registered. */
struct statd *statd_new(bool udp, bool tcp);
void statd_free(struct statd *d);
/* MON fails from now on, or no longer. */
void statd_refuse(struct statd *d, bool refuse);
/* What is sent to this address is neither answered nor kept; NULL: all is. */
void statd_mute(struct statd *d, const char *address);
/* The next call, which must come, and be this, of mon_name (NULL: any). */
struct statd_news statd_take(struct statd *d, uint32_t proc,
			     const char *mon_name);
/* Calls that were not taken yet. */
unsigned statd_left(struct statd *d);

/* What a client's statd sends when it has rebooted, from its address. */
void statd_tell_reboot(const char *client, uint16_t statd_port,
		       const char *mon_name, uint32_t state);

#endif
