/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/frame/out.h"
#include "lib/json/json.h"

static const struct out_column columns[] = {
	COLUMN("NAME", "name"),
	COLUMN("BLOCKS", "blocks"),
	COLUMN("STATE", "state"),
	WIDE("VERSION", "agent.version"),
	COLUMNS_END,
};

#define ROWS                                                                                       \
	"[{\"name\":\"web\",\"blocks\":7,\"state\":\"ok\",\"agent\":{\"version\":\"1\"}},"         \
	"{\"name\":\"a-longer-one\",\"blocks\":1234,\"state\":\"invalid\"}]"

enum call { LIST, AGAIN, SHOW };

static char *print(enum call call, enum out_format format, bool colour, const char *json)
{
	AUTO(json_put) struct json_object *value = json_tokener_parse(json);
	char *text = NULL;
	size_t len;
	struct out out = { open_memstream(&text, &len), format, colour, false };

	assert_non_null(value);
	assert_non_null(out.to);
	if (call == SHOW)
		assert_int_equal(out_show(&out, value), 0);
	else if (call == AGAIN)
		assert_int_equal(format == OUT_JSON ? out_json_line(&out, value)
						    : out_list(&out, value, columns, "none"),
				 0);
	else
		assert_int_equal(out_list(&out, value, columns, "There are none"), 0);
	fclose(out.to);
	return text;
}

#define PRINTS(call, format, colour, json, want)                                                   \
	do {                                                                                       \
		AUTO(free) char *text_ = print(call, format, colour, json);                        \
		assert_string_equal(text_, want);                                                  \
	} while (0)

static void columns_are_aligned_numbers_to_the_right(void **unused)
{
	PRINTS(LIST, OUT_TABLE, false, ROWS,
	       "NAME          BLOCKS  STATE\n"
	       "web                7  ok\n"
	       "a-longer-one    1234  invalid\n");
}

static void wide_adds_columns_and_what_is_absent_is_a_dash(void **unused)
{
	PRINTS(LIST, OUT_WIDE, false, ROWS,
	       "NAME          BLOCKS  STATE    VERSION\n"
	       "web                7  ok       1\n"
	       "a-longer-one    1234  invalid  -\n");
}

static void an_empty_list_says_so_to_people_alone(void **unused)
{
	PRINTS(LIST, OUT_TABLE, false, "[]", "There are none\n");
	PRINTS(LIST, OUT_JSON, false, "[]", "[]\n");
}

static void json_has_every_field(void **unused)
{
	AUTO(free) char *text = print(LIST, OUT_JSON, false, ROWS);
	AUTO(json_put)
	struct json_object *again = json_tokener_parse(text), *rows = json_tokener_parse(ROWS);

	assert_true(json_object_equal(again, rows));
	PRINTS(AGAIN, OUT_JSON, false, "[{\"name\":\"10.0.0.0/8\"}]",
	       "[{\"name\":\"10.0.0.0/8\"}]\n");
}

static void colours_do_not_move_columns(void **unused)
{
	PRINTS(LIST, OUT_TABLE, true, "[{\"name\":\"web\",\"blocks\":7,\"state\":\"ok\"}]",
	       "\033[1mNAME\033[0m  \033[1mBLOCKS\033[0m  \033[1mSTATE\033[0m\n"
	       "web        7  \033[32mok\033[0m\n");
}

static void nothing_of_a_record_steers_the_terminal(void **unused)
{
	PRINTS(LIST, OUT_TABLE, false, "[{\"name\":\"a\\u001b[2Jb\",\"blocks\":1}]",
	       "NAME    BLOCKS  STATE\na?[2Jb       1  -\n");
}

static void an_object_is_lines_with_tables_inside(void **unused)
{
	PRINTS(SHOW, OUT_TABLE, false,
	       "{\"name\":\"n1\",\"alive\":true,\"labels\":{\"zone\":\"a\"},\"list\":[\"x\",\"y\"],"
	       "\"sessions\":[{\"peer\":\"t1\",\"state\":\"up\"},{\"peer\":\"tor2\",\"error\":"
	       "\"e\"}]}",
	       "name:      n1\n"
	       "alive:     yes\n"
	       "labels:\n"
	       "  zone:  a\n"
	       "list:      x,y\n"
	       "sessions:\n"
	       "  peer  state  error\n"
	       "  t1    up     -\n"
	       "  tor2  -      e\n");
}

static void what_is_too_many_to_count_says_so(void **unused)
{
	AUTO(json_put) struct json_object *many = json_object_new_int64(INT64_MAX);
	AUTO(free) char *cell = out_cell(many);

	assert_string_equal(cell, ">9.2e18");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_aligned_numbers_to_the_right),
		cmocka_unit_test(wide_adds_columns_and_what_is_absent_is_a_dash),
		cmocka_unit_test(an_empty_list_says_so_to_people_alone),
		cmocka_unit_test(json_has_every_field),
		cmocka_unit_test(colours_do_not_move_columns),
		cmocka_unit_test(what_is_too_many_to_count_says_so),
		cmocka_unit_test(nothing_of_a_record_steers_the_terminal),
		cmocka_unit_test(an_object_is_lines_with_tables_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
