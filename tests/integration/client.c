/* SPDX-License-Identifier: Apache-2.0 */
/* See client.h: what a client has to keep, and what it may find. */
#include "client.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEP    101u /* odd: versions differ in every byte */
#define STEP_BY 109u /* its inverse modulo 256 */

_Static_assert(STEP *STEP_BY % 256 == 1, "one is the inverse of the other");

/* What version 0 of a record would have at byte p of the file. */
static uint8_t
base_byte(const struct client *c, unsigned i, uint64_t p)
{
	uint64_t n = i, salt = c->salt;

	return (uint8_t)(7 * p + 13 * (p >> 8) + 5 * (p >> 16) + 29 * n +
			 53 * salt);
}

static void
fill(const struct client *c, unsigned i, uint32_t version, uint8_t *out)
{
	const struct client_record *r = &c->record[i];
	uint32_t n;

	for (n = 0; n < r->bytes; n++)
		out[n] = (uint8_t)(base_byte(c, i, r->offset + n) +
				   STEP * version);
}

/* Is each byte of some version from least to the newest that was sent? Before
 * the first, the file has zeros. */
static void
check_bytes(const struct client *c, unsigned i, uint32_t least,
	    const uint8_t *got, const char *where)
{
	const struct client_record *r = &c->record[i];
	uint32_t n;
	uint8_t v;

	for (n = 0; n < r->bytes; n++) {
		v = (uint8_t)(STEP_BY *
			      (got[n] - base_byte(c, i, r->offset + n)));
		if ((uint8_t)(v - least) <= r->sent - least &&
		    (least > 0 || v > 0))
			continue;
		if (least == 0 && got[n] == 0)
			continue;
		fail_msg("%s, client %u, record %u, byte %llu: %#x is none of "
			 "versions %u to %u (but maybe %u)",
			 where, c->salt, i, (unsigned long long)r->offset + n,
			 got[n], least, r->sent, v);
	}
}

/* Life ---------------------------------------------------------------------
 */

void
client_call(struct client *c, raw_zdr_fn *decode, void *result)
{
	uint32_t xid = c->raw->xid - 1;

	while (!raw_try_send(c->raw) || !raw_receive(c->raw)) {
		c->ends++;
		raw_reconnect(c->raw, c->h->port);
	}
	assert_int_equal(c->raw->reply_xid, xid);
	assert_int_equal(c->raw->reply_stat, 0);
	assert_int_equal(c->raw->accept_stat, 0);
	raw_result(c->raw, decode, result);
}

int
client_create(struct client *c, const char *name, createmode3 mode,
	      struct raw_fh *fh)
{
	CREATE3args args;
	CREATE3res res;

	memset(&args, 0, sizeof(args));
	memset(&res, 0, sizeof(res));
	args.where.dir = raw_nfs_fh(&c->root);
	args.where.name = (char *)name;
	args.how.mode = mode;
	args.how.createhow3_u.obj_attributes.mode.set_it = 1;
	args.how.createhow3_u.obj_attributes.mode.set_mode3_u.mode = 0644;
	raw_build(c->raw, 100003, 3, NFS3_CREATE, (raw_zdr_fn *)zdr_CREATE3args,
		  &args);
	client_call(c, (raw_zdr_fn *)zdr_CREATE3res, &res);
	if (res.status != NFS3_OK)
		return (int)res.status;
	assert_true(res.CREATE3res_u.resok.obj.handle_follows);
	if (fh != NULL)
		raw_keep_fh(fh,
			    &res.CREATE3res_u.resok.obj.post_op_fh3_u.handle);
	return NFS3_OK;
}

void
client_init_at(struct client *c, struct harness *h, const char *path,
	       const char *name, uint32_t salt)
{
	mountres3 res;
	nfs_fh3 got;

	memset(c, 0, sizeof(*c));
	memset(&res, 0, sizeof(res));
	c->h = h;
	c->salt = salt;
	c->raw = raw_connect(h->port);
	c->raw->xid = (salt + 1) << 20;
	raw_build(c->raw, 100005, 3, MOUNT3_MNT, (raw_zdr_fn *)zdr_dirpath,
		  (void *)&path);
	client_call(c, (raw_zdr_fn *)zdr_mountres3, &res);
	assert_int_equal(res.fhs_status, MNT3_OK);
	got.data.data_len = res.mountres3_u.mountinfo.fhandle.fhandle3_len;
	got.data.data_val = res.mountres3_u.mountinfo.fhandle.fhandle3_val;
	raw_keep_fh(&c->root, &got);
	c->status = client_create(c, name, UNCHECKED, &c->fh);
	if (c->status == NFS3_OK)
		return;
	c->refused++;
	c->bad = c->status;
	assert_int_equal(client_create(c, name, UNCHECKED, &c->fh), NFS3_OK);
}

