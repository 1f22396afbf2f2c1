/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/addresses/authority.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SECOND 1000000000LL

static struct authority proven(int64_t at, uint32_t promise)
{
	return (struct authority){ .proved = at, .promise = promise, .minute = 60000 };
}

static void a_proof_counts_for_the_promise_less_the_margin(void **unused)
{
	struct authority a = proven(100 * SECOND, 3600);

	assert_int_equal(authority_decide(&a, 100 * SECOND), AUTHORITY_HELD);
	assert_int_equal(authority_decide(&a, 3100 * SECOND - 1), AUTHORITY_HELD);
	assert_int_equal(authority_decide(&a, 3100 * SECOND), AUTHORITY_EXPIRED);
	/* However long it was stopped: only the time since the proof was sent matters. */
	assert_int_equal(authority_decide(&a, 1000000 * SECOND), AUTHORITY_EXPIRED);
}

static void the_least_promise_leaves_five_minutes(void **unused)
{
	struct authority a = proven(SECOND, 900);

	assert_int_equal(authority_decide(&a, 300 * SECOND), AUTHORITY_HELD);
	assert_int_equal(authority_decide(&a, 301 * SECOND), AUTHORITY_EXPIRED);
}

static void a_promise_below_the_margin_gives_nothing(void **unused)
{
	struct authority a = proven(SECOND, 600);

	assert_int_equal(authority_decide(&a, SECOND), AUTHORITY_EXPIRED);
	a.promise = 0;
	assert_int_equal(authority_decide(&a, SECOND), AUTHORITY_EXPIRED);
}

static void without_a_proof_there_is_none(void **unused)
{
	struct authority a = proven(0, 3600);

	assert_int_equal(authority_decide(&a, SECOND), AUTHORITY_UNPROVEN);
}

static void a_proof_of_another_boot_is_none(void **unused)
{
	struct authority a = proven(1000 * SECOND, 3600);

	assert_int_equal(authority_decide(&a, 999 * SECOND), AUTHORITY_UNPROVEN);
}

static void a_removal_ends_it_whatever_is_proven(void **unused)
{
	struct authority a = proven(SECOND, 3600);

	a.removed = true;
	assert_int_equal(authority_decide(&a, 2 * SECOND), AUTHORITY_REMOVED);
}

static void a_shortened_minute_shortens_all(void **unused)
{
	struct authority a = proven(SECOND, 900);

	a.minute = 100;
	assert_int_equal(authority_end(&a), SECOND + SECOND / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_proof_counts_for_the_promise_less_the_margin),
		cmocka_unit_test(the_least_promise_leaves_five_minutes),
		cmocka_unit_test(a_promise_below_the_margin_gives_nothing),
		cmocka_unit_test(without_a_proof_there_is_none),
		cmocka_unit_test(a_proof_of_another_boot_is_none),
		cmocka_unit_test(a_removal_ends_it_whatever_is_proven),
		cmocka_unit_test(a_shortened_minute_shortens_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
