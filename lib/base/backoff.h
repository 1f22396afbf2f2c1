/* SPDX-License-Identifier: Apache-2.0 */
/* How long to wait before the next attempt, so that a thousand clients do not come back at once. */
#pragma once

#include <stdint.h>

/*
 * After the n-th failure in a row, n >= 1: "first" doubling up to "max", and of that a random part
 * between the half and the whole. All in microseconds.
 */
uint64_t backoff_usec(unsigned failures, uint64_t first, uint64_t max);

/* Counts a write that etcd refused, and says how long to rest: 0.1 s doubling to 30 s, in ms. */
uint64_t backoff_refused_ms(unsigned *failures);
