/* SPDX-License-Identifier: Apache-2.0 */
/* static-route and its status: every wrong one names its field, and what is sound of it is known.
 */
#include "lib/model/model_lab.h"

#define KEY "static-route/vpn"
#define ROUTE(json, sentence)                                                                      \
	REFUSED(static_route, KEY, "{\"subnet\":\"10.9.0.0/16\"," json "}", KEY ": " sentence)
#define SUBNET(subnet, sentence)                                                                   \
	REFUSED(static_route, KEY, "{\"subnet\":" subnet "}", KEY ": field \"subnet\": " sentence)
#define SELECTOR(list, want)                                                                       \
	ROUND_TRIP(static_route, KEY, "{\"subnet\":\"10.9.0.0/16\",\"nodeSelector\":" list "}",    \
		   "{\"subnet\":\"10.9.0.0/16\"" want "}")

static void every_field_is_read_and_written(void **unused)
{
	ECHOES(static_route, KEY,
	       "{\"subnet\":\"10.9.0.0/16\",\"gateways\":[\"192.0.2.1\",\"192.0.2.2\"],"
	       "\"table\":2147483647,\"metric\":4294967295,\"nodeSelector\":\"zone == 'a'\","
	       "\"onTamper\":\"report\",\"deleting\":\"2026-11-16T02:45:55Z\"}");
	ECHOES(static_route, KEY, "{\"subnet\":\"fd09::/64\",\"gateways\":[\"fd00::1\"]}");
	ECHOES(static_route_status, "status/static-route/vpn/n1",
	       "{\"subnet\":\"fd09::/64\",\"gateways\":[\"fe80::1\"],\"table\":254,"
	       "\"since\":\"2026-11-16T02:45:55Z\",\"revision\":9007199254740993,"
	       "\"error\":\"a word\",\"tampered\":{\"count\":3,"
	       "\"last\":\"2026-11-16T02:45:56Z\"}}");
	ECHOES(static_route_status, "status/static-route/vpn/n1", "{}");
}

static void what_is_left_out_has_its_default(void **unused)
{
	AUTO_DONE(static_route_done) struct static_route r = { 0 };
	const char *json = "{\"subnet\":\"10.9.0.0/16\"}";

	assert_int_equal(static_route_decode(KEY, json, strlen(json), &r, NULL), 0);
	assert_string_equal(r.name, "vpn");
	assert_int_equal(r.gateways.n, 0);
	assert_int_equal(r.table, 0);
	assert_int_equal(r.metric, 0);
	assert_int_equal(r.on_tamper, ON_TAMPER_RESTORE);
	assert_string_equal(r.deleting, "");
	assert_true(selector_matches(r.node_selector.parsed, &(struct labels){ 0 }));
}

static void one_gateway_may_stand_without_a_list(void **unused)
{
	ROUND_TRIP(static_route, KEY, "{\"subnet\":\"10.9.0.0/16\",\"gateway\":\"192.0.2.1\"}",
		   "{\"subnet\":\"10.9.0.0/16\",\"gateways\":[\"192.0.2.1\"]}");
	ROUND_TRIP(static_route, KEY,
		   "{\"subnet\":\"10.9.0.0/16\",\"gateways\":[],\"gateway\":\"192.0.2.1\"}",
		   "{\"subnet\":\"10.9.0.0/16\",\"gateways\":[\"192.0.2.1\"]}");
	ROUND_TRIP(static_route, KEY, "{\"subnet\":\"10.9.0.0/16\",\"gateway\":\"\"}",
		   "{\"subnet\":\"10.9.0.0/16\"}");
	ROUTE("\"gateway\":\"192.0.2.1\",\"gateways\":[\"192.0.2.1\"]",
	      "field \"gateway\": \"gateways\" is given too, only one of the two may be");
	ROUTE("\"gateway\":[\"192.0.2.1\"]",
	      "field \"gateway\": [\"192.0.2.1\"] is an array, not a string");
}

