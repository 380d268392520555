/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of conf/ share and nobody else includes (their unit tests
 * aside): messages, hints, words, and the steps of the exports parser.
 * Everything here belongs to the one thread that reads a file.
 */
#ifndef NVNFSD_CONF_PARSE_H
#define NVNFSD_CONF_PARSE_H

#include "conf/conf.h"

/* report.c ----------------------------------------------------------------- */

/* A copy of word that is safe in a message: control characters as '?', cut
 * with "..." where it is long. Returns out. */
#define REPORT_WORD_BYTES 80
const char *conf_report_word(char out[REPORT_WORD_BYTES], const char *word);

/* text.c ------------------------------------------------------------------- */

#define CONF_FILE_BYTES_MAX (16u << 20)

/* Read a whole file; *ret is malloc'd and ends with a NUL that *ret_bytes does
 * not count. -EFBIG over CONF_FILE_BYTES_MAX, -EISDIR, -ENOENT... */
int conf_text_read(const char *path, char **ret, size_t *ret_bytes);
/* Edits (insert, delete, replace, swap neighbours) between two words, whatever
 * their case; UINT_MAX where one is too long to be a word of ours. */
unsigned conf_text_distance(const char *a, const char *b);
/* The nearest to word so far: start with best NULL and offer each candidate.
 * Only what lies near enough to be a slip is kept. */
struct conf_text_hint {
	const char *word, *best;
	unsigned distance;
};
void conf_text_hint_offer(struct conf_text_hint *h, const char *candidate);

/* words.c ------------------------------------------------------------------ */

/* Decimal, nothing around it. -EINVAL, -ERANGE over max. */
int word_number(const char *word, uint64_t max, uint64_t *ret);
/* yes no true false on off 1 0 (nfs.conf(5)). */
int word_bool(const char *word, bool *ret);
/* conf_policy_set and conf_policy_name stand in conf.h. */
bool conf_policy_has(const struct conf_policy *p, unsigned i);
void conf_policy_print_value(const struct conf_policy *p, unsigned i,
			     FILE *out);
/* Take over from other what p leaves unset. The first part that both set
 * differently is *ret_name with -EEXIST. */
int conf_policy_merge(struct conf_policy *p, const struct conf_policy *other,
		      const char **ret_name);

/* keys.c ------------------------------------------------------------------- */

#define CONF_KEYS 27u

/* Key i and its section, NULL behind the last. */
const char *conf_key_name(unsigned i, const char **ret_section);
/* May it stand in several lines, which then add up? (host) */
bool conf_key_repeats(unsigned i);
/* 0; -EINVAL with the reason in why; -ENOMEM. value is not empty. */
int conf_key_set(struct conf *c, unsigned i, const char *value,
		 char why[CONF_REASON_BYTES]);
int conf_host_add(struct conf *c, const char *text, size_t bytes);
void conf_hosts_fini(struct conf *c);
const char *conf_level_name(enum conf_log_level level);

/* lex.c: words of an exports text ------------------------------------------ */

#define LEX_END (-1)

struct lex {
	const char *text;
	size_t bytes, at;
	unsigned line; /* of the next byte */
	const char *name;
	struct conf_report *report;
	char *word; /* of the last lex_word, NUL-terminated */
	size_t word_bytes;
	bool quoted; /* it had quotes */
};

/* 0 or -ENOMEM. text and name must outlive it. */
int lex_init(struct lex *l, const char *text, size_t bytes, const char *name,
	     unsigned line, struct conf_report *report);
void lex_fini(struct lex *l);
/* The next byte (a backslash before a newline, with the newline and the blanks
 * behind it, is one ' '), or LEX_END. */
int lex_peek(const struct lex *l);
void lex_take(struct lex *l);
/* Pass blanks and, where one begins, a comment; the next byte. */
int lex_skip_blanks(struct lex *l);
/* Pass the rest of the line, its newline included. */
void lex_skip_line(struct lex *l);
/* Read bytes up to a blank, the line's end or one of stops, without their
 * quotes, escapes (\ooo) decoded. 0, or -EINVAL (reported). */
int lex_word(struct lex *l, const char *stops);

/* option_values.c ---------------------------------------------------------- */

/* 0; -EINVAL with the reason in why; -ENOMEM. value may be NULL only for
 * mountpoint. */
typedef int conf_option_set_fn(struct conf_export_options *o, const char *value,
			       char why[CONF_REASON_BYTES]);
conf_option_set_fn conf_set_anonuid, conf_set_anongid, conf_set_fsid,
	conf_set_mountpoint, conf_set_sec;

/* options.c: the list in parentheses --------------------------------------- */

void conf_options_init(struct conf_export_options *o);
void conf_options_fini(struct conf_export_options *o);
/* 0 or -ENOMEM: a copy of its own. */
int conf_options_copy(struct conf_export_options *to,
		      const struct conf_export_options *from);
/* Read options up to close (')', taken too), or with close 0 up to a blank. 0,
 * -EINVAL (all reported, the list is passed), or -ENOMEM. */
int conf_options_parse(struct conf_export_options *o, struct lex *l,
		       char close);
void conf_options_print(const struct conf_export_options *o, FILE *out);
/* Give both what only one has of fsid, mountpoint and policy. -EEXIST: they
 * differ in *ret_name. */
int conf_options_unify(struct conf_export_options *a,
		       struct conf_export_options *b, const char **ret_name);
/* The name of option i (refused ones too, *ret_served tells), NULL behind the
 * last. */
const char *conf_options_name(unsigned i, bool *ret_served);
/* text as lex_word reads it back; the bytes of also are escaped, too. */
void conf_print_escaped(const char *text, const char *also, FILE *out);

/* exports_lines.c: texts into a table ---------------------------------------
 */

/* A table that is being built. */
struct table {
	struct conf_exports e;
	struct conf_report *report;
};

/* Add the lines of a text. Bad ones are reported and passed over. 0, or
 * -ENOMEM. */
int conf_table_text(struct table *t, const char *text, size_t n,
		    const char *name, unsigned first_line);
void conf_client_release(struct conf_client *c);
/* An absolute path: slashes joined and trailing ones taken off, "." left out,
 * ".." refused. 0; -EINVAL with the reason in why; -ENOMEM. */
int conf_path_parse(const char *text, char **ret, char why[CONF_REASON_BYTES]);

/* client.c: who ------------------------------------------------------------ */

/* 0; -EINVAL with the reason in why; -ENOMEM. An empty text is ANY. */
int conf_client_parse(struct conf_client_match *m, const char *text,
		      char why[CONF_REASON_BYTES]);
void conf_client_fini(struct conf_client_match *m);
void conf_client_print(const struct conf_client_match *m, FILE *out);
bool conf_client_equal(const struct conf_client_match *a,
		       const struct conf_client_match *b);
/* < 0 when a is more specific, > 0 when b is, else 0. */
int conf_client_compare(const struct conf_client_match *a,
			const struct conf_client_match *b);
/* Is an address within a network of prefix bits? Both of the same family. */
bool conf_client_prefix_equal(const uint8_t *a, const uint8_t *b,
			      unsigned prefix);

#endif
