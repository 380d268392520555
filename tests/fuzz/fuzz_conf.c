/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvnfsd.conf. Input: the file. What fails says why and changes nothing; what
 * is taken prints as a normal form that is taken again and prints as itself.
 */
#include "conf/parse.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static char *
print(const struct conf *c, size_t *ret_bytes)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_bytes);

	assert(out);
	conf_print(c, out);
	assert(fclose(out) == 0);
	return text;
}

static void
check_again(const char *normal, size_t n)
{
	struct conf_report r = { 0 };
	struct conf c;
	size_t bytes;
	char *text;

	conf_init(&c);
	assert(conf_parse(&c, normal, n, "normal", &r) == 0);
	assert(r.count == 0);
	text = print(&c, &bytes);
	assert(bytes == n && !memcmp(text, normal, n));
	free(text);
	conf_fini(&c);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct conf_report r = { 0 };
	struct conf c;
	size_t before_bytes, after_bytes;
	char *before, *after;
	int error;

	conf_init(&c);
	before = print(&c, &before_bytes);
	error = conf_parse(&c, (const char *)data, n, "in", &r);
	assert(error == 0 || error == -EINVAL);
	assert((error != 0) == (r.errors != 0));
	assert(r.count <= CONF_MESSAGES_MAX);
	for (unsigned i = 0; i < r.count; i++)
		assert(!strncmp(r.messages[i].text, "in:", 3) ||
		       i == CONF_MESSAGES_MAX - 1);
	after = print(&c, &after_bytes);
	if (error)
		assert(!strcmp(before, after));
	else
		check_again(after, after_bytes);
	free(before);
	free(after);
	conf_fini(&c);
	conf_report_fini(&r);
	return 0;
}