void
client_fini(struct client *c)
{
	raw_close(c->raw);
	c->raw = NULL;
}

void
client_init(struct client *c, struct harness *h, const char *name,
	    uint32_t salt)
{
	client_init_at(c, h, h->export, name, salt);
}

unsigned
client_add(struct client *c, uint64_t offset, uint32_t bytes)
{
	struct client_record *r = &c->record[c->records];

	assert_true(c->records < CLIENT_RECORDS_MAX);
	memset(r, 0, sizeof(*r));
	r->offset = offset;
	r->bytes = bytes;
	return c->records++;
}

/* Calls ---------------------------------------------------------------------
 */

static void
send_out(struct client *c, enum client_call call)
{
	assert_int_equal(c->call, CLIENT_IDLE);
	c->call = call;
	/* An ended connection is seen by client_take. */
	(void)raw_try_send(c->raw);
}

static void
start_write(struct client *c, unsigned i, uint32_t version, int stable)
{
	struct client_record *r = &c->record[i];
	uint8_t *data = malloc(r->bytes);
	WRITE3args a;

	assert_non_null(data);
	fill(c, i, version, data);
	memset(&a, 0, sizeof(a));
	a.file = raw_nfs_fh(&c->fh);
	a.offset = r->offset;
	a.count = r->bytes;
	a.stable = (stable_how)stable;
	a.data.data_len = r->bytes;
	a.data.data_val = (char *)data;
	raw_build(c->raw, 100003, 3, NFS3_WRITE, (raw_zdr_fn *)zdr_WRITE3args,
		  &a);
	free(data);
	r->sent = version;
	c->at = i;
	c->version = version;
	c->stable = stable;
	send_out(c, CLIENT_WRITE);
}

void
client_write(struct client *c, unsigned i, int stable)
{
	const struct client_record *r = &c->record[i];

	if (r->sent - r->stable >= CLIENT_AHEAD_MAX)
		client_write_again(c, i, stable);
	else
		start_write(c, i, r->sent + 1, stable);
}

void
client_write_again(struct client *c, unsigned i, int stable)
{
	start_write(c, i, c->record[i].sent, stable);
}

void
client_commit(struct client *c)
{
	COMMIT3args a = { .file = raw_nfs_fh(&c->fh) };

	raw_build(c->raw, 100003, 3, NFS3_COMMIT, (raw_zdr_fn *)zdr_COMMIT3args,
		  &a);
	send_out(c, CLIENT_COMMIT);
}

void
client_read(struct client *c, unsigned i)
{
	READ3args a = { .file = raw_nfs_fh(&c->fh),
			.offset = c->record[i].offset,
			.count = c->record[i].bytes };

	raw_build(c->raw, 100003, 3, NFS3_READ, (raw_zdr_fn *)zdr_READ3args,
		  &a);
	c->at = i;
	send_out(c, CLIENT_READ);
}

/* Replies ---------------------------------------------------------------------
 */

static void
note_verf(struct client *c, const void *verf)
{
	if (c->has_verf && memcmp(c->verf, verf, 8) != 0)
		c->moves++;
	memcpy(c->verf, verf, 8);
	c->has_verf = true;
}

/* What was only acknowledged may be gone. */
static void
doubt(struct client *c, struct client_record *r)
{
	if (r->kept == 0)
		return;
	r->kept = 0;
	r->acked = r->stable;
	r->doubtful = true;
	c->resent++;
}

static void
doubt_all(struct client *c)
{
	unsigned i;

	for (i = 0; i < c->records; i++)
		doubt(c, &c->record[i]);
}

