/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/route_protocol.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void the_numbers_are_114_and_115_unless_told_otherwise(void **state)
{
	struct err err = { "" };

	assert_true(route_protocol_is_ours(114) && route_protocol_is_ours(115));
	assert_false(route_protocol_is_ours(4));
	assert_int_equal(route_protocols_check(200, 201, &err), 0);
	route_protocols_set(200, 201);
	assert_false(route_protocol_is_ours(114) || route_protocol_is_ours(115));
	assert_true(route_protocol_is_ours(200) && route_protocol_is_ours(201));
	route_protocols_set(114, 115);
}

static void another_daemons_number_is_refused(void **state)
{
	static const uint32_t taken[] = {
		0, 1, 2, 3, 4, 9, 11, 12, 16, 18, 42, 186, 188, 192, 196
	};

	for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++) {
		struct err err = { "" };

		assert_int_equal(route_protocols_check(taken[i], 115, &err), -EINVAL);
		assert_non_null(strstr(err.text, "--route-protocol: "));
		assert_int_equal(route_protocols_check(114, taken[i], &err), -EINVAL);
		assert_non_null(strstr(err.text, "--static-route-protocol: "));
	}
	assert_int_equal(route_protocols_check(300, 115, &(struct err){ "" }), -EINVAL);
	assert_int_equal(route_protocol, 114);
}

static void both_the_same_is_refused(void **state)
{
	struct err err = { "" };

	assert_int_equal(route_protocols_check(150, 150, &err), -EINVAL);
	assert_non_null(strstr(err.text, "both 150"));
	assert_int_equal(static_route_protocol, 115);
}

static void names_are_those_of_ip(void **state)
{
	char text[12];

	assert_string_equal(route_protocol_name(12, text), "bird");
	assert_string_equal(route_protocol_name(114, text), "114");
	assert_string_equal(route_protocol_name(0, text), "0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_numbers_are_114_and_115_unless_told_otherwise),
		cmocka_unit_test(another_daemons_number_is_refused),
		cmocka_unit_test(both_the_same_is_refused),
		cmocka_unit_test(names_are_those_of_ip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
