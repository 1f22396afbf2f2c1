/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/json/selector.h"

#define LABELS(...)                                                                                \
	(&(struct labels){ (const struct label[]){ __VA_ARGS__ },                                  \
			   sizeof((const struct label[]){ __VA_ARGS__ }) / sizeof(struct label) })

static const struct labels none = { 0 };

/* What "+" and "-" stand for below: the node matches or not. */
static void expect(const char *text, const struct labels *labels, char want)
{
	AUTO(selector_free) struct selector *s = NULL;
	struct err err;

	if (selector_parse(text, &s, &err) < 0)
		fail_msg("\"%s\" refused: %s", text, err.text);
	if (selector_matches(s, labels) != (want == '+'))
		fail_msg("\"%s\" should be %c", text, want);
}

static void expect_error(const char *text, const char *want)
{
	struct selector *s = NULL;
	struct err err;

	assert_int_equal(selector_parse(text, &s, &err), -EINVAL);
	assert_null(s);
	assert_string_equal(err.text, want);
	/* Those who do not care for the words may leave them out. */
	assert_int_equal(selector_parse(text, &s, NULL), -EINVAL);
}

/* n times what, then rest. */
static char *repeated(const char *what, size_t n, const char *rest)
{
	size_t length = strlen(what);
	char *text = malloc(n * length + strlen(rest) + 1);

	assert_non_null(text);
	for (size_t i = 0; i < n; i++)
		memcpy(text + i * length, what, length);
	strcpy(text + n * length, rest);
	return text;
}

/* --- meaning -------------------------------------------------------------------------------- */

static void the_empty_selector_means_all(void **unused)
{
	expect("", &none, '+');
	expect(" \t\r\n", &none, '+');
	expect("all()", &none, '+');
	expect("", LABELS({ "zone", "a" }), '+');
	assert_true(selector_matches(NULL, &none));
}

static void equal_and_unequal_compare_whole_values(void **unused)
{
	const struct labels *node = LABELS({ "zone", "ab" });

	expect("zone == 'ab'", node, '+');
	expect("zone == 'a'", node, '-');
	expect("zone == 'abc'", node, '-');
	expect("zone == 'AB'", node, '-');
	expect("zone == ''", node, '-');
	expect("zone != 'ab'", node, '-');
	expect("zone != 'a'", node, '+');
}

static void keys_compare_whole(void **unused)
{
	expect("has(zone)", LABELS({ "zon", "a" }, { "zones", "a" }, { "Zone", "a" }), '-');
	expect("has(zone)", LABELS({ "other", "a" }, { "zone", "a" }), '+');
}

static void an_absent_label_is_unequal_to_everything(void **unused)
{
	expect("zone == 'a'", &none, '-');
	expect("zone == ''", &none, '-');
	expect("zone != 'a'", &none, '+');
	expect("zone != ''", &none, '+');
	expect("zone in {'a', ''}", &none, '-');
	expect("zone not in {'a', ''}", &none, '+');
	expect("has(zone)", &none, '-');
	expect("!has(zone)", &none, '+');
}

static void an_empty_value_is_a_value(void **unused)
{
	const struct labels *node = LABELS({ "gpu", "" });

	expect("has(gpu)", node, '+');
	expect("gpu == ''", node, '+');
	expect("gpu != \"\"", node, '-');
	expect("gpu in {''}", node, '+');
}

static void sets_hold_any_of_their_members(void **unused)
{
	const struct labels *node = LABELS({ "tier", "db" });

	expect("tier in {'web','db'}", node, '+');
	expect("tier in {'db','web'}", node, '+');
	expect("tier in {'web', 'cache'}", node, '-');
	expect("tier not in {'web','db'}", node, '-');
	expect("tier not in {'web'}", node, '+');
}

static void nothing_is_in_the_empty_set(void **unused)
{
	expect("tier in {}", LABELS({ "tier", "db" }), '-');
	expect("tier in { }", LABELS({ "tier", "" }), '-');
	expect("tier not in {}", LABELS({ "tier", "db" }), '+');
	expect("tier not in {}", &none, '+');
}

