/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands around the control socket, without a server: requests as text,
 * the table of counters, the clients' numbers, the slowest calls, and what
 * debugfs says of a device's tags.
 */
#include "nfsd/clients.h"
#include "nfsd/counters.h"
#include "nfsd/ctl.h"
#include "nfsd/slow.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* Requests ------------------------------------------------------------------
 */

static int
run_echo(struct server *s, struct json_object *args, struct json_object **ret,
	 struct ctl_error *e)
{
	const char *word = ctl_arg(args, "word");

	if (word == NULL)
		return ctl_fail(e, -EINVAL, "no %s", "word");
	*ret = json_object_new_string(word);
	return 0;
}

static int
run_flag(struct server *s, struct json_object *args, struct json_object **ret,
	 struct ctl_error *e)
{
	*ret = json_object_new_boolean(ctl_arg_bool(args, "flag"));
	return 0;
}

static const struct ctl_command commands[] = {
	{ "echo", run_echo },
	{ "flag", run_flag },
	{ NULL, NULL },
};

/* The reply to text, as text. */
static void
expect(const char *text, const char *want)
{
	struct json_object *o = ctl_answer(commands, NULL, text, strlen(text));

	assert_string_equal(
		json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN),
		want);
	json_object_put(o);
}

static void
test_requests(void **state)
{
	expect("{\"command\":\"echo\",\"args\":{\"word\":\"a\\nb\"}}",
	       "{\"ok\":true,\"result\":\"a\\nb\"}");
	expect(" { \"args\" : {\"flag\":true}, \"command\":\"flag\" }",
	       "{\"ok\":true,\"result\":true}");
	expect("{\"command\":\"flag\",\"args\":{\"flag\":1}}",
	       "{\"ok\":true,\"result\":false}");
	expect("{\"command\":\"flag\"}", "{\"ok\":true,\"result\":false}");
	expect("{\"command\":\"echo\",\"args\":{\"word\":1}}",
	       "{\"ok\":false,\"error\":\"no word\",\"errno\":\"EINVAL\"}");
	expect("{\"command\":\"none\"}",
	       "{\"ok\":false,\"error\":\"the server knows no command "
	       "\\\"none\\\"\",\"errno\":\"ENOSYS\"}");
}

/* Deeper than a request is. */
#define DEEP4 "{\"a\":{\"a\":{\"a\":{\"a\":"
static const char deep[] = DEEP4 DEEP4 DEEP4 "1}}}}}}}}}}}}";

static void
test_garbage(void **state)
{
	static const char *const bad[] = {
		"",
		"x",
		"[]",
		"\"echo\"",
		"null",
		"{\"command\":\"echo\"",
		"{\"command\":\"echo\"}}",
		"{\"command\":\"echo\"} {}",
		"{\"command\":7}",
		"{\"args\":{}}",
		"{\"command\":\"echo\",\"args\":[]}",
		"{\"command\":\"echo\",\"args\":{\"word\":\"\xff\"}}",
		deep,
	};
	struct json_object *o, *code;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		o = ctl_answer(commands, NULL, bad[i], strlen(bad[i]));
		assert_true(json_object_object_get_ex(o, "errno", &code));
		assert_string_equal(json_object_get_string(code), "EBADMSG");
		json_object_put(o);
	}
}

/* The table ------------------------------------------------------------------
 */

static bool
is_name(const char *name)
{
	const char *p;

	for (p = name; *p != '\0'; p++)
		if (!islower((unsigned char)*p) &&
		    !isdigit((unsigned char)*p) && *p != '_')
			return false;
	return p != name && islower((unsigned char)*name);
}

/* Names are names, once each; each row can be read and explains itself. */
static void
test_table(void **state)
{
	const struct counter *c, *d;

	for (unsigned i = 0; (c = counter_row(i)) != NULL; i++) {
		assert_true(is_name(c->name));
		assert_true(c->metric == NULL || is_name(c->metric));
		assert_true(strlen(c->help) > 5);
		assert_false(c->help[strlen(c->help) - 1] == '.');
		assert_int_equal(c->values > 0, c->value_name != NULL);
		assert_int_equal(c->values > 0 || c->list != NULL,
				 c->label != NULL);
		assert_int_equal(c->scope == BY_CALL, c->read != NULL);
		assert_int_equal(c->scope == BY_LABEL, c->list != NULL);
		for (unsigned j = 0; j < i; j++) {
			d = counter_row(j);
			assert_string_not_equal(c->name, d->name);
			assert_string_not_equal(c->metric ? c->metric : c->name,
						d->metric ? d->metric
							  : d->name);
		}
		for (unsigned j = 0; j < c->values; j++)
			assert_non_null(c->value_name(j));
	}
}

/* Clients --------------------------------------------------------------------
 */

static uint32_t
enter(struct clients *c, unsigned host, uint64_t now)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	a.sin_addr.s_addr = htonl(0x0a000000u + host);
	a.sin_port = (in_port_t)now;
	return clients_enter(c, (struct sockaddr *)&a, now);
}

static void
test_clients(void **state)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	static struct client list[CLIENTS_MAX];
	struct clients *c = clients_new();
	uint32_t a = enter(c, 1, 10), b = enter(c, 2, 11);

	assert_int_not_equal(a, CLIENTS_OTHERS);
	assert_int_not_equal(a, b);
	assert_int_equal(enter(c, 1, 12), a);
	/* ::ffff:10.0.0.2 is 10.0.0.2 */
	v6.sin6_addr.s6_addr[10] = v6.sin6_addr.s6_addr[11] = 0xff;
	v6.sin6_addr.s6_addr[12] = 10;
	v6.sin6_addr.s6_addr[15] = 2;
	assert_int_equal(clients_enter(c, (struct sockaddr *)&v6, 13), b);
	assert_int_equal(clients_list(c, list, CLIENTS_MAX), 2);
	assert_string_equal(list[0].address, "10.0.0.1");
	assert_int_equal(list[0].connections, 2);
	assert_int_equal(list[1].since_ns, 11);
	assert_int_equal(list[1].seen_ns, 13);
	clients_leave(c, a, 14);
	clients_leave(c, a, 15);
	assert_int_equal(clients_list(c, list, 1), 1);
	assert_int_equal(list[0].connections, 0);
	assert_int_equal(list[0].connections_total, 2);
	clients_free(c);
}

