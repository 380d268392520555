/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What export.c, export_open.c and export_access.c share.
 */
#ifndef NVNFSD_EXPORT_H
#define NVNFSD_EXPORT_H

#include "nfsd/nfsd.h"

/*
 * A private clone of an exported directory, read-write or read-only, with the
 * volume on it. Made by a table's load; each table that has it holds a
 * reference, and the last one closes it. It is its volume's user pointer.
 */
struct export_tree {
	atomic_uint refs;
	char *path;
	struct engine *engine;
	struct volume *volume;
};

struct export_answers; /* what clients' names gave, and who was refused */

/* What was read; also tables from which an export was taken share it. */
struct export_parsed {
	atomic_uint refs;
	struct conf_exports e;
};

struct export_table {
	atomic_uint refs;
	unsigned count;
	struct engine *engine;
	struct export_parsed *parsed; /* what the exports' conf points into */
	struct export *exports;       /* by path */
	struct export **by_id;
	struct export_answers *answers;
	struct work closing;
};

/* One run of export_table_load. */
struct export_loader {
	const struct export_load *load;
	const struct export_table *old; /* may be NULL */
	struct conf_report *r;
	bool warned_plain;
};

/* A directory that is being exported. conf has seen to it that what belongs to
 * the directory is the same in the options of all clients. */
struct export_place {
	const struct conf_export *conf;
	int fd; /* the directory, where it is mounted */
	struct stat st;
	uint64_t fs_type;
	struct fh root;
};

/* export_open.c */

/*
 * Fill in *e for conf: id, fsid, and trees carried over or made. 1; 0: not to
 * be exported now (a warning says why); -errno, with the reason in the report
 * and nothing held. Blocks.
 */
int export_open(struct export_loader *l, const struct conf_export *conf,
		struct export *e);

/* export_tree.c */

/* The trees that e's clients want, carried over or made. 0; or -errno, with the
 * reason in the report and nothing held. */
int export_trees_open(struct export_loader *l, const struct export_place *p,
		      struct export *e);
/* Can e keep what the policies that hold now promise? 0; or -errno, with the
 * reason in the report. */
int export_check(struct export_loader *l, const struct export *e);
/* Nothing can fail any more: e's volumes get the policies that hold now. */
void export_apply(struct export_loader *l, struct export *e);
/* Let go of the trees; may close them (blocks). */
void export_close(struct export *e);
/* e shares the trees of from. */
void export_share(struct export *e, const struct export *from);

/* export_access.c */

struct export_answers *export_answers_new(void);
void export_answers_free(struct export_answers *a);

#endif
