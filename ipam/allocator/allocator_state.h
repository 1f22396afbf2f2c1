/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the allocator: its state, which assign.c reads and changes as well. */
#pragma once

#include "ipam/allocator/allocator.h"

struct allocator {
	struct pool_views views;
	const struct extent *const *extents;
	size_t n_extents;
	struct blocks blocks;
	struct attachments table;
};

/* Released before this has rested. view may be NULL: the pool is gone, the default counts. */
int64_t rested_before(const struct pool_view *view, int64_t now);
/* Whether the block gives addresses for this pool. */
bool block_serves(const struct own_block *b, const struct pool_view *v);

/*
 * A block to claim in this pool. limits: the addresses that will do, or NULL for all of the
 * pool's. 1; 0: none is left that is not ours, or maxBlocksPerNode is reached; -ENOMEM.
 */
int need_block(const struct allocator *a, const struct pool_view *v, const struct spans *limits,
	       enum need_reason reason, struct block_need *ret);
