/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What only an NVMe controller knows of itself: its Identify pages and its
 * SMART log, asked for by libnvme and decoded into plain facts. Without libnvme
 * (a build option) every device answers -ENOSYS. Any thread but a reactor's: an
 * admin command may take a while.
 *
 * NVM Express base specification (Identify Controller, SMART / Health
 * Information) and NVM command set specification (Identify Namespace). What the
 * specification counts from 0 is made a plain number here.
 */
#include "io/device.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef NVNFSD_NVME

#include <libnvme.h>

/* CAP.MPSMIN cannot be read from here; it is 4 KiB wherever Linux serves. */
#define UNIT_BYTES       4096u
#define KELVIN           273
#define FLBAS_HIGH_SHIFT 1

static_assert(sizeof(struct nvme_id_ctrl) == NVME_PAGE_BYTES, "a page");
static_assert(sizeof(struct nvme_id_ns) == NVME_PAGE_BYTES, "a page");
static_assert(sizeof(struct nvme_smart_log) == NVME_SMART_LOG_BYTES, "a log");

/* Padded with blanks, without a 0. */
static void
text(char *to, const char *from, size_t n)
{
	while (n > 0 && (from[n - 1] == ' ' || from[n - 1] == '\0'))
		n--;
	for (size_t i = 0; i < n; i++) {
		to[i] = from[i];
		if (to[i] < ' ' || to[i] > '~')
			to[i] = '?';
	}
	to[n] = '\0';
}

static uint32_t
times(uint64_t n, uint32_t unit)
{
	return n * unit > UINT32_MAX ? UINT32_MAX : (uint32_t)(n * unit);
}

/* n logical blocks, counted from 0. */
static uint32_t
blocks(uint16_t n, uint32_t block_bytes)
{
	return times((uint64_t)le16toh(n) + 1, block_bytes);
}

static void
decode_format(struct nvme_facts *f, const struct nvme_id_ns *ns)
{
	const struct nvme_lbaf *l;

	f->format = (uint8_t)((ns->flbas & NVME_NS_FLBAS_LOWER_MASK) |
			      (ns->flbas & NVME_NS_FLBAS_HIGHER_MASK) >>
				      FLBAS_HIGH_SHIFT);
	l = &ns->lbaf[f->format];
	/* 2^9 is the smallest there is; what is absurd is not told. */
	if (l->ds >= 9 && l->ds < 32)
		f->block_bytes = 1u << l->ds;
	f->metadata_bytes = le16toh(l->ms);
}

static void
decode_preferences(struct nvme_facts *f, const struct nvme_id_ns *ns)
{
	f->noiob_bytes = times(le16toh(ns->noiob), f->block_bytes);
	if ((ns->nsfeat & NVME_NS_FEAT_IO_OPT) == 0)
		return;
	f->npwg_bytes = blocks(ns->npwg, f->block_bytes);
	f->npwa_bytes = blocks(ns->npwa, f->block_bytes);
	f->nows_bytes = blocks(ns->nows, f->block_bytes);
}

static void
decode_atomic(struct nvme_facts *f, const struct nvme_id_ctrl *ctrl,
	      const struct nvme_id_ns *ns)
{
	f->awun_bytes = blocks(ctrl->awun, f->block_bytes);
	f->awupf_bytes = blocks(ctrl->awupf, f->block_bytes);
	if ((ns->nsfeat & NVME_NS_FEAT_NATOMIC) == 0)
		return;
	/* 0: the controller's holds here as well. */
	if (ns->nawun != 0)
		f->awun_bytes = blocks(ns->nawun, f->block_bytes);
	if (ns->nawupf != 0)
		f->awupf_bytes = blocks(ns->nawupf, f->block_bytes);
}