static void
take_write(struct client *c)
{
	struct client_record *r = &c->record[c->at];
	WRITE3resok *ok;
	WRITE3res res;

	memset(&res, 0, sizeof(res));
	raw_result(c->raw, (raw_zdr_fn *)zdr_WRITE3res, &res);
	c->status = (int)res.status;
	r->doubtful = true; /* until it is acknowledged as a whole */
	if (res.status != NFS3_OK) {
		if (c->stable != UNSTABLE)
			doubt_all(c); /* its sync may have failed */
		return;
	}
	ok = &res.WRITE3res_u.resok;
	note_verf(c, ok->verf);
	c->count = ok->count;
	assert_in_range(ok->count, 1, r->bytes);
	assert_true((int)ok->committed >= c->stable);
	if (ok->count < r->bytes) {
		c->shortened++;
		return;
	}
	r->acked = c->version;
	r->doubtful = false;
	if (ok->committed != UNSTABLE) {
		r->stable = c->version;
		r->kept = 0;
		return;
	}
	r->kept = c->version;
	memcpy(r->verf, ok->verf, 8);
}

static void
take_commit(struct client *c)
{
	COMMIT3res res;
	unsigned i;

	memset(&res, 0, sizeof(res));
	raw_result(c->raw, (raw_zdr_fn *)zdr_COMMIT3res, &res);
	c->status = (int)res.status;
	if (res.status != NFS3_OK) {
		doubt_all(c);
		return;
	}
	note_verf(c, res.COMMIT3res_u.resok.verf);
	for (i = 0; i < c->records; i++) {
		struct client_record *r = &c->record[i];

		if (r->kept == 0)
			continue;
		if (memcmp(r->verf, c->verf, 8) != 0) {
			doubt(c, r);
			continue;
		}
		r->stable = r->kept;
		r->kept = 0;
	}
}

static void
take_read(struct client *c)
{
	const struct client_record *r = &c->record[c->at];
	READ3res res;

	memset(&res, 0, sizeof(res));
	raw_result(c->raw, (raw_zdr_fn *)zdr_READ3res, &res);
	c->status = (int)res.status;
	if (res.status != NFS3_OK)
		return;
	c->count = res.READ3res_u.resok.count;
	assert_int_equal(c->count, res.READ3res_u.resok.data.data_len);
	if (c->count < r->bytes)
		c->shortened++;
	else
		check_bytes(c, c->at, r->acked,
			    (uint8_t *)res.READ3res_u.resok.data.data_val,
			    "READ");
}

bool
client_take(struct client *c)
{
	enum client_call call = c->call;

	assert_int_not_equal(call, CLIENT_IDLE);
	if (!raw_receive(c->raw)) {
		c->ends++;
		return false;
	}
	assert_int_equal(c->raw->reply_xid, c->raw->xid - 1);
	assert_int_equal(c->raw->reply_stat, 0);
	assert_int_equal(c->raw->accept_stat, 0);
	c->call = CLIENT_IDLE;
	c->done++;
	if (call == CLIENT_WRITE)
		take_write(c);
	else if (call == CLIENT_COMMIT)
		take_commit(c);
	else
		take_read(c);
	if (c->status != NFS3_OK) {
		c->refused++;
		c->bad = c->status;
	}
	raw_forget(c->raw);
	return true;
}

void
client_reconnect(struct client *c)
{
	raw_reconnect(c->raw, c->h->port);
	if (c->call != CLIENT_IDLE)
		(void)raw_try_send(c->raw);
}

int
client_finish(struct client *c)
{
	while (!client_take(c))
		client_reconnect(c);
	return c->status;
}

/* What is left to do --------------------------------------------------------
 */

int
client_doubtful(const struct client *c)
{
	unsigned i;

	for (i = 0; i < c->records; i++)
		if (c->record[i].doubtful)
			return (int)i;
	return -1;
}

bool
client_keeps(const struct client *c)
{
	unsigned i;

	for (i = 0; i < c->records; i++)
		if (c->record[i].kept != 0)
			return true;
	return false;
}

void
client_settle(struct client *c)
{
	int i;

	for (;;) {
		i = client_doubtful(c);
		if (i >= 0)
			client_write_again(c, (unsigned)i, UNSTABLE);
		else if (client_keeps(c))
			client_commit(c);
		else
			return;
		(void)client_finish(c);
	}
}

void
client_check_file(const struct client *c, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	unsigned i;

	assert_true(fd >= 0);
	for (i = 0; i < c->records; i++) {
		const struct client_record *r = &c->record[i];
		uint8_t *got = calloc(1, r->bytes); /* past the end: zeros */

		assert_non_null(got);
		assert_true(pread(fd, got, r->bytes, (off_t)r->offset) >= 0);
		check_bytes(c, i, r->stable, got, path);
		free(got);
	}
	close(fd);
}
