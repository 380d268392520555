/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may mount: a client as exports(5) writes it, told apart by its looks
 * alone. A conf_client_match is part of its conf_client. No look-ups here (see
 * match.c).
 */
#include "conf/parse.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CLIENT_BYTES_MAX 255u

__attribute__((format(printf, 2, 3))) static int
refuse(char why[CONF_REASON_BYTES], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(why, CONF_REASON_BYTES, format, args);
	va_end(args);
	return -EINVAL;
}

/* An address of either family; an IPv4-mapped one is IPv4. */
static bool
address_parse(struct conf_client_match *m, const char *text)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	uint8_t addr[16] = { 0 };

	m->family = AF_INET;
	m->prefix = 32;
	if (inet_pton(AF_INET, text, m->addr) == 1)
		return true;
	if (inet_pton(AF_INET6, text, addr) != 1) {
		m->family = 0;
		m->prefix = 0;
		return false;
	}
	if (!memcmp(addr, mapped, sizeof(mapped))) {
		memcpy(m->addr, addr + 12, 4);
		return true;
	}
	memcpy(m->addr, addr, sizeof(addr));
	m->family = AF_INET6;
	m->prefix = 128;
	return true;
}

/* "255.255.252.0" -> 22 */
static int
netmask_parse(const char *text, unsigned *ret_prefix)
{
	struct in_addr mask;
	uint32_t bits;

	if (inet_pton(AF_INET, text, &mask) != 1)
		return -EINVAL;
	bits = ntohl(mask.s_addr);
	if (~bits & (~bits + 1)) /* ones, then zeros */
		return -EINVAL;
	*ret_prefix = bits ? 32 - (unsigned)__builtin_ctz(bits) : 0;
	return 0;
}

static void
address_mask(struct conf_client_match *m)
{
	for (unsigned i = 0; i < sizeof(m->addr); i++) {
		unsigned left = m->prefix > 8 * i ? m->prefix - 8 * i : 0;

		if (left < 8)
			m->addr[i] &= (uint8_t)(0xff00 >> left);
	}
}

static int
network_parse(struct conf_client_match *m, const char *text,
	      char why[CONF_REASON_BYTES])
{
	const char *slash = strchr(text, '/');
	char address[INET6_ADDRSTRLEN] = "";
	size_t n = (size_t)(slash - text);
	bool mapped;
	uint64_t prefix;
	unsigned bits;

	if (n < sizeof(address))
		memcpy(address, text, n);
	if (!address_parse(m, address))
		return refuse(why,
			      "%s: what stands before the / is not an "
			      "address",
			      text);
	/* ::ffff:10.0.0.0/104 is 10.0.0.0/8 */
	mapped = m->family == AF_INET && strchr(address, ':');
	if (!word_number(slash + 1, mapped ? 128 : m->prefix, &prefix))
		bits = (unsigned)prefix;
	else if (m->family != AF_INET || mapped ||
		 netmask_parse(slash + 1, &bits))
		return refuse(why,
			      "%s: behind the / must stand a prefix length "
			      "of 0 to %u%s",
			      text, mapped ? 128 : m->prefix,
			      m->family == AF_INET && !mapped ? " or a netmask"
							      : "");
	if (mapped && bits < 96)
		return refuse(why,
			      "%s: a prefix of IPv4-mapped addresses is "
			      "at least 96 long",
			      text);
	m->kind = CONF_CLIENT_NETWORK;
	m->prefix = mapped ? bits - 96 : bits;
	address_mask(m);
	return 0;
}

static int
host_parse(struct conf_client_match *m, const char *text,
	   char why[CONF_REASON_BYTES])
{
	m->kind = CONF_CLIENT_HOST;
	if (address_parse(m, text))
		return 0;
	if (strchr(text, ':') || !text[strspn(text, "0123456789.")])
		return refuse(why, "%s is not an address", text);
	for (const char *p = text; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("-._", *p))
			return refuse(why, "%s is not a host's name", text);
	return 0;
}

