/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roostd put together: who is told what, and in which order the start goes.
 *
 *   lock -> name and pin -> files and kernel (ipam) -> socket -> etcd: inputs, registration
 *
 * The socket is there from the first moment and says 503 with the reason until
 * addresses are served. Without a pin of this boot the node's address is chosen
 * when the pools are known, because no address of theirs may be the node's own.
 */
#pragma once

#include "agent/settings.h"

struct agent;

/* settings is borrowed and may be changed by a reload. 0 or -errno with the reason. */
int agent_new(struct settings *settings, int argc, char *const *argv, struct agent **ret,
	      struct err *err);
/* Until it is told to stop; 0 or -errno. */
int agent_run(struct agent *a);
void agent_free(struct agent *a);
AUTO_DEFINE(struct agent *, agent_free)
