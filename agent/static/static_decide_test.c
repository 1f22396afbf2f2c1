/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/static/static_world.h"

static void gateways_are_given_or_detected(void **state)
{
	struct world *w = *state;

	record(w, "a", "{\"subnet\":\"10.9.0.0/16\",\"gateway\":\"192.0.2.2\"}");
	record(w, "b", "{\"subnet\":\"10.8.0.0/16\"}");
	record(w, "c", "{\"subnet\":\"fd08::/32\",\"metric\":7}");
	record(w, "d", "{\"subnet\":\"fd09::/32\",\"gateways\":[\"fd00:2::1\"],\"table\":77}");
	record(w, "e", "{\"subnet\":\"10.7.0.0/16\",\"gateways\":[\"192.0.2.2\",\"192.0.2.1\"]}");
	expect(w, "a: 10.9.0.0/16 via 192.0.2.2 dev eth0\n"
		  "b: 10.8.0.0/16 via 192.0.2.1 dev eth0\n"
		  "c: fd08::/32 via fe80::1 dev eth0 metric 7\n"
		  "d: fd09::/32 via fd00:2::1 dev eth0 table 77 metric 1024\n"
		  "e: 10.7.0.0/16 via 192.0.2.1, 192.0.2.2 dev eth0\n");
	w->in.table = 119;
	assert_int_equal(static_decide(&w->entries, &w->in), 0);
	assert_int_equal(w->entries.v[0]->route.table, 119);
	assert_int_equal(w->entries.v[3]->route.table, 77);
}

static void the_selector_comes_first(void **state)
{
	struct world *w = *state;

	record(w, "a", "{\"subnet\":\"10.1.0.0/16\",\"nodeSelector\":\"zone == 'b'\"}");
	record(w, "b", "{\"subnet\":7,\"nodeSelector\":\"zone == 'b'\"}");
	record(w, "c", "{\"subnet\":7,\"nodeSelector\":\"zone == 'a'\"}");
	record(w, "d", "{");
	record(w, "e",
	       "{\"subnet\":\"10.9.0.0/16\",\"nodeSelector\":[{\"key\":\"zone\","
	       "\"operator\":\"In\",\"values\":[\"a\"]}]}");
	expect(w, "a: -\nb: -\n"
		  "c: none ! static-route/c: field \"subnet\": 7 is an integer, not a string\n"
		  "d: none ! static-route/d: not a whole JSON object: ends at byte 1\n"
		  "e: 10.9.0.0/16 via 192.0.2.1 dev eth0\n");
	w->label.value = "b";
	assert_int_equal(static_decide(&w->entries, &w->in), 0);
	assert_true(static_find(&w->entries, "a")->selected);
	assert_false(static_find(&w->entries, "e")->selected);
}

static void what_is_protected_is_found_by_arithmetic(void **state)
{
	struct world *w = *state;

	record(w, "a", "{\"subnet\":\"172.16.0.0/12\"}");
	record(w, "b", "{\"subnet\":\"172.20.3.4/32\"}");
	record(w, "c", "{\"subnet\":\"10.1.128.0/17\"}");
	record(w, "d", "{\"subnet\":\"203.0.113.8/30\"}");
	record(w, "e", "{\"subnet\":\"192.0.2.0/28\"}");
	record(w, "f", "{\"subnet\":\"172.21.0.0/16\"}");
	expect(w, "a: none ! subnet 172.16.0.0/12 overlaps 172.20.0.0/16, which is protected "
		  "(--protected-subnets)\n"
		  "b: none ! subnet 172.20.3.4/32 overlaps 172.20.0.0/16, which is protected "
		  "(--protected-subnets)\n"
		  "c: none ! subnet 10.1.128.0/17 overlaps 10.1.0.0/16, which is a pool\n"
		  "d: none ! subnet 203.0.113.8/30 overlaps 203.0.113.9/32, where etcd is\n"
		  "e: none ! subnet 192.0.2.0/28 contains 192.0.2.7, this node's own\n"
		  "f: 172.21.0.0/16 via 192.0.2.1 dev eth0\n");
}

