/* SPDX-License-Identifier: Apache-2.0 */
/* See frozen.h. */
#include "frozen.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char frozen[400];

void
frozen_thaw(void)
{
	if (frozen[0] != '\0')
		assert_int_equal(harness_sh("fsfreeze -u %s", frozen), 0);
	frozen[0] = '\0';
}

void
frozen_freeze(struct site *s)
{
	static bool once;

	if (!once)
		(void)atexit(frozen_thaw);
	once = true;
	assert_int_equal(harness_sh("fsfreeze -f %s", s->h->export), 0);
	(void)snprintf(frozen, sizeof(frozen), "%s", s->h->export);
}

uint64_t
frozen_stat(struct site *s, const char *counter)
{
	struct raw *r = raw_connect(s->h->port);
	uint64_t value;

	raw_call(r, 100003, 3, 0, NULL, NULL, NULL, NULL);
	value = harness_stat(s->h, counter);
	raw_close(r);
	return value;
}

void
frozen_await(struct site *s, const char *counter, uint64_t value)
{
	while (frozen_stat(s, counter) < value)
		usleep(1000);
}

struct raw *
frozen_attach(struct site *s)
{
	uint64_t before = harness_stat(s->h, "drc_attached");
	struct raw *r = raw_connect(s->h->port);

	ask_again(r, s->r);
	frozen_await(s, "drc_attached", before + 1);
	return r;
}