static int
wildcard_parse(struct conf_client_match *m, const char *text,
	       char why[CONF_REASON_BYTES])
{
	const char *open = strchr(text, '[');

	m->kind = CONF_CLIENT_WILDCARD;
	if (text[0] == '[' && strchr(text, ':'))
		return refuse(why,
			      "%s: an IPv6 address is written without "
			      "brackets",
			      text);
	if (open && (!open[1] || !strchr(open + 2, ']')))
		return refuse(why, "%s: the [ is not closed", text);
	if (!text[strspn(text, "0123456789.*?")] && strchr(text, '.') &&
	    strpbrk(text, "0123456789"))
		return refuse(why,
			      "%s: wildcards stand for names; write a "
			      "network as ADDRESS/PREFIX",
			      text);
	return 0;
}

static int
netgroup_parse(struct conf_client_match *m, const char *text,
	       char why[CONF_REASON_BYTES])
{
	m->kind = CONF_CLIENT_NETGROUP;
	if (!text[1])
		return refuse(why, "@ needs a netgroup's name behind it");
	return 0;
}

/* What every kind must be: short, printable, and free of syntax. */
static int
client_check(const char *text, char why[CONF_REASON_BYTES])
{
	char shown[REPORT_WORD_BYTES];

	conf_report_word(shown, text);
	if (strlen(text) > CLIENT_BYTES_MAX)
		return refuse(why, "%s: longer than %u bytes", shown,
			      CLIENT_BYTES_MAX);
	for (const char *p = text; *p; p++)
		if (!isgraph((unsigned char)*p) || strchr("\"#(),\\", *p))
			return refuse(why, "%s is not a client", shown);
	if (!strncmp(text, "gss/", 4))
		return refuse(why,
			      "%s: RPCSEC_GSS (Kerberos) is not served, "
			      "only sec=sys",
			      shown);
	if (text[0] == '-' || text[0] == '=')
		return refuse(why, "%s is not a client", shown);
	return 0;
}

int
conf_client_parse(struct conf_client_match *m, const char *text,
		  char why[CONF_REASON_BYTES])
{
	struct conf_client_match found = { .kind = CONF_CLIENT_ANY };
	int error = 0;

	if (!*text)
		text = "*";
	error = client_check(text, why);
	if (error)
		return error;
	if (text[0] == '@')
		error = netgroup_parse(&found, text, why);
	else if (strchr(text, '/'))
		error = network_parse(&found, text, why);
	else if (strcmp(text, "*") != 0 && strpbrk(text, "*?["))
		error = wildcard_parse(&found, text, why);
	else if (strcmp(text, "*") != 0)
		error = host_parse(&found, text, why);
	if (error)
		return error;
	found.text = strdup(text);
	if (!found.text)
		return -ENOMEM;
	*m = found;
	return 0;
}

void
conf_client_fini(struct conf_client_match *m)
{
	free(m->text);
	m->text = NULL;
}

void
conf_client_print(const struct conf_client_match *m, FILE *out)
{
	char address[INET6_ADDRSTRLEN];

	if (!m->family) {
		(void)fputs(m->text, out);
		return;
	}
	inet_ntop(m->family, m->addr, address, sizeof(address));
	(void)fputs(address, out);
	if (m->kind == CONF_CLIENT_NETWORK)
		(void)fprintf(out, "/%u", m->prefix);
}

bool
conf_client_equal(const struct conf_client_match *a,
		  const struct conf_client_match *b)
{
	if (a->kind != b->kind || a->family != b->family)
		return false;
	if (a->family)
		return a->prefix == b->prefix &&
		       !memcmp(a->addr, b->addr, sizeof(a->addr));
	if (a->kind == CONF_CLIENT_NETGROUP)
		return strcmp(a->text, b->text) == 0;
	return !strcasecmp(a->text, b->text);
}

int
conf_client_compare(const struct conf_client_match *a,
		    const struct conf_client_match *b)
{
	if (a->kind != b->kind)
		/* The enum lists host, network, wildcard, netgroup in order,
		 * but any first. */
		return a->kind == CONF_CLIENT_ANY ? 1
		       : b->kind == CONF_CLIENT_ANY
			       ? -1
			       : (int)a->kind - (int)b->kind;
	if (a->kind == CONF_CLIENT_NETWORK)
		return (int)b->prefix - (int)a->prefix;
	return 0;
}

bool
conf_client_prefix_equal(const uint8_t *a, const uint8_t *b, unsigned prefix)
{
	unsigned whole = prefix / 8, rest = prefix % 8;
	uint8_t mask = (uint8_t)(0xff00 >> rest);

	if (memcmp(a, b, whole) != 0)
		return false;
	return !rest || (a[whole] & mask) == (b[whole] & mask);
}
