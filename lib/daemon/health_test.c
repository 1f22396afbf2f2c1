/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/daemon/health.h"

static char logged[2048];
static unsigned changes;

static void keep(const struct log_record *record)
{
	size_t n = strlen(logged);

	snprintf(logged + n, sizeof(logged) - n, "%s %s: %s\n", log_level_name(record->level),
		 record->part, record->text);
}

static void count(void *arg)
{
	changes++;
}

static int fresh(void **state)
{
	struct health *h;

	logged[0] = '\0';
	changes = 0;
	log_set_sink(keep);
	if (health_new(count, NULL, &h) < 0)
		return -1;
	*state = h;
	return 0;
}

static int done(void **state)
{
	health_free(*state);
	log_set_sink(log_to_stderr);
	return 0;
}

static void expect_logged(const char *want)
{
	assert_string_equal(logged, want);
	logged[0] = '\0';
}

static void expect_list(const struct health *h, const char *want)
{
	char text[512] = "";
	size_t n;
	const struct health_entry *v = health_list(h, &n);

	for (size_t i = 0; i < n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s=%s ", v[i].part,
			 v[i].reason);
	assert_string_equal(text, want);
}

static void a_trouble_is_logged_once_and_again_when_it_changes_or_ends(void **state)
{
	struct health *h = *state;

	for (int i = 0; i < 5; i++)
		health_set(h, "etcd", LOG_LEVEL_ERROR, "no answer for %d members", 3);
	expect_logged("error etcd: no answer for 3 members\n");
	assert_int_equal(changes, 1);
	health_set(h, "etcd", LOG_LEVEL_ERROR, "no leader");
	expect_logged("error etcd: no leader\n");
	health_clear(h, "etcd");
	health_clear(h, "etcd");
	expect_logged("info etcd: recovered from: no leader\n");
	assert_int_equal(changes, 3);
	assert_null(health_reason(h, "etcd"));
}

static void errors_come_first_then_parts_in_order(void **state)
{
	struct health *h = *state;

	for (int i = 0; i < 9; i++) {
		char part[16];

		snprintf(part, sizeof(part), "pool/%d", 8 - i);
		health_set(h, part, LOG_LEVEL_WARNING, "%d", 8 - i);
	}
	health_set(h, "z", LOG_LEVEL_ERROR, "bad");
	expect_list(h, "z=bad pool/0=0 pool/1=1 pool/2=2 pool/3=3 pool/4=4 pool/5=5 pool/6=6 "
		       "pool/7=7 pool/8=8 ");
	health_set(h, "pool/5", LOG_LEVEL_ERROR, "worse");
	health_clear(h, "z");
	health_clear(h, "pool/0");
	expect_list(h, "pool/5=worse pool/1=1 pool/2=2 pool/3=3 pool/4=4 pool/6=6 pool/7=7 "
		       "pool/8=8 ");
}

static void a_reworded_trouble_keeps_its_since(void **state)
{
	struct health *h = *state;
	struct health_entry *v;
	size_t n;

	health_set(h, "etcd", LOG_LEVEL_ERROR, "one");
	v = (struct health_entry *)(uintptr_t)health_list(h, &n);
	strcpy(v[0].since, "2000-01-01T00:00:00Z");
	health_set(h, "etcd", LOG_LEVEL_WARNING, "two");
	assert_string_equal(health_list(h, &n)[0].since, "2000-01-01T00:00:00Z");
	assert_int_equal(n, 1);
	health_clear(h, "etcd");
	health_set(h, "etcd", LOG_LEVEL_ERROR, "three");
	assert_string_not_equal(health_list(h, &n)[0].since, "2000-01-01T00:00:00Z");
}

static void a_sweep_clears_what_was_not_set_again(void **state)
{
	struct health *h = *state;

	health_set(h, "pool/a", LOG_LEVEL_WARNING, "x");
	health_set(h, "pool/b", LOG_LEVEL_WARNING, "x");
	health_set(h, "etcd", LOG_LEVEL_WARNING, "x");
	health_sweep(h, "pool/");
	expect_list(h, "etcd=x pool/a=x pool/b=x ");
	health_set(h, "pool/b", LOG_LEVEL_WARNING, "x");
	health_sweep(h, "pool/");
	expect_list(h, "etcd=x pool/b=x ");
	health_sweep(h, "pool/");
	expect_list(h, "etcd=x ");
}

static void a_sweep_of_one_part_leaves_those_that_begin_like_it(void **state)
{
	struct health *h = *state;

	health_set(h, "spec/n1", LOG_LEVEL_WARNING, "x");
	health_set(h, "spec/n10", LOG_LEVEL_WARNING, "x");
	health_sweep(h, "spec/n1");
	health_sweep(h, "spec/n1");
	expect_list(h, "spec/n10=x ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_trouble_is_logged_once_and_again_when_it_changes_or_ends, fresh, done),
		cmocka_unit_test_setup_teardown(errors_come_first_then_parts_in_order, fresh, done),
		cmocka_unit_test_setup_teardown(a_reworded_trouble_keeps_its_since, fresh, done),
		cmocka_unit_test_setup_teardown(a_sweep_clears_what_was_not_set_again, fresh, done),
		cmocka_unit_test_setup_teardown(a_sweep_of_one_part_leaves_those_that_begin_like_it,
						fresh, done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
