/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "confd/key_tree.h"

struct pair {
	const char *key, *value;
};

static struct key_tree *make(const struct pair *pairs, size_t n)
{
	struct key_tree *t;

	assert_int_equal(key_tree_new(&t), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(
			key_tree_put(t, pairs[i].key, pairs[i].value, strlen(pairs[i].value)), 0);
	return t;
}

/* Without the names that are added, which have tests of their own. */
static void strip(struct json_object *o)
{
	if (json_object_is_type(o, json_type_array))
		return;
	json_object_object_del(o, "@list");
	json_object_object_del(o, "@name");
	json_object_object_del(o, "@last");
	json_object_object_foreach(o, name, member) {
		(void)name;
		if (json_object_is_type(member, json_type_object))
			strip(member);
	}
}

static void expect_tree(struct key_tree *t, const char *prefix, bool all, const char *want)
{
	AUTO(json_put) struct json_object *o = NULL;
	AUTO(free) char *text = NULL;

	assert_int_equal(key_tree_json(t, prefix, &o), 0);
	if (!all)
		strip(o);
	assert_int_equal(json_print(o, &text), 0);
	assert_string_equal(text, want);
}

#define PAIRS(...)                                                                                 \
	(const struct pair[]){ __VA_ARGS__ },                                                      \
		sizeof((const struct pair[]){ __VA_ARGS__ }) / sizeof(struct pair)
#define EXPECT(prefix, want, ...)                                                                  \
	do {                                                                                       \
		AUTO(key_tree_free) struct key_tree *t_ = make(PAIRS(__VA_ARGS__));                \
		expect_tree(t_, prefix, false, want);                                              \
	} while (0)

static void keys_are_folders(void **unused)
{
	EXPECT("/a/", "{\"b\":{\"c\":\"x\",\"d\":\"y\"},\"e\":\"z\"}", { "/a/e", "z" },
	       { "/a/b/d", "y" }, { "/a/b/c", "x" });
	EXPECT("/", "{\"a\":{\"b\":\"x\"}}", { "/a/b", "x" });
}

static void keys_outside_the_prefix_are_left_out(void **unused)
{
	EXPECT("/a/", "{\"b\":\"x\"}", { "/a/b", "x" }, { "/b/c", "y" }, { "/a", "z" });
}

static void values_that_are_json_are_parsed(void **unused)
{
	EXPECT("/",
	       "{\"array\":[1,2],\"false\":false,\"float\":1.50,\"int\":-5,"
	       "\"object\":{\"x\":{\"y\":null}},\"true\":true}",
	       { "/object", " {\"x\":{\"y\":null}}\n" }, { "/array", "[1,2]" }, { "/int", "-5" },
	       { "/float", "1.50" }, { "/true", "true" }, { "/false", "false" });
}

static void other_values_are_texts_byte_for_byte(void **unused)
{
	EXPECT("/",
	       "{\"a\":\"007\",\"b\":\"null\",\"c\":\"\\\"x\\\"\",\"d\":\"10.0.0.1\",\"e\":\"\","
	       "\"f\":\"{\\\"x\\\":1} y\",\"g\":\"99999999999999999999999\",\"h\":\"trueish\","
	       "\"i\":\" 5\",\"j\":\"{\",\"k\":\"1 2\",\"l\":\"-\"}",
	       { "/a", "007" }, { "/b", "null" }, { "/c", "\"x\"" }, { "/d", "10.0.0.1" },
	       { "/e", "" }, { "/f", "{\"x\":1} y" }, { "/g", "99999999999999999999999" },
	       { "/h", "trueish" }, { "/i", " 5" }, { "/j", "{" }, { "/k", "1 2" }, { "/l", "-" });
}

static void a_text_keeps_its_nul_and_its_bad_utf8(void **unused)
{
	AUTO(key_tree_free) struct key_tree *t = make(NULL, 0);
	AUTO(json_put) struct json_object *o = NULL;
	struct json_object *x;

	assert_int_equal(key_tree_put(t, "/x", "a\0b\xff", 4), 0);
	assert_int_equal(key_tree_json(t, "/", &o), 0);
	assert_true(json_object_object_get_ex(o, "x", &x));
	assert_int_equal(json_object_get_string_len(x), 4);
	assert_memory_equal(json_object_get_string(x), "a\0b\xff", 4);
}

static void a_key_that_is_a_folder_too_has_its_value_under_a_name(void **unused)
{
	EXPECT("/", "{\"a\":{\"@value\":\"x\",\"b\":\"y\"}}", { "/a", "x" }, { "/a/b", "y" });
	/* An object is a value as others are: its fields and the keys below it do not mix. */
	EXPECT("/", "{\"a\":{\"@value\":{\"b\":1},\"b\":\"y\"}}", { "/a", "{\"b\":1}" },
	       { "/a/b", "y" });
	/* The key between them in etcd's order changes nothing. */
	EXPECT("/", "{\"a\":{\"@value\":\"x\",\"b\":\"y\"},\"a-\":\"z\"}", { "/a", "x" },
	       { "/a-", "z" }, { "/a/b", "y" });
}

static void names_are_kept_verbatim(void **unused)
{
	EXPECT("/", "{\"\":{\"a b\":{\"\":\"x\"}},\"q\\\"\\n\":\"y\"}", { "//a b/", "x" },
	       { "/q\"\n", "y" });
}

static void a_key_of_very_many_parts_ends_in_one_name(void **unused)
{
	AUTO(key_tree_free) struct key_tree *t = make(NULL, 0);
	AUTO(json_put) struct json_object *o = NULL;
	struct json_object *in;
	char key[100001];

	memset(key, '/', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	assert_int_equal(key_tree_put(t, key, "x", 1), 0);
	assert_int_equal(key_tree_json(t, "/", &o), 0);
	in = o;
	for (int i = 1; i < TREE_DEPTH_MAX; i++)
		assert_true(json_object_object_get_ex(in, "", &in));
	assert_true(json_object_object_get_ex(in, key + TREE_DEPTH_MAX, NULL));
}

static void a_put_replaces_and_a_removed_key_leaves_no_folder(void **unused)
{
	AUTO(key_tree_free) struct key_tree *t = make(PAIRS({ "/a/b", "x" }, { "/c", "y" }));

	assert_int_equal(key_tree_put(t, "/c", "z", 1), 0);
	assert_int_equal(key_tree_count(t), 2);
	key_tree_remove(t, "/a/b");
	key_tree_remove(t, "/a/b");
	key_tree_remove(t, "/never");
	assert_int_equal(key_tree_count(t), 1);
	expect_tree(t, "/", false, "{\"c\":\"z\"}");
}

static void a_folder_can_be_walked_through(void **unused)
{
	AUTO(key_tree_free)
	struct key_tree *t = make(
		PAIRS({ "/n/b", "{\"ip\":\"2\"}" }, { "/n/a", "{\"ip\":\"1\"}" }));
	const char *one = "{\"ip\":\"1\",\"@name\":\"a\",\"@last\":false}",
		   *two = "{\"ip\":\"2\",\"@name\":\"b\",\"@last\":true}";
	char want[512];

	snprintf(want, sizeof(want), "{\"a\":%s,\"b\":%s,\"@list\":[%s,%s]}", one, two, one, two);
	/* Twice: what is added must not pile up. */
	expect_tree(t, "/n/", true, want);
	expect_tree(t, "/n/", true, want);
}

static void a_member_that_is_no_object_becomes_one_in_the_list(void **unused)
{
	AUTO(key_tree_free) struct key_tree *t = make(PAIRS({ "/a", "x" }, { "/b", "[1]" }));

	expect_tree(t, "/", true,
		    "{\"a\":\"x\",\"b\":[1],\"@list\":["
		    "{\"@value\":\"x\",\"@name\":\"a\",\"@last\":false},"
		    "{\"@value\":[1],\"@name\":\"b\",\"@last\":true}]}");
}

static void an_empty_tree_is_an_empty_folder(void **unused)
{
	AUTO(key_tree_free) struct key_tree *t = make(NULL, 0);

	expect_tree(t, "/", true, "{\"@list\":[]}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_folders),
		cmocka_unit_test(keys_outside_the_prefix_are_left_out),
		cmocka_unit_test(values_that_are_json_are_parsed),
		cmocka_unit_test(other_values_are_texts_byte_for_byte),
		cmocka_unit_test(a_text_keeps_its_nul_and_its_bad_utf8),
		cmocka_unit_test(a_key_that_is_a_folder_too_has_its_value_under_a_name),
		cmocka_unit_test(names_are_kept_verbatim),
		cmocka_unit_test(a_key_of_very_many_parts_ends_in_one_name),
		cmocka_unit_test(a_put_replaces_and_a_removed_key_leaves_no_folder),
		cmocka_unit_test(a_folder_can_be_walked_through),
		cmocka_unit_test(a_member_that_is_no_object_becomes_one_in_the_list),
		cmocka_unit_test(an_empty_tree_is_an_empty_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
