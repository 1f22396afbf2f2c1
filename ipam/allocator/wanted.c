/* SPDX-License-Identifier: Apache-2.0 */
/* Which blocks are wanted ahead of need, and which are no longer wanted. */
#include <errno.h>
#include <string.h>

#include "ipam/allocator/allocator_parts.h"

/* --- claims --------------------------------------------------------------------------------- */

/* Ours, or perhaps ours: all that counts against maxBlocksPerNode. */
static size_t count_blocks(const struct allocator *a, const struct pool_view *v)
{
	size_t n = 0;

	for (size_t i = 0; i < a->blocks.n; i++)
		n += a->blocks.v[i]->state != BLOCK_LOST && block_serves(a->blocks.v[i], v);
	return n;
}

/* Numbers of the pool's blocks that this one covers; they need not be cut alike. */
static struct span block_numbers(const struct pool_view *v, const struct prefix *block)
{
	const address_count base = span_of(&v->cidr).first;
	const unsigned shift = address_bits(&v->cidr.address) - v->block_size;
	struct span s = span_of(block);
	const struct span whole = span_of(&v->cidr);

	s.first = (s.first > whole.first ? s.first : whole.first) - base;
	s.last = (s.last < whole.last ? s.last : whole.last) - base;
	return shift < 128 ? (struct span){ s.first >> shift, s.last >> shift }
			   : (struct span){ 0, 0 };
}

static int find_usable(const struct allocator *a, const struct pool_view *v,
		       const struct spans *limits, struct spans *ret)
{
	AUTO_DONE(spans_done) struct spans both = { 0 }, usable = { 0 };
	int r = 0;

	if (limits) {
		r = spans_intersect(&v->allowed, limits, &both);
		if (r == 0)
			r = blocks_of_addresses(&both, &v->cidr, v->block_size, &usable);
		if (r == 0)
			r = spans_intersect(&usable, &v->usable, &usable);
	} else {
		r = spans_intersect(&v->usable, &v->usable, &usable); /* a copy */
	}
	/* What is ours, or was and is lost, cannot be claimed. */
	for (size_t i = 0; r == 0 && i < a->blocks.n; i++)
		if (strcmp(a->blocks.v[i]->network, v->network) == 0 &&
		    prefix_overlaps(&a->blocks.v[i]->prefix, &v->cidr))
			r = spans_remove(&usable, block_numbers(v, &a->blocks.v[i]->prefix));
	if (r < 0)
		return r;
	*ret = usable;
	usable = (struct spans){ 0 };
	return 0;
}

int need_block(const struct allocator *a, const struct pool_view *v, const struct spans *limits,
	       enum need_reason reason, struct block_need *ret)
{
	struct block_need need = {
		.cidr = v->cidr, .block_size = v->block_size, .reason = reason, .whole = !limits
	};

	if (v->pool->max_blocks_per_node && count_blocks(a, v) >= v->pool->max_blocks_per_node)
		return 0;
	if (find_usable(a, v, limits, &need.usable) < 0)
		return -ENOMEM;
	if (need.usable.n == 0) {
		block_need_done(&need);
		return 0;
	}
	snprintf(need.pool, sizeof(need.pool), "%s", v->name);
	snprintf(need.network, sizeof(need.network), "%s", v->network);
	*ret = need;
	return 1;
}

static bool is_single(const struct pool_view *v)
{
	return v->block_size == address_bits(&v->cidr.address);
}

/* How many are free in the pool without this block (or NULL: in all of it). */
static address_count count_free(const struct allocator *a, const struct pool_view *v,
				const struct own_block *without, int64_t now)
{
	address_count sum = 0;

	for (size_t i = 0; i < a->blocks.n; i++) {
		const struct own_block *b = a->blocks.v[i];

		/* One whose claim is not settled is on its way: do not ask for another. */
		if (b == without || !block_serves(b, v) ||
		    (b->state != BLOCK_OWNED && b->state != BLOCK_CLAIMING))
			continue;
		sum += stock_count(&b->stock, &v->allowed, rested_before(v, now)).free;
	}
	return sum;
}

/* A quarter of a block; 1 for those that are smaller than four. */
static address_count low_water(const struct pool_view *v)
{
	const unsigned bits = address_bits(&v->cidr.address) - v->block_size;

	return bits < 2 ? 1 : (address_count)1 << (bits - 2);
}

