/* SPDX-License-Identifier: Apache-2.0 */
/* The language where the specification's own cases are silent, strictness, errors, limits. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "confd/mustache/mustache_world.h"

/* --- language ------------------------------------------------------------------------------- */

static void a_text_without_tags_is_itself(void **unused)
{
	expect("", "{}", "");
	expect("protocol { }\r\n\n  } }}\n", "{}", "protocol { }\r\n\n  } }}\n");
	expect("{ {x}} }", "{}", "{ {x}} }");
}

static void white_space_in_tags_does_not_matter(void **unused)
{
	expect("{{ x }}{{\tx\n}}{{{ x }}}{{ & x }}{{ # x }}{{ . }}{{ / x }}", "{\"x\":1}", "11111");
}

static void values_print_as_in_the_data(void **unused)
{
	expect("{{x}}", "{\"x\":1.21}", "1.21");
	expect("{{x}}", "{\"x\":1.50}", "1.50");
	expect("{{x}}", "{\"x\":1e3}", "1e3");
	expect("{{x}}", "{\"x\":-9223372036854775808}", "-9223372036854775808");
	expect("{{x}}", "{\"x\":18446744073709551615}", "18446744073709551615");
	expect("{{x}} {{y}}", "{\"x\":true,\"y\":false}", "true false");
	expect("[{{x}}]", "{\"x\":\"\"}", "[]");
	expect("{{x}}", "{\"x\":\"{{y}}\",\"y\":1}", "{{y}}");
}

static void computed_numbers_print_as_short_as_they_can(void **unused)
{
	AUTO(json_put) struct json_object *data = json_object_new_object();

	json_object_object_add(data, "a", json_object_new_double(0.1));
	json_object_object_add(data, "b", json_object_new_double(1.0 / 3));
	json_object_object_add(data, "c", json_object_new_double(4));
	expect_of(&(struct world){ .v = { { "t", "{{a}} {{b}} {{c}}" } } }, data, &verbatim,
		  "0.1 0.3333333333333333 4");
}

static void bytes_that_are_no_text_pass(void **unused)
{
	AUTO(json_put) struct json_object *data = json_object_new_object();
	const struct mustache_options o = { 0 };
	struct world world = { .v = { { "t", "a{{x}}c" } } };
	AUTO(mustache_set_free) struct mustache_set *set = world_set(&world);
	AUTO(free) char *text = NULL;
	size_t len;

	json_object_object_add(data, "x", json_object_new_string_len("\0\xff", 2));
	assert_int_equal(mustache_render(set, "t", data, &o, &text, &len, NULL), 0);
	assert_int_equal(len, 4);
	assert_memory_equal(text,
			    "a\0\xff"
			    "c",
			    5);
}

static void html_is_escaped_only_where_asked_for(void **unused)
{
	const struct mustache_options html = { .html = true };
	AUTO(json_put) struct json_object *data = json_of("{\"x\":\"<a & \\\"b\\\">\"}");

	expect("{{x}}{{{x}}}{{&x}}", "{\"x\":\"<&>\"}", "<&><&><&>");
	expect_of(&(struct world){ .v = { { "t", "{{x}}|{{{x}}}" } } }, data, &html,
		  "&lt;a &amp; &quot;b&quot;&gt;|<a & \"b\">");
}

static void only_absence_null_false_and_the_empty_list_are_false(void **unused)
{
	const char *truth = "{{#x}}yes{{/x}}{{^x}}no{{/x}}";

	expect(truth, "{}", "no");
	expect(truth, "{\"x\":null}", "no");
	expect(truth, "{\"x\":false}", "no");
	expect(truth, "{\"x\":[]}", "no");
	expect(truth, "{\"x\":0}", "yes");
	expect(truth, "{\"x\":\"\"}", "yes");
	expect(truth, "{\"x\":{}}", "yes");
	expect(truth, "{\"x\":[false,null]}", "yesyes");
}

static void a_null_inside_hides_what_is_outside(void **unused)
{
	expect("{{#a}}[{{x}}]{{/a}}", "{\"a\":{\"x\":null},\"x\":1}", "[]");
	expect("{{#a}}[{{x}}]{{/a}}", "{\"a\":{},\"x\":1}", "[1]");
}