static void what_is_no_subnet_is_refused(void **unused)
{
	REFUSED(static_route, KEY, "{}", KEY ": field \"subnet\": is missing");
	SUBNET("\"10.9.0.0\"",
	       "\"10.9.0.0\" is not a prefix such as \"10.1.0.0/16\" or \"fd00:1::/64\"");
	SUBNET("\"10.9.0.1/16\"", "\"10.9.0.1/16\" has host bits set: write 10.9.0.0/16");
	SUBNET("\"0.0.0.0/0\"", "0.0.0.0/0 is the default route, which is the node's own");
	SUBNET("\"::/0\"", "::/0 is the default route, which is the node's own");
	SUBNET("\"127.1.0.0/16\"",
	       "127.1.0.0/16 overlaps 127.0.0.0/8 (loopback), where no static route may be");
	SUBNET("\"64.0.0.0/2\"",
	       "64.0.0.0/2 overlaps 127.0.0.0/8 (loopback), where no static route may be");
	SUBNET("\"::/64\"", "::/64 overlaps ::1/128 (loopback), where no static route may be");
	SUBNET("\"169.254.169.254/32\"", "169.254.169.254/32 overlaps 169.254.0.0/16 "
					 "(link-local), where no static route may be");
	SUBNET("\"fe80:1::/32\"",
	       "fe80:1::/32 overlaps fe80::/10 (link-local), where no static route may be");
	SUBNET("\"ff02::/16\"",
	       "ff02::/16 overlaps ff00::/8 (multicast), where no static route may be");
}

static void what_is_no_router_of_the_family_is_refused(void **unused)
{
	ROUTE("\"gateway\":\"fd00::1\"",
	      "field \"gateways[0]\": fd00::1 is not of the family of \"subnet\"");
	ROUTE("\"gateways\":[\"192.0.2.1\",\"224.0.0.1\"]",
	      "field \"gateways[1]\": 224.0.0.1 is not the address of a router");
	ROUTE("\"gateway\":\"0.0.0.0\"",
	      "field \"gateways[0]\": 0.0.0.0 is not the address of a router");
	ROUTE("\"gateway\":\"127.0.0.1\"",
	      "field \"gateways[0]\": 127.0.0.1 is not the address of a router");
	ROUTE("\"gateway\":\"255.255.255.255\"",
	      "field \"gateways[0]\": 255.255.255.255 is not the address of a router");
	ROUTE("\"gateways\":[\"192.0.2.1\",\"192.0.2.2\",\"192.0.2.1\"]",
	      "field \"gateways[2]\": 192.0.2.1 is there twice");
	REFUSED(static_route, KEY, "{\"subnet\":\"fd09::/64\",\"gateway\":\"fe80::1\"}",
		KEY ": field \"gateways[0]\": fe80::1 is link-local: give a global address of the "
		    "router, or no gateway, so that it is detected");
}

static void tables_are_the_kernels_without_its_own(void **unused)
{
	ROUTE("\"table\":0", "field \"table\": 0 is not between 1 and 2147483647");
	ROUTE("\"table\":2147483648",
	      "field \"table\": 2147483648 is not between 1 and 2147483647");
	ROUTE("\"table\":255", "field \"table\": 255 is the kernel's own table (local)");
	ECHOES(static_route, KEY, "{\"subnet\":\"10.9.0.0/16\",\"table\":254}");
}

static void too_many_gateways_are_refused(void **unused)
{
	char json[1024] = "{\"subnet\":\"10.9.0.0/16\",\"gateways\":[";
	size_t n = strlen(json);

	for (int i = 1; i <= STATIC_ROUTE_GATEWAYS_MAX + 1; i++)
		n += (size_t)snprintf(json + n, sizeof(json) - n, "%s\"192.0.2.%d\"",
				      i > 1 ? "," : "", i);
	snprintf(json + n, sizeof(json) - n, "]}");
	REFUSED(static_route, KEY, json, KEY ": field \"gateways\": 33 are more than 32");
}

