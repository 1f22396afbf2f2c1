/* SPDX-License-Identifier: Apache-2.0 */
/* Inside agent/overlay/overlay*.c. */
#pragma once

#include "agent/overlay/overlay.h"
#include "agent/overlay/overlay_pools.h"
#include "lib/base/pass.h"

struct overlay {
	struct overlay_options o;
	struct identity self;
	struct registration *registration;
	struct record_want *base[3];        /* config, pool/, extent/ */
	struct record_want *nodes, *blocks; /* while a pool has an encapsulation; or NULL */
	struct pass *pass;
	struct timer grace;
	int dir;
	struct overlay_pools pools;
	struct overlay_plan plan; /* its texts lie in the records: good while not stale */
	bool stale;               /* something has changed since the plan was made */
	bool known;               /* once: config and pools have been read */
};

/* Makes the plan anew; 0 or -errno. */
int overlay_refresh(struct overlay *o);
uint32_t overlay_tunnel_mtu(const struct overlay *o, const struct kernel_tunnel *t);