static void delimiters_may_be_anything_and_end_with_the_template(void **unused)
{
	const struct world world = {
		.v = { { "t", "{{=<< >>=}}<<x>><<{x}>><<&x>>{{x}}<<>p>><<={{ }}=>>{{x}}" },
		       { "p", "{{x}}<<x>>" } }
	};

	expect_world(&world, "{\"x\":1}", "111{{x}}1<<x>>1");
	expect("{{=| |=}}|#x||.||/x||! c |", "{\"x\":1}", "1");
}

/* --- lines ---------------------------------------------------------------------------------- */

static void only_one_tag_in_a_line_takes_the_line_with_it(void **unused)
{
	expect("a\n{{#x}}\nb\n{{/x}}\nc\n", "{\"x\":1}", "a\nb\nc\n");
	expect("a\n \t{{!c}} \t\r\nb", "{}", "a\nb");
	expect("a\n{{#x}}{{/x}}\nb\n", "{\"x\":1}", "a\n\nb\n");
	expect("a\n{{!c}} {{!d}}\nb\n", "{}", "a\n \nb\n");
	expect("a\n{{x}}\nb\n", "{\"x\":\"\"}", "a\n\nb\n");
}

static void indentation_goes_before_lines_but_not_into_values(void **unused)
{
	const struct world world = {
		.v = { { "t", "a {\n\t{{>p}}\n}\n" },
		       { "p", "b {\n\n{{x}}\n\r\n{{#l}}\n  {{>q}}\n{{/l}}\n{{#x}}c{{/x}}\n}\n" },
		       { "q", "{{.}};\nd\n" } }
	};

	expect_world(&world, "{\"x\":\"1\\n2\",\"l\":[3,4]}",
		     "a {\n\tb {\n\n\t1\n2\n\r\n\t  3;\n\t  d\n\t  4;\n\t  d\n\tc\n\t}\n}\n");
}

static void a_partial_inside_a_line_is_not_indented(void **unused)
{
	const struct world world = {
		.v = { { "t", "  {{>p}}\n" }, { "p", "a {{>q}} b\n" }, { "q", "1\n2" } }
	};
	const struct world deep = { .v = { { "t", "\t{{>p}}\n" },
					   { "p", "a {{>q}}\nb\n" },
					   { "q", "1\n {{>r}}\n" },
					   { "r", "r\n" } } };

	expect_world(&world, "{}", "  a 1\n2 b\n");
	expect_world(&deep, "{}", "\ta 1\n r\n\n\tb\n");
}

/* --- partials that do not end --------------------------------------------------------------- */

static void recursion_without_end_is_an_error(void **unused)
{
	const struct world loop = { .v = { { "t", "a{{>t}}" } } };
	const struct world pair = { .v = { { "t", "{{<p}}{{/p}}" }, { "p", "\n {{>t}}\n" } } };
	const struct world block = { .v = { { "t", "{{<p}}{{$b}}{{<t}}{{/t}}{{/b}}{{/p}}" },
					    { "p", "{{$b}}{{/b}}" } } };

	expect_error(&loop, "{}", &verbatim, -ELOOP,
		     "t:1:2: sections, partials and parents are nested deeper than 64");
	expect_error(&pair, "{}", &verbatim, -ELOOP, NULL);
	expect_error(&block, "{}", &verbatim, -ELOOP, NULL);
}

static void depth_is_what_is_allowed(void **unused)
{
	const struct world world = { .v = { { "t", "{{#a}}{{^b}}{{>p}}{{/b}}{{/a}}" },
					    { "p", "{{$c}}x{{/c}}" } } };
	const struct world loop = { .v = { { "t", "{{#a}}\n  {{>t}}\n{{/a}}" } } };
	AUTO(json_put) struct json_object *data = json_of("{\"a\":1}");

	expect_of(&world, data, &(struct mustache_options){ .max_depth = 4 }, "x");
	expect_error(&world, "{\"a\":1}", &(struct mustache_options){ .max_depth = 3 }, -ELOOP,
		     "p:1:1: sections, partials and parents are nested deeper than 3");
	/* More would be unkind to the stack. */
	expect_error(&loop, "{\"a\":1}", &(struct mustache_options){ .max_depth = UINT32_MAX },
		     -ELOOP, "t:1:1: sections, partials and parents are nested deeper than 1024");
}

