/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name server that never answers: clients that are matched by name wait for
 * it, and nobody else does. In mounts of the test's own, so that it can say
 * which name server there is.
 */
#include "harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAITERS      40 /* more than all workers of the server */
#define NAME_SERVER  "127.0.0.77"
#define BY_NAME      "127.0.0.2"
#define QUERIES_SEEN 4
#define PATIENCE_MS  60000

static const char *why; /* it cannot be tested here */

static struct sockaddr_in
address(const char *text, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(port) };

	assert_int_equal(inet_pton(AF_INET, text, &a.sin_addr), 1);
	return a;
}

static int
silent_server(void)
{
	struct sockaddr_in a = address(NAME_SERVER, 53);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		why = strerror(errno);
		close(fd);
		return -1;
	}
	return fd;
}

static bool
put_over(const char *dir, const char *path, const char *text)
{
	char over[400];
	FILE *f;

	(void)snprintf(over, sizeof(over), "%s/over", dir);
	f = fopen(over, "w");
	if (f == NULL || fputs(text, f) < 0 || fclose(f) != 0)
		return false;
	if (mount(over, path, NULL, MS_BIND, NULL) < 0)
		return false;
	return unlink(over) == 0;
}

/* The server is our child and sees the mounts that we see. */
static bool
own_names(const char *dir)
{
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    !put_over(dir, "/etc/nsswitch.conf", "hosts: dns\n") ||
	    !put_over(dir, "/etc/resolv.conf",
		      "nameserver " NAME_SERVER "\n"
		      "options timeout:30 attempts:1\n"))
		why = strerror(errno);
	return why == NULL;
}

static struct harness *
start(void)
{
	struct harness *h = harness_new(NULL);
	FILE *f;

	if (!own_names(h->dir)) {
		harness_free(h);
		return NULL;
	}
	(void)snprintf(h->exports, sizeof(h->exports), "%s/names", h->dir);
	f = fopen(h->exports, "w");
	assert_non_null(f);
	(void)fprintf(f,
		      "%s 127.0.0.1(rw,insecure) *.example.org(rw,insecure)\n",
		      h->export);
	assert_int_equal(fclose(f), 0);
	harness_start(h);
	return h;
}

static struct raw *
connect_from(const char *from, uint16_t port)
{
	struct raw *r = raw_connect(port);
	struct sockaddr_in own = address(from, 0),
			   to = address("127.0.0.1", port);

	close(r->fd);
	r->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(r->fd >= 0);
	assert_int_equal(bind(r->fd, (struct sockaddr *)&own, sizeof(own)), 0);
	assert_int_equal(connect(r->fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return r;
}

static void
ask_to_mount(struct raw *r, const char *path)
{
	dirpath arg = (char *)path;

	(void)raw_build(r, MOUNT_PROGRAM, MOUNT_V3, MOUNT3_MNT,
			(raw_zdr_fn *)zdr_dirpath, &arg);
	raw_send(r);
}

static bool
readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static void
await_queries(int fd)
{
	char query[512];

	for (int i = 0; i < QUERIES_SEEN; i++) {
		assert_true(readable(fd, PATIENCE_MS));
		assert_true(recv(fd, query, sizeof(query), 0) > 0);
	}
}

static void
others_do_not_wait(void **state)
{
	int server = silent_server();
	struct harness *h = server < 0 ? NULL : start();
	struct raw *waits[WAITERS], *r;
	struct raw_fh fh;

	(void)state;
	if (h == NULL) {
		print_message("skip: no name server of our own: %s\n", why);
		skip();
	}
	for (int i = 0; i < WAITERS; i++) {
		waits[i] = connect_from(BY_NAME, h->mount_port);
		ask_to_mount(waits[i], h->export);
	}
	await_queries(server);
	r = raw_connect(h->mount_port);
	assert_int_equal(raw_mount(r, h->export, &fh), MNT3_OK);
	raw_create(r, &fh, "file", 0644, &fh);
	for (int i = 0; i < WAITERS; i++) {
		assert_false(readable(waits[i]->fd, 0));
		raw_close(waits[i]);
	}
	raw_close(r);
	harness_kill(h); /* it would wait for the name server */
	harness_free(h);
	close(server);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_do_not_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