void
nvme_decode(struct nvme_facts *ret, uint32_t nsid,
	    const uint8_t ctrl_page[NVME_PAGE_BYTES],
	    const uint8_t ns_page[NVME_PAGE_BYTES])
{
	struct nvme_id_ctrl ctrl;
	struct nvme_id_ns ns;

	memcpy(&ctrl, ctrl_page, sizeof(ctrl));
	memcpy(&ns, ns_page, sizeof(ns));
	*ret = (struct nvme_facts){ .nsid = nsid };
	text(ret->model, ctrl.mn, sizeof(ctrl.mn));
	text(ret->firmware, ctrl.fr, sizeof(ctrl.fr));
	ret->volatile_cache = (ctrl.vwc & 1) != 0;
	if (ctrl.mdts > 0 && ctrl.mdts < 32)
		ret->mdts_bytes = times(1ull << ctrl.mdts, UNIT_BYTES);
	decode_format(ret, &ns);
	decode_preferences(ret, &ns);
	decode_atomic(ret, &ctrl, &ns);
}

/* 128 bits, of which any device that lives uses fewer than 64. */
static uint64_t
wide(const uint8_t n[16])
{
	uint64_t low, high;

	memcpy(&low, n, sizeof(low));
	memcpy(&high, n + sizeof(low), sizeof(high));
	return high != 0 ? UINT64_MAX : le64toh(low);
}

void
nvme_decode_smart(struct nvme_smart *ret,
		  const uint8_t log_page[NVME_SMART_LOG_BYTES])
{
	struct nvme_smart_log log;

	memcpy(&log, log_page, sizeof(log));
	*ret = (struct nvme_smart){
		.critical_warning = log.critical_warning,
		.temperature_celsius =
			(log.temperature[0] | log.temperature[1] << 8) - KELVIN,
		.spare_percent = log.avail_spare,
		.spare_threshold_percent = log.spare_thresh,
		.used_percent = log.percent_used,
		.media_errors = wide(log.media_errors),
		.unsafe_shutdowns = wide(log.unsafe_shutdowns),
		.data_units_read = wide(log.data_units_read),
		.data_units_written = wide(log.data_units_written),
	};
}

/* libnvme's results: -1 with errno, or the status of the command. */
static int
result(int status)
{
	if (status < 0)
		return errno != 0 ? -errno : -EIO;
	return status == 0 ? 0 : -EIO;
}

/* The name is the kernel's, but /dev may hold another device of that name. */
static int
open_device(const char *name, dev_t dev, uint32_t *ret_nsid)
{
	char path[sizeof("/dev/") + DEVICE_NAME_MAX];
	struct stat st;
	int fd, r;

	if (strncmp(name, "nvme", 4) != 0)
		return -ENODEV;
	(void)snprintf(path, sizeof(path), "/dev/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) != 0 || !S_ISBLK(st.st_mode) || st.st_rdev != dev) {
		close(fd);
		return -ENOENT;
	}
	r = result(nvme_get_nsid(fd, ret_nsid));
	if (r != 0) {
		close(fd);
		return r;
	}
	return fd;
}

int
nvme_ask(struct nvme_facts *ret, const char *name, dev_t dev)
{
	struct nvme_id_ctrl ctrl;
	struct nvme_id_ns ns;
	uint32_t nsid = 0;
	int fd = open_device(name, dev, &nsid), r;

	if (fd < 0)
		return fd;
	r = result(nvme_identify_ctrl(fd, &ctrl));
	if (r == 0)
		r = result(nvme_identify_ns(fd, nsid, &ns));
	if (r == 0)
		nvme_decode(ret, nsid, (const uint8_t *)&ctrl,
			    (const uint8_t *)&ns);
	close(fd);
	return r;
}

int
nvme_ask_smart(struct nvme_smart *ret, const char *name, dev_t dev)
{
	struct nvme_smart_log log;
	uint32_t nsid = 0;
	int fd = open_device(name, dev, &nsid), r;

	if (fd < 0)
		return fd;
	r = result(nvme_get_log_smart(fd, NVME_NSID_ALL, true, &log));
	if (r == 0)
		nvme_decode_smart(ret, (const uint8_t *)&log);
	close(fd);
	return r;
}

#else

int
nvme_ask(struct nvme_facts *ret, const char *name, dev_t dev)
{
	return strncmp(name, "nvme", 4) == 0 ? -ENOSYS : -ENODEV;
}

int
nvme_ask_smart(struct nvme_smart *ret, const char *name, dev_t dev)
{
	return nvme_ask(NULL, name, dev);
}

#endif
