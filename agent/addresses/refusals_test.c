/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/addresses/refusals.h"

#define WINDOW 300000

static struct refused_pod pod(const char *name, const char *container)
{
	return (struct refused_pod){ "default", name, container, "eth0" };
}

static void add(struct refusals *r, const char *name, const char *container, uint64_t now)
{
	const struct refused_pod p = pod(name, container);

	assert_int_equal(refusals_add(r, &p, CNI_CODE_NO_ADDRESS, "pool web is full", false, now),
			 0);
}

static void expect(const struct refusals *r, uint64_t now, const char *name, size_t pods)
{
	size_t n;
	const struct refusal *f = refusals_recent(r, now, WINDOW, &n);

	assert_int_equal(n, pods);
	if (name)
		assert_string_equal(f->who[1], name);
	else
		assert_null(f);
}

static void a_refusal_counts_until_its_pod_has_an_address_or_it_is_old(void **unused)
{
	AUTO_DONE(refusals_done) struct refusals r = { 0 };
	const struct refused_pod again = pod("a", "c9");

	expect(&r, 0, NULL, 0);
	add(&r, "a", "c1", 1000);
	add(&r, "a", "c2", 2000);
	add(&r, "b", "c3", 3000);
	expect(&r, 3000, "b", 2);
	/* With another container. */
	assert_true(refusals_over(&r, &again));
	assert_false(refusals_over(&r, &again));
	expect(&r, 3000, "b", 1);
	expect(&r, 3000 + WINDOW, "b", 1);
	expect(&r, 3001 + WINDOW, NULL, 0);
}

static void an_expected_one_is_kept_and_does_not_count(void **unused)
{
	AUTO_DONE(refusals_done) struct refusals r = { 0 };
	const struct refused_pod p = pod("a", "c1");
	AUTO(json_put) struct json_object *all = NULL;
	struct tree t = tree_new();

	refusals_add(&r, &p, CNI_CODE_TRY_AGAIN, "drained", true, 0);
	expect(&r, 0, NULL, 0);
	refusals_write(&r, "default/a", &t);
	assert_int_equal(tree_end(&t, &all), 0);
	assert_int_equal(json_object_array_length(json_object_object_get(all, "refusals")), 1);
}

static void the_oldest_is_forgotten(void **unused)
{
	AUTO_DONE(refusals_done) struct refusals r = { 0 };
	AUTO(json_put) struct json_object *all = NULL;
	struct tree t = tree_new();
	struct json_object *list;
	char name[16];

	for (unsigned i = 0; i < REFUSALS_MAX + 3; i++) {
		snprintf(name, sizeof(name), "p%u", i);
		add(&r, name, name, i);
	}
	expect(&r, REFUSALS_MAX + 3, "p258", REFUSALS_MAX);
	refusals_write(&r, NULL, &t);
	assert_int_equal(tree_end(&t, &all), 0);
	list = json_object_object_get(all, "refusals");
	assert_int_equal(json_object_array_length(list), REFUSALS_MAX);
	assert_string_equal(json_object_get_string(json_object_object_get(
				    json_object_array_get_idx(list, REFUSALS_MAX - 1), "pod")),
			    "p3");
}

static void one_without_kubernetes_is_named_by_its_container(void **unused)
{
	char text[REFUSED_TEXT];
	const struct refused_pod p = { "", "", "c1", "eth0" }, q = { "ns", "p", "c1", "eth0" };

	assert_string_equal(refused_pod_print(&p, text), "container c1");
	assert_string_equal(refused_pod_print(&q, text), "ns/p");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refusal_counts_until_its_pod_has_an_address_or_it_is_old),
		cmocka_unit_test(an_expected_one_is_kept_and_does_not_count),
		cmocka_unit_test(the_oldest_is_forgotten),
		cmocka_unit_test(one_without_kubernetes_is_named_by_its_container),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
