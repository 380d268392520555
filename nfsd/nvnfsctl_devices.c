/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvnfsctl devices as text: for each export the chain of its devices, each
 * indented below what stands on it, then the limits of their queues side by
 * side, what NVMe devices say of themselves, and what follows. No state.
 */
#include "nfsd/nvnfsctl.h"

#include <inttypes.h>
#include <string.h>

#define DEPTH_MAX 16
#define KIB       1024u
#define MIB       (1u << 20)

/* "4 KiB", or "-" for what is not told or has no limit. */
static const char *
size(char out[SHOW_BYTES], struct json_object *o, const char *name)
{
	uint64_t n = get_number(o, name);

	if (n == 0)
		(void)snprintf(out, SHOW_BYTES, "-");
	else if (n % (MIB) == 0)
		(void)snprintf(out, SHOW_BYTES, "%" PRIu64 " MiB", n / (MIB));
	else if (n % KIB == 0)
		(void)snprintf(out, SHOW_BYTES, "%" PRIu64 " KiB", n / KIB);
	else
		(void)snprintf(out, SHOW_BYTES, "%" PRIu64 " B", n);
	return out;
}

static struct json_object *
find(struct json_object *chain, const char *name)
{
	size_t n = json_object_array_length(chain), i;
	struct json_object *o;

	for (i = 0; i < n; i++) {
		o = json_object_array_get_idx(chain, i);
		if (strcmp(get_text(o, "name"), name) == 0)
			return o;
	}
	return NULL;
}

/* How many stand above it. */
static int
depth(struct json_object *chain, struct json_object *node)
{
	int d = 0;

	while (d < DEPTH_MAX && get_part(node, "under") != NULL) {
		node = find(chain, get_text(node, "under"));
		d++;
	}
	return d;
}

static void
show_node(struct json_object *chain, struct json_object *o)
{
	bool detail = get_part(o, "detail") != NULL;

	(void)printf("  %*s%s: %s%s%s%s\n", 2 * depth(chain, o), "",
		     get_text(o, "name"), get_text(o, "kind"),
		     detail ? " " : "", detail ? get_text(o, "detail") : "",
		     get_flag(o, "aligned") ? "" : ", not aligned to its disk");
}

