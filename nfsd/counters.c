/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of counters, and how each is read. It counts nothing itself: those
 * who count own the memory (struct stats, struct volume_counters, ...), which
 * is read here relaxed, from any thread, while they count on.
 *
 * A new counter is a field where it is counted and a row here.
 */
#include "nfsd/counters.h"

#include "io/fault.h"
#include "nfsd/devices.h"
#include "nfsd/locks.h"
#include "nfsd/server.h"
#include "nfsd/udp.h"

#include <assert.h>

static const char *
reason_name(unsigned i)
{
	return split_reason_name((enum split_reason)i);
}

static const char *
nfs_name(unsigned i)
{
	return nfsd_row(PROGRAM_NFS3, i)->name;
}

static const char *
mount_name(unsigned i)
{
	return nfsd_row(PROGRAM_MOUNT2, i)->name;
}

static const char *
acl_name(unsigned i)
{
	return nfsd_row(PROGRAM_ACL3, i)->name;
}

static const char *
rquota_name(unsigned i)
{
	return nfsd_row(PROGRAM_RQUOTA1, i)->name;
}

static const char *
nlm_name(unsigned i)
{
	return nlm4_served(i)->name;
}

static int
read_connections(struct server *s, uint64_t *ret)
{
	unsigned i;

	*ret = 0;
	for (i = 0; i < s->shards; i++)
		*ret += s->shard[i]->conn_count;
	return 0;
}

static int
read_open_files(struct server *s, uint64_t *ret)
{
	*ret = file_count(s->engine);
	return 0;
}

static int
read_reactors(struct server *s, uint64_t *ret)
{
	*ret = s->shards;
	return 0;
}

static int
read_buffer_bytes(struct server *s, uint64_t *ret)
{
	*ret = engine_facts(s->engine)->buffer_bytes;
	return 0;
}

static int
read_uptime(struct server *s, uint64_t *ret)
{
	*ret = monotonic_ns() - s->started_ns;
	return 0;
}

#ifdef NVNFSD_FAULT
static int
read_fault_hits(struct server *s, uint64_t *ret)
{
	*ret = fault_hits();
	return 0;
}
#endif

#define SHARD(f) .scope = IN_SHARD, .offset = offsetof(struct stats, f)
#define VOLUME(f)                                                              \
	.scope = IN_VOLUME, .offset = offsetof(struct volume_counters, f)
#define REACTOR(f)                                                             \
	.scope = IN_REACTOR, .offset = offsetof(struct reactor_counters, f)
#define DRC(f)   .scope = IN_DRC, .offset = offsetof(struct drc_counters, f)
#define UDP(f)   .scope = IN_UDP, .offset = offsetof(struct udp_counters, f)
#define LOCKS(f) .scope = IN_LOCKS, .offset = offsetof(struct locks_counters, f)
#define CALL(f)  .scope = BY_CALL, .read = (f)

