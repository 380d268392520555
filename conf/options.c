/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Export options: one table with every option of exports(5) and of our own,
 * those included that are refused with the reason. A conf_export_options is
 * part of its conf_client. It knows no client and no path.
 */
#include "conf/parse.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ANON_ID 65534u

enum option_kind {
	FLAG,      /* sets a bool */
	VALUE,     /* name=value */
	MAY_VALUE, /* name or name=value */
	IDLE,      /* says what is so anyway */
	REFUSED
};

struct option {
	const char *name;
	enum option_kind kind;
	bool value;              /* FLAG */
	size_t offset;           /* FLAG */
	conf_option_set_fn *set; /* VALUE, MAY_VALUE */
	const char *note;        /* a warning, or why it is refused */
};

#define FIELD(f) offsetof(struct conf_export_options, f)

static const char no_nfs4[] = "it is for NFSv4, and NFSv3 is served";
static const char no_maps[] = "ids are taken as the client sends them: use "
			      "all_squash, root_squash, anonuid, anongid";
static const char no_crossing[] =
	"what is mounted below an export does not show: "
	"export it by itself, and mount it by itself";

static const struct option options[] = {
	{ "ro", FLAG, false, FIELD(rw) },
	{ "rw", FLAG, true, FIELD(rw) },
	{ "sync", FLAG, true, FIELD(sync) },
	{ "async", FLAG, false, FIELD(sync) },
	{ "secure", FLAG, true, FIELD(secure) },
	{ "insecure", FLAG, false, FIELD(secure) },
	{ "root_squash", FLAG, true, FIELD(root_squash) },
	{ "no_root_squash", FLAG, false, FIELD(root_squash) },
	{ "all_squash", FLAG, true, FIELD(all_squash) },
	{ "no_all_squash", FLAG, false, FIELD(all_squash) },
	{ "subtree_check", FLAG, true, FIELD(subtree_check), NULL,
	  "not enforced: file handles are sealed, but one of a file that was "
	  "moved out of the export stays good" },
	{ "no_subtree_check", FLAG, false, FIELD(subtree_check) },
	{ "acl", FLAG, true, FIELD(acl) },
	{ "no_acl", FLAG, false, FIELD(acl) },
	{ "auth_nlm", FLAG, true, FIELD(auth_nlm) },
	{ "secure_locks", FLAG, true, FIELD(auth_nlm) },
	{ "no_auth_nlm", FLAG, false, FIELD(auth_nlm) },
	{ "insecure_locks", FLAG, false, FIELD(auth_nlm) },
	{ "anonuid", VALUE, false, 0, conf_set_anonuid },
	{ "anongid", VALUE, false, 0, conf_set_anongid },
	{ "fsid", VALUE, false, 0, conf_set_fsid },
	{ "mountpoint", MAY_VALUE, false, 0, conf_set_mountpoint },
	{ "mp", MAY_VALUE, false, 0, conf_set_mountpoint },
	{ "sec", VALUE, false, 0, conf_set_sec },
	{ "hide", IDLE },
	{ "nocrossmnt", IDLE },
	{ "no_pnfs", IDLE },
	{ "no_wdelay", IDLE },
	{ "wdelay", IDLE, false, 0, NULL,
	  "no effect: nothing waits, and WRITEs that come while a sync runs "
	  "share the next one" },
	{ "crossmnt", REFUSED, false, 0, NULL, no_crossing },
	{ "nohide", REFUSED, false, 0, NULL, no_crossing },
	{ "zfs_snapdir", REFUSED, false, 0, NULL, no_crossing },
	{ "pnfs", REFUSED, false, 0, NULL, no_nfs4 },
	{ "refer", REFUSED, false, 0, NULL, no_nfs4 },
	{ "replicas", REFUSED, false, 0, NULL, no_nfs4 },
	{ "security_label", REFUSED, false, 0, NULL, no_nfs4 },
	{ "v4root", REFUSED, false, 0, NULL, no_nfs4 },
	{ "xprtsec", REFUSED, false, 0, NULL, "TLS (RFC 9289) is not served" },
	{ "reexport", REFUSED, false, 0, NULL,
	  "an NFS mount has no handles that could be handed on" },
	{ "nordirplus", REFUSED, false, 0, NULL,
	  "READDIRPLUS is always served: mount with nordirplus" },
	{ "mapping", REFUSED, false, 0, NULL, no_maps },
	{ "map_identity", IDLE },
	{ "map_daemon", REFUSED, false, 0, NULL, no_maps },
	{ "squash_uids", REFUSED, false, 0, NULL, no_maps },
	{ "squash_gids", REFUSED, false, 0, NULL, no_maps },
	{ "noaccess", REFUSED, false, 0, NULL,
	  "a part of an export cannot be shut off" },
	{ "link_relative", REFUSED, false, 0, NULL,
	  "symlinks are handed out as they are" },
	{ "link_absolute", IDLE },
};

