/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/allocator/blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/auto.h"

const char *block_state_name(enum block_state state)
{
	static const char *const names[] = { "claiming", "owned", "releasing", "lost" };

	return names[state];
}

static void block_free(struct own_block *b)
{
	stock_done(&b->stock);
	free(b);
}
AUTO_DEFINE(struct own_block *, block_free)

void blocks_done(struct blocks *b)
{
	for (size_t i = 0; i < b->n; i++)
		block_free(b->v[i]);
	array_done(b);
}

/* By network, then by first address: blocks of one network do not overlap. The first not before. */
static size_t place(const struct blocks *b, const char *network, const struct address *address)
{
	return array_place(b->v, b->n, x,
			   strcmp((*x)->network, network)
				   ?: address_compare(&(*x)->prefix.address, address));
}

static struct own_block *overlapping(const struct blocks *b, size_t i, const char *network,
				     const struct prefix *prefix)
{
	for (size_t j = i ? i - 1 : 0; j < b->n && j <= i; j++)
		if (strcmp(b->v[j]->network, network) == 0 &&
		    prefix_overlaps(&b->v[j]->prefix, prefix))
			return b->v[j];
	return NULL;
}

int blocks_add(struct blocks *b, const char *network, const char *pool, const struct prefix *prefix,
	       int64_t now, struct own_block **ret)
{
	AUTO(block_free) struct own_block *block = NULL;
	size_t i = place(b, network, &prefix->address);
	struct own_block *there = overlapping(b, i, network, prefix);

	if (there) {
		*ret = there;
		return -EEXIST;
	}
	block = calloc(1, sizeof(*block));
	if (!block || array_reserve(b, 1) < 0 || stock_init(&block->stock, prefix) < 0)
		return -ENOMEM;
	snprintf(block->network, sizeof(block->network), "%s", network);
	snprintf(block->pool, sizeof(block->pool), "%s", pool);
	block->prefix = *prefix;
	block->empty_since = now;
	block->state = BLOCK_OWNED;
	*array_insert(b, i) = *ret = TAKE(block);
	return 0;
}

void blocks_remove(struct blocks *b, struct own_block *block)
{
	array_remove(b, place(b, block->network, &block->prefix.address));
	block_free(block);
}

struct own_block *blocks_with(const struct blocks *b, const char *network,
			      const struct address *address)
{
	const struct prefix one = prefix_of(address, (uint8_t)address_bits(address));

	return overlapping(b, place(b, network, address), network, &one);
}

struct own_block *blocks_find(const struct blocks *b, const char *network,
			      const struct prefix *prefix)
{
	struct own_block *block = blocks_with(b, network, &prefix->address);

	return block && prefix_compare(&block->prefix, prefix) == 0 ? block : NULL;
}
