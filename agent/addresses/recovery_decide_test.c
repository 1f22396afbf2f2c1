/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/addresses/recovery_decide.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define STEP(step, ...)                                                                            \
	assert_string_equal(                                                                       \
		recovery_step_name(recovery_decide(&(struct recovery_seen){ __VA_ARGS__ })), step)

#define OPEN .present = true, .readable = true

static void without_a_notice_and_a_record_there_is_nothing_to_do(void **unused)
{
	STEP("none", 0);
	STEP("none", OPEN, .done = true);
}

static void the_first_to_notice_opens_one(void **unused)
{
	STEP("begin", .noticed = true);
	/* One that the restore brought along is another's, open or not. */
	STEP("begin", .noticed = true, OPEN, .old = true);
	STEP("begin", .noticed = true, OPEN, .old = true, .done = true);
	STEP("begin", .noticed = true, .present = true);
}

static void one_that_went_on_without_us_is_accepted(void **unused)
{
	STEP("accept", .noticed = true, OPEN, .done = true);
}

static void each_says_first_what_it_knows_then_what_it_holds(void **unused)
{
	STEP("extend", .noticed = true, OPEN, .longer = true, .certain = true);
	STEP("assert", .noticed = true, OPEN);
	STEP("assert", OPEN, .spoken = true, .all_spoken = true, .witness = true);
	STEP("speak", OPEN, .certain = true, .all_spoken = true, .witness = true);
}

static void it_ends_when_all_have_spoken_or_the_silent_give_nothing_any_more(void **unused)
{
	STEP("wait", OPEN, .certain = true, .spoken = true);
	STEP("end", OPEN, .certain = true, .spoken = true, .all_spoken = true, .witness = true);
	/* Who was not there before does not know whom to wait for. */
	STEP("wait", OPEN, .certain = true, .spoken = true, .all_spoken = true);
	STEP("end", OPEN, .certain = true, .spoken = true, .waited = true);
}

static void one_that_cannot_be_read_stops_everything(void **unused)
{
	STEP("wait", .present = true, .certain = true, .waited = true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_notice_and_a_record_there_is_nothing_to_do),
		cmocka_unit_test(the_first_to_notice_opens_one),
		cmocka_unit_test(one_that_went_on_without_us_is_accepted),
		cmocka_unit_test(each_says_first_what_it_knows_then_what_it_holds),
		cmocka_unit_test(it_ends_when_all_have_spoken_or_the_silent_give_nothing_any_more),
		cmocka_unit_test(one_that_cannot_be_read_stops_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
