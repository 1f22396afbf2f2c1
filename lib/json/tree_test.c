/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/json/tree.h"

static void expect(struct tree *t, const char *want)
{
	AUTO(free) char *text = NULL;

	assert_int_equal(tree_end_text(t, &text), 0);
	assert_string_equal(text, want);
}

static void members_come_in_order(void **state)
{
	const struct address a = { .family = AF_INET, .bytes = { 10, 1, 2, 3 } },
			     no_address = { 0 };
	const struct prefix p = { .address = a, .length = 32 }, no_prefix = { 0 };
	struct tree t = tree_new();

	tree_text(&t, "text", "a/b");
	tree_text(&t, "empty", NULL);
	tree_some_text(&t, "absent", "");
	tree_some_text(&t, "absent", NULL);
	tree_some_text(&t, "some", "x");
	tree_printf(&t, "printed", "%d of %d", 1, 2);
	tree_number(&t, "number", INT64_MAX);
	tree_bool(&t, "bool", true);
	tree_address(&t, "address", &a);
	tree_address(&t, "absent", &no_address);
	tree_prefix(&t, "prefix", &p);
	tree_prefix(&t, "absent", &no_prefix);
	expect(&t, "{\"text\":\"a/b\",\"empty\":\"\",\"some\":\"x\",\"printed\":\"1 of 2\","
		   "\"number\":9223372036854775807,\"bool\":true,\"address\":\"10.1.2.3\","
		   "\"prefix\":\"10.1.2.3/32\"}");
}

static void what_is_opened_holds_what_follows(void **state)
{
	const char *const words[] = { "x", "y" };
	struct tree t = tree_new();

	tree_open(&t, "list", '[');
	for (int i = 0; i < 2; i++) {
		tree_open(&t, NULL, '{');
		tree_number(&t, "i", i);
		tree_close(&t);
	}
	tree_text(&t, NULL, "last");
	tree_close(&t);
	tree_texts(&t, "words", &(struct texts){ .v = (const char **)(uintptr_t)words, .n = 2 });
	tree_open(&t, "object", '{');
	tree_bool(&t, "left open", false);
	expect(&t, "{\"list\":[{\"i\":0},{\"i\":1},\"last\"],\"words\":[\"x\",\"y\"],"
		   "\"object\":{\"left open\":false}}");
}

static void trees_share_and_merge(void **state)
{
	AUTO(json_put) struct json_object *object = NULL;
	struct tree t = tree_new(), row = tree_new();

	tree_number(&row, "n", 1);
	tree_number(&row, "m", 2);
	assert_int_equal(tree_end(&row, &object), 0);
	tree_number(&t, "n", 0);
	tree_merge(t.object, object);
	tree_share(&t, "row", object);
	tree_share(&t, "nothing", NULL);
	expect(&t, "{\"n\":1,\"m\":2,\"row\":{\"n\":1,\"m\":2}}");
}

static void one_failure_fails_the_whole(void **state)
{
	struct json_object *object = NULL;
	struct tree t = tree_new();

	tree_open(&t, "inner", '{');
	tree_add(&t, "x", NULL);
	tree_open(&t, "y", '[');
	tree_text(&t, NULL, "z");
	tree_close(&t);
	tree_close(&t);
	tree_text(&t, "after", "");
	assert_int_equal(tree_end(&t, &object), -ENOMEM);
	assert_null(object);
}

static void too_deep_a_tree_fails(void **state)
{
	struct json_object *object = NULL;
	struct tree t = tree_new();

	for (int i = 0; i < JSON_DEPTH_MAX + 3; i++)
		tree_open(&t, "x", '{');
	for (int i = 0; i < JSON_DEPTH_MAX + 3; i++)
		tree_close(&t);
	assert_int_equal(tree_end(&t, &object), -ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_come_in_order),
		cmocka_unit_test(what_is_opened_holds_what_follows),
		cmocka_unit_test(trees_share_and_merge),
		cmocka_unit_test(one_failure_fails_the_whole),
		cmocka_unit_test(too_deep_a_tree_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
