/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ipam/allocator/stock.h"

static const char *show(const struct spans *s)
{
	static char text[512];
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < s->n; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%llu-%llu", i ? " " : "",
				      (unsigned long long)s->v[i].first,
				      (unsigned long long)s->v[i].last);
	return text;
}

static void add(struct spans *s, unsigned first, unsigned last)
{
	assert_int_equal(spans_add(s, (struct span){ first, last }), 0);
}

static void cut(struct spans *s, unsigned first, unsigned last)
{
	assert_int_equal(spans_remove(s, (struct span){ first, last }), 0);
}

/* --- spans ---------------------------------------------------------------------------------- */

static void intervals_that_touch_are_joined(void **unused)
{
	struct spans s = { 0 };

	add(&s, 10, 19);
	add(&s, 30, 39);
	assert_string_equal(show(&s), "10-19 30-39");
	add(&s, 20, 20);
	assert_string_equal(show(&s), "10-20 30-39");
	add(&s, 21, 29);
	assert_string_equal(show(&s), "10-39");
	add(&s, 0, 5);
	add(&s, 50, 60);
	assert_string_equal(show(&s), "0-5 10-39 50-60");
	add(&s, 3, 55);
	assert_string_equal(show(&s), "0-60");
	spans_done(&s);
}

static void removing_splits_and_trims(void **unused)
{
	struct spans s = { 0 };

	add(&s, 0, 100);
	cut(&s, 50, 50);
	assert_string_equal(show(&s), "0-49 51-100");
	cut(&s, 0, 9);
	cut(&s, 91, 200);
	assert_string_equal(show(&s), "10-49 51-90");
	cut(&s, 40, 60);
	assert_string_equal(show(&s), "10-39 61-90");
	cut(&s, 40, 60);
	cut(&s, 0, 1000);
	assert_string_equal(show(&s), "");
	cut(&s, 1, 2);
	spans_done(&s);
}

static void two_sets_meet_in_their_common_part(void **unused)
{
	struct spans a = { 0 }, b = { 0 }, c = { 0 };
	address_count n;

	add(&a, 10, 20);
	add(&a, 30, 40);
	add(&a, 50, 60);
	add(&b, 0, 9);
	add(&b, 15, 35);
	add(&b, 60, 99);
	assert_int_equal(spans_intersect(&a, &b, &c), 0);
	assert_string_equal(show(&c), "15-20 30-35 60-60");
	assert_int_equal(spans_common_size(&a, &b), 13);
	assert_true(spans_first_common(&b, &a, &n));
	assert_int_equal(n, 15);
	assert_int_equal(spans_nth(&c, 0), 15);
	assert_int_equal(spans_nth(&c, 6), 30);
	assert_int_equal(spans_nth(&c, 12), 60);
	assert_true(spans_meet(&c, (struct span){ 36, 60 }));
	assert_false(spans_meet(&c, (struct span){ 36, 59 }));
	assert_int_equal(spans_intersect(&a, &a, &c), 0);
	cut(&c, 0, 100);
	assert_false(spans_first_common(&a, &c, &n));
	spans_done(&a);
	spans_done(&b);
	spans_done(&c);
}

static void the_ends_of_the_number_line_are_no_exception(void **unused)
{
	const struct prefix all = { .address.family = AF_INET6 };
	const address_count last = ~(address_count)0;
	struct spans s = { 0 };

	assert_int_equal(spans_add(&s, span_of(&all)), 0);
	assert_true(spans_size(&s) == last);
	assert_int_equal(spans_remove(&s, (struct span){ last, last }), 0);
	assert_int_equal(spans_remove(&s, (struct span){ 0, 0 }), 0);
	assert_true(s.n == 1 && s.v[0].first == 1 && s.v[0].last == last - 1);
	assert_int_equal(spans_add(&s, (struct span){ last, last }), 0);
	assert_int_equal(spans_add(&s, (struct span){ 0, 0 }), 0);
	assert_true(s.n == 1 && s.v[0].first == 0 && s.v[0].last == last);
	spans_done(&s);
}

static void numbers_and_addresses_go_both_ways(void **unused)
{
	struct address a, b;

	for (const char *const *t =
		     (const char *const[]){ "0.0.0.0", "10.1.0.255", "255.255.255.255",
					    "::", "fd00:1::ff", "ffff::ffff", NULL };
	     *t; t++) {
		assert_int_equal(address_parse(*t, &a), 0);
		b = address_of(a.family, number_of(&a));
		assert_int_equal(address_compare(&a, &b), 0);
	}
}

/* --- stock ---------------------------------------------------------------------------------- */

static struct stock stock_of(const char *text)
{
	struct prefix p;
	struct stock s;

	assert_int_equal(prefix_parse(text, &p), 0);
	assert_int_equal(stock_init(&s, &p), 0);
	return s;
}

