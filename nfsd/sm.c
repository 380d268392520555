/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of the network status monitor's protocol (The Open Group, XNFS, 11;
 * rpcsvc/sm_inter.x, which lacks SM_NOTIFY): arguments, by libtirpc's XDR, and
 * one call each. Nothing is kept.
 */
#include "nfsd/sm.h"

#include "nfsd/nlm.h"
#include "nfsd/nsm.h"
#include "nfsd/nsm_list.h"
#include "rpc/rpc.h"

#include <errno.h>
#include <string.h>

#define SM_PROGRAM   100024u
#define SM_VERSION   1u
#define SM_MON       2u
#define SM_UNMON     3u
#define SM_NOTIFY    6u
#define SM_STAT_SUCC 0

#define STATD_SECONDS 5u /* it looks up names, one after the other */

/* What SM_MON is given, and what it gives back to us -----------------------
 */

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

/* An address of one link's is followed by nothing but its last eight bytes, so
 * there is room for the link. */
#define SCOPE_AT 4

static void
priv_of(uint8_t priv[NSM_PRIV_BYTES], const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)addr;

	if (addr->ss_family == AF_INET) {
		memcpy(priv, mapped, sizeof(mapped));
		memcpy(priv + sizeof(mapped), &v4->sin_addr, 4);
		return;
	}
	memcpy(priv, &v6->sin6_addr, NSM_PRIV_BYTES);
	if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr))
		memcpy(priv + SCOPE_AT, &v6->sin6_scope_id, 4);
}

bool
nsm_host_of(const uint8_t priv[NSM_PRIV_BYTES], struct sockaddr_storage *host)
{
	static const uint8_t none[NSM_PRIV_BYTES];
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)host;
	struct sockaddr_in *v4 = (struct sockaddr_in *)host;

	if (memcmp(priv, none, sizeof(none)) == 0)
		return false;
	memset(host, 0, sizeof(*host));
	if (memcmp(priv, mapped, sizeof(mapped)) == 0) {
		v4->sin_family = AF_INET;
		memcpy(&v4->sin_addr, priv + sizeof(mapped), 4);
		return true;
	}
	v6->sin6_family = AF_INET6;
	memcpy(&v6->sin6_addr, priv, NSM_PRIV_BYTES);
	if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) {
		memcpy(&v6->sin6_scope_id, priv + SCOPE_AT, 4);
		memset(v6->sin6_addr.s6_addr + SCOPE_AT, 0, 4);
	}
	return true;
}

/* rpc.statd of this machine ------------------------------------------------
 */

struct mon_id {
	char *mon_name, *my_name;
	int my_prog, my_vers, my_proc;
};

struct mon {
	struct mon_id id;
	char priv[NSM_PRIV_BYTES];
};

struct stat_res {
	int stat, state;
};

static bool_t
xdr_mon_id(XDR *x, struct mon_id *m)
{
	return xdr_string(x, &m->mon_name, SM_MAXSTRLEN) &&
	       xdr_string(x, &m->my_name, SM_MAXSTRLEN) &&
	       xdr_int(x, &m->my_prog) && xdr_int(x, &m->my_vers) &&
	       xdr_int(x, &m->my_proc);
}

static bool_t
xdr_mon(XDR *x, struct mon *m)
{
	return xdr_mon_id(x, &m->id) && xdr_opaque(x, m->priv, sizeof(m->priv));
}

static bool_t
xdr_stat_res(XDR *x, struct stat_res *r)
{
	return xdr_int(x, &r->stat) && xdr_int(x, &r->state);
}

static bool_t
xdr_state(XDR *x, int *state)
{
	return xdr_int(x, state);
}

