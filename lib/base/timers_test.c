/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/store/fake_time.h"

static char story[64];
static struct fake_time now;
static struct timer a, b;

static void say(const char *what)
{
	strcat(story, what);
}

static void on_a(void *arg)
{
	say("a");
}

static void on_b(void *arg)
{
	say("b");
}

static int fresh(void **unused)
{
	now = FAKE_TIME;
	a = (struct timer){ .fn = on_a };
	b = (struct timer){ .fn = on_b };
	story[0] = '\0';
	return 0;
}

static uint64_t wakes_in(void)
{
	return timers_wake(&now.base) - now.ms;
}

static void one_wake_up_serves_all_that_can_wait_for_it(void **unused)
{
	timer_set(&now.base, &a, 1000, 5000);
	timer_set(&now.base, &b, 2000, 500);
	assert_int_equal(wakes_in(), 2500);
	assert_int_equal(timers_due(&now.base) - now.ms, 1000);
	now.ms += 2500;
	timers_run(&now.base);
	assert_string_equal(story, "ab");
	assert_true(timers_wake(&now.base) == UINT64_MAX);
}

static void nothing_comes_before_its_time(void **unused)
{
	timer_set(&now.base, &a, 1000, 0);
	timer_set(&now.base, &b, 3000, 9000);
	now.ms += 1000;
	timers_run(&now.base);
	assert_string_equal(story, "a");
	assert_int_equal(wakes_in(), 11000);
}

static void setting_again_replaces_and_clearing_ends_it(void **unused)
{
	timer_set(&now.base, &a, 1000, 0);
	timer_set(&now.base, &a, 5000, 0);
	timer_set(&now.base, &b, 1000, 0);
	timer_clear(&now.base, &b);
	timer_clear(&now.base, &b);
	now.ms += 2000;
	timers_run(&now.base);
	assert_string_equal(story, "");
	assert_int_equal(wakes_in(), 3000);
}

static void again(void *arg)
{
	say("x");
	timer_set(&now.base, arg, 0, 0);
}

static void one_that_never_rests_does_not_hold_the_run(void **unused)
{
	a = (struct timer){ .fn = again, .arg = &a };
	timer_set(&now.base, &a, 0, 0);
	timers_run(&now.base);
	assert_string_equal(story, "x");
	assert_int_equal(wakes_in(), 1);
	timer_clear(&now.base, &a);
}

static void clear_b(void *arg)
{
	say("c");
	timer_clear(&now.base, &b);
}

static void one_may_clear_another_that_is_due(void **unused)
{
	a = (struct timer){ .fn = clear_b };
	timer_set(&now.base, &a, 1, 0);
	timer_set(&now.base, &b, 2, 0);
	now.ms += 10;
	timers_run(&now.base);
	assert_string_equal(story, "c");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(one_wake_up_serves_all_that_can_wait_for_it, fresh),
		cmocka_unit_test_setup(nothing_comes_before_its_time, fresh),
		cmocka_unit_test_setup(setting_again_replaces_and_clearing_ends_it, fresh),
		cmocka_unit_test_setup(one_that_never_rests_does_not_hold_the_run, fresh),
		cmocka_unit_test_setup(one_may_clear_another_that_is_due, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