/* What is picked in 0.0.0.0/28 from allowed, as "3 free". */
static const char *pick(const struct stock *s, const struct spans *allowed, int64_t rested)
{
	static const char *const names[] = { "none", "resting", "free" };
	static char text[64];
	address_count n = 99;
	int64_t at;
	enum pick p = stock_pick(s, allowed, rested, &n, &at);

	snprintf(text, sizeof(text), "%u %s", (unsigned)n, names[p]);
	return text;
}

static void take(struct stock *s, unsigned n)
{
	int64_t at;

	assert_int_equal(stock_take(s, n, &at), 0);
}

static void never_used_comes_before_released_and_lowest_first(void **unused)
{
	struct stock s = stock_of("0.0.0.0/30");
	struct spans all = { 0 };
	int64_t at;

	add(&all, 0, 15);
	assert_string_equal(pick(&s, &all, 0), "0 free");
	take(&s, 0);
	take(&s, 1);
	assert_true(stock_put(&s, 0, 5));
	assert_string_equal(pick(&s, &all, 100), "2 free");
	take(&s, 2);
	take(&s, 3);
	assert_string_equal(pick(&s, &all, 5), "0 free");
	assert_string_equal(pick(&s, &all, 4), "0 resting");
	assert_int_equal(stock_take(&s, 0, &at), 0);
	assert_int_equal(at, 5);
	assert_string_equal(pick(&s, &all, 100), "99 none");
	assert_int_equal(stock_take(&s, 0, &at), -EBUSY);
	assert_int_equal(stock_take(&s, 4, &at), -ERANGE);
	assert_false(stock_put(&s, 4, 0));
	stock_done(&s);
	spans_done(&all);
}

static void only_what_is_allowed_is_picked_and_counted(void **unused)
{
	struct stock s = stock_of("0.0.0.0/28");
	struct spans allowed = { 0 };
	struct address_counts c;

	add(&allowed, 4, 5);
	add(&allowed, 9, 200);
	assert_string_equal(pick(&s, &allowed, 0), "4 free");
	for (unsigned i = 0; i < 16; i++)
		take(&s, i);
	stock_put(&s, 0, 1);
	stock_put(&s, 9, 2);
	stock_put(&s, 4, 3);
	assert_string_equal(pick(&s, &allowed, 2), "9 free");
	stock_put(&s, 10, NEVER_USED);
	c = stock_count(&s, &allowed, 2);
	assert_int_equal(c.used, 12);
	assert_int_equal(c.free, 2);
	assert_int_equal(c.resting, 1);
	stock_done(&s);
	spans_done(&allowed);
}

static void what_is_put_back_gets_its_old_place(void **unused)
{
	struct stock s = stock_of("0.0.0.0/31");
	struct spans all = { 0 };

	add(&all, 0, 15);
	take(&s, 0);
	take(&s, 1);
	stock_put(&s, 1, 10);
	stock_put(&s, 0, 20);
	take(&s, 1);
	stock_put(&s, 1, 10);
	assert_string_equal(pick(&s, &all, 100), "1 free");
	take(&s, 1);
	stock_put(&s, 1, NEVER_USED);
	take(&s, 0);
	assert_string_equal(pick(&s, &all, 0), "1 free");
	stock_done(&s);
	spans_done(&all);
}

static void a_large_block_forgets_what_has_rested_long(void **unused)
{
	struct stock s = stock_of("fd00::/64");
	const address_count base = s.fresh.v[0].first;
	int64_t at;

	for (unsigned i = 0; i < 3 * STOCK_REMEMBERED; i++) {
		assert_int_equal(stock_take(&s, base + i, &at), 0);
		assert_true(stock_put(&s, base + i, i));
		/* Each rests 10. */
		stock_forget(&s, (int64_t)i - 10);
	}
	assert_int_equal(s.released.n, STOCK_REMEMBERED);
	assert_int_equal(s.fresh.n, 2);
	assert_int_equal(s.released.v[0].at, 2 * STOCK_REMEMBERED);
	/* What has not rested is not forgotten, however much there is. */
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(stock_take(&s, base + i, &at), 0);
		assert_true(stock_put(&s, base + i, 1000000));
		stock_forget(&s, 0);
	}
	assert_int_equal(s.released.n, STOCK_REMEMBERED + 100);
	stock_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(intervals_that_touch_are_joined),
		cmocka_unit_test(removing_splits_and_trims),
		cmocka_unit_test(two_sets_meet_in_their_common_part),
		cmocka_unit_test(the_ends_of_the_number_line_are_no_exception),
		cmocka_unit_test(numbers_and_addresses_go_both_ways),
		cmocka_unit_test(never_used_comes_before_released_and_lowest_first),
		cmocka_unit_test(only_what_is_allowed_is_picked_and_counted),
		cmocka_unit_test(what_is_put_back_gets_its_old_place),
		cmocka_unit_test(a_large_block_forgets_what_has_rested_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