static void a_gateway_must_be_on_a_link(void **state)
{
	struct world *w = *state;

	record(w, "a", "{\"subnet\":\"10.9.0.0/16\",\"gateway\":\"198.51.100.1\"}");
	record(w, "b", "{\"subnet\":\"10.8.0.0/16\",\"gateway\":\"198.51.100.2\"}");
	record(w, "c", "{\"subnet\":\"10.7.0.0/16\",\"gateway\":\"192.0.2.7\"}");
	record(w, "d",
	       "{\"subnet\":\"10.6.0.0/16\",\"gateways\":[\"192.0.2.1\",\"198.51.100.1\"]}");
	record(w, "e", "{\"subnet\":\"10.0.0.0/24\"}");
	expect(w, "a: none ! gateway 198.51.100.1 is on no subnet of this node that is up\n"
		  "b: none ! gateway 198.51.100.2 is on no subnet of this node that is up\n"
		  "c: none ! gateway 192.0.2.7 is this node itself\n"
		  "d: none ! gateway 198.51.100.1 is on no subnet of this node that is up\n"
		  "e: none ! no gateway is given, and it cannot be detected: 10.0.0.1, towards "
		  "which it is looked for, lies in the subnet itself; name a gateway\n");
}

/* Else it would be withdrawn because it is there, and come because it is not, for ever. */
static void a_route_is_no_argument_against_its_own_gateway(void **state)
{
	struct world *w = *state;
	struct route_lookup l = { .to = address("192.0.2.200"),
				  .route = { .type = RTN_UNICAST,
					     .protocol = 115,
					     .hop = { .gateway = address("192.0.2.200"),
						      .oif = 2 } } };

	record(w, "a", "{\"subnet\":\"192.0.2.192/26\",\"gateway\":\"192.0.2.200\"}");
	assert_int_equal(kernel_view_put_lookup(&w->view, &l), 0);
	expect(w, "a: 192.0.2.192/26 via 192.0.2.200 dev eth0\n");
}

static void the_oldest_has_the_place(void **state)
{
	struct world *w = *state;

	record(w, "b", "{\"subnet\":\"10.9.0.0/16\",\"gateway\":\"192.0.2.2\"}");
	record(w, "a", "{\"subnet\":\"10.9.0.0/16\",\"gateway\":\"192.0.2.1\"}");
	record(w, "c", "{\"subnet\":\"10.9.0.0/16\",\"metric\":5}");
	expect(w, "a: none ! static route b has the same subnet, table and metric and is older\n"
		  "b: 10.9.0.0/16 via 192.0.2.2 dev eth0\n"
		  "c: 10.9.0.0/16 via 192.0.2.1 dev eth0 metric 5\n");
	/* Who is refused for his new words keeps the place that he had. */
	record(w, "b", "{\"subnet\":\"10.1.0.0/16\"}");
	expect(w,
	       "a: none ! static route b has the same subnet, table and metric and is older\n"
	       "b: 10.9.0.0/16 via 192.0.2.2 dev eth0 ! subnet 10.1.0.0/16 overlaps 10.1.0.0/16, "
	       "which is a pool\n"
	       "c: 10.9.0.0/16 via 192.0.2.1 dev eth0 metric 5\n");
	/* And who moves to another's place stays where he was. */
	record(w, "c", "{\"subnet\":\"10.9.0.0/16\"}");
	expect(w,
	       "a: none ! static route b has the same subnet, table and metric and is older\n"
	       "b: 10.9.0.0/16 via 192.0.2.2 dev eth0 ! subnet 10.1.0.0/16 overlaps 10.1.0.0/16, "
	       "which is a pool\n"
	       "c: 10.9.0.0/16 via 192.0.2.1 dev eth0 metric 5 ! static route b has the same "
	       "subnet, table and metric and is older\n");
}

static void broken_words_change_nothing(void **state)
{
	struct world *w = *state;

	record(w, "a", "{\"subnet\":\"10.9.0.0/16\"}");
	expect(w, "a: 10.9.0.0/16 via 192.0.2.1 dev eth0\n");
	record(w, "a", "{\"subnet\":\"10.9.0.1/16\"}");
	expect(w, "a: 10.9.0.0/16 via 192.0.2.1 dev eth0 ! static-route/a: field \"subnet\": "
		  "\"10.9.0.1/16\" has host bits set: write 10.9.0.0/16\n");
	record(w, "a", "{\"subnet\":\"10.9.0.1/16\",\"nodeSelector\":\"zone == 'b'\"}");
	expect(w, "a: -\n");
	record(w, "a", "{\"subnet\":\"10.10.0.0/16\"}");
	expect(w, "a: 10.10.0.0/16 via 192.0.2.1 dev eth0\n");
	record(w, "a", "{\"subnet\":\"10.9.0.1/16\",\"deleting\":\"" NOW "\"}");
	expect(w, "a: -\n");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(gateways_are_given_or_detected),
		CASE(the_selector_comes_first),
		CASE(what_is_protected_is_found_by_arithmetic),
		CASE(a_gateway_must_be_on_a_link),
		CASE(a_route_is_no_argument_against_its_own_gateway),
		CASE(the_oldest_has_the_place),
		CASE(broken_words_change_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
