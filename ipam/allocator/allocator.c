/* SPDX-License-Identifier: Apache-2.0 */
/* Pools and blocks; attachments are in allocator_hold.c, decisions in assign.c and wanted.c. */
#include "ipam/allocator/allocator_parts.h"

#include <errno.h>
#include <string.h>

#define SECOND 1000000000LL

struct allocator *allocator_new(void)
{
	return calloc(1, sizeof(struct allocator));
}

void allocator_free(struct allocator *a)
{
	if (!a)
		return;
	pool_views_done(&a->views);
	blocks_done(&a->blocks);
	attachments_done(&a->table);
	free(a);
}

int allocator_configure(struct allocator *a, const struct pools_input *in)
{
	struct pool_views views;

	if (pools_view(in, &views) < 0)
		return -ENOMEM;
	/* That a pool was full is not unlearned because another one changed. */
	for (size_t i = 0; i < views.n; i++) {
		const struct pool_view *old = pool_views_find(&a->views, views.v[i].name);

		if (old)
			views.v[i].full_until = old->full_until;
	}
	pool_views_done(&a->views);
	a->views = views;
	a->extents = in->extents;
	a->n_extents = in->n_extents;
	return 0;
}

const struct pool_views *allocator_pools(const struct allocator *a)
{
	return &a->views;
}

void allocator_pool_full(struct allocator *a, const char *pool, int64_t until)
{
	struct pool_view *v = pool_views_find(&a->views, pool);

	if (v)
		v->full_until = until;
}

int64_t rested_before(const struct pool_view *view, int64_t now)
{
	return now - (view && view->pool ? view->pool->cooldown_seconds : 60) * SECOND;
}

bool block_serves(const struct own_block *b, const struct pool_view *v)
{
	return strcmp(b->pool, v->name) == 0 && v->pool && strcmp(b->network, v->network) == 0;
}

const struct pool_view *view_of_block(const struct allocator *a, const struct own_block *b)
{
	const struct pool_view *v = pool_views_find(&a->views, b->pool);

	return v && block_serves(b, v) ? v : NULL;
}

/* --- blocks --------------------------------------------------------------------------------- */

/* What is held already in a block that comes only now. */
static int use_held(struct allocator *a, struct own_block *b)
{
	size_t i = attachments_from(&a->table, &b->prefix.address);

	for (; i < a->table.n_held; i++) {
		const struct holding *h = &a->table.held[i];
		const struct held_address *held = &h->attachment->addresses.v[h->index];
		int64_t was;

		if (!prefix_contains(&b->prefix, &held->address))
			break;
		if (networks_meet(held->network, b->network) &&
		    stock_take(&b->stock, number_of(&held->address), &was) == -ENOMEM)
			return -ENOMEM;
	}
	return 0;
}

static int add_block(struct allocator *a, const char *network, const char *pool,
		     const struct prefix *prefix, int64_t now, struct own_block **ret,
		     struct err *err)
{
	char text[PREFIX_TEXT], other[PREFIX_TEXT];
	int r = blocks_add(&a->blocks, network, pool, prefix, now, ret);

	if (r == -EEXIST)
		return err_set(err, r, "block %s on network %s overlaps %s, which is here already",
			       prefix_print(prefix, text), network,
			       prefix_print(&(*ret)->prefix, other));
	if (r == 0 && use_held(a, *ret) < 0) {
		blocks_remove(&a->blocks, *ret);
		r = -ENOMEM;
	}
	return r < 0 ? err_set(err, r, "out of memory") : 0;
}

int allocator_block_set(struct allocator *a, const char *network, const char *pool,
			const struct prefix *block, enum block_state state, int64_t now,
			struct err *err)
{
	struct own_block *b = blocks_find(&a->blocks, network, block);

	if (!b) {
		int r = add_block(a, network, pool, block, now, &b, err);

		if (r < 0)
			return r;
	}
	snprintf(b->pool, sizeof(b->pool), "%s", pool);
	b->state = state;
	return 0;
}

int allocator_block_remove(struct allocator *a, const char *network, const struct prefix *block)
{
	struct own_block *b = blocks_find(&a->blocks, network, block);

	if (!b)
		return -ENOENT;
	if (b->stock.n_used)
		return -EBUSY;
	blocks_remove(&a->blocks, b);
	return 0;
}

const struct own_block *allocator_block(const struct allocator *a, const char *network,
					const struct prefix *block)
{
	return blocks_find(&a->blocks, network, block);
}

const struct blocks *allocator_blocks(const struct allocator *a)
{
	return &a->blocks;
}

/* --- counts --------------------------------------------------------------------------------- */

struct address_counts allocator_block_counts(const struct allocator *a, const struct own_block *b,
					     int64_t now)
{
	static const struct spans nothing;
	const struct pool_view *v = view_of_block(a, b);
	/* Only what can be given is free. */
	const bool gives = v && pool_view_serves(v) && b->state == BLOCK_OWNED;

	return stock_count(&b->stock, gives ? &v->allowed : &nothing, rested_before(v, now));
}

struct pool_counts allocator_pool_counts(const struct allocator *a, const char *pool, int64_t now)
{
	struct pool_counts sum = { 0 };

	for (size_t i = 0; i < a->blocks.n; i++) {
		const struct own_block *b = a->blocks.v[i];
		struct address_counts c;

		if (strcmp(b->pool, pool) != 0)
			continue;
		c = allocator_block_counts(a, b, now);
		sum.blocks += b->state == BLOCK_OWNED;
		sum.addresses.used += c.used;
		sum.addresses.free += c.free;
		sum.addresses.resting += c.resting;
	}
	return sum;
}