static void not_binds_tighter_than_and(void **unused)
{
	/* As !(has(a) && has(b)) this would hold. */
	expect("!has(a) && has(b)", LABELS({ "a", "" }), '-');
	expect("!(has(a) && has(b))", LABELS({ "a", "" }), '+');
	expect("!a == 'x' && has(b)", LABELS({ "a", "x" }), '-');
}

static void and_binds_tighter_than_or(void **unused)
{
	const struct labels *node = LABELS({ "a", "" });

	expect("has(a) || has(b) && has(c)", node, '+');
	expect("(has(a) || has(b)) && has(c)", node, '-');
	expect("has(c) && has(b) || has(a)", node, '+');
	expect("has(c) && (has(b) || has(a))", node, '-');
}

static void operators_follow_their_truth_tables(void **unused)
{
	expect("has(a) && has(a)", LABELS({ "a", "" }), '+');
	expect("has(a) && has(b)", LABELS({ "a", "" }), '-');
	expect("has(b) && has(a)", LABELS({ "a", "" }), '-');
	expect("has(b) && has(b)", LABELS({ "a", "" }), '-');
	expect("has(a) || has(a)", LABELS({ "a", "" }), '+');
	expect("has(a) || has(b)", LABELS({ "a", "" }), '+');
	expect("has(b) || has(a)", LABELS({ "a", "" }), '+');
	expect("has(b) || has(b)", LABELS({ "a", "" }), '-');
	expect("!!has(a)", LABELS({ "a", "" }), '+');
	expect("! ! !has(a)", LABELS({ "a", "" }), '-');
}

static void the_example_of_the_manual_works(void **unused)
{
	const char *text = "zone == 'a' && disk != 'hdd' && (tier in {'web','db'} || has(gpu))"
			   " && !has(old) && all()";

	expect(text, LABELS({ "zone", "a" }, { "tier", "web" }), '+');
	expect(text, LABELS({ "zone", "a" }, { "gpu", "2" }, { "disk", "ssd" }), '+');
	expect(text, LABELS({ "zone", "a" }), '-');
	expect(text, LABELS({ "zone", "a" }, { "tier", "web" }, { "disk", "hdd" }), '-');
	expect(text, LABELS({ "zone", "a" }, { "tier", "web" }, { "old", "" }), '-');
	expect(text, LABELS({ "zone", "b" }, { "tier", "web" }), '-');
}

/* --- notation ------------------------------------------------------------------------------- */

static void both_quotes_mean_the_same(void **unused)
{
	expect("zone == \"a\"", LABELS({ "zone", "a" }), '+');
	expect("zone in {\"b\", 'a'}", LABELS({ "zone", "a" }), '+');
}

static void blanks_are_needed_only_between_words(void **unused)
{
	const struct labels *node = LABELS({ "a", "x" });

	expect("a=='x'&&!has(b)||a in{'y','z'}", node, '+');
	expect(" ( a\t==\n'x' ) ", node, '+');
	expect("has ( a ) && all ( )", node, '+');
	expect("a not\tin { 'y' , 'z' }", node, '+');
	expect("a!='x'", node, '-');
}

static void keys_of_kubernetes_need_no_quotes(void **unused)
{
	const struct labels *node = LABELS({ "kubernetes.io/hostname", "node-1.example" },
					   { "node-role.kubernetes.io/control_plane", "" });

	expect("kubernetes.io/hostname == 'node-1.example'", node, '+');
	expect("has(node-role.kubernetes.io/control_plane)", node, '+');
	expect("has(kubernetes.io)", node, '-');
}

