/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roost-confd put together: resources from their folder, a job for each, signals.
 *
 *   /etc/roost/confd.d -> resources -> jobs -> outcomes -> exit code (--once) or on and on
 *
 * One that is bad, or fails, stops no other. SIGHUP reads resources and templates again: what did
 * not change goes on as it is, and one whose file is bad now goes on as it was.
 */
#pragma once

#include "confd/confd_settings.h"

struct confd;

/* How long --once waits for etcd. */
#define CONFD_ETCD_MS 10000

/* settings is borrowed and may be changed by a reload. 0 or -errno with the reason. */
int confd_new(struct confd_settings *settings, int argc, char *const *argv, struct confd **ret,
	      struct err *err);
/* The exit code: 0; 1 if anything failed; 2 if nothing did, but a dry run found differences. */
int confd_run(struct confd *c);
void confd_free(struct confd *c);
AUTO_DEFINE(struct confd *, confd_free)