static void output_is_bounded(void **unused)
{
	const struct world text = { .v = { { "t", "12345" } } },
			   value = { .v = { { "t", "1\n {{x}}" } } };
	const struct world html = { .v = { { "t", "{{x}}" } } };
	const struct mustache_options five = { .max_output = 5 }, four = { .max_output = 4 };
	AUTO(json_put) struct json_object *data = json_of("{\"x\":\"45\"}");

	expect_of(&text, data, &five, "12345");
	expect_error(&text, "{}", &four, -EFBIG, "t:1:1: the output has more than 4 bytes");
	expect_of(&value, data, &five, "1\n 45");
	expect_error(&value, "{\"x\":\"45\"}", &four, -EFBIG,
		     "t:2:2: the output has more than 4 bytes");
	expect_error(&html, "{\"x\":\"&\"}",
		     &(struct mustache_options){ .html = true, .max_output = 4 }, -EFBIG, NULL);
}

static void work_without_output_is_bounded(void **unused)
{
	const struct world world = {
		.v = { { "t",
			 "{{#l}}{{#l}}{{#l}}{{#l}}{{#l}}{{#l}}{{#l}}{{#l}}{{#l}}{{#l}}{{#l}}{{#l}}"
			 "{{/l}}{{/l}}{{/l}}{{/l}}{{/l}}{{/l}}{{/l}}{{/l}}{{/l}}{{/l}}{{/l}}{{/"
			 "l}}" } }
	};

	expect_error(&world, "{\"l\":[1,2,3,4,5,6,7,8,9,10]}",
		     &(struct mustache_options){ .max_output = 1000 }, -EFBIG, NULL);
}

/* --- strictness ----------------------------------------------------------------------------- */