/* NOLINTBEGIN(cppcoreguidelines-interfaces-global-init) */
static const struct counter rows[] = {
	/* data, by export */
	{ "writes", NULL, "WRITEs by how they were split, and why", COUNTER,
	  VOLUME(writes), SPLIT_REASONS, "reason", reason_name },
	{ "direct_bytes", NULL, "Bytes of WRITEs that went direct", COUNTER,
	  VOLUME(direct_bytes) },
	{ "edge_bytes", NULL, "Bytes of the edges of split WRITEs", COUNTER,
	  VOLUME(edge_bytes) },
	{ "buffered_bytes", NULL,
	  "Bytes of WRITEs that went through the page cache whole", COUNTER,
	  VOLUME(buffered_bytes) },
	{ "read_direct_bytes", NULL, "Bytes of READs that came direct", COUNTER,
	  VOLUME(read_direct_bytes) },
	{ "read_buffered_bytes", NULL,
	  "Bytes of READs that came through the page cache", COUNTER,
	  VOLUME(read_buffered_bytes) },
	{ "fallbacks", NULL,
	  "Direct transfers that the kernel refused, done buffered", COUNTER,
	  VOLUME(fallbacks) },
	{ "writes_tearable", NULL,
	  "WRITEs that torn-free could not keep from tearing", COUNTER,
	  VOLUME(writes_tearable) },
	{ "writes_through", NULL, "WRITEs that were stable without a sync",
	  COUNTER, VOLUME(writes_through) },
	{ "syncs", NULL, "fsync calls for WRITEs and COMMITs", COUNTER,
	  VOLUME(syncs) },
	{ "sync_requests", NULL, "WRITEs and COMMITs that they served", COUNTER,
	  VOLUME(sync_requests) },
	{ "meta_syncs", NULL, "Syncs for changes of metadata", COUNTER,
	  VOLUME(meta_syncs) },
	{ "meta_sync_requests", NULL, "Changes of metadata that they served",
	  COUNTER, VOLUME(meta_sync_requests) },
	{ "flushes", NULL, "Write-backs by range, before pages are dropped",
	  COUNTER, VOLUME(flushes) },
	{ "pages_dropped", NULL,
	  "Pages of edges dropped from the page cache when they were durable",
	  COUNTER, VOLUME(pages_dropped) },
	{ "edge_spans", NULL, "Runs of edge pages that wait to be dropped",
	  GAUGE, VOLUME(edge_spans) },
	{ "edge_pages", NULL,
	  "Edge pages that wait for a neighbour or a sync, at most", GAUGE,
	  VOLUME(edge_pages) },
	{ "edge_pages_completed", NULL,
	  "Edge pages that both their neighbours have written", COUNTER,
	  VOLUME(edge_pages_completed) },
	{ "edges_joined", NULL, "Blocks whose ends met in memory (edges=join)",
	  COUNTER, VOLUME(edges_joined) },
	{ "edges_unjoined", NULL,
	  "Blocks in memory that went through the page cache after all",
	  COUNTER, VOLUME(edges_unjoined) },
	{ "dirty_waits", NULL, "WRITEs that waited for dirty-max", COUNTER,
	  VOLUME(dirty_waits) },
	{ "dirty_wait_ns", NULL, "Time that they waited", COUNTER,
	  VOLUME(dirty_wait_ns) },
	{ "range_waits", NULL,
	  "READs and WRITEs that waited for an overlapping one", COUNTER,
	  VOLUME(range_waits) },
	{ "range_wait_ns", NULL, "Time that they waited", COUNTER,
	  VOLUME(range_wait_ns) },
	{ "verifier_changes", NULL,
	  "Failed write-backs that made clients write again", COUNTER,
	  VOLUME(verifier_changes) },
	/* the engine */
	{ "punts", NULL,
	  "Reads and writes that would block and went to a worker", COUNTER,
	  REACTOR(punts) },
	{ "polled", NULL, "Transfers for which a device was polled (iopoll)",
	  COUNTER, REACTOR(polled) },
	{ "sqe_waits", NULL,
	  "Times that the submission queue was full and had to be emptied",
	  COUNTER, REACTOR(sqe_waits) },
	{ "op_waits", NULL, "Operations that waited for a place in a ring",
	  COUNTER, REACTOR(op_waits) },
	{ "op_wait_ns", NULL, "Time that they waited", COUNTER,
	  REACTOR(op_wait_ns) },
	{ "small_waits", NULL,
	  "Receives that waited for a buffer of first bytes", COUNTER,
	  REACTOR(small_waits) },
	{ "small_wait_ns", NULL, "Time that they waited", COUNTER,
	  REACTOR(small_wait_ns) },
	{ "buf_waits", NULL, "READs and WRITEs that waited for a buffer",
	  COUNTER, REACTOR(buf_waits) },
	{ "buf_wait_ns", NULL, "Time that they waited", COUNTER,
	  REACTOR(buf_wait_ns) },
	{ "bytes_in_flight", NULL, "Buffers in use, in bytes", GAUGE,
	  REACTOR(buf_bytes) },
	{ "file_ops", NULL, "Reads and writes of files in the rings", GAUGE,
	  REACTOR(file_ops) },
	{ "reactors", NULL, "Event loops", GAUGE, CALL(read_reactors) },
	{ "buffer_bytes", NULL, "Memory for buffers", GAUGE,
	  CALL(read_buffer_bytes) },
	{ "device_tag_waiters", NULL,
	  "Requests that wait for a tag of the device", GAUGE,
	  .scope = BY_LABEL, .label = "device", .list = tags_list },
	{ "device_slots", NULL,
	  "Requests of direct I/O that a device may have in flight", GAUGE,
	  .scope = BY_LABEL, .label = "device", .list = devices_slots },
	{ "device_slots_used", NULL, "Those that it has now", GAUGE,
	  .scope = BY_LABEL, .label = "device", .list = devices_slots_used },
	{ "device_slot_waits", NULL, "Direct I/O that waited for an I/O slot",
	  COUNTER, .scope = BY_LABEL, .label = "device",
	  .list = devices_slot_waits },
	{ "device_slot_wait_ns", NULL, "Time that it waited", COUNTER,
	  .scope = BY_LABEL, .label = "device", .list = devices_slot_wait_ns },
	{ "nvme_critical_warning", NULL, "SMART: critical warning, bits", GAUGE,
	  .scope = BY_LABEL, .label = "device",
	  .list = devices_critical_warning },
	{ "nvme_temperature_celsius", NULL, "SMART: temperature", GAUGE,
	  .scope = BY_LABEL, .label = "device", .list = devices_temperature },
	{ "nvme_spare_percent", NULL, "SMART: spare that is left", GAUGE,
	  .scope = BY_LABEL, .label = "device", .list = devices_spare },
	{ "nvme_used_percent", NULL, "SMART: endurance that is used up", GAUGE,
	  .scope = BY_LABEL, .label = "device", .list = devices_used },
	{ "nvme_media_errors", NULL, "SMART: media errors", COUNTER,
	  .scope = BY_LABEL, .label = "device", .list = devices_media_errors },
	{ "nvme_unsafe_shutdowns", NULL, "SMART: unsafe shutdowns", COUNTER,
	  .scope = BY_LABEL, .label = "device",
	  .list = devices_unsafe_shutdowns },
	{ "nvme_read_bytes", NULL, "SMART: data units read, in bytes", COUNTER,
	  .scope = BY_LABEL, .label = "device", .list = devices_read_bytes },
	{ "nvme_written_bytes", NULL, "SMART: data units written, in bytes",
	  COUNTER, .scope = BY_LABEL, .label = "device",
	  .list = devices_written_bytes },
	/* calls and connections */
	{ "drc_hits", NULL, "Retries answered from the reply cache", COUNTER,
	  DRC(hits) },
	{ "drc_attached", NULL, "Retries that waited for their first", COUNTER,
	  DRC(attached) },
	{ "drc_misses", NULL, "Calls that the reply cache did not know",
	  COUNTER, DRC(misses) },
	{ "drc_entries", NULL, "Replies kept", GAUGE, DRC(entries) },
	{ "drc_bytes", NULL, "Bytes of replies kept", GAUGE, DRC(bytes) },
	{ "connections", NULL, "Connections", GAUGE, CALL(read_connections) },
	{ "connections_total", "connections_accepted", "Connections accepted",
	  COUNTER, SHARD(connections_total) },
	{ "calls_in_service", NULL, "Calls between first byte and reply", GAUGE,
	  SHARD(calls_in_service) },
	{ "rejected", "calls_rejected",
	  "Calls denied, not available, or garbage", COUNTER, SHARD(rejected) },
	{ "records_refused", NULL, "Broken records, which ended a connection",
	  COUNTER, SHARD(records_refused) },
	{ "stalls_call", NULL,
	  "Times that a connection had its limit of calls in service", COUNTER,
	  SHARD(stalls_call) },
	{ "stalls_buffer", NULL,
	  "Times that a connection had its share of the buffers", COUNTER,
	  SHARD(stalls_buffer) },
	{ "stalls_slot", NULL, "Times that a connection found no call slot",
	  COUNTER, SHARD(stalls_slot) },
	{ "stall_slot_ns", NULL, "Time until there was one", COUNTER,
	  SHARD(stall_slot_ns) },
	{ "timeouts", NULL, "Connections ended for want of progress", COUNTER,
	  SHARD(timeouts) },
	{ "udp_received", NULL, "Datagrams received", COUNTER, UDP(received) },
	{ "udp_sent", NULL, "Replies sent by UDP", COUNTER, UDP(sent) },
	{ "udp_too_long", NULL, "Datagrams longer than any call by UDP",
	  COUNTER, UDP(long_ones) },
	{ "udp_garbage", NULL, "Datagrams that were no call", COUNTER,
	  UDP(garbage) },
	{ "udp_dropped", NULL, "Calls by UDP dropped for want of room", COUNTER,
	  UDP(dropped) },
	{ "udp_replies_dropped", NULL, "Replies that could not be sent by UDP",
	  COUNTER, UDP(replies_dropped) },
	{ "udp_peers", NULL, "Peers that call by UDP", GAUGE, UDP(peers) },
	{ "udp_peers_evicted", NULL, "Peers that made room for new ones",
	  COUNTER, UDP(peers_evicted) },
	{ "locks", NULL, "Ranges of files that clients have locked", GAUGE,
	  LOCKS(held) },
	{ "lock_waiters", NULL, "LOCKs that wait", GAUGE, LOCKS(waiting) },
	{ "lock_shares", NULL, "SHAREs of files", GAUGE, LOCKS(shares) },
	{ "lock_hosts", NULL, "Clients that lock, or did a while ago", GAUGE,
	  LOCKS(hosts) },
	{ "lock_files", NULL, "Files in which something is locked", GAUGE,
	  LOCKS(files) },
	{ "locks_granted", NULL, "LOCKs granted at once", COUNTER,
	  LOCKS(granted) },
	{ "locks_reclaimed", NULL, "Those claimed again after a restart",
	  COUNTER, LOCKS(reclaimed) },
	{ "locks_denied", NULL, "LOCKs refused, for whatever reason", COUNTER,
	  LOCKS(denied) },
	{ "locks_blocked", NULL, "LOCKs told to wait", COUNTER,
	  LOCKS(blocked) },
	{ "lock_deadlocks", NULL, "LOCKs that would have waited for themselves",
	  COUNTER, LOCKS(deadlocks) },
	{ "lock_local_conflicts", NULL,
	  "LOCKs that a process of this machine was in the way of", COUNTER,
	  LOCKS(local_conflicts) },
	{ "lock_callbacks", NULL, "Waiting LOCKs granted by a callback",
	  COUNTER, LOCKS(callbacks) },
	{ "lock_callbacks_failed", NULL,
	  "Those given back, for the client was not there or refused", COUNTER,
	  LOCKS(callbacks_failed) },
	{ "open_files", NULL, "Files kept open", GAUGE, CALL(read_open_files) },
	{ "uptime_ns", NULL, "Time since the start", GAUGE, CALL(read_uptime) },
	{ "nfs3", "nfs_calls", "NFS calls begun, by procedure", COUNTER,
	  SHARD(calls[0]), NFSPROC3_COUNT, "procedure", nfs_name },
	{ "mount", "mount_calls", "MOUNT calls begun, by procedure", COUNTER,
	  SHARD(calls[LATENCY_MOUNT]), MOUNTPROC2_COUNT, "procedure",
	  mount_name },
	{ "nfsacl", "nfsacl_calls", "NFSACL calls begun, by procedure", COUNTER,
	  SHARD(calls[LATENCY_ACL]), ACLPROC3_COUNT, "procedure", acl_name },
	{ "rquota", "rquota_calls", "RQUOTA calls begun, by procedure", COUNTER,
	  SHARD(calls[LATENCY_RQUOTA]), RQUOTAPROC_COUNT, "procedure",
	  rquota_name },
	{ "nlm", "nlm_calls", "NLM calls begun, by procedure", COUNTER,
	  SHARD(calls[LATENCY_NLM]), NLM4_SERVED, "procedure", nlm_name },
#ifdef NVNFSD_FAULT
	{ "fault_hits", NULL, "Faults injected", COUNTER,
	  CALL(read_fault_hits) },
#endif
};
/* NOLINTEND(cppcoreguidelines-interfaces-global-init) */

