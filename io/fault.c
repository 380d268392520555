/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fault points (see fault.h): the list of points, parsed from a text, and the
 * counters that they are compared to. The points change only while nothing is
 * in flight (engine_new); counting is any thread's.
 */
#include "io/fault.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FAULT_POINTS_MAX 32u

enum { KIND_QUEUE_FULL = OP_KINDS, KIND_INTERRUPTED, KINDS };

struct fault_rule {
	unsigned kind;
	uint64_t first, count;
	struct fault what;
};

static struct fault_rule rules[FAULT_POINTS_MAX];
static unsigned rule_count;
static _Atomic uint64_t seen[KINDS];
static _Atomic uint64_t hits;

static const char *const kind_names[KINDS] = {
	[OP_ACCEPT] = "accept",
	[OP_RECV] = "recv",
	[OP_RECV_SMALL] = "recv_small",
	[OP_SENDMSG] = "sendmsg",
	[OP_READ] = "read",
	[OP_WRITE] = "write",
	[OP_FSYNC] = "fsync",
	[OP_FLUSH] = "flush",
	[OP_METASYNC] = "metasync",
	[KIND_QUEUE_FULL] = "sqfull",
	[KIND_INTERRUPTED] = "eintr",
};

static int
parse_kind(const char *name, unsigned *ret)
{
	for (unsigned k = 0; k < KINDS; k++) {
		if (name && strcmp(name, kind_names[k]) == 0) {
			*ret = k;
			return 0;
		}
	}
	return -EINVAL;
}

static int
parse_number(const char *text, uint64_t *ret)
{
	char *end;

	if (!text || *text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return errno || *end ? -EINVAL : 0;
}

static int
parse_errno(const char *name, int *ret)
{
	for (int e = 1; e < 134; e++) {
		const char *known = strerrorname_np(e);

		if (known && strcmp(name, known) == 0) {
			*ret = -e;
			return 0;
		}
	}
	return -EINVAL;
}

static int
parse_what(const char *text, struct fault *f)
{
	uint64_t ms;
	bool late;

	if (!text)
		return -EINVAL;
	if (strcmp(text, "short") == 0) {
		f->shorten = true;
		return 0;
	}
	late = strncmp(text, "late=", 5) == 0;
	if (!late && strncmp(text, "delay=", 6) != 0)
		return parse_errno(text, &f->error);
	if (parse_number(text + (late ? 5 : 6), &ms) || ms > UINT32_MAX)
		return -EINVAL;
	if (late)
		f->late_ms = (uint32_t)ms;
	else
		f->delay_ms = (uint32_t)ms;
	return 0;
}

/* KIND:N:WHAT[:COUNT], or sqfull:N[:COUNT] and eintr:N[:COUNT] */
static int
parse_rule(char *text, struct fault_rule *rule)
{
	char *rest = text;
	const char *count;

	*rule = (struct fault_rule){ .count = 1 };
	if (parse_kind(strsep(&rest, ":"), &rule->kind) ||
	    parse_number(strsep(&rest, ":"), &rule->first) || rule->first == 0)
		return -EINVAL;
	if (rule->kind < OP_KINDS &&
	    parse_what(strsep(&rest, ":"), &rule->what))
		return -EINVAL;
	count = strsep(&rest, ":");
	if (count && strcmp(count, "*") == 0)
		rule->count = UINT64_MAX;
	else if (count && parse_number(count, &rule->count))
		return -EINVAL;
	return rest ? -EINVAL : 0;
}

int
fault_set(const char *spec)
{
	struct fault_rule parsed[FAULT_POINTS_MAX];
	char *copy = strdup(spec ? spec : "");
	char *rest = copy, *one;
	unsigned n = 0;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (one = strsep(&rest, ";")) != NULL) {
		if (!*one)
			continue;
		err = n < FAULT_POINTS_MAX ? parse_rule(one, &parsed[n++])
					   : -EINVAL;
	}
	free(copy);
	if (err)
		return err;
	memcpy(rules, parsed, n * sizeof(parsed[0]));
	rule_count = n;
	for (unsigned k = 0; k < KINDS; k++)
		atomic_store(&seen[k], 0);
	atomic_store(&hits, 0);
	return 0;
}

int
fault_init(void)
{
	return fault_set(getenv("NVNFSD_FAULT"));
}

/* Count; the rule that this one meets, or NULL. */
static const struct fault_rule *
fault_count(unsigned kind)
{
	uint64_t n;

	if (rule_count == 0)
		return NULL;
	n = atomic_fetch_add(&seen[kind], 1) + 1;
	for (unsigned i = 0; i < rule_count; i++) {
		const struct fault_rule *rule = &rules[i];

		if (rule->kind == kind && n >= rule->first &&
		    n - rule->first < rule->count) {
			atomic_fetch_add(&hits, 1);
			return rule;
		}
	}
	return NULL;
}

struct fault
fault_next(enum op_kind kind)
{
	const struct fault_rule *rule = fault_count(kind);

	return rule ? rule->what : (struct fault){ 0 };
}

uint32_t
fault_short(uint32_t len)
{
	uint32_t half = len / 2;

	/* Direct I/O comes short by whole blocks, if it does. */
	if (len % 4096 == 0)
		half = (half + 4095) & ~4095u;
	return half > 0 ? half : len;
}

static void
sleep_ms(uint32_t ms)
{
	struct timespec ts = { .tv_sec = ms / 1000,
			       .tv_nsec = (long)(ms % 1000) * 1000000 };

	while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
}

int
fault_point(enum op_kind kind, uint32_t *len)
{
	struct fault f = fault_next(kind);

	if (f.delay_ms || f.late_ms)
		sleep_ms(f.delay_ms + f.late_ms);
	if (f.shorten && len)
		*len = fault_short(*len);
	return f.error;
}

uint64_t
fault_hits(void)
{
	return atomic_load(&hits);
}

bool
fault_queue_full(void)
{
	return fault_count(KIND_QUEUE_FULL) != NULL;
}

bool
fault_interrupted(void)
{
	return fault_count(KIND_INTERRUPTED) != NULL;
}
