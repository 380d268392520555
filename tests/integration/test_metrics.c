/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics: a scrape is OpenMetrics by the letter (a parser of the test's
 * own reads every line), says what was done, and has every metric that the
 * dashboard and the alert rules name.
 */
#include "control.h"
#include "site.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FAMILIES_MAX 256u
#define SAMPLES_MAX  8192u
#define WRITES       7u
#define RECORD       47008u
#define IDLERS       60u

/* Fetching --------------------------------------------------------------------
 */

static uint16_t
metrics_port(const struct harness *h)
{
	char path[300], line[512];
	unsigned port = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/log", h->dir);
	f = fopen(path, "r");
	assert_non_null(f);
	while (port == 0 && fgets(line, sizeof(line), f) != NULL) {
		const char *at = strstr(line, "http://127.0.0.1:");

		if (at != NULL)
			port = (unsigned)atoi(at +
					      17); /* NOLINT(cert-err34-c) */
	}
	(void)fclose(f);
	assert_true(port > 0);
	return (uint16_t)port;
}

/* All that comes back for a request, until the end. */
static char *
fetch(uint16_t port, const char *request)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	size_t room = 1 << 20, n = 0;
	char *text = malloc(room);
	ssize_t got;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0 && text != NULL);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL),
			 strlen(request));
	while ((got = read(fd, text + n, room - n - 1)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	close(fd);
	return text;
}

static void
expect_status(uint16_t port, const char *request, const char *status)
{
	char *text = fetch(port, request);

	if (strncmp(text, "HTTP/1.1 ", 9) != 0 ||
	    strncmp(text + 9, status, strlen(status)) != 0)
		fail_msg("%s: %.60s", request, text);
	free(text);
}

/* Reading ---------------------------------------------------------------------
 */

struct sample {
	char *name, *labels; /* labels as they stand, braces included */
	double value;
};

struct scrape {
	char *text; /* what name and labels point into */
	char *family[FAMILIES_MAX], *type[FAMILIES_MAX];
	unsigned families;
	struct sample sample[SAMPLES_MAX];
	unsigned samples;
};

static bool
is_name(const char *s)
{
	if (!isalpha((unsigned char)*s) && *s != '_')
		return false;
	for (; *s != '\0'; s++)
		if (!isalnum((unsigned char)*s) && *s != '_')
			return false;
	return true;
}

static void
read_meta(struct scrape *s, char *line)
{
	char *word = line + 2, *name, *rest;
	unsigned i;

	name = strchr(word, ' ');
	assert_non_null(name);
	*name++ = '\0';
	rest = strchr(name, ' ');
	assert_non_null(rest);
	*rest++ = '\0';
	assert_true(is_name(name) && *rest != '\0');
	if (strcmp(word, "TYPE") != 0) {
		/* Of the family that has just been named. */
		assert_true(strcmp(word, "HELP") == 0 ||
			    strcmp(word, "UNIT") == 0);
		assert_string_equal(name, s->family[s->families - 1]);
		return;
	}
	for (i = 0; i < s->families; i++)
		assert_string_not_equal(name, s->family[i]);
	assert_true(s->families < FAMILIES_MAX);
	s->family[s->families] = name;
	s->type[s->families++] = rest;
}

/* Past {name="value",...}; what stands behind it. */
static char *
skip_labels(char *p)
{
	do {
		p++;
		assert_true(isalpha((unsigned char)*p));
		while (isalnum((unsigned char)*p) || *p == '_')
			p++;
		assert_true(p[0] == '=' && p[1] == '"');
		for (p += 2; *p != '"'; p++) {
			assert_true(*p != '\0');
			if (*p == '\\')
				assert_non_null(strchr("\\\"n", *++p));
		}
		p++;
	} while (*p == ',');
	assert_true(*p == '}');
	return p + 1;
}

/* The suffixes that a type's samples have. */
static bool
fits(const char *type, const char *suffix)
{
	if (strcmp(type, "counter") == 0)
		return strcmp(suffix, "_total") == 0;
	if (strcmp(type, "gauge") == 0)
		return *suffix == '\0';
	if (strcmp(type, "info") == 0)
		return strcmp(suffix, "_info") == 0;
	assert_string_equal(type, "histogram");
	return strcmp(suffix, "_bucket") == 0 ||
	       strcmp(suffix, "_count") == 0 || strcmp(suffix, "_sum") == 0;
}

static void
read_sample(struct scrape *s, char *line)
{
	const char *family = s->family[s->families - 1];
	struct sample *m = &s->sample[s->samples++];
	char *end;

	assert_true(s->samples < SAMPLES_MAX && s->families > 0);
	m->name = line;
	line += strcspn(line, "{ ");
	m->labels = line;
	end = *line == '{' ? skip_labels(line) : line;
	assert_true(*end == ' ');
	m->value = strtod(end + 1, &line);
	assert_true(line != end + 1 && *line == '\0');
	*end = '\0';
	/* The name ends where the labels begin: keep both. */
	if (*m->labels == '{') {
		m->labels = strdup(m->labels);
		m->name = strndup(m->name, strcspn(m->name, "{"));
	} else {
		m->labels = strdup("");
		m->name = strdup(m->name);
	}
	assert_true(strncmp(m->name, family, strlen(family)) == 0);
	assert_true(fits(s->type[s->families - 1], m->name + strlen(family)));
}

static void
check_no_twins(const struct scrape *s)
{
	unsigned i, j;

	for (i = 0; i < s->samples; i++)
		for (j = 0; j < i; j++)
			if (strcmp(s->sample[i].name, s->sample[j].name) == 0 &&
			    strcmp(s->sample[i].labels, s->sample[j].labels) ==
				    0)
				fail_msg("twice: %s%s", s->sample[i].name,
					 s->sample[i].labels);
}

static struct scrape *
scrape_read(uint16_t port)
{
	struct scrape *s = calloc(1, sizeof(*s));
	char *text = fetch(port, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
	char *body = strstr(text, "\r\n\r\n"), *line, *next;

	assert_non_null(s);
	assert_non_null(body);
	*body = '\0';
	assert_non_null(strstr(text, "HTTP/1.1 200 OK"));
	assert_non_null(strstr(text,
			       "Content-Type: application/openmetrics-text; "
			       "version=1.0.0; charset=utf-8"));
	s->text = text;
	for (line = body + 4; strcmp(line, "# EOF\n") != 0; line = next) {
		next = strchr(line, '\n');
		assert_non_null(next);
		*next++ = '\0';
		if (*line == '#')
			read_meta(s, line);
		else
			read_sample(s, line);
	}
	check_no_twins(s);
	return s;
}

static void
scrape_free(struct scrape *s)
{
	unsigned i;

	for (i = 0; i < s->samples; i++) {
		free(s->sample[i].name);
		free(s->sample[i].labels);
	}
	free(s->text);
	free(s);
}

/* The sum of a name's samples whose labels have that text; and how many. */
static double
sum_of(const struct scrape *s, const char *name, const char *with,
       unsigned *count)
{
	double sum = 0;
	unsigned i;

	*count = 0;
	for (i = 0; i < s->samples; i++) {
		if (strcmp(s->sample[i].name, name) != 0 ||
		    strstr(s->sample[i].labels, with) == NULL)
			continue;
		sum += s->sample[i].value;
		(*count)++;
	}
	return sum;
}

static void
expect(const struct scrape *s, const char *name, const char *with, double want)
{
	unsigned count;
	double got = sum_of(s, name, with, &count);

	if (count == 0 || got != want)
		fail_msg("%s with %s: %f in %u samples, not %f", name, with,
			 got, count, want);
}

/* Buckets of one histogram grow, and the last one has all. */
static void
check_histogram(const struct scrape *s, const char *with, double calls)
{
	double last = 0;
	unsigned i, buckets = 0;

	for (i = 0; i < s->samples; i++) {
		if (strcmp(s->sample[i].name, "nvnfsd_call_seconds_bucket") !=
			    0 ||
		    strstr(s->sample[i].labels, with) == NULL)
			continue;
		assert_true(s->sample[i].value >= last);
		last = s->sample[i].value;
		buckets++;
		if (strstr(s->sample[i].labels, "le=\"+Inf\"") != NULL)
			assert_true(last == calls);
	}
	assert_true(buckets > 10);
}

/* Tests -----------------------------------------------------------------------
 */

static struct site *
site_with_metrics(void)
{
	struct site *s = site_prepare("uring", NULL, NULL);

	harness_conf(s->h, "[metrics]\nlisten = 127.0.0.1:0\n");
	site_start(s);
	return s;
}

static void
write_some(struct site *s)
{
	static uint8_t data[RECORD];
	struct raw_fh fh;
	COMMIT3res commit;
	READ3res read;
	WRITE3res w;
	unsigned i;

	raw_create(s->r, &s->root, "f", 0644, &fh);
	for (i = 0; i < WRITES; i++)
		assert_int_equal(raw_write(s->r, &fh, (uint64_t)i * RECORD,
					   data, RECORD, UNSTABLE, &w),
				 NFS3_OK);
	assert_int_equal(raw_commit(s->r, &fh, &commit), NFS3_OK);
	assert_int_equal(raw_read(s->r, &fh, 0, 4096, &read), NFS3_OK);
}

/* A worker's reply is counted when its reactor wakes. */
static struct scrape *
scrape_with(uint16_t port, const char *with, unsigned calls)
{
	struct scrape *s = scrape_read(port);
	unsigned n;

	while (sum_of(s, "nvnfsd_call_seconds_count", with, &n) < calls) {
		scrape_free(s);
		usleep(10000);
		s = scrape_read(port);
	}
	return s;
}

static void
test_scrape(void **state)
{
	struct site *s = site_with_metrics();
	uint16_t port = metrics_port(s->h);
	struct scrape *m;
	double sum;
	unsigned n;

	write_some(s);
	scrape_free(scrape_with(port, "\"COMMIT\"", 1));
	scrape_free(scrape_with(port, "\"READ\"", 1));
	m = scrape_with(port, "\"WRITE\"", WRITES);
	expect(m, "nvnfsd_build_info", "engine=", 1);
	expect(m, "nvnfsd_writes_total", s->h->export, WRITES);
	expect(m, "nvnfsd_nfs_calls_total", "\"WRITE\"", WRITES);
	expect(m, "nvnfsd_call_seconds_count", "\"WRITE\"", WRITES);
	expect(m, "nvnfsd_client_written_bytes_total", "\"127.0.0.1\"",
	       WRITES * RECORD);
	expect(m, "nvnfsd_client_read_bytes_total", s->h->export, 4096);
	expect(m, "nvnfsd_connections", "", 1);
	expect(m, "nvnfsd_syncs_total", s->h->export, 1);
	sum = sum_of(m, "nvnfsd_direct_bytes_total", "", &n) +
	      sum_of(m, "nvnfsd_edge_bytes_total", "", &n) +
	      sum_of(m, "nvnfsd_buffered_bytes_total", "", &n);
	assert_true(sum == WRITES * RECORD);
	check_histogram(m, "\"WRITE\"", WRITES);
	assert_true(sum_of(m, "nvnfsd_call_seconds_sum", "\"WRITE\"", &n) > 0);
	/* What is not known is not there, and above all not 0. */
	if (harness_sh("test -d /sys/kernel/debug/block") != 0) {
		(void)sum_of(m, "nvnfsd_device_tag_waiters", "", &n);
		assert_int_equal(n, 0);
	}
	scrape_free(m);
	site_free(s);
}

static void
test_http(void **state)
{
	struct site *s = site_with_metrics();
	uint16_t port = metrics_port(s->h);
	char *text = malloc(20000);
	struct raw *idle[IDLERS];
	unsigned i;

	expect_status(port, "GET /metrics HTTP/1.0\r\n\r\n", "200");
	expect_status(port, "GET /metrics?x=y HTTP/1.1\r\nA: b\r\n\r\n", "200");
	expect_status(port, "GET / HTTP/1.1\r\n\r\n", "404");
	expect_status(port, "GET /metricsx HTTP/1.1\r\n\r\n", "404");
	expect_status(port, "POST /metrics HTTP/1.1\r\n\r\n", "405");
	expect_status(port, "\r\n\r\n", "400");
	expect_status(port, "GET\r\n\r\n", "400");
	expect_status(port, "GET /metrics FTP\r\n\r\n", "400");
	memset(text, 'x', 19999);
	text[8192] = '\0';
	expect_status(port, text, "400");
	free(text);
	text = fetch(port, "HEAD /metrics HTTP/1.1\r\n\r\n");
	assert_non_null(strstr(text, "200 OK"));
	assert_string_equal(strstr(text, "\r\n\r\n"), "\r\n\r\n");
	free(text);
	/* Those who say nothing keep nobody out. */
	for (i = 0; i < IDLERS; i++)
		idle[i] = raw_connect(port);
	expect_status(port, "GET /metrics HTTP/1.1\r\n\r\n", "200");
	for (i = 0; i < IDLERS; i++)
		raw_close(idle[i]);
	site_free(s);
}

/* A directory's name has what labels must escape. */
static void
test_labels(void **state)
{
	struct harness *h = harness_new(NULL);
	char exports[600];
	struct scrape *m;
	unsigned n;

	(void)snprintf(h->exports, sizeof(h->exports), "%s/exports", h->dir);
	(void)snprintf(exports, sizeof(exports), "%s/a\"b\\c", h->dir);
	assert_int_equal(
		harness_sh("mkdir '%s' && printf '%%s *(rw,insecure)\\n"
			   "' '%s/a\\042b\\134c' >%s",
			   exports, h->dir, h->exports),
		0);
	harness_conf(h, "[metrics]\nlisten = 127.0.0.1:0\n");
	harness_start(h);
	m = scrape_read(metrics_port(h));
	assert_true(sum_of(m, "nvnfsd_writes_total", "/a\\\"b\\\\c\"", &n) ==
		    0);
	assert_true(n > 0);
	scrape_free(m);
	harness_stop(h);
	harness_free(h);
}

/* Without the key nothing listens; an address that is taken is an error. */
static void
test_listener(void **state)
{
	struct site *s = site_with_metrics();
	struct harness *h = harness_new(NULL);
	char conf[60];

	(void)snprintf(conf, sizeof(conf), "[metrics]\nlisten = 127.0.0.1:%u\n",
		       metrics_port(s->h));
	harness_conf(h, conf);
	assert_int_equal(harness_run(h), 1);
	assert_true(harness_logged(h, "cannot listen for metrics"));
	harness_free(h);
	site_free(s);
	s = site_new("uring", NULL, NULL);
	assert_false(harness_logged(s->h, "metrics on"));
	site_free(s);
}

/* What others read -----------------------------------------------------------
 */

static bool
is_told(const struct scrape *m, const char *name)
{
	static const char *const suffixes[] = { "",        "_total", "_info",
						"_bucket", "_count", "_sum" };
	char with[128];
	unsigned i, j;

	for (i = 0; i < m->families; i++) {
		for (j = 0; j < sizeof(suffixes) / sizeof(*suffixes); j++) {
			if (!fits(m->type[i], suffixes[j]))
				continue;
			(void)snprintf(with, sizeof(with), "%s%s", m->family[i],
				       suffixes[j]);
			if (strcmp(with, name) == 0)
				return true;
		}
	}
	return false;
}

/* Every nvnfsd_ name in a file; how many. */
static unsigned
check_names(const struct scrape *m, const char *file)
{
	char path[512], line[4096], name[128], *p;
	unsigned n = 0;
	size_t bytes;
	FILE *f;

	(void)snprintf(path, sizeof(path), SOURCE_ROOT "/systemd/%s", file);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		for (p = line; (p = strstr(p, "nvnfsd_")) != NULL; p += bytes) {
			bytes = strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789"
					  "_");
			assert_true(bytes < sizeof(name));
			memcpy(name, p, bytes);
			name[bytes] = '\0';
			if (!is_told(m, name))
				fail_msg("%s: there is no %s", file, name);
			n++;
		}
	}
	(void)fclose(f);
	return n;
}