/* When all places are taken, who left longest ago makes room, and nobody where
 * all are connected. */
static void
test_clients_full(void **state)
{
	static struct client list[CLIENTS_MAX];
	struct clients *c = clients_new();
	uint32_t number[CLIENTS_MAX + 1];
	unsigned i;

	for (i = 0; i < CLIENTS_MAX; i++)
		number[i] = enter(c, i, i);
	assert_int_equal(enter(c, CLIENTS_MAX, 1000), CLIENTS_OTHERS);
	clients_leave(c, CLIENTS_OTHERS, 1000);
	clients_leave(c, number[7], 1001);
	clients_leave(c, number[3], 1002);
	number[CLIENTS_MAX] = enter(c, CLIENTS_MAX, 1003);
	assert_int_not_equal(number[CLIENTS_MAX], CLIENTS_OTHERS);
	for (i = 0; i < CLIENTS_MAX; i++)
		assert_int_not_equal(number[CLIENTS_MAX], number[i]);
	assert_int_equal(enter(c, 3, 1004), number[3]);
	assert_int_equal(enter(c, 7, 1005), CLIENTS_OTHERS);
	assert_int_equal(clients_list(c, list, CLIENTS_MAX), CLIENTS_MAX);
	clients_free(c);
}

/* The slowest ----------------------------------------------------------------
 */

static void
test_slow(void **state)
{
	struct slow_call list[2 * SLOW_CALLS], call = { 0 };
	struct slow *s = slow_new();
	uint64_t now = 5 * SLOW_PERIOD_NS, least = UINT64_MAX;
	unsigned i, n;

	call.begin_ns = now - 2000;
	for (i = 0; i < 1000; i++) {
		call.ns = 1000 + (i * 7919) % 1000;
		if (slow_wants(s, call.ns, now))
			slow_note(s, &call, now);
	}
	n = slow_list(s, now, list, 2 * SLOW_CALLS);
	assert_int_equal(n, SLOW_CALLS);
	for (i = 0; i < n; i++)
		if (list[i].ns < least)
			least = list[i].ns;
	assert_int_equal(least, 2000 - SLOW_CALLS);
	assert_false(slow_wants(s, least, now));
	/* The next period begins with whatever comes; the last one stays. */
	now += SLOW_PERIOD_NS + 1;
	call.begin_ns = now - 1;
	call.ns = 1;
	assert_true(slow_wants(s, call.ns, now));
	slow_note(s, &call, now);
	assert_int_equal(slow_list(s, now, list, 2 * SLOW_CALLS),
			 SLOW_CALLS + 1);
	assert_int_equal(slow_list(s, now, list, 3), 3);
	/* After a long silence there is nothing recent, also before the next
	 * call comes. */
	now += 3 * SLOW_PERIOD_NS;
	assert_int_equal(slow_list(s, now, list, 2 * SLOW_CALLS), 0);
	call.begin_ns = now - 1;
	slow_note(s, &call, now);
	assert_int_equal(slow_list(s, now, list, 2 * SLOW_CALLS), 1);
	slow_free(s);
	for (i = 0; i < SLOW_STAGES; i++)
		assert_non_null(slow_stage_name((enum slow_stage)i));
}

/* Tags -----------------------------------------------------------------------
 */

static void
make(const char *dir, const char *path, const char *text)
{
	char name[512], *slash;
	FILE *f;

	(void)snprintf(name, sizeof(name), "%s/%s", dir, path);
	for (slash = strchr(name + 1, '/'); slash != NULL;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(name, 0700);
		*slash = '/';
	}
	f = fopen(name, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void
test_tags(void **state)
{
	char dir[] = "/tmp/test_ctl.XXXXXX", command[64];
	uint64_t n = 77;
	int fd;

	assert_non_null(mkdtemp(dir));
	make(dir, "vda/hctx0/tags",
	     "nr_tags=128\n\nbitmap_tags:\ndepth=128\nws_active=3\nws={\n");
	make(dir, "vda/hctx0/sched_tags", "busy=0\nws_active=2\n");
	make(dir, "vda/hctx1/tags", "ws_active=4\n");
	make(dir, "vda/state", "SAME_COMP\n");
	make(dir, "old/hctx0/busy", "");
	make(dir, "idle/hctx0/tags", "ws_active=0\n");
	fd = open(dir, O_RDONLY | O_DIRECTORY);
	assert_true(fd >= 0);
	assert_int_equal(tags_waiting(fd, "vda", &n), 0);
	assert_int_equal(n, 9);
	assert_int_equal(tags_waiting(fd, "idle", &n), 0);
	assert_int_equal(n, 0);
	/* Not known is not 0. */
	n = 77;
	assert_int_equal(tags_waiting(fd, "old", &n), -ENODATA);
	assert_int_equal(tags_waiting(fd, "none", &n), -ENODATA);
	assert_int_equal(n, 77);
	close(fd);
	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_clients),
		cmocka_unit_test(test_clients_full),
		cmocka_unit_test(test_slow),
		cmocka_unit_test(test_tags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
