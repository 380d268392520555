/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes over the control socket and to the metrics' listener. Input: the
 * bytes, taken for a request of either. Every reply is one line of JSON that
 * says ok or why not; what asks for metrics is a whole GET or HEAD.
 */
#include "nfsd/ctl.h"
#include "nfsd/http.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static int
run(struct server *s, struct json_object *args, struct json_object **ret,
    struct ctl_error *e)
{
	const char *word = ctl_arg(args, "word");

	if (ctl_arg_bool(args, "fail"))
		return ctl_fail(e, -EPERM, "%s", word != NULL ? word : "");
	*ret = word != NULL ? json_object_new_string(word) : NULL;
	return 0;
}

static const struct ctl_command commands[] = { { "run", run }, { NULL, NULL } };

static void
check_reply(const char *line, size_t n)
{
	struct json_object *o = ctl_answer(commands, NULL, line, n);
	struct json_object *ok, *part;
	const char *text = json_object_to_json_string_ext(
		o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);

	assert(strchr(text, '\n') == NULL);
	assert(json_object_object_get_ex(o, "ok", &ok));
	assert(json_object_object_get_ex(
		o, json_object_get_boolean(ok) ? "result" : "error", &part));
	json_object_put(o);
}

static void
check_http(const char *request, size_t n)
{
	enum http_what what = http_parse(request, n);

	if (what == HTTP_METRICS)
		assert(n > 4 && memcmp(request, "GET ", 4) == 0);
	if (what == HTTP_METRICS_HEAD)
		assert(n > 5 && memcmp(request, "HEAD ", 5) == 0);
	if (what == HTTP_METRICS || what == HTTP_METRICS_HEAD)
		assert(memmem(request, n, "\r\n\r\n", 4) != NULL);
	if (n >= HTTP_REQUEST_BYTES)
		assert(what != HTTP_MORE);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	check_reply((const char *)data, n);
	if (n <= HTTP_REQUEST_BYTES)
		check_http((const char *)data, n);
	return 0;
}
