/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes for tracers (sys/sdt.h): a nop each, and a note in the binary that
 * says where it is and where its arguments lie. What they mean to whom traces
 * is nvnfsctl(8)'s: names and arguments are an interface and stay.
 *
 * id is one for a call from its receipt to its reply, and told by all probes in
 * between; file is one for an open file.
 */
#ifndef NVNFSD_IO_TRACE_H
#define NVNFSD_IO_TRACE_H

#ifdef NVNFSD_PROBES
#include <sys/sdt.h>
#define TRACE4(name, a, b, c, d)    DTRACE_PROBE4(nvnfsd, name, a, b, c, d)
#define TRACE5(name, a, b, c, d, e) DTRACE_PROBE5(nvnfsd, name, a, b, c, d, e)
#define TRACE6(name, a, b, c, d, e, f)                                         \
	DTRACE_PROBE6(nvnfsd, name, a, b, c, d, e, f)
#else
#define TRACE4(name, a, b, c, d)       ((void)0)
#define TRACE5(name, a, b, c, d, e)    ((void)0)
#define TRACE6(name, a, b, c, d, e, f) ((void)0)
#endif

/* NOLINTBEGIN(readability-identifier-naming): they stand for functions */

/* A call is whole: id, xid, procedure of NFS (MOUNT's after them, from 22),
 * number of the client, bytes of its record without a WRITE's data. */
#define trace_receive(id, xid, proc, client, bytes)                            \
	TRACE5(receive, id, xid, proc, client, bytes)
/* A WRITE was cut: id, file, offset, bytes, reason (enum split_reason), bytes
 * of its middle. */
#define trace_split(id, file, offset, bytes, reason, middle)                   \
	TRACE6(split, id, file, offset, bytes, reason, middle)
/* A piece of a READ or WRITE goes to the device or the page cache: id, offset,
 * bytes, whether direct. */
#define trace_submit(id, offset, bytes, direct)                                \
	TRACE4(submit, id, offset, bytes, direct)
/* It came back: id, offset, bytes or -errno, whether direct. */
#define trace_complete(id, offset, res, direct)                                \
	TRACE4(complete, id, offset, res, direct)
/* A file was synced: file, the requests that it served, 0 or -errno, ns. */
#define trace_sync(file, requests, error, ns)                                  \
	TRACE4(sync, file, requests, error, ns)
/* A reply is out: id, xid, procedure, nfsstat3, ns since its first byte. */
#define trace_reply(id, xid, proc, status, ns)                                 \
	TRACE5(reply, id, xid, proc, status, ns)
/* Pages of edges were dropped: file, first byte, end, pages. */
#define trace_edge_drop(file, start, end, pages)                               \
	TRACE4(edge_drop, file, start, end, pages)

/* NOLINTEND(readability-identifier-naming) */

#endif