static void strictness_names_what_is_missing(void **unused)
{
	static const struct {
		const char *template, *data, *err;
	} cases[] = {
		{ "a\n  {{x}}", "{}", "t:2:3: \"x\" is not in the data" },
		{ "{{{x}}}", "{}", "t:1:1: \"x\" is not in the data" },
		{ "{{a.b.c}}", "{\"a\":{\"b\":{}}}",
		  "t:1:1: \"a.b.c\" is not in the data: \"a.b\" has no \"c\"" },
		{ "{{a.b.c}}", "{\"a\":1}",
		  "t:1:1: \"a.b.c\" is not in the data: \"a\" has no \"b\"" },
		{ "{{#a}}{{b.c}}{{/a}}", "{\"a\":{\"b\":{}},\"b\":{\"c\":1}}",
		  "t:1:7: \"b.c\" is not in the data: \"b\" has no \"c\"" },
		{ "{{x}}", "{\"x\":null}", "t:1:1: \"x\" is null" },
		{ "{{x}}", "{\"x\":[1]}", "t:1:1: \"x\" is a list, not a text or a number" },
		{ "{{x}}", "{\"x\":{}}", "t:1:1: \"x\" is an object, not a text or a number" },
		{ "{{>p}}", "{}", "t:1:1: there is no template \"p\"" },
		{ "\n\n {{<p}}\n{{/p}}", "{}", "t:3:2: there is no template \"p\"" },
		{ "{{>*p}}", "{}", "t:1:1: \"p\" is not in the data" },
		{ "{{>*p}}", "{\"p\":\"q\\u001b\"}", "t:1:1: there is no template \"q?\"" },
		{ "{{>*p}}", "{\"p\":\"\"}", "t:1:1: there is no template \"\"" },
		{ "{{>*p}}", "{\"p\":\"t\\u0000\"}", "t:1:1: there is no template \"t\"" },
		{ "{{=| |=}}\r\n\r\n\t|x|", "{}", "t:3:2: \"x\" is not in the data" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct world world = { .v = { { "t", cases[i].template } } };
		AUTO(json_put) struct json_object *data = json_of(cases[i].data);
		AUTO(mustache_set_free) struct mustache_set *set = world_set(&world);
		AUTO(free) char *text = NULL;
		size_t len;

		expect_error(&world, cases[i].data, &strict, -EINVAL, cases[i].err);
		/* The specification wants nothing of it in the output, and no error. */
		assert_int_equal(mustache_render(set, "t", data, &verbatim, &text, &len, NULL), 0);
	}
}

static void sections_may_ask_for_what_is_not_there(void **unused)
{
	const struct world world = {
		.v = { { "t",
			 "{{#a}}x{{/a}}{{^a.b}}y{{/a.b}}{{#n}}{{z}}{{/n}}{{^n}}{{e}}{{/n}}" } }
	};
	AUTO(json_put) struct json_object *data = json_of("{\"n\":null,\"e\":\"\"}");

	expect_of(&world, data, &strict, "y");
}

/* --- what is wrong with a template ---------------------------------------------------------- */

static void a_bad_template_is_refused_with_position(void **unused)
{
	static const struct {
		const char *template, *err;
	} cases[] = {
		{ "a\n b{{x", "t:2:3: the tag is not closed" },
		{ "{{{x}}", "t:1:1: the tag is not closed" },
		{ "{{!x", "t:1:1: the tag is not closed" },
		{ "{{=a b}}", "t:1:1: the tag is not closed" },
		{ "{{", "t:1:1: the tag is not closed" },
		{ "{{}}", "t:1:1: the tag has no name" },
		{ "{{# }}", "t:1:1: the tag has no name" },
		{ "{{>*}}", "t:1:1: the tag has no name" },
		{ "{{a b}}", "t:1:1: a name must not contain white space" },
		{ "{{{a}}{{{b}}}", "t:1:1: a name must not contain the closing delimiter" },
		{ "{{a..b}}", "t:1:1: a part of the dotted name is empty" },
		{ "{{.a}}", "t:1:1: a part of the dotted name is empty" },
		{ "{{a.}}", "t:1:1: a part of the dotted name is empty" },
		{ "{{=a=}}", "t:1:1: expected two delimiters with white space between them" },
		{ "{{= =}}", "t:1:1: expected two delimiters with white space between them" },
		{ "{{=a b c=}}", "t:1:1: there are more than two delimiters" },
		{ "{{=a= b=}}", "t:1:1: a delimiter must not contain '='" },
		{ "\n\n{{#x}}\n{{^y.z}}\n{{/y.z}}", "t:3:1: \"x\" is not ended" },
		{ "{{#x}}\n{{/y}}", "t:2:1: \"y\" ends here, but \"x\" of line 1 is open" },
		{ "{{#a.b}}{{/a}}", "t:1:9: \"a\" ends here, but \"a.b\" of line 1 is open" },
		{ "{{<*p}}{{/p}}", "t:1:8: \"p\" ends here, but \"p\" of line 1 is open" },
		{ "{{!\n\n}}{{/x}}", "t:3:3: \"x\" ends here, but nothing is open" },
		{ "{{#\nx\n}}{{/\x1b}}", "t:3:3: \"?\" ends here, but \"x\" of line 1 is open" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		expect_error(&(struct world){ .v = { { "t", cases[i].template } } }, "{}",
			     &verbatim, -EINVAL, cases[i].err);
}

static void a_bad_partial_is_refused_by_its_own_name(void **unused)
{
	const struct world world = { .v = { { "t", "a\n{{>p}}" }, { "p", "\n {{#x}}" } } };

	expect_error(&world, "{}", &verbatim, -EINVAL, "p:2:2: \"x\" is not ended");
}

static void an_absent_template_is_said_to_be_absent(void **unused)
{
	const struct world world = { .v = { { "other", "" } } };

	expect_error(&world, "{}", &verbatim, -ENOENT, "there is no template \"t\"");
}

static void what_loading_says_is_passed_on(void **unused)
{
	struct world world = { .v = { { "t", "{{>p}}" } }, .fail = "p" };

	expect_error(&world, "{}", &verbatim, -EACCES,
		     "template \"p\" cannot be read: the disk says no");
}

/* --- sets ----------------------------------------------------------------------------------- */

static void each_template_is_loaded_once(void **unused)
{
	struct world world = { .v = { { "t", "{{>p}}{{>p}}{{>*n}}{{>absent}}" },
				      { "p", "{{x}}" } } };
	AUTO(mustache_set_free) struct mustache_set *set = world_set(&world);
	AUTO(json_put) struct json_object *data = json_of("{\"x\":1,\"n\":\"p\"}");

	for (int i = 0; i < 3; i++) {
		AUTO(free) char *text = NULL;
		size_t len;

		assert_int_equal(mustache_render(set, "t", data, &verbatim, &text, &len, NULL), 0);
		assert_string_equal(text, "111");
	}
	assert_int_equal(world.loads, 2);
	assert_int_equal(world.misses, 1);
}

static int check(const struct world *world, struct err *err)
{
	AUTO(mustache_set_free) struct mustache_set *set = world_set(world);
	int r = mustache_check(set, "t", err);

	/* The second time finds what the first did. */
	assert_int_equal(mustache_check(set, "t", err), r);
	return r;
}

static void checking_follows_the_names_that_are_known(void **unused)
{
	struct err err = { "" };

	assert_int_equal(
		check(&(struct world){ .v = { { "t", "{{x}}{{#y}}{{>t}}{{/y}}{{>*z}}" } } }, &err),
		0);
	assert_int_equal(check(&(struct world){ .v = { { "x", "" } } }, &err), -ENOENT);
	assert_int_equal(check(&(struct world){ .v = { { "t", "{{#x}}{{<p}}{{/p}}{{/x}}" },
						       { "p", "\n{{>q}}" },
						       { "q", "a{{/x}}" } } },
			       &err),
			 -EINVAL);
	assert_string_equal(err.text, "q:1:2: \"x\" ends here, but nothing is open");
	assert_int_equal(check(&(struct world){ .v = { { "t", "{{>p}}{{>q}}" },
						       { "p", "{{>t}}" },
						       { "q", "{{>p}} {{>r}}" } } },
			       &err),
			 -EINVAL);
	assert_string_equal(err.text, "q:1:8: there is no template \"r\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_without_tags_is_itself),
		cmocka_unit_test(white_space_in_tags_does_not_matter),
		cmocka_unit_test(values_print_as_in_the_data),
		cmocka_unit_test(computed_numbers_print_as_short_as_they_can),
		cmocka_unit_test(bytes_that_are_no_text_pass),
		cmocka_unit_test(html_is_escaped_only_where_asked_for),
		cmocka_unit_test(only_absence_null_false_and_the_empty_list_are_false),
		cmocka_unit_test(a_null_inside_hides_what_is_outside),
		cmocka_unit_test(delimiters_may_be_anything_and_end_with_the_template),
		cmocka_unit_test(only_one_tag_in_a_line_takes_the_line_with_it),
		cmocka_unit_test(indentation_goes_before_lines_but_not_into_values),
		cmocka_unit_test(a_partial_inside_a_line_is_not_indented),
		cmocka_unit_test(recursion_without_end_is_an_error),
		cmocka_unit_test(depth_is_what_is_allowed),
		cmocka_unit_test(output_is_bounded),
		cmocka_unit_test(work_without_output_is_bounded),
		cmocka_unit_test(strictness_names_what_is_missing),
		cmocka_unit_test(sections_may_ask_for_what_is_not_there),
		cmocka_unit_test(a_bad_template_is_refused_with_position),
		cmocka_unit_test(a_bad_partial_is_refused_by_its_own_name),
		cmocka_unit_test(an_absent_template_is_said_to_be_absent),
		cmocka_unit_test(what_loading_says_is_passed_on),
		cmocka_unit_test(each_template_is_loaded_once),
		cmocka_unit_test(checking_follows_the_names_that_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
