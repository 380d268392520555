/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics over HTTP: a small part of the control thread.
 */
#ifndef NVNFSD_HTTP_H
#define NVNFSD_HTTP_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct server;

#define HTTP_REQUEST_BYTES 8192u

enum http_what {
	HTTP_MORE, /* not whole yet */
	HTTP_METRICS,
	HTTP_METRICS_HEAD,
	HTTP_NOT_FOUND,
	HTTP_NOT_ALLOWED,
	HTTP_BAD
};

/* What do the n bytes that have come so far ask for? Pure. */
enum http_what http_parse(const char *request, size_t n);

struct http;
/* Listen on all addresses of host ("" for any) and port. 0 or -errno, logged.
 */
int http_open(struct http **ret, struct server *s, const char *host,
	      uint16_t port);
void http_close(struct http *h); /* NULL is taken */

#define HTTP_POLLFDS 24u
/* On the control thread: fill set, then act upon it. h may be NULL. */
void http_poll(const struct http *h, struct pollfd set[HTTP_POLLFDS]);
void http_act(struct http *h, const struct pollfd set[HTTP_POLLFDS]);

#endif
