/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When something that another program changes again and again is repaired.
 *
 *   delta_kernel, firewall, routing: not_before? ─> repair ─> [fight_repaired] ─> not_before
 *
 * Pure. At once, five times in a row and then five times a second; in a fight that has lasted two
 * minutes, every two seconds. So the last repair follows the last change within 0.2 s, or 2 s. More
 * at once would only keep an `ip route flush` going, which repeats until it finds nothing.
 */
#pragma once

#include <stdint.h>

/* So many repairs of a fight are logged one by one, those after them as a count. */
#define FIGHT_LOGGED 3

/* Times in ms of the caller's clock; all zero: none yet. */
struct fight {
	uint8_t repairs; /* in a row */
	uint64_t began;
	uint64_t paid; /* repairs up to now are accounted for until then */
	uint64_t not_before;
};

void fight_repaired(struct fight *f, uint64_t now);
