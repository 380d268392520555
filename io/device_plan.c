/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the facts of devices and file system mean for I/O: where a WRITE is cut,
 * how its middle goes out, how much goes out at once, what FSINFO advises, how
 * data becomes stable, and what can be written without tearing. Arithmetic
 * only, so that each fact can be tried; it asks nobody.
 *
 * Where the kernel tells the same by sysfs as the controller does by its
 * identify pages, sysfs comes first: it holds for the whole stack of devices,
 * and an operator can change it.
 */
#include "io/device.h"

#include "io/volume.h"

#include <linux/magic.h>
#include <string.h>

#define BOUNDARY_MIN      (64u << 10) /* cutting finer costs more than it gains */
#define TRANSFER_MIN      (256u << 10)
#define GRAIN_MAX         (64u << 10) /* a larger cut would make edges of all */
#define WRITE_PREF        (1u << 20)
#define REQUEST_BYTES     (1u << 20) /* where a device does not say */
/* Of a device's requests direct I/O leaves one in four to the rest: edges,
 * logs, flushes and whatever else uses it would wait behind the flood. */
#define SLOTS_NUMERATOR   3u
#define SLOTS_DENOMINATOR 4u

static const struct device_limits none;

static const struct device_limits *
limits(const struct plan_ask *a)
{
	const struct device_node *top = device_chain_top(a->chain);

	return top == NULL ? &none : &top->limits;
}

/* direct I/O ------------------------------------------------------------------
 */

/* XFS and ext4 do it wherever the device has whole blocks, which kernels before
 * Linux 6.1 do not tell; btrfs, which never tells, by its own blocks. */
void
device_plan_assume(struct dio_facts *ret, uint64_t fs_type,
		   uint32_t block_bytes, const struct device_chain *c)
{
	const struct device_node *top = device_chain_top(c);

	*ret = (struct dio_facts){ 0 };
	if (fs_type == BTRFS_SUPER_MAGIC)
		ret->mem = ret->offset = ret->read = block_bytes;
	else if (top != NULL &&
		 (fs_type == XFS_MAGIC || fs_type == EXT4_SUPER_MAGIC))
		ret->mem = ret->offset = ret->read = top->limits.logical_bytes;
}

/* Buffers are page-aligned, and cuts want powers of two. */
bool
device_plan_suits(const struct dio_facts *d, uint64_t page)
{
	return power_of_two(d->offset) && power_of_two(d->read) &&
	       power_of_two(d->mem) && d->mem <= page;
}

/* the cut --------------------------------------------------------------------
 */

/* What the device reads back to write less of: its physical block, and of NVMe
 * what it prefers (NPWG), from where it prefers it (NPWA). */
static uint32_t
grain(const struct plan_ask *a)
{
	uint32_t g = limits(a)->physical_bytes;
	const struct device_node *first = &a->chain->node[0];

	if (a->nvme != NULL && a->nvme->npwg_bytes > g)
		g = a->nvme->npwg_bytes;
	if (a->nvme != NULL && a->nvme->npwa_bytes > g)
		g = a->nvme->npwa_bytes;
	if (!power_of_two(g) || g > GRAIN_MAX)
		return 0;
	/* A cut of ours would not be one of the device's. */
	if (a->chain->count > 0 && (!first->aligned || first->start % g != 0))
		return 0;
	return g;
}

static void
plan_cut(struct volume_facts *f, const struct plan_ask *a)
{
	uint32_t virt = limits(a)->virt_boundary_bytes;

	f->cut_floor = a->page_bytes;
	if (a->block_bytes > f->cut_floor)
		f->cut_floor = a->block_bytes;
	if (grain(a) > f->cut_floor)
		f->cut_floor = grain(a);
	f->dio_mem_align = a->dio.mem;
	f->dio_offset_align = a->dio.offset;
	/* Our memory is contiguous by the page only, and the kernel would make
	 * a request of each page. */
	if (virt > a->page_bytes && f->dio_offset_align != 0) {
		f->dio_offset_align = 0;
		f->direct_why =
			"the device's virtual boundary is larger than a "
			"page: no direct I/O";
	}
	f->cut_bytes = device_plan_cut(f, f->dio_offset_align);
}

uint32_t
device_plan_cut(const struct volume_facts *f, uint32_t offset_align)
{
	if (offset_align == 0 || f->direct_why != NULL)
		return 0;
	return offset_align > f->cut_floor ? offset_align : f->cut_floor;
}

/* pieces ---------------------------------------------------------------------
 */

