/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For integration tests: what this machine's kernel lets somebody do, asked by
 * a child process that has become him. Root only. Fails the running test when
 * something goes wrong.
 */
#ifndef NVNFSD_TESTS_ORACLE_H
#define NVNFSD_TESTS_ORACLE_H

#include "harness.h"

#define ORACLE_READ  4
#define ORACLE_WRITE 2
#define ORACLE_EXEC  1

struct person {
	uint32_t uid, gid;
	uint32_t gids;
	uint32_t gid_list[40];
};

/* The ORACLE_ bits that he has on path, by mode and ACL. */
unsigned oracle_access(const struct person *p, const char *path);
/* He makes it, with a umask of 0: a file, or a directory where mode says so. */
void oracle_make(const struct person *p, const char *path, unsigned mode);
/* May this test do all that? Else it prints why not. */
bool oracle_there(void);

#endif
