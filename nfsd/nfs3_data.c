/* SPDX-License-Identifier: Apache-2.0 */
/*
 * READ, WRITE and COMMIT (RFC 1813, 3.3.6, 3.3.7, 3.3.21): asynchronous, on the
 * call's reactor.
 *
 *   data_begin   handle -> export, access, identity, open file; what of this
 *                may block is done by data_prepare on a worker, then data_go
 *   data_go      attributes and the caller's rights on this inode, every time:
 *                the descriptor was opened by the server
 *   *_start      the engine's io_write, io_read, io_commit
 *   *_done       attributes again, wcc_data, reply
 *
 * It knows no sockets and no pieces of a WRITE.
 */
#include "nfsd/server.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

static const struct nfs_fh3 *
data_fh(const struct call *c)
{
	switch (c->rpc.proc) {
	case NFSPROC3_READ:
		return &c->rq.args.read.fh;
	case NFSPROC3_WRITE:
		return &c->rq.args.write.fh;
	default:
		return &c->rq.args.commit.fh;
	}
}

static bool
data_writes(const struct call *c)
{
	return c->rpc.proc != NFSPROC3_READ;
}

/* Where this procedure's result has its attributes after. */
static struct post_op_attr *
data_after(struct call *c)
{
	switch (c->rpc.proc) {
	case NFSPROC3_READ:
		return &c->rq.res.read.attr;
	case NFSPROC3_WRITE:
		return &c->rq.res.write.wcc.after;
	default:
		return &c->rq.res.commit.wcc.after;
	}
}

static void
data_before(struct call *c)
{
	if (c->rpc.proc == NFSPROC3_WRITE)
		c->rq.res.write.wcc.before = c->before;
	else if (c->rpc.proc == NFSPROC3_COMMIT)
		c->rq.res.commit.wcc.before = c->before;
}

/* What the reply says: attributes as they are now, and pre_op where it is true.
 * Any thread. */
static void
data_finish(struct call *c, int error)
{
	struct post_op_attr *after = data_after(c);
	struct statx st;

	call_stamp(c, CALL_DONE);
	if (c->bracketed && !file_end(c->file, &c->bracket))
		c->before.follows = false;
	c->bracketed = false;
	data_before(c);
	if (c->file != NULL && nfs3_statx(file_fd(c->file), &st) == 0) {
		nfs3_attr_from_statx(&after->attr, &st,
				     c->object.access.export->fsid);
		after->follows = true;
	}
	c->status = nfs3_status(error);
}

static void
data_reply(struct call *c, int error)
{
	data_finish(c, error);
	call_reply(c);
}

/* WRITE ------------------------------------------------------------------- */

static void
put_verifier(uint8_t verf[NFS3_WRITEVERFSIZE], uint64_t verifier)
{
	memcpy(verf, &verifier, NFS3_WRITEVERFSIZE);
}

static void
write_done(struct io_write *w)
{
	struct call *c = container_of(w, struct call, io.write);
	struct nfs3_write_res *res = &c->rq.res.write;

	c->at_ns[CALL_RANGED] = w->ranged_ns;
	c->at_ns[CALL_LANDED] = w->landed_ns;
	res->count = w->written;
	res->committed = (enum stable_how)w->committed;
	put_verifier(res->verf, w->verifier);
	data_finish(c, w->error);
	call_reply_anywhere(c);
}

/*
 * Beyond what the file system lets this file grow to? The kernel would write
 * the part that fits. lseek(2) goes exactly as far; below 2 GiB every file
 * system goes, and the position of our descriptor means nothing.
 */
static bool
write_too_far(const struct call *c)
{
	const struct nfs3_write_args *a = &c->rq.args.write;
	uint64_t end = a->offset + a->count;

	if (a->offset > INT64_MAX || end > INT64_MAX)
		return true;
	return end > INT32_MAX &&
	       lseek(file_fd(c->file), (off_t)end, SEEK_SET) < 0;
}

static void
write_start(struct call *c)
{
	const struct nfs3_write_args *a = &c->rq.args.write;
	struct io_write *w = &c->io.write;
	struct shard *s = c->shard;

	if (a->count != a->data_bytes) {
		data_reply(c, -EINVAL);
		return;
	}
	if (a->count == 0) { /* changes nothing, so all of it is stable */
		c->rq.res.write.committed = a->stable;
		put_verifier(c->rq.res.write.verf,
			     volume_verifier(file_volume(c->file)));
		data_reply(c, 0);
		return;
	}
	if (write_too_far(c)) {
		data_reply(c, -EFBIG);
		return;
	}
	w->reactor = c->shard->reactor;
	w->file = c->file;
	w->data = c->payload;
	w->offset = a->offset;
	w->bytes = a->count;
	w->stable = (enum io_stable)a->stable;
	w->done = write_done;
	w->anywhere = c->alone = c->conn->calls == 1;
	w->may_block = c->alone && shard_serves_one(s);
	s->blocked = w->may_block;
	io_write_start(w);
	s->blocked = false;
}

/* READ ----------------------------------------------------------------------
 */

static void
read_done(struct io_read *r)
{
	struct call *c = container_of(r, struct call, io.read);

	c->at_ns[CALL_RANGED] = r->ranged_ns;
	call_stamp(c, CALL_LANDED);
	c->rq.res.read.count = r->got;
	c->rq.res.read.eof = r->eof;
	data_reply(c, r->error);
}

