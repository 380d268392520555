/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /metrics over HTTP/1.1, one request a connection. The object is struct
 * http: opened at the start, then the control thread's. Everybody may ask: what
 * may be known of the server is for whoever the listener's address lets in.
 * Where all places are taken the oldest connection makes room, so that a peer
 * that says nothing keeps nobody out. RFC 9112.
 */
#include "nfsd/http.h"

#include "nfsd/ctl.h"
#include "nfsd/openmetrics.h"
#include "nfsd/server.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LISTENERS_MAX 8u
#define VISITORS_MAX  (HTTP_POLLFDS - LISTENERS_MAX)
#define HEAD_BYTES    256u

struct visitor {
	int fd;        /* -1: free */
	uint64_t came; /* in which order */
	size_t in_bytes;
	char *out; /* the response, NULL: still reading */
	size_t out_bytes, out_sent;
	char in[HTTP_REQUEST_BYTES];
};

struct http {
	struct server *server;
	int listener[LISTENERS_MAX];
	unsigned listeners;
	uint64_t visits;
	struct visitor visitor[VISITORS_MAX];
};

/* Requests ----------------------------------------------------------------- */

static bool
starts(const char *text, size_t n, const char *word)
{
	return n >= strlen(word) && memcmp(text, word, strlen(word)) == 0;
}

static bool
is_metrics(const char *path, size_t n)
{
	static const char metrics[] = "/metrics";
	const size_t m = sizeof(metrics) - 1;

	return starts(path, n, metrics) && n > m &&
	       (path[m] == ' ' || path[m] == '?');
}

enum http_what
http_parse(const char *request, size_t n)
{
	const char *end = memmem(request, n, "\r\n\r\n", 4), *line, *path;
	size_t line_bytes;
	bool head;

	if (end == NULL)
		return n < HTTP_REQUEST_BYTES ? HTTP_MORE : HTTP_BAD;
	line = memchr(request, '\r', n);
	line_bytes = (size_t)(line - request);
	path = memchr(request, ' ', line_bytes);
	if (path == NULL || path == request ||
	    memmem(path, line_bytes - (size_t)(path - request), " HTTP/1.",
		   8) == NULL)
		return HTTP_BAD;
	head = starts(request, line_bytes, "HEAD ");
	if (!head && !starts(request, line_bytes, "GET "))
		return HTTP_NOT_ALLOWED;
	path++;
	if (!is_metrics(path, line_bytes - (size_t)(path - request)))
		return HTTP_NOT_FOUND;
	return head ? HTTP_METRICS_HEAD : HTTP_METRICS;
}

/* Visitors ----------------------------------------------------------------- */

static void
visitor_close(struct visitor *v)
{
	if (v->fd >= 0)
		close(v->fd);
	free(v->out);
	v->fd = -1;
	v->out = NULL;
	v->in_bytes = 0;
}

static void
respond(struct visitor *v, const char *status, const char *type,
	const char *body, size_t body_bytes, bool head_only)
{
	char head[HEAD_BYTES];
	int n = snprintf(head, sizeof(head),
			 "HTTP/1.1 %s\r\nContent-Type: %s\r\n"
			 "Content-Length: %zu\r\nConnection: close\r\n\r\n",
			 status, type, body_bytes);
	size_t bytes = (size_t)n + (head_only ? 0 : body_bytes);

	v->out = malloc(bytes);
	if (v->out == NULL) {
		visitor_close(v);
		return;
	}
	memcpy(v->out, head, (size_t)n);
	if (!head_only)
		memcpy(v->out + n, body, body_bytes);
	v->out_bytes = bytes;
	v->out_sent = 0;
}

static void
respond_text(struct visitor *v, const char *status)
{
	respond(v, status, "text/plain; charset=utf-8", status, strlen(status),
		false);
}

static void
respond_metrics(struct http *h, struct visitor *v, bool head_only)
{
	size_t bytes = 0;
	char *text = openmetrics_text(h->server, &bytes);

	if (text == NULL)
		respond_text(v, "503 Service Unavailable");
	else
		respond(v, "200 OK", OPENMETRICS_TYPE, text, bytes, head_only);
	free(text);
}

static void
visitor_read(struct http *h, struct visitor *v)
{
	ssize_t n = read(v->fd, v->in + v->in_bytes,
			 HTTP_REQUEST_BYTES - v->in_bytes);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		visitor_close(v);
		return;
	}
	v->in_bytes += (size_t)n;
	switch (http_parse(v->in, v->in_bytes)) {
	case HTTP_MORE:
		break;
	case HTTP_METRICS:
		respond_metrics(h, v, false);
		break;
	case HTTP_METRICS_HEAD:
		respond_metrics(h, v, true);
		break;
	case HTTP_NOT_FOUND:
		respond_text(v, "404 Not Found");
		break;
	case HTTP_NOT_ALLOWED:
		respond_text(v, "405 Method Not Allowed");
		break;
	case HTTP_BAD:
		respond_text(v, "400 Bad Request");
		break;
	}
}

