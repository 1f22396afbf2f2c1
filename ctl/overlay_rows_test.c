/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/overlay_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ctl/frame/out.h"

static void expect(const char *json, size_t n, const char *const *want)
{
	AUTO(json_put) struct json_object *overlay = json_tokener_parse(json);
	AUTO(json_put) struct json_object *array = json_object_new_array();

	assert_int_equal(overlay_rows(overlay, array), 0);
	assert_int_equal(json_object_array_length(array), n);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(
			json_object_to_json_string_ext(json_object_array_get_idx(array, i),
						       JSON_C_TO_STRING_PLAIN),
			want[i]);
}
#define EXPECT(json, ...)                                                                          \
	expect(json, sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *),                     \
	       (const char *const[]){ __VA_ARGS__ })

static void what_is_wrong_comes_first(void **unused)
{
	EXPECT("{\"remotes\":[{\"node\":\"a\",\"underlay\":\"2001:db8::2\",\"mac\":\"m1\",\"vtep\":"
	       "[],\"blocks\":[{\"block\":\"10.1.0.0/"
	       "26\",\"way\":\"tunnel\"},{\"block\":\"10.1.1.0/"
	       "26\",\"way\":\"missing\"}]},{\"node\":\"b\",\"underlay\":\"192.0.2.3\",\"mac\":"
	       "\"m2\",\"vtep\":[\"10.1.2.0\"],\"blocks\":[{\"block\":\"10.1.2.0/"
	       "26\",\"way\":\"direct\"}]}],\"unreachable\":[{\"node\":\"c\",\"why\":\"is "
	       "gone\"}]}",
	       "{\"node\":\"c\",\"way\":\"none\",\"problem\":\"is gone\"}",
	       "{\"node\":\"a\",\"underlay\":\"2001:db8::2\",\"block\":\"10.1.1.0\\/"
	       "26\",\"way\":\"missing\",\"vtep\":[],\"mac\":\"m1\",\"device\":\"roost.vxlan6\","
	       "\"problem\":\"the kernel has no route to it: see roostctl status for the reason\"}",
	       "{\"node\":\"a\",\"underlay\":\"2001:db8::2\",\"block\":\"10.1.0.0\\/"
	       "26\",\"way\":\"tunnel\",\"vtep\":[],\"mac\":\"m1\",\"device\":\"roost.vxlan6\"}",
	       "{\"node\":\"b\",\"underlay\":\"192.0.2.3\",\"block\":\"10.1.2.0\\/"
	       "26\",\"way\":\"direct\",\"vtep\":[\"10.1.2.0\"],\"mac\":\"m2\"}");
}

static void without_an_overlay_there_is_nothing(void **unused)
{
	expect("{\"tunnels\":[],\"remotes\":[],\"unreachable\":[]}", 0, NULL);
	expect("{}", 0, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_wrong_comes_first),
		cmocka_unit_test(without_an_overlay_there_is_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
