/* SPDX-License-Identifier: Apache-2.0 */
/* nvnfsctl: what it turns in a server that serves. */
#include "control.h"
#include "site.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#define RECORD 47008u
#define WRITES 20u

static void
expect_mode(struct harness *h, const char *mode, const char *value)
{
	struct json_object *o = control_json(h, "exports");
	struct json_object *e = json_object_array_get_idx(o, 0);

	assert_string_equal(json_object_get_string(control_part(
				    control_part(e, "modes"), mode)),
			    value);
	json_object_put(o);
}

/* The reload is over when its message is there. */
static void
reload(struct harness *h)
{
	unsigned before = harness_log_count(h, "reloaded");

	harness_signal(h, SIGHUP);
	while (harness_log_count(h, "reloaded") == before)
		usleep(2000);
}

static void
test_set(void **state)
{
	struct site *s = site_new("uring",
				  "rw,no_root_squash,insecure,"
				  "stable-floor=data",
				  NULL);
	char args[400];
	struct json_object *o;

	expect_mode(s->h, "stable-floor", "data");
	assert_int_equal(control_run(s->h, NULL,
				     "set write-mode=buffered direct-min=64k"),
			 0);
	expect_mode(s->h, "write-mode", "buffered");
	expect_mode(s->h, "direct-min", "65536");
	(void)site_write(s, "f", WRITES, RECORD, UNSTABLE);
	o = control_json(s->h, "stats");
	assert_int_equal(control_number(o, "writes.mode"), WRITES);
	json_object_put(o);

	/* It goes over the export's line, for one or for all, and a reload
	 * keeps it. */
	(void)snprintf(args, sizeof(args), "set %s stable-floor=file",
		       s->h->export);
	assert_int_equal(control_run(s->h, NULL, "%s", args), 0);
	expect_mode(s->h, "stable-floor", "file");
	reload(s->h);
	expect_mode(s->h, "stable-floor", "file");
	expect_mode(s->h, "write-mode", "buffered");
	control_says(s->h, "set at run time:.*write-mode", "exports");
	assert_int_equal(control_run(s->h, NULL, "set stable-floor=none"), 0);
	expect_mode(s->h, "stable-floor", "none");
	assert_int_equal(control_run(s->h, NULL,
				     "set stable-floor=default "
				     "write-mode=default direct-min=default"),
			 0);
	expect_mode(s->h, "stable-floor", "data");
	expect_mode(s->h, "direct-min", "65536");
	site_free(s);
}

/* All of a set or nothing. */
static void
test_set_wrong(void **state)
{
	struct site *s = site_new("uring", NULL, NULL);

	control_fails(s->h, 1, "the choices are",
		      "set stable-floor=file write-mode=quick");
	expect_mode(s->h, "stable-floor", "none");
	control_fails(s->h, 1, "no mode \"colour\"", "set colour=red");
	control_fails(s->h, 1, "no mode \"port\"", "set port=7");
	control_fails(s->h, 1, "not exported", "set /none edges=buffered");
	control_fails(s->h, 2, "KEY=VALUE", "set");
	control_fails(s->h, 2, "KEY=VALUE", "set /none");
	control_fails(s->h, 2, "KEY=VALUE", "set =x");
	control_fails(s->h, 2, "usage:", "");
	control_fails(s->h, 2, "no such command", "sing");
	control_fails(s->h, 2, "takes no argument", "status all");
	control_fails(s->h, 2, "path of an export", "unexport");
	control_fails(s->h, 2, "--resume", "drain --again");
	control_says(s->h, "^usage:", "--help");
	site_free(s);
}

static void
test_why(void **state)
{
	struct site *s = site_new("uring", NULL, NULL);
	struct json_object *o;

	(void)site_write(s, "f", WRITES, RECORD, UNSTABLE);
	o = control_json(s->h, "why %s", site_path(s, "f"));
	assert_string_equal(json_object_get_string(control_part(o, "export")),
			    s->h->export);
	json_object_put(o);
	control_fails(s->h, 1, "in no export", "why /");
	control_fails(s->h, 1, "No such file", "why /none/at/all");
	site_free(s);
}

/* Its handles are stale, and nothing of ours keeps its file system mounted. */
static void
test_unexport(void **state)
{
	struct site *s = site_new("uring", NULL, "xfs");
	struct raw_fh fh = site_write(s, "f", WRITES, RECORD, UNSTABLE);
	READ3res res;
	int fd;

	assert_int_equal(harness_sh("umount %s", s->h->export), 0);
	/* Unmounted, and still served from the clone. */
	assert_int_equal(raw_read(s->r, &fh, 0, 100, &res), NFS3_OK);
	assert_true(open(s->h->loop, O_RDONLY | O_EXCL) < 0 && errno == EBUSY);
	/* What it remembers must not hold what is withdrawn. */
	assert_int_equal(control_run(s->h, NULL, "reset-stats"), 0);
	assert_int_equal(control_run(s->h, NULL, "unexport %s", s->h->export),
			 0);
	assert_int_equal(raw_read(s->r, &fh, 0, 100, &res), NFS3ERR_STALE);
	fd = open(s->h->loop, O_RDONLY | O_EXCL);
	assert_true(fd >= 0);
	close(fd);
	control_fails(s->h, 1, "not exported", "unexport /none");
	/* A reload brings it back, handles and all. */
	assert_int_equal(harness_sh("mount %s %s", s->h->loop, s->h->export),
			 0);
	reload(s->h);
	assert_int_equal(raw_read(s->r, &fh, 0, 100, &res), NFS3_OK);
	site_free(s);
}

/* Does anything come within a moment? A moment is long where it does. */
static bool
silent(const struct raw *r)
{
	struct pollfd p = { .fd = r->fd, .events = POLLIN };

	return poll(&p, 1, 300) == 0;
}

static void
test_drain(void **state)
{
	struct site *s = site_new("uring", NULL, NULL);
	struct raw *late;
	struct json_object *o;

	(void)site_write(s, "f", WRITES, RECORD, UNSTABLE);
	control_says(s->h, "^drained: no connections, everything is synced$",
		     "drain");
	assert_true(raw_closed(s->r));
	o = control_json(s->h, "status");
	assert_true(json_object_get_boolean(control_part(o, "draining")));
	assert_int_equal(control_number(o, "open_files"), 0);
	json_object_put(o);
	/* Who comes now waits, and is served later. */
	late = raw_connect(s->h->port);
	raw_build(late, 100003, 3, 0, NULL, NULL);
	raw_send(late);
	assert_true(silent(late));
	control_says(s->h, "^serving$", "drain --resume");
	assert_true(raw_receive(late));
	raw_close(late);
	/* Who only asks, as one that waits does, begins nothing. */
	o = control_ask(s->h, "{\"command\":\"drain\","
			      "\"args\":{\"ask\":true}}");
	assert_false(json_object_get_boolean(control_part(o, "draining")));
	json_object_put(o);
	control_says(s->h, "draining|drained", "drain --no-wait");
	/* A stop goes through. */
	harness_stop(s->h);
	harness_start(s->h);
	raw_reconnect(s->r, s->h->port);
	site_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set),   cmocka_unit_test(test_set_wrong),
		cmocka_unit_test(test_why),   cmocka_unit_test(test_unexport),
		cmocka_unit_test(test_drain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
