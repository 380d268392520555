/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For integration tests: a world with an rpcbind, and in it a program of the
 * test's own that the server calls. One thread serves it; what comes is kept as
 * the test wants it, its news, until the test takes them. Clients, and the
 * server, are addresses of 127.0.0.0/8. It does not know what the calls mean.
 */
#ifndef NVNFSD_TESTS_CALLED_H
#define NVNFSD_TESTS_CALLED_H

#include "harness.h"

/* world.c ----------------------------------------------------------------- */

/*
 * Network and mount namespaces of this process's own, with an rpcbind and a
 * loopback of their own, until the process ends. Before any thread. False: that
 * cannot be had; why is printed, and the test ends with 77.
 */
bool world_enter(void);

/* called.c ---------------------------------------------------------------- */

/* A call that has come: at its arguments, which are read in their order. */
struct called_call {
	const uint8_t *bytes;
	uint32_t n, at;
	uint32_t proc;
	bool datagram;
	char from[16], to[16]; /* the caller's address, and ours */
	uint16_t from_port;
};

/* What is not there fails the test. */
uint32_t called_word(struct called_call *c);
uint64_t called_hyper(struct called_call *c);
/* An opaque into out, which must have room; its length. */
uint32_t called_opaque(struct called_call *c, void *out, uint32_t room);
/* As text, with a zero at its end. */
void called_string(struct called_call *c, char *out, uint32_t room);

struct called;

#define CALLED_RESULT_MAX 24u
#define CALLED_SILENT     UINT32_MAX

struct called_program {
	uint32_t prog, vers;
	bool udp, tcp;
	size_t news_bytes; /* of one */
	/*
	 * On the thread: take all arguments of c, keep what is news, and put
	 * the words of the result, in network order, into out. Their number;
	 * CALLED_SILENT: there is no reply.
	 */
	uint32_t (*serve)(void *arg, struct called *d, struct called_call *c,
			  uint32_t out[CALLED_RESULT_MAX]);
	void *arg;
};

/* Serve, and be registered. */
struct called *called_new(const struct called_program *p);
void called_free(struct called *d);

/* A copy is kept. */
void called_keep(struct called *d, const void *news);
/* Has it been kept, of late, taken or not? */
bool called_has(struct called *d, const void *news,
		bool (*same)(const void *kept, const void *news));
/* The next, which must come. */
void called_take(struct called *d, void *news);
/* How many were kept, and not taken. */
unsigned called_left(struct called *d);

/* A client's address that the program is deaf or dumb for, as it sees fit;
 * NULL: none any more. */
void called_mute(struct called *d, const char *address);
bool called_is_muted(struct called *d, const struct called_call *c);

/* Registered with rpcbind at this port; 0: no more, on any protocol. False:
 * rpcbind has refused. */
bool called_register(uint32_t prog, uint32_t vers, int protocol, uint16_t port);

#endif
