/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/export_world.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static char dir_path[] = "/var/tmp/test_export.XXXXXX";
static_assert(sizeof(dir_path) <= sizeof(((struct world *)0)->dir), "fits");

int
world_enter(void **state)
{
	if (geteuid() != 0) {
		(void)fprintf(stderr, "this test needs root\n");
		exit(77);
	}
	umask(022);
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    !mkdtemp(dir_path) || chdir(dir_path) < 0)
		return -1;
	return mkdir("a", 0755) < 0 || mkdir("b", 0755) < 0 ? -1 : 0;
}

int
world_leave(void **state)
{
	rmdir("a");
	rmdir("b");
	return rmdir(dir_path);
}

static int
worker_init(void *arg)
{
	return identity_worker_init();
}

int
world_setup(void **state)
{
	struct engine_config config = { .reactors = 1,
					.workers = 2,
					.io_workers = 1,
					.buffer_bytes = 16u << 20,
					.worker_init = worker_init };
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		return -1;
	memcpy(w->dir, dir_path, sizeof(dir_path));
	w->verifier = 1000;
	conf_init(&w->conf);
	*state = w;
	return engine_new(&w->engine, &config);
}

int
world_teardown(void **state)
{
	struct world *w = *state;

	engine_free(w->engine);
	conf_report_fini(&w->report);
	conf_fini(&w->conf);
	free(w);
	return 0;
}

static uint64_t
next_verifier(uint64_t export_id, void *arg)
{
	struct world *w = arg;

	return w->verifier++;
}

int
world_load(struct world *w, struct export_table **ret, struct export_table *old,
	   const char *format)
{
	const struct export_load load = { .engine = w->engine,
					  .conf = &w->conf,
					  .verifier = next_verifier,
					  .arg = w };
	struct conf_exports parsed = { 0 };
	char *text;
	int n, r;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	n = asprintf(&text, format, w->dir, w->dir, w->dir, w->dir);
#pragma GCC diagnostic pop
	if (n < 0)
		return -ENOMEM;
	conf_report_fini(&w->report);
	r = conf_exports_parse(&parsed, text, (size_t)n, "exports", &w->report);
	if (r == 0)
		r = export_table_load(ret, &parsed, old, &load, &w->report);
	conf_exports_fini(&parsed);
	free(text);
	return r;
}

bool
world_said(const struct world *w, bool warning, const char *a, const char *b)
{
	for (unsigned i = 0; i < w->report.count; i++) {
		const struct conf_message *m = &w->report.messages[i];

		if (m->warning == warning && strstr(m->text, a) &&
		    strstr(m->text, b))
			return true;
	}
	for (unsigned i = 0; i < w->report.count; i++)
		(void)fprintf(stderr, "said: %s\n", w->report.messages[i].text);
	return false;
}

struct export *
world_export(const struct world *w, const struct export_table *t,
	     const char *name)
{
	const char *rest;
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/%s", w->dir, name);
	return export_find_path(t, path, &rest);
}

const struct sockaddr *
world_client(const char *address, uint16_t port)
{
	static union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} client;

	memset(&client, 0, sizeof(client));
	if (inet_pton(AF_INET, address, &client.v4.sin_addr) == 1) {
		client.v4.sin_family = AF_INET;
		client.v4.sin_port = htons(port);
	} else if (inet_pton(AF_INET6, address, &client.v6.sin6_addr) == 1) {
		client.v6.sin6_family = AF_INET6;
		client.v6.sin6_port = htons(port);
	} else {
		client.any.sa_family = AF_UNIX;
	}
	return &client.any;
}
