/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether this agent may give an address: one question, one answer.
 *
 *   proofs, promise, what was lost, CLOCK_BOOTTIME -> [authority] -> every ADD, before its reply
 *
 * Pure. Being connected proves nothing, having been stopped disproves it. A proof is the answer to
 * one linearizable transaction which shows, at one moment after it was sent:
 *   node/<self>         stands at the revision that we know: the fence
 *   status/node/<self>  stands, so no machine that waits for our name has begun to count
 *   removed/<self>      does not, so no controller has begun to count
 * Another machine or a controller that takes the name or a block counts the silence from a later
 * moment, by its own clock, for as long as the record promises (reclaimAfter), and deletes
 * node/<self> first. So until
 * the promise, less a margin for clocks that differ, has passed since the proof was *sent*, nobody
 * else can own a block of ours. To lose the record ends it at once, whatever was proven.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* For clocks that run at different rates, and for the time that an answer takes. */
#define AUTHORITY_MARGIN_S 600

struct authority {
	int64_t proved;   /* CLOCK_BOOTTIME, ns: the last proof was sent then; 0: none counts */
	uint32_t promise; /* s: the lowest that the record may carry */
	bool removed;     /* removed/<self> stands */
	uint32_t minute;  /* ms of one; shorter in tests */
};

enum authority_verdict {
	AUTHORITY_HELD,
	AUTHORITY_UNPROVEN, /* no proof counts yet, or not any more */
	AUTHORITY_EXPIRED,  /* the last proof is too old */
	AUTHORITY_REMOVED
};

enum authority_verdict authority_decide(const struct authority *a, int64_t now);
/* CLOCK_BOOTTIME, ns: until when the last proof counts. */
int64_t authority_end(const struct authority *a);
/* s: for how long a proof counts. */
uint32_t authority_allowed(uint32_t promise);
