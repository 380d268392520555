/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For integration tests: calls that stay in service as long as wanted, because
 * the file system below the export is frozen. Each function fails the running
 * test when something goes wrong.
 */
#ifndef NVNFSD_TESTS_FROZEN_H
#define NVNFSD_TESTS_FROZEN_H

#include "site.h"

/* From here on a call that changes the file system waits for frozen_thaw(),
 * which also comes when a test fails: nothing could be unmounted. */
void frozen_freeze(struct site *s);
void frozen_thaw(void);
/* A counter of the server, which must live: else it would be waited for for
 * ever. And until it is so high. */
uint64_t frozen_stat(struct site *s, const char *counter);
void frozen_await(struct site *s, const char *counter, uint64_t value);
/* The record that s->r sent last once more by a new connection, and until the
 * server has taken it for what it is. */
struct raw *frozen_attach(struct site *s);

#endif