static void
test_names(void **state)
{
	struct site *s = site_with_metrics();
	struct scrape *m = scrape_read(metrics_port(s->h));
	struct json_object *o;

	assert_true(check_names(m, "grafana-dashboard.json") > 20);
	assert_true(check_names(m, "nvnfsd-alerts.yml") > 8);
	assert_false(is_told(m, "nvnfsd_none_total"));
	o = json_object_from_file(SOURCE_ROOT
				  "/systemd/grafana-dashboard.json");
	assert_non_null(o);
	assert_true(json_object_array_length(control_part(o, "panels")) > 8);
	json_object_put(o);
	scrape_free(m);
	site_free(s);
}

/* The reasons of a split, as the tracer's script numbers them. */
static void
test_reasons(void **state)
{
	struct site *s = site_new("uring", NULL, NULL);
	struct json_object *o = control_json(s->h, "stats");
	unsigned n = 0;

	json_object_object_foreach(control_part(o, "writes"), reason, count)
	{
		(void)count;
		if (harness_sh("grep -qF '@name[%u] = \"%s\";' '%s'", n, reason,
			       SOURCE_ROOT "/systemd/split-map.bt.in") != 0)
			fail_msg("split-map.bt has not %u: %s", n, reason);
		n++;
	}
	assert_int_equal(harness_sh("test $(grep -c '^\t@name' '%s') = %u",
				    SOURCE_ROOT "/systemd/split-map.bt.in", n),
			 0);
	json_object_put(o);
	site_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scrape), cmocka_unit_test(test_http),
		cmocka_unit_test(test_labels), cmocka_unit_test(test_listener),
		cmocka_unit_test(test_names),  cmocka_unit_test(test_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
