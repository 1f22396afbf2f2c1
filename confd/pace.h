/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pace of publications: the first change at once, then no more than so many a second.
 *
 *   change -> [pace] -> now, or in so many microseconds
 *
 * Pure: the caller passes the time. Whoever works says afterwards how long to hold back; changes
 * that come meanwhile wait together and cost one publication.
 */
#pragma once

#include <stdint.h>

/* Four reloads a second at most. */
#define PACE_PUBLISHED_US 250000
/* A rendering that changed nothing: costs a little time, no reload. */
#define PACE_UNCHANGED_US 20000

struct pace {
	uint64_t not_before; /* 0: never held back */
};

/* How long to wait, 0 for go. */
static inline uint64_t pace_wait(const struct pace *pace, uint64_t now_us)
{
	return pace->not_before > now_us ? pace->not_before - now_us : 0;
}

/* From now on; a hold that lasts longer already stays. */
static inline void pace_hold(struct pace *pace, uint64_t now_us, uint64_t hold_us)
{
	if (now_us + hold_us > pace->not_before)
		pace->not_before = now_us + hold_us;
}