static uint32_t
least(uint32_t a, uint32_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

static uint32_t
first_from(uint32_t min, uint32_t a, uint32_t b, uint32_t c)
{
	return a >= min ? a : b >= min ? b : c >= min ? c : 0;
}

/* Where the device would rather not have an I/O cross (chunk_sectors, which the
 * kernel sets to NOIOB), else in what runs it likes them. */
static uint32_t
boundary(const struct plan_ask *a)
{
	const struct device_limits *l = limits(a);
	uint32_t noiob = a->nvme == NULL ? 0 : a->nvme->noiob_bytes;
	uint32_t nows = a->nvme == NULL ? 0 : a->nvme->nows_bytes;
	uint32_t b = first_from(BOUNDARY_MIN, l->boundary_bytes, noiob, 0);

	if (b == 0)
		b = first_from(BOUNDARY_MIN, l->optimal_bytes, nows, 0);
	return b;
}

static void
plan_pieces(struct volume_facts *f, const struct plan_ask *a)
{
	uint32_t mdts = a->nvme == NULL ? 0 : a->nvme->mdts_bytes;
	uint32_t most = least(limits(a)->transfer_bytes_max, mdts);
	uint32_t b = boundary(a);

	if (most == 0 || most > IO_TRANSFER_BYTES_MAX)
		most = IO_TRANSFER_BYTES_MAX;
	/* The kernel cuts smaller transfers itself, and cheaper than we. */
	if (most < TRANSFER_MIN)
		most = TRANSFER_MIN;
	if (f->cut_bytes != 0) {
		most = (uint32_t)round_down(most, f->cut_bytes);
		if (most == 0)
			most = f->cut_bytes;
		if (b % f->cut_bytes == 0)
			f->piece_boundary = b;
	}
	f->piece_bytes_max = most;
}

/* What clients are told: whole runs of the device, about a megabyte. */
static void
plan_fsinfo(struct volume_facts *f, const struct plan_ask *a)
{
	uint32_t run = boundary(a);

	f->write_mult_bytes = f->cut_bytes != 0 ? f->cut_bytes : a->block_bytes;
	f->write_pref_bytes = WRITE_PREF;
	if (f->write_mult_bytes != 0 && run % f->write_mult_bytes != 0)
		return;
	if (run > WRITE_PREF && run <= IO_TRANSFER_BYTES_MAX)
		f->write_pref_bytes = run;
	else if (run != 0 && run <= WRITE_PREF)
		f->write_pref_bytes = WRITE_PREF - WRITE_PREF % run;
}

/* how much at once ------------------------------------------------------------
 */

uint32_t
device_slots_limit(const struct device_limits *l)
{
	uint64_t requests = device_requests(l);
	uint64_t n = requests * SLOTS_NUMERATOR / SLOTS_DENOMINATOR;

	return requests != 0 && n == 0 ? 1 : (uint32_t)n;
}

uint32_t
device_request_bytes(const struct device_limits *l)
{
	return l->request_bytes_max != 0 ? l->request_bytes_max : REQUEST_BYTES;
}

static void
plan_slots(struct volume_facts *f, const struct plan_ask *a)
{
	const struct device_node *n = device_chain_narrow(a->chain);
	const struct device_limits *l = n == NULL ? &none : &n->limits;

	f->slots = device_slots_limit(l);
	f->request_bytes = device_request_bytes(l);
}

/* stable, and whole -----------------------------------------------------------
 */

/*
 * RWF_DSYNC writes through to the medium (FUA) what needs no other change, and
 * where nothing is cached on the way a plain write does. Else the kernel
 * flushes the whole cache after each WRITE, and one flush for many is better.
 */
static void
plan_sync(struct volume_facts *f, const struct plan_ask *a)
{
	const struct device_limits *l = limits(a);

	f->write_cache = a->chain->count == 0 || l->write_cache;
	/* Whatever the kernel flushes there, it is nothing. */
	if (a->nvme != NULL && !a->nvme->volatile_cache)
		f->write_cache = false;
	f->sync_by_fua = f->cut_bytes != 0 && a->chain->count > 0 &&
			 (l->fua || !f->write_cache);
}

/* The kernel lets a stacked device poll where all that it stands on can. */
static void
plan_polls(struct volume_facts *f, const struct plan_ask *a)
{
	f->polls = f->cut_bytes != 0 && limits(a)->polls;
}

static void
plan_atomic(struct volume_facts *f, const struct plan_ask *a)
{
	bool device = limits(a)->atomic_bytes_max != 0 ||
		      (a->nvme != NULL && a->nvme->awupf_bytes != 0);

	if (f->cut_bytes == 0)
		f->atomic_why = "there is no direct I/O";
	else if (!a->dio.atomic_told && device)
		f->atomic_why = "the device has atomic writes, but the kernel "
				"has none for this file system (Linux 6.13 or "
				"later has, for XFS and ext4)";
	else if (!a->dio.atomic_told)
		f->atomic_why = "the kernel has no atomic writes for this file "
				"system (Linux 6.13 or later has, for XFS and "
				"ext4), nor has the device";
	else if (a->dio.atomic_max == 0 && device)
		f->atomic_why = "the device has atomic writes, but this file "
				"system uses none";
	else if (a->dio.atomic_max == 0)
		f->atomic_why = "the device writes nothing atomically, and the "
				"file system does not make up for it";
	else if (a->dio.atomic_max < f->cut_bytes)
		f->atomic_why = "less than a block is written atomically";
	if (f->atomic_why != NULL)
		return;
	f->atomic_bytes_min = a->dio.atomic_min > f->cut_bytes
				      ? a->dio.atomic_min
				      : f->cut_bytes;
	f->atomic_bytes_max = a->dio.atomic_max;
}

static void
plan_name(struct volume_facts *f, const struct plan_ask *a)
{
	const struct device_chain *c = a->chain;

	f->device[0] = '\0';
	for (unsigned i = 0; i < c->count && f->device[0] == '\0'; i++)
		if (device_is_leaf(&c->node[i]))
			memcpy(f->device, c->node[i].name, sizeof(f->device));
}

void
device_plan(struct volume_facts *f, const struct plan_ask *a)
{
	f->logical_bytes = limits(a)->logical_bytes;
	f->physical_bytes = limits(a)->physical_bytes;
	plan_cut(f, a);
	plan_pieces(f, a);
	plan_fsinfo(f, a);
	plan_slots(f, a);
	plan_sync(f, a);
	plan_polls(f, a);
	plan_atomic(f, a);
	plan_name(f, a);
}
