/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "confd/pace.h"
#include "lib/base/auto.h"

static void the_first_change_goes_at_once(void **unused)
{
	struct pace pace = { 0 };

	assert_int_equal(pace_wait(&pace, 0), 0);
	assert_int_equal(pace_wait(&pace, 5), 0);
}

static void after_a_publication_the_next_waits_out_the_interval(void **unused)
{
	struct pace pace = { 0 };

	pace_hold(&pace, 1000, PACE_PUBLISHED_US);
	assert_int_equal(pace_wait(&pace, 1000), PACE_PUBLISHED_US);
	assert_int_equal(pace_wait(&pace, 1000 + PACE_PUBLISHED_US - 1), 1);
	assert_int_equal(pace_wait(&pace, 1000 + PACE_PUBLISHED_US), 0);
	assert_int_equal(pace_wait(&pace, UINT64_MAX / 2), 0);
}

static void a_short_hold_does_not_end_a_long_one(void **unused)
{
	struct pace pace = { 0 };

	pace_hold(&pace, 0, PACE_PUBLISHED_US);
	pace_hold(&pace, 10, PACE_UNCHANGED_US);
	assert_int_equal(pace_wait(&pace, 10), PACE_PUBLISHED_US - 10);
}

/* A change every millisecond for a second; each publication takes 5 ms. */
static void a_thousand_changes_in_a_second_are_five_publications(void **unused)
{
	struct pace pace = { 0 };
	unsigned published = 0;
	bool dirty = false;

	for (uint64_t now = 0; now < 1500000; now += 1000) {
		dirty |= now < 1000000;
		if (!dirty || pace_wait(&pace, now) > 0)
			continue;
		dirty = false;
		published++;
		pace_hold(&pace, now, PACE_PUBLISHED_US);
		now += 5000;
	}
	assert_false(dirty);
	assert_int_equal(published, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_change_goes_at_once),
		cmocka_unit_test(after_a_publication_the_next_waits_out_the_interval),
		cmocka_unit_test(a_short_hold_does_not_end_a_long_one),
		cmocka_unit_test(a_thousand_changes_in_a_second_are_five_publications),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
