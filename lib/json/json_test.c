/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/names.h"
#include "lib/json/json.h"

static void parse_fails(const char *text, size_t len, const char *want)
{
	struct json_object *object = NULL;
	struct err err = { "" };

	assert_int_equal(json_parse(text, len, &object, &err), -EINVAL);
	assert_null(object);
	assert_string_equal(err.text, want);
}
#define PARSE_FAILS(text, want) parse_fails(text, sizeof(text) - 1, want)

static void text_that_is_not_one_object_is_refused_with_its_place(void **unused)
{
	PARSE_FAILS("", "not a whole JSON object: ends at byte 0");
	PARSE_FAILS("{\"a\":1", "not a whole JSON object: ends at byte 6");
	PARSE_FAILS("12", "not a whole JSON object: ends at byte 2");
	PARSE_FAILS("[1]", "not a JSON object");
	PARSE_FAILS("null ", "not a JSON object");
	PARSE_FAILS("{\"a\":1,}", "not valid JSON at byte 8: unexpected character");
	PARSE_FAILS("{\"a\":01}", "not valid JSON at byte 8: number expected");
	PARSE_FAILS("{} {}", "not valid JSON at byte 4: unexpected character");
	PARSE_FAILS("{}\0{}", "not valid JSON at byte 3: more than one value");
	PARSE_FAILS("{/**/}", "not valid JSON at byte 2: quoted object property name expected");
	PARSE_FAILS("{\"a\":\"\xff\"}", "not valid JSON at byte 7: invalid utf-8 string");
}

static void depth_and_size_are_limited(void **unused)
{
	static char big[JSON_SIZE_MAX + 2];
	struct json_object *object = NULL;
	struct err err;

	PARSE_FAILS("{\"a\":[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]}",
		    "not valid JSON at byte 21: nesting too deep");
	memset(big, ' ', sizeof(big));
	memcpy(big, "{}", 2);
	assert_int_equal(json_parse(big, JSON_SIZE_MAX + 1, &object, &err), -E2BIG);
	assert_int_equal(json_parse(big, JSON_SIZE_MAX, &object, &err), 0);
	json_object_put(object);
}

static void blanks_around_the_object_are_fine_and_no_nul_is_needed(void **unused)
{
	struct json_object *object = NULL;

	assert_int_equal(json_parse(" {\"a\":1}\n", 9, &object, NULL), 0);
	json_object_put(object);
	assert_int_equal(json_parse("{}garbage", 2, &object, NULL), 0);
	json_object_put(object);
}

/* --- readers: each case opens {"f": VALUE} -------------------------------------------------- */

static struct err why;

static struct json_object *open_field(const char *value)
{
	struct json_object *object = NULL;
	char text[8192];

	snprintf(text, sizeof(text), "{\"f\":%s}", value);
	assert_int_equal(json_parse(text, strlen(text), &object, &why), 0);
	return object;
}

/* json-c cuts numbers beyond 64 bits silently before 0.17, and refuses the text since. */
static bool cuts_numbers(void)
{
	static const char text[] = "{\"f\":99999999999999999999}";
	struct json_object *object = NULL;
	int r = json_parse(text, sizeof(text) - 1, &object, NULL);

	json_object_put(object);
	return r == 0;
}

/* Runs a reader on {"f": value}; `at` is its place. */
#define READ(value, call)                                                                          \
	({                                                                                         \
		AUTO(json_put) struct json_object *o_ = open_field(value);                         \
		struct json_at root_ = json_root(o_, &why);                                        \
		struct json_at at = json_member(&root_, "f");                                      \
		why.text[0] = '\0';                                                                \
		(call);                                                                            \
	})
#define REFUSED(value, call, sentence)                                                             \
	do {                                                                                       \
		assert_int_equal(READ(value, call), -EINVAL);                                      \
		assert_string_equal(why.text, sentence);                                           \
	} while (0)

static void absent_and_null_leave_the_default_alone(void **unused)
{
	AUTO(json_put) struct json_object *empty = NULL;
	struct json_at root;
	const char *text = "default";
	int64_t i = 7;
	bool b = true;

	assert_int_equal(READ("null", json_read_text(at, 10, &text)), 0);
	assert_int_equal(READ("null", json_read_integer(at, 0, 1, &i)), 0);
	assert_int_equal(READ("null", json_read_bool(at, &b)), 0);
	assert_int_equal(json_parse("{}", 2, &empty, NULL), 0);
	root = json_root(empty, &why);
	assert_int_equal(json_read_text(json_member(&root, "g"), 10, &text), 0);
	assert_string_equal(text, "default");
	assert_int_equal(i, 7);
	assert_true(b);
	assert_int_equal(json_read_text(json_need(&root, "g"), 10, &text), -EINVAL);
	assert_string_equal(why.text, "field \"g\": is missing");
}