static void words_of_the_grammar_may_be_keys(void **unused)
{
	const struct labels *node = LABELS({ "in", "in" }, { "not", "a" }, { "has", "b" },
					   { "all", "c" });

	expect("in == 'in'", node, '+');
	expect("in in {'in'}", node, '+');
	expect("in not in {'in'}", node, '-');
	expect("not in {'a'}", node, '+');
	expect("not not in {'a'}", node, '-');
	expect("not == 'a'", node, '+');
	expect("has == 'b'", node, '+');
	expect("has(has)", node, '+');
	expect("has(in) && has(not) && has(all)", node, '+');
	expect("all != 'c'", node, '-');
	expect("all in {'c'} && all()", node, '+');
}

static void keys_and_values_may_be_as_long_as_promised(void **unused)
{
	AUTO(free) char *key = repeated("k", 317, ""), *value = repeated("v", 63, "");
	AUTO(free) char *long_key = repeated("k", 318, ""), *long_value = repeated("v", 64, "");
	char text[512];

	snprintf(text, sizeof(text), "%s == '%s'", key, value);
	expect(text, LABELS({ key, value }), '+');

	snprintf(text, sizeof(text), "!%s == 'v'", long_key);
	expect_error(text, "column 2: key longer than 317 bytes");
	snprintf(text, sizeof(text), "a == '%s'", long_value);
	expect_error(text, "column 6: string longer than 63 bytes");
}

