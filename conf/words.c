/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words with a meaning: modes, sizes, numbers, and the parts of an I/O
 * policy, which stand in nvnfsd.conf and in exports alike. No state.
 */
#include "conf/parse.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

/* In the order of their enums; NULL ends each. */
static const char *const mode_words[] = { "buffered", "dontcache", "direct",
					  "auto", NULL };
static const char *const edges_words[] = { "drop", "dontcache", "buffered",
					   "join", NULL };
static const char *const stable_words[] = { "none", "data", "file", NULL };
static const char *const bool_words[] = { "no", "yes", NULL };

static int
word_find(const char *const *words, const char *word, unsigned *ret)
{
	for (unsigned i = 0; words[i]; i++)
		if (!strcmp(words[i], word)) {
			*ret = i;
			return 0;
		}
	return -EINVAL;
}

int
conf_mode_parse(const char *word, enum conf_mode *ret)
{
	unsigned i;

	if (word_find(mode_words, word, &i))
		return -EINVAL;
	*ret = (enum conf_mode)i;
	return 0;
}

int
conf_edges_parse(const char *word, enum conf_edges *ret)
{
	unsigned i;

	if (word_find(edges_words, word, &i))
		return -EINVAL;
	*ret = (enum conf_edges)i;
	return 0;
}

int
conf_stable_parse(const char *word, enum conf_stable *ret)
{
	unsigned i;

	if (word_find(stable_words, word, &i))
		return -EINVAL;
	*ret = (enum conf_stable)i;
	return 0;
}

const char *
conf_mode_name(enum conf_mode m)
{
	assert(m <= CONF_AUTO);
	return mode_words[m];
}

const char *
conf_edges_name(enum conf_edges e)
{
	assert(e <= CONF_EDGES_JOIN);
	return edges_words[e];
}

const char *
conf_stable_name(enum conf_stable s)
{
	assert(s <= CONF_STABLE_FILE);
	return stable_words[s];
}

/* Digits at word; *end is behind them. strtoull would take signs and blanks. */
static int
digits(const char *word, const char **end, uint64_t *ret)
{
	uint64_t n = 0;
	const char *p = word;

	for (; isdigit((unsigned char)*p); p++) {
		unsigned digit = (unsigned)(*p - '0');

		if (n > (UINT64_MAX - digit) / 10)
			return -ERANGE;
		n = n * 10 + digit;
	}
	if (p == word)
		return -EINVAL;
	*end = p;
	*ret = n;
	return 0;
}

int
word_number(const char *word, uint64_t max, uint64_t *ret)
{
	const char *end;
	uint64_t n;
	int error = digits(word, &end, &n);

	if (error)
		return error;
	if (*end)
		return -EINVAL;
	if (n > max)
		return -ERANGE;
	*ret = n;
	return 0;
}

/* "k", "KiB", "M", "mb"...: all are powers of 1024. */
static int
unit_parse(const char *word, unsigned *ret_shift)
{
	static const char units[] = "kmgt";
	const char *unit = strchr(units, word[0] | 0x20);

	if (!word[0]) {
		*ret_shift = 0;
		return 0;
	}
	if (!unit || !*unit)
		return -EINVAL;
	*ret_shift = 10 * (unsigned)(unit - units + 1);
	word++;
	word += (*word | 0x20) == 'i';
	word += (*word | 0x20) == 'b';
	return *word ? -EINVAL : 0;
}

int
conf_size_parse(const char *word, uint64_t *ret)
{
	unsigned shift;
	const char *end;
	uint64_t n;
	int error = digits(word, &end, &n);

	if (error)
		return error;
	if (unit_parse(end, &shift))
		return -EINVAL;
	if (n > UINT64_MAX >> shift)
		return -ERANGE;
	*ret = n << shift;
	return 0;
}

int
word_bool(const char *word, bool *ret)
{
	static const char *const yes[] = { "1", "t", "true", "y", "yes", "on" };
	static const char *const no[] = { "0", "f", "false", "n", "no", "off" };

	for (unsigned i = 0; i < sizeof(yes) / sizeof(*yes); i++) {
		bool is = !strcasecmp(word, yes[i]);

		if (is || !strcasecmp(word, no[i])) {
			*ret = is;
			return 0;
		}
	}
	return -EINVAL;
}

/* The parts of a policy, in the order in which they are printed. */

#define SIZE          "a size, as in 65536, 64k or 1M"
#define DIRTY_MIN     (1ull << 20)
#define DIRTY_MAX_MAX (1ull << 40)

enum part {
	READ_MODE,
	WRITE_MODE,
	EDGES,
	DIRECT_MIN,
	STABLE_FLOOR,
	TORN_FREE,
	DIRTY_MAX,
	FLUSH_SHARE,
	PARTS
};

static const struct {
	const char *name;
	const char *const *words; /* NULL: a number */
	uint64_t min, max;
	const char *what;  /* the number is */
	const char *above; /* what a larger one is told */
} parts[PARTS] = {
	[READ_MODE] = { "read-mode", mode_words },
	[WRITE_MODE] = { "write-mode", mode_words },
	[EDGES] = { "edges", edges_words },
	[DIRECT_MIN] = { "direct-min", NULL, 0, UINT32_MAX, SIZE,
			 "4 GiB or more" },
	[STABLE_FLOOR] = { "stable-floor", stable_words },
	[TORN_FREE] = { "torn-free", bool_words },
	[DIRTY_MAX] = { "dirty-max", NULL, DIRTY_MIN, DIRTY_MAX_MAX, SIZE,
			"more than 1 TiB" },
	[FLUSH_SHARE] = { "flush-share", NULL, 1, 100, "a percentage, as in 12",
			  "more than 100" },
};

