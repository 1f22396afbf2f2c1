/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/auto.h"
#include "lib/base/sort.h"

struct pair {
	int key, value;
};

static int by_key(const void *a, const void *b)
{
	return ((const struct pair *)a)->key - ((const struct pair *)b)->key;
}

static int by_all(const void *a, const void *b)
{
	return by_key(a, b) ?: ((const struct pair *)a)->value - ((const struct pair *)b)->value;
}

/* Each key once, in order, with the least of its values. */
static void assert_set(struct pair *v, size_t n)
{
	struct pair least[64];
	size_t keys = 0, kept;

	for (int key = 0; key < 64; key++) {
		const struct pair *best = NULL;

		for (size_t i = 0; i < n; i++)
			if (v[i].key == key && (!best || v[i].value < best->value))
				best = &v[i];
		if (best)
			least[keys++] = *best;
	}
	kept = sort_unique(v, n, sizeof(*v), by_all, by_key);
	assert_int_equal(kept, keys);
	assert_memory_equal(v, least, keys * sizeof(*v));
}

static void nothing_stays_nothing(void **state)
{
	struct pair none;

	assert_int_equal(sort_unique(&none, 0, sizeof(none), by_all, by_key), 0);
}

/* Any number of disordered ones, of which some are alike, before any number in order. */
static void a_part_in_order_is_joined_with_the_rest(void **state)
{
	struct pair v[48];

	for (size_t n = 1; n <= ARRAY_SIZE(v); n++)
		for (size_t first = 0; first <= n; first++) {
			for (size_t i = 0; i < n; i++)
				v[i] = i < first ? (struct pair){ (int)(i * 29 % 60), (int)i % 3 }
						 : (struct pair){ (int)i, 1 };
			assert_set(v, n);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_stays_nothing),
		cmocka_unit_test(a_part_in_order_is_joined_with_the_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
