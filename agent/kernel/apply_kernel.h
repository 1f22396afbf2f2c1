/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes to the kernel: netlink batches, and /proc/sys for what netlink cannot set.
 *
 *   delta_kernel ─> [apply_kernel] ─> kernel; results ─> kernel_view, health
 *
 * Decides nothing and tries everything: one refusal does not stop the rest. Each change gets its
 * result, and what the kernel accepted is in the view at once. Where a route exists already, it is
 * read: one of ours is replaced, a foreign one is kept and remembered as a conflict.
 */
#pragma once

#include "agent/kernel/delta_kernel.h"
#include "lib/netlink/netlink.h"

struct applied {
	size_t failed;
	bool again;     /* a tunnel came or went: what should be on it is to be decided now */
	struct err why; /* of the first that failed */
};

/* 0; or -errno if the work could not be done at all, and then what was done is in the results. */
int apply_kernel(struct netlink *nl, struct kernel_view *view, struct changes *changes,
		 uint64_t now, struct applied *ret);
