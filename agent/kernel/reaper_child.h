/* SPDX-License-Identifier: Apache-2.0 */
/* What the reaper's child does: links of ours in DOOMED_GROUP, a few at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

struct reaped {
	int32_t result; /* 0 or -errno of the first that could not be destroyed */
	uint32_t destroyed;
	bool more; /* there may be others: ask again */
	struct err why;
};

/* One group. In the network namespace of the caller. */
void reap(struct reaped *ret);
/* Serves requests on the socket for ever. */
_Noreturn void reaper_child(int socket);
