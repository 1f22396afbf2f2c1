/* SPDX-License-Identifier: Apache-2.0 */
/* How long to wait before the next attempt, so that a thousand clients do not come back at once. */
#pragma once

#include <stdint.h>

/*
 * After the n-th failure in a row, n >= 1: "first" doubling up to "max", and of that a random part
 * between the half and the whole. All in microseconds.
 */
uint64_t backoff_usec(unsigned failures, uint64_t first, uint64_t max);
