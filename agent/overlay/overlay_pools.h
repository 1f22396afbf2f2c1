/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pools are in the overlay, over the loss of their records.
 *
 *   pool/, extent/ ─> [overlay_pools] ─> desired_overlay      run directory: file overlay
 *
 * A pool is in while its record says so. One whose record vanished stays as it was
 * while its extent stands, because its blocks have owners and its pods run; one
 * that is edited follows the edit. What there is survives a restart of the agent.
 */
#pragma once

#include "agent/overlay/desired_overlay.h"

struct overlay_pools {
	struct overlay_pool *v; /* by name */
	size_t n;
};

/* What the records say now, and what is remembered of those that have none. 0 or -ENOMEM. */
int overlay_pools_learn(struct overlay_pools *p, const struct records *records);
void overlay_pools_done(struct overlay_pools *p);
bool overlay_pools_equal(const struct overlay_pools *a, const struct overlay_pools *b);

/* The file's text; free() it. 0 or -ENOMEM. */
int overlay_pools_encode(const struct overlay_pools *p, char **ret);
/* 0, -ENOMEM, or -EINVAL (-E2BIG) with a sentence; *ret only on success. */
int overlay_pools_decode(const char *text, size_t len, struct overlay_pools *ret, struct err *err);
