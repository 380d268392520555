/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of nvnfsd.conf: one table, and how each value is understood. No
 * state. It knows no lines and no ini syntax.
 */
#include "conf/parse.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define HOSTS_MAX         64u
#define CONNECTIONS_MAX   1000000u
#define CALLS_MAX         65536u
#define OPEN_FILES_MAX    10000000u
#define BUFFER_MEMORY_MIN (1u << 20)
#define SQPOLL_IDLE_MS    60000u
#define BUSY_POLL_US      100000u
#define STOP_TIMEOUT_S    3600u
#define GRACE_S_MAX       3600u

struct key;

/* 0; -EINVAL with why; -ENOMEM. */
typedef int key_set_fn(struct conf *c, const struct key *key, const char *value,
		       char why[CONF_REASON_BYTES]);

struct key {
	const char *section, *name;
	key_set_fn *set;
	size_t offset;
	uint64_t max;
	bool repeats;
};

static key_set_fn set_hosts, set_port, set_mount_port, set_lockd_port,
	set_count, set_memory, set_bool, set_level, set_policy, set_metrics;

#define FIELD(f) offsetof(struct conf, f)

static const struct key keys[] = {
	{ "nfsd", "host", set_hosts, 0, 0, true },
	{ "nfsd", "port", set_port, FIELD(port) },
	{ "nfsd", "udp", set_bool, FIELD(udp) },
	{ "nfsd", "threads", set_count, FIELD(threads), CONF_THREADS_MAX },
	{ "nfsd", "sqpoll", set_bool, FIELD(sqpoll) },
	{ "nfsd", "sqpoll-idle", set_count, FIELD(sqpoll_idle_ms),
	  SQPOLL_IDLE_MS },
	{ "nfsd", "busy-poll", set_count, FIELD(busy_poll_us), BUSY_POLL_US },
	{ "nfsd", "iopoll", set_bool, FIELD(iopoll) },
	{ "nfsd", "stop-timeout", set_count, FIELD(stop_timeout_s),
	  STOP_TIMEOUT_S },
	{ "nfsd", "read-mode", set_policy },
	{ "nfsd", "write-mode", set_policy },
	{ "nfsd", "edges", set_policy },
	{ "nfsd", "direct-min", set_policy },
	{ "nfsd", "stable-floor", set_policy },
	{ "nfsd", "torn-free", set_policy },
	{ "nfsd", "dirty-max", set_policy },
	{ "nfsd", "flush-share", set_policy },
	{ "mountd", "port", set_mount_port, FIELD(mount_port) },
	{ "mountd", "manage-gids", set_bool, FIELD(manage_gids) },
	{ "lockd", "port", set_lockd_port, FIELD(lockd_port) },
	{ "lockd", "grace", set_count, FIELD(grace_s), GRACE_S_MAX },
	{ "limits", "connections", set_count, FIELD(connections),
	  CONNECTIONS_MAX },
	{ "limits", "calls-per-connection", set_count,
	  FIELD(calls_per_connection), CALLS_MAX },
	{ "limits", "buffer-memory", set_memory, FIELD(buffer_memory) },
	{ "limits", "open-files", set_count, FIELD(open_files),
	  OPEN_FILES_MAX },
	{ "metrics", "listen", set_metrics },
	{ "log", "level", set_level, FIELD(level) },
};

static_assert(sizeof(keys) / sizeof(*keys) == CONF_KEYS, "a key is missing");

static const char *const level_words[] = {
	[CONF_LOG_ERR] = "err",       [CONF_LOG_WARNING] = "warning",
	[CONF_LOG_NOTICE] = "notice", [CONF_LOG_INFO] = "info",
	[CONF_LOG_DEBUG] = "debug",
};

#define LEVELS ((unsigned)(sizeof(level_words) / sizeof(*level_words)))

const char *
conf_key_name(unsigned i, const char **ret_section)
{
	if (i >= CONF_KEYS)
		return NULL;
	*ret_section = keys[i].section;
	return keys[i].name;
}

void
conf_hosts_fini(struct conf *c)
{
	for (unsigned i = 0; i < c->host_count; i++)
		free(c->hosts[i]);
	free(c->hosts);
	c->hosts = NULL;
	c->host_count = 0;
}

int
conf_host_add(struct conf *c, const char *text, size_t bytes)
{
	char *host = strndup(text, bytes);
	char **hosts =
		reallocarray(c->hosts, c->host_count + 1, sizeof(*hosts));

	if (hosts)
		c->hosts = hosts;
	if (!host || !hosts) {
		free(host);
		return -ENOMEM;
	}
	c->hosts[c->host_count++] = host;
	return 0;
}

static int
bad_value(char why[CONF_REASON_BYTES], const struct key *key, const char *value,
	  const char *reason)
{
	char shown[REPORT_WORD_BYTES];

	(void)snprintf(why, CONF_REASON_BYTES, "%s = %s: %s", key->name,
		       conf_report_word(shown, value), reason);
	return -EINVAL;
}

