/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses of one block: never used, released, in use.
 *
 *   fresh (intervals) --take--> used (by number) --put--> released (oldest first)
 *                                                             |__ after many: fresh
 *
 * Pure. Sparse: costs what is or was in use, not what the block holds. The order
 * of giving is "released longest ago", where never used is longest and of those
 * the lowest comes first. Of released ones the newest STOCK_REMEMBERED are
 * told apart by time; older ones that have rested count as never used again, so
 * that a /64 does not remember every pod it ever had. Times are CLOCK_BOOTTIME in
 * nanoseconds. Room for the way back is made when an address is taken: giving
 * one back never fails.
 */
#pragma once

#include "ipam/allocator/spans.h"
#include "lib/base/array.h"

#define STOCK_REMEMBERED 4096
#define NEVER_USED       INT64_MIN

struct released {
	address_count number;
	int64_t at;
};

struct stock {
	struct prefix block;
	struct spans fresh;
	ARRAY(struct released) released; /* oldest first */
	ARRAY(address_count) used;       /* sorted */
};

/* 0 or -ENOMEM; all never used. */
int stock_init(struct stock *s, const struct prefix *block);
void stock_done(struct stock *s);

enum pick { PICK_NONE, PICK_RESTING, PICK_FREE };

/*
 * The best of those in allowed: the never used, then the released longest ago. It is
 * PICK_RESTING, and nothing better is there, when that was after rested_before (now less the
 * cooldown). Changes nothing. *at is when it was released, or NEVER_USED.
 */
enum pick stock_pick(const struct stock *s, const struct spans *allowed, int64_t rested_before,
		     address_count *ret, int64_t *at);

/* 0 and when it was released before (NEVER_USED), -EBUSY: in use, -ERANGE: not in this block. */
int stock_take(struct stock *s, address_count number, int64_t *at);
/* Back, as released at that time (NEVER_USED: as if it never had been taken). False: not in use. */
bool stock_put(struct stock *s, address_count number, int64_t at);
/* Turns the oldest released ones beyond STOCK_REMEMBERED, if they have rested, into fresh. */
void stock_forget(struct stock *s, int64_t rested_before);
bool stock_used(const struct stock *s, address_count number);

/* In numbers; free has rested, or was never used. */
struct address_counts {
	address_count used, free, resting;
};
/* used counts all, free and resting only what is in allowed. */
struct address_counts stock_count(const struct stock *s, const struct spans *allowed,
				  int64_t rested_before);