static void the_list_form_of_a_selector_becomes_the_one_grammar(void **unused)
{
	SELECTOR("[]", "");
	SELECTOR("[{\"key\":\"zone\",\"operator\":\"In\",\"values\":[\"a\",\"b\"]},"
		 "{\"key\":\"tier\",\"operator\":\"NotIn\",\"values\":[\"\"]},"
		 "{\"key\":\"has\",\"operator\":\"Exists\"},"
		 "{\"key\":\"example.org/old\",\"operator\":\"DoesNotExist\",\"values\":[]}]",
		 ",\"nodeSelector\":\"zone in {'a','b'} && tier not in {''} && has(has) && "
		 "!has(example.org/old)\"");
	ROUTE("\"nodeSelector\":[{\"key\":\"a\",\"operator\":\"in\",\"values\":[\"b\"]}]",
	      "field \"nodeSelector[0].operator\": \"in\" is not one of In, NotIn, Exists, "
	      "DoesNotExist");
	ROUTE("\"nodeSelector\":[{\"key\":\"a b\",\"operator\":\"Exists\"}]",
	      "field \"nodeSelector[0].key\": \"a b\" is not 1 to 317 of A-Z, a-z, 0-9, '.', '/', "
	      "'_', '-'");
	ROUTE("\"nodeSelector\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"'\"]}]",
	      "field \"nodeSelector[0].values[0]\": \"'\" is not up to 63 of A-Z, a-z, 0-9, '.', "
	      "'_', '-'");
	ROUTE("\"nodeSelector\":[{\"key\":\"a\",\"operator\":\"Exists\"},"
	      "{\"key\":\"a\",\"operator\":\"In\"}]",
	      "field \"nodeSelector[1].values\": In needs some");
	ROUTE("\"nodeSelector\":[{\"key\":\"a\",\"operator\":\"Exists\",\"values\":[\"b\"]}]",
	      "field \"nodeSelector[0].values\": Exists has none");
	ROUTE("\"nodeSelector\":[{\"operator\":\"Exists\"}]",
	      "field \"nodeSelector[0].key\": is missing");
	ROUTE("\"nodeSelector\":7", "field \"nodeSelector\": 7 is an integer, not a string");
}

static struct static_route_head head_of(const char *json)
{
	struct static_route_head head = { 0 };
	struct err err = { "" };

	if (static_route_head_decode(KEY, json, strlen(json), &head, &err) != 0)
		fail_msg("%s", err.text);
	assert_string_equal(head.name, "vpn");
	return head;
}

static void the_head_of_a_wrong_record_is_known(void **unused)
{
	const struct label a = { "zone", "a" };
	AUTO_DONE(static_route_head_done)
	struct static_route_head both = head_of("{\"nodeSelector\":\"zone == 'a'\",\"subnet\":7,"
						"\"deleting\":\"2026-11-16T02:45:55Z\"}");
	AUTO_DONE(static_route_head_done)
	struct static_route_head selector = head_of("{\"nodeSelector\":\"\",\"deleting\":\"now\"}");
	AUTO_DONE(static_route_head_done)
	struct static_route_head deleting = head_of(
		"{\"nodeSelector\":\"zone\",\"deleting\":\"2026-11-16T02:45:55Z\"}");

	assert_true(both.selector_known);
	assert_true(selector_matches(both.node_selector.parsed, &(struct labels){ &a, 1 }));
	assert_false(selector_matches(both.node_selector.parsed, &(struct labels){ 0 }));
	assert_string_equal(both.deleting, "2026-11-16T02:45:55Z");
	assert_true(selector.selector_known);
	assert_string_equal(selector.deleting, "");
	assert_false(deleting.selector_known);
	assert_string_equal(deleting.deleting, "2026-11-16T02:45:55Z");
}

static void what_has_no_head_says_why(void **unused)
{
	struct static_route_head head;
	struct err err;

	assert_int_equal(static_route_head_decode(KEY, "{", 1, &head, &err), -EINVAL);
	assert_string_equal(err.text, KEY ": not a whole JSON object: ends at byte 1");
	assert_int_equal(static_route_head_decode(KEY, "{\"nodeSelector\":7,\"deleting\":7}", 32,
						  &head, &err),
			 -EINVAL);
	assert_int_equal(static_route_head_decode("pool/web", "{}", 2, &head, &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_is_read_and_written),
		cmocka_unit_test(what_is_left_out_has_its_default),
		cmocka_unit_test(one_gateway_may_stand_without_a_list),
		cmocka_unit_test(what_is_no_subnet_is_refused),
		cmocka_unit_test(what_is_no_router_of_the_family_is_refused),
		cmocka_unit_test(tables_are_the_kernels_without_its_own),
		cmocka_unit_test(too_many_gateways_are_refused),
		cmocka_unit_test(the_list_form_of_a_selector_becomes_the_one_grammar),
		cmocka_unit_test(the_head_of_a_wrong_record_is_known),
		cmocka_unit_test(what_has_no_head_says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
