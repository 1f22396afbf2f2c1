/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/metrics.h"

static void expect(struct metrics *m, const char *want)
{
	assert_int_equal(m->err, 0);
	assert_string_equal(m->text, want);
	metrics_done(m);
}

static void a_family_has_its_head_once(void **unused)
{
	struct metrics m = { 0 };

	metrics_family(&m, "roost_addresses", METRIC_GAUGE, "By pool.");
	metrics_count(&m, LABELS({ "pool", "web" }, { "state", "used" }), 3);
	metrics_count(&m, LABELS({ "pool", "web" }, { "state", "free" }), UINT64_MAX);
	metrics_one(&m, "roost_up", METRIC_GAUGE, "Whether.", 1);
	expect(&m, "# HELP roost_addresses By pool.\n"
		   "# TYPE roost_addresses gauge\n"
		   "roost_addresses{pool=\"web\",state=\"used\"} 3\n"
		   "roost_addresses{pool=\"web\",state=\"free\"} 18446744073709551615\n"
		   "# HELP roost_up Whether.\n"
		   "# TYPE roost_up gauge\n"
		   "roost_up 1\n");
}

static void what_would_end_a_line_or_a_label_is_escaped(void **unused)
{
	struct metrics m = { 0 };

	metrics_family(&m, "roost_x", METRIC_GAUGE, "a \"b\"\nc \\ d");
	metrics_count(&m, LABELS({ "part", "a \"b\"\nc \\ d" }), 1);
	expect(&m, "# HELP roost_x a \"b\"\\nc \\\\ d\n"
		   "# TYPE roost_x gauge\n"
		   "roost_x{part=\"a \\\"b\\\"\\nc \\\\ d\"} 1\n");
}

static void numbers_are_told_exactly(void **unused)
{
	struct metrics m = { 0 };

	metrics_family(&m, "roost_x", METRIC_GAUGE, "X.");
	metrics_number(&m, NULL, 0.1);
	metrics_number(&m, NULL, 1794957643.0);
	metrics_number(&m, NULL, NAN);
	metrics_number(&m, NULL, INFINITY);
	metrics_number(&m, NULL, -INFINITY);
	expect(&m, "# HELP roost_x X.\n# TYPE roost_x gauge\n"
		   "roost_x 0.1\nroost_x 1794957643\nroost_x NaN\nroost_x +Inf\nroost_x -Inf\n");
}

static void buckets_add_up(void **unused)
{
	struct metrics m = { 0 };
	struct histogram h = { 0 };

	histogram_add(&h, 0);
	histogram_add(&h, 100); /* a bound belongs to its own bucket */
	histogram_add(&h, 101);
	histogram_add(&h, 20000000);
	assert_int_equal(histogram_count(&h), 4);
	metrics_family(&m, "roost_t_seconds", METRIC_HISTOGRAM, "T.");
	metrics_histogram(&m, LABELS({ "verb", "assign" }), &h);
	assert_int_equal(m.err, 0);
	assert_non_null(strstr(m.text,
			       "roost_t_seconds_bucket{verb=\"assign\",le=\"0.0001\"} 2\n"
			       "roost_t_seconds_bucket{verb=\"assign\",le=\"0.00025\"} 3\n"));
	assert_non_null(strstr(m.text, "roost_t_seconds_bucket{verb=\"assign\",le=\"10\"} 3\n"
				       "roost_t_seconds_bucket{verb=\"assign\",le=\"+Inf\"} 4\n"
				       "roost_t_seconds_sum{verb=\"assign\"} 20.000201\n"
				       "roost_t_seconds_count{verb=\"assign\"} 4\n"));
	metrics_done(&m);
	metrics_family(&m, "roost_t_seconds", METRIC_HISTOGRAM, "T.");
	metrics_histogram(&m, NULL, &h);
	assert_non_null(strstr(m.text, "roost_t_seconds_bucket{le=\"0.0001\"} 2\n"));
	metrics_done(&m);
}

static void a_mistake_makes_the_text_void(void **unused)
{
	struct metrics m = { 0 };
	struct histogram h = { 0 };

	metrics_family(&m, "roost-x", METRIC_GAUGE, "A wrong name.");
	assert_int_equal(m.err, -EINVAL);
	metrics_done(&m);
	metrics_family(&m, "roost_things", METRIC_COUNTER, "A counter without _total.");
	assert_int_equal(m.err, -EINVAL);
	metrics_done(&m);
	metrics_family(&m, "roost_things_total", METRIC_GAUGE, "A gauge with it.");
	assert_int_equal(m.err, -EINVAL);
	metrics_done(&m);
	metrics_count(&m, NULL, 1);
	assert_int_equal(m.err, -EINVAL);
	metrics_done(&m);
	metrics_family(&m, "roost_x", METRIC_GAUGE, "X.");
	metrics_count(&m, LABELS({ "Pool", "web" }), 1);
	assert_int_equal(m.err, -EINVAL);
	metrics_done(&m);
	metrics_family(&m, "roost_x", METRIC_GAUGE, "X.");
	metrics_histogram(&m, NULL, &h);
	assert_int_equal(m.err, -EINVAL);
	metrics_done(&m);
}

static void a_long_text_grows(void **unused)
{
	struct metrics m = { 0 };

	metrics_family(&m, "roost_x", METRIC_GAUGE, "X.");
	for (unsigned i = 0; i < 10000; i++)
		metrics_count(&m, LABELS({ "session", "a-rather-long-name-of-a-session" }), i);
	assert_int_equal(m.err, 0);
	assert_int_equal(m.len, strlen(m.text));
	assert_true(m.len > 400000);
	metrics_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_family_has_its_head_once),
		cmocka_unit_test(what_would_end_a_line_or_a_label_is_escaped),
		cmocka_unit_test(numbers_are_told_exactly),
		cmocka_unit_test(buckets_add_up),
		cmocka_unit_test(a_mistake_makes_the_text_void),
		cmocka_unit_test(a_long_text_grows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