#define OPTIONS (sizeof(options) / sizeof(*options))

const char *
conf_options_name(unsigned i, bool *ret_served)
{
	if (i < OPTIONS) {
		*ret_served = options[i].kind != REFUSED;
		return options[i].name;
	}
	*ret_served = true;
	return conf_policy_name(i - (unsigned)OPTIONS);
}

void
conf_options_init(struct conf_export_options *o)
{
	memset(o, 0, sizeof(*o));
	o->sync = o->root_squash = o->secure = o->acl = true;
	o->auth_nlm = true;
	o->anonuid = o->anongid = ANON_ID;
}

void
conf_options_fini(struct conf_export_options *o)
{
	free(o->mountpoint);
	o->mountpoint = NULL;
}

int
conf_options_copy(struct conf_export_options *to,
		  const struct conf_export_options *from)
{
	char *mountpoint = NULL;

	if (from->mountpoint) {
		mountpoint = strdup(from->mountpoint);
		if (!mountpoint)
			return -ENOMEM;
	}
	*to = *from;
	to->mountpoint = mountpoint;
	return 0;
}

static const struct option *
option_find(const char *name)
{
	for (unsigned i = 0; i < OPTIONS; i++)
		if (!strcmp(options[i].name, name))
			return &options[i];
	return NULL;
}

static void
report_unknown(const struct lex *l, const char *name)
{
	struct conf_text_hint hint = { .word = name };
	char shown[REPORT_WORD_BYTES];
	const char *known;
	bool served;

	for (unsigned i = 0; (known = conf_options_name(i, &served)); i++)
		if (served)
			conf_text_hint_offer(&hint, known);
	conf_report_word(shown, name);
	if (hint.best)
		conf_report_error(l->report, l->name, l->line,
				  "unknown option %s: is it %s?", shown,
				  hint.best);
	else
		conf_report_error(l->report, l->name, l->line,
				  "unknown option %s", shown);
}

/* value: NULL when there is no "=". */
static int
option_apply(struct conf_export_options *o, const struct option *option,
	     const char *value, const struct lex *l)
{
	char why[CONF_REASON_BYTES];
	bool takes = option->kind == VALUE || option->kind == MAY_VALUE;
	int error = 0;

	if (option->kind == REFUSED) {
		conf_report_error(l->report, l->name, l->line,
				  "%s is refused: %s", option->name,
				  option->note);
		return -EINVAL;
	}
	if ((value && !takes) || (!value && option->kind == VALUE)) {
		conf_report_error(l->report, l->name, l->line, "%s %s",
				  option->name,
				  value ? "takes no value" : "needs a value");
		return -EINVAL;
	}
	if (option->note)
		conf_report_warning(l->report, l->name, l->line, "%s: %s",
				    option->name, option->note);
	if (option->kind == FLAG)
		*(bool *)((char *)o + option->offset) = option->value;
	if (takes)
		error = option->set(o, value, why);
	if (error == -EINVAL)
		conf_report_error(l->report, l->name, l->line, "%s", why);
	return error;
}

/* The lexer's word, "name" or "name=value". */
static int
option_word(struct conf_export_options *o, const struct lex *l)
{
	char why[CONF_REASON_BYTES];
	char *name = l->word, *value = strchr(name, '=');
	const struct option *option;
	int error;

	if (value)
		*value++ = '\0';
	if (!*name) {
		conf_report_error(l->report, l->name, l->line,
				  "an option is missing");
		return -EINVAL;
	}
	option = option_find(name);
	if (option)
		return option_apply(o, option, value, l);
	error = conf_policy_set(&o->policy, name, value ? value : "", why);
	if (error == -ENOENT)
		report_unknown(l, name);
	else if (error)
		conf_report_error(l->report, l->name, l->line, "%s", why);
	return error ? -EINVAL : 0;
}

/* Behind an option: 1 goes on, 0 ends, -EINVAL. */
static int
list_next(struct lex *l, char close)
{
	int c = close ? lex_skip_blanks(l) : lex_peek(l);

	if (c == ',') {
		lex_take(l);
		c = close ? lex_skip_blanks(l) : lex_peek(l);
		/* A comma may stand last in parentheses. */
		if (c != close && c != LEX_END && c != '\n' && c != ' ' &&
		    c != '\t')
			return 1;
		if (!close) {
			conf_report_error(l->report, l->name, l->line,
					  "a list that begins with - must not "
					  "end in a comma");
			return -EINVAL;
		}
	}
	if (!close)
		return 0;
	if (c == close) {
		lex_take(l);
		return 0;
	}
	conf_report_error(l->report, l->name, l->line,
			  c == LEX_END || c == '\n'
				  ? "the ) is missing"
				  : "options are separated by commas");
	return -EINVAL;
}

