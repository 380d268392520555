/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What relay.c and sink.c know of the protocol: just enough to tell the calls
 * of nvnfsd-load --raw --no-mount apart and to answer them. Every call of that
 * client has a head of the same form, so places are constants; nothing is
 * checked for the sake of anyone else. RFC 5531, RFC 1813.
 */
#ifndef NVNFSD_LIMIT_H
#define NVNFSD_LIMIT_H

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Offsets in a record, its mark included, in words: xid 1, procedure 6,
 * AUTH_SYS with machine name "bench" 7-15, verifier 16-17, then handle, offset,
 * count, and of a WRITE stable and the length of the data. */
enum {
	WORD_XID = 1,
	WORD_PROC = 6,
	WORD_OFFSET = 27,
	WORD_COUNT = 29,
	CALL_NULL_BYTES = 72,
	CALL_PLACE_BYTES = 120, /* READ and COMMIT are no longer */
	CALL_WRITE_BYTES = 128, /* up to the data */
	REPLY_BYTES_MAX = 64    /* without the data of a READ */
};

enum { LIMIT_NULL = 0, LIMIT_READ = 6, LIMIT_WRITE = 7, LIMIT_COMMIT = 21 };

static inline uint32_t
limit_word(const void *call, unsigned word)
{
	uint32_t v;

	memcpy(&v, (const char *)call + 4ul * word, 4);
	return ntohl(v);
}

static inline uint64_t
limit_offset(const void *call)
{
	return (uint64_t)limit_word(call, WORD_OFFSET) << 32 |
	       limit_word(call, WORD_OFFSET + 1);
}

/* The reply to call, a READ's up to its data: no attributes, a verifier of
 * zeros. stable: as the WRITE asked, or more. Its length. */
static inline uint32_t
limit_reply(const void *call, uint32_t *reply, uint32_t status, uint32_t stable)
{
	uint32_t proc = limit_word(call, WORD_PROC), n = 0, data = 0;
	uint32_t count = 0;

	if (proc != LIMIT_NULL)
		count = limit_word(call, WORD_COUNT);
	memset(reply, 0, REPLY_BYTES_MAX);
	n++; /* the record mark */
	memcpy(&reply[n++], (const char *)call + 4ul * WORD_XID, 4);
	reply[n++] = htonl(1); /* REPLY; accepted, AUTH_NONE, success */
	n += 4;
	if (proc != LIMIT_NULL)
		reply[n++] = htonl(status);
	if (proc == LIMIT_READ) {
		n += 1; /* no attributes */
		if (status == 0) {
			reply[n++] = htonl(count);
			n++; /* not the end */
			reply[n++] = htonl(count);
			data = (count + 3) & ~3u;
		}
	} else if (proc != LIMIT_NULL) {
		n += 2; /* no wcc_data */
		if (proc == LIMIT_WRITE && status == 0) {
			reply[n++] = htonl(count);
			reply[n++] = htonl(stable);
		}
		if (status == 0)
			n += 2; /* the verifier */
	}
	reply[0] = htonl(0x80000000u | (n * 4 - 4 + data));
	return n * 4;
}

/* A socket listening on a free port of 127.0.0.1, told on standard output in
 * the form of nvnfsd's ready line. Ends the program when there is none. */
static inline int
limit_listen(const char *name)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    listen(fd, 64) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &len) < 0) {
		perror(name);
		exit(1);
	}
	printf("%s: ready nfs=127.0.0.1:%u mount=127.0.0.1:%u exports=0\n",
	       name, ntohs(a.sin_port), ntohs(a.sin_port));
	(void)fflush(stdout);
	return fd;
}

static inline int
limit_accept(int listener)
{
	int one = 1, fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one,
				 sizeof(one));
	return fd;
}

#endif