static void another_type_is_refused_not_converted(void **unused)
{
	struct prefix p;
	struct address a;
	const char *text;
	int64_t i;
	size_t n;
	bool b;

	REFUSED("24.0", json_read_integer(at, 0, 99, &i),
		"field \"f\": 24.0 is a fraction, not an integer");
	REFUSED("\"24\"", json_read_integer(at, 0, 99, &i),
		"field \"f\": \"24\" is a string, not an integer");
	REFUSED("1e1", json_read_integer(at, 0, 99, &i),
		"field \"f\": 1e1 is a fraction, not an integer");
	REFUSED("1", json_read_bool(at, &b), "field \"f\": 1 is an integer, not true or false");
	REFUSED("\"true\"", json_read_bool(at, &b),
		"field \"f\": \"true\" is a string, not true or false");
	REFUSED("true", json_read_text(at, 9, &text),
		"field \"f\": true is true or false, not a string");
	REFUSED("{\"a\":1}", json_read_array(at, &n),
		"field \"f\": {\"a\":1} is an object, not an array");
	REFUSED("[]", json_read_object(at), "field \"f\": [] is an array, not an object");
	REFUSED("5", json_read_prefix(at, &p), "field \"f\": 5 is an integer, not a string");
	REFUSED("5", json_read_address(at, &a), "field \"f\": 5 is an integer, not a string");
}

static void integers_keep_to_their_range(void **unused)
{
	int64_t i = 0;

	assert_int_equal(READ("24", json_read_integer(at, 24, 32, &i)), 1);
	assert_int_equal(i, 24);
	assert_int_equal(READ("32", json_read_integer(at, 24, 32, &i)), 1);
	REFUSED("33", json_read_integer(at, 24, 32, &i),
		"field \"f\": 33 is not between 24 and 32");
	REFUSED("-1", json_read_integer(at, 0, 32, &i), "field \"f\": -1 is not between 0 and 32");
	if (!cuts_numbers())
		return;
	REFUSED("99999999999999999999", json_read_integer(at, 0, INT64_MAX, &i),
		"field \"f\": 18446744073709551615 is not between 0 and 9223372036854775807");
	REFUSED("-99999999999999999999", json_read_integer(at, INT64_MIN, 0, &i),
		"field \"f\": -9223372036854775808 is not between -9223372036854775808 and 0");
}

static void strings_are_short_and_without_nul(void **unused)
{
	const char *text = NULL;

	assert_int_equal(READ("\"abc\"", json_read_text(at, 3, &text) + strcmp(text, "abc")), 1);
	REFUSED("\"abcd\"", json_read_text(at, 3, &text), "field \"f\": 4 bytes are more than 3");
	REFUSED("\"a\\u0000b\"", json_read_text(at, 9, &text),
		"field \"f\": \"a\\u0000b\" contains a NUL");
}

static void a_value_in_a_message_is_cut_and_harmless(void **unused)
{
	char value[400] = "\"";
	int64_t i;

	REFUSED("\"\\u001b[31m\xc3\xa4\x7f\"", json_read_integer(at, 0, 1, &i),
		"field \"f\": \"\\u001b[31m???\" is a string, not an integer");
	memset(value + 1, 'x', 300);
	strcpy(value + 301, "\"");
	assert_int_equal(READ(value, json_read_integer(at, 0, 1, &i)), -EINVAL);
	assert_non_null(strstr(why.text, "xxx... is a string"));
	assert_true(strlen(why.text) < 140);
}

static void prefixes_addresses_and_times_are_strict(void **unused)
{
	char time[TIME_TEXT] = "", text[PREFIX_TEXT];
	struct address a;
	struct prefix p;

	assert_int_equal(READ("\"10.1.0.0/16\"", json_read_prefix(at, &p)), 1);
	assert_string_equal(prefix_print(&p, text), "10.1.0.0/16");
	REFUSED("\"10.1.0.5/16\"", json_read_prefix(at, &p),
		"field \"f\": \"10.1.0.5/16\" has host bits set: write 10.1.0.0/16");
	REFUSED("\"10.1/16\"", json_read_prefix(at, &p),
		"field \"f\": \"10.1/16\" is not a prefix such as \"10.1.0.0/16\" or "
		"\"fd00:1::/64\"");
	assert_int_equal(READ("\"10.1.0.5/16\"", json_read_host_prefix(at, &p)), 1);
	assert_string_equal(prefix_print(&p, text), "10.1.0.5/16");
	assert_int_equal(READ("\"10.1.0.5\"", json_read_host_prefix(at, &p)), -EINVAL);
	assert_int_equal(READ("\"fd00::5\"", json_read_address(at, &a)), 1);
	assert_string_equal(address_print(&a, text), "fd00::5");
	REFUSED("\"010.0.0.1\"", json_read_address(at, &a),
		"field \"f\": \"010.0.0.1\" is not an address such as \"10.1.0.5\" or \"fd00::5\"");
	assert_int_equal(READ("\"2026-11-16T02:45:55Z\"", json_read_time(at, time)), 1);
	assert_string_equal(time, "2026-11-16T02:45:55Z");
	REFUSED("\"2026-11-16\"", json_read_time(at, time),
		"field \"f\": \"2026-11-16\" is not a time in UTC such as "
		"\"2026-11-16T02:45:55Z\"");
}