int
conf_options_parse(struct conf_export_options *o, struct lex *l, char close)
{
	const char stops[] = { ',', close, '\0' };
	int error, result = 0, more = 1;

	if (close && lex_skip_blanks(l) == close) {
		lex_take(l);
		return 0;
	}
	while (more > 0) {
		if (lex_word(l, stops))
			return -EINVAL;
		/* "(" with nothing behind it is a missing ")" only. */
		error = 0;
		if (l->word_bytes || lex_peek(l) == ',')
			error = option_word(o, l);
		if (error == -ENOMEM)
			return error;
		result = error ? error : result;
		more = list_next(l, close);
	}
	return more < 0 ? more : result;
}

static void
print_fsid(const struct conf_export_options *o, FILE *out)
{
	switch (o->fsid_kind) {
	case CONF_FSID_NONE:
		return;
	case CONF_FSID_NUMBER:
		(void)fprintf(out, ",fsid=%" PRIu32, o->fsid_number);
		return;
	case CONF_FSID_ROOT:
		(void)fputs(",fsid=root", out);
		return;
	case CONF_FSID_UUID:
		(void)fputs(",fsid=", out);
		for (unsigned i = 0; i < 16; i++)
			(void)fprintf(out, "%s%02x",
				      i == 4 || i == 6 || i == 8 || i == 10
					      ? "-"
					      : "",
				      o->fsid_uuid[i]);
		return;
	}
}

void
conf_print_escaped(const char *text, const char *also, FILE *out)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c <= ' ' || c == 0x7f || c == '"' || c == '\\' ||
		    strchr(also, c))
			(void)fprintf(out, "\\%03o", c);
		else
			(void)fputc(c, out);
	}
}

void
conf_options_print(const struct conf_export_options *o, FILE *out)
{
	(void)fprintf(out,
		      "%s,%s,%s,%s,%s,%s,anonuid=%" PRIu32 ",anongid=%" PRIu32,
		      o->rw ? "rw" : "ro", o->sync ? "sync" : "async",
		      o->secure ? "secure" : "insecure",
		      o->root_squash ? "root_squash" : "no_root_squash",
		      o->all_squash ? "all_squash" : "no_all_squash",
		      o->subtree_check ? "subtree_check" : "no_subtree_check",
		      o->anonuid, o->anongid);
	if (!o->acl)
		(void)fputs(",no_acl", out);
	if (!o->auth_nlm)
		(void)fputs(",no_auth_nlm", out);
	print_fsid(o, out);
	if (o->has_mountpoint)
		(void)fputs(",mountpoint", out);
	if (o->mountpoint) {
		(void)fputc('=', out);
		conf_print_escaped(o->mountpoint, ",()", out);
	}
	for (unsigned i = 0; conf_policy_name(i); i++) {
		if (!conf_policy_has(&o->policy, i))
			continue;
		(void)fprintf(out, ",%s=", conf_policy_name(i));
		conf_policy_print_value(&o->policy, i, out);
	}
}

static bool
fsid_equal(const struct conf_export_options *a,
	   const struct conf_export_options *b)
{
	return a->fsid_kind == b->fsid_kind &&
	       a->fsid_number == b->fsid_number &&
	       !memcmp(a->fsid_uuid, b->fsid_uuid, sizeof(a->fsid_uuid));
}

/* to takes fsid and mountpoint from from where it has none. */
static int
unify_from(struct conf_export_options *to,
	   const struct conf_export_options *from)
{
	if (to->fsid_kind == CONF_FSID_NONE) {
		to->fsid_kind = from->fsid_kind;
		to->fsid_number = from->fsid_number;
		memcpy(to->fsid_uuid, from->fsid_uuid, sizeof(to->fsid_uuid));
	}
	if (to->has_mountpoint || !from->has_mountpoint)
		return 0;
	if (from->mountpoint) {
		to->mountpoint = strdup(from->mountpoint);
		if (!to->mountpoint)
			return -ENOMEM;
	}
	to->has_mountpoint = true;
	return 0;
}

int
conf_options_unify(struct conf_export_options *a, struct conf_export_options *b,
		   const char **ret_name)
{
	int error = unify_from(a, b);

	if (!error)
		error = unify_from(b, a);
	if (error)
		return error;
	*ret_name = "fsid";
	if (!fsid_equal(a, b))
		return -EEXIST;
	*ret_name = "mountpoint";
	if (a->has_mountpoint &&
	    strcmp(a->mountpoint ? a->mountpoint : "",
		   b->mountpoint ? b->mountpoint : "") != 0)
		return -EEXIST;
	error = conf_policy_merge(&a->policy, &b->policy, ret_name);
	if (!error)
		error = conf_policy_merge(&b->policy, &a->policy, ret_name);
	return error;
}
