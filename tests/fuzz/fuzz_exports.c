/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Export tables. Input: the file. What fails says why; what is taken is sound
 * (paths normal and sorted, clients in order of precedence) and prints as a
 * normal form that is taken again and prints as itself.
 */
#include "conf/parse.h"
#include "tests/fuzz/fuzz.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void
check_export(const struct conf_export *x)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	size_t n = strlen(x->path);

	assert(x->path[0] == '/' && !strstr(x->path, "//"));
	assert(n == 1 || x->path[n - 1] != '/');
	assert(x->file && x->line && x->client_count);
	for (unsigned i = 0; i < x->client_count; i++) {
		const struct conf_client *c = &x->clients[i];
		int is4 = conf_match_addr(&c->match, (struct sockaddr *)&v4);
		int is6 = conf_match_addr(&c->match, (struct sockaddr *)&v6);

		assert(c->file && c->line);
		assert(is4 == 0 || is4 == 1 || is4 == -EAGAIN);
		assert((is4 == -EAGAIN) == (is6 == -EAGAIN));
		if (i)
			assert(conf_client_compare(&x->clients[i - 1].match,
						   &c->match) <= 0);
	}
}

static char *
print(const struct conf_exports *e, size_t *ret_bytes)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_bytes);

	assert(out);
	conf_exports_print(e, out);
	assert(fclose(out) == 0);
	return text;
}

static void
check_again(const char *normal, size_t n)
{
	struct conf_report r = { 0 };
	struct conf_exports e;
	size_t bytes;
	char *text;

	assert(conf_exports_parse(&e, normal, n, "normal", &r) == 0);
	assert(r.errors == 0);
	text = print(&e, &bytes);
	assert(bytes == n && !memcmp(text, normal, n));
	free(text);
	conf_exports_fini(&e);
	conf_report_fini(&r);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct conf_report r = { 0 };
	struct conf_exports e;
	size_t bytes;
	char *text;
	int error = conf_exports_parse(&e, (const char *)data, n, "in", &r);

	assert(error == 0 || error == -EINVAL);
	assert((error != 0) == (r.errors != 0));
	assert(r.count <= CONF_MESSAGES_MAX);
	for (unsigned i = 0; i < r.count; i++)
		assert(!strncmp(r.messages[i].text, "in:", 3) ||
		       i == CONF_MESSAGES_MAX - 1);
	conf_report_fini(&r);
	if (error)
		return 0;
	for (unsigned i = 0; i < e.count; i++) {
		check_export(&e.exports[i]);
		if (i)
			assert(strcmp(e.exports[i - 1].path,
				      e.exports[i].path) < 0);
	}
	text = print(&e, &bytes);
	check_again(text, bytes);
	free(text);
	conf_exports_fini(&e);
	return 0;
}
