/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges in Whereabouts' words: which pools they mean, and which must be made.
 *
 * Pure. A range belongs to a roost network (its network name, or "default"); what
 * is live there decides:
 *
 *   nothing overlaps it             make a pool of it
 *   a pool of exactly this cidr     use it; a slice size given must be its block size, save that
 *                                   a pool cut by default keeps its cut when one is added later
 *   pools from IPAM configs that    the range has grown: it is served by them and by pools for
 *   all lie inside it               the parts that none has yet, made one by one when needed
 *   anything else                   refused: another size of a live range, or a stranger's pool
 *
 * So an extent is never edited and no address is cut twice. Both wordings of a
 * grown range may go on side by side: the old one has its part, the new one all.
 * An extent whose pool record is gone counts like the pool, which is made again
 * as the extent says. A pool that is wrong (pools.h) does not count at all.
 *
 * A pool's name is <network>-<range>, with '-' for '/' and ':':
 * "storage-10.5.0.0-16". It must be a name (lib/base/names.h: up to 63 of a-z 0-9 . -);
 * if it were too long, <network> is cut and followed by eight hex digits of its
 * hash. Should the name be taken by another pool, the range is refused.
 * Its record: network, cidr, blockSize (the slice size; else 26 or 122; never
 * below the range's own length), prefix "pool", routed false, origin
 * "ipam-config". Gateway, limits and routes stay with the request.
 */
#pragma once

#include "ipam/allocator/pools.h"

#define RANGE_ORIGIN "ipam-config"

/* What a pool made from a range consists of; all the rest is the default. */
struct range_pool {
	char name[NAME_TEXT], network[NAME_TEXT];
	struct prefix cidr;
	uint32_t block_size;
	bool reserve_edges; /* a part of a grown range has none: the request skips the range's */
};

/* For pool_encode(); the texts lie in p. Never call pool_done() on it. */
struct pool range_pool_record(const struct range_pool *p);

struct range_plan {
	const struct pool_view **pools; /* that serve it now, in the order of their cidr */
	size_t n_pools;
	bool more; /* when these cannot: make this one, and ask again */
	struct range_pool make;
	struct err note; /* what an operator should know, or "" */
};

/*
 * 0, -ENOMEM, or -EEXIST with a sentence: refused. wanted: the plan is for this address, else
 * NULL. *ret is for range_plan_done().
 */
int range_plan(const struct pool_views *views, const struct extent *const *extents,
	       size_t n_extents, const struct range_request *range, const struct address *wanted,
	       struct range_plan *ret, struct err *err);
void range_plan_done(struct range_plan *plan);
