/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/http/certificate_words.h"

#define DAY 86400
/* 2026-11-17T00:00:00Z */
#define NOW 1794873600LL

static void says(int64_t from, int64_t until, enum log_level level, const char *want)
{
	const struct certificate c = { .not_before = NOW + from, .not_after = NOW + until };
	enum log_level got = LOG_LEVEL_DEBUG;
	struct err text = { "" };

	assert_int_equal(certificate_words(&c, "/c.crt", "renew it", NOW, &got, &text),
			 want != NULL);
	if (!want)
		return;
	assert_string_equal(text.text, want);
	assert_int_equal(got, level);
}

static void what_is_valid_for_long_is_not_worth_a_word(void **unused)
{
	says(-DAY, 14 * DAY + 1, 0, NULL);
	says(-DAY, 3650 * DAY, 0, NULL);
}

static void the_last_two_weeks_are_a_warning(void **unused)
{
	says(-DAY, 14 * DAY, LOG_LEVEL_WARNING,
	     "/c.crt expires on 2026-12-01T00:00:00Z, in 14 days: renew it");
	says(-DAY, DAY, LOG_LEVEL_WARNING,
	     "/c.crt expires on 2026-11-18T00:00:00Z, in 1 day: renew it");
	says(-DAY, 1, LOG_LEVEL_WARNING,
	     "/c.crt expires on 2026-11-17T00:00:01Z, in 0 days: renew it");
}

static void an_invalid_one_is_an_error(void **unused)
{
	says(-DAY, 0, LOG_LEVEL_ERROR, "/c.crt expired on 2026-11-17T00:00:00Z: renew it");
	says(-2 * DAY, -DAY, LOG_LEVEL_ERROR, "/c.crt expired on 2026-11-16T00:00:00Z: renew it");
	says(DAY, 100 * DAY, LOG_LEVEL_ERROR,
	     "/c.crt is valid only from 2026-11-18T00:00:00Z on: check the clocks, or renew it");
}

static void an_unknown_one_is_not_spoken_of(void **unused)
{
	const struct certificate c = { 0 };
	enum log_level level;
	struct err text;

	assert_false(certificate_words(&c, "x", "y", NOW, &level, &text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_valid_for_long_is_not_worth_a_word),
		cmocka_unit_test(the_last_two_weeks_are_a_warning),
		cmocka_unit_test(an_invalid_one_is_an_error),
		cmocka_unit_test(an_unknown_one_is_not_spoken_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
