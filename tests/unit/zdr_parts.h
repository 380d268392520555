/* SPDX-License-Identifier: Apache-2.0 */
/* What zdr_peer.c and zdr_peer_res.c share: see zdr_peer.h. */
#ifndef NVNFSD_ZDR_PARTS_H
#define NVNFSD_ZDR_PARTS_H

#include "tests/unit/zdr_peer.h"

#include <nfsc/libnfs-raw-nfs.h>

/* The sample or the library is at fault, not what is tested. */
void must(bool ok);

nfs_fh3 make_fh(const struct sample_fh *f);
nfstime3 make_time(struct sample_time t);
fattr3 make_fattr(const struct sample_attr *a);
post_op_attr make_attr(const struct sample_attr *a);
wcc_data make_wcc(const struct sample_wcc *w);
post_op_fh3 make_post_fh(const struct sample_fh *f);
sattr3 make_sattr(const struct sample_sattr *a);
diropargs3 make_dirop(const struct sample_fh *f, const char *name);

#endif
