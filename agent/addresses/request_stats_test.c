/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/addresses/request_stats.h"

static void each_answer_is_counted_by_verb_and_outcome(void **unused)
{
	static const struct {
		unsigned status;
		enum request_outcome outcome;
	} cases[] = {
		{ 200, REQUEST_OK },          { 400, REQUEST_REFUSED }, { 409, REQUEST_REFUSED },
		{ 503, REQUEST_UNAVAILABLE }, { 507, REQUEST_FULL },    { 500, REQUEST_FAILED },
		{ 0, REQUEST_GONE },
	};
	struct request_stats s = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t before = s.outcomes[REQUEST_ASSIGN][cases[i].outcome];

		request_stats_add(&s, "/v1/ipam/assign", cases[i].status, 500);
		assert_int_equal(s.outcomes[REQUEST_ASSIGN][cases[i].outcome], before + 1);
	}
	assert_int_equal(histogram_count(&s.duration[REQUEST_ASSIGN]), ARRAY_SIZE(cases));
	request_stats_add(&s, "/v1/detach", 200, 500);
	assert_int_equal(s.outcomes[REQUEST_DETACH][REQUEST_OK], 1);
	request_stats_add(&s, "/v1/status", 200, 500);
	for (size_t v = 0; v < REQUEST_VERBS; v++)
		if (v != REQUEST_ASSIGN && v != REQUEST_DETACH)
			assert_int_equal(histogram_count(&s.duration[v]), 0);
}

static void every_verb_is_there_from_the_start(void **unused)
{
	struct request_stats s = { 0 };
	struct metrics m = { 0 };

	request_stats_add(&s, "/v1/gc", 507, 500);
	request_stats_metrics(&s, &m);
	assert_int_equal(m.err, 0);
	assert_non_null(strstr(m.text, "roost_requests_total{verb=\"assign\",outcome=\"ok\"} 0\n"));
	assert_non_null(strstr(m.text, "roost_requests_total{verb=\"gc\",outcome=\"full\"} 1\n"));
	assert_non_null(
		strstr(m.text, "roost_request_duration_seconds_count{verb=\"release\"} 0\n"));
	metrics_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_answer_is_counted_by_verb_and_outcome),
		cmocka_unit_test(every_verb_is_there_from_the_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