static uint32_t
read_bytes(const struct call *c)
{
	uint32_t n = c->rq.args.read.count;
	uint32_t max =
		c->conn->datagrams ? DATAGRAM_DATA_MAX : IO_TRANSFER_BYTES_MAX;

	return n < max ? n : max;
}

static void
read_start(struct call *c, uint64_t size)
{
	const struct nfs3_read_args *a = &c->rq.args.read;
	struct io_read *r = &c->io.read;

	if (a->count == 0) {
		c->rq.res.read.eof = a->offset >= size;
		data_reply(c, 0);
		return;
	}
	r->reactor = c->shard->reactor;
	r->file = c->file;
	r->offset = a->offset;
	r->bytes = read_bytes(c);
	r->done = read_done;
	io_read_start(r);
}

/* COMMIT ---------------------------------------------------------------------
 */

static void
commit_done(struct io_commit *m)
{
	struct call *c = container_of(m, struct call, io.commit);

	put_verifier(c->rq.res.commit.verf, m->verifier);
	data_reply(c, m->error);
}

static void
commit_start(struct call *c)
{
	struct io_commit *m = &c->io.commit;

	m->reactor = c->shard->reactor;
	m->file = c->file;
	m->done = commit_done;
	call_stamp(c, CALL_LANDED); /* by others, if at all */
	io_commit_start(m);
}

/* The way there ---------------------------------------------------------------
 */

/* May the caller? On this inode as it is now. */
static int
data_check(struct call *c, const struct statx *st)
{
	if (st->stx_nlink == 0) {
		/* Its last name is gone; our descriptor kept it alive. */
		file_forget(c->shard->server->engine, file_volume(c->file),
			    st->stx_ino);
		return -ESTALE;
	}
	if (data_writes(c) && volume_read_only(c->object.access.volume))
		return -EROFS;
	return perm_cache_data(c->shard->perms, &c->object.id, c->file, st,
			       data_writes(c));
}

/* The file is open: go on, on the reactor. */
static void
data_go(struct call *c)
{
	struct statx st;
	int rc;

	call_stamp(c, CALL_TAKEN);
	if (data_writes(c)) {
		file_begin(c->file, &c->bracket);
		c->bracketed = true;
	}
	rc = nfs3_statx(file_fd(c->file), &st);
	if (rc == 0) {
		nfs3_pre_op_from_statx(&c->before, &st);
		rc = data_check(c, &st);
	}
	if (rc < 0) {
		data_reply(c, rc);
		return;
	}
	if (c->rpc.proc == NFSPROC3_READ)
		read_start(c, st.stx_size);
	else if (c->rpc.proc == NFSPROC3_WRITE)
		write_start(c);
	else
		commit_start(c);
}

static struct call *
call_of_work(struct work *w)
{
	return container_of(w, struct call, work);
}

/* Not a regular file, or not to be opened: its attributes all the same. */
static void
data_attr(struct call *c)
{
	struct post_op_attr *after = data_after(c);

	object_fini(&c->object);
	if (object_open(&c->object, &c->rq, data_fh(c)) == 0)
		object_attr(&c->object, after);
}

/* On a worker: what may block on the way to an open file. */
static void
prepare_run(struct work *w)
{
	struct call *c = call_of_work(w);
	struct file_key key;

	c->resolved = true;
	c->error = object_resolve(&c->object, &c->rq, data_fh(c), true);
	if (c->error < 0)
		return;
	object_file_key(&c->object, &key);
	c->error = file_open(c->shard->server->engine, &key, &c->file);
	if (c->error < 0 && c->error != -ESTALE)
		data_attr(c);
}

static void
prepare_done(struct work *w)
{
	struct call *c = call_of_work(w);

	if (c->error < 0)
		data_reply(c, c->error);
	else
		data_go(c);
}

/* A worker shall go on, of the pool that may wait for a name server where
 * names are wanted. */
static void
data_prepare(struct call *c, enum work_pool pool)
{
	object_fini(&c->object);
	c->work.run = prepare_run;
	c->work.done = prepare_done;
	c->work.reactor = c->shard->reactor;
	work_submit(c->shard->server->engine, pool, &c->work);
}

void
data_begin(struct call *c)
{
	struct file_key key;
	int rc;

	memset(&c->rq.res, 0, sizeof(c->rq.res.write));
	memset(&c->rq.res.read, 0, sizeof(c->rq.res.read));
	if (c->rpc.proc == NFSPROC3_READ)
		call_hold(c, read_bytes(c)); /* before a worker opens it */
	c->resolved = true;
	rc = object_resolve(&c->object, &c->rq, data_fh(c), false);
	if (rc == 0) {
		object_file_key(&c->object, &key);
		c->file = file_find(c->shard->server->engine, &key);
		if (c->file != NULL) {
			data_go(c);
			return;
		}
		data_prepare(c, WORK_META);
	} else if (rc == -EAGAIN) {
		data_prepare(c, WORK_NAMES);
	} else {
		data_reply(c, rc);
	}
}

void
data_fini(struct call *c)
{
	assert(!c->bracketed);
	if (c->rpc.proc == NFSPROC3_READ && c->io.read.buf.base != NULL)
		buf_give(reactor_pool(c->shard->reactor), &c->io.read.buf);
	if (c->file != NULL)
		file_put(c->file);
	c->file = NULL;
	if (c->resolved)
		object_fini(&c->object);
}
