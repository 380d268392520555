/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of exports: an engine, some directories in a mount namespace of
 * this process's own, and tables made from exports(5) text.
 */
#ifndef NVNFSD_EXPORT_WORLD_H
#define NVNFSD_EXPORT_WORLD_H

#include "nfsd/nfsd.h"

struct world {
	struct engine *engine;
	struct conf conf;
	struct conf_report report; /* of the last load */
	uint64_t verifier;         /* what a new export gets */
	char dir[32];              /* with a/ and b/ in it; also where we are */
};

/* Once in a process: skips (77) without root. */
int world_enter(void **state);
int world_leave(void **state);
/* Around each test: *state is a struct world. */
int world_setup(void **state);
int world_teardown(void **state);

/* Make a table of exports(5) text, where every %s is the world's directory (at
 * most four). 0 or -errno. */
int world_load(struct world *w, struct export_table **ret,
	       struct export_table *old, const char *format);
/* Is there a message of the last load with all of this in it? */
bool world_said(const struct world *w, bool warning, const char *a,
		const char *b);
/* The export of one directory name in the world. */
struct export *world_export(const struct world *w, const struct export_table *t,
			    const char *name);
/* A client's address, from text. */
const struct sockaddr *world_client(const char *address, uint16_t port);

#endif