static void the_character_sets_are_those_of_the_parser(void **unused)
{
	AUTO(free) char *key = repeated("k", 317, ""), *value = repeated("v", 63, "");
	AUTO(free) char *long_key = repeated("k", 318, ""), *long_value = repeated("v", 64, "");

	for (int c = 1; c < 256; c++) {
		char text[] = { (char)c, '\0' };
		bool both = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			    (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';

		assert_int_equal(label_value_valid(text), both);
		assert_int_equal(label_key_valid(text), both || c == '/');
	}
	assert_false(label_key_valid(""));
	assert_true(label_value_valid(""));
	assert_true(label_key_valid(key));
	assert_false(label_key_valid(long_key));
	assert_true(label_value_valid(value));
	assert_false(label_value_valid(long_value));
	assert_false(label_key_valid("a b"));
	assert_false(label_value_valid("a b"));
}

/* --- limits --------------------------------------------------------------------------------- */

static void nesting_ends_at_64(void **unused)
{
	AUTO(free) char *open = repeated("(", 64, "all()"), *closed = repeated(")", 64, "");
	AUTO(free) char *bangs = repeated("!", 64, "all()"), *deeper = repeated("!", 65, "all()");
	AUTO(free) char *mixed = repeated("!(", 32, "(all()");
	char text[256];

	snprintf(text, sizeof(text), "%s%s", open, closed);
	expect(text, &none, '+');
	expect(bangs, &none, '+');
	snprintf(text, sizeof(text), "(%s%s)", open, closed);
	expect_error(text, "column 65: nested deeper than 64");
	expect_error(deeper, "column 65: nested deeper than 64");
	expect_error(mixed, "column 65: nested deeper than 64");
}

static void depth_counts_what_is_open_and_not_what_was(void **unused)
{
	AUTO(free) char *text = repeated("!(all()) || ", 100, "all()");

	expect(text, &none, '+');
}

/* At every level a left side of || and one of && wait: the stack's worst case. */
static void the_deepest_selector_is_evaluated(void **unused)
{
	AUTO(free) char *open = repeated("has(x) || all() && (", 64, "has(x) || all() && all()");
	AUTO(free) char *closed = repeated(")", 64, "");
	AUTO(free) char *no = repeated("has(x) || all() && (", 64, "has(x) || all() && has(x)");
	char text[2048];

	snprintf(text, sizeof(text), "%s%s", open, closed);
	expect(text, &none, '+');
	snprintf(text, sizeof(text), "%s%s", no, closed);
	expect(text, &none, '-');
}

static void length_ends_at_4096(void **unused)
{
	AUTO(free) char *fits = repeated(" ", 4096 - 6, "has(x)");
	AUTO(free) char *too_long = repeated(" ", 4097 - 6, "has(x)");
	AUTO(free) char *chain = repeated("x!=''||", 584, "all()");

	assert_int_equal(strlen(fits), 4096);
	expect(fits, &none, '-');
	expect(fits, LABELS({ "x", "" }), '+');
	expect_error(too_long, "column 4097: selector longer than 4096 bytes");
	/* As many steps per byte as the grammar can make. */
	expect(chain, LABELS({ "x", "" }), '+');
}

/* --- errors --------------------------------------------------------------------------------- */

static void errors_tell_column_expectation_and_finding(void **unused)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		/* the start of a term */
		{ "()", "column 2: expected a key, \"!\" or \"(\", found \")\"" },
		{ "!", "column 2: expected a key, \"!\" or \"(\", found end of text" },
		{ "a == 'x' && ", "column 13: expected a key, \"!\" or \"(\", found end of text" },
		{ "has(a) || || has(b)",
		  "column 11: expected a key, \"!\" or \"(\", found \"||\"" },
		{ "'a' == a", "column 1: expected a key, \"!\" or \"(\", found 'a'" },
		{ "  $a", "column 3: expected a key, \"!\" or \"(\", found \"$\"" },
		{ "\x01", "column 1: expected a key, \"!\" or \"(\", found byte 0x01" },
		{ "\xc3\xa4 == 'a'", "column 1: expected a key, \"!\" or \"(\", found byte 0xc3" },
		/* the operator */
		{ "zone",
		  "column 5: expected \"==\", \"!=\", \"in\" or \"not in\", found end of text" },
		{ "zone = 'a'",
		  "column 6: expected \"==\", \"!=\", \"in\" or \"not in\", found \"=\"" },
		{ "zone is 'a'",
		  "column 6: expected \"==\", \"!=\", \"in\" or \"not in\", found \"is\"" },
		{ "zone 'a'",
		  "column 6: expected \"==\", \"!=\", \"in\" or \"not in\", found 'a'" },
		{ "gpu(a)",
		  "column 4: expected \"==\", \"!=\", \"in\" or \"not in\", found \"(\"" },
		{ "has",
		  "column 4: expected \"==\", \"!=\", \"in\" or \"not in\", found end of text" },
		{ "all && has(a)",
		  "column 5: expected \"==\", \"!=\", \"in\" or \"not in\", found \"&&\"" },
		{ "zone not {'a'}", "column 10: expected \"in\", found \"{\"" },
		{ "zone not", "column 9: expected \"in\", found end of text" },
		{ "zone notin {'a'}",
		  "column 6: expected \"==\", \"!=\", \"in\" or \"not in\", found \"notin\"" },
		/* strings */
		{ "zone == ", "column 9: expected a string in quotes, found end of text" },
		{ "zone == a", "column 9: expected a string in quotes, found \"a\"" },
		{ "zone != {'a'}", "column 9: expected a string in quotes, found \"{\"" },
		{ "zone == 'a",
		  "column 11: expected [A-Za-z0-9._-] or the closing quote, found end of text" },
		{ "zone == 'a\"",
		  "column 11: expected [A-Za-z0-9._-] or the closing quote, found \"\"\"" },
		{ "zone == 'a b'",
		  "column 11: expected [A-Za-z0-9._-] or the closing quote, found \" \"" },
		{ "zone == \"a/b\"",
		  "column 11: expected [A-Za-z0-9._-] or the closing quote, found \"/\"" },
		{ "zone == 'a\n'",
		  "column 11: expected [A-Za-z0-9._-] or the closing quote, found byte 0x0a" },
		/* sets */
		{ "a in 'x'", "column 6: expected \"{\", found 'x'" },
		{ "a in", "column 5: expected \"{\", found end of text" },
		{ "a in {", "column 7: expected a string in quotes or \"}\", found end of text" },
		{ "a in {x}", "column 7: expected a string in quotes or \"}\", found \"x\"" },
		{ "a in {,}", "column 7: expected a string in quotes or \"}\", found \",\"" },
		{ "a in {'x',}", "column 11: expected a string in quotes, found \"}\"" },
		{ "a in {'x' 'y'}", "column 11: expected \",\" or \"}\", found 'y'" },
		{ "a in {'x'", "column 10: expected \",\" or \"}\", found end of text" },
		/* has() and all() */
		{ "has(", "column 5: expected a key, found end of text" },
		{ "has()", "column 5: expected a key, found \")\"" },
		{ "has('a')", "column 5: expected a key, found 'a'" },
		{ "has(a", "column 6: expected \")\", found end of text" },
		{ "has(a b)", "column 7: expected \")\", found \"b\"" },
		{ "all(a)", "column 5: expected \")\", found \"a\"" },
		{ "all(", "column 5: expected \")\", found end of text" },
		/* the end */
		{ "(all()", "column 7: expected \"&&\", \"||\" or \")\", found end of text" },
		{ "(all() all())", "column 8: expected \"&&\", \"||\" or \")\", found \"all\"" },
		{ "all())", "column 6: expected \"&&\", \"||\" or end of text, found \")\"" },
		{ "a == 'x' b == 'y'",
		  "column 10: expected \"&&\", \"||\" or end of text, found \"b\"" },
		{ "all() & all()",
		  "column 7: expected \"&&\", \"||\" or end of text, found \"&\"" },
		{ "all() | all()",
		  "column 7: expected \"&&\", \"||\" or end of text, found \"|\"" },
		{ "all(), all()", "column 6: expected \"&&\", \"||\" or end of text, found \",\"" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		expect_error(cases[i].text, cases[i].want);
}

static void a_node_has_its_name_as_a_label(void **unused)
{
	AUTO(selector_free) struct selector *s = NULL;
	const struct labels *liar = LABELS({ "kubernetes.io/hostname", "n2" }, { "zone", "a" });

	assert_int_equal(selector_parse("kubernetes.io/hostname == 'n1' && zone == 'a'", &s, NULL),
			 0);
	assert_true(selector_selects(s, liar, "n1"));
	assert_false(selector_selects(s, liar, "n2"));
	assert_false(selector_selects(s, &none, "n1"));
	assert_true(selector_selects(NULL, &none, "n1"));
}

static void freeing_nothing_is_fine(void **unused)
{
	selector_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_empty_selector_means_all),
		cmocka_unit_test(equal_and_unequal_compare_whole_values),
		cmocka_unit_test(keys_compare_whole),
		cmocka_unit_test(an_absent_label_is_unequal_to_everything),
		cmocka_unit_test(an_empty_value_is_a_value),
		cmocka_unit_test(sets_hold_any_of_their_members),
		cmocka_unit_test(nothing_is_in_the_empty_set),
		cmocka_unit_test(not_binds_tighter_than_and),
		cmocka_unit_test(and_binds_tighter_than_or),
		cmocka_unit_test(operators_follow_their_truth_tables),
		cmocka_unit_test(the_example_of_the_manual_works),
		cmocka_unit_test(both_quotes_mean_the_same),
		cmocka_unit_test(blanks_are_needed_only_between_words),
		cmocka_unit_test(keys_of_kubernetes_need_no_quotes),
		cmocka_unit_test(words_of_the_grammar_may_be_keys),
		cmocka_unit_test(keys_and_values_may_be_as_long_as_promised),
		cmocka_unit_test(the_character_sets_are_those_of_the_parser),
		cmocka_unit_test(nesting_ends_at_64),
		cmocka_unit_test(depth_counts_what_is_open_and_not_what_was),
		cmocka_unit_test(the_deepest_selector_is_evaluated),
		cmocka_unit_test(length_ends_at_4096),
		cmocka_unit_test(errors_tell_column_expectation_and_finding),
		cmocka_unit_test(a_node_has_its_name_as_a_label),
		cmocka_unit_test(freeing_nothing_is_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
