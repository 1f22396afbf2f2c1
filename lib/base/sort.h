/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets as sorted arrays without repetition.
 *
 * Pure. What is in order already costs one walk, and a long part at the end that is in order is
 * merged with the rest instead of sorted again.
 */
#pragma once

#include <stddef.h>

typedef int compare_fn(const void *a, const void *b);

/* Sorts by all, keeps the first of those that are alike by key, and returns how many those are. */
size_t sort_unique(void *base, size_t n, size_t size, compare_fn *all, compare_fn *key);
