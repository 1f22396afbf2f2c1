/* SPDX-License-Identifier: Apache-2.0 */
/* Parents and blocks, beyond the specification's own cases: lines, indentation, scope. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "confd/mustache/mustache_world.h"

#define BASE "a {\n  {{$extra}}{{/extra}}\n}\n"

static void a_place_for_additions_leaves_no_trace(void **unused)
{
	expect(BASE, "{}", "a {\n}\n");
	expect_world(&(struct world){ .v = { { "t", "{{<b}}{{$extra}}{{/extra}}{{/b}}" },
					     { "b", BASE } } },
		     "{}", "a {\n}\n");
	expect_world(&(struct world){ .v = { { "t", "{{<b}}{{$extra}}\n{{/extra}}{{/b}}" },
					     { "b", BASE } } },
		     "{}", "a {\n}\n");
}

static void an_addition_is_whole_lines_however_it_is_written(void **unused)
{
	static const char *const ways[] = {
		"{{<b}}{{$extra}}x;\ny;{{/extra}}{{/b}}\n",
		"{{<b}}{{$extra}}x;\ny;\n{{/extra}}{{/b}}\n",
		"{{<b}}\n{{$extra}}\nx;\ny;\n{{/extra}}\n{{/b}}\n",
		"{{<b}}\n\t{{$extra}}\n\t\tx;\n\t\ty;\n\t{{/extra}}\n{{/b}}\n",
		"  ignored {{<b}}\n {{$extra}} \r\n    x;\n    y;{{/extra}} ignored\n{{/b}}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		const char *want = i == 4 ? "  ignored a {\n  x;\n  y;\n}\n"
					  : "a {\n  x;\n  y;\n}\n";

		expect_world(&(struct world){ .v = { { "t", ways[i] }, { "b", BASE } } }, "{}",
			     want);
	}
}

static void a_line_that_is_added_ends_as_the_others(void **unused)
{
	expect_world(&(struct world){ .v = { { "t", "{{<b}}{{$x}}1{{/x}}{{/b}}" },
					     { "b", "a\r\n{{$x}}{{/x}}\r\nb\r\n" } } },
		     "{}", "a\r\n1\r\nb\r\n");
	expect_world(&(struct world){ .v = { { "t", "{{<b}}{{$x}}1{{/x}}{{/b}}" },
					     { "b", "a\n{{$x}}\nd\n{{/x}}" } } },
		     "{}", "a\n1");
}

static void a_replaced_block_keeps_lines_of_its_own(void **unused)
{
	const struct world world = { .v = { { "t", "{{<b}}{{$x}}1{{/x}}{{/b}}" },
					    { "b", "a\n{{$x}}\nd\n{{/x}}\nb\n" } } };

	expect_world(&world, "{}", "a\n1\nb\n");
}

static void what_is_replaced_takes_the_indentation_of_the_default(void **unused)
{
	const struct world world = { .v = { { "t",
					      "    {{<b}}\n{{$x}}\n1\n\n  2\n{{/x}}\n{{/b}}\n" },
					    { "b", "a\n{{$x}}\n\n\tdefault\n{{/x}}\nb\n" } } };

	expect_world(&world, "{}", "    a\n    \t1\n\n    \t  2\n    b\n");
}

static void a_block_inside_a_line_stays_inside(void **unused)
{
	const struct world world = { .v = { { "t", " {{>u}}\n" },
					    { "u", "{{<b}}\n  {{$x}}\n    1\n    2{{/x}}\n{{/b}}" },
					    { "b", "a {{$x}}default{{/x}} b\n" } } };

	expect_world(&world, "{}", " a 1\n 2 b\n");
}

static void nothing_before_it_leaves_it_inside(void **unused)
{
	const struct world world = {
		.v = { { "t", " {{<u}}{{$c}}{{/c}}{{/u}}\n" },
		       { "u", "{{<b}}\n{{$x}}\n{{$c}}\nd\n{{/c}}\n1\n2{{/x}}\n{{/b}}" },
		       { "b", "a {{$x}}{{/x}} b\n" } }
	};
	const struct world partial = { .v = { { "t", " {{>u}}\n" },
					      { "u",
						"{{<b}}\n{{$x}}\n{{>empty}}\n1\n2{{/x}}\n{{/b}}" },
					      { "b", "a {{$x}}{{/x}} b\n" },
					      { "empty", "" } } };

	expect_world(&world, "{}", " a 1\n 2 b\n");
	expect_world(&partial, "{}", " a 1\n 2 b\n");
}

static void sections_in_an_argument_keep_its_indentation(void **unused)
{
	const struct world world = { .v = { { "t", "{{<b}}\n{{$x}}\n  {{#l}}\n  {{.}}\n    "
						   "{{>p}}\n  {{/l}}\n{{/x}}\n{{/b}}" },
					    { "b", "{\n\t{{$x}}{{/x}}\n}\n" },
					    { "p", "p\nq\n" } } };

	expect_world(&world, "{\"l\":[1,2]}", "{\n\t1\n\t  p\n\t  q\n\t2\n\t  p\n\t  q\n}\n");
}

static void an_argument_may_hold_a_block_of_its_own_name(void **unused)
{
	const struct world world = { .v = { { "t", "{{<b}}{{$x}}[{{$x}}inner{{/x}}]{{/x}}{{/b}}" },
					    { "b", "{{$x}}{{/x}}" } } };
	const struct world above = { .v = { { "t", "{{<u}}{{$x}}mine{{/x}}{{/u}}" },
					    { "u", "{{<b}}{{$y}}[{{$x}}theirs{{/x}}]{{/y}}{{/b}}" },
					    { "b", "{{$y}}{{/y}}{{$x}}default{{/x}}" } } };

	expect_world(&world, "{}", "[inner]");
	expect_world(&above, "{}", "[mine]mine");
}

static void parents_may_be_named_by_the_data(void **unused)
{
	const struct world world = {
		.v = { { "t", "{{#l}}\n  {{< * . }}\n  {{$x}}{{.}}{{/x}}\n  {{/ * . }}\n{{/l}}\n" },
		       { "p", "p {{$x}}{{/x}}\n" },
		       { "q", "q {{$x}}{{/x}}\n" } }
	};

	expect_world(&world, "{\"l\":[\"p\",\"q\",\"r\"]}", "  p p\n  q q\n");
}

static void only_blocks_directly_inside_a_parent_are_arguments(void **unused)
{
	const struct world world = { .v = { { "t", "{{<b}}{{y}}{{#l}}\n{{$x}}1{{/x}}\n{{/"
						   "l}}{{>b}}{{<b}}{{$x}}2{{/x}}{{/b}}{{/b}}" },
					    { "b", "{{$x}}default{{/x}}" } } };
	AUTO(json_put) struct json_object *data = json_of("{\"l\":[1]}");

	expect_of(&world, data, &strict, "default");
}

static void a_parent_is_one_tag_of_its_line(void **unused)
{
	const struct world inside = { .v = { { "t", "  {{<b}}\n{{$x}}1{{/x}}{{/b}} c\n" },
					     { "b", "a{{$x}}{{/x}}\nb" } } };
	const struct world alone = { .v = { { "t", "  {{<b}}{{$x}}1{{/x}}{{/b}}  \nc\n" },
					    { "b", "a{{$x}}{{/x}}\nb" } } };

	expect_world(&inside, "{}", "  a1\nb c\n");
	expect_world(&alone, "{}", "  a1\n  bc\n");
}

static void errors_in_arguments_name_the_template_they_stand_in(void **unused)
{
	const struct world world = { .v = { { "t", "{{<b}}\n{{$x}}{{y}}{{/x}}{{/b}}" },
					    { "b", "\n\n\n{{$x}}{{/x}}" } } };

	expect_error(&world, "{}", &strict, -EINVAL, "t:2:7: \"y\" is not in the data");
}

static void the_example_of_the_documentation_holds(void **unused)
{
	static const char base[] = "protocol device {\n"
				   "  {{$device}}\n"
				   "  scan time 10;\n"
				   "  {{/device}}\n"
				   "  {{$device_more}}{{/device_more}}\n"
				   "}\n";
	static const char own[] = "{{<bird.conf}}\n"
				  "{{$device_more}}\n"
				  "interface \"eth*\" { preferred 192.0.2.1; };\n"
				  "{{/device_more}}\n"
				  "{{/bird.conf}}\n";

	expect_world(&(struct world){ .v = { { "t", own }, { "bird.conf", base } } }, "{}",
		     "protocol device {\n"
		     "  scan time 10;\n"
		     "  interface \"eth*\" { preferred 192.0.2.1; };\n"
		     "}\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_place_for_additions_leaves_no_trace),
		cmocka_unit_test(an_addition_is_whole_lines_however_it_is_written),
		cmocka_unit_test(a_line_that_is_added_ends_as_the_others),
		cmocka_unit_test(a_replaced_block_keeps_lines_of_its_own),
		cmocka_unit_test(what_is_replaced_takes_the_indentation_of_the_default),
		cmocka_unit_test(a_block_inside_a_line_stays_inside),
		cmocka_unit_test(nothing_before_it_leaves_it_inside),
		cmocka_unit_test(sections_in_an_argument_keep_its_indentation),
		cmocka_unit_test(an_argument_may_hold_a_block_of_its_own_name),
		cmocka_unit_test(parents_may_be_named_by_the_data),
		cmocka_unit_test(only_blocks_directly_inside_a_parent_are_arguments),
		cmocka_unit_test(a_parent_is_one_tag_of_its_line),
		cmocka_unit_test(errors_in_arguments_name_the_template_they_stand_in),
		cmocka_unit_test(the_example_of_the_documentation_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
