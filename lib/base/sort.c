/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/sort.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/auto.h"

/* How many come before the part that is in order. */
static size_t unsorted(const char *p, size_t n, size_t size, compare_fn *all)
{
	size_t i = n - 1;

	while (i > 0 && all(p + (i - 1) * size, p + i * size) <= 0)
		i--;
	return i;
}

/* The first so many into the rest, both sorted; false: no memory. */
static bool merge(char *p, size_t first, size_t n, size_t size, compare_fn *all)
{
	const char *rest = p + first * size, *end = p + n * size, *next;
	AUTO(free) char *copy = malloc(first * size);

	if (!copy)
		return false;
	next = memcpy(copy, p, first * size);
	for (; next < copy + first * size; p += size) {
		const char **from = rest == end || all(next, rest) <= 0 ? &next : &rest;

		memcpy(p, *from, size);
		*from += size;
	}
	return true;
}

static void sort(char *p, size_t n, size_t size, compare_fn *all)
{
	size_t first = unsorted(p, n, size, all);

	if (first == 0)
		return;
	if (first < n / 2) {
		qsort(p, first, size, all);
		if (merge(p, first, n, size, all))
			return;
	}
	qsort(p, n, size, all);
}

size_t sort_unique(void *base, size_t n, size_t size, compare_fn *all, compare_fn *key)
{
	char *p = base;
	size_t kept = 0;

	if (n == 0)
		return 0;
	sort(p, n, size, all);
	for (size_t i = 1; i < n; i++)
		if (key(p + kept * size, p + i * size) != 0) {
			kept++;
			if (kept != i)
				memcpy(p + kept * size, p + i * size, size);
		}
	return kept + 1;
}