static void a_message_names_the_whole_way_to_the_field(void **unused)
{
	const char json[] = "{\"bgp\":{\"routes\":[{},{\"dst\":5}]}}";
	AUTO(json_put) struct json_object *object = NULL;
	struct json_at root, bgp, routes, second;
	struct prefix p;

	assert_int_equal(json_parse(json, sizeof(json) - 1, &object, &why), 0);
	root = json_root(object, &why);
	bgp = json_member(&root, "bgp");
	routes = json_member(&bgp, "routes");
	second = json_element(&routes, 1);
	assert_int_equal(json_read_prefix(json_member(&second, "dst"), &p), -EINVAL);
	assert_string_equal(why.text, "field \"bgp.routes[1].dst\": 5 is an integer, not a string");
}

static void arrays_of_strings_name_the_element_that_is_wrong(void **unused)
{
	AUTO(json_put) struct json_object *object = open_field("[\"a\",\"bc\"]");
	struct json_at root = json_root(object, &why);
	AUTO(free) const char **v = NULL;
	const char **none = NULL;
	size_t n = 0;

	assert_int_equal(json_read_texts(json_member(&root, "f"), 9, &v, &n), 1);
	assert_int_equal(n, 2);
	assert_string_equal(v[0], "a");
	assert_string_equal(v[1], "bc");
	assert_null(v[2]);
	REFUSED("[\"a\",1]", json_read_texts(at, 9, &none, &n),
		"field \"f[1]\": 1 is an integer, not a string");
	REFUSED("[\"a\",null]", json_read_texts(at, 9, &none, &n),
		"field \"f[1]\": null is not allowed here");
}

static void numbers_of_64_bits_are_never_clamped(void **unused)
{
	uint64_t u = 0;
	int64_t i = 0;

	assert_int_equal(READ("\"9223372036854775807\"", json_read_int64(at, &i)), 1);
	assert_true(i == INT64_MAX);
	assert_int_equal(READ("\"-9223372036854775808\"", json_read_int64(at, &i)), 1);
	assert_true(i == INT64_MIN);
	assert_int_equal(READ("42", json_read_int64(at, &i)), 1);
	assert_int_equal(i, 42);
	assert_int_equal(READ("\"18446744073709551615\"", json_read_uint64(at, &u)), 1);
	assert_true(u == UINT64_MAX);
	assert_int_equal(READ("18446744073709551614", json_read_uint64(at, &u)), 1);
	assert_true(u == UINT64_MAX - 1);

	REFUSED("\"9223372036854775808\"", json_read_int64(at, &i),
		"field \"f\": \"9223372036854775808\" is beyond 64 bits");
	REFUSED("\"18446744073709551616\"", json_read_uint64(at, &u),
		"field \"f\": \"18446744073709551616\" is beyond 64 bits");
	REFUSED("9223372036854775808", json_read_int64(at, &i),
		"field \"f\": 9223372036854775808 is beyond 64 bits");
	if (cuts_numbers())
		REFUSED("18446744073709551616", json_read_uint64(at, &u),
			"field \"f\": 18446744073709551615 is beyond 64 bits");
	REFUSED("-5", json_read_uint64(at, &u), "field \"f\": -5 is negative");
}

static void numbers_of_64_bits_are_digits_alone(void **unused)
{
	static const char *const wrong[] = { "\"12x\"", "\"\"",   "\" 1\"",  "\"+1\"", "\"01\"",
					     "\"-\"",   "\"-0\"", "\"0x1\"", "\"1 \"", "1.0",
					     "true",    "[]",     "\"--1\"" };
	uint64_t u;
	int64_t i;

	for (size_t k = 0; k < ARRAY_SIZE(wrong); k++) {
		assert_int_equal(READ(wrong[k], json_read_int64(at, &i)), -EINVAL);
		assert_int_equal(READ(wrong[k], json_read_uint64(at, &u)), -EINVAL);
	}
	assert_int_equal(READ("\"-1\"", json_read_uint64(at, &u)), -EINVAL);
	assert_int_equal(READ("\"0\"", json_read_uint64(at, &u)), 1);
	assert_int_equal(READ("null", json_read_uint64(at, &u)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_that_is_not_one_object_is_refused_with_its_place),
		cmocka_unit_test(depth_and_size_are_limited),
		cmocka_unit_test(blanks_around_the_object_are_fine_and_no_nul_is_needed),
		cmocka_unit_test(absent_and_null_leave_the_default_alone),
		cmocka_unit_test(another_type_is_refused_not_converted),
		cmocka_unit_test(integers_keep_to_their_range),
		cmocka_unit_test(strings_are_short_and_without_nul),
		cmocka_unit_test(a_value_in_a_message_is_cut_and_harmless),
		cmocka_unit_test(prefixes_addresses_and_times_are_strict),
		cmocka_unit_test(a_message_names_the_whole_way_to_the_field),
		cmocka_unit_test(arrays_of_strings_name_the_element_that_is_wrong),
		cmocka_unit_test(numbers_of_64_bits_are_never_clamped),
		cmocka_unit_test(numbers_of_64_bits_are_digits_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
