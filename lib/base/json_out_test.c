/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/auto.h"
#include "lib/base/json_out.h"
#include "lib/json/json.h"

static void commas_and_names_come_by_themselves(void **unused)
{
	struct json_out out = { 0 };
	AUTO(free) char *text = NULL;
	struct address a, none = { 0 };
	struct prefix p;

	address_parse("fd00::5", &a);
	prefix_parse_host("10.1.0.5/24", &p);
	json_out_open(&out, NULL, '{');
	json_out_text(&out, "a", "x");
	json_out_open(&out, "list", '[');
	json_out_text(&out, NULL, "1");
	json_out_number(&out, NULL, -2);
	json_out_open(&out, NULL, '{');
	json_out_close(&out, '}');
	json_out_address(&out, NULL, &a);
	json_out_close(&out, ']');
	json_out_some_text(&out, "none", NULL);
	json_out_some_text(&out, "empty", "");
	json_out_some_address(&out, "family", &none);
	json_out_prefix(&out, "p", &p);
	json_out_close(&out, '}');
	assert_int_equal(json_out_take(&out, &text), 0);
	assert_string_equal(text, "{\"a\":\"x\",\"list\":[\"1\",-2,{},\"fd00::5\"],"
				  "\"p\":\"10.1.0.5/24\"}");
	assert_null(out.text);
}

static void any_text_comes_back_from_a_reader(void **unused)
{
	const char *const texts[] = { "",           "\"", "\\", "a\nb\tc\x01\x1f", "\x7f", "ü\"ü",
				      "ends in \\", "[",  "{" };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct json_out out = { 0 };
		AUTO(free) char *text = NULL;
		AUTO(json_put) struct json_object *o = NULL;

		json_out_open(&out, NULL, '{');
		json_out_text(&out, texts[i], texts[i]);
		json_out_text(&out, "after", "x");
		json_out_close(&out, '}');
		assert_int_equal(json_out_take(&out, &text), 0);
		assert_int_equal(json_parse(text, strlen(text), &o, NULL), 0);
		assert_string_equal(json_object_get_string(json_object_object_get(o, texts[i])),
				    texts[i]);
		assert_string_equal(json_object_get_string(json_object_object_get(o, "after")),
				    "x");
	}
}

static void a_long_text_grows_the_buffer(void **unused)
{
	struct json_out out = { 0 };
	AUTO(free) char *text = NULL, *big = malloc(100001);

	memset(big, 'x', 100000);
	big[100000] = '\0';
	json_out_open(&out, NULL, '[');
	for (int i = 0; i < 3; i++)
		json_out_text(&out, NULL, big);
	json_out_close(&out, ']');
	assert_int_equal(json_out_take(&out, &text), 0);
	assert_int_equal(strlen(text), 3 * 100002 + 2 + 2);
}

static void a_failure_on_the_way_shows_at_the_end(void **unused)
{
	struct json_out out = { 0 };
	char *text = NULL;

	assert_int_equal(json_out_take(&out, &text), -ENOMEM); /* nothing was written */
	json_out_text(&out, NULL, "x");
	out.failed = true;
	json_out_text(&out, NULL, "y");
	assert_int_equal(json_out_take(&out, &text), -ENOMEM);
	assert_null(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commas_and_names_come_by_themselves),
		cmocka_unit_test(any_text_comes_back_from_a_reader),
		cmocka_unit_test(a_long_text_grows_the_buffer),
		cmocka_unit_test(a_failure_on_the_way_shows_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