/* Blanks or commas between hosts; several host= add up. */
static int
set_hosts(struct conf *c, const struct key *key, const char *value,
	  char why[CONF_REASON_BYTES])
{
	static const char between[] = ", \t";
	size_t n;
	int error;

	for (const char *p = value; *p; p += n) {
		p += strspn(p, between);
		n = strcspn(p, between);
		if (!n)
			break;
		for (size_t i = 0; i < n; i++)
			if (!isalnum((unsigned char)p[i]) &&
			    !strchr(".:-_%", p[i]))
				return bad_value(
					why, key, value,
					p[i] == '['
						? "an IPv6 address is written "
						  "without brackets"
						: "neither an address nor a "
						  "host's name");
		if (c->host_count == HOSTS_MAX)
			return bad_value(why, key, value, "too many hosts");
		error = conf_host_add(c, p, n);
		if (error)
			return error;
	}
	return 0;
}

static int
set_port(struct conf *c, const struct key *key, const char *value,
	 char why[CONF_REASON_BYTES])
{
	uint64_t n;

	if (word_number(value, UINT16_MAX, &n))
		return bad_value(why, key, value,
				 "not a port number (0 to 65535)");
	*(uint16_t *)((char *)c + key->offset) = (uint16_t)n;
	return 0;
}

static int
set_mount_port(struct conf *c, const struct key *key, const char *value,
	       char why[CONF_REASON_BYTES])
{
	int error = set_port(c, key, value, why);

	if (!error)
		c->has_mount_port = true;
	return error;
}

static int
set_lockd_port(struct conf *c, const struct key *key, const char *value,
	       char why[CONF_REASON_BYTES])
{
	int error = set_port(c, key, value, why);

	if (!error)
		c->has_lockd_port = true;
	return error;
}

static int
set_count(struct conf *c, const struct key *key, const char *value,
	  char why[CONF_REASON_BYTES])
{
	char range[64];
	uint64_t n;

	if (word_number(value, key->max, &n)) {
		(void)snprintf(range, sizeof(range),
			       "not a number from 0 to %" PRIu64, key->max);
		return bad_value(why, key, value, range);
	}
	*(unsigned *)((char *)c + key->offset) = (unsigned)n;
	return 0;
}

static int
set_memory(struct conf *c, const struct key *key, const char *value,
	   char why[CONF_REASON_BYTES])
{
	uint64_t n;
	int error = conf_size_parse(value, &n);

	if (error)
		return bad_value(why, key, value,
				 error == -ERANGE
					 ? "too large"
					 : "not a size, as in 256M or 1GiB");
	if (n && n < BUFFER_MEMORY_MIN)
		return bad_value(why, key, value,
				 "less than 1 MiB: is the unit missing, as in "
				 "256M?");
	*(uint64_t *)((char *)c + key->offset) = n;
	return 0;
}

static int
set_bool(struct conf *c, const struct key *key, const char *value,
	 char why[CONF_REASON_BYTES])
{
	bool is;

	if (word_bool(value, &is))
		return bad_value(why, key, value, "neither yes nor no");
	*(bool *)((char *)c + key->offset) = is;
	return 0;
}

static int
set_level(struct conf *c, const struct key *key, const char *value,
	  char why[CONF_REASON_BYTES])
{
	for (unsigned i = 0; i < LEVELS; i++)
		if (!strcmp(value, level_words[i])) {
			c->level = (enum conf_log_level)i;
			return 0;
		}
	return bad_value(why, key, value,
			 "the choices are err, warning, notice, info and "
			 "debug");
}

/* host:port; an IPv6 address in brackets; no host is every address. */
static int
set_metrics(struct conf *c, const struct key *key, const char *value,
	    char why[CONF_REASON_BYTES])
{
	const char *host = value, *colon = strrchr(value, ':');
	size_t n = colon ? (size_t)(colon - value) : 0;
	uint64_t port;

	if (!colon || word_number(colon + 1, UINT16_MAX, &port))
		return bad_value(why, key, value,
				 "not host:port, as in 127.0.0.1:9100");
	if (n >= 2 && *host == '[' && host[n - 1] == ']') {
		host++;
		n -= 2;
	} else if (memchr(host, ':', n)) {
		return bad_value(why, key, value,
				 "an IPv6 address is written in brackets");
	}
	if (n >= CONF_HOST_BYTES)
		return bad_value(why, key, value, "the host is too long");
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)host[i]) &&
		    !strchr(".:-_%", host[i]))
			return bad_value(
				why, key, value,
				"neither an address nor a host's name");
	memcpy(c->metrics_host, host, n);
	c->metrics_host[n] = '\0';
	c->metrics_port = (uint16_t)port;
	c->has_metrics = true;
	return 0;
}

static int
set_policy(struct conf *c, const struct key *key, const char *value,
	   char why[CONF_REASON_BYTES])
{
	int error = conf_policy_set(&c->policy, key->name, value, why);

	/* The table of keys names parts of a policy only. */
	assert(error != -ENOENT);
	return error;
}

bool
conf_key_repeats(unsigned i)
{
	return keys[i].repeats;
}

int
conf_key_set(struct conf *c, unsigned i, const char *value,
	     char why[CONF_REASON_BYTES])
{
	assert(i < CONF_KEYS);
	return keys[i].set(c, &keys[i], value, why);
}

const char *
conf_level_name(enum conf_log_level level)
{
	assert((unsigned)level < LEVELS);
	return level_words[level];
}