const struct counter *
counter_row(unsigned i)
{
	return i < sizeof(rows) / sizeof(*rows) ? &rows[i] : NULL;
}

static uint64_t
value_at(const struct counter *c, const void *base, unsigned i)
{
	const _Atomic uint64_t *v =
		(const _Atomic uint64_t *)((const char *)base + c->offset);

	return atomic_load_explicit(&v[i], memory_order_relaxed);
}

uint64_t
counter_of_volume(const struct counter *c, const struct volume_counters *n,
		  unsigned i)
{
	assert(c->scope == IN_VOLUME);
	return value_at(c, n, i);
}

static uint64_t
sum_shards(const struct counter *c, const struct server *s, unsigned i)
{
	uint64_t sum = 0;
	unsigned n;

	for (n = 0; n < s->shards; n++)
		sum += value_at(
			c,
			c->scope == IN_SHARD
				? (const void *)&s->shard[n]->stats
				: reactor_counters(s->shard[n]->reactor),
			i);
	return sum;
}

static uint64_t
read_locks(const struct counter *c, struct server *s)
{
	struct locks_counters n;

	if (s->locks == NULL)
		return 0;
	locks_count(s->locks, &n);
	return *(const uint64_t *)((const char *)&n + c->offset);
}

int
counter_read(const struct counter *c, struct server *s, unsigned i,
	     uint64_t *ret)
{
	struct drc_counters drc;

	switch (c->scope) {
	case IN_SHARD:
	case IN_REACTOR:
		*ret = sum_shards(c, s, i);
		return 0;
	case IN_DRC:
		drc_stats(s->drc, &drc);
		*ret = *(const uint64_t *)((const char *)&drc + c->offset);
		return 0;
	case IN_LOCKS:
		*ret = read_locks(c, s);
		return 0;
	case IN_UDP:
		*ret = s->udp == NULL ? 0
				      : value_at(c, udp_counters(s->udp), i);
		return 0;
	case BY_CALL:
		return c->read(s, ret);
	case IN_VOLUME:
	case BY_LABEL:
		break;
	}
	assert(false);
	return -1;
}