/* It takes calls of this machine alone, and from reserved ports. */
static int
statd_call(uint32_t proc, const struct rpc_peer_io *io)
{
	const struct sockaddr_in loopback = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const struct rpc_peer_where where = {
		.host = (const struct sockaddr *)&loopback,
		.local = (const struct sockaddr *)&loopback,
		.datagram = true,
		.once = true, /* or a slow one would do it all over again */
		.seconds = STATD_SECONDS,
	};
	struct rpc_peer *p;
	int rc = rpc_peer_open(&p, &where, SM_PROGRAM, SM_VERSION);

	if (rc < 0)
		return rc;
	rc = rpc_peer_call(p, proc, io);
	rpc_peer_close(p);
	return rc;
}

static struct mon_id
mon_id_of(const char *my_name, const char *host)
{
	return (struct mon_id){ .mon_name = (char *)host,
				.my_name = (char *)my_name,
				.my_prog = (int)NLM_PROGRAM,
				.my_vers = (int)NLM_VERSION4,
				.my_proc = NLMPROC4_SM_NOTIFY };
}

int
sm_watch(const char *my_name, const char *host)
{
	struct mon m = { .id = mon_id_of(my_name, host) };
	struct stat_res res = { 0 };
	const struct rpc_peer_io io = { .encode = (xdrproc_t)xdr_mon,
					.args = &m,
					.decode = (xdrproc_t)xdr_stat_res,
					.res = &res };
	struct sockaddr_storage addr;
	int rc;

	if (!nsm_address(host, &addr))
		return -EINVAL;
	priv_of((uint8_t *)m.priv, &addr);
	rc = statd_call(SM_MON, &io);
	if (rc == 0 && res.stat != SM_STAT_SUCC)
		return -EINVAL;
	return rc;
}

void
sm_unwatch(const char *my_name, const char *host)
{
	struct mon_id id = mon_id_of(my_name, host);
	int state;
	const struct rpc_peer_io io = { .encode = (xdrproc_t)xdr_mon_id,
					.args = &id,
					.decode = (xdrproc_t)xdr_state,
					.res = &state };

	(void)statd_call(SM_UNMON, &io);
}

/* Other hosts' statd ---------------------------------------------------------
 */

struct stat_chge {
	char *mon_name;
	int state;
};

static bool_t
xdr_stat_chge(XDR *x, struct stat_chge *c)
{
	return xdr_string(x, &c->mon_name, SM_MAXSTRLEN) &&
	       xdr_int(x, &c->state);
}

/* Clients know us by the name that they mounted from, or by our address. */
static int
notify_names(struct rpc_peer *p, const char *my_name, int32_t state)
{
	char name[SM_MAXSTRLEN + 1];
	struct stat_chge c = { (char *)my_name, state };
	const struct rpc_peer_io io = { .encode = (xdrproc_t)xdr_stat_chge,
					.args = &c };
	int rc = rpc_peer_call(p, SM_NOTIFY, &io);
	size_t n = strcspn(my_name, ".");

	if (rc < 0 || n == 0 || my_name[n] == '\0' || n >= sizeof(name))
		return rc;
	memcpy(name, my_name, n);
	name[n] = '\0';
	c.mon_name = name;
	return rpc_peer_call(p, SM_NOTIFY, &io);
}

int
sm_notify(const char *my_name, int32_t state, const struct sm_notify_to *to)
{
	const struct sockaddr_storage any = { .ss_family = to->addr.ss_family };
	struct rpc_peer_where where = {
		.host = (const struct sockaddr *)&to->addr,
		.local = (const struct sockaddr *)&to->local,
		.datagram = to->datagram,
		.seconds = to->seconds,
	};
	struct rpc_peer *p;
	int rc = -EADDRNOTAVAIL;

	if (to->local.ss_family == to->addr.ss_family)
		rc = rpc_peer_open(&p, &where, SM_PROGRAM, SM_VERSION);
	if (rc == -EADDRNOTAVAIL) {
		where.local = (const struct sockaddr *)&any;
		rc = rpc_peer_open(&p, &where, SM_PROGRAM, SM_VERSION);
	}
	if (rc < 0)
		return rc;
	rc = notify_names(p, my_name, state);
	rpc_peer_close(p);
	return rc;
}
