/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the allocator share among themselves; nobody else's business. */
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
/* The pool that this block serves, or NULL: gone, wrong, or moved to another network. */
const struct pool_view *view_of_block(const struct allocator *a, const struct own_block *b);
/* Whether the block gives addresses for this pool. */
bool block_serves(const struct own_block *b, const struct pool_view *v);

/*
 * A block to claim in this pool. limits: the addresses that will do, or NULL for all of the
 * pool's. 1; 0: none is left that is not ours, or maxBlocksPerNode is reached; -ENOMEM.
 */
int need_block(const struct allocator *a, const struct pool_view *v, const struct spans *limits,
	       enum need_reason reason, struct block_need *ret);

/* In use in every block that it lies in; *was as of stock_take(). 0 or -ENOMEM. */
int use_address(struct allocator *a, const char *network, const struct address *address,
		int64_t *was);
/* Back into every such block, unless somebody holds it still. */
void free_address(struct allocator *a, const char *network, const struct address *address,
		  int64_t at, int64_t now);

/* --- one address that a request wants ------------------------------------------------------- */

struct want {
	const struct pool_view **pools; /* in this order */
	size_t n_pools;
	const struct address *address;     /* exactly this, or NULL */
	const struct range_request *range; /* or NULL */
	struct range_plan plan;            /* with a range */
	bool limited;
	struct spans limits; /* if limited: nothing else will do */
};

struct wants {
	struct want *v;
	size_t n;
};

/* 0; -ENOMEM; or -EPERM, and the refusal is in result. */
int find_wants(const struct allocator *a, const struct assign_request *request, struct wants *ret,
	       struct assign_result *result);
void wants_done(struct wants *wants);

int assign_refuse(struct assign_result *result, enum cni_code code, const char *fmt, ...)
	PRINTF_LIKE(3, 4);

/* --- one assign on its way ------------------------------------------------------------------ */

/* An address that goes back unless all can be had. */
struct taken {
	struct own_block *block;
	const struct pool_view *view;
	address_count number;
	int64_t was;
};

struct step {
	struct allocator *a;
	const struct assign_request *request;
	const struct assign_options *options;
	int64_t now;
	struct assign_result *result;
	struct wants wants;
	struct taken *taken; /* one for each want that is served */
	size_t n_taken;
};

/*
 * Takes an address, or adds to the needs of the result. 0; -ENOMEM; or -EPERM, and the refusal
 * is in the result.
 */
int serve_want(struct step *s, struct want *w);
