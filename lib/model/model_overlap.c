/* SPDX-License-Identifier: Apache-2.0 */
/* Rules that concern several records: no address in two pools of one network. */
#include "lib/model/model.h"

#include <errno.h>
#include <string.h>

/* What a pool and an extent have in common. */
struct span {
	const char *what, *network, *name;
	struct prefix cidr;
};

static struct span span_of_pool(const struct pool *p)
{
	return (struct span){ "pool", p->network, p->name, p->cidr };
}

static struct span span_of_extent(const struct extent *e)
{
	return (struct span){ "extent of pool", e->network, e->pool, e->cidr };
}

static int conflict(struct span a, struct span b, struct err *err)
{
	char ta[PREFIX_TEXT], tb[PREFIX_TEXT];

	if (strcmp(a.network, b.network) != 0 || strcmp(a.name, b.name) == 0 ||
	    !prefix_overlaps(&a.cidr, &b.cidr))
		return 0;
	return err_set(err, -EEXIST, "%s %s (%s) overlaps %s %s (%s) on network %s", a.what, a.name,
		       prefix_print(&a.cidr, ta), b.what, b.name, prefix_print(&b.cidr, tb),
		       a.network);
}

int pool_conflicts_pool(const struct pool *a, const struct pool *b, struct err *err)
{
	return conflict(span_of_pool(a), span_of_pool(b), err);
}

int pool_conflicts_extent(const struct pool *pool, const struct extent *extent, struct err *err)
{
	return conflict(span_of_pool(pool), span_of_extent(extent), err);
}

int extent_conflicts_extent(const struct extent *a, const struct extent *b, struct err *err)
{
	return conflict(span_of_extent(a), span_of_extent(b), err);
}

int pools_conflict(const struct pool *const *pools, size_t n_pools,
		   const struct extent *const *extents, size_t n_extents, struct err *err)
{
	int r = 0;

	/* Every pair: pools are few, and the first conflict ends it. */
	for (size_t i = 0; r == 0 && i < n_pools; i++) {
		for (size_t j = i + 1; r == 0 && j < n_pools; j++)
			r = pool_conflicts_pool(pools[i], pools[j], err);
		for (size_t j = 0; r == 0 && j < n_extents; j++)
			r = pool_conflicts_extent(pools[i], extents[j], err);
	}
	return r;
}

int pool_differs_from_extent(const struct pool *pool, const struct extent *extent, struct err *err)
{
	char now[PREFIX_TEXT], cut[PREFIX_TEXT];

	if (prefix_compare(&pool->cidr, &extent->cidr) == 0 &&
	    pool->block_size == extent->block_size)
		return 0;
	return err_set(err, -ESTALE,
		       "pool %s says %s in blocks of /%u, but blocks are already cut from %s as "
		       "/%u: the edit has no effect until the last of them is released",
		       pool->name, prefix_print(&pool->cidr, now), pool->block_size,
		       prefix_print(&extent->cidr, cut), extent->block_size);
}
