/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "controller/decide/decide_routes.h"

#define DELETING "\"deleting\":\"2026-11-16T02:45:55Z\""
#define APPLIED  "{\"subnet\":\"10.9.0.0/16\"}"
#define FAILED   "{\"error\":\"no gateway\"}"

struct entry {
	const char *key, *value;
};

/* Each key was written at the revision of its place in the list, from 1 on. */
static void fill(struct mirror *m, const struct entry *v)
{
	for (int64_t i = 0; v[i].key; i++) {
		const struct store_kv kv = { .value = v[i].value,
					     .value_len = strlen(v[i].value),
					     .create_revision = i + 1,
					     .mod_revision = i + 1 };

		assert_int_equal(mirror_put(m, v[i].key, &kv), 0);
	}
}

static struct routes decide(const struct entry *v, const char *want)
{
	AUTO_DONE(mirror_done) struct mirror m = { 0 };
	AUTO_DONE(plans_done) struct plans plans = { 0 };
	struct routes r = { .records = 99 };
	char *text;

	fill(&m, v);
	routes_decide(&r, &m, &plans);
	assert_false(plans_failed(&plans));
	text = plans_print(&plans);
	assert_string_equal(text, want);
	free(text);
	return r;
}
#define DECIDES(want, ...) decide((const struct entry[]){ __VA_ARGS__, { NULL, NULL } }, want)

static void what_is_in_place_is_counted_and_left(void **unused)
{
	struct routes r = DECIDES(
		"", { "static-route/a", "{\"subnet\":\"10.9.0.0/16\"}" },
		{ "static-route/b", "{\"subnet\":7}" }, { "node/n1", "{}" }, { "removed/n2", "{}" },
		{ "status/node/n3", "{}" }, { "status/static-route/a/n1", APPLIED },
		{ "status/static-route/a/n2", FAILED }, { "status/static-route/a/n3", "{}" },
		{ "status/static-route/b/n1", "damaged" });

	assert_int_equal(r.records, 2);
	assert_int_equal(r.invalid, 1);
	assert_int_equal(r.in_error, 2);
	assert_int_equal(r.deleting, 0);
	assert_int_equal(r.applied, 1);
	assert_int_equal(r.errors, 2);
}

static void a_marked_record_goes_with_its_last_report(void **unused)
{
	struct routes r;

	r = DECIDES("", { "static-route/a", "{\"subnet\":\"10.9.0.0/16\"," DELETING "}" },
		    { "node/n1", "{}" }, { "status/static-route/a/n1", APPLIED });
	assert_int_equal(r.deleting, 1);
	DECIDES("static-route/a:\nif static-route/a = 1\nif status/static-route/a/* before 1\n"
		"delete static-route/a\n",
		{ "static-route/a", "{\"subnet\":\"10.9.0.0/16\"," DELETING "}" },
		{ "node/n1", "{}" }, { "status/static-route/a.b/n1", APPLIED },
		{ "static-route/a.b", "{\"subnet\":\"10.9.0.0/16\"}" });
	/* One that is wrong elsewhere too. */
	DECIDES("static-route/a:\nif static-route/a = 1\nif status/static-route/a/* before 1\n"
		"delete static-route/a\n",
		{ "static-route/a", "{\"nodeSelector\":7," DELETING "}" });
}

static void a_report_without_a_record_goes(void **unused)
{
	DECIDES("static-route/a:\nif static-route/a absent\ndelete status/static-route/a/n1\n"
		"delete status/static-route/a/n2\n",
		{ "node/n1", "{}" }, { "status/static-route/a/n1", APPLIED },
		{ "status/static-route/a/n2", APPLIED }, { "status/static-route/b/n1", APPLIED },
		{ "static-route/b", "{\"subnet\":\"10.9.0.0/16\"}" },
		{ "status/static-route/A/n1", "not ours" });
}

static void a_report_of_an_unknown_node_goes(void **unused)
{
	DECIDES("status/static-route/a/n2:\nif status/static-route/a/n2 = 4\nif node/n2 absent\n"
		"if status/node/n2 absent\nif removed/n2 absent\n"
		"delete status/static-route/a/n2\n",
		{ "static-route/a", "{\"subnet\":\"10.9.0.0/16\"}" }, { "node/n1", "{}" },
		{ "status/static-route/a/n1", APPLIED }, { "status/static-route/a/n2", APPLIED });
}

static void the_reports_of_one_node_are_found_under_every_name(void **unused)
{
	AUTO_DONE(mirror_done) struct mirror m = { 0 };
	AUTO_DONE(plans_done) struct plans plans = { 0 };
	struct plan *plan = plans_add(&plans, "node/n1");
	char *text;

	fill(&m, (const struct entry[]){ { "status/static-route/a/n0", APPLIED },
					 { "status/static-route/a/n1", APPLIED },
					 { "status/static-route/a/n11", APPLIED },
					 { "status/static-route/b-c/n2", APPLIED },
					 { "status/static-route/b.c/n1", FAILED },
					 { "status/static-route/c/n1", "damaged" },
					 { NULL, NULL } });
	assert_true(routes_take_node(&plans, plan, &m, "n1"));
	text = plans_print(&plans);
	assert_string_equal(text,
			    "node/n1:\ndelete status/static-route/a/n1\n"
			    "delete status/static-route/b.c/n1\ndelete status/static-route/c/n1\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_in_place_is_counted_and_left),
		cmocka_unit_test(a_marked_record_goes_with_its_last_report),
		cmocka_unit_test(a_report_without_a_record_goes),
		cmocka_unit_test(a_report_of_an_unknown_node_goes),
		cmocka_unit_test(the_reports_of_one_node_are_found_under_every_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
