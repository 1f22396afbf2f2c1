/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/bgp_rows.h"

#define PRINT(array)                                                                               \
	json_object_to_json_string_ext(array,                                                      \
				       JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE)

static struct json_object *rows_of(const char *node, const char *json)
{
	AUTO(json_put) struct json_object *status = json ? json_tokener_parse(json) : NULL;
	struct json_object *array = json_object_new_array();

	assert_int_equal(bgp_rows(node, status, array), 0);
	return array;
}

static void a_session_is_a_row(void **unused)
{
	AUTO(json_put)
	struct json_object *rows = rows_of(
		"n1", "{\"bird\":{\"connected\":true},\"sessions\":[{\"name\":\"n_n2\",\"peer\":"
		      "\"192.0.2.2\",\"asn\":64512,\"state\":\"Established\",\"since\":\"T\","
		      "\"imported\":3,\"exported\":1},{\"name\":\"p_tor\",\"state\":\"Active\","
		      "\"error\":\"refused\"}]}");

	assert_string_equal(PRINT(rows),
			    "[{\"node\":\"n1\",\"session\":\"n_n2\",\"peer\":\"192.0.2.2\",\"asn\":"
			    "64512,\"state\":\"Established\",\"up\":true,\"since\":\"T\","
			    "\"imported\":3,\"exported\":1},{\"node\":\"n1\",\"session\":\"p_tor\","
			    "\"state\":\"Active\",\"up\":false,\"error\":\"refused\"}]");
}

static void the_reason(const char *json, const char *state, const char *words, bool up)
{
	AUTO(json_put) struct json_object *rows = rows_of("n1", json);
	char want[64];

	assert_int_equal(json_object_array_length(rows), 1);
	snprintf(want, sizeof(want), "\"state\":\"%s\",\"up\":%s", state, up ? "true" : "false");
	if (!strstr(PRINT(rows), want) || !strstr(PRINT(rows), words))
		fail_msg("%s", PRINT(rows));
}

static void a_node_without_sessions_says_why(void **unused)
{
	the_reason(NULL, "silent", "has not reported for a minute", false);
	the_reason("{}", "unmanaged", "--bird-config is none", true);
	the_reason("{\"bird\":{\"connected\":false}}", "down", "cannot reach BIRD", false);
	the_reason("{\"bird\":{\"connected\":true,\"protocol\":\"ospf\"}}", "ospf", "runs OSPF",
		   true);
	the_reason("{\"bird\":{\"connected\":true,\"protocol\":\"rip\"}}", "rip", "runs RIP", true);
	the_reason("{\"bird\":{\"connected\":true,\"protocol\":\"none\"}}", "none", "no routing",
		   true);
	the_reason("{\"bird\":{\"connected\":true,\"protocol\":\"bgp\"},\"sessions\":[]}", "alone",
		   "has no neighbour", true);
}

static void what_is_down_comes_first(void **unused)
{
	AUTO(json_put)
	struct json_object *rows = json_tokener_parse(
		"[{\"node\":\"a\",\"session\":\"x\",\"up\":true},{\"node\":\"b\",\"session\":\"y\","
		"\"up\":false},{\"node\":\"a\",\"session\":\"z\",\"up\":false},{\"node\":\"a\","
		"\"session\":\"c\",\"up\":true}]");

	bgp_rows_sort(rows);
	assert_string_equal(PRINT(rows),
			    "[{\"node\":\"a\",\"session\":\"z\",\"up\":false},{\"node\":\"b\","
			    "\"session\":\"y\",\"up\":false},{\"node\":\"a\",\"session\":\"c\","
			    "\"up\":true},{\"node\":\"a\",\"session\":\"x\",\"up\":true}]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_session_is_a_row),
		cmocka_unit_test(a_node_without_sessions_says_why),
		cmocka_unit_test(what_is_down_comes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
