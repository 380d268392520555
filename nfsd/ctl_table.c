/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of the control socket, one row each. How a command is called at
 * the other end, and how its result is shown, nvnfsctl.c knows.
 */
#include "nfsd/ctl.h"

const struct ctl_command ctl_commands[] = {
	{ "status", ctl_status },     { "exports", ctl_exports },
	{ "unexport", ctl_unexport }, { "devices", ctl_devices },
	{ "clients", ctl_clients },   { "stats", ctl_stats },
	{ "slow", ctl_slow },         { "reset-stats", ctl_reset_stats },
	{ "set", ctl_set },           { "why", ctl_why },
	{ "locks", ctl_locks },       { "unlock", ctl_unlock },
	{ "drain", ctl_drain },       { NULL, NULL },
};