static void
show_limits(struct json_object *o)
{
	static const char *const columns[] = {
		"logical_bytes",          "physical_bytes",
		"optimal_io_bytes",       "boundary_bytes",
		"transfer_bytes_max",     "request_bytes_max",
		"virtual_boundary_bytes", "atomic_bytes_max",
	};
	char text[SHOW_BYTES];
	unsigned i;

	if (strcmp(get_text(o, "kind"), "partition") == 0)
		return;
	(void)printf("  %-12s", get_text(o, "name"));
	for (i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		(void)printf(" %9s", size(text, o, columns[i]));
	(void)snprintf(text, sizeof(text), "%" PRIu64 " x %" PRIu64,
		       get_number(o, "queues"),
		       get_number(o, "queue_requests"));
	(void)printf(" %10s %5s %4s\n", text,
		     get_flag(o, "write_cache") ? "yes" : "no",
		     get_flag(o, "fua") ? "yes" : "no");
}

/* NVMe -----------------------------------------------------------------------
 */

static void
show_nvme_facts(struct json_object *o)
{
	static const struct {
		const char *title, *name;
	} sizes[] = {
		{ "NPWG", "npwg_bytes" }, { "NPWA", "npwa_bytes" },
		{ "NOWS", "nows_bytes" }, { "NOIOB", "noiob_bytes" },
		{ "AWUN", "awun_bytes" }, { "AWUPF", "awupf_bytes" },
		{ "MDTS", "mdts_bytes" },
	};
	char text[SHOW_BYTES];
	unsigned i;

	(void)printf(
		"%s, firmware %s, namespace %" PRIu64 ", LBA format %" PRIu64
		" of %" PRIu64 "+%" PRIu64 " bytes\n   ",
		get_text(o, "model"), get_text(o, "firmware"),
		get_number(o, "namespace"), get_number(o, "lba_format"),
		get_number(o, "lba_bytes"), get_number(o, "metadata_bytes"));
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		(void)printf(" %s %s,", sizes[i].title,
			     size(text, o, sizes[i].name));
	(void)printf(" VWC %s\n", get_flag(o, "vwc") ? "yes" : "no");
}

static void
show_smart(struct json_object *o)
{
	(void)printf("    SMART: warning 0x%" PRIx64 ", %s C, spare %" PRIu64
		     " %% (threshold %" PRIu64 " %%), used %" PRIu64
		     " %%, media errors %" PRIu64 ", unsafe shutdowns %" PRIu64
		     ",\n    data units read %" PRIu64 ", written %" PRIu64
		     "; %" PRIu64 " s ago\n",
		     get_number(o, "critical_warning"),
		     get_text(o, "temperature_celsius"),
		     get_number(o, "spare_percent"),
		     get_number(o, "spare_threshold_percent"),
		     get_number(o, "used_percent"),
		     get_number(o, "media_errors"),
		     get_number(o, "unsafe_shutdowns"),
		     get_number(o, "data_units_read"),
		     get_number(o, "data_units_written"),
		     get_number(o, "age_seconds"));
}

static void
show_nvme(struct json_object *o)
{
	struct json_object *nvme = get_part(o, "nvme");

	if (strcmp(get_text(o, "kind"), "disk") != 0)
		return;
	(void)printf("  %s: ", get_text(o, "name"));
	if (nvme == NULL) {
		(void)printf("what sysfs says serves: %s\n",
			     get_text(o, "no_nvme_why"));
		return;
	}
	show_nvme_facts(nvme);
	if (get_part(o, "smart") != NULL)
		show_smart(get_part(o, "smart"));
	else
		(void)printf("    SMART: %s\n", get_text(o, "no_smart_why"));
}

/* what follows ---------------------------------------------------------------
 */

static void
show_direct(struct json_object *o)
{
	char a[SHOW_BYTES], b[SHOW_BYTES], c[SHOW_BYTES];

	if (get_number(o, "cut_bytes") == 0) {
		(void)printf("  no direct I/O%s%s\n",
			     get_part(o, "no_direct_why") != NULL ? ": " : "",
			     get_part(o, "no_direct_why") != NULL
				     ? get_text(o, "no_direct_why")
				     : "");
		return;
	}
	(void)printf("  direct I/O: aligned to %s in the file, %s in memory; "
		     "WRITEs cut at %s;\n",
		     size(a, o, "dio_offset_align"),
		     size(b, o, "dio_mem_align"), size(c, o, "cut_bytes"));
	(void)printf("    pieces up to %s", size(a, o, "piece_bytes_max"));
	if (get_number(o, "piece_boundary") != 0)
		(void)printf(", cut at multiples of %s",
			     size(a, o, "piece_boundary"));
	(void)printf("; ");
	if (get_number(o, "slots") == 0)
		(void)printf("any number in flight\n");
	else
		(void)printf("%" PRIu64 " requests of %s in flight\n",
			     get_number(o, "slots"), size(a, o, "slot_bytes"));
}

static void
show_plan(struct json_object *o)
{
	char a[SHOW_BYTES], b[SHOW_BYTES];

	show_direct(o);
	(void)printf("  FSINFO: wtpref %s, wtmult %s\n",
		     size(a, o, "write_preferred_bytes"),
		     size(b, o, "write_multiple_bytes"));
	(void)printf("  DATA_SYNC: %s\n",
		     get_flag(o, "sync_by_fua")
			     ? "RWF_DSYNC where a WRITE is alone, else a "
			       "shared sync"
			     : "a shared sync");
	if (get_number(o, "atomic_bytes_max") != 0)
		(void)printf("  torn-free: from %s to %s\n",
			     size(a, o, "atomic_bytes_min"),
			     size(b, o, "atomic_bytes_max"));
	else
		(void)printf("  torn-free: no: %s\n",
			     get_text(o, "no_atomic_why"));
}

static void
each(struct json_object *chain, void (*show)(struct json_object *node))
{
	size_t n = json_object_array_length(chain), i;

	for (i = 0; i < n; i++)
		show(json_object_array_get_idx(chain, i));
}

static void
show_one(struct json_object *o)
{
	struct json_object *chain = get_part(o, "chain");
	size_t n = chain != NULL ? json_object_array_length(chain) : 0, i;

	(void)printf("%s\n", get_text(o, "export"));
	for (i = 0; i < n; i++)
		show_node(chain, json_object_array_get_idx(chain, i));
	if (n == 0)
		(void)puts("  no block device is known under it");
	else
		(void)printf("  %-12s %9s %9s %9s %9s %9s %9s %9s %9s %10s %5s "
			     "%4s\n",
			     "", "logical", "physical", "best", "boundary",
			     "transfer", "request", "virtual", "atomic",
			     "queues", "cache", "FUA");
	if (n > 0) {
		each(chain, show_limits);
		each(chain, show_nvme);
	}
	show_plan(o);
}

void
show_devices(struct json_object *list)
{
	size_t n = json_object_array_length(list), i;

	for (i = 0; i < n; i++)
		show_one(json_object_array_get_idx(list, i));
}