static bool wants_claim(const struct allocator *a, const struct pool_view *v, int64_t now,
			enum need_reason *reason)
{
	const size_t n = count_blocks(a, v);

	if (!pool_view_serves(v) || v->full_until > now)
		return false;
	if (n < v->pool->preallocate) {
		*reason = NEED_PREALLOCATE;
		return true;
	}
	if (n == 0 || is_single(v) || count_free(a, v, NULL, now) >= low_water(v))
		return false;
	*reason = NEED_LOW_WATER;
	return true;
}

int allocator_claims_wanted(const struct allocator *a, int64_t now, struct block_need *ret,
			    size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < a->views.n && n < max; i++) {
		const struct pool_view *v = &a->views.v[i];
		enum need_reason reason;
		int r = wants_claim(a, v, now, &reason) ? need_block(a, v, NULL, reason, &ret[n])
							: 0;

		if (r < 0) {
			while (n > 0)
				block_need_done(&ret[--n]);
			return r;
		}
		n += (size_t)r;
	}
	return (int)n;
}

/* --- giving back ---------------------------------------------------------------------------- */

static bool is_asked(const struct texts *asked, const char *network)
{
	for (size_t i = 0; asked && i < asked->n; i++)
		if (strcmp(asked->v[i], network) == 0)
			return true;
	return false;
}

/* Whether the pool can do without this empty block. */
static bool is_surplus(const struct allocator *a, const struct own_block *b,
		       const struct texts *asked, int64_t now)
{
	const struct pool_view *v = pool_views_find(&a->views, b->pool);
	size_t n = 0, keep;

	/* A record that cannot be read is no command; one that is gone, or elsewhere, is. */
	if (v && !v->pool)
		return false;
	if (!v || !block_serves(b, v) || !v->selected)
		return true;
	for (size_t i = 0; i < a->blocks.n; i++)
		n += a->blocks.v[i] != b && a->blocks.v[i]->state == BLOCK_OWNED &&
		     block_serves(a->blocks.v[i], v);
	keep = v->pool->preallocate;
	if (is_single(v) || is_asked(asked, b->network))
		return n >= keep;
	if (keep == 0)
		keep = 1;
	return n >= keep && count_free(a, v, b, now) >= 2 * low_water(v);
}

static bool has_rested(const struct allocator *a, const struct own_block *b, int64_t now)
{
	return b->empty_since <= rested_before(view_of_block(a, b), now);
}

const struct own_block *allocator_give_back(const struct allocator *a, const struct texts *asked,
					    int64_t now)
{
	/* From the end: new ones are taken from the start of the list. */
	for (size_t i = a->blocks.n; i-- > 0;) {
		const struct own_block *b = a->blocks.v[i];

		if (b->state == BLOCK_OWNED && b->stock.n_used == 0 && has_rested(a, b, now) &&
		    is_surplus(a, b, asked, now))
			return b;
	}
	return NULL;
}

bool allocator_can_spare(const struct allocator *a, const struct texts *asked, const char *network,
			 int64_t now)
{
	for (size_t i = 0; i < a->blocks.n; i++) {
		const struct own_block *b = a->blocks.v[i];

		if (strcmp(b->network, network) != 0 || b->stock.n_used)
			continue;
		if (b->state == BLOCK_RELEASING ||
		    (b->state == BLOCK_OWNED && is_surplus(a, b, asked, now)))
			return true;
	}
	return false;
}

int64_t allocator_give_back_time(const struct allocator *a, int64_t now)
{
	int64_t next = INT64_MAX;

	for (size_t i = 0; i < a->blocks.n; i++) {
		const struct own_block *b = a->blocks.v[i];
		const int64_t rest = now - rested_before(view_of_block(a, b), now);

		if (b->state != BLOCK_OWNED || b->stock.n_used || has_rested(a, b, now))
			continue;
		if (b->empty_since + rest < next)
			next = b->empty_since + rest;
	}
	return next;
}

const struct own_block *allocator_block_forgotten(const struct allocator *a)
{
	for (size_t i = 0; i < a->blocks.n; i++)
		if (a->blocks.v[i]->state == BLOCK_LOST && a->blocks.v[i]->stock.n_used == 0)
			return a->blocks.v[i];
	return NULL;
}
