/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of the control socket, one row each. How a command is called at
 * the other end, and how its result is shown, nvnfsctl.c knows.
 */
#include "nfsd/ctl.h"

const struct ctl_command ctl_commands[] = {
	{ "status", ctl_status },
	{ "exports", ctl_exports },
	{ "devices", ctl_devices },
	{ "why", ctl_why },
	{ NULL, NULL },
};
