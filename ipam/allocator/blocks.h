/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks that this node owns, or is not sure about.
 *
 * Pure. Sorted by network and prefix; blocks of one network never overlap, so an
 * address lies in at most one of them. Only BLOCK_OWNED serves new addresses; in
 * every state the addresses in use stay in use.
 *
 *   (claim's reply lost, key vanished) CLAIMING -> OWNED -> RELEASING -> removed
 *                                          `-> LOST (another node has it) -> removed when empty
 */
#pragma once

#include "ipam/allocator/stock.h"
#include "lib/base/names.h"

enum block_state { BLOCK_CLAIMING, BLOCK_OWNED, BLOCK_RELEASING, BLOCK_LOST };
/* "claiming", "owned", "releasing", "lost" */
const char *block_state_name(enum block_state state);

struct own_block {
	char network[NAME_TEXT], pool[NAME_TEXT];
	struct prefix prefix;
	enum block_state state;
	int64_t empty_since; /* meaningful while nothing is in use */
	struct stock stock;
};

struct blocks {
	struct own_block **v;
	size_t n, room;
};

void blocks_done(struct blocks *b);
/* 0; -EEXIST: it overlaps one that is there (*ret is that one); -ENOMEM. */
int blocks_add(struct blocks *b, const char *network, const char *pool, const struct prefix *prefix,
	       int64_t now, struct own_block **ret);
/* Forgets it, and frees the memory. */
void blocks_remove(struct blocks *b, struct own_block *block);
struct own_block *blocks_find(const struct blocks *b, const char *network,
			      const struct prefix *prefix);
struct own_block *blocks_with(const struct blocks *b, const char *network,
			      const struct address *address);