static void
visitor_write(struct visitor *v)
{
	ssize_t n = send(v->fd, v->out + v->out_sent,
			 v->out_bytes - v->out_sent, MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		v->out_sent += (size_t)n;
	if (n <= 0 || v->out_sent == v->out_bytes)
		visitor_close(v);
}

static void
visitor_accept(struct http *h, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct visitor *v = NULL;
	unsigned i;

	if (fd < 0) {
		ctl_accept_failed(errno);
		return;
	}
	for (i = 0; i < VISITORS_MAX; i++) {
		struct visitor *o = &h->visitor[i];

		if (o->fd < 0) {
			v = o;
			break;
		}
		if (v == NULL || o->came < v->came)
			v = o;
	}
	visitor_close(v);
	v->fd = fd;
	v->came = ++h->visits;
}

/* Polling ------------------------------------------------------------------ */

void
http_poll(const struct http *h, struct pollfd set[HTTP_POLLFDS])
{
	unsigned i;

	for (i = 0; i < HTTP_POLLFDS; i++)
		set[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
	if (h == NULL)
		return;
	for (i = 0; i < h->listeners; i++)
		set[i].fd = h->listener[i];
	for (i = 0; i < VISITORS_MAX; i++) {
		const struct visitor *v = &h->visitor[i];

		set[LISTENERS_MAX + i].fd = v->fd;
		if (v->out != NULL)
			set[LISTENERS_MAX + i].events = POLLOUT;
	}
}

void
http_act(struct http *h, const struct pollfd set[HTTP_POLLFDS])
{
	unsigned i;

	if (h == NULL)
		return;
	for (i = 0; i < VISITORS_MAX; i++) {
		struct visitor *v = &h->visitor[i];

		if (v->fd < 0 || set[LISTENERS_MAX + i].revents == 0)
			continue;
		if (v->out != NULL)
			visitor_write(v);
		else
			visitor_read(h, v);
	}
	for (i = 0; i < h->listeners; i++)
		if (set[i].revents != 0)
			visitor_accept(h, h->listener[i]);
}

/* Opening ------------------------------------------------------------------ */

static int
listen_one(struct http *h, const struct addrinfo *a)
{
	const int one = 1;
	int fd, rc = 0;

	if (h->listeners == LISTENERS_MAX)
		return 0;
	fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
		    0);
	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (a->ai_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one,
				 sizeof(one));
	if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, 16) < 0)
		rc = -errno;
	if (rc < 0) {
		close(fd);
		return rc;
	}
	h->listener[h->listeners++] = fd;
	return 0;
}

static void
log_listener(int fd)
{
	char host[NI_MAXHOST], port[NI_MAXSERV];
	struct sockaddr_storage a = { 0 };
	socklen_t n = sizeof(a);

	if (getsockname(fd, (struct sockaddr *)&a, &n) == 0 &&
	    getnameinfo((struct sockaddr *)&a, n, host, sizeof(host), port,
			sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		log_msg(LOG_NOTICE_, "metrics on http://%s%s%s:%s/metrics",
			a.ss_family == AF_INET6 ? "[" : "", host,
			a.ss_family == AF_INET6 ? "]" : "", port);
}

/* "Any" is the families that this machine has. */
static int
listen_all(struct http *h, const char *host, uint16_t port)
{
	struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICSERV,
				  .ai_socktype = SOCK_STREAM };
	struct addrinfo *list, *a;
	char service[8];
	int rc, one = 0;

	(void)snprintf(service, sizeof(service), "%u", port);
	rc = getaddrinfo(*host != '\0' ? host : NULL, service, &hints, &list);
	if (rc != 0) {
		log_msg(LOG_ERR_, "cannot listen for metrics on \"%s\": %s",
			host, gai_strerror(rc));
		return -EADDRNOTAVAIL;
	}
	for (a = list; a != NULL && (one == 0 || *host == '\0');
	     a = a->ai_next) {
		one = listen_one(h, a);
		if (one == -EAFNOSUPPORT && *host == '\0')
			one = 0;
		if (one < 0)
			break;
	}
	freeaddrinfo(list);
	if (one == 0 && h->listeners == 0)
		one = -EAFNOSUPPORT;
	if (one < 0)
		log_msg(LOG_ERR_, "cannot listen for metrics on %s:%u: %s",
			host, port, strerror(-one));
	return one;
}

int
http_open(struct http **ret, struct server *s, const char *host, uint16_t port)
{
	struct http *h = calloc(1, sizeof(*h));
	unsigned i;
	int rc;

	if (h == NULL)
		return -ENOMEM;
	h->server = s;
	for (i = 0; i < VISITORS_MAX; i++)
		h->visitor[i].fd = -1;
	rc = listen_all(h, host, port);
	if (rc < 0) {
		http_close(h);
		return rc;
	}
	for (i = 0; i < h->listeners; i++)
		log_listener(h->listener[i]);
	*ret = h;
	return 0;
}

void
http_close(struct http *h)
{
	unsigned i;

	if (h == NULL)
		return;
	for (i = 0; i < VISITORS_MAX; i++)
		visitor_close(&h->visitor[i]);
	for (i = 0; i < h->listeners; i++)
		close(h->listener[i]);
	free(h);
}
