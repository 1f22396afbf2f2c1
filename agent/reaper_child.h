/* SPDX-License-Identifier: Apache-2.0 */
/* What the reaper's child does: every link of ours in DOOMED_GROUP, a few at a time. */
#pragma once

#include <stdint.h>

#include "lib/err.h"

struct reaped {
	int32_t result; /* 0 or -errno of the first that could not be destroyed */
	uint32_t rounds, destroyed;
	struct err why;
};

/* Destroys until none is left, or one cannot be. In the network namespace of the caller. */
void reap(struct reaped *ret);
/* Serves requests on the socket for ever. */
_Noreturn void reaper_child(int socket);
