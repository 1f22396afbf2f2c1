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

/* The one that an address lies in, or NULL. The rest of the table is allocator.c's own. */
struct own_block *blocks_with(const struct blocks *b, const char *network,
			      const struct address *address);
