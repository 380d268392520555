/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Export options that have a value: how each is understood. No state; options.c
 * knows their names and who calls them.
 */
#include "conf/parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int
bad_value(char why[CONF_REASON_BYTES], const char *name, const char *value,
	  const char *reason)
{
	char shown[REPORT_WORD_BYTES];

	(void)snprintf(why, CONF_REASON_BYTES, "%s=%s: %s", name,
		       conf_report_word(shown, value), reason);
	return -EINVAL;
}

/* exports of old write nobody as -2. */
static int
set_id(uint32_t *ret, const char *name, const char *value,
       char why[CONF_REASON_BYTES])
{
	bool negative = value[0] == '-';
	uint64_t n;

	if (word_number(value + negative, negative ? INT32_MAX : UINT32_MAX,
			&n))
		return bad_value(why, name, value, "not an id in numbers");
	if (negative)
		n = (uint32_t)-n;
	if (n == UINT32_MAX)
		return bad_value(why, name, value, "stands for no id");
	*ret = (uint32_t)n;
	return 0;
}

int
conf_set_anonuid(struct conf_export_options *o, const char *value,
		 char why[CONF_REASON_BYTES])
{
	return set_id(&o->anonuid, "anonuid", value, why);
}

int
conf_set_anongid(struct conf_export_options *o, const char *value,
		 char why[CONF_REASON_BYTES])
{
	return set_id(&o->anongid, "anongid", value, why);
}

static int
hex_digit(char c)
{
	static const char digits[] = "0123456789abcdefABCDEF";
	const char *at = c ? strchr(digits, c) : NULL;
	int value = at ? (int)(at - digits) : -1;

	return value < 16 ? value : value - 6;
}

/* 32 hexadecimal digits, with any punctuation between. */
static int
uuid_parse(const char *text, uint8_t uuid[16])
{
	unsigned digits = 0;

	memset(uuid, 0, 16);
	for (; *text; text++) {
		int digit = hex_digit(*text);

		if (ispunct((unsigned char)*text))
			continue;
		if (digit < 0 || digits == 32)
			return -EINVAL;
		uuid[digits / 2] |= (uint8_t)(digits % 2 ? digit : digit << 4);
		digits++;
	}
	return digits == 32 ? 0 : -EINVAL;
}

static int
fsid_number(const char *value, uint64_t *ret)
{
	char *end;

	if (value[0] != '0' || (value[1] | 0x20) != 'x')
		return word_number(value, UINT32_MAX, ret);
	if (hex_digit(value[2]) < 0) /* strtoull takes signs and blanks */
		return -EINVAL;
	errno = 0;
	*ret = strtoull(value + 2, &end, 16);
	return *end || errno || *ret > UINT32_MAX ? -EINVAL : 0;
}

int
conf_set_fsid(struct conf_export_options *o, const char *value,
	      char why[CONF_REASON_BYTES])
{
	uint8_t uuid[16];
	uint64_t n = 0;

	if (!strcmp(value, "root") || !fsid_number(value, &n)) {
		/* exports(5) lets both be given, the number for old kernels:
		 * the UUID says more. */
		if (o->fsid_kind == CONF_FSID_UUID)
			return 0;
		o->fsid_kind = n ? CONF_FSID_NUMBER : CONF_FSID_ROOT;
		o->fsid_number = (uint32_t)n;
		return 0;
	}
	if (uuid_parse(value, uuid))
		return bad_value(why, "fsid", value,
				 "neither a number below 2^32, nor root, nor a "
				 "UUID of 32 hexadecimal digits");
	o->fsid_kind = CONF_FSID_UUID;
	o->fsid_number = 0;
	memcpy(o->fsid_uuid, uuid, sizeof(uuid));
	return 0;
}

int
conf_set_mountpoint(struct conf_export_options *o, const char *value,
		    char why[CONF_REASON_BYTES])
{
	char reason[CONF_REASON_BYTES], *path = NULL;
	int error = 0;

	if (value && *value)
		error = conf_path_parse(value, &path, reason);
	if (error == -EINVAL)
		(void)snprintf(why, CONF_REASON_BYTES, "mountpoint: %.200s",
			       reason);
	if (error)
		return error;
	free(o->mountpoint);
	o->mountpoint = path;
	o->has_mountpoint = true;
	return 0;
}

int
conf_set_sec(struct conf_export_options *o, const char *value,
	     char why[CONF_REASON_BYTES])
{
	(void)o;
	if (!strcmp(value, "sys"))
		return 0;
	if (strstr(value, "krb5"))
		return bad_value(why, "sec", value,
				 "Kerberos (RPCSEC_GSS) is not served: "
				 "sec=sys is");
	return bad_value(why, "sec", value, "only sec=sys is served");
}