const char *
conf_policy_name(unsigned i)
{
	return i < PARTS ? parts[i].name : NULL;
}

bool
conf_policy_has(const struct conf_policy *p, unsigned i)
{
	switch ((enum part)i) {
	case READ_MODE:
		return p->has_read_mode;
	case WRITE_MODE:
		return p->has_write_mode;
	case EDGES:
		return p->has_edges;
	case DIRECT_MIN:
		return p->has_direct_min;
	case STABLE_FLOOR:
		return p->has_stable_floor;
	case TORN_FREE:
		return p->has_torn_free;
	case DIRTY_MAX:
		return p->has_dirty_max;
	case FLUSH_SHARE:
		return p->has_flush_share;
	case PARTS:
		break;
	}
	return false;
}

/* The value of a part as a number. */
static uint64_t
part_value(const struct conf_policy *p, enum part i)
{
	switch (i) {
	case READ_MODE:
		return p->read_mode;
	case WRITE_MODE:
		return p->write_mode;
	case EDGES:
		return p->edges;
	case DIRECT_MIN:
		return p->direct_min;
	case STABLE_FLOOR:
		return p->stable_floor;
	case TORN_FREE:
		return p->torn_free;
	case DIRTY_MAX:
		return p->dirty_max;
	case FLUSH_SHARE:
		return p->flush_share;
	case PARTS:
		break;
	}
	return 0;
}

static void
part_assign(struct conf_policy *p, enum part i, uint64_t value)
{
	switch (i) {
	case READ_MODE:
		p->has_read_mode = true;
		p->read_mode = (enum conf_mode)value;
		return;
	case WRITE_MODE:
		p->has_write_mode = true;
		p->write_mode = (enum conf_mode)value;
		return;
	case EDGES:
		p->has_edges = true;
		p->edges = (enum conf_edges)value;
		return;
	case DIRECT_MIN:
		p->has_direct_min = true;
		p->direct_min = (uint32_t)value;
		return;
	case STABLE_FLOOR:
		p->has_stable_floor = true;
		p->stable_floor = (enum conf_stable)value;
		return;
	case TORN_FREE:
		p->has_torn_free = true;
		p->torn_free = value != 0;
		return;
	case DIRTY_MAX:
		p->has_dirty_max = true;
		p->dirty_max = value;
		return;
	case FLUSH_SHARE:
		p->has_flush_share = true;
		p->flush_share = (uint32_t)value;
		return;
	case PARTS:
		break;
	}
	assert(false);
}

/* "a, b and c" */
static void
choices(const char *const *words, char *text, size_t bytes)
{
	size_t n = 0;

	for (unsigned i = 0; words[i] && n < bytes; i++)
		n += (size_t)snprintf(text + n, bytes - n, "%s%s",
				      i == 0         ? ""
				      : words[i + 1] ? ", "
						     : " and ",
				      words[i]);
}

static int
part_word(enum part i, const char *value, uint64_t *ret,
	  char why[CONF_REASON_BYTES])
{
	char shown[REPORT_WORD_BYTES], list[64];
	unsigned at;

	if (!word_find(parts[i].words, value, &at)) {
		*ret = at;
		return 0;
	}
	choices(parts[i].words, list, sizeof(list));
	(void)snprintf(why, CONF_REASON_BYTES, "%s=%s: the choices are %s",
		       parts[i].name, conf_report_word(shown, value), list);
	return -EINVAL;
}

static int
part_parse(enum part i, const char *value, uint64_t *ret,
	   char why[CONF_REASON_BYTES])
{
	char shown[REPORT_WORD_BYTES];
	const char *below = i == DIRTY_MAX ? "less than 1 MiB" : "less than 1";
	uint64_t n;
	int error;

	if (parts[i].words)
		return part_word(i, value, ret, why);
	error = conf_size_parse(value, &n);
	if (!error && n >= parts[i].min && n <= parts[i].max) {
		*ret = n;
		return 0;
	}
	(void)snprintf(why, CONF_REASON_BYTES, "%s=%s: %s%s", parts[i].name,
		       conf_report_word(shown, value),
		       error == -EINVAL ? "not " : "",
		       error == -EINVAL            ? parts[i].what
		       : error || n > parts[i].max ? parts[i].above
						   : below);
	return -EINVAL;
}

int
conf_policy_set(struct conf_policy *p, const char *name, const char *value,
		char why[CONF_REASON_BYTES])
{
	uint64_t n;

	for (unsigned i = 0; i < PARTS; i++) {
		if (strcmp(name, parts[i].name) != 0)
			continue;
		if (part_parse((enum part)i, value, &n, why))
			return -EINVAL;
		part_assign(p, (enum part)i, n);
		return 0;
	}
	return -ENOENT;
}

void
conf_policy_print_value(const struct conf_policy *p, unsigned i, FILE *out)
{
	uint64_t value = part_value(p, (enum part)i);

	if (parts[i].words)
		(void)fputs(parts[i].words[value], out);
	else
		(void)fprintf(out, "%" PRIu64, value);
}

int
conf_policy_merge(struct conf_policy *p, const struct conf_policy *other,
		  const char **ret_name)
{
	for (unsigned i = 0; i < PARTS; i++) {
		uint64_t value = part_value(other, (enum part)i);

		if (!conf_policy_has(other, i))
			continue;
		if (conf_policy_has(p, i) &&
		    part_value(p, (enum part)i) != value) {
			*ret_name = parts[i].name;
			return -EEXIST;
		}
		part_assign(p, (enum part)i, value);
	}
	return 0;
}
